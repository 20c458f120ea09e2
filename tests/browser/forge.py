"""Fork servers from a process that has already done the imports, which take seconds.

python -m tests.browser.forge

After the imports, a forked server does everything that `python app.py` does. Tests of the start itself, of its command
line and of memory start a new process instead.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn, Self

import psutil

ROOT = Path(__file__).resolve().parents[2]
PARTS = (  # what `app.py` and its first pages import
    "uvicorn",
    "streamlit.starlette",
    "streamlit.runtime.scriptrunner",
    "pandas",
    "pyarrow.dataset",
    "plotly.graph_objects",
    "altair",
    "core.door",
    "core.projects.removals",
)


class Forked(psutil.Process):
    """A server that is not a child of this process, with the interface of one."""

    def poll(self) -> int | None:
        """Return None while it runs."""
        return None if self.is_running() else 0


class Forge:
    """The process that forks. It ends with its context; the servers that it forked do not."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.communicate()

    def server(self, words: Sequence[str], environment: Mapping[str, str], log: Path) -> Forked:
        """Fork a process that runs `python *words` and appends its output to `log`."""
        assert self._process.stdin
        assert self._process.stdout
        order = {"words": list(words), "environment": dict(environment), "log": str(log)}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return Forked(int(self._process.stdout.readline()))


def main() -> None:
    """Do the imports, then fork one server per input line."""
    for name in PARTS:
        importlib.import_module(name)
    for file in (ROOT / "pages" / "ui").rglob("*.py"):
        importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended children leave no zombie
    gc.freeze()
    for line in sys.stdin:
        if not (pid := os.fork()):
            _become(**json.loads(line))
        print(pid, flush=True)


def _become(words: Sequence[str], environment: Mapping[str, str], log: str) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment)
    with open(os.devnull) as nothing, open(log, "ab") as written:
        for end, file in enumerate((nothing, written, written)):
            os.dup2(file.fileno(), end)
    sys.argv = list(words)
    runpy.run_path(words[0], run_name="__main__")
    sys.exit()


if __name__ == "__main__":
    main()
