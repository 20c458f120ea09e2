"""`finetune --network span`: from the command to the card, what it cannot find, and what it is refused."""

from typing import Any

import pytest

from core.corpora.library import Library
from core.errors import ConfigError
from core.experiment import results
from core.models.networks import ON_ENCODER
from core.projects import runs
from core.projects.home import home as home_of
from core.runs.run import Run
from core.tagging import calibrate, spans
from core.tagging import training_view as training
from core.tagging.estimate import Speed
from core.tagging.finetune import FinetuneConfig
from core.tagging.preflight import _finetune
from pages.ui.runs.words import title
from tests.conftest import Seal, sentence
from tests.training.test_finetune import labelled

LONG = [sentence("a b c d e f Px", [(0, 5, "LOC"), (6, 7, "PER")]), sentence("Lx and Lz met", [(0, 1, "LOC")])]
FAST = {"init": "tiny", "epochs": 3, "learning_rate": 3e-3, "head_learning_rate": 3e-2, "precision": "fp32"}
MINER = {"network": "span", "beta": 0.01, "gamma": 0.001}


@pytest.fixture
def parts(seal: Seal) -> dict[str, Any]:
    train, dev = (
        seal(labelled(n, seed) + LONG[:k], f"l{seed}", labelled=True) for n, seed, k in ((30, 1, 1), (12, 2, 0))
    )
    return {"train": train.fingerprint, "dev": dev.fingerprint, "test": (dev.fingerprint,), "seeds": (1,)}


def notes(run: Run) -> str:
    return " ".join(str(event.data.get("text")) for event in run.events(0)[0] if event.kind == "note")


def test_miner_from_the_options_to_the_card_and_back(parts: dict[str, Any]) -> None:
    run = runs.execute("finetune", {**FAST, **MINER, **parts, "lora": 4, "stages": "lpft", "context": 4})
    result = results.tuned(run.id)
    assert result.test
    assert result.too_long
    assert result.too_long.longer == {"train": 1, "dev": 0, "test": 0}
    share = f"{1 / result.too_long.of['train']:.1%}"
    assert result.ceiling_words == f"{share} of the spans in train are longer than 4 words and cannot be found."
    assert result.ceiling_words in notes(run)
    card = " ".join((run.artifacts / "model" / "README.md").read_text().split())
    for words in ("fine-tuned from `tiny`", "| beta | 0.01 |", "| gamma | 0.001 |", "its own", result.ceiling_words):
        assert words in card.replace("Winnow's own", "its own")
    for words in ("import pipeline", "vocabulary.json", "CRF", "| head |", "| constrained |"):
        assert words not in card
    assert all(text.startswith("python -m core predict") for text in training.loading(run.id).values())
    assert title(run) == "Fine-tune tiny as MINER on l1"
    again = runs.execute("evaluate", {"model": run.id, "test": parts["dev"]}).result()
    assert again["test"]["micro_f1"] == result.test.micro_f1
    runs.execute("predict", {"model": run.id, "corpus": parts["dev"]})
    (tagged,) = runs.listed("tag")
    assert (spans.read(tagged).records["end"] - spans.read(tagged).records["start"] <= 4).all()


def test_presets_are_those_of_its_authors(parts: dict[str, Any]) -> None:
    for preset in ("paper", "paper-bias"):
        settings = FinetuneConfig.parse({**parts, "network": "span", "preset": preset}).training(9)
        assert (settings.epochs, settings.batch_size, settings.learning_rate) == (30, 32, 1e-5)
        assert settings.head_learning_rate == 1e-5
    assert FinetuneConfig.parse({**parts, "network": "span"}).training(9).chain_learning_rate is None


def test_copies_are_read_too_and_take_their_time(parts: dict[str, Any]) -> None:
    speed = Speed(a=0.0, b=1.0, load=0.0, pieces=1.0)
    assert speed.of_network("span") == speed
    plain, miner = (
        _finetune(FinetuneConfig.parse({**parts, **own}), Library(home_of())).time(speed).most
        for own in ({"network": "span"}, MINER)
    )
    assert 1.5 * plain < miner < 2 * plain


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"beta": 0.1}, "beta, gamma: are of spans, and the network is encoder; choose span"),
        ({"network": "span", "layers": "mix"}, "layers: mix is of the network encoder"),
        ({"network": "span", "hidden": 9}, "network: vectors, skipgram, states and hidden are for bilstm and charcnn"),
    ],
)
def test_what_cannot_be_is_a_sentence(parts: dict[str, Any], options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        runs.execute("finetune", {**FAST, **parts, **options})


def test_a_machine_is_timed_with_it(parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "SECONDS", 0.001)
    timed = runs.execute(
        "calibrate", {"encoder": "tiny", "task": parts["dev"], "train": parts["train"], "network": "span"}
    )
    assert timed.result()["tagger"][1] > 0
    assert ON_ENCODER == ("encoder", "span")
