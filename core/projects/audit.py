"""The audit log of this home: written by what the pages and the command line do, listed for an auditor."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from core import audit_log
from core.audit_log import Action, Line, asked_by
from core.projects.home import machine_home, store

P = ParamSpec("P")
T = TypeVar("T")
N = TypeVar("N", bound=str | Sequence[str])


def ready() -> None:
    """Errors: ResourceError where the log has to be written and cannot be; asked before work begins."""
    audit_log.ready(machine_home())


def note(action: Action, *, runs: Collection[str] = (), corpora: Collection[str] = ()) -> None:
    """One line in the log. Errors: as of `ready`."""
    audit_log.note(machine_home(), action, runs=runs, corpora=corpora)


def noted(action: Action, *, runs: Collection[str] = (), corpora: Collection[str] = ()) -> AbstractContextManager[None]:
    """One line in the log once the block has ended well. Errors: as of `ready`, before it begins."""
    return audit_log.noted(machine_home(), action, runs=runs, corpora=corpora)


def note_look(corpora: Collection[str]) -> None:
    """Somebody was shown sentences of these corpora (fingerprints), one line each."""
    for mark in corpora:
        note("look", corpora=[mark])


def exporting(function: Callable[Concatenate[N, P], T]) -> Callable[Concatenate[N, P], T]:
    """A decorator for what takes something of a run, or of several, out of Winnow: one line each time.

    The first argument is the run's id, or one that begins with it (a choice's, or that of a map laid over another
    one), or several of them.
    """

    @wraps(function)
    def written_down(named: N, /, *args: P.args, **kwargs: P.kwargs) -> T:
        several = [named] if isinstance(named, str) else named
        run_ids = dict.fromkeys(each.partition("@")[0].partition(".")[0] for each in several)
        marks = [mark for run_id in run_ids for mark in store().get(run_id).manifest.inputs.values()]
        with noted("export", runs=run_ids, corpora=dict.fromkeys(marks)):
            return function(named, *args, **kwargs)

    return written_down


def lines(since: datetime | None = None) -> tuple[Path | None, list[Line]]:
    """The path of the log (None: it is off) and its entries from `since` (UTC) on, oldest first."""
    return audit_log.place(machine_home()), list(audit_log.lines(machine_home(), since))


def spoilt() -> int:
    """The number of lines of the log that cannot be read."""
    return audit_log.spoilt(machine_home())


__all__ = ["Action", "Line", "asked_by", "exporting", "lines", "note", "note_look", "noted", "ready", "spoilt"]
