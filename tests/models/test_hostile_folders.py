"""Hostile model folders: no pickle is opened, no code is fetched, and every defect raises a ModelError."""

import json
import os
import re
import shutil
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModel, AutoModelForTokenClassification, AutoTokenizer
from transformers.integrations import hub_kernels

from core.errors import ModelError
from core.models import fingerprint as fingerprints
from core.models import hub
from core.models.fingerprint import fingerprint
from core.models.mlm import _head_in_file
from core.models.taggers import load_tagger


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_folder, tmp_path / "model"))


def changed(folder: Path, name: str, **values: object) -> None:
    file = folder / name
    stored = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**stored, **values}))


def index(shard: object) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "other.safetensors")
        changed(folder, "model.safetensors.index.json", metadata={}, weight_map={"embeddings.weight": shard})
        (folder / "evil.bin").write_bytes(b"\x80\x04cos\nsystem\n.")

    return spoil


def attention(**values: object) -> Callable[[Path], None]:
    return lambda folder: changed(folder, "config.json", **values)


def replaced(name: str, data: bytes) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return spoil


def fifo(name: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return spoil


def endless(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("/dev/zero")


def without_tokenizer(folder: Path) -> None:
    for file in folder.glob("tokenizer*"):
        file.unlink()


SPOILT: dict[str, Callable[[Path], None]] = {
    "a pickle in the index": index("evil.bin"),
    "a path in the index": index("../other.safetensors"),
    "a shard that is not there": index("gone.safetensors"),
    "an index of numbers": index(3),
    "a kernel of the hub": attention(_attn_implementation="evil-user/evil-kernel"),
    "a kernel of the hub inside": attention(text_config={"attn_implementation": "evil-user/evil-kernel"}),
    "flash attention": attention(_attn_implementation="flash_attention_2"),
    "flex attention": attention(_attn_implementation="flex_attention"),
    "no header": replaced("model.safetensors", b"\xff" * 64),
    "no JSON": replaced("config.json", b"{"),
    "a list for a configuration": replaced("config.json", b"[]"),
    "deep JSON": replaced("config.json", b'{"a":' * 50_000),
    "wrong types": attention(hidden_size="many", num_hidden_layers={}),
    "no tokenizer": without_tokenizer,
    "a window of two pieces": lambda folder: changed(folder, "tokenizer_config.json", model_max_length=2),
    "a broken tokenizer": replaced("tokenizer.json", b"[1, 2"),
    "a pipe for weights": fifo("model.safetensors"),
    "a pipe for a tokenizer": fifo("tokenizer.json"),
    "endless weights": endless,
    "a folder called tokenizer_x": lambda folder: (folder / "tokenizer_x").mkdir(),
}


@pytest.mark.parametrize("serving", [False, True])
def test_fingerprint_changes_if_a_copy_keeps_size_and_time(
    folder: Path, serving: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cp -p`, `tar` and `rsync -a` keep the time of modification, and weights of one architecture have one size."""
    monkeypatch.setattr(fingerprints, "is_serving", lambda: serving)
    monkeypatch.setattr(fingerprints._process, "ask", lambda *_, name: fingerprints.answer(name))
    before, weights = fingerprint(str(folder)), folder / "model.safetensors"
    at, data = weights.stat(), bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    os.utime(weights, ns=(at.st_atime_ns, at.st_mtime_ns))
    assert fingerprint(str(folder)) != before


def used(folder: Path) -> None:
    fingerprint(str(folder))
    hub.load_tokenizer(str(folder))
    hub.load_model(str(folder))


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_damaged_folder_is_refused_without_running_code(
    folder: Path, spoil: Callable[[Path], None], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[object] = []
    kernels = types.ModuleType("kernels")
    kernels.get_kernel = lambda *args, **kwargs: fetched.append(args)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kernels", kernels)
    monkeypatch.setattr(torch, "load", lambda *args, **kwargs: fetched.append(args))
    spoil(folder)
    says = "not torch's own" if re.search("attention|kernel", request.node.name) else None
    began = time.process_time()
    with pytest.raises(ModelError, match=says) as raised:
        used(folder)
    assert time.process_time() - began < 5  # seconds; without the check, deep JSON took minutes
    assert not fetched
    assert str(folder) in str(raised.value)
    assert hub_kernels._TRANSFORMERS_USE_HUB_KERNELS == "0"


def test_sharded_folder_loads(tiny_folder: Path, tmp_path: Path) -> None:
    hub.load_model(str(tiny_folder)).save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    sharded = hub.load_model(str(tmp_path)).state_dict()
    assert all(
        torch.equal(sharded[name], weights) for name, weights in hub.load_model(str(tiny_folder)).state_dict().items()
    )


def test_damaged_language_model_or_tagger_is_refused(folder: Path) -> None:
    hub.load_model("tiny", AutoModelForTokenClassification, num_labels=5).save_pretrained(folder)
    forged: tuple[dict[str, object], ...] = (
        {},
        {"head": "none"},
        {"head": "crf", "constrained": False, "max_length": 9, "types": 3},
        {"network": "span"},
        {"network": "bilstm"},
        {"network": "bilstm", "layout": {"widths": 3}},
        {"network": "bilstm", "layout": {}, "types": 5},
    )
    for about in forged:
        changed(folder, "config.json", winnow=about)
        with pytest.raises(ModelError):
            load_tagger(folder)
    for spoil in (attention(hidden_size="many"), replaced("config.json", b'{"a":' * 50_000)):
        spoil(folder)
        with pytest.raises(ModelError):
            _head_in_file(str(folder), False)
    replaced("config.json", b'{"model_type": "bert"}')(folder)
    replaced("model.safetensors", b"\xff" * 64)(folder)
    with pytest.raises(ModelError):
        _head_in_file(str(folder), False)


def replaced_and_put_back(folder: Path, other: Path) -> Callable[[], object]:
    (folder / "model.safetensors").rename(folder / "kept")
    shutil.copy(other / "model.safetensors", folder)
    return lambda: (folder / "kept").replace(folder / "model.safetensors")


def linked(folder: Path, other: Path) -> Callable[[], object]:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to(other / "model.safetensors")
    return lambda: None


def written_over_in_its_own_time(folder: Path, other: Path) -> Callable[[], object]:
    file, before = folder / "config.json", (folder / "config.json").stat()
    file.write_bytes(file.read_bytes().replace(b"gelu", b"relu"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    return lambda: None


def joined(folder: Path, other: Path) -> Callable[[], object]:
    (folder / "adapter_config.json").write_text("{}")
    return (folder / "adapter_config.json").unlink


def swapped_whole(folder: Path, other: Path) -> Callable[[], object]:
    folder.rename(folder.with_name("kept"))
    folder.symlink_to(other)

    def back() -> None:
        folder.unlink()
        folder.with_name("kept").rename(folder)

    return back


@pytest.mark.parametrize("swap", [replaced_and_put_back, linked, written_over_in_its_own_time, joined, swapped_whole])
def test_file_replaced_between_check_and_load_is_refused(
    swap: Callable[[Path, Path], Callable[[], object]], folder: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, load in ((AutoModel, hub.load_model), (AutoTokenizer, hub.load_tokenizer)):
        load(str(folder))
        usual = kind.from_pretrained

        def late(*args: object, usual: Callable[..., object] = usual, **kwargs: object) -> object:
            back = swap(folder, tiny_folder)
            loaded = usual(*args, **kwargs)
            back()
            return loaded

        monkeypatch.setattr(kind, "from_pretrained", late)
        with pytest.raises(ModelError, match="changed while they were read"):
            load(str(folder))
        monkeypatch.undo()
