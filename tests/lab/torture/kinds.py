"""Create a home from which one run of each kind can be started repeatedly: all that it needs, and its manifest."""

import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from core.corpora.library import Library
from core.files import read_object
from core.project_list import shared_home
from core.projects import runs
from core.runs.store import Run, RunStore
from core.tagging import calibrate
from tests import smallest_options
from tests.conftest import sentence
from tests.homes import link, project_in
from tests.planted import contracts

ALONE = (
    "add",
    "audit",
    "intake",
    "llm",
    "robustness",
    "split",
    "vectors",
    "vectors-import",
    "which-strategy",
    "zero-shot",
)  # kinds that need no trained model; a home for only these needs no training
PARTS = ("chunks", "checkpoints", "artifacts")


def furnish(home: Path, kinds: Collection[str]) -> None:
    """Create finished runs of `kinds`, and all that they need. home: folder of the first project in WINNOW_HOME."""
    calibrate.SECONDS = 0.0
    library = Library(home)
    made = dict[str, str]()
    for name, lines in smallest_options.piles().items():
        labelled = name not in ("task", "domain")
        rows = [sentence(line, [(0, 2, "PARTY")] if labelled else None) for line in lines]
        made[name] = library.seal(rows, name=name, origin={}, labelled=labelled).fingerprint
    again, upload = made.pop("again"), home / "uploads" / "0123456789ab" / "more.txt"
    upload.parent.mkdir(parents=True)
    upload.write_text("\n".join(contracts(200, seed=5)), encoding="utf-8")
    kept = shutil.copytree(upload.parent, home / "kept")
    every: dict[str, Mapping[str, Any]] = {"audit": {"corpus": made["domain"]}, "vectors": {"corpus": made["task"]}}
    every |= smallest_options.first(made, again, upload)
    every["add"] = {"path": str(upload), "move": True}
    few = set(kinds) <= set(ALONE)
    for kind, options in every.items():
        if not few or kind in kinds:
            runs.execute(kind, options)
    if not few or "llm" in kinds:  # a second run, which gets its answers from the first: no server answers later
        runs.execute("llm", {**every["llm"], "retries": 0})
    for kind, options in {} if few else smallest_options.second(made).items():
        runs.execute(kind, options)
    shutil.copytree(kept, upload.parent, dirs_exist_ok=True)
    shutil.rmtree(kept)


def begun(source: Path, kind: str, home: Path) -> Run:
    """Copy a furnished home and return a run of `kind` in it, reset to its manifest. Its child runs are removed."""
    root = shared_home(home)
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(source, root, copy_function=link)
    store = RunStore(home)
    found = store.list(kind)
    assert found, (
        f"{kind}: no run in {source}; add its options to tests/smallest_options.py, and use a new --out folder"
    )
    run = found[0]
    gone = {run.id, *_below(run.id, store)}
    for corpus in (home / "corpora").iterdir():
        about = read_object(corpus / "about.json") or {}
        origin = about.get("origin")
        if isinstance(origin, dict) and origin.get("run") in gone:
            shutil.rmtree(corpus)
    for name in gone:
        for path in (home / "runs" / name).iterdir():
            if name != run.id or path.name != "manifest.json":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in gone - {run.id}:
        (home / "runs" / name).rmdir()
    for part in PARTS:
        (run.path / part).mkdir()
    if kind == "fetch":
        shutil.rmtree(home / "checkpoints", ignore_errors=True)
    return RunStore(home).get(run.id)


def _below(run_id: str, store: RunStore) -> set[str]:
    """Return the ids of all runs that a run started, directly or not."""
    children = {run.id for run in store.list() if run.manifest.parent == run_id}
    return children.union(*(_below(child, store) for child in children))


def made_in(folder: Path, kinds: Collection[str]) -> Path:
    """Return the furnished home of a folder. If it does not exist, a separate process creates it."""
    home, done = folder / "home", folder / "furnished"
    if not done.exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        command = [sys.executable, "-m", "tests.lab.torture.kinds", str(project_in(home)), *kinds]
        subprocess.run(command, check=True, env={**os.environ, "WINNOW_HOME": str(home)})
        shutil.rmtree(done, ignore_errors=True)
        home.rename(done)
    return done


if __name__ == "__main__":
    furnish(Path(sys.argv[1]), sys.argv[2:])
