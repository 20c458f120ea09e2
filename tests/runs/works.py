"""A `Work` without a model, whose processes fail as a test asks.

`python -m tests.runs.works HOME RUN FATE` computes a run in a process of its own.
"""

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import ModelError
from core.reporter import Reporter
from core.runs.chunks import Array, Opened, Work
from core.runs.context import RunContext
from core.runs.spread import spread
from core.runs.store import Run, RunStore
from core.runs.worker import execute
from tests.waiting import until


@dataclass(frozen=True)
class Squares:
    """Compute i * i for each item.

    once: folder in which processes leave marks; the first process there suffers `fate`. off: rounding error of another
    processor.
    """

    once: Path
    fate: str = ""
    stage: str = "squaring"
    card: bool = False
    off: int = 0

    def read(self, start: int, stop: int, about: Mapping[str, Any]) -> list[int]:
        assert about["model"] == "none"
        return list(range(start, stop))

    def open(self, report: Reporter) -> Opened:
        return Opened(compute=self._compute, ahead=tuple, about={"model": "none"})

    def device(self) -> tuple[str, str]:
        return "abacus", "abacus"

    def _compute(self, rows: tuple[int, ...], report: Reporter) -> Array:
        (self.once / f"process-{os.getpid()}").touch()
        if self.card and (visible := os.environ.get("CUDA_VISIBLE_DEVICES")):
            (self.once / f"card-{visible}").touch()
        if self.fate and rows[-1] >= 8:  # not during the probe
            if self.fate == "cancelled":  # every process pauses
                (self.once / "pausing").touch()
                signal.pause()
            if self.fate == "node":  # all wait until one node is gone
                (self.once / "pausing").touch()
                until(lambda: b"is gone" in (self.once / "events.jsonl").read_bytes())
                return np.array([row * row for row in rows])
            with suppress(FileExistsError):
                (self.once / self.fate).mkdir()
                self._meet(rows)
            if self.fate == "lost":  # otherwise the other workers may finish before the loss is noticed
                until(lambda: b" died; " in (self.once / "events.jsonl").read_bytes())
        return np.array([row * row + self.off for row in rows])

    def _meet(self, rows: tuple[int, ...]) -> None:
        if self.fate in ("killed", "lost"):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fate == "frozen":
            signal.pause()
        if self.fate == "refused":
            raise ModelError(f"row {rows[0]}: is not to be squared; take another.")
        if self.fate == "broken":
            raise ValueError(f"a text of {self.stage}")


def new_run(home: Path, name: str) -> Run:
    return RunStore(home).create("embed", {}, {}, seed=None, versions={}, key=name)


def made(run: Run, on: str, work: Work, n: int, size: int) -> list[bytes]:
    """Return the bytes of the chunks of a run that only does this work."""
    files = list[bytes]()

    def function(context: RunContext) -> dict[str, object]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WINNOW_ON", on)
            paths, about = spread(context, n, size, work, "chunk", device=nullcontext)
        files.extend(path.read_bytes() for path in paths)
        return dict(about)

    execute(run, function)
    return files


if __name__ == "__main__":
    home, run_id, fate = sys.argv[1:]
    run = RunStore(Path(home)).get(run_id)
    made(run, os.environ["WINNOW_ON"], Squares(run.path, fate), 40, 4)
