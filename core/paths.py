"""Find Winnow's folders, and restrict the files that a process may read.

The command line may read any file, pages only files in allowed folders. A path is resolved, checked, and then opened
folder by folder without following links. The file that is read is therefore the file that was checked, even if a
link replaces it meanwhile.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

from core.errors import PathError
from core.project_list import FIRST_SLUG, KEPT, PROJECTS, by_slug, find, is_project, shared_home, usual

_PROJECT = Path(__file__).resolve().parents[1]
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW

# Files and folders that all projects of a home folder share.
SHARED = ("app.log", "audit.jsonl", "encoders", "key", "locks", "open.html", "parts.json", "preferences.json")

_within: ContextVar[str | None] = ContextVar("project", default=None)
_asking: list[Callable[[], str | None]] = []  # functions that return the slug of this thread's project, or None


def given_home() -> Path:
    """Return `WINNOW_HOME`, else `~/.winnow`. This is the home folder of all projects, or the folder of one."""
    return Path(os.environ.get("WINNOW_HOME") or Path.home() / ".winnow").absolute()


def machine_home() -> Path:
    """Return the home folder: it has all projects and the files that they share (encoders, device locks, key, logs)."""
    return shared_home(given_home())


def home() -> Path:
    """Return the folder of this thread's project.

    If `WINNOW_HOME` is the folder of one project, return it. Else return the folder of the project that was set by
    `within`, else by the browser window, else by `WINNOW_PROJECT`. If none was set, use the default project.
    Errors: ProjectError if there is no such project.
    """
    root = given_home()
    if is_project(root):  # in a worker, or if WINNOW_HOME names one project
        return root
    slug = _within.get() or next((slug for ask in _asking if (slug := ask())), None)
    if slug:
        return by_slug(root, slug) or find(root, slug).folder
    if wanted := os.environ.get("WINNOW_PROJECT"):
        return find(root, wanted).folder
    return usual(root).folder


@contextmanager
def within(slug: str) -> Iterator[None]:
    """Make the project with this slug the current project in a block."""
    token = _within.set(slug)
    try:
        yield
    finally:
        _within.reset(token)


def ask_for_project(ask: Callable[[], str | None]) -> None:
    """Register a function that returns the slug of the current thread's project, or None."""
    if ask not in _asking:
        _asking.append(ask)


def private() -> None:
    """Make the files that this process creates, and all files of the home folder, readable only for this account.

    If the home folder also holds files that are not Winnow's, these and the folder itself keep their permissions.
    Only the app, the command line and workers may call this, because a library must not change a program's umask.
    Errors: PathError if this account cannot read the home folder, or if the home folder is a project of version 0.4.
    """
    os.umask(0o077)
    root = given_home()
    _refuse_foreign(root)
    if stray := [name for name in KEPT if not is_project(root) and (root / name).exists()]:
        raise PathError(
            f"{root}: contains {', '.join(stray)} of a project of version 0.4, which later versions expect in "
            f"{PROJECTS}/{FIRST_SLUG}; move all of them there."
        )
    if root.is_dir() and root.stat().st_mode & 0o077:
        own = [root] if is_project(root) else _winnows(root)
        for path in (path for folder in own for path in (folder, *folder.rglob("*"))):
            if not path.is_symlink():
                with suppress(PermissionError):  # skip files of other accounts; `doctor --privacy` lists them
                    path.chmod(path.stat().st_mode & 0o700)


def _winnows(root: Path) -> list[Path]:
    """Return the home folder if all that it holds is Winnow's, else the files and folders in it that are."""
    inside = list(root.iterdir())
    folders = list(root.glob(f"{PROJECTS}/*"))
    projects = [folder for folder in folders if _holds_project(folder)]
    if len(projects) == len(folders) and {path.name for path in inside} <= {*SHARED, PROJECTS, "lost+found"}:
        return [root]
    return [*projects, *(path for path in inside if path.name in SHARED)]


def _holds_project(folder: Path) -> bool:
    # Imports and exports work in hidden folders beside the projects.
    return folder.name.startswith(".") or is_project(folder) or any((folder / name).exists() for name in KEPT)


def _refuse_foreign(root: Path) -> None:
    """Raise PathError if the home folder or a folder in it cannot be read, because it would then look empty."""
    try:
        if not root.exists():
            return
        inside = [root, *root.glob(PROJECTS), *root.glob(f"{PROJECTS}/*"), *root.glob(f"{PROJECTS}/*/[cr]*/")]
        barred = [path for path in inside if path.is_dir() and not os.access(path, os.R_OK | os.X_OK)]
    except PermissionError:
        barred = [root]
    if barred:
        raise PathError(
            f"{barred[0]}: cannot be read from this account; ask its owner, or set WINNOW_HOME to a folder of your own."
        )


def confine() -> None:
    """From now on, let this process and its child processes read users' files only in the allowed folders.

    Used for pages and their workers. On the command line, the user may name any path.
    """
    os.environ["WINNOW_CONFINED"] = "1"


def confined() -> bool:
    """Return True if this process, or the one that started it, called `confine`."""
    return os.environ.get("WINNOW_CONFINED") == "1"


def allowed_roots() -> tuple[Path, ...]:
    """Return the user's home, the current folder, Winnow's own folder, and the folders in `WINNOW_DATA_DIRS`.

    Hidden folders are left out. `/` is left out too, because it may be the current folder of a service.
    """
    named = [Path(part) for part in os.environ.get("WINNOW_DATA_DIRS", "").split(os.pathsep) if part]
    folders = [folder.resolve() for folder in (Path.home(), Path.cwd(), _PROJECT, *named)]
    return tuple(dict.fromkeys(folder for folder in folders if folder.name and not _hidden(folder)))


def allowed_path(path: Path | str, roots: Sequence[Path] | None = None) -> Path:
    """Return a path with all links and `..` resolved. It must exist below one of `roots`, and not be hidden there.

    roots: folders; None for the allowed folders and Winnow's own folders of uploads, runs and samples.
    Errors: PathError for any other path. For a path outside of `roots`, the message does not show if it exists.
    """
    return _placed(path, roots)[1]


def user_path(path: Path | str) -> Path:
    """Return a path that a user named, checked by `allowed_path` if this process is confined. Errors: PathError."""
    return allowed_path(path) if confined() else Path(path)


def is_there(file: Path) -> bool:
    """Return True if a file exists. Used for files that the user did not name, such as a text's annotation file.

    In a confined process, return True for every link. The result then does not show if the link's target exists;
    `opened` refuses to follow the link.
    """
    return file.is_file() or (confined() and file.is_symlink())


def opened(path: Path) -> BinaryIO:
    """Open a user's file for reading. A confined process may open only plain files below an allowed folder.

    Errors: PathError for other files; OSError if the file cannot be opened or if a link has replaced it meanwhile.
    """
    if not confined():
        return path.open("rb")
    root, real = _placed(path, None)
    descriptor = _open_below(root, real)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise PathError(f"{path.name[:200]}: is not a plain file; choose a text file.")
    return os.fdopen(descriptor, "rb")


def _placed(path: Path | str, roots: Sequence[Path] | None) -> tuple[Path, Path]:
    """Return the allowed folder that contains `path`, and the resolved path. roots, errors: see `allowed_path`."""
    shown = repr(str(path)[:200])
    try:
        real = Path(path).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise PathError(f"{shown}: there is no such file or folder; check the path.") from error
    own = _own() if roots is None else ()
    folders = [root.resolve() for root in (allowed_roots() if roots is None else roots)]
    inside = [root for root in folders if real.is_relative_to(root) and not _hidden(real.relative_to(root))]
    inside += [root for root in own if real.is_relative_to(root)]
    if not inside:
        listed = ", ".join(dict.fromkeys(str(folder) for folder in folders)) or "none"
        raise PathError(
            f"{shown}: outside the allowed folders ({listed}) or hidden there; move it there or add its folder"
            " to WINNOW_DATA_DIRS."
        )
    if not os.path.exists(real):
        raise PathError(f"{shown}: there is no such file or folder; check the path.")
    return inside[0], real


def _own() -> list[Path]:
    """Return the folders that Winnow writes for pages and workers. They may be in a hidden folder."""
    return [
        folder.resolve()
        for folder in (home() / "uploads", home() / "unpacked", home() / "runs", _PROJECT / "assets" / "samples")
    ]


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _open_below(root: Path, real: Path) -> int:
    """Open `real` from `root` without following links, and return its descriptor. Errors: OSError."""
    *folders, name = real.relative_to(root).parts or (".",)
    descriptor = os.open(root, _FOLDER)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=descriptor)
    finally:
        os.close(descriptor)
