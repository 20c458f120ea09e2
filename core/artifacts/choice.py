"""What a person settled on while looking at a finished run: one small file each, beside the run.

home/runs/<run_id>/budget.json    "20.2%": of a `select` run, where it is not the budget that the run was started with
home/runs/<run_id>/region.json    {"kind": "lasso", "value": [[[x, y], ...]]}: of a `map` run, what is picked on the map
home/runs/<run_id>/region-lasso-5e0c91ab.json    the same, of a lasso or a box that was drawn some time, by its token
"""

import json
from pathlib import Path

from core.files import write_atomic

BUDGET, REGION = "budget.json", "region.json"


def read(folder: Path, name: str) -> object:
    """The choice in a run's folder; None where there is none, or its file is spoilt."""
    try:
        return json.loads((folder / name).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def write(folder: Path, name: str, value: object) -> None:
    """Keep a choice in place of the last one; None forgets it."""
    if value is None:
        (folder / name).unlink(missing_ok=True)
    elif value != read(folder, name):
        write_atomic(folder / name, json.dumps(value, ensure_ascii=False).encode())
