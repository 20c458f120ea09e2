"""`knn`: cosine to the nearest sentences of T_C (SOURCES.md, Neighbours)."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from core.config import Config, option
from core.models.vectors import top_k_mean
from core.reporter import Reporter
from core.results import FloatArray, Prefer, Role
from core.selection.base import Batch, Model, Reads, Source


class NeighbourOptions(Config):
    """Options of `knn`."""

    neighbours: int = option(5, "How many nearest sentences of T_C are averaged.", unit="sentences", ge=1, le=1000)


class Neighbours:
    """Mean cosine to the k nearest sentences of T_C: keeps the small topics that a mean loses."""

    name: ClassVar[str] = "knn"
    unit: ClassVar[str] = "cosine"
    prefer: ClassVar[Prefer] = "high"
    needs: ClassVar[frozenset[Role]] = frozenset()
    reads: ClassVar[Reads] = "vectors"
    models: ClassVar[frozenset[Model]] = frozenset()
    summary: ClassVar[str] = "Prefers sentences that are close to a few sentences of T_C, whichever they are."
    trust: ClassVar[str] = "Trust it when T_C covers several topics; odd sentences of T_C draw odd neighbours."
    Options: ClassVar[type[Config]] = NeighbourOptions

    def __init__(self, options: NeighbourOptions, seed: int) -> None:
        self.neighbours = options.neighbours
        self._task: FloatArray

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        self._task, _ = sources[Role.TASK].learnable()

    def score(self, batch: Batch) -> FloatArray:
        assert batch.vectors is not None
        result = top_k_mean(batch.vectors, self._task, min(self.neighbours, len(self._task))).astype(np.float64)
        result[~np.asarray(batch.vectors).any(axis=1)] = np.nan  # an empty sentence has no neighbour
        return result
