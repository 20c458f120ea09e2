"""Labels that users give to runs (name, tags, note, flags), and the rows of the table of runs.

A label is a separate file in the run's folder, so that it changes neither the manifest nor the run key:

home/runs/<run_id>/label.json    {"name": "with whitening", "tags": ["march"], "note": "...", "pinned": true, ...}
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from core.files import bytes_in, read_object
from core.paths import home
from core.projects.home import kept_per_home, store
from core.runs import journal
from core.runs.events import State
from core.runs.run import Run
from core.selection import choice
from core.shown import shown

FILE = "label.json"
# Maximum length of a name or tag (in characters), number of tags per run, and length of a note (in characters).
LONGEST, MOST_TAGS, LONGEST_NOTE = 60, 20, 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Label that a user gave to a run. name: replaces the run's title; "" for none. pinned: True to show the run first.

    archived: True to leave the run out of lists.
    """

    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    pinned: bool = False
    archived: bool = False


def read(run: Run) -> Label:
    """Return a run's label. Fields that cannot be read keep their defaults."""
    kept = choice.read(run.path, FILE)
    if not isinstance(kept, dict):
        return Label()
    tags = kept.get("tags")
    return label(
        name=_text(kept.get("name")),
        tags=tuple(map(_text, tags)) if isinstance(tags, list) else (),
        note=_text(kept.get("note")),
        pinned=kept.get("pinned") is True,
        archived=kept.get("archived") is True,
    )


def is_spoilt(run: Run) -> bool:
    """Return True if the run has a label file that cannot be read."""
    return (run.path / FILE).exists() and read_object(run.path / FILE) is None


def write(run: Run, label: Label) -> None:
    """Replace a run's label. An empty label deletes the file."""
    values = {field.name: getattr(label, field.name) for field in fields(label)}
    choice.write(run.path, FILE, asdict(label) if any(values.values()) else None)


def label(*, name: str = "", tags: tuple[str, ...] = (), note: str = "", **flags: bool) -> Label:
    """Return a label with valid texts: line breaks and repeated tags are removed, and long texts are cut."""
    lines = dict.fromkeys(_line(tag) for tag in tags)
    return Label(
        name=_line(name),
        tags=tuple(line for line in lines if line)[:MOST_TAGS],
        note="\n".join(map(shown, note.strip().splitlines()))[:LONGEST_NOTE],
        **flags,
    )


def _line(text: str) -> str:
    return " ".join(shown(" ".join(text.split())).split())[:LONGEST].strip()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """Row of the table of runs. seconds: time of all attempts. size: bytes of the folder. part: True for child runs."""

    run: Run
    label: Label
    state: State
    seconds: float
    size: int
    part: bool


def change(
    run_id: str,
    *,
    name: str | None = None,
    tags: Sequence[str] | None = None,
    note: str | None = None,
    pinned: bool | None = None,
    archived: bool | None = None,
) -> Label:
    """Change the given fields of a run's label and return the new label. Text that is too long is cut.

    Errors: RunError, RunBusy.
    """
    run = store().get(run_id)
    with journal.changing(home()):
        before = read(run)
        changed = label(
            name=before.name if name is None else name,
            tags=before.tags if tags is None else tuple(tags),
            note=before.note if note is None else note,
            pinned=before.pinned if pinned is None else pinned,
            archived=before.archived if archived is None else archived,
        )
        write(run, changed)
    return changed


def rows(*, parts: bool = False, archived: bool = False) -> list[RunRow]:
    """Return the rows of the table of runs: pinned runs first, then the newest.

    parts: include `pretrain` and `finetune` runs that other runs started. archived: include archived runs.
    """
    listed = [row for run in store().list() if (row := _row(run)) and (archived or not row.label.archived)]
    kept = [row for row in listed if not row.part or (parts and row.run.manifest.kind in ("pretrain", "finetune"))]
    return sorted(kept, key=lambda row: not row.label.pinned)


def _row(run: Run) -> RunRow:
    state = run.state()
    return RunRow(
        run=run,
        label=read(run),
        state=state.state,
        seconds=state.seconds,
        size=size(run),
        part=run.manifest.parent is not None,
    )


def size(run: Run) -> int:
    """Return the number of bytes in a run's folder."""
    events = run.events_file
    return _size(run.path, events.stat().st_mtime_ns if events.exists() else 0)


@kept_per_home(4_000)
def _size(folder: Path, changed: int) -> int:
    """Return the bytes of a run's folder. changed: time of the run's last event; a new event invalidates the cache."""
    return bytes_in(folder)
