"""Measures of similarity between a source and a target: PPL, TVC and TVcC. WVV is in `wvv.py`."""

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import chain
from typing import ClassVar, Literal

import numpy as np

from core.config import Config, option
from core.errors import CorpusError
from core.models.ngram import KneserNey
from core.reporter import Reporter
from core.results import Measurement, Prefer
from core.similarity.base import Measure, Sample, measurement
from core.similarity.parts_of_speech import Choice, WordTagger, load_word_tagger
from core.similarity.wvv import Wvv
from core.terms import SHARED, SHARED_CONTENT, SURPRISE, Term
from core.text.content import FUNCTION_WORDS
from core.text.words import is_alphanumeric

# A word must occur in at least this many sentences to count for `overlap`. Rarer words are often names or misspellings.
FREQUENT = 3
# A text counts as English if at least this share of its tokens are function words. English prose has 0.35 to 0.5.
_ENGLISH = 0.2


class PplOptions(Config):
    """Options of `ppl`."""

    order: int = option(5, "Length of the longest n-gram that the language model counts.", unit="tokens", ge=1, le=7)
    skip_end: bool = option(False, "Do not count the end of a sentence as a token. KenLM counts it.")


class Ppl:
    """Perplexity (PPL): mean of P(sentence)^(-1/N) over the target's sentences of N tokens (Dai et al. 2019, 4.2).

    P is a Kneser-Ney model of the source. The paper prints the sum over sentences, but its values can only be means.
    For one target, sum and mean rank sources alike (SOURCES.md, Perplexity of a corpus). All models share one closed
    vocabulary of V words, taken from all sources and targets. Otherwise, a source with few distinct words would look
    close for this reason alone. An unknown word gets 1/V of the probability that the model keeps for unknown words.
    """

    name: ClassVar[str] = "ppl"
    term: ClassVar[Term] = SURPRISE
    unit: ClassVar[str] = "perplexity"
    prefer: ClassVar[Prefer] = "low"
    summary: ClassVar[str] = "How unexpected the target's sentences are to an n-gram model of the source."
    looks_at: ClassVar[str] = "word sequences"
    columns: ClassVar[Mapping[str, str]] = {
        "sum": "sum over sentences, which is the literal formula in the paper",
        "median": "median over sentences; a few extreme sentences dominate the mean",
        "corpus": "perplexity of the target as one text",
        "known": "mean over sentences, without unknown words",
        "oov": "share of the target's tokens that do not occur in the source, %",
    }
    Options: ClassVar[type[Config]] = PplOptions

    def __init__(self, options: PplOptions, *, seed: int, vocabulary_size: int) -> None:
        self._order, self._end = options.order, not options.skip_end
        self._size = vocabulary_size + 2  # The model counts <unk> and </s> as words, too.

    def fit(self, source: Sample, report: Reporter) -> KneserNey:
        return KneserNey.fit(source.sentences, order=self._order, vocabulary_size=self._size, report=report)

    def compare(self, learnt: KneserNey, target: Sample, report: Reporter) -> Measurement:
        scores = learnt.score(target.sentences, report=report)
        perplexities = scores.perplexities(count_end=self._end)
        oov = 100 * float(scores.oov.sum() / scores.tokens.sum())
        if not np.isfinite(perplexities).all():
            raise CorpusError(
                f"{target.name}: the model of the source gives some sentences probability 0, so they have no "
                "perplexity; give a larger source."
            )
        if oov == 100:
            report.note(f"perplexity: the source contains no word of {target.name}, so the value is meaningless.")
        # Without unknown words, some sentences are empty and have no perplexity. Leave them out of the mean.
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
            f"{self._size:,}, sentence ends {'counted' if self._end else 'not counted'}"
        )
        if learnt.fallback_orders:
            convention += f", fallback discounts of order {', '.join(map(str, learnt.fallback_orders))}"
        return measurement(self, float(perplexities.mean()), convention=convention, columns=columns)


class Tvc:
    """Target vocabulary covered (TVC): |V(source) ∩ V(target)| / |V(target)|, percent; V is the set of distinct tokens.

    See Dai et al. 2019, 4.1, who call it VIR in their slides. V includes punctuation and digits. TVC is not symmetric.
    It grows with the size of the source, so compare only sources of equal size.
    """

    name: ClassVar[str] = "tvc"
    term: ClassVar[Term] = SHARED
    unit: ClassVar[str] = "%"
    prefer: ClassVar[Prefer] = "high"
    summary: ClassVar[str] = "Share of the target's distinct words that occur in the source at all."
    looks_at: ClassVar[str] = "vocabulary"
    columns: ClassVar[Mapping[str, str]] = {
        "overlap": "Jaccard overlap, %, of the two vocabularies, without function words and words in fewer than "
        f"{FREQUENT} sentences (similar to Gururangan et al. 2020)"
    }
    Options: ClassVar[type[Config]] = Config

    def __init__(self, options: Config, *, seed: int, vocabulary_size: int) -> None:
        """Ignore the arguments, because this measure has no options. The sample determines case and tokens."""

    def fit(self, source: Sample, report: Reporter) -> Counter[str]:
        """Return {word: number of sentences of the source that contain the word}."""
        report.check()
        return _sentence_counts(source)

    def compare(self, learnt: Counter[str], target: Sample, report: Reporter) -> Measurement:
        report.check()
        words = _sentence_counts(target)
        of_source, of_target = _frequent(learnt), _frequent(words)
        return measurement(
            self,
            _covered(learnt.keys(), words.keys()),
            convention=f"unique tokens as written, {len(learnt):,} in the source, {len(words):,} in the target",
            columns={"overlap": 100 * len(of_source & of_target) / max(len(of_source | of_target), 1)},
        )


def _covered(source: Collection[str], target: Collection[str]) -> float:
    """Return the percentage of `target`'s distinct words that `source` contains."""
    return 100 * sum(word in source for word in target) / len(target)


def _sentence_counts(sample: Sample) -> Counter[str]:
    # Count sentences, not occurrences, because ten repetitions in one sentence say no more than one.
    return Counter(chain.from_iterable(map(set, sample.sentences)))


def _frequent(sentence_counts: Counter[str]) -> set[str]:
    """Return the words that occur in at least `FREQUENT` sentences, in lower case, without function words.

    Tokens without a letter or digit are left out. sentence_counts: {word: number of sentences}.
    """
    return {
        word.lower()
        for word, n in sentence_counts.items()
        if n >= FREQUENT and is_alphanumeric(word) and word.lower() not in FUNCTION_WORDS
    }


class TvccOptions(Config):
    """Options of `tvcc`."""

    tagger: Choice = option("auto", "Tagger that finds content words; auto: spaCy, else NLTK, else the built-in list.")


class Tvcc:
    """Content words covered (TVcC): |C(source) ∩ C(target)| / |C(target)|, percent; C is the set of content words.

    A content word is a token tagged as noun, verb or adjective at least once. See Dai et al. 2019, 4.1, who call the
    measure VCcR or VcIR in their slides. Proper nouns count as nouns; adverbs are left out. The paper names no tagger.
    Values of different taggers cannot be compared, so each value is shown with its tagger.
    """

    name: ClassVar[str] = "tvcc"
    term: ClassVar[Term] = SHARED_CONTENT
    unit: ClassVar[str] = "%"
    prefer: ClassVar[Prefer] = "high"
    summary: ClassVar[str] = (
        "Share of the target's distinct nouns, verbs and adjectives that occur in the source at all."
    )
    looks_at: ClassVar[str] = "content words"
    columns: ClassVar[Mapping[str, str]] = {}
    Options: ClassVar[type[Config]] = TvccOptions

    def __init__(self, options: TvccOptions, *, seed: int, vocabulary_size: int) -> None:
        self._tagger: WordTagger = load_word_tagger(options.tagger)
        self._content: dict[str, frozenset[str]] = {}  # Cached per target, to tag a target once for all sources.

    def fit(self, source: Sample, report: Reporter) -> frozenset[str]:
        """Return the set of content words of the source."""
        return self._tagger.content(source.sentences, report)

    def compare(self, learnt: frozenset[str], target: Sample, report: Reporter) -> Measurement:
        if target.name not in self._content:
            self._content[target.name] = self._tagger.content(target.sentences, report)
        content = self._content[target.name]
        if not content:
            raise CorpusError(
                f"{target.name}: contains no content word according to the {self._tagger.name}; leave tvcc out."
            )
        english = sum(word.lower() in FUNCTION_WORDS for word in chain.from_iterable(target.sentences))
        # Only warn: all taggers are for English, but find "content words" in any language.
        if (share := english / target.n_tokens) < _ENGLISH:
            report.note(
                f"{SHARED_CONTENT.word}: only {share:.0%} of the tokens of {target.name} are English function words; "
                f"the {self._tagger.name} is for English, so use TVC instead."
            )
        sizes = f"{len(learnt):,} in the source, {len(content):,} in the target"
        convention = f"content words by {self._tagger.name}, {sizes}"
        return measurement(self, _covered(learnt, content), convention=convention, columns={})


MeasureName = Literal["ppl", "wvv", "tvc", "tvcc"]  # in the order in which the page and the command show them
MEASURES: Mapping[str, type[Measure]] = {measure.name: measure for measure in (Ppl, Wvv, Tvc, Tvcc)}


def make_measure(name: str, options: Mapping[str, object], *, seed: int, vocabulary_size: int) -> Measure:
    """Create a measure by name. options: {option: value} for all measures; the measure uses only its own options."""
    kind = MEASURES[name]
    own = {key: value for key, value in options.items() if key in kind.Options.model_fields}
    return kind(kind.Options.parse(own), seed=seed, vocabulary_size=vocabulary_size)


def title(name: str) -> str:
    """Return the full name of a measure, such as "perplexity"; return an unknown name unchanged."""
    return MEASURES[name].term.word if name in MEASURES else name


def symbol(name: str) -> str:
    """Return the symbol of a measure in the papers, such as "PPL"; return an unknown name unchanged."""
    return MEASURES[name].term.symbol if name in MEASURES else name
