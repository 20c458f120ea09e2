"""Propose an experiment that tests the project's selection on its corpora, for the page Find out."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from math import inf

from core.config import Budget
from core.errors import RunError, WinnowError
from core.experiment import arms, view
from core.experiment.config import ExperimentConfig
from core.experiment.foresight import LARGER, SEVERAL
from core.experiment.results import allowed_by_another, board, corpus_name, repeated, repetitions_to_settle
from core.importing import view as corpora
from core.projects import runs
from core.projects.home import kept_per_home, library
from core.runs.store import Run
from core.selection import DEFAULT_STRATEGY, choices
from core.selection import prevalence_view as prevalence
from core.selection import view as selections
from core.selection.choice import Choice
from core.selection.score import ScoreConfig
from core.selection.select import SelectConfig, SelectOptions
from core.shown import duration, in_points
from core.stats.power import replicates_to_detect
from core.stats.sequential import looks_of
from core.stats.verdict import WEAK

# Numbers of replicates: of the first proposed plan, and of the next larger plan.
REPLICATES = (3, min(LARGER))
# {time limit of an experiment in seconds: the limit in words}
LIMITS: Mapping[float, str] = {
    600.0: "10 min",
    1800.0: "30 min",
    3600.0: "1 hour",
    7200.0: "2 hours",
    36_000.0: "overnight (10 h)",
}
BUSY = "The machine was busy when its speed was measured; the experiment takes less time on an idle machine."
# Gains in README.md's tables, checked by tests/test_readme_numbers.py.
MEASURED = (
    "What we measured on public corpora: on three, pre-training on selected text gave 1.3 points of F1 more than on "
    "random text. On two others, we found no difference. Labelling brought more: 150 sentences from the queue on the "
    "page Label gave 15.0 points more than 150 random ones."
)
# Budget if the project has no selection yet.
USUAL = "10%"
# Options that a selection has and a scoring run does not have.
_SAME = SelectOptions.model_fields.keys() - ScoreConfig.model_fields.keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A proposed experiment, described in sentences.

    compared, time, shows: what the experiment compares, how long it takes, and what it can detect.
    alike: sentence on the share of D_C that is similar to T_C; "" if unknown.
    edited: True if the user edited the selection by hand; the experiment does not repeat these edits.
    stronger: plan with the shortest time limit that can detect the effect, if this plan's chance is below `WEAK`. None
        if no plan can, or if this plan's chance is not below `WEAK`.
    """

    options: Mapping[str, object]
    compared: str
    alike: str
    time: str
    shows: str
    edited: bool
    stronger: "Affordable | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Affordable:
    """The plan that detects the smallest gain within a time limit.

    limit: time limit in seconds.
    replicates: number of replicates; 0 if no plan fits the limit.
    taggers: number of taggers per replicate.
    labels: number of training sentences; 0: all.
    seconds: time of the plan; if no plan fits the limit, time of the shortest plan.
    points: smallest gain that the plan detects at 80% power. This forecast is based on taggers trained on all labels,
        so it is too optimistic for fewer labels.
    """

    limit: float
    replicates: int
    labels: int
    seconds: float
    points: float
    taggers: int = 1

    @property
    def words(self) -> str:
        """Numbers of replicates and taggers, such as "5 replicates with 4 taggers each"."""
        return f"{self.replicates} replicates" + (f" with {self.taggers} taggers each" if self.taggers > 1 else "")

    @property
    def rank(self) -> tuple[bool, float, float]:
        """Sort key that puts the best plan first.

        A plan that fits the time limit is better than one that does not; then more labels are better, then a smaller
        detectable gain. Of plans that do not fit, the shortest is best.
        """
        if not self.replicates:
            return True, self.seconds, self.points
        return False, -(self.labels or inf), self.points


def choice_now() -> Choice | None:
    """Return the first saved selection that can be read, else a selection of an experiment; None if there is none."""
    children = [run for run in runs.listed("select", state="succeeded") if run.manifest.parent]
    of_experiments = [run for run in children if run.manifest.config["strategy"] not in arms.CONTROLS]
    for choice in (*choices.in_use(), *choices.of(runs.of_corpora_in_use(of_experiments))):
        with suppress(WinnowError):
            if selections.kept(choice.id):
                return choice
    return None


def choice_options() -> dict[str, object]:
    """Return options that compare pre-training on the selection with no pre-training and with random text.

    If the project has no selection, the options contain the default strategy and budget. They also contain the default
    budget if hand edits have removed all sentences.
    """
    chosen = choice_now()
    size = selections.kept(chosen.id).selected if chosen else 0
    config = SelectConfig.parse(dict(selections.run_of(chosen.id).manifest.config)) if chosen else None
    if config and config.strategy in arms.CONTROLS:
        config = None  # A random selection cannot be tested, because it is itself the baseline.
    strategy = config.strategy if config else DEFAULT_STRATEGY
    same = config.model_dump(include=_SAME, exclude_defaults=True, mode="json") if config else {}
    return {
        "arms": ("none", "random", strategy),
        "budgets": (str(size or USUAL),),
        **({"strategies": {strategy: dict(config.options)}} if config and config.options else {}),
        **({"select": same} if same else {}),
    }


def options(replicates: int = REPLICATES[0], encoder: str = "", taggers: int = 1) -> dict[str, object]:
    """Return the options of the experiment that tests the selection. encoder: "" for the bundled encoder."""
    return {
        **corpora.roles(),
        **choice_options(),
        "seeds": tuple(range(1, replicates + 1)),
        "looks": looks_of(replicates) if len(looks_of(replicates)) > 1 else (),
        **({"encoder": encoder} if encoder else {}),
        **({"taggers": taggers} if taggers > 1 else {}),
    }


def affordable(encoder: str = "") -> list[Affordable]:
    """Return, for each time limit in `LIMITS`, the plan that detects the smallest gain.

    Plans have 1 or `SEVERAL` taggers per replicate. A plan uses all labels if `REPLICATES[0]` replicates on all labels
    fit the limit, because the gain on fewer labels may be different. For the same reason, all plans have the same
    encoder and size of the selection. They train for all epochs, because a tagger that stops too early learns nothing.
    They have at most as many replicates as are needed to detect the effect.
    Errors: RunError if the speed of this machine was not measured; ConfigError, CorpusError.
    """
    finished = tuple(run.id for run in runs.listed(state="succeeded"))
    return _affordable(json.dumps(options(encoder=encoder)), encoder, finished=finished)


@kept_per_home(4)
def _affordable(asked: str, encoder: str, finished: tuple[str, ...]) -> list[Affordable]:
    """Compute the plans of `affordable`.

    asked: options of the experiment in JSON. finished: ids of finished runs, so that new ones invalidate the cache.
    """
    whole = json.loads(asked)
    sizes = (0, *(n for n in view.SIZES if n < len(library().find(whole["train"]))))
    plans = [_with_taggers(taggers, encoder, sizes, ExperimentConfig.parse(whole).effect) for taggers in (1, SEVERAL)]
    return [min(of_limit, key=lambda plan: plan.rank) for of_limit in zip(*plans, strict=True)]


def _with_taggers(taggers: int, encoder: str, sizes: Sequence[int], effect: float) -> list[Affordable]:
    """Return, for each time limit in `LIMITS`, the plan that detects the smallest gain with `taggers` per replicate.

    sizes: numbers of training sentences to try, largest first; 0: all. effect: gain to detect, in points.
    """
    least, most = REPLICATES[0], max(LARGER)
    spread = view.least_difference(options(least, encoder, taggers)).spread
    enough = replicates_to_detect(spread, effect, least - 1, most) or most

    @cache
    def seconds(n: int, labels: int) -> float:
        return view.seconds_on(options(n, encoder, taggers), labels)

    @cache
    def points(n: int) -> float:
        return view.least_difference(options(n, encoder, taggers)).points

    found = []
    for limit in LIMITS:
        labels = next((labels for labels in sizes if seconds(least, labels) <= limit), None)
        n, on = 0, sizes[-1] if labels is None else labels
        time = seconds(least, on)
        if labels is not None:
            each = (seconds(2 * least, on) - time) / least
            n = min(least + int((limit - time) / max(each, 1.0)), enough)
            time += (n - least) * each
        gain = points(n or least)
        found.append(Affordable(limit=limit, replicates=n, labels=on, seconds=time, points=gain, taggers=taggers))
    return found


def within(plan: Affordable, encoder: str = "") -> dict[str, object]:
    """Return the options of an affordable plan. If it uses only some training sentences, store them as a corpus.

    Errors: CorpusError.
    """
    whole = options(plan.replicates, encoder, plan.taggers)
    return view.on_fewer_labels(whole, plan.labels) if plan.labels else whole


def again(run: Run) -> dict[str, object]:
    """Return the options of the same experiment with enough replicates for a verdict; {} if more would not help.

    The new experiment reuses the replicates of the finished run. Also return {} for a run that only another person
    allowed to send sentences to another computer.
    """
    if run.manifest.kind != "experiment" or allowed_by_another(run.id):
        return {}
    config, n = ExperimentConfig.parse(dict(run.manifest.config)), repetitions_to_settle(run.id)
    if not n:
        return {}
    # A plan that ended early has fewer replicates than seeds.
    planned = board(run.id).planned
    done = planned.replicates if planned else len(config.seeds)
    if n <= done or config.cross or len(config.budgets) != 1 or len(_strategies(config)) != 1:
        return {}
    return repeated(run.id, n)


def _strategies(config: ExperimentConfig) -> list[str]:
    """Return the names of the arms that get a verdict."""
    return [name for name in config.arms if arms.find(name).judged]


def is_timed(asked: Mapping[str, object]) -> bool:
    """Return True if the speed of this machine was measured for these options, so that times can be estimated."""
    return runs.finished("calibrate", view.calibrations(asked)[0]) is not None


def outlook() -> str:
    """Describe what the proposed experiment and the next larger one can detect, and how long they take.

    Return "" if the corpora cannot be read.
    """
    with suppress(WinnowError):
        finished = tuple(run.id for run in runs.listed(state="succeeded"))
        return _outlook(*(json.dumps(options(n)) for n in REPLICATES), finished=finished)
    return ""


@kept_per_home(4)
def _outlook(*asked: str, finished: tuple[str, ...]) -> str:
    """Compute the sentences of `outlook`.

    asked: options of both experiments in JSON. finished: ids of finished runs, so that new ones invalidate the cache.
    """
    seen = [(view.least_difference(each), view.cost_if_known(each)) for each in map(json.loads, asked)]
    (first, cost), (larger, more) = seen
    times = [f" (about {duration(each.seconds)})" if each else "" for each in (cost, more)]
    unknown = "" if cost else " Before the start, the time is estimated; the estimate takes less than a minute."
    return (
        f"With {first.seeds} replicates{times[0]} you can detect gains of about {in_points(first.points)} or more, "
        f"and with {larger.seeds}{times[1]} gains of about {in_points(larger.points)}, in 80 of 100 cases. "
        f"{first.basis}.{unknown}"
    )


def plan(asked: Mapping[str, object], within: Sequence[Affordable] = ()) -> Plan:
    """Describe the experiment with these options: what it compares, how long it takes, and what it can detect.

    within: plans from which to propose another one if this experiment's chance to detect its effect is below `WEAK`.
    Errors: ConfigError, CorpusError.
    """
    config, chosen, foresight = ExperimentConfig.parse(dict(asked)), choice_now(), view.foresight(asked)
    [strategy], [budget] = _strategies(config), config.budgets
    sought = "a single point" if foresight.effect == 1 else f"{foresight.effect:g} points"
    own, weak = foresight.plans[0], foresight.plans[0].chance < WEAK
    larger = (each for each in within if each.replicates * each.taggers > len(config.tagger_seeds))
    enough = (each for each in larger if each.points <= foresight.effect)
    stronger = next(enough, None) if weak else None
    none = ""
    if weak and within and not stronger:
        longest = duration(max(LIMITS))
        none = f" No plan of up to {longest} detects this gain in 80 of 100 cases; more labelled text would help more."
    time = "How long it takes is not known yet."
    with suppress(RunError):
        time = f"It takes about {duration(view.cost(asked).seconds)} on this machine."
        if view.timed_while_busy(asked):
            time += f" {BUSY}"
    return Plan(
        options=asked,
        compared=_compared(config, strategy, budget),
        alike=prevalence.before(asked),
        time=time,
        shows=f"It can detect gains of about {in_points(foresight.points)} or more, in 80 of 100 cases, and a gain "
        f"of {sought} in {100 * own.chance:.0f} of 100 cases.{none} {foresight.basis}.",
        stronger=stronger,
        edited=bool(chosen and selections.edits(chosen.id)),
    )


def _compared(config: ExperimentConfig, strategy: str, budget: str) -> str:
    """Describe the variants of an experiment, and how often they are trained.

    strategy: the arm that gets a verdict. budget: size of its selection.
    """
    # A budget is named only if an arm has several, as `random` has with the option `multipliers`.
    often = Counter(cell.arm.plain_name for cell in config.cells if not cell.arm.encoder)
    lines = [(cell.arm.plain_name, cell.budget) for cell in config.cells if not cell.arm.encoder]
    names = [f"{name} {size}" if often[name] > 1 else name for name, size in lines]
    each = "Each that is trained" if any(cell.arm.reference for cell in config.cells) else "Each"
    what = f"{len(names)} variants are compared: {', '.join(names)}."
    if config.encoders:
        what += f" Taggers start from {1 + len(config.encoders)} encoders."
    elif {*names} == {arms.NONE, arms.RANDOM, strategy}:
        task, domain = corpus_name(config.task), corpus_name(config.domain)
        # Only the selection has this many sentences. The random baseline has as many tokens.
        what = (
            f"Three taggers are compared: one without further pre-training; one pre-trained on {task} and "
            f"{Budget.parse(budget).in_words} of {domain}, selected by {strategy}; and one pre-trained on {task} and "
            f"as much text of {domain}, drawn at random."
        )
    several = f" with {config.taggers} taggers each time" if config.taggers > 1 else ""
    return (
        f"{what} {each} is repeated from the start {len(config.seeds)} times{several}, trained on "
        f"{corpus_name(config.train)} and tested on {corpus_name(config.test)}."
    )
