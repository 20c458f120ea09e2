"""Run a whole experiment on real text: encoders pre-trained on the selection of each arm, taggers, and a verdict.

    python -m tests.lab.benchmarks.bench_worth [--domain crossner-music] [--seeds 1 2 3] [--home DIR]

T_C: train and dev sentences of a CrossNER domain. Sentences of test are searched for and left out; those of dev may be
used as plain text for pre-training. D_C: all of wikipedia and wikipedia-people, and a seeded sample of 15,000 each of
news, reviews, pubmed and legal: 109,482 sentences. S_C: 5,000 of them. Writes PLAN.yaml, which `python -m core
experiment` accepts too. After a kill, the same command with the same --home resumes.
"""

import argparse
import gzip
import os
import random
import subprocess
import sys
from pathlib import Path

import yaml

from tests.lab.benchmarks.data import DATA, sentences

WHOLE, SHARED, EACH = ("wikipedia", "wikipedia-people"), ("news", "reviews", "pubmed", "legal"), 15_000
ARMS = ("none", "tapt", "random", "cos-pretrained", "classifier", "ner-selected")


def write_corpora(data: Path, domain: str, folder: Path) -> None:
    """Write task.txt and domain.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in (*WHOLE, *SHARED):
        with gzip.open(data / "unlabeled" / f"{name}.txt.gz", "rt", encoding="utf-8") as file:
            lines = file.read().splitlines()
        rows += lines if name in WHOLE else random.Random(0).sample(lines, EACH)
    random.Random(1).shuffle(rows)
    task = [sentence for split in ("train", "dev") for sentence in sentences(data / domain / f"{split}.conll")]
    for name, lines in (("task", task), ("domain", rows)):
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--domain", default="crossner-music")
    parser.add_argument("--arms", nargs="+", default=ARMS)
    parser.add_argument("--budget", default="5000")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=20, help="Epochs of fine-tuning; `quick` has 40.")
    parser.add_argument("--home", type=Path, default=Path("/tmp/winnow-worth"))
    given = parser.parse_args()
    files = given.home / "files"
    if not (files / "domain.txt").exists():
        write_corpora(given.data, given.domain, files)
    plan = {
        "task": str(files / "task.txt"),
        "domain": str(files / "domain.txt"),
        **{split: str(given.data / given.domain / f"{split}.conll") for split in ("train", "dev", "test")},
        "arms": list(given.arms),
        "budgets": [given.budget],
        "seeds": given.seeds,
        "finetune": {"epochs": given.epochs},
        "transductive": "dev",
    }
    path = given.home / "PLAN.yaml"
    path.write_text(yaml.safe_dump(plan, sort_keys=False), encoding="utf-8")
    environment = {**os.environ, "WINNOW_HOME": str(given.home)}
    command = [sys.executable, "-m", "core", "experiment", str(path)]
    sys.exit(subprocess.run(command, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
