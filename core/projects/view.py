"""Projects: which there are, which one this is, made, renamed, archived, taken along and brought in."""

import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Concatenate, ParamSpec, TypeVar

from core import project_list as projects
from core.bias import reviews
from core.corpora import roles, uploads
from core.corpora.library import Library
from core.errors import ProjectError, RunBusy
from core.files import read_object
from core.importing import view as corpora
from core.paths import within
from core.project_list import LOCK, PROJECTS, Project
from core.projects import adopt, labels, pack, unpack
from core.projects.audit import noted
from core.projects.home import given_home, home, library, store, store_of
from core.projects.pack import Packed
from core.runs.lock import locked
from core.runs.run import holders
from core.selection import choice

FINISHED_SAMPLE = Path(__file__).resolve().parents[2] / "assets" / "samples" / "legal-finished.zip"
P = ParamSpec("P")
T = TypeVar("T")


def _exporting(function: Callable[Concatenate[Project, P], T]) -> Callable[Concatenate[Project, P], T]:
    """A decorator for what takes a project (the first argument) out of Winnow: one line in the audit log each time."""

    @wraps(function)
    def written_down(project: Project, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with noted("export", corpora=_corpora(project)):
            return function(project, *args, **kwargs)

    return written_down


def listed() -> Sequence[Project]:
    """All projects, oldest first, archived ones too."""
    return projects.listed(given_home())


def find(wanted: str) -> Project:
    """A project by name or slug. Errors: ProjectError, with the names there are."""
    return projects.find(given_home(), wanted)


def usual() -> Project:
    """The one that who names none is in."""
    return projects.usual(given_home())


def current() -> Project:
    """The one that this thread is about. Errors: ProjectError where it is gone."""
    folder = home()
    return next(project for project in listed() if project.folder == folder)


def settle() -> None:
    """Bring a move to its end that a killed process began; asked once, where the program starts.

    What an older version left beside projects, and is still at work in, waits for the next start.
    """
    root = given_home()
    if adopt.unfinished(root):
        try:
            adopt.adopt(root)
        except RunBusy:
            return
    if projects.whole(root):  # an older version left the finished sample alone here
        _keep_own()
    for draft in (root / PROJECTS).glob(".*-*"):  # half a project that was brought in, or half a removed one
        if uploads.is_stale(draft):
            shutil.rmtree(draft, ignore_errors=True)


def new(name: str) -> Project:
    """Make a project; what lies in the home itself becomes one first. Errors: ProjectError, RunBusy."""
    root = _root()
    if not projects.whole(root):
        adopt.adopt(root)
    with _changing(root):
        kept = projects.new_name(root, name)
        return projects.write(root / PROJECTS / projects.free_slug(root, kept), kept)


def rename(wanted: str, name: str) -> Project:
    """Call a project otherwise; its slug stays. Errors: ProjectError, RunBusy."""
    project = _on_its_own(find(wanted))
    with _changing(_root()):
        kept = projects.new_name(_root(), name, project)
        return projects.write(
            project.folder, kept, created=project.created, archived=project.archived, sample=project.sample
        )


def archive(wanted: str, archived: bool = True) -> Project:
    """Take a project off the switch, or put it back; nothing in it changes. Errors: ProjectError, RunBusy."""
    project = _on_its_own(find(wanted))
    return projects.write(
        project.folder, project.name, created=project.created, archived=archived, sample=project.sample
    )


def remove(wanted: str) -> Project:
    """Delete a project with all that is in it; what it was. Errors: ProjectError, RunBusy while a run is at work."""
    project = find(wanted)
    _refuse_active(project)
    project = _on_its_own(project)
    with _changing(_root()), store_of(project.folder).critical():
        # Again under the locks: one may have begun since, and the move into a folder of its own takes its time.
        _refuse_active(project)
        with noted("remove", corpora=_corpora(project), runs=[run.id for run in store_of(project.folder).list()]):
            # Gone by one rename, however long the deletion takes; `settle` ends one that was killed.
            grave = project.folder.with_name(f".removed-{project.slug}")
            shutil.rmtree(grave, ignore_errors=True)
            project.folder.rename(grave)
    shutil.rmtree(grave)
    return project


@_exporting
def export(project: Project, target: Path, *, weights: bool = False) -> Packed:
    """Write a project into one file. weights: models and vectors too. Errors: ProjectError."""
    return pack.pack(project, target, weights=weights)


@_exporting
def export_bytes(project: Project, *, weights: bool = False) -> bytes:
    """The same file as a browser downloads it."""
    with TemporaryDirectory(prefix=".export-", dir=project.folder) as folder:
        return pack.pack(project, Path(folder) / "project.zip", weights=weights).file.read_bytes()


def weights(project: Project) -> tuple[int, int]:
    """The number of models and of embedded corpora that a project has, and their bytes."""
    return pack.weights_of(project)


def size(project: Project) -> int:
    """Bytes of what an export without models takes along, before it is packed."""
    return pack.size_of(project)


def several() -> bool:
    """Whether there is more than one project."""
    return len(projects.whole(given_home())) > 1


def option() -> list[str]:
    """Option that a command needs to be about this project, where it is not the usual one."""
    return [] if not several() or (here := current()) == usual() else ["--project", here.name]


def typed(*words: str) -> str:
    """A command line about this project."""
    return shlex.join(["python", "-m", "core", *option(), *words])


def command(project: Project, *, weights: bool) -> str:
    """The command line that exports a project."""
    words = ["python", "-m", "core", "project", "export", project.name, "--output", f"{project.slug}.zip"]
    return shlex.join([*words, *(["--with-weights"] * weights)])


def name_in(file: IO[bytes], label: str) -> str:
    """A free name for the project in a file: its own, with a number if that is taken. Errors: ProjectError."""
    root = given_home()
    return projects.free_name(unpack.name_in(file, label), listed() if adopt.is_held(root) else projects.whole(root))


def bring_in(file: IO[bytes], label: str, name: str = "") -> Project:
    """Make a project of an exported file. label: the file's name. name: "" for its own.

    Errors: ProjectError, ResourceError, RunBusy; nothing is left of it then.
    """
    root = _root()
    if not projects.whole(root):
        adopt.adopt(root)
    project = unpack.unpack(file, label, root, name)
    with noted("import", corpora=_corpora(project)):
        return project


def open_finished_sample() -> Project:
    """Return the project of the sample that ships with its answer; import it unless one of its name is here.

    Errors: ProjectError, ResourceError, RunBusy.
    """
    with FINISHED_SAMPLE.open("rb") as file:
        name = unpack.name_in(file, FINISHED_SAMPLE.name)
        here = next((project for project in listed() if project.name == name), None)
        _keep_own()
        return here or _as_sample(bring_in(file, FINISHED_SAMPLE.name))


def open_sample(name: str) -> Project:
    """Return the project of a sample set, which holds its corpora in their roles; make it unless it is here.

    Errors: ProjectError, RunBusy.
    """
    title = f"{name[:1].upper()}{name[1:]} sample"
    if here := next((each for each in listed() if each.sample and each.name == title), None):
        return here
    _keep_own()
    made = _as_sample(new(projects.free_name(title, listed())))
    with within(made.slug):
        corpora.open_sample(name)
    return made


def _as_sample(project: Project) -> Project:
    return projects.write(project.folder, project.name, created=project.created, sample=True)


def _keep_own() -> None:
    """Give a home without a project of the user's own one, so that no sample becomes the usual project."""
    root = _root()
    if any(not project.sample for project in projects.whole(root)) or adopt.adopt(root):
        return
    with _changing(root):
        if all(project.sample for project in projects.whole(root)):
            projects.write(root / PROJECTS / projects.free_slug(root, projects.FIRST), projects.FIRST)


def at_work() -> Mapping[str, int]:
    """{name of a project: how many of its runs are at work}, of all but the current one."""
    here = home()
    others = [project for project in listed() if project.folder != here and (project.folder / "runs").is_dir()]
    counts = {project.name: len(_active(project)) for project in others}
    return {name: n for name, n in counts.items() if n}


def _active(project: Project) -> list[str]:
    """Runs that somebody works on; not their parts. Pages ask all the time, so no log is read."""
    return [run.id for run in store_of(project.folder).list() if not run.manifest.parent and run.lock.held()]


def _refuse_active(project: Project) -> None:
    if active := [run for run in store_of(project.folder).list() if run.state().active]:
        raise RunBusy(
            f"project {project.name!r}: a run is at work in it ({active[0].id}); wait for its end or cancel it first"
            f"{holders(active)}."
        )


def _corpora(project: Project) -> list[str]:
    return [corpus.fingerprint for corpus in Library(project.folder).list()]


def _on_its_own(project: Project) -> Project:
    """The same project; one that is the home itself has been moved into a folder of its own."""
    root = _root()
    if project.folder != root:
        return project
    return adopt.adopt(root) or projects.write(root / PROJECTS / project.slug, project.name)


def _root() -> Path:
    """The folder of all projects, for who changes something there."""
    root = given_home()
    if projects.is_project(root):
        raise ProjectError(
            f"WINNOW_HOME: names one project ({root}), so no other can be made or changed; set it to "
            f"{projects.shared_home(root)}."
        )
    return root


@contextmanager
def _changing(root: Path) -> Iterator[None]:
    with locked(root / LOCK, patience=30):
        yield


def unreadable() -> Sequence[Path]:
    """Return files of this home that cannot be read. Lists leave out what they describe."""
    roles_file = home() / roles.FILE
    spoilt = [roles_file] if roles_file.exists() and read_object(roles_file) is None else []
    about = [file for file in projects.unreadable(given_home()) if file.parent == home()]
    choices = [file for run in store().list("select") for file in choice.unreadable(run)]
    words = [run.path / labels.FILE for run in store().list() if labels.is_spoilt(run)]
    words += [run.path / reviews.FILE for run in store().list("difficulty") if reviews.is_spoilt(run.path)]
    return [*library().unreadable(), *store().unreadable(), *choices, *words, *spoilt, *about]
