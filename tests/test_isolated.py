"""Work in a separate process: answers and errors are returned, and the process may die without harm."""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from core.corpora import preview
from core.corpora.readers import ReadOptions
from core.errors import EncodingError, ResourceError
from core.isolated import MEMORY, Isolated, _end
from tests import misbehaving
from tests.conftest import ROOT
from tests.waiting import until


@contextmanager
def apart(seconds: float = 60) -> Iterator[Isolated]:
    made = Isolated(misbehaving.__name__, "read it elsewhere", seconds)
    try:
        yield made
    finally:
        if made._spare:
            _end(made._spare)


def ask(how: str, **request: object) -> Any:
    with apart() as made:
        return made.ask("a.txt", how=how, **request)


def test_answers_and_errors_are_returned_and_bugs_lose_their_message() -> None:
    assert ask("echo", value={"a": [1, None, "é\n"]}) == {"a": [1, None, "é\n"]}
    with pytest.raises(EncodingError, match=r"^a\.txt line 7: no text; save it$") as raised:
        ask("error")
    assert (raised.value.file, raised.value.line) == ("a.txt", 7)
    with pytest.raises(RuntimeError, match="KeyError") as bug:
        ask("bug")
    assert "misbehaving.py" in str(bug.value)
    assert "patient's" not in str(bug.value)  # a message may quote the file


def test_a_request_larger_than_a_pipe_arrives_although_the_reader_starts_late() -> None:
    text = "a" * 1_000_000
    with apart() as made:
        made.ready()
        assert made._spare
        os.kill(made._spare.pid, signal.SIGSTOP)
        threading.Timer(2.5, os.kill, (made._spare.pid, signal.SIGCONT)).start()
        assert made.ask("a.txt", how="echo", value=text) == text


def test_a_reader_writes_nothing_after_a_crash_and_knows_its_limits() -> None:
    core, _, cpu = ask("limits")
    assert core == [0, 0]
    assert 120 <= cpu[0] < cpu[1] < 200
    is_isolated, seconds_left = ask("aware")
    assert is_isolated
    assert 0 < seconds_left <= 60


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("segfault", "the process that read it crashed; the file is damaged or forged, or memory ran out"),
        ("killed", "the process that read it crashed; the file is damaged or forged, or memory ran out"),
        ("overran", "reading it took more than 60 seconds"),
        ("eat", f"reading it took more than {MEMORY >> 20} MB of memory"),
    ],
)
def test_a_killed_reader_is_a_clear_error(how: str, why: str) -> None:
    with pytest.raises(ResourceError, match=rf"^a\.txt: {why}; read it elsewhere\.$"):
        ask(how)


def test_an_endless_reader_is_killed_with_its_children(tmp_path: Path) -> None:
    """The process and its child hold the pipe, which closes once both have ended."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pipe.open("r+b", buffering=0) as kept:
        reader = os.open(pipe, os.O_RDONLY)
        with apart(8) as made, pytest.raises(ResourceError, match="reading it took more than 8 seconds"):
            made.ask("a.txt", how="hang", pipe=str(pipe))
        kept.write(b".")
    assert os.read(reader, 100) == b"12."  # both started
    assert select.select([reader], [], [], 60)[0], "a process is still running"
    assert os.read(reader, 100) == b""
    os.close(reader)


def test_a_spare_process_uses_the_current_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with apart() as made:
        made.ready()
        spare = made._spare
        made.ready()
        assert made._spare is spare
        monkeypatch.setenv("LATER", "1")
        monkeypatch.chdir(tmp_path)
        assert made.ask("a.txt", how="where") == [str(tmp_path), "1"]
        assert made._spare is not spare
        assert made._spare
        made._spare.kill()
        made._spare.wait()
        assert made.ask("a.txt", how="echo", value=1) == 1  # the spare process died while it waited
    with apart() as made:
        thread = threading.Thread(target=made.ready)  # the end of the thread must not end the spare process
        thread.start()
        thread.join()
        spare = made._spare
        assert made.ask("a.txt", how="echo", value=1) == 1
        assert spare
        assert spare.returncode == 0


@pytest.mark.full
def test_a_preview_over_its_time_limit_leaves_no_process(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "_process", Isolated(preview.__name__, "export it", 6, spare=False))
    slow = tmp_path / "slow.html"
    slow.write_text("<!--" * 1_000_000, encoding="ascii")
    with pytest.raises(ResourceError, match=r"^slow\.html: reading it took more than 6 seconds; export it\.$"):
        preview.preview(slow, ReadOptions())
    assert within(2, lambda: not readers_of(home))


def test_a_reader_dies_with_the_process_that_asks(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    code = (
        "from core.isolated import Isolated; a = Isolated('tests.misbehaving', ''); a.ready(); spare = a._spare.pid;"
        f"print(spare, flush=True); a.ask('a', how='spin', pid={str(started)!r})"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE) as asking:
        assert asking.stdout
        spare = int(asking.stdout.readline())
        until(lambda: started.exists() and started.read_text(encoding="ascii").endswith("\n"))
        asking.send_signal(signal.SIGKILL)
    readers = (spare, int(started.read_text(encoding="ascii")))
    assert within(2, lambda: not any(map(is_running, readers)))


def within(seconds: float, happens: Callable[[], bool]) -> bool:
    """Return True once `happens` is true, False after `seconds`, which are fewer than the limit of CPU time."""
    end = time.monotonic() + seconds
    while not happens():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def is_running(pid: int) -> bool:
    """Return False for a process that ended; the command line of a zombie is empty."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def readers_of(home: Path) -> list[int]:
    """Return the processes of `core.isolated` that were started for a home."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_reader = b"core.isolated" in (process / "cmdline").read_bytes()
            if is_reader and bytes(home) in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found
