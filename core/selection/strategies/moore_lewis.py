"""`moore-lewis`: difference of two n-gram models' cross-entropies (Moore and Lewis 2010; SOURCES.md, Moore-Lewis)."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from core.config import Config, option
from core.models.ngram import KneserNey
from core.reporter import Reporter
from core.results import FloatArray, Prefer, Role
from core.selection.alike import WordsOf, own, retokenized, words_of
from core.selection.base import Batch, Source, Strategy
from core.selection.evidence import Arrays, Evidence, Part, Parts
from core.selection.strategies.perplexity import arrays_of, log10_by_token, model_of
from core.stats.draws import sample

_BIT = np.log10(2)


class MooreLewisOptions(Config):
    """Options of `moore-lewis`."""

    order: int = option(5, "Longest n-gram the models count.", unit="tokens", ge=1, le=7)


class MooreLewis(Strategy):
    """Bits per token under a model of T_C minus bits per token under a model of D_C; `</s>` counts as a token.

    The second model is fitted to a random sample of D_C with as many sentences as T_C. Both models then learn from
    about the same amount of text. Both use one vocabulary for the uniform term: the words of T_C and of the sample.
    """

    name: ClassVar[str] = "moore-lewis"
    in_short: ClassVar[str] = "worded like yours, unlike the rest"
    unit: ClassVar[str] = "bits per token"
    prefer: ClassVar[Prefer] = "low"
    summary: ClassVar[str] = (
        "Prefers sentences that a 5-gram model of the task corpus predicts better than a model of the domain corpus."
    )
    trust: ClassVar[str] = (
        "Like ngram-perplexity, but words that are frequent everywhere do not count. It needs no encoder."
    )
    Options: ClassVar[type[Config]] = MooreLewisOptions

    options: MooreLewisOptions
    _task: KneserNey
    _domain: KneserNey
    _words: WordsOf

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        domain = sources[Role.DOMAIN].corpus
        of_task, self._words = words_of([sources[Role.TASK].corpus, domain])
        task = [of_task(sentence) for sentence in sources[Role.TASK].sentences()]
        drawn = domain.take(sample(domain.ids(), len(task), self.seed))
        rest = [self._words(sentence) for sentence in drawn]
        words = {word for sentence in (*task, *rest) for word in sentence}
        size = len(words - {"<s>", "</s>", "<unk>"}) + 2  # + 2 for the words <unk> and </s> of the model
        report.stage("training the n-gram models of the task corpus and the domain corpus")
        self._task, self._domain = (
            KneserNey.fit(sentences, order=self.options.order, vocabulary_size=size, report=report)
            for sentences in (task, rest)
        )

    def score(self, batch: Batch) -> FloatArray:
        words = [self._words(sentence) for sentence in batch.sentences]
        task, domain = self._task.score(words), self._domain.score(words)
        result: FloatArray = (domain.log10 - task.log10) / (task.tokens + 1) / _BIT
        return result

    def learned(self) -> Arrays:
        """Return the arrays of both models, see `perplexity.arrays_of`."""
        models = {"task": self._task, "domain": self._domain}
        arrays = {f"{name} {key}": array for name, model in models.items() for key, array in arrays_of(model).items()}
        return {**arrays, "retokenized": np.ones(1, np.bool_)} if self._words is retokenized else arrays

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return one part per token: (log2 P_D - log2 P_T) / (N + 1), given the tokens before it."""
        words = (retokenized if "retokenized" in evidence.model else own)(evidence.sentence)
        task, domain = (
            log10_by_token(
                model_of({key.removeprefix(f"{name} "): array for key, array in evidence.model.items()}), words
            )
            for name in ("task", "domain")
        )
        return Parts(
            parts=[
                Part(name=f"{i}. {token}", value=(rest - ours) / len(task) / _BIT)
                for i, ((token, ours), (_, rest)) in enumerate(zip(task, domain, strict=True), 1)
            ],
            formula=f"each part is a token's bits under the model of the task corpus minus its bits under the model of "
            f"the domain corpus, divided by {len(task)}; the parts add up to the score",
        )
