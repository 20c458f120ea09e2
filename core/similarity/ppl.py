"""PPL: how much a 5-gram model of the source is surprised by the target's sentences (Dai et al. 2019, 4.2)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from core.config import Config, option
from core.errors import CorpusError
from core.models.ngram import KneserNey
from core.reporter import Reporter
from core.results import Measurement, Prefer
from core.similarity.base import Sample, measurement
from core.terms import SURPRISE, Term


class PplOptions(Config):
    """Options of `ppl`."""

    order: int = option(5, "Longest n-gram the language model counts.", unit="tokens", ge=1, le=7)
    skip_end: bool = option(False, "Leave the sentence's end out of its length; KenLM's perplexity counts it.")


class Ppl:
    """Mean over the target's sentences of P(sentence)^(-1/N) under a Kneser-Ney model of the source.

    The sum over sentences is printed; the values can only be means, and for one target both rank sources alike
    (SOURCES.md, Perplexity of a corpus). All models share the size V of one closed vocabulary, all sources and targets
    together: alone, a source of few words would look near for that reason only. An unknown word costs what the
    model leaves to 1/V.
    """

    name: ClassVar[str] = "ppl"
    term: ClassVar[Term] = SURPRISE
    unit: ClassVar[str] = "perplexity"
    prefer: ClassVar[Prefer] = "low"
    summary: ClassVar[str] = "How unexpected the target's sentences are to an n-gram model of the source."
    looks_at: ClassVar[str] = "word sequences"
    columns: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "sum": "sum over sentences, the printed formula to the letter",
            "median": "median over sentences: a few awful ones rule the mean",
            "corpus": "perplexity of the target as one text",
            "known": "mean over sentences, unknown words left out",
            "oov": "tokens of the target that the source does not know, %",
        }
    )
    Options: ClassVar[type[Config]] = PplOptions

    def __init__(self, options: PplOptions, *, seed: int, vocabulary_size: int) -> None:
        """vocabulary_size: different tokens of all sources and targets."""
        self._order, self._end = options.order, not options.skip_end
        self._size = vocabulary_size + 2  # <unk> and </s> are words too

    def fit(self, source: Sample, report: Reporter) -> KneserNey:
        return KneserNey.fit(source.sentences, order=self._order, vocabulary_size=self._size, report=report)

    def compare(self, learnt: KneserNey, target: Sample, report: Reporter) -> Measurement:
        scores = learnt.score(target.sentences, report=report)
        perplexities = scores.perplexities(count_end=self._end)
        oov = 100 * float(scores.oov.sum() / scores.tokens.sum())
        if not np.isfinite(perplexities).all():
            raise CorpusError(
                f"{target.name}: has sentences that the model of the source deems impossible, so they have no "
                "perplexity; give a larger source."
            )
        if oov == 100:
            report.note(f"perplexity: the source knows no word of {target.name}; the value says only that.")
        # A sentence of unknown words alone has no perplexity here; it would make the mean NaN.
        known = scores.perplexities(count_end=self._end, exclude_oov=True)
        columns = {
            "sum": float(perplexities.sum()),
            "median": float(np.median(perplexities)),
            "corpus": scores.corpus_perplexity(count_end=self._end),
            "known": float(known[np.isfinite(known)].mean()) if np.isfinite(known).any() else None,
            "oov": oov,
        }
        convention = (
            f"mean over {len(perplexities):,} sentences, Kneser-Ney of order {self._order}, shared vocabulary of "
            f"{self._size:,}, length {'with' if self._end else 'without'} the sentence's end"
        )
        if learnt.fallback_orders:
            convention += f", fallback discounts of order {', '.join(map(str, learnt.fallback_orders))}"
        return measurement(self, float(perplexities.mean()), convention=convention, columns=columns)
