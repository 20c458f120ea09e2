"""One run by several processes that know of each other through its files alone: `--share 3/16`, for any scheduler.

The same command is begun sixteen times, as 0/16 to 15/16, on machines that see one home, at once or one by one. One
of the processes works on the run as ever; the others help with what it is at, and each returns the run's result. What
a process is at it holds a lock on, which any death frees: what a killed one had, or who never came would have made,
the others make. Each begins with chunks of its own, so that they seldom meet.
"""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, cast

from core.errors import Cancelled, ConfigError, RunBusy, RunError
from core.runs.chunks import Chunks, Work
from core.runs.context import CHECK_SECONDS, Listener, RunContext
from core.runs.events import ENDINGS, Data, Event, EventLog, Kind
from core.runs.executors.hello import compare
from core.runs.lock import Lock
from core.runs.run import Result, Run
from core.runs.store import RunStore
from core.runs.where import SHARE, Deeds
from core.runs.worker import Compute, execute

CLAIMS = "claims"  # the folder of a run in which its chunks' locks lie
_LOOK = 0.2  # seconds between two looks at what the others have done

Helped = Callable[
    [Run], Callable[[RunContext], object] | None
]  # what a process does that helps with a run; None: nothing


class Over(Cancelled):
    """There is nothing left to help with: a child that is at work then can be resumed."""


@dataclass(frozen=True, slots=True)
class Share:
    """Process `number` of `of`, where several share a run."""

    number: int
    of: int


def share() -> Share | None:
    """Share that `--share` names; None: this process has the run to itself. Errors: ConfigError."""
    given = os.environ.get(SHARE)
    if not given:
        return None
    match = re.fullmatch(r"(\d{1,5})/(\d{1,5})", given)
    number, of = map(int, match.groups()) if match else (1, 0)
    if not 0 <= number <= of or not of:
        raise ConfigError(f"share: {given!r} is none; give 0/16, 1/16, ... 15/16, one a process.")
    return Share(number % of, of)  # who counts from 1 means the same


class Aside(RunContext):
    """The context of a process that helps with a run: it writes nothing, and is over when nobody works on the run."""

    def __init__(self, run: Run, root: Run, listener: Listener | None = None) -> None:
        """root: the run that somebody asked for."""
        super().__init__(run, cast(EventLog, None), listener=listener)  # which `emit` would write
        self._root = root

    @property
    def root(self) -> Run:
        return self._root

    @property
    def unwanted(self) -> bool:
        return self._root.cancel_file.exists()

    def check(self) -> None:
        """Errors: Cancelled; Over."""
        now = time.monotonic()
        if now - self._checked < CHECK_SECONDS:
            return
        self._checked = now
        if self.unwanted:
            raise Cancelled(f"run {self._root.id}: was stopped on request; resume it to go on where it was.")
        if not self.run.lock.held():
            raise Over

    def emit(self, kind: Kind, data: Data) -> None:
        """Tell the listener alone."""
        if self._listener:
            self._listener(Event(seq=0, time=time.time(), kind=kind, data=data))


def make(chunks: Chunks, work: Work, device: Callable[[], Any], own: Share, *, last: bool = True) -> Mapping[str, Any]:
    """Make chunks that nobody has, until there are all: what the work says of its model.

    Errors: Over, for who helps, when there are, and this is the last that it can help with.
    """
    left, over = set(chunks.missing), last and isinstance(chunks.context, Aside)
    if not left and over:  # before a model is loaded for nothing
        raise Over
    order = sorted(left, key=lambda i: (i - own.number) % own.of)
    deeds = Deeds(chunks.context.root.path, own.number)
    with device():
        opened = work.open(chunks.context)
        compare(chunks, work, opened)
        chunks.context.stage(work.stage)
        while left:
            at_work = False
            for i in order:
                if i in left and chunks.paths[i].exists():
                    left.remove(i)
                    chunks.arrived(i)
                elif i in left:
                    with _claimed(chunks.context.run, chunks.paths[i].stem) as claimed:
                        if claimed and not chunks.paths[i].exists():
                            report, rows = chunks.begin(), work.read(*chunks.bounds(i), opened.about)
                            array = opened.compute(opened.ahead(rows) if opened.ahead else rows, report)
                            with suppress(FileNotFoundError):  # swept away by who began anew: made again
                                chunks.keep(i, array)
                                left.remove(i)
                                deeds.count_chunk()
                            at_work = True
            if left and not at_work:
                time.sleep(_LOOK)
                chunks.context.check()
    if over:
        raise Over
    if last:  # who is at a chunk of what comes next has its claim there
        shutil.rmtree(chunks.context.run.path / CLAIMS, ignore_errors=True)
    return opened.about


@contextmanager
def _claimed(run: Run, name: str) -> Iterator[bool]:
    """Have a chunk alone, if nobody else has it."""
    lock = Lock(run.path / CLAIMS / name)
    if not lock.acquire(run.id, patience=0):
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def take_part(
    run: Run, compute: Compute, store: RunStore, helped: Helped, *, listener: Listener | None = None
) -> Result:
    """`execute` for one of several processes that share `run`: its result, whoever made it.

    Errors: as of `execute`; RunError where the process that worked on it failed.
    """
    own = share()
    with Deeds(run.path, own.number).at_work() if own else nullcontext():
        return _part(run, compute, store, helped, listener)


def _part(run: Run, compute: Compute, store: RunStore, helped: Helped, listener: Listener | None) -> Result:
    while True:
        try:
            return execute(run, compute, listener=listener)
        except RunBusy:
            help_along(run, store, helped, listener)
        while (state := run.state()).state in ENDINGS and run.lock.held():  # it ends, or is about to begin anew
            time.sleep(_LOOK)
        if state.state == "failed":
            raise RunError(state.error or f"run {run.id}: has failed.")
        if run.cancel_file.exists() or state.state == "cancelled":
            raise Cancelled(f"run {run.id}: was stopped on request; resume it to go on where it was.")


def help_along(run: Run, store: RunStore, helped: Helped, listener: Listener | None = None) -> None:
    """Help with what another process does for `run`, until it does something else or has ended. Errors: Cancelled."""
    path = [run]
    while child := path[-1].state().child:
        path.append(store.get(child))
    for at in (run, *reversed(path[1:])):  # who helps with the whole knows best what is to be done
        if at.lock.held() and (function := helped(at)):
            with suppress(Over):
                function(Aside(at, run, listener))
            break
    time.sleep(_LOOK)  # also where there was nothing to help with, or it would look without end
