"""What a pre-training or a fine-tuning will take, told before it starts, and what each number rests on."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import ModelError, PathError
from core.models import hub
from core.models.model_files import weights
from core.models.sizes import misfit
from core.pretraining.pretrain import HELD_OUT, PretrainConfig
from core.runs.store import RunStore
from core.tagging import estimate
from core.tagging.config import FinetuneConfig
from core.tagging.estimate import Estimate, Read, Speed, Speeds, encoder_of, root

GB = 1e9
STATES = 4  # of a weight's size while it is trained: itself, its gradient, Adam's two moments
PROCESS_GB = 0.6  # torch and its libraries, before any model


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """Estimate. problem: why the encoder cannot be used, a sentence, "" if nothing is known against it.

    steps: of the optimizer, all seeds together, at most. seconds: to be expected, `most` without early stopping;
    None where this machine has not been timed. basis: what they rest on, a sentence. memory_gb: None: of no encoder
    that is here; measured: it was seen, else it is the least. disk_gb: with checkpoints, at most. In 10^9 bytes."""

    steps: int
    seconds: float | None
    most: float | None
    basis: str
    memory_gb: float | None
    measured: bool
    disk_gb: float | None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Work that is asked for. steps: of all seeds together. models: in float32 that lie on disk at the same time, a
    checkpoint being three. texts: fingerprints of what is read. time: by a speed."""

    steps: int
    models: int
    texts: tuple[str, ...]
    time: Callable[[Speed], Estimate]


def preflight(config: PretrainConfig | FinetuneConfig, library: Library, store: RunStore) -> Preflight:
    """Errors: CorpusError for a corpus that is not there."""
    work = _pretrain(config, library) if isinstance(config, PretrainConfig) else _finetune(config, library)
    speeds, encoder = Speeds(store), encoder_of(dict(config), store)
    known, measured = speeds.of(config, encoder, work.texts), speeds.calibrated(config, encoder, work.texts)
    time = work.time(known.speed) if known else None
    weights = _weights_gb(config.init, store)
    least = None if weights is None else PROCESS_GB + (1 if config.lora else STATES) * weights
    seen = measured is not None and not (config.lora or config.checkpointing)  # it was of all weights, all kept
    return Preflight(
        steps=work.steps,
        seconds=time.expected if time else None,
        most=time.most if time else None,
        basis=known.basis if known else "",
        memory_gb=measured.memory_gb if measured and seen else least,
        measured=seen,
        disk_gb=None if weights is None else work.models * weights,
        problem=_problem(config.init, store),
    )


def _pretrain(config: PretrainConfig, library: Library) -> Work:
    corpora = [library.find(reference) for reference in config.corpora]
    sentences, tokens = (sum(getattr(c, name) for c in corpora) for name in ("n_sentences", "n_tokens"))
    held_out = len(library.find(config.heldout_task)) if config.heldout_task else round(HELD_OUT * len(corpora[0]))

    def time(speed: Speed) -> Estimate:
        return estimate.mlm(speed, config, sentences=sentences, tokens=tokens, held_out=held_out)

    texts = tuple(corpus.fingerprint for corpus in corpora)
    return Work(steps=config.steps(sentences), models=4, texts=texts, time=time)


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

    return Work(steps=steps * seeds, models=5, texts=(train.fingerprint,), time=time)


def _problem(init: str, store: RunStore) -> str:
    name = root(init, store)
    if name in (hub.TINY, hub.BUNDLED):
        return ""
    try:
        return misfit(name, hub.folder_of(name))
    except (ModelError, PathError):  # it is not here; whoever starts the run is told
        return ""


def _weights_gb(init: str, store: RunStore) -> float | None:
    """Size of an encoder's weights as they lie on disk; None where it is not here."""
    name = root(init, store)
    if name == hub.TINY:
        return 0.0
    try:
        return sum(file.stat().st_size for file in weights(hub.folder_of(name))) / GB
    except (ModelError, PathError):
        return None
