"""The steps on Home: the state of each step, and the button that leads to the next one."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.corpora.library import Library
from core.errors import ConfigError
from core.experiment import find_out, foresight, results
from core.experiment import view as experiments
from core.experiment.cli import in_figures
from core.experiment.config import ExperimentConfig
from core.experiment.result import PlannedTest
from core.importing import view as corpora
from core.importing.audit import LEARNABLE
from core.importing.result import AuditResult
from core.kind import plan as planned
from core.kind import register, work_of
from core.kinds import KINDS
from core.projects import home_steps, privacy, removals, runs, titles
from core.projects.home import store
from core.projects.privacy import Check, Verdict
from core.runs import worker
from core.runs.events import EventLog
from core.runs.result import read as read_result
from core.selection import insights, labelling
from core.selection import prevalence_view as prevalence
from core.selection import view as selections
from tests import finished
from tests.conftest import Seal
from tests.pages.drawing import audit, keys, opened, press, seen, texts
from tests.pages.drawing import select as selected

KEPT = {"keep": ["near_duplicate"]}


def on_home() -> tuple[str, list[tuple[str, str]], set[str | None]]:
    """Return what Home says, its links (page, query), and the keys of its buttons."""
    app = opened("home.py")
    assert not app.error
    links = [(link.proto.page, link.proto.query_string) for link in app.main.get("page_link")]
    return seen(app), links, keys(app) | {one.key for one in app.get("download_button")}


def select(strategy: str = "random", budget: str = "9", **more: Any) -> str:
    """Select from the corpora in use, including near duplicates."""
    return selected(strategy, budget, **KEPT, **more)


def timed(options: Mapping[str, object], home: Path, **changes: Any) -> None:
    """Store a calibration of this machine for an experiment."""
    measured = replace(finished.TIMED, **changes)
    finished.finish(home, "calibrate", experiments.calibrations(options)[0], lambda _: measured)


def test_each_step_opens_when_its_inputs_exist(home: Path) -> None:
    assert [stop.open for stop in home_steps.steps()] == [True, False, False, False]
    assert [row.reason for row in home_steps.further()] == ["", "", "", ""]
    made = finished.corpora(home)
    page_text, links, buttons = on_home()
    assert home_steps.steps()[0].known in page_text
    assert [re.search(rf"\b{n}\b", page_text) is not None for n in (50, 90, 60, 190)] == [True] * 4  # sentences
    assert ("Selection", "") in links
    assert "home.find" in buttons
    corpora.set_role("test", None)
    assert not home_steps.steps()[2].open
    assert "home.find" not in on_home()[2]
    corpora.set_role("test", made["test"].fingerprint)
    corpora.remove(made["domain"].fingerprint)
    assert not home_steps.steps()[0].ready
    assert not home_steps.steps()[2].open


def test_home_shows_an_answer_only_for_the_corpora_in_use(seal: Seal, home: Path) -> None:
    run = finished.experiment(home, finished.corpora(home), finished.LINES[:2])
    page_text, links, buttons = on_home()
    found = results.finding(run.id)
    assert f":green[**{found.word}**]{found.what.removeprefix(found.word)} {found.next}" in page_text
    assert ("Results", f"run={run.id}") in links
    assert "home.report.pdf" in buttons
    first = home_steps.further()[0]
    assert (first.name, "labelling more may help" in first.reason) == ("label", True)
    assert first.reason in page_text
    corpora.set_role("task", seal(["Another task ."] * 3, "another").fingerprint)
    worth, report = home_steps.steps()[2:]
    assert (worth.run, worth.ready, report.ready) == ("", False, False)
    assert "home.report.pdf" not in on_home()[2]


def test_a_finished_experiment_with_a_date_and_time_as_draw_seed_is_shown(home: Path) -> None:
    """Only trainings need a seed below 2**32. Parts of labels, for example, were drawn with larger ones."""
    run = finished.experiment(home, finished.corpora(home), finished.LINES[:2])
    file = run.path / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["config"] |= {"draw_seed": 20261129113000, "repeat": "tagger"}
    file.write_text(json.dumps(manifest))
    assert home_steps.steps()[2].run == run.id
    config = ExperimentConfig.parse(manifest["config"])
    assert {replicate.draw for cell in config.cells for replicate in config.replicates(cell)} == {
        20261129113000 % 2**32
    }


def test_more_repetitions_are_offered_only_if_they_would_settle_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, started_runs: list[tuple[str, Mapping[str, Any]]]
) -> None:
    run = finished.experiment(home, finished.corpora(home), finished.LINES[:2])
    config = run.manifest.config
    assert len(config["seeds"]) == 3
    # Replicates that would settle it, and replicates in the plan.
    for settling, n in ((0, None), (2, None), (8, 8), (6, 6)):
        monkeypatch.setattr(find_out, "repetitions_to_settle", lambda run_id, settling=settling: settling)
        again = find_out.again(run)
        assert home_steps.steps()[2].again == bool(again) == bool(n)
        if n:
            assert (again["seeds"], again["repeat"]) == (tuple(range(1, n + 1)), "pipeline")
            for name in ("arms", "budgets", "encoder", "train"):
                assert again[name] == config[name]
    timed(again, home)
    app = opened("home.py")
    press(app, "home.find")
    press(app, "home.find.start")
    assert started_runs == [("experiment", again)]
    monkeypatch.setattr(results, "seconds_to_settle", lambda run_id: 1740.0)
    app = opened("pages/6_Results.py")
    assert app.button(key="results.surer").label == "Make it surer (29 min)"
    press(app, "results.surer")
    assert "home.find.start" in keys(app)  # the plan on Home
    corpora.set_role("dev", None)  # one of the corpora in the plan is missing
    assert not home_steps.steps()[2].again


def test_more_repetitions_are_offered_after_an_early_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict advises five replicates after an end with four, also if six were planned."""
    run = finished.experiment(home, finished.corpora(home), finished.LINES[:2])
    planned = PlannedTest(
        arm="classifier", budget="10", against="random", looks=(2, 3), replicates=2, ended="shown",
        p=0.001, bound=0.01, effect=1.0, chance=0.9, why="",
    )  # fmt: skip
    early = replace(results.board(run.id), planned=planned)
    monkeypatch.setattr(find_out, "repetitions_to_settle", lambda run_id: 3)
    assert find_out.again(run) == {}  # all three of the planned replicates were made
    monkeypatch.setattr(find_out, "board", lambda run_id: early)
    assert find_out.again(run)["seeds"] == (1, 2, 3)


def test_home_corpora_selection_and_explore_show_the_same_leak_count(seal: Seal, home: Path) -> None:
    lines = [f"The tenant of house number {i} shall pay the rent on the first day of month {i} ." for i in range(30)]
    held = [text.replace("shall", "must") for text in lines[:3]]
    pile = [*lines, *held, *(f"{text} " for text in held)]  # each leak occurs twice
    made = {"task": seal(lines[:8], "task"), "domain": seal(pile, "domain"), "test": seal(held, "test", labelled=True)}
    for role, corpus in made.items():
        corpora.set_role(role, corpus.fingerprint)
    held_out = made["test"].fingerprint
    run = selected(budget="5", holdout=[held_out])
    checked = audit(made["domain"].fingerprint, held_out)
    leaks = read_result(runs.get(checked), AuditResult).flags["leak"]
    twice = corpora.leaks_flagged_twice(checked)
    assert leaks > twice > 0
    assert selections.chosen(run).dropped["leak"] == leaks
    assert f"{leaks} sentences of the domain corpus are also in the dev or test set" in home_steps.steps()[0].known
    counts = insights.flag_counts(run, np.arange(len(made["domain"])))
    assert counts["leak"] == leaks
    assert sum(counts.values()) == sum(selections.chosen(run).dropped.values())
    assert f"Of the leaks, {twice} are duplicates too" in unescape(texts(opened("pages/1_Corpora.py")))


def test_selection_is_described_by_size_share_health_and_prevalence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished.corpora(home)
    run = select()
    stop = home_steps.steps()[1]
    assert stop.run == run
    assert stop.known.startswith("9 of 90 sentences (10.0%), by random.")
    page_text, links, _ = on_home()
    assert stop.known in page_text
    assert ("Explore", f"choice={run}") in links
    measured = insights.health(run)
    for warnings in ((), ("It is short.",), ("It is short.", "It repeats.", "It is dull.")):
        with monkeypatch.context() as patch:
            health = replace(measured, warnings=warnings)
            patch.setattr(insights, "health", lambda choice_id, labelled, health=health: health)
            words = home_steps.health(run)
            assert (warnings[0] in words) if warnings else words
            assert ("2 more" in words) == (len(warnings) == 3)
    assert words.split(".")[0] not in page_text
    # 90 sentences are over this limit, so measuring would take too long.
    monkeypatch.setattr(home_steps, "MEASURED", 89)
    monkeypatch.delattr(insights, "health")
    assert home_steps.health(run) == ""
    store().remove(run)
    assert not home_steps.steps()[1].run
    monkeypatch.setattr(prevalence, "counted", lambda task, domain: object())
    monkeypatch.setattr(prevalence, "in_words", lambda count: "About 9 are like the task corpus.")
    assert home_steps.steps()[1].known.endswith("About 9 are like the task corpus.")


def test_a_selection_stays_in_use_until_a_corpus_that_it_read_changes(seal: Seal, home: Path) -> None:
    made = finished.corpora(home)
    run = select(train=made["train"].fingerprint)
    corpora.set_role("train", seal([f"The tenant pays {n} euros ." for n in range(9)], "labels").fingerprint)
    assert home_steps.steps()[1].run == run  # the strategy random reads no labels
    corpora.set_role("domain", seal([f"The lessor pays {n} euros ." for n in range(60)], "other").fingerprint)
    assert not home_steps.steps()[1].run
    page_text, links, _ = on_home()
    assert "made from my domain" in page_text
    assert ("Explore", f"choice={run}") in links


def test_a_running_import_replaces_the_empty_notice(home: Path) -> None:
    assert "No texts yet" in on_home()[0]
    recipe = KINDS["add"]
    with finished.as_running(register(recipe, recipe.config.parse({"path": "/data/a.txt"}), store())):
        assert "An import is running." in on_home()[0]
        assert "There are no corpora yet" not in texts(opened("pages/1_Corpora.py"))
    assert "There are no corpora yet" in texts(opened("pages/1_Corpora.py"))


def test_an_empty_home_says_how_many_labels_are_needed_and_how_long_they_take(home: Path) -> None:
    page_text = on_home()[0]
    assert "label about 100 sentences for training, and 300 entities each in the dev and the test set" in page_text
    assert "Labelling a sentence takes about 30 s" in page_text


def test_imported_corpora_without_a_role_are_named(home: Path, seal: Seal) -> None:
    for name in ("notes", "letters", "reports", "mails"):
        seal([f"One of {name} ."], name)
    page_text = on_home()[0]
    assert "Imported, but without a role: " in page_text
    assert " and 1 more. Give each a role on the page Corpora." in page_text


def test_a_running_selection_or_experiment_is_described_as_running(seal: Seal, home: Path) -> None:
    made = finished.corpora(home)
    marks = {role: corpus.fingerprint for role, corpus in made.items()}
    recipe = KINDS["experiment"]
    with finished.as_running(register(recipe, recipe.config.parse({"arms": ["none"], **marks}), store())) as run:
        assert home_steps.steps()[2].run in ("", run.id)
        assert "running" in home_steps.steps()[2].known
        assert not home_steps.steps()[3].ready
    known = home_steps.steps()[2].known  # its process has ended
    assert "the last experiment was interrupted. Resume it on the page Training, or start a new one." in known
    [button] = [each for each in opened("pages/5_Training.py", run=run.id).button if each.label == "Resume"]
    assert not button.disabled
    study = store().create("study", {"arms": ["none"]}, {}, versions={}, key="k")
    with finished.as_running(study):
        assert home_steps.steps()[2].known == "The study is running."
    assert "the last study was interrupted" in home_steps.steps()[2].known
    with EventLog(study.events_file) as log:
        log.append("failed", {"error": "budgets: give at least one.", "permanent": True})
    assert home_steps.steps()[2].known.endswith("the last study failed. Start a new one.")
    recipe = KINDS["select"]
    options = {"task": marks["task"], "domain": marks["domain"], "strategy": "random"}
    with finished.as_running(register(recipe, recipe.config.parse(options), store())) as run:
        assert ("Selection", f"run={run.id}") in on_home()[1]
        assert "running" in home_steps.steps()[1].known
        corpora.set_role("domain", made["test"].fingerprint)  # a selection from other corpora does not count
        assert not home_steps.steps()[1].run
    seal(["More text"], "third")
    reasons = {row.name: row.reason for row in home_steps.further()}
    assert "2 " in reasons["similarity"]
    assert reasons["assisting"]  # few labels
    assert reasons["bias"] == ""
    assert [row.name for row in home_steps.further()][-1] == "bias"


def test_plan_times_the_machine_and_then_states_time_and_power(
    home: Path, monkeypatch: pytest.MonkeyPatch, started_runs: list[tuple[str, Mapping[str, Any]]]
) -> None:
    finished.corpora(home)
    first, recipe = find_out.options(), KINDS["calibrate"]
    with finished.as_running(register(recipe, recipe.config.parse(experiments.calibrations(first)[0]), store())):
        app = opened("home.py")
        press(app, "home.find")
        assert "home.find.start" not in keys(app)
        assert started_runs == []  # the calibration is already running
    timed(first, home, busy=True)
    monkeypatch.setattr(prevalence, "before", lambda options: f"About 9; your budget takes {options['budgets']}.")
    plan = find_out.plan(first)
    assert find_out.is_timed(first)
    assert plan.alike == "About 9; your budget takes ('10%',)."
    for effect in (1.0, 2.5):  # a repeated experiment keeps its planned effect
        wanted = {**first, "effect": effect}
        chance = experiments.foresight(wanted).plans[0].chance
        assert f" in {100 * chance:.0f} of 100" in find_out.plan(wanted).shows
    app = opened("home.py")
    press(app, "home.find")
    assert seen(app).count(find_out.BUSY) == 2  # beside the button, and in the plan
    assert find_out.MEASURED in seen(app)
    with monkeypatch.context() as patch:
        removed = list[str]()
        patch.setattr(removals, "remove_run", removed.append)
        press(app, "home.find.again")
        [timing] = removed
        assert store().get(timing).manifest.kind == "calibrate"
    times = find_out.affordable("minilm")
    options = find_out.within(next(each for each in times if each.replicates), "minilm")
    plan = find_out.plan(options, times)
    app = opened("home.py")
    press(app, "home.find")
    page_text = seen(app)
    for sentence in (plan.compared, plan.alike, plan.time, plan.shows):
        assert sentence in page_text
    press(app, "home.find.start")
    assert started_runs == [("experiment", options)]
    assert "home.find.start" not in keys(app)


def test_plan_names_the_variants_of_the_experiment_that_it_repeats(home: Path) -> None:
    made = finished.corpora(home)
    marks = {role: corpus.fingerprint for role, corpus in made.items()}
    ours = find_out.plan({**marks, "arms": ["knn"], "seeds": [1, 2, 3]}).compared
    assert ours.startswith(
        "Three taggers are compared: one without further pre-training; one pre-trained on my task and 10% of my domain, "
        "selected by knn; and one pre-trained on my task and as much text of my domain, drawn at random. Each is"
    )
    other = find_out.plan({**marks, "arms": ["tapt", "dictionary"], "seeds": [1, 2, 3]}).compared
    assert other == (
        "4 variants are compared: none, random-only, tapt, dictionary. Each that is trained is repeated from the start "
        "3 times, trained on my train and tested on my test."
    )
    several = find_out.plan({**marks, "arms": ["knn"], "seeds": [1, 2, 3], "axis": ["encoder:tiny"]}).compared
    assert several.startswith("3 variants are compared: none, random, knn. Taggers start from 2 encoders. Each is")
    multiples = find_out.plan({**marks, "arms": ["knn"], "seeds": [1, 2, 3], "multipliers": True}).compared
    assert multiples.startswith("5 variants are compared: none, random 10%, knn, random 20%, random 40%. Each is")


def test_a_plan_with_little_power_proposes_a_stronger_one_first(
    home: Path, monkeypatch: pytest.MonkeyPatch, started_runs: list[tuple[str, Mapping[str, Any]]]
) -> None:
    finished.corpora(home)
    plan_options, real = find_out.options(), experiments.foresight
    timed(plan_options, home)
    chances = [0.11]

    def with_low_power(options: Mapping[str, object]) -> foresight.Foresight:
        found = real(options)
        return replace(found, plans=(replace(found.plans[0], chance=chances[0]),))

    def affordable(limit: float, replicates: int, points: float) -> find_out.Affordable:
        return find_out.Affordable(limit=limit, replicates=replicates, labels=0, seconds=limit / 2, points=points)

    times = [
        affordable(600.0, 0, 9.0),
        affordable(1800.0, 3, 9.0),
        affordable(3600.0, 5, 1.1),
        affordable(7200.0, 12, 1.0),
    ]
    monkeypatch.setattr(experiments, "foresight", with_low_power)
    monkeypatch.setattr(find_out, "affordable", lambda encoder="": times)
    assert find_out.plan(plan_options, times).stronger == times[3]
    app = opened("home.py")
    press(app, "home.find")
    slider = app.select_slider(key="home.find.time")
    assert slider.value == 1800.0  # the shortest time in which a plan fits
    [button] = [button for button in app.button if button.key == "home.find.stronger"]
    assert button.label == "Plan 12 replicates instead (60 min)"
    press(app, "home.find.stronger")
    assert app.select_slider(key="home.find.time").value == 7200.0
    assert started_runs == []
    app.select_slider(key="home.find.time").set_value(600.0).run()
    assert "10 min is too short. The shortest plan takes about 5 min" in seen(app)
    assert "home.find.start" not in keys(app)
    assert find_out.plan(plan_options, times[:3]).stronger is None
    words = "No plan of up to 10.0 h detects this gain in 80 of 100 cases; more labelled text would help more."
    assert words in find_out.plan(plan_options, times[:3]).shows
    chances[0] = 0.4
    assert words not in find_out.plan(plan_options, times[:3]).shows


def test_plans_within_a_time_limit_use_fewer_labels_if_it_is_short(home: Path) -> None:
    finished.corpora(home)
    train = Library(home).seal(finished.labelled(700, 9, "more"), name="many labels", origin={}, labelled=True)
    corpora.set_role("train", train.fingerprint)
    timed(find_out.options(encoder="tiny"), home, tagger=(0.05, 0.003))
    plans = find_out.affordable("tiny")
    assert [plan.limit for plan in plans] == list(find_out.LIMITS)
    fitting = [plan for plan in plans if plan.replicates]
    assert [plan.replicates > 0 for plan in plans] == sorted(plan.replicates > 0 for plan in plans)
    assert len({plan.labels for plan in fitting}) > 1  # some plans use all labels
    for plan in fitting:
        options = find_out.within(plan, "tiny")
        assert len(corpora.find(str(options["train"]))) == (plan.labels or 700)
        assert len(ExperimentConfig.parse(options).seeds) == plan.replicates >= find_out.REPLICATES[0]
        assert experiments.cost(options).seconds == pytest.approx(plan.seconds, rel=0.02)
        assert plan.seconds <= plan.limit
        assert plan.points == experiments.least_difference(options).points
    for plan in plans:
        if not plan.replicates:
            assert plan.seconds > plan.limit
    whole = [plan.points for plan in fitting if not plan.labels]
    assert whole == sorted(whole, reverse=True)


def test_the_plan_shows_time_and_power_without_repeating_the_simulation(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = finished.corpora(home)
    with monkeypatch.context() as patch:
        patch.delattr(foresight, "power")  # its simulations take seconds
        before = find_out.outlook()
    timed(find_out.options(), home)
    words = find_out.outlook()
    assert words != before
    for n in find_out.REPLICATES:
        plan = find_out.plan(find_out.options(n))
        [points] = re.findall(r"(\d+\.\d) points", plan.shows)[:1]
        [time] = re.findall(r"(about \S+ \w+) on this machine", plan.time)
        assert points in words
        assert time in words
    with monkeypatch.context() as patch:
        # Nothing has finished since, so the forecast is not computed again.
        patch.delattr(experiments, "least_difference")
        assert words in on_home()[0]
    finished.tuned(home, made, "tiny", 0.6)
    assert find_out.outlook() != words  # computed from taggers that were trained on these labels


def test_plan_uses_the_current_selection(home: Path) -> None:
    finished.corpora(home)
    select(budget="7")
    assert (find_out.options()["arms"], find_out.options()["budgets"]) == (("none", "random", "classifier"), ("7",))
    run = select("ngram-perplexity", "7", options={"order": 2})
    plain, twelve = find_out.options(), find_out.options(12, "tiny")
    assert (plain["arms"], plain["budgets"], plain["looks"]) == (("none", "random", "ngram-perplexity"), ("7",), ())
    assert plain["select"] == KEPT
    assert ExperimentConfig.parse(plain).strategies["ngram-perplexity"]["order"] == 2
    assert (twelve["seeds"], twelve["looks"], twelve["encoder"]) == (tuple(range(1, 13)), (4, 8, 12), "tiny")
    timed(plain, home)
    assert not find_out.plan(plain).edited
    selections.edit(run, "remove", selections.chosen(run).rows[:1])
    assert find_out.options()["budgets"] == ("6",)
    assert find_out.plan(find_out.options()).edited
    selections.edit(run, "remove", selections.chosen(run).rows)  # an experiment cannot select no sentence
    assert (find_out.options()["budgets"], find_out.options()["arms"]) == (("10%",), plain["arms"])


def test_derived_texts_are_named_after_their_selection_or_corpus(home: Path) -> None:
    made = finished.corpora(home)
    chosen = store().get(select("ngram-perplexity", "7", options={"order": 2})).result()["corpus"]
    task = Library(home).find(made["task"].fingerprint)
    rest = Library(home).subset(task, np.arange(3), name=f"{task.name}{LEARNABLE}", origin={"from": task.fingerprint})
    assert titles.text_name(rest.fingerprint) == titles.text_name(task.fingerprint) == task.name
    assert titles.text_name(chosen) == "7 selected sentences (ngram-perplexity)"
    options = {"corpora": (rest.fingerprint, chosen), "init": "tiny"}
    run = finished.finish(home, "pretrain", options, finished.constant(finished.pretrained()))
    both = f"{task.name} and 7 selected sentences (ngram-perplexity)"
    assert titles.title(run) == f"Pre-train tiny on {both}"
    assert titles.encoder(run.id) == f"tiny pre-trained on {both}"


def test_a_selection_of_the_experiment_is_shown_while_the_experiment_runs(home: Path) -> None:
    made = finished.corpora(home)
    marks = {name: made[name].fingerprint for name in ("task", "domain")}
    recipe = KINDS["select"]
    for strategy in ("ngram-perplexity", "random"):
        wanted = planned(recipe, recipe.config.parse({**marks, "strategy": strategy, "budget": "7", **KEPT}), home)
        child = store().create(**wanted.manifest(), parent="20261123-170000-experiment-0000")
        worker.execute(child, work_of(child, KINDS))
    assert home_steps.steps()[1].known.startswith("7 of 90 sentences (7.8%), by ngram-perplexity.")
    with pytest.raises(ConfigError):
        select(budget="threshold:99999")
    chosen = home_steps.steps()[1].run
    selection = opened("pages/3_Selection.py")
    assert selection.metric[0].value == "7"
    assert chosen in [box.value for box in selection.selectbox]


def test_without_labels_the_last_step_offers_sentences_to_label(seal: Seal, home: Path) -> None:
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
    assert texts_to_label != sorted(texts_to_label)  # drawn at random, not the first ones
    assert labelling.to_label(task.fingerprint) == labelling.to_label("task")
    few = labelling.to_label(corpora.roles()["domain"]).splitlines()
    assert len(few) == 90


def test_a_plan_of_many_hours_offers_a_shorter_one_on_fewer_labels(home: Path) -> None:
    finished.corpora(home)
    train = Library(home).seal(finished.labelled(700, 9, "more"), name="many labels", origin={}, labelled=True)
    corpora.set_role("train", train.fingerprint)
    options = find_out.options()
    timed(options, home, tagger=(0.2, 0.02))
    shorter = experiments.shorter(options)
    assert shorter
    assert shorter.labels in (100, 200, 300, 500)
    assert shorter.seconds <= 0.7 * experiments.cost(options).seconds
    *_, offer = in_figures(experiments.cost(options), shorter)
    assert offer.endswith(f"--labels {shorter.labels}")
    with pytest.raises(ConfigError, match="many labels has 700 sentences"):
        experiments.on_fewer_labels(options, 700)
    part = corpora.find(str(experiments.on_fewer_labels(options, shorter.labels)["train"]))
    assert (part.name, len(part), part.derived) == (f"many labels, {shorter.labels} sentences", shorter.labels, True)
    assert len({sentence.id for sentence in next(part.batches(0, 1000))}) == shorter.labels


def test_fewer_labels_are_stored_again_after_their_corpus_was_removed(home: Path) -> None:
    options = {"train": finished.corpora(home)["train"].fingerprint}
    few = [str(experiments.on_fewer_labels(options, 10)["train"])]
    Library(home).remove(few[0])
    few.append(str(experiments.on_fewer_labels(options, 10)["train"]))
    assert few[0] == few[1]
    assert len(Library(home).find(few[1])) == 10


def test_a_time_that_is_too_short_names_the_shortest_plan() -> None:
    none = find_out.Affordable(limit=600, replicates=0, labels=50, seconds=1620, points=6.8)
    longer = replace(none, seconds=3360, points=4.0, taggers=4)
    fits = replace(longer, replicates=3)
    assert min([longer, none], key=lambda plan: plan.rank) == none
    assert min([none, longer, fits], key=lambda plan: plan.rank) == fits


def test_home_says_in_one_line_if_anything_leaves_this_machine_and_explains_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = "gpu-box"
    app = opened("home.py")
    [line] = [line.value for line in app.main.markdown if "leaves this machine" in line.value]
    assert line.startswith(":green-badge[")
    assert "no telemetry" not in seen(app)
    details = seen(opened("home.py", {"home.privacy": True}))
    assert "There is no telemetry" in details
    assert "audit log" in details
    assert "allowed to send sentences" not in details
    cases: list[tuple[list[Verdict], list[str]]] = [
        (["ok", "ok"], []),
        (["ok", "look"], ["1 of 2 checks needs the judgement"]),
        (["look", "look", "bad"], ["2 of 3 checks need the judgement", "The settings of this machine break this"]),
    ]
    for found, told in cases:
        checks = [Check(name="any", verdict=verdict, says=f"It is {verdict}.") for verdict in found]
        with monkeypatch.context() as patch:
            patch.setattr(privacy, "checks", lambda checks=checks: checks)
            details = seen(opened("home.py", {"home.privacy": True}))
        assert all(check.says in details for check in checks)
        assert all(words in details for words in told)
        assert sum(words in details for words in ("the judgement of", "settings of this")) == len(told)

    made = finished.corpora(home)
    options = {"model": "any", "address": f"http://{host}:1/v1", "allow_host": host, "examples": 0}
    asked = {**options, "train": made["train"].fingerprint, "test": (made["test"].fingerprint,)}
    finished.finish(home, "llm", asked, finished.constant(finished.pretrained()))
    details = seen(opened("home.py", {"home.privacy": True}))
    assert f"Runs of this project were allowed to send sentences to {host}." in unescape(details)
    monkeypatch.setattr(runs, "recipients", lambda: [host])
    app = opened("home.py")
    assert "Nothing leaves this machine" not in seen(app)
    assert any(line.value.startswith(":orange-badge[") and "gpu" in line.value for line in app.main.markdown)
