"""Ma et al. 2023, Fig. 4 and 5: F1 over the share of low-CEIM mentions in the training set, one panel per test set."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.charts import ENTITY_COLOURS, figure, plain
from core.experiment.plot import known_interval
from core.experiment.result import ArmRow, FurtherTest, baseline, split_name

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")


def share_curve(rows: Sequence[ArmRow]) -> go.Figure | None:
    """Plot F1 and its interval over the share of low-CEIM mentions, one line per encoder.

    The random set of the same size is dashed. Results of older versions did not store the share of mentions: they are
    plotted over the share of sentences that was asked for. None if fewer than two shares were compared.
    """
    lines = _lines(rows)
    if len({share for points in lines.values() for share in points}) < 2:
        return None
    realised = all(row.low_share is not None for points in lines.values() for row in points.values())
    tests = ["test set", *(plain(test.test) for test in rows[0].also)]
    fig = make_subplots(1, len(tests), subplot_titles=tests, horizontal_spacing=0.18 / len(tests))
    look = figure(380, x="", y="").layout
    fig.update_layout({name: value for name, value in look.to_plotly_json().items() if "axis" not in name})
    # The legend goes below: above it would lie on the panels' names.
    fig.update_layout(legend={"y": -0.25, "yanchor": "top"}, margin_t=32)
    fig.update_annotations(font_size=13)
    for number, (encoder, points) in enumerate(lines.items()):
        base = baseline(next(iter(points.values())), rows)
        at = {share: 100 * (row.low_share or 0.0) if realised else share for share, row in points.items()}
        for column in range(len(tests)):
            _draw(fig, (encoder, points), at=at, number=number, column=column, base=base)
    axis = {name: look.yaxis[name] for name in ("gridcolor", "zeroline", "automargin", "fixedrange")}
    of = "mentions in the training set" if realised else "sentences asked for"
    fig.update_xaxes(**axis, showgrid=False, title=f"low-CEIM share of {of}, percent", nticks=6)
    fig.update_yaxes(**axis, nticks=6)
    fig.update_yaxes(title="score (F1, percent), mean of the seeds", col=1)
    return fig


def _lines(rows: Sequence[ArmRow]) -> Mapping[str, Mapping[float, ArmRow]]:
    """{encoder, "" of the experiment's own: {share in percent: its line}}, in that order."""
    named = sorted((*split_name(row.arm), number) for number, row in enumerate(rows))
    lines: dict[str, dict[float, ArmRow]] = {}
    for name, encoder, number in named:
        head, _, share = name.partition(":")
        if head == "low-share":
            lines.setdefault(encoder, {})[float(share.rstrip("%"))] = rows[number]
    return {encoder: dict(sorted(lines[encoder].items())) for encoder in sorted(lines)}


def _draw(
    fig: go.Figure,
    line: tuple[str, Mapping[float, ArmRow]],
    *,
    at: Mapping[float, float],
    number: int,
    column: int,
    base: ArmRow | None,
) -> None:
    """Draw one encoder's line in one panel. at: {share asked for: its place on the x axis, percent}."""
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
            "%{y:.2f} [%{customdata[0]:.2f}, %{customdata[1]:.2f}]<br>%{customdata[2]:g}% of sentences asked for"
            "<br>low-CEIM share %{x:.1f}%, %{customdata[3]:,} mentions<extra></extra>"
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
    """Reach of the difference's interval below and above it; of a single seed it is not known."""
    low, high = test.interval if known_interval(test) else (test.delta, test.delta)
    return test.delta - low, high - test.delta
