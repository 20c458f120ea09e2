"""A study: one claim on several tasks, shared and resumed experiments, a single test, its cost and its power."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.config import Config
from core.corpora.library import Library
from core.errors import Cancelled, ConfigError, ReadError
from core.experiment import results, view, words
from core.experiment import study as questions
from core.experiment.cli import in_figures, read_plan, study
from core.experiment.result import TaskRow
from core.experiment.study import StudyChance, StudyConfig, StudyForesight, planned_test
from core.kind import plan
from core.kinds import KINDS
from core.paths import home as project_home
from core.projects import machine, runs
from core.runs import durations
from core.runs.events import Event
from core.runs.store import RunStore
from core.runs.where import ON
from core.stats.pooled import Estimate
from core.stats.spread import assumed
from tests.conftest import sentence
from tests.experiment.test_experiment import fill, labelled
from tests.homes import Homes, Names
from tests.planted import contracts
from tests.untrained import without_training

OPTIONS: dict[str, Any] = {
    "task": ("task", "task 2"),
    "domain": ("domain",),
    "train": ("train", "train 2"),
    "dev": ("dev", "dev 2"),
    "test": ("test", "test 2"),
    "names": ("deeds", "leases"),
    "arms": ("none", "gazetteer"),
    "budgets": ("20",),
    "seeds": (1, 2),
    "encoder": "tiny",
    "pretrain": {"epochs": 1},
    "finetune": {"epochs": 1, "head_learning_rate": 0.1},
}
TEXTS = {**OPTIONS, "looks": (2, 4, 6), "seeds": (1, 2, 3, 4, 5, 6)}


def test_tasks_of_a_study_have_different_seeds() -> None:
    config = StudyConfig.parse(TEXTS)
    assert [experiment.seeds for experiment in config.experiments] == [
        (1, 2, 3, 4, 5, 6),
        (1001, 1002, 1003, 1004, 1005, 1006),
    ]
    assert config.experiment(1, 2).seeds == (1001, 1002)


def two_tasks(home: Path) -> None:
    """Seal the corpora of a second task beside those of an experiment."""
    fill(home)
    texts, library = contracts(50, seed=2), Library(home)
    library.seal(map(sentence, texts[:24]), name="task 2", origin={})
    for name, rows in (("train 2", texts[:18]), ("dev 2", texts[18:26]), ("test 2", texts[26:])):
        library.seal(labelled(rows), name=name, origin={}, labelled=True)


def studied(home: Path) -> dict[str, str]:
    """Finish a study that is cancelled after its first task; `first` is the experiment of that task."""
    two_tasks(home)

    def stop(event: Event) -> None:
        if event.kind == "part" and event.data["number"] == 2:
            runs.cancel(runs.listed("study")[0].id)

    with without_training():
        with pytest.raises(Cancelled):
            runs.execute("study", OPTIONS, stop)
        [first] = runs.listed("experiment", state="succeeded")
        return {"study": runs.execute("study", OPTIONS).id, "first": first.id}


@pytest.fixture
def done(homes: Homes, home: Path) -> Names:
    return homes.copy(studied, home)


def test_study_pools_its_experiments_and_repeats_no_run_when_resumed(done: Names) -> None:
    result = results.study_board(done["study"])
    assert [task.name for task in result.tasks] == ["deeds", "leases"]
    assert result.tasks[0].run == done["first"]
    kinds = Counter(run.manifest.kind for run in runs.listed(state="succeeded"))
    assert (kinds["study"], kinds["experiment"], kinds["pretrain"], kinds["finetune"]) == (1, 2, 8, 10)
    for task in result.tasks:
        rows = {row.arm: row for row in results.board(task.run).leaderboard}
        claim = rows["gazetteer"]
        assert (task.f1, task.none_f1, task.control_f1) == (claim.mean, rows["none"].mean, rows["random"].mean)
        assert (task.reading, task.choosing) == (claim.estimate, claim.estimate_random)
        assert claim.interval_random == task.choosing_interval
        assert task.reading.delta == pytest.approx(claim.delta)
    assert result.choosing
    assert result.choosing.others
    deltas = [task.choosing.delta for task in result.tasks if task.choosing]
    assert result.choosing.these.delta == pytest.approx(sum(deltas) / 2)
    assert result.choosing.others.dof == 1
    assert result.foretold
    assert 0 <= result.foretold.chance <= 1
    assert result.earlier == []
    assert result.planned
    assert (result.planned.against, result.planned.replicates) == ("random 20", 2)
    assert "on each of 2 tasks" in result.planned.why
    table = (runs.get(done["study"]).artifacts / "study.md").read_text(encoding="utf-8")
    assert table.count("\n| ") == 5


def test_hours_of_a_study_include_taggers_that_only_an_earlier_analysis_used(done: Names) -> None:
    with without_training():
        run = runs.execute("study", {**OPTIONS, "seeds": (1, 2, 3, 4), "looks": (2, 4)})
    result = results.study_board(run.id)
    assert result.replicates == 4
    seconds = durations.by_kind(runs.listed("finetune"), RunStore(project_home()))["finetune"]
    assert result.hours["finetune"] == pytest.approx(seconds / 3600)


def test_study_command_prints_cost_power_and_result(
    done: Names, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "PLAN.yaml"
    plan.write_text(json.dumps({**OPTIONS, "seeds": [1, 2, 3, 4], "looks": [2, 4], "effect": 3}), encoding="utf-8")
    study.main([str(plan), "--plan-only", "--json"], standalone_mode=False)
    planned = json.loads(capsys.readouterr().out)
    assert set(planned["tasks"]) == {"deeds", "leases"}
    assert planned["hours"] == pytest.approx(sum(planned["tasks"].values()))
    plans = planned["chances"]["plans"]
    found = [(one["tasks"], one["replicates"], one["taggers"], one["looks"]) for one in plans]
    assert found == [
        (2, 4, 1, [2, 4]),
        (2, 4, 4, [2, 4]),
        (2, 6, 1, [2, 4, 6]),
        (2, 12, 1, [4, 8, 12]),
        (4, 4, 1, [2, 4]),
    ]
    assert plans[0]["seconds"] == pytest.approx(3600 * planned["hours"])
    alone, several, six, twelve, _ = (one["seconds"] for one in plans)
    assert alone < min(several, six) < max(several, six) < twelve
    assert 0 <= plans[0]["chance"] < plans[3]["chance"] <= 1
    chances = [StudyChance(**one) for one in plans]
    words = StudyForesight(plans=chances, spreads=[assumed(20), assumed(24)], effect=3, claim="it").in_words()
    assert f"a true mean gain of 3 points by it over 2 tasks in {100 * plans[0]['chance']:.0f} of 100 cases" in words
    for part in (
        "a plan with 12 replicates on 2 tasks, analysed after 4, 8, 12, detects it in",
        "4 replicates on 4 tasks",
        "which is assumed",
    ):
        assert part in words
    plan.write_text(json.dumps(OPTIONS), encoding="utf-8")
    study.main([str(plan), "--json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["run"] == done["study"]
    assert view.study_cost(OPTIONS).seconds == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dev": ("dev",)}, "dev: 1 corpora for 2 tasks"),
        ({"test": ("test", "test")}, "test: a corpus is given twice"),
        ({"names": ("deeds",)}, "names: give a different name"),
        ({"arms": ("none", "random")}, "arms: no variant gets a verdict"),
        ({"looks": (1, 2)}, "looks: "),
        ({"claim": "knn"}, "claim: knn gets no verdict"),
        ({"train": ()}, "train: give the labelled"),
    ],
)
def test_contradictory_study_options_are_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        StudyConfig.parse({**OPTIONS, **change})


@pytest.mark.parametrize(
    ("arm", "needs"),
    [
        ("all", "an assisting corpus"),
        ("skl:2", "an assisting corpus"),
        ("vectors:web", "sources or imported word vectors"),
        ("lm:web", "sources"),
    ],
)
def test_variants_that_need_a_corpus_per_task_are_refused(arm: str, needs: str) -> None:
    with pytest.raises(ConfigError, match=f"arms: {arm} needs {needs}, which a study does not offer, because each tas"):
        StudyConfig.parse({**OPTIONS, "arms": ("none", arm)})


def test_a_study_can_claim_that_other_labels_or_a_dictionary_help(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two_tasks(home)
    library = Library(home)
    library.seal(labelled(contracts(20, seed=3)), name="deeds of others", origin={}, labelled=True)
    names = {name: OPTIONS[name] for name in ("train", "dev", "test", "names", "seeds", "encoder", "finetune")}
    lists = {"transfer": ("deeds of others",), "transfer_epochs": 1, "dictionary": ("deeds of others",)}
    asked: dict[str, Any] = {
        **names,
        **lists,
        "arms": ("none", "transfer:deeds of others", "none+dictionary", "dictionary"),
    }
    for timing in view.calibrations(asked, "study"):
        runs.execute("calibrate", timing)
    costs = view.study_cost(asked)
    assert costs.as_json("tasks")["wall_hours"] == pytest.approx(costs.seconds / 3600)  # one process
    assert costs.wall > 0
    assert {step.kind for step in costs.steps} == {"finetune", "dictionary"}
    with monkeypatch.context() as patch:
        patch.setenv(ON, "processes:2")
        patch.setattr(machine, "memory", lambda: (0.0, 0.0))
        lines = in_figures(view.study_cost(asked))
        assert any(line.startswith("With 2 steps at once it usually takes less") for line in lines)
        assert "Only 0.0 GB of memory are free, too little for one step." in lines
    with without_training():
        run = runs.execute("study", asked)
    assert view.study_cost(asked).seconds == 0
    result = results.study_board(run.id)
    assert result.arm == "transfer:deeds of others"
    assert result.choosing is None
    claim = "a first training on the labels of deeds of others"
    assert words.heading(result, "reading") == f"Did {claim} help?"
    assert words.study_answer(result)[0].startswith(f"A{claim[1:]} ")
    table = (run.artifacts / "study.md").read_text(encoding="utf-8")
    assert f"| A{claim[1:]} helped |" in table
    assert f"{claim} " in results.finding(run.id).what
    for task in result.tasks:
        board = {row.arm: row for row in results.board(task.run).leaderboard}
        assert set(board) == {*asked["arms"]}
        first, listed = (runs.get(board[arm].finetunes[0]).manifest.config for arm in asked["arms"][1:3])
        assert library.find(first["first"]).name.startswith("deeds of others")
        assert first["first_epochs"] == 1
        assert listed["dictionary"] == [library.find("deeds of others").fingerprint]


def test_a_study_names_the_host_that_gets_its_sentences(home: Path) -> None:
    two_tasks(home)
    asked = {**OPTIONS, "arms": ("none", "lpft", "llm:qwen3:8b@http://gpu-box:8000/v1")}
    with pytest.raises(ConfigError, match="gpu-box is not this computer"):
        StudyConfig.parse(asked)
    config = StudyConfig.parse({**asked, "llm": {"allow_host": "gpu-box"}})
    run = RunStore(home).create(**plan(KINDS["study"], config, home).manifest())
    assert results.sent_to(run.id) == ["gpu-box"]


def test_corpora_of_a_task_are_no_lists_and_no_labels_of_others(home: Path) -> None:
    two_tasks(home)
    asked = {**OPTIONS, "arms": ("none", "transfer:train 2"), "transfer": ("train 2",)}
    with pytest.raises(ConfigError, match="transfer: train 2 is the training, dev or test set of a task"):
        runs.execute("study", asked)
    asked = {**OPTIONS, "arms": ("none", "none+dictionary"), "dictionary": ("test 2",)}
    with pytest.raises(ConfigError, match="dictionary: test 2 is also the training set or a held-out corpus"):
        runs.execute("study", asked)


def test_error_in_a_study_plan_names_its_line(home: Path, tmp_path: Path) -> None:
    two_tasks(home)
    text = "train: [train, train 2]\ndev: [dev, dev 2]\ntest: [test, nowhere]\narms: [none, lpft]\nencoder: tiny\n"
    (tmp_path / "PLAN.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ReadError, match=r"PLAN.yaml line 3: test: 'nowhere': no corpus of this name"):
        read_plan(tmp_path / "PLAN.yaml", {}, config=StudyConfig)
    (tmp_path / "PLAN.yaml").write_text(text.replace("nowhere", "test 2") + "seeds: 1\n", encoding="utf-8")
    options = read_plan(tmp_path / "PLAN.yaml", {"seeds": ("1", "2")}, config=StudyConfig)
    config: Config = StudyConfig.parse(options)
    assert isinstance(config, StudyConfig)
    assert config.test == tuple(Library(home).find(name).fingerprint for name in ("test", "test 2"))
    assert config.seeds == (1, 2)


def task(delta: float, *, fixed: float = 0.02, n: int = 2) -> TaskRow:
    """Return a task whose claim is `delta` above random, from n replicates."""
    gap = Estimate(delta=delta, falling=0.6 / n, fixed=fixed, dof=2.0 * (n - 1))
    intervals = {"reading_interval": (0.0, 1.0), "choosing_interval": (0.0, 1.0)}
    scores = {"f1": 50 + delta, "none_f1": 45.0, "control_f1": 50.0, "reading": replace(gap, delta=delta + 5)}
    return TaskRow(name="t", run="", sentences=400, tokens=1, choosing=gap, **scores, **intervals)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("deltas", "number", "ended"),
    [
        ((1.4, 1.5), 2, "shown"),
        ((1.4, 1.5), 0, None),  # two replicates are too uncertain
        ((2.4, 2.5), 1, "shown"),
        ((-2.4, -2.5), 1, "worse"),
        ((0.1, -0.4), 1, "futile"),
        ((1.2, -0.1), 1, None),
        ((1.0, -0.4), 2, "complete"),
    ],
)
def test_all_tasks_together_decide_when_a_study_ends(deltas: tuple[float, ...], number: int, ended: str | None) -> None:
    config = StudyConfig.parse(TEXTS)
    planned = planned_test(config, [task(delta, n=config.stops[number]) for delta in deltas], number)
    assert (planned.ended if planned else None) == ended
    if planned and number < 2:
        assert "4 of 6 replicates on each of 2 tasks" in planned.why


FEW = ("no evidence", "no evidence")


@pytest.mark.parametrize(
    ("tasks", "answers", "lacking"),
    [
        ([task(delta, n=6) for delta in (1.5, 1.4, 1.6)], ("yes", "yes"), ""),
        (
            [task(0.2, n=6), task(2.8, n=6)],
            ("yes", "no evidence"),
            "For similar tasks, more task corpora are needed: about",
        ),
        ([task(delta, n=6) for delta in (0.6, 0.65, 0.7)], ("yes", "yes"), ""),
        ([task(delta, n=6) for delta in (-2.0, -2.2, -2.1)], ("worse", "worse"), ""),
        ([task(0.3), task(0.4)], FEW, "More replicates are needed: 6 replicates on each of 2 tasks are too few"),
        ([task(delta, fixed=0.5, n=6) for delta in (0.3, 0.5)], FEW, "More test sentences or task corpora are"),
        ([task(-0.7), task(-0.8)], FEW, "A true mean gain of 1 point is unlikely"),
        # The tasks only seem alike because each is uncertain. Without evidence on them, nothing is claimed about
        # others.
        (
            [task(delta, fixed=0.5, n=6) for delta in (0.3, 0.301, 0.299)],
            FEW,
            "More test sentences or task corpora are",
        ),
    ],
)
def test_a_study_gives_two_answers_and_says_what_is_lacking(
    tasks: list[TaskRow], answers: tuple[str, str], lacking: str
) -> None:
    question = questions.choosing(StudyConfig.parse(TEXTS), tasks, 6, 0.045)
    assert question
    assert question.others
    assert (question.these.answer, question.others.answer) == answers
    assert question.lacking.removeprefix("The question is settled on these tasks. ").startswith(lacking)
    assert bool(question.lacking) == bool(lacking)


def test_study_of_one_task_or_without_a_control_gives_fewer_answers() -> None:
    plan = TEXTS | {name: OPTIONS[name][:1] for name in ("task", "train", "dev", "test", "names")}
    question = questions.choosing(StudyConfig.parse(plan), [task(1.5, n=6)], 6, 0.045)
    assert question
    assert (question.others, question.between) == (None, None)
    config = StudyConfig.parse(TEXTS)
    tasks = [task(1.4, n=6), replace(task(1.5, n=6), choosing=None, choosing_interval=None, too_few="3 of 90 changed")]
    assert planned_test(config, tasks[:1] * 2, 2)
    assert planned_test(config, tasks, 2) is None  # a difference to `none` answers another question
    assert questions.choosing(config, tasks, 6, None) is None
