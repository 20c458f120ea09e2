"""What an experiment runs besides to say what choosing is worth: `random` on more text, and nested parts of L_C.

The claim's arm is set beside `random` on 1, 2 and 4 times its tokens; the claim, `random` and `none` are also trained
on a quarter and on half of L_C (or as `train_sizes` says), drawn anew for every replicate (SOURCES.md, Multipliers).
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean
from typing import TYPE_CHECKING

from core.config import Budget
from core.errors import ConfigError
from core.experiment.arms import NONE, RANDOM, Cell, find
from core.experiment.halves_result import tables
from core.experiment.labels import Part
from core.experiment.multipliers_result import Multipliers
from core.experiment.replicates import Replicate
from core.experiment.result import ArmRow, nothing_learnt
from core.results import Evaluation
from core.runs.result import read
from core.selection.result import SelectResult
from core.stats.multipliers import Worth, worth
from core.stats.verdict import Answer

if TYPE_CHECKING:
    from core.experiment.config import ExperimentConfig
    from core.experiment.stages import FinishedLine

TIMES = (1, 2, 4)  # evenly over the logarithm, over which what lies between them is read off


def check(config: "ExperimentConfig") -> None:
    """Errors: ConfigError where nobody could tell what choosing is worth."""
    if not config.multipliers:
        return
    if config.repeat != "pipeline" or len(config.seeds) < 2:
        raise ConfigError(
            "multipliers: they are told by replicates of the whole pipeline; give repeat pipeline and two seeds or "
            "more, or leave multipliers out."
        )
    if config.claimed is None or not config.claimed.arm.chooses:
        raise ConfigError("multipliers: are what choosing is worth; name a strategy as the claim, or leave them out.")


def more_text(cells: Sequence[Cell], claim: Cell | None) -> list[Cell]:
    """The lines that are run besides: `random` on more text than the claim's arm has. Errors: ConfigError."""
    if claim is None or not claim.arm.chooses:
        return []
    return [cell for cell in _random(claim) if cell not in cells]


def _random(claim: Cell) -> list[Cell]:
    """`random` on as much text as the claim, and on multiples of it."""
    budget = Budget.parse(claim.budget)
    if budget.unit == "fraction" and budget.value * TIMES[-1] > 1:
        raise ConfigError(
            f"multipliers: {TIMES[-1]} times {claim.budget} is more than the domain corpus has; give a budget of "
            f"{100 // TIMES[-1]}% at most, or leave multipliers out."
        )
    return [Cell(arm=find(RANDOM), budget=str(replace(budget, value=budget.value * times))) for times in TIMES]


def nested(asked: Sequence[int], whole: int) -> tuple[int, ...]:
    """Labelled sentences that are trained on, rising, the last being all of them. asked: other parts of them."""
    return (*sorted({size for size in asked or (whole // 4, whole // 2) if 0 < size < whole}), whole)


def parts(cell: Cell, claim: Cell, sizes: Sequence[int], replicate: Replicate) -> list[Part]:
    """Parts of L_C that a line is fine-tuned on: the replicate's own draw of each size, the same in all lines."""
    compared = [(NONE, ""), (RANDOM, claim.budget), (claim.arm.name, claim.budget)]
    smaller = sizes[:-1] if (cell.arm.name, cell.budget) in compared else ()
    return [(0, 0), *(_part(size, replicate) for size in smaller)]


def _part(size: int, replicate: Replicate) -> Part:
    return size, replicate.number - 1


def multipliers(
    config: "ExperimentConfig", lines: Sequence["FinishedLine"], rows: Sequence[ArmRow], sizes: Sequence[int]
) -> Multipliers | None:
    """Worth of the claim; None where that was not asked for, or nothing was learnt. sizes: of L_C's parts."""
    claim = config.claimed
    if not config.multipliers or claim is None or nothing_learnt(rows):
        return None
    by_cell = {line.cell: line for line in lines}
    system, random, *more = by_cell[claim], *(by_cell[cell] for cell in _random(claim))
    text = worth(_tested(system), {_tokens(line): _tested(line) for line in (random, *more)})
    row = next(row for row in rows if (row.arm, row.budget) == (claim.arm.name, claim.budget))
    none = next(line for line in lines if line.cell.arm.name == NONE)
    first = _tested(system, sizes[0], sizes[-1])
    labels, labels_none = (
        worth(first, {size: _tested(line, size, sizes[-1]) for size in sizes}) for line in (random, none)
    )
    return Multipliers(
        arm=claim.arm.name,
        budget=claim.budget,
        text=_no_surer(text, row.chose),
        labels=_no_surer(labels, row.chose),
        labels_none=_no_surer(labels_none, row.helped),
    )


def _no_surer(worth: Worth | None, answer: Answer | None) -> Worth | None:
    """Down to nothing, where that is not the claim's answer: no word here may contradict it."""
    return replace(worth, lo=None) if worth and answer != "yes" else worth


def _tokens(line: "FinishedLine") -> float:
    """Tokens of S_C, mean over replicates."""
    return mean(read(chain.select, SelectResult).tokens for chain in line.chains if chain.select)


def _tested(line: "FinishedLine", size: int = 0, whole: int = 0) -> list[Evaluation]:
    """Evaluations of a line's taggers on a part of L_C, one a replicate. whole: sentences that are no part."""
    return [
        one
        for chain in line.chains
        for one in tables(chain.tuned[_part(size, chain.replicate) if size < whole else (0, 0)], chain.halves)
    ]
