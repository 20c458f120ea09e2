"""Do similarity measures predict the best source? Compare them with the F1 of taggers on each source's word vectors.

    python -m tests.lab.benchmarks.bench_effect [--targets ...] [--sources ...] [--seeds 1 2 3] [--home DIR]

Dai et al. 2019, Tables 3 and 4, on current text: one experiment per target with the arms vectors:SOURCE (`bilstm`,
equal caps), then `similarity` on the same corpora, then the correlation of measures with F1. Sized for two cores (about
40 minutes): 500 training sentences and 1,000 test sentences at most, fewer units and epochs. CrossNER's 100 training
sentences are too few for a BiLSTM trained from scratch: F1 stays 0. After a kill, the same command with the same --home
resumes.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.experiment import view as experiments
from core.importing import view as corpora
from core.projects import runs
from core.similarity import view as similarity
from core.similarity.measures import title
from core.similarity.predictive import Coefficient
from tests.lab.benchmarks.bench_assist import added
from tests.lab.benchmarks.data import DATA

TARGETS, SOURCES = ("bc5cdr", "conll2003"), ("pubmed", "news", "wikipedia")
FIRST = {"train": 500, "dev": 300, "test": 1000}  # sentences
MEASURES = ("ppl", "wvv", "tvc", "tvcc")


def source(data: Path, name: str) -> str:
    """Import the whole source; return its fingerprint."""
    here = {corpus.name: corpus.fingerprint for corpus in corpora.listed()}
    options = {"path": str(data / "unlabeled" / f"{name}.txt.gz"), "name": name}
    return here.get(name) or str(runs.execute("add", options).result()["corpus"])


def boards(
    given: argparse.Namespace, splits: Mapping[str, Mapping[str, str]], sources: tuple[str, ...]
) -> dict[str, Any]:
    """Run one experiment per target; return {target: {arm: its row of the leaderboard}}."""
    found = {}
    for target, parts in splits.items():
        options = {
            **parts,
            "sources": sources,
            "arms": [f"vectors:{name}" for name in given.sources],
            "seeds": given.seeds,
            "cap_tokens": given.cap,
            "encoder": given.encoder,
            "finetune": {"hidden": given.hidden, "epochs": given.epochs, "dev_sentences": 200},
        }
        runs.execute("calibrate", experiments.calibrations(options)[0])
        begin = time.perf_counter()
        run = runs.execute("experiment", options)
        print(f"{target}: {(time.perf_counter() - begin) / 60:.1f} minutes", flush=True)
        found[target] = {row["arm"]: row for row in run.result()["leaderboard"]}
    return found


def show(targets: Mapping[str, Mapping[str, Any]], run_id: str) -> None:
    """Print Table 3: the measures beside F1 and the gain of each source over random vectors."""
    heads = (
        "target",
        "source",
        *map(title, MEASURES),
        "test F1 per seed",
        "mean ± sd",
        "ΔF1 [interval]",
    )
    print(f"\n| {' | '.join(heads)} | verdict |\n|---|---|{'---:|' * len(MEASURES)}---|---:|---|---|")
    for target, rows in targets.items():
        for arm, row in rows.items():
            name = arm.removeprefix("vectors:")
            measured = {
                cell.measure: cell.value
                for cell in similarity.rows(run_id)
                if cell.target.startswith(target) and cell.source == name
            }
            values = [f"{measured[each]:.4g}" if measured.get(each) is not None else "" for each in MEASURES]
            f1s = " ".join(f"{f1:.2f}" for f1 in row["micro_f1"])
            spread = f"{row['mean']:.2f}" + ("" if row["sd"] is None else f" ± {row['sd']:.2f}")
            low, high = row["interval"]
            delta = "" if arm == "none" else f"{row['delta']:+.2f} [{low:+.2f}, {high:+.2f}]"
            print(f"| {' | '.join((target, name, *values, f1s, spread, delta, row['verdict']))} |")


def judged(run_id: str) -> None:
    """Print Table 4: the correlation of each measure with ΔF1, and the regret of following it."""
    told = similarity.judge_own(run_id)
    if told is None:
        return
    for effect in told.effects:
        print(f"\n{effect.name}: {effect.sentence}\n\n| measure | {' | '.join(told.conventions)} | regret |")
        print(f"|---|{'---:|' * (len(told.conventions) + 1)}")
        for measure, row in effect.correlations.items():
            values = [_r(row[convention]) for convention in told.conventions]
            lost = next(regret.mean for regret in effect.regrets if regret.measure == measure)
            print(f"| {title(measure)} | {' | '.join(values)} | {'' if lost is None else f'{lost:.2f}'} |")


def _r(r: Coefficient) -> str:
    if r.value is None:
        return ""
    return f"{r.value:.2f}" + (f" [{r.interval[0]:.2f}, {r.interval[1]:.2f}]" if r.interval else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--targets", nargs="+", default=TARGETS)
    parser.add_argument("--sources", nargs="+", default=SOURCES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--cap", type=int, default=500_000, help="Tokens per source.")
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--first", type=int, default=0, help="Sentences per split; 0: as in FIRST.")
    parser.add_argument("--encoder", default="minilm", help="Only for the calibration; no arm reads its states.")
    parser.add_argument("--home", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WINNOW_HOME"] = str(given.home or folder)
        sources = tuple(source(given.data, name) for name in given.sources)
        splits = {
            target: {
                split: added(given.data, target, split, given.first or n, Path(folder)) for split, n in FIRST.items()
            }
            for target in given.targets
        }
        found = boards(given, splits, sources)
        options = {"target": [parts["train"] for parts in splits.values()], "source": sources, "draws": 1, "sizes": 0}
        run = runs.execute("similarity", {**options, "cap_tokens": str(given.cap), "measure": MEASURES})
        show(found, run.id)
        judged(run.id)


if __name__ == "__main__":
    main()
