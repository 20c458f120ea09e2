"""The table that an `experiment` leaves beside its result.

artifacts/leaderboard.csv, leaderboard.md    for a spreadsheet, for people
"""

from collections.abc import Mapping
from pathlib import Path

from core.files import write_atomic
from core.runs.context import RunContext
from core.runs.run import Run


def file(run: Run, suffix: str) -> Path:
    """The path of the table. suffix: `csv` or `md`."""
    return run.artifacts / f"leaderboard.{suffix}"


def write(context: RunContext, texts: Mapping[str, str]) -> None:
    """texts: {"csv", "md"}."""
    for suffix, text in texts.items():
        path = file(context.run, suffix)
        write_atomic(path, text.encode())
        context.artifact(path.name, path)
