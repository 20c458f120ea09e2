"""What a `similarity` run says: the table, whether the measures agree, what to take."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.artifacts.similarity import CurvePoint, SimilarityResult, SimilarityRow, grid_of
from core.measures import MEASURES, title
from core.measures.advice import advise
from core.measures.agreement import agreement
from core.measures.grid import Grid, number
from core.measures.leads import Lead, leads
from core.recipes.parts.study import Party, Study

TOLERANCE = 1.05  # sources whose samples differ by less in size count as equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One comparison; see `SimilarityRow`, which is the mean of several. problem: "" where there is a value."""

    source_tokens: int
    target_tokens: int
    whole: bool
    value: float | None
    convention: str
    columns: Mapping[str, float | None]
    problem: str
    notes: Sequence[str]


Cells = Mapping[tuple[str, int, int, int], Cell]  # by (measure, round, source, target)


def summarise(study: Study, cells: Cells) -> SimilarityResult:
    """The table, whether the measures agree on it, what to take, and what a reader should be warned of."""
    rows = [
        _row(study, name, i, j, cells)
        for j in range(len(study.targets))
        for i in range(len(study.sources))
        for name in study.config.measure
    ]
    grid = grid_of(rows)
    closest = {target: grid.closest(at) for at, target in enumerate(grid.targets)}
    titles = [title(name) for name in grid.measures]
    ahead = {target: _leads(study, cells, grid, at) for at, target in enumerate(grid.targets)}
    return SimilarityResult(
        targets={party.name: [corpus.fingerprint for corpus in party.corpora] for party in study.targets},
        sources={party.name: [corpus.fingerprint for corpus in party.corpora] for party in study.sources},
        too_small={party.name: party.n_tokens for party in study.too_small},
        measurements=rows,
        curve=_curve(study, cells),
        agreement=agreement(grid),
        closest=closest if len(closest) > 1 else closest[grid.targets[0]],
        recommendation={target: advise(grid, at, titles, ahead[target]) for at, target in enumerate(grid.targets)},
        leads=[lead for of_target in ahead.values() for lead in of_target],
        warnings=_warnings(study, rows),
        notes=list(dict.fromkeys(note for cell in cells.values() for note in cell.notes)),
        cap_tokens=study.cap,
        draws=study.config.draws,
        seed=study.config.seed,
    )


def _row(study: Study, name: str, i: int, j: int, cells: Cells) -> SimilarityRow:
    """One number: the mean over the draws, what they were, and how it came about."""
    measure, config = MEASURES[name], study.config
    by_draw = [cells[name, each.number, i, j] for each in study.of_kind("draw")]
    measured = [cell for cell in by_draw if cell.value is not None]
    values = [cell.value for cell in by_draw if cell.value is not None]
    columns = measure.columns if measured else ()
    first = measured[0] if measured else by_draw[0]
    seeds = ", ".join(str(each.seed) for each in study.of_kind("draw"))
    how = f"{first.source_tokens:,} tokens of the source, {first.target_tokens:,} of the target, seed {seeds}"
    case = "lower case" if config.lowercase else "case kept"
    rule = "words and marks" if config.tokens == "words" else "tokens between blanks"
    return SimilarityRow(
        target=study.targets[j].name,
        source=study.sources[i].name,
        measure=name,
        value=float(np.mean(values)) if values else None,
        unit=measure.unit,
        prefer=measure.prefer,
        convention="; ".join([*filter(None, [first.convention]), how, f"{rule}, {case}"]),
        sample_tokens=first.source_tokens,
        target_tokens=first.target_tokens,
        draws=values,
        low=min(values, default=None),
        high=max(values, default=None),
        columns={key: _mean(cell.columns[key] for cell in measured) for key in columns},
        whole=first.whole,
        problem=next((cell.problem for cell in by_draw if cell.problem), ""),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _leads(study: Study, cells: Cells, grid: Grid, target: int) -> list[Lead]:
    """The leads of one target; the grid has sources and measures in the order of the study."""
    sources, names = range(len(study.sources)), study.config.measure
    values = [
        [[cells[name, each.number, i, target].value for name in names] for i in sources]
        for each in study.of_kind("part")
    ]
    by_part = np.array(values, dtype=float).reshape(len(values), len(sources), len(names))  # None becomes NaN
    return leads(grid, target, by_part)


def _curve(study: Study, cells: Cells) -> list[CurvePoint]:
    """The first draw and the smaller caps of it, by tokens."""
    rounds = [*reversed(study.of_kind("curve")), study.rounds[0]]
    points = [(each, cell) for each in rounds if len(rounds) > 1 for cell in study.cells() if cell[1] is each]
    return [
        CurvePoint(
            target=study.targets[j].name,
            source=study.sources[i].name,
            measure=name,
            tokens=cells[name, each.number, i, j].source_tokens,
            value=cells[name, each.number, i, j].value,
        )
        for each, (name, _, i, j) in points
    ]


def _warnings(study: Study, rows: Sequence[SimilarityRow]) -> list[str]:
    sizes = {row.source: row.sample_tokens for row in rows}
    small, large = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    warnings = [
        f"{party.name} is too small to compare ({party.n_tokens:,} tokens, fewer than "
        f"{study.config.min_source_tokens:,}); it was left out."
        for party in study.too_small
    ]
    if sizes[large] > TOLERANCE * sizes[small]:
        warnings.append(
            f"The sources differ in size: {large} was read with {sizes[large]:,} tokens, {small} with "
            f"{sizes[small]:,}; more text lowers perplexity and covers more vocabulary by itself, so cap them alike "
            "before you compare."
        )
    whole = [row.source for row in rows if row.whole]
    if study.config.draws > 1 and whole and len(set(whole)) < len(sizes):
        names = ", ".join(dict.fromkeys(whole))
        # Draws of the other sources change the shared vocabulary, so perplexity still differs a little.
        warnings.append(f"Read whole in every draw, so the ranges do not show what other text would give: {names}.")
    both = [s.name for s in study.sources if any(c in t.corpora for t in study.targets for c in s.corpora)]
    if both:
        warnings.append(f"A source and a target at once, so of course the closest: {', '.join(both)}.")
    derived = [party.name for party in study.sources if _derived_from(party, study.targets)]
    if derived:
        warnings.append(f"Taken from the target's own sentences, so of course close: {', '.join(derived)}.")
    for target in study.targets:
        warnings += _readings([row for row in rows if row.target == target.name and row.measure == "ppl"])
    problems = dict.fromkeys(f"{title(row.measure)}: {row.problem}" for row in rows if row.problem)
    return [*warnings, *problems]


def _derived_from(source: Party, targets: Sequence[Party]) -> bool:
    """Whether a corpus of the source is a part that Winnow took of a target."""
    marks = {corpus.fingerprint for target in targets for corpus in target.corpora}
    return any(corpus.origin.get("from") in marks for corpus in source.corpora)


def _readings(rows: Sequence[SimilarityRow]) -> list[str]:
    """Note where PPL's mean over sentences, which a few awful ones rule, and the target as one text disagree."""
    whole = {row.source: corpus for row in rows if (corpus := row.columns.get("corpus")) is not None}
    mean = {row.source: row.value for row in rows if row.source in whole and row.value is not None}
    if not whole or (first := min(mean, key=mean.__getitem__)) == (other := min(whole, key=whole.__getitem__)):
        return []
    return [
        f"Perplexity of {rows[0].target}: the mean over sentences puts {first} first, the target as one text {other} "
        f"({number(whole[other])} against {number(whole[first])}); short sentences of unknown words rule the mean, so "
        "look at the other readings too."
    ]
