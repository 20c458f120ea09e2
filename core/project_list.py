"""Projects of a home: each a folder that holds its texts, choices, runs and answers, and nothing of another's.

WINNOW_HOME/projects/<slug>/    project.json, corpora/, runs/, roles.json, cover.json, ...
WINNOW_HOME/                    what is the machine's: encoders, locks of devices, key, logs

A home without such folders, as older versions left it, is one project itself: "My first project".
"""

import json
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from core.errors import ProjectError
from core.files import read_object, write_atomic
from core.shown import shown

PROJECTS, ABOUT = "projects", "project.json"
FIRST = "My first project"
FINISHED_SAMPLE = "legal-sample-finished"  # slug of the sample that ships with its answer
LONGEST_NAME = 60  # characters: the switch above the menu shows it in one line or two
ROLES_FILE = "roles.json"
COVER_FILE = "cover.json"
LOCK = Path("locks", "projects.lock")  # in the home: held while a project is made, renamed or brought in
KEPT = ("corpora", "runs", ROLES_FILE, COVER_FILE)  # what a project is made of, and taken along with it
HELD = (*KEPT, "uploads", "exports")  # what lies in its folder
_LONGEST_SLUG = 200  # characters: no file system takes 256, and an address may have any
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """slug: the folder's name, which stays when the project is renamed; addresses name it. created: ISO 8601, UTC; ""
    if that is not known. sample: Winnow made it, for a sample set.
    """

    slug: str
    name: str
    created: str
    archived: bool
    folder: Path
    sample: bool = False

    def as_dict(self) -> dict[str, object]:
        """Fields that the command line prints."""
        return {
            "project": self.name,
            "slug": self.slug,
            "created": self.created,
            "archived": self.archived,
            "folder": str(self.folder),
        }


def whole(root: Path) -> Sequence[Project]:
    """The projects that have a folder of their own, oldest first."""
    if not (root / PROJECTS).is_dir():
        return []
    folders = (Path(entry.path) for entry in os.scandir(root / PROJECTS) if _SLUG.fullmatch(entry.name))
    projects = [read(folder) for folder in folders if is_project(folder)]
    return sorted(projects, key=lambda project: (project.created, project.slug))


def is_project(folder: Path) -> bool:
    """Whether this is the folder of one project among others."""
    return folder.parent.name == PROJECTS and (folder / ABOUT).is_file()


def shared_home(folder: Path) -> Path:
    """The home that a project's folder lies in; one that is a project itself is its own."""
    return folder.parent.parent if is_project(folder) else folder


def listed(root: Path) -> Sequence[Project]:
    """All projects of a home, oldest first; of one that is a project itself that one."""
    if is_project(root):
        return [read(root)]
    return whole(root) or [_bare(root)]


def unreadable(root: Path) -> Sequence[Path]:
    """Files that do not say any more what a project is called; it goes by its folder's name then."""
    files = (project.folder / ABOUT for project in listed(root))
    return [file for file in files if file.exists() and read_object(file) is None]


def find(root: Path, wanted: str) -> Project:
    """A project by its name or else its slug. Errors: ProjectError, with the names there are."""
    projects = listed(root)
    named = [project for project in projects if _same(project.name, wanted)]
    if fitting := named or [project for project in projects if project.slug == wanted]:
        return fitting[0]
    names = ", ".join(shown(project.name) for project in projects)
    raise ProjectError(f"There is no project {shown(wanted)[:LONGEST_NAME]!r}. Projects: {names}.")


def by_slug(root: Path, slug: str) -> Path | None:
    """The folder of the project with this slug; None where there is none. Quick, for pages ask all the time."""
    if len(slug) < _LONGEST_SLUG and _SLUG.fullmatch(slug) and is_project(folder := root / PROJECTS / slug):
        return folder
    return next((project.folder for project in listed(root) if project.slug == slug), None)


def usual(root: Path) -> Project:
    """Return the project to use if none is named: the oldest unarchived one, a sample only if there is no other."""
    projects = listed(root)
    return next(iter(sorted(projects, key=lambda project: (project.archived, project.sample))))


def new_name(root: Path, name: str, besides: Project | None = None) -> str:
    """`name` as it will be kept. besides: the project that is to be called so.

    Errors: ProjectError for none, one too long or taken.
    """
    kept = " ".join(shown(unicodedata.normalize("NFC", name)).split())
    if not kept or len(kept) > LONGEST_NAME:
        raise ProjectError(f"project: a name has 1 to {LONGEST_NAME} characters, this one {len(kept)}; give another.")
    others = [project for project in whole(root) if besides is None or project.slug != besides.slug]
    if any(_same(project.name, kept) for project in others):
        raise ProjectError(f"project {kept!r}: is there already; call this one {free_name(kept, others)!r}, say.")
    return kept


def free_name(name: str, others: Sequence[Project]) -> str:
    """`name`, with a number behind it where one of the others is called so."""
    taken = {project.name.casefold() for project in others}
    number, free = 1, name
    while free.casefold() in taken:
        number += 1
        free = f"{name[: LONGEST_NAME - 5].rstrip()} {number}"
    return free


def free_slug(root: Path, name: str) -> str:
    """A folder's name for a project, no other's: ASCII letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii").casefold()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "project"
    number, free = 1, slug
    while (root / PROJECTS / free).exists():
        number += 1
        free = f"{slug}-{number}"
    return free


def write(folder: Path, name: str, *, created: str = "", archived: bool = False, sample: bool = False) -> Project:
    """Write into a folder which project it holds. created: "" for now."""
    about = {
        "name": name,
        "created": created or datetime.now(UTC).isoformat(timespec="microseconds"),
        "archived": archived,
        **({"sample": True} if sample else {}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / ABOUT, json.dumps(about, ensure_ascii=False, indent=1).encode())
    return read(folder)


def _bare(root: Path) -> Project:
    return Project(slug="my-first-project", name=FIRST, created="", archived=False, folder=root)


def read(folder: Path) -> Project:
    """The project of a folder. A spoilt file makes none vanish: it goes by its folder's name."""
    about = _about(folder / ABOUT, (folder / ABOUT).stat().st_mtime_ns)
    name, created = about.get("name"), about.get("created")
    return Project(
        slug=folder.name,
        name=shown(name)[:LONGEST_NAME] if isinstance(name, str) and name.strip() else folder.name,
        created=created if isinstance(created, str) else "",
        archived=about.get("archived") is True,
        folder=folder,
        # Older versions did not mark the finished sample.
        sample=about.get("sample") is True or folder.name == FINISHED_SAMPLE,
    )


@lru_cache(maxsize=256)
def _about(file: Path, changed: int) -> Mapping[str, object]:
    """Content of the file. changed: when it was written; kept, for a page asks for every link."""
    return read_object(file) or {}


def _same(name: str, other: str) -> bool:
    return name.casefold() == " ".join(unicodedata.normalize("NFC", other).split()).casefold()
