"""Taggers that learnt nothing: what the leaderboard says in place of a verdict, or beside one."""

from collections.abc import Mapping, Sequence

from core.experiment import rivals
from core.experiment.arms import Cell
from core.experiment.stages import FinishedLine
from core.stats.verdict import Unlearnt
from core.tagging import result as taggers

NOTHING = (
    "No tagger learnt anything: under no seed of any variant is the score above what spans laid by lot reach, on "
    "the dev or test set. Nothing is compared by that. Train for more epochs, at a higher rate or "
    "on more sentences, and see that both hold the types of the training sentences."
)

Collapsed = Mapping[Cell, Sequence[int]]


def collapsed_seeds(lines: Sequence[FinishedLine]) -> Collapsed:
    """The seeds of each line whose tagger learnt nothing."""
    return {line.cell: [seed for run in line.finetunes for seed in taggers.collapsed_seeds(run)] for line in lines}


def nothing_learnt(lines: Sequence[FinishedLine], collapsed: Collapsed) -> bool:
    """Whether that is so of every seed of every line."""
    return all(len(collapsed[line.cell]) == sum(len(chain.replicate.seeds) for chain in line.chains) for line in lines)


def in_words(cell: Cell, control: Cell | None, collapsed: Collapsed) -> str:
    """A sentence on the seeds that learnt nothing, of a line and of what it is compared with; nothing without any."""
    named = [
        f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))} of {line}"
        for line in _compared(cell, control, collapsed)
        if (seeds := collapsed[line])
    ]
    return f" Learnt nothing, and counted all the same: {'; '.join(named)}." if named else ""


def compared(cell: Cell, control: Cell | None, lines: Sequence[FinishedLine], collapsed: Collapsed) -> Unlearnt:
    """How many taggers of a line, of its baseline and of its control learnt nothing."""
    names = _compared(cell, control, collapsed)
    taggers = sum(len(chain.replicate.seeds) for line in lines if line.cell in names for chain in line.chains)
    return Unlearnt(taggers=sum(len(collapsed[name]) for name in names), of=taggers)


def _compared(cell: Cell, control: Cell | None, collapsed: Collapsed) -> list[Cell]:
    """The line itself, and the lines that it is compared with."""
    baseline = rivals.baseline(cell, list(collapsed))
    others = [other for other in collapsed if other in (baseline, control)]
    return list(dict.fromkeys((cell, *others) if cell.arm.judged else (cell,)))
