"""Hand edits of a selection: an append-only log beside the `select` run, folded whenever S_C is asked for.

home/runs/<run_id>/edits.jsonl    one line an action: {"action": "add", "rows": [3, 7], "time": 1700000000.0}
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.files import append_line
from core.results import IntArray, Selection

FILE = "edits.jsonl"
Action = Literal["add", "remove", "undo"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edit:
    """One action that was not undone. rows: rows of D_C. time: seconds since 1970."""

    action: Action
    rows: IntArray
    time: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edits:
    """What all actions together mean. added, removed: rows, ascending; no row is in both. history: oldest first."""

    added: IntArray
    removed: IntArray
    history: tuple[Edit, ...] = ()

    def __bool__(self) -> bool:
        return bool(len(self.added) or len(self.removed))

    def __str__(self) -> str:
        return f"{len(self.added):,} added and {len(self.removed):,} removed by hand" if self else "no hand edits"

    def apply(self, chosen: Selection, scores: Any) -> Selection:
        """`chosen` without the removed rows, the added ones behind the others, best first.

        scores: the `Scores` that `chosen` was chosen from.
        """
        kept = ~np.isin(chosen.rows, self.removed)
        extra = self.added[~np.isin(self.added, chosen.rows)]
        keys = scores.values[extra] * (-1 if scores.prefer == "high" else 1)
        rows = np.concatenate([chosen.rows[kept], extra[np.argsort(keys, kind="stable")]])
        gone = {"removed_by_hand": int((~kept).sum())} if not kept.all() else {}
        return Selection(
            corpus=chosen.corpus,
            rows=rows,
            scores=scores.values[rows],
            budget=chosen.budget,
            dropped={**chosen.dropped, **gone},
        )


def append(folder: Path, action: Action, rows: IntArray) -> None:
    """Write one action down."""
    entry = {"action": action, "rows": np.unique(rows).tolist(), "time": round(time.time(), 3)}
    append_line(folder / FILE, json.dumps(entry, separators=(",", ":")).encode())


def read(folder: Path) -> Edits:
    """Fold the log. A line that is torn or spoilt counts as never written."""
    try:
        lines = (folder / FILE).read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        lines = []
    history: list[Edit] = []
    for edit in filter(None, map(_parse, lines)):
        if edit.action != "undo":
            history.append(edit)
        elif history:
            history.pop()
    added: IntArray = np.empty(0, dtype=np.int64)
    removed = added
    for edit in history:
        into, out_of = (added, removed) if edit.action == "add" else (removed, added)
        into, out_of = np.union1d(into, edit.rows), np.setdiff1d(out_of, edit.rows)
        added, removed = (into, out_of) if edit.action == "add" else (out_of, into)
    return Edits(added=added, removed=removed, history=tuple(history))


def _parse(line: bytes) -> Edit | None:
    try:
        found = json.loads(line)
        if found["action"] not in ("add", "remove", "undo"):
            return None
        return Edit(action=found["action"], rows=np.array(found["rows"], dtype=np.int64), time=float(found["time"]))
    except (ValueError, TypeError, KeyError):
        return None
