"""The model that a `pretrain` or `finetune` run stores.

artifacts/model/    a Hugging Face folder: weights, config.json, tokenizer, model card
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.files import write_atomic
from core.runs.run import Run

NAME = "model"  # name of the folder, and of the artifact in the run's events
# End of an error. The same options alone would give back the finished run, which has no model.
MISSING = (
    "the model of this run is no longer in the project; copy its folder back, or remove the run and start it again."
)
_CONFIG, _CARD = "config.json", "README.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Perplexity:
    """Pseudo-perplexity of held-out text of T_C, before and after the training; NaN without such text."""

    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainResult:
    """Result of a `pretrain` run.

    model: folder of the model. sentences: number of sentences per epoch. tokens: number of tokens of the distinct
    training sentences. epochs: passes over the training sentences. steps: optimizer steps. dev_loss, dev_loss_general:
    loss on T_C and on general text in nats per masked piece, one per epoch; empty if there is no held-out text. before:
    losses before the first step, by name. head_fitted: True if the encoder lacked a vocabulary head.
    """

    model: str
    sentences: int
    tokens: int = 0  # 0 in results of older versions
    epochs: float
    steps: int
    dev_loss: Sequence[float]
    dev_loss_general: Sequence[float]
    pseudo_perplexity: Perplexity
    before: Mapping[str, float]
    head_fitted: bool
    tokens_per_second: float


def folder(run: Run) -> Path:
    """Return the folder of the run's model, which may not exist yet."""
    return run.artifacts / NAME


def is_here(run: Run) -> bool:
    """Return True if the run's folder holds the model; a user may have deleted it to free disk space."""
    return (folder(run) / _CONFIG).exists()


def write_card(folder: Path, text: str) -> None:
    """Write the model's card into the folder of its weights."""
    write_atomic(folder / _CARD, text.encode())


def read_card(folder: Path) -> str:
    """Return the model's card as Markdown; "" if there is none."""
    return (folder / _CARD).read_text(encoding="utf-8") if (folder / _CARD).exists() else ""
