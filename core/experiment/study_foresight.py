"""What a study could show, before it starts: in how many of 100 cases its plan finds what is looked for, and others."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from core.experiment.foresight import PlanChance, foresee, larger, time_in_words
from core.experiment.study_config import StudyConfig
from core.stats.power import power
from core.stats.spread import Spread

MORE = 2  # tasks that a neighbour of the plan has more


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyChance(PlanChance):
    """The same of a plan over so many tasks."""

    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyForesight:
    """Chances of showing a mean of `effect` points, over the tasks of each plan; the plan that was asked for first.

    spreads: of F1 by chance, a task each. claim: the line that this is of.
    """

    plans: Sequence[StudyChance]
    spreads: Sequence[Spread]
    effect: float
    claim: str

    def in_words(self) -> str:
        """Two sentences: the chances, and what they rest on."""
        asked, *others = self.plans
        if asked.replicates < 2:
            return "One replicate can show no difference, however large: it does not say how far scores move by chance."
        first = (
            f"This plan finds a true {self.effect:+g} of {self.claim}, on average over {_tasks(asked)}, in "
            f"{100 * asked.chance:.0f} of 100 cases{time_in_words(asked)}"
        )
        rest = (
            f"; {plan.replicates} replicates on {_tasks(plan)}{_looks(plan)}, in {100 * plan.chance:.0f}"
            f"{time_in_words(plan)}"
            for plan in others
        )
        return f"{first}{''.join(rest)}. {self._basis()}"

    def _basis(self) -> str:
        known = sum(bool(spread.trainings) for spread in self.spreads)
        moves = sum(spread.each for spread in self.spreads) / len(self.spreads)
        sentences = sum(spread.n_sentences for spread in self.spreads)
        sort = (
            "which is assumed, as nothing was trained on these labels yet"
            if not known
            else f"by what was trained on the labels of {known} of {len(self.spreads)} so far, the rest assumed"
        )
        return (
            f"Scores differ by {moves:.1f} points from replicate to replicate (standard deviation), {sort}; the test "
            f"sets have {sentences:,} sentences together."
        )

    def as_json(self) -> dict[str, object]:
        """Fields that `--plan-only --json` prints of it."""
        return {
            "claim": self.claim,
            "effect": self.effect,
            "plans": [asdict(plan) for plan in self.plans],
            "assumed": not any(spread.trainings for spread in self.spreads),
            "sd_between_replicates": [spread.each for spread in self.spreads],
            "test_sentences": [spread.n_sentences for spread in self.spreads],
        }


def _tasks(plan: StudyChance) -> str:
    return f"{plan.tasks} task{'s' * (plan.tasks > 1)}"


def _looks(plan: PlanChance) -> str:
    return f", looked at after {', '.join(map(str, plan.looks))}" if len(plan.looks) > 1 else ""


def foresee_study(config: StudyConfig, home: Path) -> StudyForesight:
    """Foretell what a plan and its neighbours could show: more replicates, and more tasks like these."""
    n = len(config.train)
    spreads = tuple(foresee(config.experiment(number), home).spread for number in range(n))
    more = tuple(spreads[number % n] for number in range(n + MORE))
    plans = [_chance(spreads, plan.stops, config.effect) for plan in larger(config.experiment(0))]
    plans.append(_chance(more, config.stops, config.effect))
    return StudyForesight(plans=plans, spreads=spreads, effect=config.effect, claim=str(config.claimed))


def _chance(spreads: tuple[Spread, ...], looks: tuple[int, ...], effect: float) -> StudyChance:
    foretold = power(spreads, looks, effect)
    return StudyChance(
        tasks=len(spreads), replicates=looks[-1], looks=looks, chance=foretold.chance, share=foretold.share
    )
