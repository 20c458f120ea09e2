"""Compute from events how many seconds runs took, by kind of run.

A run's own time is the time of its attempts, minus the time it waited for other runs, minus the time of its child runs.
The cost of a variant of an experiment is the sum of the own times of all runs that it needs. Variants share some runs,
so the costs of all variants add up to more than the experiment took. `by_kind` counts each run once.
"""

from collections.abc import Iterable, Iterator, Mapping

from core.runs.events import ENDINGS, Event
from core.runs.store import Run, RunStore

Interval = tuple[float, float]


def by_kind(runs: Iterable[Run], store: RunStore) -> Mapping[str, float]:
    """Return {kind of run: seconds} for these runs and all runs whose results they need. Each run is counted once."""
    seconds: dict[str, float] = {}
    for run in with_children(runs, store):
        parts = [interval for part in children_of(run, store) for interval in _busy(part)]
        kind, own = run.manifest.kind, _length(_busy(run)) - _overlap(_busy(run), parts)
        seconds[kind] = seconds.get(kind, 0.0) + own
    return seconds


def children_of(run: Run, store: RunStore) -> list[Run]:
    """Return the runs whose results `run` used: its child runs, finished runs that it reused, and unfinished runs.

    Such an unfinished run was begun by another run. `run` then did the rest of its work.
    """
    events = run.events()[0]
    used = {event.data["reused"] for event in events if event.kind == "note" and "reused" in event.data}
    used |= {event.data["run"] for event in events if event.kind == "child"}
    return [candidate for candidate in store.list() if candidate.manifest.parent == run.id or candidate.id in used]


def with_children(runs: Iterable[Run], store: RunStore) -> list[Run]:
    """Return these runs and all runs whose results they need, directly or through other runs, each once."""
    by_id: dict[str, Run] = {}
    waiting = list(runs)
    while waiting:
        run = waiting.pop()
        if run.id not in by_id:
            by_id[run.id] = run
            waiting += children_of(run, store)
    return list(by_id.values())


def _busy(run: Run) -> list[Interval]:
    """Return the intervals in which a run computed and did not wait. A killed attempt ends at its last event."""
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
            if since is not None:  # the previous attempt was killed
                yield since, last
            since = event.time
        last = event.time
    if since is not None:
        yield since, last


def _length(intervals: Iterable[Interval]) -> float:
    return sum(end - start for start, end in intervals)


def _overlap(own: Iterable[Interval], children: list[Interval]) -> float:
    """Return the seconds in the intervals `own` during which at least one child ran.

    On Ray, several children may run at the same time.
    """
    merged: list[Interval] = []
    for start, end in sorted(children):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return sum(max(0.0, min(end, e) - max(start, s)) for start, end in own for s, e in merged)
