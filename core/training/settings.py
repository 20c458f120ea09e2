"""Settings of taggers and of PVI's classifiers: the papers' values, and presets with few epochs.

The papers are Mahapatra et al. 2022 and Ma et al. 2023. This module does not import torch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Literal, Self

from pydantic import field_validator, model_validator

from core.config import Config, option
from core.models.networks import ON_ENCODER, LayerChoice, Network
from core.training.memory import CHECKPOINTING, IN_PARTS, LORA, LORA_FASTER, PARTS

# Minimum and maximum size of the dev sample of `quick`. The sample is about as large as the training set, so that
# evaluating an epoch does not take longer than training it.
JUDGES_LEAST, JUDGES_MOST = 150, 500
# Learning rate of the CRF. It is high, because a transition changes by about one rate per step and there are few steps.
CHAIN = 1e-2
# Number of training sentences from which Table 8 of Ma et al. 2023 has fewer epochs and larger batches.
MANY = 5000
# `quick` ends with the epoch that reaches this number of optimizer steps.
QUICK_STEPS = 1500
# Maximum number of rounds of training on pseudo-labels (`training.pseudo`).
ROUNDS = 2
# Factors of the loss of pseudo-labels in self-training. The first round tries all and keeps the best by dev F1.
WEIGHTS = (0.2, 1.0)
# Number of epochs on the names that the user's lists find, and on a teacher's labels.
MATCHED, RELABELLED = 3, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Complete settings of a tagger's training; presets are filled in.

    batch_size: sentences per optimizer step over all processes. accumulation: number of parts that a batch is cut into;
    the optimizer step stays the same. patience: training ends after this many epochs without a better dev F1, but not
    before min_epochs. max_steps: maximum number of steps, 0 for no limit; at least three epochs are trained in any
    case. dev_sentences: number of dev sentences that are scored after each epoch; 0: all. chain_learning_rate: learning
    rate of the CRF's transitions; None: the head's rate, or a recurrent network's only rate. decay: if below 1, use
    plain SGD instead of AdamW, and multiply its rate by this factor after each epoch whose dev F1 fell. Training then
    ends when the rate falls below least_rate (Murthy et al. 2018, 3.2). in_turn: one sentence per step, from the
    primary and the assisting corpus in turn; dev loss replaces dev F1, and the best weights are restored after a worse
    epoch. last: keep the weights of the last epoch instead of the best; patience still applies. parts: number of parts
    of a step on a CPU, one thread each.
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
        """Return an encoder tagger's settings for `n` training sentences: few epochs and a small dev sample."""
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
        """Return the settings of Mahapatra et al. 2022 for `n` training sentences (SOURCES.md, Taggers)."""
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
        """Return the settings of Ma et al. 2023, Table 8, for `n` training sentences (SOURCES.md, Taggers of Bias)."""
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
        """Return a span tagger's settings: Ma et al. 2023, A.4; epochs as in Wang et al. 2022 (SOURCES.md, MINER)."""
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
        """Return settings of a `bilstm` tagger: AdamW at 1e-3 (SOURCES.md, Recurrent taggers)."""
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
        """Return settings of SGD as in Murthy et al. 2018, 3.2.

        The rate is 0.4 at first and is multiplied by 0.7 after each epoch whose dev F1 fell. Training ends when the
        rate is below 0.002.
        """
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
        """Return the settings of Murthy et al. 2018, one sentence per step (SOURCES.md, Assisting taggers)."""
        return replace(cls.charcnn(200), batch_size=1, in_turn=True)

    def rate(self, dev_f1: Sequence[float], dev_loss: Sequence[float] = ()) -> float:
        """Return the learning rate after epochs with these dev F1s. It decays each time that dev F1 falls.

        With `in_turn`, it decays instead after each epoch whose dev loss is above the lowest loss of earlier epochs.
        """
        # Compute the rate from the scores, so that it need not be stored for a resumed training.
        falls = sum(now < before for before, now in pairwise(dev_f1))
        if self.in_turn:
            falls = sum(loss > min(dev_loss[:at]) for at, loss in enumerate(dev_loss) if at)
        return self.learning_rate * self.decay**falls

    def brief(self, epochs: int) -> Self:
        """Return these settings for a first training of exactly `epochs` epochs, of which the last is kept."""
        return replace(self, epochs=epochs, patience=epochs, max_steps=0, last=True)

    def planned(self, n: int) -> Self:
        """Return these settings with no more epochs than `max_steps` allows, and with equal parts of the batch.

        n: number of training sentences. `accumulation` is raised to the next number that divides `batch_size`.
        """
        steps = -(-n // self.batch_size)
        fitting = max(3, -(-self.max_steps // steps)) if self.max_steps else self.epochs
        parts = range(min(self.accumulation, self.batch_size), self.batch_size + 1)
        equal = next(k for k in parts if self.batch_size % k == 0)
        return replace(self, epochs=min(self.epochs, fitting), accumulation=equal)


def _batch(n: int) -> int:
    # With at most 200 sentences, batches of 32 give only a handful of steps per epoch (SOURCES.md, Taggers).
    return 16 if n <= 200 else 32


class TaggerSettings(Config):
    """Settings of a tagger's network and training. A setting that is None has the preset's value."""

    network: Network = option(
        "encoder",
        "encoder: starts from init and predicts a tag per word. span: starts from init and predicts a type for "
        "every span of up to four words (Wang et al. 2022). bilstm: two-layer BiLSTM-CRF with a char-CNN (Dai et "
        "al. 2019). charcnn: BiLSTM with a wide char-CNN (Murthy et al. 2018). The last two are small and start "
        "from random weights.",
    )
    beta: float = option(
        0.0,
        "span: weight of half the squared distance between the representations of two names of one type in the same "
        "sentence; 0.01 in MINER (Wang et al. 2022).",
        ge=0,
    )
    gamma: float = option(
        0.0,
        "span: weight of the InfoNCE loss of the two representations that beta compares. Its critic is trained with "
        "the tagger. 0.001 in MINER.",
        ge=0,
    )
    hidden: int | None = option(
        None,
        "bilstm, charcnn: LSTM units per direction. None: 200, or 400 for charcnn with an assisting corpus.",
        ge=1,
        le=4096,
    )
    assisting_weight: float = option(
        0.1, "Weight of an assisting batch's mean loss, relative to a primary batch's.", gt=0, le=1
    )
    in_turn: bool = option(
        False,
        "charcnn: train on one sentence per step, from the primary and the assisting corpus in turn, and select the "
        "best epoch by dev loss (Murthy et al. 2018). Otherwise each step has one batch per corpus, and the assisting "
        "batch is weighted by assisting_weight.",
    )
    share: Literal["all", "sub-word"] = option(
        "all", "bilstm, charcnn: layers that both corpora share: all layers, or only the char-CNN."
    )
    preset: Literal["quick", "paper", "paper-bias", "custom"] = option(
        "quick",
        "quick: few epochs. paper: as Mahapatra et al. 2022. paper-bias: as Ma et al. 2023, with softmax and the last "
        "epoch kept. custom: as quick, except for the options that you set. With the network span, paper and "
        "paper-bias both use the MINER settings of Ma et al. 2023.",
    )
    head: Literal["crf", "softmax", "memm"] = option(
        "crf",
        "crf: a linear-chain CRF; softmax: predicts each word's tag separately; memm: a softmax that also sees the "
        "previous tag (Murthy et al. 2018).",
    )
    layers: str = option(
        "last",
        "Encoder layer that the tagger reads. last: the last layer; mix: a learnt mean of all layers; a number: this "
        "layer, with the layers above it removed; reinit:K: the last layer, after the top K layers were reinitialised.",
    )
    constrained: bool | None = option(
        None,
        "Allow only tag sequences that are valid in BIOES. None: the preset's value; the preset paper allows all "
        "sequences.",
    )
    keep: Literal["best", "last"] | None = option(
        None,
        "Epoch whose weights are kept: the best on dev, or the last. None: the best, or in paper-bias the last. "
        "Experiments with the preset quick keep the last, whose F1 depends less on the seed.",
    )
    epochs: int | None = option(None, "Maximum number of epochs. None: the preset's value.", ge=1, le=1000)
    batch_size: int | None = option(None, "Batch per optimizer step.", unit="sentences", ge=1, le=4096)
    accumulation: int | None = option(
        None, "Minimum number of parts that a batch is cut into; more parts need less memory.", ge=1, le=4096
    )
    learning_rate: float | None = option(None, "Learning rate of the encoder.", gt=0, le=1)
    head_learning_rate: float | None = option(None, "Learning rate of the last layer.", gt=0, le=1)
    chain_learning_rate: float | None = option(None, "Learning rate of the CRF's transitions.", gt=0, le=1)
    weight_decay: float | None = option(None, "Weight decay of AdamW.", ge=0, le=1)
    patience: int | None = option(
        None, "Training ends after this many epochs without a better dev F1.", unit="epochs", ge=1
    )
    min_epochs: int | None = option(
        None, "Minimum number of epochs, even if the patience has run out.", unit="epochs", ge=1
    )
    dev_sentences: int | None = option(
        None,
        "Size of the dev sample that each epoch is scored on; 0: the whole dev set. Reported scores use the whole set.",
        unit="sentences",
        ge=0,
    )
    dev_every: int = option(
        0,
        "Also score the dev set every this many steps within an epoch, for the live chart; 0: only after each epoch. "
        "The tagger and its final scores stay the same. This scoring takes at most a tenth of the training's time; "
        "scores beyond this limit are skipped.",
        unit="steps",
        ge=0,
    )
    max_length: int = option(
        256, "Window size; longer sentences are read in overlapping windows.", unit="pieces", ge=16, le=8192
    )
    context: int = option(
        0,
        "Context to read from the neighbouring sentences of the same document, on each side.",
        unit="pieces",
        ge=0,
        le=1024,
    )
    class_weights: Literal["none", "root", "inverse"] = option(
        "none",
        "Weight of a training sentence by its entity types. none: all equal. inverse: a type's weight is 1 divided by "
        "its share of the mentions. root: the square root of this value.",
    )
    precision: Literal["auto", "bf16", "fp32"] = option(
        "auto", "Number format of the computation. auto: bf16 if the device supports it, else fp32."
    )
    allow_download: bool = option(False, "Download the encoder from the Hugging Face hub if it is not on this machine.")
    lora: int = option(0, LORA, ge=0, le=256)
    checkpointing: bool = option(False, CHECKPOINTING)
    parts: int = option(PARTS, IN_PARTS, ge=1, le=64)

    @model_validator(mode="before")
    @classmethod
    def _head(cls, values: object) -> object:
        """Return the options with the preset's head if no head is given."""
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
        """True if only valid BIOES sequences are allowed; the value of `constrained`, or else of the preset."""
        return self.preset != "paper" if self.constrained is None else self.constrained

    def training(self, n: int) -> Settings:
        """Return settings for `n` training sentences: the preset's values, replaced by the options that are set."""
        own = self.model_dump(include={field.name for field in fields(Settings)}, exclude_none=True)
        own |= {"last": self.keep == "last"} if self.keep else {}
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
        # With few epochs, do not end when the rate is low, so that compared trainings have the same number of steps.
        return Settings.charcnn(epochs) if self.preset == "paper" else replace(Settings.charcnn(epochs), least_rate=0.0)


# Encoders of at least this width get the settings of RoBERTa-large.
WIDE = 1024
# Numbers of mentions that separate the corpora in Table 7 of Ma et al. 2023. WNUT and Twitter have fewer than LARGE
# mentions; CoNLL, ACE and Bio have more than FULL.
LARGE, FULL = 8_000, 20_000
# For `quick`: number of contexts to read in all epochs together; maximum and minimum number of epochs.
SEEN, MOST, LEAST = 5_000, 12, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifySettings:
    """Settings of a classifier's training by AdamW, with gradients clipped at 1.

    Learning rates rise over `warmup` (a share of all steps), then fall linearly to 0. batch_size: mentions per
    optimizer step. head_learning_rate: rate of the last layer. pooling: see `models.classifier`. keep_embeddings: True
    to freeze the embeddings.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    head_learning_rate: float
    pooling: Literal["pooler", "cls"]
    keep_embeddings: bool = False
    warmup: float = 0.0
    weight_decay: float = 0.0


def classify_preset(
    name: Literal["quick", "paper", "custom"], view: Literal["entity", "context"], n: int, width: int
) -> ClassifySettings:
    """Return settings for `n` mentions and an encoder of this `width`. `custom` starts from `quick`.

    `paper` chooses settings from Table 7 of Ma et al. 2023 by the number of mentions and the width. The table has 3
    epochs of contexts for BioNER but 2 for OntoNotes, although both corpora are large. `paper` uses 2 for both. For a
    corpus like BioNER, set `context_epochs` to 3.
    """
    if name == "paper":
        small = n < LARGE
        rate = 1e-5 if width >= WIDE else 1e-4 if small else 5e-5
        epochs = (5 if small else 2) if view == "context" else 3 if small else 2 if n < FULL else 1
        size = 16 if width >= WIDE and view == "entity" else 32
        return ClassifySettings(
            epochs=epochs, batch_size=size, learning_rate=rate, head_learning_rate=rate, pooling="pooler"
        )
    # Rates are high and epochs few, because a small encoder learns names in one epoch and contexts in two. The
    # embeddings are frozen: they are most of the weights, and each of them is rarely used. With lower layers frozen as
    # well, predictions from contexts were worse.
    epochs = min(MOST, max(LEAST, -(-SEEN // n)))
    return ClassifySettings(
        epochs=epochs if view == "context" else epochs + 1,
        batch_size=16 if view == "context" else 32,
        learning_rate=2e-4,
        head_learning_rate=1e-3,
        pooling="cls",
        keep_embeddings=True,
        warmup=0.1,
        weight_decay=0.01,
    )
