"""The classifier with T_C dealt into folds too, so that sentences of T_C and of D_C are scored on equal terms."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from core.reporter import Reporter
from core.results import FloatArray, IntArray, Role
from core.selection.base import Source
from core.selection.strategies.classifier import DomainClassifier, decide

if TYPE_CHECKING:
    from core.selection.strategies.classifier import Dealt, View

_LEAST_LIKE = 0.25  # a quantile of T_C's scores
_TOGETHER = 50  # rows that share a fold: a few documents


class CrossFitted(DomainClassifier):
    """A sentence of either corpus is scored by models that saw neither it nor, but for the ends of a block, its
    neighbours (SOURCES.md, Prevalence).

    Rows go into folds by blocks: sentences of one document share words that no other has, so a model that has read
    the document as T_C's gives its other sentences more than any sentence of D_C can have.
    """

    name: ClassVar[str] = "prevalence"

    _ids: IntArray  # (m,) ascending, of both corpora, and their folds
    _fold_of: IntArray

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        n = self.options.folds
        task, domain = sources[Role.TASK].corpus.ids(), sources[Role.DOMAIN].corpus.ids()
        together = min(_TOGETHER, -(-len(task) // n))  # a small T_C fills every fold
        folds = [np.arange(len(task)) // together % n, np.arange(len(domain)) // _TOGETHER % n]
        # The first of equal sentences gives its fold to all, T_C's to D_C's.
        self._ids, first = np.unique(np.concatenate([task, domain]), return_index=True)
        self._fold_of = np.concatenate(folds)[first]
        super().prepare(sources, report)

    def _fold(self, ids: IntArray) -> IntArray:
        folds: IntArray = self._fold_of[np.searchsorted(self._ids, ids)]
        return folds

    def _fit_views(self, views: "Sequence[tuple[Dealt, View]]", folds: IntArray, report: Reporter) -> list[FloatArray]:
        """Twice, the second time without what the first took for T_C's: it taught that T_C's own words are D_C's."""
        models = super()._fit_views(views, folds, report)
        alike = np.ones(len(folds), dtype=bool)
        for (task, rest), weights in zip(views, models, strict=True):
            # By both views: a sentence that shares only T_C's subject, or only its wording, stays D_C's.
            (rows, held), scores = task, decide(rest, weights, folds)
            assert held is not None
            alike &= scores >= np.quantile(decide(rows, weights, held), _LEAST_LIKE)
        others = np.flatnonzero(~alike)
        if 2 * len(others) < len(folds):  # D_C is of T_C's kind: nothing would be left to tell it from
            return models
        return super()._fit_views([(task, rest[others]) for task, rest in views], folds[others], report)

    def _task_folds(self, task: Source) -> tuple[IntArray, IntArray]:
        ids = task.corpus.ids()
        return self._fold(ids[task.learnable_rows()]), self._fold(ids if task.keep is None else ids[task.keep])
