"""A cluster of two machines that are one: two nodes of Ray on this host, behind a token, for tests."""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
import pytest

_STORE = 100 * 2**20  # bytes
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "ab" * 32, "RAY_USAGE_STATS_ENABLED": "0"}


@contextmanager
def token() -> Iterator[None]:
    """One for all tests of a process: Ray remembers the first that it is given."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in TOKEN.items():
            patch.setenv(name, value)
        yield


class Second:
    """The second of two nodes, and what becomes of it."""

    def __init__(self, nodes: Any, node: Any) -> None:
        self._nodes, self._node = nodes, node
        self._frozen = list[psutil.Process]()

    def kill(self) -> None:
        self._nodes.remove_node(self._node, allow_graceful=False)

    def freeze(self) -> None:
        """Let all its processes stand still, its workers too, as a machine does that swaps or has lost its network."""
        heads = [psutil.Process(process.pid) for _, process in self._node.live_processes()]
        self._frozen = [process for head in heads for process in (head, *head.children(recursive=True))]
        for process in self._frozen:
            process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        for process in self._frozen:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)


@contextmanager
def two_nodes() -> Iterator[tuple[str, Second]]:
    """Two nodes of a processor each, under `token`: the cluster as of `--on`, and the second of them."""
    with pytest.MonkeyPatch.context() as patch:
        folder = Path(tempfile.mkdtemp(prefix="winnow-", dir="/tmp"))  # a socket's path must be short
        (folder / "ray").mkdir()
        patch.setenv("RAY_TMPDIR", str(folder))
        nodes = import_module("ray.cluster_utils").Cluster()
        try:
            _, node = (nodes.add_node(num_cpus=1, include_dashboard=False, object_store_memory=_STORE) for _ in "12")
            second = Second(nodes, node)
            try:
                yield f"ray:{nodes.address}", second
            finally:
                second.thaw()
        finally:
            nodes.shutdown()
            shutil.rmtree(folder, ignore_errors=True)
