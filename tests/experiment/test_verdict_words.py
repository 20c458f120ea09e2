"""The verdict in three parts: its sentences follow from the verdicts, and a lawyer can read every word."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from core.experiment.foresight import UNKNOWN, spread_of
from core.experiment.result import (
    ArmRow,
    Conclusion,
    EarlierAnalysis,
    ExperimentResult,
    Foretold,
    PlannedTest,
    Question,
    StudyResult,
    TaskRow,
    Word,
)
from core.experiment.tables import interval_words
from core.experiment.words import IDLE, Finding, is_open, main, of_experiment, of_study, repetitions_to_settle
from core.stats.pooled import Estimate
from tests.finished import ARM_ROW

NONE = replace(ARM_ROW, arm="none", verdict="baseline")
PRIVATE = re.compile(r"T_C|D_C|S_C|L_C|\barm\b|Holm|F1|\bseeds?\b|p =|bootstrap|interval")
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
        ("Can't tell yet: the tagger pre-trained on the selected 10%", "can only detect gains of about 28 points or more", "Next: 11 more replicates (14 in all)"),
    ),
    "a single one": (
        line("no evidence", micro_f1=[60.0], interval=(-100.0, 100.0)),
        ("Can't tell yet", "The uncertainty is unknown", "Next: 4 more replicates (5 in all), about 1.6 h."),
    ),
    "level": (
        line("no evidence", delta=0.01, interval=(-0.8, 0.8)),
        ("No clear benefit", "+0.0 points of 100", "Next: try something else; a true gain of 1 point is unlikely"),
    ),
    "too small to wait for": (
        line("no evidence", delta=0.2, interval=(-5.0, 5.4), estimate=replace(GAIN, falling=3.0, fixed=0.0)),
        ("Can't tell yet", "can only detect gains of about", "labelling more text would help more."),
    ),
    "too few test sentences": (
        line("no evidence", delta=1.0, interval=(-1.0, 3.0), estimate=replace(GAIN, falling=0.01, fixed=0.5)),
        ("Can't tell yet", "can only detect", "Next: about 4.3 times as many labelled test sentences; more replicates alone"),
    ),
    "one pre-training": (
        line("no evidence", delta=1.0, interval=(-1.0, 3.0), estimate=replace(GAIN, fixed=0.5), pretrain_run="r"),
        ("Can't tell yet", "The 3 taggers differ so much that they can only detect", "Next: 6 replicates, each with its own selection and pre-training"),
    ),
    "pre-training helped": (
        line("helped", estimate_random=replace(GAIN, delta=0.9, fixed=0.0), **BY_LOT),
        ("Helped, but there is no evidence that the selection helped", "to as much random text is +0.9 (-1.0 to +2.8)", "Next: 7 more replicates (10 in all)"),
    ),
    "a quick look": (
        line("helped", delta_random=0.9, interval_random=(-1.0, 2.8), chose=None),
        ("Helped, but there is no evidence that the selection helped", "to as much random text is +0.9", "each with its own selection and pre-training"),
    ),
    "no control": (
        line("helped", "tapt"),
        ("Helped: the tagger pre-trained on the task's own text", "+3.9 points of 100", "Next: repeat it with a random baseline"),
    ),
    "selection helped": (
        line("improves", delta_random=2.9, interval_random=(1.0, 4.8), chose="yes"),
        ("Helped, and the selection paid off: the tagger", "to as much random text is +2.9", "Next: 2 more replicates (5 in all)"),
    ),
    "surely": (
        line("improves", "dataaug", micro_f1=[60.0] * 5),
        ("Helped: the tagger with changed copies", "to none of it is +3.9 points of 100. The true difference lies between +1.0 and +6.8", "Next: use it"),
    ),
    "below by lot": (
        line("below control", "skl:2", delta_random=-2.0, interval_random=(-3.0, -1.0)),
        (
            "No: the tagger with a random sample of the same size does better than the tagger with assisting sentences",
            "to a random sample of the same size is -2.0 (-3.0 to -1.0)",
            "Next: do not use it; the tagger with a random sample of the same size is better.",
        ),
    ),
    "harm": (
        line("hurts", "vectors:law", delta=-2.0, interval=(-3.0, -1.0)),
        ("No: the tagger with word vectors of law does worse", "-2.0 points of 100", "Next: do not use it; the tagger without"),
    ),
    "nothing compared": (line("control", "random"), ("Nothing was compared.", "", "Next: add a variant besides none")),
}  # fmt: skip


@pytest.mark.parametrize("case", ROWS)
def test_finding_and_its_certainty_and_next_step_follow_the_verdict(case: str) -> None:
    row, words = ROWS[case]
    found = finding(row)
    for part, begins in zip((found.what, found.sure, found.next), words, strict=True):
        assert begins in part
        assert not PRIVATE.search(part)
    assert ("A replicate is all the work" in found.explained) == ("replicates" in f"{found.sure} {found.next}")
    assert ("Only the taggers were repeated" in found.explained) == (case == "one pre-training")
    assert found.what.startswith(found.word)
    assert f"{found.word}: " not in found.sentence
    assert found.sentence[0].isupper()
    assert found.parts == [part for part in (found.what, found.sure, found.next) if part]


@pytest.mark.parametrize(
    ("arm", "read", "subject", "control"),
    [
        ("classifier", 1333, "the selection", "as much random text"),
        ("lm:law", 1333, "training it on the source", "the unchanged language model"),
        ("skl:2", 0, "the selection", "a random sample of the same size"),
        ("random2low:20%", 0, "changing the copies", "unchanged copies"),
        ("miner", 0, "comparing names", "a plain span tagger"),
    ],
)
def test_each_kind_of_variant_names_its_own_control(arm: str, read: int, subject: str, control: str) -> None:
    fields: dict[str, Any] = {"sentences": read, "delta_random": 2.9, "interval_random": (1.0, 4.8), "chose": "yes"}
    better = finding(line("improves", arm, **fields))
    under = f"the tagger {'pre-trained on' if arm == 'classifier' else 'with'} "
    assert better.what.startswith(f"Helped, and {subject} paid off: {under}")
    assert better.what.endswith(f" and than {under}{control}.")
    assert f"The difference to {control} is +2.9 (" in better.sure
    helped = finding(line("helped", arm, **fields | {"chose": "no evidence"})).what
    assert f"Helped, but there is no evidence that {subject} helped: " in helped
    below = finding(line("below control", arm, **fields | {"delta_random": -2.9, "chose": "worse"}))
    assert below.what.startswith(f"No: {under}{control} does better than ")
    assert below.next == f"Next: do not use it; {under}{control} is better."
    also = finding(
        line("below control", arm, **fields | {"delta_random": -2.9, "chose": "worse", "helped": "yes"})
    ).what
    assert " Both do better than the tagger without " in also


def test_claim_is_named_first_and_other_effects_after_it() -> None:
    for budget, words in (("1000", "the selected 1,000 sentences"), ("50000tokens", "the selected 50,000 tokens")):
        assert f"the tagger pre-trained on {words} does" in finding(line("improves", budget=budget)).what
    claim = line("no evidence", "knn", interval=(-1.0, 8.8))
    others = [line("improves"), line("helped", "dapt"), line("helped", "tapt"), line("hurts", "lm:law")]
    planned = PlannedTest(
        arm="knn", budget="10%", against="none", looks=(3,), replicates=3, ended="complete", p=0.2, bound=0.05,
        effect=1.0, chance=0.1, why="",
    )  # fmt: skip
    found, selected = finding(*others, claim, planned=planned).what, "the selected 10% of the domain corpus"
    assert found.startswith(f"Can't tell yet: the tagger pre-trained on {selected} (knn)")
    assert f"it also does better with {selected} (classifier), all of the domain corpus and 1 more" in found
    assert "it does worse with a language model of law" in found
    assert finding(*others, claim).what.startswith(f"Helped: the tagger pre-trained on {selected} (classifier)")


@pytest.mark.parametrize(
    ("claim", "begins", "is_main"),
    [
        (line("helped", "knn", delta_random=0.9, interval_random=(-1.0, 2.8), chose=None), "Helped, but there is no", True),
        (line("not tested", "dataaug", changed=5, wanted=100), "No result. Not tested, because too few labels could be changed: ", False),
    ],
)  # fmt: skip
def test_other_effects_beside_an_open_claim_are_exploratory(claim: ArmRow, begins: str, is_main: bool) -> None:
    other = line("improves", delta_random=2.9, interval_random=(1.0, 4.8), exploratory=True)
    words = finding(other, claim)
    assert words.what.startswith(begins)
    assert " Also, not planned beforehand and so exploratory: it also does better with the selected 10%" in words.what
    assert not any(PRIVATE.search(part) for part in words.parts)
    assert main(ExperimentResult(leaderboard=[NONE, other, claim], curve=[], hours={})) is (claim if is_main else None)


def test_repetitions_to_settle_equal_the_number_in_the_text() -> None:
    def settles(row: ArmRow, hours: float = 0.4) -> int:
        return repetitions_to_settle(ExperimentResult(leaderboard=[NONE, row], curve=[], hours={"finetune": hours}))

    for case, (row, _) in ROWS.items():
        numbers = re.findall(r"(\d+) in all|Next: (\d+) replicates", finding(row).next)
        assert settles(row) == int("".join(numbers[0]) if numbers else 0), case
    swapped = replace(ROWS["nothing seen"][0], halves_runs=("r",) * 3)
    assert settles(swapped) == 14
    assert settles(swapped, hours=100.0) == 0  # too long to wait for
    better = line("improves", halves_runs=("r",) * 4, micro_f1=[60.0] * 4)
    assert settles(better) == 6  # an experiment with swapped halves refuses five
    assert finding(better).next.startswith("Next: 2 more replicates (6 in all)")
    seen = ROWS["nothing seen"][0]
    assert settles(replace(seen, interval=(-1.0, 0.9))) == settles(replace(seen, estimate=None)) == settles(NONE) == 0


def test_open_verdict_states_power_and_every_verdict_earlier_analyses() -> None:
    plan = Foretold(effect=1.0, chance=0.107)
    earlier = [
        EarlierAnalysis(run=str(n), claim=claim, replicates=3) for n, claim in enumerate(("knn 10%", "classifier 10%"))
    ]
    found = {
        word: of_experiment(
            ExperimentResult(leaderboard=[NONE, line(word)], curve=[], hours={}, foretold=plan, earlier=earlier)
        ).sure
        for word in ("no evidence", "hurts")
    }  # fmt: skip
    power = "Before it started, the plan had a chance of 11 in 100 to detect a true gain of 1 point."
    assert power in found["no evidence"]
    assert power not in found["hurts"]
    both = "Two earlier analyses used this test set: knn 10%, repeated 3 times, classifier 10%, repeated 3 times."
    assert all(both in words for words in found.values())
    tasks = [task(0.5), task(0.5)]
    of = replace(
        studied(mean("no evidence", 0.5, 1.0), mean("no evidence"), tasks=tasks), foretold=plan, earlier=earlier
    )
    assert power in of_study(of).sure
    assert both.replace("this test set", "one of these test sets") in of_study(of).sure


def test_earlier_analyses_of_one_claim_are_counted_together() -> None:
    earlier = [EarlierAnalysis(run=str(n), claim="knn 10%", replicates=3) for n in range(21)]
    found = of_experiment(ExperimentResult(leaderboard=[NONE, line("hurts")], curve=[], hours={}, earlier=earlier)).sure
    assert "21 earlier analyses used this test set: knn 10%, repeated 3 times (21 analyses)." in found
    found = of_experiment(
        ExperimentResult(leaderboard=[NONE, line("hurts")], curve=[], hours={}, earlier=earlier[:1])
    ).sure
    assert "One earlier analysis used this test set: knn 10%, repeated 3 times. " in found


def test_sufficient_comparison_asks_for_no_more_repetitions() -> None:
    """A variance of 0.1 detects one point in 80 of 100 cases, whatever the observed half point."""
    row = line(
        "no evidence", delta=0.5, interval=(-0.2, 1.2), estimate=replace(GAIN, delta=0.5, falling=0.06, fixed=0.04)
    )
    found = finding(row)
    assert found.next == (
        "Next: try something else; a true gain of 1 point is unlikely, because this comparison would detect it."
    )
    assert repetitions_to_settle(ExperimentResult(leaderboard=[NONE, row], curve=[], hours={"finetune": 0.4})) == 0


def test_comparison_that_detects_only_larger_gains_does_not_make_the_planned_gain_unlikely() -> None:
    """With three degrees of freedom, a standard error of 0.32 points detects 1.3 points, not 1 point."""
    estimate = replace(GAIN, delta=0.2, falling=0.1, fixed=0.0, dof=3)
    found = finding(line("no evidence", delta=0.2, interval=(-0.8, 1.2), estimate=estimate))
    assert found.word == "Can't tell yet"
    assert "can only detect gains of about 1.3 points or more" in found.sure
    assert "would detect it" not in found.next


def test_shown_gain_omits_power_and_early_end_states_wider_interval() -> None:
    plan, helped = Foretold(effect=1.0, chance=0.1), line("helped", "tapt")
    planned = PlannedTest(
        arm="tapt", budget="", against="none", looks=(2, 4, 6), replicates=4, ended="shown", p=0.002, bound=0.014,
        effect=1.0, chance=0.99, why="", adjusted=(0.4, 2.1),
    )  # fmt: skip
    result = ExperimentResult(leaderboard=[NONE, helped], curve=[], hours={}, foretold=plan, planned=planned)
    found = of_experiment(result).sure
    assert "Before it started" not in found
    assert "With its 3 planned analyses, the difference to none lies between +0.4 and +2.1." in found
    late = "A difference that ends a plan early is on average larger than the true one."
    assert late in found
    futile = of_experiment(replace(result, planned=replace(planned, ended="futile"))).sure
    assert "The plan ended early." in futile
    assert late not in futile
    assert not is_open(result)
    assert is_open(replace(result, leaderboard=[NONE, line("no evidence", "tapt")]))


def test_quick_look_says_nothing_about_its_control() -> None:
    """One pre-training of each cannot tell, even if the interval of these taggers is above 0."""
    quick = line(
        "helped", delta_random=2.0, interval_random=(1.0, 3.0), chose=None, pretrain_run="r", estimate_random=GAIN
    )
    found = finding(quick)
    assert "measurably" not in found.what
    assert "cannot show whether it also does better than the tagger pre-trained on as much random text." in found.what
    assert found.sure.endswith("The difference to as much random text is +2.0 (+1.0 to +3.0).")


def test_bound_of_the_planned_test_counts_only_for_the_difference_that_it_is_about() -> None:
    """A claim with a control is compared with `none` at 5%, whatever the bound of the analysis that ended the plan."""
    early = PlannedTest(
        arm="classifier", budget="10%", against="random 10%", looks=(2, 4, 6), replicates=4, ended="futile", p=0.5,
        bound=0.014, effect=1.0, chance=0.05, why="",
    )  # fmt: skip
    against_none = line("no evidence", interval=(-2.0, 3.8), **BY_LOT)
    against_control = line("helped", estimate_random=GAIN, **BY_LOT)
    no_control = line("no evidence", "tapt", interval=(-2.0, 3.8))
    for row, is_planned in ((against_none, False), (against_control, True), (no_control, True)):
        seen = [finding(row, planned=planned).sure for planned in (None, early)]
        assert all("can only detect gains of about" in words for words in seen)
        assert (seen[0].partition(" The 3 replicates")[2] != seen[1].partition(" The 3 replicates")[2]) == is_planned


def test_taggers_that_learnt_nothing_give_no_answer() -> None:
    rows = [replace(row, collapsed=(1, 2, 3)) for row in (line("nothing learnt"), line("baseline", "none"))]
    result = ExperimentResult(leaderboard=rows, curve=[], hours={})
    assert of_experiment(result).what == IDLE


@pytest.mark.parametrize("word", ["improves", "helped", "no evidence", "hurts"])
def test_unlearnt_taggers_ask_for_longer_training_not_repetitions(word: Word) -> None:
    none = replace(NONE, micro_f1=[0.0, 60.0, 61.0], collapsed=(1,))
    result = ExperimentResult(leaderboard=[none, line(word)], curve=[], hours={"finetune": 0.4})
    found = of_experiment(result)
    assert found.next == "Next: train longer; 1 of the 6 taggers learnt nothing."
    assert found.sure.endswith("Of 3 replicates, one learnt nothing; it is included.")
    assert repetitions_to_settle(result) == 0
    assert not any(PRIVATE.search(part) for part in found.parts)


def test_unlearnt_taggers_of_replicates_with_several_are_counted_as_taggers() -> None:
    none = replace(NONE, micro_f1=[60.0, 61.0, 62.0], taggers=4)
    failed = line("no evidence", interval=(-2.0, 9.8), taggers=4, collapsed=(1, 100_001, 200_001, 300_001, 2))
    for interval, words in (
        ((-2.0, 9.8), ". 5 of the 24 taggers learnt nothing; they are included."),
        ((-99.0, 99.0), "Three replicates, and 5 of the 24 taggers learnt nothing: they do not show the effect of chance."),
    ):  # fmt: skip
        row = replace(failed, interval=interval)
        sure = of_experiment(ExperimentResult(leaderboard=[none, row], curve=[], hours={})).sure
        assert sure.endswith(words)
    assert interval_words(row).endswith("(12 seeds, 5 learnt nothing: no interval)")
    sure = of_experiment(ExperimentResult(leaderboard=[none, replace(failed, collapsed=(2,))], curve=[], hours={})).sure
    assert sure.endswith(". 1 of the 24 taggers learnt nothing; it is included.")


def test_unlearnt_taggers_of_further_seeds_after_an_early_end_are_no_replicates() -> None:
    """The baseline trains all planned seeds in one run: "Of 3 replicates, four learnt nothing" is impossible."""
    none = replace(NONE, micro_f1=[60.0, 61.0, 62.0, 0.0, 0.0, 0.0], collapsed=(4, 5, 6))
    row = line("no evidence", interval=(-2.0, 9.8), collapsed=(1,))
    sure = of_experiment(ExperimentResult(leaderboard=[none, row], curve=[], hours={})).sure
    assert sure.endswith(". 4 of the 9 taggers learnt nothing; they are included.")


@pytest.mark.parametrize(
    ("arm", "own", "budget"),
    [("dataaug", "copies:dataaug", ""), ("tapt", "random-only", "|T_C|"), ("classifier", "random", "10%"), ("lpft", "", "")],
)  # fmt: skip
def test_unlearnt_taggers_of_controls_of_other_variants_do_not_count(arm: str, own: str, budget: str) -> None:
    others = {"copies:dataaug": "", "random-part:2": "", "random-only": "|T_C|", "random": "10%"}
    rows = [line("control", other, budget=others[other], collapsed=(1, 2)) for other in others if other != own]
    fields: Mapping[str, Any] = BY_LOT if own else {}
    row = line("no evidence", arm, interval=(-2.0, 9.8), **fields)
    controls = [line("control", own, budget=budget)] if own else []
    assert "learnt nothing" not in " ".join(finding(row, *rows, *controls).parts)
    found = finding(row, *rows, *(replace(control, collapsed=(3,)) for control in controls))
    assert ("1 of the 7 taggers learnt nothing" in found.next) == bool(own)


def task(delta: float, *, learnt: bool = True) -> TaskRow:
    return TaskRow(
        name="law", run="", sentences=300, tokens=9, f1=60.0, none_f1=58.0, control_f1=59.0, learnt=learnt,
        reading=replace(GAIN, delta=delta), reading_interval=(0.0, 1.0),
        choosing=replace(GAIN, delta=delta), choosing_interval=(0.0, 1.0),
    )  # fmt: skip


def mean(answer: Any, delta: float = 1.0, half: float = 0.5) -> Conclusion:
    return Conclusion(delta=delta, interval=(delta - half, delta + half), p=0.1, dof=4.0, answer=answer)


def study(
    these: Conclusion, others: Conclusion | None, *, tasks: Sequence[TaskRow], arm: str = "classifier"
) -> Finding:
    return of_study(studied(these, others, tasks=tasks, arm=arm))


def studied(
    these: Conclusion, others: Conclusion | None, *, tasks: Sequence[TaskRow], arm: str = "classifier"
) -> StudyResult:
    question = Question(these=these, others=others, between=None, lacking="")
    read = Question(these=mean("yes"), others=None, between=None, lacking="")
    return StudyResult(
        arm=arm, budget="", tasks=tasks, reading=read, choosing=question, planned=None, replicates=6,
        hours={"finetune": 3.0},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("these", "others", "what", "then"),
    [
        (mean("yes"), mean("yes"), "Helped: the selection improves the tagger on these 2 tasks on average. This also holds on similar", "use it"),
        (mean("yes"), mean("no evidence"), "There is no evidence that this holds on similar tasks.", "more tasks"),
        (mean("worse", -1.0), mean("no evidence", -1.0), "No: the selection makes the tagger worse on these 2 tasks", "do not use it"),
        (mean("no evidence", 0.5, 1.0), mean("no evidence"), "Can't tell yet: there is no evidence that the selection helps on these 2", "on each"),
    ],
)  # fmt: skip
def test_study_answers_for_its_own_tasks_and_for_similar_ones(
    these: Conclusion, others: Conclusion, what: str, then: str
) -> None:
    found = study(these, others, tasks=[task(0.5), task(0.5)])
    assert what in found.what
    assert then in found.next
    assert ("can only detect gains" in found.sure) == (these.answer == "no evidence")
    assert ("Pre-training itself helped" in found.what) == (these.answer != "yes")
    assert not any(PRIVATE.search(part) for part in found.parts)


def test_study_with_swapped_halves_asks_for_an_even_number_of_replicates() -> None:
    """An odd number is refused, because one half would not be tested."""
    found = studied(mean("no evidence", 0.5, 2.0), None, tasks=[task(0.5)])
    for swapped, total in ((False, 27), (True, 28)):
        assert f"({total} in all)" in of_study(replace(found, swapped=swapped)).next


def test_study_names_tasks_with_unlearnt_taggers_or_too_few_changes() -> None:
    tasks = [replace(task(0.5), taggers=9), replace(task(0.5), unlearnt=2, taggers=9)]
    found = study(mean("yes"), mean("yes"), tasks=tasks)
    assert found.next == "Next: train longer; 2 of the 18 taggers learnt nothing."
    tasks = [task(0.5), replace(task(0.5), name="food", too_few="3 of 90 changed")]
    what = study(mean("yes"), mean("yes"), tasks=tasks).what
    assert " On food (3 of 90 changed), too few labels could be changed to test this" in what
    assert study(mean("yes"), None, tasks=[task(1.0, learnt=False)]).what == IDLE
    found = study(mean("yes"), None, tasks=[task(1.0)], arm="dataaug")
    assert found.what == "Helped: changing the copies improves the tagger on this task."
    assert "others" not in " ".join(found.parts)


def test_two_replicates_are_enough_to_forecast_from_their_own_spread() -> None:
    assert spread_of(GAIN, 1, UNKNOWN, swapped=False) is None
    spread = spread_of(GAIN, 2, UNKNOWN, swapped=False)
    assert spread is not None
    assert spread.seeds == pytest.approx(GAIN.falling**0.5)  # two variants with two replicates each
    assert spread_of(None, 6, UNKNOWN, swapped=False) is None
