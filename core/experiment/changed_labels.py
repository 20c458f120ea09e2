"""What an arm made of L_C: how much it changed of what was asked, and the share of low-CEIM mentions that it drew."""

from statistics import mean
from typing import NamedTuple, TypedDict

from core.bias.rebuilt import RebuildResult
from core.experiment.stages import FinishedLine
from core.runs import result as results

ENOUGH = 0.8  # of the mentions asked for: below it no verdict is given


class Changed(NamedTuple):
    """Mentions that were changed, and those that were to be; mean over replicates."""

    changed: int
    wanted: int

    @property
    def too_few(self) -> bool:
        """Whether that is no test of the method."""
        return self.changed < ENOUGH * self.wanted

    @property
    def why(self) -> str:
        """Reason that there is no verdict, in a sentence."""
        return (
            f"Not tested: {self.changed:,} of {self.wanted:,} mentions are changed, which is less than {ENOUGH:.0%} of "
            "what was asked. Ask for a lower share; its difference stands there, and nothing is concluded from it."
        )


def of_line(line: FinishedLine) -> Changed:
    """Changes of a line's own set; (0, 0) where it has none, or one that is drawn and not changed."""
    if not line.cell.arm.rebuild or line.cell.arm.control:
        return Changed(0, 0)
    sets = _sets(line)
    n = max(len(sets), 1)
    return Changed(round(sum(each.changed for each in sets) / n), round(sum(each.wanted for each in sets) / n))


class Drawn(TypedDict):
    """Fields of a row on a set that was drawn by CEIM, mean over replicates; see `ArmRow`."""

    low_share: float | None
    mentions: int


def drawn_of(line: FinishedLine) -> Drawn:
    """Return the realised share of low-CEIM mentions and the number of mentions of a line's own sets."""
    sets = [each for each in _sets(line) if each.low_share is not None] if line.cell.arm.rebuild else []
    if not sets:
        return {"low_share": None, "mentions": 0}
    return {
        "low_share": mean(each.low_share or 0.0 for each in sets),
        "mentions": round(mean(each.measured_mentions for each in sets)),
    }


def _sets(line: FinishedLine) -> list[RebuildResult]:
    return [results.read(chain.labels[-1], RebuildResult) for chain in line.chains if chain.labels]
