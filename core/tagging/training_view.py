"""Trainings as a page follows them: curves, the runs at work, what to start instead where memory ran out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np

from core.bias.difficulty import DifficultyConfig
from core.errors import RunError
from core.kinds import KINDS
from core.pretraining.pretrain import PretrainConfig
from core.projects.home import kept_per_home, library, store
from core.results import FloatArray, IntArray
from core.runs import result
from core.runs.curves import Curves
from core.runs.store import Run
from core.selection import STRATEGIES
from core.shown_command import command
from core.tagging import estimate as estimates
from core.tagging import evaluations
from core.tagging.config import FinetuneConfig
from core.tagging.evaluations import FinetuneResult
from core.tagging.preflight import Preflight as Preflight
from core.tagging.preflight import preflight as estimate
from core.training import saved_models as models
from core.training.saved_models import PretrainResult

TRAININGS = ("pretrain", "finetune", "experiment", "study")
SMALLEST_BATCH = 16  # sentences, of any preset
_ALONE = ("pretrain", "finetune")  # what trains by itself; an experiment needs these


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Metric:
    """One curve of a training run.

    name: without type and seed, e.g. `dev_f1`. type: of the entities it speaks of; "": of all. seed: None where the
    run has one only. steps `(n,)`: optimizer steps done, rising. values `(n,)`.
    """

    name: str
    type: str
    seed: int | None
    steps: IntArray
    values: FloatArray


def curves(run_id: str) -> list[Metric]:
    """The curves of a run that trains, in the order of its first point; reads only what is new since the last call."""
    history = _history(run_id).read()
    return [_metric(name, curve.steps, curve.values) for name, curve in history.items()]


@kept_per_home(64)
def _history(run_id: str) -> Curves:
    return Curves(store().get(run_id))


def _metric(name: str, steps: list[int], values: list[float]) -> Metric:
    """`dev_f1/PER@1` is `dev_f1` of PER under seed 1; a type may hold both signs."""
    head, _, seed = name.rpartition("@")
    named, of = (head, int(seed)) if head and seed.isdecimal() else (name, None)
    base, _, kind = named.partition("/")
    return Metric(name=base, type=kind, seed=of, steps=np.array(steps, np.int64), values=np.array(values, np.float64))


def trainings(run_id: str) -> list[Run]:
    """The runs below `run_id` that train a model, itself among them, in the order in which they were needed."""
    return list({run.id: run for run in _below(run_id)}.values())


def _below(run_id: str) -> Iterator[Run]:
    with suppress(RunError):  # one that was removed since
        run = store().get(run_id)
        if run.manifest.kind in _ALONE:
            yield run
        for child in _history(run_id).children():
            yield from _below(child)


def preflight(kind: str, options: Mapping[str, object]) -> Preflight:
    """Estimate what a `pretrain` or a `finetune` will take. Errors: ConfigError, CorpusError. See `experiment_cost`."""
    config = KINDS[kind].config.parse(dict(options))
    assert isinstance(config, PretrainConfig | FinetuneConfig)
    return estimate(config, library(), store())


def difficulty_estimate(options: Mapping[str, object]) -> float | None:
    """Seconds that a `difficulty` run will take; None: this machine has not been timed for its encoder."""
    config = DifficultyConfig.parse(dict(options))
    train = library().find(config.train)
    measured = estimates.Speeds(store()).of_classifiers(config.encoder, [train.fingerprint])
    if measured is None:
        return None
    pieces = measured.pieces["train"] * train.n_tokens / len(train)
    return estimates.difficulty(config, train, measured, pieces=pieces)


def root_encoder(init: str) -> str:
    """The encoder that `init`, perhaps the id of a finished pre-training, goes back to."""
    return estimates.root(init, store())


def halved(run_id: str) -> tuple[str, dict[str, object]] | None:
    """`(kind, options)` of the same training with half as many sentences at once, twice as often accumulated: the same
    steps in about half the memory. None where that is a sentence at a time already, or nothing has begun to train."""
    run = store().get(run_id)
    begun = trainings(run_id)
    if not begun:
        return None
    kind, config = begun[-1].manifest.kind, begun[-1].manifest.config
    parts = 2 * (config["accumulation"] or 1)
    if parts > (config["batch_size"] or SMALLEST_BATCH):
        return None
    options = dict(run.manifest.config)
    if run.manifest.kind == kind:
        return kind, options | {"accumulation": parts}
    parent = begun[-1].manifest.parent
    if parent and store().get(parent).manifest.kind == "score":  # B1 or B2, which strategies learn by
        learnt = [name for name in options["arms"] if name in STRATEGIES and STRATEGIES[name].models]
        own = {name: {**options["strategies"].get(name, {}), "accumulation": parts} for name in learnt}
        return run.manifest.kind, options | {"strategies": options["strategies"] | own}
    return run.manifest.kind, options | {kind: {**options[kind], "accumulation": parts}}


def left_behind(run_id: str) -> tuple[int | None, Path | None]:
    """The remains of the training in which a run was stopped: the step of its last checkpoint, and the folder of the
    best model so far; None where there is none."""
    begun = trainings(run_id)
    if not begun:
        return None, None
    written = begun[-1].checkpoints.rglob("checkpoint-*/trainer_state.json")
    latest = max(written, key=lambda path: path.stat().st_mtime, default=None)
    step = int(latest.parent.name.rpartition("-")[2]) if latest else None
    return step, models.folder(begun[-1]) if models.is_here(begun[-1]) else None


def pretrained(run_id: str) -> PretrainResult:
    """Result of a finished `pretrain` run. Errors: RunError."""
    return result.read(store().get(run_id), PretrainResult)


def card(run_id: str) -> str:
    """The model card of a finished training: Markdown, as it lies beside the weights."""
    return models.read_card(models.folder(store().get(run_id)))


def model(run_id: str) -> str:
    """The path of the folder in which a training's model lies."""
    return str(models.folder(store().get(run_id)))


def loading(run_id: str) -> Mapping[str, str]:
    """`{what it gives: Python that loads the model of a finished training}`, for a process without Winnow and with."""
    folder = model(run_id)
    if store().get(run_id).manifest.kind == "pretrain":
        return {
            "With transformers": "from transformers import AutoModelForMaskedLM, AutoTokenizer\n\n"
            f"model = AutoModelForMaskedLM.from_pretrained({folder!r})\n"
            f"tokenizer = AutoTokenizer.from_pretrained({folder!r})"
        }
    trained = FinetuneConfig.model_validate(store().get(run_id).manifest.config)
    as_evaluated = "constrained" if trained.within_bioes else "viterbi"
    dev = result.read(store().get(run_id), FinetuneResult).dev.decodings
    whole = f"On the command line, as it was evaluated{_on_dev(dev.get(as_evaluated))}"
    asked = {"model": folder, "corpus": "TEXT.txt", "constrained": trained.within_bioes}
    by_winnow = {whole: command("predict", asked)}
    if trained.network != "encoder":  # Winnow's own: other software cannot load it
        return by_winnow
    without, f1s = "the CRF's transitions", dev.get("argmax")
    if trained.layers == "mix":
        without, f1s = f"{without} and the mix of layers", _of_last_layers(run_id, trained.seeds)
    aside = ", reading the neighbouring sentences, which a pipeline does not" if trained.context else ""
    alone = f"With transformers, without {without}{_on_dev(f1s, aside)}"
    pipeline = (
        "from transformers import pipeline\n\n"
        f'tagger = pipeline("token-classification", {folder!r}, aggregation_strategy="first")\n'
        'print(tagger("A sentence of yours ."))'
    )
    return {alone: pipeline, **by_winnow}


def _of_last_layers(run_id: str, seeds: Sequence[int]) -> list[float]:
    """F1 on dev of taggers that mix layers, one a seed, where the mix is left out."""
    outcomes = (evaluations.read_outcome(store().get(run_id), seed) for seed in seeds)
    return [one.last_layer for one in outcomes if one and one.last_layer is not None]


def _on_dev(f1s: Sequence[float] | None, aside: str = "") -> str:
    """The mean over seeds in words; nothing where results of older versions do not have it."""
    return f" (score {mean(f1s):.1f} on the dev set{aside})" if f1s else ""
