"""Studies: one claim on several tasks; its PLAN.yaml, what it will cost, what it could show, what it came to."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from core.experiment import result as study
from core.experiment import study_words as findings
from core.experiment import view as experiments
from core.experiment.foresight import larger
from core.experiment.result import Conclusion as Conclusion
from core.experiment.result import Question as Question
from core.experiment.result import StudyResult as StudyResult
from core.experiment.study import StudyChance, StudyConfig, StudyForesight, foresee_study, study_cost, task_names
from core.experiment.study import StudyCost as StudyCost
from core.experiment.words import Finding
from core.files import read_back
from core.kind import Options, plan
from core.kinds import KINDS
from core.projects.home import home, library, store
from core.runs import result
from core.runs.events import Event


def read_plan(path: Path, typed: Mapping[str, object], listener: Callable[[Event], None] | None = None) -> Options:
    """The options of a study: those of a PLAN.yaml, and before them those that were typed. Errors: of experiments."""
    return experiments.read_plan(path, typed, listener, StudyConfig)


def calibrations(options: Mapping[str, object]) -> list[Options]:
    """Options to `start("calibrate", ...)` with, one a task, so that `cost` can speak of this machine."""
    config = StudyConfig.parse(dict(options))
    return [experiments.calibration(_experiment(config, number)) for number in range(len(config.train))]


def _experiment(config: StudyConfig, number: int) -> Options:
    return config.experiment(number).model_dump(exclude={"weights"})


def cost(options: Mapping[str, object]) -> StudyCost:
    """Estimate the cost of a study; what is finished already costs nothing.

    Errors: RunError while a calibration that it needs has not finished; ConfigError, CorpusError.
    """
    config = StudyConfig.parse(dict(options))
    wanted = plan(KINDS["study"], config, home())
    assert isinstance(wanted.config, StudyConfig)
    measured = [experiments.timed(wanted.config.experiment(number)) for number in range(len(config.train))]
    whole = study_cost(wanted.config, measured, home(), KINDS, task_names(config, library()))
    if not store().finished(wanted.key):
        return whole
    return replace(whole, costs={place: each.ended() for place, each in whole.costs.items()})


def foresight(options: Mapping[str, object]) -> StudyForesight:
    """Foretell what a study could show, and neighbours of its plan, with their times; `cost` says what must be known.

    Errors: as `cost`.
    """
    config = StudyConfig.parse(dict(options))
    chances = foresee_study(config, home())
    return replace(chances, plans=[replace(each, seconds=_seconds(config, each)) for each in chances.plans])


def _seconds(config: StudyConfig, chance: StudyChance) -> float:
    """Seconds that a plan takes; of tasks that are not here, as much as one of these."""
    n = len(config.train)
    asked = next(one for one in larger(config.experiment(0)) if one.stops == chance.looks)
    update = {"seeds": asked.seeds, "looks": asked.looks}
    return cost({**config.model_dump(exclude={"weights"}), **update}).seconds * max(chance.tasks / n, 1.0)


def board(run_id: str) -> StudyResult:
    """Result of a finished study. Errors: RunError."""
    return result.read(store().get(run_id), StudyResult)


def finding(run_id: str) -> Finding:
    """The verdict of a finished study: what, how sure, what next. Errors: RunError."""
    return findings.of_study(board(run_id))


def board_lines(run_id: str) -> list[str]:
    """The same as the study left it for people, by line."""
    with read_back(path := study.file(store().get(run_id), "md")):
        return path.read_text(encoding="utf-8").split("\n")
