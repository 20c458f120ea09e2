"""Selections: choosing from finished scores, changing S_C by hand, taking it away.

A `choice_id` is that of a `select` run, for its first choice, or of another one that was kept: see `selection.choice`.
"""

import math
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from core import shown_command as commands
from core.config import Budget as Budget
from core.config import Unit
from core.corpora.corpus import Corpus
from core.corpora.writers import Format as Format
from core.corpora.writers import format_of as format_of
from core.errors import CorpusError, RunError
from core.projects import runs
from core.projects import view as projects
from core.projects.audit import exporting
from core.projects.home import home, kept_per_home, library, store
from core.results import IntArray
from core.results import Selection as Selection
from core.runs import journal
from core.runs.result import read as read_result
from core.runs.store import Run
from core.selection import DEFAULT_STRATEGY as DEFAULT_STRATEGY
from core.selection import STRATEGIES as STRATEGIES
from core.selection import choice, plot
from core.selection.choice import Choice as Choice
from core.selection.choice import Edits as Edits
from core.selection.result import Scored as Scored
from core.selection.result import SelectResult as SelectResult
from core.selection.result import withheld_flags

FORMATS: tuple[Format, ...] = get_args(Format)


def run_of(choice_id: str) -> Run:
    """The `select` run that a choice is of. Errors: RunError."""
    return store().get(choice.run_of(choice_id))


def at(choice_id: str) -> Choice:
    """A choice as it is now: its name, budget, when it was made. Errors: RunError where it is gone or spoilt."""
    run = run_of(choice_id)
    if run.manifest.kind != "select":
        raise RunError(f"selection {choice_id}: is not from a `select` run; `choice list` shows what there is.")
    return choice.get(run, choice_id)


def result(choice_id: str) -> SelectResult:
    """Result of the finished `select` run of a choice. Errors: RunError."""
    return read_result(run_of(choice_id), SelectResult)


def scored(choice_id: str) -> Scored:
    """Scores of the finished `select` run of a choice, ready to be chosen from."""
    return _scored(choice.run_of(choice_id))


@kept_per_home(4)
def _scored(run_id: str) -> Scored:
    """Kept in memory for the last few runs."""
    ids = result(run_id)
    score, audit = store().get(ids.score_run), store().get(ids.audit_run)
    return Scored.read(score, audit, library(), store().get(run_id))


def finished() -> list[Run]:
    """Finished selections that somebody asked for, newest first: each is an S_C that can be trained on."""
    return runs.own("select", state="succeeded")


def choose(choice_id: str, budget: str, keep: Sequence[str] = ()) -> Selection:
    """The rows that the scores choose for a budget, without hand edits. Errors: ConfigError."""
    return scored(choice_id).choose(Budget.parse(budget), withheld_flags(keep))


def chosen(
    choice_id: str, budget: str | None = None, keep: Sequence[str] | None = None, *, edited: bool = True
) -> Selection:
    """`choose`, then (edited) the hand edits. budget: the choice's own, keep: its run's, unless given."""
    config = run_of(choice_id).manifest.config
    budget = kept_budget(choice_id) if budget is None else budget
    selection = choose(choice_id, budget, config["keep"] if keep is None else keep)
    return edits(choice_id).apply(selection, scored(choice_id).scores) if edited else selection


def kept_budget(choice_id: str) -> str:
    """The budget that a choice is looked at, trained on and taken away with: what `keep_budget` kept last, else the one
    that its run was started with. Errors: RunError where the choice is gone or spoilt."""
    return at(choice_id).budget


def kept(choice_id: str) -> SelectResult:
    """Result of a finished `select` run, as a choice of it is now: at its budget, hand edits counted.

    Without them where D_C was removed since. Errors: RunError.
    """
    outcome, changes, budget = result(choice_id), edits(choice_id), kept_budget(choice_id)
    if changes or budget != run_of(choice_id).manifest.config["budget"]:
        with suppress(CorpusError):
            selected, tokens = _size(choice_id, budget, changes.added.tobytes(), changes.removed.tobytes())
            return replace(outcome, selected=selected, tokens=tokens)
    return outcome


@kept_per_home(64)
def _size(choice_id: str, budget: str, added: bytes, removed: bytes) -> tuple[int, int]:
    """Sentences and tokens of S_C, kept as a list of runs asks every second. added, removed: the edits."""
    rows = chosen(choice_id, budget).rows
    return len(rows), int(scored(choice_id).lengths[rows].sum())


def keep_budget(choice_id: str, budget: str) -> None:
    """Settle on another budget; nothing is scored again. Errors: ConfigError for one that chooses nothing."""
    config, changed = run_of(choice_id).manifest.config, at(choice_id)
    settled = str(choose(choice_id, budget, config["keep"]).budget)
    usual = changed.first and settled == config["budget"]
    choice.write(changed.folder, choice.BUDGET, None if usual else settled)


def score_bins(choice_id: str) -> plot.ScoreBins:
    """All scores that a choice is made from, as a histogram."""
    return _score_bins(choice.run_of(choice_id))


@kept_per_home(4)
def _score_bins(run_id: str) -> plot.ScoreBins:
    return plot.score_bins(scored(run_id).scores.values)


def score_range(choice_id: str) -> tuple[float, float, int]:
    """`(lowest, highest, decimals)` of a choice's scores, rounded outwards, some thousand steps apart."""
    edges = score_bins(choice_id).edges
    low, high = float(edges[0]), float(edges[-1])
    # 500 to 5,000 steps from end to end; where all scores are equal, the size of one sets the step.
    decimals = -math.floor(math.log10((high - low or abs(high) or 1.0) / 500))
    step = 10.0**-decimals
    return round(math.floor(low / step) * step, decimals), round(math.ceil(high / step) * step, decimals), decimals


def budget_in(choice_id: str, unit: Unit) -> str:
    """The kept budget in another unit: what is chosen stays the same, but for rounding to a tenth of a per cent, or a
    score to four digits."""
    about, keep = scored(choice_id), run_of(choice_id).manifest.config["keep"]
    now = choose(choice_id, kept_budget(choice_id), keep)
    if now.budget.unit == unit:
        return str(now.budget)
    match unit:
        case "sentences":
            value: float = len(now.rows)
        case "tokens":
            value = max(int(about.lengths[now.rows].sum()), 1)
        case "fraction":
            # In the slider's steps, and its first one at least.
            value = max(round(len(now.rows) / len(about.domain), 3), 0.001)
        case "threshold":  # rounded so that the last one taken stays in
            down = about.scores.prefer == "high"
            worst = float(now.scores.min() if down else now.scores.max())
            decimals = max(
                score_range(choice_id)[2], 3 - math.floor(math.log10(abs(worst) or 1.0))
            )  # four digits at least
            # Away from what is taken, so that the worst of it still is.
            value = round((math.floor if down else math.ceil)(worst * 10.0**decimals) / 10.0**decimals, decimals)
    return str(Budget(value=value, unit=unit))


def edits(choice_id: str) -> Edits:
    """Hand edits of a choice: `added`, `removed` (rows), `history` (oldest first, undone ones gone)."""
    return choice.read_edits(at(choice_id).folder)


def edit(choice_id: str, action: Literal["add", "remove"], rows: IntArray) -> Edits:
    """Put rows of D_C into S_C by hand, or take them out; at once on disk. Errors: CorpusError for a row that D_C does
    not have."""
    rows, n = np.unique(np.asarray(rows, dtype=np.int64)), len(scored(choice_id).domain)
    if len(rows) and not 0 <= rows[0] <= rows[-1] < n:
        raise CorpusError(
            f"rows: {rows[0]} to {rows[-1]} are not all in the domain corpus, which has {n:,}; give rows below it."
        )
    if len(rows):
        choice.append_edit(at(choice_id).folder, action, rows)
    return edits(choice_id)


def undo(choice_id: str, seen: float | None = None) -> Edits:
    """Take back the last hand edit that was not undone; nothing happens if there is none.

    seen: the time of the one that was shown as the last. Errors: Overtaken where another one is.
    """
    with journal.changing(home()):
        if history := edits(choice_id).history:
            journal.refuse_overtaken(history[-1], seen, "The last edit")
            choice.append_edit(at(choice_id).folder, "undo", np.empty(0, dtype=np.int64))
    return edits(choice_id)


def seal(choice_id: str, budget: str | None = None, keep: Sequence[str] | None = None) -> Corpus:
    """S_C with its hand edits as a corpus of its own, sealed where it is not; its origin names run and choice and
    counts the edits. budget: the choice's own, keep: its run's, unless given."""
    config, changes = run_of(choice_id).manifest.config, edits(choice_id)
    budget = kept_budget(choice_id) if budget is None else budget
    keep = tuple(config["keep"] if keep is None else keep)
    if not changes and (budget, keep) == (config["budget"], tuple(config["keep"])):
        with suppress(CorpusError):  # it was removed
            return library().find(result(choice_id).corpus)
    with suppress(CorpusError):
        return library().find(_sealed(choice_id, budget, keep, changes.added.tobytes(), changes.removed.tobytes()))
    return _seal(choice_id, budget, keep)


@kept_per_home(32)
def _sealed(choice_id: str, budget: str, keep: Sequence[str], added: bytes, removed: bytes) -> str:
    """added, removed: the edits, by which this is kept."""
    return _seal(choice_id, budget, keep).fingerprint


def _seal(choice_id: str, budget: str, keep: Sequence[str]) -> Corpus:
    selection, changes, domain = chosen(choice_id, budget, keep), edits(choice_id), scored(choice_id).domain
    words = f"{domain.name} {scored(choice_id).scores.name} {selection.budget}{' edited by hand' if changes else ''}"
    return library().subset(
        domain,
        selection.rows,
        name=f"selection {words}",
        origin={
            "run": choice.run_of(choice_id),
            "choice": choice_id,
            "from": domain.fingerprint,
            **({"hand_edits": {"added": len(changes.added), "removed": len(changes.removed)}} if changes else {}),
        },
    )


@exporting
def export(choice_id: str, budget: str, keep: Sequence[str], path: Path, format: Format | None = None) -> Path:
    """Write the selection, hand edits counted, as txt, jsonl, parquet, csv, or a folder for `datasets`.

    format: that of the path's name unless given. Errors: ConfigError, PathError.
    """
    scored(choice_id).export(chosen(choice_id, budget, keep), path, choice_id, edits(choice_id), format)
    return path


def command(choice_id: str, output: str, format: str) -> str:
    """The command line that writes a choice to `output`, byte for byte what `export` writes.

    It selects anew where that comes to the same. Where the choice is not its run's first, hand edits are counted,
    diversity re-ordered the scores for the run's own budget, or a corpus was removed, it names the choice.
    """
    run, now = run_of(choice_id), at(choice_id)
    options = {**run.manifest.config, "budget": now.budget}
    words = ["--output", output, *(["--format", format] if format == "folder" else [])]
    reordered = options["diversity"] != "none" and now.budget != run.manifest.config["budget"]
    with suppress(CorpusError):  # one that was removed: nothing can be selected from it anew
        there = runs.finished("select", options)
        if now.first and not reordered and not edits(choice_id) and not (there and edits(there.id)):
            return f"{commands.command('select', options)} {shlex.join(words)}"
    begins = ["python", "-m", "core", *projects.option(), "export", choice_id, "--budget", now.budget]
    return shlex.join([*begins, *words])
