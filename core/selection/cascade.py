"""`cascade`: score only the sentences of D_C that can be among the best (SOURCES.md, Cascade).

A linear model of static vectors and words ranks all of D_C, which takes seconds per 100,000 sentences. A random sample
is embedded and scored exactly. This sample shows how far down the ranking the best sentences lie. Only sentences above
that point are embedded.

The artifacts are those of a `score` run, with NaN for sentences that were not embedded, plus the vectors of the
embedded sentences (see `encoders.vectors`).
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from core import cards
from core.config import Budget, option
from core.corpora.corpus import BLOCK, Corpus
from core.corpora.hygiene import FLAGS
from core.encoders import vectors
from core.encoders.embed import CHUNK as EMBEDDED
from core.encoders.embed import EmbedWork
from core.importing.result import read_audit
from core.kind import Job, Kind
from core.reporter import Reporter
from core.results import BoolArray, FloatArray, IntArray, Role
from core.runs.chunks import About, Opened
from core.runs.spread import spread
from core.runs.store import RunStore
from core.selection import make_strategy
from core.selection.base import Batch, Reads, Source, Strategy
from core.selection.choose import ranking
from core.selection.result import Cascade, ScoreResult, write
from core.selection.score import CHUNK, ScoreConfig, ScoreWork, explanation_arrays, sources_of
from core.selection.strategies.classifier import hasher, inverse_frequency, weighted
from core.shown import count, duration
from core.stats.draws import uniform
from core.stats.prevalence import clopper_pearson
from core.training.on_device import on_device
from core.training.saved_models import folder

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from transformers import PreTrainedTokenizerBase

    from core.models.static import StaticVectors, Words

# share of the exact selection that a cascade must embed
KEPT = 0.99
# Confidence that `KEPT` is reached. Users are promised only 95%, because `classifier` may also learn from sentences of
# the trial, and then knows their words a little better than those of other sentences.
CONFIDENCE = 0.98
# number of sentences of the sample to which the ranking is fitted
FITTED = 5_000
# Numbers of selected sentences that the trial must contain for a bound of `KEPT`: if the ranking misses none of them,
# and if it misses one.
SELECTED = (390, 581)
# Usual limit for the trial, as a share of D_C. The trial is larger only if it would contain too few selected sentences.
_USUAL = 0.05
# Largest share of D_C in the sample, which consists of the trial and of the `FITTED` sentences.
_MOST = 1 / 3
# If a cascade would embed more than this share of D_C, it saves too little time, and all of D_C is embedded instead.
WORTH = 0.6
# number of sentences, besides the `FITTED` ones, whose words get static vectors
_READ = 50_000
# safety factor for the number of sentences that a budget in tokens selects
_MARGIN = 1.25
# L2 penalty of the ridge regression
_PENALTY = 1.0
# progress of a run, 0 to 1, at the start of each of its four parts and at the end
_DONE = (0.0, 0.05, 0.5, 0.65, 1.0)


class CascadeConfig(ScoreConfig):
    """Options of a `cascade` run: those of a `score` run, and the largest selection to make from the scores."""

    within: str = option(..., "Largest budget to score sentences for, in sentences, tokens or a share.", hidden=True)
    audit: str = option(..., "Id of the run that flagged the domain corpus.", hidden=True)
    withheld: tuple[str, ...] = option(..., "Flags that withhold a sentence.", hidden=True)


class Cut(NamedTuple):
    """A position in a ranking of D_C by keys (predicted scores). Sentences below this cut are not embedded.

    least: lowest key above the cut. missed: number of selected sentences of the trial that lie below the cut. bound:
    lower confidence bound of the share of all selected sentences that lie above the cut.
    """

    least: float
    missed: int
    bound: float


def cut(keys: FloatArray, selected: BoolArray) -> Cut | None:
    """Return the highest cut above which the share `KEPT` of selected sentences lies, with confidence `CONFIDENCE`.

    keys: `(n,)`, predicted scores of a random sample, higher is better. selected: mask `(n,)` of the sentences that
    the exact scores select. The number of selected sentences below the cut is binomial, so the bound is that of Clopper
    and Pearson (1934). None if too few sentences are selected for a bound of `KEPT`.
    """
    n = int(selected.sum())
    bounds = [_bound(missed, n) for missed in range(n + 1)]
    allowed = int(np.searchsorted(-np.array(bounds), -KEPT, side="right")) - 1
    if allowed < 0:
        return None
    falling = np.sort(keys[selected])
    least = float(falling[allowed])
    missed = int(np.searchsorted(falling, least))  # a key equal to `least` is above the cut
    return Cut(least, missed, bounds[missed])


def _bound(missed: int, n: int) -> float:
    """Return the one-sided lower bound of the share of sentences above a cut that misses `missed` of `n` sentences."""
    return clopper_pearson(n - missed, n, 2 * CONFIDENCE - 1)[0] if n else 0.0


def trial_size(share: float, n: int) -> int | None:
    """Return the size of the trial, the sample that shows where selected sentences rank; None if it would be too large.

    share: share of the `n` sentences that is selected.
    """
    fewest, wanted = (ceil(selected / share) for selected in SELECTED)
    size = min(wanted, max(fewest, ceil(_USUAL * n)))
    return size if FITTED + size <= _MOST * n else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked(Source):
    """A source of only some sentences. picked: their rows `(m,)`.

    The arguments `start` and `stop` of `batches` are positions in `picked`.
    """

    picked: IntArray

    def batches(self, reads: Reads, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        stop = len(self.picked) if stop is None else stop
        ids = self.corpus.ids()
        for at in range(start, stop, BLOCK):
            rows = self.picked[at : min(at + BLOCK, stop)]
            sentences = () if reads == "vectors" else self.corpus.take(rows)
            vectors = None if self.vectors is None else self.vectors[rows]
            yield Batch(ids=ids[rows], sentences=sentences, vectors=vectors)


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbedRows(EmbedWork):
    """Work that embeds some sentences of a corpus. rows: `(m,)`. part: name of these sentences in progress reports."""

    rows: IntArray
    part: str

    @property
    def stage(self) -> str:
        return f"embedding {self.part} of {self.corpus.name}"

    def read(self, start: int, stop: int, about: About) -> list[str]:
        return [sentence.text for sentence in self.corpus.take(self.rows[start:stop])]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """A linear model that predicts a strategy's scores from features that need no forward pass.

    The features are the sentence's static vector from each encoder, and the part of the score that needs no vectors. If
    the strategy has no such part, the hashed words and word pairs of `classifier` are features instead.
    statics: static vectors, one set per encoder. idf: inverse document frequencies of the hashed words, `(buckets,)`.
    weights: `(features + 1,)`, the intercept last.
    """

    strategy: Strategy
    statics: "Sequence[StaticVectors]"
    idf: FloatArray
    weights: FloatArray

    @classmethod
    def fit(cls, strategy: Strategy, statics: "Sequence[StaticVectors]", rows: "Known", scores: FloatArray) -> Self:
        """Return a model fitted by ridge regression. scores: exact scores, `(n,)`, higher is better; NaN is ignored."""
        from sklearn.linear_model import Ridge

        plain = cls(strategy=strategy, statics=statics, idf=np.ones(0), weights=np.ones(0))
        if strategy.without_vectors(rows.ids[:1], rows.texts[:1]) is None:
            plain = replace(plain, idf=inverse_frequency(hasher().transform(rows.texts)))
        there = np.flatnonzero(~np.isnan(scores))
        model = Ridge(_PENALTY, solver="lsqr" if len(plain.idf) else "cholesky")
        model.fit(plain._features(rows)[there], scores[there])
        return replace(plain, weights=np.append(model.coef_, model.intercept_))

    def keys(self, rows: "Known") -> FloatArray:
        """Return the predicted scores of the rows, float32 `(n,)`, which rank them; higher is better."""
        found: FloatArray = np.asarray(self._features(rows) @ self.weights[:-1]) + self.weights[-1]
        return found.astype(np.float32)

    def _features(self, rows: "Known") -> "FloatArray | csr_matrix":
        from scipy.sparse import csr_matrix, hstack

        parts: list[FloatArray] = [static(own) for static, own in zip(self.statics, rows.words, strict=True)]
        part = self.strategy.without_vectors(rows.ids, rows.texts)
        if part is not None:
            return np.column_stack([*parts, part])
        words = weighted(hasher().transform(rows.texts), self.idf)
        both: csr_matrix = hstack([csr_matrix(np.column_stack(parts)), words], format="csr")
        return both


class Known(NamedTuple):
    """Sentences to rank. ids, texts: `(n,)`. words: for each encoder, the texts as split by its tokenizer."""

    ids: IntArray
    texts: Sequence[str]
    words: "Sequence[Words]"


@dataclass(kw_only=True)
class RankWork:
    """Work that ranks all sentences of a corpus. encoders: names or folders of the encoders."""

    ranking: Ranking
    corpus: Corpus
    encoders: Sequence[str]
    allow_download: bool
    card: bool = False

    @property
    def stage(self) -> str:
        return f"ranking {self.corpus.name} by words and static vectors"

    def read(self, start: int, stop: int, about: About) -> tuple[IntArray, list[str]]:
        ids = [ids for ids, _ in self.corpus.with_ids(start, stop, text=False)]
        return np.concatenate(ids), self.corpus.texts(start, stop)

    def open(self, report: Reporter) -> Opened:
        tokenizers = _tokenizers(self.encoders, self.allow_download)

        def keys(rows: Known, report: Reporter) -> FloatArray:
            report.check()
            return self.ranking.keys(rows)

        return Opened(compute=keys, ahead=lambda rows: Known(rows[0], rows[1], _words(rows[1], tokenizers)))

    def device(self) -> tuple[str, str]:
        return "processors", cards.processor()


def _tokenizers(encoders: Sequence[str], allow_download: bool) -> "list[PreTrainedTokenizerBase]":
    from core.models import hub

    return [hub.load_tokenizer(name, allow_download=allow_download) for name in encoders]


def _words(texts: Sequence[str], tokenizers: "Sequence[PreTrainedTokenizerBase]") -> "list[Words]":
    from core.models.static import Words

    return [Words.of(texts, tokenizer) for tokenizer in tokenizers]


class _Sample(NamedTuple):
    """Rows of D_C that are embedded first.

    fitted: rows to which the ranking is fitted. trial: rows that show where selected sentences rank. rows: the rows of
    `fitted`, `trial` and those that the strategy learns from, ascending. read: rows whose words get static vectors,
    ascending. `read` and `trial` are disjoint: the bound only holds if the ranking knows the words of `trial` no better
    than those of other rows.
    """

    fitted: IntArray
    trial: IntArray
    rows: IntArray
    read: IntArray


def _sample(ids: IntArray, free: BoolArray, learnt_from: IntArray, share: float, seed: int) -> _Sample | None:
    """Draw the sample and return it; None if it would be too large.

    free: mask of the sentences without a flag. share: share of these sentences to select.
    """
    size = trial_size(share, int(free.sum()))
    if size is None:
        return None
    # `classifier` draws its own sample in the same order. Sentences that both samples contain are embedded once.
    order = np.argsort(uniform(ids, seed), kind="stable")
    order = order[free[order]]
    first = np.concatenate([[True], ids[order][1:] != ids[order][:-1]])  # equal sentences have one id: keep one of them
    fitted, trial, further = np.split(order[first][: FITTED + size + _READ], [FITTED, FITTED + size])
    return _Sample(fitted, trial, np.union1d(np.union1d(fitted, trial), learnt_from), np.union1d(fitted, further))


class _Cascade:
    """The steps of a `cascade` run.

    values: `(n,)`, exact scores of D_C so far, NaN for other sentences. chunks: files to delete at the end.
    encoders: names or folders of the encoders. sources: the strategy's sources, by role.
    """

    def __init__(self, config: CascadeConfig, job: Job) -> None:
        self._config, self._job, self._domain = config, job, job.corpus(config.domain)
        self._options = config.model_dump(include={"pooling", "max_length", "precision", "allow_download"})
        self._device = partial(on_device, job, config.precision, alone=False)
        self.strategy = make_strategy(config.strategy, config.options, config.seed)
        self.values = np.full(len(self._domain), np.nan)
        self.chunks = list[Path]()

    def open(self) -> None:
        """Train the models of the strategy, and embed T_C."""
        self.sources, self.made_by = sources_of(self._config, self.strategy, self._job, embeds=(Role.TASK,))
        trained = (*self.made_by.get("pretrain", ()), *self.made_by.get("finetune", ()))
        store = RunStore(self._job.home)
        self.encoders = [str(folder(store.get(name))) for name in trained] or [self._config.encoder]

    def embed(self, rows: IntArray, part: vectors.Part, words: str) -> None:
        """Embed rows of D_C, and add their vectors to the sources. words: name of these rows in progress reports."""
        run = self._job.context.run
        for number, encoder in enumerate(self.encoders):
            work = EmbedRows(corpus=self._domain, encoder=encoder, options=self._options, rows=rows, part=words)
            name, where = vectors.some(run, part, number)
            where.mkdir(exist_ok=True)
            spread(self._job.context, len(rows), EMBEDDED, work, name, device=self._device, folder=where)
        vectors.write_rows(run, part, rows)
        found, norms = vectors.read_some(run, len(self._domain), self._config.options)
        self.sources[Role.DOMAIN] = Source(corpus=self._domain, vectors=found, norms=norms)

    def score(self, rows: IntArray, part: vectors.Part) -> None:
        """Store the exact scores of some rows of D_C in `values`. The rows must have vectors."""
        domain = self.sources[Role.DOMAIN]
        picked = Picked(corpus=domain.corpus, vectors=domain.vectors, norms=domain.norms, picked=rows)
        work = ScoreWork(strategy=self.strategy, domain=picked, sources=None)
        chunks, _ = spread(self._job.context, len(rows), CHUNK, work, f"score-{part}", device=nullcontext)
        self.values[rows] = np.concatenate([np.load(path) for path in chunks])
        self.chunks += chunks

    def rank(self, sample: _Sample) -> FloatArray:
        """Fit the ranking to the scores of `sample.fitted`. Return the keys of all of D_C, `(n,)`; higher is better."""
        from core.models.encoder import Encoder
        from core.models.static import StaticVectors

        download = self._config.allow_download
        tokenizers = _tokenizers(self.encoders, download)
        read = _words([sentence.text for sentence in self._domain.take(sample.read)], tokenizers)
        statics = list[StaticVectors]()
        with self._device():
            for name, own in zip(self.encoders, read, strict=True):
                self._job.context.stage(f"distilling static vectors from {name}")
                statics.append(StaticVectors.distil(Encoder.load(name, **self._options), own, self._job.context))
        texts = [sentence.text for sentence in self._domain.take(sample.fitted)]
        rows = Known(self._domain.ids()[sample.fitted], texts, _words(texts, tokenizers))
        scores = self.values[sample.fitted] * (1 if self.strategy.prefer == "high" else -1)
        work = RankWork(
            ranking=Ranking.fit(self.strategy, statics, rows, scores),
            corpus=self._domain,
            encoders=self.encoders,
            allow_download=download,
        )
        chunks, _ = spread(self._job.context, len(self._domain), CHUNK, work, "rank", device=nullcontext)
        self.chunks += chunks
        return np.concatenate([np.load(path) for path in chunks])

    def selected(self, trial: IntArray, budget: Budget, share: float) -> BoolArray:
        """Return a mask over `trial`, rows of a random sample. It is True for rows that the exact scores select."""
        best = ranking(self.values[trial], self.strategy.prefer)
        n = round(share * len(trial))
        if budget.unit == "tokens":
            lengths = self._domain.lengths()[trial]
            tokens = share * int(lengths.sum(dtype=np.int64))
            n = ceil(_MARGIN * int(np.searchsorted(np.cumsum(lengths[best], dtype=np.int64), tokens, side="right")))
        mask = np.zeros(len(trial), dtype=bool)
        mask[best[:n]] = True
        return mask


def run(config: CascadeConfig, job: Job) -> ScoreResult:
    """Score the sentences of D_C that can be selected. If a cascade cannot help, return only the reason."""
    work, domain, budget = _Cascade(config, job), job.corpus(config.domain), Budget.parse(config.within)
    n, ids, strategy = len(domain), domain.ids(), work.strategy
    result = ScoreResult(strategy=strategy.name, unit=strategy.unit, prefer=strategy.prefer, scored=n, made_by={})
    bits = np.uint8(sum(1 << FLAGS.index(flag) for flag in config.withheld))
    free = (read_audit(RunStore(job.home).get(config.audit)).mask & bits) == 0
    share = _share(budget, domain.lengths(), free)

    def refused(why: str) -> ScoreResult:
        return replace(result, cascade=Cascade(within=0, withheld=config.withheld, why=why))

    sample = _sample(ids, free, strategy.learns_from(ids), share, config.seed)
    if sample is None:
        return refused(
            f"a selection of {count(round(share * int(free.sum())), 'sentence')} of {n:,} needs too large a sample"
        )
    _begin(job, 1, "the task corpus")
    work.open()
    _begin(job, 2, "a sample")
    begin = time.perf_counter()
    work.embed(sample.rows, "first", "a sample")
    embedding = time.perf_counter() - begin
    job.context.stage(f"preparing {strategy.name}")
    strategy.prepare(work.sources, job.context)
    work.score(sample.rows, "first")
    _begin(job, 3, "the ranking")
    begin = time.perf_counter()
    keys = work.rank(sample)
    ranking_ = time.perf_counter() - begin

    selected = work.selected(sample.trial, budget, share)
    found = cut(keys[sample.trial], selected)
    if found is None:
        return refused(f"the sample contains {count(int(selected.sum()), 'selected sentence')}, too few for a check")
    further = np.setdiff1d(np.flatnonzero(free & (keys >= found.least)), sample.rows)
    embedded = len(sample.rows) + len(further)
    if embedded > WORTH * n:
        return refused(f"{embedded / n:.0%} of the sentences would have to be embedded to keep the best ones")
    _begin(job, 4, "the best-ranked sentences")
    if len(further):
        work.embed(further, "further", "the best-ranked sentences")
        work.score(further, "further")
    learnt = explanation_arrays(strategy, work.sources[Role.TASK].learnable_rows())
    write(job.context.run, work.values, ranking(work.values, strategy.prefer), learnt)
    for path in work.chunks:
        path.unlink()
    saved = embedding / len(sample.rows) * (n - embedded) - ranking_
    if saved > 0:  # A resumed run did not time the embedding of the sample, so `saved` is negative.
        job.context.note(f"The cascade saved about {duration(saved)} of embedding time.", passing=True)
    reach = Cascade(
        within=round((selected.mean() if budget.unit == "tokens" else share) * int(free.sum())),
        withheld=config.withheld,
        embedded=embedded,
        trial=len(sample.trial),
        selected=int(selected.sum()),
        missed=found.missed,
        bound=found.bound,
    )
    return replace(result, made_by=work.made_by, cascade=reach)


def _begin(job: Job, number: int, name: str) -> None:
    job.context.part(number, len(_DONE) - 1, name, shares=(_DONE[number - 1], _DONE[number]))


def _share(budget: Budget, lengths: IntArray, free: BoolArray) -> float:
    """Return the share of unflagged sentences that a budget selects; for a budget in tokens, the share of their tokens.

    lengths: `(n,)`, tokens per sentence of D_C. free: `(n,)`, mask of the sentences without a flag.
    """
    n = int(free.sum())
    if budget.unit == "tokens":
        return min(budget.value / max(int(lengths[free].sum(dtype=np.int64)), 1), 1.0)
    wanted = budget.value if budget.unit == "sentences" else max(round(budget.value * len(lengths)), 1)
    return min(wanted / max(n, 1), 1.0)


KIND = Kind(vectors.CASCADE, CascadeConfig, run, ScoreResult, command=None)
