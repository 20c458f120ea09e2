"""Time a tagger's CRF at this or another commit: seconds per seed on CrossNER music, and the rate of tagging.

    python tests/lab/benchmarks/bench_speed.py [--data ../shared/data] [--seeds 1 2 3] [--epochs N] [--sentences 4000]

It measures the tree in which it is started, so that one file measures two commits alike:

    cd OLD; PYTHONPATH=. python /path/to/tests/lab/benchmarks/bench_speed.py --data /path/to/data

Both train and decode over all tag sequences, as was usual at ea58d4f. The rate of tagging is in sentences per second,
by a tagger with 57 tags, trained on CrossNER AI for five epochs. The sentences are from Wikipedia, and the best of
three passes counts. The output is a JSON line.
"""

import argparse
import gzip
import importlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

TIMES = 3


def execute(kind: str, options: Mapping[str, object]) -> Any:
    """Execute a run in the tree in which this was started."""
    for name in ("core.projects.runs", "core.facade.runs", "core.facade"):  # names in later and earlier commits
        with suppress(ModuleNotFoundError):
            if hasattr(module := importlib.import_module(name), "execute"):
                return module.execute(kind, options)
    raise RuntimeError("this commit has no function `execute`")


def trained(folder: Path, **options: object) -> Any:
    """Train taggers on a labelled corpus, without pre-training; return the run."""
    files = {split: str(folder / f"{split}.conll") for split in ("train", "dev", "test")}
    corpora = {split: execute("add", {"path": path}).result()["corpus"] for split, path in files.items()}
    given = {**corpora, "test": (corpora["test"],), "constrained": False, **options}
    return execute("finetune", {name: value for name, value in given.items() if value is not None})


def a_second(model: Path, file: Path, n: int) -> dict[str, object]:
    """Return the sentences per second that a tagger reads and decodes, with confidences, as `tag` does."""
    from core.models.taggers import load_tagger
    from core.text.sentence import Sentence, sentence_id
    from core.text.words import clean, tokenize

    with gzip.open(file, "rt", encoding="utf-8") as stream:
        texts = [clean(text) for _, text in zip(range(n), stream, strict=False)]
    sentences = [Sentence(id=sentence_id(text), tokens=tokenize(text), text=text) for text in texts if text.strip()]
    tagger = load_tagger(model)
    tagger.predict(sentences[:256])
    seconds = []
    for _ in range(TIMES):
        began = time.perf_counter()
        predictions = tagger.predict(sentences)
        seconds.append(time.perf_counter() - began)
    n_entities = sum(len(prediction.entities) for prediction in predictions)
    rate = len(sentences) / min(seconds)
    return {"tags": len(tagger.tags), "entities": n_entities, "sentences_per_second": round(rate, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, help="Maximum number; default: the preset's.")
    parser.add_argument("--sentences", type=int, default=4000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WINNOW_HOME"] = folder
        music = trained(given.data / "crossner-music", seeds=given.seeds, epochs=given.epochs).result()
        epochs = min(given.epochs or 5, 5)
        tagger = trained(given.data / "crossner-ai", seeds=[1], epochs=epochs, min_epochs=epochs)
        tagged = a_second(tagger.artifacts / "model", given.data / "unlabeled" / "wikipedia.txt.gz", given.sentences)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    names = ("seconds", "epochs")
    line = {name: music[name] for name in names} | {"f1": music["test"]["micro_f1"]}
    load = [round(value, 1) for value in os.getloadavg()]
    print(json.dumps({"commit": commit.stdout.strip(), "load": load, "music": line, "tag": tagged}))


if __name__ == "__main__":
    main()
