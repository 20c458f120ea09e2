"""`ner-selected`: number of entities that a tagger trained on L_C finds in a sentence (Mahapatra et al. 2022, 3.1)."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np

from core.config import Config, option
from core.errors import CorpusError
from core.reporter import Reporter
from core.results import FloatArray, IntArray, Role
from core.selection.base import AdaptedOptions, Batch, Model, Reads, Source, Strategy
from core.selection.evidence import Arrays, Evidence, Part, Parts, Spans

Rank = Literal["count", "density", "type-balanced", "rarity"]

# The mean posterior is rounded down to multiples of 2^-20, so that a second tie-break by density fits into a double.
_STEPS = 2.0**20
# Factor of the tie-break if scores are not counts. The tie-break is then below 1e-6. Two different densities differ by
# more than that if the sentences have up to 1,000 tokens, so the tie-break does not change their order.
HAIR = 1e-6


class PredictionOptions(AdaptedOptions):
    """Options of `ner-selected`."""

    rank: Rank = option(
        "count",
        "Rank by the number of entities (count), by entities per token (density), by rounds in which each type takes "
        "its next best sentence (type-balanced), or by entities weighted by how rare their type is (rarity).",
    )
    folds: int = option(
        1,
        "Number of taggers, each trained without one fold of the labels; their counts are averaged. For a labelled "
        "sentence, only the tagger that did not train on it counts. 1: a single tagger, as in the paper.",
        ge=1,
        le=10,
    )


class NerSelected(Strategy):
    """The number of entities that a tagger trained on L_C finds, plus a tie-break below 1: 3.97 means three entities.

    Ties are broken by mean posterior of the entities (to 2^-20), then by entities per token, then by row. With k
    taggers the score is a mean of counts, and the tie-break is below 1/k, the smallest difference of two means.

    density: entities over tokens, plus the tie-break times 1e-6. rarity: sum over the entities of
    1 / log(2 + number of entities of the type in D_C), plus the tie-break times 1e-6. type-balanced: in round r, every
    type takes its r-th best sentence by count. The score is -r plus the tie-break, so -11.2 was taken in round 12. If
    two types take the same sentence, each of them uses a turn. Sentences without entities come last.
    """

    name: ClassVar[str] = "ner-selected"
    in_short: ClassVar[str] = "full of entities that a tagger finds"
    unit: ClassVar[str] = "entities (+ tie-break)"
    needs: ClassVar[frozenset[Role]] = frozenset({Role.LABELLED})
    reads: ClassVar[Reads] = "spans"
    models: ClassVar[frozenset[Model]] = frozenset({"ner"})
    summary: ClassVar[str] = "Trains a tagger on the labels and prefers sentences in which it finds many entities."
    trust: ClassVar[str] = (
        "The best on average in Mahapatra et al. (2022). It prefers long sentences, and it overlooks sentences whose "
        "entity types the tagger misses: see the options."
    )
    Options: ClassVar[type[Config]] = PredictionOptions

    options: PredictionOptions
    # ids of L_C's sentences, ascending
    _labelled: IntArray
    _types: tuple[str, ...]
    # for `rarity`: (t,), value of an entity of each type
    _worth: FloatArray
    # for `type-balanced`: t arrays (n,), count plus tie-break of each sentence of D_C, ascending
    _rivals: list[FloatArray]

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        domain = sources[Role.DOMAIN]
        self._labelled = np.unique(sources[Role.LABELLED].corpus.ids())
        self._types = tuple(sorted({name for spans in domain.spans for name in spans.types}))
        if not self._types:
            raise CorpusError(f"{sources[Role.LABELLED].corpus.name}: contains no entity; give labelled training data.")
        if self.options.rank not in ("rarity", "type-balanced"):
            return
        report.stage("counting the entities of the domain corpus")
        # Read all of D_C first, because a type's rarity and its queue of sentences depend on the whole corpus.
        counts, keys = np.zeros(len(self._types)), []
        for batch in domain.batches(self.reads):
            report.check()
            of_type, fraction = self._counts_and_ties(batch)
            counts += of_type.sum(axis=0)
            keys.append(np.where(of_type > 0, of_type + fraction[:, None], 0))
        self._worth = 1 / np.log(2 + counts)
        self._rivals = list(np.sort(np.concatenate(keys), axis=0).T)

    def score(self, batch: Batch) -> FloatArray:
        of_type, fraction = self._counts_and_ties(batch)
        scores: FloatArray
        match self.options.rank:
            case "count":
                scores = of_type.sum(axis=1) + fraction
            case "density":
                scores = of_type.sum(axis=1) / np.maximum(_lengths(batch), 1) + HAIR * fraction
            case "rarity":
                scores = of_type @ self._worth + HAIR * fraction
            case "type-balanced":
                scores = fraction - self._rounds(of_type, fraction)
        return scores

    def learned(self) -> Arrays:
        """For `rarity`, return the entity types and the value of an entity of each type."""
        return {"types": np.array(self._types), "worth": self._worth} if self.options.rank == "rarity" else {}

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return the parts of a score: one per entity, and one for the tie-break (SOURCES.md, Predicted entities).

        For `type-balanced`, which takes sentences in rounds, the round replaces the entities.
        """
        if not evidence.spans:
            raise CorpusError("The predicted entities were removed.")
        counting, tokens = _may_count(evidence), evidence.sentence.tokens
        entities = [
            (entity.type, " ".join(tokens[entity.start : entity.end]))
            for spans in counting
            for entity in spans.entities(0)
        ]
        mean = sum(float(spans.confidence()[0]) for spans in counting) / max(len(entities), 1)
        density = len(entities) / len(counting) / (len(tokens) + 1)
        fraction = float(tie_break(np.array([mean]), np.array([density]))[0]) / len(evidence.spans)
        tie = "tie-break: confidence of the tagger, then entities per token"
        rank = evidence.options["rank"]
        if rank == "type-balanced":
            rounds = round(fraction - evidence.score)
            taken = Part(name=f"taken in round {rounds:,} (each round lowers the score by 1)", value=-float(rounds))
            return Parts(parts=[taken, Part(name=tie, value=fraction)])
        same = {"count": 1.0, "density": 1 / max(len(tokens), 1)}.get(rank, 0.0)  # value of an entity of any type
        worth = {}
        if rank == "rarity":
            worth = dict(zip(evidence.model["types"].tolist(), evidence.model["worth"].tolist(), strict=True))
        parts = [
            Part(name=f"{words} ({kind})", value=worth.get(kind, same) / len(counting)) for kind, words in entities
        ]
        return Parts(parts=[*parts, Part(name=tie, value=fraction * (1.0 if rank == "count" else HAIR))])

    def _counts_and_ties(self, batch: Batch) -> tuple[FloatArray, FloatArray]:
        """Return entities per type `(n, t)`, as means over the taggers (see `_may_count`), and the tie-break `(n,)`."""
        k = len(batch.spans)
        assert k == self.options.folds
        may = np.ones((k, len(batch)), dtype=bool)
        # A tagger finds every entity of its training sentences, so its counts for these sentences are left out.
        if k > 1:
            copies = np.isin(batch.ids, self._labelled)
            may[:, copies] = fold(batch.ids[copies], k) == np.arange(k)[:, None]
        counts = np.zeros((len(batch), len(self._types)))
        confidence = np.zeros(len(batch))
        for spans, counting in zip(batch.spans, may, strict=True):
            columns = [self._types.index(name) for name in spans.types]
            counts[:, columns] += spans.counts() * counting[:, None]
            confidence += spans.confidence() * counting
        total = counts.sum(axis=1)
        mean = np.clip(confidence / np.maximum(total, 1), 0, 1)
        counts /= may.sum(axis=0)[:, None]
        density = counts.sum(axis=1) / (_lengths(batch) + 1)  # below 1, because every entity has its own token
        return counts, tie_break(mean, density) / k

    def _rounds(self, of_type: FloatArray, fraction: FloatArray) -> FloatArray:
        """Return, for each sentence, the first round in which an entity type takes it, `(n,)`; ties share a round.

        of_type, fraction: results of `_counts_and_ties`.
        """
        n = len(self._rivals[0])
        rounds = np.full(len(of_type), n + 1.0)
        for counts, rivals in zip(of_type.T, self._rivals, strict=True):
            # A type first takes the sentences of D_C with a larger count plus tie-break, one per round.
            better = n - np.searchsorted(rivals, counts + fraction, side="right")
            rounds = np.where(counts > 0, np.minimum(rounds, better + 1), rounds)
        return rounds


def tie_break(confidence: FloatArray, density: FloatArray) -> FloatArray:
    """Return the tie-break `(n,)`, below 1: ordered by mean posterior, then by entities per token (below 1)."""
    fraction: FloatArray = (np.floor(confidence * _STEPS) + density) / (_STEPS + 1)
    return fraction


def fold(ids: IntArray, folds: int) -> IntArray:
    """Return the fold of each sentence of L_C by its id, `(n,)`, so that copies of one sentence share a fold."""
    return (ids.astype(np.uint64) % np.uint64(folds)).astype(np.int64)


def _may_count(evidence: Evidence) -> Sequence[Spans]:
    """Return the entities of the taggers to average: for a sentence from L_C, only the tagger not trained on it.

    Errors: CorpusError if L_C was removed.
    """
    k = len(evidence.spans)
    if k == 1:
        return evidence.spans
    if evidence.labelled is None:
        raise CorpusError("the labels were removed.")
    id = np.array([int(evidence.sentence.id, 16)], dtype=np.uint64)
    if not np.isin(id, evidence.labelled.ids())[0]:
        return evidence.spans
    return [evidence.spans[int(fold(id, k)[0])]]


def _lengths(batch: Batch) -> IntArray:
    return np.array([len(sentence.tokens) for sentence in batch.sentences], dtype=np.int64)
