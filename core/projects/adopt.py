"""What lies in a home itself, as versions without projects left it, becomes a project of its own by being moved there.

Everything is renamed into projects/.adopted, one folder or file after the other, and that folder gets its name last: a
process that is killed in between leaves all of it in either place, and the next one goes on.
"""

from contextlib import ExitStack
from pathlib import Path

from core.errors import RunBusy
from core.files import sync
from core.project_list import FIRST, HELD, LOCK, PROJECTS, Project, free_name, free_slug, is_project, read, whole, write
from core.runs.lock import locked
from core.runs.run import holders
from core.runs.store import RunStore

_DRAFT = ".adopted"


def unfinished(root: Path) -> bool:
    """Whether a move was broken off, or an older version worked beside projects: what it left belongs in one, too."""
    projects = root / PROJECTS
    if is_project(root) or not projects.is_dir():
        return False
    return (projects / _DRAFT).exists() or (bool(whole(root)) and is_held(root))


def is_held(root: Path) -> bool:
    """Whether something of a project lies in the home itself."""
    return any(_holds(root / name) for name in HELD)


def adopt(root: Path) -> Project | None:
    """Move what lies in the home itself into a project; None where there is nothing.

    Errors: RunBusy while a run is at work there, and where another process does the same; nothing is moved then.
    """
    with locked(root / LOCK, patience=30), ExitStack() as stack:
        if (root / "runs").is_dir():
            store = RunStore(root)
            stack.enter_context(store.critical())  # no run begins between the question and the move
            if active := [run for run in store.list() if run.state().active]:
                raise RunBusy(
                    f"project {FIRST!r}: is needed by a run at work ({active[0].id}), and its folder would have to be "
                    f"moved; wait for its end or cancel it first{holders(active)}."
                )
        draft = root / PROJECTS / _DRAFT
        if not draft.exists() and not is_held(root):
            return None
        draft.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in HELD:
            _move(root / name, draft / name)
        sync(root)
        name = free_name(FIRST, whole(root))
        write(draft, name)
        target = root / PROJECTS / free_slug(root, name)
        draft.rename(target)
        sync(root / PROJECTS)
    return read(target)


def _holds(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


def _move(source: Path, target: Path) -> None:
    """Rename; what came anew since a move was broken off joins what was moved then, the newer file in place of the
    older."""
    if not source.exists():
        return
    if not (source.is_dir() and target.is_dir()):
        source.replace(target)
        return
    for part in source.iterdir():
        if part.is_dir() and (target / part.name).is_dir():  # the same corpus: a run's name is no other's
            continue
        part.replace(target / part.name)
    if not any(source.iterdir()):
        source.rmdir()
