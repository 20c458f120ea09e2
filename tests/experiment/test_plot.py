"""Figures of Results: each number occurs once, marks differ in shape and colour, and text is never markup."""

import re
from dataclasses import replace
from typing import Any

import pytest

from core.experiment import plot, tables
from core.experiment.result import (
    ArmRow,
    CurvePoint,
    ExperimentResult,
    FurtherTest,
    Word,
    baseline,
    baseline_words,
    of_most_text,
)
from core.experiment.words import VERDICT_MARKS
from core.tagging.result import TypeScores
from tests.finished import ARM_ROW


def row(arm: str, verdict: Word, f1s: list[float], *, sentences: int = 0, gap: tuple[float, float] = (-1, 2)) -> ArmRow:
    mean = sum(f1s) / len(f1s)
    return replace(
        ARM_ROW,
        arm=arm,
        micro_f1=f1s,
        mean=mean,
        verdict=verdict,
        sentences=sentences,
        delta=mean - 60,
        interval=gap,
        why=f"because {arm}",
    )


def point(arm: str, sentences: int, draw: int, f1s: list[float]) -> CurvePoint:
    return CurvePoint(arm=arm, budget="", train_sentences=sentences, draw=draw, micro_f1=f1s, finetune_run="")


ROWS = [
    row("none", "baseline", [60.0, 61.0, 59.0], gap=(0, 0)),
    row("knn", "improves", [63.0, 64.0, 62.0], sentences=1000, gap=(1.5, 4.5)),
    row("tapt", "hurts", [55.0, 56.0, 54.0], sentences=400, gap=(-7, -3)),
    row("random", "control", [60.5, 61.5, 59.5], sentences=1000),
    row("<b>x</b>", "no evidence", [61.0, 62.0, 60.0], sentences=900),
]


def test_seed_plot_draws_seeds_as_rings_and_means_as_marks() -> None:
    fig = plot.seed_dots(ROWS)
    rings, *marks = fig.data
    assert sorted(rings.x) == sorted(f1 for one in ROWS for f1 in one.micro_f1)
    assert [mark.x[0] for mark in marks] == [one.mean for one in ROWS]
    assert rings.marker.symbol.endswith("open")
    looks = VERDICT_MARKS.values()
    assert len({mark.symbol for mark in looks}) == len({mark.colour for mark in looks}) == len(VERDICT_MARKS)


def test_technical_variant_names_are_written_in_words_on_every_axis() -> None:
    rows = [*ROWS, row("length-matched-random", "control", [60.0], sentences=1000)]
    curve = [point("length-matched-random", 10, 0, [60.0])]
    figures = [plot.seed_dots(rows), plot.differences(rows), plot.budget_curve(rows), plot.label_curve(curve)]
    for drawn in figures:
        assert "random, same lengths" in drawn.to_json()
        assert "length-matched" not in drawn.to_json()


def test_difference_plot_shows_each_delta_with_its_interval() -> None:
    fig = plot.differences(ROWS)
    lines = [tuple(trace.x) for trace in fig.data if trace.mode == "lines"]
    assert lines == [(1.5, 4.5), (-7, -3), (-1, 2), (-1, 2)]
    assert [trace.x[0] for trace in fig.data if trace.mode == "markers"] == [one.delta for one in ROWS[1:]]
    assert [tables.interval_words(one) for one in ROWS[:2]] == ["", "+3.00 [+1.50, +4.50]"]
    single = row("knn", "no evidence", [63.0], gap=(-100, 100))
    assert tuple(plot.differences([single]).data[0].x) == (3.0, 3.0)
    assert tables.interval_words(single) == "+3.00 (one seed: no interval)"
    failed = replace(row("knn", "no evidence", [0.0, 63.0], gap=(-100, 85)), collapsed=(1,))
    assert tuple(plot.differences([failed]).data[0].x) == (-28.5, -28.5)
    assert tables.interval_words(failed) == "-28.50 (2 seeds, 1 learnt nothing: no interval)"


def test_every_row_of_a_markdown_table_has_the_cells_of_its_head() -> None:
    """The control of tapt has the budget `|T_C|`, and names of corpora may contain any character."""
    further = FurtherTest(test="hard|er <i>", micro_f1=[60.0], mean=60.0, sd=None, delta=0.0, interval=(0.0, 0.0))
    rows = [replace(one, also=(further,)) for one in ROWS]
    rows += [
        replace(rows[0], arm=r"transfer:a\|b", verdict="control"),
        replace(rows[0], arm="random-only", budget="|T_C|"),
    ]
    text = tables.as_markdown(ExperimentResult(leaderboard=rows, curve=[], hours={}))
    cells = [re.split(r"(?<!\\)(?:\\\\)*\|", line) for line in text.splitlines() if line.startswith("|")]
    assert {len(line) for line in cells[: 2 + len(rows)]} == {len(cells[0])} != {len(cells[-1])}
    assert {len(line) for line in cells[2 + len(rows) :]} == {2 + 4}
    assert "<" not in "".join(line for line in text.splitlines() if line.startswith("|"))


def test_no_number_is_shown_as_negative_zero() -> None:
    level = replace(row("knn", "no evidence", [59.999, 59.999], gap=(-0.004, 0.004)), f1_per_hour=-0.0001)
    hover = [trace.hovertemplate for trace in plot.differences([level]).data if trace.hovertemplate]
    for words in (tables.interval_words(level), tables.rate_words(level), *hover):
        assert "-0.00" not in words
        assert "+0.00" in words


def test_rate_has_digits_that_fit_its_interval() -> None:
    wide = replace(row("knn", "no evidence", [61.0, 61.0], gap=(-20, 22)), f1_per_hour=4.0)
    assert tables.rate_words(wide) == "+4 [-80, +88]"
    assert tables.rate_words(replace(wide, f1_per_hour=0.5)) == "+0.5 [-10.0, +11.0]"
    assert tables.rate_words(replace(wide, f1_per_hour=20.0)) == "no rate: the interval extends beyond 100"
    assert tables.rate_words(replace(wide, micro_f1=[61.0], interval=(-100, 100))) == "one seed: no rate"
    assert tables.rate_words(replace(wide, f1_per_hour=None)) == ""
    assert tables.rate_words(replace(wide, collapsed=(1, 2))) == "learnt nothing: no rate"
    assert tables.rate_words(replace(wide, f1_per_hour=1_267_421.0)) == "no rate: less than one additional minute"


def test_budget_curve_joins_the_means_of_a_strategy() -> None:
    rows = [ROWS[0], *(row("knn", "improves", [60 + n / 100, 62 + n / 100], sentences=n) for n in (100, 300, 200))]
    fig = plot.budget_curve(rows)
    [line] = [trace for trace in fig.data if trace.mode == "lines+markers"]
    assert (list(line.x), list(line.y)) == ([100, 200, 300], [62.0, 63.0, 64.0])
    assert fig.layout.shapes[0].y0 == 60.0


def test_label_curve_averages_draws() -> None:
    curve = [
        point(arm, n, draw, [n / 2 + draw, n / 2 + draw])
        for arm in ("none", "knn")
        for n in (10, 20)
        for draw in (0, 1)
    ]
    lines = [trace for trace in plot.label_curve(curve).data if trace.mode == "lines+markers"]
    assert [(line.name, list(line.x), list(line.y)) for line in lines] == [
        ("knn", [10, 20], [5.5, 10.5]),
        ("none", [10, 20], [5.5, 10.5]),
    ]
    assert len({line.marker.symbol for line in lines}) == len({line.line.dash for line in lines}) == 2


def shared(arm: str, f1: float, delta: float, verdict: Word = "no evidence") -> ArmRow:
    """Return a row with one further test set, on which the arm has 20 points less and an interval of its own."""
    gap = (delta - 2, delta + 1)
    further = FurtherTest(test="<i>oov", micro_f1=[], mean=f1 - 20, sd=None, delta=delta, interval=(delta - 3, delta))
    share = arm.partition("%")[0].removeprefix("low-share:")
    low_share = int(share) / 100 if share.isdigit() else None
    return replace(row(arm, verdict, [f1]), delta=delta, interval=gap, also=[further], low_share=low_share)


SHARED = [
    shared("low-share:90%", 58.0, -2.0),
    shared("none", 80.0, 0.0, "baseline"),
    shared("base:1000", 60.0, -20.0, "control"),
    shared("base:50", 40.0, -40.0, "control"),
    shared("base+low:50", 45.0, 5.0),
    shared("low-share:0%", 61.0, 1.0),
    shared("low-share:30%", 59.5, -0.5),
    shared("none encoder:<b>x", 85.0, 5.0),
    shared("base:1000 encoder:<b>x", 70.0, -15.0, "control"),
    shared("low-share:0% encoder:<b>x", 72.0, 2.0),
    shared("low-share:90% encoder:<b>x", 71.0, 1.0),
]


def test_share_curve_has_a_line_per_encoder_and_a_panel_per_test_set() -> None:
    fig = plot.share_curve(SHARED)
    assert fig is not None
    lines = [(trace.name, trace.xaxis, list(trace.x), list(trace.y)) for trace in fig.data]
    assert lines == [
        ("low-share", "x", [0, 30, 90], [61, 59.5, 58]),
        ("base:1000", "x", [0, 90], [60, 60]),
        ("low-share", "x2", [0, 30, 90], [41, 39.5, 38]),
        ("base:1000", "x2", [0, 90], [40, 40]),
        ("low-share, &lt;b&gt;x", "x", [0, 90], [72, 71]),
        ("base:1000, &lt;b&gt;x", "x", [0, 90], [70, 70]),
        ("low-share, &lt;b&gt;x", "x2", [0, 90], [52, 51]),
        ("base:1000, &lt;b&gt;x", "x2", [0, 90], [50, 50]),
    ]
    assert [trace.line.dash for trace in fig.data] == [None, "dash"] * 4
    reach = fig.data[2].error_y
    assert (list(reach.array), list(reach.arrayminus)) == ([0, 0, 0], [3, 3, 3])
    # The interval of the difference, added to the base's F1.
    assert [tuple(span)[:2] for span in fig.data[0].customdata] == [(59, 62), (57.5, 60.5), (56, 59)]


def test_share_curve_uses_the_actual_share_of_each_set() -> None:
    realised = {"low-share:0%": 0.0, "low-share:30%": 0.142, "low-share:90%": 0.404}
    rows = [replace(each, low_share=realised.get(each.arm.partition(" ")[0]), mentions=150) for each in SHARED]
    fig = plot.share_curve(rows)
    assert fig is not None
    assert list(fig.data[0].x) == pytest.approx([0, 14.2, 40.4])
    assert list(fig.data[1].x) == pytest.approx([0, 40.4])
    assert [tuple(span[2:]) for span in fig.data[0].customdata] == [(0, 150), (30, 150), (90, 150)]
    assert fig.layout.xaxis.title.text == "low-CEIM share of mentions in the training set, percent"
    assert [note.text for note in fig.layout.annotations] == ["test set", "&lt;i&gt;oov"]
    one_share = [each for each in SHARED if not each.arm.startswith(("low-share:9", "low-share:3"))]
    assert plot.share_curve(ROWS) is plot.share_curve(one_share) is None


def test_source_curve_has_a_line_per_variant_with_intervals() -> None:
    sizes = [
        replace(row(arm, "no evidence", [f1], gap=gap), source="f00d", budget=budget)
        for arm, budget, f1, gap in (
            ("vectors:<b>a", "300tokens", 64.0, (3, 6)),
            ("vectors:<b>a", "100tokens", 62.0, (1, 4)),
            ("lm:<b>a", "100tokens", 63.0, (-100, 100)),
        )
    ]
    fig = plot.source_curve([*ROWS, *sizes])
    assert fig is not None
    lines = [(trace.name, list(trace.x), list(trace.y)) for trace in fig.data]
    assert lines == [("lm:&lt;b&gt;a", [100], [63]), ("vectors:&lt;b&gt;a", [100, 300], [62, 64])]
    reach = [(list(trace.error_y.arrayminus), list(trace.error_y.array)) for trace in fig.data]
    assert reach == [([0], [0]), ([1, 1], [2, 2])]  # unknown for a single seed
    assert fig.layout.shapes[0].y0 == 60  # the baseline `none`
    assert plot.source_curve([*ROWS, replace(sizes[0], budget="")]) is None
    assert [each.budget for each in of_most_text(sizes)] == ["300tokens", "100tokens"]


def test_difference_plot_names_the_baseline() -> None:
    compared = {each.arm: getattr(baseline(each, SHARED), "arm", "") for each in SHARED}
    assert compared["low-share:30%"] == "base:1000"
    assert compared["low-share:0% encoder:<b>x"] == "base:1000 encoder:<b>x"
    assert compared["base+low:50"] == "base:50"
    assert compared["base:1000"] == compared["none encoder:<b>x"] == "none"
    assert compared["none"] == ""
    assert (baseline_words(ROWS), baseline_words(SHARED)) == ("none", "none (sets of one size: base:1000, base:50)")
    assert plot.differences(SHARED).layout.xaxis.title.text == f"points of the score<br>over {baseline_words(SHARED)}"


def test_type_plot_shows_20_types_for_both_variants() -> None:
    rows = [TypeScores(type=f"T{i}", mentions=i, a=50.0 + i, b=60.0) for i in range(25)]
    fig = plot.type_differences(rows, "A: <i>knn</i>", "B: none")
    a, b = (trace for trace in fig.data if trace.mode == "markers")
    assert len(a.x) == len(b.x) == 20
    assert a.name == "A: &lt;i&gt;knn&lt;/i&gt;"
    assert a.marker.symbol != b.marker.symbol


@pytest.mark.parametrize("figure", [plot.seed_dots, plot.differences, plot.budget_curve])
def test_names_are_escaped_in_figures(figure: Any) -> None:
    assert "<b>x" not in figure(ROWS).to_json().replace("\\u003c", "<")
