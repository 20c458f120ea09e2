"""The classifier with T_C in folds too, so that scores of T_C's and of D_C's sentences are comparable."""

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
_TOGETHER = 50  # consecutive rows that share a fold, which is a few documents


class CrossFitted(DomainClassifier):
    """Scores sentences of both corpora by models trained without the sentence and its block (SOURCES.md, Prevalence).

    Folds consist of blocks of rows. Sentences of one document share rare words, so a model trained on part of a T_C
    document would score the rest higher than any sentence of D_C.
    """

    name: ClassVar[str] = "prevalence"

    _ids: IntArray  # (m,), ids of both corpora, ascending
    _fold_of: IntArray

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        n = self.options.folds
        task, domain = sources[Role.TASK].corpus.ids(), sources[Role.DOMAIN].corpus.ids()
        together = min(_TOGETHER, -(-len(task) // n))  # so that a small T_C has rows in every fold
        folds = [np.arange(len(task)) // together % n, np.arange(len(domain)) // _TOGETHER % n]
        # Equal sentences share the fold of the first one, and D_C's that of T_C's.
        self._ids, first = np.unique(np.concatenate([task, domain]), return_index=True)
        self._fold_of = np.concatenate(folds)[first]
        super().prepare(sources, report)

    def _fold(self, ids: IntArray) -> IntArray:
        folds: IntArray = self._fold_of[np.searchsorted(self._ids, ids)]
        return folds

    def _fit_views(self, views: "Sequence[tuple[Dealt, View]]", folds: IntArray, report: Reporter) -> list[FloatArray]:
        """Fit twice, the second time without D_C's sentences that resemble T_C, which would mislabel T_C's words."""
        models = super()._fit_views(views, folds, report)
        alike = np.ones(len(folds), dtype=bool)
        for (task, rest), weights in zip(views, models, strict=True):
            # Both views must agree: a sentence that shares only T_C's subject or only its wording stays.
            (rows, held), scores = task, decide(rest, weights, folds)
            assert held is not None
            alike &= scores >= np.quantile(decide(rows, weights, held), _LEAST_LIKE)
        others = np.flatnonzero(~alike)
        if 2 * len(others) < len(folds):  # D_C resembles T_C as a whole, so too little would be left
            return models
        return super()._fit_views([(task, rest[others]) for task, rest in views], folds[others], report)

    def _task_folds(self, task: Source) -> tuple[IntArray, IntArray]:
        ids = task.corpus.ids()
        return self._fold(ids[task.learnable_rows()]), self._fold(ids if task.keep is None else ids[task.keep])
