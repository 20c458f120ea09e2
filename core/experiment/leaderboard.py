"""What an experiment found: a line an arm with scores, intervals, verdict and cost.

Mahapatra et al. 2022, Tables 3 and 5, with verdicts (SOURCES.md, Verdict).

Verdicts speak of the first test set. Further ones stand beside it, one by one: a mean over plain and harder sets hides
what is lost on one for what is won on the other (SOURCES.md, Never only an average).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import TypedDict

from core.corpora.library import Library
from core.encoders.vectors import alike_words
from core.experiment import arms, changed_labels, collapsed, further_tests, rivals
from core.experiment.arms import Cell
from core.experiment.result import ArmRow, CurvePoint, ExperimentResult, FurtherTest, Interval, PlannedTest, Word
from core.experiment.stages import FinishedLine
from core.reporter import Reporter
from core.runs import durations
from core.runs import result as results
from core.runs.store import Run, RunStore
from core.stats.bootstrap import Difference, compare
from core.stats.pooled import Estimate
from core.stats.sequential import ALPHA
from core.stats.verdict import ANSWERS, LEARNT, Answer, Arm, Unlearnt, Verdict, few_seeds, needed, verdicts
from core.stats.welch import Welch
from core.tagging import result as taggers
from core.tagging.evaluations import FinetuneResult, OverSeeds
from core.tagging.too_long import TooLong
from core.training.saved_models import PretrainResult

UNSETTLED = ("nothing learnt", "not tested")  # what no further seed would settle


def result(
    lines: Sequence[FinishedLine],
    *,
    seed: int,
    store: RunStore,
    report: Reporter,
    claim: Cell | None = None,
    planned: PlannedTest | None = None,
) -> ExperimentResult:
    """Compare the arms: scores, verdicts, hours. claim: the line whose test was planned; planned: what it came to."""
    judgements = _judgements(lines, seed, report, claim, planned.bound if planned else ALPHA)
    by_cell = {line.cell: line for line in lines}
    baselines = [by_cell[rivals.baseline(line.cell, list(by_cell))] for line in lines]
    rows = [
        replace(_row(*each, seed, store), exploratory=bool(claim) and each[0].cell.arm.judged and each[0].cell != claim)
        for each in zip(lines, judgements, baselines, strict=True)
    ]
    runs = [run for line in lines for chain in line.chains for run in (*chain.added, *chain.tuned.values())]
    return ExperimentResult(
        leaderboard=sorted(rows, key=lambda row: -row.dev_mean),
        curve=_curve(lines),
        hours={kind: seconds / 3600 for kind, seconds in durations.by_kind(runs, store).items()},
        planned=planned,
        train_in_test=results.read(baselines[0].finetunes[0], FinetuneResult).train_in_test,
        too_long=next(filter(None, map(_too_long, lines)), None),
    )


def _too_long(line: FinishedLine) -> TooLong | None:
    return results.read(line.finetunes[0], FinetuneResult).too_long


def gain_per_hour(points: float, seconds: float) -> float | None:
    """F1 points an hour that an arm takes beyond `none` (Mahapatra et al. 2022, Table 5); None where it takes none."""
    return points * 3600 / seconds if seconds else None


class Differences(TypedDict):
    """Fields of a row that say how far it is from `none` and from its control."""

    delta: float
    interval: Interval
    level: float | None
    delta_random: float | None
    interval_random: Interval | None
    estimate: Estimate | None
    estimate_random: Estimate | None
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict on one line and what it rests on: its differences to `none` and to its control.

    unlearnt: how many of the taggers that these differences rest on learnt nothing.
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
        """Numbers of the arm's seeds that beat, equal (within 0.05 points) and lose to the same seed of `none`, which
        has all seeds also where the experiment ended early."""
        gaps = [a - b for a, b in zip(self.none.system, self.none.other, strict=False)] if self.none else []
        wins, losses = sum(gap > 0.05 for gap in gaps), sum(gap < -0.05 for gap in gaps)
        return wins, len(gaps) - wins - losses, losses


def _judgements(
    lines: Sequence[FinishedLine], seed: int, report: Reporter, claim: Cell | None, bound: float
) -> list[Judgement]:
    """One a line."""
    cells = [line.cell for line in lines]
    tables = {str(line.cell): further_tests.evaluations_of(line) for line in lines}
    baselines = {cell: tables[str(rivals.baseline(cell, cells))] for cell in cells}
    judged = [line.cell for line in lines if line.cell.arm.judged and not changed_labels.of_line(line).too_few]
    controls = {cell: control for cell in judged if (control := rivals.control(cell, cells))}
    seeds = collapsed.collapsed_seeds(lines)
    unlearnt = {line.cell: collapsed.compared(line.cell, controls.get(line.cell), lines, seeds) for line in lines}
    replicated = {line.cell: bool(line.chains[0].replicate.number) for line in lines}
    report.check()
    pairs = {
        str(cell): Arm(
            system=tables[str(cell)],
            without=cell.arm.without,
            random=tables[str(controls[cell])] if cell in controls else None,
            control=rivals.against(controls[cell]) if cell in controls else "",
            single_pretraining=cell.arm.pretrains and not replicated[cell],
            none=baselines[cell],
            unit="replicates" if replicated[cell] else "seeds",
            unlearnt=unlearnt[cell],
        )
        for cell in judged
    }
    verdict_by_arm = verdicts(pairs, tables[arms.NONE], claim=str(claim), bound=bound, seed=seed) if pairs else {}
    judgements = []
    for line in lines:
        report.check()
        cell = line.cell
        if cell in judged:
            judgement = _judged(verdict_by_arm[str(cell)], cell)
            if claim and cell != claim:
                judgement = replace(judgement, why=f"{judgement.why} Exploratory: the claim here is about {claim}.")
            judgements.append(_with_welch(judgement, line) if cell.arm.assisting else judgement)
        elif cell.arm.name == arms.NONE:
            judgements.append(Judgement(word="baseline", why="What every other variant is measured against."))
        else:
            judgements.append(_unjudged(line, compare(tables[str(cell)], baselines[cell], seed=seed)))
    judgements = [replace(each, unlearnt=unlearnt[line.cell]) for each, line in zip(judgements, lines, strict=True)]
    return _with_collapsed(judgements, lines, controls, seeds)


def _unjudged(line: FinishedLine, difference: Difference) -> Judgement:
    """Judgement in place of a verdict: of a control, and of an arm that changed too little to be tested."""
    if line.cell.arm.judged:
        return Judgement(word="not tested", why=changed_labels.of_line(line).why, none=difference)
    why = rivals.purpose(line.cell)
    return Judgement(word="control", why=why, helped=ANSWERS[difference.sign], none=difference)


def _with_collapsed(
    judgements: Sequence[Judgement],
    lines: Sequence[FinishedLine],
    controls: Mapping[Cell, Cell],
    seeds: collapsed.Collapsed,
) -> list[Judgement]:
    """No verdict where no tagger learnt anything; else with the seeds that did not."""
    if collapsed.nothing_learnt(lines, seeds):
        return [
            replace(judgement, helped=None)
            if judgement.word in ("baseline", "control")
            else replace(judgement, word="nothing learnt", helped=None, chose=None, why=collapsed.NOTHING)
            for judgement in judgements
        ]
    return [
        replace(judgement, why=judgement.why + collapsed.in_words(line.cell, controls.get(line.cell), seeds))
        for judgement, line in zip(judgements, lines, strict=True)
    ]


def _with_welch(judgement: Judgement, line: FinishedLine) -> Judgement:
    assert judgement.none
    test, why = further_tests.with_welch(_tested(line.finetunes), judgement.none.other, judgement.why)
    return replace(judgement, welch=test, why=why)


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
        why = f"{gain}: above 0. It takes all of the domain corpus, so there is no random baseline of the same size."
        return replace(judgement, word="improves", why=why + few_seeds(none))
    if not arm.adapts:
        return replace(judgement, word="improves", why=f"{gain}: above 0.{few_seeds(none)}")
    if not arm.strategy:
        why = (
            f"{gain}: above 0, but any text of the same size might help as much as the task corpus; "
            "give a domain corpus, and the variant random-only reads as many sentences of it."
        )
        return replace(judgement, word="helped", why=why)
    return judgement


def _row(line: FinishedLine, judgement: Judgement, baseline: FinishedLine, seed: int, store: RunStore) -> ArmRow:
    """baseline: the line of the `none` that it is measured against."""
    first, test, none = line.chains[0], _tested(line.finetunes), judgement.none
    dev = [f1 for run in line.finetunes for f1 in results.read(run, FinetuneResult).dev.micro_f1]
    read = [results.read(chain.pretrain, PretrainResult) for chain in line.chains if chain.pretrain]
    unit, single = ("replicates", False) if first.replicate.number else ("seeds", line.cell.arm.pretrains)
    by_kind = {kind: seconds / 3600 for kind, seconds in durations.by_kind(line.runs, store).items()}
    return ArmRow(
        arm=line.cell.arm.name,
        budget=line.cell.budget,
        about=line.cell.arm.summary,
        sentences=round(mean(one.sentences for one in read)) if read else 0,
        tokens=round(mean(one.tokens for one in read)) if read else 0,
        micro_f1=test,
        dev_f1=dev,
        mean=mean(test),
        dev_mean=mean(dev),
        sd=stdev(test) if len(test) > 1 else None,
        source=line.source,
        select_run=first.select.id if first.select else None,
        pretrain_run=first.pretrain.id if first.pretrain else None,
        label_runs=[run.id for run in first.labels],
        finetune_run=first.finetune.id,
        finetune_runs=[run.id for run in line.finetunes],
        halves_runs=[run.id for run in line.halves],
        verdict=judgement.word,
        helped=judgement.helped,
        chose=judgement.chose,
        why=" ".join(filter(None, [judgement.why, _alike(first.finetune)])),
        **_differences(judgement),
        seeds_needed=needed(none, unit, single_pretraining=single, unlearnt=judgement.unlearnt)
        if none and judgement.word not in UNSETTLED
        else "",
        welch=judgement.welch,
        hours=by_kind,
        gpu_hours=sum(by_kind.values()),
        f1_per_hour=gain_per_hour(none.delta if none else 0.0, sum(durations.by_kind(first.added, store).values())),
        also=_further(line, baseline, seed, store),
        collapsed=[seed for run in line.finetunes for seed in taggers.collapsed_seeds(run)],
        **changed_labels.of_line(line)._asdict(),
        **changed_labels.drawn_of(line),
        unseen_f1=[f1 for run in line.finetunes for f1 in _test(run).unseen_f1],
    )


def _further(line: FinishedLine, none: FinishedLine, seed: int, store: RunStore) -> list[FurtherTest]:
    return further_tests.rows_of(line.finetunes, none.finetunes, Library(store.home), seed, crossed=bool(line.halves))


def _differences(judgement: Judgement) -> Differences:
    none, random = judgement.none, judgement.random
    wins, ties, losses = judgement.duels
    return {
        "delta": none.delta if none else 0.0,
        "interval": _interval(none) or (0.0, 0.0),
        "level": none.level if none else None,
        "delta_random": random.delta if random else None,
        "interval_random": _interval(random),
        "estimate": Estimate.of(none) if none else None,
        "estimate_random": Estimate.of(random) if random else None,
        "wins": wins,
        "ties": ties,
        "losses": losses,
    }


def _alike(finetune: Run) -> str:
    """Warn of a tagger whose pretrained word vectors hardly differ."""
    words = results.read(finetune, FinetuneResult).with_vector
    return alike_words(words.mean_cosine) if words else ""


def _tested(finetunes: Sequence[Run]) -> Sequence[float]:
    """F1 on the first test set, one a seed."""
    return [f1 for run in finetunes for f1 in _test(run).micro_f1]


def _test(finetune: Run) -> OverSeeds:
    test = results.read(finetune, FinetuneResult).test
    assert test  # every fine-tuning of an experiment is tested
    return test


def _interval(difference: Difference | None) -> Interval | None:
    return (difference.lo, difference.hi) if difference else None


def _curve(lines: Sequence[FinishedLine]) -> list[CurvePoint]:
    """F1 of every arm by size of L_C and draw (Mahapatra et al. 2022, Fig. 4); nothing where none were asked for."""
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
