"""Live curves: thinning, number of points, and a constant specification."""

import json
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.tagging import plot
from core.tagging.plot import MOST, Line, curve_table, thinned

values = hnp.arrays(np.float64, st.integers(1, 700), elements=st.floats(-1e6, 1e6))


def line(n: int, name: str = "loss", part: str = "seed 1", pale: bool = False) -> Line:
    steps = np.arange(1, n + 1)
    return Line(name=name, part=part, steps=steps, values=np.cos(steps / 7.0), pale=pale)


@settings(max_examples=50)
@given(values, st.integers(8, 300))
def test_thinned_curve_keeps_ends_and_extremes(curve: np.ndarray, most: int) -> None:
    kept = thinned(curve, most)
    assert len(kept) <= most
    assert (np.diff(kept) > 0).all()
    assert kept[0] == 0
    assert kept[-1] == len(curve) - 1
    assert curve[kept].max() == curve.max()
    assert curve[kept].min() == curve.min()
    if len(curve) <= most:
        assert len(kept) == len(curve)


def test_drawn_points_stay_while_the_curve_grows() -> None:
    curve = np.random.default_rng(0).normal(size=5_000)
    before, after = thinned(curve[:4_800], 2_000), thinned(curve, 2_000)
    whole = 4_800 // 8 * 8 - 8
    assert len(before) > 500
    assert np.array_equal(before[before < whole], after[after < whole])


def test_chart_draws_at_most_two_thousand_finite_points() -> None:
    for lines in (1, 7):
        table = curve_table([line(50_000, name=f"line {i}") for i in range(lines)])
        assert MOST / 5 < table.num_rows <= MOST
        assert max(table["step"].to_pylist()) == 50_000
    broken = Line(name="loss", part="", steps=np.arange(4), values=np.array([1.0, math.nan, math.inf, 2.0]))
    assert curve_table([broken])["value"].to_pylist() == [1.0, 2.0]
    assert curve_table([]).num_rows == 0
    assert plot.curves([line(0)], y="loss", height=100).to_dict()["layer"]


def test_new_points_do_not_change_the_specification() -> None:
    def parts(n: int) -> tuple[str, int]:
        drawn = [line(n, "overall"), line(n, "PER"), line(n, "PER", "seed 2", pale=True)]
        found = plot.curves(drawn, y="F1 (%)", height=260, dots=True).to_dict()
        rows = found.pop("datasets")[found.pop("data")["name"]]
        return json.dumps(found), len(rows)

    (before, few), (after, many) = parts(5), parts(50)
    assert before == after
    assert (few, many) == (15, 150)


def test_lines_differ_in_colour_and_dash() -> None:
    found = plot.curves([line(3, name) for name in ("overall", "PER", "LOC")], y="F1 (%)", height=100).to_dict()
    encoding = found["layer"][0]["encoding"]
    for channel in ("color", "strokeDash"):
        assert encoding[channel]["scale"]["domain"] == ["overall", "PER", "LOC"]
        looks = encoding[channel]["scale"]["range"]
        assert len({str(look) for look in looks}) == 3
    # The default format shows a learning rate as 0.0000998.
    assert {layer["encoding"]["y"]["axis"]["format"] for layer in found["layer"]} == {".3~g"}
