"""Plans of experiments and studies before they start: options, cost and forecasts, for pages and commands."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from core import cards
from core.errors import ConfigError, RunError, WinnowError
from core.experiment import more_labels
from core.experiment.config import ExperimentConfig
from core.experiment.cost import Cost, calibration_options
from core.experiment.cost import by_arm as cost_by_arm
from core.experiment.cost import cost as cost_of
from core.experiment.foresight import Foresight, foresee, larger
from core.experiment.study import (
    StudyChance,
    StudyConfig,
    StudyForesight,
    cost_of_all,
    foresee_study,
    study_costs,
    task_names,
)
from core.importing.view import add_sample, roles, set_roles
from core.kind import Options, plan
from core.kinds import KINDS
from core.paths import home
from core.projects.home import kept_per_home, library, store
from core.runs import result
from core.runs.where import Where, checked
from core.tagging import calibrate
from core.tagging.calibrate import CalibrateResult
from core.tagging.estimate import Speeds

STAGES = tuple(name for name, field in ExperimentConfig.model_fields.items() if isinstance(field.default, dict))
DEMO: Mapping[str, object] = {
    "arms": ("none", "random", "classifier"),
    "budgets": ("1000",),
    "seeds": (1, 2, 3),
    "pretrain": {"epochs": 2},
    "finetune": {"epochs": 8},
}

# Seconds. If a plan takes longer, a shorter plan is proposed.
LONG = 2 * 3600.0
# A shorter plan is proposed only if it takes at most this share of the time.
WORTH = 0.7
# Numbers of labelled sentences in shorter plans, largest first.
SIZES = (1000, 500, 300, 200, 100)


def stage_options(lines: Iterable[str], before: Mapping[str, Options] | None = None) -> dict[str, Options]:
    """Parse options of stages, one per line: `pretrain.epochs=4` becomes {pretrain: {epochs: 4}}.

    An option of a strategy also names the strategy: `strategies.knn.neighbours=10`. before: earlier options; a line
    adds an option or replaces its earlier value. Errors: ConfigError.
    """
    options = {stage: deepcopy(before[stage]) for stage in STAGES if before and stage in before}
    for line in filter(None, map(str.strip, lines)):
        stage, _, rest = line.partition(".")
        if stage not in STAGES:
            raise ConfigError(f"{line!r} does not begin with a stage; choose among {', '.join(STAGES)}.")
        name, sign, value = rest.partition("=")
        keys = [word.strip() for word in name.split(".")]
        if not sign or len(keys) != 1 + (stage == "strategies"):
            shape = "STRATEGY.NAME=VALUE" if stage == "strategies" else "NAME=VALUE"
            raise ConfigError(f"{stage}: {rest!r} is not {shape}.")
        table: object = options.setdefault(stage, {})
        for key in keys[:-1]:
            table = table.setdefault(key, {}) if isinstance(table, dict) else table
        assert isinstance(table, dict)
        table[keys[-1]] = value.strip()
    return options


def calibrations(options: Mapping[str, object], kind: str = "experiment") -> list[Options]:
    """Return the options of the `calibrate` runs that `cost` needs: one per task of a study and per encoder.

    For an experiment, the first is for its own encoder; the others are for the encoders of its option `axis`.
    """
    config = KINDS[kind].config.parse(dict(options))
    each = config.experiments if isinstance(config, StudyConfig) else [config]
    asked = [one for one in each if isinstance(one, ExperimentConfig)]
    return [calibration_options(one, encoder) for one in asked for encoder in ("", *one.encoders)]


def not_estimated(options: Mapping[str, object]) -> list[str]:
    """Return a sentence for each arm `labels:+N` that cannot be estimated, with the reason. Errors: CorpusError."""
    config = ExperimentConfig.parse(dict(options))
    return more_labels.not_estimated(config, len(library().find(config.train)))


def calibrated(run_id: str) -> CalibrateResult:
    """Return the result of a `calibrate` run. Errors: RunError."""
    return result.read(store().get(run_id), CalibrateResult)


def cost(options: Mapping[str, object], on: str = "") -> Cost:
    """Estimate the cost of an experiment. Finished runs cost nothing.

    on: place to compute, a value of `--on`; "" for the place where this process computes.
    Errors: RunError if the speed of this machine was not measured for the encoder and network; ConfigError,
    CorpusError.
    """
    return _cost(options, on=on)


def _cost(options: Mapping[str, object], labels: int = 0, on: str = "") -> Cost:
    """Estimate the cost of an experiment on part of its training set. labels: number of sentences to use; 0: all."""
    config = ExperimentConfig.parse(dict(options))
    measured = {encoder: timed(config, encoder) for encoder in ("", *config.encoders)}
    wanted = plan(KINDS["experiment"], config, home())
    assert isinstance(wanted.config, ExperimentConfig)
    where = Where(on=checked(on)) if on else None
    whole = cost_of(wanted.config, measured.pop(""), home(), KINDS, measured, labels=labels, where=where)
    return whole.ended() if wanted.finished_in(store()) and not labels else whole


def seconds_on(options: Mapping[str, object], labels: int) -> float:
    """Estimate the seconds of an experiment on part of its training set. labels: number of sentences to use; 0: all.

    Errors: as for `cost`.
    """
    return _cost(options, labels).seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Shorter:
    """A plan on fewer labels. labels: number of training sentences. seconds: estimated time of the plan."""

    labels: int
    seconds: float


def shorter(options: Mapping[str, object]) -> Shorter | None:
    """Return a plan on fewer labels if the plan with these options takes longer than `LONG`.

    Return None otherwise. Also return None if the new plan takes more than the share `WORTH` of the time, or if the
    speed of this machine was not measured. Errors: ConfigError, CorpusError.
    """
    config = ExperimentConfig.parse(dict(options))
    whole = cost_if_known(options)
    if whole is None or whole.seconds < LONG or config.cross:
        return None
    found = None
    n_train = len(library().find(config.train))
    for n in (size for size in SIZES if size < n_train):
        found = Shorter(labels=n, seconds=_cost(options, n).seconds)
        if found.seconds <= LONG:
            break
    return found if found and found.seconds <= WORTH * whole.seconds else None


def on_fewer_labels(options: Mapping[str, object], n: int) -> Options:
    """Return the options with a new training set: n random sentences of the old one, which are stored as a corpus.

    Errors: ConfigError unless there are more than n training sentences; CorpusError.
    """
    train = library().find(str(options["train"]))
    if not 0 < n < len(train):
        raise ConfigError(f"labels: {train.name} has {len(train):,} sentences; give a smaller number.")
    part = _kept_part(train.fingerprint, n)
    # The user may have removed the part since then.
    return {**options, "train": part if library().holds(part) else _part(train.fingerprint, n)}


@kept_per_home(8)
def _kept_part(train: str, n: int) -> str:
    """Return the result of `_part`, cached because a page calls this function after each input."""
    return _part(train, n)


def _part(train: str, n: int) -> str:
    """Store n random sentences of a corpus, drawn with a fixed seed and kept in order; return their fingerprint."""
    whole = library().find(train)
    rows = np.sort(np.random.default_rng(0).choice(len(whole), size=n, replace=False))
    origin = {"from": whole.fingerprint, "sentences": n}
    return library().subset(whole, rows, name=f"{whole.name}, {n:,} sentences", origin=origin).fingerprint


def cost_if_known(options: Mapping[str, object], on: str = "") -> Cost | None:
    """Return the result of `cost`; None if the speed of this machine was not measured."""
    config = ExperimentConfig.parse(dict(options))
    known = all(_timed(config, encoder) for encoder in ("", *config.encoders))
    return cost(options, on) if known else None


def seconds_by_arm(options: Mapping[str, object], further: Iterable[str] = ()) -> dict[str, float]:
    """Return {arm: estimated seconds} of an experiment, as if none of its runs had finished.

    further: arms that the experiment does not have. Their seconds are the additional seconds of the experiment with
    this arm and its controls. Arms that do not fit the options are left out.
    Return {} if this machine's speed was not measured.
    """
    known = store().list("calibrate", "pretrain", "finetune", state="succeeded")
    return _seconds_by_arm(json.dumps(dict(options)), tuple(further), tuple(run.id for run in known))


@kept_per_home(16)
def _seconds_by_arm(asked: str, further: tuple[str, ...], finished: tuple[str, ...]) -> dict[str, float]:
    """Compute the result of `seconds_by_arm`.

    asked: options in JSON. finished: ids of finished runs, so that another finished run invalidates the cache.
    """
    options, speeds = json.loads(asked), Speeds(store())

    def by_arm(config: ExperimentConfig) -> dict[str, float]:
        measured = {encoder: timed(config, encoder) for encoder in ("", *config.encoders)}
        wanted = plan(KINDS["experiment"], config, home()).config
        assert isinstance(wanted, ExperimentConfig)
        return cost_by_arm(wanted, measured.pop(""), home(), KINDS, measured, speeds=speeds)

    found: dict[str, float] = {}
    with suppress(WinnowError):
        found = by_arm(ExperimentConfig.parse(options))
        whole = sum(found.values())
        for name in further:
            with suppress(WinnowError):
                wider = by_arm(ExperimentConfig.parse({**options, "arms": (*options["arms"], name)}))
                found.setdefault(name, sum(wider.values()) - whole)
    return found


def labelling_seconds(sentences: int) -> float:
    """Return the seconds that a person needs to label this number of sentences, based on earlier labelling."""
    return sentences * (more_labels.seconds_per_sentence(store()) or more_labels.SECONDS)


def timed_while_busy(options: Mapping[str, object]) -> bool:
    """Return True if the speed of this machine was measured while other programs were running."""
    measured = _timed(ExperimentConfig.parse(dict(options)), "")
    return measured is not None and measured.busy


def timed(config: ExperimentConfig, encoder: str = "") -> CalibrateResult:
    """Return the measured speed of this machine for an experiment. Errors: RunError if it was not measured.

    encoder: an encoder of the option `axis`; "": the experiment's own.
    """
    measured = _timed(config, encoder)
    if measured is None:
        raise RunError(
            "experiment: the speed of this machine has not been measured with this encoder; run the calibration first."
        )
    return measured


def _timed(config: ExperimentConfig, encoder: str) -> CalibrateResult | None:
    """Return the speed measured on all corpora of the experiment; if there is none, the speed measured on some of them.

    Return None if the speed was not measured with this encoder.
    """
    kind = KINDS["calibrate"]
    wanted = kind.config.parse(calibration_options(config, encoder))
    if run := plan(kind, wanted, home()).finished_in(store()):
        return result.read(run, CalibrateResult)
    alike = {name: getattr(wanted, name) for name in ("encoder", "network", "hidden")}
    texts = [library().find(name).fingerprint for name in (config.task, config.train, config.domain) if name]
    measured = calibrate.newest(store(), cards.machine(), texts, **alike)
    return measured and replace(measured, pieces={"domain": measured.pieces["task"], **measured.pieces})


def foresight(options: Mapping[str, object]) -> Foresight:
    """Forecast the gain that an experiment and larger ones can detect, with their times if they are known.

    Errors: ConfigError, CorpusError.
    """
    config = ExperimentConfig.parse(dict(options))
    chances = foresee(config, home())
    plans = zip(chances.plans, larger(config), strict=True)
    return replace(chances, plans=tuple(replace(plan, seconds=_seconds(asked)) for plan, asked in plans))


def least_difference(options: Mapping[str, object]) -> Foresight:
    """Forecast the smallest gain that an experiment can detect. Errors: ConfigError, CorpusError.

    The forecast leaves out the power of each plan, because simulating it takes seconds.
    """
    return foresee(ExperimentConfig.parse(dict(options)), home(), plans=0)


def _seconds(config: ExperimentConfig) -> float | None:
    """Return the estimated seconds of a plan; None if the speed of this machine was not measured."""
    try:
        return cost(config.model_dump(exclude={"weights"})).seconds
    except RunError:
        return None


def demo() -> Options:
    """Import the legal sample and return the options of the experiment of `python -m core demo`.

    If no corpus of the project has a role, the corpora of the sample get their roles.
    """
    sample = add_sample("legal")
    if not roles():
        set_roles(sample)
    return {**sample, **DEMO}


def study_cost(options: Mapping[str, object]) -> Cost:
    """Estimate the cost of a study, with one line per task. Finished runs cost nothing. Errors: as for `cost`."""
    config = StudyConfig.parse(dict(options))
    wanted = plan(KINDS["study"], config, home())
    assert isinstance(wanted.config, StudyConfig)
    measured = [timed(each) for each in wanted.config.experiments]
    costs = study_costs(wanted.config, measured, home(), KINDS)
    whole = cost_of_all(costs, task_names(config, library()), config.stops)
    return whole.ended() if wanted.finished_in(store()) else whole


def study_foresight(options: Mapping[str, object]) -> StudyForesight:
    """Forecast the chances that a study and larger ones detect the effect, with times. Errors: as for `study_cost`."""
    config = StudyConfig.parse(dict(options))
    chances = foresee_study(config, home())
    return replace(chances, plans=[replace(each, seconds=_study_seconds(config, each)) for each in chances.plans])


def _study_seconds(config: StudyConfig, chance: StudyChance) -> float:
    """Return the estimated seconds of a plan of a study.

    The plan may have more tasks than `config`. Each further task is assumed to take the mean time of the tasks in
    `config`.
    """
    n = len(config.train)
    plans = larger(config.experiment(0))
    asked = next(one for one in plans if (one.stops, one.taggers) == (chance.looks, chance.taggers))
    update = {"seeds": asked.seeds, "looks": asked.looks, "taggers": asked.taggers}
    return study_cost({**config.model_dump(exclude={"weights"}), **update}).seconds * max(chance.tasks / n, 1.0)
