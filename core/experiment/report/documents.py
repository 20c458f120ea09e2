"""Content of the report of an experiment or study: the answer on a page for decision-makers, then a technical page."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.experiment.report.parts import (
    Code,
    Cover,
    Document,
    Facts,
    Heading,
    Interval,
    Items,
    Part,
    Picture,
    Quote,
    Table,
    Text,
    intervals,
)
from core.experiment.result import (
    SWAPPED,
    ArmRow,
    FurtherTest,
    MoreLabels,
    Reference,
    StudyResult,
    baseline,
    baseline_words,
    nothing_learnt,
    split_name,
    swapped,
)
from core.experiment.tables import (
    ESTIMATE_HEADS,
    TAKES,
    TAKES_ONCE,
    all_read,
    answers,
    asked_first,
    estimate_cells,
    interval_words,
    rate_words,
    takes,
)
from core.experiment.words import (
    ANSWER_COLOURS,
    OTHERS,
    TASK_COLOUR,
    THESE,
    VERDICT_MARKS,
    WORD_COLOURS,
    Asked,
    Finding,
    asked,
    forest_rows,
    heading,
    line_name,
    name_of,
    over,
    question,
    reads,
    study_answer,
    two_differences,
    unfound_words,
)
from core.project_list import INVENTED
from core.selection import STRATEGIES
from core.shown import duration, listed
from core.tagging.result import TwoReadings, TypeScores, Unfound
from core.text.sentence import Entity

TITLE = "Was it worth it?"
OVERRULED = Text("The data check had red items, which the user overruled for this run: see “Data check”.", strong=True)
SAMPLE = Text(INVENTED, strong=True)
# Strategies besides `random` that do not prefer sentences like those of the task corpus.
OTHERWISE = ("length-matched-random", "gazetteer", "ner-selected")
# Maximum number of entity types on the first page.
KINDS = 8
# SHOWN: number of example sentences. WORDS: a sentence with more tokens counts as long.
SHOWN, WORDS = 3, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusRow:
    """A corpus of a run. role: its role in words. sentences: number of its sentences; 0 if the corpus was removed."""

    role: str
    name: str
    sentences: int
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A test sentence with gold and predicted entities, in words.

    place: file and page of the sentence; "" if unknown. labelled: gold entities. without: entities that the baseline
    found. having: entities that the main variant found.
    """

    text: str
    place: str
    labelled: str
    without: str
    having: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Test sentences that only one of two variants tagged correctly.

    sentences: number of all test sentences. better: number of sentences that only the main variant tagged correctly.
    worse: number of sentences that only the baseline tagged correctly. shown: examples of both.
    """

    sentences: int
    better: int
    worse: int
    shown: Sequence[Example]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """Data of a run that the report of an experiment and the report of a study both print.

    command: command line that repeats the run.
    begun: sentence with the run's id and start time.
    finding: the verdict. version: version of Winnow.
    missing: missing inputs, in words.
    overruled: sentence on red items of the data check that the user overruled; "" if there were none.
    sent_to: other computers to which sentences were sent, with the user's permission.
    sample: True if the project is a sample project with invented text.
    """

    corpora: Sequence[CorpusRow]
    encoder: str
    preset: str
    command: str
    begun: str
    finding: Finding
    version: str
    missing: Sequence[str]
    overruled: str
    sent_to: Sequence[str]
    sample: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Reported):
    """Data of an experiment for its report.

    rows: the leaderboard.
    main: the variant on which the verdict is based; None if no variant has a verdict.
    task: name of the test set.
    types, examples: scores per entity type and example sentences, of `main` and its baseline.
    seeds: seeds of all variants.
    hours: hours of computing.
    unfound: entity types that no variant found.
    planned: outcome of the planned test, in words.
    overlap: sentences on training sentences that are also in dev or test, for the second page.
    overlap_in_short: the same in one sentence, for the first page.
    multipliers: number of labels or amount of text that the selection replaces, in words.
    weakest: sentence on the entity type that is found least often.
    beside: scores of other runs on the same test set. These runs trained nothing and are not in `rows`.
    more_labels: estimates of F1 with more labels.
    cheapest: sentences on the variant that gains most points of F1 per minute.
    """

    rows: Sequence[ArmRow]
    main: ArmRow | None
    task: str
    types: Sequence[TypeScores]
    examples: Examples | None
    seeds: Sequence[int]
    hours: float
    unfound: Sequence[Unfound] = ()
    planned: str = ""
    overlap: str = ""
    overlap_in_short: str = ""
    multipliers: str = ""
    weakest: str = ""
    beside: Sequence[Reference] = ()
    more_labels: Sequence[MoreLabels] = ()
    cheapest: str = ""


def experiment_document(report: Report, cover: Cover) -> Document:
    """Return the content of an experiment's report: headings, paragraphs, tables and figures."""
    first: list[Part] = [
        *([Text(report.multipliers)] if report.multipliers else []),
        *([Text(unfound, strong=True)] if (unfound := unfound_words(report.unfound)) else []),
        *([Text(report.overlap_in_short)] if report.overlap_in_short else []),
        *_example_parts(report.examples),
        *_kinds(report, report.types[:KINDS], len(report.types) - KINDS),
    ]
    second: list[Part] = [
        Heading("What was compared"),
        *_compared(report),
        Heading("Data"),
        *_corpora(report.corpora, report.missing),
        Heading("Results"),
        *_results(report),
        Heading("How sure"),
        *_how_sure(report),
        Heading("What it cost"),
        *_cost(report),
        *(_kinds(report, report.types, 0) if len(report.types) > KINDS else ()),
    ]
    return _document(
        report,
        cover,
        _asked(report),
        report.hours,
        first=first,
        second=second,
        picture=_picture(report.rows, report.main),
        weakest=report.weakest,
    )


def _document(
    report: Reported,
    cover: Cover,
    asked: str,
    hours: float,
    *,
    first: Sequence[Part],
    second: Sequence[Part],
    picture: Sequence[Part] = (),
    weakest: str = "",
) -> Document:
    """Return the content of a report: the verdict, both pages, and at the end how to repeat the run.

    asked: the question that the run answers. hours: hours of computing. first, second: further content of the first and
    the second page. picture: figure below the verdict. weakest: sentence on the entity type that is found least often.
    """
    finding = report.finding
    left = f"sentences were sent to {listed(report.sent_to)}" if report.sent_to else "no data left it"
    rows = [
        ("Question", asked),
        ("What to do", finding.next),
        ("How sure", " ".join(filter(None, (finding.sure, finding.explained)))),
        ("Weak point", weakest),
        ("Cost", f"{duration(3600 * hours)} of computing on one machine; {left}."),
    ]
    overruled: list[Part] = [Heading("Data check"), Text(report.overruled)] if report.overruled else []
    repeat = f"Winnow {report.version}, on one machine; {left}. The same command gives the same result:"
    return Document(
        title=TITLE,
        word=finding.word,
        colours=WORD_COLOURS[finding.word],
        answer=finding.sentence,
        about=report.begun,
        cover=cover,
        first=[
            *([SAMPLE] if report.sample else []),
            *picture,
            Facts([row for row in rows if row[1]], leading=True),
            *([OVERRULED] if report.overruled else []),
            *first,
        ],
        second=[
            *second,
            *overruled,
            Heading("How to repeat it"),
            Text(repeat),
            Code(report.command),
        ],
    )


def _asked(report: Report) -> str:
    kinds, others = [kind.type for kind in report.types[:5]], len(report.types) - 5
    more = f" and {others} more kind{'s' * (others > 1)}" if others > 0 else ""
    sought = f"finds {', '.join(kinds)}{more}" if kinds else "finds names, parties, places and the like"
    name = name_of(report.main, report.rows) if report.main else "what was tried"
    by = f"after pre-training on {name}" if report.main and reads(report.main) else f"with {name}"
    return f"Does a tagger, a program that {sought} in text, do better on “{report.task}” {by}?"


def _picture(rows: Sequence[ArmRow], main: ArmRow | None) -> list[Part]:
    """Return a figure of the main variant's differences to its baseline and its control.

    Return [] if there is no main variant, no tagger learnt anything, or no difference is known.
    """
    if main is None or nothing_learnt(rows):
        return []
    colour = VERDICT_MARKS[main.verdict].colour
    shown = [
        Interval(name=name, value=value, low=low, high=high, colour=colour)
        for name, value, (low, high) in two_differences(main, rows)
    ]
    drawn = intervals(shown, "difference in points (of 100); 0 means no difference")
    words = f"Differences of {line_name(main)}: "
    return [Picture(drawn, words + "; ".join(f"{row.name} {row.value:+z.1f}" for row in shown))] if drawn else []


def _example_parts(examples: Examples | None) -> list[Part]:
    if examples is None or not examples.shown:
        return []
    head = (
        f"Of {examples.sentences:,} test sentences, {examples.better:,} were tagged correctly only by the tested "
        f"variant and {examples.worse:,} only by its baseline. {'Some' if len(examples.shown) > 1 else 'One'} of them:"
    )
    parts: list[Part] = [Heading("In the text"), Text(head)]
    for one in examples.shown:
        rows = (("by a person", one.labelled), ("without", one.without), ("with", one.having), ("from", one.place))
        parts += [Quote(one.text), Facts([row for row in rows if row[1]])]
    return parts


def _kinds(report: Report, types: Sequence[TypeScores], more: int) -> list[Part]:
    if not types:
        return []
    rows = [
        (kind.type, f"{kind.mentions:,}", f"{kind.a:.1f}", f"{kind.b:.1f}", f"{kind.b - kind.a:+z.1f}")
        for kind in types
    ]
    rest = f" {more:,} more on the next page." if more > 0 else ""
    times = report.main.n_taggers if report.main else 1
    base = baseline(report.main, report.rows) if report.main else None
    each = f" Each score is the mean of {times} trainings."
    if base and base.n_taggers != times:  # If the plan ended early, the baseline has more seeds.
        each = (
            f" Each score with the variant is the mean of {times} trainings, each score without it of {base.n_taggers}."
        )
    each = each if times > 1 else ""
    if swapped(report.rows):  # Replicates have different test sets.
        each = " These are the scores of the first replicate, on its half of the labelled sentences."
    text = (
        "A score of 100 means that all entities were found and none was invented. By chance alone, scores vary by some "
        f"points.{each}"
    )
    text += rest
    heads = ("Kind", "Mentions in the test", "Without", "With", "Difference")
    return [Heading("By kind"), Text(text), Table(heads, rows, (1, 2, 3, 4))]


def _all_select_alike(rows: Sequence[ArmRow]) -> bool:
    """Return True if all trained variants except `none` read random sentences, or sentences like the task corpus."""
    arms = [row.arm for row in rows if row.verdict != "baseline" and not row.reference]
    return all_read(rows) and all(arm in STRATEGIES and arm not in OTHERWISE for arm in arms)


def _compared(report: Report) -> list[Part]:
    text = "Programs that find entities (names, parties, places) were trained in the same way, except for one thing"
    parts: list[Part] = []
    if _all_select_alike(report.rows):
        text += (
            ": what plain text the program had read before. Each way of preparing a program is a variant. The variant "
            "“none” read nothing; “random” read random sentences, and shows the effect of any text of that amount. The "
            "other variants read sentences of the domain corpus (D_C) that were selected because they are like the "
            "task corpus (T_C). All except “none” also read the task corpus. The number after a variant's name is the "
            "size of its selection (S_C)."
        )
        references = [(line_name(row), row.about) for row in report.rows if row.reference]
        parts += [Text("For comparison, without training:"), Items(references)] if references else []
    else:
        text += ", which is called a variant (arm):"
        counted = {row.arm: f" Mentions: {row.changed_words}." for row in report.rows if row.changed_words}
        counted |= {row.arm: f" {row.drawn_words}." for row in report.rows if row.drawn_words}
        named = {row.arm: f"{row.about}{counted.get(row.arm, '')}" for row in report.rows}
        parts.append(Items(list(named.items())))
    n = len(report.seeds)  # If the plan ended early, variants that train all seeds in one run have more seeds.
    longer = [f"; {line_name(row)} {len(row.micro_f1)} times" for row in report.rows if len(row.micro_f1) > n]
    trained = "Every variant that is trained" if any(row.reference for row in report.rows) else "Every variant"
    taggers = max((row.taggers for row in report.rows), default=1)
    several = f" with {taggers} taggers each" if taggers > 1 else ""
    other = ", or from the encoder in their name" if any(split_name(row.arm)[1] for row in report.rows) else ""
    alike = (
        f"{trained} has the settings “{report.preset}”, and was trained {n} {'time' if n == 1 else 'times'}{several}, "
        f"because scores vary by chance (seeds {', '.join(map(str, report.seeds))}){''.join(longer)}. "
        f"Variants that use an encoder start from {report.encoder}{other}."
    )
    if swapped(report.rows):
        alike = f"{alike} {SWAPPED}"
    return [Text(text), *parts, Text(alike)] if parts else [Text(f"{text} {alike}")]


def _corpora(corpora: Sequence[CorpusRow], missing: Sequence[str]) -> list[Part]:
    """Return a table of a run's corpora, with a warning if inputs are missing."""
    rows = [(c.role, c.name, f"{c.sentences:,}", c.fingerprint[:16]) for c in corpora]
    gone = Text(f"This cannot be repeated exactly. Missing inputs: {'; '.join(missing)}.", strong=True)
    return [Table(("Role", "Corpus", "Sentences", "Fingerprint"), rows, (2,)), *([gone] if missing else [])]


def _results(report: Report) -> list[Part]:
    text = (
        "The score (F1) measures how many entities of the test set were found exactly and how few were invented: "
        "100 is perfect, and 0 means that nothing is right. Differences are to the variant "
        f"{baseline_words(report.rows)}, in points of the score."
    )
    rows = []
    for row in report.rows:
        spread = f"{row.mean:.2f}" + ("" if row.sd is None else f" ± {row.sd:.2f}")
        read = f"{row.sentences:,}" + (f" ({row.tokens:,})" if row.tokens else "")  # 0 tokens: number unknown
        helped, chose = answers(row)
        rows.append(
            (
                line_name(row),
                read,
                spread,
                interval_words(row),
                f"{VERDICT_MARKS[row.verdict].sign} {helped}",
                chose,
            )
        )
    heads = (
        "Variant",
        "Sentences (words) read",
        "Score ± spread",
        "Difference (interval)",
        asked_first(report.rows),
        "Selection helped",
    )
    estimated = _estimates(report.more_labels)
    return [Text(text), Table(heads, rows, (1, 2, 3)), *estimated, *_beside(report.beside), *_further(report.rows)]


def _estimates(lines: Sequence[MoreLabels]) -> list[Part]:
    """Return a table of the estimates of F1 with more labels, and sentences on their basis; [] without estimates."""
    if not lines:
        return []
    cells = [tuple(estimate_cells(line).values()) for line in lines]
    return [Table(tuple(ESTIMATE_HEADS.values()), cells, (4,)), Items([(line.arm, line.words) for line in lines])]


def _beside(lines: Sequence[Reference]) -> list[Part]:
    """Return a table of the scores of other runs on the same test set, which trained nothing; [] if there are none."""
    cells = [(line.about, f"{line.f1:.2f}", line.against_none) for line in lines]
    return [Table(("Without training", "Score", "Difference to none (interval)"), cells, (1, 2))] if cells else []


def _further(rows: Sequence[ArmRow]) -> list[Part]:
    """Return a table of the scores on all test sets, without their mean; [] if there is only one test set."""
    names = [test.test for test in rows[0].also]
    if not names:
        return []
    cells = [(line_name(row), _tested(row), *map(_tested, row.also)) for row in rows]
    baseline = baseline_words(rows)
    text = f"Scores of the same taggers on further test sets, with the difference to {baseline}. Verdicts ignore them."
    heads = ("Variant", "Test set", *names)
    return [Text(text), Table(heads, cells, range(1, len(heads)))]


def _tested(test: ArmRow | FurtherTest) -> str:
    return f"{test.mean:.2f} ({test.delta:+z.2f})"


def _how_sure(report: Report) -> list[Part]:
    text = (
        "Each interval is a 95% confidence interval: a range computed by a method that includes the true difference in"
        " 95 of 100 experiments. It does not predict the result of another experiment, which varies by chance too. The"
        " test of the claim is about one variant; the others are exploratory, and the more of them there are, the "
        "stronger the evidence that each needs. A variant “improves” only if it is better than its baseline and, if it"
        " has a control, better than its control. The control of a selection for pre-training is as much random text. A"
        " variant that trains on the whole domain corpus selects nothing and has no control. Each variant was tested "
        "once; settings were chosen on a separate dev set. If a variant has one selection and one pre-training (a quick"
        " look), the interval does not include how "
        "much these vary. It then cannot show that the selection helped. No interval covers text from other sources."
    )
    if any(row.reference for row in report.rows):
        text += (
            " A reference variant trains nothing. Its verdict only describes the difference and is not corrected for "
            "the other comparisons."
        )
    reasons = [(line_name(row), row.why) for row in report.rows if row.verdict != "baseline"]
    planned = [Text(report.planned, strong=True)] if report.planned else []
    return [*planned, Text(text), Items(reasons), *([Text(report.overlap)] if report.overlap else [])]


def _cost(report: Report) -> list[Part]:
    text = (
        f"Total computing time: {duration(3600 * report.hours)}. Work that variants share is counted for each of them."
    )
    known = any(row.seconds is not None for row in report.rows)  # Results of earlier versions do not have this cost.
    once = {name: f"{head}, once" if name == "machine" else head for name, head in TAKES.items()} if known else {}
    rows = [
        (line_name(row), *(takes(row)[name] for name in once), duration(3600 * row.gpu_hours), rate_words(row))
        for row in report.rows
    ]
    heads = ("Variant", *once.values(), "In all", "Points per further hour (interval)")
    way = [Text(report.cheapest)] if report.cheapest else []
    return [*way, Text(f"{text} {TAKES_ONCE}" if known else text), Table(heads, rows, (1, 2, 3) if known else (1, 2))]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyReport(Reported):
    """Data of a study for its report."""

    result: StudyResult


def study_document(report: StudyReport, cover: Cover) -> Document:
    """Return the content of a study's report: headings, paragraphs, tables and figures."""
    result = report.result
    names = ", ".join(f"“{task.name}”" for task in result.tasks)
    question_asked = f"Does choosing what a program reads make it better at finding entities in {names}?"
    if result.choosing is None or not any(task.tokens for task in result.tasks):
        question_asked = f"Is a program with {result.arm} better at finding entities in {names}?"
    first: list[Part] = []
    second: list[Part] = []
    # There is one answer per question, and a note may follow. If no tagger learnt anything, there is one sentence.
    answers = study_answer(result)
    for number, of in enumerate(asked(result)):
        drawn, cells = _question_parts(result, of)
        first += [Heading(heading(result, of)), *drawn]
        second += [Heading(heading(result, of)), *map(Text, answers[number : number + 1]), *cells]
    second = [
        *second,
        *map(Text, answers[len(asked(result)) :]),
        Heading("What was compared"),
        Text(_study_compared(report)),
        Heading("How sure"),
        *_study_how_sure(result),
        Heading("Data"),
        *_corpora(report.corpora, report.missing),
    ]
    return _document(report, cover, question_asked, sum(result.hours.values()), first=first, second=second)


def _study_compared(report: StudyReport) -> str:
    result = report.result
    claim = f"{result.arm} {result.budget}".strip()
    differ = "what plain text they had read before" if any(task.tokens for task in result.tasks) else "one thing"
    return (
        f"Programs that find entities in text were trained in the same way for {len(result.tasks)} tasks, except for "
        f"{differ}. The claim, named beforehand, is about {claim}. Every program has the settings “{report.preset}”. "
        f"Programs that use an encoder start from {report.encoder}. Everything was repeated {result.replicates} "
        f"{'time' if result.replicates == 1 else 'times'} for each task, because scores vary by chance."
    )


def _question_parts(result: StudyResult, of: Asked) -> tuple[list[Part], list[Part]]:
    """Return two lists of parts for a question: the interval plot, and the table of its values.

    If the question is open, a sentence after the table states which data would settle it.
    """
    rows = forest_rows(result, of)
    shown = [
        Interval(
            name=row.name,
            value=row.delta,
            low=row.interval[0],
            high=row.interval[1],
            colour=ANSWER_COLOURS[row.answer] if row.answer else TASK_COLOUR,
            bold=bool(row.answer),
        )
        for row in rows
        if row.known
    ]
    than = over(result, of)
    drawn = intervals(shown, f"difference to {than} in points (of 100); 0 means no difference")
    words = f"Difference to {than} with its interval on every task, {THESE} and {OTHERS}; the table has the same values"
    f1s = {task.name: f"{task.f1:.2f}" for task in result.tasks}
    cells = [(row.name, "" if row.answer else f1s.get(row.name, ""), row.points, row.answer or "") for row in rows]
    heads = ("Task", "Score (F1)", f"Difference to {than} (interval)", "Answer")
    lacking = question(result, of).lacking
    table: list[Part] = [Table(heads, cells, (1, 2)), *([Text(lacking, strong=True)] if lacking else [])]
    return [Picture(drawn, words)] if drawn else [], table


def _study_how_sure(result: StudyResult) -> list[Part]:
    planned = [Text(result.planned.why, strong=True)] if result.planned else []
    text = (
        "Each interval is a 95% confidence interval: a range computed by a method that includes the true difference in "
        "95 of 100 studies. “These tasks, on average” is about these tasks, with other samples, trainings and test "
        "sentences. “Similar tasks” is about the mean over all tasks of their kind, of which these are a sample. Its "
        "interval is wide with fewer than five tasks, and its answer is given only if it holds on these tasks. One "
        "test, over all tasks together, decides the claim; single tasks are exploratory."
    )
    return [*planned, Text(text)]


def examples(readings: Sequence[TwoReadings]) -> Examples:
    """Return up to three sentences, short ones if possible, that only one of two taggers tagged correctly.

    readings: predictions of both taggers. A is the baseline, B the main variant.
    """
    better = [reading for reading in readings if reading.wrong_a and not reading.wrong_b]
    worse = [reading for reading in readings if reading.wrong_b and not reading.wrong_a]
    more, fewer = (better, worse) if len(better) >= len(worse) else (worse, better)
    second = _short(fewer)[:1]
    picked = _short(more)[: SHOWN - len(second)] + second
    return Examples(
        sentences=len(readings), better=len(better), worse=len(worse), shown=[_example(reading) for reading in picked]
    )


def _short(readings: Sequence[TwoReadings]) -> list[TwoReadings]:
    """Return the readings with those of short sentences first, otherwise in the same order."""
    return sorted(readings, key=lambda reading: len(reading.sentence.tokens) > WORDS)


def _example(reading: TwoReadings) -> Example:
    tokens = reading.sentence.tokens

    def words(entities: Sequence[Entity]) -> str:
        listed = [f"{' '.join(tokens[one.start : one.end])} ({one.type})" for one in entities]
        return ", ".join(listed) or "nothing"

    return Example(
        text=reading.sentence.text or " ".join(tokens),
        place=reading.sentence.place,
        labelled=words(reading.sentence.entities or ()),
        without=words(reading.a),
        having=words(reading.b),
    )
