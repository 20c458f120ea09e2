"""The mentions that a `difficulty` run measured.

artifacts/mentions.parquet    see `difficulty.mentions`
"""

from collections.abc import Iterable
from pathlib import Path

from core.difficulty import mentions as table
from core.difficulty.mentions import Mention
from core.runs.context import RunContext
from core.runs.run import Run

_FILE = "mentions.parquet"


def file(run: Run) -> Path:
    """The path of the table."""
    return run.artifacts / _FILE


def write(context: RunContext, mentions: Iterable[Mention]) -> None:
    """In the order of the corpus, which numbers them."""
    path = file(context.run)
    table.write(mentions, path)
    context.artifact("mentions", path)


def read(run: Run) -> list[Mention]:
    """Read what `write` wrote."""
    return table.read(file(run))
