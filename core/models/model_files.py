"""The files of a model's folder: which of them make it the one it is, and what is refused in them."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from core.errors import ModelError

_FILES = ("*.safetensors", "model.safetensors.index.json", "config.json", "tokenizer*", "special_tokens_map.json")
PICKLE = "pytorch_model.bin"  # of models from before safetensors; read by `converted` alone
_VOCABULARIES = ("vocab.*", "merges.txt", "*.model", "added_tokens.json")
PATTERNS = (*_FILES, *_VOCABULARIES)
_ATTENTION = (None, "eager", "sdpa")  # for another, transformers asks the hub for native code
_LARGEST_JSON = 100_000_000  # bytes of an index or a configuration


def weights(folder: Path) -> list[Path]:
    """The files that hold a model's weights: safetensors, else the pickle of older models, else none."""
    pickle = folder / PICKLE
    return sorted(folder.glob("*.safetensors")) or ([pickle] if pickle.exists() else [])


def files(folder: Path) -> list[Path]:
    """Files in a folder that make an encoder the one it is."""
    return sorted({*weights(folder), *(file for pattern in PATTERNS for file in folder.glob(pattern))})


def fingerprint_of(folder: Path) -> str:
    """24 hex digits of the names and contents of these files."""
    parts = sha256()
    for file in files(folder):
        parts.update(f"{file.name} {file_digest(file)}\n".encode())
    return parts.hexdigest()[:24]


def state(folder: Path) -> list[tuple[object, ...]]:
    """Changes when a folder or one of its files does, or another takes its name, also if that is undone afterwards:
    no account can set back the time at which the system saw a change."""
    states: list[tuple[object, ...]] = []
    for path in (folder, *files(folder)):
        # A link, and what it leads to: either may be swapped.
        for look in (os.lstat, os.stat):
            with suppress(OSError):
                at = look(path)
                states.append((path.name, at.st_dev, at.st_ino, at.st_size, at.st_ctime_ns))
    return states


def file_digest(file: Path) -> str:
    """The SHA-256 of a file's content, read once for each time of change."""
    return _digest(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _digest(file: Path, changed: int) -> str:
    """`changed` is there for the cache alone."""
    digest = sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def refuse_unsafe(name: str, folder: Path) -> None:
    """Refuse what transformers would follow out of the folder or out of safetensors. Errors: ModelError.

    An index may name a pickle as a shard, and a configuration may name a repository of native code as its attention.
    """
    index = folder / "model.safetensors.index.json"
    shards = _json(name, index).get("weight_map", {}) if index.exists() else {}
    for shard in set(shards.values()) if isinstance(shards, Mapping) else {str(shards)}:
        plain = isinstance(shard, str) and shard == Path(shard).name and shard.endswith(".safetensors")
        if not plain or not (folder / shard).is_file():
            raise ModelError(
                f"{name}: its index names {str(shard)[:80]!r}, which is no .safetensors file beside it; save it again."
            )
    for key, value in _settings(_json(name, folder / "config.json")):
        if key.endswith(("attn_implementation", "attn_implementation_internal")) and value not in _ATTENTION:
            raise ModelError(
                f"{name}: its config.json asks for the attention {str(value)[:80]!r}, which is not torch's own; remove "
                f"{key} from it."
            )
    for file in files(folder):
        if not file.is_file():
            raise ModelError(f"{name}: {file.name} is not a plain file; give a folder as transformers saves it.")


def _json(name: str, file: Path) -> Mapping[str, object]:
    try:
        if file.is_file() and file.stat().st_size < _LARGEST_JSON:
            document = json.loads(file.read_bytes())
            if isinstance(document, Mapping):
                return document
    except (OSError, ValueError, RecursionError):
        pass
    raise ModelError(f"{name}: {file.name} cannot be read as a model's; save the model again.")


def _settings(value: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Every key of a configuration and its value, nested ones too."""
    for key, inner in value.items():
        yield key, inner
        if isinstance(inner, Mapping):
            yield from _settings(inner)
