"""The device of a run, and the processes of a run under torchrun.

A run computes on a GPU that no other run uses, else on the CPU, and records the device. Under torchrun the first
process owns the run: only this process holds the run's lock and writes its events and result. It announces the run's id
in torchrun's store. The other processes wait for this id and read the same corpora. Each process then computes its
share of every step, or trains some of the seeds.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from core import cards
from core.errors import Cancelled, ResourceError, WinnowError, memory_ran_out
from core.files import write_atomic
from core.kind import Job, Kind, work_of
from core.reporter import Silent
from core.runs.context import CHECK_SECONDS
from core.runs.events import OUT_OF_MEMORY
from core.runs.run import Run
from core.runs.shared import device_lock
from core.runs.store import RunStore

if TYPE_CHECKING:
    import torch
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    from core.models.devices import Precision

PATIENCE = timedelta(days=1)
_KEY = "winnow run"
_announced: set[str] = set()


@contextmanager
def on_device(job: Job, precision: "Precision" = "auto", *, alone: bool = True) -> Iterator["torch.device"]:
    """Yield a device for the work within this context, and release its memory afterwards.

    Load models only inside the context, so that nothing stays on the GPU. A process locks the first free GPU, and later
    contexts use the same one. alone: True to lock the CPU if the run computes on it, as trainings do. Errors:
    ResourceError if the device of `--device` is missing.
    """
    from core.models import devices
    from core.models.devices import prepare_attention, release_memory

    with ExitStack() as stack:
        device = _taken(job, stack)
        if device.type == "cpu" and alone and not rank():  # the first process's lock is for the whole run
            stack.enter_context(device_lock(job.home, cards.places(cards.processor_lock()), job.context))
        if device.type == "cuda":
            prepare_attention()
        words = devices.in_words(device, devices.pick_dtype(precision, device, frozen=not alone))
        job.context.runs_on(words, devices.name_of(device))
        if reason := devices.hindrance():
            job.context.note(reason)
        release_memory()  # also resets the record of peak GPU memory
        try:
            yield device
        finally:
            release_memory()


def _taken(job: Job, stack: ExitStack) -> "torch.device":
    """Return a locked GPU, or the CPU without a lock. stack: holds the lock."""
    from core.models import devices
    from core.models.devices import hindrance, pick_device

    dealt = "LOCAL_RANK" in os.environ  # set by torchrun, which assigns GPUs by rank
    free = _dealt(cards.usable()) if dealt else cards.usable()
    if not free:
        device = pick_device()
        if device.type == "cuda":  # torch finds a GPU that the driver does not list
            stack.enter_context(device_lock(job.home, cards.places(devices.lock_of(device)), job.context))
        else:
            cards.check()
        return device
    with ExitStack() as held:
        # List the first place of every GPU, then the second places, so that processes spread over the GPUs.
        places = [place for row in zip(*(cards.places(card.lock) for card in free), strict=True) for place in row]
        name = held.enter_context(device_lock(job.home, places, job.context))
        if not dealt and len(cards.visible()) > 1:
            # Hide the other GPUs, so that torch and the Trainer call the locked one cuda:0.
            cards.keep_to(next(card for card in free if name in cards.places(card.lock)))
        device = pick_device()
        if device.type == "cuda":
            stack.enter_context(held.pop_all())
        elif cards.asked() != "auto":
            raise ResourceError(f"device: {cards.asked()} is not available. {hindrance()}")
    return device


def _dealt(usable: tuple[cards.Card, ...]) -> tuple[cards.Card, ...]:
    """Return the GPU of this process's local rank; none if the run computes on the CPU.

    Errors: ResourceError if this process has no usable GPU but other processes have one.
    """
    place = int(os.environ["LOCAL_RANK"])
    own = tuple(card for card in cards.visible()[place : place + 1] if card in usable)
    if usable and not own:
        raise ResourceError(
            f"torchrun: process {place} needs GPU number {place}, which is not available; start as many processes as "
            f"there are GPUs, and choose the GPUs by {cards.VISIBLE}, not by --device."
        )
    return own


def worker_device(precision: "Precision" = "auto") -> tuple[str, str]:
    """Return a description of a worker process's device and precision, and the device's name.

    The cluster engine (Ray) has assigned the device to the worker.
    """
    from core.models import devices
    from core.models.devices import prepare_attention

    device = devices.pick_device()
    if device.type == "cuda":
        prepare_attention()
    words = devices.in_words(device, devices.pick_dtype(precision, device, frozen=True))
    return words, devices.name_of(device)


def rank() -> int:
    """Return this process's rank under torchrun; 0 if it is the only process."""
    return int(os.environ.get("RANK", "0"))


def announce(run_id: str) -> None:
    """Announce the run that the other processes join. run_id: "" if the run has finished, so that no process joins."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not rank() and not _announced:
        _announced.add(run_id)
        _store().set(_KEY, run_id)


def train_along(home: Path, kinds: Mapping[str, Kind]) -> None:
    """Compute this process's share of the run that the first process of torchrun announces."""
    if not (run_id := _store().get(_KEY).decode()):
        return
    run = RunStore(home).get(run_id)
    try:
        work_of(run, kinds)(_SilentContext(run))  # type: ignore[arg-type]
    except Cancelled:
        raise
    except Exception as error:
        # The first process reads this file and fails with the same message. If the first process has already ended,
        # write nothing, because its end has caused this error.
        if run.lock.held():
            with suppress(OSError):
                write_atomic(run.rank_error_file, _in_words(error).encode("utf-8", "replace"))
        raise


def _in_words(error: Exception) -> str:
    """Return an error's description for the run's log. Leave out the message of a bug, which may quote a sentence."""
    if isinstance(error, WinnowError):
        return str(error)
    if memory_ran_out(error):
        return f"{OUT_OF_MEMORY}; choose smaller batches or a smaller model."
    return (
        f"this is a bug in Winnow, {type(error).__name__}; the traceback is in the output of the process that failed."
    )


class _SilentContext(Silent):
    """Run context of a process other than the first; it reports nothing."""

    is_child = False

    def __init__(self, run: Run) -> None:
        self.run, self.root, self._checked = run, run, time.monotonic()

    def check(self) -> None:
        """Raise Cancelled if the first process has ended, because no result would be stored."""
        if (now := time.monotonic()) - self._checked > CHECK_SECONDS:
            self._checked = now
            if not self.run.lock.held() and self.run.state().state != "succeeded":
                raise Cancelled(f"run {self.run.id}: its first process has ended.")

    def checkpoint(self, data: Mapping[str, object]) -> None: ...

    def artifact(self, name: str, path: Path) -> None: ...

    def emit(self, kind: str, data: Mapping[str, object]) -> None: ...

    def child(self, run: Run) -> None: ...

    def runs_on(self, device: str, machine: str) -> None: ...

    def waiting(self, run_id: str | None) -> None: ...


def _store() -> "TCPStore":
    """Return torchrun's own key-value store, which outlives every process."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # public by its documentation

    # The timeout is long because the first process may read files for an hour, or wait for a GPU, before it announces.
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return TCPStore(*address, is_master=False, timeout=PATIENCE)
