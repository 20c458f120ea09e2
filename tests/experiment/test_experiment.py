"""The experiment: arms and their controls, stages that run once, resuming at any stage, its cost, and its plan file."""

import csv
import json
import re
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import Cancelled, ConfigError, PathError, ReadError
from core.experiment import arms, foresight, results
from core.experiment import result as leaderboard
from core.experiment import view as experiments
from core.experiment.cli import MAX_BYTES, experiment, read_plan, typed_options
from core.experiment.config import TAGGERS_APART, ExperimentConfig
from core.experiment.find_out import MEASURED
from core.paths import home
from core.projects import removals
from core.projects import runs as facade_runs
from core.results import Evaluation
from core.runs import durations
from core.runs.events import Data, Event
from core.runs.store import RunStore
from core.stats.bootstrap import compare
from core.stats.spread import Spread
from core.tagging import calibrate, evaluations
from core.text.sentence import Sentence
from tests.conftest import sentence
from tests.finished import html_report
from tests.homes import EXPERIMENT, Names
from tests.planted import contracts, kitchen

OPTIONS = EXPERIMENT


def labelled(texts: list[str]) -> list[Sentence]:
    """Label the subject of every sentence as PARTY."""
    return [sentence(text, [(0, 2, "PARTY")]) for text in texts]


def fill(home: Path) -> dict[str, Corpus]:
    """Seal T_C (train, dev and one test sentence of L_C) and D_C (short kitchen sentences and other contracts)."""
    texts = contracts(110, seed=1)
    train, dev, test, more = texts[:24], texts[24:36], texts[36:56], texts[56:]
    library, short = Library(home), [f"{' '.join(line.split()[:6])} ." for line in kitchen(60)]
    piles = {"task": [*train, *dev, test[0]], "domain": [*more, *short]}
    made = {name: library.seal(map(sentence, lines), name=name, origin={}) for name, lines in piles.items()}
    for name, lines in (("train", train), ("dev", dev), ("test", test)):
        made[name] = library.seal(labelled(lines), name=name, origin={}, labelled=True)
    return made


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "SECONDS", 0.0)


@pytest.fixture
def finished(experimented: Names) -> str:
    return experimented["quick"]


def test_shared_stages_run_once(experimented: Names) -> None:
    runs = {run.id: run.manifest for run in facade_runs.listed(state="succeeded")}

    def root(run_id: str) -> str:
        parent = runs[run_id].parent
        return root(parent) if parent else run_id

    made = {name: Counter(m.kind for i, m in runs.items() if root(i) == top) for name, top in experimented.items()}
    of_quick = {"calibrate": 1, "audit": 2, "embed": 2, "score": 2, "select": 2, "pretrain": 2, "finetune": 3}
    assert made["quick"] == {**of_quick, "experiment": 1}
    assert made["pipeline"] == {"score": 4, "select": 4, "pretrain": 4, "finetune": 4, "experiment": 1}


def test_leaderboard_equals_the_stored_evaluations(finished: str) -> None:
    run = facade_runs.get(finished)
    rows = {row["arm"]: row for row in run.result()["leaderboard"]}
    assert set(rows) == {"none", "random", "classifier"}
    assert any("Added random" in note for note in facade_runs.state(finished).notes)
    none, claim = rows["none"], rows["classifier"]
    assert (none["verdict"], rows["random"]["verdict"]) == ("baseline", "control")
    assert claim["verdict"] in ("helped", "hurts", "no evidence")  # a quick look never says "improves"
    assert claim["chose"] is None
    assert claim["seeds_needed"].startswith("Train longer first: 2 of the 6 taggers learnt nothing.")
    assert claim["interval_random"] is not None
    assert (none["sentences"], none["pretrain_run"]) == (0, None)
    for row in rows.values():
        tuned = facade_runs.get(row["finetune_run"])
        scores = [Evaluation.load(tuned.artifacts / f"evaluation-test-{seed}.npz").f1() for seed in (1, 2)]
        assert row["micro_f1"] == pytest.approx(scores, abs=1e-3)
        assert row["mean"] == pytest.approx(np.mean(scores), abs=1e-3)
        assert row["sd"] == pytest.approx(np.std(scores, ddof=1), abs=1e-2)
        assert row["delta"] == pytest.approx(row["mean"] - none["mean"], abs=1e-2)
        assert row["interval"][0] - 1e-6 <= row["delta"] <= row["interval"][1] + 1e-6
        assert row["wins"] + row["ties"] + row["losses"] == (0 if row is none else 2)
        assert row["gpu_hours"] == pytest.approx(sum(row["hours"].values()))
        assert row["unseen_f1"] == tuned.result()["test"]["unseen_f1"]
        assert run.result()["train_in_test"] == tuned.result()["train_in_test"]
    assert claim["gpu_hours"] > none["gpu_hours"] > 0
    assert run.result()["train_in_test"]["near"]  # the sentences come from few templates
    assert results.board(finished).overlap_words in html_report(finished)
    assert run.result()["foretold"] is None  # no forecast, because a quick look cannot show the claim
    order = [row["dev_mean"] for row in run.result()["leaderboard"]]
    assert order == sorted(order, reverse=True)
    with (run.artifacts / "leaderboard.csv").open(encoding="utf-8") as file:
        table = [(row["arm"], row["verdict"], float(row["mean"])) for row in csv.DictReader(file)]
    assert table == [(row["arm"], row["verdict"], row["mean"]) for row in run.result()["leaderboard"]]
    lines = (run.artifacts / "leaderboard.md").read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith("| ") for line in lines) == 1 + 3  # a head and three rows


def test_pipeline_repeats_selection_and_pretraining_for_every_seed(experimented: Names) -> None:
    """Both arms train with the same seeds. `none`, which only trains taggers, shares its run with the quick experiment."""
    options = {**OPTIONS, "repeat": "pipeline"}
    rows, quick = ({r.arm: r for r in results.board(experimented[name]).leaderboard} for name in ("pipeline", "quick"))
    assert rows["none"].finetunes == quick["none"].finetunes
    chosen = {}
    for name in ("random", "classifier"):
        finetunes = [facade_runs.get(one) for one in rows[name].finetunes]
        assert [one.manifest.config["seeds"] for one in finetunes] == [[1], [2]]
        pretrains = [facade_runs.get(one.manifest.config["init"]) for one in finetunes]
        assert [one.manifest.config["seed"] for one in pretrains] == [1, 2]
        chosen[name] = [one.manifest.config["corpora"][1] for one in pretrains]
        assert rows[name].micro_f1 == [evaluations.read(one)[0].f1() for one in finetunes]
    assert len(set(chosen["random"])) == 2  # a new draw for each seed
    assert rows["classifier"].chose in ("yes", "no evidence", "worse")
    assert rows["classifier"].delta_random == pytest.approx(rows["classifier"].mean - rows["random"].mean, abs=0.01)
    assert all(step.finished for step in experiments.cost(options).steps)
    longer = [step for step in experiments.cost({**options, "seeds": (1, 2, 3)}).steps if not step.finished]
    assert Counter(step.kind for step in longer) == {"select": 2, "pretrain": 2, "finetune": 3}
    assert {step.what for step in longer if step.kind == "pretrain"} == {"replicate 3"}


def test_pretraining_skips_held_out_text_and_control_has_equal_tokens(
    finished: str,
) -> None:
    """T_C loses its dev sentences and the leaked test sentence. The same 5% of D_C are held out for all variants.

    The control leaves out the sentence that would exceed the number of tokens.
    """
    library = Library(home())
    rows = {row.arm: row for row in results.board(finished).leaderboard}
    runs = {arm: facade_runs.get(row.pretrain_run) for arm, row in rows.items() if row.pretrain_run}
    (name,) = {run.manifest.config["general"] for run in runs.values()}
    general, domain = set(library.find(name).ids().tolist()), library.find("domain")
    held_out = {i for name in ("dev", "test") for i in library.find(name).ids().tolist()}
    assert 0 < len(general) <= -(-len(domain) // 20)
    assert general <= set(domain.ids().tolist())
    assert len(runs) == 2
    for arm, run in runs.items():
        corpora = [library.find(name) for name in run.manifest.config["corpora"]]
        words = {i: n for c in corpora for i, n in zip(c.ids().tolist(), c.lengths().tolist(), strict=True)}
        assert not held_out & set(words)
        assert 20 <= len(corpora[0]) <= 24  # some training sentences are near duplicates of held-out ones
        assert run.result()["sentences"] == len(set(words) - general)
        assert run.result()["dev_loss_general"]
        assert rows[arm].tokens == sum(n for i, n in words.items() if i not in general)
    assert rows["none"].tokens == 0
    selected, control = (
        library.find(facade_runs.get(str(rows[arm].select_run)).result()["corpus"]) for arm in ("classifier", "random")
    )
    assert len(selected) == 30 != len(control)
    assert selected.n_tokens - int(domain.lengths().max()) < control.n_tokens <= selected.n_tokens


def test_finished_stages_cost_nothing(finished: str) -> None:
    again = experiments.cost(OPTIONS)
    assert again.seconds == 0
    assert all(step.finished for step in again.steps)
    more = experiments.cost({**OPTIONS, "arms": ("none", "classifier", "knn")})
    left = {(step.kind, step.line) for step in more.steps if not step.finished}
    assert left == {(kind, "knn 30") for kind in ("select", "pretrain", "finetune")}
    assert more.seconds == pytest.approx(more.lines["knn 30"])
    assert more.seconds > 0
    seeds = experiments.cost({**OPTIONS, "seeds": (1, 2, 3)})
    assert {step.kind for step in seeds.steps if not step.finished} == {"finetune"}


def test_the_command_line_plans_and_reports(finished: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [f"--{name}={OPTIONS[name]}" for name in ("task", "domain", "train", "dev", "test", "encoder")]
    words += ["--arms=none,classifier", "--budgets=30", "--seeds", "1,2", "--repeat", "tagger"]
    words += ["--pretrain", "epochs=1", "--finetune", "epochs=2", "--finetune", "head_learning_rate=0.1"]

    def printed(*more: str) -> str:
        experiment.main([*words, *more], standalone_mode=False)
        return capsys.readouterr().out

    planned = json.loads(printed("--json", "--plan-only"))
    assert (planned["hours"], len(planned["steps"]), planned["shortage"]) == (0, 7, "")
    smallest = planned["smallest_difference"]
    assert (smallest["seeds"], smallest["trainings"], smallest["assumed"]) == (2, 3, False)
    assert smallest["points"] >= smallest["with_more_seeds"]["5"] >= smallest["with_more_seeds"]["10"] > 0
    assert [plan["replicates"] for plan in smallest["plans"]] == [2, 6, 12]
    times = [plan["seconds"] for plan in smallest["plans"]]
    assert times == sorted(times)
    assert times[0] < times[1]
    assert all(0 <= plan["chance"] <= 1 for plan in smallest["plans"])
    text = printed("--plan-only")
    assert "With 2 seeds per variant this plan can detect gains of about" in text
    assert re.search(r"Measured on \d+ taggers trained on these labels so far", text)
    assert text.rstrip().endswith(MEASURED)
    experiment.main([word.replace("classifier", "tapt") for word in words] + ["--plan-only"], standalone_mode=False)
    assert MEASURED not in capsys.readouterr().out
    found = json.loads(printed("--json"))
    assert found["run"] == finished  # the same experiment in another spelling
    assert found["leaderboard"] == facade_runs.get(finished).result()["leaderboard"]
    assert found["finding"] == asdict(results.finding(finished))
    assert printed().strip().split("\n")[-3:] == results.finding(finished).parts
    assert typed_options({"strategies": ("knn.neighbours=3",)}) == {"strategies": {"knn": {"neighbours": "3"}}}
    for text in ("epochs", "knn.epochs=3"):
        with pytest.raises(ConfigError, match=r"pretrain: .* is not NAME=VALUE"):
            typed_options({"pretrain": (text,)})


def test_a_first_plan_assumes_the_spread_of_scores(home: Path) -> None:
    fill(home)
    foresight = experiments.foresight(OPTIONS)
    words = foresight.in_words()
    assert "until a first tagger has been trained on these labels: scores differ by" in words
    assert "This plan cannot detect a true gain of 1 point by classifier 30, with one selection and" in words
    assert experiments.foresight({**OPTIONS, "arms": ("none", "classifier", "knn")}).points == foresight.points
    pipeline = experiments.foresight({**OPTIONS, "repeat": "pipeline"})
    plans = [(plan.replicates, plan.taggers, plan.looks) for plan in pipeline.plans]
    assert plans == [(2, 1, (2,)), (2, 4, (2,)), (6, 1, (2, 4, 6)), (12, 1, (4, 8, 12))]
    chances = [plan.chance for plan in pipeline.plans]
    assert chances == sorted(chances)
    words = pipeline.in_words()
    first, several = (f"in {100 * chance:.0f}" for chance in chances[:2])
    assert (
        f"detects a true gain of 1 point by classifier 30 {first} of 100 cases; a plan with 2 replicates, with" in words
    )
    assert f"with 4 taggers each, detects it {several} of 100" in words
    assert "by 0.5 more from pre-training to pre-training, which is assumed" in words
    assert pipeline.plans[0].seconds is None  # this machine was not timed
    assert "One seed cannot show a difference" in experiments.foresight({**OPTIONS, "seeds": (1,)}).in_words()


@pytest.mark.parametrize("repeat", ["tagger", "pipeline"])
def test_chance_and_detectable_gain_of_a_plan_have_the_same_spread(
    home: Path, monkeypatch: pytest.MonkeyPatch, repeat: str
) -> None:
    """A plan that repeats only the tagger has one pre-training, so pre-trainings do not vary in either number."""
    fill(home)
    spread = Spread(seeds=1.0, pretrainings=3.0, both=0.5, sentences=0.3, trainings=4, repeated=2, n_sentences=300)
    monkeypatch.setattr(foresight, "_spread", lambda config, home: spread)
    splits = {split: split for split in ("task", "train", "dev", "test")}
    asked = {**splits, "arms": ("none", "tapt"), "budgets": (), "seeds": range(6), "repeat": repeat}
    points = foresight.foresee(ExperimentConfig.parse(asked), home, plans=0).points
    seen = foresight.foresee(ExperimentConfig.parse({**asked, "effect": points}), home, plans=1)
    assert seen.plans[0].chance == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("seeds", [(1, 2, 3, 4, 5, 6), (7, 2, 30, 4, 50, 6)])
def test_repeated_experiment_has_the_asked_number_of_seeds_even_after_an_early_end(seeds: tuple[int, ...]) -> None:
    splits = {split: split for split in ("task", "train", "dev", "test", "domain")}
    config = ExperimentConfig.parse({**splits, "seeds": seeds, "looks": (2, 4, 6)})
    for n in (3, 5, 6, 9):
        again = foresight.repeated(config, n)
        assert len(set(again.seeds)) == len(again.seeds) == n
        assert again.seeds[:6] == seeds[:n]
        assert again.looks in ((), (*again.looks[:-1], n))


def test_taggers_of_one_replicate_count_as_one(home: Path, untrained: None) -> None:
    fill(home)
    options = {**OPTIONS, "repeat": "pipeline", "taggers": 2}
    found = facade_runs.execute("experiment", options)
    rows = {row.arm: row for row in results.board(found.id).leaderboard}
    for row in rows.values():
        tuned = [facade_runs.get(run) for run in row.finetunes]
        seeds = [seed for run in tuned for seed in run.manifest.config["seeds"]]
        assert seeds == [1, 1 + TAGGERS_APART, 2, 2 + TAGGERS_APART]
        tables = [table for run in tuned for table in evaluations.read(run)]
        pooled = [Evaluation.pooled(tables[first : first + 2]) for first in (0, 2)]
        assert row.micro_f1 == [table.f1() for table in pooled]
        assert sum(int(table.tp.sum()) for table in pooled) == sum(int(table.tp.sum()) for table in tables)
        assert [table.f1() for table in leaderboard.tables(row, RunStore(home))] == row.micro_f1
        assert row.dev_f1 == [np.mean(run.result()["dev"]["micro_f1"]) for run in tuned] or len(tuned) == 1
        assert (row.taggers, row.n_taggers) == (2, 4)
    assert len(rows["none"].finetunes) == 1
    gap = compare(*(leaderboard.tables(rows[name], RunStore(home)) for name in ("classifier", "none")), same_seeds=True)
    assert rows["classifier"].delta == pytest.approx(gap.delta)
    assert len(gap.system) == 2
    assert all(step.finished for step in experiments.cost(options).steps)
    for run in rows["random"].finetunes:  # a spread of single taggers is measured on the first of each replicate
        assert len(evaluations.read(facade_runs.get(run))) == 2
    assert experiments.foresight({**options, "seeds": (1, 2, 3)}).taggers == 2
    with pytest.raises(ConfigError, match="taggers: each further tagger adds 100,000 to the seed"):
        ExperimentConfig.parse({**options, "seeds": (1, 1 + TAGGERS_APART)})
    with pytest.raises(ConfigError, match="a tagger's seed can be at most 4,294,967,295"):
        ExperimentConfig.parse({**options, "seeds": (1, 2**32 - TAGGERS_APART)})


def test_experiments_keep_the_last_epoch_unless_told_otherwise(home: Path, untrained: None) -> None:
    fill(home)

    def kept(options: dict[str, object]) -> set[object]:
        board = results.board(facade_runs.execute("experiment", {**OPTIONS, "arms": ("none",), **options}).id)
        return {facade_runs.get(run).manifest.config.get("keep") for row in board.leaderboard for run in row.finetunes}

    assert kept({}) == {"last"}
    assert kept({"finetune": {"epochs": 1, "keep": "best"}}) == {"best"}
    assert ExperimentConfig.parse({**OPTIONS, "preset": "paper"}).keep == {}
    assert ExperimentConfig.parse({**OPTIONS, "arms": ("none",), "finetune": {"network": "bilstm"}}).keep == {}


def test_a_test_set_without_entities_is_refused_and_unused_options_are_noted(home: Path, untrained: None) -> None:
    fill(home)
    Library(home).seal([sentence(text) for text in kitchen(5)], name="bare", origin={}, labelled=True)
    options = {**OPTIONS, "arms": ("none",), "strategies": {"knn": {"neighbours": 3}}}
    with pytest.raises(ConfigError, match="test: bare has no entities, so no F1 can be measured on it; label"):
        facade_runs.execute("experiment", {**options, "test": "bare"}, run_anyway=True)
    run = facade_runs.execute("experiment", options)
    unused = "strategies: no variant uses knn, so the options given for it do nothing."
    assert unused in facade_runs.state(run.id).notes


def test_experiment_cancelled_at_every_stage_resumes_to_the_same_result(home: Path, untrained: None) -> None:
    fill(home)
    undisturbed = facade_runs.execute("experiment", OPTIONS).result()["leaderboard"]
    for run in facade_runs.listed():
        RunStore(home).remove(run.id)
    seen: set[str] = set()

    def stop(event: Event) -> None:
        name = str(event.data.get("name", ""))
        if event.kind == "stage" and name.startswith("[") and name not in seen:
            seen.add(name)
            facade_runs.cancel(facade_runs.listed("experiment")[0].id)

    for _ in range(20):
        try:
            run = facade_runs.execute("experiment", OPTIONS, stop)
            break
        except Cancelled:
            assert facade_runs.state(facade_runs.listed("experiment")[0].id).state == "cancelled"
    assert len(seen) == 7
    for resumed, other in zip(run.result()["leaderboard"], undisturbed, strict=True):
        for name in ("arm", "micro_f1", "delta", "interval", "verdict"):
            assert resumed[name] == other[name]
    assert Counter(run.manifest.kind for run in facade_runs.listed())["finetune"] == 3


def test_training_sizes_are_nested(home: Path) -> None:
    from core.experiment.cost import Lookup
    from core.experiment.steps import Stages

    fill(home)
    config = ExperimentConfig.parse({**OPTIONS, "train_sizes": (5, 10), "draws": 2})
    stages = Stages(config, Lookup(home, None, {}))  # type: ignore[arg-type]
    assert stages.labels.sizes == [(0, 0), (5, 0), (10, 0), (5, 1), (10, 1)]
    ids = {key: Library(home).find(stages.labels.part(key)).ids().tolist() for key in stages.labels.sizes}
    assert ids[10, 0][:5] == ids[5, 0]
    assert ids[10, 1][:5] == ids[5, 1]
    assert set(ids[10, 0]) != set(ids[10, 1])
    assert set(ids[10, 0]) <= set(ids[0, 0])
    with pytest.raises(ConfigError, match="train_sizes: 25 sentences are more than train has"):
        stages.labels.part((25, 0))


BOTH = {"task": "t", "domain": "d"}


def test_controls_are_added_and_assigned_to_variants() -> None:
    names = arms.complete(("tapt", "knn", "dapt", "knn"), BOTH, "encoder")
    assert names == ("none", "random", "random-only", "tapt", "knn", "dapt")
    every = {str(cell): cell for cell in arms.cells(names, ("10%", "200"))}
    assert list(every)[:4] == ["none", "random 10%", "random 200", "random-only |T_C|"]
    against = {name: str(arms.control(cell, list(every.values()))) for name, cell in every.items()}
    assert against == {
        "none": "None",
        "random 10%": "None",
        "random 200": "None",
        "random-only |T_C|": "None",
        "dapt 100%": "None",
        "tapt": "random-only |T_C|",
        "knn 10%": "random 10%",
        "knn 200": "random 200",
    }
    assert arms.complete(("tapt",), {"task": "t"}, "encoder") == ("none", "tapt")
    assert arms.complete(("random",), BOTH, "encoder") == ("none", "random")
    with pytest.raises(ConfigError, match=r"arms: 'knm' is not known; choose among none, tapt.*knn"):
        arms.find("knm")
    with pytest.raises(ConfigError, match="arms: knn selects from the domain corpus; give a domain corpus"):
        arms.complete(("knn",), {"task": "t"}, "encoder")


PLAN = """\
# is it worth it?
task: task
domain: domain
train: {train}
dev: dev
test: test
arms: [none, tapt, knn]
budgets: [20%, 100]
seeds: [1, 2]
pretrain:
  epochs: 3
strategies:
  knn: {{neighbours: 7}}
"""


def test_plan_file_is_read_and_its_errors_name_the_line(home: Path, tmp_path: Path) -> None:
    corpora, path = fill(home), tmp_path / "PLAN.yaml"
    (tmp_path / "mine.conll").write_text("Harlow B-PARTY\nLtd I-PARTY\npays O\n", encoding="utf-8")
    path.write_text(PLAN.format(train="mine.conll"), encoding="utf-8")
    config = ExperimentConfig.parse(read_plan(path, {"seeds": ["4"]}))
    assert (config.seeds, config.budgets) == ((4,), ("20%", "100"))  # typed options take precedence
    assert config.arms == ("none", "tapt", "knn")
    assert config.pretrain == {"epochs": 3}
    assert config.strategies == {"knn": {"neighbours": 7}}
    assert config.task == corpora["task"].fingerprint
    assert Library(home).find(config.train).name == "mine"
    more = typed_options({"pretrain": ("batch_size=4",), "strategies": ("dsir.buckets=100",)})
    config = ExperimentConfig.parse(read_plan(path, more))
    assert config.pretrain == {"epochs": 3, "batch_size": 4}  # other options of the stage stay
    assert config.strategies == {"knn": {"neighbours": 7}, "dsir": {"buckets": 100}}
    text = PLAN.format(train="train")
    for (right, wrong), message in WRONG:
        assert right in text
        path.write_text(text.replace(right, wrong), encoding="utf-8")
        with pytest.raises(ReadError, match=message):
            read_plan(path, {})


WRONG = [
    (("budgets: [20%, 100]", "budgets: [20%, lots]"), r"PLAN.yaml line 8: budget.*'lots' is not understood"),
    (("[none, tapt, knn]", "[none, knm]"), r"PLAN.yaml line 7: arms: 'knm' is not known"),
    (("  epochs: 3", "  epochs: &a 3"), "PLAN.yaml line 11: uses an alias or an anchor of YAML"),
    (("budgets: [20%, 100]", "budgets: " + "[" * 3_000), "PLAN.yaml"),
    (("  epochs: 3", "  epochs: \x01 3"), "PLAN.yaml line 11: contains a control character"),
    (("  epochs: 3", "  epohcs: 3"), r"PLAN.yaml line 11: pretrain.epohcs: is not an option here"),
    (("  epochs: 3", "  epochs: three"), r"PLAN.yaml line 11: pretrain.epochs must be a whole number, not 'three'"),
    (("  epochs: 3", "  init: minilm"), r"PLAN.yaml line 11: pretrain.init: is not an option here"),
    (("neighbours: 7", "neighbors: 7"), r"PLAN.yaml line 13: strategies.knn.neighbors: "),
    (("seeds: [1, 2]", "seeds: [1, 1]"), r"PLAN.yaml line 9: seeds: "),
    (("seeds: [1, 2]", "seed: 1"), r"PLAN.yaml line 9: seed: is not an option; choose among task"),
    (("dev: dev", "dev: nowhere"), r"PLAN.yaml line 5: dev: 'nowhere': no corpus of this name"),
    (("dev: dev", "dev: [dev"), r"PLAN.yaml line \d+: is not YAML"),
    (("dev: dev", "task: task"), r"PLAN.yaml line 5: task: is given twice"),
    (("test: test\n", ""), r"PLAN.yaml: test is missing"),
]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n- b\n", r"PLAN\.yaml line 1: is not a list of options"),
        ("#" * (MAX_BYTES + 1), r"PLAN\.yaml: is larger than 1 MB, too large for a plan"),
        ("task: " + "[" * 50_000, r"PLAN\.yaml line 1: has too many nested levels"),
        ("\n".join(" " * depth + "a:" for depth in range(500)), r"PLAN\.yaml line 2\d: has too many nested levels"),
        ("task: [" + "a," * 100_000 + "]", r"PLAN\.yaml line 1: has more than 50,000 YAML tokens"),
        ("task: " + "a" * 100_000, r"PLAN\.yaml: train is missing"),  # too long for a path, so it is a name
    ],
    ids=["list", "large", "deep in one line", "deep in many lines", "many values", "long name"],
)
def test_hostile_plan_is_refused_quickly_with_a_short_error(
    tmp_path: Path, home: Path, text: str, message: str
) -> None:
    path = tmp_path / "PLAN.yaml"
    path.write_text(text, encoding="ascii")
    started = time.monotonic()
    with pytest.raises(ReadError, match=message) as raised:
        read_plan(path, {})
    assert len(str(raised.value)) < 1_000
    assert time.monotonic() - started < 20
    with pytest.raises(PathError, match=r"cannot be read \(File name too long\); check the path\."):
        read_plan(Path("/tmp") / ("a" * 5_000), {})


def test_hours_count_every_run_once_without_waiting_and_time_after_a_kill(finished: str) -> None:
    log: list[tuple[float, str, Data]] = [
        (0, "started", {}),
        (5, "stage", {"name": "x"}),  # killed here
        (100, "started", {}),
        (101, "note", {"text": "waiting", "waiting_for": "other"}),
        (150, "note", {"text": "over", "waiting_for": None}),
        (154, "succeeded", {}),
    ]
    events = [Event(seq=i, time=time, kind=kind, data=data) for i, (time, kind, data) in enumerate(log)]
    assert list(durations._intervals(events)) == [(0, 5), (100, 101), (150, 154)]
    store = RunStore(home())
    rows = {row["arm"]: row for row in facade_runs.get(finished).result()["leaderboard"]}
    line = [facade_runs.get(rows["classifier"][name]) for name in ("select_run", "pretrain_run", "finetune_run")]
    spent = durations.by_kind(line, store)
    assert set(spent) == {"select", "score", "embed", "audit", "pretrain", "finetune"}
    assert durations.by_kind([*line, *line], store) == spent
    state = facade_runs.state(rows["classifier"]["finetune_run"])
    assert state.ended is not None
    assert state.started is not None
    assert spent["finetune"] == pytest.approx(state.ended - state.started, abs=0.05)
    whole = facade_runs.get(finished).result()["hours"]
    assert whole["finetune"] == pytest.approx(sum(row["hours"]["finetune"] for row in rows.values()))
    assert whole["audit"] < sum(row["hours"].get("audit", 0) for row in rows.values())  # shared runs are counted once


def test_dapt_needs_no_random_control() -> None:
    from core.experiment.leaderboard import _judged
    from core.stats.bootstrap import compare
    from core.stats.verdict import Verdict

    right = np.ones((40, 1), dtype=np.int32)
    wrong = right * (np.arange(40) % 3 > 0)[:, None]

    def table(tp: np.ndarray, seed: int) -> Evaluation:
        tp = tp * (np.arange(40) != seed)[:, None]
        return Evaluation(types=("A",), tp=tp, predicted=right, gold=right)

    gain = compare([table(right, s) for s in range(3)], [table(wrong, s) for s in range(3)])
    assert gain.sign == 1
    found = Verdict(verdict="helped", why="add the arm random", none=gain, random=None, helped="yes", chose=None)
    dapt, knn, tapt = (arms.cells((name,), ("10",))[0] for name in ("dapt", "knn", "tapt"))
    assert _judged(found, dapt).word == "improves"
    assert "all of the domain corpus" in _judged(found, dapt).why
    assert _judged(found, knn).word == "helped"
    assert _judged(found, knn).duels == (3, 0, 0)
    assert _judged(found, tapt).word == "helped"
    assert "give a domain corpus" in _judged(found, tapt).why


def test_experiment_stops_for_futility_and_again_when_repeated(home: Path, untrained: None) -> None:
    """An effect of a thousandth of a point cannot be detected, so the fourth replicate is not run."""
    fill(home)
    options = {**OPTIONS, "repeat": "pipeline", "seeds": (1, 2, 3, 4), "looks": (3, 4), "effect": 0.001}

    def stop(event: Event) -> None:
        if event.kind == "stage" and "pre-training on replicate 3" in str(event.data.get("name")):
            facade_runs.cancel(facade_runs.listed("experiment")[0].id)

    with pytest.raises(Cancelled):
        facade_runs.execute("experiment", options, stop)
    boards = []
    for _ in range(2):
        run = facade_runs.execute("experiment", options)
        boards.append(results.board(run.id))
        assert boards[-1].planned is not None
        assert boards[-1].planned.why in facade_runs.state(run.id).notes
        assert experiments.cost(options).seconds == 0
        removals.remove_run(run.id)
    board, planned = boards[0], boards[0].planned
    assert planned is not None
    assert (planned.ended, planned.replicates, planned.looks) == ("futile", 3, [3, 4])
    assert planned.chance < 0.1
    assert "after 3 of 4 replicates" in planned.why
    assert "It ended there, 1 replicate early." in planned.why
    assert {row.arm: len(row.micro_f1) for row in board.leaderboard} == {"none": 4, "random": 3, "classifier": 3}
    assert boards[1].planned == planned
    assert [row.interval for row in boards[1].leaderboard] == [row.interval for row in board.leaderboard]
