"""`finetune --first`: another corpus first. Held-out sentences, types, key, cost, errors, and resuming."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import torch

from core.corpora.library import Library
from core.errors import Cancelled, ConfigError, CorpusError
from core.experiment import results
from core.kind import plan
from core.kinds import KINDS
from core.models.taggers import load_tagger, new_tagger
from core.paths import home as home_of
from core.projects import runs
from core.projects.titles import title
from core.runs import Run, context
from core.runs.events import Event
from core.tagging import evaluations
from core.tagging import finetune as run_module
from core.tagging.config import FinetuneConfig
from core.tagging.estimate import Speed, _finetune
from core.text.sentence import Sentence
from core.training import finetune as training_loop
from core.training import first as first_module
from tests.conftest import Command, Seal, sentence
from tests.homes import executed
from tests.training.test_finetune import Killed, labelled, largest_difference

FAST = {"init": "tiny", "epochs": 3, "learning_rate": 3e-3, "head_learning_rate": 3e-2, "precision": "fp32"}
LEAK = "Pxx in the dev set says abc too"  # at least five words, so that the audit compares it
HELD_OUT = sentence(LEAK, [(0, 1, "PER")])


def theirs(n: int) -> list[Sentence]:
    """Return sentences of another corpus, which calls PER `person` and also labels verbs."""
    rows = [sentence(f"Pzyx{i} saw the river Lxyz{i} today", [(0, 1, "person"), (1, 2, "VERB")]) for i in range(n)]
    return [*rows, HELD_OUT]


@pytest.fixture
def parts(seal: Seal) -> dict[str, Any]:
    corpora = {"train": labelled(30, 1), "dev": [*labelled(12, 2), HELD_OUT], "theirs": theirs(19)}
    marks = {name: seal(rows, name, labelled=True).fingerprint for name, rows in corpora.items()}
    return {"train": marks["train"], "dev": marks["dev"], "first": marks["theirs"], "seeds": (1,), **FAST}


def tuned(parts: Mapping[str, object], **options: object) -> Run:
    return executed("finetune", {**parts, **options})


def test_held_out_sentences_are_left_out_and_types_are_renamed(
    parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, real = list[Sentence](), first_module.train_first

    def spy(made: object, train: list[Sentence], *rest: Any, **options: Any) -> object:
        read.extend(train)
        return real(made, train, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(first_module, "train_first", spy)
    run = tuned(parts, type_map=("person=PER",))
    assert len(read) == 19
    assert LEAK not in {row.text for row in read}
    assert {entity.type for row in read for entity in row.entities or ()} == {"PER", "VERB"}
    notes = " ".join(run.state().notes)
    assert "1 sentence of theirs is in held-out data and left out." in notes
    assert "the output weights of PER are reused; VERB only trains the encoder." in notes
    assert title(run) == "Fine-tune tiny on theirs, then train, no further pre-training"
    card = (run.artifacts / "model" / "README.md").read_text("utf-8")
    assert "| first | theirs | 20 |" in card
    assert "| first_epochs | 2 |" in card
    assert load_tagger(run.artifacts / "model").types == ("LOC", "PER")
    names = {event.data["name"] for event in run.events()[0] if event.kind == "metric"}
    assert {"first_loss@1", "first_dev_f1@1", "loss@1"} <= names


def test_encoder_of_the_second_training_is_that_of_the_first(
    parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare weights before the second training with those after the first, and with a tagger without it."""
    begun, ended = list[dict[str, torch.Tensor]](), list[Any]()
    real, real_first = run_module._train, first_module.train_first

    def train(config: Any, job: Any, splits: Any, tagger: Any, **options: Any) -> Any:
        begun.append({name: tensor.clone() for name, tensor in tagger.state_dict().items()})
        return real(config, job, splits, tagger, **options)

    def train_first(*rest: Any, **options: Any) -> Any:
        ended.append(real_first(*rest, **options))
        return ended[-1]

    monkeypatch.setattr(run_module, "_train", train)
    monkeypatch.setattr(first_module, "train_first", train_first)
    tuned(parts)
    tuned(parts, first="")
    (first,), (after, plain) = ended, begun
    assert list(first.types) == ["VERB", "person"]
    body = [name for name in plain if not name.startswith(("crf.", "model.classifier."))]
    assert all(torch.equal(after[name], first.weights[name]) for name in body)
    assert not all(torch.equal(after[name], plain[name]) for name in body)
    last = "model.classifier.weight"
    assert torch.equal(after[last][0], first.weights[last][0])  # the tag O
    assert torch.equal(after[last][1:], plain[last][1:])  # no type is in both corpora


def test_options_that_save_memory_apply_to_both_trainings(
    parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With LoRA, the encoder's own weights are frozen until the end of a training, when the products are added."""
    taggers, settings, ended = list[Any](), list[Any](), list[Any]()
    real, real_first = training_loop.finetune, first_module.train_first

    def finetune(tagger: Any, train: Any, dev: Any, asked: Any, **options: Any) -> Any:
        taggers.append({name for name, weight in tagger.named_parameters() if weight.requires_grad})
        settings.append(asked)
        return real(tagger, train, dev, asked, **options)

    def train_first(*rest: Any, **options: Any) -> Any:
        ended.append(real_first(*rest, **options))
        return ended[-1]

    monkeypatch.setattr(first_module, "finetune", finetune)
    monkeypatch.setattr(training_loop, "finetune", finetune)
    monkeypatch.setattr(first_module, "train_first", train_first)
    run = tuned(parts, lora=4, checkpointing=True, accumulation=2)
    first, second = taggers
    body = {name for name in first if name.startswith("model.bert.")}
    assert body
    assert all("lora" in name for name in body)
    assert body == {name for name in second if name.startswith("model.bert.")}
    assert [asked.accumulation for asked in settings] == [2, 2]
    assert [(asked.epochs, asked.last) for asked in settings] == [(2, True), (3, False)]
    assert not [name for name in ended[0].weights if "lora" in name]
    plain = new_tagger("tiny", ["VERB", "person"], precision="fp32").state_dict()
    layers = [name for name in plain if name.endswith("attention.self.query.weight")]
    assert not any(torch.equal(ended[0].weights[name], plain[name]) for name in layers)
    assert results.tuned(run.id).dev


def test_every_option_of_the_first_training_changes_the_key(parts: dict[str, Any]) -> None:
    def key(**options: object) -> str:
        return plan(KINDS["finetune"], FinetuneConfig.parse({**parts, **options}), home_of()).key

    keys = {key(), key(first=""), key(first=parts["train"]), key(first_epochs=3), key(type_map=("person=PER",))}
    assert len(keys) == 5
    assert key(type_map=("b=2", "a=1")) == key(type_map=("a = 1", "b=2"))


def test_estimate_counts_the_tokens_of_the_first_training(parts: dict[str, Any]) -> None:
    speed, library = Speed(a=0.0, b=1.0, load=0.0, pieces=1.0), Library(home_of())
    tokens = {name: library.find(parts[name]).n_tokens for name in ("first", "dev")}

    def work(**options: object) -> Any:
        return _finetune(FinetuneConfig.parse({**parts, "epochs": None, **options}), library)

    plain, two, seeds = work(first="", seeds=(1, 2)), work(), work(seeds=(1, 2), first_epochs=5)
    for way in ("expected", "most"):
        once, alone = (getattr(each.time(speed), way) for each in (two, work(first="")))
        assert once - alone == pytest.approx(2 * (tokens["first"] + tokens["dev"] / 3))  # dev: a forward pass
        more, twice = (getattr(each.time(speed), way) for each in (seeds, plain))
        assert more - twice == pytest.approx(2 * 5 * (tokens["first"] + tokens["dev"] / 3))
    assert two.steps - work(first="").steps == 2 * 2  # two epochs, each with batches of 16 and 4 sentences


@pytest.mark.parametrize("stage", ["first", "second"])
def test_a_killed_run_ends_with_the_same_tagger(
    parts: dict[str, Any], stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**parts, "type_map": ("person=PER",), "seeds": (1, 2)}
    calm = executed("finetune", options)
    again = {**options, "max_length": 250}  # another key, and the same training, because all sentences are shorter
    module, name = (first_module, "finetune") if stage == "first" else (run_module, "_train")
    real, calls = getattr(module, name), list[int]()

    def killed(*rest: Any, **own: Any) -> Any:
        calls.append(own["seed"])
        if own["seed"] == 2 and calls.count(2) == 1:
            raise Killed
        return real(*rest, **own)

    monkeypatch.setattr(module, name, killed)
    with pytest.raises(Killed):
        executed("finetune", again)
    run = executed("finetune", again)
    assert calls == [1, 2, 2]
    taggers = [load_tagger(each.artifacts / "model") for each in (calm, run)]
    assert largest_difference(*taggers) == 0.0
    for seed in (1, 2):
        ours, others = (evaluations.read_outcome(each, seed) for each in (calm, run))
        assert ours
        assert others
        assert ours.dev_epochs == others.dev_epochs
    assert not list(run.checkpoints.glob("seed-*"))


def stopped_at(metric: str, options: Mapping[str, object]) -> Run:
    """Start a fine-tuning, cancel it when it reports a metric, and return the run."""

    def stop(event: Event) -> None:
        if event.kind == "metric" and event.data["name"] == metric:
            runs.cancel(runs.listed("finetune")[0].id)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(context, "CHECK_SECONDS", 0.0)  # so that the next step sees the request
        with pytest.raises(Cancelled):
            runs.execute("finetune", options, stop)
    [run] = runs.listed("finetune")
    assert run.state().state == "cancelled"
    return run


@pytest.mark.parametrize("metric", ["first_dev_f1@1", "loss@1"])
def test_a_run_that_is_stopped_keeps_the_tagger_of_the_first_training(parts: dict[str, Any], metric: str) -> None:
    """Stop after the first of two epochs on the other corpus, and on the training set before its first epoch ends."""
    kept = stopped_at(metric, parts)
    notes = " ".join(kept.state().notes)
    assert "the tagger of the first training, on theirs, with the types VERB and person, seed 1, is kept in" in notes
    assert load_tagger(kept.artifacts / "model").types == ("VERB", "person")
    assert tuned(parts).id == kept.id
    assert load_tagger(kept.artifacts / "model").types == ("LOC", "PER")


def test_first_corpus_that_cannot_be_learnt_from_is_refused(parts: dict[str, Any], seal: Seal) -> None:
    with pytest.raises(
        ConfigError, match=r"first: needs a network with an encoder, and bilstm has none; choose the network enc"
    ):
        tuned(parts, network="bilstm")
    with pytest.raises(CorpusError, match="theirs without held-out sentences: no sentence contains an entity, so no"):
        tuned(parts, type_map=("person=", "VERB="))
    with pytest.raises(CorpusError, match="dev: every sentence is in held-out data"):
        tuned(parts, first=parts["dev"])
    with pytest.raises(ConfigError, match="type_map: 'person' is not OLD=NEW"):
        tuned(parts, type_map=("person",))
    with pytest.raises(ConfigError, match="type_map: renames types of the corpus `first`, which is missing"):
        tuned(parts, first="", type_map=("person=PER",))
    text = seal(["Nobody labelled this text ."], "text").fingerprint
    with pytest.raises(CorpusError, match="text: is not labelled"):
        tuned(parts, first=text)


def test_command_trains_on_another_corpus_first(parts: dict[str, Any], command: Command) -> None:
    words = ["--train", "train", "--dev", "dev", "--first", "theirs", "--first-epochs", "1", "--type-map", "person=PER"]
    code, printed, _ = command("finetune", *words, "--init", "tiny", "--seeds", "1", "--epochs", "1", "--json")
    assert code == 0
    config = runs.get(json.loads(printed)["run"]).manifest.config
    assert (config["first"], config["first_epochs"], config["type_map"]) == (parts["first"], 1, ["person=PER"])
