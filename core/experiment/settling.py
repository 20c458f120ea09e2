"""What would settle a difference of the size that was seen: repetitions, test sentences, or something else."""

from collections.abc import Callable
from dataclasses import dataclass

from core.shown import duration
from core.stats.pooled import Estimate, Mean
from core.stats.power import detected, replicates_to_detect
from core.stats.spread import Spread, of_estimate
from core.stats.verdict import LEVEL, Lacking, lacking

TOO_MANY, TOO_LONG = 60, 200  # repetitions, and hours, that nobody would wait for
Spreads = Spread | tuple[Spread, ...]


def _not_known(n: int) -> float | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a forecast of the same experiment would rest on, so that verdict and forecast agree.

    spread: of the taggers trained on these labels; None: that of the difference itself. seconds: time that this machine
    needs for n repetitions in all; None: not known, and the hours so far are extrapolated.
    """

    spread: Spread | None = None
    seconds: Callable[[int], float | None] = _not_known


UNKNOWN = Outlook()


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A difference that is not settled. n: repetitions so far, on each task, which took `hours` in all.

    interval: at 95%. bound: p that its test asks for. spread: by which further repetitions are foretold; of each task,
    in a study. swapped: whether halves are swapped, which makes two repetitions at once.
    """

    delta: float
    interval: tuple[float, float]
    estimate: Estimate | Mean | None
    spread: Spreads | None
    n: int
    hours: float
    bound: float = 0.05
    swapped: bool = False
    outlook: Outlook = UNKNOWN

    @property
    def level(self) -> bool:
        """Whether the two are so close that more of the same would only show how close."""
        return abs(self.delta) < LEVEL

    @property
    def detects(self) -> float | None:
        """The smallest gain that this comparison shows in 80 of 100 cases, by its own spread; None if unknown."""
        if self.estimate is None or self.n < 2:
            return None
        return detected((self.interval[1] - self.interval[0]) / 2, float(self.estimate.dof), self.bound)

    @property
    def lacks(self) -> Lacking | None:
        """The parts of its variance say whether repetitions or test sentences are lacking; None for older results."""
        if self.estimate is None or self.level:
            return None
        return lacking(abs(self.delta), float(self.estimate.falling), float(self.estimate.fixed), self.n)

    @property
    def repetitions(self) -> int | None:
        """Repetitions in all that detect a gain of this size; None if nobody would wait for them."""
        if self.spread is None or self.level:
            return None
        enough = replicates_to_detect(self.spread, abs(self.delta), self.n, TOO_MANY)
        if enough is None:
            return None
        enough += enough % 2 if self.swapped else 0
        return None if self.hours / self.n * enough > TOO_LONG else enough

    def more(self, wanted: int, each: str = "") -> str:
        """So many repetitions in place of those so far, and how much longer that takes."""
        seconds = self.outlook.seconds(wanted)
        if seconds is None:
            seconds = 3600 * self.hours / max(self.n, 1) * (wanted - self.n)
        return f"{wanted:,} repetitions in place of {self.n}{each}, about {duration(seconds)} more"


def spread_of(estimate: Estimate | None, n: int, outlook: Outlook, *, swapped: bool) -> Spread | None:
    """The spread that a difference is foretold by: that of all taggers on its labels, else its own."""
    if outlook.spread or estimate is None or n < 2:
        return outlook.spread
    return of_estimate(estimate, n, swapped=swapped)


def settled_by(open_: Open, each: str = "") -> str:
    """Advice on settling the difference. each: on what the repetitions are made, for a study of several tasks."""
    if open_.level:
        return "Next: something else; the two are level, and more of the same would only show how level."
    lacks, enough = open_.lacks, open_.repetitions
    if lacks is None:
        return f"Next: more repetitions than {open_.n}{each}."
    if lacks.sentences > 1:
        wanted = lacks.repetitions + (lacks.repetitions % 2 if open_.swapped else 0)
        if wanted > TOO_MANY or open_.hours / open_.n * wanted > TOO_LONG:
            return _out_of_reach(wanted, each)
        more = f", and {open_.more(wanted, each)}" if wanted > open_.n else ""
        return (
            f"Next: about {lacks.sentences:.1f} times as many labelled test sentences{more}; repeating alone would not "
            "settle it."
        )
    if enough is None:
        return _out_of_reach(lacks.repetitions, each)
    size = "That many detect a difference of this size in 80 of 100 cases"
    return f"Next: {open_.more(enough, each)}. {size}, {_by(open_)}."


def _by(open_: Open) -> str:
    """Which spread a forecast of further repetitions rests on."""
    spread = open_.outlook.spread
    return f"by the spread of {spread.taggers} taggers on these labels" if spread else "by the spread of those so far"


def _out_of_reach(repetitions: int, each: str) -> str:
    return (
        f"Next: something else; to show a gain as small as this would take about {repetitions:,} repetitions{each}. "
        "Labelling more text would help more."
    )
