"""The finished runs of an experiment, line by line, and what they say about labels and failed taggers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import NamedTuple

from core.bias.result import RebuildResult
from core.experiment.arms import Cell, baseline
from core.experiment.config import Replicate
from core.experiment.result import evaluations_of_replicate
from core.experiment.stages import Part
from core.results import Evaluation
from core.runs import result as results
from core.runs.store import Run
from core.stats.verdict import Unlearnt
from core.tagging import result as taggers

ENOUGH = 0.8  # share of the requested mentions that must be changed for a verdict
NOTHING = (
    "No tagger learnt anything: no seed of any variant scores above random spans on the dev or test set. So nothing "
    "can be compared. Train for more epochs, at a higher rate or on more sentences, and check that both sets have the "
    "types of the training set."
)
Collapsed = Mapping[Cell, Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedChain:
    """The finished runs of one replicate of a line.

    tuned: {part of L_C: its `finetune` run}; (0, 0) is all of it. labels: runs that rebuilt L_C or scored assisting
    sentences. halves: run that split its labelled sentences, if halves are swapped.
    """

    replicate: Replicate
    select: Run | None
    pretrain: Run | None
    tuned: Mapping[Part, Run]
    labels: tuple[Run, ...] = ()
    halves: Run | None = None

    @property
    def finetune(self) -> Run:
        return self.tuned[0, 0]

    @property
    def added(self) -> list[Run]:
        """All runs except the taggers: those that `none` does not need."""
        return [run for run in (self.select, self.pretrain, *self.labels) if run]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedLine:
    """The finished runs behind one line of the leaderboard. source: fingerprint of the text that it reads."""

    cell: Cell
    chains: tuple[FinishedChain, ...]
    source: str | None = None

    @property
    def finetunes(self) -> list[Run]:
        """Fine-tunings on all of L_C, one run per replicate."""
        return [chain.finetune for chain in self.chains]

    @property
    def halves(self) -> list[Run]:
        """Runs that split the labelled sentences, one per replicate; [] if halves are not swapped."""
        return [chain.halves for chain in self.chains if chain.halves]

    @property
    def runs(self) -> list[Run]:
        """All runs behind the line on all of L_C."""
        return [*self.added, *self.finetunes]

    @property
    def added(self) -> list[Run]:
        """All runs except the taggers: those that `none` does not need."""
        return [run for chain in self.chains for run in chain.added]


def evaluations_of(line: FinishedLine) -> list[Evaluation]:
    """Read the evaluations of a line's taggers on the first test set: one per seed, replicate by replicate."""
    return [one for chain in line.chains for one in evaluations_of_replicate(chain.finetune, chain.halves)]


class Changed(NamedTuple):
    """Number of mentions that were changed, and that should have been, mean over replicates."""

    changed: int
    wanted: int

    @property
    def too_few(self) -> bool:
        """True if too few were changed to test the method."""
        return self.changed < ENOUGH * self.wanted

    @property
    def why(self) -> str:
        """Sentence on why there is no verdict."""
        return (
            f"Not tested: {self.changed:,} of {self.wanted:,} mentions are changed, which is less than {ENOUGH:.0%} of "
            "what was asked. Ask for a lower share. Its difference is shown, but nothing is concluded from it."
        )


def changed_of(line: FinishedLine) -> Changed:
    """Count the changes in a line's rebuilt training sets; (0, 0) if it has none, or drew sets without changes."""
    if not line.cell.arm.rebuild or line.cell.arm.control:
        return Changed(0, 0)
    sets = _rebuilt(line)
    n = max(len(sets), 1)
    return Changed(round(sum(each.changed for each in sets) / n), round(sum(each.wanted for each in sets) / n))


def drawn_of(line: FinishedLine) -> tuple[float | None, int]:
    """Return the share of low-CEIM mentions and the number of mentions in a line's training sets, mean over replicates.

    (None, 0) if they were not drawn by CEIM.
    """
    sets = [each for each in _rebuilt(line) if each.low_share is not None] if line.cell.arm.rebuild else []
    if not sets:
        return None, 0
    return mean(each.low_share or 0.0 for each in sets), round(mean(each.measured_mentions for each in sets))


def _rebuilt(line: FinishedLine) -> list[RebuildResult]:
    return [results.read(chain.labels[-1], RebuildResult) for chain in line.chains if chain.labels]


def collapsed_seeds(lines: Sequence[FinishedLine]) -> Collapsed:
    """Return {line: seeds whose tagger learnt nothing}."""
    return {line.cell: [seed for run in line.finetunes for seed in taggers.collapsed_seeds(run)] for line in lines}


def nothing_learnt(lines: Sequence[FinishedLine], collapsed: Collapsed) -> bool:
    """Return True if no tagger of any line learnt anything."""
    return all(len(collapsed[line.cell]) == sum(len(chain.replicate.seeds) for chain in line.chains) for line in lines)


def collapsed_words(cell: Cell, control: Cell | None, collapsed: Collapsed) -> str:
    """Return a sentence on the seeds of a line, its baseline and its control that learnt nothing; "" without any."""
    named = [
        f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))} of {line}"
        for line in _compared(cell, control, collapsed)
        if (seeds := collapsed[line])
    ]
    return f" Learnt nothing, and counted all the same: {'; '.join(named)}." if named else ""


def compared(cell: Cell, control: Cell | None, lines: Sequence[FinishedLine], collapsed: Collapsed) -> Unlearnt:
    """Count the taggers of a line, its baseline and its control that learnt nothing."""
    names = _compared(cell, control, collapsed)
    total = sum(len(chain.replicate.seeds) for line in lines if line.cell in names for chain in line.chains)
    return Unlearnt(taggers=sum(len(collapsed[name]) for name in names), of=total)


def _compared(cell: Cell, control: Cell | None, collapsed: Collapsed) -> list[Cell]:
    """Return the line itself, its baseline and its control."""
    none = baseline(cell, list(collapsed))
    others = [other for other in collapsed if other in (none, control)]
    return list(dict.fromkeys((cell, *others) if cell.arm.judged else (cell,)))
