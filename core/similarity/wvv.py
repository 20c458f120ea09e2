"""Skip-gram word vectors: the measure WVV, and the run kind `vectors`, which trains vectors for taggers to start from.

WVV is how far the word vectors of the source move when training continues on the target (Dai et al. 2019, 4.3 and 6).
"""

import copy
import logging
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from core.config import Config, option
from core.encoders import vectors
from core.encoders.vectors import VectorsResult
from core.errors import Cancelled, CorpusError
from core.kind import Job, Kind
from core.reporter import Reporter
from core.results import FloatArray, IntArray, Measurement, Prefer
from core.similarity.base import Sample, draw, measurement
from core.stats.draws import short_seed
from core.terms import SHIFT, Term
from core.text.words import Tokens

if TYPE_CHECKING:
    from gensim.models import Word2Vec

# Initial learning rate of word2vec. It decays to almost 0, and starts again on the target.
ALPHA = 0.025
# With fewer shared words, the mean over them is unreliable.
FEW = 100
# Minimum share of the target's words that have a vector. Vectors without training on the target do not move, which
# looks "close": an Arabic text with Latin digits and punctuation came out closest to English. Between corpora of one
# language with at least 10,000 tokens, the share is at least .20; between English and Portuguese or Spanish, it is at
# most .10.
COVERED = 0.15
# Number of sentences after which progress is reported. It is not smaller, because each report reads the clock.
_REPORT_SENTENCES = 200


class WvvOptions(Config):
    """Options of `wvv`; the defaults are those of word2vec."""

    dimension: int = option(100, "Length of a word vector.", ge=2, le=1000)
    window: int = option(5, "Context words on either side.", unit="words", ge=1, le=50)
    negative: int = option(5, "Negative samples per positive example.", unit="words", ge=1, le=50)
    min_count: int = option(5, "Words of the source that occur less often get no vector.", unit="occurrences", ge=1)
    skipgram_epochs: int = option(5, "Epochs of training on the source, and again on the target.", ge=1, le=100)
    workers: int = option(1, "Threads; results are reproducible only with 1.", ge=1, le=64)


class Wvv:
    """Word vector variance (WVV): mean squared distance by which the skip-gram vectors of the shared words move.

    The formula in the paper divides by all words of the source and by the dimension. Words that the target lacks never
    move, so this formula mostly measures vocabulary size, and the values in the paper cannot come from it (SOURCES.md,
    Word vector variance). The column `wvv_eq` is the literal formula. When training continues on the target, the
    vocabulary, the output vectors and the word frequencies remain those of the source. WVV grows with the number of
    updates, so compare only sources of one target.
    """

    name: ClassVar[str] = "wvv"
    term: ClassVar[Term] = SHIFT
    unit: ClassVar[str] = "squared distance"
    prefer: ClassVar[Prefer] = "low"
    summary: ClassVar[str] = "How far the source's word vectors move when training continues on the target."
    looks_at: ClassVar[str] = "contexts of words"
    columns: ClassVar[Mapping[str, str]] = {
        "wvv_eq": "mean over all words of the source and all dimensions, the literal formula in the paper",
        "wvv_l2": "mean distance over the words in both corpora",
        "shared": "words in both corpora",
        "covered": "share of the target's words, with repetitions, that have a vector of the source",
    }
    Options: ClassVar[type[Config]] = WvvOptions

    def __init__(self, options: WvvOptions, *, seed: int, vocabulary_size: int) -> None:
        self._options, self._seed = options, seed

    def fit(self, source: Sample, report: Reporter) -> "Word2Vec":
        """Train skip-gram vectors on the source. Errors: CorpusError if no word is frequent enough."""
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
            seed=short_seed(self._seed),
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
                f"{target.name}: shares no word with the vectors of the source, so no vector can move; "
                "word vector variance needs texts in one language and script."
            )
        covered = coverage(learnt.wv.key_to_index, words)
        if covered < COVERED:
            raise CorpusError(
                f"{target.name}: only {covered:.0%} of its words have a vector of the source. Vectors without training "
                f"do not move, which would look close. Word vector variance needs {COVERED:.0%}: give more text in one "
                "language and script."
            )
        if len(shared) < FEW:
            report.note(
                f"word vector variance: only {len(shared)} words of {target.name} have a vector of the source; a mean "
                "over so few is unreliable, so give more text."
            )
        # Copy the source's model, because every target starts from it.
        moved = copy.deepcopy(learnt)
        self._train(moved, target, report)
        columns = distances(learnt.wv.vectors, moved.wv.vectors, shared) | {"covered": covered}
        o = self._options
        threads = "1 worker" if o.workers == 1 else f"{o.workers} workers, so not repeatable"
        convention = (
            f"mean over {len(shared):,} shared words of {len(learnt.wv):,} in the source, summed over {o.dimension} "
            f"dimensions; skip-gram, window {o.window}, {o.negative} negative, {o.skipgram_epochs} epochs per corpus, "
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
    """Return {column: how far word vectors moved}.

    before, after: `(v, d)` vectors. shared: rows of the words that also occur in the target, at least one.
    """
    # Use float64, because sums of small squared float32 differences lose the digits in which sources differ.
    squares = ((after.astype(np.float64) - before) ** 2).sum(axis=1)
    return {
        "wvv": float(squares[shared].mean()),
        "wvv_eq": float(squares.sum() / before.size),
        "wvv_l2": float(np.sqrt(squares[shared]).mean()),
        "shared": float(len(shared)),
    }


def coverage(vocabulary: Container[str], counts: Mapping[str, int]) -> float:
    """Return the share of a text's words, counted with repetition, that are in `vocabulary`, 0 to 1.

    counts: {token of the text: number of occurrences}. Only tokens with a letter count as words.
    """
    # Leave out digits and punctuation, because texts of different languages share them.
    words = {word: n for word, n in counts.items() if any(map(str.isalpha, word))}
    return sum(n for word, n in words.items() if word in vocabulary) / max(sum(words.values()), 1)


class _Feed:
    """Gives the sentences of a sample to gensim's reader thread, once per epoch.

    An exception in this thread would block the training for ever. If the run is cancelled, the sentences therefore just
    end, and `stopped` is the error to raise after the training.
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
            return False  # The run was cancelled in an earlier epoch, so skip this one.
        try:
            self._report.progress(self._done, self._total, "tokens")
            self._report.check()
        except Cancelled as stopped:
            self.stopped = stopped
        return self.stopped is None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence gensim's warnings that training continues and that sentences are missing, because both are intended."""
    logger = logging.getLogger("gensim")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


class VectorsConfig(WvvOptions):
    """Options of a `vectors` run: the corpus, and the training of its vectors."""

    corpus: str = option(..., "Corpus to learn word vectors from.", corpus=True)
    cap_tokens: int = option(0, "Maximum number of tokens to use; 0: all.", unit="tokens", ge=0)
    seed: int = option(0, "Seed of the random sample and of the vectors.", ge=0)


def run(config: VectorsConfig, job: Job) -> VectorsResult:
    """Train word vectors on a corpus, and write them to the run.

    Artifacts: `words.txt`, with one word per line, the most frequent first; `vectors.npy`, `(n, d)` float32.
    """
    corpus = job.corpus(config.corpus)
    cut: Tokens = "blanks" if corpus.labelled else corpus.tokens
    sample = draw(
        [corpus],
        name=corpus.name,
        cap=config.cap_tokens or None,
        seed=config.seed,
        tokens=cut,
        lowercase=False,
        report=job.context,
    )
    job.context.stage(f"learning word vectors of {corpus.name}")
    options = WvvOptions(**config.model_dump(include=set(WvvOptions.model_fields)))
    trained = Wvv(options, seed=config.seed, vocabulary_size=0).fit(sample, job.context).wv
    vectors.write_words(job.context.run, trained.index_to_key, trained.vectors)
    cosine = vectors.mean_cosine(trained.vectors)
    if warning := vectors.alike_words(cosine):
        job.context.note(warning)
    return VectorsResult(
        words=len(trained),
        dimension=int(trained.vector_size),
        tokens=sample.n_tokens,
        cut=cut,
        mean_cosine=cosine,
    )


KIND = Kind("vectors", VectorsConfig, run, VectorsResult, command=None)
