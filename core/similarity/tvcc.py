"""TVcC: TVC over content words alone, nouns, verbs and adjectives (Dai et al. 2019, 4.1; VCcR, VcIR in the slides)."""

from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType
from typing import ClassVar

from core.config import Config, option
from core.errors import CorpusError
from core.reporter import Reporter
from core.results import Measurement, Prefer
from core.similarity.base import Sample, measurement
from core.similarity.parts_of_speech import Choice, WordTagger, load_word_tagger
from core.similarity.tvc import covered
from core.terms import SHARED_CONTENT, Term
from core.text.content import FUNCTION_WORDS

_ENGLISH = 0.2  # share of function words among the tokens; English prose has 0.35 to 0.5


class TvccOptions(Config):
    """Options of `tvcc`."""

    tagger: Choice = option("auto", "What finds content words; auto takes spaCy, else NLTK, else the built-in list.")


class Tvcc:
    """|C(source) ∩ C(target)| / |C(target)|, percent; C = tokens tagged noun, verb or adjective at least once.

    Proper nouns are nouns; adverbs are left out. No tagger is named there, and values of two taggers do not compare,
    so the convention says which one it was.
    """

    name: ClassVar[str] = "tvcc"
    term: ClassVar[Term] = SHARED_CONTENT
    unit: ClassVar[str] = "%"
    prefer: ClassVar[Prefer] = "high"
    summary: ClassVar[str] = "The same of content words alone: nouns, verbs and adjectives."
    looks_at: ClassVar[str] = "content words"
    columns: ClassVar[Mapping[str, str]] = MappingProxyType({})
    Options: ClassVar[type[Config]] = TvccOptions

    def __init__(self, options: TvccOptions, *, seed: int, vocabulary_size: int) -> None:
        self._tagger: WordTagger = load_word_tagger(options.tagger)
        self._content: dict[str, frozenset[str]] = {}  # a target is tagged once, however many sources there are

    def fit(self, source: Sample, report: Reporter) -> frozenset[str]:
        """Content words of the source."""
        return self._tagger.content(source.sentences, report)

    def compare(self, learnt: frozenset[str], target: Sample, report: Reporter) -> Measurement:
        if target.name not in self._content:
            self._content[target.name] = self._tagger.content(target.sentences, report)
        content = self._content[target.name]
        if not content:
            raise CorpusError(f"{target.name}: has no content word by the {self._tagger.name}; leave tvcc out.")
        # A note, no error: every tagger in the chain is for English, and elsewhere finds content words all the same.
        if (share := _function_share(target)) < _ENGLISH:
            report.note(
                f"{SHARED_CONTENT.word}: only {share:.0%} of the tokens of {target.name} are English function words; "
                f"the {self._tagger.name} is for English, so use TVC instead."
            )
        sizes = f"{len(learnt):,} in the source, {len(content):,} in the target"
        convention = f"content words by {self._tagger.name}, {sizes}"
        return measurement(self, covered(learnt, content), convention=convention, columns={})


def _function_share(sample: Sample) -> float:
    words = chain.from_iterable(sample.sentences)
    return sum(word.lower() in FUNCTION_WORDS for word in words) / sample.n_tokens
