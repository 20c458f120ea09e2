"""A plain list of names, `NAME<tab>TYPE` a line, as labelled sentences of one name each: a gazetteer."""

from pathlib import Path

from core.errors import PathError, ReadError
from core.text.sentence import Entity, Sentence, sentence_id
from core.text.words import clean

MOST_BYTES, MOST_LETTERS = 20_000_000, 500  # of a list; of a line


def read_names(path: Path) -> list[Sentence]:
    """Empty lines are passed over. A name's words stand apart by blanks, as a CoNLL file's do by lines.

    Errors: PathError; ReadError for the first line that is wrong, and where there is no name or far too many.
    """
    if not path.is_file():
        raise PathError(f"{path}: there is no such file; check the path.")
    if path.stat().st_size > MOST_BYTES:
        raise ReadError(path.name, None, f"is larger than {MOST_BYTES / 1e6:.0f} MB; give a shorter list of names.")
    lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines()
    names = [_sentence(path.name, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not names:
        raise ReadError(path.name, None, "holds no name; write a name, a tab and its type on each line.")
    return names


def _sentence(file: str, number: int, line: bytes) -> Sentence:
    try:
        parts = [clean(part) for part in line.decode().split("\t")]
    except UnicodeDecodeError as error:
        raise ReadError(file, number, "is not UTF-8; save the list as UTF-8.") from error
    if sum(map(len, parts)) > MOST_LETTERS:
        raise ReadError(file, number, f"is longer than {MOST_LETTERS} letters; write one name on each line.")
    if len(parts) != 2 or not all(parts) or " " in parts[1]:
        raise ReadError(file, number, "is not a name, one tab and a type of one word; write for example Oslo<tab>LOC.")
    name, kind = parts
    tokens = tuple(name.split())
    entity = Entity(start=0, end=len(tokens), type=kind)
    return Sentence(id=sentence_id(name), tokens=tokens, text=name, entities=(entity,))
