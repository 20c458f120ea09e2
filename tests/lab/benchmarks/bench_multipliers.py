"""How much random text, and how many labels, is a selection worth? (`experiment --multipliers` on real text)

    python -m tests.lab.benchmarks.bench_multipliers [--home DIR] [--pair 1|3] [--table]

Planned on 2026-11-30 before any of its replicates was run: crossner-ai with the default strategy against `random`, four
replicates, one analysis. T_C, labels, test sets, and D_C are those of bench_choosing's ground crossner (halves of L_C
swapped, 100 training and 50 dev sentences). S_C has 2,000 sentences, because 5,000 would take about twice as long.
`random` also reads two and four times as many tokens. The selection, `random`, and `none` also train on 25 and 50 of the
labelled sentences. Taggers keep the last epoch, as experiments do today. The domain was chosen because its replicates in
choosing.jsonl vary least. If new ones vary like them, the plan detects a true gain of one point in 64 of 100 cases; if
they vary like those of the three domains on average, in 35.

The two replicates that swap one pair of halves append two lines with counts per sentence to multipliers.jsonl. The
summary is computed from these lines alone. The command continues after them, and with the same --home inside a
training. `--table` trains nothing. `WINNOW_ON=processes:2` uses two cores well; never run this in a test.
"""

import argparse
import json
import os
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from core.experiment import result as board
from core.experiment.config import TIMES
from core.experiment.result import HalvesResult
from core.projects import runs
from core.projects.home import library, store
from core.results import Evaluation
from core.runs import result
from core.runs.store import Run, is_run_id
from core.stats.bootstrap import Difference, compare
from core.stats.multipliers import Worth, worth
from tests.lab.benchmarks import bench_choosing
from tests.lab.benchmarks.bench_choosing import CLAIM, CONTROL, NONE, packed, unpacked
from tests.lab.benchmarks.bench_ner import splits
from tests.lab.benchmarks.bench_worth import write_corpora
from tests.lab.benchmarks.data import DATA

CORPUS = "crossner-ai"
REPLICATES = 4
BUDGET = 2_000
LABELS = (25, 50, 100)  # sizes of the training sets; the smaller ones are parts of the larger ones
LINES = Path(__file__).with_name("multipliers.jsonl")
Line = dict[str, Any]


def settings(given: Namespace) -> Line:
    """Return the options that all replicates share. Lines with other options are ignored."""
    return {
        "arms": [NONE, CONTROL, CLAIM],
        "budgets": [str(given.budget)],
        "claim": CLAIM,
        "multipliers": True,
        "repeat": "pipeline",
        "cross": True,
        "cross_train": LABELS[-1],
        "cross_dev": LABELS[-1] // 2,
        "train_sizes": list(LABELS[:-1]),
        "encoder": given.encoder,
        "finetune": {"epochs": given.epochs},
        "effect": 1.0,
    }


def lines_of(run: Run, seeds: Sequence[int], alike: Line) -> Iterator[Line]:
    """Yield a line for each replicate of a finished experiment."""
    found = board.read(run)
    by_test = {
        half.test: each
        for each in runs.listed("halves", state="succeeded")
        for half in result.read(each, HalvesResult).halves
    }
    for number, seed in enumerate(seeds):
        tuned = {_name(row.arm, row.budget, LABELS[-1]): row.finetunes[number] for row in found.leaderboard}
        tuned |= {_name(p.arm, p.budget, p.train_sentences): p.finetune_run for p in found.curve if p.draw == number}
        arms, gold = {}, ""
        for name, finetune in tuned.items():
            own = runs.get(finetune)
            [table] = board.evaluations_of_replicate(own, by_test[own.manifest.config["test"][0]])
            gold = packed(table.gold, table.tested)
            arms[name] = {"f1": table.f1(), "tokens": _tokens(own)} | {
                part: packed(getattr(table, part), table.tested) for part in ("tp", "predicted")
            }
        yield {
            **{"corpus": CORPUS, "replicate": seed, "settings": dict(alike), "versions": dict(run.manifest.versions)},
            **{"run": run.id, "arms": arms, "gold": gold},
        }


def _name(arm: str, budget: str, size: int) -> str:
    """Return the key of a tagger: variant, text as a multiple of the selection's, and number of training sentences."""
    return f"{arm} {budget} {size}" if budget else f"{arm} {size}"


def _tokens(finetune: Run) -> int:
    """Return the number of tokens of S_C that a tagger's encoder was pre-trained on; 0 without pre-training."""
    init = finetune.manifest.config["init"]
    return library().find(store().get(init).manifest.config["corpora"][-1]).n_tokens if is_run_id(init) else 0


def make(given: Namespace, seeds: Sequence[int], alike: Line) -> None:
    """Run two replicates and append their lines."""
    files = given.home / "files"
    if not (files / "domain.txt").exists():
        write_corpora(DATA, bench_choosing.CORPORA[0], files)
    parts = splits(DATA, CORPUS, files)
    added = runs.execute("add", {"path": str(files / "domain.txt"), "name": "wiki, news, reviews, pubmed, legal"})
    asked = {**alike, **parts, "domain": added.result()["corpus"], "seeds": tuple(seeds)}
    run = runs.execute("experiment", asked)
    with given.lines.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines_of(run, seeds, alike)))


def tables(lines: Sequence[Line], arm: str) -> list[Evaluation]:
    """Return the evaluations of a tagger, one per replicate."""
    return [unpacked(line, arm) for line in lines]


Multiples = tuple[Difference, Worth | None, Worth | None, Worth | None]


def multiples(lines: Sequence[Line], budget: int = BUDGET) -> Multiples:
    """Return the claim's gain over `random`, and its worth in text, in labels of `random`, and in labels of `none`."""
    most, least = LABELS[-1], LABELS[0]
    claim = tables(lines, _name(CLAIM, str(budget), most))
    texts = {
        float(np.mean([line["arms"][name]["tokens"] for line in lines])): tables(lines, name)
        for name in (_name(CONTROL, str(budget * times), most) for times in TIMES)
    }
    first = tables(lines, _name(CLAIM, str(budget), least))
    labels, labels_none = (
        worth(first, {size: tables(lines, _name(arm, own, size)) for size in LABELS})
        for arm, own in ((CONTROL, str(budget)), (NONE, ""))
    )
    return compare(claim, texts[min(texts)], same_seeds=True), worth(claim, texts), labels, labels_none


def in_words(worth: Worth | None) -> str:
    """Return a multiple with its interval, such as `1.2 [1.0, 2.6]`, or `more than 4`."""
    if worth is None or worth.unknown:
        return "not known"
    if worth.beyond:
        return f"more than {worth.most:.0f}"
    low = "below 1" if worth.lo is None else f"{worth.lo:.1f}"
    return f"{worth.times:.1f} [{low}, {f'above {worth.most:.0f}' if worth.hi is None else f'{worth.hi:.1f}'}]"


def show(lines: Sequence[Line], budget: int) -> None:
    """Print the F1 of each tagger, then what the selection is worth."""
    print(f"| tagger | {' | '.join(str(line['replicate']) for line in lines)} | mean |")
    print(f"|---|{'---:|' * (len(lines) + 1)}")
    for name in sorted(lines[0]["arms"]) if lines else ():
        f1s = [line["arms"][name]["f1"] for line in lines]
        print(f"| {name} | {' | '.join(f'{f1:.1f}' for f1 in f1s)} | {np.mean(f1s):.1f} |")
    if len(lines) > 1:
        gain, *worths = multiples(lines, budget)
        print(f"\n{CLAIM} over {CONTROL}: {gain.delta:+.2f} [{gain.lo:+.2f}, {gain.hi:+.2f}], p = {gain.p:.2g}")
        for what, one in zip(("text", f"labels of {CONTROL}", f"labels of {NONE}"), worths, strict=True):
            print(f"worth in {what}: {in_words(one)} times")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, help="Home of the runs; default: a temporary folder.")
    parser.add_argument("--lines", type=Path, default=LINES)
    parser.add_argument("--pair", type=int, nargs=1, choices=range(1, REPLICATES, 2), help="Run only these two.")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--table", action="store_true", help="Train nothing; print the result of the stored lines.")
    given = parser.parse_args()
    alike = settings(given)
    with tempfile.TemporaryDirectory() as folder:
        given.home = given.home or Path(folder)
        os.environ["WINNOW_HOME"] = str(given.home)
        for first in given.pair or range(1, REPLICATES, 2) if not given.table else ():
            known = bench_choosing.read(given.lines, alike)
            if any((CORPUS, seed) not in known for seed in (first, first + 1)):
                make(given, (first, first + 1), alike)
        show([line for _, line in sorted(bench_choosing.read(given.lines, alike).items())], given.budget)


if __name__ == "__main__":
    main()
