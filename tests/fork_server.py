"""A server that has done the imports and forks a process on each request.

python -m tests.fork_server SOCKET

The server only imports and never computes, so forked processes share no state. Only the thread of pyarrow's allocator is
lost, and pyarrow starts another. Forked processes share the seed of their hashes, so a test that compares results starts
the undisturbed process without the server.
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
PARTS = (  # imports of the command line and of workers that train or embed
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
POLL = 0.02  # seconds between two checks whether a process has ended


class ForkedProcess:
    """A forked process, with the methods of `subprocess.Popen`."""

    def __init__(self, fork_server: "ForkServer", pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._forge = fork_server

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        if self.returncode is None:
            try:
                self.returncode = self._forge.ask({"poll": self.pid})
            except OSError:  # the server was closed, which ends its processes
                self.returncode = -signal.SIGKILL
        return self.returncode

    def wait(self, timeout: float = float("inf")) -> int:
        """Wait for the exit status. Errors: subprocess.TimeoutExpired."""
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
    """A context that starts the server and ends it. module: its `main` does the imports."""

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
        """Start `python -m ...` like `subprocess.Popen`, in the project folder, in a new session, without input."""
        _, dash, *words = command
        assert dash == "-m"
        order = {"words": words, "environment": dict(os.environ if env is None else env)}
        return ForkedProcess(self, self.ask(order, (stdout.fileno(), stderr.fileno())))

    def ask(self, order: Mapping[str, object], ends: Sequence[int] = ()) -> int:
        """Send a command; return the answer."""
        with self._one_by_one:
            socket.send_fds(self._mine, [json.dumps(order).encode()], ends)
            answer = self._mine.recv(64)
        status: int = json.loads(answer)
        return status


def main(parts: Sequence[str] = PARTS) -> None:
    """Do the imports, then fork processes until the socket is closed."""
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
