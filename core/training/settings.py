"""Settings of taggers: those of Mahapatra et al. 2022 and Ma et al. 2023, and few epochs for a first look."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Literal, Self

from pydantic import field_validator, model_validator

from core.config import Config, option
from core.models.layer_choice import LayerChoice
from core.models.networks import ON_ENCODER, Network
from core.training.lighter import CHECKPOINTING, IN_PARTS, LORA, LORA_FASTER, PARTS

# Sentences that `quick` judges an epoch by: about as many as it learns from, or judging takes longer than learning.
JUDGES_LEAST, JUDGES_MOST = 150, 500
CHAIN = 1e-2  # a transition moves by about a rate a step at most, and few labels make a few hundred steps
MANY = 5000  # training sentences, between the two rows that Table 8 of Ma et al. 2023 has of a corpus
QUICK_STEPS = 1500  # optimizer steps after which `quick` ends its epoch, whatever the corpus's size


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a tagger's training on so many sentences, nothing left to a preset.

    batch_size: sentences an optimizer step, of all processes together. accumulation: into how many parts a step's
    batch is cut; the effective batch stays. patience: epochs without a better dev F1 after which training ends,
    not before min_epochs. max_steps: the epochs are as many as fit into it, at least three; 0: no limit.
    dev_sentences: an epoch is judged by a sample of this size; 0: by all of it.
    chain_learning_rate: of the CRF's transitions; None: that of the head, or in a recurrent network that of all.
    decay: below 1, plain SGD in place of AdamW, at a rate that stays but for being multiplied by this after every
    epoch whose dev F1 fell; training ends when it is below least_rate (Murthy et al. 2018, 3.2). in_turn: a step a
    sentence, of the primary and the assisting corpus in turn; dev loss decides in place of dev F1, and the best weights
    come back after an epoch that was not the best. last: the last epoch is kept, whatever dev says. parts: of a step on
    a processor, a thread each.
    """

    epochs: int
    batch_size: int
    accumulation: int = 1
    learning_rate: float
    head_learning_rate: float
    chain_learning_rate: float | None = None
    weight_decay: float
    patience: int
    min_epochs: int
    dev_sentences: int = 0
    max_steps: int = 0
    clip: float = 1.0
    decay: float = 1.0
    least_rate: float = 0.0
    in_turn: bool = False
    last: bool = False
    parts: int = PARTS

    @classmethod
    def quick(cls, n: int) -> Self:
        """Settings for `n` training sentences and an encoder: few epochs, judged by few sentences."""
        return cls(
            epochs=30,
            batch_size=_batch(n),
            learning_rate=1e-4,
            head_learning_rate=2e-3,
            chain_learning_rate=CHAIN,
            weight_decay=1e-8,
            patience=10,
            min_epochs=10,
            dev_sentences=min(max(n, JUDGES_LEAST), JUDGES_MOST),
        )

    @classmethod
    def paper(cls, n: int) -> Self:
        """Settings for `n` training sentences and an encoder: Mahapatra et al. 2022 (SOURCES.md, Taggers)."""
        return cls(
            epochs=200,
            batch_size=_batch(n),
            learning_rate=2e-5,
            head_learning_rate=2e-5,
            weight_decay=1e-8,
            patience=20,
            min_epochs=10,
        )

    @classmethod
    def bias(cls, n: int) -> Self:
        """Settings for `n` training sentences and an encoder: Ma et al. 2023, Table 8 (SOURCES.md, Taggers of Bias)."""
        epochs, batch = (7, 16) if n >= MANY else (10, 8)
        return cls(
            epochs=epochs,
            batch_size=batch,
            learning_rate=5e-5,
            head_learning_rate=5e-5,
            weight_decay=0.0,
            patience=epochs,
            min_epochs=epochs,
            last=True,
        )

    @classmethod
    def miner(cls) -> Self:
        """Settings for a tagger of spans: Ma et al. 2023, A.4, epochs of Wang et al. 2022 (SOURCES.md, MINER)."""
        return cls(
            epochs=30,
            batch_size=32,
            learning_rate=1e-5,
            head_learning_rate=1e-5,
            weight_decay=0.0,
            patience=30,
            min_epochs=30,
        )

    @classmethod
    def bilstm(cls, epochs: int) -> Self:
        """Adam at 1e-3 (SOURCES.md, Recurrent taggers)."""
        return cls(
            epochs=epochs,
            batch_size=16,
            learning_rate=1e-3,
            head_learning_rate=1e-3,
            weight_decay=0.0,
            patience=10,
            min_epochs=10,
            clip=5.0,
        )

    @classmethod
    def charcnn(cls, epochs: int) -> Self:
        """SGD at 0.4, times 0.7 when dev F1 falls, until below 0.002 (Murthy et al. 2018, 3.2)."""
        return cls(
            epochs=epochs,
            batch_size=16,
            learning_rate=0.4,
            head_learning_rate=0.4,
            weight_decay=0.0,
            patience=epochs,
            min_epochs=1,
            clip=5.0,
            decay=0.7,
            least_rate=0.002,
        )

    @classmethod
    def sentence_by_sentence(cls) -> Self:
        """SGD at 0.4 as Murthy et al. 2018 and their code have it, to the end (SOURCES.md, Assisting taggers)."""
        return replace(cls.charcnn(200), batch_size=1, in_turn=True)

    def rate(self, dev_f1: Sequence[float], dev_loss: Sequence[float] = ()) -> float:
        """The learning rate after epochs with these dev F1s, or dev losses, where `decay` rules it."""
        # From the history alone, so that a resumed training comes to the same rate without storing it.
        falls = sum(now < before for before, now in pairwise(dev_f1))
        if self.in_turn:
            falls = sum(loss > min(dev_loss[:at]) for at, loss in enumerate(dev_loss) if at)
        return self.learning_rate * self.decay**falls

    def planned(self, n: int) -> Self:
        """These settings for `n` training sentences.

        The epochs are those that fit; a batch has as many parts as were asked for or more, all of one size.
        """
        steps = -(-n // self.batch_size)
        fitting = max(3, -(-self.max_steps // steps)) if self.max_steps else self.epochs
        parts = range(min(self.accumulation, self.batch_size), self.batch_size + 1)
        equal = next(k for k in parts if self.batch_size % k == 0)
        return replace(self, epochs=min(self.epochs, fitting), accumulation=equal)


def _batch(n: int) -> int:
    # Of so few sentences a batch of 32 leaves a handful of steps an epoch (SOURCES.md, Taggers).
    return 16 if n <= 200 else 32


class TaggerSettings(Config):
    """Settings of a tagger, whatever it learns from: its network and its training. None: as the preset says."""

    network: Network = option(
        "encoder",
        "encoder: from init, a tag a word. span: from init, a type for every span of up to four words, as Wang et al. "
        "2022. bilstm: the two-layer BiLSTM-CRF with a char-CNN of Dai et al. 2019. charcnn: the BiLSTM with a wide "
        "char-CNN of Murthy et al. 2018. The last two are small and begin from nothing.",
    )
    beta: float = option(
        0.0,
        "span: what half the squared distance of a name's representation to that of another name of its type in the "
        "same place counts for; 0.01 in MINER (Wang et al. 2022).",
        ge=0,
    )
    gamma: float = option(
        0.0,
        "span: what InfoNCE of the same two counts for, by a critic that learns along; 0.001 in MINER.",
        ge=0,
    )
    hidden: int | None = option(
        None, "bilstm, charcnn: LSTM units a direction; None: 200, charcnn with an assisting corpus 400.", ge=1, le=4096
    )
    assisting_weight: float = option(
        0.1, "What the mean loss of an assisting batch counts for beside that of a primary one.", gt=0, le=1
    )
    in_turn: bool = option(
        False,
        "charcnn: a step a sentence, of the primary and the assisting corpus in turn, ruled by held-out loss, as "
        "Murthy et al. 2018; else a batch of the one and the weighted mean loss of a batch of the other make a step.",
    )
    share: Literal["all", "sub-word"] = option(
        "all", "bilstm, charcnn: what both corpora learn together; all, or the char-CNN alone."
    )
    preset: Literal["quick", "paper", "paper-bias", "custom"] = option(
        "quick",
        "quick: few epochs; paper: as Mahapatra et al. 2022; paper-bias: as Ma et al. 2023, softmax, the last "
        "epoch; custom: as quick, but for what is said here. span: both papers' are as Ma et al. 2023 trained MINER.",
    )
    head: Literal["crf", "softmax", "memm"] = option(
        "crf",
        "A linear-chain CRF; softmax: every word by itself; memm: a softmax that sees the tag before it too, as Murthy "
        "et al. 2018.",
    )
    layers: str = option(
        "last",
        "What is read of the encoder: its last layer; mix, a learnt mean of all; a number, the layers above that cut "
        "off; reinit:K, the last after the top K are drawn anew.",
    )
    constrained: bool | None = option(
        None, "Train and decode among the tag sequences that BIOES allows. None: as the preset says; paper does not."
    )
    epochs: int | None = option(None, "At most so many. None: as the preset says, here and below.", ge=1, le=1000)
    batch_size: int | None = option(None, "An optimizer step.", unit="sentences", ge=1, le=4096)
    accumulation: int | None = option(
        None, "Parts in which a batch is taken, at least: less memory, the same batch.", ge=1, le=4096
    )
    learning_rate: float | None = option(None, "Of the encoder.", gt=0, le=1)
    head_learning_rate: float | None = option(None, "Of the last layer.", gt=0, le=1)
    chain_learning_rate: float | None = option(None, "Of the CRF's transitions.", gt=0, le=1)
    weight_decay: float | None = option(None, "AdamW's.", ge=0, le=1)
    patience: int | None = option(None, "Training ends after so many without a better score.", unit="epochs", ge=1)
    min_epochs: int | None = option(None, "But not before.", unit="epochs", ge=1)
    dev_sentences: int | None = option(
        None,
        "An epoch is judged by a sample of this size; what is reported is of all. 0: all.",
        unit="sentences",
        ge=0,
    )
    max_length: int = option(256, "Longer sentences are read in overlapping windows.", unit="pieces", ge=16, le=8192)
    context: int = option(
        0,
        "Read so much of the neighbouring sentences of the same document on each side, and tag nothing in it.",
        unit="pieces",
        ge=0,
        le=1024,
    )
    class_weights: Literal["none", "root", "inverse"] = option(
        "none",
        "What a training sentence counts for, by the types it holds: all alike, or rare ones more, by the root of the "
        "inverse share of their mentions or by all of it.",
    )
    precision: Literal["auto", "bf16", "fp32"] = option("auto", "auto takes bf16 where the device has it.")
    allow_download: bool = option(False, "Fetch the encoder from the Hugging Face hub if it is not here yet.")
    lora: int = option(0, LORA, ge=0, le=256)
    checkpointing: bool = option(False, CHECKPOINTING)
    parts: int = option(PARTS, IN_PARTS, ge=1, le=64)

    @model_validator(mode="before")
    @classmethod
    def _head(cls, values: object) -> object:
        """The preset's head, where none is said."""
        if isinstance(values, dict) and values.get("preset") == "paper-bias":
            return {"head": "softmax", **values}
        return values

    @field_validator("layers")
    @classmethod
    def _layers(cls, layers: str) -> str:
        LayerChoice.parse(layers)
        return layers

    @property
    def within_bioes(self) -> bool:
        """Whether other tag sequences are left out, by `constrained` or by the preset."""
        return self.preset != "paper" if self.constrained is None else self.constrained

    def training(self, n: int) -> Settings:
        """Settings for `n` training sentences: the preset's numbers, but for those that are said."""
        own = self.model_dump(include={field.name for field in fields(Settings)}, exclude_none=True)
        limited = self.preset == "quick" and not self.epochs and not self.in_turn
        return replace(self._preset(n), max_steps=QUICK_STEPS if limited else 0, **own)

    def _preset(self, n: int) -> Settings:
        if self.network in ON_ENCODER:
            presets = {"paper": Settings.paper, "paper-bias": Settings.bias}
            usual = presets.get(self.preset, Settings.quick)(n)
            if self.network == "span":
                printed = self.preset in presets
                usual = Settings.miner() if printed else replace(usual, chain_learning_rate=None)
            return replace(usual, learning_rate=usual.learning_rate * (LORA_FASTER if self.lora else 1))
        if self.in_turn:
            return Settings.sentence_by_sentence()
        epochs = 200 if self.preset == "paper" else 40
        if self.network == "bilstm":
            return Settings.bilstm(epochs)
        # Few epochs end together, so that trainings which are compared make as many steps.
        return Settings.charcnn(epochs) if self.preset == "paper" else replace(Settings.charcnn(epochs), least_rate=0.0)
