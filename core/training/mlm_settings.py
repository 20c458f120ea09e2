"""Settings of masked language modelling: the papers' values, and a preset with few epochs for first experiments."""

from dataclasses import dataclass
from typing import Literal, Self

from core.config import Config, option
from core.models.mlm import Unit
from core.training.memory import CHECKPOINTING, IN_PARTS, LORA, LORA_FASTER, PARTS

# Maximum number of steps of `quick`, about 100,000 sentences.
QUICK_STEPS = 1500
# Number of pieces in a row that is filled with whole texts.
PACKED = 512
# Before texts are packed into rows, only texts of more pieces than this are cut.
WHOLE = 8192

Balance = Literal["none", "upsample_TC", "downsample_SC"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Complete settings of a pre-training; presets are filled in.

    batch_size: sentences per optimizer step over all processes. accumulation: minimum number of parts that a batch is
    cut into; the optimizer step stays the same. max_steps, max_pieces: if not 0, number of steps or pieces to train,
    instead of `epochs`. patience: training ends after this many epochs without a better dev loss on T_C, and the
    weights of the best epoch are kept (SOURCES.md, Forgetting); 0: train all epochs and keep the weights of the last,
    as in the papers. lora: rank of the LoRA matrices; 0: train all weights. checkpointing: recompute the activations of
    every layer. parts: number of parts of a step on a CPU, one thread each.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    accumulation: int = 1
    clip: float = 1.0
    max_steps: int = 0
    max_pieces: int = 0
    patience: int = 0
    mask_probability: float = 0.15
    mask_unit: Unit = "piece"
    seed: int = 1
    bf16: bool = False
    lora: int = 0
    checkpointing: bool = False
    parts: int = PARTS


class MlmSettings(Config):
    """Settings of masked language modelling. A setting that is None has the preset's value."""

    preset: Literal["quick", "paper", "custom"] = option(
        "quick",
        f"quick: 4 epochs at 1e-4, at most {QUICK_STEPS:,} steps; paper: 5 epochs at 5e-5, as Mahapatra et al. 2022; "
        "custom: as paper, except for the options that you set.",
    )
    epochs: int | None = option(None, "Passes over the text; None: the preset's value.", ge=1, le=1000)
    batch_size: int = option(64, "Sentences per optimizer step, over all processes.", ge=1, le=65_536)
    learning_rate: float | None = option(
        None, "Initial learning rate; it falls linearly to 0. None: the preset's value.", gt=0, le=1
    )
    accumulation: int = option(
        1, "Minimum number of parts that a batch is cut into; more parts need less memory.", ge=1, le=4096
    )
    max_steps: int = option(0, "Number of optimizer steps to train, instead of epochs; 0: use epochs.", ge=0)
    max_pieces: int = option(0, "Number of pieces to train on, instead of epochs; 0: use epochs.", ge=0)
    patience: int = option(
        0,
        "End training after this many epochs without a better held-out loss on the task corpus, and keep the best "
        "epoch. 0: train all epochs and keep the last.",
        ge=0,
    )
    max_length: int = option(
        128, "Maximum length of a row; longer sentences are cut into several rows.", unit="pieces", ge=8, le=8192
    )
    packed: bool = option(False, f"Fill rows of {PACKED} pieces with whole texts instead of one sentence per row.")
    mask: Unit = option("piece", "Unit of masking: pieces, whole words, or spans (CrossNER).")
    mask_probability: float = option(0.15, "Share of the pieces that are masked.", gt=0, lt=1)
    balance: Balance = option(
        "none",
        "Balance of the task corpus and the other corpora. none: use every sentence once; upsample_TC: repeat the task "
        "corpus until it is as large as the others; downsample_SC: use only as many sentences of the others as the "
        "task corpus has.",
    )
    precision: Literal["auto", "bf16", "fp32"] = option(
        "auto", "Number format of the computation. auto: bf16 if the device supports it, else fp32."
    )
    allow_download: bool = option(False, "Download the encoder from the Hugging Face hub if it is not on this machine.")
    lora: int = option(0, LORA, ge=0, le=256)
    checkpointing: bool = option(False, CHECKPOINTING)
    parts: int = option(PARTS, IN_PARTS, ge=1, le=64)

    @classmethod
    def quick(cls) -> "MlmSettings":
        """Return the `quick` settings: few epochs, a high learning rate (SOURCES.md, Masked language modelling)."""
        return MlmSettings(preset="quick", epochs=4, learning_rate=1e-4)

    @classmethod
    def paper(cls) -> "MlmSettings":
        """Return the settings of Mahapatra et al. 2022, 4.1."""
        return MlmSettings(preset="paper", epochs=5, learning_rate=5e-5)

    def filled(self) -> Self:
        """Return these settings with the preset's numbers filled in."""
        usual = self.quick() if self.preset == "quick" else self.paper()
        assert usual.learning_rate
        rate = usual.learning_rate * (LORA_FASTER if self.lora else 1)
        numbers = {"epochs": self.epochs or usual.epochs, "learning_rate": self.learning_rate or rate}
        return self.model_copy(update=numbers)

    @property
    def n_epochs(self) -> int:
        """Number of passes over the text; the preset's number unless `epochs` is set."""
        epochs = self.filled().epochs
        assert epochs
        return epochs

    def full_steps(self, rows: int) -> int:
        """Return the number of optimizer steps in all epochs. rows: number of rows in one epoch."""
        return self.n_epochs * -(-rows // self.batch_size)

    def steps(self, rows: int) -> int:
        """Return the number of optimizer steps: `max_steps` if set, else the steps of all epochs.

        Under `quick`, the steps of all epochs are limited to QUICK_STEPS, unless `max_pieces` is set.
        """
        full = self.full_steps(rows)
        hurried = self.preset == "quick" and not self.max_pieces
        return self.max_steps or (min(full, QUICK_STEPS) if hurried else full)
