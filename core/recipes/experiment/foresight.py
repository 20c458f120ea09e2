"""What an experiment can detect, before it starts: the smallest gain at 80% power, and the chance to show the gain that
is looked for; by the taggers that were trained on its labels before."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

from core.artifacts import evaluations
from core.artifacts import leaderboard as boards
from core.corpora.library import Library
from core.errors import CorpusError, RunError
from core.recipes.experiment import rivals
from core.recipes.experiment.config import ExperimentConfig
from core.results import Evaluation
from core.runs.store import Run, RunStore
from core.shown import duration, in_points
from core.stats.bootstrap import Resampled, resample
from core.stats.power import detectable, power
from core.stats.sequential import looks_of
from core.stats.spread import ASSUMED_PRETRAINING, Spread, assumed, measured, of_swapped
from core.stats.verdict import POWER

FEW_DRAWS = 200  # of sentences, to know a spread by
NEWEST = 8  # trainings, and experiments, that the spread is measured on
FURTHER = (3, 5, 10)  # seeds that are offered beside those asked for
EVEN = (4, 6, 10)  # where halves are swapped
LARGER = {n: looks_of(n) for n in (6, 12, 24)}  # plans of replicates that are offered, and their looks


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChance:
    """A plan of so many replicates and looks, and the chance, 0 to 1, that it shows what is looked for.

    share: of the replicates that it makes on average where that is there. seconds: of the whole plan; None: not known.
    """

    replicates: int
    looks: tuple[int, ...]
    chance: float
    share: float
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """points: the smallest gain that the plan, of `seeds` seeds, shows in 80 of 100 cases (`power.detectable`), by
    intervals at `level`. further: the same for more seeds.

    effect: what is looked for, points. plans: chances of showing it, the plan that was asked for first; () where
    chances were not asked for. claim: the line that this is of, "" for none. quick: whether no plan of taggers alone
    can show that claim.
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

    def in_words(self) -> str:
        """A sentence with the number, one with what it rests on, and the chances of two or three plans."""
        if self.seeds < 2:
            return (
                "One seed cannot show a difference, however large: it does not say how far scores move by chance. "
                f"Give 3 seeds or more; {self._more(3)}."
            )
        more = [self._more(seeds) for seeds in self.further if seeds > self.seeds][:2]
        return (
            f"With {self.seeds} seeds per variant this plan can detect gains of about {in_points(self.points)} or "
            f"more, in 80 of 100 cases{''.join(f'; {words}' for words in more)}. {self._basis()}{self.chances()}"
        )

    def chances(self) -> str:
        """The chances of every plan, in a sentence; nothing where there is no claim, or no plan."""
        if not self.claim or not self.plans:
            return ""
        asked, *others = self.plans
        wanted = f"a true {self.effect:+g} of {self.claim}"
        if self.quick:
            first = f" This plan cannot show {wanted}, with one selection and pre-training per variant"
            first += time_in_words(asked)
        else:
            first = f" This plan finds {wanted} in {100 * asked.chance:.0f} of 100 cases{time_in_words(asked)}"
        rest = (
            f"; {plan.replicates} replicates, looked at after {', '.join(map(str, plan.looks))}, in "
            f"{100 * plan.chance:.0f}{time_in_words(plan)}"
            for plan in others
        )
        return f"{first}{''.join(rest)}."

    def _more(self, seeds: int) -> str:
        return f"with {seeds} seeds, about {in_points(self.further[seeds])}"

    @property
    def basis(self) -> str:
        """Source of the spread: taggers, or an assumption; the beginning of a sentence."""
        if not (n := self.spread.taggers):
            return (
                f"This is assumed for {self.spread.n_sentences:,} test sentences until a first tagger has been trained "
                "on these labels"
            )
        return f"By {n} tagger{'s' * (n > 1)} trained on these labels so far"

    def _basis(self) -> str:
        moves = f"scores differ by {self.spread.seeds:.1f} points from seed to seed (standard deviation)"
        if self.spread.pretrainings:
            sort = "" if self.spread.repeated else ", which is assumed"
            moves += f" and by {self.spread.pretrainings:.1f} more from pre-training to pre-training{sort}"
        test = f"the test set has {self.spread.n_sentences:,} sentences"
        if self.spread.swapped:
            test = f"all {self.spread.n_sentences:,} labelled sentences are tested, half by half"
        more = "" if self.spread.trainings else ", more after few epochs"
        return f"{self.basis}: {moves}{more}; {test}."

    def as_json(self) -> dict[str, object]:
        """Fields that `--plan-only --json` prints of it."""
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


def time_in_words(plan: PlanChance) -> str:
    """Time that a plan takes in words, in the units of the estimate beside it; "" if it is not known."""
    if plan.seconds is None:
        return ""
    early = f", {duration(plan.seconds * plan.share)} on average" if plan.share < 0.95 else ""
    return f" and takes {duration(plan.seconds)}{early}"


REPEATED = ("seeds", "looks", "repeat")  # options that `repeated` changes


def repeated(config: ExperimentConfig, n: int) -> ExperimentConfig:
    """The same experiment with n replicates, the ones that it has among them, and the usual looks."""
    new = [seed for seed in range(1, n + len(config.seeds) + 1) if seed not in config.seeds]
    seeds = (*config.seeds, *new[: n - len(config.seeds)])
    looks = looks_of(n) if len(looks_of(n)) > 1 else ()
    return config.model_copy(update={"seeds": seeds, "looks": looks, "repeat": "pipeline"})


def larger(config: ExperimentConfig) -> list[ExperimentConfig]:
    """The plan that was asked for, and the two next larger ones, in replicates of the pipeline."""
    cell = config.claimed
    if cell is None or len(config.seeds) < 2:
        return [config]
    plans, offered = [config], [n for n in LARGER if n > len(config.seeds)]
    for n in offered[:2]:
        new = [seed for seed in range(1, 2 * n + len(config.seeds)) if seed not in config.seeds]
        seeds = (*config.seeds, *new[: n - len(config.seeds)])
        repeated = cell.arm.pretrains or cell.arm.rebuild
        update = (
            {"seeds": seeds, "repeat": "pipeline", "looks": LARGER[n]} if repeated else {"seeds": seeds, "looks": ()}
        )
        plans.append(config.model_copy(update=update))
    return plans


def foresee(config: ExperimentConfig, home: Path, *, chances: bool = True) -> Foresight:
    """Foretell what a plan could show. The level is that of all intervals. chances: whether to simulate those of the
    plan and of larger ones, which takes seconds."""
    spread = _spread(config, home)
    cell = config.claimed
    if cell and not cell.arm.pretrains:
        spread = replace(spread, pretrainings=0.0)
    elif not spread.repeated:
        spread = replace(spread, pretrainings=ASSUMED_PRETRAINING)
    quick = bool(cell and config.repeat == "tagger" and cell.arm.pretrains and rivals.control(cell, config.cells))
    own = spread if config.repeat == "pipeline" else replace(spread, pretrainings=0.0)
    n, level, asked = len(config.seeds), 0.95, larger(config) if chances else []
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
    )


def _chance(plan: ExperimentConfig, spread: Spread, config: ExperimentConfig, *, cannot: bool) -> PlanChance:
    foretold = power(spread, plan.stops, config.effect)
    chance, share = (0.0, 1.0) if cannot else (foretold.chance, foretold.share)
    return PlanChance(replicates=len(plan.seeds), looks=plan.stops, chance=chance, share=share)


def _spread(config: ExperimentConfig, home: Path) -> Spread:
    """The spread of what was trained on these labels before; where halves are swapped that of such replicates, else
    what it is likely to be for halves."""
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
    """Lines of the newest finished experiments that swapped halves of these labels, each against the first line."""
    store = RunStore(home)
    alike = (run for run in store.list("experiment") if _inputs(run, "train", "dev", "test") == marks)
    crossed = (run for run in alike if run.manifest.config.get("cross") and run.state().state == "succeeded")
    for run in islice(crossed, NEWEST):
        try:
            lines = [boards.tables(row, store) for row in boards.read(run).leaderboard if row.pretrain_run]
            yield from (resample(line, lines[0], FEW_DRAWS, 0) for line in lines[1:])
        except (OSError, CorpusError, RunError):  # its files are gone, or spoilt
            continue


def _replicates(train: str, test: str, home: Path) -> Iterator[list[Evaluation]]:
    """The lines of the newest finished experiments on these labels whose replicates were made anew."""
    store = RunStore(home)
    # Where halves are swapped, replicates have test sentences of their own: not the spread of this.
    whole = (run for run in store.list("experiment") if not run.manifest.config.get("cross"))
    alike = (run for run in whole if _inputs(run, "train", "test") == (train, test))
    for run in islice((run for run in alike if run.state().state == "succeeded"), NEWEST):
        try:
            rows = [row for row in boards.read(run).leaderboard if len(row.finetune_runs) > 1]
            yield from ([one for id in row.finetune_runs for one in evaluations.read(store.get(id))] for row in rows)
        except (OSError, CorpusError, RunError):  # its files are gone, or spoilt
            continue


def _before(train: str, test: str, home: Path) -> list[list[Evaluation]]:
    """The newest finished trainings on these labels with this test set, an evaluation a seed."""
    runs = (run for run in RunStore(home).list("finetune") if _alike(run, train, test))
    finished = (run for run in runs if run.state().state == "succeeded")
    trainings = []
    for run in islice(finished, NEWEST):
        try:
            trainings.append(evaluations.read(run))
        except (OSError, CorpusError, RunError):  # its files are gone, or spoilt
            continue
    return trainings


def _inputs(run: Run, *names: str) -> tuple[str | None, ...]:
    return tuple(run.manifest.inputs.get(name) for name in names)


def _alike(run: Run, train: str, test: str) -> bool:
    return _inputs(run, "train", "test.0") == (train, test) and len(run.manifest.config["seeds"]) > 1
