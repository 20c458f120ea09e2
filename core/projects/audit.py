"""Write and read the audit log of this home, for pages and commands."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from core import audit_log
from core.audit_log import Action, Line
from core.paths import machine_home
from core.projects.home import store

P = ParamSpec("P")
T = TypeVar("T")
N = TypeVar("N", bound=str | Sequence[str])


def ready() -> None:
    """Check that the log can be written, before other work begins. Errors: ResourceError."""
    audit_log.ready(machine_home())


def note(action: Action, *, runs: Collection[str] = (), corpora: Collection[str] = ()) -> None:
    """Write one line in the log. Errors: ResourceError."""
    audit_log.note(machine_home(), action, runs=runs, corpora=corpora)


def noted(action: Action, *, runs: Collection[str] = (), corpora: Collection[str] = ()) -> AbstractContextManager[None]:
    """Write one line after the `with` block succeeds. Errors: ResourceError before the block."""
    return audit_log.noted(machine_home(), action, runs=runs, corpora=corpora)


def note_look(corpora: Collection[str]) -> None:
    """Log that sentences of these corpora (fingerprints) were shown, one line each."""
    for mark in corpora:
        note("look", corpora=[mark])


def exporting(function: Callable[Concatenate[N, P], T]) -> Callable[Concatenate[N, P], T]:
    """Decorate a function that exports data of runs: write one line in the log per call.

    The function's first argument is one id or several. An id is a run's id, or that of a selection or an overlaid map,
    which begins with a run's id.
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
    """Return the log's path (None if it is off) and its entries from `since` (UTC) on, oldest first."""
    return audit_log.place(machine_home()), list(audit_log.lines(machine_home(), since))


def spoilt() -> int:
    """Return the number of lines of the log that cannot be read."""
    return audit_log.spoilt(machine_home())
