"""Fixtures of tests that create runs."""

from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

import pytest

from core.runs import Run, RunStore


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return RunStore(tmp_path).create("test", {}, {}, versions={}, key="k")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    """Yield an empty store; kill workers that a failed test left running."""
    store = RunStore(tmp_path / "home")
    yield store
    for run in store.list():
        if worker := run.worker():
            worker.signal(SIGKILL)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Return a file. A run with this `gate` waits after its fourth chunk until the file exists."""
    return tmp_path / "gate"
