"""What an `experiment` found, and the table that it leaves beside its result.

artifacts/leaderboard.csv, leaderboard.md    for a spreadsheet, for people
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Literal

from core.config import Budget
from core.experiment.halves_result import tables as of_replicate
from core.experiment.multipliers_result import Multipliers
from core.files import write_atomic
from core.results import Evaluation
from core.runs import result
from core.runs.context import RunContext
from core.runs.run import Run
from core.runs.store import RunStore
from core.stats.pooled import Estimate
from core.stats.sequential import Ending
from core.stats.verdict import Answer
from core.stats.verdict import Word as Verdict
from core.stats.welch import Welch
from core.tagging.evaluations import TrainInTest
from core.tagging.too_long import TooLong

# not tested: the arm rebuilds L_C, and could change too little of what was asked to be tested by that.
Word = Verdict | Literal["not tested", "baseline", "control"]
Interval = tuple[float, float]
EXPLORATORY = ", exploratory"  # stands behind the answers of an arm that the claim is not about


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherTest:
    """An arm on a test set beside the first. Percent; delta, interval: points over `baseline`, at 95%.

    test: the corpus's name. micro_f1: one a seed. sd: None for one seed.
    """

    test: str
    micro_f1: Sequence[float]
    mean: float
    sd: float | None
    delta: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRow:
    """A line of the leaderboard: an arm at a budget. F1 in percent, differences in points of it.

    budget: "" where the arm chooses nothing. about: the arm in a sentence. sentences, tokens: that its MLM read, mean
    over replicates; tokens 0 where that is not known. micro_f1, dev_f1: one a seed, of the first test set and of dev.
    mean, dev_mean, sd: of these; sd None for one seed. source: fingerprint of what its word vectors or states come
    from. finetune_runs: one a replicate; select_run, pretrain_run, label_runs and finetune_run are the first's.
    halves_runs: what each replicate has its labels and its half of the test sentences from, where halves are swapped.
    verdict, why: in a word and in a sentence. helped, chose: whether it is above `none`, and above its control; None
    where that is not asked, or where one S_C and one pre-training cannot tell. exploratory: to be judged, and not what
    the claim is about. delta, interval: over its `baseline`, at `level`, which the baseline has not. delta_random,
    interval_random: over its control, where it has one. estimate, estimate_random: the same two with their variances by
    parts. wins, ties, losses: seeds against those of `none`. seeds_needed: a sentence. welch: of an arm that borrows
    labels. hours: of computing by kind of run, what arms share counted with each; gpu_hours: in all. f1_per_hour: delta
    for each hour that `none` does not need. also: the further test sets. collapsed: seeds whose tagger learnt nothing.
    unseen_f1: one a seed, without the test sentences that were trained on; none where none was. changed, wanted:
    mentions that a rebuilt L_C changed, and was to change; mean over replicates. low_share, mentions: of a training set
    drawn by CEIM, the realised share of low-CEIM mentions and its number of measured mentions; mean over replicates.
    """

    arm: str
    budget: str
    about: str = ""  # results of older versions have none, nor the last two
    sentences: int
    tokens: int = 0  # results of older versions have none
    micro_f1: Sequence[float]
    dev_f1: Sequence[float]
    mean: float
    dev_mean: float
    sd: float | None
    source: str | None
    select_run: str | None
    pretrain_run: str | None
    label_runs: Sequence[str]
    finetune_run: str
    finetune_runs: Sequence[str] = ()  # results of older versions have none, nor the next
    halves_runs: Sequence[str] = ()
    verdict: Word
    helped: Answer | None = None  # results of older versions have neither
    chose: Answer | None = None
    exploratory: bool = False  # results of older versions do not say
    why: str
    delta: float
    interval: Interval
    level: float | None
    delta_random: float | None
    interval_random: Interval | None
    estimate: Estimate | None = None  # results of older versions have neither
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
    changed: int = 0  # results of older versions have neither
    wanted: int = 0
    low_share: float | None = None  # results of older versions have neither
    mentions: int = 0

    @property
    def changed_words(self) -> str:
        """Mentions that are changed of those that were asked for, in words; nothing where nothing was."""
        return f"{self.changed:,} of {self.wanted:,} changed" if self.wanted else ""

    @property
    def drawn_words(self) -> str:
        """Realised share of low-CEIM mentions, in words; empty for a set that is not drawn by CEIM."""
        return "" if self.low_share is None else f"{self.low_share:.1%} of {self.mentions:,} mentions are low-CEIM"

    @property
    def finetunes(self) -> Sequence[str]:
        """All `finetune` runs of the line, a replicate each."""
        return self.finetune_runs or (self.finetune_run,)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """An arm on a part of L_C: so many sentences, the draw they are of. micro_f1: percent, one a seed."""

    arm: str
    budget: str
    train_sentences: int
    draw: int
    micro_f1: Sequence[float]
    finetune_run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTest:
    """The test of the claim: the one arm that was named beforehand, against its control, or `none` where it has none.

    looks: numbers of replicates at which it might end. replicates: at which it did; ended: why (shown, worse: the bound
    was crossed; futile: what was looked for can hardly be shown any more). p, bound: two-sided, and what the look asks
    for. effect: what was looked for, points. chance: of showing it at the last look, were it there. why: in words.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentResult:
    """Result of an `experiment` run.

    leaderboard: in the order of dev F1, on which alone a choice may rest. curve: F1 by size of L_C, empty where no
    sizes were asked for. hours: of computing by kind of run, each run once. planned: the test of the claim; None where
    there is none, or where one S_C and one pre-training cannot answer it. train_in_test: sentences of L_C's training
    part that stand in dev or test; None where an older version did not look. multipliers: what choosing was worth,
    where that was asked for. too_long: entities that taggers of spans among the arms cannot find; None where there are
    none.
    """

    leaderboard: Sequence[ArmRow]
    curve: Sequence[CurvePoint]
    hours: Mapping[str, float]
    planned: PlannedTest | None = None  # results of older versions have none
    train_in_test: TrainInTest | None = None
    multipliers: Multipliers | None = None
    too_long: TooLong | None = None

    @property
    def claim_words(self) -> list[str]:
        """Results of the planned test, and of what choosing was worth, each where it was asked for."""
        planned, worth = self.planned, self.multipliers
        return [*([planned.why] if planned else []), *([worth.words] if worth else [])]

    @property
    def ceiling_words(self) -> str:
        """Entities that the taggers of spans among the arms cannot find; nothing where there are none of either."""
        return self.too_long.words if self.too_long else ""

    @property
    def overlap_words(self) -> str:
        """Sentences both trained on and scored, and every arm's F1 without them; nothing where there are none."""
        if not self.train_in_test:
            return ""
        scores = [
            f"{row.arm} {row.budget}".rstrip() + f" {mean(row.unseen_f1):.1f} (with it {row.mean:.1f})"
            for row in self.leaderboard
            if row.unseen_f1
        ]
        without = f" Test score without what they share: {', '.join(scores)}." if scores else ""
        return f"{self.train_in_test.words}{without}"


SWAPPED = (
    "Halves were swapped: the labelled sentences were pooled and halved anew for every second replicate; each half was "
    "learnt from, and tested on the other. So each score is of other labels and other sentences; variants are compared "
    "replicate by replicate, where both are the same, and the intervals hold the draw of labels."
)


def swapped(rows: Sequence[ArmRow]) -> bool:
    """Whether halves of the labelled sentences were swapped, so that replicates differ in labels and test sentences."""
    return any(row.halves_runs for row in rows)


def split_name(arm: str) -> tuple[str, str]:
    """An arm's name, and the other encoder that it starts from; "" for the experiment's own."""
    name, _, encoder = arm.partition(" encoder:")
    return name, encoder


def baseline(row: ArmRow, rows: Sequence[ArmRow]) -> ArmRow | None:
    """The line that `delta` of a row is to: `none`, for a set of one size a random set of that size, from the same
    encoder; None of the experiment's own `none`."""
    name, encoder = split_name(row.arm)
    head, _, value = name.partition(":")
    if name == "none":
        return next((other for other in rows if encoder and other.arm == "none"), None)
    same = {split_name(other.arm)[0]: other for other in rows if split_name(other.arm)[1] == encoder}
    if head.startswith("base+"):
        return same.get(f"base:{value}")
    bases = [other for name, other in same.items() if name.startswith("base:")]
    if head != "low-share" or not bases:  # results of older versions compare shares with `none`
        return same.get("none")

    # A share's name does not say its size: of several random sets it is the one that its differences are to.
    def gap(base: ArmRow) -> float:
        further = zip(row.also, base.also, strict=False)
        gaps = [abs(test.mean - test.delta - other.mean) for test, other in further]
        return sum(gaps, abs(row.mean - row.delta - base.mean))

    return min(bases, key=gap)


def compared_with(row: ArmRow, rows: Sequence[ArmRow]) -> list[ArmRow]:
    """The lines whose taggers the differences of `row` rest on: its baseline, and the controls of the same encoder."""
    base, encoder = baseline(row, rows), split_name(row.arm)[1]
    controls = [other for other in rows if other.verdict == "control" and split_name(other.arm)[1] == encoder]
    same_budget = [other for other in controls if other.budget == row.budget] or controls
    base = base or next((other for other in rows if other.arm == "none"), None)
    lines = [base] if base is not None and base is not row else []
    return [*lines, *(other for other in same_budget if other not in lines and row.delta_random is not None)]


def baseline_words(rows: Sequence[ArmRow]) -> str:
    """Baseline of the differences, in words."""
    names = [split_name(base.arm)[0] for row in rows if (base := baseline(row, rows))]
    sets = sorted({name for name in names if name != "none"})
    return f"none (sets of one size: {', '.join(sets)})" if sets else "none"


def tables(row: ArmRow, store: RunStore) -> list[Evaluation]:
    """Evaluations of a line's taggers on the first test set: one a seed, replicate by replicate.

    Where halves are swapped each has a row for every sentence of the pool. Two lines of one experiment are compared by
    `stats.bootstrap`. Errors: CorpusError, RunError where a run or its files are gone.
    """
    split = row.halves_runs or [""] * len(row.finetunes)
    return [
        one
        for finetune, halves in zip(row.finetunes, split, strict=True)
        for one in of_replicate(store.get(finetune), store.get(halves) if halves else None)
    ]


def of_most_text(rows: Sequence[ArmRow]) -> list[ArmRow]:
    """Without the lines of an arm that reads less of its source than another line of it does."""
    most: dict[str, int] = {}
    for row in rows:
        most[row.arm] = max(source_tokens(row), most.get(row.arm, 0))
    return [row for row in rows if source_tokens(row) == most[row.arm] or not row.source]


def source_tokens(row: ArmRow) -> int:
    """Tokens that a line reads of its source where that is read in several sizes; else 0."""
    return int(Budget.parse(row.budget).value) if row.source and row.budget else 0


def nothing_learnt(rows: Sequence[ArmRow]) -> bool:
    """Whether no tagger of any arm learnt anything, so that nothing can be compared."""
    return bool(rows) and all(len(row.collapsed) == len(row.micro_f1) for row in rows)


def read(run: Run) -> ExperimentResult:
    """Result of a finished run. Errors: RunError."""
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
    """A sentence of an older version without its number of repetitions: the finding says it, from another spread."""
    return _NUMBER.sub(
        r"the \2 so far, which differ by \1 points (sd), are too few to settle a difference of \3.", text
    )


def file(run: Run, suffix: str) -> Path:
    """The path of the table. suffix: `csv` or `md`."""
    return run.artifacts / f"leaderboard.{suffix}"


def write(context: RunContext, texts: Mapping[str, str]) -> None:
    """texts: {"csv", "md"}."""
    for suffix, text in texts.items():
        path = file(context.run, suffix)
        write_atomic(path, text.encode())
        context.artifact(path.name, path)
