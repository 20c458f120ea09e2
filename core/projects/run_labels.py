"""Runs as a person keeps them: names, tags and notes, what is pinned and archived, how large each is."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.files import bytes_in
from core.projects import labels
from core.projects.home import home, kept_per_home, store
from core.projects.labels import Label as Label
from core.runs import journal
from core.runs.events import State
from core.runs.store import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run in a table of many. part: whether another run began it. size: bytes of its folder."""

    run: Run
    label: Label
    state: State
    seconds: float
    size: int
    part: bool


def label_of(run_id: str) -> Label:
    """A run's label. Errors: RunError."""
    return labels.read(store().get(run_id))


def change(
    run_id: str,
    *,
    name: str | None = None,
    tags: Sequence[str] | None = None,
    note: str | None = None,
    pinned: bool | None = None,
    archived: bool | None = None,
) -> Label:
    """Change what is given of a run's label, and return all of it; too long a name, tag or note is cut.

    Errors: RunError, RunBusy.
    """
    run = store().get(run_id)
    with journal.changing(home()):
        before = labels.read(run)
        label = labels.label(
            name=before.name if name is None else name,
            tags=before.tags if tags is None else tuple(tags),
            note=before.note if note is None else note,
            pinned=before.pinned if pinned is None else pinned,
            archived=before.archived if archived is None else archived,
        )
        labels.write(run, label)
    return label


def rows(*, parts: bool = False, archived: bool = False) -> list[RunRow]:
    """Runs, pinned ones first, then the newest.

    parts: also trainings that other runs began. archived: also those.
    """
    listed = [row for run in store().list() if (row := _row(run)) and (archived or not row.label.archived)]
    kept = [row for row in listed if not row.part or (parts and row.run.manifest.kind in ("pretrain", "finetune"))]
    return sorted(kept, key=lambda row: not row.label.pinned)


def _row(run: Run) -> RunRow:
    state = run.state()
    return RunRow(
        run=run,
        label=labels.read(run),
        state=state.state,
        seconds=state.seconds,
        size=size(run),
        part=run.manifest.parent is not None,
    )


def size(run: Run) -> int:
    """Bytes of a run's folder."""
    events = run.events_file
    return _size(run.path, events.stat().st_mtime_ns if events.exists() else 0)


@kept_per_home(4_000)
def _size(folder: Path, changed: int) -> int:
    """changed: when its log grew last, since when it is as large as it was."""
    return bytes_in(folder)
