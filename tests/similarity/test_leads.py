"""Leads beyond chance: equal sources have one in at most 5% of cases, and true leads are detected."""

from dataclasses import replace

import numpy as np
import pytest

from core.results import FloatArray, Prefer
from core.similarity.base import stretch
from core.similarity.grid import Grid, batch_means, in_front, leads
from tests.lab.benchmarks.bench_leads import SETTINGS, judged, simulated
from tests.similarity.test_agreement import grid


def of_sources(rng: np.random.Generator, lead: float, kind: str) -> tuple[Grid, int, FloatArray]:
    """Return a grid of two sources and three measures, and values on eight parts that vary together across measures.

    lead: lead of the first source, in standard deviations."""
    shared, own = (
        rng.normal(size=size) if kind == "normal" else rng.standard_t(2, size) for size in ((8, 2, 1), (8, 2, 3))
    )
    by_part = shared + 0.5 * own + lead * np.array([[0.5], [-0.5]])
    return grid(by_part.mean(axis=0, keepdims=True)), 0, by_part


@pytest.mark.parametrize("kind", ["normal", "heavy"])
def test_equal_sources_have_a_lead_in_at_most_5_percent(kind: str) -> None:
    rng, n = np.random.default_rng(0), 2000
    wrong = sum(any(lead.holds for lead in leads(*of_sources(rng, 0, kind))) for _ in range(n))
    assert wrong <= 0.05 * n + 2 * (0.05 * 0.95 * n) ** 0.5
    assert wrong > 0  # otherwise a rule that never finds a lead would pass


def test_true_lead_is_detected() -> None:
    rng = np.random.default_rng(1)
    seen = sum(all(lead.holds for lead in leads(*of_sources(rng, 3, "normal"))) for _ in range(200))
    assert seen > 180


def test_holm_correction_counts_all_measures() -> None:
    """A lead with p = 0.03 holds alone, but not beside a second measure."""
    whole = np.array([[[1.0], [0.0]]])
    differences = np.array([1, 1, 1, 1, 1, 1, -1.3, 1.05]) + 0.02
    by_part = np.stack([differences, np.zeros(8)], axis=1)[..., None]
    (alone,) = leads(grid(whole), 0, by_part)
    assert alone.p is not None
    assert 0.025 < alone.p < 0.05
    assert alone.holds
    beside = leads(grid(np.dstack([whole, whole])), 0, np.dstack([by_part, 0 * by_part]))
    assert [lead.holds for lead in beside] == [False, False]


def test_smaller_of_two_leads_is_tested_unless_parts_are_few_or_tied() -> None:
    differences = np.array([2.0, 2.1, 1.9, 2.0, 2.05])
    whole, parts, turned = (batch_means(sign * differences, lead) for sign, lead in ((1, 2.0), (1, 0.001), (-1, 2.0)))
    assert whole is not None
    assert parts is not None
    assert turned is not None
    assert whole[3] < 0.001 < 0.9 < parts[3]
    assert whole[:3] == parts[:3]
    assert turned[3] == 1.0
    assert batch_means(np.array([1.0, 2.0, 3.0]), 2.0) is None
    (lead,) = leads(grid(np.array([[[1.0], [0.0]]])), 0, np.full((8, 2, 1), np.nan))
    assert (lead.p, lead.parts, lead.holds) == (None, 0, False)
    for values, first in (([1.0, 2.0, 2.0], None), ([1.0, np.nan], None), ([np.nan, 1.0, 2.0], (2, 1))):
        assert in_front(np.array(values)) == first


@pytest.mark.parametrize("prefer", ["low", "high"])
def test_leading_source_follows_the_preferred_direction(prefer: Prefer) -> None:
    values = np.array([[[1.0], [5.0], [9.0]]])
    by_part = values[0] + np.linspace(-1, 1, 8)[:, None, None] * np.array([[1.0], [0.9], [0.8]])
    (lead,) = leads(replace(grid(values), prefer=(prefer,)), 0, by_part)
    assert (lead.first, lead.second) == (("s0", "s1") if prefer == "low" else ("s2", "s1"))
    assert lead.whole == 4.0
    assert lead.on_parts == pytest.approx(4)
    assert lead.holds


def test_parts_are_consecutive_and_cover_all_rows() -> None:
    rows = np.array([2, 3, 5, 8, 13, 21, 34])
    lengths = np.array([9, 1, 1, 1, 9, 1, 8])
    parts = [stretch(rows, lengths, which, 3).tolist() for which in range(3)]
    assert parts == [[2, 3], [5, 8, 13], [21, 34]]


@pytest.mark.parametrize("setting", [SETTINGS[2], pytest.param(SETTINGS[3], marks=pytest.mark.full)])
def test_simulated_equal_sources_seldom_have_a_lead(setting: object) -> None:
    """A sample of `tests.lab.benchmarks.bench_leads`, which checks the 5% limit in all its settings."""
    line = simulated(setting, ("ppl", "tvc"), 20)  # type: ignore[arg-type]
    assert isinstance(line["any_lead"], float)
    assert line["any_lead"] <= 0.15


def test_simulated_unequal_sources_have_the_right_lead() -> None:
    further = [judged(replace(SETTINGS[12], gap=0.3), ("ppl", "tvc"), seed) for seed in range(5)]
    assert further[0] == judged(replace(SETTINGS[12], gap=0.3), ("ppl", "tvc"), 0)
    assert all(lead.first == "near" for of in further for lead in of if lead.holds)
    assert sum(lead.holds for of in further for lead in of) >= 8  # of 10
