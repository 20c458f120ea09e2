"""Disturb one run of a kind several times, let it finish, and compare the outcome."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL
from typing import Any

from core.runs.store import Run, RunStore
from tests.fork_server import ROOT, ForkedProcess, ForkServer
from tests.homes import project_in
from tests.lab.torture import kinds
from tests.lab.torture.outcome import Outcome, differences, here, outcome

VICTIM = "tests.lab.torture.victim"
PATIENCE = 300.0  # seconds; a run that has not ended by then is stuck
POLL = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Calm:
    """An undisturbed run. seconds: its duration. operations: number of its operations on files of the home."""

    outcome: Outcome
    seconds: float
    operations: int


class Stuck(Exception):
    """A run does not end, its state is active although no process works on it, or its error is reported as a bug."""


class Trial:
    """A run that has not started, in its own home, and the processes that work on it."""

    def __init__(
        self, fork_server: ForkServer, folder: Path, kind: str, calm: Calm | None, lots: random.Random
    ) -> None:
        self.fork_server, self.folder, self.kind, self.lots, self._calm = fork_server, folder, kind, lots, calm
        self.home, self.words = project_in(folder / "home"), folder / "words"
        self.run = kinds.begun(folder / "furnished", kind, self.home)
        self.before = here(self.home) - {self.run.id}

    @property
    def calm(self) -> Calm:
        assert self._calm
        return self._calm

    def again(self) -> Run:
        """Return the run as a new process sees it."""
        return RunStore(self.home).get(self.run.id)

    def operation(self) -> int:
        """Return the number of a random file operation of the undisturbed run."""
        return self.lots.randint(1, self.calm.operations)

    def worker(self, **order: Any) -> ForkedProcess:
        """Start a worker on the run. order: its disturbance; see `victim`."""
        return self._process(["work", self.run.id, "--home", str(self.home)], order)

    def app(self, *words: str, **order: Any) -> ForkedProcess:
        """Start a process that does what a page does. order: its disturbance."""
        return self._process([words[0], str(self.home), *words[1:]], order)

    def _process(self, words: list[str], order: Mapping[str, Any]) -> ForkedProcess:
        command = [sys.executable, "-m", VICTIM, *words]
        with self.words.open("ab") as out:
            return self.fork_server.begin(command, stdout=out, stderr=out, env=_surroundings(self.home, order))

    def over(self, process: ForkedProcess) -> int:
        """Wait for a process and return its exit status. Errors: Stuck after `PATIENCE`; the process is killed."""
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.send_signal(SIGKILL)
            process.wait()
            raise Stuck(f"a process did not end: {self._last_words()}") from None

    def rest(self) -> None:
        """Wait until no process works on the run. Errors: Stuck if its state stays active."""
        deadline = time.monotonic() + PATIENCE
        while (run := self.again()).worker() and time.monotonic() < deadline:
            time.sleep(POLL)
        deadline = time.monotonic() + 15  # longer than LAUNCH_PATIENCE, in which a run may still get its worker
        while (state := self.again().state()).active:
            if time.monotonic() > deadline:
                raise Stuck(f"is {state.state}, but no process works on it (lock held: {run.lock.held()})")
            time.sleep(POLL)

    def ended(self) -> tuple[str, str]:
        """Resume the run. Return "alike", "different" or "lost", and the reason."""
        state = self.again().state()
        if state.state == "failed" and state.permanent:
            return "lost", f"cannot be resumed: {state.error}"
        if state.state != "succeeded" and (status := self.over(self.worker())):
            # An app that was killed right after it started a worker left no record of it. That worker may hold the run.
            self.rest()
            if (state := self.again().state()).state != "succeeded":
                return "lost", f"{status}: {state.error} {self._last_words()}"
        if missing := self.before - here(self.home):
            return "lost", f"gone: {sorted(missing)}"
        store = RunStore(self.home)
        if spoilt := store.unreadable():
            return "lost", f"spoilt: {[path.name for path in spoilt]}"
        changed = differences(self.calm.outcome, outcome(self.home, self.before))
        return ("different", ", ".join(changed)) if changed else ("alike", "")

    def _last_words(self) -> str:
        return " | ".join(self.words.read_text(errors="replace").splitlines()[-3:])


def _surroundings(home: Path, order: Mapping[str, Any]) -> dict[str, str]:
    return {
        **os.environ,
        "WINNOW_HOME": str(home),
        "TORTURE": json.dumps(order),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }


def undisturbed(fork_server: ForkServer, folder: Path, kind: str, *, fresh: bool = True) -> Calm:
    """Run a kind undisturbed, and time it. fresh: also run it in a new process, which must give the same outcome.

    Errors: AssertionError if the two outcomes differ, or if a run fails.
    """
    trial, count, since = Trial(fork_server, folder, kind, None, random.Random(0)), folder / "count", time.monotonic()
    status = trial.over(trial.worker(count=str(count)))
    seconds, first = time.monotonic() - since, outcome(trial.home, trial.before)
    assert not status, trial.words.read_text()
    if fresh:
        trial = Trial(fork_server, folder, kind, None, random.Random(0))
        command = [sys.executable, "-m", VICTIM, "work", trial.run.id, "--home", str(trial.home)]
        subprocess.run(command, cwd=ROOT, env=_surroundings(trial.home, {}), check=True)
        changed = differences(first, outcome(trial.home, trial.before))
        assert not changed, f"{kind}: not reproducible: {changed}"
    return Calm(outcome=first, seconds=seconds, operations=int(count.read_text()))


@contextmanager
def loaded() -> Iterator[None]:
    """Keep two processes computing and writing without pause during the block."""
    burn = (
        "import os, sys\nwhile True:\n f = open(sys.argv[1], 'wb'); f.write(os.urandom(1 << 20)); os.fsync(f.fileno())"
    )
    folder = Path("/tmp") / f"torture-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    beside = [subprocess.Popen([sys.executable, "-c", burn, str(folder / str(i))]) for i in range(2)]
    try:
        yield
    finally:
        for process in beside:
            process.kill()
            process.wait()
        shutil.rmtree(folder)
