"""`score`: every sentence of D_C scored by a strategy; knows no budget, so a new budget never rescores."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from pydantic import ValidationInfo, field_validator

from core.config import option
from core.corpora.corpus import BLOCK
from core.corpora.hygiene import Audit
from core.errors import ConfigError, CorpusError
from core.recipes.audit import Lengths
from core.recipes.base import Job, Result
from core.recipes.embed import EncoderOptions, encoder_options, load
from core.reporter import Reporter
from core.results import BoolArray, FloatArray, Role
from core.runs.chunks import chunked
from core.selection import DEFAULT_STRATEGY, STRATEGIES, make_strategy, strategy_options
from core.selection.base import Source, Strategy
from core.selection.choose import ranking
from core.selection.explain import learned

CHUNK = 4 * BLOCK  # rows


class ScoreConfig(EncoderOptions):
    """Which strategy, on what."""

    task: str = option(..., "T_C: sentences of the task, unlabelled.", corpus=True)
    domain: str = option(..., "D_C: the large corpus to select from.", corpus=True)
    train: str = option("", "L_C: labelled training sentences, or a list of names (gazetteer).", corpus=True)
    holdout: tuple[str, ...] = option((), "Labelled splits; their sentences count as leaks.", corpus=True)
    strategy: str = option(DEFAULT_STRATEGY, "How sentences are scored.")
    options: dict[str, Any] = option({}, "The strategy's own options.")
    transductive: bool = option(False, "Learn from held-out sentences found in T_C too (know why, if you do).")
    seed: int = option(0, "Seed of everything random.", ge=0)

    def settled(self) -> Self:
        """With the encoder's hash where the strategy embeds."""
        return super().settled() if STRATEGIES[self.strategy].reads != "text" else self

    @field_validator("options")
    @classmethod
    def _complete(cls, options: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """Checked and with every default named, so that equal work has an equal key."""
        return strategy_options(info.data.get("strategy", DEFAULT_STRATEGY), options).model_dump(mode="json")


def run(config: ScoreConfig, job: Job) -> Result:
    """Artifacts: `scores.npy` `(n,)` float64, `order.npy` `(m,)` int64 (best first, unscored left out),
    `model.npz`, what explaining a score needs of the strategy (see `selection.explain`)."""
    strategy = make_strategy(config.strategy, config.options, config.seed)
    sources = _sources(config, strategy, job)
    job.context.stage(f"preparing {strategy.name}")
    strategy.prepare(sources, job.context)
    domain = sources[Role.DOMAIN]
    job.context.stage(f"scoring {domain.corpus.name}")

    def compute(start: int, stop: int, report: Reporter) -> npt.NDArray[Any]:
        parts: list[FloatArray] = []
        for batch in domain.batches(strategy.reads, start, stop):
            parts.append(strategy.score(batch))
            report.progress(min(len(parts) * BLOCK, stop - start), stop - start, "sentences")
            report.check()
        return np.concatenate(parts)

    chunks = chunked(job.context, len(domain.corpus), CHUNK, compute, "score")
    scores = np.concatenate([np.load(path) for path in chunks])
    np.save(job.context.run.artifacts / "scores.npy", scores)
    np.save(job.context.run.artifacts / "order.npy", ranking(scores, strategy.prefer))
    learnt = learned(strategy, sources[Role.TASK].learnable_rows() if sources[Role.TASK].vectors is not None else None)
    np.savez(job.context.run.artifacts / "model.npz", allow_pickle=False, **learnt)
    for path in chunks:
        path.unlink()
    return {"strategy": strategy.name, "unit": strategy.unit, "prefer": strategy.prefer, "scored": len(scores)}


def _sources(config: ScoreConfig, strategy: Strategy, job: Job) -> dict[Role, Source]:
    task, domain = job.corpus(config.task), job.corpus(config.domain)
    if len(task) > len(domain):
        raise CorpusError(
            f"T_C {task.name} ({len(task):,} sentences) is larger than D_C {domain.name} ({len(domain):,}); "
            "selection takes a large D_C and a small T_C: did you swap them?"
        )
    sources = {
        Role.TASK: Source(corpus=task, keep=_learnable(config, job), **_embedded(config, strategy, config.task, job)),
        Role.DOMAIN: Source(corpus=domain, **_embedded(config, strategy, config.domain, job)),
    }
    if config.train:
        sources[Role.LABELLED] = Source(corpus=job.corpus(config.train))
    if missing := strategy.needs - set(sources):
        raise ConfigError(f"strategy {strategy.name}: needs {', '.join(sorted(missing))}; give it with --train.")
    return sources


def _learnable(config: ScoreConfig, job: Job) -> BoolArray | None:
    """T_C's rows that are no held-out sentence (SPEC C5)."""
    if config.transductive or not config.holdout:
        return None
    run = job.child("audit", corpus=config.task, held_out=config.holdout, **Lengths().model_dump())
    audit = Audit.load(run.artifacts / "audit")
    leaked = audit.has("leak")
    if leaked.any():
        job.context.note(f"{int(leaked.sum())} sentences of T_C are in held-out data and were not learnt from.")
    return ~leaked


def _embedded(config: ScoreConfig, strategy: Strategy, corpus: str, job: Job) -> dict[str, Any]:
    if strategy.reads == "text":
        return {}
    run = job.child("embed", corpus=corpus, **encoder_options(config))
    vectors, norms = load(run.artifacts)
    return {"vectors": vectors, "norms": norms}
