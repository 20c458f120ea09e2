"""The leaderboard of an experiment: scores, intervals, verdict and cost of every variant, and the planned test.

The leaderboard follows Tables 3 and 5 of Mahapatra et al. 2022 and adds verdicts (SOURCES.md, Verdict). Verdicts are
based on the first test set. Scores on further test sets are reported separately, because a mean over easy and hard sets
would hide a loss on one of them (SOURCES.md, Never only an average).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from statistics import mean, stdev
from typing import NamedTuple, Protocol

import numpy as np

from core.bias.result import RebuildResult
from core.corpora.library import Library
from core.encoders.vectors import alike_words
from core.experiment import arms
from core.experiment.arms import Cell, baseline
from core.experiment.config import ExperimentConfig, Replicate, random_multiples
from core.experiment.price import price
from core.experiment.reference import KINDS
from core.experiment.result import (
    ArmRow,
    CurvePoint,
    ExperimentResult,
    FurtherTest,
    Interval,
    Multipliers,
    PlannedTest,
    Word,
    by_replicate,
    evaluations_of_replicate,
    nothing_learnt,
)
from core.experiment.steps import Part
from core.experiment.words import NOTHING, planned_words
from core.reporter import Reporter
from core.results import Evaluation
from core.runs import durations
from core.runs import result as results
from core.runs.store import Run, RunStore
from core.selection.result import SelectResult
from core.stats import sequential
from core.stats.bootstrap import DRAWS, Difference, compare, compare_line, resample
from core.stats.multipliers import Worth, worth
from core.stats.pooled import Estimate
from core.stats.sequential import ALPHA, Look
from core.stats.verdict import (
    ANSWERS,
    EFFECT,
    LEARNT,
    Answer,
    Arm,
    Unlearnt,
    Verdict,
    described,
    few_seeds,
    needed,
    verdicts,
)
from core.stats.welch import Welch, welch
from core.tagging import evaluations
from core.tagging import result as taggers
from core.tagging.evaluations import FinetuneResult, OverSeeds
from core.training.saved_models import PretrainResult

# Verdicts that further seeds would not change.
UNSETTLED = ("nothing learnt", "not tested")
# For a verdict, rebuilding must change at least this share of the requested mentions.
ENOUGH = 0.8
Collapsed = Mapping[Cell, Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedChain:
    """The finished runs of one replicate of a variant.

    tuned: {part of L_C: `finetune` run on it}; the part (0, 0) is all of L_C. For a reference variant, the entry (0, 0)
        is the run that found the entities.
    labels: runs that rebuilt L_C or scored assisting sentences.
    halves: if halves are swapped, the run that split the labelled sentences.
    """

    replicate: Replicate
    select: Run | None
    pretrain: Run | None
    tuned: Mapping[Part, Run]
    labels: tuple[Run, ...] = ()
    halves: Run | None = None

    @property
    def finetune(self) -> Run:
        return self.tuned[0, 0]

    @property
    def added(self) -> list[Run]:
        """All runs except the taggers: the runs that `none` does not need."""
        return [run for run in (self.select, self.pretrain, *self.labels) if run]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedLine:
    """The finished runs of one variant.

    source: fingerprint of its source corpus; None if it has none.
    taggers: number of taggers per replicate; the evaluation of a replicate pools their counts.
    """

    cell: Cell
    chains: tuple[FinishedChain, ...]
    source: str | None = None
    taggers: int = 1

    @property
    def finetunes(self) -> list[Run]:
        """`finetune` runs on all of L_C, one per replicate. For a reference variant, the runs that tag the test set."""
        return [chain.finetune for chain in self.chains]

    @property
    def trained(self) -> list[FinetuneResult]:
        """Results of the taggers on all of L_C, one per replicate; [] for a reference variant."""
        return [] if self.cell.arm.reference else [_tagged(run) for run in self.finetunes]

    @property
    def halves(self) -> list[Run]:
        """Runs that split the labelled sentences, one per replicate; [] if halves are not swapped."""
        return [chain.halves for chain in self.chains if chain.halves]

    @property
    def runs(self) -> list[Run]:
        """All runs of the variant that use all of L_C."""
        return [*self.added, *self.finetunes]

    @property
    def added(self) -> list[Run]:
        """All runs except the taggers: the runs that `none` does not need."""
        return [run for chain in self.chains for run in chain.added]


def evaluations_of(line: FinishedLine) -> list[Evaluation]:
    """Return the evaluations of a variant on the first test set, one per replicate or seed.

    A reference variant has one evaluation, or one per replicate if halves are swapped.
    """
    read = (evaluations_of_replicate(chain.finetune, chain.halves, line.taggers) for chain in line.chains)
    return [one for replicate in read for one in replicate]


class Changed(NamedTuple):
    """Number of mentions that rebuilding changed, and number that its options requested; means over replicates."""

    changed: int
    wanted: int

    @property
    def too_few(self) -> bool:
        """True if too few mentions were changed to test the method."""
        return self.changed < ENOUGH * self.wanted

    @property
    def why(self) -> str:
        """Sentence that explains why the variant has no verdict."""
        return (
            f"Not tested: only {self.changed:,} of {self.wanted:,} mentions could be changed, and a test needs "
            f"{ENOUGH:.0%} of them. Ask for a lower share. The difference is shown, but nothing is concluded from it."
        )


def changed_of(line: FinishedLine) -> Changed:
    """Return a variant's numbers of changed and requested mentions; (0, 0) without rebuilding, or for a control."""
    if not line.cell.arm.rebuild or line.cell.arm.control:
        return Changed(0, 0)
    sets = _rebuilt(line)
    n = max(len(sets), 1)
    return Changed(round(sum(each.changed for each in sets) / n), round(sum(each.wanted for each in sets) / n))


def drawn_of(line: FinishedLine) -> tuple[float | None, int]:
    """Return (share of mentions with low CEIM, number of mentions with a CEIM), means over a variant's training sets.

    Return (None, 0) if the training sets were not drawn by CEIM.
    """
    sets = [each for each in _rebuilt(line) if each.low_share is not None] if line.cell.arm.rebuild else []
    if not sets:
        return None, 0
    return mean(each.low_share or 0.0 for each in sets), round(mean(each.measured_mentions for each in sets))


def _rebuilt(line: FinishedLine) -> list[RebuildResult]:
    return [results.read(chain.labels[-1], RebuildResult) for chain in line.chains if chain.labels]


def collapsed_seeds(lines: Sequence[FinishedLine]) -> Collapsed:
    """Return {variant: seeds whose tagger learnt nothing}."""
    return {line.cell: _collapsed(line) for line in lines}


def _collapsed(line: FinishedLine) -> list[int]:
    runs = [] if line.cell.arm.reference else line.finetunes
    return [seed for run in runs for seed in taggers.collapsed_seeds(run)]


def no_line_learnt(lines: Sequence[FinishedLine], collapsed: Collapsed) -> bool:
    """Return True if no tagger of any variant learnt anything."""
    return all(len(collapsed[line.cell]) == sum(len(chain.replicate.seeds) for chain in line.chains) for line in lines)


def collapsed_words(cell: Cell, control: Cell | None, collapsed: Collapsed) -> str:
    """Return words that list, for a variant, its baseline and its control, the seeds whose tagger learnt nothing.

    Return "" if all learnt something.
    """
    named = [
        f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))} of {line}"
        for line in _compared(cell, control, collapsed)
        if (seeds := collapsed[line])
    ]
    return f" Learnt nothing, but counted in the scores: {'; '.join(named)}." if named else ""


def compared(cell: Cell, control: Cell | None, lines: Sequence[FinishedLine], collapsed: Collapsed) -> Unlearnt:
    """Return how many taggers of a variant, its baseline and its control learnt nothing, and how many there are."""
    names = _compared(cell, control, collapsed)
    total = sum(len(chain.replicate.seeds) for line in lines if line.cell in names for chain in line.chains)
    return Unlearnt(taggers=sum(len(collapsed[name]) for name in names), of=total)


def _compared(cell: Cell, control: Cell | None, collapsed: Collapsed) -> list[Cell]:
    """Return the variant, its baseline and its control, or the variant alone.

    A variant is returned alone if it gets no verdict and is not a reference.
    """
    none = baseline(cell, list(collapsed))
    others = [other for other in collapsed if other in (none, control)]
    return list(dict.fromkeys((cell, *others) if cell.arm.judged or cell.arm.reference else (cell,)))


def result(
    lines: Sequence[FinishedLine],
    *,
    seed: int,
    store: RunStore,
    report: Reporter,
    claim: Cell | None = None,
    planned: PlannedTest | None = None,
    effect: float = EFFECT,
    others: Sequence[Run] = (),
) -> ExperimentResult:
    """Compare the variants and return their scores, verdicts and hours.

    claim: variant that the planned test is about. planned: outcome of that test. effect: gain to detect, in points.
    others: further runs of the experiment, whose hours are included.
    """
    judgements = _judgements(lines, seed, report, claim, bound=planned.bound if planned else ALPHA, effect=effect)
    by_cell = {line.cell: line for line in lines}
    baselines = [by_cell[arms.baseline(line.cell, list(by_cell))] for line in lines]
    rows = [
        replace(
            _row(*each, seed, store, effect=effect),
            exploratory=bool(claim) and each[0].cell.arm.judged and each[0].cell != claim,
        )
        for each in zip(lines, judgements, baselines, strict=True)
    ]
    runs = [run for line in lines for chain in line.chains for run in (*chain.added, *chain.tuned.values())]
    runs += others
    return ExperimentResult(
        leaderboard=sorted(rows, key=lambda row: -inf if row.reference else row.dev_mean or 0.0, reverse=True),
        curve=_curve(lines),
        hours={kind: seconds / 3600 for kind, seconds in durations.by_kind(runs, store).items()},
        planned=planned,
        train_in_test=_tagged(baselines[0].finetunes[0]).train_in_test,
        too_long=next((found for line in lines for each in line.trained[:1] if (found := each.too_long)), None),
    )


def gain_per_hour(points: float, seconds: float) -> float | None:
    """Return the gain per hour of additional computing (Mahapatra et al. 2022, Table 5); None for 0 hours.

    points: gain over `none` in points of F1. seconds: time of the runs that `none` does not need.
    """
    return points * 3600 / seconds if seconds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on a variant, with its differences to `none` and to its control.

    helped, chose: answers to "Is it better than `none`?" and "Is it better than its control?"; None if not tested.
    none, random: difference to the baseline, and to the control.
    unlearnt: number of compared taggers that learnt nothing.
    """

    word: Word
    why: str
    helped: Answer | None = None
    chose: Answer | None = None
    none: Difference | None = None
    random: Difference | None = None
    welch: Welch | None = None
    unlearnt: Unlearnt = LEARNT

    @property
    def duels(self) -> tuple[int, int, int]:
        """Numbers of seeds with a higher, equal (within 0.05 points) and lower F1 than the same seed of `none`."""
        # If the experiment ended early, `none` has more seeds, because one run trains all of them.
        gaps = [a - b for a, b in zip(self.none.system, self.none.other, strict=False)] if self.none else []
        wins, losses = sum(gap > 0.05 for gap in gaps), sum(gap < -0.05 for gap in gaps)
        return wins, len(gaps) - wins - losses, losses


def _judgements(
    lines: Sequence[FinishedLine], seed: int, report: Reporter, claim: Cell | None, *, bound: float, effect: float
) -> list[Judgement]:
    """Return the verdicts on all variants, in the same order. bound: significance level of the planned test."""
    cells = [line.cell for line in lines]
    tables = {str(line.cell): evaluations_of(line) for line in lines}
    baselines = {cell: tables[str(arms.baseline(cell, cells))] for cell in cells}
    judged = [line.cell for line in lines if line.cell.arm.judged and not changed_of(line).too_few]
    controls = {cell: control for cell in judged if (control := arms.control(cell, cells))}
    seeds = collapsed_seeds(lines)
    unlearnt = {line.cell: compared(line.cell, controls.get(line.cell), lines, seeds) for line in lines}
    replicated = {line.cell: bool(line.chains[0].replicate.number) for line in lines}
    report.check()
    pairs = {
        str(cell): Arm(
            system=tables[str(cell)],
            without=cell.arm.without,
            random=tables[str(controls[cell])] if cell in controls else None,
            control=arms.against(controls[cell]) if cell in controls else "",
            single_pretraining=cell.arm.prepares and not replicated[cell],
            none=baselines[cell],
            unit="replicates" if replicated[cell] else "seeds",
            unlearnt=unlearnt[cell],
        )
        for cell in judged
    }
    judge = partial(verdicts, claim=str(claim), bound=bound, effect=effect, seed=seed, same_seeds=True)
    verdict_by_arm = judge(pairs, tables[arms.NONE]) if pairs else {}
    judgements = []
    for line in lines:
        report.check()
        cell = line.cell
        if cell in judged:
            judgement = _judged(verdict_by_arm[str(cell)], cell)
            if claim and cell != claim:
                judgement = replace(judgement, why=f"{judgement.why} Exploratory: the claim here is about {claim}.")
            if cell.arm.assisting:
                assert judgement.none
                test, why = with_welch(judgement.none.system, judgement.none.other, judgement.why)
                judgement = replace(judgement, welch=test, why=why)
            judgements.append(judgement)
        elif cell.arm.name == arms.NONE:
            why = "Baseline: other variants are compared with it, unless they have a baseline of their own."
            judgements.append(Judgement(word="baseline", why=why))
        elif cell.arm.reference:
            others = baselines[cell]
            gap = compare_line(tables[str(cell)], others, seed=seed)
            unit = "replicates" if replicated[arms.baseline(cell, cells)] else "seeds"
            word, why = described(gap, cell.arm.without, unit)
            judgements.append(Judgement(word=word, why=why, none=gap))
        else:
            gap = compare(tables[str(cell)], baselines[cell], seed=seed, same_seeds=True)
            if cell.arm.judged:
                judgement = Judgement(word="not tested", why=changed_of(line).why, none=gap)
            else:
                judgement = Judgement(word="control", why=arms.purpose(cell), helped=ANSWERS[gap.sign], none=gap)
            judgements.append(judgement)
    judgements = [replace(each, unlearnt=unlearnt[line.cell]) for each, line in zip(judgements, lines, strict=True)]
    return _with_collapsed(judgements, lines, controls, seeds)


def _with_collapsed(
    judgements: Sequence[Judgement],
    lines: Sequence[FinishedLine],
    controls: Mapping[Cell, Cell],
    seeds: Collapsed,
) -> list[Judgement]:
    """Return the verdicts, with the seeds whose tagger learnt nothing added to the reason.

    If no tagger of any variant learnt anything, all answers are removed.
    """
    if no_line_learnt(lines, seeds):
        words: list[Word] = ["not tested" if line.cell.arm.reference else "nothing learnt" for line in lines]
        return [
            replace(judgement, helped=None)
            if judgement.word in ("baseline", "control")
            else replace(judgement, word=word, helped=None, chose=None, why=NOTHING)
            for judgement, word in zip(judgements, words, strict=True)
        ]
    return [
        replace(judgement, why=judgement.why + collapsed_words(line.cell, controls.get(line.cell), seeds))
        for judgement, line in zip(judgements, lines, strict=True)
    ]


def _judged(verdict: Verdict, cell: Cell) -> Judgement:
    none, arm = verdict.none, cell.arm
    judgement = Judgement(
        word=verdict.verdict,
        why=verdict.why,
        helped=verdict.helped,
        chose=verdict.chose,
        none=none,
        random=verdict.random,
    )
    if verdict.random or verdict.helped != "yes":
        return judgement
    gain = f"{none.delta:+z.2f} points [{none.lo:+z.2f}, {none.hi:+z.2f}] against {arm.without}"
    if arm.budget:
        why = f"{gain}: above 0. It uses all of the domain corpus, so no random baseline of the same size exists."
        return replace(judgement, word="improves", why=why + few_seeds(none))
    if not arm.adapts:
        return replace(judgement, word="improves", why=f"{gain}: above 0.{few_seeds(none)}")
    if not arm.strategy:
        why = (
            f"{gain}: above 0, but any text of the same size might help as much as the task corpus; "
            "give a domain corpus, so that the variant random-only can test this."
        )
        return replace(judgement, word="helped", why=why)
    return judgement


def _row(
    line: FinishedLine, judgement: Judgement, baseline: FinishedLine, seed: int, store: RunStore, *, effect: float
) -> ArmRow:
    """Return a variant's row of the leaderboard. baseline: its baseline. effect: gain to detect, in points."""
    first, test = line.chains[0], [table.f1() for table in evaluations_of(line)]
    none, random, (wins, ties, losses) = judgement.none, judgement.random, judgement.duels
    changed, (low_share, mentions) = changed_of(line), drawn_of(line)
    trained, reference = line.trained, line.cell.arm.reference
    vectors = trained[0].with_vector if trained else None
    each = [f1 for one in trained for f1 in one.dev.micro_f1]
    dev = [mean(each[first : first + line.taggers]) for first in range(0, len(each), line.taggers)]
    read = [results.read(chain.pretrain, PretrainResult) for chain in line.chains if chain.pretrain]
    unit, single = ("replicates", False) if first.replicate.number else ("seeds", line.cell.arm.prepares)
    by_kind = {kind: seconds / 3600 for kind, seconds in durations.by_kind(line.runs, store).items()}
    once = price(first.finetune, first.added, reference, store)
    return ArmRow(
        arm=line.cell.arm.name,
        budget=line.cell.budget,
        about=KINDS[reference].about(first.finetune, Library(store.home)) if reference else line.cell.arm.summary,
        sentences=round(mean(one.sentences for one in read)) if read else 0,
        tokens=round(mean(one.tokens for one in read)) if read else 0,
        micro_f1=test,
        dev_f1=dev,
        taggers=line.taggers,
        mean=mean(test),
        dev_mean=mean(dev) if dev else None,
        sd=stdev(test) if len(test) > 1 and not reference else None,
        source=line.source,
        reference=reference,
        select_run=first.select.id if first.select else None,
        pretrain_run=first.pretrain.id if first.pretrain else None,
        label_runs=[run.id for run in first.labels],
        finetune_run=first.finetune.id,
        finetune_runs=[run.id for run in line.finetunes],
        halves_runs=[run.id for run in line.halves],
        verdict=judgement.word,
        helped=judgement.helped,
        chose=judgement.chose,
        why=" ".join(filter(None, [judgement.why, alike_words(vectors.mean_cosine) if vectors else ""])),
        delta=none.delta if none else 0.0,
        interval=(none.lo, none.hi) if none else (0.0, 0.0),
        level=none.level if none else None,
        delta_random=random.delta if random else None,
        interval_random=(random.lo, random.hi) if random else None,
        estimate=Estimate.of(none) if none else None,
        estimate_random=Estimate.of(random) if random else None,
        wins=wins,
        ties=ties,
        losses=losses,
        seeds_needed=needed(none, unit, effect, single_pretraining=single, unlearnt=judgement.unlearnt)
        if none and judgement.word not in UNSETTLED and not reference
        else "",
        welch=judgement.welch,
        hours=by_kind,
        gpu_hours=sum(by_kind.values()),
        f1_per_hour=gain_per_hour(none.delta if none else 0.0, sum(durations.by_kind(first.added, store).values())),
        also=further_tests(
            line.finetunes,
            baseline.finetunes,
            Library(store.home),
            seed,
            crossed=bool(line.halves),
            taggers=baseline.taggers,
            reference=bool(reference),
        ),
        collapsed=_collapsed(line),
        changed=changed.changed,
        wanted=changed.wanted,
        low_share=low_share,
        mentions=mentions,
        seconds=once.seconds,
        labels=once.labels,
        downloads=once.downloads,
        unseen_f1=[f1 for one in trained if one.test for f1 in one.test.unseen_f1],
    )


def _tested(finetunes: Sequence[Run]) -> Sequence[float]:
    """Return F1 on the first test set, one value per seed."""
    return [f1 for run in finetunes for f1 in _test(run).micro_f1]


def _test(finetune: Run) -> OverSeeds:
    test = _tagged(finetune).test
    assert test  # An experiment tests every fine-tuning.
    return test


def _tagged(finetune: Run) -> FinetuneResult:
    return results.read(finetune, FinetuneResult)


def _curve(lines: Sequence[FinishedLine]) -> list[CurvePoint]:
    """Return F1 of every variant on random parts of L_C (Mahapatra et al. 2022, Fig. 4); [] without `train_sizes`.

    There is one point per variant and part. Parts of the same size are numbered by `draw`.
    """
    return [
        CurvePoint(
            arm=line.cell.arm.name,
            budget=line.cell.budget,
            train_sentences=size,
            draw=draw,
            micro_f1=_tested(runs),
            finetune_run=runs[0].id,
        )
        for line in lines
        for (size, draw) in dict.fromkeys(part for chain in line.chains for part in chain.tuned)
        if size and (runs := [chain.tuned[size, draw] for chain in line.chains if (size, draw) in chain.tuned])
    ]


def _of_runs(finetunes: Sequence[Run], number: int, *, crossed: bool, taggers: int) -> list[Evaluation]:
    """Return the evaluations on a further test set, which is the same for all replicates.

    number: number of the test set; 0 is the first. crossed, taggers: as in `further_tests`.
    """
    return [
        replace(one, tested=np.ones(len(one.gold), dtype=np.bool_)) if crossed else one
        for run in finetunes
        for one in by_replicate(evaluations.read(run, number), taggers)
    ]


def further_tests(
    finetunes: Sequence[Run],
    none: Sequence[Run],
    library: Library,
    seed: int,
    *,
    crossed: bool = False,
    taggers: int = 1,
    reference: bool = False,
) -> list[FurtherTest]:
    """Return a variant's F1 on every test set except the first, and its difference to its baseline.

    The 95% intervals include the variation between seeds and between test sentences. They are not corrected for
    multiple comparisons, because no verdict is based on them.
    none: `finetune` runs of the baseline.
    crossed: True if halves are swapped. All arms use the same labels in a replicate, so they are compared by replicate.
    taggers: number of taggers per replicate. reference: True for a reference variant, whose F1 does not vary by seed.
    """
    rows = []
    for number, test in enumerate(finetunes[0].manifest.config["test"][1:], 1):
        table, other = (_of_runs(runs, number, crossed=crossed, taggers=taggers) for runs in (finetunes, none))
        f1s = [one.f1() for one in table]
        difference = (
            compare_line(table, other, seed=seed) if reference else compare(table, other, seed=seed, same_seeds=True)
        )
        rows.append(
            FurtherTest(
                test=library.find(test).name,
                micro_f1=f1s,
                mean=mean(f1s),
                sd=stdev(f1s) if len(f1s) > 1 and not reference else None,
                delta=difference.delta,
                interval=(difference.lo, difference.hi) if finetunes != none else (0.0, 0.0),
            )
        )
    return rows


def with_welch(arm: Sequence[float], none: Sequence[float], why: str) -> tuple[Welch | None, str]:
    """Return (Welch's test against `none`, as in Murthy et al. 2018; `why` with the result of the test added).

    With only one seed no test is possible: return (None, `why`). arm, none: F1 per seed.
    """
    test = welch(arm, none)
    if test is None:
        return None, why
    return test, f"{why} Welch's two-sided test over seeds: t = {test.t:z.2f}, p = {test.p:.3f}."


def planned_test(config: ExperimentConfig, lines: Sequence[FinishedLine], number: int) -> PlannedTest | None:
    """Test the claim at one of the planned analyses. Return None if the experiment continues or nothing can be tested.

    number: number of the analysis, from 0. The test depends only on the finished runs and the options, so that a
    resumed experiment ends at the same analysis.
    """
    claim = config.claimed
    if claim is None or len(config.seeds) < 2:
        return None
    by_cell = {line.cell: line for line in lines}
    control = arms.control(claim, list(by_cell))
    line, other = by_cell[claim], by_cell[control or arms.baseline(claim, list(by_cell))]
    quick = control and claim.arm.prepares and not line.chains[0].replicate.number
    if quick or changed_of(line).too_few:
        return None
    seeds = collapsed_seeds(lines)
    if no_line_learnt(lines, seeds):
        return None
    gap = resample(evaluations_of(line), evaluations_of(other), DRAWS, config.draw_seed, same_seeds=True)
    look = Look(
        delta=np.array(gap.delta),
        p=np.array(gap.p),
        falling=np.array(gap.var_seeds + gap.var_both),
        fixed=np.array(gap.var_sentences - gap.var_both),
    )
    side = gap.difference(1 - ALPHA).sign  # The outcome must not contradict the interval that is shown next to it.
    unit = "replicates" if line.chains[0].replicate.number else "seeds"
    early = gap.difference(1 - sequential.bounds(config.stops)[number])
    adjusted = (early.lo, early.hi) if number < len(config.stops) - 1 and gap.dof > 0 else None
    test = decide(look, config, number, adjusted=adjusted, against=str(other.cell), unit=unit, side=side)
    return test and replace(test, why=test.why + collapsed_words(claim, control, seeds))


class Planned(Protocol):
    """A plan with a claim and planned analyses: an experiment, or a study of several tasks."""

    effect: float

    @property
    def claimed(self) -> Cell | None: ...
    @property
    def stops(self) -> tuple[int, ...]: ...


def decide(
    look: Look,
    plan: Planned,
    number: int,
    *,
    adjusted: Interval | None,
    against: str,
    unit: str,
    where: str = "",
    side: int | None = None,
) -> PlannedTest | None:
    """Test the claim of a plan at one of its analyses. Return None if the plan continues.

    number: number of the analysis, from 0. adjusted: interval corrected for several analyses; None at the last
    analysis. unit, where: as in `planned_words`. side: sign of the shown interval, as in `sequential.ending`.
    """
    ended = sequential.ending(look, plan.stops, number, plan.effect, side=side)
    if ended is None:
        return None
    assert plan.claimed
    test = PlannedTest(
        arm=plan.claimed.arm.name,
        budget=plan.claimed.budget,
        against=against,
        looks=plan.stops,
        replicates=plan.stops[number],
        ended=ended,
        p=float(look.p),
        bound=sequential.bounds(plan.stops)[number],
        effect=plan.effect,
        chance=float(sequential.conditional_power(look, plan.stops, number, plan.effect)),
        why="",
        adjusted=adjusted,
    )
    return replace(test, why=planned_words(test, unit, where))


def multipliers(
    config: ExperimentConfig, lines: Sequence[FinishedLine], rows: Sequence[ArmRow], sizes: Sequence[int]
) -> Multipliers | None:
    """Measure how much random text and how many labels the claim's selection replaces (SOURCES.md, Multipliers).

    sizes: sizes of the parts of L_C in sentences, ascending; the last is the size of L_C. Return None if the option
    `multipliers` is not set, or if no tagger learnt anything.
    """
    claim = config.claimed
    if not config.multipliers or claim is None or nothing_learnt(rows):
        return None
    by_cell = {line.cell: line for line in lines}
    system, random, *more = by_cell[claim], *(by_cell[cell] for cell in random_multiples(claim))
    text = worth(_evaluations(system), {_tokens(line): _evaluations(line) for line in (random, *more)})
    row = next(row for row in rows if (row.arm, row.budget) == (claim.arm.name, claim.budget))
    none = next(line for line in lines if line.cell.arm.name == arms.NONE)
    first = _evaluations(system, sizes[0], sizes[-1])
    labels, labels_none = (
        worth(first, {size: _evaluations(line, size, sizes[-1]) for size in sizes}) for line in (random, none)
    )
    return Multipliers(
        arm=claim.arm.name,
        budget=claim.budget,
        text=_no_surer(text, row.chose),
        labels=_no_surer(labels, row.chose),
        labels_none=_no_surer(labels_none, row.helped),
    )


def _no_surer(worth: Worth | None, answer: Answer | None) -> Worth | None:
    """Return `worth` without its lower bound unless `answer` is "yes", so that no sentence contradicts the verdict."""
    return replace(worth, lo=None) if worth and answer != "yes" else worth


def _tokens(line: FinishedLine) -> float:
    """Return the number of tokens of S_C, as the mean over replicates."""
    return mean(results.read(chain.select, SelectResult).tokens for chain in line.chains if chain.select)


def _evaluations(line: FinishedLine, size: int = 0, whole: int = 0) -> list[Evaluation]:
    """Return the evaluations of taggers that were trained on `size` sentences of L_C, one per replicate.

    whole: number of sentences in L_C. Without `size` and `whole`, the taggers were trained on all of L_C.
    """
    return [
        one
        for chain in line.chains
        for one in evaluations_of_replicate(
            chain.tuned[(size, chain.replicate.number - 1) if size < whole else (0, 0)], chain.halves, line.taggers
        )
    ]
