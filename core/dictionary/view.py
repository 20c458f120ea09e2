"""Store lists of names as labelled corpora of the project."""

from pathlib import Path

from core.corpora.formats.ledger import NAMES
from core.dictionary.lists import read_list
from core.projects.home import library


def add_list(path: Path, type: str = "") -> str:
    """Store a list of names as a labelled corpus, and return its fingerprint. type: type of names without one.

    Errors: those of `read_list`.
    """
    names, origin = read_list(path, type), {"file": path.name, "format": NAMES}
    return library().seal(names, name=path.name, origin=origin, labelled=True).fingerprint


def add_typed(typed: str) -> str:
    """Store a list of names, given as FILE or FILE=TYPE on the command line, and return its fingerprint."""
    path, sign, type = typed.rpartition("=")
    return add_list(Path(path), type.strip()) if sign and not Path(typed).exists() else add_list(Path(typed))
