"""The life cycle of runs in real processes: a resumed run gives the result of an undisturbed one."""

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import BinaryIO

import numpy as np
import psutil
import pytest

from core.errors import ResourceError, RunBusy, RunError
from core.results import FloatArray
from core.runs import Run, RunContext, RunStore, execute, launch
from core.runs.lock import Lock, Worker
from tests.runs.lifecycle_worker import crunch
from tests.waiting import WAIT_SECONDS, frozen, until, within

MODULE = "tests.runs.lifecycle_worker"
ROOT = Path(__file__).resolve().parents[2]


def create(store: RunStore, kind: str = "crunch", key: str = "k", **config: object) -> Run:
    return store.create(kind, config, {}, seed=0, versions={}, key=key)


def start(run: Run) -> Run:
    launch.start(run, module=MODULE)
    return run


def ended(run: Run) -> str:
    until(lambda: not run.state().active)
    return run.state().state


def worker_of(run: Run) -> Worker:
    """Return the worker that holds a run or is about to."""
    worker = run.worker()
    assert worker is not None
    return worker


def worked(run: Run, chunks: int = 1) -> bool:
    return len(list(run.chunks.glob("piece-*.npy"))) >= chunks


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    run = create(RunStore(tmp_path_factory.mktemp("undisturbed")))
    execute(run, crunch)
    return outcome(run)


def outcome(run: Run) -> dict[str, bytes]:
    files = [*run.chunks.iterdir(), run.result_file]
    return {file.name: file.read_bytes() for file in files}


def kinds(run: Run) -> list[str]:
    return [event.kind for event in run.events()[0]]


# --- an undisturbed run ---


def test_a_worker_gives_the_same_result_and_leaves_no_zombie(store: RunStore, undisturbed: dict[str, bytes]) -> None:
    run, offset, seen = create(store), 0, list[str]()
    assert (run.state().state, store.finished("k", {}), store.unfinished("k", {})) == ("queued", None, run)
    worker, reader = Worker.read(start(run).launched_file), RunStore(store.home).get(run.id)
    assert worker is not None
    assert worker.pid in psutil.pids()

    def succeeded() -> bool:
        nonlocal offset
        events, offset = reader.events(offset)
        seen.extend(event.kind for event in events)
        return "succeeded" in seen

    until(succeeded)
    assert reader.result()["n"] == 12000  # the result is on disk before the event
    assert seen.count("succeeded") == 1
    assert outcome(run) == undisturbed
    assert (store.finished("k", {}), store.unfinished("k", {})) == (run, None)
    state = run.state()
    assert (state.metrics, state.done, state.total) == ({}, 24, 24)
    with pytest.raises(RunError, match="has finished already"):
        start(run)
    until(lambda: not psutil.pid_exists(worker.pid))


def gone(pid: int) -> bool:
    """Return True if a process ended; in a container it may stay a zombie."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_worker_survives_the_process_that_started_it(store: RunStore, undisturbed: dict[str, bytes]) -> None:
    run = create(store, seconds=0.03)
    script = f"""if True:
        import os, pathlib
        from core.runs import RunStore, launch
        launch.start(RunStore(pathlib.Path({str(store.home)!r})).get({run.id!r}), module={MODULE!r})
        os.killpg(0, 9)"""
    launcher = subprocess.run([sys.executable, "-c", script], cwd=ROOT, start_new_session=True, check=False)
    assert launcher.returncode == -SIGKILL
    assert ended(run) == "succeeded"
    assert outcome(run) == undisturbed


# --- killed processes ---


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 8))])
def test_a_run_killed_at_any_moment_is_resumed(store: RunStore, undisturbed: dict[str, bytes], seed: int) -> None:
    """Kill a run at a random moment; with odd seeds the log also ends with an incomplete event."""
    rng, run = random.Random(seed), create(store)
    start(run)
    until(run.lock.held)
    moment = time.monotonic() + rng.uniform(0, 0.2)
    until(lambda: time.monotonic() > moment)
    worker = run.worker()
    if worker:
        worker.signal(SIGKILL)
    until(lambda: not run.lock.held())
    if ended(run) == "interrupted":
        assert run.state().error
        if seed % 2:
            with run.events_file.open("ab") as file:
                file.write(b'{"seq": 99, "time": 17951')
        (run.chunks / ".piece-000023.npy.dead.tmp").write_bytes(b"half a chunk")
        start(run)
        assert run.state().active
        assert ended(run) == "succeeded"
    assert outcome(run) == undisturbed
    assert [event.seq for event in run.events()[0]] == list(range(len(kinds(run))))


def test_a_kill_is_noticed_and_finished_chunks_are_kept(
    store: RunStore, undisturbed: dict[str, bytes], gate: Path
) -> None:
    run = start(create(store, gate=str(gate)))
    until(lambda: worked(run, 3))
    worker_of(run).signal(SIGKILL)
    assert ended(run) == "interrupted"
    gate.touch()
    kept = {path: path.stat().st_mtime_ns for path in run.chunks.glob("piece-*.npy")}
    assert len(kept) >= 3
    assert ended(start(run)) == "succeeded"
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert outcome(run) == undisturbed
    assert kinds(run).count("started") == 2


def test_a_worker_that_dies_before_its_first_event_is_interrupted(store: RunStore) -> None:
    run = create(store)
    launch.start(run, module="tests.runs.no_such_module")
    assert ended(run) == "interrupted"
    assert "no_such_module" in run.log_tail()[-1]
    assert kinds(run) == []


def test_helpers_forked_by_a_dead_worker_do_not_keep_its_lock(tmp_path: Path) -> None:
    script = f"""if True:
        import os, pathlib, time
        from core.runs.lock import Lock
        lock = Lock(pathlib.Path({str(tmp_path / "lock")!r}))
        assert lock.acquire("r")
        child = os.fork()
        if child:
            print(child, flush=True)
        time.sleep(60)"""
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child, lock = int(process.stdout.readline()), Lock(tmp_path / "lock")
        try:
            assert lock.held()
            holder = lock.holder()
            assert holder is not None
            assert holder.pid == process.pid
            process.kill()
            until(lambda: not lock.held())
            assert psutil.pid_exists(child)
        finally:
            os.kill(child, SIGKILL)


# --- a full disk ---


def test_a_disk_that_fills_while_a_chunk_is_written(
    store: RunStore, undisturbed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, save = create(store), np.save

    def save_until_full(file: BinaryIO, array: FloatArray, *, allow_pickle: bool) -> None:
        if worked(run, 5):
            file.write(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save(file, array, allow_pickle=allow_pickle)

    monkeypatch.setattr(np, "save", save_until_full)
    with pytest.raises(ResourceError, match="is full; free some space"):
        execute(run, crunch)
    assert (run.state().state, run.state().error) == (
        "failed",
        f"run {run.id}: the disk that holds {store.home} is full; free some space there and resume the run.",
    )
    assert sorted(path.name for path in run.chunks.iterdir()) == [f"piece-{i:06d}.npy" for i in range(5)]
    monkeypatch.undo()
    assert ended(start(run)) == "succeeded"
    assert outcome(run) == undisturbed


def test_a_disk_too_full_for_the_error_event(
    store: RunStore, undisturbed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, write = create(store), os.write

    def write_until_full(descriptor: int, data: bytes) -> int:
        if worked(run, 5):
            return write(descriptor, data[:10])
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", write_until_full)
    with pytest.raises(ResourceError, match="is full"):
        execute(run, crunch)
    monkeypatch.undo()
    assert run.state().state == "interrupted"
    assert ended(start(run)) == "succeeded"
    assert outcome(run) == undisturbed


def test_a_full_disk_is_recognised_behind_an_error_of_a_library(store: RunStore) -> None:
    """The library fails to write the end of a file too, and raises another error."""

    def save(context: RunContext) -> dict[str, object]:
        try:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            raise RuntimeError("the end of the file is missing")

    run = create(store)
    with pytest.raises(ResourceError, match="is full; free some space"):
        execute(run, save)
    assert not run.log_file.exists()


def test_artifacts_are_synced_before_a_run_succeeds(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run, synced, sync = create(store), list[tuple[int, bool]](), os.fsync

    def make(context: RunContext) -> dict[str, object]:
        (run.artifacts / "model").mkdir()
        (run.artifacts / "model" / "weights").write_bytes(b"weights")
        return {}

    def watched(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_ino, run.result_file.exists()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    execute(run, make)
    for path in (run.artifacts, run.artifacts / "model", run.artifacts / "model" / "weights"):
        assert (path.stat().st_ino, False) in synced


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    if (
        shutil.which("mount") is None
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=80k", "tmpfs", folder], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("needs the right to mount a tmpfs; two other tests simulate a full disk")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_run_on_a_small_disk_is_resumed_once_there_is_space(small_disk: Path, undisturbed: dict[str, bytes]) -> None:
    run = start(create(RunStore(small_disk)))
    assert ended(run) in ("failed", "interrupted")
    assert 3 < len(list(run.chunks.glob("piece-*.npy"))) < 24
    subprocess.run(["mount", "-o", "remount,size=4m", small_disk], check=True)
    assert ended(start(run)) == "succeeded"
    assert outcome(run) == undisturbed


# --- two processes at once ---


def test_the_second_start_is_refused(store: RunStore, undisturbed: dict[str, bytes], gate: Path) -> None:
    run = start(create(store, gate=str(gate)))
    with pytest.raises(RunBusy, match=r"is running|about to begin"):
        start(run)
    until(lambda: worked(run))
    with pytest.raises(RunBusy, match="is running already"):
        start(run)
    with pytest.raises(RunBusy, match="in another process"):
        execute(run, crunch)
    with pytest.raises(RunError, match="cancel it before"):
        store.remove(run.id)
    gate.touch()
    assert ended(run) == "succeeded"
    assert kinds(run).count("started") == 1
    assert outcome(run) == undisturbed


def test_of_two_workers_started_at_once_only_one_works(
    store: RunStore, undisturbed: dict[str, bytes], gate: Path
) -> None:
    run = create(store, gate=str(gate))
    command = [sys.executable, "-m", MODULE, "work", run.id, "--home", str(store.home)]
    pair = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    until(lambda: any(process.poll() is not None for process in pair))
    gate.touch()
    stderr = [process.communicate(timeout=WAIT_SECONDS)[1] for process in pair]
    assert sorted(process.returncode for process in pair) == [0, 2]
    assert any("is running in another process" in text for text in stderr)
    assert kinds(run).count("started") == kinds(run).count("succeeded") == 1
    assert outcome(run) == undisturbed


def test_constant_probing_by_pages_does_not_hinder_a_launch(store: RunStore) -> None:
    runs, done = [create(store, key=str(i), seconds=0) for i in range(4)], threading.Event()

    def probe() -> None:
        while not done.is_set():
            for run in runs:
                run.lock.held()

    threads = [threading.Thread(target=probe) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for run in runs:
            start(run)
        assert [ended(run) for run in runs] == ["succeeded"] * 4
        lock = runs[0].lock
        for _ in range(200):
            assert lock.acquire()
            lock.release()
    finally:
        done.set()
        for thread in threads:
            thread.join()


# --- cancelling ---


def test_a_cancelled_run_is_resumed(store: RunStore, undisturbed: dict[str, bytes], gate: Path) -> None:
    run = start(create(store, gate=str(gate)))
    until(lambda: worked(run, 2))
    worker = worker_of(run)
    assert run.cancel()
    assert run.state().cancelling
    assert ended(run) == "cancelled"
    until(lambda: not psutil.pid_exists(worker.pid))
    assert not run.cancel()
    assert kinds(run)[-1] == "cancelled"
    assert not run.cancel_file.exists()
    gate.touch()
    assert ended(start(run)) == "succeeded"
    assert outcome(run) == undisturbed


def test_a_queued_run_is_neither_removed_nor_started_again_and_can_be_cancelled(store: RunStore, gate: Path) -> None:
    run = start(create(store, gate=str(gate)))
    with frozen(worker_of(run).pid):
        assert run.state().state == "queued"
        with pytest.raises(RunError, match="about to begin"):
            store.remove(run.id)
        with pytest.raises(RunBusy, match="about to begin"):
            start(run)
        assert run.cancel()
    assert ended(run) == "cancelled"
    assert not worked(run, 2)


def test_sigterm_cancels_and_a_cancelled_run_can_be_resumed_in_the_foreground(
    store: RunStore, undisturbed: dict[str, bytes], gate: Path
) -> None:
    run = start(create(store, gate=str(gate)))
    until(lambda: worked(run))
    psutil.Process(worker_of(run).pid).terminate()
    assert ended(run) == "cancelled"
    assert launch.stop(start(run)).state == "cancelled"
    gate.touch()
    run.cancel_file.touch()
    execute(run, crunch)
    assert outcome(run) == undisturbed


@pytest.mark.alone  # it waits for the grace period of one second
@pytest.mark.full
def test_a_worker_that_ignores_cancellation_is_killed_after_the_grace_period(store: RunStore) -> None:
    run = start(create(store, kind="unresponsive"))
    until(lambda: run.state().stage == "unresponsive")
    worker, helper, began = worker_of(run), int(run.state().metrics["helper"]), time.monotonic()
    with within(5):
        assert launch.stop(run, grace=1).state == "cancelled"
    assert time.monotonic() - began > 0.9
    until(lambda: gone(worker.pid) and gone(helper))
    assert kinds(run)[-1] != "cancelled"  # it had no time for a last event


@pytest.mark.alone
@pytest.mark.full
def test_cancelling_returns_before_the_worker_is_killed(store: RunStore) -> None:
    run = start(create(store, kind="unresponsive"))
    until(lambda: run.state().stage == "unresponsive")
    worker = worker_of(run)
    with within(0.5):
        assert launch.cancel(run, grace=1)
    until(lambda: gone(worker.pid))  # `state` would escalate, so the test does not call it
    assert run.state().state == "cancelled"
    assert not launch.cancel(run, grace=1)


@pytest.mark.parametrize("guilty", [False, True])
def test_only_the_worker_itself_is_killed(store: RunStore, guilty: bool) -> None:
    """guilty: the recorded creation time is right, so the process is killed. This proves that the test can fail."""
    run = create(store)
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        assert run.lock.acquire(run.id)
        real = Worker.of(bystander.pid, run.id)
        assert real is not None
        stale = Worker(pid=real.pid, created=real.created - 100, run=run.id)
        run.lock.path.write_bytes((real if guilty else stale).to_json())
        run.launched_file.write_bytes((real if guilty else stale).to_json())
        run.cancel_file.touch()
        os.utime(run.cancel_file, (0, 0))
        launch.escalate_if_due(run)
        run.lock.release()
        launch.escalate_if_due(run)
        if guilty:
            assert bystander.wait(WAIT_SECONDS) == -SIGKILL
        else:
            assert (run.worker(), bystander.poll()) == (None, None)
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize(
    ("waited", "expected"),
    [(None, []), (0, []), (3, []), (5, [SIGTERM]), (9, [SIGTERM]), (10, [SIGKILL]), (99, [SIGKILL])],
)
def test_signals_follow_the_grace_period(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, waited: float | None, expected: list[int]
) -> None:
    run, sent = create(store), list[int]()
    monkeypatch.setattr(Worker, "signal", lambda self, number: sent.append(number))
    assert run.lock.acquire(run.id)
    if waited is not None:
        assert run.cancel()
        moment = time.time() - waited
        os.utime(run.cancel_file, (moment, moment))
        assert run.cancel()  # asking again does not restart the grace period
    launch.escalate_if_due(run, grace=10)
    run.lock.release()
    launch.escalate_if_due(run, grace=10)
    assert sent == expected


def test_a_clock_set_back_restarts_the_grace_period_and_ends_the_launch(store: RunStore) -> None:
    run = create(store)
    assert run.state().state == "queued"
    assert run.lock.acquire(run.id)
    assert run.cancel()
    os.utime(run.cancel_file, (time.time() + 3600,) * 2)
    launch.escalate_if_due(run, grace=10)
    assert run.cancel_file.stat().st_mtime <= time.time()
    run.lock.release()
    run.cancel_file.unlink()
    file = run.path / "manifest.json"
    later = (run.began + timedelta(hours=1)).isoformat()
    file.write_text(json.dumps({**json.loads(file.read_text()), "created": later}))
    assert RunStore(store.home).get(run.id).state().state == "interrupted"


def test_a_lock_holder_that_is_not_a_worker_is_never_signalled(store: RunStore) -> None:
    """A process that holds a lock only to start or remove a run, or that released it, is not a worker."""
    run = create(store)
    assert run.lock.acquire(run.id)
    assert run.worker() == Worker.of(os.getpid(), run.id)
    run.lock.release()
    assert Worker.read(run.lock.path) is None
    assert run.lock.acquire()
    assert run.lock.held()
    assert run.worker() is None
    run.lock.release()


def test_a_zombie_is_not_alive() -> None:
    process = subprocess.Popen(["sleep", "60"])
    worker = Worker.of(process.pid)
    assert worker is not None
    assert worker.alive()
    process.kill()
    until(lambda: not worker.alive())
    assert psutil.pid_exists(worker.pid)
    process.wait()


def test_a_run_that_was_killed_while_cancelled_can_be_resumed(
    store: RunStore, undisturbed: dict[str, bytes], gate: Path
) -> None:
    run = start(create(store, gate=str(gate)))
    until(lambda: worked(run))
    process = psutil.Process(worker_of(run).pid)
    process.suspend()
    assert run.cancel()
    process.kill()
    assert ended(run) == "cancelled"
    assert kinds(run)[-1] != "cancelled"
    gate.touch()
    assert ended(start(run)) == "succeeded"
    assert outcome(run) == undisturbed
