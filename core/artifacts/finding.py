"""The verdict of an experiment or a study in three parts: what came out, how sure that is, what to do next.

Pages, reports and the command line show the same words. They are for a reader who trains no models: no symbol, no name
of a test, no name of a score.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from core.artifacts.arm_words import JUDGED, asked_by_control, held_against, name_of, reads
from core.artifacts.leaderboard import ArmRow, ExperimentResult, compared_with, nothing_learnt
from core.artifacts.settling import UNKNOWN, Open, Outlook, settled_by, spread_of
from core.artifacts.study import Question, StudyResult
from core.artifacts.study import nothing_learnt as nothing_learnt_on
from core.artifacts.study import unlearnt as unlearnt_on
from core.shown import in_points
from core.stats.pooled import Estimate, pooled
from core.stats.spread import of_estimate
from core.stats.verdict import SEEDS, WHOLE_RANGE, Unlearnt

REPLICATES = 6  # a plan with three looks, which can show that choosing helped
IDLE = "Nothing can be said: no tagger learnt anything, with or without what was tried."
FURTHER = {"improves": "it also does better with", "helped": "it also does better with", "hurts": "it does worse with"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A sentence or two each; sure is "" where there is nothing to be sure of."""

    what: str
    sure: str
    next: str

    @property
    def parts(self) -> list[str]:
        """The parts that say something."""
        return [part for part in (self.what, self.sure, self.next) if part]


def of_experiment(result: ExperimentResult, outlook: Outlook = UNKNOWN) -> Finding:
    """Verdict by `main`. outlook: what a forecast of the same experiment rests on."""
    rows = result.leaderboard
    judged = [row for row in rows if row.verdict in JUDGED]
    if nothing_learnt(rows):
        return Finding(what=IDLE, sure="", next=_MORE_LABELS)
    row, untested = main(result), _untested(rows)
    others = [other for other in judged if other is not row]
    besides = _others(others, rows)
    if not row:
        then = "ask for a lower share, or label more sentences" if untested else "name something to try beside none"
        what = " ".join(filter(None, (untested or "Nothing was compared.", besides)))
        return Finding(what=what, sure="", next=f"Next: {then}.")
    what = " ".join(filter(None, (_what(row, rows), besides, untested)))
    unsettled = _unsettled(row, result, outlook)
    then = _next(row, unsettled)
    if unlearnt := _unlearnt(row, rows):
        then = f"Next: train longer first; {unlearnt.words}."
    return Finding(what=what, sure=_sure(row, rows, unsettled.detects), next=then)


_MORE_LABELS = "Next: label more sentences or train longer, until the training itself works."


def main(result: ExperimentResult) -> ArmRow | None:
    """The line that the verdict is about: the claim's, else the surest. None where it is not judged."""
    judged = [row for row in result.leaderboard if row.verdict in JUDGED]
    if any(row.exploratory for row in result.leaderboard):
        return next((row for row in judged if not row.exploratory), None)
    if test := result.planned:
        for row in judged:
            if (row.arm, row.budget) == (test.arm, test.budget):
                return row
    return min(judged, key=lambda row: JUDGED.index(row.verdict), default=None)


def _what(row: ArmRow, rows: Sequence[ArmRow]) -> str:
    name, read = name_of(row, rows), reads(row)
    after = f"after reading {name}" if read else f"with {name}"
    without = "after reading nothing" if read else "without"
    held = row.delta_random is not None
    than = f"{without}, {{}} better than {_under_control(row)}"
    words = {
        "improves": f"Yes: {after} the tagger does better than {without}.",
        "helped": f"It helped: {after} the tagger does better than {without}. What any other would do was not asked.",
        "below control": f"No: {_under_control(row)} the tagger does better than {after}.{_all_the_same(row)}",
        "hurts": f"No: {after} the tagger does worse than {without}.",
        "no evidence": f"Not shown: {after} the tagger is not seen to do better than {without}.",
    }
    if held:
        better = f"{after} the tagger does better than {than}."
        asked = asked_by_control(row.arm)
        words["improves"] = f"Yes, {asked} paid: {better.format('and')}"
        words["helped"] = (
            f"{'Reading' if read else 'It'} helped, {asked} is not shown to: {better.format('but not surely')}"
        )
    return words[row.verdict]


def _under_control(row: ArmRow) -> str:
    return f"{'after' if reads(row) else 'with'} {held_against(row)}"


def _all_the_same(row: ArmRow) -> str:
    """Sentence on what stays true of an arm that is below its control."""
    if row.helped != "yes":
        return ""
    return " Reading helped, whatever was read." if reads(row) else " It does better than without, all the same."


def _others(others: Sequence[ArmRow], rows: Sequence[ArmRow]) -> str:
    """Sentence on what is sure of the other lines; of several a first few by name."""
    sentences = []
    for start in dict.fromkeys(FURTHER.values()):
        names = [name_of(row, rows) for row in others if FURTHER.get(row.verdict) == start]
        if names:
            more = f" and {len(names) - 2} more" if len(names) > 2 else ""
            sentences.append(f"{start} {' and '.join(names[:2]) if not more else ', '.join(names[:2])}{more}")
    exploratory = any(row.exploratory for row in others)
    start = "Besides, not asked beforehand and so exploratory:" if exploratory else "Besides,"
    return f"{start} {'; '.join(sentences)}." if sentences else ""


def _untested(rows: Sequence[ArmRow]) -> str:
    """Sentence on the lines that are no test of what they tried; nothing where all are."""
    names = [f"{name_of(row, rows)} ({row.changed_words})" for row in rows if row.verdict == "not tested"]
    return f"Not tested, as too few labels could be changed: {', '.join(names)}." if names else ""


def points(value: float) -> str:
    """A difference, with as many digits as its reader can use."""
    return f"{value:+z.0f}" if abs(value) >= 9.95 else f"{value:+z.1f}"


ONCE = "How sure cannot be said: a single repetition does not show what chance does."
NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six")


def _sure(row: ArmRow, rows: Sequence[ArmRow], detects: float | None) -> str:
    """detects: the smallest gain that the comparison shows in 80 of 100 cases; None: not known."""
    n, failed = len(row.micro_f1), _failed_repetitions(row, rows)
    if n < 2:
        return ONCE
    if not _known(row.interval):
        why = f", of which {_number(failed).lower()} learnt nothing" if failed else " that differ too much"
        return f"{_number(n)} repetitions{why}: they do not show how much chance changes the result."
    interval = row.interval_random
    seen = _difference(row.delta, row.interval, "over reading nothing" if reads(row) else "over none of it")
    if row.delta_random is not None and interval and _known(interval):
        seen = f"{seen}, {points(row.delta_random)} over {held_against(row)} ({_range(interval)})"
    if failed:
        counted = "it is" if failed == 1 else "they are"
        return f"{seen}. Of {n} repetitions, {_number(failed).lower()} learnt nothing; {counted} included."
    return f"{seen}.{_could(detects, n) if _open(row) else ''}"


def _number(n: int) -> str:
    return NUMBERS[n] if n < len(NUMBERS) else f"{n:,}"


def _failed_repetitions(row: ArmRow, rows: Sequence[ArmRow]) -> int:
    """Number of repetitions in which a tagger of this line, or of one that it is compared with, learnt nothing."""
    return len({seed for each in (row, *compared_with(row, rows)) for seed in each.collapsed})


def _unlearnt(row: ArmRow, rows: Sequence[ArmRow]) -> Unlearnt:
    lines = (row, *compared_with(row, rows))
    return Unlearnt(
        taggers=sum(len(line.collapsed) for line in lines),
        of=sum(len(line.micro_f1) for line in lines),
    )


def _difference(delta: float, interval: tuple[float, float], over: str) -> str:
    return f"The difference: {points(delta)} points of 100 {over} ({_range(interval)} in 95 of 100 such experiments)"


def _could(detects: float | None, n: int) -> str:
    """Sentence on the gains that a comparison of n repetitions detects; nothing if that is not known."""
    if detects is None:
        return ""
    return (
        f" By the spread of its {n} repetitions, this comparison can only detect gains of about {in_points(detects)} "
        "or more, in 80 of 100 cases."
    )


def _known(interval: tuple[float, float]) -> bool:
    return interval[1] - interval[0] < WHOLE_RANGE


def _range(interval: tuple[float, float]) -> str:
    return f"{points(interval[0])} to {points(interval[1])}"


def _open(row: ArmRow) -> bool:
    """Whether a question is not answered: against nothing, else against the control."""
    return row.verdict == "no evidence" or (row.verdict == "helped" and row.delta_random is not None)


def _unsettled(row: ArmRow, result: ExperimentResult, outlook: Outlook) -> Open:
    """The difference that the question is about: to the control if reading helped, else to nothing."""
    n, swapped, helped = len(row.micro_f1), bool(row.halves_runs), row.verdict == "helped"
    estimate = row.estimate_random if helped else row.estimate
    return Open(
        delta=(row.delta_random or 0.0) if helped else row.delta,
        interval=(row.interval_random or row.interval) if helped else row.interval,
        bound=result.planned.bound if result.planned else 0.05,
        estimate=estimate,
        spread=spread_of(estimate, n, outlook, swapped=swapped),
        n=n,
        hours=sum(result.hours.values()),
        swapped=swapped,
        outlook=outlook,
    )


def _next(row: ArmRow, unsettled: Open) -> str:
    n = len(row.micro_f1)
    quick = (
        f"Next: {REPLICATES} repetitions, each with its own selection and reading; this was a quick look with one of "
        "each."
    )
    words = {
        "improves": "Next: use it, and label more of what the tagger still misses.",
        "hurts": "Next: leave it; the tagger without it is better.",
        "below control": f"Next: leave it; {_under_control(row)} the tagger is better.",
    }
    if row.verdict == "helped" and row.delta_random is None:
        return "Next: repeat it with a random baseline of the same size, to see whether the selection is what helps."
    if row.verdict == "improves" and n < SEEDS:
        return f"Next: {unsettled.more(SEEDS)}, before you rely on it."
    if row.verdict == "helped":
        return quick if row.chose is None else settled_by(unsettled)
    if n < 2:
        return f"Next: {unsettled.more(SEEDS)}."
    if row.verdict == "no evidence" and _one_lot(row):
        return quick
    return words.get(row.verdict) or settled_by(unsettled)


def _one_lot(row: ArmRow) -> bool:
    """Whether all its taggers stand on one pre-training, so that others are what is lacking."""
    return bool(row.pretrain_run) and len(row.finetunes) == 1 < len(row.micro_f1)


def repetitions_to_settle(result: ExperimentResult, outlook: Outlook = UNKNOWN) -> int:
    """Repetitions that the verdict asks for next; 0 where it is settled, or repeating is not what would settle it."""
    row = main(result)
    if row is None or row.verdict in ("hurts", "below control") or _unlearnt(row, result.leaderboard):
        return 0
    n, helped = len(row.micro_f1), row.verdict == "helped"
    if row.verdict == "improves" or (n < 2 and not helped):
        return SEEDS if n < SEEDS else 0
    if row.verdict == "no evidence" and _one_lot(row):
        return REPLICATES
    if helped and (row.delta_random is None or row.chose is None):
        return 0 if row.delta_random is None else REPLICATES
    unsettled = _unsettled(row, result, outlook)
    lacks = unsettled.lacks
    return (unsettled.repetitions or 0) if lacks and lacks.sentences == 1 else 0


def of_study(result: StudyResult) -> Finding:
    """Verdict by the claim's own question: choosing where it has a control, else reading."""
    if nothing_learnt_on(result.tasks):
        return Finding(what=IDLE, sure="", next=_MORE_LABELS)
    of, asked = ("what was tried", result.reading)
    if result.choosing:
        of, asked = (asked_by_control(result.arm), result.choosing)
    n, answer = result.replicates, asked.these.answer
    assert answer  # something was learnt
    where = "on this task" if len(result.tasks) == 1 else f"on these {len(result.tasks)} tasks on average"
    word = {
        "yes": "Yes: {} helped {}.",
        "worse": "No: {} did harm {}.",
        "no evidence": "Not shown: {} is not seen to help {}.",
    }
    what = word[answer].format(of, where)
    if result.choosing and answer != "yes" and result.reading.these.answer == "yes":
        what = f"{what} Reading helped, whatever was read."
    what = f"{what}{_elsewhere(asked)}"
    if few := [f"{task.name} ({task.too_few})" for task in result.tasks if task.too_few]:
        what = f"{what} On {', '.join(few)} too few labels could be changed to test it, which counts all the same."
    unsettled = _unsettled_study(result, asked)
    then = _train_longer(result) or _next_study(result, asked, unsettled)
    return Finding(what=what, sure=_sure_of(asked, n, unsettled.detects), next=then)


def _elsewhere(asked: Question) -> str:
    if asked.others is None or asked.these.answer == "no evidence":
        return ""
    shown = asked.others.answer == asked.these.answer
    return f" On others like these {'it would too' if shown else 'that is not shown'}."


def _sure_of(asked: Question, n: int, detects: float | None) -> str:
    """n: repetitions on each task. detects: the smallest mean gain that it shows in 80 of 100 cases."""
    if not _known(asked.these.interval):
        return ONCE if n < 2 else f"{_number(n)} repetitions that differ too much: they do not show what chance does."
    seen = _difference(asked.these.delta, asked.these.interval, "on these")
    others = (
        f", {points(asked.others.delta)} on others like these ({_range(asked.others.interval)})" if asked.others else ""
    )
    return f"{seen}{others}.{_could(detects, n) if asked.these.answer == 'no evidence' else ''}"


def _unsettled_study(result: StudyResult, asked: Question) -> Open:
    estimates: list[Estimate] = [task.reading for task in result.tasks]
    if result.choosing:
        estimates = [task.choosing for task in result.tasks if task.choosing]
    n = result.replicates
    return Open(
        delta=asked.these.delta,
        interval=asked.these.interval,
        bound=result.planned.bound if result.planned else 0.05,
        estimate=pooled(estimates),
        spread=tuple(of_estimate(estimate, n) for estimate in estimates) if n > 1 else None,
        n=n,
        hours=sum(result.hours.values()),
    )


def _train_longer(result: StudyResult) -> str:
    """Advice if taggers of a study learnt nothing; "" if all learnt something."""
    if idle := [task.name for task in result.tasks if not task.learnt]:
        return f"Next: train longer first; on {', '.join(idle)} no tagger learnt anything."
    failed = unlearnt_on(result.tasks)
    return f"Next: train longer first; {failed.words}." if failed else ""


def _next_study(result: StudyResult, asked: Question, unsettled: Open) -> str:
    if asked.these.answer == "worse":
        return "Next: leave it."
    if asked.these.answer == "yes":
        if asked.others is None or asked.others.answer == "yes":
            return "Next: use it on tasks like these."
        return "Next: more tasks, if it is to hold on others than these; on these it may be used."
    if not _known(asked.these.interval):
        return f"Next: {REPLICATES} repetitions on each task."
    return settled_by(unsettled, " on each task" if len(result.tasks) > 1 else "")
