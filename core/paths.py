"""Where everything lives, and which files a process may read: any on the command line, those below the allowed folders
where a page is served or asked.

A file is looked at after its last link and then opened folder by folder, no link followed: what was allowed is what is
read, whatever is put in its place meanwhile.
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


_within: ContextVar[str | None] = ContextVar("project", default=None)
_asking: list[Callable[[], str | None]] = []  # who knows the project of the window that this thread draws


def given_home() -> Path:
    """`WINNOW_HOME`, else `~/.winnow`: the folder of all projects, or of one."""
    return Path(os.environ.get("WINNOW_HOME") or Path.home() / ".winnow").absolute()


def machine_home() -> Path:
    """Folder of what all projects share: encoders, locks of devices, the key, logs."""
    return shared_home(given_home())


def home() -> Path:
    """The folder of the project that this thread is about: the one of the block (`within`), else of the window, else in
    `WINNOW_PROJECT`, else the usual one.

    Errors: ProjectError where there is no such project.
    """
    root = given_home()
    if is_project(root):  # a worker's, or somebody's who means just this one
        return root
    slug = _within.get() or next((slug for ask in _asking if (slug := ask())), None)
    if slug:
        return by_slug(root, slug) or find(root, slug).folder
    if wanted := os.environ.get("WINNOW_PROJECT"):
        return find(root, wanted).folder
    return usual(root).folder


@contextmanager
def within(slug: str) -> Iterator[None]:
    """A block that is about this project."""
    token = _within.set(slug)
    try:
        yield
    finally:
        _within.reset(token)


def ask_for_project(ask: Callable[[], str | None]) -> None:
    """Have `ask` say from now on which project, by its slug, a thread is about; None: none of its own."""
    if ask not in _asking:
        _asking.append(ask)


def private() -> None:
    """Let only this account read the files that this process makes, and those of a home that was wider before.

    For the app, the command line and workers; a library must not change its user's mask.
    Errors: PathError for a home that this account cannot read, or that holds a project of 0.4 outside `projects/`.
    """
    os.umask(0o077)
    root = given_home()
    _refuse_foreign(root)
    if stray := [name for name in KEPT if not is_project(root) and (root / name).exists()]:
        raise PathError(
            f"{root}: holds {', '.join(stray)} of a project of version 0.4, which later versions look for in "
            f"{PROJECTS}/{FIRST_SLUG}; move all of them there."
        )
    if root.is_dir() and root.stat().st_mode & 0o077:
        for path in (root, *root.rglob("*")):
            if not path.is_symlink():
                with suppress(PermissionError):  # another account's; `doctor --privacy` names it
                    path.chmod(path.stat().st_mode & 0o700)


def _refuse_foreign(root: Path) -> None:
    """Errors: PathError if the home, or a folder in it, cannot be read: it would look empty."""
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
    """Read users' files below the allowed folders alone, from now on in this process and in every one that it starts.

    For the pages, and so for their workers. The command line is its owner's shell: there he may name any path.
    """
    os.environ["WINNOW_CONFINED"] = "1"


def confined() -> bool:
    """Whether a page asks, here or in the process that started this one."""
    return os.environ.get("WINNOW_CONFINED") == "1"


def allowed_roots() -> tuple[Path, ...]:
    """The user's home, the folder the app runs in, the project's own, and those in `WINNOW_DATA_DIRS`, each once.

    Neither `/`, where a service may be started, nor a folder that is hidden or lies in a hidden one.
    """
    named = [Path(part) for part in os.environ.get("WINNOW_DATA_DIRS", "").split(os.pathsep) if part]
    folders = [folder.resolve() for folder in (Path.home(), Path.cwd(), _PROJECT, *named)]
    return tuple(dict.fromkeys(folder for folder in folders if folder.name and not _hidden(folder)))


def allowed_path(path: Path | str, roots: Sequence[Path] | None = None) -> Path:
    """`path` with every link and `..` resolved, if it lies under one of `roots`, in nothing hidden there, and exists.

    roots: None for the allowed folders and what Winnow keeps itself: uploads, runs, samples.
    Errors: PathError otherwise; outside of `roots` the same one whether it exists or not.
    """
    return _placed(path, roots)[1]


def user_path(path: Path | str) -> Path:
    """A path that a user named: as it is, or by `allowed_path` where this process is confined. Errors: PathError."""
    return allowed_path(path) if confined() else Path(path)


def is_there(file: Path) -> bool:
    """Whether a file is there that nobody named but that is looked for, as a text's annotation is.

    Where this process is confined a link counts wherever it leads: `opened` refuses it, and says the same of what
    exists and what does not.
    """
    return file.is_file() or (confined() and file.is_symlink())


def opened(path: Path) -> BinaryIO:
    """A user's file for reading; where this process is confined, a plain file under an allowed folder.

    Errors: PathError for any other; OSError as of `open`, also where a link took its place in this moment.
    """
    if not confined():
        return path.open("rb")
    root, real = _placed(path, None)
    descriptor = _open_below(root, real)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise PathError(f"{path.name[:200]}: is not a plain file; choose one that holds text.")
    return os.fdopen(descriptor, "rb")


def _placed(path: Path | str, roots: Sequence[Path] | None) -> tuple[Path, Path]:
    """The folder that allows `path`, and where `path` is after its last link."""
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
            f"{shown}: outside the allowed folders ({listed}; nothing hidden in them); move it there or name its folder"
            " in WINNOW_DATA_DIRS."
        )
    if not os.path.exists(real):
        raise PathError(f"{shown}: there is no such file or folder; check the path.")
    return inside[0], real


def _own() -> list[Path]:
    """Folders that Winnow itself filled for a page or a worker to read, in a hidden folder or not."""
    return [
        folder.resolve()
        for folder in (home() / "uploads", home() / "unpacked", home() / "runs", _PROJECT / "assets" / "samples")
    ]


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _open_below(root: Path, real: Path) -> int:
    """A descriptor of `real`, reached from `root` without a link. Errors: OSError."""
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
