"""Power laws fitted to planted curves: known laws are recovered, and unknown quantities are reported as unknown."""

from math import hypot, inf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import CorpusError
from core.stats.power_law import Saved, Step, fit, next_step, saved

SIZES = (1000, 2500, 5000, 10_000)


def planted(c: float, a: float, b: float, sizes: tuple[int, ...] = SIZES, sd: float = 0.0) -> dict[int, list[float]]:
    rng = np.random.default_rng(0)
    return {n: [c - a * n**-b + sd * rng.normal() for _ in range(3)] for n in sizes}


@settings(max_examples=15, deadline=None)
@given(c=st.floats(30, 90), a=st.floats(20, 150), b=st.floats(0.2, 1.0))
def test_planted_power_law_is_recovered(c: float, a: float, b: float) -> None:
    laws = fit(planted(c, a, b))
    for n in (1000, 4000, 10_000, 20_000):
        assert laws.at(n)[0] == pytest.approx(c - a * n**-b, abs=0.2)


def test_flat_curve_advises_to_stop_and_steep_curve_to_continue() -> None:
    flat, steep = next_step(planted(65, 0, 1, sd=0.1), 20_000), next_step(planted(80, 300, 0.4, sd=0.1), 20_000)
    assert flat.gain < 0.2
    assert flat.stop(hours=2, worth=0.5)
    assert steep.gain == pytest.approx(300 * (10_000**-0.4 - 20_000**-0.4), rel=0.2)
    assert not steep.stop(hours=2, worth=0.5)
    assert next_step({n: [50.0] for n in SIZES}, 20_000).upper == inf  # single values have no spread
    with pytest.raises(CorpusError, match="2 sizes are too few"):
        fit({100: [1.0], 200: [2.0]})
    assert Step(gain=1, upper=2).stop(hours=1, worth=3)


@pytest.mark.parametrize(("pretraining", "replicates"), [(0.2, 3), (0.8, 2)])
def test_more_text_is_wrongly_advised_against_in_at_most_10_percent(pretraining: float, replicates: int) -> None:
    """The gain is exactly worth its hours. Laws range from nearly linear in the log of the size to nearly a step."""
    cases, rng = 200, np.random.default_rng(replicates)
    sd = hypot(pretraining, 0.4)  # 0.4: sd between taggers
    for sizes in ((1000, 5000, 20_000), (500, 1000, 2000, 4000, 8000)):
        for a, b in ((200, 0.4), (20, 0.1), (3000, 0.9)):
            truth = a * (sizes[-1] ** -b - (2 * sizes[-1]) ** -b)
            curves = ({n: 70 - a * n**-b + sd * rng.normal(size=replicates) for n in sizes} for _ in range(cases))
            wrong = sum(next_step(points, 2 * sizes[-1]).stop(hours=1, worth=truth) for points in curves)
            assert wrong / cases <= 0.1 + 2.6 * sqrt(0.1 * 0.9 / cases)  # allows for the error of the simulation


def test_saved_labels_equal_the_horizontal_gap_between_curves() -> None:
    sizes = (10, 25, 50, 100)
    without = planted(70, 150, 0.5, sizes)
    ahead = {n: [70 - 150 * (2 * n) ** -0.5] * 3 for n in sizes}  # as good as with twice the labels
    found, lost = saved(ahead, without, 100), saved(without, ahead, 100)
    assert (found.sentences, lost.sentences) == pytest.approx((100, -50), rel=0.1)
    assert found.worth(minutes=3, wage=40) == pytest.approx(200, rel=0.1)
    assert lost.worth(minutes=3, wage=40) == 0
    never = saved(planted(80, 50, 0.5, sizes), planted(40, 50, 0.5, sizes), 100)
    assert never == Saved(sentences=inf, lo=inf, hi=inf)
    noisy = saved(planted(70, 150, 0.5, sizes, sd=2), planted(68, 150, 0.5, sizes, sd=2), 100)
    assert noisy.hi - noisy.lo > 10
