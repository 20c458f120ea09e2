"""How long trainings take on this machine: t = a + b pieces a step, from a measurement (SOURCES.md, Cost).

One estimator for all that tells a time: the box above Start on the page Training, the plan of an experiment, its clock.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from core.artifacts.calibrate import CalibrateResult
from core.corpora.corpus import Corpus
from core.models.networks import ON_ENCODER
from core.recipes.difficulty import DifficultyOptions
from core.recipes.pretrain import HELD_OUT_MOST
from core.training.classify_settings import preset
from core.training.mlm_settings import MlmSettings
from core.training.settings import Settings

START = 3.0  # seconds: what a run reads, checks and saves beside weights
FORWARD = 1 / 3  # of a training step, without the backward pass
EARLY = 0.7  # share of the epochs that early stopping leaves, as seen on CrossNER and the samples
PROBED, PROBE_SECONDS = 64, 30.0  # sentences of the pseudo-perplexity before and after MLM, and its limit
NAME = 8  # pieces of a mention between its marks


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
