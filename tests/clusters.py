"""Two Ray nodes on this host, with a token, in place of a cluster of two machines."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

_STORE = 100 * 2**20  # bytes
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "ab" * 32, "RAY_USAGE_STATS_ENABLED": "0"}


@contextmanager
def token() -> Iterator[None]:
    """Set one token for all tests of a process, because Ray remembers the first that it is given."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in TOKEN.items():
            patch.setenv(name, value)
        yield


class Second:
    """The second of two nodes."""

    def __init__(self, nodes: Any, node: Any) -> None:
        self._nodes, self._node = nodes, node

    def kill(self) -> None:
        self._nodes.remove_node(self._node, allow_graceful=False)


@contextmanager
def two_nodes() -> Iterator[tuple[str, Second]]:
    """Start two nodes of one core each, under `token`. Yields the value of `--on`, and the second node."""
    with pytest.MonkeyPatch.context() as patch:
        folder = Path(tempfile.mkdtemp(prefix="winnow-", dir="/tmp"))  # a socket's path must be short
        (folder / "ray").mkdir()
        patch.setenv("RAY_TMPDIR", str(folder))
        nodes = import_module("ray.cluster_utils").Cluster()
        try:
            _, node = (nodes.add_node(num_cpus=1, include_dashboard=False, object_store_memory=_STORE) for _ in "12")
            yield f"ray:{nodes.address}", Second(nodes, node)
        finally:
            nodes.shutdown()
            shutil.rmtree(folder, ignore_errors=True)
