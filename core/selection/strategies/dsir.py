"""`dsir`: draws sentences by importance weights of their words and word pairs (Xie et al. 2023; SOURCES.md, DSIR)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from core.config import Config, option
from core.reporter import Reporter
from core.results import FloatArray, Role
from core.selection.base import Batch, Source, Strategy
from core.selection.evidence import Arrays, Evidence, Part, Parts, top
from core.selection.strategies.baselines import gumbel, noise_of
from core.stats.draws import sample
from core.text.words import tokenize

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import HashingVectorizer

_FLOOR = 1e-8  # added to every probability, as in the authors' code, so that no logarithm is infinite


class DsirOptions(Config):
    """Options of `dsir`."""

    buckets: int = option(10_000, "Number of buckets into which words and word pairs are hashed.", ge=100, le=1_000_000)
    sample: int = option(
        20_000, "Number of random sentences of the domain corpus whose words are counted.", unit="sentences", ge=100
    )
    smoothing: float = option(
        1.0,
        "Pseudo-counts per bucket, distributed like the counts of the domain corpus. 0: none, as in the paper.",
        ge=0,
        le=1000,
    )


class Dsir(Strategy):
    """The log importance weight of a sentence plus Gumbel noise, so that the best k are drawn without replacement.

    The weight is the sum of log p_T(b) - log p_D(b) over the hash buckets b of the sentence's lower-cased words and
    word pairs, with repetitions. The noise depends on id and seed only. A sentence without words is not scored.
    """

    name: ClassVar[str] = "dsir"
    in_short: ClassVar[str] = "drawn to match your word frequencies"
    unit: ClassVar[str] = "log weight"
    summary: ClassVar[str] = (
        "Draws sentences so that their words and word pairs are as frequent as in the task corpus (DSIR)."
    )
    trust: ClassVar[str] = (
        "It compares words only and needs no encoder, so it is fast. It finds fewer in-domain sentences if the task "
        "corpus is small."
    )
    Options: ClassVar[type[Config]] = DsirOptions

    options: DsirOptions
    _hash: "HashingVectorizer"
    _log_ratio: FloatArray  # (buckets,), log p_T - log p_D

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        self._hash = _vectorizer(self.options.buckets)
        report.stage("counting the words of the task corpus and of a sample of the domain corpus")
        task = self._counts([sentence.text for sentence in sources[Role.TASK].sentences()])
        report.check()
        domain = sources[Role.DOMAIN].corpus
        drawn = domain.take(sample(domain.ids(), self.options.sample, self.seed))
        self._log_ratio = log_ratio(task, self._counts([each.text for each in drawn]), self.options.smoothing)

    def score(self, batch: Batch) -> FloatArray:
        words = self._hash.transform([sentence.text for sentence in batch.sentences])
        result: FloatArray = words @ self._log_ratio + gumbel(batch.ids, self.seed)
        result[np.diff(words.indptr) == 0] = np.nan
        return result

    def learned(self) -> Arrays:
        """Return log p_T - log p_D per bucket."""
        return {"log_ratio": self._log_ratio}

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return one part per word or word pair, and one for the noise."""
        from sklearn.feature_extraction import FeatureHasher

        log_ratio = evidence.model["log_ratio"]
        grams = _vectorizer(len(log_ratio)).build_analyzer()(evidence.sentence.text)
        hasher = FeatureHasher(n_features=len(log_ratio), input_type="string", alternate_sign=False)
        values = dict[str, float]()
        for gram, bucket in zip(grams, hasher.transform([[gram] for gram in grams]).indices.tolist(), strict=True):
            values[gram] = values.get(gram, 0.0) + float(log_ratio[bucket])
        parts = [Part(name=f"“{gram}”", value=value) for gram, value in values.items()]
        return Parts(parts=[*top(parts, "other words and word pairs"), noise_of(evidence)])

    def _counts(self, texts: list[str]) -> FloatArray:
        counts: FloatArray = np.asarray(self._hash.transform(texts).sum(axis=0), dtype=np.float64).ravel()
        return counts


def log_ratio(task: FloatArray, domain: FloatArray, smoothing: float) -> FloatArray:
    """Return log p_T - log p_D per bucket, shape (b,), from the counts of T_C and of a sample of D_C, shape (b,).

    smoothing: mean number of pseudo-counts per bucket. They are uniform for D_C, and in proportion to p_D for T_C.
    """
    pseudo = smoothing * len(task)
    p_domain = (domain + smoothing) / max(domain.sum() + pseudo, 1)
    p_task = (task + pseudo * p_domain) / max(task.sum() + pseudo, 1)
    result: FloatArray = np.log(p_task + _FLOOR) - np.log(p_domain + _FLOOR)
    return result


def _vectorizer(buckets: int) -> "HashingVectorizer":
    from sklearn.feature_extraction.text import HashingVectorizer

    # Without alternating signs and scaling, the values are counts.
    return HashingVectorizer(
        n_features=buckets, norm=None, alternate_sign=False, ngram_range=(1, 2), tokenizer=tokenize, token_pattern=None
    )
