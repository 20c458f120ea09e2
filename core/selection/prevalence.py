"""`prevalence`: estimate how many sentences of D_C resemble T_C, as a range (SOURCES.md, Prevalence)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from core.config import option
from core.errors import CorpusError
from core.kind import About, Job, Kind
from core.models.encoder import EncoderOptions
from core.results import FloatArray, IntArray, Role
from core.selection.score import ScoreConfig, scores_of, sources_of
from core.selection.strategies.classifier import ClassifierOptions, CrossFitted
from core.shown import count
from core.stats.prevalence import QuantileCount
from core.stats.prevalence import prevalence as estimate_prevalence

# smallest number of distinct sentences in T_C
LEAST = 20
# A tenth of the default of the strategy `classifier`. A ranking needs a close fit, but a count needs similar scores for
# sentences inside and outside the training data.
REGULARISATION = 1.0


class PrevalenceConfig(EncoderOptions):
    """Options of a `prevalence` run: both corpora and the seed."""

    task: str = option(..., "Task corpus (T_C): unlabelled sentences like those to tag.", corpus=True)
    domain: str = option(..., "Domain corpus (D_C), in which similar sentences are counted.", corpus=True)
    seed: int = option(0, "Seed for sampling the domain corpus.", ge=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrevalenceResult:
    """Result of a `prevalence` run.

    low, high: range of the number of D_C's sentences that resemble T_C. about: the point estimate.
    task, domain: number of distinct sentences of T_C and of D_C that could be scored. quantiles: one estimate per
    quantile of T_C's scores.
    """

    low: int
    high: int
    about: int
    task: int
    domain: int
    quantiles: Sequence[QuantileCount]


def run(config: PrevalenceConfig, job: Job) -> PrevalenceResult:
    """Score D_C by a cross-fitted classifier, and estimate how many sentences resemble T_C. Writes no artifacts.

    Errors: CorpusError if T_C has fewer than `LEAST` distinct sentences.
    """
    corpus = job.corpus(config.task)
    if (n := len(np.unique(corpus.ids()))) < LEAST:
        raise CorpusError(
            f"{corpus.name}: {n} different sentences are too few to count sentences like them; give {LEAST} or more."
        )
    strategy = CrossFitted(ClassifierOptions(regularisation=REGULARISATION), config.seed)
    sources, _ = sources_of(ScoreConfig.parse(config.model_dump()), strategy, job)
    task = sources[Role.TASK]
    scores, chunks = scores_of(strategy, sources, job)
    own = np.concatenate([strategy.score(batch) for batch in task.batches(strategy.reads)])
    task_scores = _distinct(own, task.corpus.ids())
    domain_scores = _distinct(scores, sources[Role.DOMAIN].corpus.ids())
    estimate = estimate_prevalence(task_scores, domain_scores)
    for path in chunks:
        path.unlink()
    return PrevalenceResult(
        low=floor(estimate.low),
        high=ceil(estimate.high),
        about=round(estimate.about),
        task=len(task_scores),
        domain=len(domain_scores),
        quantiles=estimate.quantiles,
    )


def _distinct(scores: FloatArray, ids: IntArray) -> FloatArray:
    """Return one score per distinct sentence, without NaN."""
    values: FloatArray = scores[np.unique(ids, return_index=True)[1]]
    return values[~np.isnan(values)]


def _outcome(result: PrevalenceResult, _: About) -> str:
    interval = f"{result.low:,} to {result.high:,}"
    return f"About {count(result.about, 'sentence')} of the domain corpus are like the task corpus ({interval})"


KIND = Kind(
    "prevalence",
    PrevalenceConfig,
    run,
    PrevalenceResult,
    title=lambda run: f"Count sentences like {run.corpus(run.config['task'])} in {run.corpus(run.config['domain'])}",
    outcome=_outcome,
    page="Selection",
)
