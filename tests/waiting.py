"""Waiting for what other processes do, on a machine that may be crowded: for long, and no longer than it takes."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

WAIT_SECONDS = 240.0  # seconds; who is ready sooner waits no longer
Got = TypeVar("Got")


def until(true: Callable[[], Got], what: str = "it comes true", pause: float = 0.02) -> Got:
    """What `true` returns once that is true. Errors: AssertionError when patience ends."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not (got := true()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(pause)
    return got


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Hold a block to a time, where the machine has nothing else to do: a crowded one says nothing about the app."""
    stalled, began = _stalled(), time.monotonic()
    yield
    took = time.monotonic() - began
    assert took < seconds or _stalled() - stalled > took / 4, f"{took:.1f} s on a quiet machine, {seconds} at most"


def _stalled() -> float:
    """Seconds so far in which some process had to wait for a processor; by the load where the system counts no more."""
    try:
        some = Path("/proc/pressure/cpu").read_text(encoding="ascii").splitlines()[0]
    except OSError:
        return time.monotonic() if os.getloadavg()[0] >= (os.cpu_count() or 1) else 0.0
    return int(some.rpartition("=")[2]) / 1e6


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """A process stopped in the middle, so that no machine is too fast for the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
