"""The main walks in a network namespace that has a loopback device and no route: import to export, map, training, results."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.driver import ROOT

WALKS = ("test_app", "test_explore_browser", "test_training_browser", "test_worth_browser")
NAMESPACE = ("unshare", "--map-root-user", "--net")
# Turns the loopback device on, makes sure that no other host can be reached, and runs the given command.
CUT_OFF = """
import fcntl, os, socket, struct, sys
with socket.socket() as lo:
    fcntl.ioctl(lo, 0x8914, struct.pack("16sh", b"lo", 0x1))  # SIOCSIFFLAGS, IFF_UP
with socket.socket() as other:
    assert other.connect_ex(("192.0.2.1", 80)) == 101, "another network can be reached"  # ENETUNREACH
os.execvp(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.alone
def test_the_main_walks_need_no_network(tmp_path: Path) -> None:
    cut_off = [*NAMESPACE, sys.executable, "-c", CUT_OFF]
    if subprocess.run([*cut_off, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system allows no network namespace")
    files = [f"tests/browser/{name}.py" for name in WALKS]
    tests = ["-m", "pytest", "-p", "no:xdist", "-m", "road", "-rs", f"--basetemp={tmp_path / 'base'}", *files]
    done = subprocess.run([*cut_off, sys.executable, *tests], check=False, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]
    assert "skipped" not in done.stdout
