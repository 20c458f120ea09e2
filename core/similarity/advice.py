"""The recommendation: which source to take for a target, in one sentence that says how sure it is."""

from collections.abc import Mapping, Sequence

import numpy as np

from core.similarity.grid import Grid, by_choice, listed
from core.similarity.leads import Lead
from core.similarity.predictive import Regret


def advise(
    grid: Grid, target: int, titles: Sequence[str], ahead: Sequence[Lead] = (), past: Sequence[Regret] = ()
) -> str:
    """The recommendation in a sentence.

    titles: how people write the measures' names. ahead: the leads for this target. past: what each measure cost.
    """
    voters, title_of = grid.voters(), dict(zip(grid.measures, titles, strict=True))
    titles = [title_of[name] for name in voters]
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
        head += ", TVC and TVcC counting as one" if one else ""
        head += f" ({listed([f'{source} by {listed(measures)}' for source, measures in others])})" if others else ""
    return f"{head}; {_doubt(name, title_of, ahead)}{_past(past)}."


def _doubt(target: str, titles: Mapping[str, str], ahead: Sequence[Lead]) -> str:
    """A clause: which leads are beyond chance, and what that covers."""
    judged = [lead for lead in ahead if lead.p is not None]
    if not judged:
        few = any(lead.parts for lead in ahead)
        return f"how much of that is chance {'so little text does not say' if few else 'was not judged'}"
    short = [titles[lead.measure] for lead in ahead if lead.p is None]
    unjudged = f"; by {listed(short)} there is too little text to judge it" if short else ""
    other = f"other text of {target} and of the sources"
    if chance := [titles[lead.measure] for lead in judged if not lead.holds]:
        return f"the lead may be chance by {listed(chance)}, so {other} may turn it{unjudged}"
    parts = min(lead.parts for lead in judged)
    whose = "the" if short else "every"
    return f"{whose} lead is beyond chance, {other} allowed for (95%, {parts} parts of each){unjudged}"


def _past(past: Sequence[Regret]) -> str:
    losses = [(regret.mean, regret.targets) for regret in past if regret.mean is not None]
    if not losses:
        return ""
    mean, targets = float(np.mean([points for points, _ in losses])), max(n for _, n in losses)
    runs = f"on your past runs ({targets} target{'s' if targets > 1 else ''})"
    return f"; {runs} the closest source lost {mean:.1f} points on average against the best"
