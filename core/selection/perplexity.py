"""`ngram-perplexity`: how much a sentence surprises a Kneser-Ney 5-gram model of T_C."""

from collections.abc import Mapping
from typing import ClassVar

from core.config import Config, option
from core.models.ngram import KneserNey
from core.reporter import Reporter
from core.results import FloatArray, Prefer, Role
from core.selection.base import Batch, Model, Reads, Source


class NgramOptions(Config):
    """Options of `ngram-perplexity`."""

    order: int = option(5, "Longest n-gram the model counts.", unit="tokens", ge=1, le=7)


class NgramPerplexity:
    """Per-sentence perplexity, `P(x)^(-1/(N+1))` with `</s>` counted, model trained on T_C.

    The uniform term spreads over the words of T_C and D_C together, so an unseen word costs the same
    whatever T_C's size. Corpora are compared the other way round (SOURCES.md, Direction of perplexity).
    """

    name: ClassVar[str] = "ngram-perplexity"
    unit: ClassVar[str] = "perplexity"
    prefer: ClassVar[Prefer] = "low"
    needs: ClassVar[frozenset[Role]] = frozenset()
    reads: ClassVar[Reads] = "text"
    models: ClassVar[frozenset[Model]] = frozenset()
    summary: ClassVar[str] = "Prefers sentences whose word sequences a 5-gram model of T_C finds least surprising."
    trust: ClassVar[str] = (
        "Trust it where T_C is formulaic (contracts, notes); it favours stock phrases and rejects rare names."
    )
    Options: ClassVar[type[Config]] = NgramOptions

    def __init__(self, options: NgramOptions, seed: int) -> None:
        self.order = options.order
        self._model: KneserNey

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        report.stage("counting words of T_C and D_C")
        words = {word for sentence in sources[Role.TASK].sentences() for word in sentence.tokens}
        for batch in sources[Role.DOMAIN].corpus.batches():
            words.update(word for sentence in batch for word in sentence.tokens)
            report.check()
        report.stage("training the n-gram model on T_C")
        task = [sentence.tokens for sentence in sources[Role.TASK].sentences()]
        size = len(words - {"<s>", "</s>", "<unk>"}) + 2  # <unk> and </s> are words too
        self._model = KneserNey.fit(task, order=self.order, vocabulary_size=size, report=report)

    def score(self, batch: Batch) -> FloatArray:
        return self._model.perplexities([sentence.tokens for sentence in batch.sentences])
