"""The verdict in three parts: what it says follows the verdicts, and a lawyer can read every word of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from core.artifacts.finding import IDLE, Finding, main, of_experiment, of_study, repetitions_to_settle
from core.artifacts.leaderboard import ArmRow, ExperimentResult, PlannedTest, Word
from core.artifacts.study import Conclusion, Question, StudyResult, TaskRow
from core.stats.pooled import Estimate
from tests.finished import ARM_ROW

NONE = replace(ARM_ROW, arm="none", verdict="baseline")
PRIVATE = re.compile(r"T_C|D_C|S_C|L_C|\barm\b|Holm|F1|\bseeds?\b|p =|pre-train|bootstrap|interval")
GAIN = Estimate(delta=3.9, falling=0.3, fixed=0.05, dof=4)


def line(word: Word, arm: str = "classifier", **fields: Any) -> ArmRow:
    known: Mapping[str, Any] = {
        "budget": "10%" if arm in ("classifier", "knn", "random") else "",
        "sentences": 1333 if arm in ("classifier", "knn", "tapt", "dapt") else 0,
        "micro_f1": [60.0, 61.0, 62.0],
        "delta": 3.9,
        "interval": (1.0, 6.8),
        "estimate": GAIN,
    }
    return replace(ARM_ROW, verdict=word, arm=arm, **(dict(known) | fields))


def finding(*rows: ArmRow, hours: float = 0.4, planned: PlannedTest | None = None) -> Finding:
    result = ExperimentResult(leaderboard=[NONE, *rows], curve=[], hours={"finetune": hours}, planned=planned)
    return of_experiment(result)


BY_LOT: Mapping[str, Any] = {"delta_random": 0.9, "interval_random": (-1.0, 2.8), "chose": "no evidence"}
ROWS: Mapping[str, tuple[ArmRow, tuple[str, str, str]]] = {
    "nothing seen": (
        line("no evidence", delta=0.9, interval=(-20.0, 21.8), estimate=replace(GAIN, delta=0.9)),
        ("Not shown: after reading the chosen 10%", "can only detect gains of about 28 points or more", "Next: 19 repetitions in"),
    ),
    "a single one": (
        line("no evidence", micro_f1=[60.0], interval=(-100.0, 100.0)),
        ("Not shown", "How sure cannot be said", "Next: 5 repetitions in place of 1, about 1.6 h more."),
    ),
    "level": (
        line("no evidence", delta=0.01, interval=(-1.0, 1.0)),
        ("Not shown", "+0.0 points of 100", "Next: something else; the two are level"),
    ),
    "too small to wait for": (
        line("no evidence", delta=0.2, interval=(-1.0, 1.4), estimate=replace(GAIN, fixed=0.0)),
        ("Not shown", "can only detect gains of about", "Labelling more text would help more."),
    ),
    "too few test sentences": (
        line("no evidence", delta=1.0, interval=(-1.0, 3.0), estimate=replace(GAIN, falling=0.01, fixed=0.5)),
        ("Not shown", "can only detect", "Next: about 4.3 times as many labelled test sentences; repeating alone"),
    ),
    "one pre-training": (
        line("no evidence", delta=1.0, interval=(-1.0, 3.0), estimate=replace(GAIN, fixed=0.5), pretrain_run="r"),
        ("Not shown", "can only detect", "Next: 6 repetitions, each with its own selection and reading"),
    ),
    "reading helped": (
        line("helped", estimate_random=replace(GAIN, delta=0.9, fixed=0.0), **BY_LOT),
        ("Reading helped, choosing is not shown to", "+0.9 over as much random text (-1.0 to +2.8)", "Next: 11 repetitions"),
    ),
    "a quick look": (
        line("helped", delta_random=0.9, interval_random=(-1.0, 2.8), chose=None),
        ("Reading helped, choosing is not shown to", "+0.9 over as much random text", "each with its own selection and reading"),
    ),
    "no control": (
        line("helped", "tapt"),
        ("It helped: after reading the task's own text", "+3.9 points of 100", "Next: repeat it with a random baseline"),
    ),
    "choosing helped": (
        line("improves", delta_random=2.9, interval_random=(1.0, 4.8), chose="yes"),
        ("Yes, choosing paid: after reading", "+2.9 over as much random text", "Next: 5 repetitions in place of 3"),
    ),
    "surely": (
        line("improves", "dataaug", micro_f1=[60.0] * 5),
        ("Yes: with changed copies", "+3.9 points of 100 over none of it (+1.0 to +6.8", "Next: use it"),
    ),
    "below by lot": (
        line("below control", "skl:2", delta_random=-2.0, interval_random=(-3.0, -1.0)),
        (
            "No: with a random part the tagger does better than with borrowed labels",
            "-2.0 over a random part (-3.0 to -1.0)",
            "Next: leave it; with a random part the tagger is better.",
        ),
    ),
    "harm": (
        line("hurts", "vectors:law", delta=-2.0, interval=(-3.0, -1.0)),
        ("No: with word vectors of law the tagger does worse", "-2.0 points of 100", "Next: leave it; the tagger without"),
    ),
    "nothing compared": (line("control", "random"), ("Nothing was compared.", "", "Next: name something")),
}  # fmt: skip


@pytest.mark.parametrize("case", ROWS)
def test_what_how_sure_and_what_next_follow_from_the_verdict(case: str) -> None:
    row, words = ROWS[case]
    told = finding(row)
    for part, begins in zip((told.what, told.sure, told.next), words, strict=True):
        assert begins in part
        assert not PRIVATE.search(part)
    assert told.parts == [part for part in (told.what, told.sure, told.next) if part]


@pytest.mark.parametrize(
    ("arm", "read", "asked", "control"),
    [
        ("classifier", 1333, "choosing", "after as much random text"),
        ("tapt", 1333, "choosing", "after as much random text"),
        ("lm:law", 1333, "reading the source", "with the language model as it came"),
        ("skl:2", 0, "choosing", "with a random part"),
        ("dataaug", 0, "changing the copies", "with unchanged copies"),
        ("random2low:20%", 0, "changing the copies", "with unchanged copies"),
        ("highc2low:20%", 0, "changing the copies", "with unchanged copies"),
        ("miner", 0, "comparing names", "with a plain tagger of spans"),
    ],
)
def test_an_arm_is_held_against_its_own_control_in_words(arm: str, read: int, asked: str, control: str) -> None:
    fields: dict[str, Any] = {"sentences": read, "delta_random": 2.9, "interval_random": (1.0, 4.8), "chose": "yes"}
    better = finding(line("improves", arm, **fields))
    assert better.what.startswith(f"Yes, {asked} paid: {'after reading' if control.startswith('after') else 'with'} ")
    assert f", and better than {control}." in better.what
    assert f"+2.9 over {control.split(' ', 1)[1]} (" in better.sure
    helped = finding(line("helped", arm, **fields | {"chose": "no evidence"})).what
    assert f"helped, {asked} is not shown to: " in helped
    assert f"but not surely better than {control}." in helped
    below = finding(line("below control", arm, **fields | {"delta_random": -2.9, "chose": "worse"}))
    assert below.what.startswith(f"No: {control} the tagger does better than ")
    assert below.next == f"Next: leave it; {control} the tagger is better."


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("1000", "the chosen 1,000 sentences the tagger"),
        ("20%", "the chosen 20% of the domain corpus the tagger"),
        ("50000tokens", "the chosen 50,000 tokens the tagger"),
    ],
)
def test_the_choice_is_called_by_what_was_asked_for_not_by_all_that_was_read(budget: str, words: str) -> None:
    told = finding(line("improves", budget=budget)).what
    assert f"after reading {words}" in told
    assert "1,333" not in told


def test_the_claim_comes_first_and_what_is_sure_of_others_is_named_beside_it() -> None:
    claim = line("no evidence", "knn", interval=(-1.0, 8.8))
    others = [line("improves"), line("helped", "dapt"), line("helped", "tapt"), line("hurts", "lm:law")]
    planned = PlannedTest(
        arm="knn", budget="10%", against="none", looks=(3,), replicates=3, ended="complete", p=0.2, bound=0.05,
        effect=1.0, chance=0.1, why="",
    )  # fmt: skip
    told = finding(*others, claim, planned=planned).what
    assert told.startswith("Not shown: after reading the chosen 10% of the domain corpus (knn)")
    assert (
        "it also does better with the chosen 10% of the domain corpus (classifier), all of the domain corpus and 1 more"
        in told
    )
    assert "it does worse with a language model of law" in told
    assert finding(*others, claim).what.startswith(
        "Yes: after reading the chosen 10% of the domain corpus (classifier)"
    )


def test_the_claim_comes_first_in_a_quick_look_too_and_what_else_is_sure_is_called_exploratory() -> None:
    """No test is planned there; the leaderboard itself says which lines are exploratory."""
    claim = line("helped", "knn", delta_random=0.9, interval_random=(-1.0, 2.8), chose=None)
    other = line("improves", delta_random=2.9, interval_random=(1.0, 4.8), exploratory=True)
    words = finding(other, claim)
    assert words.what.startswith(
        "Reading helped, choosing is not shown to: after reading the chosen 10% of the domain "
    )
    assert words.what.endswith(
        " Besides, not asked beforehand and so exploratory: it also does better with the chosen 10% of the domain corpus "
        "(classifier)."
    )
    assert not any(PRIVATE.search(part) for part in words.parts)
    board = ExperimentResult(leaderboard=[NONE, other, claim], curve=[], hours={})
    assert main(board) is claim


@pytest.mark.parametrize(
    ("row", "also"),
    [
        (line("below control", helped="yes"), " Reading helped, whatever was read."),
        (line("below control", "skl:2", helped="yes"), " It does better than without, all the same."),
        (line("below control", helped="no evidence"), ""),
    ],
)
def test_below_its_control_an_arm_may_help_all_the_same(row: ArmRow, also: str) -> None:
    row = replace(row, delta_random=-2.0, interval_random=(-3.0, -1.0), chose="worse")
    what = finding(row).what
    assert what.startswith("No: ")
    assert what.removesuffix(also).endswith((" (up to 2).", " of the domain corpus."))
    assert ("Reading helped" in what, "all the same" in what) == ("Reading" in also, "same" in also)


def test_a_claim_that_is_not_tested_lends_its_place_to_no_other() -> None:
    claim = line("not tested", "dataaug", changed=5, wanted=100)
    other = line("improves", "lpft", exploratory=True)
    words = finding(other, claim)
    assert words.what.startswith("Not tested, as too few labels could be changed: changed copies of its training sen")
    assert words.what.endswith(
        "Besides, not asked beforehand and so exploratory: it also does better with training in two stages."
    )
    assert (words.sure, words.next[:25]) == ("", "Next: ask for a lower sha")
    assert main(ExperimentResult(leaderboard=[NONE, other, claim], curve=[], hours={})) is None


def test_what_would_settle_it_is_a_number_too_and_the_one_that_is_said() -> None:
    def settles(row: ArmRow, hours: float = 0.4) -> int:
        return repetitions_to_settle(ExperimentResult(leaderboard=[NONE, row], curve=[], hours={"finetune": hours}))

    for case, (row, _) in ROWS.items():
        said = re.match(r"Next: (\d+) repetitions", finding(row).next)
        assert settles(row) == int(said[1] if said else 0), case
    swapped = replace(ROWS["nothing seen"][0], halves_runs=("r",) * 3)
    assert settles(swapped) == 20
    assert settles(swapped, hours=100.0) == 0  # nobody would wait for it
    level = replace(ROWS["nothing seen"][0], delta=0.01)
    assert settles(level) == settles(replace(level, delta=0.9, estimate=None)) == settles(NONE) == 0


def test_where_nothing_was_learnt_nothing_is_said() -> None:
    rows = [replace(row, collapsed=(1, 2, 3)) for row in (line("nothing learnt"), line("baseline", "none"))]
    result = ExperimentResult(leaderboard=rows, curve=[], hours={})
    assert of_experiment(result).what == IDLE


@pytest.mark.parametrize("word", ["improves", "helped", "no evidence", "hurts"])
def test_taggers_that_learnt_nothing_ask_for_longer_training_and_for_no_repetitions(word: Word) -> None:
    none = replace(NONE, micro_f1=[0.0, 60.0, 61.0], collapsed=(1,))
    result = ExperimentResult(leaderboard=[none, line(word)], curve=[], hours={"finetune": 0.4})
    told = of_experiment(result)
    assert told.next == "Next: train longer first; 1 of the 6 taggers learnt nothing."
    assert told.sure.endswith("Of 3 repetitions, one learnt nothing; they are included.")
    assert repetitions_to_settle(result) == 0
    assert not any(PRIVATE.search(part) for part in told.parts)


def test_halves_that_are_swapped_ask_for_an_even_number() -> None:
    row = line(
        "no evidence", delta=0.9, interval=(-20.0, 21.8), estimate=replace(GAIN, delta=0.9), halves_runs=("r",) * 3
    )
    assert "Next: 20 repetitions in place of 3" in finding(row).next


def task(delta: float, *, learnt: bool = True) -> TaskRow:
    return TaskRow(
        name="law", run="", sentences=300, tokens=9, f1=60.0, none_f1=58.0, control_f1=59.0, learnt=learnt,
        reading=replace(GAIN, delta=delta), reading_interval=(0.0, 1.0),
        choosing=replace(GAIN, delta=delta), choosing_interval=(0.0, 1.0),
    )  # fmt: skip


def mean(answer: Any, delta: float = 1.0, half: float = 0.5) -> Conclusion:
    return Conclusion(delta=delta, interval=(delta - half, delta + half), p=0.1, dof=4.0, answer=answer)


def study(these: Conclusion, others: Conclusion | None, *, tasks: Sequence[TaskRow], reading: Any = "yes") -> Finding:
    question = Question(these=these, others=others, between=None, lacking="")
    read = Question(these=mean(reading), others=None, between=None, lacking="")
    return of_study(
        StudyResult(
            arm="classifier", budget="", tasks=tasks, reading=read, choosing=question, planned=None, replicates=6,
            hours={"finetune": 3.0},
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("these", "others", "what", "then"),
    [
        (mean("yes"), mean("yes"), "Yes: choosing helped on these 2 tasks on average. On others like these it", "use it"),
        (mean("yes"), mean("no evidence"), "On others like these that is not shown.", "more tasks"),
        (mean("worse", -1.0), mean("no evidence", -1.0), "No: choosing did harm on these 2 tasks", "leave it"),
        (mean("no evidence", 0.5, 1.0), mean("no evidence"), "Not shown: choosing is not seen to help on these 2", "on each"),
    ],
)  # fmt: skip
def test_a_study_says_it_for_these_and_for_others(these: Conclusion, others: Conclusion, what: str, then: str) -> None:
    told = study(these, others, tasks=[task(0.5), task(0.5)])
    assert what in told.what
    assert then in told.next
    assert ("can only detect gains" in told.sure) == (these.answer == "no evidence")
    assert ("Reading helped, whatever was read" in told.what) == (these.answer != "yes")
    assert not any(PRIVATE.search(part) for part in told.parts)


@pytest.mark.parametrize("answer", ["yes", "no evidence"])
def test_a_study_with_taggers_that_learnt_nothing_asks_for_longer_training(answer: Any) -> None:
    tasks = [task(0.5), replace(task(0.5), unlearnt=2, taggers=9)]
    told = study(mean(answer), mean(answer), tasks=[replace(tasks[0], taggers=9), tasks[1]])
    assert told.next == "Next: train longer first; 2 of the 18 taggers learnt nothing."


def test_a_study_says_what_was_asked_of_its_arm() -> None:
    question = Question(these=mean("yes"), others=None, between=None, lacking="")
    result = StudyResult(
        arm="dataaug",
        budget="",
        tasks=[task(1.0)],
        reading=question,
        choosing=question,
        planned=None,
        replicates=6,
        hours={},
    )
    assert of_study(result).what == "Yes: changing the copies helped on this task."


def test_a_study_in_which_nothing_was_learnt_says_nothing_and_one_task_nothing_of_others() -> None:
    assert study(mean("yes"), None, tasks=[task(1.0, learnt=False)]).what == IDLE
    assert "others" not in " ".join(study(mean("yes"), None, tasks=[task(1.0)]).parts)


def test_a_task_whose_labels_could_hardly_be_changed_is_named() -> None:
    tasks = [task(0.5), replace(task(0.5), name="food", too_few="3 of 90 changed")]
    what = study(mean("yes"), mean("yes"), tasks=tasks).what
    assert what.endswith(
        " On food (3 of 90 changed) too few labels could be changed to test it, which counts all the same."
    )
    assert "too few" not in study(mean("yes"), mean("yes"), tasks=tasks[:1]).what
