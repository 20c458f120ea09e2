"""B1 and B2, the models that strategies learn by (SOURCES.md, B1 and B2): child runs, made once, and what they say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.corpora.corpus import Corpus
from core.encoders.vectors import read_joined
from core.errors import CorpusError
from core.importing.audit import learnable
from core.kind import Job
from core.models.encoder_options import EncoderOptions, encoder_options
from core.results import FloatArray, Rows
from core.runs.run import Run
from core.selection.spans import Spans
from core.selection.strategies.predictions import fold
from core.tagging.predictions import read_spans
from core.training.saved_models import folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted:
    """B1, and B2: one tagger, or one a fold of L_C; none where the strategy needs none."""

    mlm: Run
    ner: tuple[Run, ...] = ()


def language_model(job: Job, task: str, held_out: Sequence[str], encoder: EncoderOptions, **training: object) -> Run:
    """B1: the encoder after masked language modelling on T_C, but for what leaks of `held_out` (SOURCES.md, Leaks).

    training: further options of `pretrain`. Where rows leak, the others are sealed as a corpus, so that the run's
    inputs say what it has read.
    """
    corpus = learnable(task, held_out, job)
    given = {"init": encoder.encoder, "allow_download": encoder.allow_download, **training}
    return job.child("pretrain", corpora=(corpus.fingerprint,), **given)


def taggers(
    job: Job, start: Run, *, train: Corpus, dev: Corpus, folds: int, seed: int, **training: object
) -> tuple[Run, ...]:
    """B2: B1 (`start`) trained to tag L_C; where `folds` is above 1, taggers that each lack their share of it.

    training: further options of `finetune`.
    """
    parts = [train] if folds == 1 else _without_folds(job, train, folds)
    given = {"init": start.id, "dev": dev.fingerprint, "seeds": (seed,), **training}
    return tuple(job.child("finetune", train=part.fingerprint, **given) for part in parts)


def _without_folds(job: Job, train: Corpus, folds: int) -> list[Corpus]:
    """L_C without fold 0, without fold 1, ..., each sealed."""
    fold_of = fold(train.ids(), folds)
    if missing := set(range(folds)) - set(fold_of.tolist()):
        raise CorpusError(
            f"{train.name}: {len(train)} sentences do not fill {folds} folds (number {min(missing)} is empty); "
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
    """Vectors and norms by the encoder, or by B1, or by B1 and B2 side by side; and the runs that made them."""
    encoders = [str(folder(run)) for run in (models.mlm, *models.ner)] if models else [config.encoder]
    runs = [
        job.child("embed", corpus=corpus, **encoder_options(config) | {"encoder": name, "weights": ""})
        for name in encoders
    ]
    return *read_joined(runs, options), [run.id for run in runs]


def tagged(job: Job, corpus: str, models: Adapted) -> tuple[tuple[Spans, ...], list[str]]:
    """Spans that each tagger finds in a corpus; and the runs that found it."""
    runs = [job.child("tag", corpus=corpus, model=str(folder(run))) for run in models.ner]
    return tuple(read_spans(run) for run in runs), [run.id for run in runs]
