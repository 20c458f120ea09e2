"""Figures of the page Selection, in Vega-Lite."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from core.charts import COLOURS, DASHES, HEADROOM, Spec, binned, layered, length_edges, number, shade, upright
from core.results import FloatArray, IntArray, Prefer
from core.terms import FILTERED, plainly

BINS = 60
LEGEND = {"title": None, "orient": "top"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreBins:
    """Histogram of all scores of D_C, computed once per `score` run.

    edges: `(b + 1,)`, from the 0.1st to the 99.9th percentile. Scores outside count in the outermost bins.
    counts: `(b,)`. log: True if the bins are equally wide on a logarithmic axis, used for a long right tail.
    """

    edges: FloatArray
    counts: IntArray
    log: bool

    @property
    def middle(self) -> float:
        """Score at the middle of the axis."""
        low, high = float(self.edges[0]), float(self.edges[-1])
        return (low * high) ** 0.5 if self.log else (low + high) / 2

    def count(self, values: FloatArray) -> IntArray:
        """Return the number of `values` in each bin, `(b,)`."""
        counts: IntArray = np.histogram(np.clip(values, self.edges[0], self.edges[-1]), self.edges)[0]
        return counts


def score_bins(values: FloatArray) -> ScoreBins:
    """Return a histogram of the scores `values`, `(n,)`, without NaN (not scored)."""
    known = values[~np.isnan(values)]
    low, middle, high = np.percentile(known, [0.1, 50, 99.9]) if len(known) else (0.0, 0.5, 1.0)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    # With a long right tail (median below 1/20 of the maximum), nearly all sentences would fall into one linear bin.
    log = bool(low > 0 and middle < high / 20)
    edges = np.geomspace(low, high, BINS + 1) if log else np.linspace(low, high, BINS + 1)
    bins = ScoreBins(edges=edges, counts=np.zeros(BINS, dtype=np.int64), log=log)
    return ScoreBins(edges=edges, counts=bins.count(known), log=log)


def worst(chosen: FloatArray, prefer: Prefer) -> float:
    """Return the worst score of the selected sentences. With diversity, it is not the last one."""
    return float(chosen.min() if prefer == "high" else chosen.max())


def score_histogram(bins: ScoreBins, chosen: FloatArray, unit: str, prefer: Prefer, *, dark: bool = False) -> Spec:
    """Return a histogram of selected and other sentences by score, with a line at the worst selected score.

    chosen: `(k,)` scores of the selected sentences.
    """
    inside = bins.count(chosen)
    stacked = {"selected": (np.zeros_like(inside), inside), FILTERED.word: (inside, bins.counts)}
    names = {kind: f"{kind} ({(high - low).sum():,})" for kind, (low, high) in stacked.items()}
    rows = [
        {"low": edges[0], "high": edges[1], "sentences": names[kind], "from": start, "to": end, "n": end - start}
        for kind, (low, high) in stacked.items()
        for edges, start, end in zip(pairwise(bins.edges.tolist()), low.tolist(), high.tolist(), strict=True)
    ]
    title = f"score ({unit}; {'higher' if prefer == 'high' else 'lower'} is closer to the task corpus)"
    axis = {"type": "log" if bins.log else "linear", "nice": False, "domain": bins.edges[[0, -1]].tolist()}
    looks = {"domain": [*names.values()], "range": [shade(COLOURS[role], dark=dark) for role in ("S_C", "filtered")]}
    bars: Spec = {
        "data": {"values": rows},
        "mark": {"type": "bar"},
        "encoding": {
            "x": number("low", title, scale=axis, axis={"grid": False}),
            "x2": {"field": "high"},
            "y": number("from", "sentences", scale={"domain": [0, HEADROOM * max(*bins.counts.tolist(), 1)]}),
            "y2": {"field": "to"},
            "color": {"field": "sentences", "scale": looks, "legend": dict(LEGEND)},
            "tooltip": [
                {"field": "sentences"},
                number("low", "score from", format=".4~g"),
                number("high", "to", format=".4~g"),
                number("n", "in this bar", format=",d"),
            ],
        },
    }
    layers = [bars]
    if len(chosen):
        last = worst(chosen, prefer)
        cut = float(np.clip(last, bins.edges[0], bins.edges[-1]))
        layers.append(upright(cut, f"cut at {last:.4g}", [6, 4], left=cut < bins.middle, dark=dark))
    return layered(layers, 320, dark=dark)


def lengths_compared(lengths: Mapping[str, IntArray], *, dark: bool = False) -> Spec:
    """Return a chart of sentence lengths, one line per corpus. lengths: {role (S_C, D_C, T_C): `(n,)` tokens}."""
    edges = length_edges(np.bincount(np.concatenate(list(lengths.values()))), 40)
    names, rows = list[str](), []
    for role, values in lengths.items():
        names.append(f"{plainly(role)}, median {np.median(values):.0f}" if len(values) else plainly(role))
        shares = binned(np.bincount(values), edges) / max(len(values), 1)
        steps = zip(edges.tolist(), [*shares.tolist(), float(shares[-1])], strict=True)
        rows += [{"low": low, "share": share, "corpus": names[-1]} for low, share in steps]
    colours = {"domain": names, "range": [shade(COLOURS[role], dark=dark) for role in lengths]}
    dashes = {"domain": names, "range": [DASHES[role] for role in lengths]}
    legend = LEGEND | {"symbolType": "stroke", "symbolStrokeWidth": 3}
    title = "tokens per sentence (the last step includes all longer sentences)"
    lines: Spec = {
        "data": {"values": rows},
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2.5},
        "encoding": {
            "x": number("low", title, scale={"nice": False}, axis={"grid": False}),
            "y": number("share", "share of sentences", axis={"format": ".0%"}),
            "color": {"field": "corpus", "scale": colours, "legend": legend},
            "strokeDash": {"field": "corpus", "scale": dashes, "legend": legend},
            "tooltip": [
                {"field": "corpus"},
                number("low", "tokens from", format=".0f"),
                number("share", "share", format=".1%"),
            ],
        },
    }
    return layered([lines], 280, dark=dark)
