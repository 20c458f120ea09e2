"""`finetune --layers`: what the run leaves, what its card says of loading it without us, what is refused."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from core.corpora.corpus import Corpus
from core.errors import ConfigError
from core.models.taggers import load_tagger
from core.projects import runs
from core.tagging import evaluations
from core.tagging import training_view as training
from tests.conftest import Command
from tests.training.test_finetune import labelled

FAST = {"init": "tiny", "epochs": 3, "learning_rate": 3e-3, "head_learning_rate": 3e-2, "precision": "fp32"}


@pytest.fixture
def parts(seal: Callable[..., Corpus]) -> dict[str, str]:
    train, dev = (seal(labelled(n, seed), f"l{seed}", labelled=True) for n, seed in ((24, 1), (12, 2)))
    return {"train": train.fingerprint, "dev": dev.fingerprint}


def tuned(options: Mapping[str, object]) -> runs.Run:
    return runs.execute("finetune", {**FAST, **options, "seeds": (1,)})


def evaluated(run: runs.Run, parts: Mapping[str, str]) -> Any:
    return runs.execute("evaluate", {"model": run.id, "test": parts["dev"]}).result()


def test_a_mix_says_what_plain_loading_gives(parts: dict[str, str]) -> None:
    run = tuned({**parts, "layers": "mix"})
    outcome = evaluations.read_outcome(run, 1)
    assert outcome
    assert outcome.last_layer is not None
    assert 0 <= outcome.last_layer <= 100
    card = (run.artifacts / "model" / "README.md").read_text(encoding="utf-8")
    words = f"{outcome.dev.micro_f1:.2f} as it was trained, {outcome.last_layer:.2f} by the pipeline"
    assert words in " ".join(card.split())
    assert "| layers | mix |" in card
    assert "(`argmax` above, which reads the mix of layers too)" in " ".join(card.split())
    alone = next(what for what in training.loading(run.id) if what.startswith("With transformers"))
    assert f"and the mix of layers (score {outcome.last_layer:.1f} on" in alone
    tested = evaluated(run, parts)
    assert tested["test"]["micro_f1"] == [pytest.approx(outcome.dev.micro_f1)]


def test_neighbours_that_a_pipeline_does_not_read_are_named_beside_its_score(parts: dict[str, str]) -> None:
    run = tuned({**parts, "epochs": 1, "context": 4})
    alone = next(what for what in training.loading(run.id) if what.startswith("With transformers"))
    assert alone.endswith("on the dev set, reading the neighbouring sentences, which a pipeline does not)")
    card = " ".join((run.artifacts / "model" / "README.md").read_text(encoding="utf-8").split())
    assert "(`argmax` above, which reads neighbouring sentences too)" in card
    assert [note for note in run.state().notes if note.startswith("context: no training sentence says which document")]


def test_a_named_layer_is_a_plain_folder_by_lora_too(parts: dict[str, str]) -> None:
    light = {"lora": 4, "checkpointing": True, "stages": "lpft"}
    run = tuned({**parts, "layers": "1", **light})
    outcome = evaluations.read_outcome(run, 1)
    assert outcome
    assert outcome.last_layer is None
    model = run.artifacts / "model"
    assert json.loads((model / "config.json").read_text())["num_hidden_layers"] == 1
    card = (model / "README.md").read_text(encoding="utf-8")
    assert "## Layers" not in card
    assert "| lora | 4 |" in card
    assert "| checkpointing | true |" in card
    assert [note for note in run.state().notes if note.startswith("lora: is for encoders of 100 million")]
    tagger = load_tagger(Path(model), precision="fp32")
    assert tagger.tags
    assert not [name for name in load_file(model / "model.safetensors") if "lora" in name]
    tested = evaluated(run, parts)
    assert tested["test"]["micro_f1"] == [pytest.approx(outcome.dev.micro_f1)]  # B A is in what was written


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layers": "top"}, "layers: 'top' is not understood"),
        ({"layers": "mix", "network": "bilstm"}, "layers: mix is of an encoder, and bilstm has none"),
        ({"layers": "3"}, "layers: tiny has 2, so 3 is none of them"),
        ({"lora": "4", "network": "bilstm"}, "lora, checkpointing: are of an encoder, and bilstm has none"),
        ({"lora": "4", "layers": "reinit:1"}, "lora: leaves the layers that reinit:1 draws anew as they were drawn"),
    ],
)
def test_what_cannot_be_is_a_sentence(
    parts: dict[str, str], options: dict[str, str], words: str, command: Command
) -> None:
    given = {**FAST, **parts, **options}
    with pytest.raises(ConfigError, match=words):
        tuned(given)
    flags = [word for name, value in given.items() for word in (f"--{name}".replace("_", "-"), value)]
    code, _, err = command("finetune", *flags)
    assert code == 2
    assert words in err
