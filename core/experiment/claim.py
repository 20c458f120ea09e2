"""The claim of an experiment: the one line that its planned test is about, named before anything is trained."""

from collections.abc import Sequence

from core.config import Budget
from core.experiment.arms import Cell


def claimed(cells: Sequence[Cell], name: str) -> Cell | None:
    """The claim's line: the arm of that name, "" for the first that chooses, else the first that is judged at all; at
    its first budget, from the experiment's own encoder. None where nothing is judged."""
    judged = [cell for cell in cells if cell.arm.judged and not cell.arm.encoder]
    named = [cell for cell in judged if cell.arm.name == name]
    return next(iter(named or [cell for cell in judged if cell.arm.chooses] or judged), None)


def as_much_as(cell: Cell, cells: Sequence[Cell], name: str) -> Cell | None:
    """The line as many tokens of which `cell` reads; None where it reads what its budget says.

    As many sentences are not as much text: one strategy prefers short ones, another long ones. So the budget is the
    claim's, or the first strategy's where that chooses nothing, and all others of that budget read as many tokens; of
    another budget, which that arm has not, a multiple of its first.
    """
    if not cell.arm.chooses or Budget.parse(cell.budget).unit == "tokens":
        return None
    claim = claimed([other for other in cells if other.arm.chooses], name)
    if claim is None or claim.arm.name == cell.arm.plain_name:
        return None
    alike = [
        other for other in cells if other.arm.encoder == cell.arm.encoder and other.arm.plain_name == claim.arm.name
    ]
    return next((other for other in alike if other.budget == cell.budget), alike[0])


def times(cell: Cell, other: Cell) -> float:
    """The budget of `cell` over that of the line which it reads as much as."""
    return Budget.parse(cell.budget).value / Budget.parse(other.budget).value
