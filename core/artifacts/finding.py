"""The verdict of an experiment or a study in three parts: what came out, how sure that is, what to do next.

Pages, reports and the command line show the same words. They are for a reader who trains no models: no symbol, no name
of a test, no name of a score.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from core.artifacts.arm_words import JUDGED, asked_by_control, held_against, name_of, reads
from core.artifacts.leaderboard import ArmRow, ExperimentResult, compared_with, nothing_learnt
from core.artifacts.settling import TOO_LONG, TOO_MANY, even, repetitions, settled_by
from core.artifacts.study import Question, StudyResult
from core.artifacts.study import nothing_learnt as nothing_learnt_on
from core.stats.pooled import pooled
from core.stats.verdict import LEVEL, SEEDS, WHOLE_RANGE, Unlearnt, lacking

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


def of_experiment(result: ExperimentResult) -> Finding:
    """Verdict by `main`."""
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
    then = _next(row, sum(result.hours.values()))
    if unlearnt := _unlearnt(row, rows):
        then = f"Next: train longer first; {unlearnt.words}."
    return Finding(what=what, sure=_sure(row, rows), next=then)


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


def _sure(row: ArmRow, rows: Sequence[ArmRow]) -> str:
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
        return f"{seen}. Of {n} repetitions, {_number(failed).lower()} learnt nothing; they are included."
    return f"{seen}.{_could(_open(row))}"


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


def _could(interval: tuple[float, float] | None) -> str:
    """Sentence on what could have been seen, where a question stays open. interval: of that question."""
    if interval is None:
        return ""
    half = (interval[1] - interval[0]) / 2
    return f" Only a gain above about {points(half).lstrip('+')} points could have been seen."


def _known(interval: tuple[float, float]) -> bool:
    return interval[1] - interval[0] < WHOLE_RANGE


def _range(interval: tuple[float, float]) -> str:
    return f"{points(interval[0])} to {points(interval[1])}"


def _open(row: ArmRow) -> tuple[float, float] | None:
    """The interval of the question that is not answered: against nothing, else against the same by lot."""
    if row.verdict == "no evidence":
        return row.interval
    return row.interval_random if row.verdict == "helped" and row.delta_random is not None else None


def _next(row: ArmRow, hours: float) -> str:
    """hours: of the whole experiment."""
    n = len(row.micro_f1)
    quick = (
        f"Next: {REPLICATES} repetitions in each of which choice and reading are made anew too; this was a quick look "
        "at one of each."
    )
    words = {
        "improves": "Next: use it, and label more of what the tagger still misses.",
        "hurts": "Next: leave it; the tagger without it is better.",
        "below control": f"Next: leave it; {_under_control(row)} the tagger is better.",
    }
    if row.verdict == "helped" and row.delta_random is None:
        return "Next: the same beside as much of it taken by lot, which tells whether it is the choice that helps."
    if row.verdict == "improves" and n < SEEDS:
        return f"Next: {repetitions(SEEDS, n, hours)}, before you rely on it."
    if row.verdict == "helped":
        known = settled_by(row.delta_random or 0.0, row.estimate_random, n, hours, swapped=bool(row.halves_runs))
        return quick if row.chose is None else known
    if n < 2:
        return f"Next: {repetitions(SEEDS, n, hours)}."
    if row.verdict == "no evidence" and _one_lot(row):
        return quick
    return words.get(row.verdict) or settled_by(row.delta, row.estimate, n, hours, swapped=bool(row.halves_runs))


def _one_lot(row: ArmRow) -> bool:
    """Whether all its taggers stand on one pre-training, so that others are what is lacking."""
    return bool(row.pretrain_run) and len(row.finetunes) == 1 < len(row.micro_f1)


def repetitions_to_settle(result: ExperimentResult) -> int:
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
    delta, estimate = (row.delta_random or 0.0, row.estimate_random) if helped else (row.delta, row.estimate)
    if estimate is None or abs(delta) < LEVEL:
        return 0
    lacks = lacking(abs(delta), float(estimate.falling), float(estimate.fixed), n)
    enough = even(lacks.repetitions, swapped=bool(row.halves_runs))
    out_of_reach = enough > TOO_MANY or sum(result.hours.values()) / n * enough > TOO_LONG
    return 0 if out_of_reach or lacks.sentences != 1 else enough


def of_study(result: StudyResult) -> Finding:
    """Verdict by the claim's own question: choosing where it has a control, else reading."""
    if nothing_learnt_on(result.tasks):
        return Finding(what=IDLE, sure="", next=_MORE_LABELS)
    of, asked = ("what was tried", result.reading)
    if result.choosing:
        of, asked = (asked_by_control(result.arm), result.choosing)
    n, answer = len(result.tasks), asked.these.answer
    assert answer  # something was learnt
    where = "on this task" if n == 1 else f"on these {n} tasks on average"
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
    return Finding(what=what, sure=_sure_of(asked, result.replicates), next=_next_study(result, asked))


def _elsewhere(asked: Question) -> str:
    if asked.others is None or asked.these.answer == "no evidence":
        return ""
    shown = asked.others.answer == asked.these.answer
    return f" On others like these {'it would too' if shown else 'that is not shown'}."


def _sure_of(asked: Question, n: int) -> str:
    """n: repetitions on each task."""
    if not _known(asked.these.interval):
        return ONCE if n < 2 else f"{_number(n)} repetitions that differ too much: they do not show what chance does."
    seen = _difference(asked.these.delta, asked.these.interval, "on these")
    others = (
        f", {points(asked.others.delta)} on others like these ({_range(asked.others.interval)})" if asked.others else ""
    )
    return f"{seen}{others}.{_could(asked.these.interval if asked.these.answer == 'no evidence' else None)}"


def _next_study(result: StudyResult, asked: Question) -> str:
    if idle := [task.name for task in result.tasks if not task.learnt]:
        return f"Next: train longer first; on {', '.join(idle)} no tagger learnt anything."
    if asked.these.answer == "worse":
        return "Next: leave it."
    if asked.these.answer == "yes":
        if asked.others is None or asked.others.answer == "yes":
            return "Next: use it on tasks like these."
        return "Next: more tasks, if it is to hold on others than these; on these it may be used."
    if not _known(asked.these.interval):
        return f"Next: {REPLICATES} repetitions on each task."
    tasks = result.tasks
    estimates = [task.choosing for task in tasks if task.choosing] if result.choosing else [t.reading for t in tasks]
    each = " on each task" if len(tasks) > 1 else ""
    return settled_by(asked.these.delta, pooled(estimates), result.replicates, sum(result.hours.values()), each=each)
