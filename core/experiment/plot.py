"""Figures of experiments and studies. The argument `rows` contains rows of a leaderboard; F1 is in percent."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import mean

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.charts import ENTITY_COLOURS, figure, labels, plain
from core.experiment.result import (
    ArmRow,
    CurvePoint,
    FurtherTest,
    Interval,
    StudyResult,
    baseline,
    baseline_words,
    source_tokens,
    split_name,
)
from core.experiment.words import (
    ANSWER_COLOURS,
    OTHERS,
    TASK_COLOUR,
    VERDICT_MARKS,
    Asked,
    ForestRow,
    arm_words,
    forest_rows,
    line_name,
    over,
    two_differences,
)
from core.stats.verdict import is_known
from core.tagging.result import TypeScores

ARM_A, ARM_B, GOLD = "#0072B2", "#D55E00", "#009E73"
GREY = "#8F8F8F"
_ARROWS = ("triangle-left", "triangle-right")  # symbols at the ends of an interval that is too wide for the figure
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")


def seed_dots(rows: Sequence[ArmRow]) -> go.Figure:
    """Plot one row per variant: a ring for the F1 of each seed, and the symbol of the verdict at their mean.

    A reference variant has no seeds, so only its symbol is plotted.
    """
    fig = figure(_height(rows), x="test score, one ring per seed", y="")
    names = [plain(line_name(row)) for row in rows]
    rings = [(name, f1) for name, row in zip(names, rows, strict=True) if not row.reference for f1 in row.micro_f1]
    fig.add_scatter(
        x=[f1 for _, f1 in rings],
        y=[name for name, _ in rings],
        mode="markers",
        marker={"symbol": "circle-open", "size": 8, "color": GREY, "line": {"width": 1.5}},
        hovertemplate="%{y}: %{x:.2f}<extra></extra>",
        showlegend=False,
    )
    for row, name in zip(rows, names, strict=True):
        _mark(fig, row, name, row.mean, "mean %{x:.2f}")
    return _arms_down(fig, names)


def glance(row: ArmRow, rows: Sequence[ArmRow]) -> go.Figure | None:
    """Plot the differences of a variant to its baseline and to its control, with intervals and a line at zero.

    Return None if the intervals are unknown.
    """
    pairs = [(plain(name), value, interval) for name, value, interval in two_differences(row, rows)]
    if not pairs:
        return None
    fig = figure(52 + 30 * len(pairs), x="points of the score", y="")
    fig.add_vline(x=0, line={"width": 1.5, "color": GREY})
    colour = VERDICT_MARKS[row.verdict].colour
    for name, value, (low, high) in pairs:
        fig.add_scatter(x=[low, high], y=[name] * 2, mode="lines", line={"width": 5, "color": colour}, hoverinfo="skip")
        marker = {"size": 13, "color": colour}
        hover = f"{value:+z.1f} points ({low:+z.1f} to {high:+z.1f})<extra></extra>"
        fig.add_scatter(x=[value], y=[name], mode="markers", marker=marker, hovertemplate=hover)
    fig.update_layout(showlegend=False, margin={"t": 4})
    _leave_room(fig)
    return _arms_down(fig, [name for name, _, _ in pairs])


def differences(rows: Sequence[ArmRow]) -> go.Figure:
    """Plot the difference to the baseline, with its interval, for every variant except `none`."""
    compared_with = baseline_words(rows)
    rows = [row for row in rows if row.verdict != "baseline"]
    names = [plain(line_name(row)) for row in rows]
    fig = figure(_height(rows), x=f"points of the score<br>over {plain(compared_with)}", y="")
    fig.add_vline(x=0, line={"dash": "dash", "width": 1.5, "color": GREY})
    for row, name in zip(rows, names, strict=True):
        mark = VERDICT_MARKS[row.verdict]
        fig.add_scatter(
            x=row.interval if is_known(row.interval) else [row.delta] * 2,
            y=[name, name],
            mode="lines",
            line={"width": 3, "color": mark.colour},
            hoverinfo="skip",
            showlegend=False,
        )
        _mark(fig, row, name, row.delta, f"{row.delta:+z.2f} points")
    _leave_room(fig)
    return _arms_down(fig, names)


def _leave_room(fig: go.Figure) -> None:
    """Widen the x axis so that it shows zero and all symbols; Plotly's default range would cut off large symbols."""
    ends = [0.0, *(x for trace in fig.data for x in trace.x)]
    room = 0.05 * (max(ends) - min(ends)) or 1.0
    fig.update_xaxes(range=[min(ends) - room, max(ends) + room])


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
    """Plot F1 against the number of pre-training sentences, one line per strategy (Mahapatra et al. 2022, Fig. 2).

    An arm that was run with only one number of sentences is a single point.
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
    """Plot F1 against the number of labelled sentences (Mahapatra et al. 2022, Fig. 4).

    There is one line per variant, and one dot per random part of L_C and seed.
    """
    fig = figure(380, x="labelled training sentences", y="test score, mean of draws and seeds")
    points = [(line_name(row), row.train_sentences, row.micro_f1) for row in curve]
    return _lines(fig, points, "%{x:,} labelled sentences: %{y:.2f}")


def _lines(fig: go.Figure, points: Sequence[tuple[str, int, Sequence[float]]], template: str) -> go.Figure:
    """Add one line per name, through the mean F1 at each x. points: (name of a line, x, F1 values)."""
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
    """Plot F1 of two variants on the first `limit` entity types, joined by a line. a, b: names of the variants."""
    rows = rows[:limit]
    names = [f"{plain(row.type)} ({row.mentions:,})" for row in rows]
    fig = figure(120 + 26 * max(len(rows), 1), x="test score (F1)", y="")
    for name, row in zip(names, rows, strict=True):
        fig.add_scatter(
            x=[row.a, row.b],
            y=[name, name],
            mode="lines",
            line={"width": 2, "color": GREY},
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


def share_curve(rows: Sequence[ArmRow]) -> go.Figure | None:
    """Plot F1 against the share of low-CEIM mentions (Ma et al. 2023, Fig. 4 and 5).

    There is one line per encoder and one panel per test set. A dashed line shows a random training set of the same
    size. Error bars are the interval of the difference to that set. Return None if fewer than two shares were compared.
    """
    lines = _share_lines(rows)
    if len({share for points in lines.values() for share in points}) < 2:
        return None
    tests = ["test set", *(plain(test.test) for test in rows[0].also)]
    fig = make_subplots(1, len(tests), subplot_titles=tests, horizontal_spacing=0.18 / len(tests))
    look = figure(380, x="", y="").layout
    fig.update_layout({name: value for name, value in look.to_plotly_json().items() if "axis" not in name})
    # Put the legend below the panels, because above them it would cover their names.
    fig.update_layout(legend={"y": -0.25, "yanchor": "top"}, margin_t=32)
    fig.update_annotations(font_size=13)
    for number, (encoder, points) in enumerate(lines.items()):
        base = baseline(next(iter(points.values())), rows)
        at = {share: 100 * (row.low_share or 0.0) for share, row in points.items()}
        for column in range(len(tests)):
            _draw_share(fig, (encoder, points), at=at, number=number, column=column, base=base)
    axis = {name: look.yaxis[name] for name in ("gridcolor", "zeroline", "automargin", "fixedrange")}
    title = "low-CEIM share of mentions in the training set, percent"
    fig.update_xaxes(**axis, showgrid=False, title=title, nticks=6)
    fig.update_yaxes(**axis, nticks=6)
    fig.update_yaxes(title="score (F1, percent), mean of the seeds", col=1)
    return fig


def _share_lines(rows: Sequence[ArmRow]) -> Mapping[str, Mapping[float, ArmRow]]:
    """Return {encoder: {share in percent: row}} of the `low-share` arms, sorted; "" is the experiment's own encoder."""
    named = sorted((*split_name(row.arm), number) for number, row in enumerate(rows))
    lines: dict[str, dict[float, ArmRow]] = {}
    for name, encoder, number in named:
        head, _, share = name.partition(":")
        if head == "low-share":
            lines.setdefault(encoder, {})[float(share.rstrip("%"))] = rows[number]
    return {encoder: dict(sorted(lines[encoder].items())) for encoder in sorted(lines)}


def _draw_share(
    fig: go.Figure,
    line: tuple[str, Mapping[float, ArmRow]],
    *,
    at: Mapping[float, float],
    number: int,
    column: int,
    base: ArmRow | None,
) -> None:
    """Draw the line of one encoder in one panel.

    line: (encoder, {requested share: row}). at: {requested share: measured share in percent, which is x}. number:
    number of the line. column: number of the panel. base: row of the random training set; None to leave it out.
    """
    encoder, points = line
    places = [at[share] for share in points]
    colour, symbol = ENTITY_COLOURS[number % len(ENTITY_COLOURS)], _SYMBOLS[number % len(_SYMBOLS)]
    place = {"row": 1, "col": column + 1, "showlegend": column == 0}
    from_where = f", {plain(encoder)}" if encoder else ""
    tests = [_on(row, column) for row in points.values()]
    low, high = ([_reach(test)[side] for test in tests] for side in (0, 1))
    fig.add_scatter(
        x=places,
        y=[test.mean for test in tests],
        error_y={"array": high, "arrayminus": low, "width": 4, "thickness": 1.5, "color": colour},
        name=f"low-share{from_where}",
        legendgroup=f"share {number}",
        mode="lines+markers",
        marker={"size": 9, "color": colour, "symbol": symbol},
        line={"width": 2.5, "color": colour},
        customdata=[
            (test.mean - less, test.mean + more, share, row.mentions)
            for test, less, more, (share, row) in zip(tests, low, high, points.items(), strict=True)
        ],
        hovertemplate=(
            "%{y:.2f} [%{customdata[0]:.2f}, %{customdata[1]:.2f}]<br>requested: %{customdata[2]:g}% of sentences"
            "<br>low-CEIM share: %{x:.1f}% of %{customdata[3]:,} mentions<extra></extra>"
        ),
        **place,
    )
    if base is not None:
        fig.add_scatter(
            x=[min(places), max(places)] if len(points) > 1 else [0, 100],
            y=[_on(base, column).mean] * 2,
            name=f"{plain(split_name(base.arm)[0])}{from_where}",
            legendgroup=f"base {number}",
            mode="lines",
            line={"width": 1.5, "color": colour, "dash": "dash"},
            hovertemplate="%{y:.2f}<extra></extra>",
            **place,
        )


def _on(row: ArmRow, column: int) -> ArmRow | FurtherTest:
    return row.also[column - 1] if column else row


def _reach(test: ArmRow | FurtherTest) -> tuple[float, float]:
    """Return the distances from a difference to the ends of its interval; (0, 0) if the interval is unknown."""
    low, high = test.interval if is_known(test.interval) else (test.delta, test.delta)
    return test.delta - low, high - test.delta


def source_curve(rows: Sequence[ArmRow]) -> go.Figure | None:
    """Plot F1 against the number of source tokens (Dai et al. 2019, Fig. 2).

    There is one line per arm, and a dashed line for `none`. Error bars are the interval of the difference to `none`.
    Return None if no arm was run with several numbers of source tokens.
    """
    arms = _source_sizes(rows)
    if not arms:
        return None
    fig = figure(380, x="tokens used from the source", y="test score (F1, percent), mean of the seeds")
    if base := baseline(next(iter(arms.values()))[0][1], rows):
        fig.add_hline(y=base.mean, line={"dash": "dash", "width": 1.5, "color": VERDICT_MARKS["baseline"].colour})
        place = {"x": 0, "xref": "paper", "xanchor": "left", "y": base.mean, "yanchor": "bottom"}
        fig.add_annotation(**place, text="none", showarrow=False)
    for number, (arm, points) in enumerate(arms.items()):
        colour = ENTITY_COLOURS[number % len(ENTITY_COLOURS)]
        reach = [_reach(row) for _, row in points]
        fig.add_scatter(
            x=[tokens for tokens, _ in points],
            y=[row.mean for _, row in points],
            error_y={
                "array": [more for _, more in reach],
                "arrayminus": [less for less, _ in reach],
                "width": 4,
                "thickness": 1.5,
                "color": colour,
            },
            name=plain(arm),
            mode="lines+markers",
            marker={"size": 9, "color": colour, "symbol": _SYMBOLS[number % len(_SYMBOLS)]},
            line={"width": 2.5, "color": colour},
            hovertemplate=f"{plain(arm)}, %{{x:,}} tokens: %{{y:.2f}}<extra></extra>",
        )
    fig.update_xaxes(rangemode="tozero")
    return fig


def _source_sizes(rows: Sequence[ArmRow]) -> dict[str, list[tuple[int, ArmRow]]]:
    """Return {arm: [(tokens used from its source, row), ...]}, ascending, for arms run with several numbers."""
    arms: dict[str, list[tuple[int, ArmRow]]] = {}
    for row in rows:
        if tokens := source_tokens(row):
            arms.setdefault(row.arm, []).append((tokens, row))
    return {arm: sorted(arms[arm], key=lambda point: point[0]) for arm in sorted(arms)}


def forest(result: StudyResult, of: Asked) -> go.Figure:
    """Plot the differences of a study with their intervals.

    An interval that is too wide for the figure is cut off and ends in an arrow.
    of: "reading" for differences to `none`, "choosing" for differences to the control.
    """
    rows = forest_rows(result, of)
    names = list(labels([row.name for row in rows], 24).values())
    fig = figure(120 + 36 * len(rows), x=f"points of the score<br>over {plain(over(result, of))}", y="")
    fig.add_vline(x=0, line={"dash": "dash", "width": 1.5, "color": GREY})
    fig.add_hline(y=len(rows) - len(result.tasks) - 0.5, line={"width": 1, "color": GREY})
    low, high = _forest_range(rows)
    for row, name in zip(rows, names, strict=True):
        _forest_row(fig, row, name, low, high)
    fig.update_xaxes(range=[low, high])
    return _arms_down(fig, names)


def _forest_range(rows: Sequence[ForestRow]) -> Interval:
    """Return the range of the x axis. It includes zero, all differences, and the intervals of the tasks and their mean.

    The interval on similar tasks may be very wide. It extends the range by at most half its width on each side.
    """
    known = [row for row in rows if row.known]
    ends = [0.0, *(row.delta for row in rows), *(end for row in known if row.name != OTHERS for end in row.interval)]
    width = max(ends) - min(ends) or 1.0
    wide = [end for row in known for end in row.interval]
    low, high = min(ends), max(ends)
    return max(min(low, *wide, low), low - width / 2) - width / 20, min(
        max(high, *wide, high), high + width / 2
    ) + width / 20


def _forest_row(fig: go.Figure, row: ForestRow, name: str, low: float, high: float) -> None:
    colour = ANSWER_COLOURS[row.answer] if row.answer else TASK_COLOUR
    if row.known:
        ends = [max(row.interval[0], low), min(row.interval[1], high)]
        cut = [
            symbol if end != own else "line-ns" for symbol, end, own in zip(_ARROWS, ends, row.interval, strict=True)
        ]
        fig.add_scatter(
            x=ends,
            y=[name, name],
            mode="lines+markers",
            line={"width": 3, "color": colour},
            marker={"symbol": cut, "size": 10, "color": colour, "line": {"width": 2, "color": colour}},
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
        )
    fig.add_scatter(
        x=[row.delta],
        y=[name],
        mode="markers",
        marker={"symbol": "diamond" if row.answer else "circle", "size": 14 if row.answer else 11, "color": colour},
        hovertemplate=f"%{{y}}: {row.points}<extra>{row.answer or 'exploratory'}</extra>",
        showlegend=False,
    )
