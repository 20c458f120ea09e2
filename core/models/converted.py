"""Folders that hold their weights as `pytorch_model.bin` alone, as older encoders do: read once, kept as safetensors.

torch's own restricted reader builds tensors and nothing else, so that no code of the pickle is run. What becomes of it
lies in <home>/encoders/converted-<fingerprint>/, an ordinary folder, whose README.md says what it was.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile, ZipFile, is_zipfile

from core.errors import ModelError, memory_ran_out
from core.files import sync, write_atomic
from core.models.model_files import PICKLE, file_digest, files, fingerprint_of, state, weights
from core.paths import machine_home

if TYPE_CHECKING:
    import torch

_WEIGHTS, _ABOUT = "model.safetensors", "README.md"
_LARGER = 2  # times as large as the pickle what is written may be: tensors that share memory are written one by one


def in_safetensors(name: str, folder: Path) -> Path:
    """`folder` where it holds safetensors, else the folder into which it was converted, now or earlier.

    Errors: ModelError for a pickle that is more than tensors, or that was changed meanwhile; nothing is kept then.
    """
    if weights(folder) != [folder / PICKLE]:
        return folder
    target = _target(folder)
    if not target.is_dir():
        _convert(name, folder, target)
    return target


def wanting(folder: Path) -> bool:
    """Whether a folder must be converted, and was not yet."""
    return weights(folder) == [folder / PICKLE] and not _target(folder).is_dir()


def about(target: Path) -> str:
    """Source of the weights of a converted folder, in a sentence."""
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
        write_atomic(written / _ABOUT, _sentence(name, folder, target).encode())
        if state(folder) != before or _target(folder) != target:
            raise ModelError(f"{name}: its files were changed while they were read; start again when nobody does.")
        if not target.is_dir():  # another process may have been faster
            os.replace(written, target)
            sync(target.parent)


def _sentence(name: str, folder: Path, target: Path) -> str:
    digest = file_digest(folder / PICKLE)
    return (
        f"{name}: its folder holds {PICKLE} alone (sha256 {digest}); its tensors were read without running anything in "
        f"it, and are kept as safetensors in {target}.\n"
    )


def _tensors(name: str, file: Path) -> "dict[str, torch.Tensor]":
    """Each on its own, whatever memory they share in the pickle. Errors: ModelError."""
    import torch

    try:
        _refuse_packed(file)
        loaded = torch.load(file, map_location="cpu", weights_only=True)
        return _alone(loaded, file.stat().st_size)
    except Exception as error:
        if memory_ran_out(error):
            raise
        raise ModelError(
            f"{name}: its {PICKLE} cannot be taken for an encoder's weights ({_reason(error)}); nothing of it was run "
            "or kept. Give a folder saved as safetensors."
        ) from error


def _reason(error: Exception) -> str:
    """Ours as it is; of torch's page-long advice, which says how to run the pickle after all, nothing."""
    if isinstance(error, _NotWeights):
        return str(error)
    return f"it is damaged, or more than tensors: {type(error).__name__}"


class _NotWeights(Exception):
    """Error of a file whose content is not a model's weights."""


def _refuse_packed(file: Path) -> None:
    """torch writes its zip unpacked; a packed one may be a thousand times as large in memory."""
    if not is_zipfile(file):
        return  # as torch wrote it until 1.6
    try:
        with ZipFile(file) as archive:
            packed = any(entry.compress_type for entry in archive.infolist())
    except BadZipFile as error:
        raise _NotWeights("it is a damaged zip") from error
    if packed:
        raise _NotWeights("it is packed, as torch never writes one")


def _alone(loaded: object, size: int) -> "dict[str, torch.Tensor]":
    """Copies of the tensors that share memory with another, or are a part of a larger one. size: bytes of the file."""
    import torch

    if not isinstance(loaded, dict) or not loaded:
        raise _NotWeights("it is no table of weights")
    for key, tensor in loaded.items():
        if not isinstance(key, str) or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            raise _NotWeights(f"its entry {str(key)[:80]!r} is no tensor under a name")
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
            raise _NotWeights(f"its tensor {key[:80]!r} is of an uncommon kind")
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
