"""Results of finished experiments, studies and taggers, in the form that pages and commands show."""

from collections import Counter, defaultdict
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
from core.runs import durations, result
from core.runs.store import Run
from core.runs.where import clusters_of
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

SIZES = 3  # fewest different sizes to which a power law is fitted, because it has three parameters
_DAMAGED = (CorpusError, RunError)  # errors of a run whose scores are missing or damaged


def board(run_id: str) -> ExperimentResult:
    """Return the result of a finished experiment. Errors: RunError."""
    return leaderboard.read(store().get(run_id))


def study_board(run_id: str) -> StudyResult:
    """Return the result of a finished study. Errors: RunError."""
    return result.read(store().get(run_id), StudyResult)


def answered(run_id: str) -> ExperimentResult | StudyResult:
    """Return the result of a finished experiment or study. Errors: RunError."""
    return study_board(run_id) if store().get(run_id).manifest.kind == "study" else board(run_id)


def finding(run_id: str) -> Finding:
    """Return the verdict of a finished experiment or study, its certainty, and the next step. Errors: RunError."""
    result = answered(run_id)
    return words.of_study(result) if isinstance(result, StudyResult) else words.of_experiment(result, _outlook(run_id))


def repetitions_to_settle(run_id: str) -> int:
    """Return the number of replicates that would settle an experiment's open verdict; 0 if unknown."""
    return words.repetitions_to_settle(board(run_id), _outlook(run_id))


def seconds_to_settle(run_id: str) -> float | None:
    """Return the seconds that the additional replicates of `repetitions_to_settle` would take; None if it returns 0."""
    return words.seconds_to_settle(board(run_id), _outlook(run_id))


def weak(run_id: str) -> bool:
    """Return True if the verdict is open and the experiment or study had little chance to detect its effect."""
    answer = answered(run_id)
    return bool(answer.foretold and answer.foretold.chance < WEAK) and words.is_open(answer)


def repeated(run_id: str, n: int) -> dict[str, object]:
    """Return the options of the experiment, changed to n replicates in total. Errors: ConfigError."""
    config = ExperimentConfig.parse(dict(store().get(run_id).manifest.config))
    changed = foresight.repeated(config, n)
    return {**store().get(run_id).manifest.config, **{name: getattr(changed, name) for name in foresight.REPEATED}}


def _outlook(run_id: str) -> Outlook:
    """Return the spread and speed on which the experiment's forecast is based, so that verdict and forecast agree."""
    finished = tuple(run.id for run in store().list() if run.state().state == "succeeded")

    def seconds(n: int) -> float | None:
        return _seconds(run_id, n, finished)

    return Outlook(spread=_spread(run_id, finished), seconds=seconds)


@kept_per_home(8)
def _spread(run_id: str, finished: tuple[str, ...]) -> Spread | None:
    """Return the spread of taggers trained on an experiment's labels; None if there are none or files are missing.

    finished: ids of all finished runs, so that another finished run invalidates the cached value.
    """
    with suppress(WinnowError):
        config = ExperimentConfig.parse(dict(store().get(run_id).manifest.config))
        spread = foresight.foresee(config, home(), plans=0).spread
        return spread if spread.trainings else None
    return None


@kept_per_home(8)
def _seconds(run_id: str, n: int, finished: tuple[str, ...]) -> float | None:
    """Return the remaining seconds until the experiment has n replicates.

    Return None if the speed of this machine was not measured while it was idle, or if corpora are missing.
    """
    with suppress(WinnowError):
        options = repeated(run_id, n)
        cost = None if experiments.timed_while_busy(options) else experiments.cost_if_known(options)
        return cost.seconds if cost else None
    return None


def tuned(run_id: str) -> FinetuneResult:
    """Return the result of a finished `finetune` run. Errors: RunError."""
    return tagger_tables.read(store().get(run_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggerRow:
    """A `finetune` run in a list of runs. Its scores are None until it has finished.

    seeds: number of seeds. dev_f1, dev_sd: mean and standard deviation of dev F1 over seeds, in percent. f1, sd: the
    same for test F1. best_epoch: one epoch per seed.
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
    # List unfinished runs too, without a result.
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
    """Return True if `arm` is the variant of the planned test. Without a planned test: if it has a control."""
    if board.planned:
        return (arm.arm, arm.budget) == (board.planned.arm, board.planned.budget)
    return arm.delta_random is not None


def corpus_name(reference: str) -> str:
    """Return the name of a corpus, even if the corpus was removed. reference: name or fingerprint."""
    return library().recall(reference).name


@kept_per_home(16)
def type_scores(a: tuple[str, ...], b: tuple[str, ...]) -> list[TypeScores]:
    """Return F1 of two variants on every entity type. a, b: their `finetune` runs. Errors: CorpusError."""
    return tagger_tables.by_type(_runs(a), _runs(b))


def beside(run_id: str) -> list[Reference]:
    """Return results of runs outside the experiment that could be reference variants, the highest F1 first.

    These runs train nothing and were tested on the experiment's first test set. Runs with damaged scores are left out
    (`damaged_beside`). Return [] if taggers of `none` are missing. Also return [] if halves are swapped, because the
    variants then have other test sets. Errors: RunError if the scores of `none` are damaged.
    """
    none, others = _beside(run_id)
    if none is None or not others:
        return []
    base, found = leaderboard.tables(none, store()), []
    for run, number in others.items():
        with suppress(*_DAMAGED):
            table = leaderboard.by_replicate(evaluations.read(run, number), none.taggers)
            line = Reference(
                run=run.id,
                about=reference.KINDS[run.manifest.kind].about(run, library()),
                f1=table[0].f1(),
                difference=compare_line(table, base),
            )
            found.append(line)
    return sorted(found, key=lambda line: -line.f1)


def damaged_beside(run_id: str) -> list[str]:
    """Return the ids of the runs that `beside` leaves out because their scores are missing or damaged."""
    damaged = []
    for run, number in _beside(run_id)[1].items():
        try:
            evaluations.read(run, number)
        except _DAMAGED:
            damaged.append(run.id)
    return damaged


def _beside(run_id: str) -> tuple[ArmRow | None, Mapping[Run, int]]:
    """Return the row of `none` and {run: number of the test set in its options}, for `beside`."""
    test, rows = store().get(run_id).manifest.config["test"], board(run_id).leaderboard
    none = next((row for row in rows if row.arm == NONE), None)
    if none is None or none.halves_runs:
        return None, {}
    if not {run.id for run in store().list("finetune", state="succeeded")} >= {*none.finetunes}:
        return None, {}
    known = {run for row in rows for run in row.finetunes}
    others = [run for run in store().list(*reference.KINDS, state="succeeded") if run.id not in known]
    return none, {run: tests.index(test) for run in others if test in (tests := list(run.manifest.config["test"]))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Untrained:
    """A finished run that tags test sets without training.

    about: description of the run. tests: (name of a test set, scores on it) for every test set, in order.
    experiments: ids of finished experiments with the same first test set, newest first. With swapped halves, taggers
        have other test sets, so these experiments are left out.
    """

    about: str
    tests: Sequence[tuple[str, OverSeeds]]
    experiments: Sequence[str]


def untrained(run_id: str) -> Untrained:
    """Return the result of a run that tags test sets without training. Errors: RunError if the run has no result."""
    run = store().get(run_id)
    kind, marks = reference.KINDS[run.manifest.kind], run.manifest.config["test"]
    tests: Sequence[OverSeeds] = result.read(run, kind.kind.result).tests
    finished = store().list("experiment", state="succeeded")
    compared = [each for each in finished if not each.manifest.config.get("cross")]
    return Untrained(
        about=kind.about(run, library()),
        tests=[(library().recall(mark).name, test) for mark, test in zip(marks, tests, strict=True)],
        experiments=[each.id for each in compared if each.manifest.config["test"] == marks[0]],
    )


def seconds_to_ask(model: str, tests: Iterable[str]) -> tuple[float, str]:
    """Return (seconds in which a language model answers for the test sets, basis of this number in words).

    tests: names or fingerprints of the test sets. Errors: CorpusError.
    """
    each, basis = reference.seconds_per_answer(model)
    return each * sum(len(library().find(mark)) for mark in tests), basis


def sent_to(run_id: str) -> list[str]:
    """Return the other computers to which an experiment or study sent sentences: clusters and hosts of language models.

    Clusters of all runs that it used, and hosts of the runs below the leaderboard (`beside`), are included.
    """
    run = store().get(run_id)
    found = [cluster for used in durations.with_children([run], store()) for cluster in clusters_of(used.path)]
    if run.manifest.kind == "study":
        found += StudyConfig.parse(dict(run.manifest.config)).experiment(0).hosts
    if run.manifest.kind == "experiment":
        found += ExperimentConfig.parse(dict(run.manifest.config)).hosts
        found += [store().get(line.run).manifest.config.get("allow_host", "") for line in beside(run_id)]
    return sorted({host for host in found if host})


def replicates(run_id: str) -> Mapping[str, tuple[str, ...]]:
    """Return {first `finetune` run of a variant: all its `finetune` runs}, for variants with several replicates.

    Variants with removed runs, and variants on swapped halves, are left out. So are variants that share their first run
    with another variant but not all runs, because this run does not identify one of them.
    """
    here = {run.id for run in store().list("finetune")}
    lines = {tuple(row.finetunes) for row in board(run_id).leaderboard if not row.halves_runs}
    often = Counter(line[0] for line in lines)
    return {line[0]: line for line in lines if len(line) > 1 and often[line[0]] == 1 and here.issuperset(line)}


def of_how_many(finetunes: Sequence[str]) -> str:
    """Describe the number of scores of which a mean is taken: "3 replicates", "3 seeds", "1 seed"."""
    seeds = sum(len(store().get(run).manifest.config["seeds"]) for run in finetunes)
    if len(finetunes) > 1 and seeds > len(finetunes):
        return f"{len(finetunes)} replicates, {seeds} seeds"
    return f"{len(finetunes)} replicates" if len(finetunes) > 1 else f"{seeds} seed{'s' * (seeds != 1)}"


def _runs(ids: Iterable[str]) -> list[Run]:
    return [store().get(run) for run in ids]


def tested_alike(a: str, runs: Iterable[str]) -> list[str]:
    """Return those of `runs` that have the same first test set as run `a`."""
    first = store().get(a)
    return [run for run in runs if tagger_tables.tested_alike(first, store().get(run))]


def halves_note(rows: Sequence[ArmRow]) -> str:
    """Return a note that halves were swapped; "" if they were not."""
    return leaderboard.SWAPPED if leaderboard.swapped(rows) else ""


def type_reports(finetunes: Sequence[str]) -> Sequence[TypeReport]:
    """Return precision, recall and F1 per entity type on the test set (seqeval, strict), as means over seeds.

    finetunes: runs of a variant. Return an empty list if they have no test set.
    """
    return tagger_tables.reports(_runs(finetunes))


def macro_f1(finetunes: Sequence[str]) -> float:
    """Return the macro F1 of a variant's runs on the test set, as the mean over seeds. Errors: CorpusError."""
    return tagger_tables.macro(_runs(finetunes))


def decodings(run_id: str) -> dict[str, dict[str, float]]:
    """Return {variant: {decoding: test F1, mean over its taggers that were not removed}}. Errors: RunError."""
    here = {run.id: run for run in store().list("finetune")}
    lines: dict[str, dict[str, float]] = {}
    for row in board(run_id).leaderboard:
        if not row.reference:
            lines[line_name(row)] = tagger_tables.decodings(here[run] for run in row.finetunes if run in here)
    return lines


def least_confidences(run_id: str) -> list[Abstaining]:
    """Return dev precision and recall per confidence threshold, for the tagger that a `finetune` run kept."""
    run = store().get(run_id)
    return evaluations.read_abstaining(run, evaluations.file_suffix("dev", tagger_tables.kept_seed(run)[1]))


def weakest_type(run_id: str) -> str:
    """Return a sentence on the entity type that the verdict's variant misses most often; "" if files are missing."""
    with suppress(RunError, CorpusError):
        if row := words.main(board(run_id)):
            return words.weakest_words(tagger_tables.weakest([store().get(run) for run in row.finetunes]))
    return ""


def unfound_types(run_id: str) -> list[Unfound]:
    """Return the entity types on which every variant of an experiment has an F1 of 0; [] if files are missing."""
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
    """Return the settings in which two `finetune` runs differ, except the encoder that they start from."""
    first, second = store().get(a), store().get(b)
    return _in_words(tagger_tables.differing_settings(first, second), first)


@kept_per_home(32)
def novelty_scores(finetunes: tuple[str, ...]) -> list[Novelty]:
    """Return F1 on entities in the training set, and on entities not in it, as means over a variant's runs.

    The numbers of mentions are means too, because runs may have different training sets.
    """
    each = [tagger_tables.by_novelty(run, library()) for run in _runs(finetunes)]
    return [
        replace(same[0], f1=mean(one.f1 for one in same), mentions=round(mean(one.mentions for one in same)))
        for same in zip(*each, strict=True)
    ]


@kept_per_home(4)
def side_by_side(a: str, seed_a: int | None, b: str, seed_b: int | None) -> list[TwoReadings]:
    """Return the test sentences with gold labels and the predictions of two `finetune` runs. Errors: CorpusError."""
    return tagger_tables.side_by_side(store().get(a), seed_a, store().get(b), seed_b, library())


def own_readings(run_id: str, seed: int | None = None) -> list[TwoReadings]:
    """Return the test sentences with gold labels and the predictions of one tagger, which are given as both A and B.

    seed: a seed of the `finetune` run; by default its first seed. Errors: ConfigError for an unknown seed, or for a run
    that is neither a tested `finetune` run nor an `evaluate` run; CorpusError.
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
    """Return a list with the fingerprint of a run's first test set; [] if the run has no test set."""
    return [corpus for corpus in (tagger_tables.test_of(store().get(run_id)),) if corpus]


def option_differences(a: str, b: str) -> list[OptionDifferenceInWords]:
    """Return every option in which two runs differ."""
    first, second = store().get(a), store().get(b)
    return _in_words(tagger_tables.config_differences(first, second), first)


def _in_words(rows: Sequence[OptionDifference], run: Run) -> list[OptionDifferenceInWords]:
    """Return differences of options in words. Corpora are named, not given by their fingerprint."""
    return [
        OptionDifferenceInWords(
            option=row.option.replace("_", " "),
            a=value_in_words(run, row.option, row.a),
            b=value_in_words(run, row.option, row.b),
        )
        for row in rows
    ]


def value_in_words(run: Run, option: str, value: object) -> str:
    """Return the value of an option in words. Corpora are named; None, the preset's value, becomes "as usual"."""
    known = KINDS.get(run.manifest.kind)  # None for a kind of a later version
    corpora = fields_with(known.config, "corpus") if known else ()
    values = value if isinstance(value, list | tuple) else [value]
    words = [corpus_name(str(one)) if option in corpora and one else str(one) for one in values if one != ""]
    return "as usual" if value is None else ", ".join(words) or "none"


def removed_inputs(run_id: str) -> list[str]:
    """Return the roles (`domain`, `train`, ...) of the input corpora that were removed after the run."""
    inputs, corpora = store().get(run_id).manifest.inputs, library()
    gone = [name for name, fingerprint in inputs.items() if not corpora.holds(fingerprint)]
    # `test.0` and `test.1` have the same role.
    return list(dict.fromkeys(name.partition(".")[0] for name in gone))


def allowed_by_another(run_id: str) -> bool:
    """Return True if the run came in a project file and may send sentences to another computer.

    Only the sender of the file allowed that, so its options must not be used again without asking this user.
    """
    run = store().get(run_id)
    llm = run.manifest.config.get("llm")
    return run.brought_file.exists() and isinstance(llm, Mapping) and bool(llm.get("allow_host"))


def missing(run_id: str) -> list[str]:
    """Return the missing inputs of a run, in words. Without these, the run cannot be repeated exactly."""
    run = store().get(run_id)
    gone = tagger_tables.missing(run, library())
    if run.manifest.kind != "experiment":
        return gone
    arms: dict[str, list[str]] = {}
    for row in board(run_id).leaderboard:
        try:
            own = tagger_tables.missing(store().get(row.finetune_run), library())
        except WinnowError:  # The run was removed or cannot be read.
            own = ["its run" if row.reference else "its taggers"]
        for what in own:
            if what not in (*gone, tagger_tables.MODEL):  # Repeating the run trains a missing model again.
                arms.setdefault(what.removeprefix("its "), []).append(line_name(row))
    # Name each missing input once, with the variants that lack it: "the taggers of knn 10%, none" names two variants.
    return [*gone, *(f"the {what.removeprefix('the ')} of {', '.join(names)}" for what, names in arms.items())]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextBudget:
    """Forecast for an arm whose largest selection is doubled, to `sentences` sentences.

    gain: expected gain in points of dev F1.
    upper: gain that is exceeded in at most one of ten cases; infinite if each size has only one pre-training.
    hours: hours of one pre-training, at the speed so far.
    stop: True if the gain is not worth the hours.
    """

    arm: str
    sentences: int
    gain: float
    upper: float
    hours: float
    stop: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsSpared:
    """Number of labelled sentences that an arm saves: further sentences with which `none` would reach the same score.

    spared: the estimate. lo, hi: 80% interval; infinite if `none` never reaches the same score.
    """

    arm: str
    budget: str
    spared: float
    lo: float
    hi: float


def next_budget(leaderboard: Sequence[ArmRow], worth: float) -> list[NextBudget]:
    """Forecast by a power law whether a larger selection pays, per arm with three sizes (SOURCES.md, Power laws).

    The forecast uses only dev F1, because budgets must not be chosen on the test set (SOURCES.md, Choosing on dev).
    worth: F1 points that an hour of computing must gain.
    """
    advice = []
    arms: dict[str, list[ArmRow]] = {}
    for row in leaderboard:
        arms.setdefault(row.arm, []).append(row)
    for arm, rows in arms.items():
        # Taggers of one pre-training are not independent, so use their mean as the only value of the budget.
        points = {
            row.sentences: row.dev_f1 if len(row.finetunes) > 1 else [mean(row.dev_f1)] for row in rows if row.sentences
        }
        if len(points) < SIZES:
            continue
        last = max(rows, key=lambda row: row.sentences)
        size = 2 * last.sentences
        # Twice as many sentences take twice as much time. The gain, too, is that of one model, not of all replicates.
        step, hours = next_step(points, size), 2 * last.hours.get("pretrain", 0.0) / len(last.finetunes)
        advice.append(
            NextBudget(
                arm=arm, sentences=size, gain=step.gain, upper=step.upper, hours=hours, stop=step.stop(hours, worth)
            )
        )
    return advice


def labels_spared(curve: Sequence[CurvePoint], size: int) -> list[LabelsSpared]:
    """Return how many labelled sentences each arm saves at `size` labelled sentences, according to test F1.

    Arms that were trained on fewer than three sizes of L_C are left out.
    """
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
    """Forecast the gain from doubling the largest selection, per arm with three budgets. worth: as in `next_budget`."""
    return next_budget(board(run_id).leaderboard, worth)


def label_advice(run_id: str) -> list[LabelsSpared]:
    """Estimate how many labelled sentences pre-training saves, per arm that was run on at least three sizes of L_C."""
    curve = board(run_id).curve
    # Compare at the largest size: how many more labels would `none` need to reach the same score?
    return labels_spared(curve, max((point.train_sentences for point in curve), default=0))
