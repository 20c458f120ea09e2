"""Mentions whose name or context has high or low PVI, by thresholds of ours.

Ma et al. 2023 print none (SOURCES.md, Rebuilding).
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.errors import ConfigError
from core.results import BoolArray, FloatArray

AUTO = "auto"
FEW, BOTTOM = 0.05, 0.2  # auto: where fewer than 5% of a type are below 0 bits, its lowest 20% are low
RUNGS = tuple(f"{share}%" for share in range(90, -1, -10))  # what `ladder` lowers "much" to, step by step


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Thresholds of PVI, each in bits (`0.5`) or as a share of the type's mentions (`50%`: the median).

    entity_low: at most so much (below 0 bits, or the bottom 20%, where it is `auto`). entity_high, context_high:
    at least so much. A mention that is low is not high.
    """

    entity_low: str = AUTO
    entity_high: str = "50%"
    context_high: str = "50%"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pools:
    """`(m,)` each: entity_low, a name of low PVI; entity_high, a name, and context_high, a context of high
    PVI. A mention that was not measured is in none. reached: the rung of `ladder`, "" for the thresholds as given."""

    kinds: tuple[str, ...]
    entity_low: BoolArray
    entity_high: BoolArray
    context_high: BoolArray
    reached: str = ""

    def sizes(self) -> dict[str, dict[str, int]]:
        """{pool: {type: mentions}}, a number for every type."""
        masks = {
            "entity_low": self.entity_low,
            "entity_high": self.entity_high,
            "context_high": self.context_high,
            "both_high": self.entity_high & self.context_high,
        }
        return {name: self._by_type(mask) for name, mask in masks.items()}

    def _by_type(self, mask: BoolArray) -> dict[str, int]:
        counts = Counter(kind for kind, inside in zip(self.kinds, mask.tolist(), strict=True) if inside)
        return {kind: counts[kind] for kind in sorted(set(self.kinds))}


def check(threshold: str) -> str:
    """`threshold`, unchanged. Errors: ConfigError if it is none."""
    if threshold != AUTO:
        _parse(threshold)
    return threshold


def find_pools(kinds: Sequence[str], entity: FloatArray, context: FloatArray, thresholds: Thresholds) -> Pools:
    """Sort the measured mentions into pools, type by type. kinds: m types. entity, context: `(m,)` bits, or NaN.

    Cheap: neither sentences nor models are read.
    """
    types = np.array(kinds, dtype=np.str_)
    low, high, good = (np.zeros(len(types), np.bool_) for _ in range(3))
    # By type: bits of a frequent type are lower throughout, since its prior already tells so much.
    for kind in np.unique(types):
        rows = np.flatnonzero((types == kind) & ~np.isnan(entity) & ~np.isnan(context))
        if len(rows):
            low[rows] = _low(entity[rows], thresholds.entity_low)
            high[rows] = entity[rows] >= _bits(entity[rows], thresholds.entity_high)
            good[rows] = context[rows] >= _bits(context[rows], thresholds.context_high)
    return Pools(kinds=tuple(kinds), entity_low=low, entity_high=high & ~low, context_high=good)


def ladder(kinds: Sequence[str], entity: FloatArray, context: FloatArray, thresholds: Thresholds) -> list[Pools]:
    """Nested pools: by `thresholds`, then with ever more names and contexts that tell much, down to all but low names.

    Parameters as `find_pools`. A step that adds nothing is left out.
    """
    pools = [find_pools(kinds, entity, context, thresholds)]
    for rung in RUNGS:
        last, lowered = pools[-1], replace(thresholds, entity_high=rung, context_high=rung)
        more = find_pools(kinds, entity, context, lowered)
        # United: a threshold in bits may take of one type what a share of it does not.
        names, contexts = last.entity_high | more.entity_high, last.context_high | more.context_high
        if names.sum() > last.entity_high.sum() or contexts.sum() > last.context_high.sum():
            pools.append(replace(last, entity_high=names, context_high=contexts, reached=rung))
    return pools


def _low(values: FloatArray, threshold: str) -> BoolArray:
    if threshold != AUTO:
        return values <= _bits(values, threshold)
    below: BoolArray = values < 0
    # Below 0 bits the name misleads, which is low by definition; a type with few of those would have no pool.
    return below if below.mean() >= FEW else values <= np.quantile(values, BOTTOM)


def _bits(values: FloatArray, threshold: str) -> float:
    number, is_share = _parse(threshold)
    return float(np.quantile(values, number)) if is_share else number


def _parse(threshold: str) -> tuple[float, bool]:
    """(bits, False) or (share, True)."""
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)%", threshold):
        share = float(match[1]) / 100
        if share <= 1:
            return share, True
    elif re.fullmatch(r"[+-]?\d+(\.\d+)?", threshold):
        return float(threshold), False
    raise ConfigError(f"threshold: {threshold!r} is not understood; give bits (0.5) or a share of the type (50%).")
