"""List, find, name, copy and delete the saved selections of a project, and make one of them the current one."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from core.config import Budget
from core.errors import ConfigError, CorpusError, RunError
from core.paths import home
from core.projects import runs
from core.projects.home import kept_per_home, library, store
from core.runs import journal
from core.runs.store import Run, is_run_id
from core.selection import choice as files
from core.selection import view as selections
from core.selection.choice import LONGEST, Choice
from core.selection.view import at, edits
from core.shown import shown


def listed() -> list[Choice]:
    """Return the readable selections of all finished `select` runs that a user started, newest first."""
    return of(runs.own("select", state="succeeded"))


def of(finished: Sequence[Run]) -> list[Choice]:
    """Return the readable selections of finished `select` runs, newest first."""
    here = list[Choice]()
    for run in finished:
        with suppress(RunError):
            here += files.of(run)
    return sorted(here, key=lambda choice: (choice.created, choice.id), reverse=True)


def current() -> Choice | None:
    """Return the current selection, which is the first of `in_use`; None if `in_use` is empty."""
    return next(iter(in_use()), None)


def in_use() -> list[Choice]:
    """Return the selections from the corpora in use, the current selection first.

    The current selection is the one that was last made current, or the first selection of a later run.
    """
    return sorted(of(runs.of_corpora_in_use(runs.own("select", state="succeeded"))), key=_since, reverse=True)


def _since(choice: Choice) -> tuple[float, str]:
    return max(choice.taken, choice.created if choice.first else 0.0), choice.id


def find(reference: str) -> Choice:
    """Find a selection by id, name or default title. Errors: RunError; ConfigError if several match."""
    with suppress(RunError):
        return at(reference)
    here = listed()
    same = _folded(reference)
    named = [choice for choice in here if choice.name and _folded(choice.name) == same]
    fitting = named or [choice for choice in here if _folded(title(choice)) == same]
    if len(fitting) > 1:
        ids = ", ".join(choice.id for choice in fitting)
        raise ConfigError(f"selection {reference[:LONGEST]!r}: several have this name; give one of these ids: {ids}.")
    if not fitting and not is_run_id(files.run_of(reference)):
        raise ConfigError(f"selection {reference[:LONGEST]!r}: does not exist; `choice list` shows all selections.")
    return fitting[0] if fitting else at(reference)


def _folded(name: str) -> str:
    return " ".join(shown(name).split()).casefold()


def title(choice: Choice) -> str:
    """Return a selection's name, or else budget and strategy, such as "20.2% by classifier"."""
    return choice.name or in_words(choice)


def in_words(choice: Choice) -> str:
    """Return a selection's budget, strategy and hand edits as words, such as "20.2% by classifier"."""
    by_hand = f", {changes}" if (changes := edits(choice.id)) else ""
    return f"{Budget.parse(choice.budget).in_words} by {_strategy(choice)}{by_hand}"


def _strategy(choice: Choice) -> str:
    return str(selections.run_of(choice.id).manifest.config["strategy"])


def proposed_name(choice: Choice) -> str:
    """Return an unused name for a copy of a selection."""
    return _free(f"{Budget.parse(choice.budget).in_words} by {_strategy(choice)}"[: LONGEST - 5])


def _free(name: str) -> str:
    taken = {_folded(choice.name) for choice in listed()}
    number, free = 1, name
    while _folded(free) in taken:
        number += 1
        free = f"{name} {number}"
    return free


def take_up(choice_id: str) -> None:
    """Make a selection the current one. Errors: RunError."""
    now = current()
    if now is None or now.id != choice_id:
        latest = max((_since(choice)[0] for choice in listed()), default=0.0)
        with journal.changing(home()):
            # Later than the time of every other selection, even if the clock was set back or two changes are close.
            files.describe(at(choice_id), taken=round(max(time.time(), latest + 0.001), 3))


def keep(choice_id: str, name: str = "") -> Choice:
    """Save a copy of a selection: same run, budget and hand edits. name: "" for the proposed name.

    Errors: RunError; ConfigError for a name that is too long or taken.
    """
    with journal.changing(home()):
        choice = at(choice_id)
        return files.keep(selections.run_of(choice_id), choice, _name(name or proposed_name(choice)))


def rename(choice_id: str, name: str) -> Choice:
    """Rename a selection. Errors: RunError; ConfigError if the name is empty, too long or taken."""
    with journal.changing(home()):
        files.describe(at(choice_id), name=_name(name, besides=choice_id))
    return at(choice_id)


def _name(name: str, besides: str = "") -> str:
    kept = " ".join(shown(name).split())
    if not kept or len(kept) > LONGEST:
        raise ConfigError(f"name: has {len(kept)} characters; give 1 to {LONGEST}.")
    if any(_folded(choice.name) == _folded(kept) for choice in listed() if choice.id != besides):
        raise ConfigError(f"name: another selection is called {kept!r}; give a different one, such as {_free(kept)!r}.")
    return kept


def remove(choice_id: str) -> None:
    """Delete a saved selection, readable or not. `pretrain` runs keep the corpora that they trained on.

    Errors: RunError; ConfigError for the first selection of a run, which can only be deleted with the run.
    """
    run = selections.run_of(choice_id)
    if choice_id == run.id:
        raise ConfigError(
            f"selection {choice_id}: is the first of its run and cannot be deleted alone; `runs remove {run.id}` "
            "deletes the run with all its selections."
        )
    files.remove(run, choice_id)


def comparable(choice_id: str) -> list[Choice]:
    """Return all other selections from the D_C of this selection, newest first."""
    domain = selections.run_of(choice_id).manifest.inputs["domain"]
    done = store().list("select", state="succeeded")  # includes runs that experiments started
    here = of([run for run in done if run.manifest.inputs["domain"] == domain])
    return [choice for choice in here if choice.id != choice_id]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A `pretrain` run that trained on a selection.

    sentences: number of sentences that it trained on. same: True if the selection has not changed since.
    """

    run: str
    sentences: int
    same: bool


def read_by(choice_id: str) -> list[Reader]:
    """Return the `pretrain` runs that trained on a selection, newest first."""
    readers = list[Reader]()
    with suppress(CorpusError):  # raised if D_C was removed
        rows, domain = selections.chosen(choice_id).rows, selections.scored(choice_id).domain.fingerprint
        sealed = {corpus.fingerprint: corpus for corpus in library().list() if corpus.parent == domain}
        for run in store().list("pretrain"):
            for corpus in [sealed[mark] for mark in dict.fromkeys(run.manifest.inputs.values()) if mark in sealed]:
                same = len(corpus) == len(rows) and _are_same(choice_id, rows.tobytes(), corpus.fingerprint)
                if same or corpus.origin.get("choice", corpus.origin.get("run")) == choice_id:
                    readers.append(Reader(run=run.id, sentences=len(corpus), same=same))
    return readers


@kept_per_home(32)
def _are_same(choice_id: str, rows: bytes, fingerprint: str) -> bool:
    """Return True if the corpus `fingerprint` consists of exactly these rows of the selection's D_C."""
    ids = selections.scored(choice_id).domain.ids()[np.frombuffer(rows, dtype=np.int64)]
    return np.array_equal(ids, library().find(fingerprint).ids())
