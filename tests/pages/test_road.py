"""The road on Home: what is known at each stop, and the one button that goes on."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.cli.experiment import in_figures
from core.corpora.library import Library
from core.errors import ConfigError
from core.facade import corpora, experiments, find_out, insights, labelling, prevalence, results, road, runs, selections
from core.facade.home import store
from core.recipes import RECIPES
from core.recipes.base import plan as planned
from core.recipes.base import register, work_of
from core.recipes.experiment import foresight
from core.recipes.experiment.config import ExperimentConfig
from core.runs import worker
from core.shown import duration
from core.text.sentence import Sentence, sentence_id
from tests import finished
from tests.conftest import Seal
from tests.pages.test_pages import opened, texts

KEPT = {"keep": ["near_duplicate"]}


def on_home() -> tuple[str, list[tuple[str, str, str]]]:
    """What Home says, and its links: page, label, query."""
    app = opened("home.py")
    assert not app.exception
    assert not app.error
    links = [(link.proto.page, link.proto.label, link.proto.query_string) for link in app.main.get("page_link")]
    return unescape(texts(app)).replace("\u2060", ""), links


def opened_with(page: str, state: Mapping[str, object]) -> AppTest:
    """A page of a visit with this state."""
    app = opened("home.py")
    for key, value in state.items():
        app.session_state[key] = value
    return app.switch_page(page).run()


def buttons(app: AppTest) -> list[str]:
    """What the buttons of a page say."""
    return [button.label for button in app.button]


def pressed(app: AppTest, label: str) -> AppTest:
    """The page after a button of it."""
    return next(button for button in app.button if button.label == label).click().run()


def test_an_empty_home_says_what_is_missing_and_goes_one_way(home: Path) -> None:
    said, links = on_home()
    assert "None yet: import your own, or open a sample." in said
    assert "Needs a task corpus and a domain corpus." in said
    assert "Needs a training set, a dev set and a test set." in said
    assert "Comes with the answer." in said
    assert ("Corpora", "**Add your texts**", "") in links
    assert not [label for _, label, _ in links if label.strip("*") in ("Choose", "Find out")]
    assert [row.reason for row in road.closer()] == ["", "", ""]


def test_with_texts_it_goes_to_the_choice_and_with_labels_to_the_question(home: Path) -> None:
    made = finished.corpora(home)
    said, links = on_home()
    assert "50 task sentences, 90 to select from, 60 for training, 190 for dev and test." in said
    assert ("Selection", "**Choose**", "") in links
    assert "Find out" in buttons(opened("home.py"))
    assert "Not asked yet." in said
    corpora.set_role("test", None)
    said, links = on_home()
    assert "Needs a test set." in said
    assert "Find out" not in buttons(opened("home.py"))
    corpora.set_role("test", made["test"].fingerprint)
    corpora.remove(made["domain"].fingerprint)
    assert not road.stops()[0].ready
    assert not road.stops()[2].open


def test_the_answer_stands_there_word_for_word_with_its_report(home: Path) -> None:
    run = finished.experiment(home, finished.corpora(home), finished.LINES[:2])
    app = opened("home.py")
    said, links = on_home()
    assert " ".join(results.finding(run.id).parts) in said
    assert ("Results", "All figures", f"run={run.id}") in links
    assert ("Results", "Word, HTML, tables", f"run={run.id}") in links
    [button] = [one for one in app.get("download_button") if one.proto.label == "Report (.pdf)"]
    assert button


def test_an_answer_of_other_texts_is_no_answer_here(seal: Seal, home: Path) -> None:
    run = finished.experiment(home, finished.corpora(home), finished.LINES[:2])
    assert road.stops()[2].run == run.id
    corpora.set_role("task", seal(["Another task ."] * 3, "another").fingerprint)
    worth, report = road.stops()[2:]
    assert (worth.run, worth.ready, report.ready) == ("", False, False)
    assert "Report (.pdf)" not in [one.proto.label for one in opened("home.py").get("download_button")]


def test_it_is_asked_again_of_more_repetitions(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = finished.corpora(home)
    run = finished.experiment(home, made, finished.LINES[:2])
    config = run.manifest.config
    assert len(config["seeds"]) == 3
    larger = ((0, None), (2, None), (6, 6), (8, 8))  # what would settle it, and the plan
    for settling, n in larger:
        with monkeypatch.context() as patch:
            patch.setattr(find_out, "repetitions_to_settle", lambda run_id, settling=settling: settling)
            asked = find_out.again(run)
            assert road.stops()[2].again == bool(asked) == bool(n)
            if n:
                assert (asked["seeds"], asked["repeat"]) == (tuple(range(1, n + 1)), "pipeline")
                assert {name: asked[name] for name in ("arms", "budgets", "encoder", "train")} == {
                    name: config[name] for name in ("arms", "budgets", "encoder", "train")
                }
    monkeypatch.setattr(find_out, "repetitions_to_settle", lambda run_id: 6)
    asked = find_out.again(run)
    timed(asked, home)
    begun: list[tuple[str, object]] = []
    monkeypatch.setattr(runs, "start", lambda kind, options, on="", **_: begun.append((kind, options)))
    app = pressed(opened("home.py"), "Ask again")
    said = unescape(texts(app)).replace("\u2060", "")
    assert "made 6 times" in said
    assert "its answer is known, the 95 of 100 cases hold a little less" in said
    pressed(app, "Start")
    assert begun == [("experiment", asked)]
    corpora.set_role("dev", None)  # what would be asked with is not all there
    assert not road.stops()[2].again
    assert "Ask again" not in buttons(opened("home.py"))


def test_a_chance_is_that_of_the_gain_beside_it(home: Path) -> None:
    """An experiment that is asked again keeps the gain that it was to find."""
    finished.corpora(home)
    asked = find_out.options(6)
    for effect, words in ((1.0, "a single point"), (2.5, "2.5 points")):
        wanted = {**asked, "effect": effect}
        chance = experiments.foresight(wanted).plans[0].chance
        assert f"; a gain of {words} in {100 * chance:.0f} of 100." in find_out.plan(wanted).shows


def test_a_choice_that_was_taken_by_lot_is_not_asked_about(home: Path) -> None:
    made = finished.corpora(home)
    marks = {name: made[name].fingerprint for name in ("task", "domain")}
    runs.execute("select", {**marks, "strategy": "random", "budget": "7", **KEPT})
    asked = find_out.options()
    assert (asked["arms"], asked["budgets"]) == (("none", "random", "classifier"), ("7",))
    timed(asked, home)
    assert "chosen by classifier" in find_out.plan(asked).compared


def test_leaks_are_one_number_on_home_corpora_selection_and_explore(seal: Seal, home: Path) -> None:
    lines = [f"The tenant of house number {i} shall pay the rent on the first day of month {i} ." for i in range(30)]
    held = [text.replace("shall", "must") for text in lines[:3]]
    pile = [*lines, *held, *(f"{text} " for text in held)]  # the leaks stand in it twice
    made = {"task": seal(lines[:8], "task"), "domain": seal(pile, "domain"), "test": seal(held, "test", labelled=True)}
    for role, corpus in made.items():
        corpora.set_role(role, corpus.fingerprint)
    marks = {role: made[role].fingerprint for role in ("task", "domain")}
    held_out = [made["test"].fingerprint]
    run = runs.execute("select", {**marks, "holdout": held_out, "strategy": "random", "budget": "5"})
    audit = runs.execute("audit", {"corpus": marks["domain"], "held_out": held_out})
    leaks = corpora.audit_result(audit.id).flags["leak"]
    twice = corpora.leaks_flagged_twice(audit.id)
    assert leaks > twice > 0
    assert selections.chosen(run.id).dropped["leak"] == leaks
    assert f"{leaks} sentences of the domain corpus are also in the dev or test set" in road.stops()[0].known
    counts = insights.flag_counts(run.id, np.arange(len(made["domain"])))
    assert counts["leak"] == leaks
    assert sum(counts.values()) == sum(selections.chosen(run.id).dropped.values())
    assert f"Of the leaks, {twice} are duplicates too" in unescape(texts(opened("pages/1_Corpora.py")))


def test_a_choice_is_told_by_its_size_share_leaks_and_hand_edits(
    seal: Seal, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"The tenant of house number {i} shall pay the rent on the first day of a month ." for i in range(40)]
    made = {"task": seal(lines[:8], "task"), "domain": seal(lines[4:], "domain")}
    for role, corpus in made.items():
        corpora.set_role(role, corpus.fingerprint)
    options = {name: corpus.fingerprint for name, corpus in made.items()}
    run = runs.execute("select", {**options, "strategy": "random", "budget": "9", "keep": ["near_duplicate"]})
    stop = road.stops()[1]
    assert stop.run == run.id
    assert stop.known.startswith("9 of 36 sentences (25.0%), by random.")
    said, links = on_home()
    assert stop.known in said
    assert ("Explore", "Map", f"choice={run.id}") in links
    assert ("Explore", "Health", f"choice={run.id}&explore.tab=Health+of+the+selection") in links
    store().remove(run.id)
    assert road.stops()[1].known == "Nothing chosen yet."
    monkeypatch.setattr(prevalence, "counted", lambda task, domain: object())
    monkeypatch.setattr(prevalence, "in_words", lambda count: "About 9 are like your task.")
    assert road.stops()[1].known.endswith("About 9 are like your task.")


def test_a_saved_choice_stays_on_home_when_the_domain_corpus_changes(seal: Seal, home: Path) -> None:
    made = finished.corpora(home)
    marks = {name: made[name].fingerprint for name in ("task", "domain")}
    run = runs.execute("select", {**marks, "strategy": "random", "budget": "20", **KEPT})
    corpora.set_role("domain", seal([f"The lessor pays {n} euros ." for n in range(60)], "other").fingerprint)
    said, links = on_home()
    assert "Nothing chosen from the present corpora yet." in said
    assert f"(20 sentences), made from {made['domain'].name}." in said
    [query] = [query for page, label, query in links if (page, label) == ("Explore", "Saved selection")]
    assert query == f"choice={run.id}"
    app = opened("home.py")
    app.query_params["choice"] = run.id
    app.switch_page("pages/4_Explore.py").run()
    assert not app.exception
    assert "Nothing here is of the corpora in use" not in texts(app)


def test_the_health_of_a_choice_stands_on_its_line_where_measuring_takes_no_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = finished.corpora(home)
    marks = {name: made[name].fingerprint for name in ("task", "domain")}
    run = runs.execute("select", {**marks, "strategy": "random", "budget": "9", **KEPT})
    measured = insights.health(run.id)
    for warnings, words in (
        ((), "Its health: nothing calls for a warning."),
        (("It is short.",), "Its health: It is short."),
        (("It is short.", "It repeats.", "It is dull."), "Its health: It is short. And 2 more."),
    ):
        with monkeypatch.context() as patch:
            health = replace(measured, warnings=warnings)
            patch.setattr(insights, "health", lambda choice_id, labelled, health=health: health)
            assert road.health(run.id) == words
            assert words in on_home()[0]
    monkeypatch.setattr(road, "MEASURED", 89)  # of 90
    monkeypatch.delattr(insights, "health")
    assert road.health(run.id) == ""
    assert "Its health" not in on_home()[0]


def test_a_choice_that_is_being_made_is_said_and_watched(home: Path) -> None:
    made, recipe = finished.corpora(home), RECIPES["select"]
    marks = {name: made[name].fingerprint for name in ("task", "domain")}
    with finished.at_work(register(recipe, recipe.config.parse({**marks, "strategy": "random"}), store())) as run:
        said, links = on_home()
        assert "It is being chosen now." in said
        assert ("Selection", "**Watch it**", f"run={run.id}") in links
        corpora.set_role("domain", made["test"].fingerprint)  # of other texts it is no choice of this road
        assert road.stops()[1].known == "Nothing chosen yet."


def test_an_experiment_at_work_is_said_and_few_labels_or_many_sources_are_reasons_to_look_closer(
    seal: Seal, home: Path
) -> None:
    made = finished.corpora(home)
    recipe = RECIPES["experiment"]
    marks = {role: corpus.fingerprint for role, corpus in made.items()}
    with finished.at_work(register(recipe, recipe.config.parse({"arms": ["none"], **marks}), store())):
        assert road.stops()[2].known == "It is being found out now."
        assert not road.stops()[3].ready
    seal([Sentence(id=sentence_id("More text"), tokens=("More", "text"), text="More text")], "third")
    reasons = {row.name: row.reason for row in road.closer()}
    assert reasons["similarity"] == "2 texts could be chosen from: which is closest?"
    assert "Your training set is small" in reasons["assisting"]
    assert reasons["bias"] == ""
    assert [row.name for row in road.closer()][-1] == "bias"


def timed(asked: Mapping[str, object], home: Path, *, busy: bool = False) -> None:
    """This machine's speed is known for an experiment."""
    measured = replace(finished.TIMED, busy=busy)
    finished.finish(home, "calibrate", experiments.calibration(asked), lambda _: measured)


def test_find_out_times_the_machine_first_then_says_what_is_compared_how_long_and_what_it_could_show(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished.corpora(home)
    begun: list[tuple[str, object]] = []
    monkeypatch.setattr(runs, "start", lambda kind, options, on="", **_: begun.append((kind, options)))
    asked = find_out.options()
    recipe = RECIPES["calibrate"]
    with finished.at_work(register(recipe, recipe.config.parse(experiments.calibration(asked)), store())):
        app = pressed(opened("home.py"), "Find out")
        assert "First this machine is timed" in texts(app)
        assert "Start" not in buttons(app)
        assert begun == []  # it is at work already
    timed(asked, home, busy=True)
    monkeypatch.setattr(prevalence, "before", lambda options: f"About 9; you ask for {options['budgets']}.")
    app = pressed(opened("home.py"), "Find out")
    said = unescape(texts(app)).replace("\u2060", "")
    assert "Your tagger as it is; after reading 10% of my domain at random; after reading as much" in said
    assert "made 3 times, all of it anew, trained on my train and tested on my test" in said
    assert "About 9; you ask for ('10%',)." in said
    assert "It takes about" in said
    assert "when it is quiet, it takes less" in said
    found = r"detect gains of about \d+\.\d points or more, in 80 of 100 cases; a gain of a single point in \d+ of 100"
    assert re.search(found, said)
    assert "This is assumed for 150 test sentences until a first tagger has been trained on these labels." in said
    app = pressed(app, "Start")
    assert begun == [("experiment", find_out.options(encoder="minilm"))]
    assert "Start" not in buttons(app)


def test_the_road_says_before_it_is_asked_what_the_plan_takes_and_could_show(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished.corpora(home)
    with monkeypatch.context() as patch:
        patch.delattr(foresight, "power")  # whose simulations take seconds
        said, _ = on_home()
    assert "How long that takes is timed first" in said
    timed(find_out.options(), home)
    least = []
    for n in find_out.REPLICATES[:2]:
        plan = find_out.plan(find_out.options(n))
        [points] = re.findall(r"^It can detect gains of about (\d+\.\d points) or more", plan.shows)
        [time] = re.findall(r"^It takes (about .*) on this machine\.", plan.time)
        least.append((time, points))
    (first, gains), (more, larger) = least
    words = (
        f"With 3 repetitions ({first}) you can detect gains of about {gains} or more, with 6 ({more}) of about {larger}, "
        "in 80 of 100 cases. This is assumed for 150 test sentences"
    )
    app = opened("home.py")
    assert words in unescape(texts(app)).replace("\u2060", "")
    with monkeypatch.context() as patch:
        patch.delattr(experiments, "least_difference")  # nothing has finished meanwhile: it is not worked out again
        assert words in on_home()[0]
    assert words not in unescape(texts(pressed(app, "Find out"))).replace("\u2060", "")  # the plan says more
    made = {role: corpora.find(mark) for role, mark in corpora.roles().items()}
    finished.tuned(home, made, "tiny", 0.6)
    assert "By 3 taggers trained on these labels so far." in on_home()[0]
    corpora.set_role("test", None)
    assert "can detect" not in on_home()[0]


def test_find_out_tries_the_choice_that_was_made_and_more_replicates_end_early(home: Path) -> None:
    made = finished.corpora(home)
    marks = {name: made[name].fingerprint for name in ("task", "domain")}
    run = runs.execute(
        "select", {**marks, "strategy": "ngram-perplexity", "budget": "7", "options": {"order": 2}, **KEPT}
    )
    plain, twelve = find_out.options(), find_out.options(12, "tiny")
    assert (plain["arms"], plain["budgets"], plain["looks"]) == (("none", "random", "ngram-perplexity"), ("7",), ())
    assert plain["select"] == KEPT
    config = ExperimentConfig.parse(plain)
    assert config.strategies["ngram-perplexity"]["order"] == 2
    assert (twelve["seeds"], twelve["looks"], twelve["encoder"]) == (tuple(range(1, 13)), (4, 8, 12), "tiny")
    timed(plain, home)
    assert not find_out.plan(plain).edited
    selections.edit(run.id, "remove", selections.chosen(run.id).rows[:1])
    asked = find_out.options()
    assert asked["budgets"] == ("6",)
    assert find_out.plan(asked).edited


def test_a_choice_that_the_experiment_made_stands_on_the_road_while_the_rest_is_found_out(home: Path) -> None:
    made = finished.corpora(home)
    marks = {name: made[name].fingerprint for name in ("task", "domain")}
    recipe = RECIPES["select"]
    for strategy in ("ngram-perplexity", "random"):
        wanted = planned(recipe, recipe.config.parse({**marks, "strategy": strategy, "budget": "7", **KEPT}), home)
        child = store().create(**wanted.manifest(), parent="20261123-170000-experiment-0000")
        worker.execute(child, work_of(child, RECIPES))
    assert road.stops()[1].known.startswith("7 of 90 sentences (7.8%), by ngram-perplexity.")
    with pytest.raises(ConfigError):
        runs.execute("select", {**marks, "strategy": "random", "budget": "threshold:99999", **KEPT})
    chosen = road.stops()[1].run
    selection = opened("pages/3_Selection.py")
    assert not selection.exception
    assert "7" in [metric.value for metric in selection.metric if metric.label == "Selected"]
    assert chosen in [box.value for box in selection.selectbox if box.label == "The selection"]
    training = opened_with("pages/5_Training.py", {"training.kind": "pretrain"})
    assert not training.exception
    assert chosen in [box.value for box in training.selectbox if box.label == "Selection"]


def test_without_labels_the_road_ends_with_sentences_to_label(seal: Seal, home: Path) -> None:
    lines = [f"Clause {i} : the tenant pays ." for i in range(400)]
    task = seal([*lines, *(line.upper() for line in lines)], "task")
    corpora.set_role("task", task.fingerprint)
    corpora.set_role("domain", seal(lines[:90], "domain").fingerprint)
    app = opened("home.py")
    assert [one.proto.label for one in app.get("download_button")] == ["Sentences to label"]
    rows = [json.loads(line) for line in labelling.to_label(task.fingerprint).splitlines()]
    texts_to_label = [row["text"] for row in rows]
    assert len({text.upper() for text in texts_to_label}) == len(rows) == labelling.MOST
    assert {*texts_to_label} <= {*lines, *(line.upper() for line in lines)}
    assert texts_to_label != sorted(texts_to_label)  # by chance, not the first ones
    assert labelling.to_label(task.fingerprint) == labelling.to_label("task")
    few = labelling.to_label(corpora.roles()["domain"]).splitlines()
    assert len(few) == 90


def test_a_plan_of_many_hours_offers_a_shorter_one_on_fewer_labels(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished.corpora(home)
    train = Library(home).seal(finished.labelled(700, 9, "more"), name="many labels", origin={}, labelled=True)
    corpora.set_role("train", train.fingerprint)
    asked = find_out.options()
    slow = replace(finished.TIMED, tagger=(0.2, 0.02))
    finished.finish(home, "calibrate", experiments.calibration(asked), lambda _: slow)
    shorter = experiments.shorter(asked)
    assert shorter
    assert shorter.labels in (100, 200, 300, 500)
    before = experiments.cost(asked).seconds
    assert shorter.seconds <= 0.7 * before
    *_, offer = in_figures(experiments.cost(asked), shorter)
    assert re.fullmatch(rf"with {shorter.labels} of your labels +\S+ h; add --labels {shorter.labels}", offer)
    with pytest.raises(ConfigError, match="many labels has 700 sentences"):
        experiments.on_fewer_labels(asked, 700)
    monkeypatch.setattr(runs, "start", lambda kind, options, on="", **_: begun.append(options))
    begun: list[dict[str, str]] = []
    app = pressed(opened("home.py"), "Find out")
    choice = app.get("button_group")[-1]
    assert f"with {shorter.labels} of your labels: {duration(shorter.seconds)}" in choice.proto.options[1].content
    app.session_state["home.find.labels"] = shorter.labels
    app = app.run()
    assert not app.exception
    said = unescape(texts(app)).replace("\u2060", "")
    assert f"It takes about {duration(shorter.seconds)} on this machine." in said
    pressed(app, "Start")
    part = corpora.find(begun[0]["train"])
    assert (part.name, len(part), part.derived) == (f"many labels, {shorter.labels} sentences", shorter.labels, True)
    assert len({sentence.id for sentence in next(part.batches(0, 1000))}) == shorter.labels
