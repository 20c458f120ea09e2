"""The model that a `pretrain` or `finetune` run leaves.

artifacts/model/    a Hugging Face folder: weights, config.json, tokenizer; its card
"""

from pathlib import Path

from core.files import write_atomic
from core.runs.run import Run

NAME = "model"  # also the name that the run tells it by
_CONFIG, _CARD = "config.json", "README.md"


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
