"""The device that a run computes on: a card that no other run has, else the processor; and the run says which."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from core import cards
from core.errors import ResourceError
from core.kind import Job
from core.runs.shared import device_lock
from core.training.ranks import rank

if TYPE_CHECKING:
    import torch

    from core.models.devices import Precision


@contextmanager
def on_device(job: Job, precision: "Precision" = "auto", *, alone: bool = True) -> Iterator["torch.device"]:
    """Have a device for the work within, all of which is loaded within: what it leaves on a card is given back.

    Of several cards a process takes the first that is free, and keeps to it. alone: a processor too is one run's, as
    for what is trained.
    Errors: ResourceError where `--device` asks for what is not here.
    """
    from core.models import devices
    from core.models.memory import release_memory
    from core.models.transfer import without_reading_masks

    with ExitStack() as stack:
        device = _taken(job, stack)
        if device.type == "cpu" and alone and not rank():  # of several processes on a processor the first speaks
            stack.enter_context(device_lock(job.home, cards.processor_lock(), job.context))
        if device.type == "cuda":
            without_reading_masks()
        words = devices.in_words(device, devices.pick_dtype(precision, device, frozen=not alone))
        job.context.runs_on(words, devices.name_of(device))
        if reason := devices.hindrance():
            job.context.note(reason)
        release_memory()  # the most that was taken counts from here
        try:
            yield device
        finally:
            release_memory()


def _taken(job: Job, stack: ExitStack) -> "torch.device":
    """A card under its lock, or the processor, not yet under one."""
    from core.models import devices
    from core.models.devices import hindrance, pick_device

    dealt = "LOCAL_RANK" in os.environ  # by torchrun
    free = _dealt(cards.usable()) if dealt else cards.usable()
    if not free:
        device = pick_device()
        if device.type == "cuda":  # of a driver that cannot be asked
            stack.enter_context(device_lock(job.home, devices.lock_of(device), job.context))
        else:
            cards.check()
        return device
    with ExitStack() as held:
        name = held.enter_context(device_lock(job.home, [card.lock for card in free], job.context))
        if not dealt and len(cards.visible()) > 1:
            # Before torch looks for cards, which it does once; from then on this one is cuda:0, for the Trainer too,
            # also where the first is one that torch cannot use.
            os.environ[cards.VISIBLE] = next(card.uuid for card in free if card.lock == name)
            os.environ[cards.DEVICE] = "cuda" if cards.asked().startswith("cuda") else "auto"
        device = pick_device()
        if device.type == "cuda":
            stack.enter_context(held.pop_all())
        elif cards.asked() != "auto":
            raise ResourceError(f"device: {cards.asked()} is not to be had. {hindrance()}")
    return device


def _dealt(usable: tuple[cards.Card, ...]) -> tuple[cards.Card, ...]:
    """The card of torchrun's process of this number; none on a processor.

    Errors: ResourceError for a process without a card beside others that have one.
    """
    place = int(os.environ["LOCAL_RANK"])
    own = tuple(card for card in cards.visible()[place : place + 1] if card in usable)
    if usable and not own:
        raise ResourceError(
            f"torchrun: process {place} is to take the GPU of that number, which is not to be had; start as many"
            f" processes as there are GPUs, and choose these by {cards.VISIBLE}, not by --device."
        )
    return own


def worker_device(precision: "Precision" = "auto") -> tuple[str, str]:
    """Return the device of a worker process, in words, and its name; the engine has given it one for itself."""
    from core.models import devices
    from core.models.transfer import without_reading_masks

    device = devices.pick_device()
    if device.type == "cuda":
        without_reading_masks()
    words = devices.in_words(device, devices.pick_dtype(precision, device, frozen=True))
    return words, devices.name_of(device)
