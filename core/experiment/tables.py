"""Tables of leaderboards and studies: as CSV for spreadsheets, as Markdown for reading, and as cells for pages."""

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from statistics import mean

from core.corpora.writers import harmless
from core.experiment.result import (
    EXPLORATORY,
    SWAPPED,
    ArmRow,
    CurvePoint,
    ExperimentResult,
    FurtherTest,
    MoreLabels,
    Question,
    StudyResult,
    baseline_words,
    file,
    no_task_learnt,
    nothing_learnt,
    swapped,
)
from core.experiment.words import NOTHING, OTHERS, THESE, Asked, heading, helped
from core.files import write_atomic
from core.runs.context import RunContext
from core.shown import duration
from core.stats.verdict import SCALE, is_known, points

COLUMNS = (
    *("arm", "budget", "sentences", "tokens", "mean", "sd", "dev_mean"),
    *("delta", "low", "high", "delta_random", "low_random", "high_random", "verdict", "helped", "chose"),
    *("wins", "ties", "losses", "gpu_hours", "f1_per_hour", "low_per_hour", "high_per_hour", "micro_f1"),
    *("machine_minutes", "person_minutes", "labels", "downloads"),
    *("changed", "wanted", "low_share", "mentions", "exploratory", "why"),
)
HEADS = ("variant", "budget", "sentences read", "tokens", "dev F1", "test score", "sd")
ANSWERS = ("helped", "selection helped", "hours")
TAKES: Mapping[str, str] = {  # {column with a cost of using a variant once: its heading}
    "machine": "The machine's time",
    "person": "Your time",
    "labels": "Labelled sentences",
    "downloads": "Downloads",
}
MINUTE = 1 / 60  # in hours; for a shorter time, no gain per hour is shown
TAKES_ONCE = (
    "The machine's time is that of one tagger and of all steps before it. Your time is what you spend beyond the "
    "labels that all variants share. Labelled sentences do not include the dev and test sets."
)
NOTHING_TO_FETCH = "none"
FURTHER = ("mean", "sd", "delta")  # columns that the CSV has for each further test set


def as_csv(result: ExperimentResult | StudyResult) -> str:
    """Return a result as CSV with unrounded numbers.

    An experiment has one row per variant. A study has one row per task and one per mean over tasks. Cells that a
    spreadsheet would execute as formulas are escaped.
    """
    text, out = _study_csv(result) if isinstance(result, StudyResult) else _board_csv(result), io.StringIO()
    for row in csv.reader(io.StringIO(text)):
        # Do not escape negative numbers: they start with "-", like a formula.
        csv.writer(out, lineterminator="\n").writerow([cell if _is_number(cell) else harmless(cell) for cell in row])
    return out.getvalue()


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def as_markdown(result: ExperimentResult | StudyResult) -> str:
    """Return a result as Markdown.

    An experiment includes the reason for each verdict. A study includes the data that would settle its questions.
    """
    return _study_markdown(result) if isinstance(result, StudyResult) else _board_markdown(result)


def write(context: RunContext, result: ExperimentResult | StudyResult) -> None:
    """Write the tables of an experiment or a study, as CSV and Markdown, to the artifacts of its run."""
    for suffix, text in (("csv", as_csv(result)), ("md", as_markdown(result))):
        path = file(context.run, suffix)
        write_atomic(path, text.encode())
        context.artifact(path.name, path)


def _board_csv(result: ExperimentResult) -> str:
    out = io.StringIO()
    further = [f"{column} {test.test}" for test in result.leaderboard[0].also for column in FURTHER]
    writer = csv.DictWriter(out, (*COLUMNS, *further), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in result.leaderboard:
        (low, high), (low_random, high_random) = row.interval, row.interval_random or (None, None)
        bounds = {"low": low, "high": high, "low_random": low_random, "high_random": high_random}
        if row.f1_per_hour and row.delta:  # The gain per hour has the interval of the difference, divided by hours.
            hours = row.delta / row.f1_per_hour
            bounds |= {"low_per_hour": low / hours, "high_per_hour": high / hours}
        if row.seconds is not None:
            bounds |= {"machine_minutes": row.seconds / 60, "person_minutes": row.person_seconds / 60}
        bounds |= {f"{column} {test.test}": getattr(test, column) for test in row.also for column in FURTHER}
        words = {"micro_f1": " ".join(map(str, row.micro_f1)), "downloads": takes(row)["downloads"]}
        writer.writerow({**asdict(row), **bounds, **words})
    for line in result.more_labels:
        writer.writerow({**_estimate_row(line), "why": line.words})
    return out.getvalue()


def _board_markdown(result: ExperimentResult) -> str:
    lines = [NOTHING, ""] if nothing_learnt(result.leaderboard) else []
    for words in result.claim_words:
        lines += [words, ""]
    lines += [words for text in (result.overlap_words, result.ceiling_words) if text for words in (text, "")]
    lines += [SWAPPED, ""] if swapped(result.leaderboard) else []
    lines += [result.cheapest.words, ""] if result.cheapest else []
    rows = []
    for row in result.leaderboard:
        gain = "" if row.verdict == "baseline" else points(row.delta, row.interval)
        sd = "" if row.sd is None else f"{row.sd:.2f}"
        cells = [row.arm, row.budget, f"{row.sentences:,}", f"{row.tokens:,}", dev_words(row), f"{row.mean:.2f}"]
        mark = EXPLORATORY * row.exploratory
        answers = [f"{answer}{mark}" if answer else "" for answer in (_helped(row), row.chose)]
        rows.append([*cells, sd, gain, *answers, f"{row.gpu_hours:.2f}", *takes(row).values()])
    heads = (*HEADS, f"against {baseline_words(result.leaderboard)}", *ANSWERS, *map(str.lower, TAKES.values()))
    lines += _markdown(heads, rows, numbers=(2, 3, 4, 5, 6, *range(10, 14)))
    labels = {row.arm: row.changed_words or row.drawn_words for row in result.leaderboard}
    labels |= {row.arm: row.about.removesuffix(".") for row in result.leaderboard if row.reference}
    counted = {arm: f" ({text})" for arm, text in labels.items() if text}
    reasons = [
        f"- {row.arm} {row.budget}".rstrip() + f"{counted.get(row.arm, '')}: {row.why}" for row in result.leaderboard
    ]
    further = _further(result.leaderboard)
    estimated = _estimates(result.more_labels)
    return "\n".join([*lines, "", *reasons, "", *estimated, *further, *_curve(result.curve)])


def _markdown(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[int]) -> list[str]:
    """Return the lines of a Markdown table. numbers: columns with numbers, which are aligned to the right."""
    sides = "|".join("---:" if column in numbers else "---" for column in range(len(heads)))
    head, *lines = (f"| {' | '.join(map(_cell, cells))} |" for cells in (heads, *rows))
    return [head, f"|{sides}|", *lines]


def _cell(text: str) -> str:
    """Return a text for a cell: a budget such as `|T_C|` and names of corpora may contain marks of Markdown."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _curve(points: Sequence[CurvePoint]) -> list[str]:
    """Return the lines of a table of test F1 by number of training sentences, mean over draws and seeds.

    Return [] if there are no points.
    """
    sizes = sorted({point.train_sentences for point in points})
    if not sizes:
        return []
    rows = []
    for arm, budget in dict.fromkeys((point.arm, point.budget) for point in points):
        f1s = {
            size: [
                f1
                for point in points
                if (point.arm, point.budget, point.train_sentences) == (arm, budget, size)
                for f1 in point.micro_f1
            ]
            for size in sizes
        }
        rows.append([arm, budget, *(f"{mean(values):.2f}" if values else "" for values in f1s.values())])
    heads = ("variant", "budget", *(f"{size:,}" for size in sizes))
    title = "Test F1 by number of training sentences, mean over draws and seeds:"
    return [title, "", *_markdown(heads, rows, numbers=range(2, len(heads))), ""]


def _further(rows: Sequence[ArmRow]) -> list[str]:
    """Return the lines of a table of the scores on all test sets, one row per variant; [] for a single test set."""
    tests = [test.test for test in rows[0].also]
    if not tests:
        return []
    heads = ("variant", "budget", "test", *tests)
    cells = ([row.arm, row.budget, _score_words(row), *map(_score_words, row.also)] for row in rows)
    return [*_markdown(heads, cells, numbers=range(2, len(heads))), ""]


def _score_words(test: ArmRow | FurtherTest) -> str:
    """Return mean F1, standard deviation over seeds, and difference to the baseline, such as "81.20 ± 0.40 (+1.10)"."""
    spread = "" if test.sd is None else f" ± {test.sd:.2f}"
    return f"{test.mean:.2f}{spread} ({test.delta:+z.2f})"


STUDY_COLUMNS = (
    *("task", "run", "test_sentences", "tokens", "f1", "none_f1", "control_f1"),
    *("reading", "reading_low", "reading_high", "reading_p", "helped"),
    *("choosing", "choosing_low", "choosing_high", "choosing_p", "chose"),
)
_MEANS = ((THESE.lower(), "these"), (OTHERS.lower(), "others"))


def _study_csv(result: StudyResult) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, STUDY_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for task in result.tasks:
        low, high = task.choosing_interval or (None, None)
        writer.writerow(
            {
                **{"task": task.name, "run": task.run, "test_sentences": task.sentences, "tokens": task.tokens},
                **{"f1": task.f1, "none_f1": task.none_f1, "control_f1": task.control_f1},
                **{"reading": task.reading.delta, "choosing": task.choosing.delta if task.choosing else None},
                **dict(zip(("reading_low", "reading_high"), task.reading_interval, strict=True)),
                **{"choosing_low": low, "choosing_high": high},
            }
        )
    for name, which in _MEANS:
        if getattr(result.reading, which):
            writer.writerow({"task": name, **_means(result, which)})
    return out.getvalue()


def _means(result: StudyResult, which: str) -> dict[str, object]:
    row: dict[str, object] = {}
    for head, answer, question in (("reading", "helped", result.reading), ("choosing", "chose", result.choosing)):
        if question:
            one = getattr(question, which)
            low, high = one.interval
            row |= {head: one.delta, f"{head}_low": low, f"{head}_high": high, f"{head}_p": one.p, answer: one.answer}
    return row


def _study_markdown(result: StudyResult) -> str:
    lines = [NOTHING, ""] if no_task_learnt(result.tasks) else []
    lines += [result.planned.why, ""] if result.planned else []
    rows = []
    for task in result.tasks:
        control = "" if task.control_f1 is None else f"{task.control_f1:.2f}"
        cells = [task.name, f"{task.sentences:,}", f"{task.f1:.2f}", f"{task.none_f1:.2f}", control]
        chose = points(task.choosing.delta, task.choosing_interval) if task.choosing and task.choosing_interval else ""
        rows.append([*cells, points(task.reading.delta, task.reading_interval), chose])
    for name, which in _MEANS:
        if getattr(result.reading, which):
            rows.append([name, "", "", "", "", _answered(result.reading, which), _answered(result.choosing, which)])
    questions: tuple[Asked, ...] = ("reading", "choosing")
    heads = ("task", "test sentences", "test F1", "none", "control", *(helped(result, of) for of in questions))
    lines += _markdown(heads, rows, numbers=(1, 2, 3, 4))
    asked = zip(questions, (result.reading, result.choosing), strict=True)
    lacking = [f"- {heading(result, of)} {each.lacking}" for of, each in asked if each and each.lacking]
    return "\n".join([*lines, "", *lacking, ""])


def _answered(question: Question | None, which: str) -> str:
    if question is None:
        return ""
    one = getattr(question, which)
    answer = f"{one.answer}: " if one.answer else ""
    return f"{answer}{points(one.delta, one.interval)}"


def dev_words(row: ArmRow) -> str:
    """Return a variant's dev F1 as text; "" for a reference variant, which has no dev F1."""
    return "" if row.dev_mean is None else f"{row.dev_mean:.2f}"


def answers(row: ArmRow) -> tuple[str, str]:
    """Return the answers to "Did the variant help?" and "Did its selection help?"; "" if a question is not asked.

    An answer is "yes", "no evidence" or "worse", with a suffix if it is exploratory. For a reference variant, the first
    answer is the verdict.
    """
    if row.verdict in ("baseline", "nothing learnt", "not tested"):
        return row.verdict, ""
    # One selection and one pre-training do not show how much the result would vary if both were repeated.
    not_asked = "a quick look cannot tell" if row.delta_random is not None else ""
    mark = EXPLORATORY * row.exploratory
    return f"{_helped(row)}{mark}", f"{row.chose}{mark}" if row.chose else not_asked


def _helped(row: ArmRow) -> str:
    """Return the answer to "Did the variant help?". The answer of a control is marked, because it is no verdict."""
    return f"control: {row.helped}" if row.verdict == "control" and row.helped else row.helped or row.verdict


def all_read(rows: Sequence[ArmRow]) -> bool:
    """Return True if all variants except the baseline and reference variants were pre-trained."""
    return all(row.sentences for row in rows if row.verdict != "baseline" and not row.reference)


def asked_first(rows: Sequence[ArmRow]) -> str:
    """Return the heading of the column that answers "Did the variant help?"."""
    return "Pre-training helped" if all_read(rows) else "Helped"


def interval_words(row: ArmRow) -> str:
    """Return a variant's difference to its baseline and the interval, as text.

    Return "" for the baseline, and for a variant whose taggers learnt nothing.
    """
    return "" if row.verdict in ("baseline", "nothing learnt") else difference_words(row)


def difference_words(row: ArmRow | FurtherTest) -> str:
    """Return a difference to the baseline on a test set and its interval, such as "+1.10 [+0.20, +2.00]"."""
    low, high = row.interval
    return f"{row.delta:+z.2f} " + (
        f"[{low:+z.2f}, {high:+z.2f}]" if is_known(row.interval) else f"({_too_few_seeds(row)}: no interval)"
    )


def control_words(row: ArmRow) -> str:
    """Return a variant's difference to its control and the interval, as text; "" if it has no control."""
    if row.delta_random is None or row.interval_random is None:
        return ""
    return difference_words(replace(row, delta=row.delta_random, interval=row.interval_random))


def _too_few_seeds(row: ArmRow | FurtherTest) -> str:
    """Return the reason why there is no interval, such as "one seed"."""
    n = len(row.micro_f1)
    if isinstance(row, ArmRow) and row.reference:  # A reference variant has one F1, so count the seeds of `none`.
        n = row.wins + row.ties + row.losses
    if n < 2:
        return "one seed"
    if isinstance(row, ArmRow) and row.collapsed:  # With several taggers per replicate, each has its own seed.
        return f"{row.n_taggers} seeds, {len(row.collapsed)} learnt nothing"
    return f"{n} seeds differ too much"


def rate_words(row: ArmRow) -> str:
    """Return as text the F1 points gained per hour of additional computing (beyond `none`), with their interval.

    There is no rate if no tagger of the variant learnt anything. There is also no rate if the interval is unknown or
    extends beyond 100 points per hour, because the rate would mislead. A reference variant has no rate, because it
    replaces `none` instead of adding runs to it.
    """
    rate = row.f1_per_hour
    if row.n_taggers and len(row.collapsed) == row.n_taggers:
        return "learnt nothing: no rate"
    if not rate or not row.delta:
        return ""
    if row.delta / rate < MINUTE:  # A gain in a few seconds would give a meaningless rate.
        return "no rate: less than one additional minute"
    if not is_known(row.interval):
        return f"{_too_few_seeds(row)}: no rate"
    low, high = (bound * rate / row.delta for bound in row.interval)
    if max(-low, high) > SCALE:
        return f"no rate: the interval extends beyond {SCALE:,.0f}"
    # Show fewer digits if the interval is wide.
    digits = 2 if high - low < 10 else 1 if high - low < 100 else 0
    return f"{rate:+z,.{digits}f} [{low:+z,.{digits}f}, {high:+z,.{digits}f}]"


def _estimate_row(line: MoreLabels) -> dict[str, object]:
    low, high = line.gain_interval or (None, None)
    scores = {"mean": line.f1, "delta": line.gain, "low": low, "high": high, "verdict": estimate_word(line)}
    takes = {"person_minutes": line.person_seconds / 60, "labels": line.sentences + line.more}
    return {"arm": line.arm, **scores, "gpu_hours": line.hours, **takes}


ESTIMATE_HEADS: Mapping[str, str] = {  # {column of the table of estimates: its heading}
    "arm": "Estimate",
    "f1": "Test score",
    "none": "Against none",
    "person": TAKES["person"],
    "labels": TAKES["labels"],
}


def estimate_cells(line: MoreLabels) -> dict[str, str]:
    """Return {column of `ESTIMATE_HEADS`: text of the cell}. If no estimate was possible, the difference is ""."""
    score, difference = "not estimated", ""
    if line.f1 is not None and line.interval and line.gain is not None and line.gain_interval:
        score = f"{line.f1:.1f} [{line.interval[0]:.1f}, {line.interval[1]:.1f}]"
        difference = points(line.gain, line.gain_interval)
    labels = f"{line.sentences + line.more:,}"
    cells = {"arm": line.arm, "f1": score, "none": difference}
    return {**cells, "person": duration(line.person_seconds), "labels": labels}


def estimate_word(line: MoreLabels) -> str:
    """Return the word that an estimate has in place of a verdict."""
    return "not estimated" if line.f1 is None else "estimate"


def _estimates(lines: Sequence[MoreLabels]) -> list[str]:
    """Return the lines of a table of estimates, with the basis of each; [] if there are none."""
    if not lines:
        return []
    cells = [list(estimate_cells(line).values()) for line in lines]
    reasons = [f"- {line.arm}: {line.words}" for line in lines]
    heads = [head.lower() for head in ESTIMATE_HEADS.values()]
    return ["Estimates, with their 95% intervals:", "", *_markdown(heads, cells, numbers=(4,)), "", *reasons, ""]


def takes(row: ArmRow) -> dict[str, str]:
    """Return {column of `TAKES`: text of the cell}. The text is "" for results of earlier versions without costs."""
    if row.seconds is None:
        return dict.fromkeys(TAKES, "")
    return {
        "machine": duration(row.seconds),
        "person": duration(row.person_seconds) if row.person_seconds else "none",
        "labels": "" if row.labels is None else f"{row.labels:,}",
        "downloads": row.downloads or NOTHING_TO_FETCH,
    }
