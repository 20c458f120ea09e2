"""The page Training without a browser: what it asks for, what it starts, and every state that a run can be in."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Element

from core import cards
from core.artifacts import evaluations
from core.artifacts.leaderboard import ExperimentResult
from core.facade import (
    choices,
    corpora,
    deliver,
    experiments,
    find_out,
    machine,
    prevalence,
    runs,
    selections,
    training,
)
from core.facade.home import home, store
from core.recipes.base import as_json, plan
from core.recipes.experiment.config import ExperimentConfig
from core.recipes.finetune import FinetuneConfig
from core.runs.data import Data
from core.runs.events import EventLog, Kind
from core.runs.store import Run
from core.shown import in_points
from core.stats.calibration import Abstaining, Calibration
from core.text.sentence import Entity, Sentence, sentence_id
from pages.ui.widgets import plain
from tests.conftest import Seal
from tests.finished import ARM_ROW, TIMED, fine_tuned, pretrained
from tests.pages.test_pages import commands_on, opened, texts

PAGE = "pages/5_Training.py"
ARMS = "training.experiment.arms"
Entry = tuple[Kind, Data]  # of a log

HERE: Entry = ("device", {"text": "cpu (2 threads), fp32", "machine": cards.machine()})
DEAD: Data = {"pid": 2**22 + 1, "created": 0.0}
SMALLER = "Start again with half the batch and accumulation"


def labelled(text: str) -> Sentence:
    tokens = tuple(text.split())
    entities = (Entity(start=0, end=1, type="PER"), Entity(start=2, end=3, type="<b>ORG</b>"))
    return Sentence(id=sentence_id(text), tokens=tokens, text=text, entities=entities)


@pytest.fixture
def parts(seal: Seal) -> dict[str, str]:
    """Every role given; {role: fingerprint}."""
    words = ["court", "contract", "goal", "league", "buyer", "seller", "clause", "match", "harbour", "river"]
    rng = np.random.default_rng(0)
    made = {
        "task": seal([f"The court of {i} signs the deed ." for i in range(40)], "my-task"),
        "domain": seal([f"In {i} the {' '.join(rng.choice(words, 7))} ended ." for i in range(60)], "my-domain"),
        **{
            role: seal([labelled(f"Ada{i} sues Corp{i} {role} .") for i in range(20)], f"my-{role}", labelled=True)
            for role in ("train", "dev", "test")
        },
    }
    for role, corpus in made.items():
        corpora.set_role(role, corpus.fingerprint)
    return corpora.roles()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Mapping[str, Any]]]:
    """What the page would have begun, registered but with nobody at work on it."""
    asked: list[tuple[str, Mapping[str, Any]]] = []

    def start(kind: str, options: Mapping[str, Any], *where: object, **others: object) -> str:
        asked.append((kind, options))
        return made(kind, **options).id

    monkeypatch.setattr(runs, "start", start)
    return asked


def made(kind: str, *, parent: str | None = None, **options: Any) -> Run:
    """A run that nobody has begun; it has no clock, so it waits for no worker."""
    recipe = runs.RECIPES[kind]
    wanted = plan(recipe, recipe.config.parse(options), home())
    run = store().create(**wanted.manifest(), parent=parent)
    run.launched_file.write_text("{}")
    return run


def tuned(parts: Mapping[str, str], *told: Entry, **options: Any) -> Run:
    """A fine-tuning with `told` in its log; what is left of it where `told` has no end."""
    chosen = {"train": parts["train"], "dev": parts["dev"], "init": "tiny", **options}
    run = made("finetune", **chosen)
    log(run, ("started", DEAD), *told)
    return run


def log(run: Run, *told: Entry) -> None:
    with EventLog(run.events_file) as events:
        for kind, data in told:
            events.append(kind, data)


def metric(name: str, value: float, step: int) -> Entry:
    return "metric", {"name": name, "value": value, "step": step}


POINTS = [
    *(metric("loss@1", 2 / step, step) for step in range(1, 41)),
    metric("learning_rate@1", 1e-4, 40),
    metric("tokens_per_second@1", 1234.0, 40),
    metric("dev_f1@1", 61.5, 20),
    metric("dev_f1/PER@1", 70.0, 20),
    metric("dev_f1/<b>ORG</b>@1", 50.0, 20),
    metric("dev_f1@1", 58.25, 40),
]


@pytest.fixture
def working() -> Iterator[Callable[[Run], None]]:
    """Somebody holds the run's lock."""
    held: list[Run] = []

    def work(run: Run) -> None:
        assert run.lock.acquire(run.id)
        held.append(run)

    yield work
    for run in held:
        run.lock.release()


def button(app: AppTest, label: str) -> Any:
    return next(button for button in app.button if button.label == label)


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


def charts(app: AppTest) -> dict[str, Any]:
    """{alt: chart}"""
    return {chart.proto.alt.split(" over ")[0]: chart for chart in app.get("vega_lite_chart")}


def metrics(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def widget(app: AppTest, key: str) -> Element:
    found = app.get_by_key(key)
    assert isinstance(found, Element)
    return found


def choose(app: AppTest, key: str, value: Any) -> AppTest:
    widget(app, key).set_value(value).run()
    assert not app.exception
    assert not app.error
    return app


# --- what to train ---


def test_an_empty_page_offers_the_samples() -> None:
    app = opened(PAGE)
    assert not app.exception
    assert not app.error
    assert "Open the legal sample" in labels(app)


def test_a_tagger_is_trained_on_the_corpora_in_their_parts(parts: dict[str, str], started: list[Any]) -> None:
    app = opened(PAGE)
    assert not app.exception
    assert not app.error
    assert "English, uncased" in next(each for each in app.selectbox if each.label == "Start from").options[0]
    choose(app, "training.finetune.seeds", "1, 2")
    assert "core finetune --train my-train --dev my-dev --test my-test --seed 1 --seed 2" in commands_on(app)[-1]
    choose(app, "training.finetune.preset", "paper-bias")
    [*_, command] = commands_on(app)
    assert "core finetune" in command
    assert "--preset paper-bias" in command
    choose(app, "training.finetune.preset", "quick")
    button(app, "Fine-tune").click().run()
    [(kind, options)] = started
    config = FinetuneConfig.parse(dict(options))
    assert (kind, config.seeds, config.preset, config.init) == ("finetune", (1, 2), "quick", "minilm")
    assert (config.train, config.dev, *config.test) == tuple(parts[role] for role in ("train", "dev", "test"))


def test_the_form_closes_over_what_was_begun(parts: dict[str, str], started: list[Any]) -> None:
    made("finetune", **finetune_of(parts))
    app = opened(PAGE)
    app.session_state["training.form"] = True  # opened by hand, to start another one
    app.run()
    assert app.expander[0].proto.expanded
    button(app, "Fine-tune").click().run()
    assert started
    assert app.expander[0].label == "What to train"
    assert not app.expander[0].proto.expanded


def test_a_tagger_is_tested_on_further_sets_each_once(parts: dict[str, str], started: list[Any]) -> None:
    app = choose(opened(PAGE), "training.finetune.also_test", [parts["dev"], parts["test"]])
    assert "--test my-test --test my-dev --seed" in commands_on(app)[-1]
    button(app, "Fine-tune").click().run()
    assert started[0][1]["test"] == (parts["test"], parts["dev"])


@pytest.mark.usefixtures("expert")
def test_custom_shows_every_option_and_empty_ones_stay_as_usual(parts: dict[str, str], started: list[Any]) -> None:
    app = choose(opened(PAGE), "training.finetune.preset", "custom")
    fields = runs.RECIPES["finetune"].config.model_fields
    asked_elsewhere = {"train", "dev", "test", "init", "seeds", "preset", "weights"}
    for name in fields.keys() - asked_elsewhere:
        assert app.get_by_key(f"training.finetune.{name}"), name
    choose(app, "training.finetune.learning_rate", "3e-5")
    choose(app, "training.finetune.epochs", 7)
    choose(app, "training.finetune.skipgram", "window=2, dimension = 30")
    button(app, "Fine-tune").click().run()
    config = FinetuneConfig.parse(dict(started[0][1]))
    assert (config.learning_rate, config.epochs, config.batch_size, config.constrained) == (3e-5, 7, None, None)
    assert config.skipgram == {"window": 2, "dimension": 30}
    for answer, constrained in (("no", False), ("yes", True)):
        choose(app, "training.finetune.constrained", answer)
        button(app, "Fine-tune").click().run()
        assert FinetuneConfig.parse(dict(started[-1][1])).constrained is constrained


@pytest.mark.usefixtures("expert")
def test_what_is_no_number_becomes_a_sentence(parts: dict[str, str], started: list[Any]) -> None:
    app = choose(opened(PAGE), "training.finetune.preset", "custom")
    widget(app, "training.finetune.learning_rate").set_value("fast").run()
    assert not app.exception
    assert "learning" in app.error[0].value
    assert not started


def test_an_encoder_is_trained_on_t_c_and_on_s_c_with_its_hand_edits(parts: dict[str, str], started: list[Any]) -> None:
    selected = {name: parts[name] for name in ("task", "domain")}
    select = runs.execute("select", {**selected, "strategy": "random", "budget": "20%"})
    untouched = selections.seal(select.id)
    assert untouched.fingerprint == select.result()["corpus"]
    out = selections.chosen(select.id).rows[:3]
    selections.edit(select.id, "remove", out)
    app = choose(opened(PAGE), "training.kind", "pretrain")
    picker = app.selectbox(key="training.selection")
    assert "3 removed by hand" in picker.options[1]
    choose(app, "training.selection", select.id)
    button(app, "Pre-train").click().run()
    [(kind, options)] = started
    task, chosen = options["corpora"]
    assert (kind, task) == ("pretrain", parts["task"])
    assert options["holdout"] == (parts["dev"], parts["test"])  # by their roles, unasked
    assert len(corpora.find(chosen)) == len(untouched) - 3
    assert corpora.find(chosen).origin["hand_edits"] == {"added": 0, "removed": 3}
    corpora.remove(chosen)
    assert selections.seal(select.id).fingerprint == chosen  # sealed again


def test_an_experiment_compares_what_is_chosen(parts: dict[str, str], started: list[Any]) -> None:
    app = choose(opened(PAGE), "training.kind", "experiment")
    choose(app, "training.experiment.arms", ["none", "random", "tapt", "knn"])
    choose(app, "training.experiment.budgets", "10%, 20%")
    choose(app, "training.experiment.repeat", "pipeline")
    choose(app, "training.experiment.claim", "tapt")
    choose(app, "training.experiment.looks", "2, 4")
    assert not any(shown.key == "training.start" for shown in app.button)
    assert "must be the number of seeds" in texts(app)
    choose(app, "training.experiment.looks", "2, 3")
    assert "core experiment --task my-task --domain my-domain --train my-train" in commands_on(app)[-1]
    button(app, "Start the experiment").click().run()
    [(kind, options)] = started
    assert kind == "experiment"
    config = ExperimentConfig.parse(dict(options))
    assert set(config.arms) >= {"none", "random", "tapt", "knn"}
    assert (config.budgets, config.seeds) == (("10%", "20%"), (1, 2, 3))
    assert (config.repeat, config.claim, config.looks, config.effect) == ("pipeline", "tapt", (2, 3), 1.0)


@pytest.fixture
def perplexity(parts: dict[str, str]) -> str:
    """A choice of seven sentences, made with options that are not the usual ones."""
    marks = {name: parts[name] for name in ("task", "domain")}
    how = {"strategy": "ngram-perplexity", "options": {"order": 2}, "keep": ["near_duplicate"]}
    return runs.execute("select", {**marks, **how, "budget": "7"}).id


def test_a_pre_training_begins_with_the_choice_and_what_was_picked_instead_stays(perplexity: str) -> None:
    app = choose(opened(PAGE), "training.kind", "pretrain")
    assert app.selectbox(key="training.selection").value == perplexity
    other = choices.keep(perplexity, "Another")
    choose(app, "training.selection", "")
    choices.take_up(other.id)
    assert app.run().selectbox(key="training.selection").value == ""
    assert choose(opened(PAGE), "training.kind", "pretrain").selectbox(key="training.selection").value == other.id


def test_an_experiment_begins_with_the_way_that_was_chosen_by_and_what_was_typed_stays(
    perplexity: str, started: list[Any]
) -> None:
    app = choose(opened(PAGE), "training.kind", "experiment")
    way = find_out.options()
    assert tuple(app.multiselect(key=ARMS).value) == way["arms"] == ("none", "random", "ngram-perplexity")
    assert app.text_input(key="training.experiment.budgets").value == "7"
    assert "with the options that your choice was made with" in texts(app)
    button(app, "Start the experiment").click().run()
    config = ExperimentConfig.parse(dict(started[0][1]))
    asked = ExperimentConfig.parse(way)
    for name in ("arms", "budgets", "strategies", "select", "seeds", "encoder"):
        assert getattr(config, name) == getattr(asked, name), name
    app = choose(opened(PAGE), "training.kind", "experiment")
    choose(app, ARMS, ["none", "random", "knn"])
    choose(app, "training.experiment.budgets", "20%")
    selections.keep_budget(perplexity, "9")  # in another window
    app.run()
    assert app.text_input(key="training.experiment.budgets").value == "20%"
    assert tuple(app.multiselect(key=ARMS).value) == ("none", "random", "knn")
    assert "your choice was made with" not in texts(app)
    button(app, "Start the experiment").click().run()
    config = ExperimentConfig.parse(dict(started[1][1]))
    assert (config.budgets, config.strategies, config.select) == (("20%",), {}, {})


@pytest.mark.usefixtures("expert")
def test_an_experiments_options_are_fields_in_words_and_what_is_typed_is_advanced(
    parts: dict[str, str], started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = made("pretrain", corpora=[parts["task"]], init="tiny")
    finish(before, pretrained(40, 90.5, 30.25, head_fitted=True))
    monkeypatch.setattr(deliver, "model_folder", {before.id: "tiny"}.__getitem__)
    app = choose(opened(PAGE), "training.kind", "experiment")
    arms = app.multiselect(key=ARMS)
    assert all(" (" in option for option in arms.options)  # words, and the name that results use
    assert len(arms.options) == len(set(arms.options))
    for field in ("fixed", "transductive"):
        choice = app.selectbox(key=f"training.experiment.{field}")
        kinds = get_args(runs.RECIPES["experiment"].config.model_fields[field].annotation)
        assert len(choice.options) == len(kinds)
        assert not set(kinds) & set(choice.options)
    keys = {field.key for field in app.number_input}
    assert not keys & {"training.experiment.draws", "training.experiment.cap_tokens"}  # nothing to draw, no source
    assert not any(":RATE" in (field.help or "") for field in (*app.multiselect, *app.number_input, *app.selectbox))
    for name, value in (("pretrain.epochs", 2), ("finetune.epochs", 6), ("finetune.batch_size", 16)):
        choose(app, f"training.experiment.{name}", value)
    choose(app, "training.experiment.train_sizes", "5, 10")
    choose(app, "training.experiment.draws", 2)
    choose(app, "training.experiment.fixed", "steps")
    choose(app, "training.experiment.axis", [before.id])
    choose(app, "training.experiment.typed.arms", "highc2low:30%, dataaug")
    choose(app, "training.experiment.typed", "finetune.patience=3")
    assert not app.exception
    button(app, "Start the experiment").click().run()
    [(kind, options)] = started
    assert kind == "experiment"
    config = ExperimentConfig.parse(dict(options))
    assert config.axis == ("encoder:tiny",)
    assert config.pretrain == {"epochs": 2}
    assert config.finetune == {"epochs": 6, "batch_size": 16, "patience": 3}
    assert (config.train_sizes, config.draws, config.fixed) == ((5, 10), 2, "steps")
    assert config.arms == ("none", "random", "classifier", "highc2low:30%", "dataaug")


def test_halves_that_are_swapped_are_their_own_t_c(parts: dict[str, str], started: list[Any]) -> None:
    app = choose(opened(PAGE), "training.kind", "experiment")
    app.checkbox(key="training.experiment.cross").check().run()
    choose(app, "training.experiment.labels", 5)
    choose(app, "training.experiment.cross.seeds", "1, 2, 3")
    assert "3 seeds leave one half untested" in texts(app)
    choose(app, "training.experiment.cross.seeds", "1, 2")
    assert "labelled sentences are tested, half by half" in texts(app)
    button(app, "Start the experiment").click().run()
    [(_, options)] = started
    config = ExperimentConfig.parse(dict(options))
    assert (config.cross, config.cross_train, config.cross_dev, config.task) == (True, 5, 0, "")
    assert "classifier" in config.arms


def test_what_there_is_to_choose_from_is_told_beside_what_is_asked_for(
    parts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prevalence, "before", lambda options: f"About 9; you ask for {list(options['budgets'])}.")
    app = choose(opened(PAGE), "training.kind", "experiment")
    choose(app, "training.experiment.budgets", "10%, 20%")
    assert "About 9; you ask for ['10%', '20%']." in [caption.value for caption in app.caption]


def test_few_seeds_are_told_what_they_could_show_at_best(parts: dict[str, str]) -> None:
    app = choose(opened(PAGE), "training.kind", "experiment")
    assert "With 3 seeds per variant this plan can detect gains of about" in texts(app)
    assert not [warning for warning in app.warning if "seeds per variant" in warning.value]
    choose(app, "training.experiment.seeds", "1, 2")
    [warning] = [warning.value for warning in app.warning if "seeds per variant" in warning.value]
    points = experiments.foresight({**parts, "seeds": (1, 2)}).points
    assert f"With 2 seeds per variant this plan can detect gains of about {in_points(points)}" in warning
    assert "This is assumed for" in warning


@pytest.mark.usefixtures("expert")
def test_word_vectors_of_elsewhere_are_read_and_then_picked(
    parts: dict[str, str], started: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far.vec").write_text("of 1 2\n")
    monkeypatch.setenv("WINNOW_DATA_DIRS", str(tmp_path))
    app = opened(PAGE)
    for name in ("gone.vec", "far.vec"):
        widget(app, "training.vectors.path").set_value(f"{tmp_path / name}")
        button(app, "Read the vectors").click().run()
        assert [error.value for error in app.error if "there is no such file" in error.value] or started
    [(kind, options)] = started
    runs.execute(kind, options)
    app = choose(opened(PAGE), "training.finetune.preset", "custom")
    assert "<td>far</td>" in texts(app)
    choose(app, "training.finetune.imported_vectors", "far")
    button(app, "Fine-tune").click().run()
    assert FinetuneConfig.parse(dict(started[-1][1])).imported_vectors == "far"
    choose(app, "training.kind", "experiment")
    choose(app, "training.experiment.imported_vectors", ["far"])
    assert "Word vectors of far (vectors:far)" in app.multiselect(key=ARMS).options


@pytest.mark.usefixtures("expert")
def test_an_experiment_of_sources_and_borrowed_labels(parts: dict[str, str], started: list[Any]) -> None:
    for role in ("task", "domain"):
        corpora.set_role(role, None)
    app = choose(opened(PAGE), "training.kind", "experiment")
    choose(app, "training.experiment.sources", [parts["domain"]])
    assert "Word vectors of my-domain (vectors:my-domain)" in app.multiselect(key=ARMS).options
    choose(app, "training.experiment.arms", ["tapt"])
    assert plain("arms: tapt reads the task text; give a task text") in texts(app)
    assert "Start the experiment" not in labels(app)
    choose(app, "training.experiment.arms", ["vectors:my-domain", "lm:my-domain"])
    choose(app, "training.experiment.also_test", [parts["dev"]])
    choose(app, "training.experiment.cap_tokens", "500")
    choose(app, "training.experiment.judge", "tiny")
    choose(app, "training.experiment.holdout", [parts["train"]])
    choose(app, "training.experiment.typed", "finetune.epochs 4")
    assert plain("finetune: 'epochs 4' is not NAME=VALUE") in texts(app)
    choose(app, "training.experiment.network", "bilstm")
    choose(app, "training.experiment.typed", "strategies.knn.neighbours=10\n")
    choose(app, "training.experiment.finetune.epochs", 4)
    button(app, "Start the experiment").click().run()
    [(kind, options)] = started
    assert kind == "experiment"
    config = ExperimentConfig.parse(dict(options))
    assert (config.task, config.network, config.also_test) == ("", "bilstm", (parts["dev"],))
    assert (config.cap_tokens, config.difficulty_encoder, config.holdout) == ((500,), "tiny", (parts["train"],))
    assert config.finetune == {"network": "bilstm", "epochs": 4}
    assert config.strategies == {"knn": {"neighbours": 10}}
    assert [str(cell) for cell in config.cells] == ["none", "states", "vectors:my-domain", "lm:my-domain"]


def test_what_is_missing_is_said_instead_of_a_start(seal: Seal) -> None:
    seal(["Only a sentence ."], "lonely")
    app = opened(PAGE)
    for kind in ("pretrain", "finetune", "experiment"):
        choose(app, "training.kind", kind)
        assert len(app.info) == 1
        assert not {"Pre-train", "Fine-tune", "Start the experiment"} & set(labels(app))


# --- before the start ---


def test_disk_is_not_spoken_of_where_none_is_taken(parts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As by `tiny`, which has no weights on disk."""
    assert "Disk, at most" in metrics(opened(PAGE))
    estimated = training.preflight("finetune", finetune_of(parts))
    monkeypatch.setattr(training, "preflight", lambda *_: replace(estimated, disk_gb=0.0))
    app = opened(PAGE)
    assert "Steps, at most" in metrics(app)
    assert "Disk, at most" not in metrics(app)


def test_an_unmeasured_machine_offers_to_be_measured(parts: dict[str, str], started: list[Any]) -> None:
    app = opened(PAGE)
    shown = metrics(app)
    assert shown["Steps, at most"] == f"{training.preflight('finetune', finetune_of(parts)).steps:,}"
    assert shown["Time, about"] == "not known yet"
    button(app, "Time this machine (under a minute)").click().run()
    [(kind, options)] = started
    assert (kind, options["encoder"], options["task"]) == ("calibrate", "minilm", parts["task"])


def finetune_of(parts: Mapping[str, str], **options: Any) -> dict[str, Any]:
    return {"train": parts["train"], "dev": parts["dev"], "test": [parts["test"]], "seeds": [1], **options}


def test_an_earlier_training_says_how_long_the_next_will_take(parts: dict[str, str]) -> None:
    tuned(parts, HERE, metric("tokens_per_second@1", 200.0, 1), ("cancelled", {}), init="minilm")
    told = training.preflight("finetune", finetune_of(parts))
    app = opened(PAGE)
    assert told.seconds is not None
    assert "200 pieces a second" in texts(app)
    assert "Time this machine (under a minute)" not in labels(app)
    assert training.preflight("finetune", finetune_of(parts, init="tiny")).seconds is None  # another encoder
    light = training.preflight("finetune", finetune_of(parts, lora=8))
    assert told.memory_gb is not None
    assert light.memory_gb is not None
    assert light.memory_gb < told.memory_gb  # neither gradients nor moments of the encoder's own weights


@pytest.mark.usefixtures("expert")
def test_who_has_timed_this_machine_once_sees_an_experiment_s_time_at_once(
    parts: dict[str, str], started: list[Any]
) -> None:
    app = choose(opened(PAGE), "training.kind", "experiment")
    assert "Time this machine (under a minute)" in labels(app)
    finish(made("calibrate", task=parts["dev"], train=parts["dev"]), TIMED)  # on other text
    app = choose(opened(PAGE), "training.kind", "experiment")
    assert metrics(app)["Time, about"] != "not known yet"
    assert "was timed on this machine" in texts(app)
    assert "Time this machine (under a minute)" not in labels(app)
    choose(app, "training.kind", "finetune")
    assert metrics(app)["Time, about"] != "not known yet"
    choose(app, "training.finetune.preset", "custom")
    choose(app, "training.finetune.network", "bilstm")  # which is another speed
    assert metrics(app)["Time, about"] == "not known yet"
    button(app, "Time this machine (under a minute)").click().run()
    [(kind, options)] = started
    assert (kind, options["network"]) == ("calibrate", "bilstm")


def test_a_processor_is_told_of_with_an_honest_time(parts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "device", lambda: "cpu")
    tuned(parts, HERE, metric("tokens_per_second@1", 1.0, 1), ("cancelled", {}), init="minilm")
    app = choose(opened(PAGE), "training.finetune.preset", "paper")
    assert any("No GPU here" in info.value and "made for a GPU" in info.value for info in app.info)


def test_too_little_memory_and_disk_are_said_before(parts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory", lambda: (1e6, 2e6))
    monkeypatch.setattr(machine, "disk", lambda: (1000, 2000))
    said = [warning.value for warning in opened(PAGE).warning]
    assert any("memory are free" in text for text in said)
    assert any("disk are free" in text for text in said)


# --- a run, in every state ---


def test_a_running_training_shows_its_curves(parts: dict[str, str], working: Callable[[Run], None]) -> None:
    run = tuned(parts, *POINTS, ("progress", {"done": 40, "total": 100, "unit": "steps"}))
    working(run)
    app = opened(PAGE)
    assert not app.exception
    assert not app.error
    assert set(charts(app)) == {"Training loss", "Score to decide by (dev F1)", "Learning rate", "Pieces a second"}
    assert metrics(app)["Best score to decide by (F1)"] == "61.5"
    assert f"Step 40 · {len(POINTS)} points" in texts(app)
    assert "40 of 100 steps" in app.get("progress")[0].proto.text
    assert "Stop and keep" in labels(app)
    assert "<b>ORG" not in texts(app)


def test_new_points_are_read_on(parts: dict[str, str], working: Callable[[Run], None]) -> None:
    run = tuned(parts, *POINTS)
    working(run)
    app = opened(PAGE)
    log(run, metric("loss@1", 0.01, 41))
    app.run()
    assert f"Step 41 · {len(POINTS) + 1} points" in texts(app)


def test_types_are_chosen(parts: dict[str, str]) -> None:
    run = tuned(parts, *POINTS)
    app = opened(PAGE)
    assert len(drawn(app)) == 2 + 1 + 1  # all types, PER and ORG
    choose(app, f"training.types.{run.id}", ["PER"])
    assert set(drawn(app)) == {"all types", "PER"}


def drawn(app: AppTest) -> list[str]:
    """The line of every point in the chart of F1."""
    [data] = charts(app)["Score to decide by (dev F1)"].proto.datasets
    return list(pa.ipc.open_stream(data.data.data).read_all()["line"].to_pylist())


def test_stop_asks_the_run_to_end(parts: dict[str, str], working: Callable[[Run], None]) -> None:
    run = tuned(parts, *POINTS)
    working(run)
    app = opened(PAGE)
    button(app, "Stop and keep").click().run()
    assert run.cancel_file.exists()
    assert button(app, "Stop and keep").disabled


def test_a_stopped_training_says_what_is_kept_and_goes_on(
    parts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tuned(parts, *POINTS, ("cancelled", {}))
    for name in ("checkpoints/seed-1/checkpoint-12/trainer_state.json", "artifacts/model/config.json"):
        (run.path / name).parent.mkdir(parents=True)
        (run.path / name).write_text("{}")
    resumed: list[str] = []
    monkeypatch.setattr(runs, "resume", lambda run_id, *where, agreed: resumed.append(run_id))
    app = opened(PAGE)
    said = texts(app)
    assert "Kept: the checkpoint of step 12, where Resume goes on" in said
    assert f"The best model so far is ready to use, in {plain(str(run.artifacts / 'model'))}" in said
    assert [badge.proto.body for badge in app.main.get("markdown") if "Cancelled" in badge.proto.body] == []
    assert any("Stopped" in element.value for element in app.markdown)
    assert set(charts(app)) >= {"Training loss", "Score to decide by (dev F1)"}
    button(app, "Resume").click().run()
    assert resumed == [run.id]


def test_a_training_stopped_before_its_first_checkpoint_does_not_claim_one(parts: dict[str, str]) -> None:
    tuned(parts, ("cancelled", {}))
    assert "No checkpoint was written yet: Resume begins this training anew" in texts(opened(PAGE))


@pytest.mark.parametrize(("accumulation", "then"), [(None, 2), (8, 16), (16, None)])
def test_out_of_memory_is_one_click_from_smaller_batches(
    parts: dict[str, str], started: list[Any], accumulation: int | None, then: int | None
) -> None:
    sentence = "run x: memory ran out; choose smaller batches or a smaller model, and start again."
    tuned(parts, *POINTS[:1], ("failed", {"error": sentence}), accumulation=accumulation, seeds=[7])
    app = opened(PAGE)
    assert plain(sentence) in app.error[0].value
    assert (SMALLER in labels(app)) == (then is not None)
    if then:
        button(app, SMALLER).click().run()
        [(kind, options)] = started
        assert (kind, options["accumulation"], options["batch_size"]) == ("finetune", then, None)
        assert tuple(options["seeds"]) == (7,)


def test_an_experiment_out_of_memory_takes_smaller_batches_in_the_stage_that_failed(parts: dict[str, str]) -> None:
    run = made("experiment", **parts, encoder="tiny", pretrain={"epochs": 2})
    child = made("pretrain", corpora=[parts["task"]], init="tiny", epochs=2, parent=run.id)
    log(run, ("started", DEAD), ("child", {"run": child.id}), ("failed", {"error": "memory ran out; smaller."}))
    found = training.halved(run.id)
    assert found is not None
    assert (found[0], found[1]["pretrain"]) == ("experiment", {"epochs": 2, "accumulation": 2})


def test_an_experiment_out_of_memory_in_b1_takes_smaller_batches_there(parts: dict[str, str]) -> None:
    options = {"method": "sampled"}
    arms = ("none", "random", "pseudo-perplexity")
    run = made("experiment", **parts, encoder="tiny", arms=arms, strategies={"pseudo-perplexity": options})
    sources = {name: parts[name] for name in ("task", "domain")}
    score = made("score", **sources, encoder="tiny", strategy="pseudo-perplexity", options=options, parent=run.id)
    child = made("pretrain", corpora=[parts["task"]], init="tiny", parent=score.id)
    log(run, ("started", DEAD), ("child", {"run": score.id}), ("failed", {"error": "memory ran out; smaller."}))
    log(score, ("started", DEAD), ("child", {"run": child.id}))
    found = training.halved(run.id)
    assert found is not None
    assert found[1]["strategies"] == {"pseudo-perplexity": {**options, "accumulation": 2}}
    assert found[1]["pretrain"] == {}


def test_a_dead_worker_is_told_with_its_last_words(parts: dict[str, str]) -> None:
    run = tuned(parts, *POINTS)
    run.log_file.write_text("\n".join(f"line {i} of the log" for i in range(100)))
    app = opened(PAGE)
    assert "without a word" in texts(app)
    shown = next(code.value for code in app.code if "of the log" in code.value)
    assert shown.splitlines() == [f"line {i} of the log" for i in range(70, 100)]
    assert next(expander for expander in app.expander if expander.label == "Notes and log").proto.expanded
    assert {"Resume", SMALLER} <= set(labels(app))


def test_a_finished_tagger_says_how_good_it_is_and_how_to_load_it(parts: dict[str, str]) -> None:
    run = tuned(parts, *POINTS)
    folder = run.artifacts / "model"
    folder.mkdir()
    (folder / "README.md").write_text("---\nlanguage: en\n---\n# A card of <img src=x>\n")
    by_type = {"<b>ORG</b>": 50.0, "PER": 70.0}
    finish(run, fine_tuned([60.0, 64.0], dev=[61.5, 60.0], model=str(folder), by_type=by_type))
    app = opened(PAGE)
    assert not app.exception
    assert not app.error
    assert metrics(app)["Test score (F1)"] == "62.0"
    code = [block.value for block in app.code]
    assert str(folder) in code
    assert any(f'pipeline("token-classification", {str(folder)!r}' in block for block in code)
    assert any("A card of <img src=x>" in block for block in code)
    assert "<img" not in texts(app)
    assert "<b>ORG" not in texts(app)
    assert "page Results" in " ".join(link.proto.label for link in app.get("page_link"))


def test_a_finished_tagger_says_what_each_decoding_and_each_least_confidence_gives(parts: dict[str, str]) -> None:
    run = tuned(parts, *POINTS)
    (run.artifacts / "model").mkdir()
    sure = Calibration(temperature=1.75, entities=90, right=0.5, confidence=0.52, before=0.163, after=0.021)
    result = fine_tuned([60.0, 64.0], dev=[61.5, 62.0], model=str(run.artifacts / "model"))
    first = replace(sure, before=0.4, after=0.3)
    dev = replace(result.dev, calibration=[first, sure])
    test = replace(
        result.tests[0],
        decodings={"viterbi": [55.5, 56.5], "constrained": [60.0, 64.0]},
        calibration=[first, sure],
        by_type={"PER": 70.0, "ORG": 50.0},
        intervals={"PER": (61.25, 77.5)},
        macro_f1=[58.0, 61.0],
    )
    row = Abstaining(least=0.8, entities=41, precision=87.5, recall=33.25, f1=48.2)
    evaluations.write_abstaining(run, evaluations.file_suffix("dev", 2), [row])  # of the seed that is best on dev
    finish(run, replace(result, dev=dev, test=test, tests=[test]))
    app = opened(PAGE)
    assert not app.exception
    said = texts(app)
    for part in ("Test score by how tags are decoded", "55.5, 56.5", "60.0, 64.0", "the best tags that BIOES allows"):
        assert part in said
    for part in ("0.163 as it came, 0.021 at the temperature 1.75", "0.80", "87.5", "33.2", "41"):
        assert part in said
    assert "seed 2, which was kept," in said
    assert "0.400 as it came" not in said
    for part in ("70.00 [61.2, 77.5]", "<td>50.00</td>", "Macro: the mean over types", "59.50"):
        assert part in said
    assert metrics(app)["Macro, all types alike"] == "59.5"


def test_a_tagger_that_learnt_nothing_is_said_to_have_learnt_nothing(parts: dict[str, str]) -> None:
    run = tuned(parts, *POINTS)
    (run.artifacts / "model").mkdir()
    finish(run, fine_tuned([60.0, 0.5], dev=[61.5, 0.0], model=str(run.artifacts / "model")))
    assert "Seed 2 learnt nothing" in texts(opened(PAGE))


def test_a_finished_encoder_says_what_reading_has_changed(parts: dict[str, str]) -> None:
    run = made("pretrain", corpora=[parts["task"]], init="tiny")
    log(
        run,
        ("started", DEAD),
        metric("loss", 4.0, 1),
        metric("dev_loss_task", 3.9, 1),
        metric("dev_loss_general", 5, 1),
    )
    finish(run, pretrained(40, 90.5, 30.25, head_fitted=True))
    app = opened(PAGE)
    assert not app.exception
    assert not app.error
    assert metrics(app)["after"] == "30.2"
    assert any("without a vocabulary head" in info.value for info in app.info)
    assert set(charts(app)) == {"Training loss", "Held-out loss"}


def finish(run: Run, result: object) -> None:
    run.result_file.write_text(json.dumps(as_json(result)))
    log(run, ("succeeded", {}))


def test_an_experiment_shows_the_training_at_work_and_then_its_verdicts(parts: dict[str, str]) -> None:
    run = made("experiment", **parts, encoder="tiny")
    children = [made("finetune", **finetune_of(parts, init="tiny", seeds=[seed]), parent=run.id) for seed in (1, 2)]
    begun: list[Entry] = [("child", {"run": child.id}) for child in children]
    log(run, ("started", DEAD), *begun)
    for child, loss in zip(children, (3.0, 2.0), strict=True):
        log(child, ("started", DEAD), metric("loss@1", loss, 1))
    app = opened(PAGE)
    assert metrics(app)["Loss"] == "2"
    choose(app, f"training.part.{run.id}", children[0].id)
    assert metrics(app)["Loss"] == "3"
    row = replace(ARM_ROW, arm="knn", budget="10%", mean=61.0, delta=1.5, why="<i>too few</i>")
    finish(run, ExperimentResult(leaderboard=[row], curve=[], hours={}))
    app = opened(PAGE)
    assert not app.exception
    assert "no evidence" in texts(app)
    assert "<i>too few" not in texts(app)
    assert app.selectbox(key=f"training.part.{run.id}").options[0] == "the last one"


def test_an_experiment_at_work_names_the_training_at_work(
    parts: dict[str, str], working: Callable[[Run], None]
) -> None:
    run = made("experiment", **parts, encoder="tiny")
    log(run, ("started", DEAD))
    working(run)
    assert opened(PAGE).selectbox(key=f"training.part.{run.id}").options[0] == "the one at work"


def test_a_second_training_says_what_it_waits_for(parts: dict[str, str], working: Callable[[Run], None]) -> None:
    first = tuned(parts, *POINTS)
    second = tuned(parts, ("note", {"text": "w", "waiting_for": first.id}), seeds=[9])
    working(first)
    working(second)
    app = opened(PAGE)  # the newer one is shown, the older one stands in the queue
    said = f"Waiting for **{plain('Fine-tune tiny on my-train')}**"
    assert said in texts(app)
    links = {link.proto.label: link.proto.query_string for link in app.get("page_link")}
    assert first.id in links["Show"]


def test_five_thousand_steps_are_drawn_in_two_thousand_points(parts: dict[str, str]) -> None:
    values = np.random.default_rng(0).normal(size=5_000).tolist()
    tuned(parts, *(metric("loss@1", value, step) for step, value in enumerate(values)))
    app = opened(PAGE)
    [data] = charts(app)["Training loss"].proto.datasets
    table = pa.ipc.open_stream(data.data.data).read_all()
    assert 500 < table.num_rows <= 2_000
    assert max(table["value"].to_pylist()) == max(values)


def test_the_page_never_loads_torch(parts: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import sys\nfrom streamlit.testing.v1 import AppTest\n"
        "app = AppTest.from_file('home.py', default_timeout=300).run().switch_page('pages/5_Training.py').run()\n"
        "for kind in ('pretrain', 'experiment'):\n"
        "    app.get_by_key('training.kind').set_value(kind).run()\n    assert not app.exception and not app.error\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=dict(os.environ), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().splitlines()[-1] == "[]"
