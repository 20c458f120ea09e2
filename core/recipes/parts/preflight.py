"""What a pre-training or a fine-tuning will take, told before it starts, and what each number rests on.

Seconds come from an earlier training of the same encoder on this machine, else from a `calibrate` run (t = a + b
pieces a step; SOURCES.md, Cost); there is no third, guessed, source.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median

from core.artifacts import calibrate
from core.artifacts.calibrate import CalibrateResult
from core.cards import machine
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import ModelError, PathError, RunError
from core.models import hub
from core.models.model_files import weights
from core.recipes.finetune import FinetuneConfig
from core.recipes.parts import estimate
from core.recipes.parts.estimate import Estimate, Read, Speed
from core.recipes.pretrain import HELD_OUT, PretrainConfig
from core.runs.curves import Curves
from core.runs.store import Run, RunStore, is_run_id

GB = 1e9
PIECES = 1.3  # a word, where nobody has counted; English in BERT's vocabulary
STATES = 4  # of a weight's size while it is trained: itself, its gradient, Adam's two moments
PROCESS_GB = 0.6  # torch and its libraries, before any model


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """steps: of the optimizer, all seeds together, at most. seconds: to be expected, `most` without early stopping;
    None where this machine has not been timed. basis: what they rest on, a sentence. memory_gb: None: of no encoder
    that is here; measured: it was seen, else it is the least. disk_gb: with checkpoints, at most. In 10^9 bytes."""

    steps: int
    seconds: float | None
    most: float | None
    basis: str
    memory_gb: float | None
    measured: bool
    disk_gb: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Work that is asked for. steps: of all seeds together. models: in float32 that lie on disk at the same time, a
    checkpoint being three. time: by a speed."""

    steps: int
    models: int
    time: Callable[[Speed], Estimate]


def preflight(config: PretrainConfig | FinetuneConfig, library: Library, store: RunStore) -> Preflight:
    """Errors: CorpusError for a corpus that is not there."""
    work = _pretrain(config, library) if isinstance(config, PretrainConfig) else _finetune(config, library)
    measured = calibrated(store, root(config.init, store))
    speed, basis = _speed(config, measured, store)
    time = work.time(speed) if speed else None
    weights = _weights_gb(config.init, store)
    least = None if weights is None else PROCESS_GB + (1 if config.lora else STATES) * weights
    seen = measured is not None and not (config.lora or config.checkpointing)  # it was of all weights, all kept
    return Preflight(
        steps=work.steps,
        seconds=time.expected if time else None,
        most=time.most if time else None,
        basis=basis,
        memory_gb=measured.memory_gb if measured and seen else least,
        measured=seen,
        disk_gb=None if weights is None else work.models * weights,
    )


def _speed(
    config: PretrainConfig | FinetuneConfig, measured: CalibrateResult | None, store: RunStore
) -> tuple[Speed | None, str]:
    """And what it rests on, a sentence: the last training of the kind, else what was measured in a few seconds."""
    pretrains = isinstance(config, PretrainConfig)
    timed = None
    if measured:
        timed = Speed.measured(measured, "mlm", "task") if pretrains else Speed.measured(measured, "tagger", "train")
    if rate := _rate_seen(store, "pretrain" if pretrains else "finetune", root(config.init, store)):
        usual = timed or Speed(a=0.0, b=0.0, load=0.0, pieces=PIECES)
        basis = f"From your last training of this encoder on this machine, {rate:,.0f} pieces a second."
        return replace(usual, a=0.0, b=1 / rate), basis
    return timed, "This encoder was timed on this machine, on your text, for a few seconds." if timed else ""


def _pretrain(config: PretrainConfig, library: Library) -> Work:
    corpora = [library.find(reference) for reference in config.corpora]
    sentences, tokens = (sum(getattr(c, name) for c in corpora) for name in ("n_sentences", "n_tokens"))
    held_out = len(library.find(config.heldout_task)) if config.heldout_task else round(HELD_OUT * len(corpora[0]))

    def time(speed: Speed) -> Estimate:
        return estimate.mlm(speed, config, sentences=sentences, tokens=tokens, held_out=held_out)

    return Work(steps=config.steps(sentences), models=4, time=time)


def _finetune(config: FinetuneConfig, library: Library) -> Work:
    train, dev, *tests = (library.find(reference) for reference in (config.train, config.dev, *config.test))
    settings = config.training(len(train)).planned(len(train))
    seeds = len(config.seeds)
    steps = settings.epochs * math.ceil(len(train) / settings.batch_size)

    def time(speed: Speed) -> Estimate:
        speed = speed.of_network(config.network)

        def read(corpus: Corpus) -> Read:
            return Read(sentences=len(corpus), pieces=corpus.n_tokens * speed.pieces + 2 * config.context * len(corpus))

        stages, own = 2 if config.stages == "lpft" else 1, read(train)
        own = own.with_copies if config.beta or config.gamma else own
        return estimate.tagger(
            speed, settings, seeds, train=own, dev=read(dev), tests=[*map(read, tests)], stages=stages
        )

    return Work(steps=steps * seeds, models=5, time=time)


def root(init: str, store: RunStore) -> str:
    """The encoder at the bottom of a chain of pre-trainings, named by their ids or their models' folders."""
    with suppress(RunError):  # removed since
        while is_run_id(run_id := init.removesuffix("/artifacts/model").rpartition("/")[2]):
            init = str(store.get(run_id).manifest.config["init"])
    return init


def calibrated(store: RunStore, encoder: str) -> CalibrateResult | None:
    """The newest `calibrate` result for `encoder` on this machine."""
    return calibrate.newest(store, encoder, machine())


def _rate_seen(store: RunStore, kind: str, encoder: str) -> float | None:
    """Pieces a second of the newest training of that kind on this machine's device that has told them.

    A home may come from another machine: what does not say where it ran is not asked."""
    here = machine()
    for run in (run for run in store.list(kind) if run.events_file.exists()):
        same = root(str(run.manifest.config["init"]), store) == encoder and run.state().machine == here
        if same and (rate := _pieces_a_second(run, run.events_file.stat().st_size)):
            return rate
    return None


@lru_cache(maxsize=256)
def _pieces_a_second(run: Run, size: int) -> float | None:
    """size: of its log, which only grows."""
    curves = Curves(run).read()
    values = [value for name, curve in curves.items() if name.startswith("tokens_per_second") for value in curve.values]
    return median(values) if values else None


def _weights_gb(init: str, store: RunStore) -> float | None:
    """Size of an encoder's weights as they lie on disk; None where it is not here."""
    name = root(init, store)
    if name == hub.TINY:
        return 0.0
    try:
        return sum(file.stat().st_size for file in weights(hub.folder_of(name))) / GB
    except (ModelError, PathError):
        return None
