"""What a person says of a run: a small file beside it, no part of its manifest or of its key.

home/runs/<run_id>/label.json    {"name": "with whitening", "tags": ["march"], "note": "...", "pinned": true, ...}
"""

from dataclasses import asdict, dataclass, fields

from core.files import read_object
from core.runs.run import Run
from core.selection import choice
from core.shown import shown

FILE = "label.json"
LONGEST, MOST_TAGS, LONGEST_NOTE = 60, 20, 4_000  # characters of a name or a tag; tags; characters of a note


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """name: in place of the run's title, "" for none. archived: left out of lists that are not asked for it."""

    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    pinned: bool = False
    archived: bool = False


def read(run: Run) -> Label:
    """A run's label; what is spoilt of it is as if it had never been said."""
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
    """Whether something was said that cannot be read any more."""
    return (run.path / FILE).exists() and read_object(run.path / FILE) is None


def write(run: Run, label: Label) -> None:
    """Keep a label in place of the last one; one that says nothing leaves no file."""
    says = {field.name: getattr(label, field.name) for field in fields(label)}
    choice.write(run.path, FILE, asdict(label) if any(says.values()) else None)


def label(*, name: str = "", tags: tuple[str, ...] = (), note: str = "", **flags: bool) -> Label:
    """A label in its form: names and tags of a line each, each tag once, nothing longer than it may be."""
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
