"""Compare the size of an encoder's tokenizer with the size of its embedding table, before anything is computed.

A token that was added only to the tokenizer has no row in the table, so the run would fail in the middle of a batch.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from core.errors import ModelError, WinnowError
from core.isolated import Isolated, is_serving

# Maximum size in bytes of a tokenizer.json, a configuration or the header of a safetensors file.
_LARGEST = 100_000_000
# Names that transformers gives to embedding tables.
_EMBEDDINGS = frozenset(
    {"word_embeddings", "embed_tokens", "wte", "tok_embeddings", "word_embedding", "shared", "embeddings"}
)
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "added_tokens.json")
_process = Isolated(__name__, "use the command line if you trust the model", spare=False)


def refuse_misfit(name: str, folder: Path) -> None:
    """Raise ModelError if an encoder's tokenizer has more entries than its embedding table has rows."""
    entries, rows = _entries(_states(folder, *_TOKENIZER)), _rows(folder)
    if entries and rows and entries > rows:
        raise ModelError(
            f"{name}: its tokenizer has {entries:,} entries but its embedding table only {rows:,} rows, so "
            f"{entries - rows:,} added tokens have no vector; call model.resize_token_embeddings({entries}) and save "
            "model and tokenizer again, or choose another encoder (--encoder, --init)."
        )


def misfit(name: str, folder: Path) -> str:
    """Return the message of `refuse_misfit`; "" if the sizes fit.

    In the app's server, a separate process reads the files.
    """
    try:
        if is_serving():
            _asked(name, folder, _states(folder, *_TOKENIZER, "config.json", "model.safetensors"))
        else:
            refuse_misfit(name, folder)
    except WinnowError as error:
        return str(error)
    return ""


@lru_cache(maxsize=32)
def _asked(name: str, folder: Path, states: tuple[object, ...]) -> None:
    """Call `refuse_misfit` in a separate process. states: see `_states`; a part of the cache key."""
    _process.ask(name, name=name, folder=str(folder))


def answer(name: str, folder: str) -> None:
    """Call `refuse_misfit`; the separate process runs this function."""
    refuse_misfit(name, Path(folder))


_State = tuple[Path, int, int, int]


def _states(folder: Path, *names: str) -> tuple[_State, ...]:
    """Return each existing file with its size and its times of modification and of change, to detect changes."""
    states = []
    for file in (folder / name for name in names):
        with suppress(OSError):
            about = file.stat()
            states.append((file, about.st_size, about.st_mtime_ns, about.st_ctime_ns))
    return tuple(states)


@lru_cache(maxsize=32)
def _entries(files: tuple[_State, ...]) -> int:
    """Return the tokenizer's largest id plus 1; 0 if unknown."""
    return max((number for file, *_ in files for number in _ids(file.name, _read(file))), default=-1) + 1


def _ids(name: str, document: Mapping[str, object]) -> Iterator[int]:
    """Yield the ids in a tokenizer.json, a tokenizer_config.json or an added_tokens.json."""
    model = document.get("model")
    vocabulary = model.get("vocab") if isinstance(model, Mapping) else None
    if isinstance(vocabulary, list):  # in a unigram model, an id is a position in the list
        yield len(vocabulary) - 1
    added = document.get("added_tokens")
    listed = [each.get("id") for each in added if isinstance(each, Mapping)] if isinstance(added, list) else []
    decoder = document.get("added_tokens_decoder")
    by_id = [int(key) for key in decoder if key.isdecimal()] if isinstance(decoder, Mapping) else []
    by_token = list(vocabulary.values()) if isinstance(vocabulary, Mapping) else []
    plain = list(document.values()) if name == "added_tokens.json" else []
    for number in (*listed, *by_id, *by_token, *plain):
        if isinstance(number, int):
            yield number


def _rows(folder: Path) -> int:
    """Return the number of rows of the embedding table, from the weights or else the configuration; 0 if unknown."""
    rows = [rows for file in sorted(folder.glob("*.safetensors")) for rows in _tables(file)]
    if rows:
        return max(rows)
    config = _read(folder / "config.json")
    vocab_size = config.get("vocab_size")
    return vocab_size if isinstance(vocab_size, int) else 0


def _tables(file: Path) -> Iterator[int]:
    """Yield the rows of each embedding table in a safetensors file, from its header."""
    header: object = None
    with suppress(OSError, ValueError, RecursionError), file.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(size)) if size < _LARGEST else None
    for name, about in header.items() if isinstance(header, dict) else ():
        shape = about.get("shape") if isinstance(about, dict) else None
        module = name.removesuffix(".weight").rsplit(".", 1)[-1]
        if module in _EMBEDDINGS and name.endswith(".weight") and isinstance(shape, list) and len(shape) == 2:
            yield int(shape[0])


def _read(file: Path) -> Mapping[str, object]:
    """Return a file's JSON object; {} if it is missing or damaged, because loading the encoder reports that."""
    with suppress(OSError, ValueError, RecursionError):
        if file.stat().st_size < _LARGEST:
            document = json.loads(file.read_bytes())
            if isinstance(document, dict):
                return document
    return {}
