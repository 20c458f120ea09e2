"""Figures of `6_Results`. Rows are those of an experiment's leaderboard and curve; F1 in percent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import mean
from typing import Protocol

import plotly.graph_objects as go

from core.charts import ENTITY_COLOURS, figure, plain
from core.experiment.result import EXPLORATORY, ArmRow, CurvePoint, FurtherTest, baseline_words
from core.tagging.result import TypeScores, Unfound


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Colour of a verdict, and shape for who does not see it."""

    colour: str
    symbol: str


VERDICT_MARKS: Mapping[str, Mark] = {
    "improves": Mark(colour="#009E73", symbol="triangle-up"),
    "helped": Mark(colour="#56B4E9", symbol="triangle-up-open"),
    "below control": Mark(colour="#9467BD", symbol="triangle-down-open"),
    "hurts": Mark(colour="#D55E00", symbol="triangle-down"),
    "no evidence": Mark(colour="#8F8F8F", symbol="circle"),
    "nothing learnt": Mark(colour="#CC79A7", symbol="x"),
    "not tested": Mark(colour="#8C6D31", symbol="circle-open"),
    "baseline": Mark(colour="#E69F00", symbol="diamond"),
    "control": Mark(colour="#0072B2", symbol="square"),
}
ARM_A, ARM_B, GOLD = "#0072B2", "#D55E00", "#009E73"
ARM_WORDS: Mapping[str, str] = {"length-matched-random": "random, same lengths"}
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")


def arm_words(arm: str) -> str:
    """An arm as charts and tables name it."""
    return ARM_WORDS.get(arm, arm)


class ArmAtBudget(Protocol):
    """Item that belongs to one line of a leaderboard."""

    @property
    def arm(self) -> str: ...
    @property
    def budget(self) -> str: ...


def line_name(row: ArmAtBudget) -> str:
    """An arm and its budget."""
    return f"{arm_words(row.arm)} {row.budget}".strip()


def answers(row: ArmRow) -> tuple[str, str]:
    """Whether an arm helped, and whether choosing did: "yes", "no evidence", "worse", and that it is exploratory; ""
    where it is not asked."""
    if row.verdict in ("baseline", "nothing learnt", "not tested"):
        return row.verdict, ""
    # A choice with one S_C and one pre-training of each: nothing is known of what other draws would come to.
    not_asked = "a quick look cannot tell" if row.delta_random is not None else ""
    mark = EXPLORATORY * row.exploratory
    return f"{row.helped or row.verdict}{mark}", f"{row.chose}{mark}" if row.chose else not_asked


def all_read(rows: Sequence[ArmRow]) -> bool:
    """Whether pre-training is all that arms differ in."""
    return all(row.sentences for row in rows if row.verdict != "baseline")


def asked_first(rows: Sequence[ArmRow]) -> str:
    """Head of the first of the two answers, in a table."""
    return "Reading helped" if all_read(rows) else "Helped"


def interval_words(row: ArmRow) -> str:
    """An arm's difference to its baseline and its interval, in words; "" of `none` itself."""
    return "" if row.verdict == "baseline" else difference_words(row)


def difference_words(row: ArmRow | FurtherTest) -> str:
    """A difference to the baseline on a test set, and its interval."""
    low, high = row.interval
    return f"{row.delta:+z.2f} " + (
        f"[{low:+z.2f}, {high:+z.2f}]" if known_interval(row) else f"({_too_few_seeds(row)}: no interval)"
    )


def control_words(row: ArmRow) -> str:
    """An arm's difference to its control and its interval, in words; "" if it has no control."""
    if row.delta_random is None or row.interval_random is None:
        return ""
    return difference_words(replace(row, delta=row.delta_random, interval=row.interval_random))


def _too_few_seeds(row: ArmRow | FurtherTest) -> str:
    """Why these seeds leave every difference possible."""
    n, failed = len(row.micro_f1), len(row.collapsed) if isinstance(row, ArmRow) else 0
    if n < 2:
        return "one seed"
    return f"{n} seeds, {failed} learnt nothing" if failed else f"{n} seeds differ too much"


MINUTE = 1 / 60  # in hours; what takes less is given no rate


def rate_words(row: ArmRow) -> str:
    """Points of F1 for each hour that an arm takes beyond `none`, with the interval of its difference, in words.

    A rate without its interval says nothing: "+21 points an hour" may be anything from -329 to +373.
    """
    rate = row.f1_per_hour
    if not rate or not row.delta:
        return ""
    if row.delta / rate < MINUTE:  # of seconds it would be a million points an hour, which nobody could buy
        return "takes under a minute more"
    if not known_interval(row):
        return f"{_too_few_seeds(row)}: no rate"
    low, high = (bound * rate / row.delta for bound in row.interval)
    # Digits that the interval's width cannot hold would look like precision.
    digits = 2 if high - low < 10 else 1 if high - low < 100 else 0
    return f"{rate:+z,.{digits}f} [{low:+z,.{digits}f}, {high:+z,.{digits}f}]"


def unfound_words(types: Sequence[Unfound]) -> str:
    """Types that no arm got right, in a sentence; nothing where there are none."""
    if not types:
        return ""
    counts = "; ".join(
        f"{each.type} ({each.mentions:,} in the test set, {each.labelled:,} in the training set)" for each in types
    )
    missed = "no tagger found a single one. Every score here counts them as missed."
    return f"The score is 0.00 in every variant for {counts}: {missed}"


def hours_words(hours: float) -> str:
    """A time as people say it."""
    seconds = 3600 * hours
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{hours:.1f} h"


def known_interval(row: ArmRow | FurtherTest) -> bool:
    """Return False for [-100, 100]: one seed, or two that differ too much, rule nothing out."""
    low, high = row.interval
    return high - low < 200


def seed_dots(rows: Sequence[ArmRow]) -> go.Figure:
    """F1 of every seed as a ring, their mean as its verdict's mark; a line an arm."""
    fig = figure(_height(rows), x="test score, a ring a seed", y="")
    names = [plain(line_name(row)) for row in rows]
    fig.add_scatter(
        x=[f1 for row in rows for f1 in row.micro_f1],
        y=[name for name, row in zip(names, rows, strict=True) for _ in row.micro_f1],
        mode="markers",
        marker={"symbol": "circle-open", "size": 8, "color": "#8F8F8F", "line": {"width": 1.5}},
        hovertemplate="%{y}: %{x:.2f}<extra></extra>",
        showlegend=False,
    )
    for row, name in zip(rows, names, strict=True):
        _mark(fig, row, name, row.mean, "mean %{x:.2f}")
    return _arms_down(fig, names)


def differences(rows: Sequence[ArmRow]) -> go.Figure:
    """Mean F1 less that of what it is compared with, and the interval, for every arm but `none`."""
    compared_with = baseline_words(rows)
    rows = [row for row in rows if row.verdict != "baseline"]
    names = [plain(line_name(row)) for row in rows]
    fig = figure(_height(rows), x=f"points of the score<br>over {plain(compared_with)}", y="")
    fig.add_vline(x=0, line={"dash": "dash", "width": 1.5, "color": "#8F8F8F"})
    for row, name in zip(rows, names, strict=True):
        mark = VERDICT_MARKS[row.verdict]
        fig.add_scatter(
            x=row.interval if known_interval(row) else [row.delta] * 2,
            y=[name, name],
            mode="lines",
            line={"width": 3, "color": mark.colour},
            hoverinfo="skip",
            showlegend=False,
        )
        _mark(fig, row, name, row.delta, f"{row.delta:+z.2f} points")
    # A range by hand: plotly's own would let the verdicts' large marks stick out at the border.
    ends = [0.0, *(x for trace in fig.data for x in trace.x)]
    room = 0.05 * (max(ends) - min(ends)) or 1.0
    fig.update_xaxes(range=[min(ends) - room, max(ends) + room])
    return _arms_down(fig, names)


def _mark(fig: go.Figure, row: ArmRow, name: str, x: float, template: str) -> None:
    mark = VERDICT_MARKS[row.verdict]
    first = all(trace.name != row.verdict for trace in fig.data)
    fig.add_scatter(
        x=[x],
        y=[name],
        name=row.verdict,
        legendgroup=row.verdict,
        showlegend=first,
        mode="markers",
        marker={"symbol": mark.symbol, "size": 13, "color": mark.colour},
        hovertemplate="%{y}: " + template + "<extra></extra>",
    )


def _height(rows: Sequence[ArmRow]) -> int:
    return 120 + 34 * max(len(rows), 1)


def _arms_down(fig: go.Figure, names: Sequence[str]) -> go.Figure:
    fig.update_yaxes(type="category", categoryorder="array", categoryarray=list(names)[::-1], showgrid=True)
    return fig


def budget_curve(rows: Sequence[ArmRow]) -> go.Figure:
    """F1 by sentences that MLM read, a line a strategy; arms that read a fixed amount are points.

    Mahapatra et al. 2022, Fig. 2.
    """
    fig = figure(380, x="sentences pre-trained on", y="test score, mean of the seeds")
    if base := [row for row in rows if row.verdict == "baseline"]:
        fig.add_hline(y=base[0].mean, line={"dash": "dash", "width": 1.5, "color": VERDICT_MARKS["baseline"].colour})
        fig.add_annotation(
            x=0,
            xref="paper",
            xanchor="left",
            y=base[0].mean,
            yanchor="bottom",
            text="no pre-training",
            showarrow=False,
        )
    points = [(arm_words(row.arm), row.sentences, row.micro_f1) for row in rows if row.sentences]
    return _lines(fig, points, "%{x:,} sentences: %{y:.2f}")


def label_curve(curve: Sequence[CurvePoint]) -> go.Figure:
    """F1 by labelled sentences, a line an arm; every draw's seeds are dots (Mahapatra et al. 2022, Fig. 4)."""
    fig = figure(380, x="labelled training sentences", y="test score, mean of draws and seeds")
    points = [(line_name(row), row.train_sentences, row.micro_f1) for row in curve]
    return _lines(fig, points, "%{x:,} labelled sentences: %{y:.2f}")


def _lines(fig: go.Figure, points: Sequence[tuple[str, int, Sequence[float]]], template: str) -> go.Figure:
    """points: (line, x, F1s there), several of one line and x are pooled."""
    ordered = sorted(points, key=lambda point: point[:2])
    for i, (name, group) in enumerate(groupby(ordered, key=lambda point: point[0])):
        f1s_by_x = {
            x: [f1 for _, _, f1s in same for f1 in f1s] for x, same in groupby(group, key=lambda point: point[1])
        }
        colour, symbol = ENTITY_COLOURS[i % len(ENTITY_COLOURS)], _SYMBOLS[i % len(_SYMBOLS)]
        fig.add_scatter(
            x=[x for x, f1s in f1s_by_x.items() for _ in f1s],
            y=[f1 for f1s in f1s_by_x.values() for f1 in f1s],
            mode="markers",
            marker={"size": 5, "color": colour, "symbol": f"{symbol}-open", "opacity": 0.6},
            legendgroup=name,
            showlegend=False,
            hoverinfo="skip",
        )
        fig.add_scatter(
            x=list(f1s_by_x),
            y=[mean(f1s) for f1s in f1s_by_x.values()],
            name=plain(name),
            legendgroup=name,
            mode="lines+markers",
            marker={"size": 9, "color": colour, "symbol": symbol},
            line={"width": 2.5, "color": colour, "dash": _DASHES[i % len(_DASHES)]},
            hovertemplate=f"{plain(name)}, {template}<extra></extra>",
        )
    fig.update_xaxes(rangemode="tozero")
    return fig


def type_differences(rows: Sequence[TypeScores], a: str, b: str, limit: int = 20) -> go.Figure:
    """F1 of every entity type under two arms, joined. a, b: what they are called."""
    rows = rows[:limit]
    names = [f"{plain(row.type)} ({row.mentions:,})" for row in rows]
    fig = figure(120 + 26 * max(len(rows), 1), x="test score (F1)", y="")
    for name, row in zip(names, rows, strict=True):
        fig.add_scatter(
            x=[row.a, row.b],
            y=[name, name],
            mode="lines",
            line={"width": 2, "color": "#8F8F8F"},
            hoverinfo="skip",
            showlegend=False,
        )
    arms = (([row.a for row in rows], a, ARM_A, "circle"), ([row.b for row in rows], b, ARM_B, "diamond"))
    for f1s, label, colour, symbol in arms:
        fig.add_scatter(
            x=f1s,
            y=names,
            name=plain(label),
            mode="markers",
            marker={"size": 11, "color": colour, "symbol": symbol},
            hovertemplate="%{y}: %{x:.1f}<extra>" + plain(label) + "</extra>",
        )
    return _arms_down(fig, names)
