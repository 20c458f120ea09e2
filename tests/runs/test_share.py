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
    assert sorted(process.returncode for process in processes) == ([-9, 0, 0] if fate == "killed" else [0, 0, 0]), (
        outputs
    )
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
    # The last to look may put its claim where all were swept away just then; nobody has one any more.
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


def test_one_share_alone_makes_all_of_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others may come later, or never."""
    run = begun(home, "one")
    monkeypatch.setenv("WINNOW_SHARE", "2/16")
    assert len(made(run, "local", Squares(run.path), N, SIZE)) == N // SIZE
    assert not (run.path / share.CLAIMS).exists()


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


def test_who_helps_ends_with_whom_it_helps(home: Path) -> None:
    run = begun(home, "helped")
    aside = Aside(run, run)
    with pytest.raises(Over):
        aside.check()
    assert run.lock.acquire(run.id)
    Aside(run, run).check()
    aside.note("a word")
    assert not run.events_file.exists()
    run.cancel_file.touch()
    with pytest.raises(Cancelled, match="was stopped on request"):
        Aside(run, run).check()
    run.lock.release()


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


def test_a_failure_is_told_by_every_share_and_not_tried_again(home: Path) -> None:
    run, tried = begun(home, "failing"), list[str]()

    def refuse(context: RunContext) -> dict[str, object]:
        tried.append("here")
        raise AssertionError

    def help_then_fail(context: RunContext) -> object:
        run.lock.release()
        with pytest.raises(ConfigError):
            execute(run, fail)
        raise Over

    def fail(context: RunContext) -> dict[str, object]:
        raise ConfigError("budget: is nothing.")

    assert run.lock.acquire(run.id)
    with pytest.raises(RunError, match="budget: is nothing"):
        share.take_part(run, refuse, RunStore(home), lambda each: help_then_fail)
    assert not tried


def stopped(context: RunContext) -> dict[str, object]:
    """SIGTERM comes, as from a scheduler at a time limit."""
    os.kill(os.getpid(), signal.SIGTERM)
    context.check()
    raise AssertionError


def test_the_others_go_on_where_the_process_that_has_the_run_is_stopped(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(home, "stopped")
    monkeypatch.setenv("WINNOW_SHARE", "1/2")

    def help_with_who_is_stopped(context: RunContext) -> object:
        run.lock.release()
        with pytest.raises(Cancelled):
            execute(run, stopped)
        assert run.state().state == "interrupted"
        raise Over

    assert run.lock.acquire(run.id)
    result = share.take_part(
        run, lambda context: {"made": "here"}, RunStore(home), lambda each: help_with_who_is_stopped
    )
    assert result == {"made": "here"}


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


def test_what_is_begun_anew_has_not_failed_yet(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another has the lock of a run that failed before, and has written no word of its new attempt."""
    run = begun(home, "again")

    def fail(context: RunContext) -> dict[str, object]:
        raise ConfigError("budget: is nothing.")

    with pytest.raises(ConfigError):
        execute(run, fail)
    assert run.lock.acquire(run.id)
    sleeps = list[float]()

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) == 2:  # once beside what it does, once for its end
            attempt(run, lambda context: {"made": "there"})
            run.lock.release()

    monkeypatch.setattr(share, "time", SimpleNamespace(sleep=sleep, time=time.time, monotonic=time.monotonic))
    assert share.take_part(run, fail, RunStore(home), lambda each: None) == {"made": "there"}


def test_who_finds_nothing_to_help_with_loads_no_model_and_looks_again_later(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, opened, sleeps = begun(home, "made"), list[str](), list[float]()
    monkeypatch.setenv("WINNOW_SHARE", "0/2")
    made(run, "local", Squares(run.path), N, SIZE)
    monkeypatch.setattr(Squares, "open", lambda self, report: opened.append("model"))
    monkeypatch.setattr("core.runs.executors.share.time.sleep", sleeps.append)

    def squares(context: RunContext) -> object:
        return spread(context, N, SIZE, Squares(run.path), "chunk", device=nullcontext)

    assert run.lock.acquire(run.id)
    share.help_along(run, RunStore(home), lambda each: squares)
    run.lock.release()
    assert (opened, len(sleeps)) == ([], 1)


@pytest.mark.parametrize(("text", "expected"), [("0/16", Share(0, 16)), ("16/16", Share(0, 16)), ("3/4", Share(3, 4))])
def test_shares_are_counted_from_nought_or_one(text: str, expected: Share, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_SHARE", text)
    assert share.share() == expected


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--share", "4"], "share: '4' is none; give 0/16, 1/16, ... 15/16, one a process."),
        (["--share", "5/4"], "share: '5/4' is none"),
        (["--share", "0/0"], "share: '0/0' is none"),
        (["--on", "ray", "--share", "0/2"], "give --on or --share, not both"),
    ],
)
def test_what_is_no_share_is_a_sentence(
    words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("WINNOW_SHARE", "WINNOW_ON"):
        monkeypatch.setenv(name, "")  # and put back afterwards
    monkeypatch.setattr("core.runs.executors.find_spec", lambda name: name)
    monkeypatch.setattr(sys, "argv", ["winnow", *words, "samples"])
    assert run_main() == 2
    assert sentence in capsys.readouterr().err
