"""A run on its page, in the strip of every page and in the list of Home: how far it is, and what came out."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.corpora.corpus import Corpus
from core.facade import results, runs
from core.facade.home import store
from core.recipes.base import register
from core.runs.data import Data
from core.runs.events import EventLog, Kind, Part, RunState
from core.runs.lock import Worker
from core.runs.store import Run
from core.runs.where import Deeds, Node, Where
from pages.ui.runs import words as run_words
from pages.ui.runs.outcome import outcome
from pages.ui.runs.words import pace, stage, whole
from pages.ui.widgets import plain
from tests import finished
from tests.finished import corpora, finish
from tests.finished_bias import contracts, measured
from tests.pages.test_pages import ROOT, opened, opened_on, texts

Happened = tuple[Kind, Data]


@pytest.fixture
def made(home: Path) -> dict[str, Corpus]:
    return corpora(home)


@pytest.fixture
def begun(made: dict[str, Corpus], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Run]]:
    """`begun(*(kind, data), active=, seconds=)`: a selection to which this happened, `seconds` apart."""
    held: list[Run] = []

    def begin(*happened: Happened, active: bool = True, seconds: float = 5.0, **options: Any) -> Run:
        names = {role: made[role].fingerprint for role in ("task", "domain")}
        recipe = runs.RECIPES["select"]
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


STARTED: Happened = ("started", {"pid": 2**22 + 1, "created": 0.0})


def at(done: int, total: int = 60) -> Happened:
    return "progress", {"done": done, "total": total, "unit": "steps"}


def shown() -> AppTest:
    app = opened("pages/3_Selection.py")
    assert not app.exception
    return app


def test_a_run_of_another_s_says_whose_it_is(begun: Callable[..., Run], made: dict[str, Corpus]) -> None:
    """An own one does not; who would remove what it needs reads it too."""
    run = begun(STARTED, at(6))
    assert "ward3" not in texts(shown())
    anna = Worker(pid=4711, created=time.time(), run=run.id, account="anna", host="ward3")
    run.lock.path.write_bytes(anna.to_json())
    assert "anna&#44; process 4711 on ward3&#44; since " in texts(shown())
    app = opened("pages/1_Corpora.py")
    app.selectbox(key="corpora.doomed").select(made["task"].fingerprint).run()
    assert "Held by anna&#44; process 4711 on ward3" in texts(app)


def buttons(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


@pytest.mark.parametrize(
    ("gained", "seconds", "rate"),
    [(1, 24, "0.042"), (3, 7, "0.43"), (24, 10, "2.4"), (96, 10, "9.6"), (40, 1, "40"), (4321, 1, "4,321")],
)
def test_a_rate_has_the_digits_that_it_needs(begun: Callable[..., Run], gained: int, seconds: float, rate: str) -> None:
    run = begun(STARTED, ("stage", {"name": "score: training"}), at(0, 9999), at(gained, 9999), seconds=seconds)
    said = pace(run.state())
    assert said[:2] == [f"{gained:,} of 9,999 steps", f"{rate} steps a second"]
    assert stage(run.state()) == "Training"


def test_a_run_says_its_stage_its_pace_and_what_is_left(begun: Callable[..., Run]) -> None:
    begun(STARTED, ("stage", {"name": "training"}), at(0), at(10), at(20), at(30), seconds=5)
    app = shown()
    bar = app.main.get("progress")[0]
    assert bar.proto.text == plain("Training · 30 of 60 steps · 2.0 steps a second · about 15 s left in this stage")
    assert "Running" in texts(app)


def test_a_run_that_waits_says_so_and_for_whom(begun: Callable[..., Run]) -> None:
    other = begun(STARTED, strategy="length-matched-random")
    begun(STARTED, ("note", {"text": "waiting", "waiting_for": other.id}))
    app = shown()
    assert ":gray-badge[:material/hourglass_top: Waiting]" in texts(app)
    assert plain("by length-matched-random") in texts(app)
    assert "Running" not in texts(app)


def test_a_resumed_run_took_all_its_attempts(begun: Callable[..., Run]) -> None:
    failed: Happened = ("failed", {"error": "the disk is full"})
    begun(STARTED, failed, STARTED, failed, active=False, seconds=70)
    assert "took 2 min" in texts(shown())


def test_a_run_shows_its_machines_and_can_go_on_elsewhere(
    begun: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(STARTED, ("failed", {"error": "the head is gone"}), active=False)
    assert not any(box.key == "selection.run.where" for box in shown().selectbox)  # one that was here stays here
    nodes = (
        Node(name="ward3<b>", cores=8, cards=0, chunks=7, lost=2),
        Node(name="ward4", cores=4, cards=0, chunks=1, gone=True),
    )
    Where(on="ray:head:6379", nodes=nodes).keep(run.path)
    app = shown()
    assert "2 machines&#44; 12 cores&#44; 1 gone" in [each.label for each in app.expander]
    assert "ward3&lt;b&gt;" in texts(app)
    assert "idle; 2 died" in texts(app)
    resumed = list[tuple[str, str]]()
    monkeypatch.setattr(runs, "resume", lambda run_id, on, agreed: resumed.append((run_id, on)))
    assert app.selectbox(key="selection.run.where").options[0] == "the cluster at head:6379"
    app.selectbox(key="selection.run.where").select("local").run()
    app.button(key="selection.run.resume").click().run()
    assert resumed == [(run.id, "local")]


def test_processes_that_share_a_run_are_shown_as_machines(begun: Callable[..., Run]) -> None:
    run = begun(STARTED)
    with Deeds(run.path, 1).at_work():
        drawn = shown()
    assert "1 at work" in texts(drawn)
    assert "(share 1)" in texts(drawn)


def test_no_page_says_that_all_stays_here_while_sentences_go_to_a_cluster(begun: Callable[..., Run]) -> None:
    run = begun(STARTED)
    assert "Nothing leaves this machine" in texts(shown())
    Where(on="ray:head:6379").keep(run.path)
    drawn = texts(shown())
    assert "Nothing leaves this machine" not in drawn
    assert f"Sentences go to {plain('ray:head:6379')}" in drawn


def test_going_on_is_offered_only_where_it_can_help(begun: Callable[..., Run]) -> None:
    run = begun(STARTED, ("failed", {"error": "music shares no type with legal."}), active=False)
    app = shown()
    assert "Resume" in buttons(app)
    with EventLog(run.events_file) as log:
        log.append(*STARTED)
        log.append("failed", {"error": "music shares no type with legal.", "permanent": True})
    app = shown()
    assert "Resume" not in buttons(app)
    assert "start anew" in app.error[0].value


PART: Happened = ("part", {"number": 3, "of": 6, "name": "knn 10%: pre-training", "left": 720.0, "after": 60.0})


def test_the_panel_shows_the_whole_and_the_part(begun: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    begun(STARTED, PART, ("stage", {"name": "[3 of 6] pretrain: training"}), at(10), seconds=0)
    monkeypatch.setattr(time, "time", lambda: 1_000_000 + 660.0)
    app = shown()
    whole, part = app.main.get("progress")
    assert whole.proto.text == plain("Part 3 of 6, knn 10%: pre-training · 11 of about 12 min")
    assert whole.proto.value == 91
    assert part.proto.text == plain("Training · 10 of 60 steps")
    assert part.proto.value == 16


@pytest.mark.parametrize(
    ("spent", "whole", "said"),
    [(3, 60, "3 of about 60 s"), (660, 1380, "11 of about 23 min"), (5000, 12_000, "1.4 of about 3.3 h")],
)
def test_time_spent_and_time_in_all_are_in_one_unit(spent: float, whole: float, said: str) -> None:
    assert run_words.out_of(spent, whole) == said


def strip(app: AppTest) -> list[tuple[str, str]]:
    """(title, how far) of each run in the strip."""
    links = [link.proto.label for link in app.sidebar.get("page_link") if "run=" in link.proto.query_string]
    return list(zip(links, [bar.proto.text for bar in app.sidebar.get("progress")], strict=True))


@pytest.mark.parametrize("page", ["home.py", *(f"pages/{path.name}" for path in sorted(ROOT.glob("pages/*.py")))])
def test_every_page_shows_what_is_at_work(begun: Callable[..., Run], page: str) -> None:
    begun(STARTED, PART, ("stage", {"name": "training"}), at(10), seconds=0)
    waited = begun(STARTED, strategy="length-matched-random")
    begun(STARTED, ("note", {"text": "waiting", "waiting_for": waited.id}), strategy="ngram-perplexity")
    begun(STARTED, ("failed", {"error": "x"}), active=False, strategy="random", seed=3)
    title = "Select 10% of my domain by"
    app = opened(page)
    assert not app.exception
    said = dict(strip(app))
    assert sorted(said) == sorted(
        plain(f"{title} {by}") for by in ("random", "length-matched-random", "ngram-perplexity")
    )
    assert said[plain(f"{title} random")].startswith("Part 3 of 6")
    assert said[plain(f"{title} ngram-perplexity")].startswith("Waits for " + plain(f"{title} length-matched-random"))


def test_where_nothing_is_at_work_the_strip_is_empty(begun: Callable[..., Run]) -> None:
    begun(STARTED, ("failed", {"error": "x"}), active=False)
    assert strip(opened("pages/5_Training.py")) == []


def test_home_lists_every_kind_of_run_and_what_came_out(made: dict[str, Corpus], home: Path) -> None:
    labels = contracts(home)
    measured(home, labels)
    run = finished.experiment(home, made, finished.LINES[:2])
    add = finished.imported(made["task"])
    for i in range(9):
        finish(home, "add", {"path": f"/corpora/{i}.txt"}, lambda context: add)
    said = texts(opened("home.py"))
    for title in ("Measure names and contexts of my labels", "Experiment: none, classifier", "Import 0.txt"):
        assert plain(title) in said
    assert "Names tell" in said
    answer = plain(" ".join(results.finding(run.id).parts))
    assert said.count(answer) == 2  # in the list, and as what came out of the last step
    assert "to look at" not in said


def test_home_shows_eight_runs_or_all_of_them(made: dict[str, Corpus], home: Path) -> None:
    for i in range(10):
        finish(
            home, "pretrain", {"corpora": (made["task"].fingerprint,), "init": "tiny", "seed": i}, lambda context: {}
        )
    app = opened("home.py")
    assert texts(app).count(plain("Pre-train tiny on my task")) == 8
    app.toggle(key="home.all").set_value(True).run()
    assert texts(app).count(plain("Pre-train tiny on my task")) == 10


def test_what_came_out_is_said_in_a_line(made: dict[str, Corpus], home: Path) -> None:
    tagger = finished.tuned(home, made, "tiny", 0.6)
    assert outcome(tagger) == f"Score (F1) {tagger.result()['test']['mean']:.1f} ± " + (
        f"{tagger.result()['test']['sd']:.1f} over 3 seeds on my test"
    )
    names = {role: made[role].fingerprint for role in ("task", "domain")}
    chosen = runs.execute("select", {**names, "strategy": "random", "budget": "20%"})
    assert (
        outcome(chosen)
        == f"Selection: {chosen.result()['selected']} of 90 sentences, {chosen.result()['tokens']} tokens"
    )
    assert outcome(finish(home, "pretrain", {"corpora": (made["task"].fingerprint,)}, lambda context: {})) == ""


def test_a_mean_of_an_older_run_is_rounded_once_too(made: dict[str, Corpus], home: Path) -> None:
    """It was kept to three digits."""
    tagger = finished.tuned(home, made, "tiny", 0.6)
    told = tagger.result()
    told["test"] |= {"micro_f1": [64.4494, 64.4498], "mean": 64.45, "sd": 0.0}
    finished.returned(tagger, told)
    assert outcome(tagger).startswith("Score (F1) 64.4 ")


def test_a_stopped_import_does_not_say_that_something_of_it_was_kept(home: Path, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("A line .\n", encoding="utf-8")
    recipe = runs.RECIPES["add"]
    run = register(recipe, recipe.config.parse({"path": str(tmp_path / "long.txt")}), store())
    with EventLog(run.events_file) as log:
        log.append(*STARTED)
        log.append(*at(4_894, 5_006))
        log.append("cancelled", {})
    app = opened_on("pages/1_Corpora.py", run.id)
    assert "Nothing was added; Resume reads from the beginning" in texts(app)
    assert "is kept" not in texts(app)


@pytest.mark.parametrize("change", [{"cancelling": True}, {"state": "cancelled"}])
def test_no_time_is_left_of_a_run_that_was_stopped(change: dict[str, Any]) -> None:
    part = Part(number=1, of=2, name="pretrain", left=90.0, after=0.0, since=time.time())
    state = RunState(state="running", eta=4440.0, done=5, total=10, unit="steps", part=part, started=time.time())
    assert "left in this stage" in " ".join(pace(state))
    assert "of about" in " ".join(whole(state))
    stopped = replace(state, **change)
    assert not re.search("left|of about", " ".join([*pace(stopped), *whole(stopped)]))
