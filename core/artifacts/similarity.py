"""A finished `similarity` run looked at: its rows as a grid, in order of closeness, in words, as a .csv."""

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

import numpy as np

from core.corpora.writers import harmless
from core.measures import MEASURES, title
from core.measures.advice import advise
from core.measures.grid import Grid
from core.measures.predictive import Regret


def grid_of(rows: Sequence[Mapping[str, Any]]) -> Grid:
    """The rows of `measurements` as one table."""
    targets, sources, measures = (
        tuple(dict.fromkeys(row[key] for row in rows)) for key in ("target", "source", "measure")
    )
    shape = (len(targets), len(sources), len(measures))
    values, spread = np.full(shape, np.nan), np.zeros(shape)
    for row in rows:
        at = targets.index(row["target"]), sources.index(row["source"]), measures.index(row["measure"])
        if row["value"] is not None:
            values[at], spread[at] = row["value"], row["high"] - row["low"]
    several = any(len(row["draws"]) > 1 for row in rows)
    prefer = tuple(MEASURES[name].prefer for name in measures)
    return Grid(
        targets=targets,
        sources=sources,
        measures=measures,
        prefer=prefer,
        values=values,
        spread=spread if several else None,
    )


def closest_first(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows of `measurements` with the sources of each target in order of closeness: by mean rank over the measures.

    A source that a measure could not read ranks last by it; ties keep their order.
    """
    from scipy.stats import rankdata  # a second to load

    grid = grid_of(rows)
    closeness = np.where(np.isnan(grid.values), -np.inf, grid.closeness())
    ranks = rankdata(-closeness, axis=1).mean(axis=2)  # `(t, s)`
    place = {
        (target, source): rank
        for target, row in zip(grid.targets, ranks, strict=True)
        for source, rank in zip(grid.sources, row, strict=True)
    }
    order = {target: at for at, target in enumerate(grid.targets)}
    return sorted(rows, key=lambda row: (order[row["target"]], place[row["target"], row["source"]]))


def advice(grid: Grid, target: str, past: Sequence[Regret] = ()) -> str:
    """The recommendation for one target, with what following the measures cost before."""
    return advise(grid, grid.targets.index(target), [title(name) for name in grid.measures], past)


def best_value(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The value that is closest, of one target and measure; None where nothing is ahead of the rest."""
    values = [row["value"] for row in rows if row["value"] is not None]
    if len(set(values)) < 2:
        return None
    return float(max(values) if rows[0]["prefer"] == "high" else min(values))


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table for a spreadsheet, one line a number; no cell is a formula, and a missing value is empty."""
    columns = (
        "target",
        "source",
        "measure",
        "value",
        "low",
        "high",
        "unit",
        "prefer",
        "sample_tokens",
        "target_tokens",
    )
    other = list(dict.fromkeys(key for row in rows for key in row["columns"]))
    out = StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([*columns, *other, "convention", "problem"])
    for row in rows:
        values = [row[key] for key in columns] + [row["columns"].get(key) for key in other]
        writer.writerow([harmless(value) for value in (*values, row["convention"], row["problem"])])
    return out.getvalue()
