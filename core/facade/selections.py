"""Selections: choosing from finished scores, comparing, taking S_C away."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from core.config import Budget
from core.corpora.writers import check_format
from core.facade.home import home, library, store
from core.recipes.chosen import Scored, withheld
from core.recipes.edits import Edits
from core.recipes.edits import read as read_edits
from core.results import Selection


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
    """What is selected: `choose`, then (edited) the hand edits. budget, keep: those of the run unless given."""
    config = store().get(run_id).manifest.config
    found = choose(run_id, config["budget"] if budget is None else budget, config["keep"] if keep is None else keep)
    return edits(run_id).apply(found, scored(run_id).scores) if edited else found


def edits(run_id: str) -> Edits:
    """Hand edits of a `select` run: `added`, `removed` (rows), `history` (oldest first, undone ones gone)."""
    return read_edits(store().get(run_id).path)


def check_output(path: Path) -> None:
    """Errors: ConfigError for a file that `export` cannot write; asked before hours of work, not after them."""
    if path.suffix:
        check_format(path)


def export(run_id: str, budget: str, keep: Sequence[str], path: Path) -> Path:
    """Write the selection, hand edits counted, as .txt, .jsonl, .parquet, .csv, or a folder for `datasets`."""
    scored(run_id).export(chosen(run_id, budget, keep), path, run_id, edits(run_id))
    return path


def exports() -> Path:
    """Where the app puts exports that are too large for a download."""
    folder = home() / "exports"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
