"""Does a rebuilt training set make a tagger use contexts? Test it on plain text, unseen names and names of other types.

    python -m tests.lab.benchmarks.bench_rebuild [--train 1000] [--arms ...] [--seeds 1 2 3] [--home DIR] [--counts FILE]

An experiment on the first sentences of conll2003 (Ma et al. 2023, Tables 3 and 4): the bundled encoder computes the
PVI, L_C is rebuilt by it, and taggers are trained with and without. They are tested separately on `test`, `ood/oov` and
`ood/cross_category`. Sized for two cores (one to three hours). The whole corpus needs a GPU: --train 0 --dev 0 --preset
paper, with the taggers of `paper-bias` (Table 8). After a kill, the same command with the same --home resumes.
--counts writes a JSON line per arm, replicate and test set, with counts per sentence in the form of choosing.jsonl.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.experiment import view as experiments
from core.experiment.leaderboard import further_tests
from core.projects import runs
from core.projects.home import library
from core.tagging import evaluations
from tests.lab.benchmarks.bench_assist import added
from tests.lab.benchmarks.bench_choosing import counts_of
from tests.lab.benchmarks.data import DATA

ARMS = ("base", "highc2low:20%", "low2high:20%", "dataaug")
FURTHER = ("ood/oov", "ood/cross_category")
COPIES = "copies:"
SEED = 0  # of the bootstrap


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a line per arm and test set, with the spread and the intervals against `none` and unchanged copies."""
    print(
        "\n| arm | test set | dev F1 | F1 per seed | mean ± sd | against none | against copies | verdict |"
        "\n|---|---|---:|---|---:|---|---|---|"
    )
    copied = {row["arm"].removeprefix(COPIES): row for row in rows if row["arm"].startswith(COPIES)}
    for row in rows:
        control = copied.get(row["arm"])
        for number, test in enumerate(({**row, "test": "test"}, *row["also"])):
            f1s = " ".join(f"{f1:.2f}" for f1 in test["micro_f1"])
            spread = f"{test['mean']:.2f}" + ("" if test["sd"] is None else f" ± {test['sd']:.2f}")
            gain = "" if row["arm"] == "none" else gained(test["delta"], test["interval"])
            over = gained(*above(row, control, number)) if control else ""
            word = row["verdict"] if test["test"] == "test" else ""
            cells = (row["arm"], test["test"].split("/")[-1], f"{row['dev_mean']:.2f}", f1s, spread, gain, over, word)
            print(f"| {' | '.join(cells)} |")


def gained(delta: float, interval: tuple[float, float]) -> str:
    return f"{delta:+.2f} [{interval[0]:+.2f}, {interval[1]:+.2f}]"


def above(row: Mapping[str, Any], control: Mapping[str, Any], number: int) -> tuple[float, tuple[float, float]]:
    """Return an arm's F1 minus that of its unchanged copies on one test set, and the 95% interval."""
    if not number:
        return row["delta_random"], row["interval_random"]
    ours, unchanged = ([runs.get(run) for run in line["finetune_runs"]] for line in (row, control))
    test = further_tests(ours, unchanged, library(), SEED)[number - 1]
    return test.delta, test.interval


def write_counts(rows: Sequence[Mapping[str, Any]], seeds: Sequence[int], path: Path) -> None:
    """Write a line per arm, replicate and test set. Counts are in the form of choosing.jsonl."""
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            for number, test in enumerate(("test", *FURTHER)):
                tables = [one for run in row["finetune_runs"] for one in evaluations.read(runs.get(run), number)]
                for seed, table in zip(seeds, tables, strict=True):
                    line = {"arm": row["arm"], "seed": seed, "test": test, "f1": table.f1(), **counts_of(table)}
                    file.write(json.dumps(line) + "\n")


def measured() -> None:
    """Print the PVI results of the training set, and the number of changes."""
    for run in runs.listed("difficulty")[:1]:
        told = run.result()
        bits = ", ".join(f"{view} {value:.3f} bits" for view, value in told["v_information"].items())
        print(f"\n{told['mentions']:,} mentions; V-information: {bits}; CEIM {told['ceim']}")
    for run in runs.listed("rebuild"):
        told = run.result()
        print(f"{run.manifest.config['method']}: {told['changed']:,} edits, {told['sentences']:,} sentences")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--arms", nargs="+", default=ARMS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--train", type=int, default=1000, help="Training sentences; 0: all.")
    parser.add_argument("--dev", type=int, default=500, help="Dev sentences; 0: all.")
    parser.add_argument("--test", type=int, default=0, help="Sentences per test set; 0: all.")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--preset", default="quick", help="quick, or paper: taggers as paper-bias trains them.")
    parser.add_argument("--epochs", type=int, default=10, help="Epochs of fine-tuning; 10 in Table 8.")
    parser.add_argument("--home", type=Path)
    parser.add_argument("--counts", type=Path, help="File for the counts of every tagger.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WINNOW_HOME"] = str(given.home or folder)
        sizes = {"train": given.train, "dev": given.dev, "test": given.test}
        parts = {split: added(given.data, "conll2003", split, n, Path(folder)) for split, n in sizes.items()}
        options = {
            **parts,
            "also_test": [added(given.data, "conll2003", name, given.test, Path(folder)) for name in FURTHER],
            "arms": given.arms,
            "seeds": given.seeds,
            "encoder": given.encoder,
            "preset": given.preset,
            "finetune": {"epochs": given.epochs},
        }
        runs.execute("calibrate", experiments.calibrations(options)[0])
        begin = time.perf_counter()
        run = runs.execute("experiment", options)
        show(run.result()["leaderboard"])
        measured()
        if given.counts:
            write_counts(run.result()["leaderboard"], given.seeds, given.counts)
        print(f"{(time.perf_counter() - begin) / 60:.1f} minutes", flush=True)


if __name__ == "__main__":
    main()
