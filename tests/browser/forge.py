"""Servers without the seconds of their imports: a process that has done them becomes one whenever it is asked.

python -m tests.browser.forge

All that follows the imports is done as `python app.py` does it. For tests of what a page shows; those of how a server
starts, of what it is started with and of the memory that it takes begin one anew.
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
    "core.facade.door",
    "core.facade.removals",
)


class Forked(psutil.Process):
    """A server that is no child of this process, asked as if it were."""

    def poll(self) -> int | None:
        """None as long as it runs."""
        return None if self.is_running() else 0


class Forge:
    """As a context it ends with its block; the servers that it made do not."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.communicate()

    def server(self, words: Sequence[str], environment: Mapping[str, str], log: Path) -> Forked:
        """A process that is as `python *words` would be. log: to which it adds what it prints."""
        assert self._process.stdin
        assert self._process.stdout
        order = {"words": list(words), "environment": dict(environment), "log": str(log)}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return Forked(int(self._process.stdout.readline()))


def main() -> None:
    """Do the imports, then become what each line asks for, until there are no more."""
    for name in PARTS:
        importlib.import_module(name)
    for file in (ROOT / "pages" / "ui").rglob("*.py"):
        importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who has ended leaves nothing behind
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
