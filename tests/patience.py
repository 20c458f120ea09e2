"""Waiting for what other processes do, on a machine that may be crowded: for long, and no longer than it takes."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

PATIENCE = 240.0  # seconds; who is ready sooner waits no longer
Got = TypeVar("Got")


def until(true: Callable[[], Got], what: str = "it comes true", pause: float = 0.02) -> Got:
    """What `true` returns once that is true. Errors: AssertionError when patience ends."""
    deadline = time.monotonic() + PATIENCE
    while not (got := true()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(pause)
    return got


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Hold a block to a time, where the machine has nothing else to do: a crowded one says nothing about the app."""
    crowded = _crowded()
    waited, began = stalled(), time.monotonic()
    yield
    took = time.monotonic() - began
    crowded |= _crowded() or stalled() - waited > took / 4
    assert crowded or took < seconds, f"{took:.1f} s on a quiet machine, {seconds} at most"


def _crowded() -> bool:
    return os.getloadavg()[0] >= (os.cpu_count() or 1)


def stalled() -> float:
    """Seconds so far in which some process had to wait for a processor; 0 where the system does not count them."""
    try:
        some = Path("/proc/pressure/cpu").read_text(encoding="ascii").splitlines()[0]
    except OSError:
        return 0.0
    return int(some.rpartition("=")[2]) / 1e6


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """A process stopped in the middle, so that no machine is too fast for the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
