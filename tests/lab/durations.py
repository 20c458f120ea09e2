"""Seconds that the tests take, by folder and by fixture.

    WINNOW_DURATIONS=FOLDER python -m pytest -p tests.lab.durations ...
    python -m tests.lab.durations FOLDER

The plugin appends one JSON line per test and per fixture setup to a file of each process in FOLDER. The command adds them
up. Seconds are wall time, so they include what other processes take; a fixture's seconds include those of the fixtures
it requests, and count in the test that sets it up.
"""

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "WINNOW_DURATIONS"
MOST = 40  # rows of a table


def _append(line: dict[str, object]) -> None:
    if folder := os.environ.get(VARIABLE):
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        with (path / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    begun = time.perf_counter()
    result = yield
    _append({"test": item.nodeid, "seconds": time.perf_counter() - begun})
    return result


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Generator[None, object, object]:
    begun = time.perf_counter()
    result = yield
    name = f"{fixturedef.baseid}::{fixturedef.argname}"
    _append({"fixture": name, "scope": fixturedef.scope, "seconds": time.perf_counter() - begun})
    return result


def read(folder: Path) -> list[dict[str, Any]]:
    """Read the lines of all processes."""
    return [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]


def tables(lines: Iterable[dict[str, Any]]) -> str:
    """Return two Markdown tables: tests and seconds by folder, and setups and seconds by fixture."""
    folders: dict[str, list[float]] = defaultdict(list)
    fixtures: dict[str, list[float]] = defaultdict(list)
    for line in lines:
        if "test" in line:
            folders[str(Path(line["test"].partition("::")[0]).parent)].append(line["seconds"])
        else:
            fixtures[f"{line['fixture']} ({line['scope']})"].append(line["seconds"])
    return "\n\n".join((_table("folder", "tests", folders), _table("fixture", "setups", fixtures)))


def _table(name: str, counted: str, groups: dict[str, list[float]]) -> str:
    rows = sorted(groups.items(), key=lambda pair: -sum(pair[1]))
    total = [seconds for values in groups.values() for seconds in values]
    lines = [f"| {name} | {counted} | seconds | longest |", "|---|---:|---:|---:|"]
    for label, values in [*rows[:MOST], ("all", total or [0.0])]:
        lines.append(f"| {label} | {len(values):,} | {sum(values):,.1f} | {max(values):.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(tables(read(Path(sys.argv[1]))))
