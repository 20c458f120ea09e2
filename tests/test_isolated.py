"""Work in a process of its own: what comes back, and that it may die of anything without harm."""

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


def test_what_was_answered_comes_back() -> None:
    assert ask("echo", value={"a": [1, None, "é\n"]}) == {"a": [1, None, "é\n"]}


def test_our_errors_come_back_whole() -> None:
    with pytest.raises(EncodingError, match=r"^a\.txt line 7: no text; save it$") as raised:
        ask("error")
    assert (raised.value.file, raised.value.line) == ("a.txt", 7)


def test_a_bug_comes_back_without_its_message_which_may_quote_the_file() -> None:
    with pytest.raises(RuntimeError, match="KeyError") as raised:
        ask("bug")
    assert "misbehaving.py" in str(raised.value)
    assert "patient's" not in str(raised.value)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("segfault", "its reader broke off, as a damaged or forged file makes it, or memory ran out"),
        ("killed", "its reader broke off, as a damaged or forged file makes it, or memory ran out"),
        ("overran", "reading it took more than 60 seconds"),
        ("eat", f"reading it took more than {MEMORY >> 20} MB of memory"),
    ],
)
def test_what_kills_it_is_a_sentence(how: str, why: str) -> None:
    with pytest.raises(ResourceError, match=rf"^a\.txt: {why}; read it elsewhere\.$"):
        ask(how)


def test_what_never_ends_is_ended_with_what_it_started(tmp_path: Path) -> None:
    """The pipe is held by the process and its child; it closes when both are gone."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pipe.open("r+b", buffering=0) as kept:
        reader = os.open(pipe, os.O_RDONLY)
        with apart(8) as made, pytest.raises(ResourceError, match="reading it took more than 8 seconds"):
            made.ask("a.txt", how="hang", pipe=str(pipe))
        kept.write(b".")
    assert os.read(reader, 100) == b"12."  # both began
    assert select.select([reader], [], [], 60)[0], "one of them lives"
    assert os.read(reader, 100) == b""
    os.close(reader)


def test_a_spare_does_what_is_asked_as_things_stand_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        assert made.ask("a.txt", how="echo", value=1) == 1  # it died while it waited


def test_a_spare_ends_with_whoever_started_it() -> None:
    code = (
        "import sys; from core.isolated import Isolated; a = Isolated('tests.misbehaving', ''); a.ready();"
        "print(a._spare.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as starter:
        assert starter.stdout
        spare = int(starter.stdout.readline())
        starter.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and Path(f"/proc/{spare}/cmdline").exists():
        if not Path(f"/proc/{spare}/cmdline").read_bytes():  # nobody has asked how it ended
            return
        time.sleep(0.05)
    assert not Path(f"/proc/{spare}").exists()


def test_nothing_of_it_is_written_to_disk_after_a_crash() -> None:
    assert ask("limits")[0] == [0, 0]


def test_the_cpu_time_of_a_reader_is_limited() -> None:
    cpu = ask("limits")[2]
    assert 120 <= cpu[0] < cpu[1] < 200


def test_a_reader_knows_that_it_is_isolated_and_passes_on_its_limit() -> None:
    is_isolated, seconds_left = ask("aware")
    assert is_isolated
    assert 0 < seconds_left <= 60


@pytest.mark.full
def test_a_preview_that_is_cut_off_leaves_no_process(
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
    code = f"from core.isolated import Isolated; Isolated('tests.misbehaving', '').ask('a', how='spin', pid={str(started)!r})"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as asking:
        assert within(60, lambda: started.exists() and started.read_text(encoding="ascii").endswith("\n"))
        asking.send_signal(signal.SIGKILL)
    reader = int(started.read_text(encoding="ascii"))
    assert within(2, lambda: not is_running(reader))


def test_a_spare_outlives_the_thread_that_asked_for_it() -> None:
    """Linux sends the signal of a parent's death when a thread ends; each page of the app runs in a short thread."""
    with apart() as made:
        thread = threading.Thread(target=made.ready)
        thread.start()
        thread.join()
        spare = made._spare
        assert spare
        assert made.ask("a.txt", how="echo", value=1) == 1
        assert spare.returncode == 0


def within(seconds: float, happens: Callable[[], bool]) -> bool:
    """Poll until `happens` is true; False if it is not within so many seconds."""
    end = time.monotonic() + seconds
    while not happens():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def is_running(pid: int) -> bool:
    """False for a process that is gone, and for one that ended and was not waited for: its command line is empty."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def readers_of(home: Path) -> list[int]:
    """Processes of `core.isolated` that were started for a home."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_reader = b"core.isolated" in (process / "cmdline").read_bytes()
            if is_reader and bytes(home) in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found
