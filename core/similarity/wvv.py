"""WVV: how far word vectors of the source move when their training goes on with the target (Dai et al. 2019, 4.3)."""

import copy
import logging
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from core.config import Config, option
from core.errors import Cancelled, CorpusError
from core.reporter import Reporter
from core.results import FloatArray, IntArray, Measurement, Prefer
from core.similarity.base import Sample, measurement
from core.terms import SHIFT, Term

if TYPE_CHECKING:
    from gensim.models import Word2Vec

ALPHA = 0.025  # word2vec's first learning rate; it falls to nearly nothing, and starts again on the target
FEW = 100  # words in both; below that the mean is not to be trusted
# Share of the target's words that must have a vector. Vectors that the target hardly touches stay where they are, which
# reads as "close": Latin digits and marks make an Arabic text the closest of all to English. Between corpora of one
# language the share is .20 and more from 10,000 tokens on, between English and Portuguese or Spanish at most .10.
COVERED = 0.15
_REPORT_SENTENCES = 200  # sentences; a report costs a read of the clock


class WvvOptions(Config):
    """Options of `wvv`, defaults of word2vec."""

    dimension: int = option(100, "Length of a word vector.", ge=2, le=1000)
    window: int = option(5, "Words on either side that a word is trained on.", unit="words", ge=1, le=50)
    negative: int = option(5, "Words drawn against each true one.", unit="words", ge=1, le=50)
    min_count: int = option(5, "Rarer words of the source get no vector.", unit="occurrences", ge=1)
    skipgram_epochs: int = option(5, "Passes over the source, and again over the target.", ge=1, le=100)
    workers: int = option(1, "Threads; only one gives the same numbers again.", ge=1, le=64)


class Wvv:
    """Mean over the words in both of the squared distance that a skip-gram vector moved.

    The printed formula divides by all words of the source and by the dimension; words that the target lacks never
    move, so that mostly measures the size of a vocabulary, and the printed values cannot come from it (SOURCES.md, Word
    vector variance): the literal one is the column `wvv_eq`. The same model goes on: vocabulary, output vectors and
    frequencies stay the source's. It grows with the number of updates, so it compares sources within one target only.
    """

    name: ClassVar[str] = "wvv"
    term: ClassVar[Term] = SHIFT
    unit: ClassVar[str] = "squared distance"
    prefer: ClassVar[Prefer] = "low"
    summary: ClassVar[str] = "How far the source's word vectors move when they are trained on with the target."
    looks_at: ClassVar[str] = "contexts of words"
    columns: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "wvv_eq": "mean over all words of the source and all dimensions, the printed formula to the letter",
            "wvv_l2": "mean distance over the words in both",
            "shared": "words in both",
            "covered": "share of the target's running words that have a vector of the source",
        }
    )
    Options: ClassVar[type[Config]] = WvvOptions

    def __init__(self, options: WvvOptions, *, seed: int, vocabulary_size: int) -> None:
        self._options, self._seed = options, seed

    def fit(self, source: Sample, report: Reporter) -> "Word2Vec":
        """Skip-gram vectors of the source. Errors: CorpusError where no word is frequent enough."""
        from gensim.models import Word2Vec

        o = self._options
        model = Word2Vec(
            vector_size=o.dimension,
            window=o.window,
            negative=o.negative,
            min_count=o.min_count,
            sample=1e-3,
            sg=1,
            hs=0,
            alpha=ALPHA,
            epochs=o.skipgram_epochs,
            workers=o.workers,
            seed=self._seed,
        )
        with _quiet():
            model.build_vocab(source.sentences)
        if not len(model.wv):
            raise CorpusError(
                f"{source.name}: no word occurs {o.min_count} times in its {source.n_tokens:,} tokens, so it has no "
                "word vectors; give a larger source or a smaller min_count."
            )
        self._train(model, source, report)
        return model

    def compare(self, learnt: "Word2Vec", target: Sample, report: Reporter) -> Measurement:
        words = Counter(word for sentence in target.sentences for word in sentence)
        shared = np.array([row for row, word in enumerate(learnt.wv.index_to_key) if word in words], dtype=np.int64)
        if not len(shared):
            raise CorpusError(
                f"{target.name}: shares no word with the vectors of the source, so none of them can move; "
                "word vector variance needs texts in one language and script."
            )
        covered = coverage(learnt.wv.key_to_index, words)
        if covered < COVERED:
            raise CorpusError(
                f"{target.name}: only {covered:.0%} of its words have a vector of the source, and vectors that are not "
                f"trained on do not move, so they would look close; word vector variance needs {COVERED:.0%}, "
                "that is texts in one language and script, and enough of them."
            )
        if len(shared) < FEW:
            report.note(
                f"word vector variance: only {len(shared)} words are in both the vectors of the source and "
                f"{target.name}; a mean of so few is unreliable, so give more text."
            )
        # A copy: the source's model serves every target, each from the same start.
        moved = copy.deepcopy(learnt)
        self._train(moved, target, report)
        columns = distances(learnt.wv.vectors, moved.wv.vectors, shared) | {"covered": covered}
        o = self._options
        threads = "1 worker" if o.workers == 1 else f"{o.workers} workers, so not repeatable"
        convention = (
            f"mean over {len(shared):,} words in both of {len(learnt.wv):,} in the source, summed over {o.dimension} "
            f"dimensions; skip-gram, window {o.window}, {o.negative} negative, {o.skipgram_epochs} epochs on either, "
            f"{threads}"
        )
        return measurement(self, columns.pop("wvv"), convention=convention, columns=columns)

    def _train(self, model: "Word2Vec", sample: Sample, report: Reporter) -> None:
        feed = _Feed(sample, report, self._options.skipgram_epochs)
        with _quiet():
            model.train(
                feed,
                total_examples=len(sample.sentences),
                epochs=self._options.skipgram_epochs,
                start_alpha=ALPHA,
                end_alpha=model.min_alpha,
            )
        if feed.stopped:
            raise feed.stopped


def distances(before: FloatArray, after: FloatArray, shared: IntArray) -> dict[str, float]:
    """{column: how far vectors moved}. before, after: `(v, d)`; shared: rows of the words in both, not empty."""
    # float64: thousands of small float32 differences squared and added lose digits that tell sources apart.
    squares = ((after.astype(np.float64) - before) ** 2).sum(axis=1)
    return {
        "wvv": float(squares[shared].mean()),
        "wvv_eq": float(squares.sum() / before.size),
        "wvv_l2": float(np.sqrt(squares[shared]).mean()),
        "shared": float(len(shared)),
    }


def coverage(vocabulary: Container[str], counts: Mapping[str, int]) -> float:
    """Share of the running words of `counts` (token: occurrences) in `vocabulary`; a word has a letter."""
    # Digits and marks are shared by all languages, so they say nothing of whether two texts are in one.
    words = {word: n for word, n in counts.items() if any(map(str.isalpha, word))}
    return sum(n for word, n in words.items() if word in vocabulary) / max(sum(words.values()), 1)


class _Feed:
    """Sentences as gensim's reading thread asks for them, pass after pass.

    An error in that thread would leave the training waiting for ever: a wish to stop ends the sentences instead.
    """

    def __init__(self, sample: Sample, report: Reporter, epochs: int) -> None:
        self._sample, self._report = sample, report
        self._done, self._total = 0, epochs * sample.n_tokens
        self.stopped: Cancelled | None = None

    def __iter__(self) -> Iterator[Sequence[str]]:
        for number, sentence in enumerate(self._sample.sentences):
            if number % _REPORT_SENTENCES == 0 and not self._continues():
                return
            self._done += len(sentence)
            yield sentence

    def _continues(self) -> bool:
        if self.stopped:
            return False  # the passes that were still to come
        try:
            self._report.progress(self._done, self._total, "tokens")
            self._report.check()
        except Cancelled as stopped:
            self.stopped = stopped
        return self.stopped is None


@contextmanager
def _quiet() -> Iterator[None]:
    """Without gensim's warnings that a training goes on, or has fewer sentences than promised: both are meant."""
    logger = logging.getLogger("gensim")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
