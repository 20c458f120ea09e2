"""Find out: the experiment that answers a project's question, proposed from its corpora and its selection."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from core.errors import RunError, WinnowError
from core.experiment import arms, view
from core.experiment.config import ExperimentConfig
from core.experiment.foresight import LARGER, PlanChance
from core.experiment.results import corpus_name, repeated, repetitions_to_settle
from core.importing import view as corpora
from core.projects import runs
from core.projects.home import kept_per_home
from core.runs.store import Run
from core.selection import DEFAULT_STRATEGY, choices
from core.selection import prevalence_view as prevalence
from core.selection import view as selections
from core.selection.choice import Choice
from core.selection.score import ScoreConfig
from core.selection.select import SelectConfig, SelectOptions
from core.shown import duration, in_points
from core.stats.verdict import POWER, WEAK

REPLICATES = (3, *sorted(LARGER)[:2])  # replicates that are proposed: a first look, and two plans that can decide
USUAL = "10%"  # budget of D_C if there is no selection yet
_SAME = (
    SelectOptions.model_fields.keys() - ScoreConfig.model_fields.keys()
)  # options of a selection that are not options of its scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A proposed experiment: what it compares, how long it takes, and what it can detect, in sentences.

    options: options of the experiment. alike: sentence on the share of D_C that is like T_C, or "". edited: True if
    the selection was edited by hand; the experiment does not repeat such edits. stronger: if the plan can hardly detect
    its effect (`WEAK`), the smallest proposed plan that can; None if there is none.
    """

    options: Mapping[str, object]
    compared: str
    alike: str
    time: str
    shows: str
    edited: bool
    stronger: PlanChance | None = None


def choice_now() -> Choice | None:
    """Return the first saved selection that can be read, else one of an experiment; None if there is none."""
    children = [run for run in runs.listed("select", state="succeeded") if run.manifest.parent]
    of_experiments = [run for run in children if run.manifest.config["strategy"] not in arms.CONTROLS]
    for choice in (*choices.in_use(), *choices.of(runs.of_corpora_in_use(of_experiments))):
        with suppress(WinnowError):
            if selections.kept(choice.id):
                return choice
    return None


def choice_options() -> dict[str, object]:
    """Return options that compare the selection with no pre-training and with random text of the same size.

    Without a selection, return the default strategy and budget.
    """
    chosen = choice_now()
    config = SelectConfig.parse(dict(selections.run_of(chosen.id).manifest.config)) if chosen else None
    if config and config.strategy in arms.CONTROLS:
        config = None  # a random selection is itself the baseline
    strategy = config.strategy if config else DEFAULT_STRATEGY
    same = config.model_dump(include=_SAME, exclude_defaults=True, mode="json") if config else {}
    return {
        "arms": ("none", "random", strategy),
        "budgets": (str(selections.kept(chosen.id).selected) if chosen else USUAL,),
        **({"strategies": {strategy: dict(config.options)}} if config and config.options else {}),
        **({"select": same} if same else {}),
    }


def options(replicates: int = REPLICATES[0], encoder: str = "") -> dict[str, object]:
    """Return the options of the experiment that tests the selection. encoder: "" for the bundled one."""
    return {
        **corpora.roles(),
        **choice_options(),
        "seeds": tuple(range(1, replicates + 1)),
        "looks": LARGER.get(replicates, ()),
        **({"encoder": encoder} if encoder else {}),
    }


def again(run: Run) -> dict[str, object]:
    """Return the options of the same experiment with more replicates; {} if they would not settle what it left open.

    It reuses the replicates of the run.
    """
    if run.manifest.kind != "experiment":
        return {}
    config, n = ExperimentConfig.parse(dict(run.manifest.config)), repetitions_to_settle(run.id)
    if n <= len(config.seeds) or config.cross or len(config.budgets) != 1 or len(_strategies(config)) != 1:
        return {}
    return repeated(run.id, n)


def _strategies(config: ExperimentConfig) -> list[str]:
    """Return the strategies that are compared."""
    return [name for name in config.arms if name != "none" and name not in arms.CONTROLS]


def is_timed(asked: Mapping[str, object]) -> bool:
    """Return True if this machine's speed is known, which estimates of time need."""
    return runs.finished("calibrate", view.calibrations(asked)[0]) is not None


def outlook() -> str:
    """Return a sentence on what the proposed experiment and the next larger one can detect, and how long they take.

    "" if their corpora cannot be read.
    """
    with suppress(WinnowError):
        finished = tuple(run.id for run in runs.listed(state="succeeded"))
        return _outlook(*(json.dumps(options(n)) for n in REPLICATES[:2]), finished=finished)
    return ""


@kept_per_home(4)
def _outlook(*asked: str, finished: tuple[str, ...]) -> str:
    """Return the sentence of `outlook`. asked: options in JSON. finished: key of the cached value."""
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
    """Describe what options compare, how long that takes and what it can detect. Errors: ConfigError, CorpusError."""
    config, chosen, foresight = ExperimentConfig.parse(dict(asked)), choice_now(), view.foresight(asked)
    [strategy], [budget] = _strategies(config), config.budgets
    sought = "a single point" if foresight.effect == 1 else f"{foresight.effect:g} points"
    own, *larger = foresight.plans
    weak = own.chance < WEAK
    strong = (each for each in larger if each.chance >= POWER and each.replicates in REPLICATES)
    stronger = next(strong, None) if weak else None
    none = f" No plan of up to {REPLICATES[-1]} repetitions does so in 80; more labelled text would help more."
    amount = f"{int(budget):,} sentences" if budget.isdecimal() else budget
    time = "How long it takes is not known yet."
    with suppress(RunError):
        time = f"It takes about {duration(view.cost(asked).seconds)} on this machine."
        if view.timed(config).busy:
            time += " The machine was busy when it was timed; it takes less when idle."
    return Plan(
        options=asked,
        compared=f"Your tagger as it is; pre-trained on {amount} of {corpus_name(config.domain)}, drawn at random; and "
        f"pre-trained on as much text selected by {strategy}. Each is repeated from the start {len(config.seeds)} "
        f"times, trained on {corpus_name(config.train)} and tested on {corpus_name(config.test)}.",
        alike=prevalence.before(asked),
        time=time,
        shows=f"It can detect gains of about {in_points(foresight.points)} or more, in 80 of 100 cases; a gain of "
        f"{sought} in {100 * own.chance:.0f} of 100.{none * (weak and not stronger)} {foresight.basis}.",
        stronger=stronger,
        edited=bool(chosen and selections.edits(chosen.id)),
    )
