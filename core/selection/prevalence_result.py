"""How many sentences of D_C are like T_C's, as `prevalence` runs have told."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.stats.prevalence import QuantileCount


@dataclass(frozen=True, slots=True, kw_only=True)
class PrevalenceResult:
    """Result of a `prevalence` run.

    low, high: sentences of D_C that are like T_C's, a range. about: one number for it. task, domain: distinct sentences
    of T_C and D_C that could be scored. quantiles: what each quantile of T_C's scores told.
    """

    low: int
    high: int
    about: int
    task: int
    domain: int
    quantiles: Sequence[QuantileCount]
