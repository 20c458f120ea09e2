"""`make slow` writes tests/slow.txt anew: the tests that `make quick` leaves out of the rooms that it runs.

A function stands there once for all its cases, if the slowest takes a tenth of a second of processor time or more,
that of the processes it starts included: wall time would tell how busy the machine was.
"""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("slow.txt")
SECONDS = 0.1
_took: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    before = sum(os.times()[:4])
    done = yield
    name = item.nodeid.partition("[")[0].removeprefix("tests/")
    _took[name] = max(_took.get(name, 0.0), sum(os.times()[:4]) - before)
    return done


def pytest_sessionfinish() -> None:
    slow = sorted(name for name, seconds in _took.items() if seconds >= SECONDS)
    FILE.write_text("".join(f"{name}\n" for name in slow), encoding="utf-8")
