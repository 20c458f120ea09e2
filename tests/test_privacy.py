"""Nothing leaves the machine: a selection opens no connection and resolves no host name."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.planted import contracts, kitchen
from tests.test_files_on_disk import wide_mask, wider  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]

# Every Python process loads this first. It records and refuses network calls. Sockets to the kernel and connections to
# this machine are allowed, because the door uses them.
GUARD = """
import os, socket
def refuse(name):
    real = getattr(socket.socket, name, None)
    def call(*args, **kwargs):
        if real and args[0].family not in (socket.AF_INET, socket.AF_INET6):
            return real(*args, **kwargs)
        if name in ("connect", "bind") and args[1][0] in ("127.0.0.1", "::1"):
            return real(*args, **kwargs)
        with open(os.environ["TALKED"], "a") as file:
            file.write(f"{name} {args!r}\\n")
        raise OSError(f"{name} is refused")
    return call
for name in ("bind", "connect", "connect_ex", "sendto"):
    setattr(socket.socket, name, refuse(name))
for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr"):
    setattr(socket, name, refuse(name))
"""


def guarded(folder: Path, *words: object) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run a command in a process without network; return the process and the calls that it tried."""
    (folder / "guard").mkdir(exist_ok=True)
    (folder / "guard" / "sitecustomize.py").write_text(GUARD, encoding="utf-8")
    talked = folder / "talked"
    env = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    env |= {"PYTHONPATH": str(folder / "guard"), "TALKED": str(talked), "WINNOW_HOME": str(folder / "home")}
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    return done, talked.read_text(encoding="utf-8") if talked.exists() else ""


@pytest.mark.usefixtures("wide_mask")
def test_a_selection_opens_no_connection_and_writes_only_for_its_owner(tmp_path: Path) -> None:
    task, domain = tmp_path / "task.txt", tmp_path / "domain.txt"
    task.write_text("\n".join(contracts(30, seed=1)), encoding="utf-8")
    domain.write_text("\n".join([*contracts(60, seed=2), *kitchen(60)]), encoding="utf-8")
    done, talked = guarded(
        tmp_path, "-m", "core", "select", "--task", task, "--domain", domain, "--budget", "20", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["selected"] == 20
    assert talked == ""
    home = tmp_path / "home"
    assert len(list(home.rglob("*"))) > 20
    assert wider(home) == []
    for path in (home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    guarded(tmp_path, "-m", "core", "corpus", "list")
    assert wider(home) == []


def test_a_missing_encoder_is_an_error_and_not_fetched(tmp_path: Path) -> None:
    task = tmp_path / "task.txt"
    task.write_text("\n".join(contracts(30, seed=1)), encoding="utf-8")
    words = ("-m", "core", "select", "--task", task, "--domain", task, "--encoder", "somebody/some-bert")
    done, talked = guarded(tmp_path, *words)
    assert done.returncode == 2
    assert "somebody/some-bert" in done.stderr
    assert talked == ""


def test_the_guard_notices_a_requested_download(tmp_path: Path) -> None:
    """A requested download is the only permitted connection; the guard must record the attempt."""
    task = tmp_path / "task.txt"
    task.write_text("\n".join(contracts(30, seed=1)), encoding="utf-8")
    words = ("-m", "core", "select", "--task", task, "--domain", task, "--encoder", "somebody/some-bert")
    done, talked = guarded(tmp_path, *words, "--allow-download", "--run-anyway")
    assert done.returncode == 2
    assert "getaddrinfo" in talked
