"""Correlations, regrets, and the rule by closeness: golden numbers from Dai et al. 2019, Table 3, and slow implementations."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from core.similarity.grid import Grid
from core.similarity.predictive import CONVENTIONS, Outcomes, chance, correlations, outcomes_of, regrets, rule
from core.similarity.worth import Pasted, judge
from core.stats.welch import from_moments
from tests.similarity.test_agreement import grid

LM, VECTORS = 1, 0
MEASURES = ("ppl", "wvv", "tvc", "tvcc")


@pytest.mark.parametrize(
    ("effect", "convention", "expected"),
    [
        (LM, "runs", (-0.6176, -0.7477, 0.6666, 0.7393)),  # printed: Table 4, the column of the language model
        (LM, "means", (-0.6419, -0.8211, 0.6993, 0.8220)),
        (LM, "pooled", (-0.387, -0.629, 0.525, 0.550)),
        (VECTORS, "runs", (-0.4371, -0.4872, 0.5329, 0.5517)),
        (VECTORS, "means", (-0.4712, -0.5576, 0.6159, 0.6525)),
        (VECTORS, "pooled", (-0.358, -0.544, 0.508, 0.485)),
    ],
)
def test_correlations_of_table_3_are_the_golden_numbers(
    table_3: Pasted, effect: int, convention: str, expected: tuple[float, ...]
) -> None:
    """No convention reproduces the printed column of vectors (SOURCES.md, Prediction of F1), so its values are ours."""
    every = correlations(table_3.grid, table_3.outcomes[effect])
    found = {measure: row[convention] for measure, row in every.items()}
    assert [found[name].value for name in MEASURES] == pytest.approx(expected, abs=6e-4)
    if (effect, convention) == (LM, "runs"):
        assert expected == pytest.approx((-0.618, -0.747, 0.666, 0.739), abs=1e-3)
    if (effect, convention) == (LM, "means"):  # computed independently of this code
        assert found["ppl"].interval == pytest.approx((-0.96, -0.21), abs=0.006)
        assert found["wvv"].interval == pytest.approx((-0.97, -0.64), abs=0.006)


def test_correlations_per_target_of_table_3_are_the_golden_numbers(table_3: Pasted) -> None:
    whole, outcomes = table_3.grid, table_3.outcomes[LM]
    for at, expected in enumerate(
        (
            (-0.0188, -0.4171, 0.0741, 0.4971),
            (-0.9755, -0.9431, 0.9043, 0.8333),
            (-0.3049, -0.4636, 0.4126, 0.5073),
            (-0.7487, -0.9103, 0.8150, 0.8315),
            (-0.8957, -0.9701, 0.9739, 0.9559),
            (-0.7623, -0.7819, 0.8195, 0.8106),
        )
    ):
        one = replace(whole, targets=whole.targets[at : at + 1], values=whole.values[at : at + 1])
        rows = {name: getattr(outcomes, name)[at : at + 1] for name in ("mean", "sd", "runs", "none")}
        found = [row["runs"] for row in correlations(one, Outcomes(name="one", **rows)).values()]
        assert [each.value for each in found] == pytest.approx(expected, abs=6e-5)
        assert {each.interval for each in found} == {None}  # one target allows no interval over targets


@pytest.mark.parametrize(
    ("effect", "hits", "lost", "random"),
    [(LM, (6, 6, 5, 5), (0, 0, 0.063, 0.063), 2.151), (VECTORS, (5, 5, 4, 4), (0.078, 0.078, 0.217, 0.217), 1.124)],
)
def test_regrets_of_table_3_are_the_golden_numbers(
    table_3: Pasted, effect: int, hits: tuple[int, ...], lost: tuple[float, ...], random: float
) -> None:
    found = regrets(table_3.grid, table_3.outcomes[effect])
    assert tuple(each.measure for each in found) == MEASURES
    assert tuple(each.hits for each in found) == hits
    assert [each.mean for each in found] == pytest.approx(lost, abs=5e-4)
    assert [each.random for each in found] == pytest.approx([random] * 4, abs=5e-4)
    if effect == LM:
        assert [(each.concordant, each.pairs) for each in found] == [(46, 60), (51, 60), (45, 60), (46, 60)]


def test_correlation_in_the_wrong_direction_predicts_nothing() -> None:
    """Perplexity prefers low values: if F1 rises with it, it predicts nothing."""
    table = replace(grid(np.array([[[100.0], [200.0], [300.0]]])), measures=("ppl",), prefer=("low",))
    far, near = (
        judge(table, [outcomes_of("lm", {(0, j): [50.0 + sign * j] for j in range(3)}, np.zeros(1), 3)])
        for sign in (1, -1)
    )
    assert "closer sources scored no higher" in far.effects[0].sentence
    shuffled = "p = 0.17 for one measure, by shuffling the sources of each target in all 6 orders, so this may well be"
    interval = "r = -1.000 over 1 target (no interval with fewer than four targets; "
    assert f"correlates best with the score, {interval}{shuffled} chance)" in near.effects[0].sentence


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(3, 5), st.integers(1, 4))
def test_correlations_equal_scipy(seed: int, t: int, s: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    x, f1, none = rng.random((t, s, 1)), 60 + 10 * rng.random((t, s, n)), 50 + rng.random(t)
    runs = {(i, j): f1[i, j].tolist() for i in range(t) for j in range(s)}
    (found,) = correlations(grid(x), outcomes_of("lm", runs, none, s)).values()
    change = f1.mean(axis=2) - none[:, None]
    each_run = [pearsonr(np.repeat(x[i, :, 0], n), f1[i].ravel()).statistic for i in range(t)]
    means = [pearsonr(x[i, :, 0], change[i]).statistic for i in range(t)]
    ranks = [spearmanr(x[i, :, 0], change[i]).statistic for i in range(t)]
    centred = (x[..., 0] - x[..., 0].mean(axis=1, keepdims=True), change - change.mean(axis=1, keepdims=True))
    assert found["runs"].value == pytest.approx(np.mean(each_run))
    assert found["means"].value == pytest.approx(np.mean(means))
    assert found["spearman"].value == pytest.approx(np.mean(ranks))
    assert found["pooled"].value == pytest.approx(pearsonr(x.ravel(), change.ravel()).statistic)
    assert found["centred"].value == pytest.approx(pearsonr(centred[0].ravel(), centred[1].ravel()).statistic)


def test_interval_over_targets_has_95_percent_coverage() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        true = np.tanh(0.6 + 0.3 * rng.normal(size=5))
        x, noise = rng.normal(size=(2, 5, 6, 1))
        f1 = true[:, None, None] * x + np.sqrt(1 - true**2)[:, None, None] * noise
        runs = {(i, j): f1[i, j].tolist() for i in range(5) for j in range(6)}
        found = correlations(grid(x), outcomes_of("lm", runs, np.zeros(5), 6))["m0"]["means"]
        assert found.interval is not None
        held += found.interval[0] <= np.tanh(0.6) <= found.interval[1]
    assert 0.91 <= held / 400 <= 0.98


def test_too_little_data_gives_none_not_nan() -> None:
    values = np.array([[[1.0], [np.nan]], [[2.0], [2.0]]])
    outcomes = outcomes_of("lm", {(0, 0): [50.0], (1, 0): [60.0], (1, 1): [61.0]}, np.full(2, np.nan), 2)
    found = correlations(grid(values), outcomes)["m0"]
    assert [(name, each.value) for name, each in found.items()] == [(name, None) for name in CONVENTIONS]
    (regret,) = regrets(grid(values), outcomes)
    assert regret.targets == 1
    runs = {(i, j): [10.0 * i + j] for i in range(2) for j in range(3)}  # one of two targets has a baseline
    half = correlations(grid(np.arange(6.0).reshape(2, 3, 1)), outcomes_of("lm", runs, np.array([5.0, np.nan]), 3))
    pooled = half["m0"]["pooled"]
    assert (pooled.targets, pooled.interval) == (1, None)
    rng = np.random.default_rng(5)
    three = outcomes_of("lm", {(i, j): [rng.random()] for i in range(3) for j in range(4)}, np.zeros(3), 4)
    assert {r.interval for r in correlations(grid(rng.random((3, 4, 1))), three)["m0"].values()} == {None}


def test_wrong_choice_has_a_cost_and_a_p_value() -> None:
    values = np.array([[[2.0], [1.0]]])
    outcomes = outcomes_of("lm", {(0, 0): [50.0, 51.0, 52.0], (0, 1): [60.0, 61.0, 62.0]}, np.zeros(1), 2)
    (regret,) = regrets(grid(values), outcomes)
    (choice,) = regret.choices
    assert (choice.taken, choice.best, choice.lost) == ("s0", "s1", 10)
    assert choice.p == pytest.approx(from_moments((61.0, 1.0, 3), (51.0, 1.0, 3))[1])
    assert (regret.hits, regret.concordant, regret.pairs, regret.random) == (0, 0, 1, 5)


def test_chance_equals_enumeration_of_all_orders() -> None:
    """The enumeration shares no code with the implementation."""
    rng, counts = np.random.default_rng(3), (4, 3)
    values = rng.normal(size=(2, 4, 2))
    values[0, 0, 1] = np.nan  # one measure lacks a source
    runs = {(t, s): (60 + 3 * rng.normal(size=t + s + 1)).tolist() for t, n in enumerate(counts) for s in range(n)}
    table, found = grid(values, ("high", "low")), outcomes_of("lm", runs, np.full(2, 50.0), 4)
    rs = []
    for first, second in product(permutations(range(4)), permutations(range(3))):
        order = ([*first], [*second, 3])
        moved = {
            name: np.array([row[places] for row, places in zip(getattr(found, name), order, strict=True)])
            for name in ("mean", "sd", "runs")
        }
        each = correlations(table, Outcomes(name="moved", none=found.none, **moved))
        rs.append([row["runs"].value for row in each.values()])
    r = np.array(rs, dtype=float) * [1, -1]  # the second measure prefers low values
    share = chance(table, found)
    assert share is not None
    assert (share.orders, share.exact) == (144, True)
    assert share.by_measure == pytest.approx({f"m{m}": (r[:, m] >= r[0, m] - 1e-9).mean() for m in (0, 1)})
    assert share.best == pytest.approx((r.max(axis=1) >= r[0].max() - 1e-9).mean())


def test_chance_is_small_for_table_3_and_calibrated_for_random_measures(table_3: Pasted) -> None:
    for found in (chance(table_3.grid, each) for each in table_3.outcomes):
        assert found is not None
        assert not found.exact
        assert max(found.by_measure.values()) <= 0.003
        assert found.best <= 0.001
    rng, seldom = np.random.default_rng(7), 0
    for _ in range(200):
        table = grid(rng.normal(size=(2, 4, 4)))
        runs = {(t, s): [60 + rng.normal()] for t in range(2) for s in range(4)}
        share = chance(table, outcomes_of("lm", runs, np.full(2, 50.0), 4))
        assert share is not None
        seldom += share.best <= 0.05
    assert seldom / 200 <= 0.08
    for level in ({(0, 0): [1.0]}, {(0, j): [1.0 + j] for j in range(3)}):  # nothing to shuffle
        assert chance(grid(np.ones((1, 3, 1))), outcomes_of("lm", level, np.zeros(1), 3)) is None


def made(closeness: list[float], lm: list[float], vectors: list[float]) -> tuple[Grid, list[Outcomes]]:
    """Return one target's grid and outcomes with three runs per F1, 0.1 apart. NaN: this source has no such run."""
    names = tuple(f"s{i}" for i in range(len(lm)))
    values = np.array(closeness, dtype=np.float64).reshape(1, -1, 1)
    grid = Grid(targets=("t",), sources=names, measures=("tvc",), prefer=("high",), values=values)
    outcomes = []
    for name, f1s in (("language model", lm), ("word vectors", vectors)):
        runs = {(0, i): [f1 - 0.1, f1, f1 + 0.1] for i, f1 in enumerate(f1s) if np.isfinite(f1)}
        outcomes.append(outcomes_of(name, runs, np.array([50.0]), len(lm)))
    return grid, outcomes


def test_rule_on_table_3_gives_the_golden_numbers(table_3: Pasted) -> None:
    found = rule(table_3.grid, table_3.outcomes)
    assert found is not None
    assert (found.right, found.advised, found.clear_right, found.clear) == (15, 23, 11, 15)
    assert found.p == pytest.approx(0.125, abs=0.0005)
    by_pair = {(row.target, row.source): row for row in found.rows}
    close = by_pair["CoNLL2003", "1BWB"]
    assert (close.place, close.advice, close.f1, close.clear) == (1, "language model", (89.78, 86.36), True)
    assert close.better == close.advice
    assert by_pair["CoNLL2003", "MIMIC"].advice == by_pair["CoNLL2003", "MIMIC"].better == "word vectors"
    assert by_pair["CADEC", "Wiki"].advice is None  # the middle of five
    level = by_pair["CRAFT", "PubMed"]
    assert (level.better, level.clear) == (None, False)
    assert "model for 15 of 23 sources (by chance 11.7, p = 0.12), which may well be chance" in found.sentence


def test_chance_of_the_rule_equals_all_permutations_of_advice() -> None:
    lm, vectors = [60.0, 60.0, 50.0, 60.0], [50.0, 50.0, 60.0, 50.0]
    found = rule(*made([4, 3, 2, 1], lm, vectors))
    assert found is not None
    better = [row.better for row in found.rows]
    right = [
        sum(a == b for a, b in zip(advice, better, strict=True))
        for advice in permutations(r.advice for r in found.rows)
    ]
    assert (found.right, found.advised) == (3, 4)
    assert found.chance == pytest.approx(np.mean(right)) == 2
    assert found.p == pytest.approx(np.mean([n >= 3 for n in right]))
    assert "3 of 4 sources (by chance 2, p = 0.5), which may well be chance." in found.sentence


def test_rule_needs_four_sources_for_a_test() -> None:
    nan = float("nan")
    found = rule(*made([4, 3, 2, 1], [60, 60, nan, 50], [50, nan, 50, 60]))
    assert found is not None
    assert ([row.source for row in found.rows], found.p) == (["s0", "s3"], None)
    assert "2 of 2 sources (by chance 1); with fewer than 4 sources there is no test" in found.sentence
    grid, (lm, _) = made([1, 2], [60, 60], [50, 50])
    assert rule(grid, [lm]) is None
    assert rule(*made([1, 2], [60, nan], [nan, 50])) is None
    runs, none = {(0, 0): [60.0], (0, 1): [50.0]}, np.array([50.0])
    once = rule(grid, [outcomes_of(name, runs, none, 2) for name in ("LM F1", "vectors F1")])
    assert once is not None
    assert [row.interval for row in once.rows] == [None, None]  # a single run has no interval
