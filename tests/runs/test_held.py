"""Two people in one home: a refusal names the holder, and no change is lost silently."""

import os
import re
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from signal import SIGKILL, Signals

import numpy as np
import psutil
import pytest

from core.audit_log import account
from core.corpora import roles
from core.errors import CorpusError, Overtaken, RunBusy, RunError
from core.importing import view as corpora
from core.projects import removals, runs
from core.projects.home import store
from core.runs import Run, execute, journal, launch
from core.runs.lock import Lock, Worker, locked
from core.selection.choice import append_edit, read_edits
from tests.conftest import Seal
from tests.waiting import until

HOLDER = (
    re.escape(f"{account()}, process {os.getpid()} on {socket.gethostname()}, since ") + r"\d{4}-\d\d-\d\d \d\d:\d\d"
)
ANNA = Worker(pid=os.getpid(), created=psutil.Process().create_time(), run="r", account="anna", host="ward3")


@pytest.fixture
def run(seal: Seal) -> Run:
    """Create a run that this process holds."""
    mark = seal(["a sentence ."], "mine").fingerprint
    run = store().create("audit", {"corpus": mark}, {"corpus": mark}, seed=0, versions={}, key="k")
    assert run.lock.acquire(run.id)
    run.events_file.write_text('{"seq": 0, "time": 1.0, "kind": "started", "data": {"pid": 1, "created": 1.0}}\n')
    return run


def test_a_refusal_names_the_holder_of_the_run(run: Run, home: Path) -> None:
    for refused, error in (
        (lambda: runs.resume(run.id), RunBusy),
        (lambda: launch.start(run), RunBusy),
        (lambda: execute(run, lambda context: {}), RunBusy),
        (lambda: removals.remove_run(run.id), RunError),
        (lambda: removals.remove_everything("mine"), RunError),
        (lambda: corpora.remove("mine"), CorpusError),
    ):
        with pytest.raises(error, match=HOLDER):
            refused()
    for forged in (b'{"pid": 1, "created": 1e300}', b'{"pid": 1, "created": 1, "account": 3}'):
        run.lock.path.write_bytes(forged)
        assert run.held_by() == ""
    run.lock.release()
    assert run.held_by() == ""
    with locked(home / "x.lock", patience=1), pytest.raises(RunBusy, match=HOLDER), locked(home / "x.lock", patience=0):
        pass


def test_a_process_of_another_machine_is_named_and_never_signalled_here(run: Run, home: Path) -> None:
    """A process of this machine may have the same number."""
    run.lock.path.write_bytes(ANNA.to_json())
    assert "anna, process" in run.held_by()
    assert " on ward3" in runs.held_by_another(run.id)
    worker = run.worker()
    assert worker is not None
    worker.signal(SIGKILL)  # would kill this process if the machine were not compared
    run.launched_file.write_bytes(ANNA.to_json())
    run.lock.release()
    assert run.coming() is None
    assert run.state().state == "interrupted"
    assert Lock(home / "none.lock").held_by() == ""


def test_reading_a_state_sends_no_signal_but_a_sweep_ends_cancelled_runs(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Signals] = []
    monkeypatch.setattr(Worker, "signal", lambda self, number: sent.append(number))
    assert run.cancel()
    os.utime(run.cancel_file, (0, 0))  # the grace period ended long ago
    assert runs.state(run.id).cancelling
    assert sent == []
    removals.sweep()
    assert until(lambda: sent)[0] == SIGKILL
    run.cancel_file.unlink()
    run.lock.release()


@pytest.mark.parametrize("change", ["give", "undo", "forget"])
def test_a_role_that_is_set_during_another_change_is_kept(
    change: str, home: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (seal([f"sentence {i} ."], f"c{i}").fingerprint for i in range(2))
    corpora.set_role("train", first)
    write, given = roles._write, threading.Event()

    def give() -> None:
        corpora.set_role("dev", second)
        given.set()

    other = threading.Thread(target=give)

    def slowly(home: Path, after: Mapping[str, str], former: Mapping[str, str] | None = None) -> None:
        """Write only after the other window has had time to interfere."""
        monkeypatch.setattr(roles, "_write", write)
        other.start()
        assert not given.wait(0.5), "the other window did not wait"
        write(home, after, former)

    monkeypatch.setattr(roles, "_write", slowly)
    changes: Mapping[str, Callable[[], None]] = {
        "give": lambda: corpora.set_role("task", first),
        "undo": corpora.undo_roles,
        "forget": lambda: roles.forget(home, [first]),
    }
    changes[change]()
    other.join(10)
    after = {"give": {"train": first, "task": first}, "undo": {}, "forget": {}}[change]
    assert corpora.roles() == {**after, "dev": second}


def test_changes_of_another_window_are_not_undone(run: Run) -> None:
    append_edit(run.path, "add", np.array([3]))
    [first] = read_edits(run.path).history
    journal.refuse_overtaken(first, first.time, "The edit")
    journal.refuse_overtaken(first, None, "The edit")
    with pytest.raises(Overtaken, match=r"^The edit: was changed by another window of yours at \d\d:\d\d:\d\d, after"):
        journal.refuse_overtaken(first, 0.0, "The edit")
    with pytest.raises(Overtaken, match="was undone in another window"):
        journal.refuse_overtaken(None, first.time, "The edit")
