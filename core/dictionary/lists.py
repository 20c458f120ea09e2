"""Read lists of names: text, CSV, and pickles of plain containers. A list becomes a labelled corpus of names."""

from collections.abc import Iterator
from pathlib import Path

from core import isolated
from core.corpora import readers
from core.corpora.formats.ledger import NAMES
from core.corpora.formats.name_lists import check_type, named
from core.corpora.readers import ReadOptions
from core.dictionary import pickled
from core.errors import PathError, ReadError
from core.text.sentence import Sentence

SECONDS = 120  # time limit for one pickle

_reader = isolated.Isolated(pickled.__name__, "export the names as text", SECONDS, spare=False)


def read_list(path: Path, type: str = "") -> list[Sentence]:
    """Return the distinct names of a list, each as a sentence with one entity.

    `.txt`, `.tsv` and `.csv` are read as in an import with the format `names` (`formats/name_lists.py`). A `.pkl`
    file contains names as the keys of its largest dictionary, or as a list. It may be compressed (`.gz`, `.bz2`). Names
    that cannot be used are left out. type: type of names without one. Errors: PathError; ResourceError; ReadError for a
    name without a type, with its line, and for a file that is too large, damaged or not made of plain containers.
    """
    if not path.is_file():
        raise PathError(f"{path}: there is no such file; check the path.")
    pickle = ".pkl" in (suffix.lower() for suffix in path.suffixes)
    found = list(_of_pickle(path, type) if pickle else readers.read(path, ReadOptions(format=NAMES, entity_type=type)))
    if not found:
        raise ReadError(path.name, None, "contains no name; write one name on each line.")
    return found


def _of_pickle(path: Path, type: str) -> Iterator[Sentence]:
    """Yield the names of a pickle. A separate process reads the file (`pickled.py`). Errors: those of `check_type`."""
    names = _reader.ask(path.name, path=str(path))
    assert isinstance(names, list)
    sentences = (named(str(name), type) for name in names)
    for sentence in {each.text: each for each in sentences if isinstance(each, Sentence)}.values():
        check_type(path.name, None, type)
        yield sentence
