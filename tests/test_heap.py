"""The number of heap arenas of the app."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.driver import ROOT

# Run 20 threads at once, like those that draw pages, then write the heap arenas as XML.
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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such arenas")
def test_threads_of_the_app_share_the_heap(tmp_path: Path) -> None:
    """Each arena keeps its own free memory, so one arena per thread used more memory."""
    report = tmp_path / "heap.xml"
    environment = {**os.environ, "WINNOW_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", THREADS, str(report)]
    subprocess.run(command, check=True, cwd=ROOT, env=environment, capture_output=True)
    assert 1 <= report.read_text().count("<heap nr=") <= 4
