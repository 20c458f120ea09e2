"""Choices: what a person settled on while looking at a finished run, in small files beside it.

A `select` run has a first choice, which lies in its folder and goes by its id. Another one that was kept lies in a
folder of its own and goes by `<run id>.<mark>`.

home/runs/<run_id>/budget.json    "20.2%": of the first choice, where it is not the budget that the run was started with
home/runs/<run_id>/choice.json    {"name": "mine", "created": 1700000000.0, "taken": 1700000000.0}: see `Choice`
home/runs/<run_id>/edits.jsonl    the hand edits, see `artifacts.edits`
home/runs/<run_id>/choices/<mark>/    budget.json, choice.json, edits.jsonl of another choice; mark: 4 hex digits
home/runs/<run_id>/region.json    {"kind": "lasso", "value": [[[x, y], ...]]}: of a `map` run, what is picked on the map
home/runs/<run_id>/region-lasso-5e0c91ab.json    the same, of a lasso or a box that was drawn some time, by its token
"""

import json
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from core.config import Budget
from core.errors import ConfigError, RunError
from core.files import read_json, read_object, sync_all, write_atomic
from core.runs.store import Run
from core.selection import edits
from core.shown import shown

BUDGET, ABOUT, REGION = "budget.json", "choice.json", "region.json"
KEPT = "choices"  # the folder of all but the first
LONGEST = 60  # characters of a name, as of a project's
_MARK = re.compile(r"[0-9a-f]{4}")


def read(folder: Path, name: str) -> object:
    """JSON value that was settled on in a folder; None where nothing was, or its file is spoilt."""
    try:
        value: object = read_json(folder / name)
    except (OSError, ValueError):
        return None
    return value


def write(folder: Path, name: str, value: object) -> None:
    """Keep it in place of the last one; None forgets it."""
    if value is None:
        (folder / name).unlink(missing_ok=True)
    elif value != read(folder, name):
        write_atomic(folder / name, json.dumps(value, ensure_ascii=False).encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A budget and hand edits over the scores of a `select` run.

    run: the run's id. folder: where its files lie. name: "" where nobody gave it one. created, taken: seconds since
    1970; taken: when it was taken up last, 0 for never.
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
        """Whether it is the one that its run came with."""
        return self.id == self.run

    @property
    def mark(self) -> str:
        """Mark that tells it from others in a file's name: the end of the run's id, and its own mark."""
        return f"{self.run[-4:]}{self.id[len(self.run) :].replace('.', '-')}"


def run_of(choice_id: str) -> str:
    """The id of the run that a choice is of."""
    return choice_id.partition(".")[0]


def get(run: Run, choice_id: str) -> Choice:
    """A choice of `run`. Errors: RunError where there is none, or its files cannot be read."""
    mark = choice_id.partition(".")[2]
    if choice_id == run.id:
        return _first(run)
    folder = run.path / KEPT / mark
    if not _MARK.fullmatch(mark) or not folder.is_dir():
        raise RunError(f"selection {choice_id[:80]!r}: is not here; `choice list` shows the ones that are.")
    if spoilt := list(_spoilt(folder)):
        raise RunError(
            f"selection {choice_id}: {spoilt[0]} cannot be read; bring it back from a copy, or remove the selection."
        )
    return _of(run, folder, choice_id, read(folder, BUDGET))


def of(run: Run) -> Sequence[Choice]:
    """All choices of `run` that can be read, the first before the others, these as they were kept."""
    ids = [f"{run.id}.{folder.name}" for folder in _folders(run) if not list(_spoilt(folder))]
    return [_first(run), *sorted((get(run, each) for each in ids), key=lambda choice: (choice.created, choice.id))]


def unreadable(run: Run) -> Iterator[Path]:
    """Files of choices of `run` that cannot be read: of the first one, and of hand edits, what they say is left out."""
    yield from _spoilt(run.path, first=True)
    for folder in _folders(run):
        yield from _spoilt(folder)
    yield from (folder / edits.FILE for folder in (run.path, *_folders(run)) if edits.is_spoilt(folder))


def keep(run: Run, choice: Choice, name: str) -> Choice:
    """Another choice of `run`, as `choice` is now: whole or not there."""
    shelf = run.path / KEPT
    shelf.mkdir(exist_ok=True)
    mark = next(mark for mark in iter(lambda: secrets.token_hex(2), "") if not list(shelf.glob(f"*{mark}")))
    # Under a name that is no choice's until it is whole: a killed process leaves no half one.
    draft = shelf / f".new-{mark}"
    draft.mkdir()
    try:
        if (log := choice.folder / edits.FILE).exists():
            shutil.copyfile(log, draft / edits.FILE)
        write(draft, BUDGET, choice.budget)
        write(draft, ABOUT, {"name": name, "created": round(time.time(), 3), "taken": 0.0})
        sync_all(draft)
        draft.rename(shelf / mark)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return get(run, f"{run.id}.{mark}")


def describe(choice: Choice, *, name: str | None = None, taken: float | None = None) -> None:
    """Change a choice's name, or when it was taken up."""
    about = {"name": choice.name if name is None else name, "created": choice.created}
    write(choice.folder, ABOUT, {**about, "taken": choice.taken if taken is None else taken})


def remove(run: Run, choice_id: str) -> None:
    """Delete a choice that is not the first, readable or not. Errors: RunError where there is none."""
    mark = choice_id.partition(".")[2]
    folder = run.path / KEPT / mark
    if not _MARK.fullmatch(mark) or not folder.is_dir():
        raise RunError(f"selection {choice_id[:80]!r}: is not here; `choice list` shows the ones that are.")
    doomed = folder.with_name(f".removed-{mark}")  # gone at once for every reader
    folder.rename(doomed)
    shutil.rmtree(doomed)


def _first(run: Run) -> Choice:
    asked, kept = run.manifest.config.get("budget"), read(run.path, BUDGET)
    if not _is_budget(asked):
        raise RunError(f"run {run.id}: its manifest names no budget; remove the run and start it again.")
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
    """The files of a choice's folder that cannot be read. first: of a run's first choice, which needs none."""
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
