"""Tables of a project that somebody brings in: looked through in a process of its own, which a forged one may kill."""

from pathlib import Path

from core.corpora.formats.arrow import look_through
from core.errors import ProjectError, ReadError
from core.isolated import Isolated

_SECONDS = 900
_process = Isolated(__name__, "a project's file that does so was damaged or forged", _SECONDS, spare=False)


def refuse_forged(folder: Path, label: str) -> None:
    """Errors: ProjectError, ResourceError for a table that cannot be read, or that kills whoever reads it."""
    if tables := [str(path) for path in sorted(folder.rglob("*.parquet"))]:
        try:
            _process.ask(label, paths=tables)
        except ReadError as error:
            raise ProjectError(f"{label}: a table in it cannot be read; export the project again.") from error


def answer(paths: list[str]) -> None:
    """The other process's part."""
    for path in paths:
        look_through(Path(path))
