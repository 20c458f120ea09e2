"""The files of a model's folder: its fingerprint, refused content, and the conversion of pickled weights.

Older encoders have only `pytorch_model.bin`. It is read once, by torch's restricted reader, which builds tensors and
runs no code of the pickle. The tensors are stored as safetensors in <home>/encoders/converted-<fingerprint>/, an
ordinary folder whose README.md names the source.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile, ZipFile, is_zipfile

from core.errors import ModelError, memory_ran_out
from core.files import sync, write_atomic
from core.paths import machine_home

if TYPE_CHECKING:
    import torch

_FILES = ("*.safetensors", "model.safetensors.index.json", "config.json", "tokenizer*", "special_tokens_map.json")
PICKLE = "pytorch_model.bin"  # weights of models older than safetensors; only `in_safetensors` reads them
_VOCABULARIES = ("vocab.*", "merges.txt", "*.model", "added_tokens.json")
PATTERNS = (*_FILES, *_VOCABULARIES)
# For any other attention, transformers downloads native code from the hub.
_ATTENTION = (None, "eager", "sdpa")
# Maximum size of an index or a configuration in bytes.
_LARGEST_JSON = 100_000_000


def weights(folder: Path) -> list[Path]:
    """Return the files that hold a model's weights: safetensors, else the pickle of older models, else none."""
    pickle = folder / PICKLE
    return sorted(folder.glob("*.safetensors")) or ([pickle] if pickle.exists() else [])


def files(folder: Path) -> list[Path]:
    """Return an encoder's files: weights, configuration, tokenizer and vocabulary."""
    return sorted({*weights(folder), *(file for pattern in PATTERNS for file in folder.glob(pattern))})


def fingerprint_of(folder: Path) -> str:
    """Return 24 hex digits of a SHA-256 hash over the names and contents of an encoder's files."""
    parts = sha256()
    for file in files(folder):
        parts.update(f"{file.name} {file_digest(file)}\n".encode())
    return parts.hexdigest()[:24]


def state(folder: Path) -> list[tuple[object, ...]]:
    """Return a value that changes if a folder or one of its files is changed or replaced, even if the change is undone.

    It contains the time of change (ctime), which no user can set back.
    """
    states: list[tuple[object, ...]] = []
    for path in (folder, *files(folder)):
        # Include the link and its target, because either may be replaced.
        for look in (os.lstat, os.stat):
            with suppress(OSError):
                at = look(path)
                states.append((path.name, at.st_dev, at.st_ino, at.st_size, at.st_ctime_ns))
    return states


def file_digest(file: Path) -> str:
    """Return the SHA-256 of a file, cached until the file is modified or replaced."""
    # A copy may keep the time of modification (`cp -p`, `tar`, `rsync -a`), so use the time of change (ctime), too.
    at = file.stat()
    return _digest(file, (at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns))


@lru_cache(maxsize=256)
def _digest(file: Path, changed: tuple[int, ...]) -> str:
    """Return the SHA-256 of a file. changed: its inode, size and times, a part of the cache key."""
    digest = sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def refuse_unsafe(name: str, folder: Path) -> None:
    """Raise ModelError if a file of the model makes transformers read a pickle, downloaded code, or another folder.

    An index may name a pickle as a shard, and a configuration may name a repository of native code as its attention.
    """
    index = folder / "model.safetensors.index.json"
    shards = json_object(name, index).get("weight_map", {}) if index.exists() else {}
    for shard in set(shards.values()) if isinstance(shards, Mapping) else {str(shards)}:
        plain = isinstance(shard, str) and shard == Path(shard).name and shard.endswith(".safetensors")
        if not plain or not (folder / shard).is_file():
            raise ModelError(
                f"{name}: its index names {str(shard)[:80]!r}, which is not a .safetensors file in the model's folder; "
                "save the model again."
            )
    for key, value in _settings(json_object(name, folder / "config.json")):
        if key.endswith(("attn_implementation", "attn_implementation_internal")) and value not in _ATTENTION:
            raise ModelError(
                f"{name}: its config.json names the attention implementation {str(value)[:80]!r}, which is not "
                f"torch's own; remove {key} from config.json."
            )
    for file in files(folder):
        if not file.is_file():
            raise ModelError(f"{name}: {file.name} is not a plain file; give a folder as transformers saves it.")


def json_object(name: str, file: Path) -> Mapping[str, object]:
    """Return the JSON object in a file of model `name`. Errors: ModelError if there is none or it is too large."""
    try:
        if file.is_file() and file.stat().st_size < _LARGEST_JSON:
            document = json.loads(file.read_bytes())
            if isinstance(document, Mapping):
                return document
    except (OSError, ValueError, RecursionError):
        pass
    raise ModelError(f"{name}: {file.name} is not a valid file of a model; save the model again.")


def vocabulary_weights(name: str, folder: Path) -> int:
    """Return the number of weights of a model's word embeddings. Errors: ModelError if config.json lacks the sizes."""
    config = json_object(name, folder / "config.json")
    sizes = config.get("vocab_size"), config.get("hidden_size", config.get("dim"))  # DistilBERT names it `dim`
    if not all(isinstance(size, int) for size in sizes):
        raise ModelError(f"{name}: config.json has no vocab_size and hidden_size; save the model again.")
    rows, width = sizes
    return int(rows * width)  # type: ignore[operator]


def _settings(value: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield every key of a configuration with its value, including nested keys."""
    for key, inner in value.items():
        yield key, inner
        if isinstance(inner, Mapping):
            yield from _settings(inner)


_WEIGHTS, _ABOUT = "model.safetensors", "README.md"
# Maximum size of the tensors, in multiples of the pickle's size. Tensors that share memory are stored only once.
_LARGER = 2


def in_safetensors(name: str, folder: Path) -> Path:
    """Return `folder` if it holds safetensors, else the folder with its converted weights; convert them if necessary.

    Errors: ModelError if the pickle holds more than tensors, or changes during the conversion; then nothing is stored.
    """
    if weights(folder) != [folder / PICKLE]:
        return folder
    target = _target(folder)
    if not target.is_dir():
        _convert(name, folder, target)
    return target


def wanting(folder: Path) -> bool:
    """Return True if a folder has only a pickle, which has not been converted yet."""
    return weights(folder) == [folder / PICKLE] and not _target(folder).is_dir()


def about(target: Path) -> str:
    """Return the sentence in a converted folder that names the source of its weights."""
    return (target / _ABOUT).read_text(encoding="utf-8").strip()


def _target(folder: Path) -> Path:
    return machine_home() / "encoders" / f"converted-{fingerprint_of(folder)}"


def _convert(name: str, folder: Path, target: Path) -> None:
    from safetensors.torch import save_file

    before = state(folder)
    tensors = _tensors(name, folder / PICKLE)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".converted-") as work:
        written = Path(work) / "folder"
        written.mkdir()
        for file in files(folder):
            if file.name != PICKLE:
                shutil.copyfile(file, written / file.name)
        save_file(tensors, written / _WEIGHTS, metadata={"format": "pt"})
        sync(written / _WEIGHTS)
        about = (
            f"{name}: its only weights are in {PICKLE} (sha256 {file_digest(folder / PICKLE)}). Its tensors were read "
            f"without running any code in it, and are stored as safetensors in {target}.\n"
        )
        write_atomic(written / _ABOUT, about.encode())
        if state(folder) != before or _target(folder) != target:
            raise ModelError(
                f"{name}: its files changed while they were read; start again when no process writes to them."
            )
        if not target.is_dir():  # another process may have converted the model meanwhile
            os.replace(written, target)
            sync(target.parent)


def _tensors(name: str, file: Path) -> "dict[str, torch.Tensor]":
    """Return the tensors of a pickle; no two of them share memory. Errors: ModelError."""
    import torch

    try:
        _refuse_packed(file)
        loaded = torch.load(file, map_location="cpu", weights_only=True)
        return _separated(loaded, file.stat().st_size)
    except Exception as error:
        if memory_ran_out(error):
            raise
        raise ModelError(
            f"{name}: its {PICKLE} cannot be used as an encoder's weights ({_reason(error)}); none of it was run "
            "or stored. Give a folder saved as safetensors."
        ) from error


def _reason(error: Exception) -> str:
    """Return our own description of the error, because torch's message explains how to run the pickle."""
    if isinstance(error, _NotWeights):
        return str(error)
    return f"it is damaged or holds more than tensors: {type(error).__name__}"


class _NotWeights(Exception):
    """Raised if a file's content is not a model's weights."""


def _refuse_packed(file: Path) -> None:
    """Raise _NotWeights for a compressed or damaged zip.

    A compressed zip may be a thousand times larger in memory, and torch never compresses its files.
    """
    if not is_zipfile(file):
        return  # files of torch up to 1.6 are not zips
    try:
        with ZipFile(file) as archive:
            packed = any(entry.compress_type for entry in archive.infolist())
    except BadZipFile as error:
        raise _NotWeights("it is a damaged zip") from error
    if packed:
        raise _NotWeights("it is compressed, and torch never compresses its files")


def _separated(loaded: object, size: int) -> "dict[str, torch.Tensor]":
    """Return the tensors of a loaded pickle, each copied if it shares memory or is part of a larger tensor.

    size: size of the file in bytes.
    """
    import torch

    if not isinstance(loaded, dict) or not loaded:
        raise _NotWeights("it is not a dictionary of weights")
    for key, tensor in loaded.items():
        if not isinstance(key, str) or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            raise _NotWeights(f"its entry {str(key)[:80]!r} is not a named tensor")
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
            raise _NotWeights(f"its tensor {key[:80]!r} has an unusual type")
    if sum(tensor.numel() * tensor.element_size() for tensor in loaded.values()) > _LARGER * size:
        raise _NotWeights("its tensors are larger than the file that holds them")
    seen = set[int]()
    tensors: dict[str, torch.Tensor] = {}
    for key, tensor in loaded.items():
        storage = tensor.untyped_storage()
        whole = storage.nbytes() == tensor.numel() * tensor.element_size() and tensor.is_contiguous()
        shared = storage.data_ptr() in seen
        seen.add(storage.data_ptr())
        tensors[key] = tensor.detach() if whole and not shared else tensor.detach().clone().contiguous()
    return tensors
