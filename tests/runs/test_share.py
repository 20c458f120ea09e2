"""`--share 3/16`: processes that know of each other by a run's files alone, one of which is killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.cli.main import run_main
from core.errors import Cancelled, ConfigError, RunError
from core.runs import launch
from core.runs.context import RunContext
from core.runs.executors import share, spread
from core.runs.executors.share import Aside, Over, Share
from core.runs.lock import Lock
from core.runs.shared import run_or_reuse
from core.runs.store import Run, RunStore
from core.runs.where import Deeds, shares
from core.runs.worker import attempt, execute
from tests.conftest import ROOT
from tests.patience import PATIENCE
from tests.runs.sharer import SIZE, N
from tests.runs.works import Squares, begun, made


def shared(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, fate: str = "", of: int = 3) -> list[Any]:
    """So many processes at the run, at once."""
    processes = []
    for number in range(of):
        monkeypatch.setenv("WINNOW_SHARE", f"{number}/{of}")
        words = [sys.executable, "-m", "tests.runs.sharer", str(home), run.id, fate]
        processes.append(subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    monkeypatch.delenv("WINNOW_SHARE")
    return processes


@pytest.mark.parametrize("fate", ["together", "killed"])
def test_three_processes_make_the_bytes_of_one_also_when_one_is_killed(
    home: Path, fate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = begun(home, "alone")
    expected = made(alone, "local", Squares(alone.path), N, SIZE)
    run = begun(home, "shared")
    processes = shared(home, run, monkeypatch, fate)
    outputs = [process.communicate(timeout=240) for process in processes]
    codes = sorted(process.returncode for process in processes)
    assert codes == ([-9, 0, 0] if fate == "killed" else [0, 0, 0]), outputs
    results = [out for out, _ in outputs if out]
    assert all(out.startswith("{'model': 'none', 'chunks': 10}") for out in results)
    assert len(results) == 3 - (fate == "killed")  # whoever made it, each of them returns it
    assert [path.read_bytes() for path in sorted(run.chunks.glob("chunk-*.npy"))] == expected
    assert run.state().state == "succeeded"
    assert len(list(run.path.glob("process-*"))) > 1
    nodes = shares(run.path)
    assert [node.name for node in nodes] == [f"{socket.gethostname()} (share {number})" for number in range(3)]
    assert sum(node.chunks for node in nodes) in ((9, 10) if fate == "killed" else (10,))  # it may not have counted one
    assert not any(node.workers for node in nodes)
    assert not [path for path in (run.path / share.CLAIMS).glob("*") if Lock(path).held()]


def test_who_shares_a_run_is_seen_while_it_does_and_what_it_made_afterwards(home: Path) -> None:
    run = begun(home, "seen")
    assert shares(run.path) == ()
    first, other = Deeds(run.path, 2), Deeds(run.path, 10)
    with first.at_work():
        first.count_chunk()
        first.count_chunk()
        with other.at_work():
            assert [(node.workers, node.chunks) for node in shares(run.path)] == [(1, 2), (1, 0)]
    assert [(node.workers, node.chunks) for node in shares(run.path)] == [(0, 2), (0, 0)]
    with first.at_work():  # begun again, it goes on counting
        first.count_chunk()
    assert shares(run.path)[0].chunks == 3
    (run.path / "shares" / "2.json").write_text("[")
    assert [node.name for node in shares(run.path)] == [f"{socket.gethostname()} (share 10)"]


def test_what_another_has_claimed_is_left_to_it_and_what_is_there_is_not_made_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(home, "claimed")
    lock = Lock(run.path / share.CLAIMS / "chunk-000003")
    assert lock.acquire(run.id)
    looks = []

    def look(seconds: float) -> None:
        """The other has made its chunk meanwhile."""
        looks.append(sorted(path.name for path in run.chunks.glob("chunk-*.npy")))
        (run.chunks / "chunk-000003.npy").write_bytes((run.chunks / "chunk-000002.npy").read_bytes())
        lock.release()

    monkeypatch.setattr("core.runs.executors.share.time.sleep", look)
    monkeypatch.setenv("WINNOW_SHARE", "0/2")
    files = made(run, "local", Squares(run.path), N, SIZE)
    assert len(looks) == 1
    assert len(looks[0]) == N // SIZE - 1
    assert files[3] == files[2]


def test_who_helps_ends_with_whom_it_helps_and_waits_for_a_new_attempt(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(home, "helped")
    with pytest.raises(Over):
        Aside(run, run).check()
    assert run.lock.acquire(run.id)
    Aside(run, run).check()
    Aside(run, run).note("a word")
    assert not run.events_file.exists()
    run.cancel_file.touch()
    with pytest.raises(Cancelled, match="was stopped on request"):
        Aside(run, run).check()
    run.lock.release()
    run.cancel_file.unlink()

    def fail(context: RunContext) -> dict[str, object]:
        raise ConfigError("budget: is nothing.")

    with pytest.raises(ConfigError):
        execute(run, fail)
    assert run.lock.acquire(run.id)  # another attempt began and has written no event yet
    sleeps = list[float]()

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) == 2:  # once beside its work, once for its end
            attempt(run, lambda context: {"made": "there"})
            run.lock.release()

    monkeypatch.setattr(share, "time", SimpleNamespace(sleep=sleep, time=time.time, monotonic=time.monotonic))
    assert share.take_part(run, fail, RunStore(home), lambda each: None) == {"made": "there"}


def test_who_helps_is_tied_to_who_began_it_where_that_is_asked(home: Path) -> None:
    run = RunStore(home).create("halves", {}, {}, versions={}, key="tied")  # with which nobody can help: it would wait
    assert run.lock.acquire(run.id)
    process = launch.helper(run, tied=True)
    assert process.stdin
    process.stdin.close()  # as the system does of one that dies
    try:
        assert process.wait(PATIENCE) == 1
    finally:
        process.kill()
    assert run.log_file.read_text() == ""
    run.lock.release()


@pytest.mark.parametrize("end", ["stopped", "failed"])
def test_the_other_shares_go_on_if_the_owner_is_stopped_and_report_its_failure(
    home: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, made_here = begun(home, end), list[str]()
    monkeypatch.setenv("WINNOW_SHARE", "1/2")

    def owner(context: RunContext) -> dict[str, object]:
        if end == "failed":
            raise ConfigError("budget: is nothing.")
        os.kill(os.getpid(), signal.SIGTERM)  # from a scheduler, at a time limit
        context.check()
        raise AssertionError

    def help_until_it_ends(context: RunContext) -> object:
        run.lock.release()
        with pytest.raises((Cancelled, ConfigError)):
            execute(run, owner)
        assert run.state().state == ("interrupted" if end == "stopped" else "failed")
        raise Over

    def make(context: RunContext) -> dict[str, object]:
        made_here.append("here")
        return {"made": "here"}

    assert run.lock.acquire(run.id)
    if end == "stopped":
        assert share.take_part(run, make, RunStore(home), lambda each: help_until_it_ends) == {"made": "here"}
    else:
        with pytest.raises(RunError, match="budget: is nothing"):
            share.take_part(run, make, RunStore(home), lambda each: help_until_it_ends)
        assert not made_here


@pytest.mark.parametrize(
    ("given", "wish", "state"), [("0/2", False, "interrupted"), ("0/2", True, "cancelled"), ("", False, "cancelled")]
)
def test_a_stopped_share_leaves_its_run_and_the_child_to_the_others_unless_the_run_is_cancelled(
    home: Path, given: str, wish: bool, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, children = begun(home, "parent"), list[Run]()
    monkeypatch.setenv("WINNOW_SHARE", given)

    def pressed(context: RunContext) -> dict[str, object]:
        children.append(context.run)
        if wish:
            run.cancel()
        raise KeyboardInterrupt

    def needs(context: RunContext) -> dict[str, object]:
        run_or_reuse(context, "tag", {}, {}, pressed, versions={}, key="child")
        raise AssertionError

    with pytest.raises(Cancelled):
        execute(run, needs)
    assert [each.state().state for each in (run, *children)] == [state, state]


def test_one_share_makes_all_chunks_and_a_helper_without_work_loads_no_model(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, opened, sleeps = begun(home, "made"), list[str](), list[float]()
    monkeypatch.setenv("WINNOW_SHARE", "0/2")
    assert len(made(run, "local", Squares(run.path), N, SIZE)) == N // SIZE
    assert not (run.path / share.CLAIMS).exists()
    monkeypatch.setattr(Squares, "open", lambda self, report: opened.append("model"))
    monkeypatch.setattr("core.runs.executors.share.time.sleep", sleeps.append)

    def squares(context: RunContext) -> object:
        return spread(context, N, SIZE, Squares(run.path), "chunk", device=nullcontext)

    assert run.lock.acquire(run.id)
    share.help_along(run, RunStore(home), lambda each: squares)
    run.lock.release()
    assert (opened, len(sleeps)) == ([], 1)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--share", "4"], "share: '4' is none; give 0/16, 1/16, ... 15/16, one a process."),
        (["--share", "5/4"], "share: '5/4' is none"),
        (["--share", "0/0"], "share: '0/0' is none"),
        (["--on", "ray", "--share", "0/2"], "give --on or --share, not both"),
        (["--on", "the moon"], "'the moon' is nowhere to compute; give local, ray (this machine) or ray:HOST:PORT"),
        (["--on", "ray:head"], "'ray:head' is nowhere to compute"),
    ],
)
def test_an_invalid_share_or_place_is_an_error_of_one_sentence(
    words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, expected in (("0/16", Share(0, 16)), ("16/16", Share(0, 16)), ("3/4", Share(3, 4))):
        monkeypatch.setenv("WINNOW_SHARE", text)
        assert share.share() == expected
    for name in ("WINNOW_SHARE", "WINNOW_ON"):
        monkeypatch.setenv(name, "")  # restored after the test
    monkeypatch.setattr("core.runs.executors.find_spec", lambda name: name)
    monkeypatch.setattr(sys, "argv", ["winnow", *words, "samples"])
    assert run_main() == 2
    assert sentence in capsys.readouterr().err
