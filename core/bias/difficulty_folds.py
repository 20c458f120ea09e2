"""The trainings of a `difficulty` run: one a repeat, fold and view, each finished if and only if its file is there.

chunks/r0-f2-context.npz   model: log2 probabilities (n_held, k) for the mentions of fold 2 under a model that has not
                           seen the fold; null (k,): under its null model; seconds: that it took
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from core.bias.instances import VIEWS, Instance, View
from core.bias.pvi import calibrated, log2_prior, pvi
from core.files import TEMPORARY, replacing
from core.kind import Job
from core.reporter import Reporter, Silent
from core.results import BoolArray, FloatArray, IntArray
from core.runs.chunks import Part
from core.runs.parts import Parts
from core.training.classify_settings import ClassifySettings, preset
from core.training.on_device import on_device

if TYPE_CHECKING:
    from core.bias.difficulty import DifficultyConfig
    from core.models.classifier import Classifier
    from core.models.pieces import Ids

_ALONE: Mapping[View, str] = {"context": "contexts alone", "entity": "names alone"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Mentions to judge. labels: `(n,)` indices into types. folds: `(n,)`, one a repeat, of whole `grouped_by`s."""

    instances: Sequence[Instance]
    types: tuple[str, ...]
    labels: IntArray
    folds: Sequence[IntArray]
    grouped_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """pvi: `(repeats, n)` bits a view. strengths: of its calibration, one a model; none without. settings: as each view
    was trained. cut: inputs that the window does not hold, `window` pieces. seconds: of all trainings.
    """

    pvi: Mapping[View, FloatArray]
    strengths: Mapping[View, Sequence[float]]
    settings: Mapping[str, Mapping[str, int | float | str | bool]]
    cut: Mapping[View, int]
    window: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Training:
    """held: `(n,)` what it judges; it learns from the rest. pieces: that it will read. earlier: steps of its view."""

    seed: tuple[int, ...]
    repeat: int
    view: View
    settings: ClassifySettings
    null: ClassifySettings
    held: BoolArray
    pieces: int
    earlier: int
    path: Path


def constant_answers(questions: Questions) -> Answers:
    """Mentions of one type alone: 0 bits, whoever is asked."""
    zeros = np.zeros((len(questions.folds), len(questions.instances)))
    return Answers(
        pvi=dict.fromkeys(VIEWS, zeros), strengths={}, settings={}, cut=dict.fromkeys(VIEWS, 0), window=0, seconds=0.0
    )


def answers(config: "DifficultyConfig", questions: Questions, job: Job) -> Answers:
    """Train what is not there yet; the device is this run's alone meanwhile. Errors: Cancelled, ModelError."""
    from core.models.classifier import new_classifier
    from core.models.memory import release_memory

    options = config.model_dump(include={"max_length", "precision", "allow_download"})
    reader = new_classifier(config.encoder, 1, device="cpu", **options)  # it only cuts words
    width = reader.last_layer.in_features
    inputs, cut = _inputs(reader, questions.instances)
    settings = {view: settings_of(config, view, len(questions.instances), width) for view in VIEWS}
    trainings = _trainings(config, questions, inputs, settings, job.context.run.chunks)
    for leftover in job.context.run.chunks.glob(TEMPORARY):
        leftover.unlink()
    with on_device(job, config.precision):
        done, total = sum(one.pieces for one in trainings if one.path.exists()), sum(one.pieces for one in trainings)
        parts = Parts(job.context, [one.pieces for one in trainings], judged=len(VIEWS))
        job.context.stage("training the classifiers")  # one stage: what is left is judged over both of their speeds
        for i, one in enumerate(trainings):
            if not one.path.exists():
                parts.next(i, _ALONE[one.view])
                _train(config, questions, inputs[one.view], one, Part(job.context, done, total, "pieces"))
                release_memory()
                done += one.pieces
    bits, strengths, seconds = _read(config, questions, trainings)
    return Answers(
        pvi=bits,
        strengths=strengths,
        settings={view: asdict(each) for view, each in settings.items()},
        cut=cut,
        window=reader.pieces.max_length,
        seconds=round(seconds, 1),
    )


def _read(
    config: "DifficultyConfig", questions: Questions, trainings: Sequence[_Training]
) -> tuple[dict[View, FloatArray], dict[View, list[float]], float]:
    """Read what came of all trainings: PVI `(repeats, n)` and the strengths of its calibration, a view; seconds."""
    n, seconds = len(questions.instances), 0.0
    bits: dict[View, FloatArray] = {view: np.zeros((len(questions.folds), n)) for view in VIEWS}
    strengths: dict[View, list[float]] = {view: [] for view in VIEWS}
    truth = (np.arange(n), questions.labels)
    for view, repeat in product(VIEWS, range(len(questions.folds))):
        model, null = np.zeros((2, n, len(questions.types)))
        for one in trainings:
            if (one.view, one.repeat) == (view, repeat):
                with np.load(one.path) as file:
                    model[one.held], null[one.held] = file["model"], file["null"]
                    seconds += float(file["seconds"])
        log2s: FloatArray = model
        if config.calibrates:
            log2s, chosen = calibrated(model, null, questions.labels, questions.folds[repeat])
            strengths[view] += chosen
        bits[view][repeat] = pvi(log2s[truth], null[truth])
    return bits, strengths, seconds


def settings_of(config: "DifficultyConfig", view: View, n: int, width: int) -> ClassifySettings:
    """The preset for `n` mentions, with what the config says otherwise."""
    own = config.model_dump(include={field.name for field in fields(ClassifySettings)}, exclude_none=True)
    if epochs := getattr(config, f"{view}_epochs"):
        own["epochs"] = epochs
    return replace(preset(config.preset, view, n, width), **own)


def _inputs(reader: "Classifier", instances: Sequence[Instance]) -> tuple[dict[View, list["Ids"]], dict[View, int]]:
    """Pieces of every input, and how many inputs the window does not hold."""
    names = [reader.name(one.name) for one in instances]
    contexts = [reader.context(*one.sides) for one in instances]
    cut: dict[View, int] = {
        "entity": sum(not reader.holds(one.name) for one in instances),
        "context": sum(not reader.holds((*one.sides[0], *one.sides[1]), more=1) for one in instances),
    }
    return {"entity": names, "context": contexts}, cut


def _trainings(
    config: "DifficultyConfig",
    questions: Questions,
    inputs: Mapping[View, Sequence["Ids"]],
    settings: Mapping[View, ClassifySettings],
    chunks: Path,
) -> list[_Training]:
    trainings: list[_Training] = []
    steps = dict.fromkeys(VIEWS, 0)
    n_folds = int(questions.folds[0].max()) + 1
    for repeat, fold, view in product(range(len(questions.folds)), range(n_folds), VIEWS):
        held, how = questions.folds[repeat] == fold, settings[view]
        lengths = [len(row) for row, out in zip(inputs[view], held.tolist(), strict=True) if not out]
        trainings.append(
            _Training(
                seed=(config.seed, repeat, fold, VIEWS.index(view)),
                repeat=repeat,
                view=view,
                settings=how,
                null=replace(settings["entity"], epochs=1),
                held=held,
                pieces=how.epochs * sum(lengths),
                earlier=steps[view],
                path=chunks / f"r{repeat}-f{fold}-{view}.npz",
            )
        )
        steps[view] += how.epochs * -(-len(lengths) // how.batch_size)
    return trainings


def _train(
    config: "DifficultyConfig", questions: Questions, inputs: Sequence["Ids"], one: _Training, report: Reporter
) -> None:
    """One model, and its word on the fold it has not seen."""
    from core.training.classify import log2_probabilities, train

    began, seed = time.monotonic(), _number(one.seed)
    learnt, held = np.flatnonzero(~one.held), np.flatnonzero(one.held)
    model = _new(config, questions, one, seed)
    log = lambda bits, step: report.metric(f"loss/{one.view}", bits, one.earlier + step)
    train(
        model,
        [inputs[i] for i in learnt.tolist()],
        questions.labels[learnt],
        one.settings,
        seed=seed,
        report=report,
        log=log,
    )
    log2s = log2_probabilities(model, [inputs[i] for i in held.tolist()], report)
    null = _null(config, questions, one, report)
    with replacing(one.path) as file:
        np.savez(file, model=log2s, null=null, seconds=time.monotonic() - began)


def _number(seed: tuple[int, ...]) -> int:
    return int(np.random.SeedSequence(seed).generate_state(1)[0])


def _new(config: "DifficultyConfig", questions: Questions, one: _Training, seed: int) -> "Classifier":
    import torch

    from core.models.classifier import new_classifier

    torch.manual_seed(seed)
    options = config.model_dump(include={"max_length", "precision", "allow_download"})
    return new_classifier(config.encoder, len(questions.types), pooling=one.settings.pooling, **options)


def _null(config: "DifficultyConfig", questions: Questions, one: _Training, report: Reporter) -> FloatArray:
    """`(k,)` log2 g[null] of each type: the prior in closed form, or a classifier that was shown nothing, one epoch.

    It is the same one for both views of a fold, so that CEIM does not depend on it.
    """
    learnt = questions.labels[~one.held]
    if config.null == "closed":
        return log2_prior(learnt, len(questions.types))
    from core.training.classify import log2_probabilities, train

    seed = _number((*one.seed[:-1], len(VIEWS)))
    model = _new(config, questions, one, seed)
    inputs = [model.nothing()] * len(learnt)
    train(model, inputs, learnt, one.null, seed=seed, report=_Stoppable(report), log=lambda bits, step: None)
    return log2_probabilities(model, inputs[:1], report)[0]  # type: ignore[no-any-return]


class _Stoppable(Silent):
    """Tells nothing, but hears a wish to stop."""

    def __init__(self, report: Reporter) -> None:
        self.check = report.check  # type: ignore[method-assign]
