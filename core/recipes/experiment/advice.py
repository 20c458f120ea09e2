"""Advice on a finished experiment: is more of S_C worth its hours, and what labels does pre-training spare.

By power laws (SOURCES.md, Power laws).
Arms with fewer than three sizes are left out: nothing can be told of them. A budget is a choice, so advice on it
looks at dev F1 alone (SOURCES.md, Choosing on dev); labels spared are what came out, so they are told by test F1.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from core.recipes.experiment.arms import NONE
from core.stats.power_law import next_step, saved

Row = Mapping[str, Any]
SIZES = 3  # at least, for a law of three numbers


def next_budget(leaderboard: Sequence[Row], worth: float) -> list[dict[str, Any]]:
    """Whether to double each arm's largest corpus: `arm, sentences, gain, upper, hours, stop`; gains in dev F1.

    worth: F1 points an hour must bring. upper: the gain is above it in one case of ten. hours: of pre-training, at
    the pace so far.
    """
    advice = []
    for arm, rows in _by_arm(leaderboard).items():
        points = {row["sentences"]: row["dev_f1"] for row in rows if row["sentences"]}
        if len(points) < SIZES:
            continue
        last = max(rows, key=lambda row: row["sentences"])
        size = 2 * int(last["sentences"])
        step, hours = next_step(points, size), 2 * float(last.get("hours", {}).get("pretrain", 0.0))
        advice.append(
            {
                "arm": arm,
                "sentences": size,
                "gain": step.gain,
                "upper": step.upper,
                "hours": hours,
                "stop": step.stop(hours, worth),
            }
        )
    return advice


def labels_spared(curve: Sequence[Row], size: int) -> list[dict[str, Any]]:
    """Labelled sentences that each arm spares over `none` at `size` of them: `arm, budget, spared, lo, hi`.

    lo, hi hold 80 of 100 draws; infinite where `none` never comes as far.
    """
    arms: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in curve:
        arms[row["arm"], row["budget"]][row["train_sentences"]] += row["micro_f1"]
    base = arms.pop((NONE, ""), {})
    gaps = []
    for (arm, budget), points in arms.items():
        if min(len(points), len(base)) >= SIZES:
            gap = saved(points, base, size)
            gaps.append({"arm": arm, "budget": budget, "spared": gap.sentences, "lo": gap.lo, "hi": gap.hi})
    return gaps


def _by_arm(rows: Sequence[Row]) -> dict[str, list[Row]]:
    arms: dict[str, list[Row]] = {}
    for row in rows:
        arms.setdefault(row["arm"], []).append(row)
    return arms
