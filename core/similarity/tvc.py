"""TVC: the share of the target's vocabulary that the source has too (Dai et al. 2019, 4.1; VIR in the slides)."""

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import chain
from types import MappingProxyType
from typing import ClassVar

from core.config import Config
from core.reporter import Reporter
from core.results import Measurement, Prefer
from core.similarity.base import Sample, measurement
from core.terms import SHARED, Term
from core.text.content import FUNCTION_WORDS
from core.text.words import is_alphanumeric

FREQUENT = 3  # sentences that a word of the `overlap` column stands in at least: rarer ones are names and slips


class Tvc:
    """|V(source) ∩ V(target)| / |V(target)|, percent; V = unique tokens, marks and digits among them.

    Never symmetric. It grows with the source, so it compares sources of one size only.
    """

    name: ClassVar[str] = "tvc"
    term: ClassVar[Term] = SHARED
    unit: ClassVar[str] = "%"
    prefer: ClassVar[Prefer] = "high"
    summary: ClassVar[str] = "Share of the target's different words that occur in the source at all."
    looks_at: ClassVar[str] = "vocabulary"
    columns: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "overlap": f"Jaccard overlap of the two vocabularies without function words, words in at least {FREQUENT} "
            "sentences, % (near Gururangan et al. 2020)"
        }
    )
    Options: ClassVar[type[Config]] = Config

    def __init__(self, options: Config, *, seed: int, vocabulary_size: int) -> None:
        """Nothing to set: the sample decides about case and tokens."""

    def fit(self, source: Sample, report: Reporter) -> Counter[str]:
        """The number of sentences each word of the source stands in."""
        report.check()
        return _sentence_counts(source)

    def compare(self, learnt: Counter[str], target: Sample, report: Reporter) -> Measurement:
        report.check()
        words = _sentence_counts(target)
        of_source, of_target = _frequent(learnt), _frequent(words)
        return measurement(
            self,
            covered(learnt.keys(), words.keys()),
            convention=f"unique tokens as written, {len(learnt):,} in the source, {len(words):,} in the target",
            columns={"overlap": 100 * len(of_source & of_target) / max(len(of_source | of_target), 1)},
        )


def covered(source: Collection[str], target: Collection[str]) -> float:
    """Percent of `target`'s members that `source` has; both hold each word once."""
    return 100 * sum(word in source for word in target) / len(target)


def _sentence_counts(sample: Sample) -> Counter[str]:
    # Sentences, not occurrences: one that says a word ten times is one witness of it.
    return Counter(chain.from_iterable(map(set, sample.sentences)))


def _frequent(sentence_counts: Counter[str]) -> set[str]:
    """Lower-cased, without function words and bare marks."""
    return {
        word.lower()
        for word, n in sentence_counts.items()
        if n >= FREQUENT and is_alphanumeric(word) and word.lower() not in FUNCTION_WORDS
    }
