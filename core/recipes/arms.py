"""The arms of an experiment: how the encoder of each line of the leaderboard comes to be.

An arm is pre-trained (MLM) on T_C, on sentences chosen from D_C, on both, or not at all; then every arm is
fine-tuned on the same L_C. A new sort of arm is one entry here and, where its name carries a value, one in `_named`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.errors import ConfigError
from core.selection import STRATEGIES

NONE, RANDOM, CONTROL = "none", "random", "random-only"
CONTROLS = (RANDOM, CONTROL, "length-matched-random")  # what a choice of sentences must beat; no verdict of their own
WHOLE = "100%"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """What an encoder is pre-trained on.

    task: on T_C. strategy: also on S_C, chosen by this strategy; "": on nothing of D_C.
    budget: of that S_C, where the experiment's budgets do not apply; "" where they do, once each.
    """

    name: str
    summary: str
    task: bool = True
    strategy: str = ""
    budget: str = ""

    @property
    def pretrains(self) -> bool:
        """Whether there is any MLM at all."""
        return self.task or bool(self.strategy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One line of the leaderboard: an arm at a budget ("" where it chooses nothing, or all there is)."""

    arm: Arm
    budget: str = ""

    def __str__(self) -> str:
        return f"{self.arm.name} {self.budget}".strip()


# DAPT reads every sentence of D_C that may be used at all: leaks, copies, too short and too long ones stay out.
_FIXED: Mapping[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm(name=NONE, summary="No pre-training: what every other arm is measured against.", task=False),
        Arm(name="tapt", summary="MLM on T_C alone."),
        Arm(name="dapt", summary="MLM on all of D_C.", task=False, strategy=RANDOM, budget=WHOLE),
        Arm(name="tapt+dapt", summary="MLM on T_C and all of D_C.", strategy=RANDOM, budget=WHOLE),
        Arm(
            name=CONTROL,
            summary="MLM on as many random sentences of D_C as T_C has: what TAPT must beat.",
            task=False,
            strategy=RANDOM,
            budget="|T_C|",
        ),
    )
}  # fmt: skip
ARM_NAMES = (*_FIXED, *STRATEGIES)


def find(name: str) -> Arm:
    """An arm by name. Errors: ConfigError, which lists them all."""
    if name in _FIXED:
        return _FIXED[name]
    if name in STRATEGIES:
        return Arm(name=name, summary=f"MLM on T_C and S_C. {STRATEGIES[name].summary}", strategy=name)
    raise ConfigError(f"arms: {name!r} is not known; choose among {', '.join(ARM_NAMES)}.")


def complete(names: Sequence[str], *, domain: bool) -> tuple[str, ...]:
    """`names` with the arms that no verdict can do without: `none`, and an arm of equally many random sentences.

    domain: there is a D_C to draw from. Errors: ConfigError for an unknown arm, or one that lacks its D_C.
    """
    arms = [find(name) for name in dict.fromkeys(names)]
    if wanting := [arm.name for arm in arms if arm.strategy and not domain]:
        raise ConfigError(f"arms: {wanting[0]} chooses from D_C; give a domain corpus, or leave that arm out.")
    needed = [NONE]
    needed += [RANDOM] if any(_chooses(arm) for arm in arms) else []
    needed += [CONTROL] if domain and "tapt" in names else []
    asked = [arm.name for arm in arms]
    return (*(name for name in needed if name not in asked), *asked)


def _chooses(arm: Arm) -> bool:
    return bool(arm.strategy) and not arm.budget


def cells(names: Sequence[str], budgets: Sequence[str]) -> list[Cell]:
    """Every line of the leaderboard, in the order in which the arms are run."""
    found: list[Cell] = []
    for arm in map(find, names):
        found += [Cell(arm=arm, budget=budget) for budget in (budgets if _chooses(arm) else (arm.budget,))]
    return found


def control(cell: Cell, every: Sequence[Cell]) -> Cell | None:
    """Equally many random sentences, which `cell` must beat beside `none` (SPEC B2, C9); None if there are none.

    A selection has the random arm of its budget, TAPT has `random-only`; DAPT takes all there is and has no such arm.
    """
    if cell.arm.name == "tapt":
        return next((other for other in every if other.arm.name == CONTROL), None)
    if cell.arm.name in CONTROLS or not _chooses(cell.arm):
        return None
    return next((other for other in every if (other.arm.name, other.budget) == (RANDOM, cell.budget)), None)
