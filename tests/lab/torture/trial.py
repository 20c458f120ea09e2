"""One run of a kind, disturbed some times and then ended: what came of it."""

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
PATIENCE = 300.0  # seconds after which a run that has not ended is stuck
POLL = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Calm:
    """A run that nobody disturbed. seconds: that it took; operations: on files of the home."""

    outcome: Outcome
    seconds: float
    operations: int


class Stuck(Exception):
    """A run that does not end, or is said to be at work when nobody works on it."""


class Trial:
    """A run that has yet to begin, in a home of its own, and processes that work on it."""

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
        """The run as a process that has just come sees it."""
        return RunStore(self.home).get(self.run.id)

    def operation(self) -> int:
        """The number of one of the operations on files that the undisturbed run did."""
        return self.lots.randint(1, self.calm.operations)

    def worker(self, **order: Any) -> ForkedProcess:
        """A worker on the run. order: what happens to it; see `victim`."""
        return self._process(["work", self.run.id, "--home", str(self.home)], order)

    def app(self, *words: str, **order: Any) -> ForkedProcess:
        """A process that does what a page does."""
        return self._process([words[0], str(self.home), *words[1:]], order)

    def _process(self, words: list[str], order: Mapping[str, Any]) -> ForkedProcess:
        command = [sys.executable, "-m", VICTIM, *words]
        with self.words.open("ab") as out:
            return self.fork_server.begin(command, stdout=out, stderr=out, env=_surroundings(self.home, order))

    def over(self, process: ForkedProcess) -> int:
        """Its exit status. Errors: Stuck, and then it is killed."""
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.send_signal(SIGKILL)
            process.wait()
            raise Stuck(f"a process did not end: {self._last_words()}") from None

    def rest(self) -> None:
        """Wait until nobody works on the run, which is then not said to be at work."""
        deadline = time.monotonic() + PATIENCE
        while (run := self.again()).worker() and time.monotonic() < deadline:
            time.sleep(POLL)
        deadline = time.monotonic() + 15  # a run that was never begun is waited for so long
        while (state := self.again().state()).active:
            if time.monotonic() > deadline:
                raise Stuck(f"is {state.state} when nobody works on it (held: {run.lock.held()})")
            time.sleep(POLL)

    def ended(self) -> tuple[str, str]:
        """What came of it once it was resumed: alike, different or lost, and why."""
        state = self.again().state()
        if state.state == "failed" and state.permanent:
            return "lost", f"cannot be resumed: {state.error}"
        if state.state != "succeeded" and (status := self.over(self.worker())):
            self.rest()  # whom an app began the moment it was killed is known to nobody until it works, and may be first
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
    """What a run of a kind leaves, timed. fresh: one of a process that was not forked leaves the same.

    Errors: AssertionError where these two differ, or one fails.
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
        assert not changed, f"{kind}: is not reproduced: {changed}"
    return Calm(outcome=first, seconds=seconds, operations=int(count.read_text()))


@contextmanager
def loaded() -> Iterator[None]:
    """Two processes beside that compute and write without pause."""
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
