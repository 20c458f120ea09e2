"""Forecasts of the gain that an experiment can detect, and plans that would settle an open difference.

Both are based on the random spread of F1 between taggers that were trained on the same labels before.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

from core.corpora.library import Library
from core.errors import CorpusError, RunError
from core.experiment import arms
from core.experiment import result as boards
from core.experiment.config import ExperimentConfig
from core.experiment.result import Foretold
from core.files import read_object, write_atomic
from core.results import Evaluation
from core.runs.store import Run, RunStore
from core.shown import count, duration, gain_in_words, in_points
from core.stats.bootstrap import Resampled, resample
from core.stats.pooled import Estimate, Mean
from core.stats.power import detectable, power, replicates_to_detect
from core.stats.sequential import looks_of
from core.stats.spread import ASSUMED_PRETRAINING, Spread, assumed, measured, of_estimate, of_swapped
from core.stats.verdict import POWER, Lacking, detected, lacking
from core.tagging import evaluations

# Number of bootstrap samples of the sentences; enough to estimate a spread.
FEW_DRAWS = 200
# The spread is measured from at most this number of runs, the newest ones.
NEWEST = 8
# Taggers per replicate in proposed plans; about the best number on two corpora (`bench_variance`).
SEVERAL = 4
# Numbers of seeds to forecast in addition to the plan's own number.
FURTHER = (3, 5, 10)
# Numbers of seeds to forecast if halves are swapped, which requires even numbers.
EVEN = (4, 6, 10)
# Larger plans: {number of replicates: its interim analyses}.
LARGER = {n: looks_of(n) for n in (6, 12, 24)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChance:
    """A plan of an experiment and its chance to detect a given effect.

    taggers: number of taggers per replicate.
    looks: numbers of replicates after which the plan is analysed.
    chance: probability that the plan detects the effect if it is real.
    share: average share of the replicates that are run if the effect is real; below 1 if the plan may end early.
    seconds: time of the whole plan; None if unknown.
    """

    replicates: int
    taggers: int = 1
    looks: tuple[int, ...]
    chance: float
    share: float
    seconds: float | None = None

    @property
    def on(self) -> str:
        """Words for the number of tasks of a study, such as " on 3 tasks"; "" for an experiment."""
        return ""

    def in_words(self) -> str:
        """Return the plan in words, such as "6 replicates, 4 taggers each, analysed after 3, 6"."""
        taggers = f", {self.taggers} taggers each" if self.taggers > 1 else ""
        looks = f", analysed after {', '.join(map(str, self.looks))}" if len(self.looks) > 1 else ""
        return f"{count(self.replicates, 'replicate')}{taggers}{looks}"

    @property
    def takes(self) -> str:
        """Time that the plan takes, in words, with the average if it may end early; "" if it is not known."""
        if self.seconds is None:
            return ""
        early = f", {duration(self.seconds * self.share)} on average" if self.share < 0.95 else ""
        return f"{duration(self.seconds)}{early}"

    @property
    def time_in_words(self) -> str:
        """End of a sentence on the plan, with its time; "" if it is not known."""
        return f" and takes {self.takes}" if self.takes else ""


def chances_in_words(plans: Sequence[PlanChance], wanted: str, *, cannot: str = "") -> str:
    """Return a sentence that states the chance of every plan. The first plan is the user's plan.

    wanted: the gain to detect, in words. cannot: the reason why the first plan can never detect the gain; "" if it can.
    """
    asked, *others = plans
    first = f"This plan detects {wanted} in {100 * asked.chance:.0f} of 100 cases"
    first = f"{f'This plan cannot detect {wanted}, {cannot}' if cannot else first}{asked.time_in_words}"
    for plan in others:
        looks = f", analysed after {', '.join(map(str, plan.looks))}" if len(plan.looks) > 1 else ""
        looks += f", with {plan.taggers} taggers each" if plan.taggers > 1 else ""
        first += f"; a plan with {plan.replicates} replicates{plan.on}{looks}{',' * bool(looks)} detects it in "
        first += f"{100 * plan.chance:.0f} of 100{plan.time_in_words}"
    return f"{first}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """Smallest gain that a plan can detect, and its chance of detecting the planned gain.

    points: smallest gain that `seeds` seeds detect at 80% power (`power.detectable`), with confidence intervals at
        `level`.
    spread: random spread of F1 on which the forecast is based.
    further: {larger number of seeds: smallest gain that it detects}.
    effect: planned gain to detect, in points.
    plans: chances of detecting `effect`, for the plan itself and for larger plans; () if they were not computed.
    claim: variant that the claim is about; "" without a claim.
    quick: True if the plan repeats only the taggers, so that it cannot show that the claim beats its control.
    taggers: number of taggers per replicate.
    """

    points: float
    seeds: int
    level: float
    spread: Spread
    further: Mapping[int, float]
    effect: float
    plans: tuple[PlanChance, ...]
    claim: str
    quick: bool
    taggers: int = 1

    @property
    def wanted(self) -> str:
        """The planned gain in words, such as "a true gain of 2 points by classifier"."""
        return f"a true gain of {gain_in_words(self.effect)} by {self.claim}"

    def in_words(self) -> str:
        """Return sentences on the smallest detectable gain, its basis, and each plan's chance of detecting `effect`."""
        if self.seeds < 2 or not (self.claim and self.plans):
            return self.summary()
        return f"{self.summary()} {chances_in_words(self.plans, self.wanted, cannot=self.cannot)}"

    @property
    def cannot(self) -> str:
        """The reason why this plan can never show its claim; "" if it can."""
        return "with one selection and pre-training per variant" if self.quick else ""

    def summary(self) -> str:
        """Return sentences on the smallest detectable gain and its basis."""
        if self.seeds < 2:
            return (
                "One seed cannot show a difference, however large: it does not show how far scores vary by chance. "
                f"Give 3 seeds or more; 3 seeds can detect gains of about {in_points(self.further[3])}."
            )
        more = [self._more(seeds) for seeds in self.further if seeds > self.seeds][:2]
        return (
            f"With {self.seeds} seeds per variant this plan can detect gains of about {in_points(self.points)} or "
            f"more, in 80 of 100 cases{''.join(f'; {words}' for words in more)}. {self._basis()}"
        )

    def _more(self, seeds: int) -> str:
        return f"with {seeds} seeds, about {in_points(self.further[seeds])}"

    @property
    def basis(self) -> str:
        """Beginning of a sentence that names the basis of the spread: finished taggers, or an assumption."""
        if not (n := self.spread.taggers):
            return (
                f"This is assumed for {self.spread.n_sentences:,} test sentences until a first tagger has been trained "
                "on these labels"
            )
        return f"Measured on {n} tagger{'s' * (n > 1)} trained on these labels so far"

    def _basis(self) -> str:
        unit = "from seed to seed" if self.taggers == 1 else f"between means of {self.taggers} taggers"
        moves = f"scores differ by {self.spread.seeds:.1f} points {unit} (standard deviation)"
        if self.spread.pretrainings:
            sort = "" if self.spread.repeated else ", which is assumed"
            moves += f" and by {self.spread.pretrainings:.1f} more from pre-training to pre-training{sort}"
        test = f"the test set has {self.spread.n_sentences:,} sentences"
        if self.spread.swapped:
            test = f"all {self.spread.n_sentences:,} labelled sentences are test sentences, one half after the other"
        more = "" if self.spread.trainings else "; scores differ more if taggers are trained for few epochs"
        return f"{self.basis}: {moves}{more}; {test}."

    def as_json(self) -> dict[str, object]:
        """Return the fields that `--plan-only --json` prints."""
        return {
            "points": self.points,
            "seeds": self.seeds,
            "level": self.level,
            "with_more_seeds": dict(self.further),
            "sd_between_seeds": self.spread.seeds,
            "sd_between_pretrainings": self.spread.pretrainings,
            "assumed": not self.spread.trainings,
            "trainings": self.spread.trainings,
            "taggers": self.spread.taggers,
            "power": POWER,
            "test_sentences": self.spread.n_sentences,
            "claim": self.claim,
            "effect": self.effect,
            "plans": [asdict(plan) for plan in self.plans],
        }


REPEATED = ("seeds", "looks", "repeat")  # options that the function `repeated` changes


def repeated(config: ExperimentConfig, n: int) -> ExperimentConfig:
    """Return the options of the same experiment with n replicates in total and the default interim analyses."""
    looks = looks_of(n) if len(looks_of(n)) > 1 else ()
    return config.model_copy(update={"seeds": _seeds(config, n), "looks": looks, "repeat": "pipeline"})


def with_replicates(config: ExperimentConfig, n: int) -> ExperimentConfig:
    """Return the options of the same experiment with n replicates in total.

    The new experiment has no interim analyses, because it could then end before the differences of all variants are
    settled.
    """
    return config.model_copy(update={"seeds": _seeds(config, n), "looks": ()})


def _seeds(config: ExperimentConfig, n: int) -> tuple[int, ...]:
    """Return n seeds: the seeds of the experiment, then the smallest unused numbers."""
    new = [seed for seed in range(1, n + len(config.seeds) + 1) if seed not in config.seeds]
    # An experiment that ended early may need fewer replicates than it planned.
    return (*config.seeds, *new)[:n]


def larger(config: ExperimentConfig) -> list[ExperimentConfig]:
    """Return the plan itself, the plan with `SEVERAL` taggers per replicate, and two plans with more replicates.

    The plan with several taggers is only included if the claim's arm pre-trains, because then a further tagger takes
    little time compared with a further replicate.
    """
    cell = config.claimed
    if cell is None or len(config.seeds) < 2:
        return [config]
    plans, offered = [config], [n for n in LARGER if n > len(config.seeds)]
    if cell.arm.pretrains and config.repeat == "pipeline" and config.taggers == 1:
        plans.append(config.model_copy(update={"taggers": SEVERAL}))
    for n in offered[:2]:
        update: dict[str, object] = {"seeds": _seeds(config, n), "looks": ()}
        if cell.arm.prepares or cell.arm.rebuild:
            update |= {"repeat": "pipeline", "looks": LARGER[n]}
        plans.append(config.model_copy(update=update))
    return plans


def foresee(config: ExperimentConfig, home: Path, *, plans: int | None = None) -> Foresight:
    """Forecast the gain that an experiment can detect.

    plans: number of plans to simulate, about one second each: first `config`, then larger plans; None: all of them.
    """
    spread = _spread(config, home)
    cell = config.claimed
    if cell and not cell.arm.pretrains:
        spread = replace(spread, pretrainings=0.0)
    elif not spread.repeated:
        spread = replace(spread, pretrainings=ASSUMED_PRETRAINING)
    quick = _is_quick(config)
    own = _of_plan(config, spread)
    n, level, asked = len(config.seeds), 0.95, larger(config)[:plans]
    return Foresight(
        points=detectable(own, config.stops),
        seeds=n,
        level=level,
        spread=own,
        further={seeds: detectable(own, (seeds,)) for seeds in (EVEN if config.cross else FURTHER) if seeds > n},
        effect=config.effect,
        plans=tuple(_chance(plan, spread, config, cannot=quick and plan is config) for plan in asked),
        claim=str(cell) if cell else "",
        quick=quick,
        taggers=config.taggers,
    )


def _is_quick(config: ExperimentConfig) -> bool:
    """Return True if the claim has a control, but the plan repeats only the taggers.

    With a single selection and a single pre-training, a plan cannot show that the claim beats its control.
    """
    cell = config.claimed
    return bool(cell and config.repeat == "tagger" and cell.arm.prepares and arms.control(cell, config.cells))


def kept_forecast(run: Run, effect: float, chance: Callable[[], float]) -> Foretold:
    """Return the forecast that `run` stored when it first started. If there is none, compute and store a forecast.

    A resumed run does not compute a new forecast, because this would be based on the run's own taggers.
    chance: function that returns the probability that the plan detects a true gain of `effect` points.
    """
    file = run.artifacts / "foretold.json"
    stored = read_object(file)
    value = stored.get("chance") if stored else None
    if not isinstance(value, float) or not 0 <= value <= 1:
        value = chance()
        write_atomic(file, json.dumps({"effect": effect, "chance": value}).encode())
    return Foretold(effect=effect, chance=value)


def foretold(config: ExperimentConfig, run: Run, home: Path) -> Foretold | None:
    """Return the power of an experiment: the chance that it detects the effect of its claim.

    Return None if there is no claim or only one seed. Also return None if the claim has a control and the plan repeats
    only the taggers, because one selection per variant cannot show that selection helps.
    """
    if config.claimed is None or len(config.seeds) < 2 or _is_quick(config):
        return None
    return kept_forecast(run, config.effect, lambda: foresee(config, home, plans=1).plans[0].chance)


def _of_plan(plan: ExperimentConfig, spread: Spread) -> Spread:
    """Return the spread of a plan's replicates, given the spread of single taggers and of pre-trainings."""
    repeated = spread if plan.repeat == "pipeline" else replace(spread, pretrainings=0.0)
    return repeated.of_several(plan.taggers)


def _chance(plan: ExperimentConfig, spread: Spread, config: ExperimentConfig, *, cannot: bool) -> PlanChance:
    foretold = power(_of_plan(plan, spread), plan.stops, config.effect)
    chance, share = (0.0, 1.0) if cannot else (foretold.chance, foretold.share)
    return PlanChance(replicates=len(plan.seeds), taggers=plan.taggers, looks=plan.stops, chance=chance, share=share)


def _spread(config: ExperimentConfig, home: Path) -> Spread:
    """Return the spread of earlier taggers trained on these labels. If there are none, return an assumed spread.

    With swapped halves, the spread is measured on earlier replicates with swapped halves. If there are none, it is
    estimated from taggers on all of L_C.
    """
    library, splits = Library(home), ("train", "dev", "test")
    corpora = {split: library.find(getattr(config, split)) for split in splits}
    train, _, test = marks = tuple(corpus.fingerprint for corpus in corpora.values())
    if config.cross and (known := of_swapped(list(_swapped(marks, home)))):
        return known
    spread = measured(_before(train, test, home), list(_replicates(train, test, home)))
    spread = spread or assumed(len(corpora["test"]))
    if not config.cross:
        return spread
    return spread.by_halves(sum({corpus.fingerprint: len(corpus) for corpus in corpora.values()}.values()))


def _swapped(marks: tuple[str, ...], home: Path) -> Iterator[Resampled]:
    """Yield the differences of pre-trained variants to the first pre-trained variant of the same experiment.

    The `NEWEST` finished experiments with swapped halves and the same train, dev and test sets are read.
    marks: fingerprints of these sets.
    """
    store = RunStore(home)
    alike = (run for run in store.list("experiment") if _inputs(run, "train", "dev", "test") == marks)
    single = (run for run in alike if run.manifest.config.get("taggers", 1) == 1)
    crossed = (run for run in single if run.manifest.config.get("cross") and run.state().state == "succeeded")
    for run in islice(crossed, NEWEST):
        try:
            lines = [boards.tables(row, store) for row in boards.read(run).leaderboard if row.pretrain_run]
            yield from (resample(line, lines[0], FEW_DRAWS, 0) for line in lines[1:])
        except (OSError, CorpusError, RunError):  # Skip a run with missing or damaged files.
            continue


def _replicates(train: str, test: str, home: Path) -> Iterator[list[Evaluation]]:
    """Yield the evaluations of each variant with replicates, from the newest finished experiments on these labels.

    train, test: fingerprints of the training set and of the test set.
    """
    store = RunStore(home)
    # Leave out experiments with swapped halves: their replicates have different test sets, which increases the spread.
    whole = (run for run in store.list("experiment") if not run.manifest.config.get("cross"))
    alike = (run for run in whole if _inputs(run, "train", "test") == (train, test))
    for run in islice((run for run in alike if run.state().state == "succeeded"), NEWEST):
        try:
            rows = [row for row in boards.read(run).leaderboard if len(row.finetune_runs) > 1]
            # Take the first tagger of each replicate.
            yield from (
                [one for id in row.finetune_runs for one in evaluations.read(store.get(id))[:: row.taggers]]
                for row in rows
            )
        except (OSError, CorpusError, RunError):  # Skip a run with missing or damaged files.
            continue


def _before(train: str, test: str, home: Path) -> list[list[Evaluation]]:
    """Return the evaluations of the newest finished trainings on these labels, one list per run, one item per seed.

    train, test: fingerprints of the training set and of the test set.
    """
    runs = (run for run in RunStore(home).list("finetune") if _inputs(run, "train", "test.0") == (train, test))
    several = (run for run in runs if len(run.manifest.config["seeds"]) > 1)
    finished = (run for run in several if run.state().state == "succeeded")
    trainings = []
    for run in islice(finished, NEWEST):
        try:
            trainings.append(evaluations.read(run))
        except (OSError, CorpusError, RunError):  # Skip a run with missing or damaged files.
            continue
    return trainings


def _inputs(run: Run, *names: str) -> tuple[str | None, ...]:
    return tuple(run.manifest.inputs.get(name) for name in names)


TOO_MANY, TOO_LONG = 60, 200  # A proposed plan has at most 60 replicates and takes at most 200 hours.
Spreads = Spread | tuple[Spread, ...]


def _not_known(n: int) -> float | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Spread and speed on which an experiment's forecast is based. The verdict uses the same spread and speed.

    spread: spread of taggers trained on these labels; None: use the spread of the difference itself.
    seconds: function of n that returns the remaining seconds until n replicates have finished. If it returns None, the
        time is extrapolated from the hours so far.
    """

    spread: Spread | None = None
    seconds: Callable[[int], float | None] = _not_known


UNKNOWN = Outlook()


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A difference between variants that may be open, which means that it was not detected.

    n: number of replicates or taggers so far; for a study, per task.
    effect: planned gain to detect, in points. The observed difference must not be used instead, because a difference
        that was not detected is mostly chance.
    interval: 95% confidence interval of the difference, in points.
    estimate: the difference, and the components of its variance.
    spread: random spread on which forecasts are based; for a study, one per task.
    hours: time of all n replicates or taggers together.
    bound: significance level of the test.
    swapped: True if halves are swapped, so that replicates come in pairs.
    outlook: basis of the forecast of the time.
    unit: "replicate", or "tagger" if all taggers start from one pre-training.
    """

    effect: float
    interval: tuple[float, float]
    estimate: Estimate | Mean | None
    spread: Spreads | None
    n: int
    hours: float
    bound: float = 0.05
    swapped: bool = False
    outlook: Outlook = UNKNOWN
    unit: str = "replicate"

    @property
    def ruled_out(self) -> bool:
        """True if the whole interval is below the planned gain, so that a gain of this size is ruled out."""
        return self.interval[1] < self.effect

    @property
    def has_power(self) -> bool:
        """True if the comparison detects the planned gain at 80% power, so that no sentence contradicts `detects`."""
        return self.detects is not None and self.detects <= self.effect

    @property
    def detects(self) -> float | None:
        """Smallest gain that the comparison detects at 80% power, according to its own interval; None if unknown."""
        if self.estimate is None or self.n < 2:
            return None
        return detected((self.interval[1] - self.interval[0]) / 2, float(self.estimate.dof), self.bound)

    @property
    def lacks(self) -> Lacking | None:
        """Replicates and test sentences needed to detect the planned gain; None if unknown or ruled out."""
        if self.estimate is None or self.ruled_out:
            return None
        return lacking(self.effect, float(self.estimate.falling), float(self.estimate.fixed), self.n)

    @property
    def repetitions(self) -> int | None:
        """Total number of replicates needed to detect the planned gain; None if unknown, too many or not needed."""
        if self.spread is None or self.ruled_out or self.has_power:
            return None
        enough = replicates_to_detect(self.spread, self.effect, self.n, TOO_MANY)
        if enough is None:
            return None
        enough += enough % 2 if self.swapped else 0
        return None if self.hours / self.n * enough > TOO_LONG else enough

    def more(self, wanted: int, each: str = "") -> str:
        """Describe additional replicates and their time, such as "3 more replicates (6 in all), about 2 h"."""
        further = count(wanted - self.n, f"more {self.unit}")
        return f"{further}{each} ({wanted:,} in all), about {duration(self.seconds(wanted))}"

    def seconds(self, wanted: int) -> float:
        """Return the seconds until `wanted` replicates have finished.

        Without a forecast, they are extrapolated from the hours so far.
        """
        forecast = self.outlook.seconds(wanted)
        return 3600 * self.hours / max(self.n, 1) * (wanted - self.n) if forecast is None else forecast


def spread_of(estimate: Estimate | None, n: int, outlook: Outlook, *, swapped: bool) -> Spread | None:
    """Return the spread on which to base a forecast of a difference.

    It is the spread of `outlook`. If that is unknown, it is computed from the difference itself (`estimate`).
    """
    if outlook.spread or estimate is None or n < 2:
        return outlook.spread
    return of_estimate(estimate, n, swapped=swapped)


def settled_by(open_: Open, each: str = "") -> str:
    """Return sentences with the next step for an open difference. each: " on each task" for a study."""
    gain = f"a true gain of {gain_in_words(open_.effect)}"
    if open_.ruled_out or open_.has_power:
        why = (
            "the whole range of the true difference is below it"
            if open_.ruled_out
            else "this comparison would detect it"
        )
        return f"Next: try something else; {gain} is unlikely, because {why}."
    lacks, enough = open_.lacks, open_.repetitions
    if lacks is None:
        return f"Next: more {open_.unit}s than {open_.n}{each}."
    if lacks.sentences > 1:
        wanted = lacks.repetitions + (lacks.repetitions % 2 if open_.swapped else 0)
        if wanted > TOO_MANY or open_.hours / open_.n * wanted > TOO_LONG:
            return _out_of_reach(f"{wanted:,} {open_.unit}s{each}", gain)
        more = f", and {open_.more(wanted, each)}" if wanted > open_.n else ""
        return (
            f"Next: about {lacks.sentences:.1f} times as many labelled test sentences{more}; more replicates "
            f"alone would not detect {gain}."
        )
    if enough is None:
        return _out_of_reach(f"{lacks.repetitions:,} {open_.unit}s{each}", gain)
    real = f"If the true gain is {gain_in_words(open_.effect)}, {enough:,} {open_.unit}s detect it in 80 of 100 cases."
    return f"Next: {open_.more(enough, each)}. {real}"


def _out_of_reach(repeated: str, gain: str) -> str:
    return f"Next: try something else. Detecting {gain} takes about {repeated}; labelling more text would help more."
