"""Hand edits of a selection: an append-only log beside the `select` run, folded whenever S_C is asked for.

home/runs/<run_id>/edits.jsonl    one line an action: {"action": "add", "rows": [3, 7], "time": 1700000000.0}
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NotRequired

import numpy as np
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from core.errors import RunError
from core.results import IntArray, Scores, Selection
from core.runs import journal

FILE = "edits.jsonl"
Action = Literal["add", "remove", "undo"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edit:
    """One action that was not undone. rows: rows of D_C. time: seconds since 1970. by: whose; "" by older versions."""

    action: Action
    rows: IntArray
    time: float
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edits:
    """The net effect of all actions. added, removed: rows, ascending; no row is in both. history: oldest first."""

    added: IntArray
    removed: IntArray
    history: tuple[Edit, ...] = ()

    def __bool__(self) -> bool:
        return bool(len(self.added) or len(self.removed))

    def __str__(self) -> str:
        return f"{len(self.added):,} added and {len(self.removed):,} removed by hand" if self else "no hand edits"

    def apply(self, chosen: Selection, scores: Scores) -> Selection:
        """`chosen` without the removed rows, the added ones behind the others, best first.

        scores: those that `chosen` was chosen from. Errors: RunError for an added row that they do not have.
        """
        if len(self.added) and self.added[-1] >= (n := len(scores.values)):
            raise RunError(
                f"{FILE}: adds row {self.added[-1]}, and the domain corpus has {n:,}; bring it back from a copy, or "
                "take the last hand edits back."
            )
        kept = ~np.isin(chosen.rows, self.removed)
        # One that the score takes by itself, as after a larger budget, stands where its score puts it.
        extra = self.added[~np.isin(self.added, chosen.rows)]
        # Stable, over ascending rows: ties by row, as in every ranking.
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
    journal.append(folder / FILE, action=action, rows=np.unique(rows).tolist())


def read(folder: Path) -> Edits:
    """Fold the log."""
    history = journal.read(folder / FILE, _parse)
    added: IntArray = np.empty(0, dtype=np.int64)
    removed = added
    for edit in history:
        into, out_of = (added, removed) if edit.action == "add" else (removed, added)
        into, out_of = np.union1d(into, edit.rows), np.setdiff1d(out_of, edit.rows)
        added, removed = (into, out_of) if edit.action == "add" else (out_of, into)
    return Edits(added=added, removed=removed, history=history)


def is_spoilt(folder: Path) -> bool:
    """Whether an action was written down that cannot be read any more."""
    return journal.is_spoilt(folder / FILE, _parse)


class _Record(TypedDict):
    action: Action
    rows: list[int]
    time: float
    by: NotRequired[str]


_reader = TypeAdapter(_Record)


def _parse(line: object) -> Edit:
    record = _reader.validate_python(line)
    rows = np.array(record["rows"], dtype=np.int64)
    if len(rows) and rows.min() < 0:
        raise ValueError("counts rows from the end")
    return Edit(action=record["action"], rows=rows, time=record["time"], by=record.get("by", ""))
