"""`fuse`: reciprocal rank fusion of other strategies (Cormack et al. 2009; SOURCES.md, Rank fusion)."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import field_validator

from core.config import Config, option
from core.errors import ConfigError
from core.reporter import Reporter
from core.results import FloatArray, Role
from core.selection.base import Batch, Reads, Source, Strategy
from core.selection.evidence import Evidence, Part, Parts
from core.selection.strategies.classifier import DomainClassifier
from core.selection.strategies.moore_lewis import MooreLewis


class FuseOptions(Config):
    """Options of `fuse`."""

    of: tuple[str, ...] = option(
        (DomainClassifier.name, MooreLewis.name), "Strategies to combine, each with its default options."
    )
    constant: float = option(
        60.0, "Constant added to every rank. A larger constant makes the first ranks count less.", ge=0, le=1e6
    )

    @field_validator("of", mode="before")
    @classmethod
    def _typed(cls, of: object) -> object:
        """Split names that the command line gives as one string, such as "classifier,knn"."""
        return [name.strip() for name in of.split(",")] if isinstance(of, str) else of

    @field_validator("of")
    @classmethod
    def _several(cls, of: tuple[str, ...]) -> tuple[str, ...]:
        if len(of) < 2 or len(set(of)) < len(of):
            raise ConfigError("strategy fuse: of: give two or more different strategies, such as classifier,knn.")
        return of


class Fuse(Strategy):
    """The sum of 1 / (constant + rank) over the strategies. A strategy that could not score the sentence adds 0."""

    name: ClassVar[str] = "fuse"
    in_short: ClassVar[str] = "ranked high by several strategies"
    unit: ClassVar[str] = "sum of reciprocal ranks"
    reads: ClassVar[Reads] = "ids"
    summary: ClassVar[str] = "Scores by several strategies first, then prefers sentences that rank high in any of them."
    trust: ClassVar[str] = "Use it to combine strategies that find different sentences."
    Options: ClassVar[type[Config]] = FuseOptions

    options: FuseOptions

    @classmethod
    def others(cls, options: FuseOptions) -> tuple[str, ...]:
        return options.of

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        """Do nothing: ranks need no fitting."""

    def score(self, batch: Batch) -> FloatArray:
        assert batch.ranks is not None
        scores: FloatArray = np.nansum(1 / (self.options.constant + batch.ranks), axis=1)
        scores[np.isnan(batch.ranks).all(axis=1)] = np.nan
        return scores

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return one part per strategy."""
        constant = evidence.options["constant"]
        ranks = {name: evidence.ranks[name] for name in evidence.options["of"]}
        return Parts(
            parts=[
                Part(name=f"{name}: not scored", value=0.0)
                if np.isnan(rank)
                else Part(name=f"{name}: rank {rank:,.0f}", value=1 / (constant + rank))
                for name, rank in ranks.items()
            ],
            formula=f"each part is 1 / ({constant:g} + rank); the parts add up to the score",
        )
