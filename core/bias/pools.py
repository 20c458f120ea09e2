"""Mentions and sentences to draw from: pools of high and low PVI, and training sets by CEIM.

The thresholds of the pools are our own, because Ma et al. 2023 print none (SOURCES.md, Rebuilding). `low_share` and
`base_and` draw the sets of their Fig. 4 and Table 3, with more or fewer low-CEIM mentions. A sentence is drawn at most
once and keeps all its labels.

All sets of Fig. 4 have the same size. Their share counts sentences with a low-CEIM mention. The share of low-CEIM
mentions is lower, because these sentences have other mentions too; each set reports both numbers of mentions
(`Rebuilt.low`, `Rebuilt.measured`). With the same seed, the set of a larger share contains the low-CEIM sentences of
every smaller share.
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
FEW, BOTTOM = 0.05, 0.2  # auto: if fewer than 5% of a type's names are below 0 bits, its lowest 20% are low
RUNGS = tuple(f"{share}%" for share in range(90, -1, -10))  # thresholds of "high" in the order `ladder` tries them
LOW = "low"  # bin of CEIM


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Thresholds of PVI, each in bits (`0.5`) or as a quantile over the type's mentions (`50%`: the median).

    entity_low: highest PVI of a low name; `auto`: below 0 bits, or the lowest 20%. entity_high, context_high: lowest
    PVI of a high name or context. A name that is low is not high.
    """

    entity_low: str = AUTO
    entity_high: str = "50%"
    context_high: str = "50%"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pools:
    """Masks `(m,)` of mentions. entity_low, entity_high: name of low or high PVI. context_high: context of high PVI.

    An unmeasured mention is in no pool. reached: quantile, such as "30%", to which `ladder` lowered the thresholds of
    "high"; "" if it did not lower them.
    """

    kinds: tuple[str, ...]
    entity_low: BoolArray
    entity_high: BoolArray
    context_high: BoolArray
    reached: str = ""

    def sizes(self) -> dict[str, dict[str, int]]:
        """Return {pool: {type: mentions}}, with all types in each pool."""
        masks = {
            "entity_low": self.entity_low,
            "entity_high": self.entity_high,
            "context_high": self.context_high,
            "both_high": self.entity_high & self.context_high,
        }
        counts = {name: Counter(np.array(self.kinds, dtype=object)[mask].tolist()) for name, mask in masks.items()}
        return {name: {kind: counts[name][kind] for kind in sorted(set(self.kinds))} for name in masks}


def check(threshold: str) -> str:
    """Return `threshold` unchanged. Errors: ConfigError if it is not a threshold."""
    if threshold != AUTO:
        _parse(threshold)
    return threshold


def find_pools(kinds: Sequence[str], entity: FloatArray, context: FloatArray, thresholds: Thresholds) -> Pools:
    """Sort the measured mentions into pools, per type. kinds: m types. entity, context: PVI `(m,)`, bits or NaN."""
    types = np.array(kinds, dtype=np.str_)
    low, high, good = (np.zeros(len(types), np.bool_) for _ in range(3))
    # Per type, because a frequent type has a high prior and therefore a lower PVI in all mentions.
    for kind in np.unique(types):
        rows = np.flatnonzero((types == kind) & ~np.isnan(entity) & ~np.isnan(context))
        if len(rows):
            low[rows] = _low(entity[rows], thresholds.entity_low)
            high[rows] = entity[rows] >= _bits(entity[rows], thresholds.entity_high)
            good[rows] = context[rows] >= _bits(context[rows], thresholds.context_high)
    return Pools(kinds=tuple(kinds), entity_low=low, entity_high=high & ~low, context_high=good)


def ladder(kinds: Sequence[str], entity: FloatArray, context: FloatArray, thresholds: Thresholds) -> list[Pools]:
    """Return nested pools: first by `thresholds`, then with thresholds of "high" that fall step by step.

    The last pools exclude only low names. Parameters as in `find_pools`. A threshold that adds no mention is left out.
    """
    pools = [find_pools(kinds, entity, context, thresholds)]
    for rung in RUNGS:
        last, lowered = pools[-1], replace(thresholds, entity_high=rung, context_high=rung)
        more = find_pools(kinds, entity, context, lowered)
        # The union, because a threshold in bits may admit mentions of a type that a quantile does not.
        names, contexts = last.entity_high | more.entity_high, last.context_high | more.context_high
        if names.sum() > last.entity_high.sum() or contexts.sum() > last.context_high.sum():
            pools.append(replace(last, entity_high=names, context_high=contexts, reached=rung))
    return pools


def _low(values: FloatArray, threshold: str) -> BoolArray:
    if threshold != AUTO:
        return values <= _bits(values, threshold)
    below: BoolArray = values < 0
    # A name below 0 bits misleads, so it is low. Without the quantile, a type with few such names would have no pool.
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
        f"threshold: {threshold!r} cannot be read; give bits (0.5) or a quantile of the type (50%: the median)."
    )


class Mark(NamedTuple):
    """A measured mention that is not held out. row: row of its sentence. bin: bin of its CEIM."""

    row: int
    bin: str


def low_share(training: Training, share: float, size: int, seed: int) -> Rebuilt:
    """Draw a set of `size` sentences as in Ma et al. 2023, Fig. 4.

    share: proportion of sentences that have a low-CEIM mention; the others have none. Errors: ConfigError if there are
    too few sentences with or without such a mention.
    """
    marks, n_low = _marks(training), round(share * size)
    with_low = _with_low(marks)
    low = _draw(marks, lambda mark: mark.bin == LOW, n_low, seed=seed, name="with a low-CEIM mention")
    name = "with near-zero- or high-CEIM mentions only"
    others = _draw(marks, lambda mark: mark.row not in with_low, size - n_low, seed=seed, name=name)
    return _set(training, marks, low + others)


def base_and(training: Training, bin: str, size: int, seed: int) -> Rebuilt:
    """Draw a set as in Ma et al. 2023, Table 3: `size` random sentences, and `size` more with a mention of `bin`.

    If `bin` is "none", no sentences are added. If `bin` is "near_zero" or "high", the added sentences have no low-CEIM
    mention.
    Errors: see `low_share`.
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
    """Draw the rows of `n` sentences that have a mention in the pool and are not in `excluded`.

    name: description of these sentences in the error.
    """
    # Take a prefix of one shuffle, so that with the same seed the set of a larger share contains that of a smaller one.
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
