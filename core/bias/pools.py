"""Draw training sets by CEIM, and find pools of mentions whose name or context has high or low PVI.

Ma et al. 2023 state no thresholds for the pools, so the thresholds are our own (SOURCES.md, Rebuilding). `low_share`
and `base_and` draw the sets of their Fig. 4 and Table 3, with more or fewer low-CEIM mentions. Only sentences with a
measured mention are drawn, each at most once, and they keep all their labels. As in the paper, mentions are drawn at
random, and their sentences are taken. A sentence with several mentions is therefore more likely to be drawn.

All sets of Fig. 4 have the same number of sentences, but different proportions of sentences with a low-CEIM mention
(`share`). The proportion of low-CEIM mentions is smaller, because these sentences have other mentions too. Each set
reports its number of low-CEIM mentions (`Rebuilt.low`) and of all measured mentions (`Rebuilt.measured`). With the same
seed, a set with a larger share contains all sentences with a low-CEIM mention of the sets with smaller shares.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

import numpy as np

from core.bias.training_sentences import Rebuilt, Training
from core.errors import ConfigError
from core.results import BoolArray, FloatArray

AUTO = "auto"
# With `auto`, a type's lowest 20% of names are low if fewer than 5% of its names are below 0 bits.
FEW, BOTTOM = 0.05, 0.2
# Thresholds of "high" in the order in which `ladder` tries them: "90%", "80%", ..., "0%".
RUNGS = tuple(f"{share}%" for share in range(90, -1, -10))
# Name of the CEIM bin of mentions whose context is more informative than their name.
LOW = "low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Thresholds of PVI: a number of bits (`0.5`), or a quantile of the mentions of a type (`50%`: the median).

    entity_low: a name with at most this PVI is low; `auto`: below 0 bits, or the lowest 20%. entity_high, context_high:
    a name or context with at least this PVI is high. A low name is never also high.
    """

    entity_low: str = AUTO
    entity_high: str = "50%"
    context_high: str = "50%"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pools:
    """Masks `(m,)` of mentions: name of low PVI, name of high PVI, and context of high PVI.

    An unmeasured mention is in no pool. reached: quantile, such as "30%", to which `ladder` lowered the thresholds of
    "high"; "" if it did not lower them.
    """

    kinds: tuple[str, ...]
    entity_low: BoolArray
    entity_high: BoolArray
    context_high: BoolArray
    reached: str = ""

    def sizes(self) -> dict[str, dict[str, int]]:
        """Return {pool: {type: number of mentions}}. Every pool lists all types, also those without mentions."""
        masks = {
            "entity_low": self.entity_low,
            "entity_high": self.entity_high,
            "context_high": self.context_high,
            "both_high": self.entity_high & self.context_high,
        }
        counts = {name: Counter(np.array(self.kinds, dtype=object)[mask].tolist()) for name, mask in masks.items()}
        return {name: {kind: counts[name][kind] for kind in sorted(set(self.kinds))} for name in masks}


def check(threshold: str) -> str:
    """Return `threshold` unchanged. Errors: ConfigError if it is neither a number of bits nor a quantile."""
    if threshold != AUTO:
        _parse(threshold)
    return threshold


def find_pools(kinds: Sequence[str], entity: FloatArray, context: FloatArray, thresholds: Thresholds) -> Pools:
    """Return the pools of the measured mentions, found for each type separately.

    kinds: type of each of the m mentions. entity, context: PVI `(m,)` in bits, NaN if not measured.
    """
    types = np.array(kinds, dtype=np.str_)
    low, high, good = (np.zeros(len(types), np.bool_) for _ in range(3))
    # Compare mentions of one type only. A frequent type has a high prior, so all its mentions have lower PVI.
    for kind in np.unique(types):
        rows = np.flatnonzero((types == kind) & ~np.isnan(entity) & ~np.isnan(context))
        if len(rows):
            low[rows] = _low(entity[rows], thresholds.entity_low)
            high[rows] = entity[rows] >= _bits(entity[rows], thresholds.entity_high)
            good[rows] = context[rows] >= _bits(context[rows], thresholds.context_high)
    return Pools(kinds=tuple(kinds), entity_low=low, entity_high=high & ~low, context_high=good)


def ladder(kinds: Sequence[str], entity: FloatArray, context: FloatArray, thresholds: Thresholds) -> list[Pools]:
    """Return pools of growing size: first by `thresholds`, then with lower and lower thresholds of "high".

    In the last pools, all measured contexts and all names that are not low count as high. A lower threshold that adds
    no mention is skipped. Parameters: see `find_pools`.
    """
    pools = [find_pools(kinds, entity, context, thresholds)]
    for rung in RUNGS:
        last, lowered = pools[-1], replace(thresholds, entity_high=rung, context_high=rung)
        more = find_pools(kinds, entity, context, lowered)
        # Take the union with the previous pools: a threshold in bits may admit mentions that a quantile excludes.
        names, contexts = last.entity_high | more.entity_high, last.context_high | more.context_high
        if names.sum() > last.entity_high.sum() or contexts.sum() > last.context_high.sum():
            pools.append(replace(last, entity_high=names, context_high=contexts, reached=rung))
    return pools


def _low(values: FloatArray, threshold: str) -> BoolArray:
    if threshold != AUTO:
        return values <= _bits(values, threshold)
    below: BoolArray = values < 0
    # A name below 0 bits is misleading, so it counts as low. If a type has few such names, use a quantile instead,
    # because the pool of low names would be too small.
    return below if below.mean() >= FEW else values <= np.quantile(values, BOTTOM)


def _bits(values: FloatArray, threshold: str) -> float:
    number, is_share = _parse(threshold)
    return float(np.quantile(values, number)) if is_share else number


def _parse(threshold: str) -> tuple[float, bool]:
    """Parse a threshold into (bits, False) or (quantile, True). Errors: ConfigError."""
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)%", threshold):
        share = float(match[1]) / 100
        if share <= 1:
            return share, True
    elif re.fullmatch(r"[+-]?\d+(\.\d+)?", threshold):
        return float(threshold), False
    raise ConfigError(
        f"threshold: {threshold!r} cannot be read; give bits (0.5) or a quantile of the type's PVI (50%: the median)."
    )


class Mark(NamedTuple):
    """A measured mention that is not in a held-out sentence. row: row of its sentence. bin: bin of its CEIM."""

    row: int
    bin: str


def low_share(training: Training, share: float, size: int, seed: int) -> Rebuilt:
    """Draw a training set of `size` sentences as in Ma et al. 2023, Fig. 4.

    share: proportion of sentences with a low-CEIM mention; the others have none. Errors: ConfigError if the training
    set has too few sentences of one of the two kinds.
    """
    marks, n_low = _marks(training), round(share * size)
    with_low = _with_low(marks)
    low = _draw(marks, lambda mark: mark.bin == LOW, n_low, seed=seed, name="with a low-CEIM mention")
    name = "without a low-CEIM mention"
    others = _draw(marks, lambda mark: mark.row not in with_low, size - n_low, seed=seed, name=name)
    return _set(training, marks, low + others)


def base_and(training: Training, bin: str, size: int, seed: int) -> Rebuilt:
    """Draw a set as in Ma et al. 2023, Table 3: sentences of random mentions, and as many more with a mention of `bin`.

    size: number of sentences in each of the two parts. bin: CEIM bin. If it is "none", no sentences are added. If it is
    "near_zero" or "high", the added sentences have no low-CEIM mention. Errors: see `low_share`.
    """
    marks = _marks(training)
    rows = _draw(marks, lambda mark: True, size, seed=seed, name="with a measured mention")
    if bin != "none":
        excluded = {*rows, *(() if bin == LOW else _with_low(marks))}
        name = f"with a {bin}-CEIM mention{'' if bin == LOW else ' and no low-CEIM mention'}"
        rows += _draw(marks, lambda mark: mark.bin == bin, size, seed=seed, name=name, excluded=excluded)
    return _set(training, marks, rows)


def _marks(training: Training) -> list[Mark]:
    measured = zip(training.rows.tolist(), training.bins, training.free.tolist(), strict=True)
    return [Mark(row, bin) for row, bin, free in measured if free and bin]


def _with_low(marks: Sequence[Mark]) -> set[int]:
    return {mark.row for mark in marks if mark.bin == LOW}


def _draw(
    marks: Sequence[Mark],
    in_pool: Callable[[Mark], bool],
    n: int,
    *,
    seed: int,
    name: str,
    excluded: Collection[int] = (),
) -> list[int]:
    """Draw mentions for which `in_pool` is true, until they are in `n` sentences, and return the rows of these.

    excluded: rows that must not be drawn. name: description of the sentences for the error message.
    """
    # Take the first rows of one shuffle. With the same seed, a larger draw then contains every smaller draw.
    pool = [mark.row for mark in marks if in_pool(mark)]
    rows = [row for row in dict.fromkeys(Random(seed).sample(pool, len(pool))) if row not in excluded]
    if len(rows) < n:
        raise ConfigError(
            f"size: {n:,} sentences {name} are needed, but the training set has {len(rows):,}. Give a smaller size or"
            " another share."
        )
    return rows[:n]


def _set(training: Training, marks: Sequence[Mark], rows: Sequence[int]) -> Rebuilt:
    chosen = set(rows)
    bins = [mark.bin for mark in marks if mark.row in chosen]
    sentences = [training.sentences[row] for row in sorted(rows)]
    return Rebuilt(sentences=sentences, edits=[], low=bins.count(LOW), measured=len(bins))
