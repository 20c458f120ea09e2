"""Hashes of a home's content after a run, without times and random names: equal for equal work."""

import csv
import json
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from core.files import TEMPORARY
from core.runs.store import RunStore

CLOCK = {"seconds", "tokens_per_second", "time", "created"}
TIMED = {"calibrate"}  # kinds whose result is a measured time
HOURS = {"leaderboard.csv": ",", "leaderboard.md": "|"}
RUN_ID = re.compile(rb"\d{8}-\d{6}-([a-z][a-z0-9-]*)-[0-9a-f]{4}")
Outcome = Mapping[str, str]


def outcome(home: Path, before: frozenset[str]) -> Outcome:
    """Return {name: hash} of every run and corpus that is not in `before`. Runs of the same kind are numbered."""
    seen = dict[str, str]()
    runs = sorted((run for run in RunStore(home).list() if run.id not in before), key=lambda run: run.manifest.created)
    for run in runs:
        name = next(f"{run.manifest.kind} {i}" for i in range(1, 999) if f"{run.manifest.kind} {i} result" not in seen)
        state = run.state()
        measured = state.state == "succeeded" and run.manifest.kind not in TIMED
        seen[f"{name} result"] = _hash(run.result_file, home) if measured else state.state
        for file in sorted(path for path in run.artifacts.rglob("*") if path.is_file()):
            if not file.match(TEMPORARY):
                seen[f"{name} {file.relative_to(run.artifacts)}"] = _hash(file, home)
    for corpus in sorted((home / "corpora").iterdir()):
        if corpus.name not in before and not corpus.name.startswith("."):
            seen |= {f"corpus {corpus.name} {file.name}": _hash(file, home) for file in sorted(corpus.iterdir())}
    return seen


def here(home: Path) -> frozenset[str]:
    """Return the names of the runs and corpora of a home."""
    return frozenset(path.name for room in ("runs", "corpora") for path in (home / room).iterdir())


def _hash(file: Path, home: Path) -> str:
    data = file.read_bytes()
    if file.suffix in (".json", ".jsonl", ".csv", ".md", ".txt", ".conll"):
        data = RUN_ID.sub(rb"<\1>", data.replace(bytes(home), b"<home>"))
    if file.name in HOURS:
        data = _without_hours(data.decode(), HOURS[file.name])
    if file.suffix == ".json":
        data = json.dumps(_timeless(json.loads(data)), sort_keys=True).encode()
    return sha256(data).hexdigest()[:16]


def _without_hours(table: str, mark: str) -> bytes:
    """Return the cells of a text table as JSON, without the columns of hours."""
    rows = list(csv.reader(table.splitlines(), delimiter=mark))
    head = next(row for row in rows if len(row) > 2)  # a sentence may precede the table
    hours = [i for i, name in enumerate(head) if "hour" in name.lower()]
    return json.dumps([[cell for i, cell in enumerate(row) if i not in hours] for row in rows]).encode()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(item) for name, item in value.items() if name not in CLOCK and "hour" not in name}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def differences(calm: Outcome, stormy: Outcome) -> list[str]:
    """Return the names whose hashes differ from those of the undisturbed run."""
    return sorted(name for name in calm.keys() | stormy.keys() if calm.get(name) != stormy.get(name))
