"""Selections as pages and commands use them: select from finished scores, edit S_C by hand, export it.

A `choice_id` is the id of a saved selection. The first selection of a `select` run has the run's id: see
`selection.choice`.
"""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from core import shown_command as commands
from core.config import Budget, Unit
from core.corpora.corpus import Corpus
from core.corpora.writers import Format
from core.errors import CorpusError, RunError
from core.paths import home
from core.projects import runs
from core.projects import view as projects
from core.projects.audit import exporting
from core.projects.home import kept_per_home, library, store
from core.results import IntArray, Selection
from core.runs import journal
from core.runs.result import read as read_result
from core.runs.store import Run
from core.selection import STRATEGIES, choice, plot, strategy_options
from core.selection.choice import Choice, Edits
from core.selection.result import Scored, SelectResult, withheld_flags

FORMATS: tuple[Format, ...] = get_args(Format)
LONGEST_WORD = 40  # largest number of characters of each name in a file name


def run_of(choice_id: str) -> Run:
    """Return the `select` run that a selection belongs to. Errors: RunError if it is missing or of another kind."""
    run = store().get(choice.run_of(choice_id))
    if run.manifest.kind != "select":
        raise RunError(f"selection {choice_id}: is not from a `select` run; `choice list` shows all selections.")
    return run


def at(choice_id: str) -> Choice:
    """Return the current state of a selection. Errors: RunError if it is missing or cannot be read."""
    return choice.get(run_of(choice_id), choice_id)


def result(choice_id: str) -> SelectResult:
    """Return the result of a selection's finished `select` run. Errors: RunError."""
    return read_result(run_of(choice_id), SelectResult)


def scored(choice_id: str) -> Scored:
    """Return D_C, scores and flags of a selection's finished `select` run."""
    kept = _scored(choice.run_of(choice_id))
    # D_C may have been renamed since `kept` was cached.
    return replace(kept, domain=library().recall(kept.domain.fingerprint, len(kept.domain)))


@kept_per_home(4)
def _scored(run_id: str) -> Scored:
    """Return D_C, scores and flags of a `select` run. The last four results stay in memory."""
    ids = result(run_id)
    score, audit = store().get(ids.score_run), store().get(ids.audit_run)
    return Scored.read(score, audit, library(), store().get(run_id))


def choose(choice_id: str, budget: str, keep: Sequence[str] = ()) -> Selection:
    """Return the rows that the scores select within a budget, without hand edits. Errors: ConfigError."""
    return scored(choice_id).choose(Budget.parse(budget), withheld_flags(keep))


def chosen(
    choice_id: str, budget: str | None = None, keep: Sequence[str] | None = None, *, edited: bool = True
) -> Selection:
    """Return the selected rows, with hand edits if `edited`.

    budget: default is the selection's own. keep: flags that do not withhold a sentence; default is that of its run.
    """
    config = run_of(choice_id).manifest.config
    budget = kept_budget(choice_id) if budget is None else budget
    selection = choose(choice_id, budget, config["keep"] if keep is None else keep)
    return edits(choice_id).apply(selection, scored(choice_id).scores) if edited else selection


def kept_budget(choice_id: str) -> str:
    """Return the selection's budget: the last one that `keep_budget` stored, else the run's. Errors: RunError."""
    return at(choice_id).budget


def kept(choice_id: str) -> SelectResult:
    """Return the `select` run's result with the current number of sentences and tokens of a selection.

    Both numbers follow from the selection's current budget and hand edits. If D_C was removed, return the run's own
    numbers. Errors: RunError.
    """
    outcome, changes, budget = result(choice_id), edits(choice_id), kept_budget(choice_id)
    if changes or budget != run_of(choice_id).manifest.config["budget"]:
        with suppress(CorpusError):
            selected, tokens = _size(choice_id, budget, changes.added.tobytes(), changes.removed.tobytes())
            return replace(outcome, selected=selected, tokens=tokens)
    return outcome


@kept_per_home(64)
def _size(choice_id: str, budget: str, added: bytes, removed: bytes) -> tuple[int, int]:
    """Return the number of sentences and tokens of S_C.

    Cached by the bytes of the hand edits, because the list of runs calls this function every second.
    """
    rows = chosen(choice_id, budget).rows
    return len(rows), int(scored(choice_id).lengths[rows].sum())


def keep_budget(choice_id: str, budget: str) -> None:
    """Change the budget of a selection without scoring again. Errors: ConfigError if the budget selects nothing."""
    config, changed = run_of(choice_id).manifest.config, at(choice_id)
    settled = str(choose(choice_id, budget, config["keep"]).budget)
    usual = changed.first and settled == config["budget"]
    choice.write(changed.folder, choice.BUDGET, None if usual else settled)


def again(choice_id: str, budget: str) -> dict[str, object]:
    """Return the options for a new `select` run that scores enough sentences for a budget."""
    return {**run_of(choice_id).manifest.config, "budget": budget}


def diverse(choice_id: str, kind: str) -> tuple[dict[str, object], bool]:
    """Return the options of a `select` run of the same size with diversity, and True if it scores sentences again.

    kind: value of the option `diversity`.
    """
    config, budget = run_of(choice_id).manifest.config, kept_budget(choice_id)
    if Budget.parse(budget).unit == "threshold":  # refused with diversity
        budget = budget_in(choice_id, "sentences")
    # A cascade has no scores for a pool of five times as many sentences.
    rescored = scored(choice_id).cascade is not None or (budget != config["budget"] and _sized(config))
    return {**again(choice_id, budget), "diversity": kind}, rescored


def score_bins(choice_id: str) -> plot.ScoreBins:
    """Return a histogram of all scores that a selection was made from."""
    return _score_bins(choice.run_of(choice_id))


@kept_per_home(4)
def _score_bins(run_id: str) -> plot.ScoreBins:
    return plot.score_bins(scored(run_id).scores.values)


def score_range(choice_id: str) -> tuple[float, float, int]:
    """Return (lowest score, highest score, decimals) for a slider. Both scores are rounded outwards to `decimals`."""
    edges = score_bins(choice_id).edges
    low, high = float(edges[0]), float(edges[-1])
    # The slider gets 500 to 5,000 steps. If all scores are equal, their magnitude sets the step.
    decimals = -math.floor(math.log10((high - low or abs(high) or 1.0) / 500))
    step = 10.0**-decimals
    return round(math.floor(low / step) * step, decimals), round(math.ceil(high / step) * step, decimals), decimals


def budget_in(choice_id: str, unit: Unit) -> str:
    """Return the selection's budget in another unit.

    The budget is rounded: fractions to 0.1%, scores to at least four digits. Apart from this rounding, it selects the
    same sentences. After a selection with diversity, a threshold selects as many sentences, those with the best scores.
    """
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
            # Rounded to the slider's steps, at least one step.
            value = max(round(len(now.rows) / len(about.domain), 3), 0.001)
        case "threshold":
            down = about.scores.prefer == "high"
            values = np.sort(about.scores.values[about.eligible(withheld_flags(keep))])
            worst = float(values[-len(now.rows)] if down else values[len(now.rows) - 1])
            # at least four digits
            decimals = max(score_range(choice_id)[2], 3 - math.floor(math.log10(abs(worst) or 1.0)))
            # Rounded away from the selected scores, so that the worst of them stays selected.
            value = round((math.floor if down else math.ceil)(worst * 10.0**decimals) / 10.0**decimals, decimals)
    return str(Budget(value=value, unit=unit))


def edits(choice_id: str) -> Edits:
    """Return the hand edits of a selection: `added`, `removed` (rows), `history` (not undone, oldest first)."""
    return choice.read_edits(at(choice_id).folder)


def edit(choice_id: str, action: Literal["add", "remove"], rows: IntArray) -> Edits:
    """Add rows of D_C to S_C by hand, or remove them, and store the edit. Errors: CorpusError for an unknown row."""
    rows, n = np.unique(np.asarray(rows, dtype=np.int64)), len(scored(choice_id).domain)
    if len(rows) and not 0 <= rows[0] <= rows[-1] < n:
        raise CorpusError(
            f"rows: {rows[0]} to {rows[-1]} are not all in the domain corpus, which has {n:,} rows; "
            "give smaller row numbers."
        )
    if len(rows):
        choice.append_edit(at(choice_id).folder, action, rows)
    return edits(choice_id)


def undo(choice_id: str, seen: float | None = None) -> Edits:
    """Undo the last hand edit, if there is one.

    seen: time of the edit that the page showed as the last. Errors: Overtaken if another edit is the last.
    """
    with journal.changing(home()):
        if history := edits(choice_id).history:
            journal.refuse_overtaken(history[-1], seen, "The last edit")
            choice.append_edit(at(choice_id).folder, "undo", np.empty(0, dtype=np.int64))
    return edits(choice_id)


def seal(choice_id: str, budget: str | None = None, keep: Sequence[str] | None = None) -> Corpus:
    """Return S_C with its hand edits as a stored corpus. Its origin names run, selection and number of edits.

    budget: default is the selection's own. keep: default is that of its run.
    """
    config, changes = run_of(choice_id).manifest.config, edits(choice_id)
    budget = kept_budget(choice_id) if budget is None else budget
    keep = tuple(config["keep"] if keep is None else keep)
    if not changes and (budget, keep) == (config["budget"], tuple(config["keep"])):
        with suppress(CorpusError):  # raised if S_C was removed
            return library().find(result(choice_id).corpus)
    with suppress(CorpusError):
        return library().find(_sealed(choice_id, budget, keep, changes.added.tobytes(), changes.removed.tobytes()))
    return _seal(choice_id, budget, keep)


@kept_per_home(32)
def _sealed(choice_id: str, budget: str, keep: Sequence[str], added: bytes, removed: bytes) -> str:
    """Return the fingerprint of S_C, cached by the bytes of its hand edits."""
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
def export(
    choice_id: str,
    budget: str,
    keep: Sequence[str],
    path: Path,
    format: Format | None = None,
    *,
    edited: bool = True,
) -> Path:
    """Write the selection, with its hand edits if `edited`, as txt, jsonl, parquet, csv, or a folder for `datasets`.

    format: default is the format of the path's suffix. Errors: ConfigError, PathError.
    """
    selection, changes = chosen(choice_id, budget, keep, edited=edited), edits(choice_id) if edited else None
    scored(choice_id).export(selection, path, choice_id, changes, format)
    return path


def file_name(choice_id: str) -> str:
    """Return a name for an export, without suffix, such as `contracts-knn-1a2b-20pct`.

    It begins with the selection's name, or else with its domain corpus and strategy. `1a2b` is the end of the run's id.
    When the run is removed, Winnow finds its exports by `-1a2b-`. The words before it contain no hyphen, so that no
    word can be mistaken for such an id.
    """
    now, about = at(choice_id), scored(choice_id)
    parts = [now.name] if now.name else [about.domain.name, about.scores.name]
    words = [re.sub(r"\W+", "_", part).strip("_")[:LONGEST_WORD] for part in parts]
    # Not every system allows % and : in file names.
    budget = now.budget.replace("%", "pct").replace(":", "-")
    return "-".join([*filter(None, words), now.mark, budget])


def command(choice_id: str, output: str, format: str) -> str:
    """Return the command line that writes a selection to `output`, with the same bytes as `export`.

    This is a `select` command if a `select` run gives the same result. It is an `export` command if the selection was
    saved or edited, if a corpus was removed, or if the ranking was made for another budget (`_ranks_by_budget`).
    """
    run, now = run_of(choice_id), at(choice_id)
    options = {**run.manifest.config, "budget": now.budget}
    words = ["--output", output, *(["--format", format] if format == "folder" else [])]
    reordered = now.budget != run.manifest.config["budget"] and _ranks_by_budget(options)
    with suppress(CorpusError):
        runs.finished("select", options)  # raises an error if a corpus was removed, because `select` would fail too
        if now.first and not reordered and not edits(choice_id):
            return f"{commands.command('select', options)} {shlex.join(words)}"
    begins = ["python", "-m", "core", *projects.option(), "export", choice_id, "--budget", now.budget]
    return shlex.join([*begins, *words])


def _ranks_by_budget(options: Mapping[str, Any]) -> bool:
    """Return True if `select` runs with these options rank sentences differently for different budgets."""
    return _sized(options) or options["diversity"] != "none" or bool(options.get("cascade"))


def _sized(options: Mapping[str, Any]) -> bool:
    """Return True if the scores depend on the budget."""
    strategy = STRATEGIES[options["strategy"]]
    own = strategy_options(strategy.name, options["options"])
    return bool(strategy.sized(own, 1) != strategy.sized(own, 2))
