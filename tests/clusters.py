"""A cluster of two machines that are one: two nodes of Ray on this host, behind a token, for tests."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

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


@contextmanager
def two_nodes() -> Iterator[tuple[str, Callable[[], None]]]:
    """Two nodes of a processor each, under `token`: the cluster as of `--on`, and what kills the second."""
    with pytest.MonkeyPatch.context() as patch:
        folder = Path(tempfile.mkdtemp(prefix="winnow-", dir="/tmp"))  # a socket's path must be short
        (folder / "ray").mkdir()
        patch.setenv("RAY_TMPDIR", str(folder))
        nodes = import_module("ray.cluster_utils").Cluster()
        try:
            _, second = (nodes.add_node(num_cpus=1, include_dashboard=False, object_store_memory=_STORE) for _ in "12")
            yield f"ray:{nodes.address}", lambda: nodes.remove_node(second, allow_graceful=False)
        finally:
            nodes.shutdown()
            shutil.rmtree(folder, ignore_errors=True)
