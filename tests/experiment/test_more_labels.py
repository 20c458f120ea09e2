"""Estimates of more labels: taggers on nested parts of the labels, a line without a row, or the reason for none."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.corpora.library import Library
from core.errors import ConfigError
from core.experiment import arms, results, tables
from core.experiment import view as experiments
from core.experiment.cheapest import cheapest
from core.experiment.cli import in_figures
from core.experiment.config import ExperimentConfig
from core.experiment.more_labels import ENOUGH, SECONDS, seconds_per_sentence
from core.experiment.next_step import next_steps
from core.experiment.result import MoreLabels, evaluations_of_replicate
from core.labelling import answers
from core.labelling.answers import Answer
from core.projects import runs
from core.projects.home import library, store
from core.runs.store import is_run_id
from core.stats.more_labels import expected
from core.stats.power_law import Forecast
from tests.conftest import sentence
from tests.experiment.test_experiment import OPTIONS, labelled
from tests.experiment.test_replicates import CROSS
from tests.planted import contracts
from tests.untrained import finetune, without_training

SPLITS = {name: OPTIONS[name] for name in ("train", "dev", "test", "encoder", "finetune")}
ASKED: dict[str, Any] = {**SPLITS, "arms": ("none", "labels:+24"), "seeds": (1, 2, 3)}
SKILL = {12: 0.5, 24: 0.65, 48: 0.79}  # share of the entities that a tagger on so many sentences finds


def growing(config: Any, job: Any) -> Any:
    """Return a result that grows with the training set, and is far worse after a pre-training."""
    skill = 0.5 if is_run_id(config.init) else SKILL[len(job.corpus(config.train))]
    number = round(3333 * (skill - 0.5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.untrained.zlib", SimpleNamespace(crc32=lambda _: number))
        return finetune(config, job)


@pytest.fixture
def untrained() -> Iterator[None]:
    with without_training(finetune=growing):
        yield


@pytest.fixture
def corpora(home: Path) -> Library:
    sealed, texts = Library(home), contracts(500, seed=1)
    for name, part in {"train": texts[:48], "dev": texts[48:60], "test": texts[60:460]}.items():
        sealed.seal(labelled(part), name=name, origin={}, labelled=True)
    sealed.seal(map(sentence, texts[460:]), name="task", origin={})
    return sealed


def line_of(run_id: str, arm: str = "labels:+24") -> MoreLabels:
    return next(line for line in results.board(run_id).more_labels if line.arm == arm)


def test_each_seed_trains_on_nested_parts_of_its_own_with_the_settings_of_none(
    corpora: Library, untrained: None
) -> None:
    run = runs.execute("experiment", ASKED)
    [none], line = results.board(run.id).leaderboard, line_of(run.id)
    assert {size: len(each) for size, each in line.runs.items()} == {12: 3, 24: 3}
    parts = {size: [runs.get(one).manifest.config for one in each] for size, each in line.runs.items()}
    assert [config["seeds"] for config in parts[12]] == [config["seeds"] for config in parts[24]] == [[1], [2], [3]]
    texts = {size: [{*_texts(config["train"])} for config in each] for size, each in parts.items()}
    assert all(small < large < {*_texts("train")} for small, large in zip(texts[12], texts[24], strict=True))
    assert len({frozenset(each) for each in texts[24]}) == 3
    usual = runs.get(none.finetune_run).manifest.config
    for config in (*parts[12], *parts[24]):
        assert {**config, "train": usual["train"], "seeds": usual["seeds"]} == usual
    evaluated = {size: [_only(one) for one in each] for size, each in line.runs.items()}
    drawn = expected(evaluated | {48: evaluations_of_replicate(runs.get(none.finetune_run), None)}, 24)
    assert isinstance(drawn, Forecast)
    assert (line.interval, line.gain_interval) == (drawn.interval(0.95), drawn.gain_interval(0.95))
    assert line.interval
    assert line.f1
    assert line.gain
    assert line.interval[0] < none.mean < line.f1 < line.interval[1]
    assert line.gain > 0
    assert results.board(run.id).hours["finetune"] == pytest.approx(line.hours + none.gpu_hours)


def _texts(reference: str) -> list[str]:
    return [one.text for batch in library().find(reference).batches() for one in batch]


def _only(run_id: str) -> Any:
    [one] = evaluations_of_replicate(runs.get(run_id), None)
    return one


def test_parts_are_costed_once_and_a_second_estimate_reuses_them(corpora: Library, untrained: None) -> None:
    two = {**ASKED, "arms": ("none", "labels:+24", "labels:+48")}
    for timing in experiments.calibrations(two):
        runs.execute("calibrate", timing)
    planned = experiments.cost(two)
    assert planned.lines["labels:+24"] > 0
    words = (
        "For labelling, labels:+24 takes 12 min and labels:+48 takes 24 min of your time; the other variants take none."
    )
    assert in_figures(planned)[-1] == planned.person_words == words
    assert planned.as_json()["person_minutes"] == {"labels:+24": 12.0, "labels:+48": 24.0}
    assert planned.lines["labels:+48"] == 0
    assert [step.what for step in planned.steps if step.line == "labels:+24"][:2] == [
        "replicate 1, 12 labelled sentences, draw 1",
        "replicate 1, 24 labelled sentences, draw 1",
    ]
    fewer = [step for step in experiments._cost(two, 40).steps if step.line == "labels:+24"]
    assert [step.what for step in fewer][:2] == [
        "replicate 1, 10 labelled sentences, draw 1",
        "replicate 1, 20 labelled sentences, draw 1",
    ]
    assert not [step for step in experiments._cost(two, 39).steps if step.line == "labels:+24"]
    runs.execute("experiment", ASKED)
    assert experiments.cost(two).seconds == 0
    assert experiments._cost(two, 40).lines["labels:+24"] == sum(step.seconds for step in fewer)
    near, far = results.board(runs.execute("experiment", two).id).more_labels
    assert near.runs == far.runs
    assert near.f1
    assert far.f1
    assert near.f1 < far.f1
    assert len(store().list("finetune")) == 1 + 6


def test_an_early_end_leaves_an_estimate_of_the_seeds_so_far(corpora: Library, untrained: None) -> None:
    asked = {
        **ASKED,
        "arms": ("none", "tapt", "labels:+24"),
        "task": "task",
        "seeds": tuple(range(1, 9)),
        "looks": (4, 8),
    }
    board = results.board(runs.execute("experiment", asked).id)
    assert board.planned
    assert (board.planned.ended, board.planned.replicates) == ("worse", 4)
    [line] = board.more_labels
    assert line.seeds == 4
    assert line.f1
    assert [runs.get(one).manifest.config["seeds"] for one in line.runs[12]] == [[1], [2], [3], [4]]


def test_what_cannot_be_estimated_says_why_and_trains_nothing_for_it(corpora: Library, untrained: None) -> None:
    told: list[str] = []
    asked = {**ASKED, "arms": ("none", "labels:+49")}
    run = runs.execute("experiment", asked, lambda event: told.append(str(event.data.get("text"))))
    before = "labels:+49 will not be estimated: 49 more sentences are more than the training set has (48), too many for"
    assert experiments.not_estimated(asked) == [f"{before} an estimate."]
    assert f"{before} an estimate." in told
    assert experiments.not_estimated(ASKED) == []
    line = line_of(run.id, "labels:+49")
    assert (line.f1, line.gain, line.runs, line.hours) == (None, None, {}, 0)
    why = "Not estimated: 49 more sentences are more than the training set has (48), too many for an estimate."
    assert line.words == why
    assert f"- labels:+49: {why}" in tables.as_markdown(results.board(run.id)).splitlines()
    assert ",not estimated," in tables.as_csv(results.board(run.id)).splitlines()[-1]
    assert results.board(run.id).cheapest is None
    beside = runs.execute("experiment", {**asked, "arms": ("none", "dictionary", "labels:+49")})
    found = results.board(beside.id).cheapest
    assert found
    assert "Not compared here: more labels (which could not be estimated), labels of another corpus," in found.words
    one = line_of(runs.execute("experiment", {**ASKED, "seeds": (1,)}).id)
    assert one.words == "Not estimated: one seed does not show the spread between seeds; give three."


def test_taggers_that_learn_nothing_leave_no_estimate(corpora: Library) -> None:
    def idle(config: Any, job: Any) -> Any:
        found = growing(config, job)
        small = len(job.corpus(config.train)) == 12 and 2 in config.seeds
        nothing = replace(found.dev, micro_f1=[0.0], lot=[0.0])
        return replace(found, dev=nothing) if small else found

    with without_training(finetune=idle):
        line = line_of(runs.execute("experiment", ASKED).id)
    assert line.words == "Not estimated: 1 of 3 taggers on 12 sentences learnt nothing."


def test_the_sentence_on_the_cheapest_way_can_name_more_labels(corpora: Library, untrained: None) -> None:
    run = runs.execute("experiment", {**ASKED, "arms": ("none", "labels:+48"), "seeds": (1, 2, 3, 4, 5)})
    board = results.board(run.id)
    [line] = board.more_labels
    assert line.gain_interval
    assert line.gain_interval[0] > 0
    assert board.cheapest
    assert board.cheapest == cheapest(board, store())
    assert board.cheapest.line == "labels:+48"
    low, high = line.gain_interval
    # 48 sentences at 30 seconds are 24 minutes; a single line needs no correction.
    named = f"labels:+48 ({line.gain:+z.1f} points [{low:+z.1f}, {high:+z.1f}] in less than a minute of machine time"
    assert f"{named} and 24 min of your time)" in board.cheapest.words
    assert "more labels" not in board.cheapest.words
    assert [(step.goal, step.run) for step in next_steps(run.id)] == [("label", run.id)]


def test_time_per_sentence_is_the_median_of_the_answers_on_label(corpora: Library, untrained: None) -> None:
    queued = runs.execute("draw", {"task": "task", "known": ("train", "dev", "test"), "n": ENOUGH})

    def label(places: range, seconds: float, client: str) -> None:
        given = [Answer(action="label", place=i, seconds=seconds, client=client, number=i) for i in places]
        answers.add(queued.path, given)

    label(range(ENOUGH - 1), 12.0, "a")
    label(range(ENOUGH), 0.0, "imported")
    assert seconds_per_sentence(store()) is None
    assumed = line_of(runs.execute("experiment", ASKED).id)
    assert assumed.person_seconds == 24 * SECONDS
    assert "at 30 seconds per sentence, which is assumed." in assumed.words
    label(range(ENOUGH - 4, ENOUGH), 40.0, "b")  # corrections add to the time of three sentences; a new one takes 40
    assert seconds_per_sentence(store()) == 12.0  # 12 s six times, 52 s three times, 40 s once
    measured = line_of(runs.execute("experiment", {**ASKED, "draw_seed": 1}).id)
    assert measured.person_seconds == 24 * 12.0
    assert "at 12 seconds per sentence, your median time on the page Label." in measured.words


def test_an_estimate_needs_a_number_and_one_training_set() -> None:
    assert arms.find("labels:+100").more == 100
    for wrong in ("labels:100", "labels:+0", "labels:+1e3", "labels:+"):
        with pytest.raises(ConfigError, match=r"needs a number of sentences; write for example labels:\+100"):
            arms.find(wrong)
    with pytest.raises(ConfigError, match=r"labels:\+100 needs a single training set"):
        ExperimentConfig.parse({**CROSS, "arms": ("none", "labels:+100")})
    cells = ExperimentConfig.parse({**ASKED, "axis": ("encoder:minilm",)}).cells
    assert [str(cell) for cell in cells if cell.arm.more] == ["labels:+24"]
