"""Selections: choosing from finished scores, changing S_C by hand, taking it away."""

import math
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from core import plots as figures
from core.artifacts import choice
from core.artifacts import edits as edit_log
from core.artifacts.edits import Edits as Edits
from core.artifacts.edits import read as read_edits
from core.artifacts.result import read as read_result
from core.artifacts.scores import Scored as Scored
from core.artifacts.scores import SelectResult as SelectResult
from core.artifacts.scores import withheld
from core.config import Budget as Budget
from core.config import Unit
from core.corpora.corpus import Corpus
from core.corpora.writers import Format as Format
from core.corpora.writers import format_of as format_of
from core.errors import ConfigError, CorpusError
from core.facade import runs
from core.facade.audit import exporting
from core.facade.home import home, kept_per_home, library, store
from core.results import IntArray
from core.results import Selection as Selection
from core.runs import journal
from core.runs.store import Run
from core.selection import DEFAULT_STRATEGY as DEFAULT_STRATEGY
from core.selection import STRATEGIES as STRATEGIES

FORMATS: tuple[Format, ...] = get_args(Format)


def result(run_id: str) -> SelectResult:
    """A finished `select` run's result. Errors: RunError."""
    return read_result(store().get(run_id), SelectResult)


@kept_per_home(4)
def scored(run_id: str) -> Scored:
    """Read what a finished `select` run scored, ready to be chosen from. Kept in memory for the last few runs."""
    ids = result(run_id)
    score, audit = store().get(ids.score_run), store().get(ids.audit_run)
    return Scored.read(score, audit, library(), store().get(run_id))


def finished() -> list[Run]:
    """Finished selections that somebody asked for, newest first: each is an S_C that can be trained on."""
    return runs.own("select", state="succeeded")


def comparable(run_id: str) -> list[Run]:
    """Other finished `select` runs on the same D_C, newest first."""
    domain = store().get(run_id).manifest.inputs["domain"]
    others = (run for run in store().list("select", state="succeeded") if run.id != run_id)
    return [run for run in others if run.manifest.inputs["domain"] == domain]


def choose(run_id: str, budget: str, keep: Sequence[str] = ()) -> Selection:
    """The rows that a `select` run's scores choose for a budget. Errors: ConfigError."""
    return scored(run_id).choose(Budget.parse(budget), withheld(keep))


def chosen(
    run_id: str, budget: str | None = None, keep: Sequence[str] | None = None, *, edited: bool = True
) -> Selection:
    """The selection: `choose`, then (edited) the hand edits. budget, keep: the kept ones unless given."""
    config = store().get(run_id).manifest.config
    budget = kept_budget(run_id) if budget is None else budget
    selection = choose(run_id, budget, config["keep"] if keep is None else keep)
    return edits(run_id).apply(selection, scored(run_id).scores) if edited else selection


def kept_budget(run_id: str) -> str:
    """The budget that a selection is looked at, trained on and taken away with: what `keep_budget` kept last, else
    the one that the run was started with."""
    run = store().get(run_id)
    kept = choice.read(run.path, choice.BUDGET)
    with suppress(ConfigError):
        return str(Budget.parse(kept)) if isinstance(kept, str) else str(run.manifest.config["budget"])
    return str(run.manifest.config["budget"])


def kept(run_id: str) -> SelectResult:
    """A finished `select` run's result as its S_C is now: at the kept budget, hand edits counted.

    The one that it came to where D_C was removed since. Errors: RunError.
    """
    came_to, changes, budget = result(run_id), edits(run_id), kept_budget(run_id)
    if changes or budget != store().get(run_id).manifest.config["budget"]:
        with suppress(CorpusError):
            selected, tokens = _size(run_id, budget, changes.added.tobytes(), changes.removed.tobytes())
            return replace(came_to, selected=selected, tokens=tokens)
    return came_to


@kept_per_home(64)
def _size(run_id: str, budget: str, added: bytes, removed: bytes) -> tuple[int, int]:
    """Sentences and tokens of S_C, kept as a list of runs asks every second. added, removed: the edits."""
    rows = chosen(run_id, budget).rows
    return len(rows), int(scored(run_id).lengths[rows].sum())


def keep_budget(run_id: str, budget: str) -> None:
    """Settle on another budget; nothing is scored again. Errors: ConfigError for one that chooses nothing."""
    run = store().get(run_id)
    settled = str(choose(run_id, budget, run.manifest.config["keep"]).budget)
    choice.write(run.path, choice.BUDGET, None if settled == run.manifest.config["budget"] else settled)


@kept_per_home(4)
def score_bins(run_id: str) -> figures.ScoreBins:
    """All scores of a `select` run as a histogram."""
    return figures.score_bins(scored(run_id).scores.values)


def score_range(run_id: str) -> tuple[float, float, int]:
    """`(lowest, highest, decimals)` of a `select` run's scores, rounded outwards, some thousand steps apart."""
    edges = score_bins(run_id).edges
    low, high = float(edges[0]), float(edges[-1])
    decimals = -math.floor(math.log10((high - low or abs(high) or 1.0) / 500))
    step = 10.0**-decimals
    return round(math.floor(low / step) * step, decimals), round(math.ceil(high / step) * step, decimals), decimals


def budget_in(run_id: str, unit: Unit) -> str:
    """The kept budget in another unit: what is chosen stays the same, but for rounding to a tenth of a per cent, or a
    score to four digits."""
    about, keep = scored(run_id), store().get(run_id).manifest.config["keep"]
    now = choose(run_id, kept_budget(run_id), keep)
    if now.budget.unit == unit:
        return str(now.budget)
    match unit:
        case "sentences":
            value: float = len(now.rows)
        case "tokens":
            value = max(int(about.lengths[now.rows].sum()), 1)
        case "fraction":
            value = max(round(len(now.rows) / len(about.domain), 3), 0.001)
        case "threshold":  # rounded so that the last one taken stays in
            down = about.scores.prefer == "high"
            worst = float(now.scores.min() if down else now.scores.max())
            decimals = max(
                score_range(run_id)[2], 3 - math.floor(math.log10(abs(worst) or 1.0))
            )  # four digits at least
            value = round((math.floor if down else math.ceil)(worst * 10.0**decimals) / 10.0**decimals, decimals)
    return str(Budget(value=value, unit=unit))


def edits(run_id: str) -> Edits:
    """Hand edits of a `select` run: `added`, `removed` (rows), `history` (oldest first, undone ones gone)."""
    return read_edits(store().get(run_id).path)


def edit(run_id: str, action: Literal["add", "remove"], rows: IntArray) -> Edits:
    """Put rows of D_C into S_C by hand, or take them out; at once on disk. Errors: CorpusError for a row that D_C does
    not have."""
    rows, n = np.unique(np.asarray(rows, dtype=np.int64)), len(scored(run_id).domain)
    if len(rows) and not 0 <= rows[0] <= rows[-1] < n:
        raise CorpusError(f"rows: {rows[0]} to {rows[-1]} are not all in D_C, which has {n:,}; give rows below it.")
    if len(rows):
        edit_log.append(store().get(run_id).path, action, rows)
    return edits(run_id)


def undo(run_id: str, seen: float | None = None) -> Edits:
    """Take back the last hand edit that was not undone; nothing happens if there is none.

    seen: the time of the one that was shown as the last. Errors: Overtaken where another one is.
    """
    with journal.changing(home()):
        if history := edits(run_id).history:
            journal.refuse_overtaken(history[-1], seen, "The last edit")
            edit_log.append(store().get(run_id).path, "undo", np.empty(0, dtype=np.int64))
    return edits(run_id)


def seal(run_id: str, budget: str | None = None, keep: Sequence[str] | None = None) -> Corpus:
    """S_C with its hand edits as a corpus of its own, sealed where it is not; its origin names the run and counts the
    edits. budget, keep: the kept ones unless given."""
    config, changes = store().get(run_id).manifest.config, edits(run_id)
    budget = kept_budget(run_id) if budget is None else budget
    keep = tuple(config["keep"] if keep is None else keep)
    if not changes and (budget, keep) == (config["budget"], tuple(config["keep"])):
        with suppress(CorpusError):  # it was removed
            return library().find(result(run_id).corpus)
    with suppress(CorpusError):
        return library().find(_sealed(run_id, budget, keep, changes.added.tobytes(), changes.removed.tobytes()))
    return _seal(run_id, budget, keep)


@kept_per_home(32)
def _sealed(run_id: str, budget: str, keep: Sequence[str], added: bytes, removed: bytes) -> str:
    """added, removed: the edits, by which this is kept."""
    return _seal(run_id, budget, keep).fingerprint


def _seal(run_id: str, budget: str, keep: Sequence[str]) -> Corpus:
    selection, changes, domain = chosen(run_id, budget, keep), edits(run_id), scored(run_id).domain
    return library().subset(
        domain,
        selection.rows,
        name=f"S_C {domain.name} {scored(run_id).scores.name} {selection.budget}{' edited by hand' if changes else ''}",
        origin={
            "run": run_id,
            "from": domain.fingerprint,
            **({"hand_edits": {"added": len(changes.added), "removed": len(changes.removed)}} if changes else {}),
        },
    )


@exporting
def export(run_id: str, budget: str, keep: Sequence[str], path: Path, format: Format | None = None) -> Path:
    """Write the selection, hand edits counted, as txt, jsonl, parquet, csv, or a folder for `datasets`.

    format: that of the path's name unless given. Errors: ConfigError, PathError.
    """
    scored(run_id).export(chosen(run_id, budget, keep), path, run_id, edits(run_id), format)
    return path


def command(run_id: str, output: str, format: str) -> str:
    """The command line that writes the kept choice to `output`, byte for byte what `export` writes.

    It selects anew where that comes to the same. Where hand edits are counted, diversity re-ordered the scores for
    the run's own budget, or a corpus was removed, it names the run, beside which these lie.
    """
    run, budget = store().get(run_id), kept_budget(run_id)
    options = {**run.manifest.config, "budget": budget}
    words = ["--output", output, *(["--format", format] if format == "folder" else [])]
    reordered = options["diversity"] != "none" and budget != run.manifest.config["budget"]
    with suppress(CorpusError):  # one that was removed: nothing can be selected from it anew
        there = runs.finished("select", options)
        if not reordered and not edits(run_id) and not (there and edits(there.id)):
            return f"{runs.command('select', options)} {shlex.join(words)}"
    return f"python -m core export {run_id} {shlex.join(['--budget', budget, *words])}"
