"""Results of `experiment`, `study` and `halves` runs, and the files that these runs store.

artifacts/leaderboard.csv, leaderboard.md    leaderboard of an experiment, for a spreadsheet and for people
artifacts/study.csv, study.md                table of a study
artifacts/halves.npz                         for each half, its test sentences as rows of the pool
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Literal

import numpy as np

from core.config import Budget
from core.files import read_back
from core.results import Evaluation, IntArray
from core.runs import result
from core.runs.context import RunContext
from core.runs.run import Run
from core.runs.store import RunStore
from core.shown import duration
from core.stats.bootstrap import Difference
from core.stats.multipliers import Worth
from core.stats.pooled import Estimate
from core.stats.sequential import Ending
from core.stats.verdict import Answer, Described, Unlearnt, points
from core.stats.verdict import Word as Verdict
from core.stats.welch import Welch
from core.tagging import evaluations
from core.tagging.evaluations import TooLong, TrainInTest

# "not tested" means that the arm changed too few of the requested labels, or that it is a reference variant and no
# tagger learnt anything.
Word = Verdict | Described | Literal["not tested", "baseline", "control"]
Interval = tuple[float, float]
EXPLORATORY = ", exploratory"  # suffix of the answers on an arm that the claim is not about
_TESTED = "halves.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherTest:
    """An arm's F1 on a further test set, in percent.

    test: name of the corpus. micro_f1: one value per seed. sd: None for one seed. delta, interval: difference to its
    `baseline` in points, with the 95% interval.
    """

    test: str
    micro_f1: Sequence[float]
    mean: float
    sd: float | None
    delta: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRow:
    """A row of the leaderboard: an arm at a budget. F1 in percent, differences in points of F1.

    A reference variant has one F1 (one per replicate if halves are swapped), no sd and no dev F1. Its `finetune_runs`
    are the runs that found its entities.

    budget: "" if the arm selects nothing.
    about: sentence on the arm.
    sentences, tokens: size of its text for MLM, mean over replicates; tokens is 0 if unknown.
    micro_f1, dev_f1: F1 on the first test set and on dev, one value per seed. With several `taggers` per replicate, one
        value per replicate: test F1 of their pooled counts, and their mean dev F1.
    mean, sd: mean and standard deviation of `micro_f1`; sd is None for one seed.
    dev_mean: mean of `dev_f1`.
    source: fingerprint of the text behind its word vectors or frozen states.
    reference: for a reference variant, the kind of run that found its entities; "" for all others.
    select_run, pretrain_run, label_runs, finetune_run: runs of the first replicate.
    finetune_runs: one run per replicate.
    halves_runs: if halves are swapped, the runs that split the labelled sentences, one per replicate.
    verdict, why: the verdict in a word, and its reason.
    helped, chose: answers of the comparisons with its baseline and with its control. None if there is no such
        comparison, or if a single selection and pre-training cannot give an answer.
    exploratory: True if the arm is judged, but the claim is about another arm.
    delta, interval: difference to its `baseline`, at `level` (None for the baseline).
    delta_random, interval_random: difference to its control, if it has one.
    estimate, estimate_random: the same differences, with the parts of their variance.
    wins, ties, losses: numbers of seeds that beat, equal, and lose to the same seed of `none`.
    seeds_needed: sentence on the number of seeds that would settle the difference.
    welch: Welch's test, for an arm that borrows labels.
    hours, gpu_hours: hours of computing by kind of run, with shared work counted for each arm, and their sum.
    f1_per_hour: `delta` per hour of the runs that `none` does not need.
    also: scores on further test sets.
    collapsed: seeds whose tagger learnt nothing.
    unseen_f1: F1 per seed without test sentences that are also in the training set; () if there are no such sentences.
    changed, wanted: numbers of mentions that rebuilding L_C changed and was asked to change, means over replicates.
    low_share, mentions: for a training set drawn by CEIM, the share of low-CEIM mentions and the number of measured
        mentions, means over replicates.
    seconds, labels, downloads: cost of using the variant once (`price.py`); None in results of earlier versions.
    person_seconds: time that a person must work for this variant, in addition to the labels that all variants share.
    """

    arm: str
    budget: str
    about: str = ""
    sentences: int
    tokens: int = 0
    micro_f1: Sequence[float]
    dev_f1: Sequence[float]
    taggers: int = 1
    mean: float
    dev_mean: float | None
    sd: float | None
    source: str | None
    reference: str = ""
    select_run: str | None
    pretrain_run: str | None
    label_runs: Sequence[str]
    finetune_run: str
    finetune_runs: Sequence[str] = ()
    halves_runs: Sequence[str] = ()
    verdict: Word
    helped: Answer | None = None
    chose: Answer | None = None
    exploratory: bool = False
    why: str
    delta: float
    interval: Interval
    level: float | None
    delta_random: float | None
    interval_random: Interval | None
    estimate: Estimate | None = None
    estimate_random: Estimate | None = None
    wins: int
    ties: int
    losses: int
    seeds_needed: str
    welch: Welch | None = None
    hours: Mapping[str, float]
    gpu_hours: float
    f1_per_hour: float | None
    also: Sequence[FurtherTest] = ()
    collapsed: Sequence[int] = ()
    unseen_f1: Sequence[float] = ()
    changed: int = 0
    wanted: int = 0
    low_share: float | None = None
    mentions: int = 0
    seconds: float | None = None
    labels: int | None = None
    downloads: str | None = None
    person_seconds: float = 0.0

    @property
    def changed_words(self) -> str:
        """Numbers of changed and requested mentions, in words; "" if no change was requested."""
        return f"{self.changed:,} of {self.wanted:,} changed" if self.wanted else ""

    @property
    def drawn_words(self) -> str:
        """Share of low-CEIM mentions, in words; "" for a training set that was not drawn by CEIM."""
        return "" if self.low_share is None else f"{self.low_share:.1%} of {self.mentions:,} mentions have low CEIM"

    @property
    def n_taggers(self) -> int:
        """Number of taggers of the variant."""
        return 0 if self.reference else len(self.micro_f1) * self.taggers

    @property
    def finetunes(self) -> Sequence[str]:
        """All `finetune` runs, one per replicate; for a reference variant, the runs that tag the test set."""
        return self.finetune_runs or (self.finetune_run,)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """An arm's F1 on the test set after training on a part of L_C, percent, one value per seed.

    draw: number of the random draw of the part.
    """

    arm: str
    budget: str
    train_sentences: int
    draw: int
    micro_f1: Sequence[float]
    finetune_run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTest:
    """The planned test of the claim: the arm named beforehand, against its control, or `none` if it has no control.

    against: the control, or `none`.
    looks: numbers of replicates at which the experiment may end.
    replicates: number of replicates at which it ended.
    ended: reason for the end. shown, worse: p is at most `bound`. futile: `effect` can hardly be shown any more.
        complete: the last analysis found no difference.
    p: two-sided p-value.
    bound: significance level at this analysis.
    effect: gain to detect, points.
    chance: probability that the last analysis shows `effect`, if it is real.
    why: the outcome in words.
    adjusted: interval of the difference in points, corrected for several analyses (a repeated confidence interval,
        Jennison and Turnbull 1989); None at the last analysis, and if the variance is unknown.
    """

    arm: str
    budget: str
    against: str
    looks: Sequence[int]
    replicates: int
    ended: Ending
    p: float
    bound: float
    effect: float
    chance: float
    why: str
    adjusted: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Multipliers:
    """Amount of random text, and of labels, that is worth as much as the claim's selection (SOURCES.md, Multipliers).

    text: tokens that `random` needs for the claim's score. labels: labelled sentences that `random` needs for the
    score that the claim has with `labels.size` sentences. labels_none: labelled sentences that `none` needs for the
    same score; this is the worth of pre-training and selection together. A field is None if it was not measured,
    because there are fewer than two replicates or too little text in D_C.
    """

    arm: str
    budget: str
    text: Worth | None
    labels: Worth | None
    labels_none: Worth | None

    @property
    def words(self) -> str:
        """One or two sentences on the worth of the selection, or on the reason why it was not measured."""
        name = f"{self.arm} {self.budget}".strip()
        worths = [words for words in (_text(self.text), _labels(self.labels)) if words]
        if not worths:
            return (
                f"The worth of the selection by {name} was not measured: this needs at least two replicates, and "
                "enough text in the domain corpus for larger random selections."
            )
        none = _labels(self.labels_none)
        together = f" Pre-training and selection together were worth {none}." if none else ""
        return f"Selection by {name} was worth {', and '.join(worths)}.{together}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierAnalysis:
    """A finished experiment or study on the same test set.

    claim: variant and budget of its claim. replicates: number of seeds or replicates when it ended.
    """

    run: str
    claim: str
    replicates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """Chance, 0 to 1, that the plan detects a true gain of `effect` points; computed before the first run."""

    effect: float
    chance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreLabels:
    """An estimate of the test F1 of `none` with `more` further labelled sentences, percent. No tagger trained on these.

    sentences: size of L_C. f1, gain: the estimates; None if nothing could be estimated, for the reason `why`.
    interval, gain_interval: their 95% intervals. estimate: the gain with the parts of its variance.
    runs: {size of a part of L_C: its `finetune` runs, one per seed}. seeds: number of seeds. hours: computing time.
    person_seconds: time that a person needs to label `more` sentences. measured: True if the time per sentence was
    measured on the page Label; False if it is assumed.
    """

    arm: str
    more: int
    sentences: int
    f1: float | None = None
    interval: Interval | None = None
    gain: float | None = None
    gain_interval: Interval | None = None
    estimate: Estimate | None = None
    why: str = ""
    runs: Mapping[int, Sequence[str]]
    seeds: int
    hours: float
    person_seconds: float
    measured: bool

    @property
    def words(self) -> str:
        """The estimate and its basis in words, or the reason why there is none."""
        if self.f1 is None or self.interval is None or self.gain is None or self.gain_interval is None:
            return f"Not estimated: {self.why}."
        each = f"{self.person_seconds / self.more:.0f} seconds per sentence"
        basis = "the median of your answers on Label" if self.measured else "which is assumed"
        sizes = ", ".join(f"{size:,}" for size in self.runs)
        return (
            f"An estimate: {self.f1:.1f} [{self.interval[0]:.1f}, {self.interval[1]:.1f}] with "
            f"{self.sentences + self.more:,} labelled sentences, {points(self.gain, self.gain_interval)} against none. "
            f"Labelling takes {duration(self.person_seconds)} at {each}, {basis}. No tagger was trained on further "
            f"labels: the estimate extends power laws of taggers on {sizes} and {self.sentences:,} sentences. "
            "It holds if the further sentences are like these."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """F1 of a run that could be a reference variant, percent, and its difference to `none` with a 95% interval.

    run: the run that found the entities. about: description of the run.
    """

    run: str
    about: str
    f1: float
    difference: Difference

    @property
    def against_none(self) -> str:
        """The difference and its interval, in words."""
        return points(self.difference.delta, (self.difference.lo, self.difference.hi))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheapest:
    """The variant of an experiment that gains most points per minute (`cheapest.py`). words: the result in sentences.

    line: the variant that is the cheapest in machine time and costs a person no more per point than any other variant;
        "" if the intervals show no such variant.
    by_machine, by_person: if `line` is "", the cheapest variants in machine time and in a person's time; "" if unknown.
    times: factor for the number of replicates that would find the cheapest variant; 0 if a variant is named, or if no
        feasible number would find one.
    """

    line: str
    words: str
    by_machine: str = ""
    by_person: str = ""
    times: int = 0

    @property
    def lines(self) -> list[str]:
        """Names of the cheapest variants."""
        return [name for name in (self.line, self.by_machine, self.by_person) if name]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentResult:
    """Result of an `experiment` run.

    leaderboard: rows sorted by dev F1, the only score that may decide between arms. Reference variants come last,
        because they have no dev F1.
    curve: F1 by size of L_C; empty if no sizes were given.
    hours: computing hours by kind of run, each run counted once.
    planned: the planned test; None without a claim, or if a single selection and pre-training cannot test it.
    train_in_test: training sentences that also occur in dev or test.
    multipliers: worth of the selection; None unless it was asked for.
    too_long: entities that are too long for the span taggers among the arms; None if there are none.
    foretold: power of the plan; None without a claim, and with a single seed.
    earlier: earlier finished analyses of the same test set.
    cheapest: the variant that gains most per minute; None if nothing was compared.
    more_labels: estimates of the score with more labels.
    """

    leaderboard: Sequence[ArmRow]
    curve: Sequence[CurvePoint]
    hours: Mapping[str, float]
    planned: PlannedTest | None = None
    train_in_test: TrainInTest | None = None
    multipliers: Multipliers | None = None
    too_long: TooLong | None = None
    foretold: Foretold | None = None
    earlier: Sequence[EarlierAnalysis] = ()
    cheapest: Cheapest | None = None
    more_labels: Sequence[MoreLabels] = ()

    @property
    def claim_words(self) -> list[str]:
        """Sentences on the planned test and on the worth of the selection; [] if the experiment has neither."""
        planned, worth = self.planned, self.multipliers
        return [*([planned.why] if planned else []), *([worth.words] if worth else [])]

    @property
    def ceiling_words(self) -> str:
        """Sentence on entities that are too long for the span taggers among the arms; "" if there are none."""
        return self.too_long.words if self.too_long else ""

    @property
    def overlap_words(self) -> str:
        """Sentences on training sentences in dev or test, and on every arm's F1 without them; "" if there are none."""
        if not self.train_in_test:
            return ""
        scores = [
            f"{row.arm} {row.budget}".rstrip() + f" {mean(row.unseen_f1):.1f} (with them {row.mean:.1f})"
            for row in self.leaderboard
            if row.unseen_f1
        ]
        without = f" Test F1 without the shared sentences: {', '.join(scores)}." if scores else ""
        return f"{self.train_in_test.words}{without}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """Fingerprints of the corpora of a replicate that trains on one half.

    task: text of the half. train, dev: training and dev set from the half. test: the other half. sentences: {role:
    number of sentences}.
    """

    task: str
    train: str
    dev: str
    test: str
    sentences: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HalvesResult:
    """Result of a `halves` run.

    pool: fingerprint of the corpus of all labelled sentences. sentences: number of these sentences. halves: corpora for
    training on the first and on the second half.
    """

    pool: str
    sentences: int
    halves: Sequence[Half]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """The claim on one task of a study. F1 in percent, differences in points of F1.

    run: the task's `experiment` run.
    sentences: number of test sentences.
    tokens: size of the claim's text for MLM, mean over replicates.
    f1, none_f1, control_f1: test F1 of the claim, `none` and the control, means over replicates.
    reading, choosing: differences to `none` and to the control, with 95% intervals.
    learnt: False if no tagger of any arm learnt anything.
    too_few: number of changed labels in words, if the claim could change too few to be tested; else "".
    unlearnt, taggers: numbers of taggers of the claim, `none` and the control: those that learnt nothing, and all.
    """

    name: str
    run: str
    sentences: int
    tokens: int
    f1: float
    none_f1: float
    control_f1: float | None
    reading: Estimate
    reading_interval: Interval
    choosing: Estimate | None
    choosing_interval: Interval | None
    learnt: bool = True
    too_few: str = ""
    unlearnt: int = 0
    taggers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """A mean difference over tasks, in points, with its 95% interval, two-sided p, degrees of freedom, and answer.

    answer: None if no tagger learnt anything.
    """

    delta: float
    interval: Interval
    p: float
    dof: float
    answer: Answer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Answers of a study to one question, such as "Did the selection help?".

    these: answer for the mean over the study's tasks. others: answer for similar tasks. between: standard deviation of
    the true difference over tasks, points. `others` and `between` are None for a single task.
    lacking: sentence on the data that would settle the question; "" if it is settled.
    """

    these: Conclusion
    others: Conclusion | None
    between: float | None
    lacking: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """Result of a `study` run.

    reading: the claim against `none`. choosing: the claim against its control; None if it has no control.
    control: name of the control, or "". planned: the planned test over all tasks; None if there is a single replicate,
    if a task has no difference to the control, or if no tagger learnt anything.
    hours: hours of computing by kind of run, each run counted once. foretold: power of the plan; None for a single
    replicate. earlier: earlier finished analyses of the same test sets.
    """

    arm: str
    budget: str
    tasks: Sequence[TaskRow]
    reading: Question
    choosing: Question | None
    planned: PlannedTest | None
    replicates: int
    hours: Mapping[str, float]
    control: str = ""
    foretold: Foretold | None = None
    earlier: Sequence[EarlierAnalysis] = ()


SWAPPED = (
    "Halves were swapped: for every second replicate, the labelled sentences were pooled and split into new halves. "
    "Each half was the test set of taggers trained on the other. So replicates differ in labels and test sentences. "
    "Variants are compared within each replicate, and the intervals include the random draw of labels."
)


def swapped(rows: Sequence[ArmRow]) -> bool:
    """Return True if halves were swapped, so that replicates differ in training and test sentences."""
    return any(row.halves_runs for row in rows)


def split_name(arm: str) -> tuple[str, str]:
    """Split a variant's arm into its name and its encoder (option `axis`); "" for the experiment's own encoder."""
    name, _, encoder = arm.partition(" encoder:")
    return name, encoder


def baseline(row: ArmRow, rows: Sequence[ArmRow]) -> ArmRow | None:
    """Return the baseline that a row's `delta` is measured against; None for the experiment's own `none`.

    The baseline is `none` from the same encoder, or the random set of the same size.
    """
    name, encoder = split_name(row.arm)
    head, _, value = name.partition(":")
    if name == "none":
        return next((other for other in rows if encoder and other.arm == "none"), None)
    same = {split_name(other.arm)[0]: other for other in rows if split_name(other.arm)[1] == encoder}
    if head.startswith("base+"):
        return same.get(f"base:{value}")
    bases = [other for name, other in same.items() if name.startswith("base:")]
    if head != "low-share":
        return same.get("none")

    # A `low-share` arm does not store which random set is its baseline. Its F1s minus its stored gains are the
    # baseline's F1s, so take the set whose F1s are closest to them.
    def gap(base: ArmRow) -> float:
        further = zip(row.also, base.also, strict=False)
        gaps = [abs(test.mean - test.delta - other.mean) for test, other in further]
        return sum(gaps, abs(row.mean - row.delta - base.mean))

    return min(bases, key=gap, default=None)


def compared_with(row: ArmRow, rows: Sequence[ArmRow]) -> list[ArmRow]:
    """Return the variants that `row` is compared with: its baseline, and the controls from the same encoder."""
    base, encoder = baseline(row, rows), split_name(row.arm)[1]
    controls = [other for other in rows if other.verdict == "control" and split_name(other.arm)[1] == encoder]
    same_budget = [other for other in controls if other.budget == row.budget] or controls
    base = base or next((other for other in rows if other.arm == "none"), None)
    lines = [base] if base is not None and base is not row else []
    return [*lines, *(other for other in same_budget if other not in lines and row.delta_random is not None)]


def baseline_words(rows: Sequence[ArmRow]) -> str:
    """Name the baseline, or baselines, of a leaderboard's differences."""
    names = [split_name(base.arm)[0] for row in rows if (base := baseline(row, rows))]
    sets = sorted({name for name in names if name != "none"})
    return f"none (sets of one size: {', '.join(sets)})" if sets else "none"


def tables(row: ArmRow, store: RunStore) -> list[Evaluation]:
    """Read the evaluations of a variant on the first test set, one per seed; with several taggers, one per replicate.

    If halves are swapped, every evaluation has a row per sentence of the pool.
    Errors: CorpusError, RunError if a run or its files are gone.
    """
    split = row.halves_runs or [""] * len(row.finetunes)
    return [
        one
        for finetune, halves in zip(row.finetunes, split, strict=True)
        for one in evaluations_of_replicate(store.get(finetune), store.get(halves) if halves else None, row.taggers)
    ]


def of_most_text(rows: Sequence[ArmRow]) -> list[ArmRow]:
    """Return the rows. If an arm uses several sizes of its source, keep only the variant with the most tokens."""
    most: dict[str, int] = {}
    for row in rows:
        most[row.arm] = max(source_tokens(row), most.get(row.arm, 0))
    return [row for row in rows if source_tokens(row) == most[row.arm] or not row.source]


def source_tokens(row: ArmRow) -> int:
    """Return the number of tokens that a variant uses from its source if there are several sizes, else 0."""
    return int(Budget.parse(row.budget).value) if row.source and row.budget else 0


def nothing_learnt(rows: Sequence[ArmRow]) -> bool:
    """Return True if no tagger of any arm learnt anything, so that nothing can be compared."""
    return bool(rows) and all(len(row.collapsed) == row.n_taggers for row in rows)


def read(run: Run) -> ExperimentResult:
    """Read the result of a finished experiment. Errors: RunError."""
    found = result.read(run, ExperimentResult)
    rows = [
        replace(row, why=without_number(row.why), seeds_needed=without_number(row.seeds_needed))
        for row in found.leaderboard
    ]
    return replace(found, leaderboard=rows)


_NUMBER = re.compile(
    r"at this spread \(sd ([\d.]+)\) about [\d,]+ (\w+) a variant would settle a difference of ([\d.]+)\."
)


def without_number(text: str) -> str:
    """Remove the number of repetitions from a stored sentence, because the verdict computes it from another spread."""
    return _NUMBER.sub(
        r"the \2 so far, which differ by \1 points (sd), are too few to settle a difference of \3.", text
    )


def file(run: Run, suffix: str) -> Path:
    """Return the path of the table of an experiment or a study. suffix: `csv` or `md`."""
    name = "study" if run.manifest.kind == "study" else "leaderboard"
    return run.artifacts / f"{name}.{suffix}"


def write_halves(context: RunContext, tested: Sequence[IntArray]) -> None:
    """Write the rows of the pool that each half is tested on, in the order of its test corpus."""
    path = context.run.artifacts / _TESTED
    np.savez_compressed(path, *tested)
    context.artifact(path.name, path)


def by_replicate(tables: Sequence[Evaluation], taggers: int) -> list[Evaluation]:
    """Pool the counts of every `taggers` successive taggers, which belong to one replicate.

    A run without taggers has a single table. Count it `taggers` times, because the gold spans of the other variants are
    counted `taggers` times too.
    """
    tables = list(tables) * taggers if len(tables) == 1 else tables
    return [Evaluation.pooled(tables[first : first + taggers]) for first in range(0, len(tables), taggers)]


def evaluations_of_replicate(finetune: Run, halves: Run | None, taggers: int = 1) -> list[Evaluation]:
    """Read the evaluations of a run's taggers on the first test set, one per replicate.

    halves: run that split the labelled sentences; None if halves are not swapped. If halves are swapped, an evaluation
    has a row for every sentence of the pool and marks the tested sentences. taggers: number per replicate.
    """
    plain = by_replicate(evaluations.read(finetune), taggers)
    if halves is None:
        return plain
    split = result.read(halves, HalvesResult)
    side = [half.test for half in split.halves].index(finetune.manifest.config["test"][0])
    with read_back(path := halves.artifacts / _TESTED), np.load(path, allow_pickle=False) as arrays:
        rows = arrays[f"arr_{side}"]
    return [one.among(rows, split.sentences) for one in plain]


def no_task_learnt(tasks: Sequence[TaskRow]) -> bool:
    """Return True if no tagger of any task learnt anything, so that nothing can be compared."""
    return not any(task.learnt for task in tasks)


def unlearnt_taggers(tasks: Sequence[TaskRow]) -> Unlearnt:
    """Count the taggers behind the claim that learnt nothing, over all tasks."""
    return Unlearnt(taggers=sum(task.unlearnt for task in tasks), of=sum(task.taggers for task in tasks))


def _text(worth: Worth | None) -> str:
    if worth is None:
        return ""
    if worth.unknown:
        return f"an unknown amount of random text: {worth.replicates} replicates are too few to estimate it"
    if worth.below:
        return "less than 1 times as much random text: it did not help"
    if worth.beyond:
        return f"more than {worth.most:.2g} times as much random text (beyond what was run)"
    lo = "less than 1" if worth.lo is None else f"{worth.lo:.2g}"
    hi = f"more than {worth.most:.2g}" if worth.hi is None else f"{worth.hi:.2g}"
    about = f"more than {worth.most:.2g}" if worth.times >= worth.most else f"about {worth.times:.2g}"
    estimate = "less than 1" if worth.times <= 1 else about
    return f"{estimate} times as much random text (95% interval {lo} to {hi})"


def _labels(worth: Worth | None) -> str:
    if worth is None:
        return ""
    most, what = f"more than {_more(worth, worth.most)}", f"more labelled sentences than {worth.size:,.0f}"
    if worth.unknown:
        return f"an unknown number of {what}: {worth.replicates} replicates are too few to estimate it"
    if worth.below:
        return f"no {what} (less than 0)"
    if worth.beyond:
        return f"{most} {what} (beyond what was run)"
    lo = "less than 0" if worth.lo is None else _more(worth, worth.lo)
    hi = most if worth.hi is None else _more(worth, worth.hi)
    estimate = "less than 0" if worth.times <= 1 else most if worth.times >= worth.most else _more(worth, worth.times)
    return f"{estimate} {what} (95% interval {lo} to {hi})"


def _more(worth: Worth, times: float) -> str:
    """Return the number of labelled sentences that `times` times as many labels add."""
    return f"{worth.size * (times - 1):,.0f}"
