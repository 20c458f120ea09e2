"""The rows that an `add` run could not use.

artifacts/rejects.jsonl    file, line, kind, reason, raw; there only if anything was rejected
"""

from pathlib import Path

from core.runs.run import Run

FILE = "rejects.jsonl"


def path(run: Run) -> Path:
    """The path on which they are, or would be."""
    return run.artifacts / FILE
