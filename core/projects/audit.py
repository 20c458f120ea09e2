"""Write in the audit log that pages and commands showed or exported sentences."""

from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from core import audit_log
from core.projects.home import store

P = ParamSpec("P")
T = TypeVar("T")
N = TypeVar("N", bound=str | Sequence[str])


def note_look(corpora: Collection[str]) -> None:
    """Note in the audit log that sentences of these corpora were shown, one line each. corpora: fingerprints."""
    for mark in corpora:
        audit_log.note("look", corpora=[mark])


def exporting(function: Callable[Concatenate[N, P], T]) -> Callable[Concatenate[N, P], T]:
    """Decorate a function that exports data of runs, so that each call is written in the audit log.

    The function's first argument is an id or several ids of runs, selections or maps. Each id begins with a run's id.
    """

    @wraps(function)
    def written_down(named: N, /, *args: P.args, **kwargs: P.kwargs) -> T:
        several = [named] if isinstance(named, str) else named
        run_ids = dict.fromkeys(each.partition("@")[0].partition(".")[0] for each in several)
        marks = [mark for run_id in run_ids for mark in store().get(run_id).manifest.inputs.values()]
        with audit_log.noted("export", runs=run_ids, corpora=dict.fromkeys(marks)):
            return function(named, *args, **kwargs)

    return written_down
