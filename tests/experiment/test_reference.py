"""Reference variants: variants that train nothing, beside the others on the same test sets."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.corpora.library import Library
from core.errors import ConfigError
from core.experiment import arms, plot, results, tables
from core.experiment import result as boards
from core.experiment import view as experiments
from core.experiment.config import ExperimentConfig
from core.experiment.result import ArmRow, ExperimentResult, Word
from core.experiment.words import main, of_experiment
from core.projects import runs
from core.projects.home import store
from core.results import Evaluation, FloatArray, IntArray
from core.stats import bootstrap
from core.stats.bootstrap import compare_line
from core.stats.verdict import described
from core.tagging import evaluations
from core.text.names import Dictionary
from pages.ui.widgets import plain
from tests.conftest import sentence
from tests.experiment.test_experiment import OPTIONS, fill
from tests.experiment.test_replicates import CROSS, leaky
from tests.experiment.test_verdict_words import PRIVATE
from tests.finished import ARM_ROW, html_report
from tests.pages.drawing import opened, texts
from tests.stats import test_crossed, test_verdict
from tests.untrained import finetune, without_training

OWN: dict[str, Any] = {**OPTIONS, "arms": ("none", "dictionary")}


def names_of(home: Path, n: int, name: str = "list <i>") -> str:
    """Seal the first `n` parties of the test set as a list of names; return its fingerprint."""
    rows = [
        sentence(" ".join(each.tokens[:2]), [(0, 2, "PARTY")]) for each in Library(home).find("test").take(range(n))
    ]
    return Library(home).seal(rows, name=name, origin={}, labelled=True).fingerprint


def row_of(run_id: str, arm: str = "dictionary") -> ArmRow:
    return next(row for row in results.board(run_id).leaderboard if row.arm == arm)


def test_a_dictionary_is_a_line_of_the_leaderboard_with_one_score(home: Path, untrained: None) -> None:
    made = fill(home)
    given = names_of(home, 2)
    options = {**OWN, "dictionary": (given,), "also_test": ("dev",), "seeds": (1, 2, 3), "taggers": 2}
    run = runs.execute("experiment", options)
    none, line = results.board(run.id).leaderboard
    [found] = [runs.get(one) for one in line.finetunes]
    assert (found.manifest.kind, found.manifest.parent) == ("dictionary", run.id)
    assert found.manifest.config["test"] == [made[name].fingerprint for name in ("test", "dev")]
    # Golden: every sentence has one party, and the list holds the parties of the first two sentences.
    gold = list(made["test"].take(range(20)))
    listed = {gold[row].tokens[:2] for row in range(2)}
    tp = sum(each.tokens[:2] in listed for each in gold)
    names = Dictionary(dict.fromkeys([tuple(word.casefold() for word in key) for key in listed], "PARTY"))
    n_found = sum(len(names.predict(each).entities) for each in gold)
    [f1] = line.micro_f1
    assert f1 == pytest.approx(200 * tp / (n_found + len(gold)))
    assert 0 < line.mean < 100
    assert (line.reference, line.sd, line.dev_mean, list(line.dev_f1), line.n_taggers) == (
        "dictionary",
        None,
        None,
        [],
        0,
    )
    assert (line.also[0].test, line.also[0].sd) == ("dev", None)
    base = boards.tables(none, store())
    assert len(base) == 3  # two taggers of each seed are one replicate
    often = evaluations.read(found) * 2
    gap = compare_line([Evaluation.pooled(often)], base)
    assert (line.delta, line.interval) == (gap.delta, (gap.lo, gap.hi))
    assert line.delta == pytest.approx(line.mean - none.mean)
    assert line.interval[0] < line.delta < line.interval[1]
    assert line.wins + line.ties + line.losses == 3
    assert line.also[0].delta == pytest.approx(line.also[0].mean - none.also[0].mean)
    assert line.about == f"{len(listed)} names of list <i>, looked up without training."
    assert line.hours["dictionary"] == line.gpu_hours > 0
    assert line.f1_per_hour is None
    assert tables.rate_words(line) == ""


def test_without_a_list_the_names_of_the_training_set_are_looked_up_once(home: Path, untrained: None) -> None:
    fill(home)
    run = runs.execute("experiment", OWN)
    assert row_of(run.id).about.endswith(" of train, looked up without training.")
    more = {**OWN, "seeds": (1, 2, 3)}
    left = [step.kind for step in experiments.cost(more).steps if not step.finished]
    assert left == ["finetune"]
    again = runs.execute("experiment", more)
    assert row_of(again.id).finetunes == row_of(run.id).finetunes
    assert "(or of the training set, if there is none)" in arms.find("dictionary").summary


def test_each_half_has_its_own_line_if_halves_are_swapped(home: Path, untrained: None) -> None:
    leaky(home, fill(home))
    given = Library(home).seal([sentence("The supplier", [(0, 2, "PARTY")])], name="list", origin={}, labelled=True)
    rows = [sentence(f"The supplier {n} pays", [(0, 2, "PARTY")]) for n in range(9)]
    Library(home).seal(rows, name="hard", origin={}, labelled=True)
    for lists in ((), (given.fingerprint,)):
        options = {**CROSS, "arms": ("none", "dictionary"), "dictionary": lists, "also_test": ("hard",)}
        run = runs.execute("experiment", options)
        none, line = results.board(run.id).leaderboard
        found = [runs.get(one) for one in line.finetunes]
        assert [one.manifest.kind for one in found] == ["dictionary", "dictionary"]
        trained = [runs.get(one) for one in none.finetunes]
        assert [one.manifest.config["test"] for one in found] == [one.manifest.config["test"] for one in trained]
        own = [[one.manifest.config["train"]] for one in trained]
        assert [one.manifest.config["names"] for one in found] == (own if not lists else [list(lists)] * 2)
        assert line.halves_runs == none.halves_runs
        assert (len(line.micro_f1), line.sd) == (2, None)
        gap = compare_line(*(boards.tables(row, store()) for row in (line, none)))
        assert (line.delta, line.interval) == (gap.delta, (gap.lo, gap.hi))
        assert "no interval: the seeds differ too much" in line.why  # two replicates
        assert (len(line.also[0].micro_f1), line.also[0].sd) == (2, None)  # every half's line on the same further set
        assert line.also[0].delta == pytest.approx(line.also[0].mean - none.also[0].mean)
        assert experiments.cost(options).seconds == 0
    with pytest.raises(
        ConfigError, match="is also the training set or a held-out corpus"
    ):  # its sentences are tested too
        ExperimentConfig.parse({**CROSS, "arms": ("none", "dictionary"), "dictionary": ("train",)})


def test_a_line_has_one_step_beside_sizes_multipliers_and_encoders() -> None:
    more = {"train_sizes": (5, 10), "axis": ("encoder:other",), "seeds": (1, 2, 3)}
    config = ExperimentConfig.parse({**OWN, **more})
    assert [str(cell) for cell in config.cells] == ["none", "dictionary", "none encoder:other"]
    several = {"arms": ("none", "dictionary", "knn"), "multipliers": True, "repeat": "pipeline", "looks": (2, 3)}
    for options in (more, {**several, "seeds": (1, 2, 3)}):
        config = ExperimentConfig.parse({**OWN, **options})
        cell = next(cell for cell in config.cells if cell.arm.reference)
        [replicate] = config.replicates(cell)
        assert (replicate.number, replicate.seeds) == (0, ())


def test_a_line_comes_before_the_trainings_and_resumes(home: Path, untrained: None) -> None:
    fill(home)
    options = {**OWN, "arms": ("none", "tapt", "dictionary"), "train_sizes": (5,), "draws": 1}
    stages: list[str] = []
    run = runs.execute("experiment", options, lambda e: stages.append(e.data["name"]) if e.kind == "stage" else None)
    steps = [name.partition(": ")[2] for name in stages if name.startswith("[")]
    assert steps.index("looking names up") == 1  # after the selection of random-only, before everything that trains
    assert [row.arm for row in results.board(run.id).leaderboard][-1] == "dictionary"
    assert not [point for point in results.board(run.id).curve if point.arm == "dictionary"]
    assert Counter(one.manifest.kind for one in runs.listed())["dictionary"] == 1
    assert experiments.cost(options).seconds == 0
    first = experiments.cost({**options, "dictionary": (names_of(home, 3),)})
    [step] = [step for step in first.steps if not step.finished]
    assert (step.kind, step.line) == ("dictionary", "dictionary")
    assert 0 < step.seconds < 60


def test_a_reference_line_is_never_the_claim() -> None:
    assert not arms.find("dictionary").judged
    with pytest.raises(ConfigError, match="claim: dictionary gets no verdict; name one of lpft"):
        ExperimentConfig.parse({**OWN, "arms": ("none", "dictionary", "lpft"), "claim": "dictionary"})
    assert ExperimentConfig.parse(OWN).claimed is None


@pytest.mark.parametrize("split", ["train", "dev", "test", "hold"])
@pytest.mark.parametrize("arm", ["dictionary", "none+dictionary"])
def test_held_out_text_is_no_dictionary(arm: str, split: str, home: Path) -> None:
    """The training set's own names may be looked up, but a tagger would find them in every sentence that it learns from."""
    fill(home)
    Library(home).seal([sentence("Harlow Ltd signs", [(0, 2, "PARTY")])], name="hold", origin={}, labelled=True)
    options = {**OWN, "arms": ("none", arm), "holdout": ("hold",)}
    mark = Library(home).find(split).fingerprint
    config = ExperimentConfig.parse({**options, "dictionary": (mark,)})
    if (arm, split) == ("dictionary", "train"):
        assert ExperimentConfig.parse({**options, "dictionary": (split,)}).settled() != config
        return
    with pytest.raises(ConfigError, match="is also the training set or a held-out corpus"):
        ExperimentConfig.parse({**options, "dictionary": (split,)})
    with pytest.raises(ConfigError, match=f"dictionary: {mark} is also"):  # the same corpus by its fingerprint
        config.settled()


def line(word: Word = "better than none", **fields: Any) -> ArmRow:
    known: dict[str, Any] = {"arm": "dictionary", "reference": "dictionary", "micro_f1": [70.0], "mean": 70.0}
    known |= {"dev_mean": None, "dev_f1": (), "sd": None, "delta": 20.2, "interval": (19.1, 21.3), "about": "3 names."}
    return replace(ARM_ROW, verdict=word, **(known | fields))


@pytest.mark.parametrize(
    ("word", "gap", "says"),
    [
        (
            "better than none",
            (20.2, (19.1, 21.3)),
            "scores 70.0 of 100, more than the tagger trained on your labels alone (+20; ",
        ),
        (
            "worse than none",
            (-4.0, (-5.0, -3.0)),
            "less than the tagger trained on your labels alone (-4.0; -5.0 to -3.0).",
        ),
        ("no evidence of a difference", (0.5, (-1.0, 2.0)), "not measurably different from the tagger trained"),
        ("no evidence of a difference", (0.5, (-100.0, 100.0)), "the tagger trained on your labels alone."),
    ],
)
def test_the_finding_describes_a_line_and_draws_no_conclusion(
    word: Word, gap: tuple[float, tuple[float, float]], says: str
) -> None:
    row = line(word, delta=gap[0], interval=gap[1])
    none, claim = replace(ARM_ROW, arm="none", verdict="baseline"), replace(ARM_ROW, arm="lpft", verdict="hurts")
    for rows, answer in (([none, claim, row], "No"), ([none, row], "No result")):
        board = ExperimentResult(leaderboard=rows, curve=[], hours={})
        found = of_experiment(board)
        assert found.word == answer
        assert "Without training, looking names up scores 70.0 of 100, " in found.what
        assert says in found.what
        assert not PRIVATE.search(found.what)
        assert "elped" not in found.what
        assert main(board) is (claim if claim in rows else None)
    assert tables.answers(row) == (word, "")
    assert tables.asked_first([none, replace(claim, sentences=9), row]) == "Pre-training helped"
    assert "± " not in tables.as_markdown(ExperimentResult(leaderboard=[none, row], curve=[], hours={}))


def test_verdict_follows_from_the_interval_and_names_its_limits() -> None:
    gold = np.full(200, 2)
    none = [test_verdict.evaluation(gold - (np.arange(200) % 2 == seed), gold, gold) for seed in (0, 1)] * 2
    for right, word in ((gold, "better than none"), (gold - 1, "worse than none"), (none[0].tp[:, 0], None)):
        one = test_verdict.evaluation(right, gold, gold)
        gap = compare_line([one], none)
        found, why = described(gap, "the tagger trained on the labels", "seeds")
        assert found == (word or "no evidence of a difference")
        assert why.startswith("Against the tagger trained on the labels ")
        assert "the variation of the seeds of none and of the test sentences" in why
        assert "of the replicates of none" in described(gap, "none", "replicates")[1]
        assert "not corrected" in why
    _, why = described(compare_line([one], none[:1]), "none", "seeds")
    assert why.endswith(
        "(one seed, so no interval). This variant trains nothing, and the planned test does not include it."
    )


def test_degrees_of_freedom_are_limited_by_the_seeds_of_the_baseline() -> None:
    world = test_verdict.World(np.random.default_rng(1), 400, seed=0.0, sentence=0.5, both=0.0)
    line, *none = world.arm(0.3, 6)
    assert [compare_line([line], none[:n]).dof for n in (1, 2, 3)] == [0, 4, 8]
    assert compare_line([line], none[:3]).lo < bootstrap.compare([line] * 3, none[:3]).lo


def test_without_a_tagger_that_learnt_anything_a_line_is_not_compared(home: Path) -> None:
    def idle(config: Any, job: Any) -> Any:
        found = finetune(config, job)
        nothing = replace(found.dev, micro_f1=[0.0] * len(config.seeds), lot=[0.0] * len(config.seeds))
        return replace(found, dev=nothing)

    fill(home)
    with without_training(finetune=idle):
        run = runs.execute("experiment", OWN)
    row = row_of(run.id)
    assert (row.verdict, row.helped, row.collapsed) == ("not tested", None, [])
    assert boards.nothing_learnt(results.board(run.id).leaderboard)
    assert row.mean > 0
    assert not opened("pages/6_Results.py").exception


def test_a_seed_of_the_baseline_that_learnt_nothing_is_named_beside_a_line(home: Path) -> None:
    def half_idle(config: Any, job: Any) -> Any:
        found = finetune(config, job)
        n = len(config.seeds)
        return replace(found, dev=replace(found.dev, micro_f1=[0.0, 60.0][:n], lot=[0.0] * n))

    fill(home)
    with without_training(finetune=half_idle):
        run = runs.execute("experiment", OWN)
    row = row_of(run.id)
    assert row.why.endswith("Learnt nothing, but counted in the scores: seed 1 of none.")
    assert row.collapsed == []


def test_pages_show_a_line_and_offer_no_tagger_of_it(home: Path, untrained: None) -> None:
    fill(home)
    options = {**OWN, "arms": ("none", "lpft", "dictionary"), "dictionary": (names_of(home, 2),), "also_test": ("dev",)}
    run = runs.execute("experiment", options)
    row = row_of(run.id)
    app = opened("pages/6_Results.py")
    assert not app.exception
    shown = texts(app)
    assert f">{row.mean:.2f}</td>" in shown
    assert f"**dictionary**: {plain(row.about)}" in [caption.value for caption in app.caption]
    assert "list <i>" not in shown
    assert row.verdict in shown
    assert "Other runs without training" not in shown
    for tab in ("By type", "Sentences", "Training curves", "Try it", "Curves", "Download", "All trainings"):
        app.session_state["results.tab"] = tab
        app.run()
        assert not app.exception, tab
        offered = [str(option) for box in (*app.selectbox, *app.multiselect) for option in box.options]
        assert not [option for option in offered if option.startswith("dictionary")], tab
    report = html_report(run.id)
    assert "names of list &lt;i&gt;, looked up without training" in report
    assert row.verdict in report
    assert "None</" not in report
    [rings, *marks] = plot.seed_dots(results.board(run.id).leaderboard).data
    assert "dictionary" not in rings.y
    assert row.mean in [mark.x[0] for mark in marks]
    store().remove(row.finetune_run)
    assert results.missing(run.id) == ["the run of dictionary"]
    assert not opened("pages/6_Results.py").exception
    assert row.verdict in html_report(run.id)


def test_interval_of_a_line_covers_other_seeds_and_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each repetition draws test sentences and seeds of `none`. The line finds the same entities under every seed."""
    monkeypatch.setattr(bootstrap, "DRAWS", 300)
    rng, experiments, shares = np.random.default_rng(0), 250, list[float]()
    for seeds, spread, hard, both in (
        (2, 0.15, 0.5, 0.3),
        (3, 0.3, 0.5, 0.3),
        (3, 0.05, 0.7, 0.5),
        (5, 0.15, 0.7, 0.3),
    ):
        held = 0
        for number in range(experiments):
            world = test_verdict.World(rng, 100, seed=spread, sentence=hard, both=both)
            none, truth = world.arm(0.1, seeds), -world.truth(0.1)
            world.spread = 0.0
            found = compare_line(world.arm(0.4, 1), none, seed=number)
            held += found.lo <= truth + world.truth(0.4) <= found.hi
        shares.append(held / experiments)
    assert 0.93 <= np.mean(shares) <= 0.97
    assert min(shares) >= 0.9


class Crossed(test_crossed.World):
    """A world of swapped halves whose first variant is a reference variant. own: it depends on the labels of its half."""

    def __init__(self, rng: np.random.Generator, n: int, pretraining_sd: float, *, own: bool) -> None:
        super().__init__(rng, n, pretraining_sd)
        self.own, self.fixed = own, 0.12 * rng.normal(size=(2, n, test_crossed.MENTIONS))

    def skill(self, common: float, labels: float, text: float, arm: int) -> float:
        if arm:
            return super().skill(common, labels, text, arm)
        return 0.2 + test_crossed.POINT * (common + labels) * self.own  # it has no pre-training and no tagger

    def noise(self, arm: int, rows: IntArray) -> FloatArray:
        return super().noise(arm, rows) if arm else self.fixed[:, rows]


def test_interval_of_a_line_covers_repetitions_with_other_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each repetition draws another pool, halves, labels, pre-trainings and taggers of `none`."""
    monkeypatch.setattr(bootstrap, "DRAWS", 100)
    rng, held = np.random.default_rng(0), list[bool]()
    for own in (True, False):
        for times, pretraining_sd in ((2, 0.8), (4, 0.0), (6, 0.4), (10, 0.8)):
            worlds = (Crossed(rng, 600, pretraining_sd, own=own) for _ in range(60))
            gaps = [compare_line(*world.replicates(times), seed=number) for number, world in enumerate(worlds)]
            truth = float(np.mean([gap.delta for gap in gaps]))
            held += [gap.lo <= truth <= gap.hi for gap in gaps]
    assert 0.93 <= np.mean(held) <= 0.98
