"""`select`: score D_C and store the best sentences within a budget as the corpus S_C."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import field_validator

from core.config import Budget, option
from core.corpora.corpus import Corpus
from core.corpora.hygiene import FLAGS
from core.encoders import vectors
from core.errors import ConfigError
from core.importing.audit import Flagging
from core.importing.data_checks import red_items
from core.kind import About, Job, Kind
from core.models.encoder import EncoderOptions, encoder_options
from core.results import IntArray, Selection
from core.selection import STRATEGIES, diversity
from core.selection import result as scores
from core.selection.choose import check_budget
from core.selection.result import Scored, SelectResult, withheld_flags
from core.selection.score import ScoreConfig
from core.shown import count
from core.terms import CHOICE

PARTS = 3  # stages of a run: test leaks, scores, selection
_SUFFIX = {"none": "", "quota": " by quota", "mmr": " by mmr"}


class SelectOptions(EncoderOptions, Flagging):
    """Options of every selection: flags that withhold sentences, encoder, diversity."""

    keep: tuple[str, ...] = option((), f"Flags that do not exclude a sentence: {', '.join(FLAGS)}.")
    diversity: Literal["none", "quota", "mmr"] = option(
        "none",
        "Re-order the best-scored sentences, five times as many as the budget selects. quota: every cluster gets its "
        "share. mmr: prefer sentences that differ from those already taken (slower).",
    )
    trade: float = option(0.7, "Weight of the score in mmr. The rest is the weight of being different.", ge=0, le=1)

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

    @field_validator("budget")
    @classmethod
    def _budget(cls, budget: str) -> str:
        """Normalise the spelling. Errors: ConfigError, before anything is computed."""
        return str(Budget.parse(budget))


def run(config: SelectConfig, job: Job) -> SelectResult:
    """Audit, score and select. Stores S_C as a corpus. Artifacts: see `selection.result`."""
    budget, drop = Budget.parse(config.budget), withheld_flags(config.keep)
    domain = job.corpus(config.domain)
    check_budget(budget, domain.n_sentences, domain.n_tokens)  # fail before hours of embedding
    holdout = tuple(dict.fromkeys((*config.holdout, *((config.dev,) if config.dev else ()))))
    flagging = config.model_dump(include=set(Flagging.model_fields))
    job.context.part(1, PARTS, "duplicates and test leaks")
    audit_run = job.child("audit", corpus=config.domain, held_out=holdout, **flagging)
    trains = "ner" in STRATEGIES[config.strategy].models  # other strategies use the dev set only to find test leaks
    shared = config.model_dump(include=set(ScoreConfig.model_fields)) | {"holdout": holdout}
    shared["dev"] = config.dev if trains else ""
    job.context.part(2, PARTS, "scores")
    score_run = job.child("score", **shared)
    job.context.part(3, PARTS, "selection")
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


def _seal(config: SelectConfig, job: Job, domain: Corpus, chosen: Selection) -> Corpus:
    """Store S_C as a corpus."""
    return job.library.subset(
        domain,
        chosen.rows,
        name=f"selection {domain.name} {config.strategy} {chosen.budget}{_SUFFIX[config.diversity]}",
        origin={"run": job.context.run.id, "from": domain.fingerprint},
    )


def _diverse(config: SelectConfig, job: Job, scored: Scored, chosen: Selection, drop: Sequence[str]) -> IntArray:
    """Return all scored rows, shape (m,): the best ones re-ordered by diversity, then the others by score.

    Errors: ConfigError for a budget by threshold.
    """
    if chosen.budget.unit == "threshold":
        raise ConfigError("diversity: has no effect on a threshold, which selects all above it; give another budget.")
    n = len(chosen.rows)
    pool = scored.eligible(drop)[: diversity.POOL * n]
    run = job.child("embed", corpus=config.domain, **encoder_options(config))
    job.context.stage("selecting with diversity")
    pooled = vectors.read(run)[0][pool]
    if config.diversity == "mmr":
        values, prefer = scored.scores.values[pool], scored.scores.prefer
        order = diversity.mmr(pooled, values, prefer, n, trade=config.trade, report=job.context)
    else:
        order = diversity.quota(pooled, n, seed=config.seed)
    return np.concatenate([pool[order], scored.order[~np.isin(scored.order, pool)]])


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
