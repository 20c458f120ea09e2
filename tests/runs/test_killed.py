"""Runs in real processes that are stopped or killed, then resumed, give the result of an undisturbed run."""

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from signal import SIGKILL
from string import ascii_lowercase
from typing import Any
from unittest.mock import Mock

import psutil
import pytest
import torch

from core.errors import ResourceError
from core.kind import register
from core.kinds import KINDS
from core.models.taggers import load_tagger
from core.projects import removals, runs
from core.projects.home import store
from core.runs import Run, launch
from core.tagging import view as training
from tests.bias.test_difficulty import QUICK, planted
from tests.conftest import ROOT, Seal
from tests.fork_server import ForkServer
from tests.homes import project_in
from tests.pretraining.test_pretrain import TEXTS
from tests.training.test_finetune import labelled
from tests.waiting import WAIT_SECONDS, until, within

MODULE = "tests.runs.training_worker"
Options = dict[str, Any]


@pytest.fixture
def finetune(seal: Seal) -> Options:
    """Options of a tagger with 60 steps per epoch."""
    parts = (seal(labelled(n, seed), f"l{seed}", labelled=True) for n, seed in ((60, 1), (12, 2), (12, 3)))
    train, dev, test = (part.fingerprint for part in parts)
    small = {"init": "tiny", "epochs": 4, "batch_size": 1, "seeds": (1,), "precision": "fp32"}
    return {"train": train, "dev": dev, "test": (test,), "learning_rate": 1e-3, "head_learning_rate": 1e-2, **small}


@pytest.fixture
def pretrain(seal: Seal) -> Options:
    """Options of a pre-training with 57 steps per epoch."""
    return {"corpora": (seal(TEXTS, "T").fingerprint,), "init": "tiny", "epochs": 3, "batch_size": 2}


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """Kill workers that a failed test left running."""
    yield
    for run in store().list():
        if worker := run.worker():
            worker.signal(SIGKILL)


def finished(kind: str, options: Options) -> Run:
    """Start or resume a run in its own process, because earlier work of this process may have changed torch's kernels."""
    run = begin(kind, options)
    until(lambda: not run.state().active)
    assert run.state().state == "succeeded", run.log_tail()
    return run


def undisturbed(kind: str, options: Options) -> tuple[Options, str]:
    """Train without a disturbance; return the result and the hash of the weights, and remove the run."""
    found = comparable(finished(kind, options))
    removals.remove_run(runs.listed(kind)[0].id)
    return found


def comparable(run: Run) -> tuple[Options, str]:
    """Return the result without times and names, and the hash of the weights."""
    result = {name: value for name, value in run.result().items() if name not in ("model", "seconds")}
    result.pop("tokens_per_second", None)
    return result, sha256((run.artifacts / "model" / "model.safetensors").read_bytes()).hexdigest()


def begin(kind: str, options: Options) -> Run:
    recipe = KINDS[kind]
    run = register(recipe, recipe.config.parse(options), store())
    launch.start(run, module=MODULE)
    return run


def kill(run: Run) -> None:
    worker = run.worker()
    assert worker
    worker.signal(SIGKILL)
    until(lambda: not run.state().active)
    assert run.state().state == "interrupted"


def killed_within_an_epoch(run: Run, steps: int, after: int = 0) -> int:
    """Kill a run after a checkpoint within the second or a later epoch; return the step of this checkpoint."""
    saved: list[int] = []

    def in_the_middle() -> bool:
        saved[:] = [event.data["step"] or 0 for event in run.events(after)[0] if event.kind == "checkpoint"]
        return bool(saved) and saved[-1] > steps and 3 < saved[-1] % steps < 40

    until(in_the_middle, pause=0.005)
    kill(run)
    return saved[-1]


@pytest.fixture
def forked(fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function; after its call, workers are forked from a process that has done their imports."""
    return partial(monkeypatch.setattr, "core.runs.launch.subprocess.Popen", fork_server.begin)


def test_a_tagger_stopped_and_then_killed_equals_the_undisturbed_one(
    finetune: Options, forked: Callable[[], None]
) -> None:
    expected = undisturbed("finetune", finetune)
    forked()
    run = begin("finetune", finetune)
    until(lambda: "dev_f1@1" in run.state().metrics)
    worker = run.worker()
    assert worker
    leader = psutil.Process(worker.pid)
    members = [leader, *leader.children(recursive=True)]
    with within(15):
        assert launch.stop(run).state == "cancelled"
        _, left = psutil.wait_procs(members, timeout=WAIT_SECONDS)
    assert not left
    assert load_tagger(run.artifacts / "model").predict(labelled(3, 4))
    assert any("is kept in" in note for note in run.state().notes)

    so_far = run.events()[1]
    launch.start(run, module=MODULE)
    killed_within_an_epoch(run, 60, so_far)
    resumed = finished("finetune", finetune)
    assert (resumed.id, run.state().attempts) == (run.id, 3)
    assert comparable(resumed) == expected


def test_an_encoder_killed_within_an_epoch_equals_the_undisturbed_one(
    pretrain: Options, forked: Callable[[], None]
) -> None:
    expected = undisturbed("pretrain", pretrain)
    forked()
    run = begin("pretrain", pretrain)
    step, so_far = killed_within_an_epoch(run, 57), run.events()[1]
    resumed = finished("pretrain", pretrain)
    assert resumed.id == run.id
    assert comparable(resumed) == expected
    since = [event.data for event in run.events(so_far)[0] if event.kind == "metric"]
    assert (
        min(data["step"] or 0 for data in since if data["name"] == "loss") > step
    )  # it did not start from the beginning
    assert not list(run.checkpoints.iterdir())


@pytest.mark.parametrize("kind", ["pretrain", "finetune"])
def test_out_of_memory_is_a_clear_error_and_offers_a_smaller_training(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: Options = request.getfixturevalue(kind) | {"batch_size": 8}
    place = {"pretrain": "core.models.mlm.MaskedLM.logits", "finetune": "core.models.taggers.EncoderTagger.emissions"}
    full = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
    broken = NotImplementedError("an illegal memory access was encountered")
    words = r"^batch_size 8: memory ran out; set accumulation to 2, which cuts"
    cases = ((broken, NotImplementedError, "illegal"), (full, ResourceError, words))
    for error, raised, match in cases[kind == "pretrain" :]:
        with monkeypatch.context() as patch:
            patch.setattr(place[kind], Mock(side_effect=error))
            with pytest.raises(raised, match=match):
                runs.execute(kind, options)
        (run,) = runs.listed(kind)
        assert run.state().out_of_memory == (error is full)
    smaller = training.halved(run.id)
    assert smaller is not None
    assert smaller[1]["batch_size"] == 8
    assert runs.execute(*smaller).manifest.config["accumulation"] == 2


def test_a_difficulty_run_killed_within_a_fold_equals_the_undisturbed_one(
    seal: Seal, forked: Callable[[], None]
) -> None:
    corpus = seal(planted(40, {"A": ("a", "xyz"), "B": ("b", "xyz")}), labelled=True)
    options = {**QUICK, "train": corpus.fingerprint, "batch_size": 2, "context_epochs": 4, "entity_epochs": 4}
    expected_run = finished("difficulty", options)
    expected, table = (
        {**expected_run.result(), "seconds": 0},
        (expected_run.artifacts / "mentions.parquet").read_bytes(),
    )
    removals.remove_run(expected_run.id)

    def chunks() -> dict[str, int]:
        return {path.name: path.stat().st_mtime_ns for path in run.chunks.glob("*.npz")}

    forked()
    run = begin("difficulty", options)
    until(chunks)
    kill(run)
    there = chunks()
    assert 0 < len(there) < 4
    launch.start(run)
    until(lambda: not run.state().active)
    assert run.state().state == "succeeded", run.log_tail()
    assert len(chunks()) == 4
    assert there.items() <= chunks().items()  # no finished chunk was computed again
    assert {**run.result(), "seconds": 0} == expected
    assert (run.artifacts / "mentions.parquet").read_bytes() == table


def select(home: Path, folder: Path, fork_server: ForkServer | None = None, kill_after: float | None = None) -> bytes:
    """Select once on the command line; return the bytes of S_C, or b"" if the process was killed.

    fork_server: forks the process. kill_after: kill the process once the runs have written this many arrays.
    """
    output = folder / f"{home.name}.jsonl"
    corpora = ["--task", str(folder / "task.txt"), "--domain", str(folder / "domain.txt"), "--encoder", "tiny"]
    words = [sys.executable, "-m", "core", "--home", str(home), "select", *corpora, "--strategy", "knn"]
    words += ["--budget", "5%", "--output", str(output), "--json"]
    with (folder / "said").open("wb") as said:
        process = (fork_server.begin if fork_server else subprocess.Popen)(words, cwd=ROOT, stdout=said, stderr=said)
    deadline = time.monotonic() + 300
    while kill_after is not None and process.poll() is None and time.monotonic() < deadline:
        if sum(1 for path in project_in(home).glob("runs/*/*/*") if path.suffix == ".npy") >= kill_after:
            process.send_signal(SIGKILL)
            break
        time.sleep(0.005)
    status = process.wait(timeout=300)
    if status == -SIGKILL:
        return b""
    assert status == 0, (folder / "said").read_text()
    return output.read_bytes()


def test_a_selection_killed_and_resumed_equals_the_undisturbed_one(tmp_path: Path, fork_server: ForkServer) -> None:
    """D_C has two embedding chunks of words with few pieces, which `tiny` embeds in seconds."""
    draw, words = random.Random(0), ["".join(two) for two in product(ascii_lowercase[:20], repeat=2)]
    for name, n in (("task", 50), ("domain", 9_000)):
        lines = (" ".join(draw.choices(words, k=draw.randint(6, 14))) for _ in range(n))
        (tmp_path / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
    undisturbed = select(tmp_path / "undisturbed", tmp_path)
    assert undisturbed.count(b"\n") == 450
    disturbed = tmp_path / "disturbed"
    kills = [select(disturbed, tmp_path, fork_server, kill_after=made) for made in (1, 3)]
    assert b"" in kills  # at least one attempt was really killed
    assert select(disturbed, tmp_path, fork_server) == undisturbed
