"""The projects in Winnow's home folder. Each project is a folder with its own corpora, selections and runs.

WINNOW_HOME/projects/<slug>/    project.json, corpora/, runs/, roles.json, cover.json, labelling.json, ...
WINNOW_HOME/                    files that all projects share: encoders, locks of devices, key, logs

A new home folder has one empty project, "My first project". The project's folder is created with its first file.
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
FIRST, FIRST_SLUG = "My first project", "my-first-project"
LONGEST_NAME = 60  # maximum number of characters of a project's name; 60 fit on two lines of the project menu
ROLES_FILE = "roles.json"
COVER_FILE = "cover.json"
LABELLING_FILE = "labelling.json"
LOCK = Path("locks", "projects.lock")  # file in the home folder, locked while a project is created, renamed or imported

KEPT = ("corpora", "runs", ROLES_FILE, COVER_FILE, LABELLING_FILE)  # files and folders that an exported project has

_BLANK = "\u115f\u1160\u2800\u3164\uffa0"  # letters and a symbol without any ink: fillers of Hangul, empty Braille
_LONGEST_SLUG = 200  # maximum number of characters; a longer slug, as in a forged address, cannot be a file name
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project.

    slug: name of the project's folder, used in addresses; renaming the project does not change it. created: time, ISO
    8601, UTC; "" if unknown. sample: True if Winnow made the project from a sample set.
    """

    slug: str
    name: str
    created: str
    archived: bool
    folder: Path
    sample: bool = False

    def as_dict(self) -> dict[str, object]:
        """Return the fields that the command line prints, as JSON values."""
        return {
            "project": self.name,
            "slug": self.slug,
            "created": self.created,
            "archived": self.archived,
            "folder": str(self.folder),
        }


def is_project(folder: Path) -> bool:
    """Return True if `folder` is the folder of one project, False if it is a home folder with several projects.

    The parent's name alone is not enough, because a home folder may also be in a folder that is called "projects".
    """
    return folder.parent.name == PROJECTS and ((folder / ABOUT).is_file() or folder.name == FIRST_SLUG)


def shared_home(folder: Path) -> Path:
    """Return the home folder that contains a project's folder. Return a home folder unchanged."""
    return folder.parent.parent if is_project(folder) else folder


def made(root: Path) -> Sequence[Project]:
    """Return the projects of a home folder whose own folders exist, oldest first; [] for a new home folder."""
    if not (root / PROJECTS).is_dir():
        return []
    folders = (Path(entry.path) for entry in os.scandir(root / PROJECTS) if _SLUG.fullmatch(entry.name))
    projects = [read(folder) for folder in folders if _is_made(folder)]
    return sorted(projects, key=lambda project: (project.created, project.slug))


def listed(root: Path) -> Sequence[Project]:
    """Return all projects in a home folder, oldest first. If `root` is a project's folder, return only this project."""
    if is_project(root):
        return [read(root)]
    return made(root) or [read(root / PROJECTS / FIRST_SLUG)]


def unreadable(root: Path) -> Sequence[Path]:
    """Return the damaged `project.json` files. A project with a damaged file is listed under its folder's name."""
    files = (project.folder / ABOUT for project in listed(root))
    return [file for file in files if file.exists() and read_object(file) is None]


def find(root: Path, wanted: str) -> Project:
    """Return the project with the name `wanted`, else with this slug. Errors: ProjectError, which lists all names."""
    projects = listed(root)
    named = [project for project in projects if _same(project.name, wanted)]
    if fitting := named or [project for project in projects if project.slug == wanted]:
        return fitting[0]
    names = ", ".join(shown(project.name) for project in projects)
    raise ProjectError(f"There is no project {shown(wanted)[:LONGEST_NAME]!r}. Projects: {names}.")


def by_slug(root: Path, slug: str) -> Path | None:
    """Return the folder of the project with this slug, or None. Called often, so it usually reads no file."""
    if len(slug) < _LONGEST_SLUG and _SLUG.fullmatch(slug) and _is_made(folder := root / PROJECTS / slug):
        return folder
    return next((project.folder for project in listed(root) if project.slug == slug), None)


def usual(root: Path) -> Project:
    """Return the default project: the oldest project that is neither archived nor a sample.

    If there is none, return the oldest sample that is not archived, else an archived project.
    """
    projects = listed(root)
    return next(iter(sorted(projects, key=lambda project: (project.archived, project.sample))))


def new_name(root: Path, name: str, besides: Project | None = None) -> str:
    """Return `name` without control characters and double spaces.

    besides: the project to rename, which may keep its name; None for a new project. Errors: ProjectError if the name is
    empty, invisible, too long or the name of another project.
    """
    kept = " ".join(shown(unicodedata.normalize("NFC", name)).split())
    if not kept or len(kept) > LONGEST_NAME:
        raise ProjectError(f"project: a name has 1 to {LONGEST_NAME} characters, not {len(kept)}; give another name.")
    if not any(map(_is_visible, kept)):
        raise ProjectError("project: all characters of this name are invisible; give a name with letters or digits.")
    others = [project for project in made(root) if besides is None or project.slug != besides.slug]
    if any(_same(project.name, kept) for project in others):
        raise ProjectError(f"project {kept!r}: exists already; give another name, such as {free_name(kept, others)!r}.")
    return kept


def free_name(name: str, others: Sequence[Project]) -> str:
    """Return `name`; append a number if another project has this name."""
    taken = {project.name.casefold() for project in others}
    number, free = 1, name
    while free.casefold() in taken:
        number += 1
        free = f"{name[: LONGEST_NAME - 5].rstrip()} {number}"
    return free


def free_slug(root: Path, name: str) -> str:
    """Return an unused folder name for a project: ASCII letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii").casefold()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "project"
    number, free = 1, slug
    while (root / PROJECTS / free).exists():
        number += 1
        free = f"{slug}-{number}"
    return free


def write(
    folder: Path, name: str, *, created: str | None = None, archived: bool = False, sample: bool = False
) -> Project:
    """Write a project's `project.json`. created: time of creation; None for the current time."""
    about = {
        "name": name,
        "created": datetime.now(UTC).isoformat(timespec="microseconds") if created is None else created,
        "archived": archived,
        **({"sample": True} if sample else {}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / ABOUT, json.dumps(about, ensure_ascii=False, indent=1).encode())
    return read(folder)


# Shown with results that could be mistaken for results on the user's own texts
INVENTED = "Sample project: the texts and names that came with it are invented."


def read(folder: Path) -> Project:
    """Return the project in a folder. If its `project.json` is damaged or missing, its name is the folder's name."""
    file = folder / ABOUT
    about = _about(file, file.stat().st_mtime_ns) if file.exists() else {}
    name, created = about.get("name"), about.get("created")
    unnamed = FIRST if folder.name == FIRST_SLUG else folder.name
    return Project(
        slug=folder.name,
        name=shown(name)[:LONGEST_NAME] if isinstance(name, str) and name.strip() else unnamed,
        created=created if isinstance(created, str) else "",
        archived=about.get("archived") is True,
        folder=folder,
        sample=about.get("sample") is True,
    )


def _is_made(folder: Path) -> bool:
    """Return True if the folder has a `project.json`, or is the folder of the first project, which needs none."""
    return (folder / ABOUT).is_file() or (folder.name == FIRST_SLUG and folder.is_dir())


@lru_cache(maxsize=256)
def _about(file: Path, changed: int) -> Mapping[str, object]:
    """Return the content of a `project.json`. Cached, because pages need it for every link.

    changed: time of the file's last change. It is part of the cache key, so a changed file is read again.
    """
    return read_object(file) or {}


def _is_visible(char: str) -> bool:
    return unicodedata.category(char) not in ("Cf", "Mn", "Zs") and char not in _BLANK


def _same(name: str, other: str) -> bool:
    return name.casefold() == " ".join(unicodedata.normalize("NFC", other).split()).casefold()
