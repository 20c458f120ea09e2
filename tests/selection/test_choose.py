"""Selection within a budget: ties, nested prefixes, withheld rows and their reasons."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config import Budget, Unit
from core.corpora.hygiene import FLAGS
from core.errors import ConfigError
from core.results import FloatArray, IntArray, Prefer, Scores
from core.selection.choose import choose, expected, ranking


def scores(values: FloatArray, prefer: Prefer = "high") -> Scores:
    return Scores(name="s", unit="u", prefer=prefer, values=np.asarray(values, dtype=np.float64), corpus="c")


World = tuple[FloatArray, IntArray, IntArray, Prefer]

numbers = st.one_of(st.floats(-5, 5), st.sampled_from([0.0, 1.0, float("nan")]))
worlds = st.integers(1, 60).flatmap(
    lambda n: st.tuples(
        st.lists(numbers, min_size=n, max_size=n).map(np.array),
        st.lists(st.integers(0, 31), min_size=n, max_size=n).map(lambda m: np.array(m, dtype=np.uint8)),
        st.lists(st.integers(1, 40), min_size=n, max_size=n).map(lambda v: np.array(v, dtype=np.int32)),
        st.sampled_from(["high", "low"]),
    )
)


def brute_force(values: FloatArray, mask: IntArray, prefer: Prefer) -> list[int]:
    """Return every selectable row, best first, by a plain sort."""
    free = [row for row in range(len(values)) if mask[row] == 0 and not np.isnan(values[row])]
    return sorted(free, key=lambda row: (-values[row] if prefer == "high" else values[row], row))


@given(worlds, st.data())
def test_chosen_rows_equal_a_plain_sort(world: World, data: st.DataObject) -> None:
    values, mask, lengths, prefer = world
    expected = brute_force(values, mask, prefer)
    n = data.draw(st.integers(1, len(values)))
    if not expected:
        with pytest.raises(ConfigError):
            choose(scores(values, prefer), Budget(value=n, unit="sentences"), lengths=lengths, mask=mask)
        return
    chosen = choose(scores(values, prefer), Budget(value=n, unit="sentences"), lengths=lengths, mask=mask)
    assert chosen.rows.tolist() == expected[:n]
    np.testing.assert_array_equal(chosen.scores, values[chosen.rows])


@given(worlds, st.data())
def test_smaller_budget_selects_a_prefix(world: World, data: st.DataObject) -> None:
    values, mask, lengths, prefer = world
    unit: Unit = data.draw(st.sampled_from(["sentences", "tokens"]))
    most = len(values) if unit == "sentences" else int(lengths.sum())
    small = data.draw(st.integers(1, most))
    large = data.draw(st.integers(small, most))
    try:
        inner, outer = (
            choose(scores(values, prefer), Budget(value=b, unit=unit), lengths=lengths, mask=mask).rows.tolist()
            for b in (small, large)
        )
    except ConfigError:
        return
    assert outer[: len(inner)] == inner
    if unit == "tokens":
        assert lengths[inner].sum() <= small


@given(worlds)
def test_every_row_is_selected_or_withheld_for_one_reason(world: World) -> None:
    values, mask, lengths, prefer = world
    budget = Budget(value=1.0, unit="fraction")
    try:
        chosen = choose(scores(values, prefer), budget, lengths=lengths, mask=mask)
    except ConfigError:
        return
    flagged = sum(n for reason, n in chosen.dropped.items() if reason != "not_scored")
    assert flagged == (mask != 0).sum()
    assert len(chosen.rows) + flagged + (np.isnan(values) & (mask == 0)).sum() == len(values)


def test_threshold_is_inclusive_in_the_preferred_direction() -> None:
    values, lengths, mask = np.array([3.0, 1.0, 2.0]), np.ones(3, np.int32), np.zeros(3, np.uint8)
    two = Budget.parse("threshold:2")
    assert choose(scores(values), two, lengths=lengths, mask=mask).rows.tolist() == [0, 2]
    assert choose(scores(values, "low"), two, lengths=lengths, mask=mask).rows.tolist() == [1, 2]


def test_flag_that_is_not_dropped_withholds_nothing() -> None:
    values, lengths = np.array([3.0, 1.0]), np.ones(2, np.int32)
    mask = np.array([1 << FLAGS.index("leak"), 0], dtype=np.uint8)
    one = Budget.parse("1")
    assert choose(scores(values), one, lengths=lengths, mask=mask).rows.tolist() == [1]
    drop = tuple(flag for flag in FLAGS if flag != "leak")
    assert choose(scores(values), one, lengths=lengths, mask=mask, drop=drop).rows.tolist() == [0]


def test_stored_order_selects_the_same_rows() -> None:
    values = np.random.default_rng(0).integers(0, 5, 200).astype(float)
    mask, lengths = np.zeros(200, np.uint8), np.ones(200, np.int32)
    order = ranking(values, "high")
    budget = Budget.parse("10%")
    plain = choose(scores(values), budget, lengths=lengths, mask=mask)
    stored = choose(scores(values), budget, lengths=lengths, mask=mask, order=order)
    assert plain.rows.tolist() == stored.rows.tolist()


def test_budget_larger_than_the_corpus_is_refused() -> None:
    for text in ("4", "50tokens"):
        with pytest.raises(ConfigError, match="more than the domain corpus has"):
            choose(scores(np.ones(3)), Budget.parse(text), lengths=np.full(3, 10), mask=np.zeros(3, np.uint8))


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("1000", 1000, "sentences"),
        ("20%", 0.2, "fraction"),
        ("50000tokens", 50000, "tokens"),
        ("1_000", 1000, "sentences"),
        ("threshold:-0.75", -0.75, "threshold"),
        ("0.5%", 0.005, "fraction"),
        ("0.00001%", 1e-5 / 100, "fraction"),  # a sentence of ten million
        ("1e-05%", 1e-5 / 100, "fraction"),  # as older versions stored it
    ],
)
def test_budget_text_is_parsed_and_formatted(text: str, value: float, unit: str) -> None:
    budget = Budget.parse(text)
    assert (budget.value, budget.unit) == (value, unit)
    assert Budget.parse(str(budget)) == budget
    assert "e-" not in str(budget)


WRONG = ["", "0", "-5", "120%", "0%", "ten", "5 apples", "1.5", "threshold:"]


@pytest.mark.parametrize(
    ("budget", "n"),
    [("7", 7), ("900", 50), ("10%", 5), ("1%", 1), ("100tokens", 10), ("5tokens", 1), ("threshold:2", None)],
)
def test_expected_number_of_sentences(budget: str, n: int | None) -> None:
    """Of 50 sentences with 500 tokens, so 10 tokens per sentence."""
    assert expected(Budget.parse(budget), 50, 500) == n


@pytest.mark.parametrize("text", [*WRONG, "9" * 5000, "9" * 5000 + "%", "threshold:" + "9" * 5000])
def test_invalid_budget_raises_a_readable_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^budget: "):
        Budget.parse(text)
