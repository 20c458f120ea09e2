"""Layers of the encoder that a tagger uses: mixed, removed, and reinitialised layers in several families."""

import json
from pathlib import Path

import pytest
import torch

from core.errors import ConfigError, ModelError
from core.models import hub
from core.models.networks import LayerChoice
from core.models.tagger import Tagger
from core.models.taggers import EncoderTagger, load_tagger, new_tagger
from core.text.sentence import Entity
from tests.conftest import sentence
from tests.models.test_families import save_random

TYPES = ["LOC", "PER"]
ROWS = [sentence("Bob met Ann in Rome", [(0, 1, "PER"), (4, 5, "LOC")]), sentence("a b c " * 30, [(0, 2, "PER")])]
OFTEN = ("BERT", "DistilBERT", "ModernBERT")
SELDOM = (pytest.param(name, marks=pytest.mark.full) for name in ("RoBERTa", "ELECTRA", "MPNet"))


@pytest.fixture(params=[*OFTEN, *SELDOM])
def init(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Save a random encoder with four layers; return its folder."""
    return str(save_random(request.param, tmp_path / request.param, layers=4))


def make(init: str, layers: str, seed: int = 1) -> EncoderTagger:
    torch.manual_seed(seed)
    return new_tagger(init, TYPES, layers=layers, max_length=32, precision="fp32", device="cpu").eval()


def states(tagger: EncoderTagger) -> tuple[torch.Tensor, ...]:
    """Return hidden states of the first sentence, beginning with the embeddings."""
    features = tagger.features(ROWS[:1])
    inputs = {"input_ids": features["ids"], "attention_mask": features["attention"]}
    with torch.no_grad():
        return tuple(tagger.model.base_model(**inputs, output_hidden_states=True).hidden_states)


@torch.no_grad()
def emissions(tagger: EncoderTagger) -> torch.Tensor:
    return tagger.emissions(tagger.features(ROWS[:1]), (1, len(ROWS[0].tokens)))


def entities(tagger: Tagger) -> list[tuple[Entity, ...]]:
    return [prediction.entities for prediction in tagger.predict(ROWS)]


@pytest.mark.parametrize("text", ["", "first", "0", "-1", "reinit", "reinit:0", "reinit:x", "1.5", "mix:2", "last "])
def test_unknown_layer_choice_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not understood; give last, mix, a layer's number"):
        LayerChoice.parse(text)


def test_missing_or_shared_layer_is_refused(tmp_path: Path) -> None:
    bert = str(save_random("BERT", tmp_path / "bert", layers=4))
    for layers in ("5", "reinit:5"):
        with pytest.raises(ConfigError, match="has 4 layers and no layer 5; give a number from 1 to 4"):
            make(bert, layers)
    albert = str(save_random("ALBERT", tmp_path / "albert", layers=4))
    with pytest.raises(ModelError, match="share one set of weights"):
        make(albert, "2")
    assert entities(make(albert, "mix")) is not None


def test_layer_number_gives_an_ordinary_smaller_encoder(init: str, tmp_path: Path) -> None:
    """Its states equal those of the whole encoder up to this layer, also after saving and loading."""
    whole, cut = make(init, "last"), make(init, "2")
    assert cut.model.config.num_hidden_layers == 2
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(states(whole)[:2], states(cut)[:2], strict=True))
    assert len(states(cut)) == 3
    assert torch.equal(emissions(make(init, "4")), emissions(whole))
    cut.write(tmp_path / "cut")
    again = load_tagger(tmp_path / "cut", device="cpu", precision="fp32")
    assert torch.equal(emissions(again), emissions(cut))  # type: ignore[arg-type]
    assert entities(again) == entities(cut)
    assert hub.load_model(str(tmp_path / "cut")).config.num_hidden_layers == 2
    assert whole.mix is None  # `last` adds no weights and no settings
    whole.write(tmp_path / "last")
    assert "layers" not in json.loads((tmp_path / "last" / "config.json").read_text())["winnow"]


def test_mix_equals_gamma_times_the_weighted_layers(init: str, tmp_path: Path) -> None:
    tagger = make(init, "mix")
    assert tagger.mix
    with torch.no_grad():
        tagger.mix.weights.copy_(torch.tensor([0.3, -1.0, 2.0, 0.0, 0.5]))
        tagger.mix.gamma.fill_(1.7)
    shares = torch.softmax(torch.tensor([0.3, -1.0, 2.0, 0.0, 0.5]), 0)
    features = tagger.features(ROWS[:1])
    inputs = {"input_ids": features["ids"], "attention_mask": features["attention"]}
    with torch.no_grad(), tagger.mix.off():
        layers = tagger.model.base_model(**inputs, output_hidden_states=True).hidden_states
        last = tagger.model.base_model(**inputs).last_hidden_state
    expected = 1.7 * sum(share * state for share, state in zip(shares, layers, strict=True))
    with torch.no_grad():
        mixed = tagger.model.base_model(**inputs, output_hidden_states=True).last_hidden_state
    assert torch.allclose(mixed, expected, atol=1e-5)
    assert not torch.allclose(mixed, last, atol=1e-2)
    tagger.write(tmp_path / "mix")
    again = load_tagger(tmp_path / "mix", device="cpu", precision="fp32")
    assert torch.equal(emissions(again), emissions(tagger))  # type: ignore[arg-type]
    assert entities(again) == entities(tagger)


def test_top_layers_are_reinitialised_by_seed(init: str) -> None:
    whole, other = make(init, "last"), make(init, "reinit:2", 2)
    one, again = (make(init, "reinit:2") for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(states(whole)[:2], states(one)[:2], strict=True))
    assert not torch.allclose(states(whole)[4], states(one)[4], atol=1e-3)
    assert torch.equal(emissions(one), emissions(again))
    assert not torch.allclose(states(one)[4], states(other)[4], atol=1e-4)
    assert torch.isfinite(emissions(one)).all()
