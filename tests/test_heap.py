"""The app's heap: in how many parts the C library has it."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.driver import ROOT

# What 20 threads leave that were at work at once, as those do that draw pages: a line of XML for each part of the heap.
THREADS = """
import ctypes, sys, threading
import app
met = threading.Barrier(20)
def draws():
    met.wait()
    held = [bytes(1_000) for _ in range(1_000)]
    met.wait()
threads = [threading.Thread(target=draws) for _ in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
library = ctypes.CDLL(None)
library.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(library.fopen(sys.argv[1].encode(), b"w"))
library.malloc_info(0, file)
library.fclose(file)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="Another C library cuts its heap as it likes.")
def test_threads_of_the_app_share_the_heap(tmp_path: Path) -> None:
    """Each part keeps holes of its own, which grew where there was one a thread."""
    report = tmp_path / "heap.xml"
    environment = {**os.environ, "WINNOW_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", THREADS, str(report)]
    subprocess.run(command, check=True, cwd=ROOT, env=environment, capture_output=True)
    assert 1 <= report.read_text().count("<heap nr=") <= 4
