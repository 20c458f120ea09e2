"""One attempt at a run: take the lock, do the work, write the result and the last event."""

import json
import os
import signal
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from core.errors import Cancelled, ResourceError, RunBusy, WinnowError, for_the_log, memory_ran_out
from core.files import disk_is_full, forget_sums, sum_up, sync_all, write_atomic
from core.runs.chunks import PROBES
from core.runs.context import Listener, RunContext
from core.runs.events import OUT_OF_MEMORY, Data, Ending, EventLog
from core.runs.lock import Worker, aside
from core.runs.run import Result, Run
from core.shown import shown

Compute = Callable[[RunContext], Result]


def execute(run: Run, function: Compute, *, listener: Listener | None = None) -> Result:
    """Work on a run in this process and return its result. If the run has succeeded already, only return the result.

    Errors: RunBusy if another process works on the run; Cancelled; ResourceError if disk or memory is full; any
    other WinnowError; any exception that a bug raises. All but RunBusy are also written to `events.jsonl`.
    """
    with _held(run):
        run.cancel_file.unlink(missing_ok=True)
        return attempt(run, function, listener=listener)


def work(run: Run, function: Compute) -> int:
    """Work on a run as a worker process, and return the exit status: 0, 1 (bug), 2 (error) or 130 (cancelled).

    Unlike `execute`, obey an existing cancel file, because a user created it after this worker was started.
    """
    try:
        with _held(run):
            attempt(run, function)
    except Cancelled:
        return 130
    except WinnowError as error:
        print(shown(str(error)), file=sys.stderr)
        return 2
    except Exception:  # noqa: BLE001  its traceback is in worker.log already
        return 1
    return 0


def attempt(
    run: Run, function: Compute, *, listener: Listener | None = None, parent: RunContext | None = None
) -> Result:
    """Do the work of `execute` in a process that already holds the run's lock. parent: context of the parent run."""
    if run.state().state == "succeeded":  # another process finished it while this one waited for the lock
        return run.result()
    me = Worker.of(os.getpid())
    assert me
    try:
        log = EventLog(run.events_file)
    except OSError as error:
        raise ResourceError(
            f"{run.events_file}: {error.strerror}; free disk space or check its permissions."
        ) from error
    with log:
        context = RunContext(run, log, listener=listener, parent=parent)
        try:
            with _terminable(context):
                run.rank_error_file.unlink(missing_ok=True)
                context.emit("started", {"pid": me.pid, "created": me.created})
                forget_sums(run.path)
                payload = json.dumps(function(context), ensure_ascii=False, indent=1).encode()
                for probe in run.chunks.glob(PROBES):
                    probe.unlink(missing_ok=True)
                sum_up(run.path)
                sync_all(run.artifacts)  # a power cut after the event "succeeded" must not lose results
                write_atomic(run.result_file, payload)
                context.emit("succeeded", {"size": len(payload), "crc": zlib.crc32(payload)})
        except BaseException as error:
            ending, failure = _explain(context, error)
            with suppress(OSError):  # if the disk is too full even for this line, the run is shown as interrupted
                if ending and not log.ended:
                    context.emit(ending, _last_words(failure) if ending == "failed" else {})
            if ending == "cancelled":
                run.cancel_file.unlink(missing_ok=True)
            if failure is error or isinstance(failure, _Bug):
                raise
            raise failure from error
    result: Result = json.loads(payload)
    return result


class _Bug(Exception):
    """Replaces, in the event log, an exception that a bug raised, because its message may quote data."""


def _explain(context: RunContext, error: BaseException) -> tuple[Ending | None, Exception]:
    """Return how an attempt that raised `error` ended (None if interrupted), and the error to show to the user."""
    run = context.run
    name = type(error).__name__
    own = isinstance(error, WinnowError) and not isinstance(error, Cancelled)
    # If another process of torchrun failed, its error is the cause of the error in this process.
    if not own and (ended := _failure_of_other_rank(run)):
        return "failed", ResourceError(f"run {run.id}: another process of torchrun has failed: {ended}")
    if isinstance(error, KeyboardInterrupt):
        context.terminate()
    if isinstance(error, Cancelled) or context.terminated:
        sentence = f"run {run.id}: was stopped on request; resume it to continue."
        return "cancelled", error if isinstance(error, Cancelled) else Cancelled(sentence)
    if isinstance(error, WinnowError):
        return "failed", error
    problem = ""
    if disk_is_full(error):
        problem = f"the disk that holds {run.home} is full; free some space there and resume the run."
    elif memory_ran_out(error):
        way_out = "choose smaller batches or a smaller model, or close other programs, and start again."
        problem = f"{OUT_OF_MEMORY}; {way_out}"
    if problem:
        return "failed", ResourceError(f"run {run.id}: {problem}")
    log_traceback(run, error)
    return "failed", _Bug(f"This is a bug in Winnow: {name}; the traceback is in worker.log.")


def _failure_of_other_rank(run: Run) -> str:
    try:
        return run.rank_error_file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _last_words(error: Exception) -> Data:
    permanent = getattr(error, "permanent", False)
    return {"error": str(error), "permanent": True} if permanent else {"error": str(error)}


def log_traceback(run: Run, error: BaseException) -> None:
    """Append a traceback to worker.log."""
    with suppress(OSError), run.log_file.open("a", encoding="utf-8") as log:
        log.write(for_the_log(error))


@contextmanager
def _held(run: Run) -> Iterator[None]:
    if not run.lock.acquire(run.id):
        raise RunBusy(f"run {run.id}: is running in another process{aside(run.held_by())}; wait for it or cancel it.")
    try:
        yield
    finally:
        run.lock.release()


@contextmanager
def _terminable(context: RunContext) -> Iterator[None]:
    """Let SIGTERM cancel the run at the next `check()`. A child run sets no handler, because its parent has one."""
    if context.is_child or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: context.terminate())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
