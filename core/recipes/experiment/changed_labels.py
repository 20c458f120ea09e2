"""How much of L_C an arm changed of what was asked: by too little of it a method is not tested."""

from typing import NamedTuple

from core.artifacts import result as results
from core.artifacts.rebuilt import RebuildResult
from core.recipes.experiment.stages import FinishedLine

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
    sets = [results.read(chain.labels[-1], RebuildResult) for chain in line.chains if chain.labels]
    n = max(len(sets), 1)
    return Changed(round(sum(each.changed for each in sets) / n), round(sum(each.wanted for each in sets) / n))
