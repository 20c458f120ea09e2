"""Ways to disturb a run. Each disturbs it once, and returns True if the disturbance took effect."""

import errno
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from signal import SIGKILL

from core.kinds import KINDS
from tests.lab.torture.server import Servers
from tests.lab.torture.trial import Stuck, Trial, loaded

Way = Callable[[Trial], bool]
HOUR = 3600
APP_OPERATIONS = 14  # file operations of an app that starts a run


def kill(trial: Trial) -> bool:
    """Send SIGKILL at a random moment."""
    process = trial.worker()
    time.sleep(trial.lots.uniform(0, 1.05 * trial.calm.seconds))
    process.send_signal(SIGKILL)
    return trial.over(process) == -SIGKILL


def kill_loaded(trial: Trial) -> bool:
    """Do the same on a busy machine."""
    with loaded():
        return kill(trial)


def kill_writing(trial: Trial) -> bool:
    """Send SIGKILL right before a file operation: between a write and its rename, or between two files."""
    return trial.over(trial.worker(die=trial.operation())) == -SIGKILL


def torn(trial: Trial) -> bool:
    """Simulate a power cut: truncate files that were never synced; end logs in half a line or in zeros."""
    drop = trial.folder / "drop"
    drop.unlink(missing_ok=True)
    moment = trial.lots.randint(1, trial.calm.operations + 5)  # may also come after the last operation
    trial.over(trial.worker(die=moment, drop=str(drop)))
    for name in json.loads(drop.read_text()):
        _tear(trial, Path(name))
    (trial.run.chunks / ".half.npy.dead.tmp").write_bytes(b"half")
    return True


def _tear(trial: Trial, file: Path) -> None:
    if not file.is_file():
        return
    size = file.stat().st_size
    if file.suffix == ".jsonl":
        os.truncate(file, max(0, size - trial.lots.randint(0, 200)))
        tail = trial.lots.choice([b"", b'{"seq": 99, "ti', b"\0" * 50])
        with file.open("ab") as out:
            out.write(tail)
    elif os.stat(file).st_nlink == 1:
        os.truncate(file, trial.lots.randint(0, size))


def full(trial: Trial) -> bool:
    """Fill the disk: a small file system if one can be mounted, otherwise let writes fail with ENOSPC."""
    if not _small_disk(trial):
        return _refused(trial, errno.ENOSPC)
    try:
        struck = trial.over(trial.worker()) != 0
        _polite(trial)
    finally:
        _back_from(trial)
    return struck


def _small_disk(trial: Trial) -> bool:
    """Move the home to a small file system of its own. Return False if none can be mounted."""
    if os.geteuid() != 0 or trial.home.is_mount():
        return False
    aside = trial.home.with_name("aside")
    trial.home.rename(aside)
    trial.home.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(trial.home)], capture_output=True, check=False).returncode:
        trial.home.rmdir()
        aside.rename(trial.home)
        return False
    subprocess.run(["cp", "-a", f"{aside}/.", str(trial.home)], check=True)
    room = int(shutil.disk_usage(trial.home).used + 4096 * 2 ** trial.lots.uniform(0, 6))
    subprocess.run(["mount", "-o", f"remount,size={room}", str(trial.home)], check=True)
    return True


def _back_from(trial: Trial) -> None:
    """Move the home back to the large disk, with the files on the small one."""
    aside = trial.home.with_name("aside")
    subprocess.run(["rm", "-rf", str(aside)], check=True)
    subprocess.run(["cp", "-a", f"{trial.home}/.", str(aside)], check=True)
    subprocess.run(["umount", "-l", str(trial.home)], check=True)
    trial.home.rmdir()
    aside.rename(trial.home)


def read_only(trial: Trial) -> bool:
    """Make the file system read-only from some moment on, as it becomes after an I/O error."""
    return _refused(trial, errno.EROFS)


def _refused(trial: Trial, number: int) -> bool:
    struck = trial.over(trial.worker(fail=number, at=trial.operation())) != 0
    _polite(trial)
    return struck


def _polite(trial: Trial) -> None:
    """Check that the app does not report the disk's error as a bug. Errors: Stuck."""
    said = trial.again().state().error or ""
    log = trial.run.log_file.read_text(errors="replace") if trial.run.log_file.exists() else ""
    if "bug in Winnow" in said:
        raise Stuck(f"reported as a bug: {log[-1500:]}")


def clock_back(trial: Trial) -> bool:
    """Set the clock back by an hour in the middle, then kill, so that the first attempt lies in the future."""
    at = trial.operation()
    die = trial.lots.randint(at, trial.calm.operations)
    struck = trial.over(trial.worker(back=HOUR, at=at, die=die)) == -SIGKILL
    later = time.time() + HOUR
    for path in [trial.run.path, *trial.run.path.rglob("*")]:
        if path.is_dir() or path.stat().st_nlink == 1:
            os.utime(path, (later, later))
    return struck


def two_workers(trial: Trial) -> bool:
    """Start two workers on one run at the same instant; one must be refused. In half of the trials, kill one."""
    pair = [trial.worker(), trial.worker()]
    if trial.lots.random() < 0.5:
        time.sleep(trial.lots.uniform(0, trial.calm.seconds))
        trial.lots.choice(pair).send_signal(SIGKILL)
    statuses = [trial.over(process) for process in pair]
    if statuses == [0, 0] and _attempts(trial) > 1:
        raise Stuck("two workers both completed the run")
    return True


def _attempts(trial: Trial) -> int:
    kinds = [event.kind for event in trial.again().events()[0]]
    return kinds.count("succeeded")


def app_killed(trial: Trial) -> bool:
    """Kill the app while it starts a run. A worker that it has started continues."""
    struck = trial.over(trial.app("resume", trial.run.id, die=trial.lots.randint(1, APP_OPERATIONS))) == -SIGKILL
    trial.rest()
    return struck


def server_killed(trial: Trial) -> bool:
    """Kill the app's server while it draws a page and a run is running. The run continues, and a new server works."""
    environment = {"WINNOW_HOME": str(trial.home), "WINNOW_DATA_DIRS": str(trial.folder)}
    with Servers(trial.folder / "server.log", environment) as servers:
        try:
            servers.start()
            worker = trial.worker()
            with servers.visit():
                time.sleep(trial.lots.uniform(0, trial.calm.seconds))
                servers.kill()
            servers.start()
            servers.page()
        except (AssertionError, OSError) as error:
            raise Stuck(f"the server: {error}") from error
        trial.over(worker)
        servers.page()
    return True


def two_apps(trial: Trial) -> bool:
    """Let two apps on one home start the same work at the same instant."""
    words: tuple[str, ...] = ("resume", trial.run.id)
    if KINDS[trial.kind].reuse:
        words = ("start", trial.kind, json.dumps(dict(trial.run.manifest.config)))
    if trial.again().state().state == "succeeded":
        return False
    pair = [trial.app(*words), trial.app(*words)]
    statuses = sorted(trial.over(process) for process in pair)
    if statuses not in ([0, 0], [0, 2]):
        raise Stuck(f"the apps ended with {statuses}")
    trial.rest()
    return True


WAYS: Mapping[str, Way] = {
    way.__name__.replace("_", "-"): way
    for way in (
        kill,
        kill_loaded,
        kill_writing,
        torn,
        full,
        read_only,
        clock_back,
        two_workers,
        app_killed,
        server_killed,
        two_apps,
    )
}
