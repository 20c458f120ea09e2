"""Strategies that score by the cosine to T_C's sentence vectors (Mahapatra et al. 2022, 3.1).

`cos-pretrained`, `cos-mlm` and `cos-mlm-ner` compare a sentence with query vectors of T_C (SOURCES.md, Cosine to T_C).
The last two use encoders whose pre-training was continued on T_C. `knn` compares with single sentences of T_C
(SOURCES.md, Neighbours). Matrix products run in blocks that fit into a core's cache.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np

from core.config import Config, option
from core.models.devices import side_by_side
from core.reporter import Reporter, Silent
from core.results import FloatArray, Index, IntArray, Role, Rows
from core.selection.base import AdaptedOptions, Batch, Model, Reads, Source, Strategy
from core.selection.evidence import SHOWN, Arrays, Evidence, Part, Parts, top, unit
from core.selection.strategies.round_robin import Turns, explained
from core.stats.draws import short_seed

if TYPE_CHECKING:
    import torch

# Number of rows converted to float32 at a time. They stay in a core's cache: 1.5 MB for vectors of 384 numbers.
BLOCK = 1024
# Number of blocks that a thread computes per task. With 2 instead of 16, a query took about a third longer.
_TURN = 16
Query = Literal["raw-mean", "unit-mean", "k-means", "contrastive"]
# number of D_C's rows from which the mean, the covariance and the quota are estimated
_SAMPLE = 20_000
# largest number of topics that `best_k` tries
_MOST_TOPICS = 20
# number of T_C's sentences in a silhouette, which needs all pairwise distances
_SILHOUETTE = 2_000


def best_k(task: FloatArray, seed: int) -> int:
    """Return the number of clusters, 2 to 20, with the best silhouette; 1 if there are too few sentences."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    rows = np.unique(np.linspace(0, len(task) - 1, min(len(task), _SILHOUETTE)).astype(np.int64))
    sample = np.asarray(task[rows], dtype=np.float32)
    # A silhouette needs more distinct rows than clusters.
    most = min(_MOST_TOPICS, len(np.unique(sample, axis=0)) - 1)
    scores = {
        k: float(silhouette_score(sample, KMeans(k, n_init=4, random_state=short_seed(seed)).fit_predict(sample)))
        for k in range(2, most + 1)
    }
    # Ties go to the fewest topics, because max returns the first.
    return max(scores, key=scores.__getitem__, default=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Correction of cosines so that every topic has the same share of S_C as of T_C, for every budget.

    If a topic's share of T_C is w, the topic's i-th nearest sentence should have rank i / w among all sentences. It
    therefore gets the cosine of the sentence at that rank. Ranks are interpolated by cosine in a sample of D_C, so that
    a score depends only on its own sentence.

    shares: `(k,)`, share of T_C that is nearest to each topic. sample: `(n,)`, cosines of D_C's sentences to their
    nearest topic, grouped by topic, descending. counts: `(k,)`, number of sentences per topic.
    """

    shares: FloatArray
    sample: FloatArray
    counts: IntArray

    @classmethod
    def of(cls, task: FloatArray, domain: FloatArray) -> Self:
        """Return the quota of every topic.

        task, domain: cosines of T_C's sentences, and of a sample of D_C's sentences, to the k topics, `(n, k)`.
        """
        k, nearest = task.shape[1], domain.argmax(axis=1)
        largest = domain.max(axis=1).astype(np.float64)
        order = np.lexsort((-largest, nearest))
        return cls(
            shares=np.bincount(task.argmax(axis=1), minlength=k) / len(task),
            sample=largest[order],
            counts=np.bincount(nearest, minlength=k),
        )

    @classmethod
    def read(cls, arrays: Mapping[str, FloatArray]) -> Self:
        """Return a quota from the arrays that its method `arrays` returned."""
        return cls(shares=arrays["shares"], sample=arrays["sample"], counts=arrays["counts"].astype(np.int64))

    def arrays(self) -> dict[str, FloatArray]:
        """Return the quota as arrays to store."""
        return {"shares": self.shares, "sample": self.sample, "counts": self.counts.astype(np.float64)}

    def moved(self, topic: IntArray, cosines: FloatArray) -> FloatArray:
        """Return the corrected cosines, `(m,)`. topic, cosines: nearest topic and cosine of each sentence, `(m,)`."""
        moved = np.array(cosines, dtype=np.float64)
        falling, ends = np.sort(self.sample)[::-1], np.cumsum(self.counts)
        for number in np.unique(topic):
            own, inside = self.sample[ends[number] - self.counts[number] : ends[number]], topic == number
            # Ranks continue beyond the sample's ends, so that different cosines keep different scores.
            place = _beyond(cosines[inside], own)
            share = max(float(self.shares[number]), 0.5 / len(self.sample))  # a topic that T_C lacks ranks last
            moved[inside] = _at(place / share, falling)
        return moved


def _beyond(cosines: FloatArray, own: FloatArray) -> FloatArray:
    """Return the rank `(m,)` of each cosine among `own`, which descends. Cosines above `own[0]` get negative ranks."""
    if not len(own):
        return -np.asarray(cosines, dtype=np.float64)
    places: FloatArray = np.interp(-cosines, -own, np.arange(len(own), dtype=np.float64))
    places += np.maximum(own[-1] - cosines, 0) - np.maximum(cosines - own[0], 0)
    return places


def _at(places: FloatArray, falling: FloatArray) -> FloatArray:
    """Return the values `(m,)` of `falling`, which descends, at the ranks `places`, interpolated.

    Ranks beyond either end of `falling` get its end value plus or minus less than 1.
    """
    last = len(falling) - 1
    inside: FloatArray = np.interp(places, np.arange(len(falling)), falling)
    beyond = (np.maximum(-places, 0) - np.maximum(places - last, 0)) / len(falling)
    inside += beyond / (1 + np.abs(beyond))
    return inside


class CosineOptions(Config):
    """Options of `cos-pretrained`."""

    query: Query = option(
        "raw-mean",
        "Query vectors for the task corpus: the mean of its embeddings (raw-mean, as in the paper), the mean of their "
        "directions (unit-mean), the nearest of several means (k-means), or the mean, contrasted with the domain "
        "corpus's mean (contrastive).",
    )
    centroids: int = option(
        10, "Number of means if query is k-means. 0: the number from 2 to 20 with the best silhouette.", ge=0, le=200
    )
    quota: bool = option(
        False,
        "If query is k-means, give each cluster the same share of the selection as it has of the task corpus.",
    )
    contrast: float = option(1.0, "Weight of the domain corpus's mean if query is contrastive.", ge=0, le=10)
    whiten: bool = option(False, "Give every direction of the embedding space equal variance first.")


class CosinePretrained(Strategy):
    """Cosine of e(x), the embedding of sentence x, to a query computed from T_C's embeddings.

    raw-mean: cos(e(x), mean of e). unit-mean: cos(e(x), mean of e / |e|). k-means: the largest cosine to one of k
    spherical centroids, corrected by `Quota` if quota is set. contrastive: cos(e(x), q_T) - contrast * cos(e(x), q_D),
    where q_T and q_D are the means of T_C and D_C.
    """

    name: ClassVar[str] = "cos-pretrained"
    in_short: ClassVar[str] = "near the mean of yours"
    unit: ClassVar[str] = "cosine"
    reads: ClassVar[Reads] = "vectors"
    summary: ClassVar[str] = (
        "Prefers sentences whose embedding has nearly the same direction as the task corpus's average embedding."
    )
    trust: ClassVar[str] = (
        "The first strategy of Mahapatra et al. (2022). If the task corpus has several topics, its mean favours "
        "generic sentences."
    )
    Options: ClassVar[type[Config]] = CosineOptions

    options: CosineOptions
    # (q, d), unit vectors that represent T_C
    _queries: FloatArray
    # whitening: the mean (d,) to subtract, and the matrix (d, d) to multiply by; None without whitening
    _shift: FloatArray | None = None
    _rotation: FloatArray
    # (1, d), direction of D_C's mean for a contrastive query
    _against: FloatArray | None = None
    _quota: Quota | None = None

    @classmethod
    def cascades(cls, options: Any) -> bool:
        """Return True: a score depends on the sentence's own vector only."""
        return True

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        task, norms = sources[Role.TASK].learnable()
        domain = cast(FloatArray, sources[Role.DOMAIN].vectors)
        if self.options.whiten:
            report.stage("whitening")
            self._fit_whitening(task, domain)
            task, norms = self._whitened(task), np.ones(len(task), dtype=np.float32)
        report.stage("averaging the task corpus")
        self._queries = self._make_queries(task, norms)
        if self.options.query == "contrastive":
            self._against = _unit(self._domain_mean(domain))[None]
        if self.options.query == "k-means" and self.options.quota:
            sample = _sample(domain) if self._shift is None else self._whitened(_sample(domain))
            self._quota = Quota.of(cosine(task, self._queries), cosine(sample, self._queries))

    def score(self, batch: Batch) -> FloatArray:
        assert batch.vectors is not None
        vectors = self._whitened(batch.vectors) if self._shift is not None else batch.vectors
        near = cosine(vectors, self._queries)
        result: FloatArray = near.max(axis=1).astype(np.float64)
        if self._quota is not None:
            result = self._quota.moved(near.argmax(axis=1), result)
        if self._against is not None:
            result -= self.options.contrast * cosine(vectors, self._against)[:, 0]
        result[~np.asarray(batch.vectors).any(axis=1)] = np.nan  # an empty sentence has no direction
        return result

    def learns_from(self, ids: IntArray) -> IntArray:
        """Return the rows of D_C from which its mean, its covariance or a quota is estimated.

        No rows are returned if the options need none of these.
        """
        options = self.options
        samples = options.whiten or options.query == "contrastive" or (options.query == "k-means" and options.quota)
        return _sampled(len(ids)) if samples else super().learns_from(ids)

    def learned(self) -> Arrays:
        """Return the queries. Also return the whitening, the quota and the direction of D_C's mean, if used."""
        arrays = {"queries": self._queries}
        if self._shift is not None:
            arrays |= {"shift": self._shift, "rotation": self._rotation}
        arrays |= self._quota.arrays() if self._quota else {}
        return arrays | ({} if self._against is None else {"against": self._against})

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return one part per T_C sentence: its share of cos(x, q), which is linear in q (SOURCES.md, Cosine to T_C).

        For the query k-means, return the cosine to the nearest topic, and the correction by the quota, if any.
        """
        task, norms, rows = evidence.learnt_from()
        model = evidence.model
        vector: FloatArray = np.asarray(evidence.vector, dtype=np.float64)
        if "rotation" in model:
            task, vector = (unit((part - model["shift"]) @ model["rotation"]) for part in (task, vector))
            norms = np.ones(len(task))
        query = evidence.options["query"]
        if query == "k-means":
            near = model["queries"].astype(np.float64) @ vector
            best = int(near.argmax())
            name = f"nearest of {len(near)} topics of the task corpus (number {best + 1})"
            parts = [Part(name=name, value=float(near[best]))]
            if "shares" in model:
                moved = Quota.read(model).moved(np.array([best]), near[[best]])[0] - near[best]
                parts.append(Part(name=f"correction by the quota of topic {best + 1}", value=float(moved)))
            return Parts(parts=parts)
        weights = norms if query == "raw-mean" else np.ones(len(task))
        mean = (task * weights[:, None]).mean(axis=0)
        shares = (task @ vector) * weights / (len(task) * np.linalg.norm(mean))
        parts = [
            Part(name=f"sentence {row} of the task corpus", value=share, task_row=int(row))
            for row, share in zip(rows.tolist(), shares.tolist(), strict=True)
        ]
        shown = top(parts, f"the other {len(parts) - SHOWN:,} sentences of the task corpus")
        if "against" in model:
            against = -evidence.options["contrast"] * float(model["against"][0].astype(np.float64) @ vector)
            shown.append(Part(name="similarity to the domain corpus's average, subtracted", value=against))
        return Parts(parts=shown)

    def _make_queries(self, task: FloatArray, norms: FloatArray) -> FloatArray:
        """Return the unit vectors that represent T_C, `(q, d)`."""
        if self.options.query == "k-means":
            from sklearn.cluster import KMeans

            k = min(self.options.centroids or best_k(task, self.seed), len(task))
            return _unit(KMeans(k, n_init=4, random_state=short_seed(self.seed)).fit(task).cluster_centers_)
        if self.options.query == "raw-mean":
            return _unit((task * norms[:, None]).mean(axis=0))[None]
        return _unit(task.mean(axis=0))[None]

    def _domain_mean(self, domain: FloatArray) -> FloatArray:
        sample = _sample(domain)
        result: FloatArray = (sample if self._shift is None else self._whitened(sample)).mean(axis=0)
        return result

    def _fit_whitening(self, task: FloatArray, domain: FloatArray) -> None:
        """Fit PCA whitening (Su et al. 2021) to T_C, without test leaks, and to a sample of D_C together."""
        # Fit on both corpora, so that the directions along which they differ are kept.
        sample = np.concatenate([task, _sample(domain)]).astype(np.float64)
        self._shift = sample.mean(axis=0).astype(np.float32)
        # Raise variances to 1e-5 of the largest one, because dividing by tiny variances would amplify noise.
        values, axes = np.linalg.eigh(np.cov(sample - self._shift, rowvar=False))
        self._rotation = (axes / np.sqrt(np.maximum(values, values.max() * 1e-5))).astype(np.float32)

    def _whitened(self, vectors: FloatArray) -> FloatArray:
        assert self._shift is not None
        return _unit((np.asarray(vectors, dtype=np.float32) - self._shift) @ self._rotation)


def _sample(domain: FloatArray) -> FloatArray:
    """Return the float32 vectors of D_C in the rows that `_sampled` returns."""
    return np.asarray(domain[_sampled(len(domain))], dtype=np.float32)


def _sampled(n: int) -> IntArray:
    """Return up to `_SAMPLE` evenly spaced row numbers from 0 to n - 1, ascending."""
    return np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64))


def _unit(vectors: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    result: FloatArray = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return result


class NeighbourOptions(Config):
    """Options of `knn`."""

    neighbours: int = option(
        5, "Number of nearest sentences of the task corpus to average over.", unit="sentences", ge=1, le=1000
    )
    query: Literal["nearest", "round-robin"] = option(
        "nearest",
        "Average the cosines to the nearest sentences of the task corpus (nearest), or let each sentence of the task "
        "corpus take its nearest domain sentence in turn (round-robin, which ignores the option neighbours).",
    )


class Neighbours(Strategy):
    """Mean cosine to the k nearest sentences of T_C, which keeps small topics that a mean vector loses.

    round-robin: T_C's sentences take sentences of D_C in turn, see `Turns`. A score of -2.2 means that the sentence was
    taken in round 3, by a sentence with the cosine 0.6: (1 + 0.6) / 2 - 3.
    """

    name: ClassVar[str] = "knn"
    in_short: ClassVar[str] = "near a few sentences of yours"
    unit: ClassVar[str] = "cosine"
    reads: ClassVar[Reads] = "vectors"
    summary: ClassVar[str] = "Prefers sentences that are close to their nearest few sentences of the task corpus."
    trust: ClassVar[str] = (
        "Trust it when the task corpus covers several topics; odd sentences of the task corpus attract odd neighbours."
    )
    Options: ClassVar[type[Config]] = NeighbourOptions

    options: NeighbourOptions
    _task: FloatArray  # (m, d), unit vectors of T_C
    _turns: Turns | None = None

    @classmethod
    def cascades(cls, options: Any) -> bool:
        """Return True if a cascade can be used: for the query `nearest`. `round-robin` needs vectors of all of D_C."""
        return bool(options.query == "nearest")

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        self._task, _ = sources[Role.TASK].learnable()
        if self.options.query == "round-robin":
            report.stage("taking turns")
            domain = sources[Role.DOMAIN]
            self._turns = Turns.of(self._task, cast(Rows, domain.vectors), domain.corpus.ids(), report)

    def score(self, batch: Batch) -> FloatArray:
        assert batch.vectors is not None
        k = 1 if self._turns else min(self.options.neighbours, len(self._task))
        result: FloatArray = top_k_mean(batch.vectors, self._task, k).astype(np.float64)
        if self._turns:
            result = self._turns.scores(batch.ids, result)
        result[~np.asarray(batch.vectors).any(axis=1)] = np.nan  # an empty sentence has no neighbour
        return result

    def learned(self) -> Arrays:
        """Return the arrays of `Turns` for round-robin, and nothing for `nearest`."""
        return self._turns.arrays() if self._turns else {}

    @staticmethod
    def explain(evidence: Evidence) -> Parts:
        """Return cosine / k for each of the k nearest T_C sentences; for round-robin, the round and the tie-break."""
        task, _, rows = evidence.learnt_from()
        near = unit(task) @ np.asarray(evidence.vector, dtype=np.float64)
        if evidence.options.get("query") == "round-robin":
            return explained(evidence, near, rows)
        best = np.argsort(-near, kind="stable")[: evidence.options["neighbours"]]
        return Parts(
            parts=[
                Part(name=f"sentence {row} of the task corpus", value=value / len(best), task_row=int(row))
                for row, value in zip(rows[best].tolist(), near[best].tolist(), strict=True)
            ],
            formula=f"each part is a cosine divided by {len(best)}; the parts add up to the score",
        )


def cosine(unit: FloatArray, queries: FloatArray, report: Reporter | None = None) -> FloatArray:
    """Return float32 cosines `(n, q)` of unit rows `(n, d)` and queries `(q, d)` of any length; 0 for rows of zeros."""
    import torch

    scaled = torch.from_numpy(_normalised(queries)).T.contiguous()
    scores = np.empty((len(unit), scaled.shape[1]), dtype=np.float32)
    _fill(scores, unit, lambda block: block @ scaled, report or Silent())
    return scores


def top_k_mean(unit: FloatArray, targets: FloatArray, k: int, report: Reporter | None = None) -> FloatArray:
    """Return the exact mean of each unit row's `k` largest cosines to the targets `(t, d)`, float32 `(n,)`.

    With fewer than `k` targets, the mean is over all targets. Each thread holds 1,024 x 1,024 cosines at a time.
    """
    import torch

    scaled = torch.from_numpy(_normalised(targets)).T.contiguous()
    k = min(k, scaled.shape[1])

    def means(block: "torch.Tensor") -> "torch.Tensor":
        best = torch.empty((len(block), 0))
        for first in range(0, scaled.shape[1], BLOCK):
            near = block @ scaled[:, first : first + BLOCK]
            best = torch.cat([best, near.topk(min(k, near.shape[1]), sorted=False).values], dim=1)
            best = best.topk(min(k, best.shape[1]), sorted=False).values
        return best.mean(1)

    scores = np.empty(len(unit), dtype=np.float32)
    _fill(scores, unit, means, report or Silent())
    return scores


def _fill(
    scores: FloatArray, unit: FloatArray, work: Callable[["torch.Tensor"], "torch.Tensor"], report: Reporter
) -> None:
    """Store `work(block)` in `scores` for each block of `BLOCK` rows, in float32.

    Each thread computes its own blocks (`side_by_side`). If two threads shared every small matrix product while
    other programs run, one query against a million rows would take a minute instead of a second.
    """
    import torch

    span, mine = _TURN * BLOCK, threading.local()

    def part(first: int) -> tuple[int, "torch.Tensor"]:
        # Reuse one buffer per thread, because the system clears a new buffer, which takes longer than the conversion.
        if not hasattr(mine, "buffer"):
            mine.buffer = torch.empty((BLOCK, unit.shape[1]))
        found = []
        for start in range(first, min(first + span, len(unit)), BLOCK):
            rows = unit[start : start + BLOCK]  # can be read-only, which torch refuses
            block = mine.buffer[: len(rows)]
            found.append(work(block.copy_(torch.from_numpy(rows if rows.flags.writeable else rows.copy()))))
        return first, torch.cat(found)

    with closing(side_by_side(part, range(0, len(unit), span), torch.device("cpu"))) as parts:
        for first, values in parts:
            report.check()
            scores[first : first + len(values)] = values.numpy()


def _normalised(rows: FloatArray) -> FloatArray:
    """Return float32 rows scaled to length 1; rows of zeros stay zero."""
    rows = np.asarray(rows, dtype=np.float32)
    unit: FloatArray = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return unit


class CosineMlmOptions(CosineOptions, AdaptedOptions):
    """Options of `cos-mlm`."""


class CosineMlm(CosinePretrained):
    """`cos-pretrained` with e(x) from B1, the encoder after masked language modelling on T_C."""

    name: ClassVar[str] = "cos-mlm"
    in_short: ClassVar[str] = "like cos-pretrained, after training on your text"
    models: ClassVar[frozenset[Model]] = frozenset({"mlm"})
    summary: ClassVar[str] = (
        "Continues the encoder's pre-training on the task corpus, then compares embeddings as cos-pretrained does."
    )
    trust: ClassVar[str] = (
        "The second strategy of Mahapatra et al. (2022). With only a few hundred task sentences, it differs little "
        "from cos-pretrained."
    )
    Options: ClassVar[type[Config]] = CosineMlmOptions


class CosineMlmNerOptions(CosineMlmOptions):
    """Options of `cos-mlm-ner`."""

    halves: Literal["unit", "raw"] = option(
        "unit",
        "How the two embeddings are joined: each scaled to length 1 first, so that both have equal weight (unit), or "
        "unscaled, so that the longer one dominates (raw).",
    )


class CosineMlmNer(CosineMlm):
    """`cos-pretrained` with e(x) = [e_B1(x); e_B2(x)], where B2 is B1 after training as a tagger on L_C."""

    name: ClassVar[str] = "cos-mlm-ner"
    in_short: ClassVar[str] = "like cos-mlm, after training on your labels too"
    needs: ClassVar[frozenset[Role]] = frozenset({Role.LABELLED})
    models: ClassVar[frozenset[Model]] = frozenset({"mlm", "ner"})
    summary: ClassVar[str] = (
        "Joins the embeddings of an encoder trained on the task corpus and of a tagger trained on the labels."
    )
    trust: ClassVar[str] = (
        "The third strategy of Mahapatra et al. (2022); its embeddings also reflect the entities that you labelled."
    )
    Options: ClassVar[type[Config]] = CosineMlmNerOptions


class Joined:
    """Several embeddings of one corpus, concatenated; rows are computed on access.

    norms: `(n,)`, as in `Source`. If all embeddings are equal, the concatenation has the same cosines as each one.
    """

    def __init__(self, halves: Sequence[tuple[Rows, FloatArray]], *, raw: bool = False) -> None:
        """Join embeddings. halves: vectors `(n, d_i)` and norms `(n,)` of each embedding.

        raw: True to join the embeddings at their original lengths; False to scale each of them to length 1 first.
        """
        # Unless `raw`, every half has length 1. An empty sentence has length 0, so that its row stays zero.
        lengths = np.stack([norms if raw else (norms > 0).astype(np.float32) for _, norms in halves])
        self.norms: FloatArray = np.sqrt((lengths**2).sum(axis=0))
        self._vectors = [vectors for vectors, _ in halves]
        self._scales = lengths / np.maximum(self.norms, np.finfo(np.float32).tiny)

    def __len__(self) -> int:
        return len(self.norms)

    def __getitem__(self, rows: Index, /) -> FloatArray:
        """Return float32 rows `(m, d_1 + d_2 + ...)` of length 1; 0 for an empty sentence."""
        parts = [
            np.asarray(vectors[rows], dtype=np.float32) * scale[rows][..., None]
            for vectors, scale in zip(self._vectors, self._scales, strict=True)
        ]
        return np.concatenate(parts, axis=-1)
