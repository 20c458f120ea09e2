"""`which-strategy`: hide parts of T_C in D_C and count how much each strategy finds (SOURCES.md, Which strategy).

T_C is divided into random parts. Each part is hidden once, and the strategies learn from the other parts. Only
strategies that train no model are compared, so this takes minutes.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import ValidationInfo, field_validator

from core.config import Budget, option
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import ConfigError, CorpusError
from core.importing.audit import Flagging
from core.importing.result import read_audit
from core.kind import About, Job, Kind
from core.models.encoder import EncoderOptions
from core.reporter import Reporter, Silent
from core.results import BoolArray, FloatArray, IntArray, Role, Rows, Scores
from core.runs.chunks import Chunks
from core.selection import DEFAULT_STRATEGY, STRATEGIES, involved, make_strategy
from core.selection.base import Source, Strategy
from core.selection.choose import check_budget, choose, ranks
from core.selection.score import embedded, refuse_swapped
from core.stats.draws import sample, uniform
from core.stats.recall import Compared, Hidden, best, compare
from core.text.words import cutter, fold, joined

# Smallest number of sentences to hide. With fewer, only differences of more than about 25 points could be detected.
LEAST = 50
# number of stages of a run: duplicates, embeddings, comparison
PARTS = 3
# largest number of consecutive rows that are hidden as one block, about a few documents
_TOGETHER = 50
# smallest number of blocks in each part of T_C
_BLOCKS = 4
# Version of the comparison of strategies that use L_C. Change it if their recall changes for the same options.
EDITION = "2"


class WhichStrategyConfig(EncoderOptions):
    """Options of a `which-strategy` run: both corpora, the budget, and the strategies."""

    task: str = option(..., "Task corpus (T_C): unlabelled sentences like those to tag.", corpus=True)
    domain: str = option(..., "Domain corpus (D_C): the sentences to select from.", corpus=True)
    train: str = option("", "Training set (L_C) or a list of names, for strategies that need one.", corpus=True)
    holdout: tuple[str, ...] = option(
        (), "Held-out labelled sets. Sentences that also occur in them are left out.", corpus=True
    )
    budget: str = option("10%", "Budget at which strategies are compared: 1000 (sentences), 50000tokens, or 20%.")
    strategies: tuple[str, ...] = option(
        (), "Strategies to compare with the default. Default: all that train no model."
    )
    sample: int = option(
        20_000, "Size of the sample of the domain corpus in which sentences are hidden.", unit="sentences", ge=1000
    )
    draws: int = option(10, "Number of random parts of the task corpus. Each part is hidden once.", ge=5, le=50)
    seed: int = option(0, "Seed of everything random.", ge=0)
    edition: str = option("", "Version of the comparison, set by Winnow.", hidden=True)

    def settled(self) -> Self:
        """Return these options with the encoder's hash, and with `edition` if a strategy uses L_C."""
        return super().settled().model_copy(update={"edition": _edition(self.strategies)})

    @field_validator("budget")
    @classmethod
    def _budget(cls, text: str) -> str:
        """Return the budget in its standard spelling. Errors: ConfigError."""
        budget = Budget.parse(text)
        if budget.unit == "threshold":
            raise ConfigError("budget: strategies have different units, so a threshold cannot compare them; give 10%.")
        return str(budget)

    @field_validator("strategies")
    @classmethod
    def _strategies(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        """Return the strategies to compare. Fills in the default, so that a new strategy changes the run key."""
        usable = untrained(labels=bool(info.data.get("train")))
        for name in names:
            if name not in STRATEGIES:
                raise ConfigError(f"strategies: {name!r} is not known; choose from {', '.join(usable)}.")
            if any(each.models for each in involved(name, {})):
                raise ConfigError(f"strategies: {name} trains a model first, which takes too long here; leave it out.")
            if name not in usable:
                raise ConfigError(f"strategies: {name} needs labels or a list of names; give them with --train.")
        return tuple(name for name in usable if not names or name in (*names, DEFAULT_STRATEGY))


def _edition(strategies: Iterable[str]) -> str:
    return EDITION if any(name in STRATEGIES and STRATEGIES[name].needs for name in strategies) else ""


def is_outdated(config: Mapping[str, Any]) -> bool:
    """Return True if an earlier version compared strategies that use L_C. config: options in the run's manifest."""
    return bool(config.get("edition", "") != _edition(config["strategies"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class WhichStrategyResult:
    """Result of a `which-strategy` run.

    hidden: number of sentences of T_C that were hidden, each once. among: number of D_C's sentences among which they
    were hidden. budget: as in the options. chance: share of all sentences, hidden or not, that the budget selects,
    which is the expected recall of a random selection. strategies: {name: its recall, compared with the default}. best:
    the strategy to use, which is the default unless another one is shown to find more.
    """

    hidden: int
    among: int
    draws: int
    budget: str
    chance: float
    strategies: Mapping[str, Compared]
    best: str

    def __post_init__(self) -> None:
        """Raise ValueError if the best strategy was not compared with the default, as in a damaged file."""
        rivals = [name for name, one in self.strategies.items() if one.difference]
        if DEFAULT_STRATEGY not in self.strategies or self.best not in (DEFAULT_STRATEGY, *rivals):
            raise ValueError("the best strategy was not compared with the default")


def untrained(*, labels: bool) -> tuple[str, ...]:
    """Return the names of the strategies that train no model. labels: True if L_C or a list of names is given."""
    given = frozenset({Role.LABELLED} if labels else ())
    return tuple(
        name for name in STRATEGIES if not any(each.models or each.needs - given for each in involved(name, {}))
    )


class _Quiet(Silent):
    """A reporter for one strategy. It shows no progress, but `check` still cancels the work."""

    def __init__(self, context: Reporter) -> None:
        self.check = context.check  # type: ignore[method-assign]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Material:
    """T_C and a sample of D_C, with the rows that take part.

    learnt: mask of T_C's rows that strategies may learn from. hidden: `(n,)` rows of T_C to hide. where: blocks and
    draws of the hidden sentences. rows: `(m,)` rows of the sample among which they are hidden. labelled: L_C, or None.
    named: for each sentence of L_C with a name, its text as `_same` returns it; "" for other sentences.
    """

    task: Source
    sample: Source
    learnt: BoolArray
    hidden: IntArray
    where: Hidden
    rows: IntArray
    labelled: Source | None
    named: Sequence[str]

    def order(self, own: IntArray, seed: int) -> IntArray:
        """Return the numbers of a draw's sentences in random order, `(m + k,)`: i < m is `rows[i]`, m + i is `own[i]`.

        own: `(k,)`, indices into `hidden`. The order is random, because strategies break ties by row.
        """
        ids = np.concatenate([self.sample.corpus.ids()[self.rows], self.task.corpus.ids()[self.hidden[own]]])
        return np.argsort(uniform(ids, seed), kind="stable")

    @contextmanager
    def sources(self, own: IntArray, order: IntArray, folder: Path) -> Iterator[dict[Role, Source]]:
        """Yield the sources of a draw. Its D_C is stored in `folder`, which is deleted at the end."""
        shutil.rmtree(folder, ignore_errors=True)  # a killed run may have left it
        hidden = self.hidden[own]
        taken = [*self.sample.corpus.take(self.rows), *self.task.corpus.take(hidden)]
        cut = cutter(self.sample.corpus.tokens)
        mixed = (replace(one, tokens=cut(one.text), entities=None) for one in (taken[i] for i in order.tolist()))
        domain = Source(
            corpus=Library(folder).seal(
                mixed, name=self.sample.corpus.name, origin={}, tokens=self.sample.corpus.tokens
            ),
            vectors=_joined(self.sample.vectors, self.rows, self.task.vectors, hidden, order),
            norms=_joined(self.sample.norms, self.rows, self.task.norms, hidden, order),
        )
        learnt = self.learnt.copy()
        learnt[hidden] = False
        sources = {Role.TASK: replace(self.task, keep=learnt), Role.DOMAIN: domain}
        try:
            yield sources | ({Role.LABELLED: self._labels(self.labelled, hidden)} if self.labelled else {})
        finally:
            shutil.rmtree(folder)

    def _labels(self, labelled: Source, hidden: IntArray) -> Source:
        """Return L_C without the hidden sentences, because a list of their own names would find all of them."""
        own = {_same(one.text) for one in self.task.corpus.take(hidden)}
        keep = np.array([text not in own for text in self.named], dtype=np.bool_)
        # If all names are hidden in one draw, keep them, because a list without names cannot be used.
        left = any(text and kept for text, kept in zip(self.named, keep.tolist(), strict=True))
        return replace(labelled, keep=keep) if left else labelled


def _same(text: str) -> str:
    """Return a text in a form that does not depend on how it was tokenised."""
    return joined(fold(text))


def _joined(
    sample: Rows | None, rows: IntArray, task: Rows | None, hidden: IntArray, order: IntArray
) -> FloatArray | None:
    return None if sample is None or task is None else np.concatenate([sample[rows], task[hidden]])[order]


def run(config: WhichStrategyConfig, job: Job) -> WhichStrategyResult:
    """Hide sentences of T_C in a sample of D_C, and return the share of hidden sentences that each strategy selects.

    Writes no artifacts. Errors: CorpusError if T_C, or the sample of D_C, has fewer than `LEAST` usable sentences.
    """
    task, domain = job.corpus(config.task), job.corpus(config.domain)
    budget = Budget.parse(config.budget)
    refuse_swapped(task, domain)
    check_budget(budget, domain.n_sentences, domain.n_tokens)
    job.context.part(1, PARTS, "duplicates")
    material = _material(config, task, _sample(domain, config, job), job)
    job.context.part(2, PARTS, "embeddings")
    every = (each for name in config.strategies for each in involved(name, {}))
    if any(each.reads in ("vectors", "both") for each in every):
        material = replace(
            material, task=_with_vectors(material.task, config, job), sample=_with_vectors(material.sample, config, job)
        )
    job.context.part(3, PARTS, "comparison")
    found, chance = _ranked(config, material, budget, job)
    controls = frozenset(name for name in config.strategies if not STRATEGIES[name].topical)
    compared = compare(found, material.where, DEFAULT_STRATEGY, controls)
    return WhichStrategyResult(
        hidden=len(material.hidden),
        among=len(material.rows),
        draws=config.draws,
        budget=config.budget,
        chance=chance,
        strategies=compared,
        best=best(compared, DEFAULT_STRATEGY),
    )


def _sample(domain: Corpus, config: WhichStrategyConfig, job: Job) -> Corpus:
    """Return a random sample of D_C, stored as a corpus, or D_C if it is no larger."""
    if len(domain) <= config.sample:
        return domain
    rows = sample(domain.ids(), config.sample, config.seed)
    name = f"{domain.name} sample of {config.sample:,}"
    return job.library.subset(domain, rows, name=name, origin={"from": domain.fingerprint, "seed": config.seed})


def _material(config: WhichStrategyConfig, task: Corpus, sample: Corpus, job: Job) -> _Material:
    """Return T_C and the sample with their unflagged rows. Sentences of the sample that occur in T_C are left out."""
    flags = Flagging().model_dump()
    of_task = read_audit(job.child("audit", corpus=task.fingerprint, held_out=config.holdout, **flags))
    copies = (*config.holdout, task.fingerprint)
    of_sample = read_audit(job.child("audit", corpus=sample.fingerprint, held_out=copies, **flags))
    # Use each sentence of T_C once, because every strategy would easily find a hidden sentence by its copy.
    learnt = ~(of_task.has("exact_duplicate") | of_task.has("near_duplicate") | of_task.has("leak"))
    hidden, rows = (np.flatnonzero(audit.mask == 0) for audit in (of_task, of_sample))
    for corpus, left in (task, hidden), (sample, rows):
        if len(left) < LEAST:
            raise CorpusError(
                f"{corpus.name}: {len(left)} sentences are left without duplicates, leaks, and very short or long "
                f"ones; fewer than {LEAST} cannot show which strategy finds more. Give a larger corpus, or keep the "
                "default strategy."
            )
    labelled = Source(corpus=job.corpus(config.train)) if config.train else None
    named = (one for batch in labelled.corpus.batches() for one in batch) if labelled else ()
    return _Material(
        task=Source(corpus=task),
        sample=Source(corpus=sample),
        learnt=learnt,
        hidden=hidden,
        where=places(len(hidden), config.draws, config.seed),
        rows=rows,
        labelled=labelled,
        named=["" if one.entities == () else _same(one.text) for one in named],
    )


def places(n: int, draws: int, seed: int) -> Hidden:
    """Divide `n` sentences into blocks of neighbours, and assign each block to a random draw.

    Sentences of one document share rare words. A single hidden sentence would be easy to find by its neighbours, so
    neighbours are hidden together.
    """
    block = np.arange(n) // max(min(_TOGETHER, n // (_BLOCKS * draws)), 1)
    draw = np.random.default_rng(seed).permutation(int(block[-1]) + 1) % draws
    return Hidden(block=block, draw=draw[block])


def _with_vectors(source: Source, config: WhichStrategyConfig, job: Job) -> Source:
    vectors, norms, _ = embedded(job, source.corpus.fingerprint, config, None, {})
    return replace(source, vectors=vectors, norms=norms)


def _ranked(
    config: WhichStrategyConfig, material: _Material, budget: Budget, job: Job
) -> tuple[dict[str, BoolArray], float]:
    """Return {strategy: mask `(n,)` of hidden sentences that it selects}, and the mean share that the budget selects.

    Each chunk file of the run contains the mask of the sentences that one strategy selects in one draw.
    """
    names, n = config.strategies, len(config.strategies)
    found = {name: np.zeros(len(material.hidden), dtype=np.bool_) for name in names}
    chunks = Chunks(job.context, config.draws * n, 1, "selected", unit="rankings")
    shares, folder = list[float](), job.context.run.chunks / "mixed"
    for draw in range(config.draws):
        own = np.flatnonzero(material.where.draw == draw)
        order = material.order(own, config.seed + draw)
        numbers = range(draw * n, (draw + 1) * n)
        if missing := set(numbers).intersection(chunks.missing):
            with material.sources(own, order, folder) as sources:
                known = dict[str, FloatArray]()
                for i in sorted(missing):
                    report, strategy = chunks.begin(), make_strategy(names[i % n], {}, config.seed + draw)
                    report.stage(f"draw {draw + 1} of {config.draws}: {strategy.name}")
                    budget_here = _scaled(budget, job.corpus(config.domain), sources[Role.DOMAIN].corpus)
                    chunks.keep(i, _selected(strategy, sources, budget_here, known, _Quiet(job.context)))
        for name, i in zip(names, numbers, strict=True):
            selected = np.load(chunks.paths[i])
            shares.append(float(selected.mean()))
            picked = order[selected] - len(material.rows)
            found[name][own[picked[picked >= 0]]] = True
    for path in chunks.paths:
        path.unlink()
    return found, float(np.mean(shares))


def _scaled(budget: Budget, domain: Corpus, mixed: Corpus) -> Budget:
    """Return the budget that selects the same share of `mixed` as `budget` selects of D_C."""
    if budget.unit == "tokens":
        return Budget(value=max(round(budget.value / domain.n_tokens * mixed.n_tokens), 1), unit="tokens")
    return Budget(value=budget.value / len(domain), unit="fraction") if budget.unit == "sentences" else budget


def _selected(
    strategy: Strategy,
    sources: Mapping[Role, Source],
    budget: Budget,
    known: dict[str, FloatArray],
    report: Reporter,
) -> BoolArray:
    """Fit a strategy, score D_C, and return a mask of the sentences that the budget selects, `(m,)`.

    known: {strategy: scores `(m,)`} of this draw. Newly computed scores of the strategy, and of the strategies whose
    ranks it uses, are added.
    """
    domain = sources[Role.DOMAIN]
    if others := strategy.others(strategy.options):
        for other in set(others) - known.keys():
            known[other] = _scores(make_strategy(other, {}, strategy.seed), sources, report)
        columns = [ranks(known[other], STRATEGIES[other].prefer) for other in others]
        sources = {**sources, Role.DOMAIN: replace(domain, ranks=np.stack(columns, axis=1))}
    values = known[strategy.name] = _scores(strategy, sources, report)
    scores = Scores(
        name=strategy.name,
        unit=strategy.unit,
        prefer=strategy.prefer,
        values=values,
        corpus=domain.corpus.fingerprint,
    )
    unflagged = np.zeros(len(values), dtype=np.uint8)
    selected = np.zeros(len(values), dtype=np.bool_)
    selected[choose(scores, budget, lengths=domain.corpus.lengths(), mask=unflagged).rows] = True
    return selected


def _scores(strategy: Strategy, sources: Mapping[Role, Source], report: Reporter) -> FloatArray:
    strategy.prepare(sources, report)
    batches = sources[Role.DOMAIN].batches(strategy.reads)
    return np.concatenate([strategy.score(replace(batch, report=report)) for batch in batches])


def _outcome(result: WhichStrategyResult, _: About) -> str:
    recall = {name: f"{one.recall.value:.0%}" for name, one in result.strategies.items()}
    usual = f"{DEFAULT_STRATEGY} (the default)"
    if result.best == DEFAULT_STRATEGY:
        return f"{usual} finds {recall[DEFAULT_STRATEGY]} of the hidden sentences; no evidence that another finds more"
    return f"{result.best} finds {recall[result.best]} of the hidden sentences, {usual} {recall[DEFAULT_STRATEGY]}"


KIND = Kind(
    "which-strategy",
    WhichStrategyConfig,
    run,
    WhichStrategyResult,
    title=lambda run: f"Compare strategies for {run.corpus(run.config['task'])} in {run.corpus(run.config['domain'])}",
    outcome=_outcome,
    page="Selection",
)
