"""Check the forecast of `labels:+N` on committed learning curves: does the next point lie in its interval?

    python -m tests.lab.benchmarks.bench_more_labels

`label.jsonl` has test F1 of taggers with 50, 75, 125 and 200 labels, for two ways of asking for labels (`bench_label`),
three grounds and five starts, each with its own labels and seed. F1 with 200 labels is forecast from that with 50, 75
and 125, for all five starts, and for every three of them. All points of a ground have the same test sentences, so the
interval has no part for these. Nothing is trained.
"""

import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from statistics import mean, median

import numpy as np

from core.stats.power_law import forecast

LINES = Path(__file__).with_name("label.jsonl")
GROUNDS, ARMS, STARTS = ("bc5cdr", "conll2003", "crossner-music"), ("uncertainty", "queue"), 5
FIRST, FURTHER = 50, (0, 25, 75, 150)  # labels of a start, and those that were added
SIZES = [FIRST + labels for labels in FURTHER]


def stored() -> dict[tuple[str, str, int, int], float]:
    """Return {(ground, arm, further labels, start): test F1}."""
    lines = map(json.loads, LINES.read_text("utf-8").splitlines())
    return {(line["ground"], line["arm"], line["labels"], line["start"]): line["f1"] for line in lines}


def forecasts(
    f1: Mapping[tuple[str, str, int, int], float], seeds: int
) -> list[tuple[str, float, tuple[float, float], float]]:
    """Return (ground and arm, forecast, its 95% interval, F1 reached) for every `seeds` of the starts."""
    found = []
    for ground in GROUNDS:
        for arm in ARMS:
            for starts in combinations(range(1, STARTS + 1), seeds):
                points = np.array([[f1[ground, arm, labels, start] for start in starts] for labels in FURTHER])
                drawn = forecast(SIZES[:-1], points[:-1], SIZES[-1])
                found.append((f"{ground} {arm}", median(drawn.f1), drawn.interval(0.95), mean(points[-1])))
    return found


def main() -> None:
    for seeds in (STARTS, 3):
        found = forecasts(stored(), seeds)
        inside = sum(lo <= reached <= hi for _, _, (lo, hi), reached in found)
        widths, errors = zip(*((hi - lo, about - reached) for _, about, (lo, hi), reached in found), strict=True)
        print(
            f"{seeds} starts: {inside} of {len(found)} inside; mean width {mean(widths):.1f}; mean error "
            f"{mean(errors):+.1f} points"
        )
        for name, about, (lo, hi), reached in found if seeds == STARTS else ():
            print(f"  {name:<28} forecast {about:.1f} [{lo:.1f}, {hi:.1f}], reached {reached:.1f}")


if __name__ == "__main__":
    main()
