"""The kind of run `study`: it tests one claim on several tasks together. Also the cost and the power of a study.

Every task is an experiment with its own T_C and L_C. At each planned analysis, all experiments have the same number of
replicates, and the differences that the claim is about are pooled. Later analyses reuse the replicates of earlier
analyses, which they find by their run keys. A single experiment on one of the tasks reuses them in the same way.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import model_validator

from core.config import Config, option
from core.corpora.checks import Check, listed
from core.corpora.library import Library
from core.errors import ConfigError
from core.experiment import result as boards
from core.experiment import tables
from core.experiment.arms import NONE, Cell, control, find
from core.experiment.config import ExperimentConfig
from core.experiment.cost import Cost, Priced, calibration_options, cost
from core.experiment.foresight import PlanChance, chances_in_words, foresee, kept_forecast, larger
from core.experiment.leaderboard import decide
from core.experiment.ledger import earlier_analyses
from core.experiment.result import (
    Conclusion,
    Foretold,
    PlannedTest,
    Question,
    StudyResult,
    TaskRow,
    no_task_learnt,
    unlearnt_taggers,
)
from core.importing.data_checks import red_items
from core.kind import About, Job, Kind, Options
from core.paths import home
from core.results import FloatArray
from core.runs import durations
from core.runs import result as results
from core.runs.store import Run, RunStore
from core.shown import count, gain_in_words
from core.stats.pooled import Estimate, Mean, between, corpora_needed, pooled, random_effects
from core.stats.power import power
from core.stats.sequential import ALPHA, adjusted_interval
from core.stats.spread import Spread
from core.stats.verdict import ANSWERS, detected, lacking
from core.tagging.calibrate import CalibrateResult

# Options that have one corpus per task.
EACH = ("task", "domain", "train", "dev", "test")
# The seeds of each further task are larger by this number. With equal seeds, tasks with the same domain corpus would
# select nearly the same random text. The pooled variance assumes that the differences of the tasks are independent.
SEEDS_APART = 1000
# {option of an experiment that a study does not have: the option in words}
LACKS = {"assisting": "an assisting corpus", "sources": "sources", "words": "sources or imported word vectors"}

EDITION = "2"  # increase this number if a change of the code gives a different result for the same options


def _same(name: str) -> Any:
    """Return a copy of the option `name` of `ExperimentConfig`, for use as an option of `StudyConfig`."""
    return copy(ExperimentConfig.model_fields[name])


class StudyConfig(Config):
    """Options of a study: the corpora of all tasks, and the options that the experiments of all tasks share."""

    train: tuple[str, ...] = option(
        ...,
        "Training set of every task: labelled sentences (L_C); all options must list the tasks in the same order.",
        corpus=True,
    )
    dev: tuple[str, ...] = option(..., "Dev set of every task.", corpus=True)
    test: tuple[str, ...] = option(..., "Test set of every task: each variant (arm) is tested on it once.", corpus=True)
    task: tuple[str, ...] = option(
        (), "Task corpus (T_C) of every task, unlabelled; for variants (arms) that are pre-trained.", corpus=True
    )
    domain: tuple[str, ...] = option((), "Domain corpus (D_C): one for all tasks, or one per task.", corpus=True)
    names: tuple[str, ...] = option((), "Names of the tasks; by default the names of their test sets.")
    arms: tuple[str, ...] = _same("arms")
    budgets: tuple[str, ...] = _same("budgets")
    claim: str = _same("claim")
    seeds: tuple[int, ...] = _same("seeds")
    transfer: tuple[str, ...] = option(
        (),
        "Labelled corpora for the variants transfer:CORPUS, the same for all tasks; none may belong to a task.",
        corpus=True,
    )
    transfer_epochs: int = _same("transfer_epochs")
    type_map: tuple[str, ...] = _same("type_map")
    dictionary: tuple[str, ...] = option(
        (),
        "Lists of names for the variants dictionary and none+dictionary, the same for all tasks. Without a list, the "
        "variant dictionary looks up the names of each training set.",
        corpus=True,
    )
    taggers: int = _same("taggers")
    cross: bool = _same("cross")
    cross_train: int = _same("cross_train")
    cross_dev: int = _same("cross_dev")
    looks: tuple[int, ...] = _same("looks")
    effect: float = _same("effect")
    encoder: str = _same("encoder")
    preset: str = _same("preset")
    fixed: str = _same("fixed")
    transductive: str = _same("transductive")
    strategies: dict[str, Options] = _same("strategies")
    select: Options = _same("select")
    pretrain: Options = _same("pretrain")
    finetune: Options = _same("finetune")
    llm: Options = _same("llm")
    draw_seed: int = _same("draw_seed")
    allow_download: bool = _same("allow_download")

    weights: str = _same("weights")
    edition: str = option("", "Version of the study's seeds and analysis, set by Winnow.", hidden=True)

    def settled(self) -> Self:
        """Return the options, normalised as in an experiment, with the encoder's hash filled in.

        Errors: ModelError if the encoder is missing and downloads are not allowed; ConfigError if a corpus in
        `transfer` or `dictionary` belongs to a task; CorpusError if one of these corpora is missing.
        """
        self._check_transfer()
        settled, *_ = (self.experiment(number, len(self.seeds)).settled() for number in range(len(self.train)))
        own = {name: getattr(settled, name) for name in self._shared() - {"looks"}}
        return self.model_copy(update=own | {"edition": EDITION})

    def _check_transfer(self) -> None:
        """Refuse a transfer corpus that is train, dev or test set of a task. Errors: ConfigError, CorpusError."""
        library = Library(home())
        of_tasks = {library.find(name).fingerprint for name in (*self.train, *self.dev, *self.test) if self.transfer}
        for corpus in map(library.find, self.transfer):
            if corpus.fingerprint in of_tasks:
                raise ConfigError(
                    f"transfer: {corpus.name} is the training, dev or test set of a task, so that task would learn "
                    "nothing new from it. Give another corpus, or leave that task out."
                )

    @classmethod
    def _shared(cls) -> set[str]:
        """Return the names of the experiment options that have the same value for all tasks."""
        return (cls.model_fields.keys() & ExperimentConfig.model_fields.keys()) - set(EACH)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Check that every task has its corpora, and that all experiments are valid. Errors: ConfigError."""
        n = len(self.train)
        if not n:
            raise ConfigError("train: give the labelled training sentences of at least one task.")
        one_for_all = {1} if n > 1 else set[int]()
        for name, may_be in (("dev", {n}), ("test", {n}), ("task", {0, n}), ("domain", {0, n} | one_for_all)):
            if len(getattr(self, name)) not in may_be:
                raise ConfigError(
                    f"{name}: {len(getattr(self, name))} corpora for {n} tasks; give one corpus per task, in the same "
                    f"order as in train{' (or one domain for all)' if name == 'domain' else ''}."
                )
        if len(set(self.test)) < n:
            raise ConfigError("test: a corpus is given twice and would count twice; list each task once.")
        if self.names and len(set(self.names)) != n:
            raise ConfigError(f"names: give a different name for each of the {n} tasks, or no names.")
        for arm in map(find, self.arms):
            if lacks := LACKS.keys() & {*arm.needs}:
                raise ConfigError(
                    f"arms: {arm.name} needs {LACKS[min(lacks)]}, which a study does not offer, because each task "
                    "would need its own. Compare it in one experiment per task."
                )
        if self.experiments[0].claimed is None:
            raise ConfigError("arms: no variant gets a verdict, so there is no claim; add for example a strategy.")
        return self

    def experiment(self, number: int, replicates: int = 0) -> ExperimentConfig:
        """Return the options of the experiment on a task. number: number of the task, from 0. Errors: ConfigError.

        replicates: number of replicates to include, without interim analyses; 0: all replicates, with interim analyses.
        """
        shared = {
            name: getattr(self, name) for name in type(self).model_fields if name in ExperimentConfig.model_fields
        }
        shared |= {name: self._of(name, number) for name in EACH}
        shared["seeds"] = tuple(seed + SEEDS_APART * number for seed in self.seeds)
        if replicates:
            shared |= {"seeds": shared["seeds"][:replicates], "looks": ()}
        return ExperimentConfig.parse({**shared, "repeat": "pipeline", "weights": "", "edition": ""})

    def _of(self, name: str, number: int) -> str:
        values: tuple[str, ...] = getattr(self, name)
        return values[number if len(values) > 1 else 0] if values else ""

    @property
    def experiments(self) -> list[ExperimentConfig]:
        """Options of the experiments on all tasks, in the order of the tasks."""
        return [self.experiment(number) for number in range(len(self.train))]

    @property
    def claimed(self) -> Cell:
        """The variant that the claim is about, with its budget."""
        cell = self.experiment(0).claimed
        assert cell
        return cell

    @property
    def control(self) -> Cell | None:
        """Control that the claim must beat in addition to `none`; None if the claim has no control."""
        return control(self.claimed, self.experiment(0).cells)

    @property
    def unit(self) -> str:
        """Word for repetitions of the claim: "replicates" of the whole pipeline, or "seeds" of the taggers only."""
        return "replicates" if self.experiment(0).replicates(self.claimed)[0].number else "seeds"

    @property
    def stops(self) -> tuple[int, ...]:
        """Numbers of replicates after which the study may end. The last is the number of seeds."""
        return self.experiment(0).stops


def task_names(config: StudyConfig, library: Library) -> list[str]:
    """Return the names of the tasks: those that were given, else those of the test sets. Equal names are numbered."""
    names = config.names or [library.find(test).name for test in config.test]
    return [f"{name} ({number})" if name in names[: number - 1] else name for number, name in enumerate(names, 1)]


Costs = Mapping[tuple[int, int], Cost]  # {(number of a task, number of replicates): cost of its experiment}


def study_costs(
    config: StudyConfig, measured: Sequence[CalibrateResult], home: Path, kinds: Mapping[str, Kind]
) -> Costs:
    """Estimate the cost of every task's experiment, for each number of replicates after which the study may end.

    measured: one `calibrate` result per task. Return {(number of a task, number of replicates): cost}.
    """
    return {
        (task, n): cost(config.experiment(task, n), timed, home, kinds)
        for task, timed in enumerate(measured)
        for n in config.stops
    }


def cost_of_all(costs: Costs, names: Sequence[str], stops: Sequence[int]) -> Cost:
    """Return the cost of a study, in which each task has one line.

    A task costs as much as its experiment at the last analysis. Taggers that only earlier experiments train are added.
    names: names of the tasks. stops: numbers of replicates after which the study may end.
    """
    steps: list[Priced] = []
    wall = 0.0
    for number, name in enumerate(names):
        *early, last = (costs[number, n] for n in stops)
        alone = [step for each in early for step in each.steps if step.kind == "finetune" and not step.what]
        steps += [replace(step, line=name) for step in (*last.steps, *alone)]
        wall += last.wall + sum(step.seconds for step in alone)  # Experiments are run one after the other.
    last_of_all = [costs[number, stops[-1]] for number in range(len(names))]
    return Cost(
        steps=tuple(steps),
        device=last_of_all[0].device,
        memory_gb=max(each.memory_gb for each in costs.values()),
        disk_gb=sum(each.disk_gb for each in last_of_all),
        wall=wall,
        at_once=last_of_all[0].at_once,
        processes=last_of_all[0].processes,
        person={
            f"{line} on {name}": seconds
            for name, each in zip(names, last_of_all, strict=True)
            for line, seconds in each.person.items()
        },
    )


MORE = 2  # number of tasks by which a larger study in the forecast exceeds the planned study


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyChance(PlanChance):
    """A plan of a study and its chance to detect a given effect. tasks: number of tasks."""

    tasks: int

    @property
    def on(self) -> str:
        return f" on {self.tasks} task{'s' * (self.tasks > 1)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyForesight:
    """Chances of several plans to detect a mean gain of `effect` points over their tasks.

    plans: the study's own plan first, then larger plans. spreads: random spread of F1, one per task. claim: variant
    that the claim is about.
    """

    plans: Sequence[StudyChance]
    spreads: Sequence[Spread]
    effect: float
    claim: str

    def in_words(self) -> str:
        """Return a sentence on the chances of the plans and a sentence on the basis of the forecast."""
        asked = self.plans[0]
        if asked.replicates < 2:
            return (
                "One replicate can show no difference, however large: it does not show how far scores vary by chance."
            )
        wanted = f"a true mean gain of {gain_in_words(self.effect)} by {self.claim} over{asked.on[3:]}"
        return f"{chances_in_words(self.plans, wanted)} {self._basis()}"

    def _basis(self) -> str:
        known = sum(bool(spread.trainings) for spread in self.spreads)
        moves = sum(spread.each for spread in self.spreads) / len(self.spreads)
        sentences = sum(spread.n_sentences for spread in self.spreads)
        sort = (
            "which is assumed until a tagger has been trained on these labels"
            if not known
            else f"measured on the taggers of {known} of {count(len(self.spreads), 'task')} so far, otherwise assumed"
        )
        return (
            f"Scores differ by {moves:.1f} points from replicate to replicate (standard deviation), {sort}; the test "
            f"sets have {sentences:,} sentences together."
        )

    def as_json(self) -> dict[str, object]:
        """Return the fields that `--plan-only --json` prints."""
        return {
            "claim": self.claim,
            "effect": self.effect,
            "plans": [asdict(plan) for plan in self.plans],
            "assumed": not any(spread.trainings for spread in self.spreads),
            "sd_between_replicates": [spread.each for spread in self.spreads],
            "test_sentences": [spread.n_sentences for spread in self.spreads],
        }


def foresee_study(config: StudyConfig, home: Path) -> StudyForesight:
    """Forecast the chance that a study detects its effect; also for larger plans, with more replicates or tasks."""
    n = len(config.train)
    spreads = tuple(foresee(experiment, home).spread for experiment in config.experiments)
    more = tuple(spreads[number % n] for number in range(n + MORE))
    plans = [
        _chance(tuple(one.of_several(plan.taggers // config.taggers) for one in spreads), plan, config.effect)
        for plan in larger(config.experiment(0))
    ]
    plans.append(_chance(more, config.experiment(0), config.effect))
    return StudyForesight(plans=plans, spreads=spreads, effect=config.effect, claim=str(config.claimed))


def _chance(spreads: tuple[Spread, ...], plan: ExperimentConfig, effect: float) -> StudyChance:
    foretold = power(spreads, plan.stops, effect)
    return StudyChance(
        tasks=len(spreads),
        replicates=plan.stops[-1],
        taggers=plan.taggers,
        looks=plan.stops,
        chance=foretold.chance,
        share=foretold.share,
    )


def planned_test(config: StudyConfig, tasks: Sequence[TaskRow], number: int) -> PlannedTest | None:
    """Test the claim at one of the planned analyses. Return None if the study continues or nothing can be tested.

    number: number of the analysis, from 0. The test depends only on the results of the experiments and the options, so
    that a resumed study ends at the same analysis.
    """
    estimates = claimed(config, tasks)
    if len(config.seeds) < 2 or len(estimates) < len(tasks) or no_task_learnt(tasks):
        return None
    where = f" on each of {len(tasks)} tasks" if len(tasks) > 1 else ""
    against = str(config.control or NONE)
    mean = pooled(estimates)
    adjusted = adjusted_interval(mean.look, config.stops, number, float(mean.dof))
    return decide(mean.look, config, number, adjusted=adjusted, against=against, unit=config.unit, where=where)


def claimed(config: StudyConfig, tasks: Sequence[TaskRow]) -> list[Estimate]:
    """Return the differences that the claim is about: to the control, or to `none` if the claim has no control.

    If the claim has a control, tasks without a difference to the control are left out. Their difference to `none` must
    not be used instead, because it would answer a different question.
    """
    return [task.choosing for task in tasks if task.choosing] if config.control else [task.reading for task in tasks]


def reading(config: StudyConfig, tasks: Sequence[TaskRow], replicates: int, bound: float | None) -> Question:
    """Return the answers to the question: is the claim better than `none`?

    replicates: number of replicates so far. bound: significance level of the planned test; None without a test.
    """
    own = ALPHA if config.control else bound
    question = _question([task.reading for task in tasks], tasks, config, replicates, own or ALPHA)
    return _unanswered(question) if no_task_learnt(tasks) else question


def choosing(config: StudyConfig, tasks: Sequence[TaskRow], replicates: int, bound: float | None) -> Question | None:
    """Return the answers to the question: is the claim better than its control?

    Return None if the claim has no control, or if a task has no difference to the control. Arguments: as in `reading`.
    """
    estimates = [task.choosing for task in tasks if task.choosing]
    if not config.control or len(estimates) < len(tasks):
        return None
    question = _question(estimates, tasks, config, replicates, bound or ALPHA)
    return _unanswered(question) if no_task_learnt(tasks) else question


def _question(
    estimates: Sequence[Estimate], tasks: Sequence[TaskRow], config: StudyConfig, replicates: int, asked: float
) -> Question:
    mean, deltas = pooled(estimates), np.array([each.delta for each in estimates])
    these = _conclusion(mean, asked)
    lacks = _lacking(mean, these, tasks, config, replicates)
    if len(estimates) == 1:
        return Question(these=these, others=None, between=None, lacking=lacks)
    others = _conclusion(random_effects(deltas), ALPHA)
    if others.answer != these.answer:  # An effect that is not detected on these tasks cannot be claimed for others.
        others = replace(others, answer="no evidence")
    if these.answer == "yes":
        lacks = _tasks_lacking(others, deltas, config.effect)
    return Question(these=these, others=others, between=between(estimates), lacking=lacks)


def _unanswered(question: Question) -> Question:
    """Return the question with its differences but without answers, because no tagger learnt anything."""
    others = replace(question.others, answer=None) if question.others else None
    return replace(question, these=replace(question.these, answer=None), others=others, lacking="")


def _conclusion(mean: Mean, asked: float) -> Conclusion:
    delta, half, p = float(mean.delta), float(mean.half()), float(mean.p)
    # A difference of F1 is between -100 and 100 points.
    low, high = max(delta - half, -100.0), min(delta + half, 100.0)
    if not float(mean.dof):
        low, high = -100.0, 100.0
    # Give an answer only if the interval does not contradict it.
    sign = (int(low > 0) - int(high < 0)) if p <= asked else 0
    return Conclusion(delta=delta, interval=(low, high), p=p, dof=float(mean.dof), answer=ANSWERS[sign])


def _lacking(mean: Mean, these: Conclusion, tasks: Sequence[TaskRow], config: StudyConfig, n: int) -> str:
    """Return a sentence on the data needed to detect the effect on these tasks; "" if a difference was detected.

    these: conclusion on these tasks. n: number of replicates so far.
    """
    unit, gain = config.unit, f"a true mean gain of {gain_in_words(config.effect)}"
    if these.answer != "no evidence":
        return ""
    if failed := unlearnt_taggers(tasks):
        return f"Train longer first: {failed.words}."
    if not these.dof:
        return f"The spread between {unit} cannot be estimated from a single one. Run at least 2, better 6."
    each = f" on each of {len(tasks)} tasks" if len(tasks) > 1 else ""
    falling, fixed = float(mean.falling), float(mean.fixed)
    below = these.interval[1] < config.effect
    if below or detected(float(mean.half()), these.dof) <= config.effect:
        why = "the whole interval is below it" if below else "this much data would have detected it"
        return f"{gain.capitalize()} is unlikely: {why}."
    lacks = lacking(config.effect, falling, fixed, n)
    if lacks.sentences == 1:
        return f"More {unit} are needed: {n} {unit}{each} are too few to detect {gain}."
    sentences = sum(task.sentences for task in tasks)
    wanted = ceil(sentences * lacks.sentences / 100) * 100
    more = "" if lacks.repetitions == n else f", with about {lacks.repetitions:,} {unit}{each}"
    corpora = ceil(len(tasks) * lacks.corpora)
    return (
        f"More test sentences or task corpora are needed: {sentences:,} test sentences are too few to detect "
        f"{gain}. About {wanted:,} would be enough{more}; so would {corpora:,} tasks of this size."
    )


def _tasks_lacking(others: Conclusion, deltas: FloatArray, effect: float) -> str:
    """Return a sentence on the number of tasks needed to detect a true mean gain of `effect` points on similar tasks.

    others: conclusion on similar tasks. deltas: difference on each task of the study. Return "" if it is detected.
    """
    if others.answer != "no evidence":
        return ""
    if others.interval[1] < effect:
        return (
            f"The question is settled on these tasks. On similar tasks a true mean gain of {gain_in_words(effect)} is "
            "unlikely."
        )
    enough = corpora_needed(effect, float(deltas.var(ddof=1)))
    if enough <= len(deltas):
        return "The question is settled on these tasks. On similar tasks the true mean gain is probably smaller."
    return (
        f"The question is settled on these tasks. For similar tasks, more task corpora are needed: about {enough:,} "
        f"would detect a true mean gain of {gain_in_words(effect)}, if they differ as much as these tasks."
    )


def run(config: StudyConfig, job: Job) -> StudyResult:
    """Run the experiments that the next planned analysis needs, then the analysis, until its test ends the study.

    Artifacts: `study.csv`, `study.md`.
    """
    forecast = _foretold(config, job) if len(config.seeds) > 1 else None
    names = task_names(config, job.library)
    timings = map(calibration_options, config.experiments)
    measured = [results.read(job.child("calibrate", **options), CalibrateResult) for options in timings]
    made: list[Run] = []  # experiments of all analyses; an earlier one has taggers that the last one does not use
    for number in range(len(config.stops)):
        runs = _experiments(config, job, number, names, measured)
        made += runs
        tasks = [_task(config, job, *each) for each in zip(names, range(len(names)), runs, strict=True)]
        planned = planned_test(config, tasks, number)
        if planned:
            job.context.note(planned.why)
            break
    replicates, bound = config.stops[number], planned.bound if planned else None
    result = StudyResult(
        arm=config.claimed.arm.name,
        budget=config.claimed.budget,
        control=str(config.control or ""),
        tasks=tasks,
        reading=reading(config, tasks, replicates, bound),
        choosing=choosing(config, tasks, replicates, bound),
        planned=planned,
        replicates=replicates,
        hours={kind: seconds / 3600 for kind, seconds in durations.by_kind(made, RunStore(job.home)).items()},
        foretold=forecast,
        earlier=earlier_analyses(job.context.run, RunStore(job.home)),
        swapped=config.cross,
    )
    tables.write(job.context, result)
    return result


def _foretold(config: StudyConfig, job: Job) -> Foretold:
    def chance() -> float:
        spreads = tuple(foresee(experiment, job.home, plans=0).spread for experiment in config.experiments)
        return power(spreads, config.stops, config.effect).chance

    return kept_forecast(job.context.run, config.effect, chance)


def _experiments(
    config: StudyConfig, job: Job, number: int, names: Sequence[str], measured: Sequence[CalibrateResult]
) -> list[Run]:
    """Return the experiment runs of all tasks at one analysis; execute those that have not finished.

    number: number of the analysis, from 0. names: names of the tasks. measured: one `calibrate` result per task.
    """
    runs, n, of = [], config.stops[number], len(config.stops) * len(names)
    costs = study_costs(config, measured, job.home, job.kinds)
    left = cost_of_all(costs, names, config.stops).seconds
    for task, name in enumerate(names):
        after = max(left - costs[task, n].seconds, 0.0)
        part = number * len(names) + task + 1
        job.context.part(part, of, f"{name}, {n} {config.unit}", left=left, after=after)
        runs.append(job.child("experiment", **config.experiment(task, n).model_dump(exclude={"weights"})))
        left = after
    return runs


def _task(config: StudyConfig, job: Job, name: str, number: int, run: Run) -> TaskRow:
    board = boards.read(run).leaderboard
    rows = {(row.arm, row.budget): row for row in board}
    claim, none = rows[_place(config.claimed)], rows[NONE, ""]
    control = rows[_place(config.control)] if config.control else None
    compared = [row for row in (claim, none, control) if row]
    # If halves are swapped, all labelled sentences are tested.
    tested = (config.train, config.dev, config.test) if config.cross else (config.test,)
    assert claim.estimate
    return TaskRow(
        name=name,
        run=run.id,
        sentences=sum(len(job.corpus(corpus)) for corpus in {split[number] for split in tested}),
        tokens=claim.tokens,
        f1=claim.mean,
        none_f1=none.mean,
        control_f1=control.mean if control else None,
        reading=claim.estimate,
        reading_interval=claim.interval,
        choosing=claim.estimate_random,
        choosing_interval=claim.interval_random,
        learnt=not boards.nothing_learnt(board),
        too_few=claim.changed_words if claim.verdict == "not tested" else "",
        unlearnt=sum(len(row.collapsed) for row in compared),
        taggers=sum(row.n_taggers for row in compared),
    )


def _place(cell: Cell) -> tuple[str, str]:
    return cell.arm.name, cell.budget


def _title(run: About) -> str:
    tasks = ", ".join(run.config["names"]) or run.corpora(run.config["test"])
    return f"Study: {', '.join(run.config['arms'])} on {tasks}"


def study_red_items(kind: str, options: Mapping[str, object], library: Library) -> list[Check]:
    """Return the red items (failed data checks) of all tasks of a study.

    An item that only some tasks have names these tasks.
    """
    config = StudyConfig.parse(dict(options))
    tasks = dict[Check, list[str]]()
    names = task_names(config, library)
    for experiment, name in zip(config.experiments, names, strict=True):
        for check in red_items("experiment", experiment.model_dump(), library):
            tasks.setdefault(check, []).append(name)
    return [
        check if of == names else replace(check, sentence=f"{listed(of)}: {check.sentence}")
        for check, of in tasks.items()
    ]


KIND = Kind(
    "study",
    StudyConfig,
    run,
    StudyResult,
    title=_title,
    outcome=lambda finding, _: " ".join(finding.parts),
    page="Training",
    opens=True,
    red_items=study_red_items,
)
