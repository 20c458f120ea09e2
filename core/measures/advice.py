"""The recommendation: which source to take for a target, in one sentence that says how sure it is."""

from collections.abc import Sequence

import numpy as np

from core.measures.grid import Grid, by_choice, listed
from core.measures.predictive import Regret


def advise(grid: Grid, target: int, titles: Sequence[str], past: Sequence[Regret] = ()) -> str:
    """The recommendation in a sentence. titles: how people write the measures' names. past: what each cost."""
    voters = grid.voters()
    titles = [title for name, title in zip(grid.measures, titles, strict=True) if name in voters]
    grid, one = grid.only(voters), len(voters) < len(grid.measures)
    chosen = {titles[grid.measures.index(name)]: source for name, source in grid.closest(target).items()}
    name = grid.targets[target]
    if len(grid.sources) == 1:
        return f"{grid.sources[0]} is the only source, and one source cannot be compared; add another one."
    if not chosen:
        return f"No measure puts one source first for {name}: all are equally far, or could not be measured."
    votes = by_choice(chosen)
    (first, supporters), *others = votes.items()
    # `by_choice` puts the most votes first, so the next one alone can tie with it.
    if others and len(others[0][1]) == len(supporters):
        camps = [f"{source} by {listed(measures)}" for source, measures in votes.items()]
        head = f"The measures are split over {name}: {listed(camps)}"
    else:
        head = f"{first} is closest to {name} by {len(supporters)} of {len(chosen)} measures"
        head += ", TVC and TVcC being one" if one else ""
        head += f" ({listed([f'{source} by {listed(measures)}' for source, measures in others])})" if others else ""
    return f"{head}; {_doubt(grid, target, titles)}{_past(past)}."


def _doubt(grid: Grid, target: int, titles: Sequence[str]) -> str:
    """A clause: whether the first stays ahead of the second by more than the draws differ."""
    if grid.spread is None:
        return "how much of that is chance, one draw does not say"
    close = [
        titles[m] for m in range(len(grid.measures)) if _within_noise(grid.closeness()[target, :, m], grid, target, m)
    ]
    if close:
        return f"the lead is within the spread of the draws by {listed(close)}"
    # Draws vary the sources alone, and one that is taken whole not at all.
    return (
        "every lead is larger than the spread of the draws, which vary the sources alone: "
        f"what another sample of {grid.targets[target]} would say was not measured"
    )


def _within_noise(column: np.ndarray, grid: Grid, target: int, m: int) -> bool:
    assert grid.spread is not None
    finite = np.flatnonzero(np.isfinite(column))
    if len(finite) < 2:
        return False
    # Of three or more sources only the two in front can change the advice.
    second, first = finite[np.argsort(column[finite], kind="stable")][-2:]
    return bool(column[first] - column[second] <= grid.spread[target, [first, second], m].mean())


def _past(past: Sequence[Regret]) -> str:
    losses = [(regret.mean, regret.targets) for regret in past if regret.mean is not None]
    if not losses:
        return ""
    mean, targets = float(np.mean([points for points, _ in losses])), max(n for _, n in losses)
    runs = f"on your past runs ({targets} target{'s' if targets > 1 else ''})"
    return f"; {runs} the closest source lost {mean:.1f} F1 on average against the best"
