"""What an experiment found: a line an arm with scores, intervals, verdict and cost.

Mahapatra et al. 2022, Tables 3 and 5, with verdicts (SOURCES.md, Verdict).

Verdicts speak of the first test set. Further ones stand beside it, one by one: a mean over plain and harder sets hides
what is lost on one for what is won on the other (SOURCES.md, Never only an average).
"""

import csv
import io
from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from core.artifacts import evaluations
from core.corpora.corpus import Library
from core.recipes.experiment import arms, beside
from core.recipes.experiment.arms import Cell
from core.recipes.experiment.stages import Made
from core.reporter import Reporter
from core.runs import hours
from core.runs.store import RunStore
from core.stats.bootstrap import Difference, compare
from core.stats.verdict import Arm, Verdict, few_seeds, needed, verdicts

Row = dict[str, Any]
COLUMNS = (
    "arm",
    "budget",
    "sentences",
    "mean",
    "sd",
    "dev_mean",
    "delta",
    "low",
    "high",
    "delta_random",
    "low_random",
    "high_random",
    "verdict",
    "wins",
    "ties",
    "losses",
    "gpu_hours",
    "f1_per_hour",
    "low_per_hour",
    "high_per_hour",
    "micro_f1",
    "why",
)
ALSO = ("mean", "sd", "delta")  # of each further test set


def result(lines: Sequence[Made], *, seed: int, store: RunStore, report: Reporter) -> dict[str, Any]:
    """`leaderboard` in the order of dev F1, on which alone a choice may rest; `curve`: F1 by size of L_C; `hours`."""
    rows = _rows(lines, seed, report)
    none = next(line.finetune for line in lines if line.cell.arm.name == arms.NONE)
    for row, line in zip(rows, lines, strict=True):
        seconds = hours.spent(line.runs, store)
        row["hours"] = {kind: s / 3600 for kind, s in seconds.items()}
        row["gpu_hours"] = sum(row["hours"].values())
        row["f1_per_hour"] = gain_per_hour(row["delta"], sum(hours.spent(line.added, store).values()))
        row["also"] = beside.also(line.finetune, none, Library(store.home), seed)
    runs = [run for line in lines for run in (*line.runs, *line.tuned.values())]
    return {
        "leaderboard": sorted(rows, key=lambda row: -row["dev_mean"]),
        "curve": _curve(lines),
        "hours": {kind: seconds / 3600 for kind, seconds in hours.spent(runs, store).items()},
    }


def gain_per_hour(points: float, seconds: float) -> float | None:
    """F1 points an hour that an arm takes beyond `none` (Mahapatra et al. 2022, Table 5); None where it takes none."""
    return points * 3600 / seconds if seconds else None


def _rows(lines: Sequence[Made], seed: int, report: Reporter) -> list[Row]:
    cells = [line.cell for line in lines]
    tables = {str(line.cell): evaluations.read(line.finetune) for line in lines}
    none = tables[arms.NONE]
    judged = [cell for cell in cells if cell.arm.name not in (arms.NONE, *arms.CONTROLS)]
    controls = {cell: control for cell in judged if (control := arms.control(cell, cells))}
    report.check()
    pairs = {
        str(cell): Arm(
            system=tables[str(cell)],
            without=cell.arm.without,
            random=tables[str(controls[cell])] if cell in controls else None,
            control=arms.AGAINST.get(controls[cell].arm.name, "") if cell in controls else "",
        )
        for cell in judged
    }
    verdict_by_arm = verdicts(pairs, none, seed=seed) if pairs else {}
    rows = []
    for line in lines:
        report.check()
        row = _scores(line)
        if line.cell in judged:
            row |= _judged(verdict_by_arm[str(line.cell)], line.cell)
            if line.cell.arm.assisting:
                row |= beside.with_welch(row["micro_f1"], verdict_by_arm[str(line.cell)].none.other, row["why"])
        elif line.cell.arm.name == arms.NONE:
            row |= _verdict_row("baseline", "What every other arm is measured against.", None)
        else:
            difference = compare(tables[str(line.cell)], none, seed=seed)
            row |= _verdict_row("control", "Random sentences: what a choice of sentences must beat.", difference)
        rows.append(row)
    return rows


def _scores(line: Made) -> Row:
    tuned = line.finetune.result()
    test, dev = tuned["test"]["micro_f1"], tuned["dev"]["micro_f1"]
    return {
        "arm": line.cell.arm.name,
        "budget": line.cell.budget,
        "about": line.cell.arm.summary,
        "sentences": line.pretrain.result()["sentences"] if line.pretrain else 0,
        "micro_f1": test,
        "dev_f1": dev,
        "mean": mean(test),
        "dev_mean": mean(dev),
        "sd": stdev(test) if len(test) > 1 else None,
        "source": line.source,
        "select_run": line.select.id if line.select else None,
        "pretrain_run": line.pretrain.id if line.pretrain else None,
        "label_runs": [run.id for run in line.labels],
        "finetune_run": line.finetune.id,
    }


def _judged(verdict: Verdict, cell: Cell) -> Row:
    none = verdict.none
    row = _verdict_row(verdict.verdict, verdict.why, none)
    if verdict.random:
        row |= {"delta_random": verdict.random.delta, "interval_random": [verdict.random.lo, verdict.random.hi]}
    elif none.sign > 0:
        arm = cell.arm
        gain = f"{none.delta:+z.2f} points [{none.lo:+z.2f}, {none.hi:+z.2f}] against {arm.without}"
        if arm.budget:
            why = f"{gain}: above 0. It takes all of D_C, so there is no random choice of equal size to beat."
            return row | {"verdict": "improves", "why": why + few_seeds(none)}
        if not arm.adapts:
            return row | {"verdict": "improves", "why": f"{gain}: above 0.{few_seeds(none)}"}
        if not arm.strategy:
            row["why"] = (
                f"{gain}: above 0, but nobody can tell what T_C is worth from what any text of its size is; give a "
                "domain corpus, and the arm random-only reads as many sentences of that."
            )
    return row


def _verdict_row(word: str, why: str, none: Difference | None) -> Row:
    wins, ties, losses = _duels(none)
    return {
        "verdict": word,
        "why": why,
        "delta": none.delta if none else 0.0,
        "interval": [none.lo, none.hi] if none else [0.0, 0.0],
        "level": none.level if none else None,
        "delta_random": None,
        "interval_random": None,
        "wins": wins,
        "ties": ties,
        "losses": losses,
        "seeds_needed": needed(none) if none else "",
    }


def _duels(none: Difference | None) -> tuple[int, int, int]:
    """How many seeds of the arm beat, equal (within 0.05 points) and lose to the same seed without pre-training."""
    gaps = [a - b for a, b in zip(none.system, none.other, strict=True)] if none else []
    wins, losses = sum(gap > 0.05 for gap in gaps), sum(gap < -0.05 for gap in gaps)
    return wins, len(gaps) - wins - losses, losses


def _curve(lines: Sequence[Made]) -> list[Row]:
    """F1 of every arm by size of L_C and draw (Mahapatra et al. 2022, Fig. 4); nothing where none were asked for."""
    return [
        {
            "arm": line.cell.arm.name,
            "budget": line.cell.budget,
            "train_sentences": size,
            "draw": draw,
            "micro_f1": run.result()["test"]["micro_f1"],
            "finetune_run": run.id,
        }
        for line in lines
        for (size, draw), run in line.tuned.items()
        if size
    ]


def as_csv(result: Mapping[str, Any]) -> str:
    """A line an arm, numbers as they are."""
    out = io.StringIO()
    further = [f"{column} {test['test']}" for test in result["leaderboard"][0].get("also", ()) for column in ALSO]
    writer = csv.DictWriter(out, (*COLUMNS, *further), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in result["leaderboard"]:
        (low, high), (low_random, high_random) = row["interval"], row["interval_random"] or (None, None)
        bounds = {"low": low, "high": high, "low_random": low_random, "high_random": high_random}
        if row["f1_per_hour"] and row["delta"]:  # the rate is as unsure as the difference
            hours = row["delta"] / row["f1_per_hour"]
            bounds |= {"low_per_hour": low / hours, "high_per_hour": high / hours}
        bounds |= {f"{column} {test['test']}": test[column] for test in row.get("also", ()) for column in ALSO}
        writer.writerow({**row, **bounds, "micro_f1": " ".join(map(str, row["micro_f1"]))})
    return out.getvalue()


def as_markdown(result: Mapping[str, Any]) -> str:
    """For people: two digits, and why each verdict is what it is."""
    lines = ["| arm | budget | MLM sentences | dev F1 | test F1 | sd | against none | verdict | hours |"]
    lines += ["|---|---|---:|---:|---:|---:|---|---|---:|"]
    for row in result["leaderboard"]:
        low, high = row["interval"]
        gain = "" if row["verdict"] == "baseline" else f"{row['delta']:+z.2f} [{low:+z.2f}, {high:+z.2f}]"
        sd = "" if row["sd"] is None else f"{row['sd']:.2f}"
        cells = [row["arm"], row["budget"], f"{row['sentences']:,}", f"{row['dev_mean']:.2f}", f"{row['mean']:.2f}"]
        cells += [sd, gain, row["verdict"], f"{row['gpu_hours']:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    reasons = [f"- {row['arm']} {row['budget']}".rstrip() + f": {row['why']}" for row in result["leaderboard"]]
    return "\n".join([*lines, "", *reasons, "", *beside.as_markdown(result["leaderboard"])])
