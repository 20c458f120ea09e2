"""Compare all lines that need no download on one ground, as one experiment.

    python -m tests.lab.benchmarks.bench_lines GROUND [--arms none transfer ...] [--seeds 1 2 3 4 5] [--plan-only] [--packages DIR]
        --home DIR

Grounds: crossner-ai, crossner-literature, crossner-music (100 training sentences), B100 and C100 (the first 100 training
sentences of bc5cdr and conll2003, and the first 400 of dev). T_C: the text of train and dev. D_C: for CrossNER that of
bench_worth (109,482 sentences), else 20,000 sentences of the domain's kind among 60,000 others. Bundled MiniLM, 20 epochs,
S_C of 2,500 sentences for pre-training. The labels for `transfer` are 3,000 sentences of conll2003, for C100 crossner-ai.

One experiment with all lines, as a user would run it: prints the planned time, the time that it took (both also by kind
of run; the time of earlier runs counts as taken), and the leaderboard with its sentence on the cheapest way. A JSON line
has the counts of every tagger per test sentence, in the form of choosing.jsonl (lines.jsonl holds those in RESULTS.md;
older lines hold sums). --packages: for B100, the lists of
bench_dictionary instead of the names of the training set. --plan-only: times the machine and prints the planned time.
The same --home resumes, also with more --arms.
Takes hours on two cores. For a rehearsal: --encoder tiny --seeds 1 --small.
"""

import argparse
import gzip
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from core.experiment import result as leaderboard
from core.experiment import view as experiments
from core.experiment.cost import Cost
from core.projects import runs
from core.projects.home import library, store
from core.runs import durations
from core.runs.run import Run
from core.shown import duration
from core.text.sentence import Sentence
from tests.lab.benchmarks import bench_dictionary, bench_ner, bench_transfer
from tests.lab.benchmarks.bench_choosing import counts_of
from tests.lab.benchmarks.bench_worth import write_corpora
from tests.lab.benchmarks.data import DATA

FIRST = {"B100": ("bc5cdr", "pubmed"), "C100": ("conll2003", "news")}  # ground: labelled corpus, kind of its domain
KINDS = ("pubmed", "news", "legal", "reviews")
INSIDE, OUTSIDE = 20_000, 20_000  # sentences of D_C: of the domain's kind, and of each other kind
GROUNDS = ("crossner-ai", "crossner-literature", "crossner-music", *FIRST)
LINES = ("none", "random", "classifier", "transfer", "dictionary", "distant", "self-train")


def corpora(ground: str, folder: Path, *, small: bool) -> dict[str, str]:
    """Import the ground's corpora; return their fingerprints by role. small: True for a D_C of 2,000 sentences."""
    name, kind = FIRST.get(ground, (ground, ""))
    parts = bench_ner.splits(DATA, name, folder)
    if kind:
        parts |= {"train": first(parts["train"], 100), "dev": first(parts["dev"], 400)}
        text = [own.text for split in ("train", "dev") for own in islice(all_of(parts[split]), 400)]
        rows = [
            row
            for other in KINDS
            for row in random.Random(0).sample(unlabelled(other), INSIDE if other == kind else OUTSIDE)
        ]
        random.Random(1).shuffle(rows)
        for role, own in (("task", text), ("domain", rows)):
            (folder / f"{role}.txt").write_text("\n".join(own) + "\n", encoding="utf-8")
    else:
        write_corpora(DATA, name, folder)
    if small:
        some = (folder / "domain.txt").read_text(encoding="utf-8").splitlines()[:2000]
        (folder / "domain.txt").write_text("\n".join(some) + "\n", encoding="utf-8")
    for role in ("task", "domain"):
        parts[role] = runs.execute("add", {"path": str(folder / f"{role}.txt")}).result()["corpus"]
    return parts


def unlabelled(kind: str) -> list[str]:
    with gzip.open(DATA / "unlabeled" / f"{kind}.txt.gz", "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def all_of(mark: str) -> Iterator[Sentence]:
    return (row for block in library().find(mark).batches() for row in block)


def first(mark: str, n: int) -> str:
    """Store the first `n` sentences of a labelled corpus; return the fingerprint."""
    corpus = library().find(mark)
    return library().seal(islice(all_of(mark), n), name=f"{corpus.name} {n}", origin={}, labelled=True).fingerprint


def other_labels(ground: str, folder: Path) -> str:
    """Import the labelled corpus for `transfer`; return its fingerprint."""
    if ground == "C100":
        return bench_ner.splits(DATA, "crossner-ai", folder / "other")["train"]
    return bench_transfer.sample(3000, folder)


def options(given: argparse.Namespace, folder: Path) -> dict[str, object]:
    other = other_labels(given.ground, folder)
    named = {"transfer": f"transfer:{library().find(other).name}"}
    renamed = [pair.split("=")[::-1] for pair in bench_transfer.TYPES]
    types = bench_transfer.TYPES if given.ground != "C100" else tuple("=".join(pair) for pair in renamed)
    lists = {"dictionary": bench_dictionary.stored_lists(given.packages)} if given.packages else {}
    return {
        **lists,
        **corpora(given.ground, folder, small=given.small),
        "arms": tuple(named.get(arm, arm) for arm in given.arms),
        "transfer": (other,),
        "type_map": types,
        "budgets": ("200" if given.small else "2500",),
        "transductive": "dev",
        "encoder": given.encoder,
        "seeds": given.seeds,
        "finetune": {"epochs": 2 if given.small else 20},
    }


def by_kind(cost: Cost, run: Run) -> str:
    """Return the planned time and the time taken, for each kind of run; the parts of a selection count with it."""
    planned, taken = Counter[str](), Counter[str]()
    for step in cost.steps:
        planned[step.kind] += round(step.seconds)
    for kind, seconds in durations.by_kind([run], store()).items():
        taken["select" if kind in ("score", "embed", "audit") else kind] += round(seconds)
    return "; ".join(f"{kind} {duration(planned[kind])}, {duration(taken[kind])}" for kind in planned)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ground", choices=GROUNDS)
    parser.add_argument("--arms", nargs="+", default=LINES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--plan-only", action="store_true")
    parser.add_argument("--packages", type=Path)
    parser.add_argument("--home", type=Path, required=True)
    given = parser.parse_args()
    os.environ["WINNOW_HOME"] = str(given.home)
    folder = given.home / "files"
    folder.mkdir(parents=True, exist_ok=True)
    asked = options(given, folder)
    for timing in experiments.calibrations(asked):
        runs.execute("calibrate", timing)
    cost = experiments.cost(asked)
    each = "; ".join(f"{line} {duration(seconds)}" for line, seconds in cost.lines.items())
    print(f"planned: {duration(cost.seconds)} ({each})", flush=True)
    if given.plan_only:
        return
    began = time.monotonic()
    run = runs.execute("experiment", asked)
    print(f"took {duration(time.monotonic() - began)}")
    print(f"planned and taken by kind of run: {by_kind(cost, run)}")
    print((run.artifacts / "leaderboard.md").read_text(encoding="utf-8"))
    for row in leaderboard.read(run).leaderboard:
        for seed, table in zip(given.seeds, leaderboard.tables(row, store()), strict=False):
            print(
                json.dumps({"ground": given.ground, "arm": row.arm, "seed": seed, **counts_of(table), "f1": table.f1()})
            )


if __name__ == "__main__":
    main()
