"""Answers and failures of a separate process that reads a file; for test_isolated.py."""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from typing import Any

from core import isolated
from core.errors import EncodingError


def answer(how: str, **given: Any) -> Any:
    return globals()[f"_{how}"](**given)


def _echo(value: Any) -> Any:
    return value


def _error() -> None:
    raise EncodingError("a.txt", 7, "no text; save it")


def _bug() -> None:
    quoted = "the patient's name"
    raise KeyError(quoted)


def _segfault() -> None:
    ctypes.string_at(0)


def _killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _eat() -> None:
    kept = []
    while True:
        kept.append(bytearray(50 << 20))


def _hang(pipe: str) -> None:
    held = os.open(pipe, os.O_WRONLY)
    os.write(held, b"1")
    subprocess.Popen(
        [sys.executable, "-c", f"import os, time; os.write({held}, b'2'); time.sleep(999)"], pass_fds=[held]
    )
    time.sleep(999)


def _spin(pid: str) -> None:
    with open(pid, "w", encoding="ascii") as file:
        file.write(f"{os.getpid()}\n")
    while True:
        pass


def _overran() -> None:
    os.kill(os.getpid(), signal.SIGXCPU)


def _aware() -> list[Any]:
    return [isolated.is_isolated(), isolated.seconds_left(600)]


def _where() -> list[str]:
    return [os.getcwd(), os.environ["LATER"]]


def _limits() -> list[Any]:
    return [resource.getrlimit(kind) for kind in (resource.RLIMIT_CORE, resource.RLIMIT_AS, resource.RLIMIT_CPU)]
