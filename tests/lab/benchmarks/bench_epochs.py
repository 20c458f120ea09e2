"""Compare three choices of a tagger's weights: the best epoch on dev, the last, or the mean of the last three.

    python -m tests.lab.benchmarks.bench_epochs [--corpora crossner-music bc5cdr] [--seeds 1 ... 8] [--out DIR]

Each seed is trained once, with the preset `quick` and no pre-training, and tested with all three sets of weights.
Besides F1, the mean log-probability of the gold tags is stored, as a sharper outcome to compare with F1.
`bc5cdr` has its first 300 training sentences and first 150 dev sentences. Every training appends a JSON line with its
counts to DIR/epochs.jsonl. The same command resumes, and does not repeat what `epochs.jsonl` beside this file has. At
the end, a table compares the standard deviations over seeds and the mean differences to the best epoch, paired by seed.
"""

import argparse
import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from transformers import set_seed

from core.models.devices import to_device
from core.models.taggers import new_tagger
from core.projects.home import library
from core.reporter import Silent
from core.results import Evaluation
from core.text.sentence import Prediction, Sentence
from core.training.finetune import finetune, loss_of, score
from core.training.settings import TaggerSettings
from tests.lab.benchmarks import bench_ner
from tests.lab.benchmarks.data import DATA

CORPORA, SEEDS = ("crossner-music", "bc5cdr"), tuple(range(1, 9))
LIMITS = {"bc5cdr": {"train": 300, "dev": 150}}  # sentences
KEPT = 3  # epochs whose weights are averaged
WAYS = ("best", "last", "mean")
LINES = Path(__file__).with_name("epochs.jsonl")


def trained(splits: dict[str, list[Sentence]], seed: int, init: str = "minilm") -> dict[str, Any]:
    """Train one tagger and return its line: dev F1 of all epochs, and test counts and F1 for each set of weights.

    log_probability: mean log-probability of the gold tags per test word. init: encoder to start from.
    """
    types = sorted({entity.type for split in splits.values() for s in split for entity in s.entities or ()})
    own = sorted({entity.type for s in splits["train"] for entity in s.entities or ()})
    set_seed(seed)
    tagger = new_tagger(init, own, constrained=True)
    tagger.level_chains()
    weights: list[dict[str, torch.Tensor]] = []

    def watch(_epoch: float, _gold: Sequence[Sentence], _found: Sequence[Prediction]) -> None:
        weights.append({name: tensor.detach().clone() for name, tensor in tagger.state_dict().items()})
        del weights[:-KEPT]

    with tempfile.TemporaryDirectory() as folder:
        epochs = finetune(
            tagger,
            splits["train"],
            splits["dev"],
            TaggerSettings().training(len(splits["train"])),
            seed=seed,
            folder=Path(folder),
            report=Silent(),
            types=types,
            watch=watch,
        )
    line: dict[str, Any] = {"dev_f1": epochs.dev_f1, "best_epoch": epochs.best}
    for way in WAYS:
        if way != "best":  # `finetune` leaves the tagger with the weights of the best epoch
            tagger.load_state_dict(weights[-1] if way == "last" else _mean(weights))
        line[way] = _counts(score(tagger, splits["test"], types, Silent()))
        line[way]["log_probability"] = -loss_of(tagger, splits["test"], partial(to_device, device=tagger.device))
    return line


def _mean(weights: Sequence[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Return the mean of several state dicts; tensors of integers are taken from the last."""
    return {
        name: torch.stack([each[name] for each in weights]).mean(0) if tensor.is_floating_point() else tensor
        for name, tensor in weights[-1].items()
    }


def _counts(table: Evaluation) -> dict[str, float]:
    counts = {name: int(getattr(table, name).sum()) for name in ("tp", "predicted", "gold")}
    return {**counts, "f1": table.f1()}


def read_splits(corpus: str, folder: Path) -> dict[str, list[Sentence]]:
    """Import a corpus of `DATA` and return its sentences by split, limited by `LIMITS`."""
    sealed = {split: library().find(it) for split, it in bench_ner.splits(DATA, corpus, folder).items()}
    rows = {split: chain.from_iterable(it.batches()) for split, it in sealed.items()}
    return {split: list(islice(it, LIMITS.get(corpus, {}).get(split))) for split, it in rows.items()}


def missing(corpora: Sequence[str], seeds: Sequence[int], known: Sequence[dict[str, Any]]) -> Iterator[tuple[str, int]]:
    """Yield corpus and seed of the trainings without a line, seed by seed."""
    there = {(line["corpus"], line["seed"]) for line in known}
    yield from ((corpus, seed) for seed in seeds for corpus in corpora if (corpus, seed) not in there)


def known_lines(*files: Path) -> list[dict[str, Any]]:
    """Return the JSON lines of the files that exist."""
    return [json.loads(line) for file in files if file.exists() for line in file.read_text("utf-8").splitlines()]


def summary(lines: Sequence[dict[str, Any]]) -> list[str]:
    """Return a table: mean and standard deviation of test F1 by corpus and kept weights, and the difference to best."""
    groups = defaultdict(list)
    for line in lines:
        groups[line["corpus"]].append(line)
    rows = ["| corpus | seeds | kept | test F1, mean | sd over seeds | minus best, mean | sd |"]
    rows.append("|---|---:|---|---:|---:|---:|---:|")
    for corpus, group in groups.items():
        for way in WAYS:
            f1s = [line[way]["f1"] for line in group]
            gaps = [line[way]["f1"] - line["best"]["f1"] for line in group]
            spread, gap = (f"{stdev(values):.2f}" if len(group) > 1 else "" for values in (f1s, gaps))
            rows.append(
                f"| {corpus} | {len(group)} | {way} | {mean(f1s):.2f} | {spread} | {mean(gaps):+z.2f} | {gap} |"
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "winnow-epochs")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "epochs.jsonl"
    known = known_lines(LINES, file)
    os.environ["WINNOW_HOME"] = str(given.out / "home")
    read = cache(lambda corpus: read_splits(corpus, given.out / "files"))
    for corpus, seed in missing(given.corpora, given.seeds, known):
        splits = read(corpus)
        known.append({"corpus": corpus, "seed": seed, **trained(splits, seed)})
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(known[-1]) + "\n")
        print(json.dumps(known[-1]), flush=True)
    print("\n".join(summary(known)))


if __name__ == "__main__":
    main()
