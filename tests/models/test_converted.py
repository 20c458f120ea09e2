"""Folders with only `pytorch_model.bin`: converted once into the home, or refused if the pickle has more than tensors."""

import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, DebertaV2Config, DebertaV2ForMaskedLM

from core.errors import ModelError
from core.models import hub
from core.models.fingerprint import fingerprint
from core.models.mlm import MaskedLM
from core.models.model_files import file_digest
from core.project_list import shared_home
from tests.conftest import Seal
from tests.fake_models import tiny_mlm
from tests.homes import executed
from tests.planted import contracts

PICKLE = "pytorch_model.bin"


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a masked language model in the format before safetensors."""
    path = tiny_mlm(tmp_path_factory.mktemp("older") / "encoder")
    torch.save(load_file(path / "model.safetensors"), path / PICKLE)
    (path / "model.safetensors").unlink()
    return path


@pytest.fixture
def folder(older: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(older, tmp_path / "encoder"))


def kept(home: Path) -> list[Path]:
    return sorted((shared_home(home) / "encoders").glob("*")) + sorted((shared_home(home) / "encoders").glob(".*"))


def assert_read(folder: Path, older: Path) -> None:
    """Check that an encoder and a masked language model of `folder` have the weights of `older`."""
    saved = torch.load(older / PICKLE, weights_only=True)
    model = hub.load_model(str(folder), AutoModelForMaskedLM).state_dict()
    encoder = {f"bert.{name}": weights for name, weights in hub.load_model(str(folder)).state_dict().items()}
    for weights in (model, {name: new for name, new in encoder.items() if "pooler" not in name}):
        assert len(weights) > 30
        for name in weights.keys() & saved.keys():
            assert torch.equal(weights[name], saved[name])
    # Tied weights.
    assert model.keys() - saved.keys() <= {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}


def test_pickle_is_converted_once_with_the_same_weights(folder: Path, older: Path, home: Path) -> None:
    before = fingerprint(str(folder))
    assert not kept(home)  # the fingerprint alone converts nothing
    assert_read(folder, older)
    [target] = kept(home)
    assert target.name == f"converted-{before}"
    assert fingerprint(str(folder)) == before
    assert_read(target, older)  # an ordinary folder
    written = (target / "model.safetensors").stat()
    assert MaskedLM.load(str(folder)).has_head  # the head is only in the pickle
    assert (target / "model.safetensors").stat().st_ino == written.st_ino
    assert {path.name for path in folder.iterdir()} == {path.name for path in older.iterdir()}


def test_first_run_notes_the_conversion(folder: Path, home: Path, seal: Seal) -> None:
    options = {"corpus": seal(contracts(20)).fingerprint, "encoder": str(folder)}
    first = executed("embed", options)
    [note] = [note for note in first.state().notes if PICKLE in note]
    for words in (str(folder), file_digest(folder / PICKLE), str(kept(home)[0]), "without running any code"):
        assert words in note
    second = executed("embed", options, pooling="cls")
    assert not [note for note in second.state().notes if PICKLE in note]


def test_download_fetches_a_pickle_only_if_there_are_no_safetensors(
    folder: Path, older: Path, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requests: list[list[str]] = []

    def snapshot(name: str, *, local_files_only: bool, allow_patterns: list[str]) -> str:
        requests.append(allow_patterns)
        if allow_patterns == [PICKLE]:
            (tmp_path / PICKLE).rename(folder / PICKLE)
        return str(folder)

    (folder / PICKLE).rename(tmp_path / PICKLE)
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    for _ in range(2):
        assert hub.folder_of("somebody/some-bert", allow_download=True) == folder
    assert [PICKLE in patterns for patterns in requests] == [False, True, False]
    assert "somebody/some-bert: its only weights are in" in hub.converted("somebody/some-bert")
    assert hub.converted("somebody/some-bert") == ""
    assert_read(Path("somebody/some-bert"), older)
    assert len(kept(home)) == 1
    for name in ("minilm", "tiny", "somebody/other", "20200101-000000-pretrain-dead", "/nowhere/at/all"):
        monkeypatch.undo()
        assert hub.converted(name) == ""


def tied(state: dict[str, Any]) -> None:
    """Give one tensor two names, and make two tensors views of one."""
    state["cls.predictions.decoder.weight"] = state["bert.embeddings.word_embeddings.weight"]
    whole = torch.cat([state["cls.predictions.bias"], state["cls.predictions.bias"]])
    state["cls.predictions.bias"], state["cls.predictions.decoder.bias"] = whole[:193], whole[193:]


def legacy(state: dict[str, Any]) -> None:
    """Rename layers as TensorFlow named them."""
    for name in list(state):
        new = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        state[new] = state.pop(name)


@pytest.mark.parametrize("change", [tied, legacy])
def test_shared_tensors_and_the_format_before_torch_1_6_are_converted(
    folder: Path, older: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    change(state := torch.load(folder / PICKLE, weights_only=True))
    torch.save(state, folder / PICKLE, _use_new_zipfile_serialization=change is tied)
    assert_read(folder, older)


class Evil:
    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch was-run",)


def plain_pickle(folder: Path) -> None:
    (folder / PICKLE).write_bytes(pickle.dumps(Evil()))


def packed(folder: Path) -> None:
    """Compress the zip entries."""
    with zipfile.ZipFile(folder / PICKLE) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(folder / PICKLE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def saved(content: object) -> Callable[[Path], None]:
    return lambda folder: torch.save(content, folder / PICKLE)


def written(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / PICKLE).write_bytes(change((folder / PICKLE).read_bytes()))

    return spoil


SPOILT: dict[str, Callable[[Path], None]] = {
    "a pickle that executes": plain_pickle,
    "one in torch's zip": saved({"embeddings.weight": Evil()}),
    "a module": saved(torch.nn.Linear(2, 2)),
    "a packed zip": packed,
    "one number, expanded": saved({"embeddings.weight": torch.zeros(1).expand(1_000_000, 1_000)}),
    "one tensor under many names": saved(dict.fromkeys((f"layer.{i}" for i in range(5_000)), torch.zeros(50_000))),
    "a list": saved([torch.zeros(2)]),
    "numbers": saved({"epoch": 3}),
    "a sparse tensor": saved({"a": torch.zeros(3).to_sparse()}),
    "the beginning of a zip": written(lambda data: b"PK\x03\x04" + bytes(100)),
    "half a file": written(lambda data: data[:5_000]),
    "an empty file": written(lambda data: b""),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_pickle_of_more_than_tensors_is_refused_without_running_it(
    folder: Path, home: Path, tmp_path: Path, spoil: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spoil(folder)
    uses: tuple[Callable[[str], object], ...] = (hub.load_model, hub.converted, MaskedLM.load)
    for use in uses:
        with pytest.raises(ModelError, match="none of it was run or stored") as raised:
            use(str(folder))
        assert str(folder) in str(raised.value)
        assert "weights_only" not in str(raised.value)  # torch advises to run the pickle
    assert not (tmp_path / "was-run").exists()
    assert not kept(home)


def test_pickle_replaced_during_reading_is_refused(
    folder: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, other = torch.load, tmp_path / "other"
    shutil.copy(folder / PICKLE, other)

    def late(*args: object, **kwargs: object) -> object:
        loaded = usual(*args, **kwargs)  # type: ignore[arg-type]
        other.replace(folder / PICKLE)
        return loaded

    monkeypatch.setattr(torch, "load", late)
    with pytest.raises(ModelError, match="changed while they were read"):
        hub.load_model(str(folder))
    assert not kept(home)
    hub.load_model("tiny").save_pretrained(folder)
    plain_pickle(folder)
    hub.load_model(str(folder))
    assert hub.converted(str(folder)) == ""
    assert not kept(home)


def test_deberta_folder_in_its_published_form_loads(home: Path, tmp_path: Path) -> None:
    """The folder has its pieces in `spm.model` and its weights in a pickle."""
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    config, folder = DebertaV2Config(vocab_size=99, **size), tmp_path / "deberta"
    config.save_pretrained(folder)
    torch.save(DebertaV2ForMaskedLM(config).state_dict(), folder / PICKLE)
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false, "vocab_type": "spm"}', encoding="utf-8")
    options: dict[str, Any] = {"vocab_size": 90, "hard_vocab_limit": False, "minloglevel": 2}
    for i, (name, piece) in enumerate({"pad": "[PAD]", "bos": "[CLS]", "eos": "[SEP]", "unk": "[UNK]"}.items()):
        options |= {f"{name}_id": i, f"{name}_piece": piece}
    with (folder / "spm.model").open("wb") as file:
        train = sentencepiece.SentencePieceTrainer.train
        train(sentence_iterator=iter(contracts(50)), model_writer=file, **options)
    tokenizer = hub.load_tokenizer(str(folder))
    assert {0, 1} <= set(tokenizer(["the", "party"], is_split_into_words=True).word_ids())
    assert hub.load_model(str(folder)).config.model_type == "deberta-v2"
