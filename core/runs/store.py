"""Create, find, list and remove the runs of a project. Each run has one folder:

home/runs/<run_id>/  manifest.json  events.jsonl  lock  [cancel]  [launched]  worker.log
                     chunks/  checkpoints/  artifacts/  sums.json  result.json
"""

import json
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from core.errors import RunError
from core.files import on_disk, sync, write_atomic
from core.runs.events import State
from core.runs.lock import aside, locked
from core.runs.run import Manifest, Run, run_key

__all__ = ["MANIFEST", "RUN_FOLDERS", "Manifest", "Run", "RunStore", "is_run_id", "run_key"]

_RUN_ID = re.compile(r"\d{8}-\d{6}-[a-z][a-z0-9-]*-[0-9a-f]{4}")
MANIFEST = "manifest.json"
RUN_FOLDERS = ("chunks", "checkpoints", "artifacts")  # folders inside a run's folder
_KIND = re.compile(r"[a-z][a-z0-9-]*")
Runs = list[Run]  # alias, because `list` means a method inside `RunStore`


def is_run_id(text: str) -> bool:
    """Return True if `text` has the form of a run's id."""
    return bool(_RUN_ID.fullmatch(text))


def _same(stored: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    """Return True if all options that are in both mappings are equal.

    An option that is in only one mapping was added or removed by a later version.
    """
    pairs = [(stored[name], wanted[name]) for name in stored.keys() & wanted.keys()]
    return all(
        _same(one, other) if isinstance(one, Mapping) and isinstance(other, Mapping) else one == other
        for one, other in pairs
    )


class RunStore:
    """All runs of a project. Keep one store per process, because its `Run` objects cache the events that they read.

    optioned: kinds of run that have options. A manifest of such a kind without options is treated as damaged.
    """

    def __init__(self, home: Path, optioned: Collection[str] = ()) -> None:
        self.home, self._optioned = home.absolute(), frozenset(optioned)
        self.folder = self.home / "runs"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._runs: dict[str, tuple[int, Run]] = {}  # {id: (time of its manifest, run)}

    def create(
        self,
        kind: str,
        config: Mapping[str, object],
        inputs: Mapping[str, str],
        *,
        seed: int | None = None,
        versions: Mapping[str, str],
        key: str,
        parent: str | None = None,
    ) -> Run:
        """Create a run. If that fails, its folder is deleted.

        Errors: RunError if the kind is not a valid folder name, ResourceError if the disk is full or read-only.
        """
        if not _KIND.fullmatch(kind):
            raise RunError(
                f"run kind {kind!r}: may only have lower-case letters, digits and hyphens; choose such a name."
            )
        with on_disk(self.home), self._begun(kind) as (path, created):
            manifest = Manifest(
                run_id=path.name,
                kind=kind,
                config=dict(config),
                inputs=dict(inputs),
                seed=seed,
                versions=dict(versions),
                created=created.isoformat(timespec="microseconds"),
                parent=parent,
                key=key,
            )
            write_atomic(path / MANIFEST, json.dumps(asdict(manifest), indent=1, ensure_ascii=False).encode())
            sync(self.folder)
        return self.get(path.name)

    def get(self, run_id: str) -> Run:
        """Return a run by id. Errors: RunError if this project has no such run."""
        run = self._find(run_id) if _RUN_ID.fullmatch(run_id) else None
        if run is None and is_run_id(run_id) and (file := self.folder / run_id / MANIFEST).exists():
            raise RunError(
                f"run {run_id}: is not in the list, because {file} cannot be read; restore it from a copy, or delete"
                " the run's folder."
            )
        if run is None:
            raise RunError(f"There is no run {run_id[:80]!r} in this project; `runs list` shows its runs.")
        return run

    def list(self, *kinds: str, state: State | None = None) -> Runs:
        """Return the runs of these kinds and this state, newest first.

        Without kinds, return runs of all kinds; if `state` is None, return runs in all states. Incomplete runs and
        other folders are left out.
        """
        names = [entry.name for entry in os.scandir(self.folder) if _RUN_ID.fullmatch(entry.name)]
        self._forget(self._runs.keys() - names)
        runs = [run for name in names if (run := self._find(name)) and (not kinds or run.manifest.kind in kinds)]
        if state:
            runs = [run for run in runs if run.state().state == state]
        return sorted(runs, key=lambda run: (run.manifest.created, run.id), reverse=True)

    def unreadable(self) -> Sequence[Path]:
        """Return the manifests that cannot be read, and the event logs with a damaged line.

        `list` leaves out runs whose manifest cannot be read.
        """
        files = (self.folder / entry.name / MANIFEST for entry in os.scandir(self.folder))
        named = (file for file in files if _RUN_ID.fullmatch(file.parent.name) and file.exists())
        manifests = [file for file in named if self._find(file.parent.name) is None]
        return [*manifests, *(run.events_file for run in self.list() if run.spoilt())]

    def finished(self, key: str, config: Mapping[str, object]) -> Run | None:
        """Return the newest run with `key` and `config` that has succeeded, or None."""
        return next((run for run in self._with_key(key, config) if run.state().state == "succeeded"), None)

    def unfinished(self, key: str, config: Mapping[str, object]) -> Run | None:
        """Return the newest run with `key` and `config` that has not succeeded (active or not), or None.

        Imported runs are left out, because a forged project may have runs whose options do not match their key.
        """
        own = (run for run in self._with_key(key, config) if not run.brought_file.exists())
        return next((run for run in own if run.state().state != "succeeded"), None)

    def remove(self, run_id: str) -> None:
        """Delete a run and its files. Errors: RunError if the run is unknown or active."""
        run = self.get(run_id)
        if not run.lock.acquire():
            raise RunError(f"run {run_id}: is running{aside(run.held_by())}; cancel it before removing it.")
        try:
            if coming := run.coming():
                raise RunError(f"run {run_id}: is about to begin ({coming.in_words}); cancel it before removing it.")
            doomed = run.path.with_name(f".removed-{run_id}")  # a name that `list` skips
            run.path.rename(doomed)
            shutil.rmtree(doomed)
            self._runs.pop(run_id, None)
        finally:
            run.lock.release()

    def critical(self) -> AbstractContextManager[None]:
        """Return a lock that keeps other processes from finding or creating a run: `with store.critical(): ...`."""
        return locked(self.home / "locks" / "store.lock", patience=30)

    def _with_key(self, key: str, config: Mapping[str, object]) -> Runs:
        """Return the runs with this key and the same options, newest first.

        The options are compared too, because keys leave out options at their default, and an older version may have
        had another default.
        """
        return [run for run in self.list() if run.manifest.key == key and _same(run.manifest.config, config)]

    def _find(self, run_id: str) -> Run | None:
        """Return a run by id, or None if it does not exist or another process has removed it.

        A run that was removed and came back with an imported project is read again, as it may have another state.
        """
        path = self.folder / run_id / MANIFEST
        try:
            written = path.stat().st_ctime_ns
            if (kept := self._runs.get(run_id)) and kept[0] == written:
                return kept[1]
            run = Run(path.parent, Manifest.read(path))
        except (OSError, ValueError, TypeError):
            return None
        whole = run.id == run_id and (run.manifest.config or run.manifest.kind not in self._optioned)
        if not whole:
            return None
        self._runs[run_id] = written, run
        return run

    def _forget(self, names: Iterable[str]) -> None:
        """Drop runs that another process has removed, so that a long-lived app does not keep them in memory."""
        for name in names:
            if not (self.folder / name).exists():  # keep a run that was created after the folder was read
                self._runs.pop(name, None)

    @contextmanager
    def _begun(self, kind: str) -> Iterator[tuple[Path, datetime]]:
        """Yield a new run's folder, and delete it again if the block fails."""
        path, created = self._new_folder(kind)
        try:
            for name in RUN_FOLDERS:
                (path / name).mkdir()
            yield path, created
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise

    def _new_folder(self, kind: str) -> tuple[Path, datetime]:
        while True:
            now = datetime.now(UTC)
            path = self.folder / f"{now:%Y%m%d-%H%M%S}-{kind}-{secrets.token_hex(2)}"
            try:
                path.mkdir()  # fails if another process chose the same random name in the same second
            except FileExistsError:
                continue
            return path, now
