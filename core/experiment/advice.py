"""Advice on a finished experiment: is more of S_C worth its hours, and what labels does pre-training spare.

By power laws (SOURCES.md, Power laws).
Arms with fewer than three sizes are left out: nothing can be told of them. A budget is a choice, so advice on it
looks at dev F1 alone (SOURCES.md, Choosing on dev); labels spared are what came out, so they are told by test F1.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from core.experiment.arms import NONE
from core.experiment.result import ArmRow, CurvePoint
from core.stats.power_law import next_step, saved

SIZES = 3  # at least, for a law of three numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class NextBudget:
    """Whether to double an arm's largest corpus to `sentences`. gain, upper: points of dev F1, `upper` exceeded in at
    most one case of ten; infinite where each size has one pre-training, whose luck nobody knows then. hours: of
    pre-training, at the pace so far. stop: whether it is not worth them."""

    arm: str
    sentences: int
    gain: float
    upper: float
    hours: float
    stop: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsSpared:
    """Labelled sentences that an arm spares over `none`. lo, hi hold 80 of 100 draws; infinite where `none` never
    comes as far."""

    arm: str
    budget: str
    spared: float
    lo: float
    hi: float


def next_budget(leaderboard: Sequence[ArmRow], worth: float) -> list[NextBudget]:
    """Advice on each arm with sizes enough. worth: F1 points an hour must bring."""
    advice = []
    for arm, rows in _by_arm(leaderboard).items():
        # Taggers on one pre-training share its luck: together they are one run of that size.
        points = {
            row.sentences: row.dev_f1 if len(row.finetunes) > 1 else [row.dev_mean] for row in rows if row.sentences
        }
        if len(points) < SIZES:
            continue
        last = max(rows, key=lambda row: row.sentences)
        size = 2 * last.sentences
        # Twice the sentences take twice the pre-training.
        step, hours = next_step(points, size), 2 * last.hours.get("pretrain", 0.0)
        advice.append(
            NextBudget(
                arm=arm, sentences=size, gain=step.gain, upper=step.upper, hours=hours, stop=step.stop(hours, worth)
            )
        )
    return advice


def labels_spared(curve: Sequence[CurvePoint], size: int) -> list[LabelsSpared]:
    """Labels that each arm spares at `size` labelled sentences."""
    arms: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for point in curve:
        arms[point.arm, point.budget][point.train_sentences] += point.micro_f1
    base = arms.pop((NONE, ""), {})
    gaps = []
    for (arm, budget), points in arms.items():
        if min(len(points), len(base)) >= SIZES:
            gap = saved(points, base, size)
            gaps.append(LabelsSpared(arm=arm, budget=budget, spared=gap.sentences, lo=gap.lo, hi=gap.hi))
    return gaps


def _by_arm(rows: Sequence[ArmRow]) -> dict[str, list[ArmRow]]:
    arms: dict[str, list[ArmRow]] = {}
    for row in rows:
        arms.setdefault(row.arm, []).append(row)
    return arms
