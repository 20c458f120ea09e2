"""`prevalence`: how many sentences of D_C are like T_C's, as a range (SOURCES.md, Prevalence)."""

from math import ceil, floor

import numpy as np

from core.config import option
from core.errors import CorpusError
from core.kind import About, Job, Kind
from core.models.encoder_options import EncoderOptions
from core.results import FloatArray, IntArray, Role
from core.selection.prevalence_result import PrevalenceResult
from core.selection.score import ScoreConfig, scores_of, sources_of
from core.selection.strategies.classifier import ClassifierOptions
from core.selection.strategies.cross_fitted import CrossFitted
from core.shown import count
from core.stats.prevalence import prevalence

LEAST = 20  # sentences of T_C
# A tenth of what the strategy has: it is to treat sentences of T_C that it saw and others of their kind alike, where
# the strategy is to rank well.
REGULARISATION = 1.0


class PrevalenceConfig(EncoderOptions):
    """Options: what is looked for, and in what."""

    task: str = option(..., "Task corpus (T_C): sentences like the tagger's, unlabelled.", corpus=True)
    domain: str = option(..., "Domain corpus (D_C), which may have more of the kind.", corpus=True)
    seed: int = option(0, "Seed of the sample of the domain corpus that the task corpus is compared with.", ge=0)


def run(config: PrevalenceConfig, job: Job) -> PrevalenceResult:
    """No artifacts."""
    corpus = job.corpus(config.task)
    if (n := len(np.unique(corpus.ids()))) < LEAST:
        raise CorpusError(
            f"{corpus.name}: {n} different sentences are too few to tell what is like them; give {LEAST} or more."
        )
    strategy = CrossFitted(ClassifierOptions(regularisation=REGULARISATION), config.seed)
    sources, _ = sources_of(ScoreConfig.parse(config.model_dump()), strategy, job)
    task = sources[Role.TASK]
    scores, chunks = scores_of(strategy, sources, job)
    own = np.concatenate([strategy.score(batch) for batch in task.batches(strategy.reads)])
    wanted = _distinct(own, task.corpus.ids())
    pile = _distinct(scores, sources[Role.DOMAIN].corpus.ids())
    result = prevalence(wanted, pile)
    for path in chunks:
        path.unlink()
    return PrevalenceResult(
        low=floor(result.low),
        high=ceil(result.high),
        about=round(result.about),
        task=len(wanted),
        domain=len(pile),
        quantiles=result.quantiles,
    )


def _distinct(scores: FloatArray, ids: IntArray) -> FloatArray:
    """Scores of each sentence once, without those that could not be scored."""
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
    title=lambda run: f"Count what is like {run.corpus(run.config['task'])} in {run.corpus(run.config['domain'])}",
    outcome=_outcome,
    page="Selection",
)
