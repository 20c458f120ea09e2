"""Controls that every other strategy must beat (SOURCES.md, Random controls)."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from core.corpora.corpus import Corpus
from core.reporter import Reporter
from core.results import FloatArray, IntArray, Role
from core.selection.alike import WordsOf, own, retokenized, words_of
from core.selection.base import Batch, Reads, Source, Strategy
from core.selection.evidence import Arrays, Evidence, Part, Parts
from core.stats.draws import uniform


class Random(Strategy):
    """Random sentences with equal chances, the most important control. None of the five source papers uses it."""

    name: ClassVar[str] = "random"
    in_short: ClassVar[str] = "at random: a control"
    topical: ClassVar[bool] = False
    unit: ClassVar[str] = "chance"
    reads: ClassVar[Reads] = "ids"
    summary: ClassVar[str] = "Picks sentences at random, the same ones for the same seed."
    trust: ClassVar[str] = (
        "Always run it in addition to another strategy: a gain that random text brings too is not due to the strategy."
    )

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        """Do nothing: a random score needs no fitting."""

    def score(self, batch: Batch) -> FloatArray:
        return uniform(batch.ids, self.seed)

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return one part: the random number."""
        return Parts(
            parts=[Part(name=f"random number of this sentence with seed {evidence.seed}", value=evidence.score)]
        )


# Smallest sentence length, in tokens, of each length bin after the first. The first bin has lengths below 5.
EDGES = np.array([5, 8, 11, 14, 17, 20, 24, 28, 33, 40, 50, 64, 90, 128])


class LengthMatchedRandom(Strategy):
    """Random sentences with T_C's distribution of lengths, a control for strategies that only match lengths.

    Sentences are drawn without replacement, with importance weights for 15 length bins, by Gumbel top-k (as in DSIR,
    Xie et al. 2023). The tokens of both corpora are counted by one rule (SOURCES.md, Words).
    """

    name: ClassVar[str] = "length-matched-random"
    in_short: ClassVar[str] = "at random, with your sentence lengths: a control"
    topical: ClassVar[bool] = False
    unit: ClassVar[str] = "log weight"
    summary: ClassVar[str] = "Picks random sentences, with the same distribution of lengths as the task corpus."
    trust: ClassVar[str] = "The control for strategies that favour long or short sentences."

    _log_weight: FloatArray  # (15,), one per length bin
    _words: WordsOf

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        task, domain = sources[Role.TASK], sources[Role.DOMAIN]
        of_task, self._words = words_of([task.corpus, domain.corpus])
        lengths = _lengths(task.corpus, of_task, report)
        share = _shares(lengths if task.keep is None else lengths[task.keep])
        self._log_weight = np.log(share) - np.log(_shares(_lengths(domain.corpus, self._words, report)))

    def score(self, batch: Batch) -> FloatArray:
        lengths = np.array([len(self._words(sentence)) for sentence in batch.sentences], dtype=np.int64)
        result: FloatArray = self._log_weight[np.digitize(lengths, EDGES)] + gumbel(batch.ids, self.seed)
        return result

    def learned(self) -> Arrays:
        """Return the log weights, and the flag `retokenized` if the tokens of D_C are not counted as stored."""
        arrays = {"log_weight": self._log_weight}
        return {**arrays, "retokenized": np.ones(1, np.bool_)} if self._words is retokenized else arrays

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return two parts: the log weight of the length, and noise (Gumbel top-k)."""
        n = len((retokenized if "retokenized" in evidence.model else own)(evidence.sentence))
        weight = evidence.model["log_weight"][np.digitize(n, EDGES)]
        likelier = f"log of how much more frequent sentences of about {n} tokens are in the task corpus"
        return Parts(parts=[Part(name=likelier, value=float(weight)), noise_of(evidence)])


def gumbel(ids: IntArray, seed: int) -> FloatArray:
    """Return standard Gumbel noise, shape (n,), that depends on id and seed only.

    The k sentences with the largest sum of log weight and noise are k draws without replacement. Their chances are in
    proportion to the weights (Gumbel top-k, Kool et al. 2019).
    """
    result: FloatArray = -np.log(-np.log(uniform(ids, seed)))
    return result


def noise_of(evidence: Evidence) -> Part:
    """Return the Gumbel noise of the explained sentence as a part of its score."""
    id = np.array([int(evidence.sentence.id, 16)], dtype=np.uint64)
    return Part(
        name=f"random number of this sentence with seed {evidence.seed}", value=float(gumbel(id, evidence.seed)[0])
    )


def _lengths(corpus: Corpus, words: WordsOf, report: Reporter) -> IntArray:
    """Return the number of tokens of each sentence by the rule `words`, shape (n,)."""
    if words is own and not corpus.labelled and corpus.tokens == "words":
        return corpus.lengths()
    counts = list[int]()
    for batch in corpus.batches():
        report.check()
        counts += [len(words(sentence)) for sentence in batch]
    return np.array(counts, dtype=np.int64)


def _shares(lengths: IntArray) -> FloatArray:
    counts = np.bincount(np.digitize(lengths, EDGES), minlength=len(EDGES) + 1)
    result: FloatArray = (counts + 0.5) / (counts.sum() + 0.5 * len(counts))  # + 0.5, because log 0 is infinite
    return result
