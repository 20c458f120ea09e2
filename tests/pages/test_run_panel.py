"""A run on its page: its progress, place and outcome, and which run a page shows."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.corpora.corpus import Corpus
from core.experiment import results
from core.importing import view as corpora
from core.kind import register
from core.kinds import KINDS
from core.projects import runs
from core.projects import view as projects
from core.projects.home import store
from core.runs.events import Data, EventKind, EventLog, Part, RunState
from core.runs.store import Run, RunStore
from core.runs.where import Where
from pages.ui.runs import words as run_words
from pages.ui.runs.words import pace, stage, whole
from pages.ui.widgets import plain
from tests import finished
from tests.conftest import Seal
from tests.finished import LINES, as_running, experiment, fine_tuned, finish
from tests.finished_bias import contracts, measured
from tests.pages.drawing import SELECTION, TRAINING, audit, keys, opened, opened_on, press, select, texts

Happened = tuple[EventKind, Data]
PLACES = {"pages/1_Corpora.py": ("corpora.check", "audit"), "pages/3_Selection.py": ("selection.start", "select")}
STARTED: Happened = ("started", {"pid": 2**22 + 1, "created": 0.0})
PART: Happened = ("part", {"number": 3, "of": 6, "name": "knn 10%: pre-training", "left": 720.0, "after": 60.0})


def at(done: int, total: int = 60) -> Happened:
    return "progress", {"done": done, "total": total, "unit": "steps"}


@pytest.fixture
def made(home: Path) -> dict[str, Corpus]:
    return finished.corpora(home)


@pytest.fixture
def selection(made: dict[str, Corpus], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Run]]:
    """`selection(*(kind, data), active=, seconds=)`: make a run with these events, `seconds` apart."""
    held: list[Run] = []

    def begin(*happened: Happened, active: bool = True, seconds: float = 5.0, **options: Any) -> Run:
        names = {role: made[role].fingerprint for role in ("task", "domain")}
        recipe = KINDS["select"]
        run = register(recipe, recipe.config.parse({**names, "strategy": "random", **options}), store())
        clock = iter(1_000_000 + seconds * i for i in range(len(happened) + 1))
        with monkeypatch.context() as patch, EventLog(run.events_file) as log:
            patch.setattr(time, "time", lambda: next(clock))
            for kind, data in happened:
                log.append(kind, data)
        if active:
            assert run.lock.acquire(run.id)
            held.append(run)
        return run

    yield begin
    for run in held:
        run.lock.release()


@pytest.mark.parametrize(
    ("gained", "seconds", "rate"),
    [(1, 24, "0.042"), (3, 7, "0.43"), (24, 10, "2.4"), (96, 10, "9.6"), (40, 1, "40"), (4321, 1, "4,321")],
)
def test_rate_has_two_significant_digits(selection: Callable[..., Run], gained: int, seconds: float, rate: str) -> None:
    run = selection(STARTED, ("stage", {"name": "score: training"}), at(0, 9999), at(gained, 9999), seconds=seconds)
    assert pace(run.state())[:2] == [f"{gained:,} of 9,999 steps", f"{rate} steps per second"]
    assert stage(run.state()) == "Training"


@pytest.mark.parametrize(
    ("spent", "whole", "said"),
    [(3, 60, "3 of about 60 s"), (660, 1380, "11 of about 23 min"), (5000, 12_000, "1.4 of about 3.3 h")],
)
def test_elapsed_and_total_time_share_a_unit(spent: float, whole: float, said: str) -> None:
    assert run_words.out_of(spent, whole) == said


@pytest.mark.parametrize("change", [{"cancelling": True}, {"state": "cancelled"}])
def test_cancelled_run_shows_no_remaining_time(change: dict[str, Any]) -> None:
    part = Part(number=1, of=2, name="pretrain", left=90.0, after=0.0, since=time.time())
    state = RunState(state="running", eta=4440.0, done=5, total=10, unit="steps", part=part, started=time.time())
    assert "left in this stage" in " ".join(pace(state))
    assert "of about" in " ".join(whole(state))
    stopped = replace(state, **change)
    assert not re.search("left|of about", " ".join([*pace(stopped), *whole(stopped)]))


def test_running_run_shows_progress_of_run_and_step_and_where_it_computes(
    selection: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = selection(STARTED, PART, ("stage", {"name": "[3 of 6] pretrain: training"}), at(10), at(20), seconds=0)
    monkeypatch.setattr(time, "time", lambda: 1_000_000 + 660.0)
    app = opened(SELECTION)
    whole, part = app.main.get("progress")
    assert whole.proto.text == plain("Part 3 of 6, knn 10%: pre-training · 11 of about 12 min")
    assert whole.proto.value == 91
    assert part.proto.text.startswith(plain("Training · 20 of 60 steps"))
    assert part.proto.value == 33
    page_text = texts(app)
    assert "Nothing leaves this machine" in page_text
    Where(on="ray:head:6379").keep(run.path)
    page_text = texts(app.run())
    assert "Nothing leaves this machine" not in page_text
    assert f"Sentences go to {plain('ray:head:6379')}" in page_text
    monkeypatch.setattr(runs, "recipients", lambda: ["gpu-box", "ray:head:6379"])
    assert f"Sentences go to {plain('gpu-box, ray:head:6379')}" in texts(app.run())


def test_sentences_that_a_child_run_or_another_project_sends_are_named(home: Path, seal: Seal) -> None:
    mark = seal(["One clause ."], "clauses").fingerprint
    options: dict[str, Any] = {"corpus": mark, "encoder": "tiny"}
    child = RunStore(home).create("embed", options, {}, versions={}, key="k", parent="20260101-000000-score-0000")
    Where(on="ray:head:6379").keep(child.path)
    with as_running(child):  # as after Resume of the child run alone
        assert runs.recipients() == ["ray:head:6379"]
        other = projects.new("Leases")
        assert "Nothing leaves this machine" not in texts(opened("home.py", project=other.slug))
    assert runs.recipients() == []


def test_the_duration_of_an_imported_run_is_not_given_as_this_machines(made: dict[str, Corpus]) -> None:
    run = runs.get(audit(made["task"].fingerprint))
    assert "The latest such run here" in run_words.last_duration("audit")
    run.brought_file.touch()
    assert "no run of this kind has finished on this machine yet" in run_words.last_duration("audit")


def test_no_results_of_a_failed_run_are_announced_after_its_corpus_was_removed(
    selection: Callable[..., Run], made: dict[str, Corpus]
) -> None:
    run = selection(STARTED, ("failed", {"error": "no memory"}), active=False)
    corpora.remove(made["task"].fingerprint)
    page_text = texts(opened_on(SELECTION, run.id))
    assert "No longer on this machine: the task corpus. The run cannot be resumed or repeated." in page_text
    assert "The results are shown" not in page_text


def test_a_stopped_run_whose_corpus_was_removed_promises_no_resume(
    selection: Callable[..., Run], made: dict[str, Corpus]
) -> None:
    run = selection(STARTED, ("cancelled", {}), active=False)
    assert "Resume continues" in texts(opened_on(SELECTION, run.id))
    corpora.remove(made["task"].fingerprint)
    page_text = texts(opened_on(SELECTION, run.id))
    assert "The run cannot be resumed or repeated." in page_text
    assert "Resume continues" not in page_text


def test_a_run_on_a_cluster_can_be_resumed_elsewhere(
    selection: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: Happened = ("failed", {"error": "the head is gone"})
    run = selection(STARTED, failed, STARTED, failed, active=False, seconds=70)
    assert run.state().seconds == pytest.approx(140)  # the sum of both attempts
    app = opened(SELECTION)
    # A run that was computed here is resumed here.
    where = f"selection.run.{run.id}.where"
    assert where not in [box.key for box in app.selectbox]
    Where(on="ray:head:6379").keep(run.path)
    app = opened(SELECTION)
    resumed = list[tuple[str, str]]()
    monkeypatch.setattr(runs, "resume", lambda run_id, on, agreed: resumed.append((run_id, on)))
    app.selectbox(key=where).select("local")
    press(app, "selection.run.resume")
    assert resumed == [(run.id, "local")]
    with EventLog(run.events_file) as log:
        log.append(*STARTED)
        log.append("failed", {"error": "music shares no type with legal.", "permanent": True})
    app = opened(SELECTION)
    assert "selection.run.resume" not in keys(app)  # resuming would fail again
    assert len(app.error) == 1


def test_place_and_consent_of_one_run_are_not_taken_over_by_the_next(
    selection: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who looks at one run, and then resumes another one, resumes it in its own place and with its own consent.

    Otherwise its sentences could go to the cluster of the other run.
    """
    failed: Happened = ("failed", {"error": "the head is gone"})
    one, other = (selection(STARTED, failed, active=False, budget=budget) for budget in ("7", "8"))
    for run, place in ((one, "ray:one:6379"), (other, "ray:other:6379")):
        Where(on=place).keep(run.path)
        run.brought_file.touch()
    resumed = list[tuple[str, str]]()
    monkeypatch.setattr(runs, "resume", lambda run_id, on, agreed: resumed.append((run_id, on)))
    app = opened_on(SELECTION, one.id)
    assert app.button(key="selection.run.resume").disabled
    next(box for box in app.checkbox if "agree" in box.label).check().run()
    assert not app.button(key="selection.run.resume").disabled
    app.selectbox(key=f"selection.which.{one.id}").set_value(other.id).run()
    assert app.button(key="selection.run.resume").disabled
    next(box for box in app.checkbox if "agree" in box.label).check().run()
    press(app, "selection.run.resume")
    assert resumed == [(other.id, "ray:other:6379")]


def test_home_lists_eight_runs_with_their_outcome_or_all(made: dict[str, Corpus], home: Path) -> None:
    run = finished.experiment(home, made, finished.LINES[:2])
    measured(home, contracts(home))
    for seed in range(10):
        options = {"corpora": (made["task"].fingerprint,), "init": "tiny", "seed": 100 + seed}
        finish(home, "pretrain", options, finished.constant(finished.pretrained()))
    app = opened("home.py")
    title = plain("Pre-train tiny on my task")
    assert texts(app).count(title) == 8
    app.toggle(key="home.all").set_value(True).run()
    page_text = texts(app)
    assert page_text.count(title) == 10 + 1  # the last one is part of the experiment
    assert plain("Measure names and contexts of my labels") in page_text
    found = results.finding(run.id)
    assert plain(" ".join(found.parts)) in page_text  # in the list
    assert plain(f"{found.what.removeprefix(found.word)} {found.next}") in page_text  # the answer above it


def test_cancelled_import_says_that_nothing_was_added(home: Path, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("A line .\n", encoding="utf-8")
    recipe = KINDS["add"]
    run = register(recipe, recipe.config.parse({"path": str(tmp_path / "long.txt")}), store())
    with EventLog(run.events_file) as log:
        for kind, data in (STARTED, at(4_894, 5_006), ("cancelled", Data())):
            log.append(kind, data)
    app = opened_on("pages/1_Corpora.py", run.id)
    assert "Nothing was added" in texts(app)
    assert "is kept" not in texts(app)


def test_a_run_of_another_page_or_kind_is_not_replaced_by_another_run(home: Path, made: dict[str, Corpus]) -> None:
    run_id = select()
    app = opened_on(TRAINING, run_id)
    [link] = [each.proto for each in app.main.get("page_link") if run_id in each.proto.query_string]
    assert link.page == "Selection"
    experiment(home, made, LINES[:2])
    options = {"init": "tiny", "seeds": (1, 2), **{name: made[name].fingerprint for name in ("train", "dev")}}
    single = finish(home, "finetune", options, lambda context: fine_tuned())
    app = opened_on("pages/6_Results.py", single.id)
    assert "Leaderboard" not in [tab.label for tab in app.tabs]


def test_window_keeps_its_selection_until_other_corpora_are_in_use(made: dict[str, Corpus], seal: Seal) -> None:
    older, newer = (select(budget=budget) for budget in ("20%", "5"))
    app = opened_on(SELECTION, older)
    del app.query_params["choice"]
    assert opened_on(SELECTION, newer).query_params["choice"] == newer  # in another window
    assert app.run().selectbox(key=f"selection.which.{older}").value == older
    corpora.set_role("task", seal(["Another task ."] * 3, "another").fingerprint)
    app.run()
    assert not app.metric
    press(app, "selection.run.latest")
    assert app.metric


def test_another_run_can_be_chosen_in_the_list(home: Path, made: dict[str, Corpus]) -> None:
    marks = {name: made[name].fingerprint for name in ("train", "dev")}
    older, newer = (
        finish(home, "finetune", {"init": "tiny", "seeds": (seed,), **marks}, lambda _: fine_tuned()) for seed in (1, 2)
    )
    app = opened_on(TRAINING, newer.id)
    choice = app.selectbox(key=f"training.which.{newer.id}")
    assert len(set(choice.options)) == 2
    assert not [run.id for run in (older, newer) if run.id[-4:] in " ".join(choice.options)]  # titles instead of hashes
    choice.set_value(older.id).run()
    assert older.id in app.query_params["run"]


@pytest.mark.parametrize(("page", "then"), [("4_Explore", "Selection"), ("6_Results", "Training")])
def test_page_without_runs_links_to_the_page_that_starts_them(page: str, then: str, made: dict[str, Corpus]) -> None:
    app = opened(f"pages/{page}.py")
    assert [link.proto.page for link in app.main.get("page_link")] == [then]
    assert not app.button


@pytest.mark.parametrize("page", list(PLACES))
def test_run_starts_in_the_chosen_place(page: str, made: dict[str, Corpus], monkeypatch: pytest.MonkeyPatch) -> None:
    started_runs = list[tuple[str, str]]()

    def start(kind: str, options: Mapping[str, object], on: str = "", **others: object) -> str:
        started_runs.append((kind, on))
        return audit(made["task"].fingerprint)

    monkeypatch.setattr(runs, "start", start)
    key, kind = PLACES[page]
    where = f"{key.removesuffix('.start')}.where"
    for places in (("local",), ("local", "ray")):
        monkeypatch.setattr(runs, "places", lambda steps=False, places=places: places)
        app = opened(page)
        assert bool([box for box in app.selectbox if box.key == where]) == (len(places) > 1)
    app.selectbox(key=where).select("ray")
    press(app, key)
    assert set(started_runs) == {(kind, "ray")}
