"""Token classification as Hugging Face data sets hold it: tokens, and tags by name or by number."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from core.corpora.annotators import is_annotator
from core.corpora.formats.arrow import arrow_schema
from core.corpora.formats.ledger import Ledger, Record
from core.corpora.formats.sentences import Tagged, from_tags
from core.corpora.formats.source import open_bytes
from core.errors import PathError, ReadError
from core.paths import is_there, user_path
from core.text.schemes import Detector, Scheme
from core.text.sentence import Sentence

_BEGINS = ("B-", "S-", "U-")
TOKENS = ("tokens", "words")
Names = Callable[[], list[str] | None]  # asked only where tags are numbers

TAGS = ("ner_tags", "tags", "ner", "labels", "tag")
NUMBERED = ("label.json", "label2id.json")  # {name: number}, beside the files of tner and of many trainings
_LONGEST = 1_000_000  # bytes of a data set's description


def tag_columns(columns: Sequence[str]) -> tuple[str, str] | None:
    """The names of the token and the tag column, None if the data are not of this sort."""
    tokens = next((name for name in TOKENS if name in columns), None)
    tags = next((name for name in TAGS if name in columns), None)
    return (tokens, tags) if tokens and tags else None


def tag_names(path: Path, tags: str) -> list[str] | None:
    """Names of the numbers in column `tags`: from the file's own metadata, dataset_info.json or the card's header."""
    if path.suffix in (".parquet", ".arrow"):
        stored = (arrow_schema(path).metadata or {}).get(b"huggingface")
        if stored and (names := _names_in(_stored(stored, path), tags, path)):
            return names
    for folder in _around(path):
        for name in ("dataset_info.json", "dataset_infos.json", "README.md"):
            if is_there(file := folder / name) and (names := _names_in(_metadata(file), tags, file)):
                return names
        for name in (
            NUMBERED if any(part in tags.lower() for part in ("ner", "tag", "label")) else ()
        ):  # it names no column
            if is_there(file := folder / name) and (names := _by_number(_metadata(file))):
                return names
    return None


def _by_number(numbers: object) -> list[str] | None:
    """Names in the order of their numbers, 0 to n - 1; None for anything else."""
    if not isinstance(numbers, Mapping) or sorted(numbers.values(), key=str) != sorted(range(len(numbers)), key=str):
        return None
    return sorted(numbers, key=numbers.__getitem__)


def _around(path: Path) -> Iterator[Path]:
    """The folder of a data set's file and the one above it, where they may be read."""
    for folder in list(path.parents)[:2]:
        try:
            allowed = user_path(folder)
        except PathError:
            continue
        yield allowed


def _stored(metadata: bytes, path: Path) -> object:
    try:
        return json.loads(metadata)
    except (ValueError, RecursionError) as error:
        raise ReadError(
            path.name, None, "the description of its columns cannot be read; write the file again."
        ) from error


def _metadata(file: Path) -> object:
    with open_bytes(file) as stream:
        text = stream.read(_LONGEST).decode("utf-8", "replace")
    try:
        if file.suffix == ".json":
            return json.loads(text)
        import yaml

        return yaml.safe_load(text.split("\n---", 1)[0]) if text.startswith("---") else None
    except (ValueError, RecursionError) as error:
        raise ReadError(
            file.name, None, "not readable as the description of a data set; repair or remove it."
        ) from error
    except Exception as error:
        raise ReadError(file.name, 1, "its header is not YAML; repair or remove it.") from error


def _names_in(description: object, tags: str, file: Path) -> list[str] | None:
    try:
        return _names(description, tags, set())
    except RecursionError as error:
        raise ReadError(file.name, None, "its description nests too deeply; write the file again.") from error


def _names(value: object, tags: str, seen: set[int]) -> list[str] | None:
    """The class names found under `tags`, wherever the features are: each version of `datasets` nests them anew.

    seen: what was looked through, by identity: YAML's aliases make nine lines into a tree of billions of paths.
    """
    if not isinstance(value, Mapping | list) or id(value) in seen:
        return None
    seen.add(id(value))
    if isinstance(value, Mapping):
        feature = value.get(tags) if value.get("name") != tags else value
        if feature is not None and (names := _class_names(feature, set())):
            return names
    parts = value.values() if isinstance(value, Mapping) else value
    return next((names for part in parts if (names := _names(part, tags, seen))), None)


def _class_names(value: object, seen: set[int]) -> list[str] | None:
    if isinstance(value, Mapping) and id(value) not in seen:
        seen.add(id(value))
        names = value.get("names")
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return names
        if isinstance(names, Mapping) and all(str(key).isdecimal() for key in names):  # a card numbers them: '0': O
            return [str(names[key]) for key in sorted(names, key=int)]
        return next((class_names for part in value.values() if (class_names := _class_names(part, seen))), None)
    return None


def read_hf(records: Iterator[Record], names: Names, scheme: Scheme, ledger: Ledger) -> Iterator[Sentence]:
    """One sentence a record."""
    for line, record in records:
        if row := _tagged(line, record, names, ledger):
            tokens, tags = row
            row_of = Tagged(ledger.doc, tokens, tags, [line] * len(tokens), who=annotator_of(record))
            yield from from_tags(row_of, scheme, ledger)


def annotator_of(record: Mapping[str, object]) -> str | None:
    """Name or number of the annotator of a row, None if it names none."""
    values = (value for name, value in record.items() if is_annotator(name) and isinstance(value, str | int))
    return next((str(value).strip() for value in values if str(value).strip()), None)


def detect(records: Iterator[Record], names: Names, ledger: Ledger, detector: Detector) -> None:
    """Show every tag to `detector`."""
    for line, record in records:
        if row := _tagged(line, record, names, ledger):
            detector.add(row[1], [line] * len(row[1]))


def _tagged(
    line: int, record: Mapping[str, object], names: Names, ledger: Ledger
) -> tuple[list[str], list[str]] | None:
    pair = tag_columns(list(record))
    tokens, tags = (record[pair[0]], record[pair[1]]) if pair else (None, None)
    if not isinstance(tokens, list) or not isinstance(tags, list) or not all(isinstance(t, str) for t in tokens):
        ledger.reject(line, "expected a list of tokens and a list of tags", str(dict(record)))
        return None
    if len(tokens) != len(tags):
        ledger.reject(line, f"{len(tokens)} tokens but {len(tags)} tags", str(dict(record)))
        return None
    if not tokens:
        ledger.report.empty += 1
        return None
    if all(isinstance(tag, str) for tag in tags):
        return _without_blanks(tokens, tags, line, ledger)
    class_names = names()
    if class_names is None:
        raise ReadError(
            ledger.file,
            line,
            "its tags are numbers and nothing says what they stand for; expected names in the file's features, or in"
            " dataset_info.json or label.json ({name: number}) in the same folder.",
        )
    if not all(isinstance(tag, int) and 0 <= tag < len(class_names) for tag in tags):
        ledger.reject(
            line, f"a tag outside 0 to {len(class_names) - 1}, the numbers that have names", str(dict(record))
        )
        return None
    return _without_blanks(tokens, [class_names[tag] for tag in tags], line, ledger)


def _without_blanks(tokens: list[str], tags: list[str], line: int, ledger: Ledger) -> tuple[list[str], list[str]]:
    """Leave out tokens that are white space alone, as spaCy makes of line breaks; one that begins an entity stays.

    What is left out is counted as repaired.
    """
    if all(map(str.strip, tokens)):
        return tokens, tags
    pairs = zip(tokens, tags, strict=True)
    kept = [(token, tag) for token, tag in pairs if token.strip() or tag.startswith(_BEGINS)]
    if len(kept) < len(tokens):
        ledger.repair(line, len(tokens) - len(kept), "tokens without a character were left out")
    return [token for token, _ in kept], [tag for _, tag in kept]
