"""What would settle a difference of the size that was seen: repetitions, test sentences, or something else."""

from core.shown import duration
from core.stats.pooled import Estimate, Mean
from core.stats.verdict import LEVEL, lacking

TOO_MANY, TOO_LONG = 60, 200  # repetitions, and hours, that nobody would wait for


def settled_by(
    delta: float, estimate: Estimate | Mean | None, n: int, hours: float, *, swapped: bool = False, each: str = ""
) -> str:
    """Advice on settling a difference of the size that was seen. n: repetitions so far, which took `hours`."""
    if abs(delta) < LEVEL:
        return "Next: something else; the two are level, and more of the same would only show how level."
    if estimate is None:  # results of older versions
        return f"Next: more repetitions than {n}{each}."
    lacks = lacking(abs(delta), float(estimate.falling), float(estimate.fixed), n)
    enough = even(lacks.repetitions, swapped=swapped)
    if enough > TOO_MANY or hours / n * enough > TOO_LONG:
        return (
            f"Next: something else; to show a gain as small as this would take about {enough:,} repetitions{each}. "
            "More labels are the better buy."
        )
    if lacks.sentences == 1:
        return f"Next: {repetitions(enough, n, hours, each)}."
    more = f", and {repetitions(enough, n, hours, each)}" if enough > n else ""
    return (
        f"Next: about {lacks.sentences:.1f} times as many labelled test sentences{more}; repeating alone would not "
        "settle it."
    )


def even(n: int, *, swapped: bool) -> int:
    """Halves that are swapped make two repetitions at once."""
    return n + n % 2 if swapped else n


def repetitions(wanted: int, n: int, hours: float, each: str = "") -> str:
    """So many in place of n, which took `hours`, and how much longer that takes."""
    seconds = 3600 * hours / max(n, 1) * (wanted - n)
    return f"{wanted:,} repetitions in place of {n}{each}, about {duration(seconds)} more"
