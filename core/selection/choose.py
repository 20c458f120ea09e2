"""Select sentences (S_C) by score, within a budget. The functions are pure and serve every strategy."""

from collections.abc import Sequence

import numpy as np

from core.config import Budget
from core.corpora.hygiene import FLAGS, counted_once
from core.errors import ConfigError
from core.results import BoolArray, FloatArray, IntArray, Prefer, Scores, Selection


def ranking(values: FloatArray, prefer: Prefer) -> IntArray:
    """Return the rows `(m,)` from best to worst score, ties in row order. Rows without a score (NaN) are left out."""
    # Negate the scores instead of reversing the order, because a reversed order would put the last of equal rows first.
    keys = -values if prefer == "high" else values
    order = np.argsort(keys, kind="stable")  # NaN sorts last
    return order[: len(order) - int(np.isnan(keys).sum())]


def ranks(values: FloatArray, prefer: Prefer) -> FloatArray:
    """Return each row's rank `(n,)`: 1 plus the number of better rows, so ties share a rank; NaN if not scored."""
    keys = -values if prefer == "high" else values
    known = np.sort(keys[~np.isnan(keys)])
    result: FloatArray = np.searchsorted(known, keys, side="left") + 1.0
    result[np.isnan(keys)] = np.nan
    return result


def rank_of(row: int, values: FloatArray, prefer: Prefer) -> float:
    """Return the rank that `ranks` gives to a row, but without sorting."""
    better = values > values[row] if prefer == "high" else values < values[row]
    return float("nan") if np.isnan(values[row]) else float(better.sum()) + 1.0


def choose(
    scores: Scores,
    budget: Budget,
    *,
    lengths: IntArray,
    mask: IntArray,
    drop: Sequence[str] = FLAGS,
    order: IntArray | None = None,
) -> Selection:
    """Select the best rows up to the budget, without rows that have a flag in `drop`.

    A smaller budget's selection is always the beginning of a larger budget's selection (nested prefixes). lengths:
    `(n,)`, tokens per row. mask: `(n,)` uint8, bit i is set if the row has flag `FLAGS[i]`. drop: flags that withhold a
    row. order: `ranking(scores.values, scores.prefer)` if already computed; `choose` then takes O(n) time. Errors:
    ConfigError if the budget is larger than the corpus or selects nothing.
    """
    order = ranking(scores.values, scores.prefer) if order is None else order
    check_budget(budget, len(lengths), int(lengths.sum(dtype=np.int64)))
    withheld = np.uint8(sum(1 << FLAGS.index(flag) for flag in drop))
    free = order[(mask[order] & withheld) == 0]
    # With diversity, the order is not by score, so the sentences above a threshold are not the first ones.
    rows = free[_reaches(budget, free, scores)] if budget.unit == "threshold" else free[: _count(budget, free, lengths)]
    if not len(rows):
        raise ConfigError(f"budget: {budget} selects no sentence; give a larger budget or keep flagged sentences.")
    dropped = counted_once(mask, drop) | {"not_scored": int(np.isnan(scores.values).sum())}
    return Selection(
        corpus=scores.corpus,
        rows=rows,
        scores=scores.values[rows],
        budget=budget,
        dropped={reason: n for reason, n in dropped.items() if n},
    )


def check_budget(budget: Budget, n_sentences: int, n_tokens: int) -> None:
    """Raise ConfigError if a budget in sentences or tokens is larger than D_C."""
    # The limit includes withheld rows. If fewer unflagged sentences remain than the budget asks for, all of them are
    # selected. A share or a threshold cannot ask for more than D_C has.
    size = {"sentences": n_sentences, "tokens": n_tokens}.get(budget.unit)
    if size is not None and budget.value > size:
        raise ConfigError(
            f"budget: {int(budget.value):,} {budget.unit} is more than the domain corpus has ({size:,}); "
            "give a smaller budget or a share like 20%."
        )


def expected(budget: Budget, n_sentences: int, n_tokens: int) -> int | None:
    """Return the approximate number of sentences that a budget selects, at least 1; None for a threshold."""
    if budget.unit == "threshold":
        return None
    mean = n_tokens / n_sentences
    by_unit = {"tokens": budget.value / mean, "fraction": budget.value * n_sentences}
    return min(max(round(by_unit.get(budget.unit, budget.value)), 1), n_sentences)


def _reaches(budget: Budget, free: IntArray, scores: Scores) -> BoolArray:
    """Return a mask of the rows in `free` that a threshold selects. free: rows without withholding flags."""
    # A threshold is the worst score that is still selected, whether high or low scores are better.
    values = scores.values[free]
    reaches: BoolArray = values >= budget.value if scores.prefer == "high" else values <= budget.value
    return reaches


def _count(budget: Budget, free: IntArray, lengths: IntArray) -> int:
    """Return the number of rows that a budget selects. free: rows without withholding flags, best first."""
    # side="right": a row that fills the budget exactly still fits. The first row that exceeds the budget ends the
    # selection. Later, shorter rows are not added, because then a smaller selection might not be part of a larger one.
    if budget.unit == "tokens":
        return int(np.searchsorted(np.cumsum(lengths[free], dtype=np.int64), budget.value, side="right"))
    # A share refers to all of D_C, including withheld rows, so that 20% is always the same number. At least one
    # row is selected, because a small share of a small corpus rounds to 0.
    if budget.unit == "fraction":
        return max(round(budget.value * len(lengths)), 1)
    return int(budget.value)
