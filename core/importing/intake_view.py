"""Queries for importing several files: propose a role per file, and build the options of the run."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from core.corpora import looks
from core.corpora import preview as previews
from core.corpora.annotators import Agreement
from core.corpora.corpus import Corpus
from core.corpora.formats.folders import ALL_PARTS
from core.corpora.formats.source import ARCHIVE
from core.corpora.proposal import DIVIDE, SOURCE, UNUSED, Look, Proposal, Row, propose
from core.corpora.readers import ReadOptions
from core.errors import ConfigError, WinnowError
from core.importing import view as corpora
from core.importing.result import ROLES
from core.projects.home import kept_per_home

ROLE_TITLES = {
    **{role: term.title for role, term in ROLES.items()},
    DIVIDE: "Labels, to be divided",
    SOURCE: "Further source, kept apart",
    UNUSED: "Not used",
}
# Starts the process that reads files, so that the next call of `proposal` is fast. Does not wait for the process.
warm_proposal = looks.ready


def is_several(path: Path) -> bool:
    """Return True if the path is a folder or an archive, which may have files for several roles."""
    return path.is_dir() or path.suffix.lower() == ARCHIVE


def proposal(paths: Sequence[Path], like: Collection[str] = (), encoding: str = "utf-8") -> Proposal:
    """Propose a role for every file in `paths` (files, folders and archives). Corpora of the project keep their roles.

    A separate process reads the beginnings of the files. like: names of files that the user marked as similar to the
    task. encoding: that of files that are not in UTF-8. Errors: those of `looks.looks`.
    """
    seen = _looks(tuple(paths), encoding, tuple(map(_stamp, paths)))
    return propose(seen, like, {role: corpus.name for role, corpus in held().items()})


def proposed_role(corpus: Corpus) -> Row | None:
    """Propose a role for an imported corpus by its labels and its file's name; None if there is nothing to go by.

    Corpora of the project keep their roles.
    """
    names = {role: other.name for role, other in held().items()}
    if not corpus.labelled and not names:
        return None
    file = str(corpus.origin.get("file", corpus.name))
    look = Look(name=file, bytes=0, labelled=corpus.labelled, sentences=len(corpus), types=corpus.types)
    return propose([look], held=names).rows[0]


def marked(paths: Sequence[Path], typed: Sequence[str]) -> tuple[str, ...]:
    """Return the names, as in the proposal, of files that the user typed by this name or by path.

    Errors: ConfigError for a file that is not in `paths`; those of `proposal`.
    """
    names = [name for row in proposal(paths).rows for name in row.files] if typed else []
    return tuple(_marked(text, paths, names) for text in typed)


def _marked(text: str, paths: Sequence[Path], names: Sequence[str]) -> str:
    path = Path(text).absolute()
    inside = [path.relative_to(folder).as_posix() for folder in paths if path != folder and path.is_relative_to(folder)]
    for name in (text, *inside, *([path.name] if path in paths else [])):
        if name in names:
            return name
    raise ConfigError(f"like: {text} is not among these files; choose among {', '.join(names[:8])}.")


def held() -> dict[str, Corpus]:
    """Return {role: corpus} of the project, without roles whose corpus cannot be read."""
    here = dict[str, Corpus]()
    for role, mark in corpora.roles().items():
        with suppress(WinnowError):
            here[role] = corpora.find(mark)
    return here


def agreement(path: Path) -> Agreement | None:
    """Return how well the annotators of a folder or archive of labelled files agree; None for a single annotator."""
    return _agreement(path, _stamp(path))


@kept_per_home(4)
def _agreement(path: Path, stamp: int) -> Agreement | None:
    # An error is ignored here, because the import will report it.
    with suppress(WinnowError):
        return previews.preview(path, ReadOptions(part=ALL_PARTS)).agreement
    return None


@kept_per_home(4)
def _looks(paths: tuple[Path, ...], encoding: str, stamps: tuple[int, ...]) -> list[Look]:
    return looks.looks(paths, encoding)


def _stamp(path: Path) -> int:
    """Return a number that changes if the file, or a file in the folder, changes."""
    files = [path, *islice(path.rglob("*"), looks.MOST_FILES)] if path.is_dir() else [path]
    return hash(tuple((file.name, file.stat().st_mtime_ns) for file in files if file.exists()))


def options(
    proposed: Proposal, paths: Sequence[Path], roles: Mapping[str, str] | None = None, *, move: bool = False
) -> dict[str, object]:
    """Return the options of the run that imports a proposal.

    roles: {name of a row's first file: new role}, for the rows of the proposal that the user changed. move: True to
    delete the files after the import.
    """
    first, *others = map(str, paths)
    files = proposed.files(roles)
    long = {name for row in proposed.rows if row.long for name in row.files}
    apart = [name for name in files.get(SOURCE, ()) if name in long]
    return {
        "path": first,
        "others": tuple(others),
        **files,
        "documents": (*(role for role in ("task", "domain") if long.intersection(files.get(role, ()))), *apart),
        "move": move,
    }
