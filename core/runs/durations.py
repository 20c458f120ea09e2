"""Seconds that runs took, by kind: read from their events, never measured twice.

A run's own time is that of its attempts, less its waiting for other runs and less what its child runs took. What an
arm cost is the own time of every run that it rests on, whoever made it first: what the arm would cost by itself. The
sum over arms is therefore more than an experiment took; `by_kind` of all its runs together counts each of them once.
"""

from collections.abc import Iterable, Iterator, Mapping

from core.runs.events import ENDINGS, Event
from core.runs.store import Run, RunStore

Interval = tuple[float, float]


def by_kind(runs: Iterable[Run], store: RunStore) -> Mapping[str, float]:
    """Seconds by kind of run, of `runs` and of all that they rest on, each run once."""
    by_id = _with_children(runs, store)
    seconds: dict[str, float] = {}
    for run in by_id.values():
        parts = [interval for part in children_of(run, store) for interval in _busy(part)]
        kind, own = run.manifest.kind, _length(_busy(run)) - _overlap(_busy(run), parts)
        seconds[kind] = seconds.get(kind, 0.0) + own
    return seconds


def children_of(run: Run, store: RunStore) -> list[Run]:
    """The child runs whose results `run` used: its own, and finished ones that it reused."""
    reused = {event.data["reused"] for event in run.events()[0] if event.kind == "note" and "reused" in event.data}
    return [candidate for candidate in store.list() if candidate.manifest.parent == run.id or candidate.id in reused]


def _with_children(runs: Iterable[Run], store: RunStore) -> dict[str, Run]:
    by_id: dict[str, Run] = {}
    waiting = list(runs)
    while waiting:
        run = waiting.pop()
        if run.id not in by_id:
            by_id[run.id] = run
            waiting += children_of(run, store)
    return by_id


def _busy(run: Run) -> list[Interval]:
    """Times at which `run` was worked on and waited for nobody, in order. A killed attempt ends with its last event."""
    return list(_intervals(run.events()[0]))


def _intervals(events: Iterable[Event]) -> Iterator[Interval]:
    since: float | None = None
    last = 0.0
    for event in events:
        waits = event.kind == "note" and event.data.get("waiting_for") is not None
        resumes = event.kind == "note" and "waiting_for" in event.data and not waits
        if since is not None and (event.kind in ENDINGS or waits):
            yield since, event.time
            since = None
        elif event.kind == "started" or resumes:
            if since is not None:  # the attempt before this one was killed
                yield since, last
            since = event.time
        last = event.time
    if since is not None:
        yield since, last


def _length(intervals: Iterable[Interval]) -> float:
    return sum(end - start for start, end in intervals)


def _overlap(own: Iterable[Interval], children: list[Interval]) -> float:
    """Seconds that lie in both; `others` do not overlap one another, for one process makes one child at a time."""
    return sum(max(0.0, min(end, e) - max(start, s)) for start, end in own for s, e in children)
