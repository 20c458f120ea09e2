"""Where everything lives."""

import os
from functools import lru_cache
from pathlib import Path

from core.corpora.corpus import Library
from core.runs.store import RunStore


def home() -> Path:
    """`WINNOW_HOME`, else `~/.winnow`."""
    return Path(os.environ.get("WINNOW_HOME") or Path.home() / ".winnow").absolute()


def library() -> Library:
    """The corpora of this home."""
    return Library(home())


def store() -> RunStore:
    """The runs of this home; one store a home, since its handles remember what they have read."""
    return _store(home())


@lru_cache
def _store(folder: Path) -> RunStore:
    return RunStore(folder)
