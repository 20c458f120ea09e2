"""`loss-drop`: scores a sentence by how much training on T_C lowers its loss (SOURCES.md, Loss drop)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from core.config import option
from core.reporter import Reporter, Silent
from core.results import FloatArray, Role
from core.selection.base import AdaptedOptions, Batch, Model, Source, Strategy
from core.selection.evidence import Evidence, Part, Parts
from core.selection.strategies.classifier import DomainClassifier
from core.selection.strategies.perplexity import PseudoOptions, PseudoPerplexity

# Lowest drop, in nats per piece. Lower drops are raised to it, because sentences that were not compared score below it.
_LEAST = -5.0
# By default, this many times as many sentences are compared as are selected.
_TIMES = 5


class LossDropOptions(AdaptedOptions):
    """Options of `loss-drop`."""

    pool: int = option(
        0,
        "Number of the default strategy's best sentences whose losses are compared. 0: five times as many as are "
        "selected, or all if the budget is a threshold.",
        unit="sentences",
        ge=0,
    )
    passes: int = option(6, "Number of random masks per sentence.", ge=1, le=100)
    max_length: int = option(128, "Longer sentences are split into windows.", unit="pieces", ge=8, le=8192)


class LossDrop(Strategy):
    """Mean loss per masked piece, in nats, under a model of D_C minus that under a model of T_C, with the same masks.

    Both models are the same encoder with the same continued pre-training: on T_C (B1 in SOURCES.md), and on a random
    sample of D_C as large as T_C. Only the best sentences by the default strategy are compared. All others get
    `_LEAST` - r / n, where r is the rank by the default strategy and n the size of D_C.
    """

    name: ClassVar[str] = "loss-drop"
    in_short: ClassVar[str] = "easier for a language model of your text than for a model of the rest; slow"
    unit: ClassVar[str] = "nats per piece"
    models: ClassVar[frozenset[Model]] = frozenset({"mlm", "prior"})
    summary: ClassVar[str] = (
        "Trains one masked language model on the task corpus and one on random text, and prefers sentences that the "
        "first model predicts better."
    )
    trust: ClassVar[str] = "Slow. It only re-orders the best sentences of the default strategy."
    Options: ClassVar[type[AdaptedOptions]] = LossDropOptions

    options: LossDropOptions
    # models of D_C and of T_C
    _models: tuple[PseudoPerplexity, PseudoPerplexity]
    # number of sentences of D_C
    _n: int

    @classmethod
    def others(cls, options: LossDropOptions) -> tuple[str, ...]:
        return (DomainClassifier.name,)

    @classmethod
    def sized(cls, options: LossDropOptions, n: int) -> LossDropOptions:
        return options.model_copy(update={"pool": options.pool or _TIMES * n})

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        masks = PseudoOptions(method="sampled", passes=self.options.passes, max_length=self.options.max_length)
        self._n = len(sources[Role.DOMAIN].corpus)
        self._models = PseudoPerplexity(masks, self.seed), PseudoPerplexity(masks, self.seed)
        for model, role in zip(self._models, (Role.DOMAIN, Role.TASK), strict=True):
            model.prepare({Role.TASK: sources[role]}, report)

    def score(self, batch: Batch) -> FloatArray:
        assert batch.ranks is not None
        ranks = batch.ranks[:, 0]
        scores: FloatArray = _LEAST - ranks / self._n
        compared = np.flatnonzero(ranks <= (self.options.pool or self._n))
        if len(compared):
            part = Batch(
                ids=batch.ids[compared], sentences=[batch.sentences[i] for i in compared.tolist()], report=batch.report
            )
            of_domain, of_task = self._models
            # Both models read the same sentences. Only the second one reports progress, so that they are counted once.
            drop = np.log(of_domain.score(replace(part, report=_Quiet(batch.report)))) - np.log(of_task.score(part))
            scores[compared] = np.maximum(drop, _LEAST)
        return scores

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return the score as one part; if the losses were not compared, return `_LEAST` and the rank as two parts."""
        rank = evidence.ranks[DomainClassifier.name]
        if evidence.score >= _LEAST:
            return Parts(
                parts=[evidence.whole],
                notes=(f"Rank {rank:,.0f} by {DomainClassifier.name}; both language models scored this sentence.",),
            )
        return Parts(
            parts=[
                Part(
                    name="not compared by the language models, so ranked after all compared sentences",
                    value=_LEAST,
                ),
                Part(
                    name=f"-rank by {DomainClassifier.name} ({rank:,.0f}) / number of sentences in the domain corpus",
                    value=evidence.score - _LEAST,
                ),
            ]
        )


class _Quiet(Silent):
    """A reporter that shows no progress, but still cancels the work."""

    def __init__(self, report: Reporter) -> None:
        self.check = report.check  # type: ignore[method-assign]
