"""Verdicts of experiments and studies in words: sentences, sign and colour of a verdict, and names of variants.

A verdict has three parts: the result, how sure it is, and what to do next. Pages, reports and the command line show the
same words. The words avoid symbols and the names of tests and scores, because many readers do not train models.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Literal, Protocol

from core.config import Budget
from core.experiment.foresight import UNKNOWN, Open, Outlook, settled_by, spread_of
from core.experiment.reference import KINDS
from core.experiment.result import (
    ArmRow,
    ExperimentResult,
    Interval,
    PlannedTest,
    Question,
    StudyResult,
    baseline_words,
    compared_with,
    no_task_learnt,
    nothing_learnt,
    split_name,
    unlearnt_taggers,
)
from core.shown import gain_in_words, in_points
from core.stats import verdict
from core.stats.pooled import Estimate, pooled
from core.stats.sequential import ALPHA
from core.stats.spread import of_estimate
from core.stats.verdict import EFFECT, SEEDS, Answer, Unlearnt, is_known
from core.tagging.result import Found, Unfound


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Appearance of a verdict: colour, symbol in figures, sign and label in tables."""

    colour: str
    symbol: str
    sign: str
    label: str

    @property
    def words(self) -> str:
        """Sign and label together, for a cell of a table."""
        return f"{self.sign} {self.label}"


VERDICT_MARKS: Mapping[str, Mark] = {
    "improves": Mark(colour="#009E73", symbol="triangle-up", sign="▲", label="improves"),
    "helped": Mark(colour="#56B4E9", symbol="triangle-up-open", sign="△", label="helped; selection: no evidence"),
    "below control": Mark(colour="#9467BD", symbol="triangle-down-open", sign="▽", label="worse than its control"),
    "hurts": Mark(colour="#D55E00", symbol="triangle-down", sign="▼", label="hurts"),
    "no evidence": Mark(colour="#8F8F8F", symbol="circle", sign="●", label="no evidence"),
    "nothing learnt": Mark(colour="#CC79A7", symbol="x", sign="✕", label="nothing learnt"),
    "not tested": Mark(colour="#8C6D31", symbol="circle-open", sign="○", label="not tested"),
    "baseline": Mark(colour="#E69F00", symbol="diamond", sign="◆", label="baseline"),
    "control": Mark(colour="#0072B2", symbol="square", sign="■", label="control"),
    # Verdicts on reference variants.
    "better than none": Mark(
        colour="#17A2B8", symbol="star-triangle-up", sign="↑", label="better than none, without training"
    ),
    "worse than none": Mark(
        colour="#D6337C", symbol="star-triangle-down", sign="↓", label="worse than none, without training"
    ),
    "no evidence of a difference": Mark(
        colour="#8080A8", symbol="star-square", sign="↔", label="no evidence of a difference to none, without training"
    ),
}
ANSWER_COLOURS: Mapping[Answer, str] = {
    "yes": VERDICT_MARKS["improves"].colour,
    "no evidence": VERDICT_MARKS["no evidence"].colour,
    "worse": VERDICT_MARKS["hurts"].colour,
}
TASK_COLOUR = "#0072B2"  # colour of a single task of a study
ARM_WORDS: Mapping[str, str] = {"length-matched-random": "random, same lengths"}
JUDGED = ("improves", "helped", "hurts", "below control", "no evidence")  # verdicts, the most certain first
_NAMES = {
    "tapt": "the task's own text",
    "dapt": "all of the domain corpus",
    "tapt+dapt": "the task's own text and all of the domain corpus",
    "all": "all sentences of the assisting corpus",
    "dataaug": "changed copies of its training sentences",
    "lpft": "training in two stages",
    "span": "spans in place of words",
    "miner": "similar states for all names of a type",
    "none+dictionary": "a dictionary of names",
    "self-train": "sentences that a first tagger labelled",
    "distant": "sentences labelled by a dictionary of names",
}
_HEADS = {
    "vectors": "word vectors of {}",
    "lm": "a language model of {}",
    "transfer": "a first training on the labels of {}",
    "labels": "{} labelled sentences",
    "skl": "assisting sentences whose labels agree with yours (divergence below {})",
}
_COPIES = ("changing the copies", "unchanged copies")
_CONTROLS: Mapping[str, tuple[str, str]] = {  # {kind of arm: (cause of a gain over its control, its control in words)}
    "dataaug": _COPIES,
    "random2low": _COPIES,
    "highc2low": _COPIES,
    "lm": ("training it on the source", "the unchanged language model"),
    "miner": ("comparing names", "a plain span tagger"),
    **dict.fromkeys(("self-train", "distant"), ("selecting these sentences", "as many random sentences")),
}
FOUND = ("shown", "worse")  # values of `PlannedTest.ended` for which a difference was found
_TOO_LARGE = " A difference that ends a plan early is on average larger than the true one."
REPLICATES = 6  # enough replicates to show, with three planned analyses, that the selection helped
ONCE = "The uncertainty is unknown, because a single replicate does not show the effect of chance."
EXPLAINED = {  # {what is repeated: sentence that explains it}
    "replicate": "A replicate is all the work for a variant under one seed: its selection, its pre-training and its "
    "taggers.",
    "tagger": "Only the taggers were repeated: all taggers of a variant start from the same pre-training.",
}
TRAIN_LONGER = "Next: train longer, with more epochs or a higher learning rate, until a tagger learns something."
IDLE = "No result: no tagger learnt anything, with or without what was tried."
NOTHING = (
    "No tagger learnt anything: no seed of any variant has a dev F1 above that of random spans. So nothing can be "
    "compared. Train longer, and check that the dev set has the types of the training set."
)
NO_RESULT = (
    "No tagger learnt anything, so there is no result: no variant scores above chance. "
    "This is no evidence for or against any of them; the training has to work first."
)
_NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six")
_THAN = {  # {verdict of a reference variant: words that compare its score with that of `none`}
    "better than none": "more than",
    "worse than none": "less than",
    "no evidence of a difference": "not measurably different from",
}
_FURTHER = {"improves": "it also does better with", "helped": "it also does better with", "hurts": "it does worse with"}

# The rest of these constants are for studies. "choosing": is the claim better than its control? "reading": is it better
# than `none`?
Asked = Literal["choosing", "reading"]
FEW = 5  # With fewer than 5 tasks, the interval for similar tasks is wide.
THESE, OTHERS = "These tasks, on average", "Similar tasks"
_DID: Mapping[Answer, str] = {"yes": "helped", "no evidence": "has not been shown to help", "worse": "hurt"}
_HOLDS: Mapping[Answer, str] = {
    "yes": "It also helps on similar tasks",
    "no evidence": "There is no evidence of an effect on similar tasks",
    "worse": "It also hurts on similar tasks",
}


Word = Literal["Helped", "No", "No clear benefit", "Can't tell yet", "No result"]
WORD_COLOURS: Mapping[Word, tuple[str, str]] = {  # {word: (colour on paper, colour on a dark page)}
    "Helped": ("#00734F", "#3DC79A"),
    "No": ("#A94400", "#FF9A52"),
    "No clear benefit": ("#5A5F66", "#B4BAC2"),
    "Can't tell yet": ("#7A5600", "#E6B84D"),
    "No result": ("#5A5F66", "#B4BAC2"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A verdict in words.

    what: the result, which begins with `word`. sure: how sure the result is; may be "". next: what to do next.
    explained: sentences that explain "replicate" or "tagger", if `sure` or `next` uses these words; else "".
    """

    word: Word
    what: str
    sure: str
    next: str
    explained: str = ""

    @property
    def sentence(self) -> str:
        """`what` without `word`, for pages that show `word` separately."""
        rest = self.what.removeprefix(self.word)
        rest = self.what if rest.startswith(",") else rest.lstrip(":. ")
        return rest[0].upper() + rest[1:]

    @property
    def parts(self) -> list[str]:
        """The texts `what`, `sure` and `next`, without empty ones."""
        return [part for part in (self.what, self.sure, self.next) if part]


def of_experiment(result: ExperimentResult, outlook: Outlook = UNKNOWN) -> Finding:
    """Return the verdict of an experiment: the verdict on the row that `main` returns.

    outlook: spread and speed on which the experiment's forecast is based, so that verdict and forecast agree.
    """
    rows = result.leaderboard
    judged = [row for row in rows if row.verdict in JUDGED]
    if nothing_learnt(rows):
        return Finding(word="No result", what=IDLE, sure="", next=TRAIN_LONGER)
    row, untested = main(result), _untested(rows)
    others = [other for other in judged if other is not row]
    further, references = _others(others, rows), _references(rows)
    if not row:
        then = "ask for a lower share, or label more sentences" if untested else "add a variant besides none"
        compared = untested or ("No variant besides none was trained." if references else "Nothing was compared.")
        what = _sentences("No result.", compared, further, references)
        return Finding(word="No result", what=what, sure="", next=f"Next: {then}.")
    unsettled = _unsettled(row, result, outlook)
    word = _word(row, unsettled)
    what = _sentences(_what(word, row, rows), further, untested, references)
    then = _next(row, unsettled)
    if unlearnt := _unlearnt(row, rows):
        then = f"Next: train longer; {unlearnt.words}."
    power = _power(result) if _is_open(row) else ""
    sure = _sentences(_sure(row, rows, unsettled.detects), _early(result), power, _ledger(result))
    return Finding(word=word, what=what, sure=sure, next=then, explained=_explained(f"{sure} {then}", _unit(row)))


def _explained(words: str, unit: str) -> str:
    """Return sentences that explain what a replicate or a tagger is, if `words` mentions them. unit: as in `_unit`."""
    return " ".join(EXPLAINED[each] for each in dict.fromkeys((unit, "replicate")) if f"{each}s" in words)


def _word(row: ArmRow, unsettled: Open) -> Word:
    if row.verdict == "no evidence":
        return open_word(unsettled)
    return "Helped" if row.verdict in ("improves", "helped") else "No"


def open_word(unsettled: Open) -> Word:
    """Return "No clear benefit" if a real gain was ruled out or would have been detected, else "Can't tell yet"."""
    return "No clear benefit" if unsettled.ruled_out or unsettled.has_power else "Can't tell yet"


def _sentences(*words: str) -> str:
    return " ".join(filter(None, words))


def _is_open(row: ArmRow) -> bool:
    """Return True if a variant's difference to its baseline, or to its control, was not detected."""
    return row.verdict == "no evidence" or (row.verdict == "helped" and row.delta_random is not None)


def is_open(result: ExperimentResult | StudyResult) -> bool:
    """Return True if the verdict of an experiment or a study is open."""
    if isinstance(result, StudyResult):
        return (result.choosing or result.reading).these.answer == "no evidence"
    row = main(result)
    return row is not None and _is_open(row)


def _early(result: ExperimentResult | StudyResult) -> str:
    """Return a sentence with the interval of a plan that ended early, corrected for several analyses; else ""."""
    test = result.planned
    if test is None or test.adjusted is None:
        return ""
    return (
        f"The plan ended early. With its {len(test.looks)} planned analyses, the difference to {test.against} lies "
        f"between {points(test.adjusted[0])} and {points(test.adjusted[1])}.{_TOO_LARGE * (test.ended in FOUND)}"
    )


def _power(result: ExperimentResult | StudyResult) -> str:
    """Return a sentence on the power of the plan, its chance to detect its effect; "" if it was not computed."""
    plan = result.foretold
    if plan is None:
        return ""
    return (
        f"Before it started, the plan had a chance of {100 * plan.chance:.0f} in 100 to detect a true gain of "
        f"{gain_in_words(plan.effect)}."
    )


def _ledger(result: ExperimentResult | StudyResult) -> str:
    """Return sentences that list earlier analyses of the test set; "" if there are none."""
    if not (earlier := result.earlier):
        return ""
    claims = Counter(f"{each.claim}, repeated {each.replicates} times" for each in earlier)
    listed = ", ".join(f"{claim}{f' ({n} analyses)' * (n > 1)}" for claim, n in claims.items())
    n = len(earlier)
    return (
        f"{number_in_words(n)} earlier {'analysis' if n == 1 else 'analyses'} used "
        f"{'one of these test sets' if isinstance(result, StudyResult) else 'this test set'}: {listed}. Each further "
        "analysis makes a false result more likely, and this test does not allow for that."
    )


def main(result: ExperimentResult) -> ArmRow | None:
    """Return the row on which the experiment's verdict is based.

    It is the claim's row. Without a claim, it is the row with the surest verdict.
    Return None if no row has a verdict, or if the claim's row has none.
    """
    judged = [row for row in result.leaderboard if row.verdict in JUDGED]
    if any(row.exploratory for row in result.leaderboard):
        return next((row for row in judged if not row.exploratory), None)
    if test := result.planned:
        for row in judged:
            if (row.arm, row.budget) == (test.arm, test.budget):
                return row
    return min(judged, key=lambda row: JUDGED.index(row.verdict), default=None)


def _what(word: Word, row: ArmRow, rows: Sequence[ArmRow]) -> str:
    variant = f"the tagger {'pre-trained on' if reads(row) else 'with'} {name_of(row, rows)}"
    without, control = _baseline(row), _control(row)
    words = {
        "improves": f"Helped: {variant} does better than {without}.",
        "helped": f"Helped: {variant} does better than {without}. It was not compared with a random baseline.",
        "below control": f"No: {control} does better than {variant}.",
        "hurts": f"No: {variant} does worse than {without}.",
        "no evidence": f"{word}: {variant} is not measurably better than {without}.",
    }
    if word == "Can't tell yet":
        words["no evidence"] = f"{word}: {variant} scores {_by_how_much(row.delta)} {without}, but that may be chance."
    if row.delta_random is not None:
        cause = asked_by_control(row.arm)
        words["improves"] = f"Helped, and {cause} paid off: {variant} does better than {without} and than {control}."
        words["helped"] = (
            f"Helped, but there is no evidence that {cause} helped: {variant} does better than {without}, but is not "
            f"measurably better than {control}."
        )
        if row.chose is None:  # The interval may be above 0: it does not include the effect of another pre-training.
            words["helped"] = (
                f"Helped, but there is no evidence that {cause} helped: {variant} does better than {without}. One "
                f"selection and one pre-training cannot show whether it also does better than {control}."
            )
    if row.verdict == "below control" and row.helped == "yes":
        words["below control"] += f" Both do better than {without}."
    return words[row.verdict]


def _by_how_much(delta: float) -> str:
    size = points(abs(delta)).lstrip("+")
    return "as much as" if size == "0.0" else f"{size} points {'more' if delta > 0 else 'less'} than"


def _baseline(row: ArmRow) -> str:
    return f"the tagger without {'further pre-training' if reads(row) else 'it'}"


def _control(row: ArmRow) -> str:
    return f"the tagger {'pre-trained on' if reads(row) else 'with'} {held_against(row)}"


def _others(others: Sequence[ArmRow], rows: Sequence[ArmRow]) -> str:
    """Return a sentence on the other variants that are better or worse, with at most two names each; "" if none are."""
    sentences = []
    for start in dict.fromkeys(_FURTHER.values()):
        names = [name_of(row, rows) for row in others if _FURTHER.get(row.verdict) == start]
        if names:
            more = f" and {len(names) - 2} more" if len(names) > 2 else ""
            sentences.append(f"{start} {' and '.join(names[:2]) if not more else ', '.join(names[:2])}{more}")
    exploratory = any(row.exploratory for row in others)
    start = "Also, not planned beforehand and so exploratory:" if exploratory else "Also,"
    return f"{start} {'; '.join(sentences)}." if sentences else ""


def _references(rows: Sequence[ArmRow]) -> str:
    """Return a sentence on the scores of the reference variants, which train nothing; "" if there are none."""
    compared = []
    for row in rows:
        if than := _THAN.get(row.verdict):
            gap = f" ({points(row.delta)}; {range_in_words(row.interval)})" if is_known(row.interval) else ""
            labels = f"{than} the tagger trained on your labels alone{gap}"
            compared.append(f"{name_of(row, rows)} scores {row.mean:.1f} of 100, {labels}")
    return f"Without training, {'; '.join(compared)}." if compared else ""


def _untested(rows: Sequence[ArmRow]) -> str:
    """Return a sentence that lists the variants that were not tested; "" if all were tested."""
    names = [f"{name_of(row, rows)} ({row.changed_words})" for row in rows if row.verdict == "not tested"]
    return f"Not tested, because too few labels could be changed: {', '.join(names)}." if names else ""


def points(value: float) -> str:
    """Return a difference as text: with one decimal, or without decimals if it is 10 points or more."""
    return f"{value:+z.0f}" if abs(value) >= 9.95 else f"{value:+z.1f}"


def _sure(row: ArmRow, rows: Sequence[ArmRow], detects: float | None) -> str:
    """Return sentences on how sure a variant's result is.

    detects: smallest gain, in points, that the comparison detects at 80% power; None: unknown.
    """
    # Count the seeds for which a tagger of this variant, of its baseline or of its control learnt nothing.
    compared = (row, *compared_with(row, rows))
    failed = len({seed for each in compared for seed in each.collapsed})
    n, unit, unlearnt = len(row.micro_f1), _unit(row), _unlearnt(row, rows)
    # Count taggers instead if a replicate has several, or if the baseline has further seeds after an early end.
    several = row.taggers > 1 or any(each.n_taggers > n for each in compared)
    if n < 2:
        return ONCE
    if not is_known(row.interval):
        # A replicate with several taggers may have some that learnt and some that did not.
        of = f", and {unlearnt.words}" if several else f", of which {number_in_words(failed).lower()} learnt nothing"
        why = of if failed else " that differ too much"
        return f"{number_in_words(n)} {unit}s{why}: they do not show the effect of chance."
    interval = row.interval_random
    seen = difference_in_words(row.delta, row.interval, "to no further pre-training" if reads(row) else "to none of it")
    if row.delta_random is not None and interval and is_known(interval):
        seen = (
            f"{seen} The difference to {held_against(row)} is {points(row.delta_random)} ({range_in_words(interval)})."
        )
    if failed:
        if several:
            return f"{seen} {_capital(unlearnt.words)}; {'it is' if unlearnt.taggers == 1 else 'they are'} included."
        counted = "it is" if failed == 1 else "they are"
        return f"{seen} Of {n} {unit}s, {number_in_words(failed).lower()} learnt nothing; {counted} included."
    over = held_against(row) if row.verdict == "helped" else "no further pre-training" if reads(row) else "none of it"
    # However many taggers there are, one pre-training cannot show that the selection helped.
    asked = _is_open(row) and not (row.verdict == "helped" and row.chose is None)
    return f"{seen}{detects_in_words(detects, f'{n} {unit}s', f' over {over}') if asked else ''}"


def _unit(row: ArmRow) -> str:
    """Return the word for one repetition: "tagger" if all taggers start from one pre-training, else "replicate"."""
    return "tagger" if _one_pretraining(row) else "replicate"


def number_in_words(n: int) -> str:
    """Return a number as text to begin a sentence with: a capitalised word up to six, else digits."""
    return _NUMBERS[n] if n < len(_NUMBERS) else f"{n:,}"


def _unlearnt(row: ArmRow, rows: Sequence[ArmRow]) -> Unlearnt:
    compared = (row, *compared_with(row, rows))
    return Unlearnt(
        taggers=sum(len(each.collapsed) for each in compared),
        of=sum(each.n_taggers for each in compared),
    )


def difference_in_words(delta: float, interval: tuple[float, float], to: str) -> str:
    """Return sentences that state a difference and its confidence interval.

    to: words for the variant that was compared with, such as "to no further pre-training".
    """
    low, high = map(points, interval)
    return (
        f"The difference {to} is {points(delta)} points of 100. The true difference lies between {low} and {high}, by "
        "a method that is right in 95 of 100 cases."
    )


def detects_in_words(detects: float | None, repeated: str, over: str = "") -> str:
    """Return a sentence on the smallest gain that a comparison detects; "" if this gain is unknown.

    detects: the gain in points. repeated: words for the repetitions, such as "3 replicates". over: words for the
    baseline of the gain, such as " over no further pre-training".
    """
    if detects is None:
        return ""
    return (
        f" The {repeated} differ so much that they can only detect gains of about {in_points(detects)} or more"
        f"{over} (in 80 of 100 cases)."
    )


def range_in_words(interval: tuple[float, float]) -> str:
    """Return an interval of points as text, such as "+0.2 to +1.4"."""
    return f"{points(interval[0])} to {points(interval[1])}"


def _unsettled(row: ArmRow, result: ExperimentResult, outlook: Outlook) -> Open:
    """Return the difference that may be open: to the control if the verdict is "helped", else to the baseline."""
    n, swapped, helped = len(row.micro_f1), bool(row.halves_runs), row.verdict == "helped"
    estimate = row.estimate_random if helped else row.estimate
    # If the claim has a control, the planned test is about the control. The difference to the baseline is tested at 5%.
    planned = result.planned if helped or row.delta_random is None else None
    return Open(
        effect=_effect(result),
        interval=(row.interval_random or row.interval) if helped else row.interval,
        bound=planned.bound if planned else ALPHA,
        estimate=estimate,
        spread=spread_of(estimate, n, outlook, swapped=swapped),
        n=n,
        hours=sum(result.hours.values()),
        swapped=swapped,
        outlook=outlook,
        unit=_unit(row),
    )


def _effect(result: ExperimentResult | StudyResult) -> float:
    """Return the gain, in points, that the plan was designed to detect."""
    plan = result.foretold or result.planned
    return plan.effect if plan else EFFECT


def _next(row: ArmRow, unsettled: Open) -> str:
    n = len(row.micro_f1)
    quick = (
        f"Next: {REPLICATES} replicates, each with its own selection and pre-training; this quick look had only one "
        "of each."
    )
    words = {
        "improves": "Next: use it, and label more of what the tagger still misses.",
        "hurts": "Next: do not use it; the tagger without it is better.",
        "below control": f"Next: do not use it; {_control(row)} is better.",
    }
    if row.verdict == "helped" and row.delta_random is None:
        return "Next: repeat it with a random baseline of the same size, to see whether the selection is what helps."
    if row.verdict == "improves" and n < SEEDS:
        return f"Next: {unsettled.more(_reliable(row))}, before you rely on it."
    if row.verdict == "helped":
        return quick if row.chose is None else settled_by(unsettled)
    if n < 2:
        return f"Next: {unsettled.more(SEEDS)}."
    if row.verdict == "no evidence" and _one_pretraining(row):
        return quick
    return words.get(row.verdict) or settled_by(unsettled)


def _reliable(row: ArmRow) -> int:
    """Return the number of replicates that a reliable improvement needs. With swapped halves it is even."""
    return SEEDS + (SEEDS % 2 if row.halves_runs else 0)


def _one_pretraining(row: ArmRow) -> bool:
    """Return True if all taggers of a variant start from the same pre-training."""
    return bool(row.pretrain_run) and len(row.finetunes) == 1 < len(row.micro_f1)


def repetitions_to_settle(result: ExperimentResult, outlook: Outlook = UNKNOWN) -> int:
    """Return the number of replicates that the verdict recommends; 0 if it is settled or repeating would not help."""
    row = main(result)
    if row is None or row.verdict in ("hurts", "below control") or _unlearnt(row, result.leaderboard):
        return 0
    n, helped = len(row.micro_f1), row.verdict == "helped"
    if row.verdict == "improves" or (n < 2 and not helped):
        return _reliable(row) if n < SEEDS else 0
    if row.verdict == "no evidence" and _one_pretraining(row):
        return REPLICATES
    if helped and (row.delta_random is None or row.chose is None):
        return 0 if row.delta_random is None else REPLICATES
    unsettled = _unsettled(row, result, outlook)
    lacks = unsettled.lacks
    return (unsettled.repetitions or 0) if lacks and lacks.sentences == 1 else 0


def seconds_to_settle(result: ExperimentResult, outlook: Outlook = UNKNOWN) -> float | None:
    """Return the remaining seconds of the replicates that the verdict recommends; None if it recommends none."""
    row, n = main(result), repetitions_to_settle(result, outlook)
    return _unsettled(row, result, outlook).seconds(n) if row and n else None


def name_of(row: ArmRow, rows: Sequence[ArmRow]) -> str:
    """Return words for the text, labels or method that a variant adds, for readers who do not know variants by name."""
    name, encoder = split_name(row.arm)
    _, _, value = name.partition(":")
    if row.verdict == "control" and row.sentences:
        words = "random sentences"
    elif row.reference:
        words = KINDS[row.reference].named(value)
    elif added := _added(name):
        words = added
    elif row.budget and row.sentences:
        alone = len({other.arm for other in rows if other.budget and other.verdict in JUDGED}) == 1
        asked = Budget.parse(row.budget)  # Do not use `row.sentences`, because it includes the task corpus.
        words = f"the selected {asked.in_words}{' of the domain corpus' * (asked.unit == 'fraction')}"
        words += "" if alone else f" ({name})"
    else:
        words = f"“{name}”"
    return f"{words}, from the encoder {encoder}" if encoder else words


def _added(name: str) -> str:
    """Return words for what an arm adds, by its name; "" if there are none for this name."""
    head, _, value = name.partition(":")
    return _NAMES.get(name) or (_HEADS[head].format(value) if head in _HEADS and value else "")


def reads(row: ArmRow) -> bool:
    """Return True if a variant pre-trains its tagger on text; False for `lm`, which only adds frozen states."""
    return bool(row.sentences) and _kind(row.arm) != "lm"


def held_against(row: ArmRow) -> str:
    """Return words for the control that a variant must beat in addition to its baseline."""
    _, control = _CONTROLS.get(_kind(row.arm), ("", ""))
    return control or ("as much random text" if row.sentences else "a random sample of the same size")


def two_differences(row: ArmRow, rows: Sequence[ArmRow]) -> list[tuple[str, float, tuple[float, float]]]:
    """Return a variant's known differences to its baseline and to its control, as (words, value, 95% interval)."""
    pairs = [("no further pre-training" if reads(row) else baseline_words(rows), row.delta, row.interval)]
    if row.delta_random is not None and row.interval_random:
        pairs.append((held_against(row), row.delta_random, row.interval_random))
    return [(f"over {name}", value, interval) for name, value, interval in pairs if is_known(interval)]


def asked_by_control(arm: str) -> str:
    """Return words for the cause of a gain over the control, such as "the selection". arm: name of the arm."""
    asked, _ = _CONTROLS.get(_kind(arm), ("the selection", ""))
    return asked


def _kind(arm: str) -> str:
    return split_name(arm)[0].partition(":")[0]


def overlap_in_short(result: ExperimentResult) -> str:
    """Return a sentence on training sentences that also occur in dev or test, with their effect on scores.

    Return "" if there are no such sentences.
    """
    if not (shared := result.train_in_test) or not (n := shared.exact + shared.near):
        return ""
    moved = [abs(row.mean - mean(row.unseen_f1)) for row in result.leaderboard if row.unseen_f1]
    most = (
        math.ceil(round(10 * max(moved, default=0), 6)) / 10 or 0.1
    )  # Round up, so that no printed score contradicts this bound.
    without = (
        f"; without {'it' if n == 1 else 'them'}, every score changes by at most {most:.1f} points" if moved else ""
    )
    return (
        f"{n:,} training sentence{'s' * (n > 1)} also occur{'s' * (n == 1)}, word for word or nearly, in the dev or "
        f"test set{without}."
    )


def arm_words(arm: str) -> str:
    """Return the name of an arm for figures and tables."""
    return ARM_WORDS.get(arm, arm)


class ArmAtBudget(Protocol):
    """Any object with an arm and a budget, such as a row of a leaderboard."""

    @property
    def arm(self) -> str: ...
    @property
    def budget(self) -> str: ...


def line_name(row: ArmAtBudget) -> str:
    """Return the name of a variant: the arm and its budget, such as "knn 10%"."""
    return f"{arm_words(row.arm)} {row.budget}".strip()


def weakest_words(weakest: Found | None) -> str:
    """Return a sentence that names the entity type that taggers find least often; "" for None.

    "Missed" would be wrong: on Results, an entity that is found with another type is not counted as missed.
    """
    if weakest is None:
        return ""
    return f"Found least often: {weakest.type}, in {100 * weakest.share:.0f} of 100 cases."


def unfound_words(types: Sequence[Unfound]) -> str:
    """Return a sentence that lists the entity types that no variant found; "" if there are none."""
    if not types:
        return ""
    counts = "; ".join(
        f"{each.type} ({each.mentions:,} in the test set, {each.labelled:,} in the training set)" for each in types
    )
    missed = "no tagger found any of them. Every score here counts them as missed."
    return f"The score is 0.00 in every variant for {counts}: {missed}"


def planned_words(test: PlannedTest, unit: str, where: str = "") -> str:
    """Return sentences with the outcome of the planned test.

    unit: "replicates" or "seeds". where: " on each of 3 tasks", or "" for an experiment.
    """
    n, of = test.replicates, test.looks[-1]
    claim = f"{test.arm} {test.budget}".strip()
    after = f"all {of} {unit}{where}" if n == of else f"{n} of {of} {unit}{where}"
    level = f"significance level {test.bound:.2g}"
    tested = f"The claim, {claim} against {test.against}, after {after}: p = {test.p:.2g}, {level}"
    if test.p <= test.bound and test.ended not in ("shown", "worse"):
        tested = f"{tested}, but the interval includes 0"
    early = ""
    if n < of:
        early = f" It ended there, {of - n} {unit if of - n > 1 else unit[:-1]}{where} early."
    if early and test.adjusted:
        early = (
            f"{early} Allowing for the interim analyses, the 95% interval is {range_in_words(test.adjusted)}."
            f"{_TOO_LARGE * (test.ended in FOUND)}"
        )
    had = f"the last analysis would detect a true difference of {test.effect:+g} points in {test.chance:.0%} of cases"
    outcome = {
        "shown": "shown",
        "worse": f"{claim} is worse",
        "futile": f"not shown, and {had}",
        "complete": "not shown",
    }
    return f"{tested}: {outcome[test.ended]}.{early}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestRow:
    """A row of the forest plot of a study: a task, or a mean over tasks.

    answer: does the difference show a gain? None for a single task, because its result is only exploratory.
    """

    name: str
    delta: float
    interval: Interval
    answer: Answer | None = None

    @property
    def known(self) -> bool:
        """False if the interval rules nothing out, for example with one replicate."""
        return is_known(self.interval)

    @property
    def points(self) -> str:
        """Difference and interval as text."""
        return verdict.points(self.delta, self.interval)


def asked(result: StudyResult) -> list[Asked]:
    """Return the questions that a study answers. The planned test is about the first."""
    return ["choosing", "reading"] if result.choosing else ["reading"]


def subject(result: StudyResult, of: Asked) -> str:
    """Return the name of the step whose help is asked about, such as "choosing" against the control."""
    if of == "choosing":
        return asked_by_control(result.arm)
    read = any(task.tokens for task in result.tasks)
    return "pre-training" if read else _added(result.arm) or f"“{result.arm}”"


def heading(result: StudyResult, of: Asked) -> str:
    """Return a question of a study as a sentence, such as "Did pre-training help?"."""
    return f"Did {subject(result, of)} help?"


def helped(result: StudyResult, of: Asked) -> str:
    """Return the heading of a column with answers to a question of a study, such as "Pre-training helped"."""
    return f"{_capital(subject(result, of).removeprefix('the '))} helped"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def question(result: StudyResult, of: Asked) -> Question:
    """Return the answers of a study to a question. Errors: AssertionError if the study does not ask it."""
    answered = result.choosing if of == "choosing" else result.reading
    assert answered
    return answered


def forest_rows(result: StudyResult, of: Asked) -> list[ForestRow]:
    """Return rows for each task, for the mean over tasks and, with several tasks, for similar tasks."""
    rows = []
    for task in result.tasks:
        gap, interval = task.reading, task.reading_interval
        if of == "choosing" and task.choosing and task.choosing_interval:
            gap, interval = task.choosing, task.choosing_interval
        rows.append(ForestRow(name=task.name, delta=gap.delta, interval=interval))
    asks = question(result, of)
    for name, over_tasks in ((THESE, asks.these), (OTHERS, asks.others)):
        if over_tasks:
            answer = over_tasks.answer
            rows.append(ForestRow(name=name, delta=over_tasks.delta, interval=over_tasks.interval, answer=answer))
    return rows


def over(result: StudyResult, of: Asked) -> str:
    """Return the name of the variant with which the claim is compared: `none` or the control."""
    return "none" if of == "reading" else arm_words(result.control)


def study_answer(result: StudyResult) -> list[str]:
    """Return the answers of a study: one or two sentences per question, in the order of `asked`.

    If no tagger learnt anything, return a single sentence.
    """
    if no_task_learnt(result.tasks):
        return [NO_RESULT]
    idle = [task.name for task in result.tasks if not task.learnt]
    note = [f"No tagger learnt anything on {', '.join(idle)}; the mean includes every task."] if idle else []
    return [*(_answered(result, of) for of in asked(result)), *note]


def _answered(result: StudyResult, of: Asked) -> str:
    asks, rows = question(result, of), forest_rows(result, of)
    n, named, answer = len(result.tasks), {row.name: row for row in rows if row.answer}, asks.these.answer
    assert answer  # `answer` is None only if no tagger learnt anything; that case returned above.
    where = "on this task" if n == 1 else f"on these {n} tasks on average"
    these = f"{_capital(subject(result, of))} {_DID[answer]} {where}: {named[THESE].points} points of F1 over "
    if asks.others is None or not asks.others.answer:
        return f"{these}{over(result, of)}. One task does not show whether it helps on similar tasks."
    wide = f", a wide interval because there are only {n} tasks" if n < FEW else ""
    return f"{these}{over(result, of)}. {_HOLDS[asks.others.answer]}: {named[OTHERS].points}{wide}."


def of_study(result: StudyResult) -> Finding:
    """Return the verdict on a study's claim, which is compared with its control or, without a control, with `none`."""
    if no_task_learnt(result.tasks):
        return Finding(word="No result", what=IDLE, sure="", next=TRAIN_LONGER)
    main: Asked = "choosing" if result.choosing else "reading"
    of, asked = subject(result, main), question(result, main)
    n, answer = result.replicates, asked.these.answer
    assert answer  # `answer` is None only if no tagger learnt anything; that case returned above.
    where = "on this task" if len(result.tasks) == 1 else f"on these {len(result.tasks)} tasks on average"
    unsettled = _unsettled_study(result, asked)
    words: dict[Answer, Word] = {"yes": "Helped", "worse": "No", "no evidence": open_word(unsettled)}
    says = {
        "yes": f"{of} improves the tagger {where}",
        "worse": f"{of} makes the tagger worse {where}",
        "no evidence": f"there is no evidence that {of} helps {where}",
    }
    what = f"{words[answer]}: {says[answer]}."
    if result.choosing and answer != "yes" and result.reading.these.answer == "yes":
        what = f"{what} {_capital(subject(result, 'reading'))} itself helped."
    if asked.others and answer != "no evidence":
        same = asked.others.answer == answer
        what = f"{what} {'This also holds' if same else 'There is no evidence that this holds'} on similar tasks."
    if few := [f"{task.name} ({task.too_few})" for task in result.tasks if task.too_few]:
        what = (
            f"{what} On {', '.join(few)}, too few labels could be changed to test this; the mean includes every task."
        )
    then = _train_longer(result) or _next_study(result, asked, unsettled)
    power = _power(result) if answer == "no evidence" else ""
    sure = _sentences(_sure_of(asked, n, unsettled.detects), _early(result), power, _ledger(result))
    explained = _explained(f"{sure} {then}", "replicate")
    return Finding(word=words[answer], what=what, sure=sure, next=then, explained=explained)


def _sure_of(asked: Question, n: int, detects: float | None) -> str:
    """Return sentences on how sure the result of a study is.

    n: number of replicates per task. detects: smallest mean gain, in points, that is detected at 80% power.
    """
    if not is_known(asked.these.interval):
        return (
            ONCE
            if n < 2
            else f"{number_in_words(n)} replicates that differ too much: they do not show the effect of chance."
        )
    seen = difference_in_words(asked.these.delta, asked.these.interval, "on these tasks")
    if asked.others:
        seen = f"{seen} On similar tasks it is {points(asked.others.delta)} ({range_in_words(asked.others.interval)})."
    return f"{seen}{detects_in_words(detects, f'{n} replicates') if asked.these.answer == 'no evidence' else ''}"


def _unsettled_study(result: StudyResult, asked: Question) -> Open:
    estimates: list[Estimate] = [task.reading for task in result.tasks]
    if result.choosing:
        estimates = [task.choosing for task in result.tasks if task.choosing]
    n = result.replicates
    return Open(
        effect=_effect(result),
        interval=asked.these.interval,
        bound=result.planned.bound if result.planned else 0.05,
        estimate=pooled(estimates),
        spread=tuple(of_estimate(estimate, n, swapped=result.swapped) for estimate in estimates) if n > 1 else None,
        n=n,
        hours=sum(result.hours.values()),
        swapped=result.swapped,
    )


def _train_longer(result: StudyResult) -> str:
    """Return advice to train longer if some taggers of a study learnt nothing; "" if all learnt something."""
    if idle := [task.name for task in result.tasks if not task.learnt]:
        return f"Next: train longer; on {', '.join(idle)} no tagger learnt anything."
    failed = unlearnt_taggers(result.tasks)
    return f"Next: train longer; {failed.words}." if failed else ""


def _next_study(result: StudyResult, asked: Question, unsettled: Open) -> str:
    if asked.these.answer == "worse":
        return "Next: do not use it."
    if asked.these.answer == "yes":
        if asked.others is None or asked.others.answer == "yes":
            return "Next: use it on tasks like these."
        return "Next: use it on these tasks; add more tasks to test whether it also helps on similar ones."
    if not is_known(asked.these.interval):
        return f"Next: {REPLICATES} replicates on each task."
    return settled_by(unsettled, " on each task" if len(result.tasks) > 1 else "")
