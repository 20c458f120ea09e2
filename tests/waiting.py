"""Waiting for other processes on a machine that may be busy."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

WAIT_SECONDS = 240.0  # longest wait, in seconds
Got = TypeVar("Got")


def until(true: Callable[[], Got], what: str = "it comes true", pause: float = 0.02) -> Got:
    """Wait until `true` returns a true value, and return it. Errors: AssertionError after WAIT_SECONDS."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not (got := true()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(pause)
    return got


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the block takes longer than `seconds`, unless other processes delayed it."""
    stalled, began = _stalled(), time.monotonic()
    yield
    took = time.monotonic() - began
    assert took < seconds or _stalled() - stalled > took / 4, f"{took:.1f} s on a quiet machine, {seconds} at most"


def _stalled() -> float:
    """Return the seconds that processes have waited for a CPU; estimated from the load if not counted."""
    try:
        some = Path("/proc/pressure/cpu").read_text(encoding="ascii").splitlines()[0]
    except OSError:
        return time.monotonic() if os.getloadavg()[0] >= (os.cpu_count() or 1) else 0.0
    return int(some.rpartition("=")[2]) / 1e6


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Stop a process during the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
