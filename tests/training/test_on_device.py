"""The device of a run: choice, locks, refusal, and notes; memory freed after a training."""

import gc
import os
import platform
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from core import cards
from core.bias import difficulty
from core.encoders import embed, rank, transfer
from core.errors import Cancelled, ResourceError
from core.kind import Job
from core.kinds import KINDS
from core.models import bilstm, classifier, devices, encoder, mlm, taggers
from core.models.devices import release_memory
from core.models.tagger import Tagger
from core.pretraining import pretrain
from core.project_list import shared_home
from core.projects import runs
from core.reporter import Silent
from core.runs.context import RunContext
from core.runs.lock import Lock
from core.runs.store import Run, RunStore
from core.runs.worker import execute
from core.selection import score
from core.shown import count
from core.tagging import calibrate, finetune, predict
from core.tagging.estimate import Speeds
from core.training import pretrain as mlm_training
from core.training.mlm_settings import Settings as MlmSettings
from core.training.on_device import PATIENCE, _store, on_device
from core.training.settings import TaggerSettings
from tests.conftest import Seal
from tests.experiment.test_experiment import fill
from tests.fake_cards import H100, T4, V100, Driver, seen_by_torch
from tests.homes import done, executed
from tests.tagging.test_finetune import FAST
from tests.training.test_finetune import labelled

Work = Callable[[Job], Any]


@pytest.fixture
def run_of(home: Path) -> Callable[[Work], Run]:
    """`run_of(work)` executes a run that does `work`."""

    def made(work: Work) -> Run:
        run = RunStore(home).create("embed", {}, {}, seed=None, versions={}, key=str(work))
        execute(run, lambda context: work(Job(home, context, KINDS)) or {})
        return run

    return made


def lock_of(home: Path, row: tuple[str, ...]) -> Lock:
    return Lock(shared_home(home) / "locks" / f"{row[0].lower()}.lock")


def test_run_waits_for_the_first_free_gpu_and_names_it(
    home: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch, run_of: Callable[[Work], Run]
) -> None:
    driver.shows(H100, T4)
    seen_by_torch(monkeypatch)
    first, second = (lock_of(home, row) for row in (H100, T4))
    assert first.acquire("another-run")
    assert second.acquire("another-run")
    waited, both, masks = list[str | None](), list[bool](), list[bool]()

    def waiting(context: RunContext, run_id: str | None) -> None:
        waited.append(run_id)
        second.release()

    monkeypatch.setattr(RunContext, "waiting", waiting)
    monkeypatch.setattr(devices, "prepare_attention", lambda: masks.append(True))

    def work(job: Job) -> None:
        with on_device(job) as device:
            both.extend(lock_of(home, row).held() for row in (H100, T4))
            assert str(device) == "cuda:0"
            assert os.environ["CUDA_VISIBLE_DEVICES"] == T4[0]

    try:
        state = run_of(work).state()
        assert waited == ["another-run", None]
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
        run_of(work)  # the second card is free now
    finally:
        first.release()
    assert waited == ["another-run", None]
    assert both == [True] * 4
    assert masks  # reading masks would wait for the GPU at every batch
    assert not second.held()
    assert state.device == "cuda:0 NVIDIA H100, bf16"  # the name that torch gives to the visible card
    assert state.notes == ()
    run_of(lambda job: on_device(job).__enter__() and None)  # a process keeps its first GPU
    assert os.environ["CUDA_VISIBLE_DEVICES"] == T4[0]


def test_processes_of_an_experiment_spread_over_the_gpus(
    home: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch, run_of: Callable[[Work], Run]
) -> None:
    driver.shows(H100, T4)
    seen_by_torch(monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # restored after the test
    monkeypatch.setenv(cards.SHARED, "3")
    used, held = list[str](), list[Lock]()

    def work(job: Job) -> None:
        with on_device(job):
            used.append(os.environ["CUDA_VISIBLE_DEVICES"])
            held.extend(lock for lock in places if lock.held() and lock not in held)

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    places = [
        Lock(shared_home(home) / "locks" / f"{name}.lock")
        for card in cards.usable()
        for name in cards.places(card.lock)
    ]
    try:
        for _ in range(5):
            cards.forget()  # each process sees both
            run_of(work)
            assert held[-1].acquire("another-run")
            assert cards.for_workers() == {"CUDA_VISIBLE_DEVICES": f"{H100[0]},{T4[0]}"}
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    finally:
        for lock in held:
            lock.release()
    assert used == [H100[0], T4[0], H100[0], T4[0], H100[0]]


def test_every_process_takes_its_own_gpu_or_fails(
    home: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch, run_of: Callable[[Work], Run]
) -> None:
    """A process on the CPU, or on another process's GPU, would delay all processes."""
    driver.shows(H100, T4)
    seen_by_torch(monkeypatch, ("NVIDIA H100", "Tesla T4"))
    monkeypatch.setenv("LOCAL_RANK", "1")

    def work(job: Job) -> None:
        with on_device(job) as device:
            assert str(device) == "cuda:1"
            assert [lock_of(home, row).held() for row in (H100, T4)] == [False, True]
            assert "CUDA_VISIBLE_DEVICES" not in os.environ  # processes communicate through all GPUs

    assert run_of(work).state().device == "cuda:1 Tesla T4, bf16"
    for number, choice in ("2", "auto"), ("0", "cuda:1"):
        monkeypatch.setenv("LOCAL_RANK", number)
        monkeypatch.setenv("WINNOW_DEVICE", choice)
        words = f"process {number} needs GPU number {number}, which is not"
        with pytest.raises(ResourceError, match=words):
            run_of(lambda job: on_device(job).__enter__() and None)


def test_gpu_whose_first_operation_fails_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch lists even a GPU that is too old for its build."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    words = "CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be"

    def ones(*size: int, device: torch.device) -> torch.Tensor:
        raise RuntimeError(words)

    monkeypatch.setattr(torch, "ones", ones)
    monkeypatch.setattr(devices, "failure", devices.failure.__wrapped__)
    assert devices.pick_device() == torch.device("cpu")
    assert devices.failure(torch.device("cuda", 0)) == words.partition("\n")[0]
    words = "CUDA out of memory. Tried to allocate 2 MiB"  # a full GPU can be used later
    assert devices.pick_device() == torch.device("cuda", 0)


def test_run_notes_why_it_uses_the_cpu(
    home: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch, run_of: Callable[[Work], Run]
) -> None:
    """Torch may be built for CPUs only, or the GPU may be too old."""
    driver.shows(H100, torch=None)

    def work(job: Job) -> None:
        with on_device(job) as device:
            assert str(device) == "cpu"
            assert Lock(shared_home(home) / "locks" / f"{cards.processor_lock()}.lock").held()
            assert not lock_of(home, H100).held()

    state = run_of(work).state()
    assert (state.device or "").startswith("cpu (")
    assert state.notes == (cards.hindrance(),)
    driver.shows((*V100[:3], "not told"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(devices, "failure", lambda card: "CUDA error: no kernel image is available for execution.")
    (note,) = run_of(work).state().notes
    assert note.startswith(
        "This machine has a GPU (Tesla V100), but torch cannot use it: CUDA error: no kernel image is"
    )
    monkeypatch.setenv("WINNOW_DEVICE", "cuda")
    with pytest.raises(ResourceError, match=r"cuda is not available\. This machine has a GPU"):
        run_of(work)


def test_lock_is_named_after_the_gpu_or_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """With CUDA_VISIBLE_DEVICES=3 the fourth GPU is cuda:0 too, and several machines may share a home."""
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda card: SimpleNamespace(uuid="4d3bd9ea-0f"))
    card = cards.Card(uuid="GPU-4d3bd9ea-0f", name="", driver="", capability=None)
    assert devices.lock_of(torch.device("cuda", 0)) == card.lock == "gpu-4d3bd9ea-0f"  # with and without a driver
    here = cards.processor_lock()
    monkeypatch.setattr("socket.gethostname", lambda: "Ward_3.clinic.example")
    assert cards.processor_lock() == "cpu-ward-3-clinic-example" != here


def test_run_can_ask_for_the_cpu(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, run_of: Callable[[Work], Run]
) -> None:
    driver.shows(H100)
    seen_by_torch(monkeypatch)
    monkeypatch.setenv("WINNOW_DEVICE", "cpu")
    state = run_of(lambda job: on_device(job, "fp32").__enter__() and None).state()
    assert state.device == f"cpu ({count(torch.get_num_threads(), 'thread')}), fp32"
    assert state.notes == ()
    seen_by_torch(monkeypatch, ["Tesla T4"])
    words = devices.in_words(torch.device("cuda"), torch.float16)
    assert words == "cuda:0 Tesla T4, fp16 (no bf16 support, so training uses fp32)"
    driver.shows(V100, T4)  # torch would name the V100 cuda:0, which it cannot use
    monkeypatch.setenv("WINNOW_DEVICE", "auto")
    seen_by_torch(monkeypatch)
    run_of(lambda job: on_device(job).__enter__() and None)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == T4[0]


def test_no_model_uses_a_device_before_the_run_locks_it(
    home: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise two runs would share a GPU's memory while one of them waits for the other."""
    fill(home)
    within, readers_seen = list[bool](), Counter[str]()

    @contextmanager
    def watched(*given: Any, **options: Any) -> Iterator[torch.device]:
        with on_device(*given, **options) as device:
            within.append(True)
            yield device
            within.pop()

    def pick_device(name: str = "auto") -> torch.device:
        if name != "cpu":
            assert within, "a device is taken before it is this run's"
            readers_seen[sys._getframe(1).f_globals["__name__"]] += 1
        return torch.device("cpu")

    def announce(run_id: str) -> None:
        assert within, "other processes go on before the first has its card, and wait for it in vain"

    for module in (calibrate, embed, finetune, predict, pretrain, rank, score, difficulty):
        monkeypatch.setattr(module, "on_device", watched)
    for module in (bilstm, classifier, encoder, mlm, taggers, transfer):
        monkeypatch.setattr(module, "pick_device", pick_device)
    monkeypatch.setattr(pretrain, "announce", announce)
    monkeypatch.setattr(calibrate, "SECONDS", 0.0)
    two_types = seal(labelled(24, 1), "two-types", labelled=True).fingerprint
    given = {"task": "task", "domain": "domain", "encoder": "tiny", "budget": "10"}
    tuned: dict[str, Any] = {**FAST, "train": "train", "dev": "dev", "seeds": (1,), "epochs": 1}
    few = {"encoder": "tiny", "folds": 2, "context_epochs": 1, "entity_epochs": 1}
    for kind, options in (
        ("finetune", tuned),
        ("select", {**given, "strategy": "classifier"}),
        ("select", {**given, "strategy": "pseudo-perplexity"}),
        ("evaluate", {"model": "", "test": "test"}),
        ("predict", {"model": "", "corpus": "test"}),
        ("calibrate", {"encoder": "tiny", "task": "task", "train": "train"}),
        ("difficulty", {"train": two_types, **few}),
        ("rank", {"train": two_types, "dev": two_types, "encoders": ("tiny",)}),
    ):
        done(kind, {**options, "model": runs.listed("finetune")[-1].id} if "model" in options else options)
    readers = ("models.classifier", "models.encoder", "models.mlm", "models.taggers", "encoders.transfer")
    assert readers_seen.keys() == {f"core.{name}" for name in readers}


def test_memory_is_freed_after_each_seed(seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tagger and its Trainer refer to each other, so only garbage collection frees the weights."""
    train, dev = (seal(labelled(n, seed), f"l{seed}", labelled=True) for n, seed in ((24, 1), (12, 2)))
    taggers: list[weakref.ref[Tagger]] = []
    alive: list[int] = []
    original_init = Tagger.__init__

    def init(self: Tagger, *given: Any, **options: Any) -> None:
        alive.append(sum(reference() is not None for reference in taggers))
        taggers.append(weakref.ref(self))
        original_init(self, *given, **options)

    monkeypatch.setattr(Tagger, "__init__", init)
    options = {**FAST, "train": train.fingerprint, "dev": dev.fingerprint, "seeds": (1, 2), "epochs": 1}
    gc.disable()
    try:
        tuned = done("finetune", options)
    finally:
        gc.enable()
    assert alive == [0, 0]
    assert taggers[-1]() is None
    state = executed("predict", model=tuned, corpus=dev.fingerprint).state()
    assert (state.device or "").startswith("cpu (")  # the device of its child run
    assert state.machine == cards.processor()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="The call that frees memory belongs to glibc.")
def test_release_memory_frees_host_and_gpu_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of different sizes leave holes in memory, which malloc does not return to the system."""
    held = [b"x" * 100_000 for _ in range(2_000)]
    del held[::2], held[::2], held[::2]
    before = psutil.Process().memory_info().rss
    release_memory()
    assert before - psutil.Process().memory_info().rss > 100_000_000
    assert held
    called: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    for name in ("empty_cache", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda name=name: called.append(name))
    release_memory()
    assert called == ["empty_cache", "reset_peak_memory_stats"]


def test_speed_on_another_device_is_not_used_as_an_estimate(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    driver.shows()
    run = RunStore(home).create("finetune", {"init": "tiny"}, {}, seed=None, versions={}, key="k")

    def work(context: RunContext) -> dict[str, Any]:
        context.runs_on("cuda:0 NVIDIA H100, bf16", "NVIDIA H100")
        context.metric("tokens_per_second@1", 90_000.0, 3)
        return {}

    execute(run, work)
    assert Speeds(RunStore(home)).of(TaggerSettings(), "tiny", ()) is None
    timed = calibrate.CalibrateConfig(encoder="tiny", task="t", train="l")
    assert timed.settled().machine == cards.processor()
    driver.shows(H100)
    known = Speeds(RunStore(home)).of(TaggerSettings(), "tiny", ())
    assert known
    assert known.speed.b == 1 / 90_000
    assert timed.settled().machine == "NVIDIA H100"


def test_processes_wait_long_enough_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes meet once each has its GPU, which another run may hold for a day."""
    patience: list[timedelta] = []

    def meet(cpu: bool, timeout: timedelta) -> None:
        patience.append(timeout)
        raise Cancelled("enough seen")

    monkeypatch.setattr(mlm_training, "PartialState", meet)
    monkeypatch.setenv("WORLD_SIZE", "2")
    lm, settings = mlm.MaskedLM.load("tiny", device="cpu"), MlmSettings(epochs=1, batch_size=2, learning_rate=1e-4)
    with pytest.raises(Cancelled):
        mlm_training.pretrain(lm, SimpleNamespace(), settings, folder=tmp_path, report=Silent())  # type: ignore[arg-type]
    assert patience == [PATIENCE]
    first = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(first.port))
    assert _store().timeout == PATIENCE  # type: ignore[attr-defined]  # torch's types lack it
