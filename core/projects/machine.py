"""What this machine has. Of its cards what `core.cards` tells; torch is asked by `doctor` alone, in another process."""

import os
import platform
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from time import monotonic

import psutil

from core import cards
from core.cards import Card, Load
from core.cards import hindrance as hindrance
from core.errors import ConfigError
from core.heap import few_arenas as few_arenas
from core.projects.home import machine_home
from core.runs import executors
from core.runs.executors import share
from core.runs.versions import versions
from core.runs.where import LOCAL, MIXED, ON, SHARE, Where

FRESH = 5.0  # seconds for which a card's free memory is not asked again: without NVIDIA's library a process is
_ROOT = Path(__file__).resolve().parents[2]


def doctor() -> dict[str, object]:
    """Versions, cores, memory, disk, and the device that torch would take; loads no model."""
    return {
        **versions(),
        "machine": platform.machine(),
        "cores": cores(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "device": _device_of_torch(),
        "home": str(machine_home()),
        "disk_free_gb": round(disk()[0] / 2**30, 1),
    }


def memory() -> tuple[float, float]:
    """Bytes `(free, in all)` where training computes: of the card that it would take, else of the machine."""
    if (used := card()) and (load := _load(used, int(monotonic() / FRESH))):
        return float(load.free), float(load.total)
    ram = psutil.virtual_memory()
    return float(ram.available), float(ram.total)


def device() -> str:
    """ "gpu" where training can use one, else "cpu"."""
    return "gpu" if card() else "cpu"


def card() -> Card | None:
    """The first card that training may take; None: it computes on the processor."""
    return next(iter(cards.usable()), None)


def check_device() -> None:
    """Errors: ConfigError, ResourceError where `--device` asks for what is not here."""
    cards.check()


def compute_on(where: str | None) -> None:
    """Have this process and its workers compute where `--on` says. Errors: ConfigError where that is not to be had."""
    if where:
        os.environ[ON] = where
    executors.on()


def take_share(given: str | None) -> None:
    """Have this process be one of several that share the run it is given. Errors: ConfigError for no share."""
    if given:
        os.environ[SHARE] = given
    if share.share() and Where.asked().on != LOCAL:
        raise ConfigError("share: is for processes that share a run without an engine; give --on or --share, not both.")


def allow_mixed(wanted: bool) -> None:
    """Let workers take part that make other bytes than the first of them, where that is wanted."""
    if wanted:
        os.environ[MIXED] = "1"


def n_cards() -> int:
    """Number of cards that training may take."""
    return len(cards.usable())


@lru_cache(maxsize=16)
def _load(card: Card, moment: int) -> Load | None:
    return cards.load(card)


def _device_of_torch() -> str:
    """The device that a run would take, in words, with what keeps it from a card that is here."""
    command, environment = [sys.executable, "-m", "core.models.devices"], dict(os.environ)
    if usable := cards.usable():  # a run is shown these alone too
        environment[cards.VISIBLE] = ",".join(card.uuid for card in usable)
    try:
        asked = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=120, cwd=_ROOT, env=environment
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"torch does not tell ({type(error).__name__})"
    return asked.stdout.strip()


def disk() -> tuple[int, int]:
    """Bytes `(free, in all)` where the home folder lies."""
    machine_home().mkdir(parents=True, exist_ok=True)
    usage = shutil.disk_usage(machine_home())
    return usage.free, usage.total


def cores() -> int:
    """Processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
