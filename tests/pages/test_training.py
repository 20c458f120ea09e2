"""The page Training: its form, the runs that it starts, and a run in each of its states."""

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Element

from core import cards
from core import shown_command as commands
from core.dictionary.view import add_list
from core.experiment import deliver, find_out
from core.experiment import view as experiments
from core.experiment.config import ExperimentConfig
from core.experiment.result import ExperimentResult
from core.importing import view as corpora
from core.kind import as_json, plan
from core.kinds import KINDS
from core.labelling import view as labelling
from core.paths import home
from core.projects import machine, runs
from core.projects.home import store
from core.runs.events import Data, EventKind, EventLog
from core.runs.store import Run
from core.selection import choices
from core.selection import prevalence_view as prevalence
from core.selection import view as selections
from core.shown import in_points
from core.stats.calibration import Abstaining, Calibration
from core.stats.more_labels import LEAST
from core.tagging import evaluations, watched
from core.tagging import view as training
from core.tagging.config import FinetuneConfig
from core.text.sentence import Entity, Prediction, Sentence, sentence_id
from pages.ui.training import variants
from pages.ui.training.live import NO_MODEL
from pages.ui.widgets import plain
from tests import finished
from tests.conftest import Seal, sentence
from tests.fake_models import ready_model
from tests.finished import ARM_ROW, TIMED, fine_tuned, pretrained
from tests.pages.drawing import codes, keys, opened, press, seen, select, texts

PAGE = "pages/5_Training.py"
ARMS = "training.experiment.arms"
Entry = tuple[EventKind, Data]  # of a log
Parts = dict[str, str]
Started = list[tuple[str, Mapping[str, Any]]]

HERE: Entry = ("device", {"text": "cpu (2 threads), fp32", "machine": cards.machine()})
DEAD: Data = {"pid": 2**22 + 1, "created": 0.0}
SMALLER = "Start again with half the batch size and gradient accumulation"


def labelled(text: str) -> Sentence:
    tokens = tuple(text.split())
    entities = (Entity(start=0, end=1, type="PER"), Entity(start=2, end=3, type="<b>ORG</b>"))
    return Sentence(id=sentence_id(text), tokens=tokens, text=text, entities=entities)


@pytest.fixture
def parts(seal: Seal) -> dict[str, str]:
    """Fill every role with a corpus; return {role: fingerprint}."""
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
    """Return the list of what the page starts, as (kind, options). Runs are registered, but no worker runs them."""
    runs_started: list[tuple[str, Mapping[str, Any]]] = []

    def start(kind: str, options: Mapping[str, Any], *where: object, **others: object) -> str:
        runs_started.append((kind, options))
        return made(kind, **options).id

    monkeypatch.setattr(runs, "start", start)
    return runs_started


def made(kind: str, *, parent: str | None = None, **options: Any) -> Run:
    """Register a run without a worker. The file of its launch has no time, so the run does not wait for a worker."""
    recipe = KINDS[kind]
    wanted = plan(recipe, recipe.config.parse(options), home())
    run = store().create(**wanted.manifest(), parent=parent)
    run.launched_file.write_text("{}")
    return run


def tuned(parts: Mapping[str, str], *entries: Entry, **options: Any) -> Run:
    """Register a fine-tuning with the log entries `entries`. Without a final entry, its worker counts as dead."""
    chosen = {"train": parts["train"], "dev": parts["dev"], "init": "tiny", **options}
    run = made("finetune", **chosen)
    log(run, ("started", DEAD), *entries)
    return run


def log(run: Run, *entries: Entry) -> None:
    with EventLog(run.events_file) as events:
        for kind, data in entries:
            events.append(kind, data)


def metric(name: str, value: float, step: int) -> Entry:
    return "metric", {"name": name, "value": value, "step": step}


POINTS = [
    *(metric("loss@1", 2 / step, step) for step in range(1, 41)),
    metric("learning_rate@1", 1e-4, 40),
    metric("grad_norm@1", 3.5, 40),
    metric("tokens_per_second@1", 1234.0, 40),
    metric("dev_f1@1", 61.5, 20),
    metric("dev_f1/PER@1", 70.0, 20),
    metric("dev_f1/<b>ORG</b>@1", 50.0, 20),
    metric("dev_f1@1", 58.25, 40),
]


@pytest.fixture
def working() -> Iterator[Callable[[Run], None]]:
    """Hold the lock of a run, as its worker does."""
    held: list[Run] = []

    def work(run: Run) -> None:
        assert run.lock.acquire(run.id)
        held.append(run)

    yield work
    for run in held:
        run.lock.release()


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


def charts(app: AppTest) -> dict[str, Any]:
    """Return {alternative text: chart}."""
    return {chart.proto.alt.split(" over ")[0]: chart for chart in app.get("vega_lite_chart")}


def metrics(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def widget(app: AppTest, key: str) -> Element:
    found = app.get_by_key(key)
    assert isinstance(found, Element)
    return found


def choose(app: AppTest, *chosen: tuple[str, Any]) -> AppTest:
    """Set fields by their keys, then draw the page once."""
    for key, value in chosen:
        widget(app, key).set_value(value)
    app.run()
    assert not app.error
    return app


def start(app: AppTest, *chosen: tuple[str, Any]) -> AppTest:
    """Set fields by their keys and press Train."""
    for key, value in chosen:
        widget(app, key).set_value(value)
    return press(app, "training.start")


def offers_start(app: AppTest) -> bool:
    return "training.start" in keys(app)


EXPERIMENT = {"training.kind": "experiment"}


# --- what to train ---


def test_tagger_is_trained_on_the_corpora_of_the_roles_with_the_chosen_options(parts: Parts, started: Started) -> None:
    made("finetune", **finetune_of(parts))
    tests = {"training.finetune.also_test": [parts["dev"], parts["test"]]}
    form = {"training.form": True, "training.command": True, "training.finetune.seeds": "1, 2", **tests}
    app = opened(PAGE, {**form, "training.finetune.preset": "quick"})  # the form is open to start another training
    assert "core finetune --train my-train --dev my-dev --test my-test --test my-dev --seed 1" in " ".join(codes(app))
    start(app)
    [(kind, options)] = started
    config = FinetuneConfig.parse(dict(options))
    assert (kind, config.seeds, config.preset, config.init) == ("finetune", (1, 2), "quick", "minilm")
    assert (config.train, config.dev, *config.test) == tuple(parts[role] for role in ("train", "dev", "test", "dev"))
    assert not app.expander[0].proto.expanded  # the form closes to make room for the run


def test_a_test_set_from_another_window_is_left_out_of_pretraining_too(
    parts: Parts, started: Started, seal: Seal
) -> None:
    app = opened(PAGE, {"training.kind": "pretrain"})
    new = seal([labelled("Ada1 hires Corp9 today .")], "new test", labelled=True).fingerprint
    corpora.set_role("test", new)
    start(app.run())
    assert started[0][1]["holdout"] == (parts["dev"], new)


def test_page_names_the_folder_of_a_model_only_if_it_exists(home: Path) -> None:
    """A project is usually exported without its models."""
    run = finished.tuned(home, finished.corpora(home), "tiny", 0.6)
    folder = run.artifacts / "model"
    assert str(folder) in codes(opened(PAGE, run=run.id))
    shutil.rmtree(folder)
    app = opened(PAGE, run=run.id)
    assert NO_MODEL in [info.value for info in app.info]
    assert str(folder) not in " ".join(codes(app))
    assert metrics(app)["Test score (F1)"]


def test_a_wrong_entry_in_the_form_does_not_hide_the_run(parts: Parts, started: Started) -> None:
    tuned(parts, ("cancelled", {}))
    app = opened(PAGE, {"training.form": True, "training.finetune.seeds": "one"})
    assert "seeds" in app.error[0].value
    assert "training.start" not in keys(app)
    assert "training.run.resume" in keys(app)


def test_tagger_can_be_trained_on_other_labels_first(parts: Parts, started: Started, seal: Seal) -> None:
    other = seal([labelled("Ada1 hires Corp9 today .")], "other <b>", labelled=True).fingerprint
    typed = {"first": other, "first_epochs": 3, "type_map": "PER=person, ORG="}
    app = opened(PAGE, {f"training.finetune.{name}": value for name, value in typed.items()})
    assert parts["task"] not in widget(app, "training.finetune.first").options
    steps = metrics(app)["Steps, at most"]
    start(app)
    config = FinetuneConfig.parse(dict(started[0][1]))
    assert (config.first, config.first_epochs, config.type_map) == (other, 3, ("ORG=", "PER=person"))
    plain_steps = metrics(opened(PAGE, {"training.form": True}))["Steps, at most"]
    assert int(steps) == int(plain_steps) + 3


@pytest.mark.usefixtures("expert")
def test_custom_preset_shows_every_option_and_keeps_the_default_of_empty_fields(parts: Parts, started: Started) -> None:
    app = opened(PAGE, {"training.finetune.preset": "custom"})
    fields = KINDS["finetune"].config.model_fields
    asked_elsewhere = {"train", "dev", "test", "init", "seeds", "preset", "weights"}
    for name in fields.keys() - asked_elsewhere:
        assert app.get_by_key(f"training.finetune.{name}"), name
    typed = {"learning_rate": "3e-5", "epochs": 7, "skipgram": "window=2, dimension = 30", "constrained": "no"}
    start(app, *((f"training.finetune.{name}", value) for name, value in typed.items()))
    config = FinetuneConfig.parse(dict(started[0][1]))
    assert (config.learning_rate, config.epochs, config.batch_size, config.constrained) == (3e-5, 7, None, False)
    assert config.skipgram == {"window": 2, "dimension": 30}
    widget(app, "training.finetune.learning_rate").set_value("fast").run()
    assert "learning" in app.error[0].value
    assert len(started) == 1
    start(opened(PAGE, {"training.form": True, "training.finetune.dev_every": 50}))
    config = FinetuneConfig.parse(dict(started[-1][1]))
    assert (config.preset, config.dev_every) == ("quick", 50)


def test_pretraining_uses_the_task_corpus_and_the_edited_selection(parts: Parts, started: Started) -> None:
    run_id = select("ngram-perplexity", "12", options={"order": 2}, keep=["near_duplicate"])
    untouched = selections.seal(run_id)
    assert untouched.fingerprint == runs.get(run_id).result()["corpus"]
    selections.edit(run_id, "remove", selections.chosen(run_id).rows[:3])
    app = opened(PAGE, {"training.kind": "pretrain"})
    picker = app.selectbox(key="training.selection")
    assert (picker.value, "3 removed by hand" in " ".join(picker.options)) == (run_id, True)
    start(app)
    [(kind, request)] = started
    task, chosen = request["corpora"]
    assert (kind, task) == ("pretrain", parts["task"])
    assert request["holdout"] == (parts["dev"], parts["test"])  # filled in from the roles
    assert len(corpora.find(chosen)) == len(untouched) - 3
    assert corpora.find(chosen).origin["hand_edits"] == {"added": 0, "removed": 3}
    corpora.remove(chosen)
    assert selections.seal(run_id).fingerprint == chosen  # sealed again
    choose(app, ("training.selection", ""))
    choices.take_up(choices.keep(run_id, "Another").id)
    assert app.run().selectbox(key="training.selection").value == ""  # a choice made on this page stays

    app = opened(PAGE, EXPERIMENT)  # an experiment starts from the options of the selection
    way = find_out.options()
    assert tuple(app.multiselect(key=ARMS).value) == way["arms"] == ("none", "random", "ngram-perplexity")
    start(app)
    config, wanted = (ExperimentConfig.parse(dict(each)) for each in (started[-1][1], way))
    for name in ("arms", "budgets", "strategies", "select", "seeds", "encoder"):
        assert getattr(config, name) == getattr(wanted, name), name


def test_experiment_options_stay_as_typed_when_the_selection_changes(parts: Parts, started: Started) -> None:
    run_id = select("ngram-perplexity", "7", options={"order": 2}, keep=["near_duplicate"])
    app = opened(PAGE, EXPERIMENT)
    typed = {"arms": ["none", "random", "tapt", "knn"], "budgets": "10%, 20%", "repeat": "pipeline"}
    choose(app, *((f"training.experiment.{name}", value) for name, value in typed.items()))
    selections.keep_budget(run_id, "9")  # in another window
    choose(app, ("training.experiment.claim", "tapt"), ("training.experiment.looks", "2, 4"))
    assert not offers_start(app)  # an interim analysis needs as many seeds as it names
    start(choose(app, ("training.experiment.looks", "2, 3")))
    config = ExperimentConfig.parse(dict(started[0][1]))
    assert set(config.arms) == {"none", "random", "tapt", "knn"}
    assert (config.budgets, config.seeds, config.strategies, config.select) == (("10%", "20%"), (1, 2, 3), {}, {})
    assert (config.repeat, config.claim, config.looks, config.effect) == ("pipeline", "tapt", (2, 3), 1.0)


@pytest.mark.usefixtures("expert")
def test_experiment_takes_options_from_fields_and_from_typed_lines(
    parts: Parts, started: Started, monkeypatch: pytest.MonkeyPatch, seal: Seal
) -> None:
    names = seal([labelled("Ada1 sues Corp9 again .")], "names", labelled=True).fingerprint
    before = made("pretrain", corpora=[parts["task"]], init="tiny")
    finish(before, pretrained(40, 90.5, 30.25, head_fitted=True))
    monkeypatch.setattr(deliver, "model_folder", {before.id: "tiny"}.__getitem__)
    app = opened(PAGE, {**EXPERIMENT, "training.experiment.train_sizes": "5, 10"})
    for field in ("fixed", "transductive"):
        kinds = get_args(KINDS["experiment"].config.model_fields[field].annotation)
        assert len(app.selectbox(key=f"training.experiment.{field}").options) == len(kinds)
    typed = {
        "pretrain.epochs": 2,
        "finetune.epochs": 6,
        "draws": 2,
        "taggers": 3,
        "dictionary": [names],
        "transfer": [names],
        "fixed": "steps",
        "axis": [before.id],
        "typed.arms": "highc2low:30%, dataaug, none+dictionary",
        "typed": "finetune.patience=3",
    }
    start(app, *((f"training.experiment.{name}", value) for name, value in typed.items()))
    [(kind, options)] = started
    config = ExperimentConfig.parse(dict(options))
    assert (kind, config.axis, config.pretrain) == ("experiment", ("encoder:tiny",), {"epochs": 2})
    assert config.finetune == {"epochs": 6, "patience": 3}
    assert (config.train_sizes, config.draws, config.fixed) == ((5, 10), 2, "steps")
    assert (config.taggers, config.dictionary, config.transfer) == (3, (names,), (names,))
    choose(app, ("training.experiment.transfer_epochs", 4))
    assert "The labels of names first, then your own (transfer:names)" in widget(app, f"{ARMS}.labels").options
    assert config.arms == ("none", "random", "classifier", "highc2low:30%", "dataaug", "none+dictionary")


def test_a_variant_that_lacks_something_is_named_and_leaves_the_other_times(
    parts: Parts, started: Started, monkeypatch: pytest.MonkeyPatch, seal: Seal
) -> None:
    names = seal([sentence("Acme pays .", [(0, 1, "ORG")])], "names", labelled=True).fingerprint
    asked: list[tuple[str, ...]] = []

    def seconds(given: Mapping[str, Any], further: Iterable[str] = ()) -> dict[str, float]:
        asked.append(tuple(given["arms"]))
        return dict.fromkeys(given["arms"], 60.0)

    monkeypatch.setattr(experiments, "seconds_by_arm", seconds)
    app = opened(PAGE, EXPERIMENT)
    widget(app, f"{ARMS}.labels").set_value(["none+dictionary"])
    app.run()
    assert not app.exception
    [warning] = [each.value for each in app.warning if "cannot start yet" in each.value]
    assert "(none+dictionary)” needs lists of names" in unescape(warning)
    times = {row[0].rpartition("(")[2].rstrip(")"): row[1] for row in cells(app, "What each picked variant")}
    assert times == {"none": "60 s", "random": "60 s", "classifier": "60 s", "none+dictionary": ""}
    assert asked[0] == ("none", "random", "classifier")
    app.multiselect(key="training.experiment.dictionary").set_value([names]).run()
    assert not [each for each in app.warning if "cannot start yet" in each.value]
    widget(app, f"{ARMS}.labels").set_value([])
    start(app)  # the list is still picked, but no variant reads it
    assert "dictionary" not in started[-1][1]
    # A repeated experiment may have used a corpus that is not offered any more.
    train = corpora.roles()["train"]
    assert opened(PAGE, {**EXPERIMENT, "training.experiment.dictionary": [train]}).multiselect(
        key="training.experiment.dictionary"
    ).value == [train]


def cells(app: AppTest, name: str) -> list[list[str]]:
    """Return the rows of the table with this name."""
    [found] = [each.proto.body for each in app.main.get("html") if f'aria-label="{name}' in each.proto.body]
    return [[unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in found.split("<tr>")[2:]]


def test_variants_are_offered_in_groups_and_start_in_the_order_of_picking(parts: Parts, started: Started) -> None:
    app = opened(PAGE, EXPERIMENT)
    assert widget(app, ARMS).value == ["none", "random", "classifier"]
    offered = [option for group in variants.GROUPS for option in widget(app, variants.key_of(group)).options]
    assert len(offered) == len(set(offered)) == len(variants.arm_names({"sources": (), "assisting": ""}))
    first = [option.rpartition("(")[2].rstrip(")") for option in widget(app, ARMS).options[:4]]
    assert first == ["none", "random", "classifier", "tapt"]
    assert [widget(app, f"{ARMS}.{group}").value for group in ("labels", "ready", "other")] == [[], [], []]
    choose(app, (f"{ARMS}.ready", ["dictionary"]))
    choose(app, (f"{ARMS}.labels", ["self-train"]), (ARMS, ["none", "classifier", "tapt"]))
    start(app)
    arms = ("none", "classifier", "dictionary", "tapt", "self-train")
    assert tuple(started[-1][1]["arms"]) == arms
    assert commands.command(*started[-1]).count("--arm") == len(arms)


def test_each_variant_has_its_time_its_needs_and_a_persons_time(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(PAGE, {**EXPERIMENT, f"{ARMS}.open.labels": True})
    baseline = ["No pre-training: the baseline of all others (none)", "not timed yet", "your labels", "none"]
    assert cells(app, "What each picked variant takes and needs")[0] == baseline
    assert cells(app, "What each picked")[2][0] == (
        "Learns what distinguishes the task corpus from the rest of the domain corpus, by meaning and wording (classifier)"
    )
    others = {row[0].rpartition("(")[2].rstrip(")"): row[1:] for row in cells(app, "Other uses of the time")}
    assert others["none+dictionary"] == ["not timed yet", "lists of names (not picked yet)", "none"]
    assert others["labels:+50"] == ["not timed yet", "your labels", "25 min to label 50 sentences"]
    assert others["transfer"] == ["", "another labelled corpus (not picked yet)", "none"]
    assert not any("More ways to select text" in each.proto.body for each in app.main.get("html"))

    seconds = {"none": 60.0, "random": 120.0, "classifier": 121.0, "self-train": 600.0}
    monkeypatch.setattr(
        experiments,
        "seconds_by_arm",
        lambda given, further=(): (
            seconds if further else {name: value for name, value in seconds.items() if name != "self-train"}
        ),
    )
    app = opened(PAGE, {**EXPERIMENT, f"{ARMS}.open.labels": True})
    assert [row[1] for row in cells(app, "What each picked variant")] == ["60 s", "2 min", "2 min"]
    others = {row[0].rpartition("(")[2].rstrip(")"): row[1:] for row in cells(app, "Other uses of the time")}
    assert (others["self-train"][0], others["none+dictionary"][0]) == ("10 min", "")


def test_models_of_others_can_be_chosen_and_another_host_needs_consent(
    parts: Parts, started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_DATA_DIRS", str(tmp_path))
    folder = ready_model(tmp_path / "ner", ("O", "B-PER"), {"Ada": {"B-PER": 0.9}})
    field = "training.experiment"
    app = opened(PAGE, EXPERIMENT)
    help = widget(app, f"{field}.folder").help
    assert "Download a token classifier" in help

    def offered() -> list[str]:
        return [one for one in app.multiselect(key=f"{ARMS}.ready").options if "zero-shot:" in one or "llm:" in one]

    assert offered() == []
    choose(app, (f"{field}.folder", str(tmp_path / "none")))
    assert any("there is no such file or folder" in info.value for info in app.info)
    choose(app, (f"{field}.folder", "/usr"))
    assert any("outside the allowed folders" in info.value for info in app.info)
    choose(app, (f"{field}.folder", str(folder)), (f"{field}.model", "qwen3:8b"))
    here = "llm:qwen3:8b@http://127.0.0.1:11434/v1"
    assert offered() == [
        f"The ready token classifier in {folder}, without training (zero-shot:{folder})",
        f"The language model qwen3:8b at http://127.0.0.1:11434/v1, asked without training ({here})",
    ]
    start(app, (ARMS, ["none"]), (f"{ARMS}.ready", [f"zero-shot:{folder}", here]))
    config = ExperimentConfig.parse(dict(started[-1][1]))
    assert (config.arms, config.llm) == (("none", f"zero-shot:{folder}", here), {})
    choose(app, (f"{field}.address", "http://user:secret@gpu-box/v1"))
    assert any("is not of the form" in info.value for info in app.info)
    choose(app, (f"{field}.address", "http://gpu-box:8000/v1"))
    assert not any("llm:" in one for one in offered())
    [consent] = [box for box in app.checkbox if "leave this computer" in box.label]
    assert consent.label == f"Allow it. {plain('Sentences leave this computer: they go to gpu-box, not encrypted.')}"
    consent.check().run()
    start(app, (ARMS, ["none"]), (f"{ARMS}.ready", [there := "llm:qwen3:8b@http://gpu-box:8000/v1"]))
    config = ExperimentConfig.parse(dict(started[-1][1]))
    assert (config.arms, config.llm, config.hosts) == (("none", there), {"allow_host": "gpu-box"}, ["gpu-box"])
    choose(app, (f"{field}.address", "http://other-box:8000/v1"))  # consent is for one host
    assert not any("llm:" in one for one in offered())


UNTRAINED = {"training.kind": "untrained"}
LOOK_UP = {"inside": "", "outside": "", "case_sensitive": False}


def test_names_are_looked_up_without_an_experiment(parts: Parts, started: Started, tmp_path: Path) -> None:
    app = opened(PAGE, UNTRAINED)
    assert any("There is no list of names in this project. Import one on Corpora" in info.value for info in app.info)
    start(app)
    assert started[-1] == ("dictionary", {"names": (parts["train"],), "test": (parts["test"],), **LOOK_UP})
    (tmp_path / "cities.txt").write_text("Rome\nOslo\n")
    names = add_list(tmp_path / "cities.txt", "LOC")
    app = opened(PAGE, UNTRAINED)
    assert "There is no list of names" not in texts(app)
    choose(app, ("training.untrained.inside", parts["task"]))
    assert "training.start" not in keys(app)
    assert any("Pick both a text of the domain" in info.value for info in app.info)
    choose(app, ("training.untrained.outside", parts["domain"]), ("training.untrained.case_sensitive", True))
    start(app)
    common = {"inside": parts["task"], "outside": parts["domain"], "case_sensitive": True}
    assert started[-1] == ("dictionary", {"names": (names,), "test": (parts["test"],), **common})


def test_models_of_others_are_tried_alone_with_what_to_fetch(
    parts: Parts, started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_DATA_DIRS", str(tmp_path))
    folder = ready_model(tmp_path / "ner", ("O", "B-PER"), {"Ada": {"B-PER": 0.9}})
    app = opened(PAGE, {**UNTRAINED, "training.untrained.way": "zero-shot"})
    assert any("Download a token classifier" in info.value for info in app.info)
    assert "training.start" not in keys(app)
    choose(app, ("training.untrained.folder", str(folder)), ("training.untrained.type_map", "GPE=LOC"))
    start(app)
    asked: dict[str, Any] = {
        "dev": parts["dev"],
        "test": (parts["test"],),
        "model": str(folder),
        "type_map": ("GPE=LOC",),
    }
    assert started[-1] == ("zero-shot", asked)
    choose(app, ("training.untrained.type_map", "GPE"))
    assert "training.start" not in keys(app)
    app = opened(PAGE, {**UNTRAINED, "training.untrained.way": "llm"})
    assert any("ollama pull qwen3:8b" in info.value for info in app.info)
    choose(app, ("training.untrained.model", "qwen3:8b"), ("training.untrained.examples", 3))
    assert "Time: about 40 s. No run here has used qwen3:8b yet, so this is assumed: 2.0 seconds per" in seen(app)
    start(app)
    asked = {"train": parts["train"], "test": (parts["test"],), "model": "qwen3:8b", "examples": 3}
    assert started[-1] == ("llm", {**asked, "address": "http://127.0.0.1:11434/v1"})
    choose(app, ("training.untrained.address", "http://gpu-box:8000/v1"))
    assert "training.start" not in keys(app)
    [consent] = [box for box in app.checkbox if "leave this computer" in box.label]
    consent.check().run()
    start(app)
    assert started[-1] == ("llm", {**asked, "address": "http://gpu-box:8000/v1", "allow_host": "gpu-box"})


def test_a_run_without_training_shows_its_scores_and_suggests_on_label(parts: Parts, seal: Seal) -> None:
    corpora.set_role(
        "test", seal([labelled("Ada sues Corp ."), labelled("Bo sues Corp .")], "twins", labelled=True).fingerprint
    )
    names = seal([labelled("Ada sues Corp .")], "names", labelled=True).fingerprint
    run = runs.execute("dictionary", {"names": (names,), "test": (corpora.roles()["test"],)})
    app = opened(PAGE, run=run.id)
    shown = seen(app)
    assert "2 names of names, looked up without training." in shown
    [score] = [metric.value for metric in app.metric if metric.label.startswith("Test score (F1)")]
    assert score == "85.7"  # 3 of 4 entities, all of them right
    assert "66.67" in shown  # PER: one of two
    assert not [
        key for key in keys(app) if key and key.startswith("training.untrained.") and key != "training.untrained.label"
    ]
    press(app, "training.untrained.label")
    assert app.title[0].value == "Label"
    assert app.session_state["label.suggest"] == labelling.suggester_of(run.id) != ""


def test_plan_states_detectable_gain_and_swapped_halves_need_no_task_corpus(
    parts: Parts, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prevalence, "before", lambda options: f"About 9; your budget takes {list(options['budgets'])}.")
    app = opened(PAGE, {**EXPERIMENT, "training.experiment.seeds": "1, 2"})
    assert plain("About 9; your budget takes ['10%'].") in [caption.value for caption in app.caption]
    points = in_points(experiments.foresight({**parts, "seeds": (1, 2)}).points)
    assert [points in warning.value for warning in app.warning if "seeds per variant" in warning.value] == [True]
    own, *larger = experiments.foresight({**parts, "seeds": (1, 2)}).plans
    assert larger
    for words, chance in ((f"this one: {own.in_words()}", own), *((each.in_words(), each) for each in larger)):
        assert f"{words}</td><td>{100 * chance.chance:.0f} of 100 cases" in seen(app)
    choose(app, ("training.experiment.cross", True))
    start(app, ("training.experiment.labels", 5), ("training.experiment.cross.seeds", "1, 2"))
    config = ExperimentConfig.parse(dict(started[0][1]))
    assert (config.cross, config.cross_train, config.cross_dev, config.task) == (True, 5, 0, "")
    assert "classifier" in config.arms


@pytest.mark.usefixtures("expert")
def test_imported_word_vectors_can_be_chosen_for_a_tagger_and_an_experiment(
    parts: Parts, started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far.vec").write_text("of 1 2\n")
    monkeypatch.setenv("WINNOW_DATA_DIRS", str(tmp_path))
    app = opened(PAGE)
    for name in ("gone.vec", "far.vec"):
        widget(app, "training.vectors.path").set_value(f"{tmp_path / name}")
        next(each for each in app.button if (each.key or "").startswith("training.vectors")).click().run()
        assert bool(app.error) == (name == "gone.vec")
    [(kind, options)] = started
    runs.execute(kind, options)
    start(opened(PAGE, {"training.finetune.preset": "custom", "training.finetune.imported_vectors": "far"}))
    assert FinetuneConfig.parse(dict(started[-1][1])).imported_vectors == "far"
    app = opened(PAGE, {**EXPERIMENT, "training.experiment.imported_vectors": ["far"]})
    assert any("vectors:far" in option for option in app.multiselect(key=f"{ARMS}.other").options)


@pytest.mark.usefixtures("expert")
def test_experiment_on_sources_needs_no_task_corpus(parts: Parts, started: Started) -> None:
    for role in ("task", "domain"):
        corpora.set_role(role, None)
    app = opened(PAGE, {**EXPERIMENT, "training.experiment.sources": [parts["domain"]], ARMS: ["tapt"]})
    assert not offers_start(app)  # tapt trains on the task corpus
    typed = {
        "arms": [],
        "arms.other": ["vectors:my-domain", "lm:my-domain"],
        "also_test": [parts["dev"]],
        "cap_tokens": "500",
        "judge": "tiny",
        "holdout": [parts["train"]],
        "network": "bilstm",
        "typed": "finetune.epochs 4",
    }
    assert not offers_start(choose(app, *((f"training.experiment.{name}", value) for name, value in typed.items())))
    start(choose(app, ("training.experiment.typed", "strategies.knn.neighbours=10\n")))
    config = ExperimentConfig.parse(dict(started[0][1]))
    assert (config.task, config.network, config.also_test) == ("", "bilstm", (parts["dev"],))
    assert (config.cap_tokens, config.difficulty_encoder, config.holdout) == ((500,), "tiny", (parts["train"],))
    assert config.strategies == {"knn": {"neighbours": 10}}
    assert [str(cell) for cell in config.cells] == ["none", "states", "vectors:my-domain", "lm:my-domain"]


def test_experiment_says_before_the_start_that_more_labels_cannot_be_estimated(parts: Parts, started: Started) -> None:
    app = opened(PAGE, {**EXPERIMENT, ARMS: ["none"], f"{ARMS}.labels": ["labels:+25"]})
    n = len(corpora.find(parts["train"]))
    assert n < LEAST
    words = f"labels:+25 will not be estimated: the training set has {n} sentences; an estimate needs {LEAST}."
    assert any(info.value == plain(words) for info in app.info)
    start(app)
    assert "labels:+25" in started[0][1]["arms"]


def test_start_button_is_missing_without_the_corpora_that_a_run_needs(seal: Seal) -> None:
    seal(["Only a sentence ."], "lonely")
    for kind in ("pretrain", "finetune", "experiment"):
        app = opened(PAGE, {"training.kind": kind})
        assert len(app.info) == 1
        assert not offers_start(app)


# --- before the start ---


def finetune_of(parts: Mapping[str, str], **options: Any) -> dict[str, Any]:
    return {"train": parts["train"], "dev": parts["dev"], "test": [parts["test"]], "seeds": [1], **options}


def test_estimate_needs_a_measured_speed_and_warns_of_memory_and_disk(
    parts: Parts, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    finetuning = finetune_of(parts)
    app = opened(PAGE)
    assert f"{training.preflight('finetune', finetuning).steps:,}" in metrics(app).values()
    assert training.preflight("finetune", finetuning).seconds is None
    press(app, "training.time")
    [(kind, options)] = started
    assert (kind, options["encoder"], options["task"]) == ("calibrate", "minilm", parts["task"])
    tuned(parts, HERE, metric("tokens_per_second@1", 1.0, 1), ("cancelled", {}), init="minilm")
    monkeypatch.setattr(machine, "memory", lambda: (1e6, 2e6))
    monkeypatch.setattr(machine, "disk", lambda: (1000, 2000))
    monkeypatch.setattr(machine, "device", lambda: "cpu")
    app = opened(PAGE, {"training.finetune.preset": "paper"})
    assert "training.time" not in keys(app)
    assert any("No GPU here" in info.value for info in app.info)
    assert [any(f"{what} are free" in each.value for each in app.warning) for what in ("memory", "disk space")] == [
        True
    ] * 2
    full, light = training.preflight("finetune", finetuning), training.preflight("finetune", {**finetuning, "lora": 8})
    assert full.seconds is not None
    # No estimate, because the encoder is another one.
    assert training.preflight("finetune", finetune_of(parts, init="tiny")).seconds is None
    assert full.memory_gb is not None
    assert light.memory_gb is not None
    assert light.memory_gb < full.memory_gb  # LoRA stores no gradients or moments of the encoder's weights


def test_speed_measured_on_other_text_gives_estimates_for_the_same_network_only(parts: Parts) -> None:
    finish(made("calibrate", task=parts["dev"], train=parts["dev"]), TIMED)
    assert experiments.cost(find_out.options()).seconds
    assert training.preflight("finetune", finetune_of(parts)).seconds
    assert training.preflight("finetune", finetune_of(parts, network="bilstm")).seconds is None


def test_finished_runs_of_a_planned_experiment_are_named(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(made("calibrate", task=parts["dev"], train=parts["dev"]), TIMED)
    app = opened(PAGE, EXPERIMENT)
    planned = experiments.cost(find_out.options())
    assert "finished already" not in seen(app)
    steps = (replace(planned.steps[0], finished=True), *planned.steps[1:])
    monkeypatch.setattr(experiments, "cost_if_known", lambda options, on="": replace(planned, steps=steps))
    words = f"1 of {len(steps)} runs are finished already"
    assert words in seen(opened(PAGE, EXPERIMENT))


def test_cost_and_memory_follow_the_chosen_place(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(made("calibrate", task=parts["dev"], train=parts["dev"]), TIMED)
    monkeypatch.setattr(machine, "memory", lambda: (3.5e9, 8e9))  # one step needs 1 GB
    monkeypatch.setattr(runs, "processes_that_pay", lambda: 4)
    app = opened(PAGE, EXPERIMENT)
    assert "steps at once" not in texts(app)
    where = app.selectbox(key="training.where")
    assert "recurrent tagger's last digits may differ" in where.help
    where.set_value("processes:4").run()
    assert "With 4 steps at once it usually takes less" in texts(app)
    assert any(
        "Only 3.5 GB of memory are free, enough for 3 steps at once, not 4." in each.value for each in app.warning
    )


# --- a run, in every state ---


def test_running_training_shows_its_curves_and_can_be_cancelled(
    parts: Parts, working: Callable[[Run], None], started: Started
) -> None:
    first = tuned(parts, *POINTS, ("progress", {"done": 40, "total": 100, "unit": "steps"}))
    working(first)
    app = opened(PAGE)
    assert not app.error
    assert len(charts(app)) == 5  # loss, dev F1, learning rate, gradient norm, speed
    assert "61.5" in metrics(app).values()
    assert f"Step 40 · {len(POINTS)} points" in texts(app)
    assert "40 of 100 steps" in app.get("progress")[0].proto.text
    assert "<b>ORG" not in texts(app)
    assert len(drawn(app)) == 2 + 1 + 1  # all types, PER and ORG
    widget(app, f"training.axis.{first.id}").set_value("epochs").run()
    [data] = next(chart for alt, chart in charts(app).items() if "F1" in alt).proto.datasets
    assert {*pa.ipc.open_stream(data.data.data).read_all()["step"].to_pylist()} == {1.0, 2.0}
    dev = next(corpora.find(parts["dev"]).batches())
    right, wrong = (Prediction(entities=entities or (), confidence=()) for entities in (dev[0].entities, ()))
    watched.writer(first.checkpoints / "seed-1")(3, dev, [right, right, wrong, right] * 5)
    page_text = texts(opened(PAGE))
    assert "after epoch 3" in page_text
    assert (page_text.count("<li>✓ "), page_text.count("labelled: ")) == (8, 2)
    watched.writer(first.checkpoints / "seed-1")(3.25, dev, [right] * 20)
    assert "after epoch 3.2" in texts(opened(PAGE))
    widget(app, f"training.types.{first.id}").set_value(["PER"])
    values = np.random.default_rng(0).normal(size=5_000).tolist()
    log(first, *(metric("loss@1", value, 41 + step) for step, value in enumerate(values)))
    stop = next(key for each in app.button if (key := each.key or "").endswith(".cancel"))
    press(app, stop)
    assert first.cancel_file.exists()
    assert set(drawn(app)) == {"all types", "PER"}
    assert app.button(key=stop).disabled
    [data] = next(iter(charts(app).values())).proto.datasets
    table = pa.ipc.open_stream(data.data.data).read_all()
    assert 500 < table.num_rows <= 2_000
    assert max(table["value"].to_pylist()) == max(values)
    second = tuned(parts, ("note", {"text": "w", "waiting_for": first.id}), seeds=[9])
    working(second)
    app = opened(PAGE)
    assert "Waiting for" in texts(app)
    links = {link.proto.label: link.proto.query_string for link in app.get("page_link")}
    assert first.id in links["Show"]  # the newer run waits for the older one


def test_time_left_of_all_seeds_shows_beside_that_of_the_stage(parts: Parts, working: Callable[[Run], None]) -> None:
    run = tuned(parts, ("part", {"number": 1, "of": 3, "name": "seed 1", "left": 7200.0, "after": 4800.0}), *POINTS)
    working(run)
    assert metrics(opened(PAGE))["Left in all, about"] == "2.0 h"
    log(run, ("part", {"number": 2, "of": 3, "name": "seed 2", "left": None, "after": None}))
    assert not [label for label in metrics(opened(PAGE)) if label.startswith("Left")]


def test_curves_of_the_first_corpus_have_names_and_epochs_of_their_own(
    parts: Parts, working: Callable[[Run], None]
) -> None:
    first = [metric("first_loss@1", 3.0, 1), metric("first_dev_f1@1", 12.0, 30), metric("first_dev_f1@1", 14.0, 60)]
    run = tuned(parts, *first, first=parts["test"])
    working(run)
    assert drawn(opened(PAGE)) == ["all types, on the first corpus"] * 2
    log(run, *POINTS)
    app = opened(PAGE)
    assert drawn(app).count("all types, on the first corpus") == drawn(app).count("all types") == 2
    widget(app, f"training.axis.{run.id}").set_value("epochs").run()
    [data] = next(chart for alt, chart in charts(app).items() if "F1" in alt).proto.datasets
    rows = pa.ipc.open_stream(data.data.data).read_all().to_pylist()
    steps = {name: [row["step"] for row in rows if row["line"] == name] for name in {row["line"] for row in rows}}
    assert steps["all types"] == steps["all types, on the first corpus"] == [1.0, 2.0]  # 20 and 30 steps per epoch
    [losses] = next(chart for alt, chart in charts(app).items() if "loss" in alt).proto.datasets
    table = pa.ipc.open_stream(losses.data.data).read_all()
    assert {*table["line"].to_pylist()} == {"training", "on the first corpus"}


def test_scores_within_epochs_join_the_curve_of_those_after_epochs(
    parts: Parts, working: Callable[[Run], None]
) -> None:
    within = [metric(f"dev_f1_within{type}@1", f1, step) for type, f1, step in
              (("", 30.0, 10), ("/PER", 35.0, 10), ("", 90.0, 50))]  # fmt: skip
    run = tuned(parts, *POINTS, *within)
    working(run)
    app = opened(PAGE)

    def points() -> dict[str, list[tuple[float, float]]]:
        [data] = next(chart for alt, chart in charts(app).items() if "F1" in alt).proto.datasets
        rows = pa.ipc.open_stream(data.data.data).read_all().to_pylist()
        names = {row["line"] for row in rows}
        return {name: [(row["step"], row["value"]) for row in rows if row["line"] == name] for name in names}

    assert points()["all types"] == [(10, 30.0), (20, 61.5), (40, 58.25), (50, 90.0)]
    assert points()["PER"] == [(10, 35.0), (20, 70.0)]
    assert "61.5" in metrics(app).values()  # only epochs can be the best
    widget(app, f"training.axis.{run.id}").set_value("epochs").run()
    assert [step for step, _ in points()["all types"]] == [0.5, 1.0, 2.0, 2.5]  # 20 steps per epoch


def drawn(app: AppTest) -> list[str]:
    """Return the name of the curve of every point in the F1 chart."""
    [data] = next(chart for alt, chart in charts(app).items() if "F1" in alt).proto.datasets
    return list(pa.ipc.open_stream(data.data.data).read_all()["line"].to_pylist())


def test_cancelled_training_names_its_checkpoint_and_can_be_resumed(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tuned(parts, *POINTS, ("cancelled", {}))
    page_text = texts(opened(PAGE))
    assert "No checkpoint was written yet" in page_text
    for name in ("checkpoints/seed-1/checkpoint-12/trainer_state.json", "artifacts/model/config.json"):
        (run.path / name).parent.mkdir(parents=True)
        (run.path / name).write_text("{}")
    resumed: list[str] = []
    monkeypatch.setattr(runs, "resume", lambda run_id, *where, agreed: resumed.append(run_id))
    app = opened(PAGE)
    page_text = texts(app)
    assert "checkpoint of step 12" in page_text
    assert plain(str(run.artifacts / "model")) in page_text
    assert len(charts(app)) >= 2
    assert any("Stopped" in badge.value for badge in app.markdown)
    assert SMALLER not in labels(app)  # memory did not run out
    press(app, "training.run.resume")
    assert resumed == [run.id]


def test_training_out_of_memory_can_be_started_again_with_smaller_batches(parts: Parts, started: Started) -> None:
    sentence = "run x: memory ran out; choose smaller batches or a smaller model, and start again."
    ended: Entry = ("failed", {"error": sentence})
    assert training.halved(tuned(parts, ended, accumulation=16).id) is None
    few: list[dict[str, Any]] = [
        {"preset": "paper-bias", "accumulation": 8},  # its batch has 8 sentences
        {"network": "charcnn", "in_turn": True},  # a step is one sentence
    ]
    assert [training.halved(tuned(parts, ended, **options).id) for options in few] == [None, None]
    tuned(parts, *POINTS[:1], ended, seeds=[7])
    app = opened(PAGE)
    assert plain(sentence) in app.error[0].value
    next(each for each in app.button if each.label == SMALLER).click().run()
    [(kind, options)] = started
    assert (kind, options["accumulation"], options["batch_size"]) == ("finetune", 2, None)
    assert tuple(options["seeds"]) == (7,)


def test_failed_stage_of_an_experiment_gets_smaller_batches(parts: dict[str, str]) -> None:
    ended: Entry = ("failed", {"error": "memory ran out; smaller."})
    run = made("experiment", **parts, encoder="tiny", pretrain={"epochs": 2})
    child = made("pretrain", corpora=[parts["task"]], init="tiny", epochs=2, parent=run.id)
    log(run, ("started", DEAD), ("child", {"run": child.id}), ended)
    found = training.halved(run.id)
    assert found is not None
    assert (found[0], found[1]["pretrain"]) == ("experiment", {"epochs": 2, "accumulation": 2})

    # Only the sender of a project file allowed this, so the button must not start such an experiment again.
    host: dict[str, Any] = {"arms": ("none", "tapt", "llm:qwen3@http://gpu-box:1/v1"), "llm": {"allow_host": "gpu-box"}}
    sends = made("experiment", **parts, encoder="tiny", **host)
    child = made("pretrain", corpora=[parts["task"]], init="tiny", epochs=2, parent=sends.id)
    log(sends, ("started", DEAD), ("child", {"run": child.id}), ended)
    assert SMALLER in labels(opened(PAGE, run=sends.id))
    sends.brought_file.touch()
    assert SMALLER not in labels(opened(PAGE, run=sends.id))

    options = {"method": "sampled"}  # the pre-training that the strategy does failed
    arms = ("none", "random", "pseudo-perplexity")
    run = made("experiment", **parts, encoder="tiny", arms=arms, strategies={"pseudo-perplexity": options})
    sources = {name: parts[name] for name in ("task", "domain")}
    score = made("score", **sources, encoder="tiny", strategy="pseudo-perplexity", options=options, parent=run.id)
    child = made("pretrain", corpora=[parts["task"]], init="tiny", parent=score.id)
    log(run, ("started", DEAD), ("child", {"run": score.id}), ended)
    log(score, ("started", DEAD), ("child", {"run": child.id}))
    found = training.halved(run.id)
    assert found is not None
    assert found[1]["strategies"] == {"pseudo-perplexity": {**options, "accumulation": 2}}
    assert found[1]["pretrain"] == {}


def test_training_whose_worker_died_shows_the_last_lines_of_its_log(parts: Parts) -> None:
    run = tuned(parts, *POINTS)
    run.log_file.write_text("\n".join(f"line {i} of the log" for i in range(100)))
    app = opened(PAGE)
    shown = next(code.value for code in app.code if "of the log" in code.value)
    assert shown.splitlines() == [f"line {i} of the log" for i in range(70, 100)]
    assert SMALLER in labels(app)
    assert "training.run.resume" in {each.key for each in app.button}


def test_finished_tagger_shows_its_scores_and_how_to_load_it(parts: Parts) -> None:
    run = tuned(parts, *POINTS)
    folder = run.artifacts / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "README.md").write_text("---\nlanguage: en\n---\n# A card of <img src=x>\n")
    sure = Calibration(temperature=1.75, entities=90, right=0.5, confidence=0.52, before=0.163, after=0.021)
    first = replace(sure, before=0.4, after=0.3)
    by_type = {"<b>ORG</b>": 50.0, "PER": 70.0}
    result = fine_tuned([60.0, 64.0], dev=[61.5, 62.0], model=str(folder), by_type=by_type)
    dev = replace(result.dev, calibration=[first, sure])
    test = replace(
        result.tests[0],
        decodings={"viterbi": [55.5, 56.5], "constrained": [60.0, 64.0]},
        calibration=[first, sure],
        intervals={"PER": (61.25, 77.5)},
        macro_f1=[58.0, 61.0],
    )
    row = Abstaining(least=0.8, entities=41, precision=87.5, recall=33.25, f1=48.2)
    evaluations.write_abstaining(run, evaluations.file_suffix("dev", 2), [row])  # the seed with the best dev F1
    finish(run, replace(result, dev=dev, test=test, tests=[test]))
    app = opened(PAGE)
    assert not app.error
    assert not any("Stopped" in badge.value for badge in app.markdown)
    assert {"62.0", "59.5"} <= set(metrics(app).values())  # test F1, micro and macro
    page_text = texts(app)
    for part in ("55.5, 56.5", "60.0, 64.0", "0.163 before and 0.021 after the temperature 1.75", "87.5", "33.2"):
        assert part in page_text
    for part in ("70.00 [61.2, 77.5]", "<td>50.00</td>", "59.50"):
        assert part in page_text
    assert "0.400 as it came" not in page_text  # the calibration of a seed that was not kept
    code = [block.value for block in app.code]
    assert str(folder) in code
    assert any(f'pipeline("token-classification", {str(folder)!r}' in block for block in code)
    assert any("A card of <img src=x>" in block for block in code)
    for raw in ("<img", "<b>ORG"):
        assert raw not in page_text
    result = fine_tuned([60.0, 0.5], dev=[61.5, 0.0], model=str(folder))
    unfitted = replace(result.dev, calibration=[replace(sure, temperature=1.0, after=sure.before)] * 2)
    evaluations.write_abstaining(run, evaluations.file_suffix("dev", 1), [row])
    finish(run, replace(result, dev=unfitted))
    page_text = texts(opened(PAGE))
    assert "Seed 2 learnt nothing" in page_text
    assert "error is 0.163. No temperature was fitted, because fewer than 20 entities were right" in page_text


def test_finished_encoder_shows_perplexity_before_and_after(parts: Parts) -> None:
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
    assert not app.error
    assert "30.2" in metrics(app).values()
    assert any("without a vocabulary head" in info.value for info in app.info)
    assert len(charts(app)) == 2


def finish(run: Run, result: object) -> None:
    run.result_file.write_text(json.dumps(as_json(result)))
    log(run, ("succeeded", {}))


def test_experiment_shows_running_trainings_and_its_final_verdicts(
    parts: Parts, working: Callable[[Run], None]
) -> None:
    run = made("experiment", **parts, encoder="tiny")
    children = [made("finetune", **finetune_of(parts, init="tiny", seeds=[seed]), parent=run.id) for seed in (1, 2)]
    events: list[Entry] = [("child", {"run": child.id}) for child in children]
    log(run, ("started", DEAD), *events)
    for child, loss in zip(children, (3.0, 2.0), strict=True):
        log(child, ("started", DEAD), metric("loss@1", loss, 1), metric("dev_f1@1", 20 * loss, 3))
    app = opened(PAGE)
    assert metrics(app)["Loss"] == "2"
    [every] = [chart.proto.alt for chart in app.get("vega_lite_chart") if "taggers" in chart.proto.alt]
    assert "of all 2 taggers so far, over epochs; best scores: no further pre-training 60.0; no further" in every
    log(children[0], metric("dev_f1_within@1", 99.0, 2), metric("dev_f1_within@1", 50.0, 4))
    [every] = [chart for chart in opened(PAGE).get("vega_lite_chart") if "taggers" in chart.proto.alt]
    points = pa.ipc.open_stream(every.proto.datasets[0].data.data).read_all()
    assert points["step"].to_pylist() == pytest.approx([2 / 3, 1, 4 / 3, 1])
    assert points["value"].to_pylist() == [99.0, 60.0, 50.0, 40.0]
    assert "pre-training 60.0" in every.proto.alt  # only epochs can be the best
    assert "Score of" in [field.label for field in app.multiselect]
    choose(app, (f"training.part.{run.id}", children[0].id))
    assert metrics(app)["Loss"] == "3"
    log(run, ("child", {"run": made("pretrain", corpora=[parts["task"]], init="tiny", parent=run.id).id}))
    assert "Score of" not in [field.label for field in opened(PAGE).multiselect]  # pre-training has no F1 per type
    row = replace(ARM_ROW, arm="knn", budget="10%", mean=61.0, delta=1.5, why="<i>too few</i>")
    finish(run, ExperimentResult(leaderboard=[row], curve=[], hours={}))
    app = opened(PAGE)
    assert "no evidence" in texts(app)
    assert "<i>too few" not in texts(app)


def test_the_address_opens_the_form_of_an_experiment_once(home: Path) -> None:
    corpora.open_sample("legal")
    app = opened(PAGE, what="experiment")
    assert app.session_state["training.kind"] == "experiment"
    assert app.session_state["training.form"]
    app.session_state["training.kind"] = "finetune"
    app.run()
    assert app.session_state["training.kind"] == "finetune"
