"""`score`: score every sentence of D_C by a strategy. Scores do not depend on the budget, so a new budget reuses them.

Also trains B1 and B2, the models that some strategies need (SOURCES.md, B1 and B2), as child runs.
"""

from collections.abc import Collection, Mapping, Sequence
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
from core.encoders.vectors import read_joined
from core.errors import ConfigError, CorpusError
from core.importing.audit import learnable, learnable_rows
from core.kind import Job, Kind
from core.models.encoder import EncoderOptions, encoder_options
from core.reporter import Reporter
from core.results import BoolArray, FloatArray, IntArray, Role, Rows
from core.runs.chunks import About, Opened, Part
from core.runs.run import Run
from core.runs.spread import spread
from core.selection import DEFAULT_STRATEGY, STRATEGIES, involved, make_strategy, strategy_options
from core.selection.base import AdaptedOptions, Batch, Source, Strategy
from core.selection.choose import ranking, ranks
from core.selection.evidence import Arrays, Spans
from core.selection.result import ScoreResult, read_values, write
from core.selection.strategies.predictions import fold
from core.stats.draws import sample
from core.tagging.predictions import read_spans
from core.training.on_device import on_device, worker_device
from core.training.saved_models import folder

# number of rows per chunk; a run that was killed repeats at most one chunk
CHUNK = 4 * BLOCK
# number of rows per chunk if a model reads every sentence
SLOW_CHUNK = BLOCK // 8


class ScoreConfig(EncoderOptions):
    """Options of a `score` run: the strategy and its corpora."""

    task: str = option(..., "Task corpus (T_C): unlabelled sentences like those to tag.", corpus=True)
    domain: str = option(..., "Domain corpus (D_C): the sentences to select from.", corpus=True)
    train: str = option("", "Training set: labelled sentences (L_C), or for gazetteer a list of names.", corpus=True)
    dev: str = option("", "Dev set, needed if the strategy trains a tagger.", corpus=True)
    holdout: tuple[str, ...] = option(
        (),
        "Held-out labelled sets. Domain sentences that also occur in them are treated as test leaks.",
        corpus=True,
    )
    strategy: str = option(DEFAULT_STRATEGY, "How sentences are scored.")
    options: dict[str, object] = option({}, "The strategy's own options.")
    transductive: bool = option(
        False, "Also learn from task sentences that occur in held-out sets. F1 on these sets may then be too high."
    )
    seed: int = option(0, "Seed of everything random.", ge=0)

    def settled(self) -> Self:
        """Return these options, with the encoder's hash if the strategy embeds sentences or trains a model."""
        every = involved(self.strategy, self.options)
        return super().settled() if any(each.models or each.reads in ("vectors", "both") for each in every) else self

    @field_validator("options")
    @classmethod
    def _complete(cls, options: dict[str, object], info: ValidationInfo) -> dict[str, object]:
        """Return the checked options with every default filled in, so that runs of the same work have the same key."""
        return strategy_options(info.data.get("strategy", DEFAULT_STRATEGY), options).model_dump(mode="json")

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        """Check the inputs before anything is trained. Errors: ConfigError."""
        for strategy in involved(self.strategy, self.options):
            if Role.LABELLED in strategy.needs and not self.train:
                raise ConfigError(f"strategy {strategy.name}: needs labels; give them with --train.")
            if "ner" in strategy.models and not self.dev:
                raise ConfigError(
                    f"strategy {strategy.name}: trains a tagger, which needs a dev set; give it with --dev."
                )
        return self


@dataclass(kw_only=True)
class ScoreWork:
    """Work that scores the sentences of D_C by a strategy.

    sources: given to `Strategy.prepare` in each worker, if the strategy loads a model; None if it is already prepared.
    """

    strategy: Strategy
    domain: Source
    sources: Mapping[Role, Source] | None

    def __getstate__(self) -> dict[str, object]:
        # Only the process that reads batches needs the vectors, so they are not sent to workers.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted:
    """Runs that trained the models of a strategy.

    mlm: run that trained B1, the encoder after continued pre-training (MLM) on T_C. ner: runs that fine-tuned B1 into
    the tagger B2: none, one, or one per fold of L_C. prior: run that trained the encoder in the same way as B1 on a
    sample of D_C; None if the strategy does not use it.
    """

    mlm: Run
    ner: tuple[Run, ...] = ()
    prior: Run | None = None


def run(config: ScoreConfig, job: Job) -> ScoreResult:
    """Score D_C. Artifacts: see `selection.result`."""
    strategy = make_strategy(config.strategy, config.options, config.seed)
    sources, made_by = sources_of(config, strategy, job)
    scores, chunks = scores_of(strategy, sources, job)
    task = sources[Role.TASK]
    learnt = explanation_arrays(strategy, None if task.vectors is None else task.learnable_rows())
    write(job.context.run, scores, ranking(scores, strategy.prefer), learnt)
    for path in chunks:
        path.unlink()
    return ScoreResult(
        strategy=strategy.name, unit=strategy.unit, prefer=strategy.prefer, scored=len(scores), made_by=made_by
    )


def explanation_arrays(strategy: Strategy, task_rows: IntArray | None) -> Arrays:
    """Return the arrays of a prepared strategy that `explain` needs. They are stored with the scores.

    task_rows: rows of T_C that the strategy learnt from, if it uses vectors.
    """
    return {**({} if task_rows is None else {"task_rows": task_rows}), **strategy.learned()}


def scores_of(strategy: Strategy, sources: Mapping[Role, Source], job: Job) -> tuple[FloatArray, list[Path]]:
    """Return D_C's scores, shape (n,), and their chunk files. The caller deletes the files after writing its result."""
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


def sources_of(
    config: ScoreConfig, strategy: Strategy, job: Job, *, embeds: Collection[Role] = (Role.TASK, Role.DOMAIN)
) -> tuple[dict[Role, Source], dict[str, list[str]]]:
    """Return the strategy's sources by role, and the ids of the runs that trained its models, by kind of run.

    embeds: roles of the corpora to embed if the strategy reads vectors.
    """
    task, domain = job.corpus(config.task), job.corpus(config.domain)
    refuse_swapped(task, domain)
    keep = _learnable(config, job)
    models, made_by = _models(config, strategy, job)
    sources = {
        Role.TASK: Source(corpus=task, keep=keep, model=folder(models.mlm) if models else None),
        Role.DOMAIN: Source(corpus=domain, model=folder(models.prior) if models and models.prior else None),
    }
    if strategy.reads in ("vectors", "both"):
        for role in embeds:
            mark = sources[role].corpus.fingerprint
            vectors, norms, runs = embedded(job, mark, config, models, config.options)
            sources[role] = replace(sources[role], vectors=vectors, norms=norms)
            made_by |= {f"embed {role}": runs} if models else {}
    if models and strategy.reads == "spans":
        spans, made_by["tag"] = tagged(job, domain.fingerprint, models)
        sources[Role.DOMAIN] = replace(sources[Role.DOMAIN], spans=spans)
    if others := strategy.others(strategy.options):
        columns, made_by["score"] = ranked(config, others, job)
        sources[Role.DOMAIN] = replace(sources[Role.DOMAIN], ranks=columns)
    if config.train:
        sources[Role.LABELLED] = Source(corpus=job.corpus(config.train))
    return sources, made_by


def ranked(config: ScoreConfig, others: Sequence[str], job: Job) -> tuple[FloatArray, list[str]]:
    """Score D_C by other strategies. Return the ranks, shape (n, k), and the run ids."""
    runs = []
    for other in others:
        # Use the options that a `select` run by this strategy would use, so that both share one `score` run. `dev` is
        # empty if the strategy trains no tagger. `settled` fills in `weights`, the encoder's hash, if needed.
        dev = config.dev if "ner" in STRATEGIES[other].models else ""
        own: dict[str, object] = {"strategy": other, "options": {}, "dev": dev, "weights": ""}
        runs.append(job.child("score", **config.model_dump() | own))
    columns = [ranks(read_values(run), STRATEGIES[other].prefer) for run, other in zip(runs, others, strict=True)]
    return np.stack(columns, axis=1), [run.id for run in runs]


def refuse_swapped(task: Corpus, domain: Corpus) -> None:
    """Raise CorpusError if T_C has more sentences than D_C."""
    if len(task) > len(domain):
        raise CorpusError(
            f"the task corpus {task.name} ({len(task):,} sentences) is larger than the domain corpus {domain.name} "
            f"({len(domain):,}); selection takes a domain corpus and a small task corpus: did you swap them?"
        )


def _models(config: ScoreConfig, strategy: Strategy, job: Job) -> tuple[Adapted | None, dict[str, list[str]]]:
    """Train the models that a strategy needs. Return the runs (None without models), and their ids by kind of run."""
    if not strategy.models:
        return None, {}
    options = strategy_options(config.strategy, config.options)
    shared = options.model_dump(mode="json", include=set(AdaptedOptions.model_fields))
    b1 = language_model(job, config.task, _held_out(config), config, seed=config.seed, **shared)
    if "prior" in strategy.models:
        drawn = _sample(job, config, len(learnable(config.task, _held_out(config), job)))
        prior = language_model(job, drawn.fingerprint, _held_out(config), config, seed=config.seed, **shared)
        return Adapted(mlm=b1, prior=prior), {"pretrain": [b1.id, prior.id]}
    if "ner" not in strategy.models:
        return Adapted(mlm=b1), {"pretrain": [b1.id]}
    train, dev, folds = job.corpus(config.train), job.corpus(config.dev), getattr(options, "folds", 1)
    b2 = taggers(job, b1, train=train, dev=dev, folds=folds, seed=config.seed, **shared)
    return Adapted(mlm=b1, ner=b2), {"pretrain": [b1.id], "finetune": [run.id for run in b2]}


def _sample(job: Job, config: ScoreConfig, n: int) -> Corpus:
    """Return `n` random sentences of D_C, stored as a corpus."""
    domain = job.corpus(config.domain)
    return job.library.subset(
        domain,
        sample(domain.ids(), n, config.seed),
        name=f"{domain.name} sample of {n}",
        origin={"from": domain.fingerprint, "sample": n, "seed": config.seed},
    )


def _held_out(config: ScoreConfig) -> tuple[str, ...]:
    """Return the corpora whose sentences the strategy must not learn from (SOURCES.md, Leaks)."""
    return () if config.transductive else config.holdout


def _learnable(config: ScoreConfig, job: Job) -> BoolArray | None:
    """Return a mask of T_C's rows that do not occur in held-out data; None if there is no held-out data."""
    keep = learnable_rows(config.task, _held_out(config), job)
    if keep is not None and not keep.all():
        job.context.note(
            f"{int((~keep).sum())} sentences of the task corpus also occur in held-out data; "
            "the strategy did not learn from them."
        )
    return keep


def language_model(job: Job, task: str, held_out: Sequence[str], encoder: EncoderOptions, **training: object) -> Run:
    """Train B1: continued pre-training on T_C without the sentences of `held_out` (SOURCES.md, Leaks). Return the run.

    training: further options of `pretrain`. If T_C has test leaks, its other sentences are stored as a separate corpus.
    The run's inputs then name exactly the sentences that it trained on.
    """
    corpus = learnable(task, held_out, job)
    given = {"init": encoder.encoder, "allow_download": encoder.allow_download, **training}
    return job.child("pretrain", corpora=(corpus.fingerprint,), **given)


def taggers(
    job: Job, start: Run, *, train: Corpus, dev: Corpus, folds: int, seed: int, **training: object
) -> tuple[Run, ...]:
    """Train B2: fine-tune B1 (`start`) on L_C. Return one run; with several folds, one run per left-out fold.

    training: further options of `finetune`.
    """
    parts = [train] if folds == 1 else without_folds(job, train, folds)
    given = {"init": start.id, "dev": dev.fingerprint, "seeds": (seed,), **training}
    return tuple(job.child("finetune", train=part.fingerprint, **given) for part in parts)


def without_folds(job: Job, train: Corpus, folds: int) -> list[Corpus]:
    """Return one stored corpus per fold: L_C without the sentences of this fold (`strategies.predictions.fold`).

    Errors: CorpusError if a fold has no sentence.
    """
    fold_of = fold(train.ids(), folds)
    if missing := set(range(folds)) - set(fold_of.tolist()):
        raise CorpusError(
            f"{train.name}: {len(train)} sentences do not fill {folds} folds (fold {min(missing)} is empty); "
            "give fewer folds."
        )
    return [
        job.library.subset(
            train,
            np.flatnonzero(fold_of != k),
            name=f"{train.name} without fold {k + 1} of {folds}",
            origin={"from": train.fingerprint, "fold": k, "folds": folds},
        )
        for k in range(folds)
    ]


def embedded(
    job: Job, corpus: str, config: EncoderOptions, models: Adapted | None, options: Mapping[str, object]
) -> tuple[Rows, FloatArray, list[str]]:
    """Embed a corpus, and return vectors, norms and the ids of the `embed` runs.

    models: the runs that trained the models to embed with (B1, and B2 if there is one); their embeddings are joined.
    None to embed with the encoder of `config`.
    """
    encoders = [str(folder(run)) for run in (models.mlm, *models.ner)] if models else [config.encoder]
    runs = [
        job.child("embed", corpus=corpus, **encoder_options(config) | {"encoder": name, "weights": ""})
        for name in encoders
    ]
    return *read_joined(runs, options), [run.id for run in runs]


def tagged(job: Job, corpus: str, models: Adapted) -> tuple[tuple[Spans, ...], list[str]]:
    """Tag a corpus with each tagger of `models.ner`. Return the spans per tagger, and the ids of the `tag` runs."""
    runs = [job.child("tag", corpus=corpus, model=str(folder(run))) for run in models.ner]
    return tuple(read_spans(run) for run in runs), [run.id for run in runs]


KIND = Kind("score", ScoreConfig, run, ScoreResult, command=None)
