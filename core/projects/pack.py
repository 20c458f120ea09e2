"""Pack a project into one file: a zip with the project's files and a list of their sha256 sums.

winnow.json      the list: {"format": "winnow-project", "version": 1, "winnow": ..., "name": ..., "created": ...,
                 "weights": ..., "files": {name: [bytes, sha256, changed]}}; changed: nanoseconds since 1970
corpora/..., runs/..., roles.json, cover.json, labelling.json

The zip has no pickles, folders or links, and no files that only a worker needs (locks, checkpoints). Entries are sorted
by name, the list is last, and all entries have the same date, so that equal projects give equal bytes.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from core import __version__
from core.errors import ProjectError
from core.files import replacing
from core.project_list import KEPT, Project
from core.runs import where
from core.runs.run import BROUGHT, RESULT
from core.runs.store import RunStore

FORMAT, VERSION = "winnow-project", 1
LIST = "winnow.json"
# Names in a run's folder that are not exported. Checkpoints contain pickles. `where.json` names a cluster, which a
# resumed run would use again.
OF_THE_PROCESS = ("lock", "cancel", "rank-error", "launched", "claims", "checkpoints", where.FILE, BROUGHT)
PICKLES = (".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth", ".py", ".so")
_STORED = (".npy", ".parquet", ".safetensors")  # stored uncompressed, because they hardly shrink
_MODEL, _VECTORS = ("artifacts", "model"), ("artifacts", "vectors")
_CHUNK = 1 << 20
Named = tuple[str, Path]  # (name in the zip, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file in the list `winnow.json`. size: bytes. changed: time of the last change, in nanoseconds since 1970.

    Winnow sorts its lists of corpora by `changed`.
    """

    size: int
    sha256: str
    changed: int


def is_pickle(name: str) -> bool:
    """Return True if loading a file with this extension may run code."""
    return PurePosixPath(name).suffix.casefold() in PICKLES


def is_of_the_process(name: str) -> bool:
    """Return True for a file that only a run's worker needs, such as a checkpoint. name: path in the project."""
    room, *within = name.casefold().split("/")
    return room == "runs" and within[1:2] in [[each] for each in OF_THE_PROCESS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Summary of a packed project.

    size: bytes of the file. files: number of files in it. left_models, left_vectors: number of models left out, and of
    corpora whose sentence vectors were left out. left_bytes: size of these models and vectors. left_runs: ids of active
    runs, which were left out too.
    """

    file: Path
    size: int
    files: int
    left_models: int
    left_vectors: int
    left_bytes: int
    left_runs: tuple[str, ...]


def pack(project: Project, target: Path, *, weights: bool = False) -> Packed:
    """Write the corpora, runs and selections of a project to `target`.

    weights: True to include models and sentence vectors. Otherwise, a run that needs them computes them again.
    Errors: ProjectError if `target` is in the project's folder, or if the folder of `target` cannot be made.
    """
    target = target.absolute()
    if any(target.is_relative_to(project.folder / name) for name in KEPT):
        raise ProjectError(f"{target}: is in a folder of the exported project; choose another folder.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ProjectError(f"{target}: cannot be written ({error.strerror}); choose another path.") from error
    with _still(project.folder):
        active = _active(project.folder)
        files, left = _files(project.folder, active)
        if weights:
            files, left = sorted([*files, *left]), []
        entries: dict[str, Entry] = {}
        with replacing(target) as file, zipfile.ZipFile(file, "w") as archive:
            for name, path in files:
                entries[name] = _put(archive, name, path)
            archive.writestr(_info(LIST, 0), json.dumps(_list(project, entries, weights), indent=1))
    return Packed(
        file=target,
        size=target.stat().st_size,
        files=len(entries),
        left_models=len({run for run in _runs(left) if not _embeds(run)}),
        left_vectors=len({run for run in _runs(left) if _embeds(run)}),
        left_bytes=sum(path.stat().st_size for _, path in left),
        left_runs=active,
    )


def weights_of(project: Project) -> tuple[int, int]:
    """Return the number of runs with a model or sentence vectors, and the size of these models and vectors in bytes."""
    _, left = _files(project.folder, ())
    return len(_runs(left)), sum(path.stat().st_size for _, path in left)


def size_of(project: Project) -> int:
    """Return the size of a project in bytes, without models and vectors."""
    return sum(path.stat().st_size for _, path in _files(project.folder, ())[0])


def _runs(files: Iterable[Named]) -> set[str]:
    return {name.split("/")[1] for name, _ in files}


def _embeds(run: str) -> bool:
    """Return True if a run's id belongs to a run that computed sentence vectors."""
    return run.split("-")[2:3] in (["embed"], ["cascade"])


def _still(folder: Path) -> AbstractContextManager[None]:
    """Return a context manager that prevents the removal of a project's runs."""
    return RunStore(folder).critical() if (folder / "runs").is_dir() else nullcontext()


def _active(folder: Path) -> tuple[str, ...]:
    if not (folder / "runs").is_dir():
        return ()
    return tuple(run.id for run in RunStore(folder).list() if run.state().active)


def _files(folder: Path, active: tuple[str, ...]) -> tuple[list[Named], list[Named]]:
    """Return two lists: the files to pack, and the files of models and vectors, which can be computed again."""
    files, again = list[Named](), list[Named]()
    for name, path in _all(folder):
        _, _, within = name.partition("/")
        run, *rest = within.split("/") if name.startswith("runs/") else ("",)
        if is_pickle(name) or is_of_the_process(name) or (run and run in active):
            continue
        if rest[:1] == ["chunks"] and (folder / "runs" / run / RESULT).exists():
            continue  # a finished run no longer needs its chunks, because it cannot be resumed
        left = tuple(rest[:2]) in (_MODEL, _VECTORS) or run.split("-")[2:3] == ["embed"]
        (again if left else files).append((name, path))
    return files, again


def _all(folder: Path) -> Iterator[Named]:
    """Yield (name, path) of the project's files, sorted by name, without links and hidden files (drafts)."""
    paths = [path for name in KEPT for path in (folder / name, *(folder / name).rglob("*"))]
    named = ((path.relative_to(folder).as_posix(), path) for path in paths if path.is_file() and not path.is_symlink())
    yield from sorted((name, path) for name, path in named if not any(part[0] == "." for part in name.split("/")))


def _put(archive: zipfile.ZipFile, name: str, path: Path) -> Entry:
    digest, status = hashlib.sha256(), path.stat()
    size = 0
    with path.open("rb") as source, archive.open(_info(name, status.st_size), "w") as target:
        while part := source.read(_CHUNK):
            digest.update(part)
            target.write(part)
            size += len(part)
    return Entry(size=size, sha256=digest.hexdigest(), changed=status.st_mtime_ns)


def _info(name: str, size: int) -> zipfile.ZipInfo:
    # The list has the times of change in nanoseconds, because a zip stores them in steps of two seconds.
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_STORED if name.endswith(_STORED) else zipfile.ZIP_DEFLATED
    info.external_attr = 0o600 << 16
    info.create_system = 3  # Unix, so that every system writes the same bytes
    info.file_size = size
    return info


def _list(project: Project, entries: dict[str, Entry], weights: bool) -> dict[str, object]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "winnow": __version__,
        "name": project.name,
        "created": project.created,
        "weights": weights,
        "files": {name: [entry.size, entry.sha256, entry.changed] for name, entry in entries.items()},
    }
