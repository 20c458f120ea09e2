"""Processes without the seconds of their imports: one that has done them becomes another whenever it is asked.

python -m tests.fork_server SOCKET

It imports and never computes, so that what it becomes has no state of anybody before it, and no thread is lost but that
of pyarrow's allocator, which begins another. Whoever compares what such processes end with has the undisturbed one
begun afresh: those that are forked share the seed of their hashes.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn, Self

ROOT = Path(__file__).resolve().parents[1]
PARTS = (  # what a worker that trains or embeds, and the command line, import
    "core.cli.main",
    "core.work",
    "core.training.finetune",
    "core.training.pretrain",
    "core.training.classify",
    "core.models.encoder",
    "core.models.mlm",
    "core.models.taggers",
    "transformers.models.bert.modeling_bert",
    "transformers.models.bert.tokenization_bert",
    "sklearn.linear_model",
)
POLL = 0.02  # seconds between two looks at whether a process has ended


class ForkedProcess:
    """A process that the fork_server became, asked as if it were a `subprocess.Popen`."""

    def __init__(self, fork_server: "ForkServer", pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._forge = fork_server

    def poll(self) -> int | None:
        """Its exit status; None as long as it runs."""
        if self.returncode is None:
            try:
                self.returncode = self._forge.ask({"poll": self.pid})
            except OSError:  # the fork_server was closed, and with it ended what it had made
                self.returncode = -signal.SIGKILL
        return self.returncode

    def wait(self, timeout: float = float("inf")) -> int:
        """Its exit status. Errors: subprocess.TimeoutExpired."""
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(POLL)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class ForkServer:
    """As a context it ends with its block. module: whose `main` does the imports."""

    def __init__(self, module: str = __name__) -> None:
        self._mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", module, str(its.fileno())]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[its.fileno()])
        its.close()
        self._one_by_one = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._mine.close()
        self._process.wait()

    def begin(
        self,
        command: Sequence[str],
        *,
        stdout: IO[bytes],
        stderr: IO[bytes],
        env: Mapping[str, str] | None = None,
        **as_always: object,
    ) -> ForkedProcess:
        """`subprocess.Popen` of `python -m ...` in the project's folder, a session of its own, with no input."""
        _, dash, *words = command
        assert dash == "-m"
        order = {"words": words, "environment": dict(os.environ if env is None else env)}
        return ForkedProcess(self, self.ask(order, (stdout.fileno(), stderr.fileno())))

    def ask(self, order: Mapping[str, object], ends: Sequence[int] = ()) -> int:
        """Its answer to an order."""
        with self._one_by_one:
            socket.send_fds(self._mine, [json.dumps(order).encode()], ends)
            answer = self._mine.recv(64)
        status: int = json.loads(answer)
        return status


def main(parts: Sequence[str] = PARTS) -> None:
    """Do the imports, then become what is asked for, until nobody is left to ask."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in parts:
        importlib.import_module(name)
    gc.freeze()
    while True:
        message, ends, *_ = socket.recv_fds(control, 1 << 20, 2)
        if not message:
            return
        order = json.loads(message)
        if "poll" in order:
            pid, status = os.waitpid(order["poll"], os.WNOHANG)
            control.send(json.dumps(os.waitstatus_to_exitcode(status) if pid else None).encode())
        elif not os.fork():
            _become(control, ends, **order)
        for end in ends:
            os.close(end)


def _become(
    control: socket.socket, ends: Sequence[int], words: Sequence[str], environment: Mapping[str, str]
) -> NoReturn:
    os.setsid()
    control.send(str(os.getpid()).encode())
    control.close()
    os.environ.clear()
    os.environ.update(environment)
    for number, end in enumerate(ends, start=1):
        os.dup2(end, number)
        os.close(end)
    sys.argv = list(words)
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    main()
