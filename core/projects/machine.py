"""Hardware of this machine and of a cluster, for `doctor` and for pages.

Only `doctor` asks torch, in a separate process. Pages use `core.cards`.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from time import monotonic

import psutil

from core import cards
from core.cards import Card, Load
from core.errors import ConfigError
from core.paths import machine_home
from core.processes import cores
from core.runs.ray_engine import Machine, examine
from core.runs.versions import versions
from core.runs.where import MIXED, ON, checked, uses_ray
from core.shown import count

FRESH = 5.0  # seconds to cache a GPU's free memory; without NVIDIA's library, each query starts a process
_ROOT = Path(__file__).resolve().parents[2]


def doctor() -> dict[str, object]:
    """Return versions, cores, memory, disk, and the device that torch would use. Loads no model."""
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
    """Return (free, total) bytes of memory of the GPU that training would use; without a GPU, of the machine."""
    if (used := card()) and (load := _load(used, int(monotonic() / FRESH))):
        return float(load.free), float(load.total)
    ram = psutil.virtual_memory()
    return float(ram.available), float(ram.total)


def shortage(memory_gb: float, n: int = 1) -> str:
    """Return a sentence that says how much memory is free if n processes need more; "" if they fit.

    memory_gb: memory of all n together, in GB (10^9 bytes). They share the GPUs (`cards.places`).
    """
    loads = [_load(gpu, int(monotonic() / FRESH)) for gpu in cards.of_workers()[:n]]
    free = [float(load.free) for load in loads if load] or [memory()[0]]
    need = memory_gb * 1e9 / n
    most = next((i for i in range(n) if need * (i // len(free) + 1) > free[i % len(free)]), n)
    if most == n:
        return ""
    of = f"Only {sum(free) / 1e9:.1f} GB of {'GPU memory' if card() else 'memory'} are free"
    if n == 1:
        return f"{of}."
    return f"{of}, enough for {count(most, 'step')} at once, not {n}." if most else f"{of}, too little for one step."


def device() -> str:
    """Return "gpu" if training can use a GPU, else "cpu"."""
    return "gpu" if card() else "cpu"


def card() -> Card | None:
    """Return the first GPU that training may use; None if training would use the processor."""
    return next(iter(cards.usable()), None)


def compute_on(where: str | None) -> None:
    """Set where this process and its workers compute. where: value of the option `--on`. Errors: ConfigError."""
    if where:
        os.environ[ON] = where
    checked()


def allow_mixed(wanted: bool) -> None:
    """If `wanted`, accept workers whose results differ in the last digits from those of the first worker."""
    if wanted:
        os.environ[MIXED] = "1"


@lru_cache(maxsize=16)
def _load(card: Card, moment: int) -> Load | None:
    return cards.load(card)


def _device_of_torch() -> str:
    """Describe the device that a run would use. If the run cannot use a GPU of this machine, give the reason."""
    command, environment = [sys.executable, "-m", "core.models.devices"], dict(os.environ)
    if usable := cards.usable():  # show torch the same GPUs that a run would see
        environment[cards.VISIBLE] = ",".join(card.uuid for card in usable)
    try:
        asked = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=120, cwd=_ROOT, env=environment
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"unknown, torch does not answer ({type(error).__name__})"
    return asked.stdout.strip()


def disk() -> tuple[int, int]:
    """Return (free, total) bytes of the disk that holds the home folder."""
    machine_home().mkdir(parents=True, exist_ok=True)
    usage = shutil.disk_usage(machine_home())
    return usage.free, usage.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster, for `doctor --on`. on: value of the option `--on`. machines: nodes of the cluster."""

    on: str
    machines: Sequence[Machine]

    @property
    def bad(self) -> bool:
        """True if Winnow would refuse to compute on this cluster."""
        kinds = {machine.computer for machine in self.machines}
        refused = any(machine.differs or not machine.answers for machine in self.machines)
        return refused or len(kinds) > 1 or not all(machine.guarded for machine in self.machines)

    @property
    def bytes(self) -> str:
        """Phrase that says if results on the cluster would have the same bytes as on this machine, and why."""
        if silent := [machine.name for machine in self.machines if not machine.answers]:
            return f"not known: no answer from {', '.join(silent)}."
        if others := [
            f"{machine.name} has {', '.join(machine.differs)}" for machine in self.machines if machine.differs
        ]:
            return f"would differ, so workers are refused without --mixed: {'; '.join(others)}."
        kinds = sorted({machine.computer for machine in self.machines})
        if len(kinds) > 1:
            return f"would differ in the last digits, so workers are refused without --mixed: {', '.join(kinds)}."
        return "the same: all machines are of one kind and have the same packages. Each run also checks this."

    @property
    def privacy(self) -> list[str]:
        """Sentences about the data that would leave this machine, and about their protection."""
        if self.on == "ray":
            return ["Nothing leaves this machine. While a run is active, Ray opens ports on it, which require a token."]
        open_to = [machine.name for machine in self.machines if machine.answers and not machine.guarded]
        guard = (
            f"{', '.join(open_to)} requires no token, so anybody can run code there. Winnow does not use this cluster."
            if open_to
            else "A token is required, but the traffic is not encrypted: keep the cluster on a separate network."
        )
        return [
            "Sentences are sent to these machines, and numbers are sent back, without encryption. Winnow stores no "
            "sentence there.",
            guard,
            "Switch off Ray's usage reports when you start the cluster (RAY_USAGE_STATS_ENABLED=0 before ray start). "
            "Winnow switches them off for its own process only.",
        ]

    @property
    def home(self) -> str:
        """Phrase that says which machines can read the home folder. The others run no steps of an experiment."""
        if self.on == "ray" or len(self.machines) < 2:
            return "on this machine."
        blind = [machine.name for machine in self.machines if not machine.sees_home]
        if blind:
            return (
                f"not visible on {', '.join(blind)}. These machines can use only models that they have at the same "
                "path (for example the encoder that ships with Winnow), and they run no steps of an experiment."
            )
        return "visible on all machines, so each of them also runs steps of an experiment."

    def as_json(self) -> dict[str, object]:
        """Return the cluster and the phrases about it as JSON values, for `--json`."""
        machines = [asdict(machine) for machine in self.machines]
        return {"on": self.on, "machines": machines, "bytes": self.bytes, "privacy": self.privacy, "home": self.home}

    @property
    def lines(self) -> list[str]:
        """Description of the cluster as lines of text, for `doctor --on`."""
        rows = [
            f"{machine.name:<24} {machine.cores:>4} cores {machine.cards:>3} GPUs  "
            f"{machine.computer if machine.answers else 'does not answer'}"
            for machine in self.machines
        ]
        return [*rows, f"bytes: {self.bytes}", f"home: {self.home}", *(f"privacy: {line}" for line in self.privacy)]


def checked_cluster(on: str) -> Cluster:
    """Examine the cluster that `--on` names. Errors: ConfigError, ResourceError if it cannot be reached."""
    where = checked(on)
    if not uses_ray(where):
        raise ConfigError(f"on: {where} is not a cluster; give ray or ray:HOST:PORT, or use doctor without --on.")
    return Cluster(on=where, machines=examine(where.removeprefix("ray").removeprefix(":"), machine_home()))
