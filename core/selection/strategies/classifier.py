"""`classifier`: separates T_C from a sample of D_C by meaning and by wording (SOURCES.md, Domain classifier).

The class `CrossFitted` divides T_C into folds, too. No model then scores a sentence that it was trained on, and the
scores of T_C and D_C are comparable.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from core.config import Config, option
from core.reporter import Reporter
from core.results import FloatArray, IntArray, Role
from core.selection.base import Batch, Reads, Source, Strategy
from core.selection.evidence import WITHOUT_VECTORS, Arrays, Evidence, Part, Parts, top
from core.stats.draws import sample, short_seed
from core.text.words import tokenize

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import HashingVectorizer

    # one row per sentence: its embedding, or its words and word pairs as tf-idf
    View = FloatArray | csr_matrix
    # rows, and the fold of each row; None if the rows are in no fold
    Dealt = tuple[View, IntArray | None]


# number of hash buckets for words and word pairs
_BUCKETS = 2**18
# number of sentences per corpus that are searched for a word that both corpora contain
_LOOKED_AT = 2_000
# quantile of T_C's scores; sentences of D_C with higher scores resemble T_C
_LEAST_LIKE = 0.25
# number of consecutive rows that share a fold, about a few documents
_TOGETHER = 50
_GRAMS: dict[str, object] = {"ngram_range": (1, 2), "tokenizer": tokenize, "token_pattern": None}


class ClassifierOptions(Config):
    """Options of `classifier`."""

    sample: int = option(
        20_000, "Number of domain sentences that serve as examples of other text.", unit="sentences", ge=100
    )
    regularisation: float = option(10.0, "Inverse strength of the L2 penalty (scikit-learn's C).", gt=0)
    folds: int = option(5, "Number of folds. No model scores a domain sentence that it was trained on.", ge=2, le=20)


class DomainClassifier(Strategy):
    """The sum of two log-odds of "from T_C" against "from D_C", each in standard deviations over D_C's sample.

    One logistic regression uses the embedding (length 1), another one hashed words and word pairs (binary tf-idf,
    length 1). The first captures the topic, the second the register. Each alone finds fewer in-domain sentences.
    Sentences of D_C are assigned to folds by their id, so copies of one sentence share a fold. Fold f is scored by
    models trained on T_C and on the sampled sentences of the other folds. D_C also contains sentences of T_C's
    domain, so the score is a ranking, not a probability.
    """

    name: ClassVar[str] = "classifier"
    in_short: ClassVar[str] = "like your text, unlike the rest; the default"
    unit: ClassVar[str] = "standard deviations"
    reads: ClassVar[Reads] = "both"
    summary: ClassVar[str] = (
        "Learns what distinguishes the task corpus from the rest of the domain corpus, by meaning and wording."
    )
    trust: ClassVar[str] = "The default: it found the most hidden in-domain sentences in our tests (see the README)."
    Options: ClassVar[type[Config]] = ClassifierOptions

    options: ClassifierOptions
    # (buckets,), inverse document frequencies
    idf: FloatArray
    # one matrix per view, (folds, features + 1); the last column is the intercept
    weights: list[FloatArray]

    @classmethod
    def cascades(cls, options: Any) -> bool:
        """Return True: a score depends on the sentence's own text and vector only."""
        return True

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        self._hash = hasher()
        domain = sources[Role.DOMAIN]
        ids = domain.corpus.ids()
        sampled_rows = self.learns_from(ids)
        report.stage("reading the words of the task corpus and of a sample of the domain corpus")
        task_words = self._hash.transform([sentence.text for sentence in sources[Role.TASK].sentences()])
        rest_texts = [sentence.text for sentence in domain.corpus.take(sampled_rows)]
        rest_words = self._hash.transform(rest_texts)
        if not _words(rest_texts) & _words(sentence.text for sentence in sources[Role.TASK].sentences()):
            report.note(
                "classifier: the task corpus and the domain corpus share no word, so words cannot separate them; are "
                "both in the same language?"
            )
        self.idf = inverse_frequency(task_words, rest_words)
        rest_vectors = np.asarray(cast(FloatArray, domain.vectors)[sampled_rows], dtype=np.float32)
        embedded, worded = self._task_folds(sources[Role.TASK])
        views: list[tuple[Dealt, View]] = [
            ((sources[Role.TASK].learnable()[0], embedded), rest_vectors),
            ((weighted(task_words, self.idf), worded), weighted(rest_words, self.idf)),
        ]
        report.stage("training the classifier")
        self.weights = self._fit_views(views, self._fold(ids[sampled_rows]), report)

    def score(self, batch: Batch) -> FloatArray:
        assert batch.vectors is not None
        vectors = np.asarray(batch.vectors, dtype=np.float32)
        wording = self.without_vectors(batch.ids, [sentence.text for sentence in batch.sentences])
        meaning = decide(vectors, self.weights[0], self._fold(batch.ids))
        result: FloatArray = np.asarray(meaning + wording, dtype=np.float64)
        result[~vectors.any(axis=1)] = np.nan  # an empty sentence has no score
        return result

    def learns_from(self, ids: IntArray) -> IntArray:
        """Return the rows of the sample that represents D_C."""
        return sample(ids, self.options.sample, self.seed)

    def without_vectors(self, ids: IntArray, texts: Sequence[str]) -> FloatArray:
        """Return the log-odds of the wording, `(n,)`, in standard deviations. Embeddings are not used."""
        return decide(weighted(self._hash.transform(texts), self.idf), self.weights[1], self._fold(ids))

    def learned(self) -> Arrays:
        """Return the weights of both models (meaning and wording), and the idf of each bucket."""
        meaning, wording = self.weights
        return {"meaning": meaning, "wording": wording.astype(np.float32), "idf": self.idf.astype(np.float32)}

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return the parts of w x + b of both models: the embedding, each word or word pair, and both intercepts.

        If the vectors are missing, the part of the embedding is the score minus all other parts.
        """
        model = evidence.model
        fold = int(evidence.sentence.id, 16) % len(model["meaning"])
        meaning, wording = model["meaning"][fold], model["wording"][fold]
        grams = _grams_of_buckets(evidence.sentence.text, len(wording) - 1)
        # Length by which `weighted` divides the tf-idf row; 1.0 if the sentence has no words.
        length = sum(float(model["idf"][bucket]) ** 2 for bucket in grams) ** 0.5 or 1.0
        words = [
            Part(name=f"“{gram}”", value=float(model["idf"][bucket]) * float(wording[bucket]) / length)
            for bucket, gram in grams.items()
        ]
        constant = float(meaning[-1]) + float(wording[-1])
        if evidence.vector is None:
            product = evidence.score - constant - sum(word.value for word in words)
        else:
            product = float(np.asarray(evidence.vector, np.float64) @ meaning[:-1])
        return Parts(
            parts=[
                Part(name="meaning (embedding)", value=product),
                *top(words, "other words and word pairs"),
                Part(name="constant of the model (intercepts)", value=constant),
            ],
            notes=() if evidence.vector is not None else (WITHOUT_VECTORS,),
        )

    def _task_folds(self, task: Source) -> tuple[IntArray | None, IntArray | None]:
        """Return the fold of each T_C row for the embedding view and for the word view.

        None instead of folds if every model of the view trains on all of T_C.
        """
        return None, None

    def _fit_views(self, views: "Sequence[tuple[Dealt, View]]", folds: IntArray, report: Reporter) -> list[FloatArray]:
        """Return one matrix of weights per view: one for the embedding, one for the words.

        views: for each view, the rows of T_C and those of D_C's sample. folds: fold of each sampled row.
        """
        return [self._fit(task, rest, folds, report) for task, rest in views]

    def _fit(self, task: "Dealt", rest: "View", folds: IntArray, report: Reporter) -> FloatArray:
        """Return weights `(folds, features + 1)`, scaled so that D_C's sample has scores of mean 0 and variance 1."""
        from sklearn.linear_model import LogisticRegression

        rows, held = task
        weights = np.empty((self.options.folds, rest.shape[1] + 1))
        for fold in range(self.options.folds):
            report.check()
            others = np.flatnonzero(folds != fold)
            model = LogisticRegression(
                C=self.options.regularisation,
                # Without balanced weights, the intercept would mostly reflect that T_C is smaller than the sample.
                class_weight="balanced",
                solver="liblinear",
                random_state=short_seed(self.seed),
            )
            taught = rows if held is None else rows[np.flatnonzero(held != fold)]
            model.fit(_stacked(taught, rest[others]), np.repeat([1, 0], [taught.shape[0], len(others)]))
            weights[fold] = np.append(model.coef_[0], model.intercept_)
            report.progress(fold + 1, self.options.folds, "folds")
        # The scale of log-odds depends on the penalty. Standardise it, so that both views have equal weight. `decide`
        # scores each row by a model that was not trained on the row.
        scores = decide(rest, weights, folds)
        weights[:, -1] -= scores.mean()
        return weights / max(float(scores.std()), 1e-12)

    def _fold(self, ids: IntArray) -> IntArray:
        return (ids % np.uint64(self.options.folds)).astype(np.int64)


def hasher() -> "HashingVectorizer":
    """Return a vectoriser. It maps texts to `(n, buckets)`: 1 for each bucket with a word or word pair of the text."""
    from sklearn.feature_extraction.text import HashingVectorizer

    # No alternating signs: a bucket with several words of a text has the value 1, as `explain` assumes.
    return HashingVectorizer(n_features=_BUCKETS, binary=True, norm=None, alternate_sign=False, **_GRAMS)


def inverse_frequency(*parts: "csr_matrix") -> FloatArray:
    """Return the inverse document frequency of each bucket, `(buckets,)`, over all sentences of `parts`."""
    counts = np.asarray(sum((part > 0).sum(axis=0) for part in parts)).ravel()
    result: FloatArray = np.log((1 + sum(part.shape[0] for part in parts)) / (1 + counts)) + 1
    return result


def weighted(words: "csr_matrix", idf: FloatArray) -> "csr_matrix":
    """Return the rows of `hasher`, `(n, buckets)`, multiplied by `idf` and scaled to length 1."""
    from scipy.sparse import csr_matrix
    from sklearn.preprocessing import normalize

    result: csr_matrix = normalize(csr_matrix(words.multiply(idf)))
    return result


def _words(texts: Iterable[str]) -> set[str]:
    """Return all words that contain a letter, in lower case, from the first `_LOOKED_AT` texts."""
    words = (word for text in islice(texts, _LOOKED_AT) for word in tokenize(text.lower()))
    return {word for word in words if any(letter.isalpha() for letter in word)}


def _stacked(above: "View", below: "View") -> "View":
    """Return one matrix with the rows of two matrices, which are both dense or both sparse."""
    if isinstance(above, np.ndarray) or isinstance(below, np.ndarray):
        return np.concatenate([above, below])
    from scipy.sparse import vstack

    return vstack([above, below])


def decide(features: "View", weights: FloatArray, folds: IntArray) -> FloatArray:
    """Return w x + b of each row, `(n,)`, with the weights of the row's fold."""
    decisions: FloatArray = np.asarray(features @ weights[:, :-1].T) + weights[:, -1]
    result: FloatArray = decisions[np.arange(len(folds)), folds]
    return result


def _grams_of_buckets(text: str, n: int) -> dict[int, str]:
    """Return {bucket: words and word pairs of the text that are hashed into it}, for `n` buckets."""
    from sklearn.feature_extraction import FeatureHasher
    from sklearn.feature_extraction.text import HashingVectorizer

    grams = list(dict.fromkeys(HashingVectorizer(**_GRAMS).build_analyzer()(text)))
    hasher = FeatureHasher(n_features=n, input_type="string", alternate_sign=False)
    names: dict[int, str] = {}
    for gram, bucket in zip(grams, hasher.transform([[gram] for gram in grams]).indices.tolist(), strict=True):
        names[bucket] = f"{names[bucket]} / {gram}" if bucket in names else gram
    return names


class CrossFitted(DomainClassifier):
    """Scores sentences of both corpora by models trained without the sentence and its block (SOURCES.md, Prevalence).

    Folds consist of blocks of rows. Sentences of one document share rare words. A model trained on part of a T_C
    document would therefore score the rest of the document higher than any sentence of D_C.
    """

    name: ClassVar[str] = "prevalence"

    _ids: IntArray  # (m,), ids of both corpora, ascending
    _fold_of: IntArray

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        n = self.options.folds
        task, domain = sources[Role.TASK].corpus.ids(), sources[Role.DOMAIN].corpus.ids()
        together = min(_TOGETHER, -(-len(task) // n))  # so that a small T_C has rows in every fold
        folds = [np.arange(len(task)) // together % n, np.arange(len(domain)) // _TOGETHER % n]
        # Equal sentences share the fold of the first one. T_C comes first, so copies in D_C get the fold from T_C.
        self._ids, first = np.unique(np.concatenate([task, domain]), return_index=True)
        self._fold_of = np.concatenate(folds)[first]
        super().prepare(sources, report)

    def _fold(self, ids: IntArray) -> IntArray:
        folds: IntArray = self._fold_of[np.searchsorted(self._ids, ids)]
        return folds

    def _fit_views(self, views: "Sequence[tuple[Dealt, View]]", folds: IntArray, report: Reporter) -> list[FloatArray]:
        """Fit twice, and return the second weights: the second fit leaves out D_C's sentences that resemble T_C.

        As negative examples, these sentences would be wrong. If most of D_C resembles T_C, return the first weights.
        """
        models = super()._fit_views(views, folds, report)
        alike = np.ones(len(folds), dtype=bool)
        for (task, rest), weights in zip(views, models, strict=True):
            # Both views must agree. A sentence with only T_C's subject, or only its wording, stays a negative example.
            (rows, held), scores = task, decide(rest, weights, folds)
            assert held is not None
            alike &= scores >= np.quantile(decide(rows, weights, held), _LEAST_LIKE)
        others = np.flatnonzero(~alike)
        # If most of D_C resembles T_C, too few sentences are left for a second fit. Keep the first one.
        if 2 * len(others) < len(folds):
            return models
        return super()._fit_views([(task, rest[others]) for task, rest in views], folds[others], report)

    def _task_folds(self, task: Source) -> tuple[IntArray, IntArray]:
        ids = task.corpus.ids()
        return self._fold(ids[task.learnable_rows()]), self._fold(ids if task.keep is None else ids[task.keep])
