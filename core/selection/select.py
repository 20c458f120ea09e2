"""`select`: score D_C and store the best sentences within a budget as the corpus S_C.

`mmr` and `quota` re-order the head of a ranking so that similar sentences do not follow each other (SOURCES.md,
Diversity). Both orders are nested: a smaller budget selects the first sentences of a larger budget's selection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, Self

import numpy as np
from pydantic import field_validator

from core import cards
from core.config import Budget, Config, option
from core.corpora.corpus import Corpus
from core.corpora.hygiene import FLAGS
from core.corpora.library import Library
from core.encoders import vectors
from core.errors import ConfigError
from core.importing.audit import Flagging
from core.importing.data_checks import red_items
from core.kind import About, Job, Kind
from core.models.encoder import EncoderOptions, encoder_options
from core.paths import home
from core.reporter import Reporter
from core.results import FloatArray, IntArray, Prefer, Selection
from core.runs.result import read as read_result
from core.runs.run import Run
from core.runs.store import RunStore
from core.selection import STRATEGIES, involved, strategy_options
from core.selection import result as scores
from core.selection.choose import check_budget, expected
from core.selection.result import Scored, ScoreResult, SelectResult, withheld_flags
from core.selection.score import ScoreConfig
from core.shown import count
from core.stats.draws import short_seed
from core.terms import CHOICE

# number of stages of a run: test leaks, scores, selection
PARTS = 3
# progress of a run, 0 to 1, at the start of the second and of the third stage; measured on a large D_C
_SHARES = 0.15, 0.97
# Diversity re-orders this many times as many sentences as the budget selects.
POOL = 5
# Largest number of sentences that mmr selects. Each of its steps compares one sentence with the whole pool.
MOST_MMR = 20_000
# number of sentences; a cascade is the default for a larger D_C
LARGE = 100_000
# number of rows to which k-means is fitted
_FITTED = 20_000
_SUFFIX = {"none": "", "quota": " by quota", "mmr": " by mmr"}


class SelectOptions(EncoderOptions, Flagging):
    """Options of every selection: flags that withhold sentences, encoder, diversity."""

    keep: tuple[str, ...] = option((), f"Flags to ignore when sentences are selected: {', '.join(FLAGS)}.")
    diversity: Literal["none", "quota", "mmr"] = option(
        "none",
        "Re-order the best-scored sentences, five times as many as the budget selects. quota: every cluster gets its "
        "share. mmr: prefer sentences that differ from those already selected (slower).",
    )
    trade: float = option(0.7, "Weight of the score in mmr. The rest is the weight of diversity.", ge=0, le=1)

    @field_validator("keep")
    @classmethod
    def _keep(cls, keep: tuple[str, ...]) -> tuple[str, ...]:
        withheld_flags(keep)
        return keep


class SelectConfig(SelectOptions, ScoreConfig):
    """Options of a `select` run: corpora, strategy and budget."""

    dev: str = option(
        "",
        "Dev set, needed if a tagger is trained. Domain sentences that also occur in it are treated as test leaks.",
        corpus=True,
    )
    budget: str = option(
        "10%", "1000 (sentences), 50000tokens, 20% of the domain corpus, or threshold:0.75 in the strategy's unit."
    )
    cascade: bool | None = option(
        None,
        "Rank sentences by words and static vectors, and embed only those that can be among the best. This takes a "
        "fraction of the time and finds at least 99% of the same selection with 95% confidence. Default: on for more "
        "than 100,000 sentences, unless they are embedded already.",
    )

    def settled(self) -> Self:
        """Return the options with a value for `cascade`, if none is given and a cascade could select from a large D_C.

        The value is True unless D_C's vectors are stored already. The run records it.
        """
        settled = super().settled()
        domain = Library(home()).find(self.domain)
        if self.cascade is not None or len(domain) <= LARGE or unfit(self):
            return settled
        stored = (
            {**settled.model_dump(), "precision": cards.precision()}
            if self.precision == "auto"
            else settled.model_dump()
        )
        here = not STRATEGIES[self.strategy].models and vectors.find(RunStore(home()), stored, domain) is not None
        return settled.model_copy(update={"cascade": not here})

    @field_validator("budget")
    @classmethod
    def _budget(cls, budget: str) -> str:
        """Return the budget in its standard spelling. Errors: ConfigError, before anything is computed."""
        return str(Budget.parse(budget))


def unfit(config: SelectConfig) -> str:
    """Return the reason why a cascade cannot make this selection, or ""."""
    strategy = STRATEGIES[config.strategy]
    if not strategy.cascades(strategy_options(strategy.name, config.options)):
        return f"the strategy {config.strategy} does not support a cascade with these options"
    if config.diversity != "none":
        return "diversity needs the vectors of more sentences than are selected"
    if Budget.parse(config.budget).unit == "threshold":
        return "the number of sentences above a threshold is not known before all are scored"
    return ""


def run(config: SelectConfig, job: Job) -> SelectResult:
    """Audit, score and select, and store S_C as a corpus. Artifacts: see `selection.result`."""
    budget, drop = Budget.parse(config.budget), withheld_flags(config.keep)
    domain = job.corpus(config.domain)
    # Fail before hours of embedding, not after.
    check_budget(budget, domain.n_sentences, domain.n_tokens)
    if config.diversity != "none" and budget.unit == "threshold":
        raise ConfigError("diversity: has no effect if the budget is a threshold; give a number or share of sentences.")
    holdout = tuple(dict.fromkeys((*config.holdout, *((config.dev,) if config.dev else ()))))
    flagging = config.model_dump(include=set(Flagging.model_fields))
    job.context.part(1, PARTS, "duplicates and test leaks", shares=(0.0, _SHARES[0]))
    audit_run = job.child("audit", corpus=config.domain, held_out=holdout, **flagging)
    # Strategies without a tagger use the dev set only to find test leaks.
    trains = any("ner" in each.models for each in involved(config.strategy, config.options))
    shared = config.model_dump(include=set(ScoreConfig.model_fields)) | {"holdout": holdout}
    shared["dev"] = config.dev if trains else ""
    shared["options"] = _sized(config, budget, domain)
    job.context.part(2, PARTS, "scores", shares=_SHARES)
    score_run = _scored(config, job, shared, audit_run, drop)
    job.context.part(3, PARTS, "selection", shares=(_SHARES[1], 1.0))
    job.context.stage("selecting")
    scored = Scored.read(score_run, audit_run, job.library)
    chosen = scored.choose(budget, drop)
    if config.diversity != "none":
        scored = replace(scored, order=_diverse(config, job, scored, chosen, drop))
        scores.write_order(job.context.run, scored.order)
        chosen = scored.choose(budget, drop)
    scores.write_rows(job.context.run, chosen.rows)
    job.context.stage("storing the selection")
    sealed = _seal(config, job, scored.domain, chosen)
    return SelectResult(
        strategy=config.strategy,
        selected=len(chosen.rows),
        of=len(scored.domain),
        tokens=sealed.n_tokens,
        dropped=chosen.dropped,
        corpus=sealed.fingerprint,
        score_run=score_run.id,
        audit_run=audit_run.id,
    )


def _scored(config: SelectConfig, job: Job, shared: Mapping[str, object], audit: Run, drop: Sequence[str]) -> Run:
    """Return the run with the scores: a `cascade` run if it can serve the budget, else a `score` run."""
    if config.cascade and (why := unfit(config)):
        job.context.note(f"The cascade was not used, and every sentence was scored: {why}.")
    elif config.cascade:
        run = job.child("cascade", **shared, within=config.budget, audit=audit.id, withheld=drop)
        cascade = read_result(run, ScoreResult).cascade
        assert cascade is not None
        job.context.note(cascade.in_words(len(job.corpus(config.domain))))
        if cascade.within:
            return run
    return job.child("score", **shared)


def _sized(config: SelectConfig, budget: Budget, domain: Corpus) -> Mapping[str, object]:
    """Return the strategy's options, with values that depend on the budget; see `Strategy.sized`."""
    n = expected(budget, domain.n_sentences, domain.n_tokens)
    if n is None:
        return config.options
    sized: Config = STRATEGIES[config.strategy].sized(strategy_options(config.strategy, config.options), n)
    return sized.model_dump(mode="json")


def _seal(config: SelectConfig, job: Job, domain: Corpus, chosen: Selection) -> Corpus:
    """Store S_C as a corpus, and return it."""
    return job.library.subset(
        domain,
        chosen.rows,
        name=f"selection {domain.name} {config.strategy} {chosen.budget}{_SUFFIX[config.diversity]}",
        origin={"run": job.context.run.id, "from": domain.fingerprint},
    )


def _diverse(config: SelectConfig, job: Job, scored: Scored, chosen: Selection, drop: Sequence[str]) -> IntArray:
    """Return all scored rows, shape (m,): the best ones re-ordered by diversity, then the others by score."""
    n = len(chosen.rows)
    pool = scored.eligible(drop)[: POOL * n]
    run = job.child("embed", corpus=config.domain, **encoder_options(config))
    job.context.stage("selecting with diversity")
    pooled = vectors.read(run)[0][pool]
    if config.diversity == "mmr":
        values, prefer = scored.scores.values[pool], scored.scores.prefer
        order = mmr(pooled, values, prefer, n, trade=config.trade, report=job.context)
    else:
        order = quota(pooled, n, seed=config.seed)
    return np.concatenate([pool[order], scored.order[~np.isin(scored.order, pool)]])


def mmr(
    vectors: FloatArray, scores: FloatArray, prefer: Prefer, n: int, *, trade: float = 0.7, report: Reporter
) -> IntArray:
    """Return the first `n` indices by maximal marginal relevance (Carbonell and Goldstein 1998), then all others.

    Each step takes the row with the largest `trade * relevance - (1 - trade) * largest cosine to a taken row`.
    vectors: `(m, d)` unit rows, best score first. scores: `(m,)`; relevance is the score scaled to 0..1.
    Ties go to the better score. The cost is n x m x d products: 5,000 of 25,000 rows take about half a minute.
    Errors: ConfigError if `n` is larger than `MOST_MMR`.
    """
    if n > MOST_MMR:
        raise ConfigError(
            f"diversity: mmr selects sentences one by one, and {n:,} are too many (at most {MOST_MMR:,}); use quota."
        )
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    keys = np.asarray(scores if prefer == "high" else -scores, dtype=np.float64)
    spread = float(keys.max() - keys.min()) if len(keys) else 0.0
    # Scaled to 0..1, so that `trade` has the same meaning for every unit. With equal scores only diversity counts.
    gain = trade * (keys - keys.min()) / spread if spread else np.zeros(len(keys))
    nearest = np.zeros(len(rows), dtype=np.float32)
    free = np.ones(len(rows), dtype=bool)
    taken = np.empty(min(n, len(rows)), dtype=np.int64)
    for i in range(len(taken)):
        report.check()
        report.progress(i, len(taken), "sentences")
        # Of equal values, argmax returns the first one, which has the better score.
        best = int(np.argmax(np.where(free, gain - (1 - trade) * nearest, -np.inf)))
        taken[i], free[best] = best, False
        near = rows @ rows[best]
        # Replace the initial zeros after the first step, because cosines to the first row can be negative.
        nearest = near if i == 0 else np.maximum(nearest, near)
    return np.concatenate([taken, np.flatnonzero(free)])


def quota(vectors: FloatArray, n: int, *, seed: int = 0) -> IntArray:
    """Return all `m` indices, interleaved so that each cluster appears in proportion to its size, best first.

    k-means gives about sqrt(`n`) clusters. The j-th best of a cluster of size s is sorted by (j - 1/2) / s. Every
    prefix then contains each cluster in proportion to its size, to within one sentence. vectors: `(m, d)` unit rows,
    best score first.
    """
    from sklearn.cluster import MiniBatchKMeans

    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    # Fit on rows spaced evenly through the ranking, because its head alone would miss topics further down.
    fitted = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _FITTED)).astype(np.int64))]
    # At most as many clusters as distinct rows, because k-means would warn and leave some empty.
    k = max(min(round(n**0.5), len(np.unique(fitted, axis=0))), 1)
    label = MiniBatchKMeans(k, n_init=1, batch_size=4096, random_state=short_seed(seed)).fit(fitted).predict(rows)
    order = np.argsort(label, kind="stable")
    sizes = np.bincount(label, minlength=k)
    rank_in_cluster = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.empty(len(rows))
    place[order] = (rank_in_cluster + 0.5) / np.repeat(sizes, sizes)
    return np.argsort(place, kind="stable")


def _title(run: About) -> str:
    budget = Budget.parse(run.config["budget"]).in_words
    return f"Select {budget} of {run.corpus(run.config['domain'])} by {run.config['strategy']}"


def _outcome(result: SelectResult, _: About) -> str:
    size = f"{result.selected:,} of {count(result.of, 'sentence')}, {count(result.tokens, 'token')}"
    return f"{CHOICE.title}: {size}"


KIND = Kind(
    "select",
    SelectConfig,
    run,
    SelectResult,
    title=_title,
    outcome=_outcome,
    page="Selection",
    opens=True,
    red_items=red_items,
)
