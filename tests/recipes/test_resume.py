"""A select run killed with SIGKILL at any moment ends, once resumed, with the same S_C to the byte."""

import random
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from string import ascii_lowercase

import pytest

from core.projects import runs
from tests.forge import Forge

ROOT = Path(__file__).resolve().parents[2]
WORDS = ["".join(two) for two in product(ascii_lowercase[:20], repeat=2)]  # of few pieces, so quickly embedded


def write_piles(folder: Path, of_domain: int = 10_000) -> tuple[Path, Path]:
    """Write T_C and a D_C of two embedding chunks; `tiny` embeds them in seconds."""
    lots = random.Random(0)
    paths = folder / "task.txt", folder / "domain.txt"
    for path, n in zip(paths, (50, of_domain), strict=True):
        lines = (" ".join(lots.choices(WORDS, k=lots.randint(6, 14))) for _ in range(n))
        path.write_text("\n".join(lines), encoding="utf-8")
    return paths


def select(home: Path, folder: Path, forge: Forge | None = None, kill_after: float | None = None) -> bytes:
    """One attempt at the command line; S_C's bytes, or none if it was killed. forge: in place of a fresh process."""
    output = folder / f"{home.name}.jsonl"
    corpora = ["--task", str(folder / "task.txt"), "--domain", str(folder / "domain.txt"), "--encoder", "tiny"]
    words = [sys.executable, "-m", "core", "--home", str(home), "select", *corpora, "--strategy", "knn"]
    words += ["--budget", "5%", "--output", str(output), "--json"]
    with (folder / "said").open("wb") as said:
        process = (forge.begin if forge else subprocess.Popen)(words, cwd=ROOT, stdout=said, stderr=said)
    deadline = time.monotonic() + 300
    while kill_after is not None and process.poll() is None and time.monotonic() < deadline:
        if progress(home) >= kill_after:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.005)
    status = process.wait(timeout=300)
    if status == -signal.SIGKILL:
        return b""
    assert status == 0, (folder / "said").read_text()
    return output.read_bytes()


def progress(home: Path) -> int:
    """Files that runs have made so far: a clock that does not depend on the machine's speed."""
    return sum(1 for path in home.glob("runs/*/*/*") if path.suffix == ".npy")


def test_killed_and_resumed_equals_undisturbed(tmp_path: Path, forge: Forge) -> None:
    write_piles(tmp_path)
    undisturbed = select(tmp_path / "calm", tmp_path)
    assert undisturbed.count(b"\n") == 500
    stormy = tmp_path / "stormy"
    kills = [select(stormy, tmp_path, forge, kill_after=made) for made in (1, 3)]
    assert b"" in kills  # at least one attempt was really killed
    assert select(stormy, tmp_path, forge) == undisturbed


@pytest.mark.full
def test_a_kill_shows_as_interrupted_and_can_be_resumed(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, domain = write_piles(tmp_path, 4_000)
    refs = {
        role: runs.execute("add", {"path": str(path)}).result()["corpus"]
        for role, path in (("task", task), ("domain", domain))
    }
    run_id = runs.start("select", {**refs, "strategy": "knn", "encoder": "tiny", "budget": "5%"})
    deadline = time.monotonic() + 300
    while not runs.state(run_id).stage and time.monotonic() < deadline:
        time.sleep(0.01)
    worker = runs.get(run_id).worker()
    assert worker is not None
    worker.signal(signal.SIGKILL)
    while (state := runs.state(run_id)).active and time.monotonic() < deadline:
        time.sleep(0.01)
    assert state.state == "interrupted"
    runs.resume(run_id)
    deadline = time.monotonic() + 300
    while runs.state(run_id).state != "succeeded" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert runs.get(run_id).result()["selected"] == 200
