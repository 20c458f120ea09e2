"""Find out: the experiment that answers a project's question, proposed of what is there; what it takes and shows."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from core.errors import RunError, WinnowError
from core.experiment import arms, view
from core.experiment.config import ExperimentConfig
from core.experiment.foresight import LARGER
from core.experiment.results import corpus_name, repeated, repetitions_to_settle
from core.importing import view as corpora
from core.projects import runs
from core.projects.home import kept_per_home
from core.runs.store import Run
from core.selection import choices
from core.selection import prevalence_view as prevalence
from core.selection import view as selections
from core.selection.choices import Choice
from core.selection.score import ScoreConfig
from core.selection.select import SelectConfig, SelectOptions
from core.shown import duration, in_points

REPLICATES = (3, *sorted(LARGER)[:2])  # how often all is made anew: a first look, and two that can decide
USUAL = "10%"  # of D_C, where nothing was chosen yet
_SAME = SelectOptions.model_fields.keys() - ScoreConfig.model_fields.keys()  # what else a choice was made by


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An experiment that has not begun: what it compares, how long it takes, what it could show, in plain sentences.

    alike: what there is to choose from; "" where nobody counted.
    options: to `start("experiment", ...)` with. edited: whether the choice has hand edits, which are not made again.
    """

    options: Mapping[str, object]
    compared: str
    alike: str
    time: str
    shows: str
    edited: bool


def choice_now() -> Choice | None:
    """The current choice, the next one where its result cannot be read; where nobody chose, that of an experiment."""
    of_experiments = [run for run in runs.listed("select", state="succeeded") if run.manifest.parent and _chooses(run)]
    for choice in (*choices.in_use(), *choices.of(runs.of_corpora_in_use(of_experiments))):
        with suppress(WinnowError):
            if selections.kept(choice.id):
                return choice
    return None


def _chooses(run: Run) -> bool:
    return run.manifest.config["strategy"] not in arms.CONTROLS


def choice_options() -> dict[str, object]:
    """Options that try the way of choosing: no pre-training, random text and the choice, at its size and by whatever
    else it was chosen; where nothing was chosen yet, the usual."""
    chosen = choice_now()
    config = SelectConfig.parse(dict(selections.run_of(chosen.id).manifest.config)) if chosen else None
    if config and config.strategy in arms.CONTROLS:
        config = None  # what was taken by lot is what a choice is held against
    strategy = config.strategy if config else selections.DEFAULT_STRATEGY
    same = config.model_dump(include=_SAME, exclude_defaults=True, mode="json") if config else {}
    return {
        "arms": ("none", "random", strategy),
        "budgets": (str(selections.kept(chosen.id).selected) if chosen else USUAL,),
        **({"strategies": {strategy: dict(config.options)}} if config and config.options else {}),
        **({"select": same} if same else {}),
    }


def options(replicates: int = REPLICATES[0], encoder: str = "") -> dict[str, object]:
    """The experiment that tries the choice, all made anew so many times. encoder: "" for the bundled one."""
    return {
        **corpora.roles(),
        **choice_options(),
        "seeds": tuple(range(1, replicates + 1)),
        "looks": LARGER.get(replicates, ()),
        **({"encoder": encoder} if encoder else {}),
    }


def again(run: Run) -> dict[str, object]:
    """The same experiment, all made anew more often, where that could settle what it left open; {} where it could not.

    What the run made counts in it.
    """
    if run.manifest.kind != "experiment":
        return {}
    config, n = ExperimentConfig.parse(dict(run.manifest.config)), repetitions_to_settle(run.id)
    if n <= len(config.seeds) or config.cross or len(config.budgets) != 1 or len(_strategies(config)) != 1:
        return {}
    return repeated(run.id, n)


def _strategies(config: ExperimentConfig) -> list[str]:
    """The ways of choosing that are compared."""
    return [name for name in config.arms if name != "none" and name not in arms.CONTROLS]


def is_timed(asked: Mapping[str, object]) -> bool:
    """Whether this machine's speed is known, without which nothing can be said of time."""
    return runs.finished("calibrate", view.calibration(asked)) is not None


def outlook() -> str:
    """Smallest gains that the proposed experiment, and the next larger one, could show, and how long each takes, in the
    numbers of their plans, in words; "" where what they would read cannot be read."""
    with suppress(WinnowError):
        finished = tuple(run.id for run in runs.listed(state="succeeded"))
        return _outlook(*(json.dumps(options(n)) for n in REPLICATES[:2]), finished=finished)
    return ""


@kept_per_home(4)
def _outlook(*asked: str, finished: tuple[str, ...]) -> str:
    """asked: options, in JSON. finished: the runs that it is foretold by, for what is kept is theirs."""
    seen = [(view.least_difference(each), view.cost_if_known(each)) for each in map(json.loads, asked)]
    (first, cost), (larger, more) = seen
    times = [f" (about {duration(each.seconds)})" if each else "" for each in (cost, more)]
    unknown = "" if cost else " How long that takes is timed first, in less than a minute."
    return (
        f"With {first.seeds} repetitions{times[0]} you can detect gains of about {in_points(first.points)} or more, "
        f"with {larger.seeds}{times[1]} of about {in_points(larger.points)}, in 80 of 100 cases. "
        f"{first.basis}.{unknown}"
    )


def plan(asked: Mapping[str, object]) -> Plan:
    """Say what these options compare, how long that takes, and what it could show. Errors: ConfigError, CorpusError."""
    config, chosen, foresight = ExperimentConfig.parse(dict(asked)), choice_now(), view.foresight(asked)
    [strategy], [budget] = _strategies(config), config.budgets
    sought = "a single point" if foresight.effect == 1 else f"{foresight.effect:g} points"
    amount = f"{int(budget):,} sentences" if budget.isdecimal() else budget
    time = "How long it takes is not known yet."
    with suppress(RunError):
        time = f"It takes about {duration(view.cost(asked).seconds)} on this machine."
        if view.timed(config).busy:
            time += " It had other work when it was timed: when it is quiet, it takes less."
    return Plan(
        options=asked,
        compared=f"Your tagger as it is; after reading {amount} of {corpus_name(config.domain)} at random; after "
        f"reading as much that was chosen by {strategy}. Each is made {len(config.seeds)} times, all of it anew, "
        f"trained on {corpus_name(config.train)} and tested on {corpus_name(config.test)}.",
        alike=prevalence.before(asked),
        time=time,
        shows=f"It can detect gains of about {in_points(foresight.points)} or more, in 80 of 100 cases; a gain of "
        f"{sought} in {100 * foresight.plans[0].chance:.0f} of 100. {foresight.basis}.",
        edited=bool(chosen and selections.edits(chosen.id)),
    )
