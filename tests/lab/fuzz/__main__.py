"""Spoilt inputs for every reader, and for every file that the app reads back.

python -m tests.lab.fuzz --inputs 10000                 all of it
python -m tests.lab.fuzz --readers conll,parquet --inputs 2000 --seed 3
python -m tests.lab.fuzz --readers conll --seed 3 --number 1234     one input again

`artifacts`, the files that runs leave, must be asked for: making them takes a minute. Each is held against its size and
sum, so that most are refused for that alone; those of older versions, which have no sums, are not tried here.

Exits 1 where anything but a sentence of ours was raised, a process died, something half-written was left, or time or
memory went. An input's readers are those of its call: to see one again, name the same ones.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", WINNOW_CONFINED="0", OMP_NUM_THREADS="1")

from tests.lab.fuzz.hunt import Report, Target, folder, hunt
from tests.lab.fuzz.reading import Reading, Vectors
from tests.lab.fuzz.seeds import SEEDS

VECTORS = Vectors.name
STORED = ("home", "artifacts", "models", "projects", "archive", "intake")  # what the app reads back


def chosen(names: Sequence[str], shared: Path) -> list[Target]:
    """Those of these names. shared: a folder for what all inputs are made of."""
    targets: dict[str, Target] = {name: Reading(name) for name in SEEDS} | {VECTORS: Vectors()}
    if set(names) & set(STORED):
        from tests.lab.fuzz.stored import stored  # its imports take seconds

        targets |= {each.name: each for each in stored(shared)}
    return [targets[name] for name in names]


def main(words: Sequence[str] | None = None) -> int:
    known = [*SEEDS, VECTORS, *STORED]
    parser = argparse.ArgumentParser(prog="python -m tests.lab.fuzz", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument(
        "--readers", default=",".join(name for name in known if name != "artifacts"), help=f"some of {', '.join(known)}"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, help="this input alone")
    asked = parser.parse_args(words)
    names = asked.readers.split(",")
    if unknown := set(names) - set(known):
        parser.error(f"--readers: {', '.join(sorted(unknown))} is not among {', '.join(known)}")
    began = time.monotonic()
    numbers = range(asked.inputs) if asked.number is None else [asked.number]
    with folder() as shared:
        report = hunt(lambda: chosen(names, Path(shared)), numbers, asked.seed)
    show(report, names, time.monotonic() - began)
    return 1 if report.finds else 0


def show(report: Report, names: Sequence[str], seconds: float) -> None:
    """The table, then what was found."""
    print(f"{'':16}{'taken':>8}{'refused':>8}{'found':>8}")
    for name in names:
        print(f"{name:16}" + "".join(f"{report.outcomes[name, word]:8,}" for word in ("taken", "refused", "found")))
    total = sum(report.outcomes.values())
    print(f"{total:,} inputs in {seconds:.0f} s ({60 * total / max(seconds, 0.01):,.0f} a minute)")
    for find in report.finds.values():
        print(f"\n{find.target}, {find.times} times, first input {find.first}:\n{find.what}")


if __name__ == "__main__":
    sys.exit(main())
