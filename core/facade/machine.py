"""What this machine has."""

import os
import platform
import shutil
import subprocess
from contextlib import suppress

import psutil

from core.facade.home import home
from core.recipes.base import versions


def doctor() -> dict[str, object]:
    """Versions, cores, memory, disk and device; loads no model."""
    return {
        **versions(),
        "machine": platform.machine(),
        "cores": cores(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "device": device(),
        "home": str(home()),
        "disk_free_gb": round(disk()[0] / 2**30, 1),
    }


def memory() -> tuple[float, float]:
    """Bytes `(free, in all)` where training computes: of the first GPU where there is one, else of the machine."""
    command = ["nvidia-smi", "--query-gpu=memory.free,memory.total", "--format=csv,noheader,nounits", "--id=0"]
    if device() == "gpu":
        with suppress(OSError, ValueError, subprocess.SubprocessError):
            output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=5).stdout
            free, total = (float(part) * 2**20 for part in output.split(","))
            return free, total
    ram = psutil.virtual_memory()
    return float(ram.available), float(ram.total)


def device() -> str:
    """ "gpu" where the driver shows one, else "cpu"; told without torch, which a page must not load."""
    return "gpu" if os.path.exists("/dev/nvidia0") or shutil.which("nvidia-smi") else "cpu"


def disk() -> tuple[int, int]:
    """Bytes `(free, in all)` where the home folder lies."""
    home().mkdir(parents=True, exist_ok=True)
    usage = shutil.disk_usage(home())
    return usage.free, usage.total


def cores() -> int:
    """Processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
