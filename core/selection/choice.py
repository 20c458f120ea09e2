"""Saved selections: small files in a finished run's folder, with the budget, name, hand edits and picked region.

The class of a saved selection is `Choice`. The first selection of a `select` run is in the run's folder and has the
run's id. Each further selection has a folder inside the run's folder and the id `<run id>.<mark>`. Hand edits are in
an append-only log. `read_edits` applies its lines in order.

home/runs/<run_id>/budget.json    "20.2%": budget of the first selection, if a user changed it
home/runs/<run_id>/choice.json    {"name": "mine", "created": 1700000000.0, "taken": 1700000000.0}: see `Choice`
home/runs/<run_id>/edits.jsonl    hand edits, one per line: {"action": "add", "rows": [3, 7], "time": 1700000000.0}
home/runs/<run_id>/choices/<mark>/    budget.json, choice.json, edits.jsonl of a further selection; mark: 4 hex digits
home/runs/<run_id>/region.json    {"kind": "lasso", "value": [[[x, y], ...]]}: the region picked on a `map` run
home/runs/<run_id>/region-lasso-5e0c91ab.json    a lasso or box drawn earlier; its token is in the name
"""

import json
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NotRequired, TypeGuard

import numpy as np
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from core.config import Budget
from core.errors import ConfigError, RunError
from core.files import read_json, read_object, sync_all, write_atomic
from core.results import IntArray, Scores, Selection
from core.runs import journal
from core.runs.store import Run
from core.shown import shown

BUDGET, ABOUT, REGION, EDITS = "budget.json", "choice.json", "region.json", "edits.jsonl"
# name of the folder that contains all selections of a run except the first
KEPT = "choices"
# largest number of characters in a selection's name
LONGEST = 60
Action = Literal["add", "remove", "undo"]
_MARK = re.compile(r"[0-9a-f]{4}")


def read(folder: Path, name: str) -> object:
    """Return the JSON value of a file, or None if it is missing or cannot be read."""
    try:
        value: object = read_json(folder / name)
    except (OSError, ValueError):
        return None
    return value


def write(folder: Path, name: str, value: object) -> None:
    """Replace the JSON value of a file; None deletes the file."""
    if value is None:
        (folder / name).unlink(missing_ok=True)
    elif value != read(folder, name):
        write_atomic(folder / name, json.dumps(value, ensure_ascii=False).encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A saved selection: a budget and hand edits for the scores of a `select` run.

    run: id of the run. folder: folder with the selection's files. name: "" if unnamed. created: seconds since 1970.
    taken: time at which it last became the current selection, in seconds since 1970; 0 if it never did.
    """

    id: str
    run: str
    folder: Path
    name: str
    budget: str
    created: float
    taken: float

    @property
    def first(self) -> bool:
        """True for the selection that the run itself made."""
        return self.id == self.run

    @property
    def mark(self) -> str:
        """Suffix for file names: the last four characters of the run's id, such as "3f2a".

        For a selection other than the run's first, "-" and its own four hex digits follow: "3f2a-91bc".
        """
        return f"{self.run[-4:]}{self.id[len(self.run) :].replace('.', '-')}"


def run_of(choice_id: str) -> str:
    """Return the id of the run that a selection belongs to."""
    return choice_id.partition(".")[0]


def get(run: Run, choice_id: str) -> Choice:
    """Return a selection of `run`. Errors: RunError if it is missing or its files cannot be read."""
    mark = choice_id.partition(".")[2]
    if choice_id == run.id:
        return _first(run)
    folder = run.path / KEPT / mark
    if not _MARK.fullmatch(mark) or not folder.is_dir():
        raise RunError(f"selection {choice_id[:80]!r}: does not exist; `choice list` shows all selections.")
    if spoilt := list(_spoilt(folder)):
        raise RunError(
            f"selection {choice_id}: {spoilt[0]} cannot be read; restore it from a copy, or remove the selection."
        )
    return _of(run, folder, choice_id, read(folder, BUDGET))


def of(run: Run) -> Sequence[Choice]:
    """Return all readable selections of `run`: the one that the run made, then the others from oldest to newest."""
    ids = [f"{run.id}.{folder.name}" for folder in _folders(run) if not list(_spoilt(folder))]
    return [_first(run), *sorted((get(run, each) for each in ids), key=lambda choice: (choice.created, choice.id))]


def unreadable(run: Run) -> Iterator[Path]:
    """Yield the files of `run`'s selections that cannot be read. Winnow ignores these files."""
    yield from _spoilt(run.path, first=True)
    for folder in _folders(run):
        yield from _spoilt(folder)
    yield from (folder / EDITS for folder in (run.path, *_folders(run)) if edits_spoilt(folder))


def keep(run: Run, choice: Choice, name: str) -> Choice:
    """Save a copy of `choice` as a new selection of `run`, atomically."""
    shelf = run.path / KEPT
    shelf.mkdir(exist_ok=True)
    mark = next(mark for mark in iter(lambda: secrets.token_hex(2), "") if not list(shelf.glob(f"*{mark}")))
    # Write under a name that no selection has, so that a killed process leaves no incomplete selection.
    draft = shelf / f".new-{mark}"
    draft.mkdir()
    try:
        if (log := choice.folder / EDITS).exists():
            shutil.copyfile(log, draft / EDITS)
        write(draft, BUDGET, choice.budget)
        write(draft, ABOUT, {"name": name, "created": round(time.time(), 3), "taken": 0.0})
        sync_all(draft)
        draft.rename(shelf / mark)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return get(run, f"{run.id}.{mark}")


def describe(choice: Choice, *, name: str | None = None, taken: float | None = None) -> None:
    """Change a selection's name or the time at which it became the current one."""
    about = {"name": choice.name if name is None else name, "created": choice.created}
    write(choice.folder, ABOUT, {**about, "taken": choice.taken if taken is None else taken})


def remove(run: Run, choice_id: str) -> None:
    """Delete a selection other than the first, readable or not. Errors: RunError if it is missing."""
    mark = choice_id.partition(".")[2]
    folder = run.path / KEPT / mark
    if not _MARK.fullmatch(mark) or not folder.is_dir():
        raise RunError(f"selection {choice_id[:80]!r}: does not exist; `choice list` shows all selections.")
    doomed = folder.with_name(f".removed-{mark}")  # renamed first, so that no process sees a half-deleted selection
    folder.rename(doomed)
    shutil.rmtree(doomed)


def _first(run: Run) -> Choice:
    asked, kept = run.manifest.config.get("budget"), read(run.path, BUDGET)
    if not _is_budget(asked):
        raise RunError(f"run {run.id}: its manifest contains no budget; remove the run and start it again.")
    return _of(run, run.path, run.id, kept if _is_budget(kept) else asked)


def _of(run: Run, folder: Path, choice_id: str, budget: object) -> Choice:
    about = read_object(folder / ABOUT) or {}
    name, created, taken = about.get("name"), about.get("created"), about.get("taken")
    return Choice(
        id=choice_id,
        run=run.id,
        folder=folder,
        name=shown(name)[:LONGEST] if isinstance(name, str) else "",
        budget=str(Budget.parse(str(budget))),
        created=float(created) if _is_time(created) and folder != run.path else run.began.timestamp(),
        taken=float(taken) if _is_time(taken) else 0.0,
    )


def _folders(run: Run) -> Sequence[Path]:
    shelf = run.path / KEPT
    return sorted(folder for folder in shelf.iterdir() if _MARK.fullmatch(folder.name)) if shelf.is_dir() else []


def _spoilt(folder: Path, *, first: bool = False) -> Iterator[Path]:
    """Yield those of a selection's files `choice.json` and `budget.json` that are missing or unreadable.

    first: True for the first selection of a run. Its files may be missing.
    """
    about, budget = folder / ABOUT, folder / BUDGET
    if (about.exists() or not first) and not _says_what_it_is(read_object(about)):
        yield about
    if (budget.exists() or not first) and not _is_budget(read(folder, BUDGET)):
        yield budget


def _says_what_it_is(about: dict[str, object] | None) -> bool:
    numbers = [about.get(name) for name in ("created", "taken")] if about else []
    return about is not None and isinstance(about.get("name"), str) and all(_is_time(number) for number in numbers)


def _is_time(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e11


def _is_budget(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(Budget.parse(value))
    except ConfigError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edit:
    """A hand edit that was not undone. rows: rows of D_C. time: seconds since 1970. by: user name; "" in old logs."""

    action: Action
    rows: IntArray
    time: float
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edits:
    """Net effect of all hand edits. added, removed: disjoint rows, ascending.

    history: edits that were not undone, oldest first.
    """

    added: IntArray
    removed: IntArray
    history: tuple[Edit, ...] = ()

    def __bool__(self) -> bool:
        return bool(len(self.added) or len(self.removed))

    def __str__(self) -> str:
        return f"{len(self.added):,} added and {len(self.removed):,} removed by hand" if self else "no hand edits"

    def apply(self, chosen: Selection, scores: Scores) -> Selection:
        """Return `chosen` without the removed rows, followed by the added rows, best first.

        scores: the scores from which `chosen` was selected. Errors: RunError if an added row is not in D_C.
        """
        if len(self.added) and self.added[-1] >= (n := len(scores.values)):
            raise RunError(
                f"{EDITS}: adds row {self.added[-1]}, but the domain corpus has only {n:,} rows; restore it from a "
                "copy, or undo the last hand edits."
            )
        kept = ~np.isin(chosen.rows, self.removed)
        # A row that was added by hand and that the budget selects anyway keeps its rank.
        extra = self.added[~np.isin(self.added, chosen.rows)]
        # `extra` ascends and the sort is stable, so rows with equal scores stay in corpus order, as in every ranking.
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


def append_edit(folder: Path, action: Action, rows: IntArray) -> None:
    """Append a hand edit to the log in the folder of a selection. action "undo" undoes the last edit."""
    journal.append(folder / EDITS, action=action, rows=np.unique(rows).tolist())


def read_edits(folder: Path) -> Edits:
    """Read the log of hand edits in the folder of a selection, and return their net effect."""
    history = journal.read(folder / EDITS, _parse_edit)
    added: IntArray = np.empty(0, dtype=np.int64)
    removed = added
    for edit in history:
        into, out_of = (added, removed) if edit.action == "add" else (removed, added)
        into, out_of = np.union1d(into, edit.rows), np.setdiff1d(out_of, edit.rows)
        added, removed = (into, out_of) if edit.action == "add" else (out_of, into)
    return Edits(added=added, removed=removed, history=history)


def edits_spoilt(folder: Path) -> bool:
    """Return True if the log of hand edits in the folder of a selection has an unreadable line."""
    return journal.is_spoilt(folder / EDITS, _parse_edit)


class _EditRecord(TypedDict):
    """A line of the log of hand edits."""

    action: Action
    rows: list[int]
    time: float
    by: NotRequired[str]


_edit_reader = TypeAdapter(_EditRecord)


def _parse_edit(line: object) -> Edit:
    record = _edit_reader.validate_python(line)
    rows = np.array(record["rows"], dtype=np.int64)
    if len(rows) and rows.min() < 0:
        raise ValueError("row numbers must not be negative")
    return Edit(action=record["action"], rows=rows, time=record["time"], by=record.get("by", ""))
