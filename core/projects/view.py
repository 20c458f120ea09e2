"""Projects for pages and commands: list, find, make, rename, archive, export, import, remove."""

import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Concatenate, ParamSpec, TypeVar

from core import project_list as projects
from core.audit_log import noted, ready
from core.corpora import roles, uploads
from core.corpora.library import Library
from core.errors import ProjectError, RunBusy
from core.files import read_object
from core.importing import view as corpora
from core.labelling import answers
from core.paths import given_home, home, within
from core.project_list import LOCK, PROJECTS, Project
from core.projects import labels, pack, small_tagger, unpack
from core.projects.home import library, store, store_of
from core.projects.pack import Packed
from core.runs.lock import locked
from core.runs.run import holders
from core.samples.sets import SETS, Name
from core.selection import choice

_SAMPLES = Path(__file__).resolve().parents[2] / "assets" / "samples"
# {sample set: exported project with finished runs and a tagger}; `.ci/finished` makes these files
FINISHED = {name: file for name in SETS if (file := _SAMPLES / f"{name}-finished.zip").is_file()}
P = ParamSpec("P")
T = TypeVar("T")


def _exporting(function: Callable[Concatenate[Project, P], T]) -> Callable[Concatenate[Project, P], T]:
    """Decorate a function that exports the project in its first argument, so that the audit log has a line per call."""

    @wraps(function)
    def written_down(project: Project, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with noted("export", corpora=_corpora(project)):
            return function(project, *args, **kwargs)

    return written_down


def listed() -> Sequence[Project]:
    """Return all projects, oldest first, including archived ones."""
    return projects.listed(given_home())


def find(wanted: str) -> Project:
    """Return a project by name or slug. Errors: ProjectError with the known names."""
    return projects.find(given_home(), wanted)


def _found(wanted: str | Project) -> Project:
    """Return a project. wanted: the project, or what a user typed: its name or slug. Errors: ProjectError.

    A caller that knows the project must not pass its slug, because another project may have this slug as its name.
    """
    return wanted if isinstance(wanted, Project) else find(wanted)


def usual() -> Project:
    """Return the default project, which is used if the user names no project."""
    return projects.usual(given_home())


def current() -> Project:
    """Return the project that this thread works in. Errors: ProjectError if it was removed."""
    folder = home()
    return next(project for project in listed() if project.folder == folder)


def settle() -> None:
    """Delete folders left by a killed import or removal. The app and the command line call this when they start."""
    for draft in (given_home() / PROJECTS).glob(".*-*"):
        if uploads.is_stale(draft):
            shutil.rmtree(draft, ignore_errors=True)


def new(name: str) -> Project:
    """Make a project. Errors: ProjectError, RunBusy."""
    root = _root()
    with _changing(root):
        kept = projects.new_name(root, name)
        return projects.write(root / PROJECTS / projects.free_slug(root, kept), kept)


def rename(wanted: str | Project, name: str) -> Project:
    """Rename a project. Its slug stays the same. wanted: see `_found`. Errors: ProjectError, RunBusy."""
    project = _found(wanted)
    with _changing(_root()):
        kept = projects.new_name(_root(), name, project)
        return projects.write(
            project.folder, kept, created=project.created, archived=project.archived, sample=project.sample
        )


def archive(wanted: str | Project, archived: bool = True) -> Project:
    """Hide a project in the app's project menu, or show it again. wanted: see `_found`. Errors: ProjectError."""
    project = _found(wanted)
    return projects.write(
        project.folder, project.name, created=project.created, archived=archived, sample=project.sample
    )


def remove(wanted: str | Project) -> Project:
    """Delete a project and return it. wanted: see `_found`. Errors: ProjectError; RunBusy if a run of it is active."""
    project = _found(wanted)
    _refuse_active(project)
    with _changing(_root()), store_of(project.folder).critical():
        # Check again under the locks, because a run may have started in the meantime.
        _refuse_active(project)
        with noted("remove", corpora=_corpora(project), runs=[run.id for run in store_of(project.folder).list()]):
            # Rename the folder first, so that the project disappears at once. If this process is killed, `settle`
            # deletes the rest.
            grave = project.folder.with_name(f".removed-{project.slug}")
            shutil.rmtree(grave, ignore_errors=True)
            project.folder.rename(grave)
    shutil.rmtree(grave)
    return project


@_exporting
def export(project: Project, target: Path, *, weights: bool = False) -> Packed:
    """Write a project to one file. weights: include models and vectors. Errors: ProjectError."""
    return pack.pack(project, target, weights=weights)


@_exporting
def export_bytes(project: Project, *, weights: bool = False) -> bytes:
    """Return the content of the file that `export` writes, for a download."""
    with TemporaryDirectory(prefix=".export-", dir=project.folder) as folder:
        return pack.pack(project, Path(folder) / "project.zip", weights=weights).file.read_bytes()


def several() -> bool:
    """Return True if there is more than one project."""
    return len(listed()) > 1


def option() -> list[str]:
    """Return the `--project` option that a command for this project needs; [] for the default project."""
    return [] if not several() or (here := current()) == usual() else ["--project", here.name]


def typed(*words: str) -> str:
    """Return a command line for this project. words: the command and its options."""
    return shlex.join(["python", "-m", "core", *option(), *words])


def command(project: Project, *, weights: bool) -> str:
    """Return the command line that exports a project."""
    words = ["python", "-m", "core", "project", "export", project.name, "--output", f"{project.slug}.zip"]
    return shlex.join([*words, *(["--with-weights"] * weights)])


def name_in(file: IO[bytes], label: str) -> str:
    """Return a free name for the project in a file: its name, with a number if that is taken. Errors: ProjectError."""
    return projects.free_name(unpack.name_in(file, label), projects.made(given_home()))


def bring_in(file: IO[bytes], label: str, name: str = "") -> Project:
    """Make a project from an exported file. label, name: see `unpack.unpack`.

    Errors: ProjectError, ResourceError, RunBusy. After an error, no project remains.
    """
    ready()  # before the project is made
    project = unpack.unpack(file, label, _root(), name)
    with noted("import", corpora=_corpora(project)):
        return project


def open_finished_sample(sample: Name = "legal") -> Project:
    """Return the project of a sample set with finished runs and a tagger. Import it unless it exists already.

    Errors: ProjectError, ResourceError, RunBusy; ModelError if the bundled encoder is not installed.
    """
    packed = FINISHED[sample]
    with packed.open("rb") as file:
        name = unpack.name_in(file, packed.name)
        # Check `sample` too, because an imported project may have the same name and a forged tagger.
        here = next((project for project in listed() if project.sample and project.name == name), None)
        _keep_own()
        project = here or _as_sample(bring_in(file, packed.name))
    small_tagger.restore(project.folder)
    return project


def open_sample(name: str) -> Project:
    """Return the project of the sample set `name`, with its corpora in their roles. Make it if it does not exist.

    Errors: ProjectError, RunBusy.
    """
    title = f"{name[:1].upper()}{name[1:]} sample"
    ready()  # before the project is made
    project = next((each for each in listed() if each.sample and each.name == title), None)
    if project is None:
        _keep_own()
        project = _as_sample(new(projects.free_name(title, listed())))
    with within(project.slug):
        if not corpora.roles():  # also if an error interrupted the import before
            corpora.open_sample(name)
    return project


def _as_sample(project: Project) -> Project:
    return projects.write(project.folder, project.name, created=project.created, sample=True)


def _keep_own() -> None:
    """Make an empty project if there are only samples, so that no sample becomes the default project."""
    root = _root()
    with _changing(root):
        if all(project.sample for project in projects.made(root)):
            projects.write(root / PROJECTS / projects.free_slug(root, projects.FIRST), projects.FIRST)


def at_work() -> Mapping[str, int]:
    """Return {project name: number of active runs} for each other project that has active runs."""
    here = home()
    others = [project for project in listed() if project.folder != here and (project.folder / "runs").is_dir()]
    counts = {project.name: len(_active(project)) for project in others}
    return {name: n for name, n in counts.items() if n}


def _active(project: Project) -> list[str]:
    """Return the ids of active runs, without the child runs of one of them.

    Only locks are read, because pages call this often.
    """
    held = {run.id: run for run in store_of(project.folder).list() if run.lock.held()}
    return [run_id for run_id, run in held.items() if run.manifest.parent not in held]


def _refuse_active(project: Project) -> None:
    if active := [run for run in store_of(project.folder).list() if run.state().active]:
        raise RunBusy(
            f"project {project.name!r}: a run is still active ({active[0].id}); wait until it ends, or cancel it first"
            f"{holders(active)}."
        )


def _corpora(project: Project) -> list[str]:
    return [corpus.fingerprint for corpus in Library(project.folder).list()]


def _root() -> Path:
    """Return the home folder of all projects. Errors: ProjectError if WINNOW_HOME is the folder of a single project."""
    root = given_home()
    if projects.is_project(root):
        raise ProjectError(
            f"WINNOW_HOME: is the folder of a single project ({root}), so no other project can be made or changed; set "
            f"it to {projects.shared_home(root)}."
        )
    return root


@contextmanager
def _changing(root: Path) -> Iterator[None]:
    with locked(root / LOCK, patience=30):
        yield


def unreadable() -> Sequence[Path]:
    """Return the files of this project that cannot be read. The runs or corpora that they describe are not listed."""
    roles_file = home() / roles.FILE
    spoilt = [roles_file] if roles_file.exists() and read_object(roles_file) is None else []
    about = [file for file in projects.unreadable(given_home()) if file.parent == home()]
    choices = [file for run in store().list("select") for file in choice.unreadable(run)]
    words = [run.path / labels.FILE for run in store().list() if labels.is_spoilt(run)]
    words += [run.path / answers.FILE for run in store().list(*answers.KINDS) if answers.is_spoilt(run.path)]
    return [*library().unreadable(), *store().unreadable(), *choices, *words, *spoilt, *about]
