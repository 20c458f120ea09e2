"""What masked language modelling is told beside its text: numbers of the papers, and few epochs for a first look."""

from dataclasses import dataclass
from typing import Literal, Self

from core.config import Config, option
from core.models.masking import Unit
from core.training.lighter import CHECKPOINTING, IN_PARTS, LORA, LORA_FASTER, PARTS

QUICK_STEPS = 1500  # about 100,000 sentences
PACKED = 512  # pieces a row; a text is packed whole, up to WHOLE pieces
WHOLE = 8192

Balance = Literal["none", "upsample_TC", "downsample_SC"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a pre-training, nothing left to a preset.

    batch_size: sentences an optimizer step, of all processes together. accumulation: into how many parts, at least,
    a step's batch is cut; the step stays the same. max_steps, max_pieces: instead of the epochs; 0: no.
    patience: epochs without a better dev loss on T_C after which training ends, and the best one's weights are kept
    (SOURCES.md, Forgetting); 0: all epochs are made and the last one's weights kept, as in the papers.
    lora: its rank; 0: all weights are trained. checkpointing: of every layer (`lighter`). parts: of a step on a
    processor, a thread each.
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
    """Settings of masked language modelling, whatever text it reads. Numbers that are None are the preset's."""

    preset: Literal["quick", "paper", "custom"] = option(
        "quick",
        f"quick: 4 epochs at 1e-4, at most {QUICK_STEPS:,} steps; paper: 5 epochs at 5e-5, as Mahapatra et al. 2022; "
        "custom: as paper, but for what is said here.",
    )
    epochs: int | None = option(None, "Passes over the text; None: as the preset says.", ge=1, le=1000)
    batch_size: int = option(64, "Sentences an optimizer step, of all processes together.", ge=1, le=65_536)
    learning_rate: float | None = option(None, "Falls linearly to 0; None: as the preset says.", gt=0, le=1)
    accumulation: int = option(1, "Parts of a batch, at least: more take less memory, the step stays.", ge=1, le=4096)
    max_steps: int = option(0, "Optimizer steps instead of epochs; 0: epochs.", ge=0)
    max_pieces: int = option(0, "Pieces to be read instead of epochs; 0: epochs.", ge=0)
    patience: int = option(
        0,
        "End after so many epochs without a better held-out loss on the task corpus, and keep the best; 0: the last.",
        ge=0,
    )
    max_length: int = option(128, "Longer sentences are read in parts.", unit="pieces", ge=8, le=8192)
    packed: bool = option(False, f"Fill rows of {PACKED} pieces with whole texts instead of a sentence a row.")
    mask: Unit = option("piece", "What is masked: pieces, whole words, or spans (CrossNER).")
    mask_probability: float = option(0.15, "Share of the pieces that are masked.", gt=0, lt=1)
    balance: Balance = option(
        "none",
        "The task corpus beside the others: every sentence once; the task corpus repeated to their size; or as "
        "few of them as of the task corpus.",
    )
    precision: Literal["auto", "bf16", "fp32"] = option("auto", "auto takes bf16 where the device has it.")
    allow_download: bool = option(False, "Fetch the encoder from the Hugging Face hub if it is not here yet.")
    lora: int = option(0, LORA, ge=0, le=256)
    checkpointing: bool = option(False, CHECKPOINTING)
    parts: int = option(PARTS, IN_PARTS, ge=1, le=64)

    @classmethod
    def quick(cls) -> "MlmSettings":
        """Few epochs at a high rate: a first look in minutes (SOURCES.md, Masked language modelling)."""
        return MlmSettings(preset="quick", epochs=4, learning_rate=1e-4)

    @classmethod
    def paper(cls) -> "MlmSettings":
        """Mahapatra et al. 2022, 4.1."""
        return MlmSettings(preset="paper", epochs=5, learning_rate=5e-5)

    def filled(self) -> Self:
        """These settings with the preset's numbers where none are said."""
        usual = self.quick() if self.preset == "quick" else self.paper()
        assert usual.learning_rate
        rate = usual.learning_rate * (LORA_FASTER if self.lora else 1)
        numbers = {"epochs": self.epochs or usual.epochs, "learning_rate": self.learning_rate or rate}
        return self.model_copy(update=numbers)

    @property
    def n_epochs(self) -> int:
        """Passes over the text, the preset's where none are said."""
        epochs = self.filled().epochs
        assert epochs
        return epochs

    def full_steps(self, rows: int) -> int:
        """Optimizer steps of all epochs, each of which reads so many rows."""
        return self.n_epochs * -(-rows // self.batch_size)

    def steps(self, rows: int) -> int:
        """The same, as far as a preset or `max_steps` lets them go; `max_pieces` is another limit."""
        full = self.full_steps(rows)
        hurried = self.preset == "quick" and not self.max_pieces
        return self.max_steps or (min(full, QUICK_STEPS) if hurried else full)
