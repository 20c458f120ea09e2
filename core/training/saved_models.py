"""The model that a `pretrain` or `finetune` run leaves.

artifacts/model/    a Hugging Face folder: weights, config.json, tokenizer; its card
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.files import write_atomic
from core.runs.run import Run

NAME = "model"  # also the name that the run tells it by
_CONFIG, _CARD = "config.json", "README.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Perplexity:
    """Pseudo-perplexity of held-out text of T_C, before and after the training; NaN where nothing could be probed."""

    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainResult:
    """Result of a `pretrain` run.

    model: its folder. sentences: that an epoch reads. tokens: of those that are trained on, each once. epochs: passes
    over them. steps: of the optimizer. dev_loss,
    dev_loss_general: nats a masked piece of T_C and of general text, one an epoch, none without such text. before: the
    same before the first step, by name. head_fitted: whether the encoder came without a vocabulary head.
    """

    model: str
    sentences: int
    tokens: int = 0  # results of older versions have none
    epochs: float
    steps: int
    dev_loss: Sequence[float]
    dev_loss_general: Sequence[float]
    pseudo_perplexity: Perplexity
    before: Mapping[str, float]
    head_fitted: bool
    tokens_per_second: float


def folder(run: Run) -> Path:
    """The folder in which the model lies, or will lie."""
    return run.artifacts / NAME


def is_here(run: Run) -> bool:
    """Whether the model can be loaded: it may have been deleted since, to make room."""
    return (folder(run) / _CONFIG).exists()


def write_card(folder: Path, text: str) -> None:
    """Put the model's card beside its weights."""
    write_atomic(folder / _CARD, text.encode())


def read_card(folder: Path) -> str:
    """Markdown; "" where there is no card."""
    return (folder / _CARD).read_text(encoding="utf-8") if (folder / _CARD).exists() else ""
