"""How long trainings take on this machine: t = a + b pieces a step, from a measurement (SOURCES.md, Cost).

One estimator for all that tells a time: the box above Start on the page Training, the plan of an experiment, its clock.
What they know of this machine's speed they have from `Speeds`, which has one order of sources.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Literal, Self

from core import cards
from core.bias.difficulty import DifficultyOptions
from core.corpora.corpus import Corpus
from core.errors import RunError
from core.models.networks import ON_ENCODER
from core.pretraining.pretrain import HELD_OUT_MOST
from core.runs.events import read_events
from core.runs.store import RunStore, is_run_id
from core.tagging import calibration as calibrate
from core.tagging.calibration import CalibrateResult
from core.training.classify_settings import preset
from core.training.mlm_settings import MlmSettings
from core.training.settings import Settings, TaggerSettings

START = 3.0  # seconds: what a run reads, checks and saves beside weights
FORWARD = 1 / 3  # of a training step, without the backward pass
EARLY = 0.7  # share of the epochs that early stopping leaves, as seen on CrossNER and the samples
PROBED, PROBE_SECONDS = 64, 30.0  # sentences of the pseudo-perplexity before and after MLM, and its limit
NAME = 8  # pieces of a mention between its marks
PIECES = 1.3  # a word, where nobody has counted; English in BERT's vocabulary
# Options of a training that change how long a piece takes; of two that differ in one, neither tells the other's time.
PACE = ("network", "hidden", "layers", "lora", "checkpointing", "packed", "precision")


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Speed of a way to train on this machine: a step over n pieces takes `a + b n` seconds, loading a model `load`.

    pieces: a token has. has_head: whether the encoder comes with a vocabulary head, else one is fitted first.
    """

    a: float
    b: float
    load: float
    pieces: float
    has_head: bool = True

    @classmethod
    def measured(cls, result: CalibrateResult, way: Literal["mlm", "tagger"], text: str) -> Self:
        """The speed that a `calibrate` run measured. text: whose pieces, `task`, `train` or `domain`."""
        a, b = result.mlm if way == "mlm" else result.tagger
        return cls(a=a, b=b, load=result.load, pieces=result.pieces.get(text, 1.0), has_head=result.has_head)

    def of_network(self, network: str) -> Self:
        """The speed of a tagger: a recurrent one loads no encoder and reads words."""
        return self if network in ON_ENCODER else replace(self, load=0.0, pieces=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A speed, and what it rests on, a sentence."""

    speed: Speed
    basis: str


class Speeds:
    """This machine's speeds as the runs of a home tell them. Keep one a plan: it looks for each way to train once."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._known: dict[tuple[object, ...], Known | None] = {}

    def of(self, settings: MlmSettings | TaggerSettings, encoder: str, texts: Collection[str]) -> Known | None:
        """The speed of the last training that went alike here, else of a `calibrate` run; None: nothing is guessed.

        encoder: see `encoder_of`. texts: fingerprints of what is read, which the speed is of where it can be.
        """
        pace = (getattr(settings, name, None) for name in PACE)
        way = (isinstance(settings, MlmSettings), encoder, frozenset(texts), *pace)
        if way not in self._known:
            self._known[way] = self._look(settings, encoder, texts)
        return self._known[way]

    def calibrated(
        self, settings: MlmSettings | TaggerSettings, encoder: str, texts: Collection[str]
    ) -> CalibrateResult | None:
        """The newest `calibrate` result that timed such a training on this machine, where there is one on its text."""
        return calibrate.newest(self._store, cards.machine(), texts, **_timed_by(settings, encoder))

    def of_classifiers(self, encoder: str, texts: Collection[str]) -> CalibrateResult | None:
        """The same of an encoder's classifiers, whose steps take as long as its tagger's."""
        return self.calibrated(TaggerSettings(), encoder, texts)

    def _look(self, settings: MlmSettings | TaggerSettings, encoder: str, texts: Collection[str]) -> Known | None:
        pretrains, measured = isinstance(settings, MlmSettings), self.calibrated(settings, encoder, texts)
        way: tuple[Literal["mlm", "tagger"], str] = ("mlm", "task") if pretrains else ("tagger", "train")
        speed = Speed.measured(measured, *way) if measured else None
        if rate := self._rate(settings, encoder):
            what = "pre-training" if pretrains else "fine-tuning"
            basis = f"From your last {what} of this kind on this machine, {rate:,.0f} pieces a second."
            usual = speed or Speed(a=0.0, b=0.0, load=0.0, pieces=PIECES)
            return Known(speed=replace(usual, a=0.0, b=1 / rate), basis=basis)
        basis = "A training of this kind was timed on this machine for a few seconds."
        return Known(speed=speed, basis=basis) if speed else None

    def _rate(self, settings: MlmSettings | TaggerSettings, encoder: str) -> float | None:
        """Pieces a second of the newest training of that kind on this machine's device that has told them.

        A home may come from another machine: what does not say where it ran is not asked."""
        here = cards.machine()
        for run in self._store.list("pretrain" if isinstance(settings, MlmSettings) else "finetune"):
            config = run.manifest.config
            if _alike(settings, config) and encoder_of(config, self._store) == encoder and run.state().machine == here:
                log = run.events_file
                if log.exists() and (rate := _pieces_a_second(log, log.stat().st_size)):
                    return rate
        return None


def encoder_of(config: Mapping[str, object], store: RunStore) -> str:
    """The encoder that a training with these options begins from, or whose frozen states it reads; "" for none. Where
    it was pre-trained here, the one that this began from, which takes as long."""
    begins = config.get("network", "encoder") in ON_ENCODER
    return root(str(config["init"] if begins else config.get("states", "")), store)


def root(init: str, store: RunStore) -> str:
    """The encoder at the bottom of a chain of pre-trainings, named by their ids or their models' folders."""
    with suppress(RunError):  # removed since
        while is_run_id(run_id := init.removesuffix("/artifacts/model").rpartition("/")[2]):
            init = str(store.get(run_id).manifest.config["init"])
    return init


def _timed_by(settings: MlmSettings | TaggerSettings, encoder: str) -> dict[str, object]:
    """Options of `calibrate` that its speed of such a training depends on."""
    if isinstance(settings, MlmSettings):
        return {"encoder": encoder}
    if settings.network in ON_ENCODER:
        return {"encoder": encoder, "network": settings.network}
    return {"network": settings.network, "hidden": settings.hidden}


def _alike(settings: MlmSettings | TaggerSettings, config: Mapping[str, object]) -> bool:
    """Whether a training with these options takes as long for a piece as one with `settings`."""
    fields = type(settings).model_fields
    asked = {name: (getattr(settings, name), config.get(name, fields[name].default)) for name in PACE if name in fields}
    return all(_precise(ours) == _precise(others) for ours, others in asked.values())


def _precise(value: object) -> object:
    """Precision that `auto` comes to here, as a run's options have it; other values as they are."""
    return cards.precision() if value == "auto" else value


@lru_cache(maxsize=256)
def _pieces_a_second(log: Path, size: int) -> float | None:
    """size: of the log, which only grows."""
    metrics = (event.data for event in read_events(log)[0] if event.kind == "metric")
    rates = [float(data["value"]) for data in metrics if str(data["name"]).startswith("tokens_per_second")]
    return median(rates) if rates else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Seconds: what is to be expected, and what it takes at most, no training stopping early."""

    expected: float
    most: float


def mlm(speed: Speed, settings: MlmSettings, *, sentences: int, tokens: float, held_out: int) -> Estimate:
    """Masked language modelling. sentences, tokens: of all that is read. held_out: sentences an epoch is judged by."""
    epochs, steps = settings.n_epochs, settings.steps(sentences)
    pieces = epochs * tokens * speed.pieces * steps / max(settings.full_steps(sentences), 1)
    trained = steps * speed.a + pieces * speed.b
    head = 0 if speed.has_head else trained / epochs * FORWARD
    mean = pieces / max(epochs * sentences, 1)
    # A pass of the whole sentence for each of its pieces, hence the square.
    probe = min(PROBED * mean**2 * speed.b * FORWARD, PROBE_SECONDS)
    held = min(held_out, HELD_OUT_MOST) * mean * speed.b * FORWARD
    seconds = START + speed.load + trained + head + 2 * probe + (epochs + 1) * held
    return Estimate(expected=seconds, most=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Labelled text. pieces: that a tagger reads of it."""

    sentences: int
    pieces: float

    @property
    def with_copies(self) -> "Read":
        """The same where every sentence is read with a copy of it, in as many steps."""
        return replace(self, pieces=2 * self.pieces)


def tagger(
    speed: Speed, settings: Settings, seeds: int, *, train: Read, dev: Read, tests: Sequence[Read], stages: int = 1
) -> Estimate:
    """Taggers, one a seed. settings: as planned for these sentences. stages: 2 where the encoder is frozen first."""
    epoch = math.ceil(train.sentences / settings.batch_size) * speed.a + train.pieces * speed.b
    whole = dev.pieces * speed.b * FORWARD
    judged = whole * min(1.0, (settings.dev_sentences or math.inf) / dev.sentences)
    test = sum(each.pieces for each in tests) * speed.b * FORWARD

    def seconds(epochs: float) -> float:
        return START + seeds * (speed.load + stages * epochs * (epoch + judged) + whole + test)

    # Patience mostly ends it early, though never before `min_epochs`.
    usual = max(settings.epochs * EARLY, min(settings.epochs, settings.min_epochs))
    return Estimate(expected=seconds(usual), most=seconds(settings.epochs))


def difficulty(
    config: DifficultyOptions, train: Corpus, measured: CalibrateResult, *, pieces: float, share: float = 1.0
) -> float:
    """measured: the result of `calibrate`. pieces: that a sentence has. share: of the sentences of `train`."""
    mentions = min(share * sum(train.types.values()), config.mentions or math.inf)
    a, b = measured.tagger
    seconds = measured.load
    read = {"context": pieces, "entity": NAME}
    for view, own in (("context", config.context_epochs), ("entity", config.entity_epochs)):
        usual = preset(config.preset, view, round(mentions), measured.dimension)  # type: ignore[arg-type]
        steps = (own or usual.epochs) * mentions * (1 - 1 / config.folds)
        seconds += steps / (config.batch_size or usual.batch_size) * a + steps * read[view] * b
        seconds += mentions / config.folds * read[view] * b * FORWARD
    return START + seconds * config.folds * (config.repeats or (3 if config.preset == "paper" else 1))
