"""Results of `experiment`, `study` and `halves` runs, and the files that these runs store.

artifacts/leaderboard.csv, leaderboard.md    leaderboard of an experiment, for spreadsheets (csv) and for reading (md)
artifacts/study.csv, study.md                table of a study
artifacts/halves.npz                         for each half, the rows of the pool that are its test sentences
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Literal

import numpy as np

from core.config import Budget
from core.errors import ConfigError
from core.experiment import arms
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

# "not tested": the arm changed too few of the requested labels, or it is a reference variant and no tagger learnt
# anything.
Word = Verdict | Described | Literal["not tested", "baseline", "control"]
Interval = tuple[float, float]
EXPLORATORY = ", exploratory"  # added to the answers about an arm if the claim is about another arm
_TESTED = "halves.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherTest:
    """An arm's F1 on a further test set, in percent.

    test: name of the corpus. micro_f1: one value per seed. sd: standard deviation of `micro_f1`; None for one seed.
    delta, interval: difference to the arm's `baseline` in points, and its 95% interval.
    """

    test: str
    micro_f1: Sequence[float]
    mean: float
    sd: float | None
    delta: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRow:
    """A row of the leaderboard: an arm at a budget. F1 is in percent; differences are in points of F1.

    A reference variant has one F1 (one per replicate if halves are swapped), no sd and no dev F1. Its `finetune_runs`
    are the runs that found its entities.

    budget: budget of the variant; "" if the arm selects nothing.
    about: sentence that describes the arm.
    sentences, tokens: size of its text for MLM, mean over replicates; tokens is 0 if unknown.
    micro_f1, dev_f1: F1 on the first test set and on the dev set, one value per seed. With several `taggers` per
        replicate, one value per replicate: test F1 of their pooled counts, and the mean of their dev F1.
    mean, sd: mean and standard deviation of `micro_f1`; sd is None for one seed.
    dev_mean: mean of `dev_f1`.
    source: fingerprint of the corpus for its word vectors or frozen states.
    reference: for a reference variant, the kind of run that found its entities; "" for all others.
    select_run, pretrain_run, label_runs, finetune_run: runs of the first replicate.
    finetune_runs: one run per replicate.
    halves_runs: if halves are swapped, the runs that split the labelled sentences, one per replicate.
    verdict, why: the verdict in a few words, and its reason.
    helped, chose: is the arm better than its baseline (`helped`), and than its control (`chose`)? None if there is no
        control, or if a single selection and pre-training cannot answer the question.
    exploratory: True if the arm gets a verdict, but the claim is about another arm.
    delta, interval, level: difference to its `baseline`, its confidence interval, and the level of the interval. The
        level is None for the baseline itself.
    delta_random, interval_random: difference to its control, and the interval; None without a control.
    estimate, estimate_random: these two differences with the components of their variance.
    wins, ties, losses: numbers of seeds with a higher, equal and lower F1 than the same seed of `none`.
    seeds_needed: sentence on the number of seeds that would settle the difference.
    welch: Welch's test, for an arm that adds labels of another corpus.
    hours: hours of computing by kind of run. Runs that several arms share are counted for each arm.
    gpu_hours: sum of `hours`.
    f1_per_hour: `delta` per hour of the runs that `none` does not need.
    also: scores on further test sets.
    collapsed: seeds whose tagger learnt nothing.
    unseen_f1: F1 per seed without test sentences that are also in the training set; () if there are no such sentences.
    changed, wanted: number of mentions that rebuilding L_C changed, and number that its options requested; means over
        replicates.
    low_share, mentions: for a training set drawn by CEIM, the share of mentions with low CEIM and the number of
        mentions with a CEIM; means over replicates.
    seconds, labels, downloads: cost of using the variant once (`price.py`); None in results of earlier versions.
    person_seconds: time that a person must work for this variant, in addition to the labels that all variants use.
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
        """Number of taggers that were trained for the variant; 0 for a reference variant."""
        return 0 if self.reference else len(self.micro_f1) * self.taggers

    @property
    def finetunes(self) -> Sequence[str]:
        """All `finetune` runs, one per replicate. For a reference variant, the runs that tag the test set."""
        return self.finetune_runs or (self.finetune_run,)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """Test F1 of a variant trained on a random part of L_C.

    train_sentences: number of sentences in the part. draw: number of the part among parts of this size.
    micro_f1: F1 in percent, one value per seed.
    """

    arm: str
    budget: str
    train_sentences: int
    draw: int
    micro_f1: Sequence[float]
    finetune_run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTest:
    """The planned test of the claim: is the claim's variant better than its control, or than `none` without a control?

    arm, budget: the claim's variant.
    against: name of the control, or `none`.
    looks: numbers of replicates after which the experiment may end.
    replicates: number of replicates after which it ended.
    ended: reason for the end. shown, worse: p is at most `bound`. futile: `effect` is unlikely to be shown by further
        replicates. complete: the last analysis found no difference.
    p: two-sided p-value.
    bound: significance level at this analysis.
    effect: gain to detect, in points.
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
    """Amounts of random text and of labels that the claim's selection replaces (SOURCES.md, Multipliers).

    text: number of tokens that `random` needs to reach the claim's score.
    labels: number of labelled sentences that `random` needs to reach the score of the claim on `labels.size` sentences.
    labels_none: number of labelled sentences that `none` needs to reach the same score. This is the worth of
        pre-training and selection together.

    A field is None if it was not measured, because there are fewer than two replicates or D_C has too little text.
    """

    arm: str
    budget: str
    text: Worth | None
    labels: Worth | None
    labels_none: Worth | None

    @property
    def words(self) -> str:
        """One or two sentences that state the worth of the selection, or the reason why it was not measured."""
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
    """An earlier experiment or study on the same test set.

    run: id of its run. claim: variant and budget of its claim. replicates: number of seeds or replicates when it ended.
    """

    run: str
    claim: str
    replicates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """Power of a plan, forecast before the first run.

    chance: probability that the plan detects a true gain of `effect` points.
    """

    effect: float
    chance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreLabels:
    """Estimated test F1 of `none` with `more` further labelled sentences. No tagger was trained on further sentences.

    sentences: number of sentences in L_C.
    f1, gain: estimated F1 in percent, and gain in points; None if no estimate was possible, for the reason `why`.
    interval, gain_interval: 95% intervals of `f1` and `gain`.
    estimate: the gain with the components of its variance.
    runs: {size of a part of L_C: `finetune` runs on parts of this size, one per seed}.
    seeds: number of seeds. hours: computing time.
    person_seconds: time that a person needs to label `more` sentences.
    measured: True if the time per sentence was measured on the page Label; False if it is assumed.
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
        basis = "your median time on the page Label" if self.measured else "which is assumed"
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
    """Score of a run outside the experiment that could be a reference variant.

    run: id of the run. about: description of the run. f1: F1 in percent. difference: difference to `none`, with a 95%
    interval.
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
    """The variant of an experiment that gains most points of F1 per minute (`cheapest.py`).

    line: name of the variant that is the cheapest in machine time and costs a person no more per point than any other
        variant; "" if the intervals show no such variant.
    words: the result in sentences.
    by_machine, by_person: if `line` is "", the cheapest variants in machine time and in a person's time; "" if unknown.
    times: factor by which replicates must be increased to find the cheapest variant; 0 if a variant is named, or if no
        feasible number would be enough.
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

    leaderboard: rows sorted by dev F1, because users must not choose a variant by its test F1. Reference variants come
        last, because they have no dev F1.
    curve: F1 by size of the training set; empty without the option `train_sizes`.
    hours: computing hours by kind of run. Each run is counted once.
    planned: the planned test; None without a claim, or if a single selection and pre-training cannot test the claim.
    train_in_test: training sentences that also occur in dev or test set.
    multipliers: worth of the selection; None without the option `multipliers`.
    too_long: entities that are too long for the span taggers of the experiment; None if there are none.
    foretold: power of the plan; None without a claim, and with a single seed.
    earlier: earlier analyses of the same test set.
    cheapest: the variant that gains most points of F1 per minute; None if nothing was compared.
    more_labels: estimates of F1 with more labels.
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
        """Sentences that state the outcome of the planned test and the worth of the selection; [] without both."""
        planned, worth = self.planned, self.multipliers
        return [*([planned.why] if planned else []), *([worth.words] if worth else [])]

    @property
    def ceiling_words(self) -> str:
        """Sentence that counts the entities that are too long for the span taggers; "" if there are none."""
        return self.too_long.words if self.too_long else ""

    @property
    def overlap_words(self) -> str:
        """Sentences on training sentences in the dev or test set, and on F1 without them; "" if there are none."""
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
    """Fingerprints of the corpora of a replicate that trains on one half of the labelled sentences.

    task: text of this half. train, dev: training and dev set, drawn from this half. test: the other half.
    sentences: {"task", "train", "dev" or "test": number of sentences}.
    """

    task: str
    train: str
    dev: str
    test: str
    sentences: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HalvesResult:
    """Result of a `halves` run.

    pool: fingerprint of the corpus with all labelled sentences. sentences: number of sentences in the pool.
    halves: corpora to train on the first half, and to train on the second half.
    """

    pool: str
    sentences: int
    halves: Sequence[Half]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """Scores of the claim on one task of a study. F1 is in percent; differences are in points of F1.

    run: id of the task's `experiment` run.
    sentences: number of test sentences.
    tokens: size of the claim's text for MLM, mean over replicates.
    f1, none_f1, control_f1: test F1 of the claim, `none` and the control, means over replicates.
    reading, choosing: differences to `none` and to the control, with 95% intervals.
    learnt: False if no tagger of any arm learnt anything.
    too_few: number of changed mentions, in words, if the claim changed too few to be tested; else "".
    unlearnt: number of taggers of the claim, `none` and the control that learnt nothing.
    taggers: number of all taggers of the claim, `none` and the control.
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
    """Mean difference over the tasks of a study.

    delta, interval: the difference in points, and its 95% interval. p: two-sided p-value. dof: degrees of freedom.
    answer: does the difference show a gain? None if no tagger learnt anything.
    """

    delta: float
    interval: Interval
    p: float
    dof: float
    answer: Answer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Answers of a study to one question, such as "Did the selection help?".

    these: answer for the mean over the study's tasks. others: answer for similar tasks; None for a single task.
    between: standard deviation of the true difference over tasks, in points; None for a single task.
    lacking: sentence on the data that would settle the question; "" if the question is settled.
    """

    these: Conclusion
    others: Conclusion | None
    between: float | None
    lacking: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """Result of a `study` run.

    arm, budget: the claim's variant.
    reading: comparison of the claim with `none`.
    choosing: comparison of the claim with its control; None if it has no control.
    planned: the planned test over all tasks; None for a single replicate, if a task has no difference to the control,
        or if no tagger learnt anything.
    hours: hours of computing by kind of run. Each run is counted once.
    control: name of the control; "" if there is none.
    foretold: power of the plan; None for a single replicate.
    earlier: earlier analyses of the same test sets.
    swapped: True if halves were swapped, so that replicates come in pairs.
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
    swapped: bool = False


SWAPPED = (
    "Halves were swapped: for every second replicate, the labelled sentences were pooled and split into new halves. "
    "Each half was the test set of taggers trained on the other. So replicates differ in labels and test sentences. "
    "Variants are compared within each replicate, and the intervals include the random draw of labels."
)


def swapped(rows: Sequence[ArmRow]) -> bool:
    """Return True if halves were swapped, so that replicates differ in training and test sentences."""
    return any(row.halves_runs for row in rows)


def split_name(arm: str) -> tuple[str, str]:
    """Split an arm's name into (name without encoder, encoder of the option `axis`).

    The encoder is "" if the arm uses the experiment's own encoder.
    """
    name, _, encoder = arm.partition(" encoder:")
    return name, encoder


def baseline(row: ArmRow, rows: Sequence[ArmRow]) -> ArmRow | None:
    """Return the baseline to which a row's `delta` is the difference; None for `none` with the experiment's encoder.

    The baseline is `none` with the same encoder, or the random training set of the same size.
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

    # The row of a `low-share` arm does not store which random set is its baseline. Its scores minus its stored gains
    # are the scores of the baseline. Return the random set whose scores are closest to these.
    def gap(base: ArmRow) -> float:
        further = zip(row.also, base.also, strict=False)
        gaps = [abs(test.mean - test.delta - other.mean) for test, other in further]
        return sum(gaps, abs(row.mean - row.delta - base.mean))

    return min(bases, key=gap, default=None)


def compared_with(row: ArmRow, rows: Sequence[ArmRow]) -> list[ArmRow]:
    """Return the variants with which `row` is compared: its baseline, and its control if it has one."""
    base = baseline(row, rows) or next((other for other in rows if other.arm == "none"), None)
    lines = [base] if base is not None and base is not row else []
    control = _control(row, rows) if row.delta_random is not None else None
    return [*lines, *([control] if control is not None and control not in lines else [])]


def _control(row: ArmRow, rows: Sequence[ArmRow]) -> ArmRow | None:
    """Return the row of the control of `row`; None if it has none, or if this version does not know the arm."""
    by_cell: dict[arms.Cell, ArmRow] = {}
    own = None
    for other in rows:
        name, encoder = split_name(other.arm)
        with suppress(ConfigError):
            cell = arms.Cell(arm=arms.under(encoder, arms.find(name)), budget=other.budget)
            by_cell[cell] = other
            own = cell if other is row else own
    control = arms.control(own, list(by_cell)) if own else None
    return by_cell[control] if control else None


def baseline_words(rows: Sequence[ArmRow]) -> str:
    """Return words that name the baselines in a leaderboard, such as "none (sets of one size: base:1000)"."""
    names = [split_name(base.arm)[0] for row in rows if (base := baseline(row, rows))]
    sets = sorted({name for name in names if name != "none"})
    return f"none (sets of one size: {', '.join(sets)})" if sets else "none"


def tables(row: ArmRow, store: RunStore) -> list[Evaluation]:
    """Return the evaluations of a variant on the first test set, one per seed.

    With several taggers per replicate, there is one evaluation per replicate. If halves are swapped, an evaluation has
    a row for every sentence of the pool.
    Errors: CorpusError; RunError if a run or its files are missing.
    """
    split = row.halves_runs or [""] * len(row.finetunes)
    return [
        one
        for finetune, halves in zip(row.finetunes, split, strict=True)
        for one in evaluations_of_replicate(store.get(finetune), store.get(halves) if halves else None, row.taggers)
    ]


def of_most_text(rows: Sequence[ArmRow]) -> list[ArmRow]:
    """Return `rows` with only one row per arm that was run with several numbers of source tokens.

    The row with the most tokens is kept.
    """
    most: dict[str, int] = {}
    for row in rows:
        most[row.arm] = max(source_tokens(row), most.get(row.arm, 0))
    return [row for row in rows if source_tokens(row) == most[row.arm] or not row.source]


def source_tokens(row: ArmRow) -> int:
    """Return the number of source tokens of a variant if its arm was run with several numbers, else 0."""
    return int(Budget.parse(row.budget).value) if row.source and row.budget else 0


def nothing_learnt(rows: Sequence[ArmRow]) -> bool:
    """Return True if no tagger of any variant learnt anything, so that nothing can be compared."""
    return bool(rows) and all(len(row.collapsed) == row.n_taggers for row in rows)


def read(run: Run) -> ExperimentResult:
    """Return the result of a finished experiment. Outdated numbers are removed from its sentences (`without_number`).

    Errors: RunError.
    """
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
    """Return a stored sentence without the number of further replicates that earlier versions wrote into it.

    The verdict now computes this number from another spread, so the stored number could contradict it.
    """
    return _NUMBER.sub(
        r"the \2 so far, which differ by \1 points (sd), are too few to settle a difference of \3.", text
    )


def file(run: Run, suffix: str) -> Path:
    """Return the path of the table that an experiment or study stored. suffix: `csv` or `md`."""
    name = "study" if run.manifest.kind == "study" else "leaderboard"
    return run.artifacts / f"{name}.{suffix}"


def write_halves(context: RunContext, tested: Sequence[IntArray]) -> None:
    """Write for each half which sentences of the pool are tested, in the order of its test corpus.

    tested: per half, the rows of the pool that are its test sentences.
    """
    path = context.run.artifacts / _TESTED
    np.savez_compressed(path, *tested)
    context.artifact(path.name, path)


def by_replicate(tables: Sequence[Evaluation], taggers: int) -> list[Evaluation]:
    """Return one evaluation per replicate: the pooled counts of `taggers` successive taggers.

    tables: evaluations, one per tagger. A run without taggers has a single evaluation. It is counted `taggers` times,
    because the gold spans of the other variants are also counted `taggers` times.
    """
    tables = list(tables) * taggers if len(tables) == 1 else tables
    return [Evaluation.pooled(tables[first : first + taggers]) for first in range(0, len(tables), taggers)]


def evaluations_of_replicate(finetune: Run, halves: Run | None, taggers: int = 1) -> list[Evaluation]:
    """Return the evaluations of a run's taggers on the first test set, one per replicate.

    halves: run that split the labelled sentences; None if halves are not swapped. With swapped halves, an evaluation
    has a row for every sentence of the pool, and marks the tested sentences. taggers: number of taggers per replicate.
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
    """Return how many of the compared taggers learnt nothing, in all tasks of a study together."""
    return Unlearnt(taggers=sum(task.unlearnt for task in tasks), of=sum(task.taggers for task in tasks))


def _text(worth: Worth | None) -> str:
    if worth is None:
        return ""
    if worth.unknown:
        return f"an unknown amount of random text: {worth.replicates} replicates are too few to estimate it"
    if worth.below:
        return "less than the same amount of random text: the selection did not help"
    if worth.beyond:
        return f"more than {worth.most:.2g} times as much random text (more than the experiment tried)"
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
        return f"{most} {what} (more than the experiment tried)"
    lo = "less than 0" if worth.lo is None else _more(worth, worth.lo)
    hi = most if worth.hi is None else _more(worth, worth.hi)
    estimate = "less than 0" if worth.times <= 1 else most if worth.times >= worth.most else _more(worth, worth.times)
    return f"{estimate} {what} (95% interval {lo} to {hi})"


def _more(worth: Worth, times: float) -> str:
    """Return how many labelled sentences are added if their number is multiplied by `times`."""
    return f"{worth.size * (times - 1):,.0f}"
