"""BiLSTM taggers: states without packing, two corpora, saving, word vectors, and frozen states."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from core.errors import ModelError
from core.models import bilstm
from core.models.bilstm import ASSISTING, LAYOUTS, BiLstm, BiLstmTagger, Layout, Share
from core.models.tagger import IGNORED
from core.models.taggers import load_tagger
from core.models.word_features import UNKNOWN, CharCnn, Vectors, WordVectors, build_vocabulary, letter_indices
from core.text.sentence import Sentence
from core.text.words import Tokens
from tests.conftest import sentence

SMALL = Layout(layers=2, hidden=8, word_size=6, letter_size=4, filters=3, widths=(1, 3))
ROWS = [
    sentence("Ada met Bob in Rome .", [(0, 1, "PER"), (2, 3, "PER"), (4, 5, "LOC")]),
    sentence("Nobody came .", []),
    sentence("Rome", [(0, 1, "LOC")]),
]
OTHERS = [sentence("Ana vive en Roma .", [(0, 1, "GPE"), (3, 4, "GPE")])]


def tagger(
    layout: Layout = SMALL, rows: Sequence[Sentence] = ROWS, assisting_types: Sequence[str] | None = None
) -> BiLstmTagger:
    torch.manual_seed(0)
    words = [build_vocabulary([*rows, *rows])]  # every word occurs at least twice
    return BiLstmTagger(["LOC", "PER"], "crf", layout, words, assisting_types=assisting_types)


def test_bilstm_equals_torch_with_packed_sequences() -> None:
    torch.manual_seed(0)
    ours = BiLstm(5, 7)
    usual = nn.LSTM(5, 7, batch_first=True, bidirectional=True)
    for name, weight in ours.ahead.named_parameters():
        usual.get_parameter(name).data = weight.data
    for name, weight in ours.behind.named_parameters():
        usual.get_parameter(f"{name}_reverse").data = weight.data
    lengths = torch.tensor([6, 4, 1])
    inputs = torch.randn(3, 6, 5)
    places = torch.arange(6)[None].repeat(3, 1)
    turned = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
    packed = nn.utils.rnn.pack_padded_sequence(inputs, lengths, batch_first=True)
    expected = nn.utils.rnn.pad_packed_sequence(usual(packed)[0], batch_first=True)[0]
    found = ours(inputs, turned)
    for row, n in enumerate(lengths.tolist()):
        assert torch.allclose(found[row, :n], expected[row, :n], atol=1e-6)


def test_emissions_do_not_depend_on_the_batch() -> None:
    assert (LAYOUTS["charcnn"].filters, LAYOUTS["charcnn"].widths) == (20, tuple(range(1, 10)))  # as in the papers
    assert (LAYOUTS["charcnn"].layers, LAYOUTS["bilstm"].layers) == (1, 2)
    model, odd = tagger().eval(), sentence("字 " + "x" * 500)
    with torch.no_grad():
        together = model.emissions(model.features(ROWS), (3, 6))
        for row, one in enumerate(ROWS):
            n = len(one.tokens)
            assert torch.allclose(model.emissions(model.features([one]), (1, n))[0], together[row, :n], atol=1e-5)
        assert model.emissions(model.features([odd]), (1, 2)).isfinite().all()
    assert model.predict([odd])[0].entities is not None


def test_training_lowers_the_loss() -> None:
    model = tagger(replace(SMALL, dropout=0.0))
    same = model(**model.batch(ROWS, None, [ASSISTING] * 3))["loss"]  # equal types share the output layer
    assert same.item() == pytest.approx(model(**model.batch(ROWS))["loss"].item())
    optimizer = torch.optim.SGD(model.parameter_groups(0.4, 0.0))
    losses = []
    for _ in range(40):
        loss = model(**model.batch(ROWS))["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3


def test_chains_can_have_their_own_learning_rate() -> None:
    """The rate applies to the chains of both corpora, if each has one."""
    model = tagger(assisting_types=["GPE"])
    assert model.assisting_crf
    chains = [id(p) for chain in (model.crf, model.assisting_crf) for p in chain.parameters()]
    (everything,) = model.parameter_groups(0.4, 0.0)
    rest, own = model.parameter_groups(0.4, 0.0, 0.1)
    assert (everything["lr"], rest["lr"], own["lr"]) == (0.4, 0.4, 0.1)
    assert sorted(id(p) for p in own["params"]) == sorted(chains)
    assert len(rest["params"]) + len(own["params"]) == len(everything["params"]) == len(list(model.parameters()))
    model.level_chains()
    assert not any(scores.any() for chain in (model.crf, model.assisting_crf) for scores in chain.parameters())


@pytest.mark.parametrize("share", ["all", "sub-word"])
def test_corpora_with_other_types_have_separate_output_layers(share: Share) -> None:
    layout = replace(SMALL, share=share, dropout=0.0)
    texts = [ROWS, OTHERS] if share == "sub-word" else [[*ROWS, *OTHERS]]
    torch.manual_seed(0)
    words = [build_vocabulary(2 * rows) for rows in texts]
    model = BiLstmTagger(["LOC", "PER"], "crf", layout, words, assisting_types=["GPE"])
    batch = model.batch([*ROWS, *OTHERS], [1.0, 1.0, 1.0, 0.1], [0, 0, 0, ASSISTING])
    loss = model(**batch)["loss"]
    ours = model(**model.batch(ROWS))["loss"] * 10
    theirs = model(**model.batch(OTHERS, [1.0], [ASSISTING]))["loss"] * 5
    assert int((batch["labels"] != IGNORED).sum()) == 15
    assert loss.item() == pytest.approx((ours.item() + 0.1 * theirs.item()) / 15, rel=1e-5)

    model.zero_grad()
    model(**model.batch(OTHERS, [1.0], [ASSISTING]))["loss"].backward()
    touched = {name for name, p in model.named_parameters() if p.grad is not None and bool(p.grad.abs().sum() > 0)}
    assert any(name.startswith("characters") for name in touched)
    assert not any(name.startswith(("last_layer", "crf.")) for name in touched)
    assert any(name.startswith("towers.0") for name in touched) == (share == "all")


def test_saved_tagger_predicts_the_same(tmp_path: Path) -> None:
    model = tagger(assisting_types=["GPE"])
    model.write(tmp_path)
    again = load_tagger(tmp_path, device="cpu")
    assert (again.types, again.tags) == (model.types, model.tags)
    before, after = (which.predict([*ROWS, *OTHERS]) for which in (model, again))
    assert before == after
    assert json.loads((tmp_path / "config.json").read_text())["winnow"]["network"] == "bilstm"
    (tmp_path / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(ModelError, match="not a complete tagger"):
        bilstm.load(tmp_path)


def test_vectors_are_looked_up_as_written_or_lower_cased() -> None:
    vectors = Vectors(words=("rome", "Ada", "Paris"), values=np.arange(12, dtype=np.float32).reshape(3, 4))
    vocabulary = build_vocabulary(ROWS, vectors)
    lookup = vocabulary.lookup()
    words = WordVectors(vocabulary, 4, vectors).eval()
    found = words(torch.tensor([[lookup["Rome"], lookup["Ada"], lookup["Paris"], UNKNOWN]]))[0]
    assert found[:3].tolist() == vectors.values.tolist()
    assert "Paris" in vocabulary.further
    found.sum().backward()
    assert words.kept.grad is None
    assert words.trained.weight.grad is not None


def test_word_without_a_vector_uses_the_vector_of_its_longest_part() -> None:
    values = np.arange(8, dtype=np.float32).reshape(2, 4)
    texts = [replace(sentence("x"), tokens=tokens) for tokens in (("Rome-born", "U.S."), ("pre-Rome", "Rome-like"))]
    rules: dict[Tokens, bool] = {"words": True, "blanks": False}
    for rule, known in rules.items():
        vectors = Vectors(words=("rome", "S"), values=values, tokens=rule)
        network = BiLstmTagger(["X"], "crf", SMALL, [build_vocabulary(texts[:1], vectors)], vectors=[vectors]).eval()
        words = network.towers[0].get_submodule("words")(network.features(texts)["words"])
        assert (words[0, 0].tolist() == values[0].tolist()) == known
        assert (words[1].tolist() == [values[0].tolist()] * 2) == known


def test_only_words_seen_once_are_dropped_in_training() -> None:
    rows = [sentence("often often once once2")]
    vocabulary = build_vocabulary(rows)
    words = WordVectors(vocabulary, 3)
    lookup = vocabulary.lookup()
    torch.manual_seed(0)
    drawn = torch.stack([words(torch.tensor([[lookup["often"], lookup["once"]]]))[0] for _ in range(60)])
    assert (drawn[:, 0] == words.trained.weight[lookup["often"]]).all()
    forgotten = (drawn[:, 1] == words.trained.weight[UNKNOWN]).all(1)
    assert 10 < int(forgotten.sum()) < 50
    words.eval()
    assert (words(torch.tensor([[lookup["once"]]]))[0, 0] == words.trained.weight[lookup["once"]]).all()


@torch.no_grad()
def test_char_cnn_equals_a_convolution_and_a_maximum() -> None:
    torch.manual_seed(0)
    network = CharCnn(2, 3, 2, (1, 2, 3), 0.0)
    letters = letter_indices(["abc", "a"], {"a": 2, "b": 3})
    assert letters.tolist() == [[2, 3, 1], [2, 0, 0]]
    for row, n in ((0, 3), (1, 1)):
        seen = network.letters(letters)[row, :n]
        padded = torch.cat([torch.zeros(1, 3), seen, torch.zeros(2, 3)])
        expected = []
        for width, layer in zip((1, 2, 3), network.convolutions, strict=True):
            starts = range(1 - width // 2, 1 - width // 2 + n)
            windows = [padded[start : start + width] for start in starts]
            assert isinstance(layer, nn.Conv1d)
            assert layer.bias is not None
            expected += [max(float((layer.weight[f].T * w).sum() + layer.bias[f]) for w in windows) for f in (0, 1)]
        assert network(letters)[row].tolist() == pytest.approx(expected, abs=1e-5)


def test_frozen_states_are_mixed_into_the_second_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="second BiLSTM"):
        tagger(replace(SMALL, layers=1, states="tiny"))
    model = tagger(replace(SMALL, states="tiny")).eval()
    frozen, second = model._states, model.get_submodule("towers.0.layers.1")
    assert frozen is not None
    assert model.mix is not None
    assert isinstance(second, BiLstm)
    assert second.ahead.input_size == 2 * SMALL.hidden + frozen.size
    part = model.features(ROWS)
    assert part["states"].shape == (3, 6, frozen.layers, frozen.size)
    assert not part["states"][2, 1:].any()
    before = model.emissions(part, (3, 6))
    with torch.no_grad():
        model.mix[0] += 5
    assert not torch.allclose(before, model.emissions(part, (3, 6)))
    assert not any(name.startswith("_states") for name in model.state_dict())
    inputs = frozen.pieces.tokenizer(list(ROWS[2].tokens), return_tensors="pt")
    hidden = frozen.model(**inputs, output_hidden_states=True).hidden_states
    assert torch.allclose(part["states"][2, 0], torch.stack(hidden)[:, 0, 1], atol=2e-3)
    alone = frozen.of(ROWS)
    monkeypatch.setattr(bilstm, "TOGETHER", {"cpu": 2})  # padded batches, as on a GPU
    assert torch.allclose(frozen.of(ROWS), alone, atol=2e-3)
    model.to("meta")
    assert frozen.model.device.type == model.device.type == "meta"  # the encoder moves with the tagger


def test_frozen_states_belong_to_the_tokens_of_a_sentence_and_not_to_its_id() -> None:
    """The sentences of a pasted text have no id, and two corpora may cut one text into different tokens."""
    model = tagger(replace(SMALL, states="tiny")).eval()
    pasted = [replace(row, id="") for row in ROWS]
    found = model.predict(pasted)
    assert [model.predict([row])[0].entities for row in pasted] == [each.entities for each in found]
    assert model._states
    one, other = model._states.of(
        [replace(ROWS[0], id=""), replace(ROWS[0], id="", tokens=("Eva", *ROWS[0].tokens[1:]))]
    )
    assert not torch.equal(one, other)
    (left, right) = (replace(ROWS[0], tokens=tokens) for tokens in (("U.S.", "law"), ("U", ".", "S", ".", "law")))
    assert [model.features([each])["states"].shape[1] for each in (left, right)] == [2, 5]
