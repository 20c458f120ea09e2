"""Train one language pair by the protocol of Murthy et al. 2018, with early stopping: alone, all, SKL and random.

    python -m tests.lab.benchmarks.bench_pair --home DIR [--out FILE] [--primary NAME] [--assisting NAME] [--threshold 0.5]

The protocol has one step per sentence, alternating between both corpora, a softmax that sees the previous tag, and
skip-gram vectors of each language's whole training text in one table. Each training appends a JSON line to FILE
(pair.jsonl). Trainings with a line there are skipped, also on another machine. With the same --home, the command
resumes inside a training. --epochs 1 is a rehearsal, whose F1 means nothing.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from core.assisting.skl import Assisted, SharedLabels, random_part
from core.projects import home, runs
from core.runs import result
from core.tagging.evaluations import FinetuneResult
from tests.lab.benchmarks.bench_assist import added
from tests.lab.benchmarks.data import DATA

SMALLER = (
    "Smaller than Murthy et al. 2018: {train:,} primary and {assist:,} assisting training sentences instead of 3,000 "
    "(German) and 8,000 to 15,000; word vectors of the training text, separate for each language, instead of vectors "
    "of large corpora in one space; {seeds} seed(s); one threshold, {threshold:g}, instead of a cross-validated one."
)


def arms(given: argparse.Namespace, train: str, assisting: str) -> Iterator[tuple[str, SharedLabels | None, int]]:
    """Yield the name of every arm, the sentences that it borrows, and their number."""
    library = home.library()
    yield "alone", None, 0
    scored = runs.execute("skl", {"primary": train, "assisting": assisting})
    kept = Assisted.read(scored, library)
    whole = library.find(assisting)
    lent = kept.shared_labels(given.threshold, "charcnn", library)
    n = len(library.find(lent.assisting))
    yield "all", SharedLabels(assisting=assisting), len(whole)
    yield f"skl:{given.threshold:g}", lent, n
    if n < len(whole):
        yield "random", random_part(whole, n, 1, "charcnn", library), n


def settings(given: argparse.Namespace) -> Mapping[str, Any]:
    """Return what a line's figures depend on, besides arm and seed."""
    names = ("primary", "assisting", "train", "assist", "dev", "test", "threshold", "epochs")
    return {name: getattr(given, name) for name in names}


def line(arm: str, kept: int, seed: int, finished: FinetuneResult, longest: int) -> Mapping[str, Any]:
    """Return the line of a training. stopped: the learning rate fell below its minimum before the epochs ran out."""
    assert finished.test is not None
    return {
        "arm": arm,
        "borrowed": kept,
        "seed": seed,
        "test_f1": finished.test.micro_f1[0],
        "dev_f1": finished.dev.micro_f1[0],
        "best_epoch": finished.best_epoch[0],
        "epochs": finished.epochs[0],
        "stopped": finished.epochs[0] < longest,
        "minutes": round(finished.seconds[0] / 60, 1),
    }


def trained(given: argparse.Namespace, folder: Path, here: Collection[tuple[str, int]]) -> Iterator[Mapping[str, Any]]:
    """Yield a line per training, for all arms and seeds except those in `here`."""
    train = added(given.data, given.primary, "train", given.train, folder)
    assisting = added(given.data, given.assisting, "train", given.assist, folder)
    own, other = (added(given.data, name, "train", 0, folder) for name in (given.primary, given.assisting))
    alike: dict[str, Any] = {
        "train": train,
        "dev": added(given.data, given.primary, "dev", given.dev, folder),
        "test": (added(given.data, given.primary, "test", given.test, folder),),
        "vectors": own,
        "network": "charcnn",
        "preset": "paper",
        "in_turn": True,
        "head": "memm",
        **({"epochs": given.epochs} if given.epochs else {}),
    }
    for seed in given.seeds:
        for arm, lent, kept in arms(given, train, assisting):
            if (arm, seed) in here:
                continue
            borrowed = {**lent.options, "assisting_vectors": other} if lent else {}
            finished = result.read(runs.execute("finetune", {**alike, **borrowed, "seeds": (seed,)}), FinetuneResult)
            yield {**line(arm, kept, seed, finished, given.epochs or 200), "settings": settings(given)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("pair.jsonl"))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--primary", default="conll2002-nl")
    parser.add_argument("--assisting", default="conll2002-es")
    parser.add_argument("--train", type=int, default=1000, help="Training sentences of the primary corpus; 0: all.")
    parser.add_argument("--assist", type=int, default=1000, help="Sentences of the assisting corpus; 0: all.")
    parser.add_argument("--dev", type=int, default=500, help="Dev sentences; 0: all.")
    parser.add_argument("--test", type=int, default=0, help="Test sentences; 0: all.")
    parser.add_argument(
        "--threshold",
        type=float,
        default=0.5,
        help="SKL threshold. Of 1,000 Spanish sentences, 0.5 keeps 812 for Dutch, and 2 keeps 983.",
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--epochs", type=int, default=0, help="Maximum number; 0: until early stopping.")
    given = parser.parse_args()
    os.environ["WINNOW_HOME"] = str(given.home.absolute())
    print(SMALLER.format(train=given.train, assist=given.assist, seeds=len(given.seeds), threshold=given.threshold))
    lines = given.out.read_text(encoding="utf-8").splitlines() if given.out.exists() else []
    known = [row for row in map(json.loads, lines) if row["settings"] == settings(given)]
    here = {(row["arm"], row["seed"]) for row in known}
    with tempfile.TemporaryDirectory() as folder, given.out.open("a", encoding="utf-8") as out:
        for row in trained(given, Path(folder), here):
            print(text := json.dumps(row), flush=True)
            out.write(text + "\n")
            out.flush()


if __name__ == "__main__":
    main()
