"""Results of finished experiments, studies and taggers, as pages and commands show them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import mean

from core.config import fields_with
from core.errors import ConfigError, CorpusError, RunError, WinnowError
from core.experiment import foresight, reference, words
from core.experiment import result as leaderboard
from core.experiment import view as experiments
from core.experiment.arms import NONE
from core.experiment.config import ExperimentConfig
from core.experiment.foresight import Outlook
from core.experiment.result import ArmRow, CurvePoint, ExperimentResult, Reference, StudyResult
from core.experiment.study import StudyConfig
from core.experiment.words import Finding, line_name
from core.kinds import KINDS
from core.paths import home
from core.projects.home import kept_per_home, library, store
from core.runs import result
from core.runs.store import Run
from core.runs.where import Where
from core.stats.bootstrap import compare_line
from core.stats.calibration import Abstaining
from core.stats.power_law import next_step, saved
from core.stats.scoring import TypeReport
from core.stats.spread import Spread
from core.stats.verdict import WEAK
from core.tagging import evaluations
from core.tagging import result as tagger_tables
from core.tagging.evaluations import FinetuneResult, OverSeeds
from core.tagging.result import Novelty, OptionDifference, TwoReadings, TypeScores, Unfound

SIZES = 3  # smallest number of sizes for fitting a power law, which has three parameters


def board(run_id: str) -> ExperimentResult:
    """Read the result of a finished experiment. Errors: RunError."""
    return leaderboard.read(store().get(run_id))


def study_board(run_id: str) -> StudyResult:
    """Read the result of a finished study. Errors: RunError."""
    return result.read(store().get(run_id), StudyResult)


def answered(run_id: str) -> ExperimentResult | StudyResult:
    """Read the result of a finished experiment or study. Errors: RunError."""
    return study_board(run_id) if store().get(run_id).manifest.kind == "study" else board(run_id)


def finding(run_id: str) -> Finding:
    """Return the finding of a finished experiment or study: verdict, certainty, next step. Errors: RunError."""
    result = answered(run_id)
    return words.of_study(result) if isinstance(result, StudyResult) else words.of_experiment(result, _outlook(run_id))


def repetitions_to_settle(run_id: str) -> int:
    """Return the number of replicates that would settle an experiment's open verdict; 0 if unknown."""
    return words.repetitions_to_settle(board(run_id), _outlook(run_id))


def seconds_to_settle(run_id: str) -> float | None:
    """Return the further seconds that `repetitions_to_settle` would take; None if it is 0."""
    return words.seconds_to_settle(board(run_id), _outlook(run_id))


def weak(run_id: str) -> bool:
    """Return True if an experiment or a study had little chance to detect its effect, and its verdict is open."""
    answer = answered(run_id)
    return bool(answer.foretold and answer.foretold.chance < WEAK) and words.is_open(answer)


def repeated(run_id: str, n: int) -> dict[str, object]:
    """Return the options of the same experiment with n replicates, including those of the run. Errors: ConfigError."""
    config = ExperimentConfig.parse(dict(store().get(run_id).manifest.config))
    changed = foresight.repeated(config, n)
    return {**store().get(run_id).manifest.config, **{name: getattr(changed, name) for name in foresight.REPEATED}}


def _outlook(run_id: str) -> Outlook:
    """Return the basis of a forecast of the same experiment, so that verdict and forecast agree."""
    finished = tuple(run.id for run in store().list() if run.state().state == "succeeded")

    def seconds(n: int) -> float | None:
        return _seconds(run_id, n, finished)

    return Outlook(spread=_spread(run_id, finished), seconds=seconds)


@kept_per_home(8)
def _spread(run_id: str, finished: tuple[str, ...]) -> Spread | None:
    """Return the spread of taggers trained on an experiment's labels; None if their files are gone.

    finished: ids of all finished runs, so that the cached value is dropped when another run finishes.
    """
    with suppress(WinnowError):
        config = ExperimentConfig.parse(dict(store().get(run_id).manifest.config))
        spread = foresight.foresee(config, home(), plans=0).spread
        return spread if spread.trainings else None
    return None


@kept_per_home(8)
def _seconds(run_id: str, n: int, finished: tuple[str, ...]) -> float | None:
    """Return the seconds that n replicates still take.

    Return None if this machine was not timed while it was idle, or if corpora are gone.
    """
    with suppress(WinnowError):
        options = repeated(run_id, n)
        cost = None if experiments.timed_while_busy(options) else experiments.cost_if_known(options)
        return cost.seconds if cost else None
    return None


def tuned(run_id: str) -> FinetuneResult:
    """Read the result of a finished `finetune` run. Errors: RunError."""
    return tagger_tables.read(store().get(run_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggerRow:
    """A `finetune` run in a list; scores are None until it has finished.

    seeds: number of seeds. dev_f1, dev_sd, f1, sd: mean and standard deviation over seeds of dev F1 and of test F1,
    percent. best_epoch: one per seed.
    """

    run: str
    state: str
    seeds: int
    dev_f1: float | None
    dev_sd: float | None
    best_epoch: Sequence[int]
    f1: float | None
    sd: float | None


def tagger_rows(limit: int = 100) -> list[TaggerRow]:
    """Return the newest `finetune` runs, including those of experiments."""
    return [_tagger_row(run) for run in store().list("finetune")[:limit]]


def _tagger_row(run: Run) -> TaggerRow:
    status = run.state()
    # Unfinished runs are listed without a result.
    result = tagger_tables.read(run) if status.state == "succeeded" else None
    dev: OverSeeds | None = result.dev if result else None
    test = result.test if result else None
    return TaggerRow(
        run=run.id,
        state=status.state,
        seeds=len(run.manifest.config["seeds"]),
        dev_f1=dev.mean if dev else None,
        dev_sd=dev.sd if dev else None,
        best_epoch=result.best_epoch if result else (),
        f1=test.mean if test else None,
        sd=test.sd if test else None,
    )


def is_claimed(board: ExperimentResult, arm: ArmRow) -> bool:
    """Return True for the arm of the planned test; without one, for an arm that is compared with its control."""
    if board.planned:
        return (arm.arm, arm.budget) == (board.planned.arm, board.planned.budget)
    return arm.delta_random is not None


def corpus_name(reference: str) -> str:
    """Return the name of a corpus, also of a removed one."""
    return library().recall(reference).name


@kept_per_home(16)
def type_scores(a: tuple[str, ...], b: tuple[str, ...]) -> list[TypeScores]:
    """Return F1 of every entity type under two arms, each given by its `finetune` runs. Errors: CorpusError."""
    return tagger_tables.by_type(_runs(a), _runs(b))


def beside(run_id: str) -> list[Reference]:
    """Return the results of runs without training on an experiment's first test set, the highest F1 first.

    The runs could be reference variants, but are not rows of the experiment. Return [] if taggers of `none` are gone.
    Return [] too if halves are swapped, because the variants then have other test sets. Errors: CorpusError if an
    evaluation is damaged.
    """
    test, rows = store().get(run_id).manifest.config["test"], board(run_id).leaderboard
    none = next((row for row in rows if row.arm == NONE), None)
    if none is None or none.halves_runs:
        return []
    if not {run.id for run in store().list("finetune", state="succeeded")} >= {*none.finetunes}:
        return []
    known = {run for row in rows for run in row.finetunes}
    base, found = leaderboard.tables(none, store()), []
    for run in store().list(*reference.KINDS, state="succeeded"):
        tests = list(run.manifest.config["test"])
        if test in tests and run.id not in known:
            table = leaderboard.by_replicate(evaluations.read(run, tests.index(test)), none.taggers)
            line = Reference(
                run=run.id,
                about=reference.KINDS[run.manifest.kind].about(run, library()),
                f1=table[0].f1(),
                difference=compare_line(table, base),
            )
            found.append(line)
    return sorted(found, key=lambda line: -line.f1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Untrained:
    """A finished run that tags test sets without training.

    about: description of the run. tests: (name of a test set, scores on it), in order. experiments: ids of finished
    experiments with the same first test set, newest first.
    """

    about: str
    tests: Sequence[tuple[str, OverSeeds]]
    experiments: Sequence[str]


def untrained(run_id: str) -> Untrained:
    """Return the result of a run that tags test sets without training. Errors: RunError if the run has no result."""
    run = store().get(run_id)
    kind, marks = reference.KINDS[run.manifest.kind], run.manifest.config["test"]
    tests: Sequence[OverSeeds] = result.read(run, kind.kind.result).tests
    compared = store().list("experiment", state="succeeded")
    return Untrained(
        about=kind.about(run, library()),
        tests=[(library().recall(mark).name, test) for mark, test in zip(marks, tests, strict=True)],
        experiments=[each.id for each in compared if each.manifest.config["test"] == marks[0]],
    )


def seconds_to_ask(model: str, tests: Iterable[str]) -> tuple[float, str]:
    """Return the seconds to ask a language model about test sets, and their basis in words. Errors: CorpusError."""
    each, basis = reference.seconds_per_answer(model)
    return each * sum(len(library().find(mark)) for mark in tests), basis


def sent_to(run_id: str) -> list[str]:
    """Return the clusters and hosts of language models that got sentences for an experiment or a study.

    Include the hosts of the runs that are listed below the leaderboard (`beside`).
    """
    run = store().get(run_id)
    on = Where.read(run.path).on
    found = [on] if on.startswith("ray:") else []
    if run.manifest.kind == "study":
        found += StudyConfig.parse(dict(run.manifest.config)).experiment(0).hosts
    if run.manifest.kind == "experiment":
        found += ExperimentConfig.parse(dict(run.manifest.config)).hosts
        found += [store().get(line.run).manifest.config.get("allow_host", "") for line in beside(run_id)]
    return sorted({host for host in found if host})


def replicates(run_id: str) -> Mapping[str, tuple[str, ...]]:
    """Return {first run: all runs} of the taggers of each variant with several replicates on one test set.

    Leave out variants with removed runs.
    """
    here = {run.id for run in store().list("finetune")}
    lines = (tuple(row.finetunes) for row in board(run_id).leaderboard if not row.halves_runs)
    return {line[0]: line for line in lines if len(line) > 1 and here.issuperset(line)}


def of_how_many(finetunes: Sequence[str]) -> str:
    """Describe the number of scores behind a mean: "3 replicates", "3 seeds", "1 seed"."""
    seeds = sum(len(store().get(run).manifest.config["seeds"]) for run in finetunes)
    if len(finetunes) > 1 and seeds > len(finetunes):
        return f"{len(finetunes)} replicates, {seeds} seeds"
    return f"{len(finetunes)} replicates" if len(finetunes) > 1 else f"{seeds} seed{'s' * (seeds != 1)}"


def _runs(ids: Iterable[str]) -> list[Run]:
    return [store().get(run) for run in ids]


def tested_alike(a: str, runs: Iterable[str]) -> list[str]:
    """Return the `finetune` runs in `runs` that have the same first test set as run `a`."""
    first = store().get(a)
    return [run for run in runs if tagger_tables.tested_alike(first, store().get(run))]


def halves_note(rows: Sequence[ArmRow]) -> str:
    """Return a note for an experiment that swaps halves; "" for others."""
    return leaderboard.SWAPPED if leaderboard.swapped(rows) else ""


def type_reports(finetunes: Sequence[str]) -> Sequence[TypeReport]:
    """Return seqeval's strict report on the test set of an arm's runs, mean over seeds; empty without a test set."""
    return tagger_tables.reports(_runs(finetunes))


def macro_f1(finetunes: Sequence[str]) -> float:
    """Return the macro F1 of an arm's runs on the test set, mean over seeds. Errors: CorpusError."""
    return tagger_tables.macro(_runs(finetunes))


def decodings(run_id: str) -> dict[str, dict[str, float]]:
    """Return {variant: {decoding: mean test F1}} for an experiment, over its remaining taggers. Errors: RunError."""
    here = {run.id: run for run in store().list("finetune")}
    lines: dict[str, dict[str, float]] = {}
    for row in board(run_id).leaderboard:
        if not row.reference:
            lines[line_name(row)] = tagger_tables.decodings(here[run] for run in row.finetunes if run in here)
    return lines


def least_confidences(run_id: str) -> list[Abstaining]:
    """Return precision and recall on dev by confidence threshold, for the tagger that a `finetune` run kept."""
    run = store().get(run_id)
    return evaluations.read_abstaining(run, evaluations.file_suffix("dev", tagger_tables.kept_seed(run)[1]))


def weakest_type(run_id: str) -> str:
    """Return a sentence on the type that the taggers of the verdict's variant miss most often; "" if files are gone."""
    with suppress(RunError, CorpusError):
        if row := words.main(board(run_id)):
            return words.weakest_words(tagger_tables.weakest([store().get(run) for run in row.finetunes]))
    return ""


def unfound_types(run_id: str) -> list[Unfound]:
    """Return the types with an F1 of 0 in every arm of an experiment; [] if files are gone."""
    with suppress(RunError, CorpusError):
        runs = [store().get(run) for row in board(run_id).leaderboard for run in row.finetunes]
        return tagger_tables.unfound(runs, library().find(store().get(run_id).manifest.config["train"]))
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionDifferenceInWords:
    """An option in which two runs differ, and its values, in words."""

    option: str
    a: str
    b: str


def differing_settings(a: str, b: str) -> list[OptionDifferenceInWords]:
    """Return the settings in which two `finetune` runs differ, except what they start from."""
    first, second = store().get(a), store().get(b)
    return _in_words(tagger_tables.differing_settings(first, second), first)


@kept_per_home(32)
def novelty_scores(finetunes: tuple[str, ...]) -> list[Novelty]:
    """Return F1 on entities that occur in the training set and on those that do not, mean over an arm's runs."""
    each = [tagger_tables.by_novelty(run, library()) for run in _runs(finetunes)]
    return [replace(same[0], f1=mean(score.f1 for score in same)) for same in zip(*each, strict=True)]


@kept_per_home(4)
def side_by_side(a: str, seed_a: int | None, b: str, seed_b: int | None) -> list[TwoReadings]:
    """Return the test sentences with gold labels and the predictions of two `finetune` runs. Errors: CorpusError."""
    return tagger_tables.side_by_side(store().get(a), seed_a, store().get(b), seed_b, library())


def own_readings(run_id: str, seed: int | None = None) -> list[TwoReadings]:
    """Return the test sentences with gold labels and one tagger's predictions, as both A and B.

    seed: a seed of the `finetune` run, by default its first. Errors: ConfigError for another kind of run or an unknown
    seed; CorpusError.
    """
    run = store().get(run_id)
    # An `evaluate` run has one tagger, whose files have no seed in their names.
    seeds = {"finetune": run.manifest.config.get("seeds"), "evaluate": [None]}.get(run.manifest.kind)
    if not seeds or not tagger_tables.test_of(run):
        raise ConfigError(f"{run_id}: has no test sentences; name a tested `finetune` run, or an `evaluate` run.")
    seed = seeds[0] if seed is None else seed
    if seed not in seeds:
        raise ConfigError(f"seed: this run has no seed {seed}; choose one of {', '.join(map(str, seeds))}.")
    return side_by_side(run_id, seed, run_id, seed)


def tested_on(run_id: str) -> list[str]:
    """Return a list with the fingerprint of a run's first test set; [] if it has none."""
    return [corpus for corpus in (tagger_tables.test_of(store().get(run_id)),) if corpus]


def option_differences(a: str, b: str) -> list[OptionDifferenceInWords]:
    """Return every option in which two runs differ."""
    first, second = store().get(a), store().get(b)
    return _in_words(tagger_tables.config_differences(first, second), first)


def _in_words(rows: Sequence[OptionDifference], run: Run) -> list[OptionDifferenceInWords]:
    """Put differences into words, with names for corpora."""
    return [
        OptionDifferenceInWords(
            option=row.option.replace("_", " "),
            a=value_in_words(run, row.option, row.a),
            b=value_in_words(run, row.option, row.b),
        )
        for row in rows
    ]


def value_in_words(run: Run, option: str, value: object) -> str:
    """Return an option's value in words: the names of corpora, and "as usual" for None, the preset's value."""
    corpora = fields_with(KINDS[run.manifest.kind].config, "corpus")
    values = value if isinstance(value, list | tuple) else [value]
    words = [corpus_name(str(one)) if option in corpora and one else str(one) for one in values if one != ""]
    return "as usual" if value is None else ", ".join(words) or "none"


def removed_inputs(run_id: str) -> list[str]:
    """Return the roles of a run's input corpora that were removed since: `domain`, `train`, ..."""
    inputs, corpora = store().get(run_id).manifest.inputs, library()
    gone = [name for name, fingerprint in inputs.items() if not corpora.holds(fingerprint)]
    # `test.0` and `test.1` have the same role.
    return list(dict.fromkeys(name.partition(".")[0] for name in gone))


def missing(run_id: str) -> list[str]:
    """Return the inputs of a run that are gone, in words; without them, the run cannot be repeated exactly."""
    run = store().get(run_id)
    gone = tagger_tables.missing(run, library())
    if run.manifest.kind != "experiment":
        return gone
    arms: dict[str, list[str]] = {}
    for row in board(run_id).leaderboard:
        try:
            own = tagger_tables.missing(store().get(row.finetune_run), library())
        except WinnowError:  # the run is gone or cannot be read
            own = ["its run" if row.reference else "its taggers"]
        for what in own:
            if what not in (*gone, tagger_tables.MODEL):  # repeating the command trains a missing model again
                arms.setdefault(what.removeprefix("its "), []).append(line_name(row))
    # Name each missing input once, with the variants that lack it: "the taggers of knn 10%, none" names two variants.
    return [*gone, *(f"the {what.removeprefix('the ')} of {', '.join(names)}" for what, names in arms.items())]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextBudget:
    """Advice on doubling an arm's largest selection to `sentences`.

    gain: expected gain in points of dev F1. upper: gain that is exceeded in at most one of ten cases; infinite if each
    size has only one pre-training. hours: hours of pre-training, at the speed so far. stop: True if the gain is not
    worth the hours.
    """

    arm: str
    sentences: int
    gain: float
    upper: float
    hours: float
    stop: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsSpared:
    """Labelled sentences that an arm saves compared with `none`.

    lo, hi: 80% interval; infinite if `none` never reaches the same score.
    """

    arm: str
    budget: str
    spared: float
    lo: float
    hi: float


def next_budget(leaderboard: Sequence[ArmRow], worth: float) -> list[NextBudget]:
    """Advise on each arm with at least three sizes, by a power law (SOURCES.md, Power laws).

    Use dev F1 only, because budgets may not be chosen on the test set (SOURCES.md, Choosing on dev). worth: F1 points
    that an hour of computing must gain.
    """
    advice = []
    arms: dict[str, list[ArmRow]] = {}
    for row in leaderboard:
        arms.setdefault(row.arm, []).append(row)
    for arm, rows in arms.items():
        # Taggers that share one pre-training are not independent: their mean counts as one value for that budget.
        points = {
            row.sentences: row.dev_f1 if len(row.finetunes) > 1 else [mean(row.dev_f1)] for row in rows if row.sentences
        }
        if len(points) < SIZES:
            continue
        last = max(rows, key=lambda row: row.sentences)
        size = 2 * last.sentences
        # Twice the sentences take twice the time.
        step, hours = next_step(points, size), 2 * last.hours.get("pretrain", 0.0)
        advice.append(
            NextBudget(
                arm=arm, sentences=size, gain=step.gain, upper=step.upper, hours=hours, stop=step.stop(hours, worth)
            )
        )
    return advice


def labels_spared(curve: Sequence[CurvePoint], size: int) -> list[LabelsSpared]:
    """Return the number of labelled sentences that each arm saves at `size`, by test F1; three sizes are required."""
    arms: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for point in curve:
        arms[point.arm, point.budget][point.train_sentences] += point.micro_f1
    base = arms.pop((NONE, ""), {})
    gaps = []
    for (arm, budget), points in arms.items():
        if min(len(points), len(base)) >= SIZES:
            gap = saved(points, base, size)
            gaps.append(LabelsSpared(arm=arm, budget=budget, spared=gap.sentences, lo=gap.lo, hi=gap.hi))
    return gaps


def budget_advice(run_id: str, worth: float) -> list[NextBudget]:
    """Advise on doubling the largest budget, for each arm with three budgets or more. worth: as in `next_budget`."""
    return next_budget(board(run_id).leaderboard, worth)


def label_advice(run_id: str) -> list[LabelsSpared]:
    """Estimate how many labelled sentences pre-training saves, per arm that was run on at least three sizes of L_C."""
    curve = board(run_id).curve
    # Compare at the largest size: how many more labels would `none` need for the same score?
    return labels_spared(curve, max((point.train_sentences for point in curve), default=0))
