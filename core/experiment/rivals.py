"""What each line of an experiment is measured against: the `none` of its encoder, and its control."""

from collections.abc import Mapping, Sequence

from core.experiment.arms import CONTROL, CONTROLS, COPIES, NONE, PART, RANDOM, SPAN, STATES, Cell

# What an arm must beat beside `none`, in words; of a name with a value, by what stands before it.
AGAINST: Mapping[str, str] = {
    RANDOM: "a random selection of as many tokens",
    CONTROL: "a random selection of as many tokens",
    STATES: "the states of the encoder as it came",
    PART: "as many assisting sentences at random",
    COPIES: "unchanged copies of the same sentences",
    SPAN: "a plain tagger of spans",
}


def baseline(cell: Cell, others: Sequence[Cell]) -> Cell:
    """Baseline of `cell`: the `none` of its own encoder, for that one the experiment's; for a set of one
    size a random set of that size."""
    encoder = "" if cell.arm.plain_name == NONE else cell.arm.encoder
    return next(other for other in others if (other.arm.plain_name, other.arm.encoder) == (cell.arm.base, encoder))


def control(cell: Cell, others: Sequence[Cell]) -> Cell | None:
    """The line that `cell` must beat beside `none`, as AGAINST says; None where it chooses nothing.

    SOURCES.md, Random controls: a selection has the random arm of its budget, TAPT has `random-only`, MLM on a source
    the encoder as it came, a threshold as many assisting sentences at random, changed copies unchanged ones, MINER a
    plain tagger of spans; DAPT takes all there is and has no such arm.
    """
    arm = cell.arm
    if arm.plain_name in CONTROLS:
        return None
    others = [other for other in others if other.arm.encoder == arm.encoder]
    named = {(other.arm.plain_name, other.budget): other for other in others}
    if arm.plain_name == "tapt":
        return next((other for other in others if other.arm.plain_name == CONTROL), None)
    if arm.chooses:
        return named.get((RANDOM, cell.budget))
    if arm.states and arm.source:
        return named.get((STATES, ""))
    return named.get((arm.own_control, ""))


def against(cell: Cell) -> str:
    """Name of a control, in words."""
    return AGAINST.get(cell.arm.plain_name.partition(":")[0], "")


def purpose(cell: Cell) -> str:
    """Purpose of a control, in a sentence."""
    return cell.arm.summary if cell.arm.control else "Random sentences: the baseline that a selection must beat."
