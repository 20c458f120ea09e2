"""A worker or an app that is disturbed at its n-th file operation. TORTURE holds the disturbance as JSON:

    {"die": n}                  SIGKILL before that operation on a file of the home
    {"halt": n}                 SIGSTOP before that operation
    {"fail": errno, "at": n}    from then on no file can be written: a full disk, or one that became read-only
    {"back": seconds, "at": n}  the clock is set back
    {"count": path}             no disturbance; the number of operations is written to `path` at the end
    {"drop": path}              files that were written but never synced are listed there; a power cut loses them

python -m tests.lab.torture.victim work RUN --home HOME     a worker, as core.runs.launch starts one
python -m tests.lab.torture.victim start HOME KIND OPTIONS  an app that starts a run, and ends
python -m tests.lab.torture.victim resume HOME RUN
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

_CHANGES = frozenset(("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.symlink"))
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Fate:
    """Count the operations on files below `home`, and act at the chosen one."""

    def __init__(self, home: Path, order: dict[str, Any]) -> None:
        self.home, self.order, self.n, self.pid = f"{home}/", order, 0, os.getpid()
        self.since = time.time()
        self.synced: set[int] = set()

    def heard(self, event: str, args: tuple[Any, ...]) -> None:
        """Count an event of the audit hook if it changes a file of the home."""
        if event == "open":
            path, _, flags = args
            if not (isinstance(path, str | os.PathLike) and flags & _WRITES):
                return
        elif event in _CHANGES:
            path = args[0]
        else:
            return
        name = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        if isinstance(name, str) and name.startswith(self.home):
            self.step()

    def step(self) -> None:
        """Count one operation."""
        if os.getpid() != self.pid:  # a forked helper process
            return
        self.n += 1
        if self.n == self.order.get("die"):
            self.leave()
            os.kill(self.pid, signal.SIGKILL)
        if self.n == self.order.get("halt"):
            os.kill(self.pid, signal.SIGSTOP)
        if "at" in self.order and self.n >= self.order["at"]:
            if number := self.order.get("fail"):
                raise OSError(number, os.strerror(number))
            if back := self.order.pop("back", 0):
                now = time.time
                time.time = lambda: now() - back

    def leave(self) -> None:
        """Write the number of operations, or the list of unsynced files, if ordered."""
        if count := self.order.get("count"):
            Path(count).write_text(str(self.n))
        if drop := self.order.get("drop"):
            files = [path for room in ("runs", "corpora") for path in Path(self.home, room).rglob("*")]
            young = [(str(path), path.stat()) for path in files if path.is_file()]
            lost = [name for name, status in young if status.st_mtime > self.since and status.st_ino not in self.synced]
            Path(drop).write_text(json.dumps(lost))


def doomed(home: Path) -> Fate | None:
    """Install the disturbance that TORTURE orders in this process; return None if it orders none."""
    if not (text := os.environ.pop("TORTURE", "")):
        return None
    fate = Fate(home, json.loads(text))
    write, sync = os.write, os.fsync

    def written(descriptor: int, data: bytes) -> int:
        fate.step()
        return write(descriptor, data)

    def synced(descriptor: int) -> None:
        fate.step()
        fate.synced.add(os.fstat(descriptor).st_ino)
        sync(descriptor)

    vars(os).update(write=written, fsync=synced)
    sys.addaudithook(fate.heard)
    return fate


class Spawned:
    """A replacement for `subprocess.Popen` that forks this process, which saves the seconds of the imports."""

    def __init__(self, command: list[str], *, stdout: Any, env: dict[str, str], **_: object) -> None:
        self.pid = os.fork()
        if not self.pid:
            os.setsid()
            for number in (1, 2):
                os.dup2(stdout.fileno(), number)
            os.environ.clear()
            os.environ.update(env)
            sys.argv = command[2:]
            _leave(work)

    def wait(self) -> int:
        return os.waitpid(self.pid, 0)[1]


def _leave(act: Callable[[], int]) -> NoReturn:
    """Exit as a process does whose `main` is `act`."""
    status = 1
    try:
        status = act()
    finally:
        sys.stdout.flush()
        os._exit(status)


def work() -> int:
    """Run a worker that writes ten checkpoints per second and shortens the measurements of `calibrate` to 0 seconds."""
    from core.tagging import calibrate
    from core.training.events import EventCallback
    from core.training.finetune import finetune
    from core.work import main

    for trains in (EventCallback.__init__, finetune):
        assert trains.__kwdefaults__
        trains.__kwdefaults__["checkpoint_seconds"] = 0.1
    calibrate.SECONDS = 0.0
    return main()


def app(act: str, what: str, options: str = "{}") -> int:
    """Do what a page does when its button is pressed."""
    from core.projects import runs
    from core.runs import launch

    vars(launch)["subprocess"] = SimpleNamespace(Popen=Spawned, DEVNULL=subprocess.DEVNULL)
    if act == "start":
        runs.start(what, json.loads(options))
    else:
        runs.resume(what)
    return 0


def main() -> int:
    """Run the command."""
    from core.errors import WinnowError

    act, *words = sys.argv[1:]
    home = Path(words[-1] if act == "work" else words.pop(0))
    call = work if act == "work" else partial(app, act, *words)
    os.environ["WINNOW_HOME"] = str(home)
    fate = doomed(home)
    try:
        return call()
    except WinnowError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        if fate:
            fate.leave()


if __name__ == "__main__":
    sys.exit(main())
