"""Fleiss' and Randolph's kappa: golden numbers, enumeration, and the reason given for a split."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.results import FloatArray, Prefer
from core.similarity.agreement import agreement
from core.similarity.grid import Grid
from core.similarity.worth import Pasted

THREE = ("ppl", "wvv", "tvc")


def grid(values: FloatArray, prefer: tuple[Prefer, ...] | None = None, spread: FloatArray | None = None) -> Grid:
    t, s, m = values.shape
    return Grid(
        targets=tuple(f"t{i}" for i in range(t)),
        sources=tuple(f"s{i}" for i in range(s)),
        measures=tuple(f"m{i}" for i in range(m)),
        prefer=prefer or ("high",) * m,
        values=values,
        spread=spread,
    )


def test_kappas_of_table_3_are_the_golden_numbers(table_3: Pasted) -> None:
    """Dai et al. 2019 (SOURCES.md, Golden numbers)."""
    found = agreement(table_3.grid.only(THREE))
    assert (found.items, found.unanimous, found.left_out) == (60, 48, 0)
    assert found.first == {"ppl": 30, "wvv": 33, "tvc": 31}
    kappas = (found.observed, found.expected, found.fleiss_kappa, found.randolph_kappa)
    assert kappas == pytest.approx((0.866667, 0.500988, 0.732806, 0.733333), abs=5e-7)
    pairs = {pair.measures: pair.agree for pair in found.pairs}
    assert pairs == {("ppl", "wvv"): 51, ("ppl", "tvc"): 55, ("wvv", "tvc"): 50}
    assert [pair.cohen_kappa for pair in found.pairs] == pytest.approx([0.7, 0.8333, 0.6655], abs=2e-4)
    assert len(found.splits) == 12
    split = next(each for each in found.splits if each.target == "WetLab")  # the example in the paper's text
    assert (split.sources, split.first, split.second) == (("1BWB", "Wiki"), ("ppl",), ("wvv", "tvc"))
    four = replace(table_3.grid, measures=("ppl", "wvv", "tvc", "another"))
    assert agreement(four).fleiss_kappa == pytest.approx(0.742657, abs=5e-7)
    assert agreement(table_3.grid.only(("ppl", "wvv", "tvcc"))).fleiss_kappa == pytest.approx(0.7306, abs=5e-5)
    one_vote = agreement(table_3.grid)  # TVC and TVcC together
    assert one_vote.measures == THREE
    assert one_vote.fleiss_kappa == pytest.approx(0.732806, abs=5e-7)


answers = st.integers(0, 2**31).map(np.random.default_rng)


@settings(deadline=None)
@given(answers, st.integers(1, 3), st.integers(2, 4), st.integers(2, 4))
def test_kappa_equals_enumeration_of_rater_pairs(rng: np.random.Generator, t: int, s: int, m: int) -> None:
    """By the definition: agreeing pairs of raters divided by all pairs of raters, item by item."""
    values = rng.permutation(t * s * m).reshape(t, s, m) * 1.0
    agree = total = first = 0
    for target in range(t):
        for a, b in combinations(range(s), 2):
            prefers = [bool(values[target, a, k] > values[target, b, k]) for k in range(m)]
            first += sum(prefers)
            for x, y in combinations(prefers, 2):
                agree += x == y
                total += 1
    share = first / (t * s * (s - 1) / 2 * m)
    expected = share**2 + (1 - share) ** 2
    found = agreement(grid(values))
    assert found.observed == pytest.approx(agree / total)
    assert found.randolph_kappa == pytest.approx(2 * agree / total - 1)
    assert agreement(grid(values[:, rng.permutation(s)])).randolph_kappa == pytest.approx(found.randolph_kappa)
    if expected == 1:
        assert found.fleiss_kappa is None
    else:
        assert found.fleiss_kappa == pytest.approx((agree / total - expected) / (1 - expected))


def test_measures_that_prefer_low_values_are_reversed() -> None:
    values = np.array([[[1.0, 9.0], [2.0, 5.0]]])
    assert agreement(grid(values, ("low", "high"))).unanimous == 1
    assert agreement(grid(values, ("high", "high"))).unanimous == 0


def test_ties_and_missing_values_are_left_out_and_counted() -> None:
    values = np.array([[[1.0, 1.0], [1.0, 2.0], [3.0, np.nan]]])
    found = agreement(grid(values))
    assert (found.items, found.left_out) == (0, 3)
    assert (found.fleiss_kappa, found.randolph_kappa) == (None, None)
    assert agreement(grid(np.ones((1, 1, 2)))).fleiss_kappa is None
    assert agreement(grid(np.arange(3.0).reshape(1, 3, 1))).randolph_kappa is None
    assert grid(np.array([[[1.0, 0.0, np.nan], [2.0, 0.0, np.nan]]])).closest(0) == {"m0": "s1"}


@pytest.mark.parametrize(
    ("gap", "spread", "says"),
    [
        (0.01, None, "nearly a tie by m1"),
        (0.5, None, "the measures react to different properties of the text"),
        (0.5, 0.6, "nearly a tie by m1"),
    ],
)
def test_reason_of_a_split_names_a_tie_or_a_disagreement(gap: float, spread: float | None, says: str) -> None:
    values = np.array([[[2.0, 1.0], [1.0, 1.0 + gap]]])
    wide = None if spread is None else np.array([[[0.0, spread], [0.0, spread]]])
    assert says in agreement(grid(values, spread=wide)).splits[0].why
