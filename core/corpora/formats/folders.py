"""Files of a folder that are read, in order."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from core.corpora.formats.ledger import ReadOptions
from core.errors import PathError, ReadError
from core.paths import allowed_path, is_there, user_path
from core.shown import in_utf8

MOST_LISTED = 500  # entries of a folder

_READ = (".txt", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".conll", ".bio", ".iob")
_ABOUT = frozenset(
    {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "readme.txt", "license.txt"}
)
_PART = re.compile(r"(?:^|[^a-z])(train|validation|valid|dev|test)(?:[^a-z]|$)")
_SAME = {"validation": "dev", "valid": "dev"}


def files_of(path: Path, options: ReadOptions) -> list[Path]:
    """`path`, or the files under it by name. Errors: PathError, ReadError if there is nothing to read.

    Links that lead out of the folder and hidden files are passed over. A folder that holds several of
    train, dev and test asks which is meant, unless `options.part` says so.
    """
    path = user_path(path)
    if not path.exists():
        raise PathError(f"{path}: there is no such file or folder; check the path.")
    if path.is_file():
        return [path.with_suffix(".txt")] if path.suffix == ".ann" and is_there(path.with_suffix(".txt")) else [path]
    root = path.resolve()
    files = [file for file in sorted(path.rglob("*")) if _readable(file, path, root)]
    if not files:
        raise ReadError(path.name, None, f"the folder holds no file to read (expected one of {', '.join(_READ)}).")
    parts = {file: _part(file, path) for file in files}
    present = sorted({part for part in parts.values() if part})
    part = _SAME.get(options.part or "", options.part)
    if part:
        files = [file for file in files if parts[file] == part]
        if not files:
            names_present = ", ".join(present) or "none"
            raise ReadError(path.name, None, f"the folder holds no part {options.part!r} (found: {names_present}).")
    elif len(present) > 1:
        raise ReadError(
            path.name,
            None,
            f"the folder holds several parts ({', '.join(present)}); say which to add, or choose a single file.",
        )
    return files


def is_brat(path: Path) -> bool:
    """Whether `path` is a text with brat's annotation beside it."""
    return path.suffix == ".txt" and is_there(path.with_suffix(".ann"))


def listing(folder: Path, roots: Sequence[Path] | None = None) -> list[Path]:
    """Entries of `folder` that an import may choose: folders, then files that can be read, at most `MOST_LISTED`.

    Hidden ones, links that lead out of the allowed folders and names that no page can show are left out.
    Errors: PathError as of `allowed_path`.
    """
    entries = []
    try:
        for path in sorted(allowed_path(folder, roots).iterdir(), key=lambda path: (path.is_file(), path.name.lower())):
            with suppress(PathError):
                hidden = path.name.startswith(".") or not in_utf8(path.name)
                if not hidden and allowed_path(path, roots) and (path.is_dir() or readable(path)):
                    entries.append(path)
    except OSError as error:
        raise PathError(f"{str(folder)[:200]!r}: cannot be looked into ({error.strerror}).") from error
    return entries[:MOST_LISTED]


def readable(file: Path) -> bool:
    """Whether a file's ending is one that a folder is read for."""
    endings = [ending.lower() for ending in file.suffixes if ending.lower() not in (".gz", ".zst")]
    return bool(endings) and endings[-1] in _READ


def _readable(file: Path, folder: Path, root: Path) -> bool:
    inside = file.relative_to(folder)
    return (
        readable(file)
        and file.name.lower() not in _ABOUT
        and not any(part.startswith(".") for part in inside.parts)
        and file.is_file()
        and file.resolve().is_relative_to(root)
    )


def _part(file: Path, folder: Path) -> str | None:
    matches = _PART.findall(str(file.relative_to(folder)).lower())
    return _SAME.get(matches[-1], matches[-1]) if matches else None
