"""`score`: every sentence of D_C scored by a strategy; knows no budget, so a new budget never rescores."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
from pydantic import ValidationInfo, field_validator, model_validator

from core import cards
from core.config import option
from core.corpora.corpus import BLOCK, Corpus
from core.errors import ConfigError, CorpusError
from core.importing.audit import learnable_rows
from core.kind import Job, Kind
from core.models.encoder_options import EncoderOptions
from core.reporter import Reporter
from core.results import BoolArray, FloatArray, Role
from core.runs.chunks import About, Opened, Part
from core.runs.executors import spread
from core.selection import DEFAULT_STRATEGY, STRATEGIES, make_strategy, strategy_models, strategy_options
from core.selection.base import AdaptedOptions, Batch, Source, Strategy
from core.selection.choose import ranking
from core.selection.explain import learned
from core.selection.result import ScoreResult, write
from core.selection.strategy_models import Adapted
from core.training.on_device import on_device, worker_device
from core.training.saved_models import folder

CHUNK = 4 * BLOCK  # rows
SLOW_CHUNK = BLOCK // 8  # rows, where a model reads every sentence: what a kill may cost


class ScoreConfig(EncoderOptions):
    """Options: the strategy, and what it scores."""

    task: str = option(..., "Task corpus (T_C): sentences like the tagger's, unlabelled.", corpus=True)
    domain: str = option(..., "Domain corpus (D_C): what to select from.", corpus=True)
    train: str = option("", "Training set: labelled sentences (L_C), or a list of names (gazetteer).", corpus=True)
    dev: str = option("", "Dev set, if a tagger is trained first.", corpus=True)
    holdout: tuple[str, ...] = option((), "Labelled splits; their sentences count as leaks.", corpus=True)
    strategy: str = option(DEFAULT_STRATEGY, "How sentences are scored.")
    options: dict[str, object] = option({}, "The strategy's own options.")
    transductive: bool = option(
        False, "Learn from held-out sentences found in the task corpus too (know why, if you do)."
    )
    seed: int = option(0, "Seed of everything random.", ge=0)

    def settled(self) -> Self:
        """These options with the encoder's hash where the strategy embeds or trains."""
        strategy = STRATEGIES[self.strategy]
        return super().settled() if strategy.models or strategy.reads in ("vectors", "both") else self

    @field_validator("options")
    @classmethod
    def _complete(cls, options: dict[str, object], info: ValidationInfo) -> dict[str, object]:
        """Checked and with every default named, so that equal work has an equal key."""
        return strategy_options(info.data.get("strategy", DEFAULT_STRATEGY), options).model_dump(mode="json")

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        """Errors: ConfigError, before anything is trained."""
        strategy = STRATEGIES[self.strategy]
        if Role.LABELLED in strategy.needs and not self.train:
            raise ConfigError(f"strategy {self.strategy}: needs labels; give them with --train.")
        if "ner" in strategy.models and not self.dev:
            raise ConfigError(f"strategy {self.strategy}: trains a tagger, which needs a dev set; give it with --dev.")
        return self


@dataclass(kw_only=True)
class ScoreWork:
    """Score the sentences of D_C by a strategy.

    sources: input from which a worker prepares the strategy, if it loads a model; None if it is already prepared.
    """

    strategy: Strategy
    domain: Source
    sources: Mapping[Role, Source] | None
    exact: bool = False

    def __getstate__(self) -> dict[str, object]:
        # Vectors stay with the process that reads.
        return {**self.__dict__, "domain": Source(corpus=self.domain.corpus)}

    @property
    def stage(self) -> str:
        return f"scoring {self.domain.corpus.name}"

    @property
    def card(self) -> bool:
        return self.sources is not None

    def read(self, start: int, stop: int, about: About) -> list[Batch]:
        return list(self.domain.batches(self.strategy.reads, start, stop))

    def open(self, report: Reporter) -> Opened:
        if self.sources is not None:
            report.stage(f"preparing {self.strategy.name}")
            self.strategy.prepare(self.sources, report)
        return Opened(compute=self._scores)

    def device(self) -> tuple[str, str]:
        return worker_device() if self.card else ("processors", cards.processor())

    def _scores(self, batches: Sequence[Batch], report: Reporter) -> FloatArray:
        parts, n = list[FloatArray](), sum(map(len, batches))
        for batch in batches:
            done = len(parts) * BLOCK
            parts.append(self.strategy.score(replace(batch, report=Part(report, done, n, "sentences"))))
            report.progress(done + len(batch), n, "sentences")
            report.check()
        return np.concatenate(parts)


def run(config: ScoreConfig, job: Job) -> ScoreResult:
    """Artifacts: see `artifacts.scores`."""
    strategy = make_strategy(config.strategy, config.options, config.seed)
    sources, made_by = sources_of(config, strategy, job)
    scores, chunks = scores_of(strategy, sources, job)
    learnt = learned(strategy, sources[Role.TASK].learnable_rows() if sources[Role.TASK].vectors is not None else None)
    write(job.context.run, scores, ranking(scores, strategy.prefer), learnt)
    for path in chunks:
        path.unlink()
    return ScoreResult(
        strategy=strategy.name, unit=strategy.unit, prefer=strategy.prefer, scored=len(scores), made_by=made_by
    )


def scores_of(strategy: Strategy, sources: Mapping[Role, Source], job: Job) -> tuple[FloatArray, list[Path]]:
    """`(n,)` D_C's scores, and the chunks that they lie in until what is made of them is written."""
    domain = sources[Role.DOMAIN]
    slow = bool(strategy.models) and strategy.reads == "text"
    if not slow:
        job.context.stage(f"preparing {strategy.name}")
        strategy.prepare(sources, job.context)
    work = ScoreWork(strategy=strategy, domain=domain, sources=sources if slow else None)
    device = partial(on_device, job, alone=False) if slow else nullcontext
    size = SLOW_CHUNK if slow else CHUNK
    chunks, _ = spread(job.context, len(domain.corpus), size, work, "score", device=device)
    return np.concatenate([np.load(path) for path in chunks]), chunks


def sources_of(config: ScoreConfig, strategy: Strategy, job: Job) -> tuple[dict[Role, Source], dict[str, list[str]]]:
    """Sources that the strategy looks at, and, where models were trained for it, the runs behind it by kind."""
    task, domain = job.corpus(config.task), job.corpus(config.domain)
    _refuse_swapped(task, domain)
    keep = _learnable(config, job)
    models, made_by = _models(config, strategy, job)
    sources = {
        Role.TASK: Source(corpus=task, keep=keep, model=folder(models.mlm) if models else None),
        Role.DOMAIN: Source(corpus=domain),
    }
    if strategy.reads in ("vectors", "both"):
        for role, source in sources.items():
            mark = source.corpus.fingerprint
            vectors, norms, runs = strategy_models.embedded(job, mark, config, models, config.options)
            sources[role] = replace(source, vectors=vectors, norms=norms)
            made_by |= {f"embed {role}": runs} if models else {}
    if models and strategy.reads == "spans":
        spans, made_by["tag"] = strategy_models.tagged(job, domain.fingerprint, models)
        sources[Role.DOMAIN] = replace(sources[Role.DOMAIN], spans=spans)
    if config.train:
        sources[Role.LABELLED] = Source(corpus=job.corpus(config.train))
    return sources, made_by


def _refuse_swapped(task: Corpus, domain: Corpus) -> None:
    if len(task) > len(domain):
        raise CorpusError(
            f"the task corpus {task.name} ({len(task):,} sentences) is larger than the domain corpus {domain.name} "
            f"({len(domain):,}); selection takes a domain corpus and a small task corpus: did you swap them?"
        )


def _models(config: ScoreConfig, strategy: Strategy, job: Job) -> tuple[Adapted | None, dict[str, list[str]]]:
    """B1, and B2 where it is asked for, finished; and their runs by kind."""
    if not strategy.models:
        return None, {}
    options = strategy_options(config.strategy, config.options)
    shared = options.model_dump(mode="json", include=set(AdaptedOptions.model_fields))
    b1 = strategy_models.language_model(job, config.task, _held_out(config), config, seed=config.seed, **shared)
    if "ner" not in strategy.models:
        return Adapted(mlm=b1), {"pretrain": [b1.id]}
    train, dev, folds = job.corpus(config.train), job.corpus(config.dev), getattr(options, "folds", 1)
    b2 = strategy_models.taggers(job, b1, train=train, dev=dev, folds=folds, seed=config.seed, **shared)
    return Adapted(mlm=b1, ner=b2), {"pretrain": [b1.id], "finetune": [run.id for run in b2]}


def _held_out(config: ScoreConfig) -> tuple[str, ...]:
    """Whose sentences T_C may not teach (SOURCES.md, Leaks)."""
    return () if config.transductive else config.holdout


def _learnable(config: ScoreConfig, job: Job) -> BoolArray | None:
    """T_C's rows that are no held-out sentence."""
    keep = learnable_rows(config.task, _held_out(config), job)
    if keep is not None and not keep.all():
        job.context.note(
            f"{int((~keep).sum())} sentences of the task corpus are in held-out data and were not learnt from."
        )
    return keep


KIND = Kind("score", ScoreConfig, run, ScoreResult, command=None, helped=run)
