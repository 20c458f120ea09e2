"""Store lists of names as labelled corpora of the project."""

import os
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


def typed_list(typed: str) -> tuple[Path, str]:
    """Return the file and the type of FILE or FILE=TYPE; the type may be "". A file's name may have an equals sign."""
    path, sign, type = typed.rpartition("=")
    # `os.path.exists` is False for a text that is too long for a path; `Path.exists` raises an error.
    return (Path(path), type.strip()) if sign and not os.path.exists(typed) else (Path(typed), "")


def add_typed(typed: str) -> str:
    """Store a list of names, given as FILE or FILE=TYPE on the command line, and return its fingerprint."""
    return add_list(*typed_list(typed))
