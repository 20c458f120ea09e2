"""Pass corrupted inputs to every reader, and to all code that reads stored files.

python -m tests.lab.fuzz --inputs 10000                 all readers
python -m tests.lab.fuzz --readers conll,parquet --inputs 2000 --seed 3
python -m tests.lab.fuzz --readers conll --seed 3 --number 1234     one input again

`artifacts` (files that runs write) runs only if --readers names it, because creating them takes a minute. The app
checks the size and the checksum of each artifact, so it refuses most corrupted ones for that alone. Artifacts of older
versions, which have no checksums, are not tested.

Exits 1 if a reader raised anything but a WinnowError, a process died, a partly written file was left, or an input
exceeded its time or memory. Inputs are assigned to the named readers in turn. To repeat one, name the same readers.
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
STORED = ("home", "artifacts", "models", "projects", "archive", "intake")  # files that the app stores and reads


def chosen(names: Sequence[str], shared: Path) -> list[Target]:
    """Return the targets with these names. shared: folder for the files from which all inputs are made."""
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
        "--readers", default=",".join(name for name in known if name != "artifacts"), help=f"any of {', '.join(known)}"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, help="run only this input")
    asked = parser.parse_args(words)
    names = asked.readers.split(",")
    if unknown := set(names) - set(known):
        parser.error(f"--readers: unknown {', '.join(sorted(unknown))}; choose from {', '.join(known)}")
    began = time.monotonic()
    numbers = range(asked.inputs) if asked.number is None else [asked.number]
    with folder() as shared:
        report = hunt(lambda: chosen(names, Path(shared)), numbers, asked.seed)
    show(report, names, time.monotonic() - began)
    return 1 if report.finds else 0


def show(report: Report, names: Sequence[str], seconds: float) -> None:
    """Print the table of outcomes, then the faults."""
    print(f"{'':16}{'taken':>8}{'refused':>8}{'found':>8}")
    for name in names:
        print(f"{name:16}" + "".join(f"{report.outcomes[name, word]:8,}" for word in ("taken", "refused", "found")))
    total = sum(report.outcomes.values())
    print(f"{total:,} inputs in {seconds:.0f} s ({60 * total / max(seconds, 0.01):,.0f} per minute)")
    for find in report.finds.values():
        print(f"\n{find.target}, {find.times} times, first input {find.first}:\n{find.what}")


if __name__ == "__main__":
    sys.exit(main())
