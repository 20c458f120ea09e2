"""`knn`: cosine to the nearest sentences of T_C (SOURCES.md, Neighbours)."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from core.config import Config, option
from core.models.vectors import top_k_mean
from core.reporter import Reporter
from core.results import FloatArray, Role
from core.selection.base import Batch, Reads, Source, Strategy
from core.selection.evidence import Evidence, Part, Parts, unit


class NeighbourOptions(Config):
    """Options of `knn`."""

    neighbours: int = option(
        5, "How many nearest sentences of the task corpus are averaged.", unit="sentences", ge=1, le=1000
    )


class Neighbours(Strategy):
    """Mean cosine to the k nearest sentences of T_C: keeps the small topics that a mean loses."""

    name: ClassVar[str] = "knn"
    in_short: ClassVar[str] = "near a few sentences of yours"
    unit: ClassVar[str] = "cosine"
    reads: ClassVar[Reads] = "vectors"
    summary: ClassVar[str] = "Prefers sentences that are close to their nearest few sentences of the task corpus."
    trust: ClassVar[str] = (
        "Trust it when the task corpus covers several topics; odd sentences of the task corpus draw odd neighbours."
    )
    Options: ClassVar[type[Config]] = NeighbourOptions

    options: NeighbourOptions
    _task: FloatArray  # (m, d) of length 1

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        self._task, _ = sources[Role.TASK].learnable()

    def score(self, batch: Batch) -> FloatArray:
        assert batch.vectors is not None
        result = top_k_mean(batch.vectors, self._task, min(self.options.neighbours, len(self._task))).astype(np.float64)
        result[~np.asarray(batch.vectors).any(axis=1)] = np.nan  # an empty sentence has no neighbour
        return result

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """A k-th of the cosine to each of the k nearest sentences of T_C."""
        task, _, rows = evidence.learnt_from()
        near = unit(task) @ np.asarray(evidence.vector, dtype=np.float64)
        best = np.argsort(-near, kind="stable")[: evidence.options["neighbours"]]
        return Parts(
            parts=[
                Part(name=f"sentence {row} of the task corpus", value=value / len(best), task_row=int(row))
                for row, value in zip(rows[best].tolist(), near[best].tolist(), strict=True)
            ],
            formula=f"each part is a cosine divided by {len(best)}; they add up to the score",
        )
