"""Split the variance of test F1 into the part of the tagger's seed and the part of the pre-training.

    python -m tests.lab.benchmarks.bench_variance [--corpora crossner-music bc5cdr] [--pretrainings 1 ... 8] [--out DIR]
        [--seconds PRETRAINING TAGGER]

A pre-training reads T_C (the text of the training set) and 5,000 random sentences of other text, both drawn by its
seed: Wikipedia for `crossner-music`, PubMed for `bc5cdr` (with its first 300 training and 150 dev sentences). Each is
followed by four taggers (bundled MiniLM, presets `quick`). Every tagger appends a JSON line with its counts to
DIR/variance.jsonl. The same command resumes, and does not repeat what `variance.jsonl` beside this file has.

At the end, a table shows both variances (one-way random effects) with their 95% intervals, for taggers that keep the
best epoch and for those that keep the last. It also shows the number of taggers per pre-training that narrows an
interval most per second, the square root of (variance of taggers / of pre-trainings) times (seconds of a pre-training /
of a tagger), and the time that four taggers need for the same interval as one. Seconds are those of the lines, or
`--seconds`. A second table shows how well differences in the mean log-probability of the gold tags predict differences
in F1, between taggers of one pre-training and between pre-trainings. Then it prints the chance that the plan bio-300 of
bench_choosing detects a gain of one point: by the variances of bc5cdr with the last epoch, and the test sentences' part
in its committed lines.
"""

import argparse
import gzip
import json
import os
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from scipy.stats import chi2

from core.projects import runs
from core.results import FloatArray
from core.stats.power import power
from core.stats.spread import measured
from core.text.sentence import Sentence
from core.training import saved_models
from tests.lab.benchmarks import bench_choosing
from tests.lab.benchmarks.bench_epochs import WAYS, known_lines, read_splits, trained
from tests.lab.benchmarks.data import DATA

OTHERS = {"crossner-music": "wikipedia", "bc5cdr": "pubmed"}  # text of S_C
SELECTED, TAGGERS = 5000, 4
LINES = Path(__file__).with_name("variance.jsonl")


def pretrained(corpus: str, seed: int, train: Sequence[Sentence], folder: Path) -> tuple[str, float]:
    """Pre-train on T_C and random text; return the model's folder and the seconds that it took."""
    with gzip.open(DATA / "unlabeled" / f"{OTHERS[corpus]}.txt.gz", "rt", encoding="utf-8") as file:
        texts = random.Random(seed).sample(file.read().splitlines(), SELECTED)
    marks = []
    for name, rows in (("task", [sentence.text for sentence in train]), (f"text {seed}", texts)):
        path = folder / f"{corpus} {name}.txt"
        path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        marks.append(runs.execute("add", {"path": str(path), "name": path.stem}).result()["corpus"])
    run = runs.execute("pretrain", {"corpora": tuple(marks), "seed": seed})
    return str(saved_models.folder(run)), float(runs.state(run.id).seconds or 0.0)


def components(values: FloatArray) -> tuple[float, float]:
    """Return the variances of taggers and of pre-trainings. values: `(pre-trainings, taggers)` F1."""
    within = float(values.var(axis=1, ddof=1).mean())
    return within, max(float(values.mean(axis=1).var(ddof=1)) - within / values.shape[1], 0.0)


def intervals(values: FloatArray) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return 95% intervals of both variances; that of the pre-trainings is approximate (Williams 1962, Tukey 1951)."""
    n, k = values.shape
    within, _ = components(values)
    dof = n * (k - 1)
    taggers = dof * within / chi2.ppf(0.975, dof), dof * within / chi2.ppf(0.025, dof)
    between = float(values.mean(axis=1).var(ddof=1))
    ends = ((n - 1) * between / chi2.ppf(q, n - 1) - within / k for q in (0.975, 0.025))
    low, high = (max(end, 0.0) for end in ends)
    return taggers, (low, high)


def summary(lines: Sequence[dict[str, Any]], seconds: Sequence[float] = ()) -> list[str]:
    """Return the two tables. seconds: of a pre-training and of a tagger; (): those of the lines."""
    groups = defaultdict[str, dict[int, list[dict[str, Any]]]](lambda: defaultdict(list))
    for line in lines:
        groups[line["corpus"]][line["pretraining"]].append(line)
    rows = [
        "| corpus | kept | pre-trainings | test F1 | variance, taggers | variance, pre-trainings | taggers worth it "
    ]
    rows[0] += f"| time with {TAGGERS} taggers, 1 tagger = 1 |"
    rows.append("|---|---|---:|---:|---|---|---:|---:|")
    pairs = ["| corpus | kept | taggers | r of differences, taggers of one pre-training | r, means of pre-trainings |"]
    pairs.append("|---|---|---:|---:|---:|")
    for corpus, way in product(groups, WAYS[:2]):
        full = [each for each in groups[corpus].values() if len(each) == TAGGERS]
        if len(full) < 2:
            continue
        f1, sure = (
            np.array([[line[way][name] for line in each] for each in full]) for name in ("f1", "log_probability")
        )
        taggers, pretrainings = components(f1)
        of_taggers, of_pretrainings = intervals(f1)
        costs = seconds or [
            mean(line[name] for each in full for line in each) for name in ("pretrain_seconds", "seconds")
        ]
        best = f"{max(np.sqrt(taggers / pretrainings * costs[0] / costs[1]), 1):.1f}" if pretrainings else "many"
        one, several = ((pretrainings + taggers / n) * (costs[0] + n * costs[1]) for n in (1, TAGGERS))
        rows.append(
            f"| {corpus} | {way} | {len(full)} | {f1.mean():.1f} "
            f"| {taggers:.2f} [{of_taggers[0]:.2f}, {of_taggers[1]:.2f}] "
            f"| {pretrainings:.2f} [{of_pretrainings[0]:.2f}, {of_pretrainings[1]:.2f}] "
            f"| {best} | {several / one:.2f} |"
        )
        inside = np.corrcoef(*((each - each.mean(axis=1, keepdims=True)).ravel() for each in (f1, sure)))[0, 1]
        across = np.corrcoef(f1.mean(axis=1), sure.mean(axis=1))[0, 1]
        pairs.append(f"| {corpus} | {way} | {f1.size} | {inside:.2f} | {across:.2f} |")
    return [*rows, "", *pairs]


def chances(lines: Sequence[dict[str, Any]]) -> list[str]:
    """Return the chances of the plan bio-300, with one and with four taggers, and that of the lines of bio."""
    known = [json.loads(line) for line in bench_choosing.LINES.read_text("utf-8").splitlines()]
    bio = [line for line in known if line["corpus"] == "bc5cdr"]
    before = measured([], [[bench_choosing.unpacked(line, arm) for line in bio] for arm in ("classifier", "random")])
    groups = defaultdict[int, list[float]](list)
    for line in lines:
        if line["corpus"] == "bc5cdr":
            groups[line["pretraining"]].append(line["last"]["f1"])
    taggers, pretrainings = components(np.array([each for each in groups.values() if len(each) == TAGGERS]))
    assert before
    now = replace(before, seeds=float(np.sqrt(taggers)), pretrainings=float(np.sqrt(pretrainings)))
    plans = {"bio as run": before, "1 tagger": now, f"{TAGGERS} taggers": now.of_several(TAGGERS)}
    looks = bench_choosing.LOOKS
    return [f"{name}: {100 * power(spread, looks, 1.0).chance:.0f} of 100" for name, spread in plans.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", choices=OTHERS, default=list(OTHERS))
    parser.add_argument("--pretrainings", nargs="+", type=int, default=list(range(1, 9)))
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "winnow-variance")
    parser.add_argument("--seconds", type=float, nargs=2, default=(), metavar=("PRETRAINING", "TAGGER"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    os.environ["WINNOW_HOME"] = str(given.out / "home")
    file = given.out / "variance.jsonl"
    known = known_lines(LINES, file)
    there = {(line["corpus"], line["pretraining"], line["seed"]) for line in known}
    read = cache(lambda corpus: read_splits(corpus, given.out / "files"))
    for seed in given.pretrainings:
        for corpus in given.corpora:
            missing = [n for n in range(TAGGERS) if (corpus, seed, TAGGERS * seed + n) not in there]
            if not missing:
                continue
            splits = read(corpus)
            model, spent = pretrained(corpus, seed, splits["train"], given.out)
            for n in missing:
                began = time.monotonic()
                line = trained(splits, TAGGERS * seed + n, model)
                line |= {"corpus": corpus, "pretraining": seed, "seed": TAGGERS * seed + n}
                line |= {"pretrain_seconds": spent, "seconds": time.monotonic() - began}
                known.append(line)
                with file.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(line) + "\n")
                print(json.dumps(line), flush=True)
    print("\n".join([*summary(known, given.seconds), "", *chances(known)]))


if __name__ == "__main__":
    main()
