"""`classifier`: T_C told from a sample of D_C by meaning and by the words used (SOURCES.md, Domain classifier)."""

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import numpy as np

from core.config import Config, option
from core.reporter import Reporter
from core.results import FloatArray, IntArray, Prefer, Role
from core.selection.base import Batch, Model, Reads, Source
from core.stats.draws import uniform

_BUCKETS = 2**18  # of hashed words and word pairs
WORD = r"\w+|[^\w\s]"  # as in core.text.words


class ClassifierOptions(Config):
    """Options of `classifier`."""

    sample: int = option(20_000, "How many sentences of D_C stand for 'everything else'.", unit="sentences", ge=100)
    regularisation: float = option(10.0, "Inverse strength of the L2 penalty (scikit-learn's C).", gt=0)
    folds: int = option(5, "Folds; a sentence is never scored by a model that saw it as D_C's.", ge=2, le=20)


class DomainClassifier:
    """The sum of two log-odds of "from T_C" against "from D_C", each in standard deviations over D_C's sample.

    Two logistic regressions, one on the embedding (length 1), one on hashed words and word pairs (binary tf-idf,
    length 1): the first knows that a symphony is music, the second knows the register; each alone finds fewer.
    Sentences of D_C are dealt into folds by their id, so copies of one sentence share a fold, and fold f is scored
    by models trained on T_C and on the sampled sentences of the other folds. D_C holds sentences that belong to
    T_C's domain too, so the score is a ranking, not a probability.
    """

    name: ClassVar[str] = "classifier"
    unit: ClassVar[str] = "standard deviations"
    prefer: ClassVar[Prefer] = "high"
    needs: ClassVar[frozenset[Role]] = frozenset()
    reads: ClassVar[Reads] = "both"
    models: ClassVar[frozenset[Model]] = frozenset()
    summary: ClassVar[str] = "Learns what tells T_C from the rest of D_C, by meaning and by wording, and prefers it."
    trust: ClassVar[str] = "The default: it found the most hidden in-domain sentences in our tests (see the README)."
    Options: ClassVar[type[Config]] = ClassifierOptions

    def __init__(self, options: ClassifierOptions, seed: int) -> None:
        self.options, self.seed = options, seed
        self.idf: FloatArray  # (buckets,)
        self.weights: list[FloatArray]  # a view: (folds, features + 1), intercept last, in standard deviations

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer

        self._hash = HashingVectorizer(
            n_features=_BUCKETS, ngram_range=(1, 2), token_pattern=WORD, binary=True, norm=None, alternate_sign=False
        )
        domain = sources[Role.DOMAIN]
        ids = domain.corpus.ids()
        drawn = np.sort(np.argsort(uniform(ids, self.seed), kind="stable")[: self.options.sample])
        report.stage("reading the words of T_C and of a sample of D_C")
        task_words = self._hash.transform([sentence.text for sentence in sources[Role.TASK].sentences()])
        rest_words = self._hash.transform([sentence.text for sentence in domain.corpus.take(drawn)])
        seen = np.asarray((task_words > 0).sum(axis=0) + (rest_words > 0).sum(axis=0)).ravel()
        self.idf = np.log((1 + task_words.shape[0] + len(drawn)) / (1 + seen)) + 1
        rest_vectors = np.asarray(cast(FloatArray, domain.vectors)[drawn], dtype=np.float32)
        views = (
            (sources[Role.TASK].learnable()[0], rest_vectors),
            (self._weighted(task_words), self._weighted(rest_words)),
        )
        report.stage("telling T_C from D_C")
        self.weights = [self._fit(task, rest, self._fold(ids[drawn]), report) for task, rest in views]

    def score(self, batch: Batch) -> FloatArray:
        assert batch.vectors is not None
        vectors = np.asarray(batch.vectors, dtype=np.float32)
        words = self._weighted(self._hash.transform([sentence.text for sentence in batch.sentences]))
        folds = self._fold(batch.ids)
        scores = sum(
            (_decide(view, weights, folds) for view, weights in zip((vectors, words), self.weights, strict=True))
        )
        result: FloatArray = np.asarray(scores, dtype=np.float64)
        result[~vectors.any(axis=1)] = np.nan  # an empty sentence looks like nothing
        return result

    def _fit(self, task: Any, rest: Any, folds: IntArray, report: Reporter) -> FloatArray:
        """`(folds, features + 1)`; out of fold, the sample's scores have mean 0 and deviation 1."""
        from scipy.sparse import issparse, vstack
        from sklearn.linear_model import LogisticRegression

        stack = vstack if issparse(task) else np.concatenate
        weights = np.empty((self.options.folds, task.shape[1] + 1))
        for fold in range(self.options.folds):
            report.check()
            others = np.flatnonzero(folds != fold)
            model = LogisticRegression(
                C=self.options.regularisation, class_weight="balanced", solver="liblinear", random_state=self.seed
            )
            model.fit(stack([task, rest[others]]), np.repeat([1, 0], [task.shape[0], len(others)]))
            weights[fold] = np.append(model.coef_[0], model.intercept_)
            report.progress(fold + 1, self.options.folds, "folds")
        scores = _decide(rest, weights, folds)
        weights[:, -1] -= scores.mean()
        return weights / max(float(scores.std()), 1e-12)

    def _weighted(self, words: Any) -> Any:
        """Sparse `(n, buckets)` rows of counts as tf-idf rows of length 1."""
        from sklearn.preprocessing import normalize

        return normalize(words.multiply(self.idf).tocsr())

    def _fold(self, ids: IntArray) -> IntArray:
        return (ids % np.uint64(self.options.folds)).astype(np.int64)


def _decide(features: Any, weights: FloatArray, folds: IntArray) -> FloatArray:
    """`(n,)`: each row's w x + b by its own fold's model."""
    every: FloatArray = np.asarray(features @ weights[:, :-1].T) + weights[:, -1]
    result: FloatArray = every[np.arange(len(folds)), folds]
    return result
