"""Selections: choosing from finished scores, comparing, taking S_C away."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

from core import plots as figures
from core.artifacts import choice
from core.artifacts.edits import Edits as Edits
from core.artifacts.edits import read as read_edits
from core.artifacts.map import read_points
from core.artifacts.scores import Scored as Scored
from core.artifacts.scores import read_rows, read_values, withheld
from core.config import Budget as Budget
from core.corpora.corpus import Corpus
from core.corpora.writers import Format, format_of
from core.errors import ConfigError
from core.facade.audit import exporting
from core.facade.home import home, library, store
from core.results import FloatArray, IntArray
from core.results import Selection as Selection
from core.selection import DEFAULT_STRATEGY as DEFAULT_STRATEGY
from core.selection import STRATEGIES as STRATEGIES

EXPORT_FORMATS: tuple[Format, ...] = get_args(Format)


def scored(run_id: str) -> Scored:
    """What a finished `select` run scored, ready to be chosen from. Kept in memory for the last few runs."""
    return _scored(home(), run_id)


@lru_cache(maxsize=4)
def _scored(folder: Path, run_id: str) -> Scored:
    select = store().get(run_id)
    score, audit = (store().get(select.result()[name]) for name in ("score_run", "audit_run"))
    return Scored.read(score, audit, library(), select)


def choose(run_id: str, budget: str, keep: Sequence[str] = ()) -> Selection:
    """What a `select` run's scores choose for a budget. Errors: ConfigError."""
    return scored(run_id).choose(Budget.parse(budget), withheld(keep))


def chosen(
    run_id: str, budget: str | None = None, keep: Sequence[str] | None = None, *, edited: bool = True
) -> Selection:
    """What is selected: `choose`, then (edited) the hand edits. budget, keep: the kept ones unless given."""
    config = store().get(run_id).manifest.config
    budget = kept_budget(run_id) if budget is None else budget
    found = choose(run_id, budget, config["keep"] if keep is None else keep)
    return edits(run_id).apply(found, scored(run_id).scores) if edited else found


def kept_budget(run_id: str) -> str:
    """The budget that a selection is looked at, trained on and taken away with: what `keep_budget` kept last, else
    the one that the run was started with."""
    run = store().get(run_id)
    kept = choice.read(run.path, choice.BUDGET)
    with suppress(ConfigError):
        return str(Budget.parse(kept)) if isinstance(kept, str) else str(run.manifest.config["budget"])
    return str(run.manifest.config["budget"])


def keep_budget(run_id: str, budget: str) -> None:
    """Settle on another budget; nothing is scored again. Errors: ConfigError for one that chooses nothing."""
    run = store().get(run_id)
    settled = str(choose(run_id, budget, run.manifest.config["keep"]).budget)
    choice.write(run.path, choice.BUDGET, None if settled == run.manifest.config["budget"] else settled)


def edits(run_id: str) -> Edits:
    """Hand edits of a `select` run: `added`, `removed` (rows), `history` (oldest first, undone ones gone)."""
    return read_edits(store().get(run_id).path)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Remains:
    """What a finished `select` run holds without D_C and T_C.

    bins: all scores as a histogram. chosen: `(k,)` scores of what it selected, best first. drawn: `(m,)` x, y and
    class (see `artifacts.map.CLASSES`) of its latest map's points, where it has one. corpus: S_C, where that is here.
    """

    bins: figures.ScoreBins
    chosen: FloatArray
    unit: str
    prefer: Literal["high", "low"]
    corpus: Corpus | None
    drawn: tuple[FloatArray, FloatArray, IntArray] | None


def remains(run_id: str) -> Remains:
    """A finished selection whose corpora were removed."""
    select = store().get(run_id)
    score = store().get(select.result()["score_run"])
    values = read_values(score)
    sealed = library().recall(select.result()["corpus"])
    return Remains(
        bins=figures.score_bins(values),
        chosen=values[read_rows(select)],
        unit=score.result()["unit"],
        prefer=score.result()["prefer"],
        corpus=sealed if len(sealed) else None,
        drawn=_drawn(run_id),
    )


def _drawn(run_id: str) -> tuple[FloatArray, FloatArray, IntArray] | None:
    for run in store().list():
        if run.manifest.kind == "map" and run.manifest.config["selection"] == run_id and run.result_file.exists():
            return read_points(run)
    return None


def check_output(path: Path) -> None:
    """Errors: ConfigError for a file that `export` cannot write; asked before hours of work, not after them."""
    format_of(path)


@exporting
def export(run_id: str, budget: str, keep: Sequence[str], path: Path, format: Format | None = None) -> Path:
    """Write the selection, hand edits counted, as txt, jsonl, parquet, csv, or a folder for `datasets`.

    format: that of the path's name unless given. Errors: ConfigError, PathError.
    """
    scored(run_id).export(chosen(run_id, budget, keep), path, run_id, edits(run_id), format)
    return path


def exports() -> Path:
    """Where the app puts exports that are too large for a download."""
    folder = home() / "exports"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
