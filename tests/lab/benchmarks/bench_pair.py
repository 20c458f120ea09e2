"""One language pair under the protocol of Murthy et al. 2018, until dev loss says stop: alone, with all, SKL, and random.

    python -m tests.lab.benchmarks.bench_pair --home DIR [--out FILE] [--primary NAME] [--assisting NAME] [--threshold 0.5]

A step a sentence, of both corpora in turn, a softmax that sees the tag before it, skip-gram vectors of each language's
whole training text in one table. A JSON line a training goes to FILE (pair.jsonl) as soon as it is known, and what has
its line there is not trained again, on this machine or another; with the same --home it goes on inside a training too.
--epochs 1 is a rehearsal, whose F1s say nothing.
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
    "Smaller than Murthy et al. 2018: {train:,} primary and {assist:,} assisting training sentences where theirs are "
    "3,000 (German) and 8,000 to 15,000; word vectors of the training text, apart in each language, where theirs are "
    "of large corpora in one space; {seeds} seed(s); one threshold, {threshold:g}, where theirs is cross-validated."
)


def arms(given: argparse.Namespace, train: str, assisting: str) -> Iterator[tuple[str, SharedLabels | None, int]]:
    """Name, sentences that are borrowed, and how many, of every arm."""
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
    """What a line's figures depend on, beside arm and seed."""
    names = ("primary", "assisting", "train", "assist", "dev", "test", "threshold", "epochs")
    return {name: getattr(given, name) for name in names}


def line(arm: str, kept: int, seed: int, finished: FinetuneResult, longest: int) -> Mapping[str, Any]:
    """What is known of a training; stopped: whether the rate fell below its least before the epochs ran out."""
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
    """A line a training, of every arm under every seed but those that are here."""
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
        help="Of 1,000 Spanish sentences 0.5 keeps 812 for Dutch, and 2 keeps 983.",
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--epochs", type=int, default=0, help="At most so many; 0: until dev loss says stop.")
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
