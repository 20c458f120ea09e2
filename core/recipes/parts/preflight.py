"""What a pre-training or a fine-tuning will take, told before it starts, and what each number rests on.

Seconds come from an earlier training of the same encoder on this machine, else from a `calibrate` run (t = a + b
pieces a step; SOURCES.md, Cost); there is no third, guessed, source.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Any

from core.corpora.corpus import Library
from core.errors import ModelError, PathError, RunError
from core.models import hub
from core.recipes.calibrate import machine
from core.recipes.finetune import FinetuneConfig, settings_of
from core.recipes.pretrain import QUICK_STEPS, PretrainConfig
from core.runs.curves import Curves
from core.runs.store import Run, RunStore, is_run_id

GB = 1e9
FORWARD = 1 / 3  # of a training step, without the backward pass
PIECES = 1.3  # a word, where nobody has counted; English in BERT's vocabulary
STATES = 4  # of a weight's size while it is trained: itself, its gradient, Adam's two moments
PROCESS_GB = 0.6  # torch and its libraries, before any model


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """steps: of the optimizer, all seeds together. seconds: None where this machine has not been timed; with early
    stopping, at most. basis: what seconds rest on, a sentence. memory_gb: None: of no encoder that is here; measured:
    it was seen, else it is the least. disk_gb: with checkpoints, at most. Sizes in 10^9 bytes."""

    steps: int
    seconds: float | None
    basis: str
    memory_gb: float | None
    measured: bool
    disk_gb: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is asked for. steps, tokens: read by training, all seeds together. forward: tokens read without learning.
    models: in float32 that lie on disk at the same time, a checkpoint being three."""

    steps: int
    tokens: float
    forward: float
    models: int


def preflight(config: PretrainConfig | FinetuneConfig, library: Library, store: RunStore) -> Preflight:
    """Errors: CorpusError for a corpus that is not there."""
    pretrains = isinstance(config, PretrainConfig)
    work = _pretrain(config, library) if isinstance(config, PretrainConfig) else _finetune(config, library)
    measured = calibrated(store, root(config.init, store))
    pieces = PIECES if measured is None else measured["pieces"]["task" if pretrains else "train"]
    speed = _speed(store, "pretrain" if pretrains else "finetune", root(config.init, store))
    seconds, basis = None, ""
    if speed:
        seconds = (work.tokens + work.forward * FORWARD) * pieces / speed
        basis = f"From your last training of this encoder on this machine, {speed:,.0f} pieces a second."
    elif measured:
        a, b = measured["mlm" if pretrains else "tagger"]
        seconds = work.steps * a + (work.tokens + work.forward * FORWARD) * pieces * b
        basis = "This encoder was timed on this machine, on your text, for a few seconds."
    weights = _weights_gb(config.init, store)
    least = None if weights is None else PROCESS_GB + STATES * weights
    return Preflight(
        steps=work.steps,
        seconds=seconds,
        basis=basis,
        memory_gb=measured["memory_gb"] if measured else least,
        measured=measured is not None,
        disk_gb=None if weights is None else work.models * weights,
    )


def _pretrain(config: PretrainConfig, library: Library) -> Work:
    corpora = [library.find(reference) for reference in config.corpora]
    sentences, tokens = (sum(getattr(c, name) for c in corpora) for name in ("n_sentences", "n_tokens"))
    epochs = config.settled().epochs
    full = epochs * math.ceil(sentences / config.batch_size)
    steps = config.max_steps or (min(full, QUICK_STEPS) if config.preset == "quick" else full)
    return Work(steps=steps, tokens=tokens * epochs * steps / full, forward=0.0, models=4)


def _finetune(config: FinetuneConfig, library: Library) -> Work:
    train, dev = library.find(config.train), library.find(config.dev)
    settings = settings_of(config, len(train)).planned(len(train))
    seeds = len(config.seeds)
    steps = settings.epochs * math.ceil(len(train) / settings.batch_size)
    tests = sum(library.find(reference).n_tokens for reference in config.test)
    judged = dev.n_tokens * min(1.0, (settings.dev_sentences or math.inf) / len(dev))
    forward = settings.epochs * judged + dev.n_tokens + tests
    return Work(steps=steps * seeds, tokens=settings.epochs * train.n_tokens * seeds, forward=forward * seeds, models=5)


def root(init: str, store: RunStore) -> str:
    """The encoder at the bottom of a chain of pre-trainings, named by their ids or their models' folders."""
    with suppress(RunError):  # removed since
        while is_run_id(run_id := init.removesuffix("/artifacts/model").rpartition("/")[2]):
            init = str(store.get(run_id).manifest.config["init"])
    return init


def calibrated(store: RunStore, encoder: str) -> Mapping[str, Any] | None:
    """The newest `calibrate` result for `encoder` on this machine."""
    wanted = (encoder, machine())
    for run in (run for run in store.list() if run.manifest.kind == "calibrate"):
        here = (run.manifest.config["encoder"], run.manifest.config["machine"]) == wanted
        if here and run.state().state == "succeeded":
            return run.result()
    return None


def _speed(store: RunStore, kind: str, encoder: str) -> float | None:
    """Pieces a second of the newest training of that kind that has told them."""
    for run in (run for run in store.list() if run.manifest.kind == kind and run.events_file.exists()):
        same = root(str(run.manifest.config["init"]), store) == encoder
        if same and (found := _told(run, run.events_file.stat().st_size)):
            return found
    return None


@lru_cache(maxsize=256)
def _told(run: Run, size: int) -> float | None:
    """size: of its log, which only grows."""
    curves = Curves(run).read()
    values = [value for name, curve in curves.items() if name.startswith("tokens_per_second") for value in curve.values]
    return median(values) if values else None


def _weights_gb(init: str, store: RunStore) -> float | None:
    """Of an encoder's weights as they lie on disk; None where it is not here."""
    name = root(init, store)
    if name == hub.TINY:
        return 0.0
    try:
        return sum(file.stat().st_size for file in hub.folder_of(name).glob("*.safetensors")) / GB
    except (ModelError, PathError):
        return None
