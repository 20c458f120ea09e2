"""Do the labels of news help a tagger of artificial intelligence as a start? conll2003 first, then crossner-ai.

    python -m tests.lab.benchmarks.bench_transfer [--first-sentences 3000] [--seeds 1 2 3 4 5] [--plan-only] [--home DIR]

An experiment with the variants `none` and `transfer:conll2003` on crossner-ai (100 training, 350 dev and 431 test
sentences): bundled MiniLM, preset quick, types renamed as in CrossNER (PER=person and so on). --first-sentences: size
of a sample of the 14,041 training sentences of conll2003, drawn with seed 0; 0: all. Prints the planned time, the
leaderboard, and a JSON line with the counts of every tagger (transfer.jsonl holds those in RESULTS.md). --plan-only:
times the machine and prints the planned time. The same --home resumes. For a rehearsal: --encoder tiny --seeds 1 --first-sentences 40.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

import numpy as np

from core.experiment import result as leaderboard
from core.experiment import view as experiments
from core.projects import runs
from core.projects.home import library, store
from core.shown import duration
from tests.lab.benchmarks import bench_ner
from tests.lab.benchmarks.data import DATA

FIRST = "conll2003"
TYPES = ("PER=person", "LOC=location", "ORG=organisation", "MISC=misc")


def sample(n: int, folder: Path) -> str:
    """Import the training set of conll2003, store `n` random sentences of it (0: all), and return the fingerprint."""
    path = folder / f"{FIRST}.conll"
    path.write_bytes((DATA / FIRST / "train.conll").read_bytes())
    whole = library().find(runs.execute("add", {"path": str(path)}).result()["corpus"])
    if not n or n >= len(whole):
        return whole.fingerprint
    rows = np.sort(np.random.default_rng(0).choice(len(whole), n, replace=False))
    return library().subset(whole, rows, name=f"{FIRST} {n}", origin={"from": whole.fingerprint}).fingerprint


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first-sentences", type=int, default=3000)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--plan-only", action="store_true")
    parser.add_argument("--home", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WINNOW_HOME"] = str(given.home or folder)
        first = sample(given.first_sentences, Path(folder))
        options = {
            **bench_ner.splits(DATA, "crossner-ai", Path(folder)),
            "arms": ("none", f"transfer:{library().find(first).name}"),
            "transfer": (first,),
            "type_map": TYPES,
            "encoder": given.encoder,
            "seeds": given.seeds,
        }
        for timing in experiments.calibrations(options):
            runs.execute("calibrate", timing)
        cost = experiments.cost(options)
        print(
            f"planned: {'; '.join(f'{line} {duration(seconds)}' for line, seconds in cost.lines.items())}", flush=True
        )
        if given.plan_only:
            return
        run = runs.execute("experiment", options)
        print((run.artifacts / "leaderboard.md").read_text(encoding="utf-8"))
        for row in leaderboard.read(run).leaderboard:
            for seed, table in zip(given.seeds, leaderboard.tables(row, store()), strict=True):
                counts = {name: int(getattr(table, name).sum()) for name in ("tp", "predicted", "gold")}
                print(json.dumps({"arm": row.arm, "seed": seed, **counts, "f1": table.f1()}))


if __name__ == "__main__":
    main()
