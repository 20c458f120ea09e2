"""A pasted table of measures and F1: what was measured elsewhere, or printed in a paper, read as text.

    target,source,ppl,wvv,tvc,lm_f1,lm_f1_sd        separated by commas, semicolons or tabs
    CADEC,None,,,,66.14,0.53                        the source `None`: F1 without any source
    CADEC,1BWB,307.4,1.137,81.73,70.08,0.43         or one cell: 70.08 (± 0.43)

Columns named like a measure are measures; another one is a measure where its name says which end is closer
(`bleu:high`). Every other column is F1 in percent; `NAME_sd` is its deviation, `NAME_1`, `NAME_2` are single runs,
`runs` is how many there were.
"""

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import ReadError
from core.results import Prefer
from core.similarity.grid import Grid
from core.similarity.measures import MEASURES
from core.similarity.predictive import Outcomes

# Possessive (`*+`): digits are never given back, or a cell of a thousand digits is tried in a thousand million ways.
_NUMBER = re.compile(r"([+-]?\d[\d,]*+(?:\.\d*+)?(?:e[+-]?\d++)?|[+-]?\.\d++)\s*+%?", re.IGNORECASE)
_CELL = re.compile(rf"{_NUMBER.pattern}(?:\s*+\(?\s*+(?:±|\+/-|\+-)\s*+{_NUMBER.pattern}\s*+\)?)?", re.IGNORECASE)
_NOTHING = {"", "-", "–", "—", "na", "n/a", "nan", "none"}
_NONE = {"none", "no source", "baseline"}

Cell = tuple[float, float | None] | None  # a number and perhaps its deviation; None: nothing is there


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pasted:
    """A grid of measures and, one a kind of model, what training came to on it."""

    grid: Grid
    outcomes: tuple[Outcomes, ...]


def read_table(text: str, name: str = "the table") -> Pasted:
    """Errors: ReadError with the line and what to do."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        raise ReadError(name, None, "holds no rows; paste a header line and one line a target and source.")
    # Of equal counts the first: a tab never stands in a number, a comma may.
    sign = max("\t;,", key=lines[0].count)
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=sign, skipinitialspace=True)]
    header = [cell.strip("\ufeff ") for cell in rows[0]]
    columns = _columns(header, name)
    keys = [header[at] for at in columns.values()]
    cells: dict[tuple[str, str], dict[str, Cell]] = {}
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            raise ReadError(
                name, line, f"has {len(row)} columns where the header has {len(header)}; add or remove some."
            )
        key = (row[columns["target"]], "None" if row[columns["source"]].lower() in _NONE else row[columns["source"]])
        if not all(key) or key in cells:
            raise ReadError(name, line, "names no target, no source or both a second time; give every pair one line.")
        named = [*zip(header, row, strict=True)]
        cells[key] = {column: _cell(text, name, line, column) for column, text in named if column not in keys}
    return _assemble(header, cells, name)


def _columns(header: Sequence[str], name: str) -> dict[str, int]:
    lowered = [column.lower() for column in header]
    for wanted in ("target", "source"):
        if lowered.count(wanted) != 1:
            raise ReadError(name, 1, f"needs one column called {wanted}; name it in the header line.")
    if len(set(lowered)) < len(lowered):
        raise ReadError(name, 1, "has two columns of one name; rename one.")
    return {wanted: lowered.index(wanted) for wanted in ("target", "source")}


def _cell(text: str, name: str, line: int, column: str) -> Cell:
    if text.lower() in _NOTHING:
        return None
    match = _CELL.fullmatch(text.replace("−", "-"))
    if match is None:
        raise ReadError(
            name, line, f"{column} is {text[:30]!r}, which is no number; write for example 70.08 or 70.08 ± 0.43."
        )
    first, second = (None if part is None else float(part.replace(",", "")) for part in match.groups())
    assert first is not None
    if not math.isfinite(first) or not math.isfinite(second or 0):
        raise ReadError(name, line, f"{column} is {text[:30]!r}, which is too large; give a smaller number.")
    return first, second


def _assemble(header: Sequence[str], cells: Mapping[tuple[str, str], Mapping[str, Cell]], name: str) -> Pasted:
    targets = tuple(dict.fromkeys(target for target, _ in cells))
    sources = tuple(dict.fromkeys(source for _, source in cells if source != "None"))
    measures = {column: measure for column in header if (measure := _direction(column))}
    if not measures:
        known = ", ".join(MEASURES)
        raise ReadError(name, 1, f"has no column of a measure ({known}, or another one as NAME:low or NAME:high).")
    if len(sources) < 2:
        raise ReadError(name, None, "has fewer than two sources, so there is nothing to choose; add lines.")

    def value(target: str, source: str, column: str) -> tuple[float, float | None]:
        return cells.get((target, source), {}).get(column) or (math.nan, None)

    values = [[[value(t, s, column)[0] for column in measures] for s in sources] for t in targets]
    grid = Grid(
        targets=targets,
        sources=sources,
        measures=tuple(name for name, _ in measures.values()),
        prefer=tuple(prefer for _, prefer in measures.values()),
        values=np.array(values, dtype=np.float64),
    )
    rest = [
        column for column in header if column not in measures and column.lower() not in ("target", "source", "runs")
    ]
    outcomes = [_outcomes(kind, columns, grid, cells) for kind, columns in _kinds(rest).items()]
    return Pasted(grid=grid, outcomes=tuple(outcomes))


def _direction(column: str) -> tuple[str, Prefer] | None:
    """The name and direction of a measure's column; None for any other."""
    plain, _, end = column.lower().partition(":")
    name = re.sub(r"[^a-z0-9_]+|↑|↓", " ", plain).split() or [""]
    if name[0] in MEASURES and len(name) == 1:
        return name[0], MEASURES[name[0]].prefer
    if end in ("low", "high"):
        return column.partition(":")[0].strip(), "low" if end == "low" else "high"
    return None


def _kinds(columns: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """{what was trained: {"mean" | "sd" | "runs": its columns}}."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for column in columns:
        # Only a name that is something else before its ending: a column called `sd` alone belongs to nothing.
        if match := re.fullmatch(r"(.+?)[ _](sd|std|\d+)", column, re.IGNORECASE):
            name, part = match[1], "runs" if match[2].isdigit() else "sd"
        else:
            name, part = column, "mean"
        kinds.setdefault(name, {"mean": [], "sd": [], "runs": []})[part].append(column)
    return {name: parts for name, parts in kinds.items() if parts["mean"] or parts["runs"]}


def _outcomes(
    kind: str, columns: Mapping[str, Sequence[str]], grid: Grid, cells: Mapping[tuple[str, str], Mapping[str, Cell]]
) -> Outcomes:
    def summary(target: str, source: str) -> tuple[float, float, float]:
        """Mean, sd and number of runs of a pair."""
        row = cells.get((target, source), {})
        runs = [cell[0] for column in columns["runs"] if (cell := row.get(column))]
        # Single runs win over a printed mean: they say how many there were and how far apart.
        if runs:
            return float(np.mean(runs)), float(np.std(runs)), float(len(runs))
        mean = next((cell for column in columns["mean"] if (cell := row.get(column))), None)
        if mean is None:
            return math.nan, 0.0, 0.0
        sd = next((cell[0] for column in columns["sd"] if (cell := row.get(column))), mean[1] or 0.0)
        # Unsaid, it is one run: a mean of unknown weight must not outweigh runs that are shown.
        count = next((cell[0] for column, cell in row.items() if column.lower() == "runs" and cell), 1.0)
        return mean[0], sd, count

    table = np.array([[summary(t, s) for s in grid.sources] for t in grid.targets])
    none = np.array([summary(target, "None")[0] for target in grid.targets])
    return Outcomes(name=kind, mean=table[..., 0], sd=table[..., 1], runs=table[..., 2], none=none)
