"""Trainings in real processes: stopped, or killed in the middle of an epoch, they end as if undisturbed."""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from signal import SIGKILL
from typing import Any

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
from core.runs.data import Data
from core.tagging import training_view as training
from tests.conftest import Seal
from tests.forge import Forge
from tests.patience import PATIENCE, until, within
from tests.recipes.test_pretrain_recipe import TEXTS
from tests.training.test_finetune import labelled

MODULE = "tests.recipes.training_worker"
Options = dict[str, Any]


@pytest.fixture
def finetune(seal: Seal) -> Options:
    """Sixty steps an epoch."""
    train, dev, test = (seal(labelled(n, seed), f"l{seed}", labelled=True) for n, seed in ((60, 1), (12, 2), (12, 3)))
    return {
        "train": train.fingerprint,
        "dev": dev.fingerprint,
        "test": (test.fingerprint,),
        "init": "tiny",
        "epochs": 4,
        "batch_size": 1,
        "learning_rate": 1e-3,
        "head_learning_rate": 1e-2,
        "precision": "fp32",
        "seeds": (1,),
    }


@pytest.fixture
def pretrain(seal: Seal) -> Options:
    """57 steps an epoch."""
    return {"corpora": (seal(TEXTS, "T").fingerprint,), "init": "tiny", "epochs": 3, "batch_size": 2}


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """Ends whatever a failed test has left running."""
    yield
    for run in store().list():
        if worker := run.worker():
            worker.signal(SIGKILL)


def finished(kind: str, options: Options) -> Run:
    """Begun or gone on with in a process of its own: what this one has computed before may choose other kernels."""
    run = begin(kind, options)
    until(lambda: not run.state().active)
    assert run.state().state == "succeeded", run.log_tail()
    return run


def undisturbed(kind: str, options: Options) -> tuple[Options, str]:
    """What the training says in the end, and its weights' hash; the run is gone."""
    found = told(finished(kind, options))
    removals.remove_run(runs.listed(kind)[0].id)
    return found


def told(run: Run) -> tuple[Options, str]:
    """Without what depends on the clock and on the run's name."""
    result = {name: value for name, value in run.result().items() if name not in ("model", "seconds")}
    result.pop("tokens_per_second", None)
    return result, sha256((run.artifacts / "model" / "model.safetensors").read_bytes()).hexdigest()


def begin(kind: str, options: Options) -> Run:
    recipe = KINDS[kind]
    run = register(recipe, recipe.config.parse(options), store())
    launch.start(run, module=MODULE)
    return run


def step_of(data: Data) -> int:
    step = data["step"]
    assert step is not None
    return step


def killed_within_an_epoch(run: Run, steps: int, after: int = 0) -> int:
    """SIGKILL behind a checkpoint within the second epoch or a later one; the step of that checkpoint."""
    saved: list[int] = []

    def in_the_middle() -> bool:
        saved[:] = [step_of(event.data) for event in run.events(after)[0] if event.kind == "checkpoint"]
        return bool(saved) and saved[-1] > steps and 3 < saved[-1] % steps < 40

    until(in_the_middle, pause=0.005)
    worker = run.worker()
    assert worker
    worker.signal(SIGKILL)
    until(lambda: not run.state().active)
    assert run.state().state == "interrupted"
    return saved[-1]


def group(run: Run) -> list[psutil.Process]:
    """The living processes of the session that the worker leads."""
    worker = run.worker()
    assert worker
    leader = psutil.Process(worker.pid)
    return [leader, *leader.children(recursive=True)]


@pytest.fixture
def forked(forge: Forge, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on workers are forked from a process that has done their imports."""
    return partial(monkeypatch.setattr, "core.runs.launch.subprocess.Popen", forge.begin)


def test_a_tagger_stopped_and_then_killed_ends_as_undisturbed(finetune: Options, forked: Callable[[], None]) -> None:
    calm = undisturbed("finetune", finetune)
    forked()
    run = begin("finetune", finetune)
    until(lambda: "dev_f1@1" in run.state().metrics)
    members = group(run)
    with within(15):
        assert launch.stop(run).state == "cancelled"
        _, left = psutil.wait_procs(members, timeout=PATIENCE)
    assert not left
    assert load_tagger(run.artifacts / "model").predict(labelled(3, 4))
    assert any("is kept in" in note for note in run.state().notes)

    so_far = run.events()[1]
    launch.start(run, module=MODULE)
    killed_within_an_epoch(run, 60, so_far)
    resumed = finished("finetune", finetune)
    assert resumed.id == run.id
    assert run.state().attempts == 3
    assert told(resumed) == calm


def test_an_encoder_killed_within_an_epoch_ends_as_undisturbed(pretrain: Options, forked: Callable[[], None]) -> None:
    calm = undisturbed("pretrain", pretrain)
    forked()
    run = begin("pretrain", pretrain)
    step, so_far = killed_within_an_epoch(run, 57), run.events()[1]
    resumed = finished("pretrain", pretrain)
    assert resumed.id == run.id
    assert told(resumed) == calm
    since = [event.data for event in run.events(so_far)[0] if event.kind == "metric"]
    assert min(step_of(data) for data in since if data["name"] == "loss") > step  # went on, and not from the start
    assert not list(run.checkpoints.iterdir())


@pytest.mark.parametrize("kind", ["pretrain", "finetune"])
def test_no_memory_is_a_sentence_and_a_smaller_training(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: Options = request.getfixturevalue(kind) | {"batch_size": 8}

    def full(*given: Any, **kw: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    place = {"pretrain": "core.models.mlm.MaskedLM.logits", "finetune": "core.models.taggers.EncoderTagger.emissions"}
    with monkeypatch.context() as patch:
        patch.setattr(place[kind], full)
        with pytest.raises(ResourceError, match=r"^batch_size 8: memory ran out; set accumulation to 2, which keeps"):
            runs.execute(kind, options)
    (run,) = runs.listed(kind)
    assert run.state().out_of_memory
    smaller = training.halved(run.id)
    assert smaller is not None
    assert smaller[1]["batch_size"] == 8
    assert runs.execute(*smaller).manifest.config["accumulation"] == 2


def test_what_is_no_lack_of_memory_is_not_called_so(finetune: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: Any, **kw: Any) -> None:
        raise NotImplementedError("an illegal memory access was encountered")

    monkeypatch.setattr("core.models.taggers.EncoderTagger.emissions", broken)
    with pytest.raises(NotImplementedError):
        runs.execute("finetune", finetune)
    (run,) = runs.listed("finetune")
    assert not run.state().out_of_memory
