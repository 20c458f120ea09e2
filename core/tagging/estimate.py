"""Estimate time, memory and disk space of trainings on this machine (SOURCES.md, Cost).

A training step over n word pieces takes t = a + b n seconds. `Speeds` finds the measured speed. The page Training, the
plan of an experiment and the time left of a running experiment all use this module.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Literal, Self

from core import cards
from core.bias.difficulty import DifficultyOptions
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import ModelError, PathError, RunError
from core.models import hub
from core.models.model_files import weights
from core.models.networks import ON_ENCODER
from core.models.sizes import misfit
from core.pretraining.pretrain import HELD_OUT, HELD_OUT_MOST, Draw, PretrainConfig
from core.runs.curves import MetricName
from core.runs.events import read_events
from core.runs.store import RunStore, is_run_id
from core.tagging import calibrate
from core.tagging.calibrate import CalibrateResult
from core.tagging.config import FinetuneConfig
from core.training.mlm_settings import PACKED, MlmSettings
from core.training.settings import (
    MATCHED,
    RELABELLED,
    ROUNDS,
    WEIGHTS,
    Settings,
    TaggerSettings,
    classify_preset,
)

# Seconds that a run needs to read and check its input and to save its results, except the model's weights.
START = 3.0
# Time of a forward pass as a share of a training step.
FORWARD = 1 / 3
# Usual share of the planned epochs that are trained if a falling learning rate ends the training.
EARLY = 0.7
# Assumed share of sentences in which a dictionary finds a name. In measured runs it was 0.1 to 0.7.
NAMED = 0.5
# Assumed chance that the first round of pseudo-labels raises dev F1, which starts a second round.
AGAIN = 0.5
# The pseudo-perplexity before and after MLM is measured on this many sentences, for at most this many seconds.
PROBED, PROBE_SECONDS = 64, 30.0
# Assumed number of word pieces of an entity mention, including special tokens around it.
NAME = 8
# Pieces per word if not measured: the value for English with BERT's vocabulary.
PIECES = 1.3
GB = 1e9
# Memory per trained weight, in multiples of its size: the weight, its gradient and Adam's two moments.
STATES = 4
# Memory of a process that has loaded torch and its libraries, but no model.
PROCESS_GB = 0.6
# Options that change the time per piece. Trainings that differ in one of them are not comparable.
PACE = ("network", "hidden", "layers", "lora", "checkpointing", "packed", "precision")


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Speed of a kind of training on this machine: a step over n pieces takes `a + b n` seconds.

    load: seconds to load the model. pieces: word pieces per token. has_head: True if the encoder has a vocabulary head;
    if False, a head is fitted before the training.
    """

    a: float
    b: float
    load: float
    pieces: float
    has_head: bool = True

    @classmethod
    def measured(cls, result: CalibrateResult, way: Literal["mlm", "tagger"], text: str) -> Self:
        """Return the speed that a `calibrate` run measured.

        way: kind of training. text: role of the corpus whose number of pieces per token is used, such as `train`.
        """
        a, b = result.mlm if way == "mlm" else result.tagger
        return cls(a=a, b=b, load=result.load, pieces=result.pieces.get(text, 1.0), has_head=result.has_head)

    def of_network(self, network: str) -> Self:
        """Return the speed for this network. A recurrent tagger loads no encoder and reads words instead of pieces."""
        return self if network in ON_ENCODER else replace(self, load=0.0, pieces=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A measured speed. basis: sentence that says where the speed was measured."""

    speed: Speed
    basis: str


class Speeds:
    """Speeds of this machine, measured in a project's runs. Use one object per plan, because it caches each lookup."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._known: dict[tuple[object, ...], Known | None] = {}

    def of(self, settings: MlmSettings | TaggerSettings, encoder: str, texts: Collection[str]) -> Known | None:
        """Return the speed of this machine's last comparable training; without one, the speed of a `calibrate` run.

        Return None if neither exists.

        encoder: see `encoder_of`. texts: fingerprints of the corpora; a `calibrate` run on these corpora is preferred.
        """
        pace = (getattr(settings, name, None) for name in PACE)
        way = (isinstance(settings, MlmSettings), encoder, frozenset(texts), *pace)
        if way not in self._known:
            self._known[way] = self._look(settings, encoder, texts)
        return self._known[way]

    def calibrated(
        self, settings: MlmSettings | TaggerSettings, encoder: str, texts: Collection[str]
    ) -> CalibrateResult | None:
        """Return this machine's newest `calibrate` result for a training with `settings`, preferably on `texts`."""
        return calibrate.newest(self._store, cards.machine(), texts, **_timed_by(settings, encoder))

    def of_classifiers(self, encoder: str, texts: Collection[str]) -> CalibrateResult | None:
        """Return the `calibrate` result to use for classifiers, whose steps take as long as those of a tagger."""
        return self.calibrated(TaggerSettings(), encoder, texts)

    def _look(self, settings: MlmSettings | TaggerSettings, encoder: str, texts: Collection[str]) -> Known | None:
        pretrains, measured = isinstance(settings, MlmSettings), self.calibrated(settings, encoder, texts)
        way: tuple[Literal["mlm", "tagger"], str] = ("mlm", "task") if pretrains else ("tagger", "train")
        speed = Speed.measured(measured, *way) if measured else None
        if rate := self._rate(settings, encoder):
            what = "pre-training" if pretrains else "fine-tuning"
            basis = f"From your last {what} of this kind on this machine, {rate:,.0f} pieces per second."
            usual = speed or Speed(a=0.0, b=0.0, load=0.0, pieces=PIECES)
            return Known(speed=replace(usual, a=0.0, b=1 / rate), basis=basis)
        basis = "A training of this kind was timed on this machine for a few seconds."
        return Known(speed=speed, basis=basis) if speed else None

    def _rate(self, settings: MlmSettings | TaggerSettings, encoder: str) -> float | None:
        """Return the speed of this machine's newest comparable training, in pieces per second; None without one.

        Runs that did not record their machine are skipped, because a project may come from another machine.
        """
        here = cards.machine()
        for run in self._store.list("pretrain" if isinstance(settings, MlmSettings) else "finetune"):
            config = run.manifest.config
            if _alike(settings, config) and encoder_of(config, self._store) == encoder and run.state().machine == here:
                log = run.events_file
                if log.exists() and (rate := _pieces_a_second(log, log.stat().st_size)):
                    return rate
        return None


def encoder_of(config: Mapping[str, object], store: RunStore) -> str:
    """Return the encoder that a training starts from, or whose frozen states it reads; "" if it uses none.

    If Winnow pre-trained the encoder, return the encoder that this pre-training began with. Both have the same speed.
    """
    begins = config.get("network", "encoder") in ON_ENCODER
    return root(str(config["init"] if begins else config.get("states", "")), store)


def root(init: str, store: RunStore) -> str:
    """Return the encoder with which a chain of pre-trainings began.

    init: an encoder, the id of a pre-training, or the folder of its model.
    """
    # A pre-training of the chain may have been removed. A run of another kind has no encoder; the training refuses it.
    with suppress(RunError, KeyError):
        while is_run_id(run_id := init.removesuffix("/artifacts/model").rpartition("/")[2]):
            init = str(store.get(run_id).manifest.config["init"])
    return init


def _timed_by(settings: MlmSettings | TaggerSettings, encoder: str) -> dict[str, object]:
    """Return the options of `calibrate` that determine the speed of a training with `settings`."""
    if isinstance(settings, MlmSettings):
        return {"encoder": encoder}
    if settings.network in ON_ENCODER:
        return {"encoder": encoder, "network": settings.network}
    return {"network": settings.network, "hidden": settings.hidden}


def _alike(settings: MlmSettings | TaggerSettings, config: Mapping[str, object]) -> bool:
    """Return True if a training with options `config` takes as long per piece as one with `settings`."""
    fields = type(settings).model_fields
    asked = {name: (getattr(settings, name), config.get(name, fields[name].default)) for name in PACE if name in fields}
    return all(_precise(ours) == _precise(others) for ours, others in asked.values())


def _precise(value: object) -> object:
    """Return the precision that a run uses for `auto`; return any other value unchanged."""
    return cards.precision() if value == "auto" else value


@lru_cache(maxsize=256)
def _pieces_a_second(log: Path, size: int) -> float | None:
    """Return the median of the speeds in a training log, in pieces per second; None if the log has none.

    size: bytes of the log. It is only needed as a cache key: a log that has grown is read again.
    """
    metrics = (event.data for event in read_events(log)[0] if event.kind == "metric")
    speeds = (data for data in metrics if MetricName.parse(str(data["name"])).metric == "tokens_per_second")
    rates = [float(data["value"]) for data in speeds]
    return median(rates) if rates else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Estimated duration in seconds. expected: usual duration. most: duration if no training stops early."""

    expected: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Size of a text that is read in an epoch of masked language modelling."""

    sentences: int
    tokens: float


def mlm(speed: Speed, settings: MlmSettings, *, sentences: int, tokens: float, held_out: int) -> Estimate:
    """Estimate the time of masked language modelling.

    sentences, tokens: number of training sentences and tokens per epoch, see `balanced`. held_out: number of sentences
    on which the held-out loss is computed.
    """
    steps, epochs = mlm_steps(settings, Text(sentences=sentences, tokens=tokens), speed.pieces)
    pieces = epochs * tokens * speed.pieces
    trained = steps * speed.a + pieces * speed.b
    head = 0 if speed.has_head else trained / max(epochs, 1) * FORWARD
    mean = tokens * speed.pieces / max(sentences, 1)
    # The pseudo-perplexity reads the whole sentence once per piece, so its time grows with the square of the length.
    probe = min(PROBED * mean**2 * speed.b * FORWARD, PROBE_SECONDS)
    held = min(held_out, HELD_OUT_MOST) * mean * speed.b * FORWARD
    seconds = START + speed.load + trained + head + 2 * probe + (math.ceil(epochs) + 1) * held
    return Estimate(expected=seconds, most=seconds)


def mlm_steps(settings: MlmSettings, text: Text, pieces: float) -> tuple[int, float]:
    """Return the number of optimizer steps and of epochs. text: what an epoch reads. pieces: word pieces per token."""
    rows = math.ceil(text.tokens * pieces / PACKED) if settings.packed else text.sentences
    an_epoch = max(math.ceil(rows / settings.batch_size), 1)
    steps = settings.steps(rows)
    if settings.max_pieces:
        steps = math.ceil(settings.max_pieces * an_epoch / max(text.tokens * pieces, 1.0))
    return steps, steps / an_epoch


def balanced(settings: MlmSettings, task: Text, others: Text) -> Text:
    """Return the size of the text of one epoch. task, others: T_C and the other corpora, which `balance` mixes."""
    n_task, n_others = (round(each.tokens) if settings.packed else each.sentences for each in (task, others))
    draw = Draw(n_task, n_others, settings.balance, seed=0)
    shares = draw.task / max(n_task, 1), draw.others / max(n_others, 1)
    return Text(
        sentences=round(task.sentences * shares[0] + others.sentences * shares[1]),
        tokens=task.tokens * shares[0] + others.tokens * shares[1],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Size of a text: number of sentences, and number of word pieces that a tagger reads in one pass over it."""

    sentences: int
    pieces: float

    @property
    def with_copies(self) -> "Read":
        """Size of this text if every sentence is read together with a copy: twice the pieces."""
        return replace(self, pieces=2 * self.pieces)

    def and_assisting(self, other: "Read", *, in_turn: bool) -> "Read":
        """Return the size of an epoch on this text and an assisting corpus (`training.rows.laid_out`).

        Each step has as many sentences of `other` as of this text. in_turn: both corpora take turns, one sentence per
        step, and the smaller one is repeated.
        """
        n = max(self.sentences, other.sentences) if in_turn else self.sentences
        pieces = n * (self.pieces / self.sentences + other.pieces / other.sentences)
        return Read(sentences=2 * n if in_turn else n, pieces=pieces)


def tagger(
    speed: Speed, settings: Settings, seeds: int, *, train: Read, dev: Read, tests: Sequence[Read], stages: int = 1
) -> Estimate:
    """Estimate the time to train and test one tagger per seed.

    settings: result of `Settings.planned`. stages: 2 if a first training has a frozen encoder, else 1.
    """
    epoch, whole = _epoch(speed, settings, train, dev), dev.pieces * speed.b * FORWARD
    test = sum(each.pieces for each in tests) * speed.b * FORWARD

    def seconds(epochs: float) -> float:
        return START + seeds * (speed.load + stages * epochs * epoch + whole + test)

    return Estimate(expected=seconds(usual_epochs(settings)), most=seconds(settings.epochs))


def usual_epochs(settings: Settings) -> float:
    """Return the number of epochs that a training usually has before it ends early.

    Each planned epoch is assumed to be the best one with equal probability. Training ends `patience` epochs after the
    best one, or at the end of the plan, but not before `min_epochs`. Trainings of 30 epochs with a patience of 10 had
    24 to 28 epochs on average (`epochs.jsonl`, `variance.jsonl`); this estimate gives 23.
    """
    wait = min(settings.patience / settings.epochs, 1.0)
    share = EARLY if settings.least_rate else wait + (1 - wait**2) / 2
    return max(settings.epochs * share, min(settings.epochs, settings.min_epochs))


def first(speed: Speed, settings: Settings, seeds: int, *, train: Read, dev: Read) -> float:
    """Estimate the seconds that all seeds need to train on another corpus before the training set.

    settings: result of `Settings.brief`.
    """
    return seeds * (speed.load + settings.epochs * _epoch(speed, settings, train, dev))


def pseudo(
    speed: Speed, settings: Settings, seeds: int, *, train: Read, unlabelled: Read, dev: Read, distant: bool
) -> Estimate:
    """Estimate the time that all seeds need to learn from pseudo-labels.

    distant: True if names from a list give the first pseudo-labels. settings: result of `Settings.planned` for the
    training set, or settings for the unlabelled sentences if `distant`.
    """

    def seconds(rounds: float, named: float) -> float:
        labelling = rounds * 2 * unlabelled.pieces * speed.b * FORWARD  # Each round reads all sentences twice.
        if distant:
            trained = (named * MATCHED + rounds * RELABELLED) * _epoch(speed, settings, unlabelled, dev)
        else:
            # Every step has one batch from the training set and one with pseudo-labels.
            pieces = train.pieces + train.sentences * unlabelled.pieces / unlabelled.sentences
            both = Read(sentences=train.sentences, pieces=pieces)
            epochs = (len(WEIGHTS) + rounds - 1) * math.ceil(settings.epochs / 2)
            trained = epochs * _epoch(speed, settings, both, dev)
        return seeds * (labelling + trained + (rounds + 2) * dev.pieces * speed.b * FORWARD)

    return Estimate(expected=seconds(1 + (ROUNDS - 1) * AGAIN, NAMED), most=seconds(ROUNDS, 1.0))


def _epoch(speed: Speed, settings: Settings, train: Read, dev: Read) -> float:
    """Return the seconds that an epoch takes, including its evaluation on the dev set."""
    trained = math.ceil(train.sentences / settings.batch_size) * speed.a + train.pieces * speed.b
    judged = min(1.0, (settings.dev_sentences or math.inf) / dev.sentences)
    return trained + judged * dev.pieces * speed.b * FORWARD


def difficulty(
    config: DifficultyOptions, train: Corpus, measured: CalibrateResult, *, pieces: float, share: float = 1.0
) -> float:
    """Estimate the seconds of a `difficulty` run.

    pieces: mean number of word pieces per sentence. share: share of the mentions in `train` that is used, 0 to 1.
    """
    mentions = min(share * sum(train.types.values()), config.mentions or math.inf)
    a, b = measured.tagger
    seconds = measured.load
    read = {"context": pieces, "entity": NAME}
    for view, own in (("context", config.context_epochs), ("entity", config.entity_epochs)):
        usual = classify_preset(config.preset, view, round(mentions), measured.dimension)  # type: ignore[arg-type]
        steps = (own or usual.epochs) * mentions * (1 - 1 / config.folds)
        seconds += steps / (config.batch_size or usual.batch_size) * a + steps * read[view] * b
        seconds += mentions / config.folds * read[view] * b * FORWARD
    return START + seconds * config.folds * (config.repeats or (3 if config.preset == "paper" else 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """Estimated cost of a training. GB are 10^9 bytes.

    steps: maximum number of optimizer steps of all seeds. seconds: expected time. most: time without early stopping.
    Both times are None if this machine has not been timed. basis: sentence on where the speed was measured. memory_gb:
    memory; None if the encoder is not on this machine, or if a recurrent tagger was not timed. measured: True if this
    memory was measured; False if it is a lower bound. disk_gb: largest disk space, including checkpoints; None if
    unknown. problem: why the encoder cannot be used, or "".
    """

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
    """Size of a training.

    steps: number of optimizer steps of all seeds. models: disk space in multiples of the model's weights; a checkpoint
    counts as three. texts: fingerprints of the corpora. time: function that estimates the time at a given speed.
    """

    steps: int
    models: int
    texts: tuple[str, ...]
    time: Callable[[Speed], Estimate]


def preflight(config: PretrainConfig | FinetuneConfig, library: Library, store: RunStore) -> Preflight:
    """Estimate the time, memory and disk space of a training. Errors: CorpusError for a missing corpus."""
    work = _pretrain(config, library) if isinstance(config, PretrainConfig) else _finetune(config, library)
    speeds, encoder = Speeds(store), encoder_of(dict(config), store)
    known, measured = speeds.of(config, encoder, work.texts), speeds.calibrated(config, encoder, work.texts)
    time = work.time(known.speed) if known else None
    # A recurrent tagger ignores `init`, so this encoder says nothing about its memory, disk space or problems.
    init = config.init if isinstance(config, PretrainConfig) or config.network in ON_ENCODER else ""
    weights = _weights_gb(init, store) if init else None
    least = None if weights is None else PROCESS_GB + (1 if config.lora else STATES) * weights
    # `calibrate` trains all weights and keeps all activations, so its memory does not hold for these two options.
    seen = measured is not None and not (config.lora or config.checkpointing)
    return Preflight(
        steps=work.steps,
        seconds=time.expected if time else None,
        most=time.most if time else None,
        basis=known.basis if known else "",
        memory_gb=measured.memory_gb if measured and seen else least,
        measured=seen,
        disk_gb=None if weights is None else work.models * weights,
        problem=_problem(init, store) if init else "",
    )


def _pretrain(config: PretrainConfig, library: Library) -> Work:
    corpora = [library.find(reference) for reference in config.corpora]
    task, others = (
        Text(sentences=sum(c.n_sentences for c in part), tokens=sum(c.n_tokens for c in part))
        for part in (corpora[:1], corpora[1:])
    )
    read = balanced(config, task, others)
    held_out = len(library.find(config.heldout_task)) if config.heldout_task else round(HELD_OUT * len(corpora[0]))

    def time(speed: Speed) -> Estimate:
        return mlm(speed, config, sentences=read.sentences, tokens=read.tokens, held_out=held_out)

    texts = tuple(corpus.fingerprint for corpus in corpora)
    steps, _ = mlm_steps(config, Text(sentences=read.sentences, tokens=read.tokens), PIECES)
    return Work(steps=steps, models=4, texts=texts, time=time)


def _finetune(config: FinetuneConfig, library: Library) -> Work:
    train, dev, *tests = (library.find(reference) for reference in (config.train, config.dev, *config.test))
    settings = config.training(len(train)).planned(len(train))
    seeds = len(config.seeds)
    assisting = library.find(config.assisting) if config.assisting else None
    rows = 2 * max(len(train), len(assisting)) if assisting and config.in_turn else len(train)
    steps = settings.epochs * math.ceil(rows / settings.batch_size)
    other = library.find(config.first) if config.first else None
    before = config.training(len(other)).brief(config.first_epochs) if other else settings
    if other:
        steps += before.epochs * math.ceil(len(other) / before.batch_size)
    text = library.find(config.unlabelled) if config.unlabelled else None

    def time(speed: Speed) -> Estimate:
        speed = speed.of_network(config.network)

        def read(corpus: Corpus) -> Read:
            return Read(sentences=len(corpus), pieces=corpus.n_tokens * speed.pieces + 2 * config.context * len(corpus))

        def learnt(corpus: Corpus) -> Read:
            return read(corpus).with_copies if config.beta or config.gamma else read(corpus)

        stages, tested = 2 if config.stages == "lpft" else 1, [*map(read, tests)]
        labels = learnt(train)
        if assisting:
            labels = labels.and_assisting(read(assisting), in_turn=config.in_turn)
        own = tagger(speed, settings, seeds, train=labels, dev=read(dev), tests=tested, stages=stages)
        if other:
            extra = first(speed, before, seeds, train=learnt(other), dev=read(dev))
            own = Estimate(expected=own.expected + extra, most=own.most + extra)
        if text:
            more = config.training(len(text)) if config.distant else settings
            parts = {"train": read(train), "unlabelled": read(text), "dev": read(dev)}
            rounds = pseudo(speed, more, seeds, **parts, distant=bool(config.distant))
            own = Estimate(expected=own.expected + rounds.expected, most=own.most + rounds.most)
        return own

    return Work(steps=steps * seeds, models=5 + bool(other), texts=(train.fingerprint,), time=time)


def _problem(init: str, store: RunStore) -> str:
    name = root(init, store)
    if name in (hub.TINY, hub.BUNDLED):
        return ""
    try:
        return misfit(name, hub.folder_of(name))
    except (ModelError, PathError):  # The encoder is not on this machine. The run reports this when it starts.
        return ""


def _weights_gb(init: str, store: RunStore) -> float | None:
    """Return the size of an encoder's weights on disk, in GB; None if it is not on this machine."""
    name = root(init, store)
    if name == hub.TINY:
        return 0.0
    try:
        return sum(file.stat().st_size for file in weights(hub.folder_of(name))) / GB
    except (ModelError, PathError):
        return None
