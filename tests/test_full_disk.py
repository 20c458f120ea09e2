"""A full disk or a home of another account is a clear error, and nothing incomplete stays."""

import errno
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from core.errors import ResourceError
from core.files import append_line, disk_is_full, save_array_atomic
from core.importing.uploads import spool, spooled
from core.project_list import shared_home
from core.projects import runs
from tests.conftest import ROOT, Command
from tests.homes import project_in

STRANGER = 65534  # nobody


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("where", ["core.runs.store.write_atomic", "core.runs.store.sync", "pathlib.Path.mkdir"])
def test_no_run_and_no_upload_starts_on_a_full_disk(
    where: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("A sentence of mine .\n")
    runs.listed()  # creates the folder before the disk is full
    (shared_home(home) / "locks").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(where, full)
        code, out, err = command("corpus", "add", text)
        with pytest.raises(ResourceError, match=r"free some space there|free disk space"):
            runs.start("add", {"path": str(text)})
    assert (code, out) == (2, "")
    assert "free some space there" in err or "free disk space" in err
    assert err.count("\n") == 1
    assert list((home / "runs").iterdir()) == []
    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(ResourceError, match="free some space there"):
        spool("mine.txt", BytesIO(b"A sentence of mine .\n"))
    assert list((home / "uploads").iterdir()) == []


WEIGHTS = {f"layer.{i}": torch.arange(5_000.0) for i in range(4)}
TABLE = pa.table({"score": np.arange(10_000.0) ** 0.5})
WRITERS: Mapping[str, Callable[[Path], object]] = {
    "array": lambda path: save_array_atomic(path, np.arange(10_000.0)),
    "arrays": lambda path: np.savez_compressed(path, scores=np.random.default_rng(0).random(10_000)),
    "weights": lambda path: save_file(WEIGHTS, path),
    "checkpoint": lambda path: torch.save({"optimizer": WEIGHTS, "steps": [*range(3_000)]}, path),
    "table": lambda path: pq.write_table(TABLE, path),
    "text": lambda path: path.write_text("A sentence of mine .\n" * 4_000),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_full_disk_is_recognised_in_the_errors_of_every_library(kind: str, tmp_path: Path) -> None:
    """A limit on the file size makes each writer fail at any byte, also within a buffer."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for most in range(4_000, 60_000, 3_977):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
        try:
            with pytest.raises(Exception) as refused:  # noqa: PT011 - each library raises its own error
                WRITERS[kind](tmp_path / "file.npz")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert disk_is_full(refused.value), repr(refused.value)
    for fault in (OSError(errno.EIO, os.strerror(errno.EIO)), ValueError("3 requested"), RuntimeError("pos 3 vs 4")):
        assert not disk_is_full(fault)


def test_a_line_for_which_the_disk_has_only_half_the_space_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    """Without the error, an answer or a hand edit would be lost silently."""
    log = tmp_path / "answers.jsonl"
    append_line(log, b'{"n": 1}')
    whole, (_, hard) = log.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 4, hard))
    try:
        with pytest.raises(OSError) as refused:  # noqa: PT011 - `disk_is_full` checks it
            append_line(log, b'{"n": 2}')
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert disk_is_full(refused.value)
    assert log.read_bytes() == whole


@pytest.mark.parametrize("name", ["x" * 300 + ".txt", "é" * 300 + ".txt.gz", "名" * 300])
def test_an_upload_with_a_long_name_is_imported(name: str, home: Path) -> None:
    path = spooled(spool(name, BytesIO(b"A sentence of mine .\n")))
    assert path.suffixes == Path(name).suffixes
    run = runs.execute("add", {"path": str(path), "move": True})
    assert run.result()["sentences"] == 1
    assert list((home / "uploads").iterdir()) == []


@pytest.fixture
def anywhere() -> Iterator[Path]:
    """Make a folder that every account can reach, unlike the folders of pytest."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


AS_ANOTHER = """
import os, sys
from core.cli.main import run_main
user = int(sys.argv.pop(1))
if user:
    os.setgid(user); os.setuid(user)
sys.exit(run_main())
"""


@pytest.mark.parametrize(
    "barred",
    ["home", *(pytest.param(name, marks=pytest.mark.full) for name in ("home/projects/my-first-project/runs", "."))],
)
def test_a_home_of_another_account_is_an_error(barred: str, anywhere: Path) -> None:
    home = anywhere / "home"
    project = project_in(home)
    (project / "runs").mkdir(parents=True)
    root = os.geteuid() == 0  # root may read everything, so the command runs as another account
    for folder in (home, project.parent, project, project / "runs"):
        folder.chmod(0o700)
        if root:
            os.chown(folder, STRANGER, STRANGER)
    (anywhere / barred).chmod(0)
    if root:
        os.chown(anywhere / barred, 0, 0)
    done = subprocess.run(
        [sys.executable, "-c", AS_ANOTHER, str(STRANGER if root else 0), "corpus", "list", "--json"],
        check=False,
        cwd=ROOT,
        env={**os.environ, "WINNOW_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    (anywhere / barred).chmod(0o700)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "cannot be read from this account" in done.stderr
    assert done.stderr.count("\n") == 1
