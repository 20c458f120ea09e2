"""What this machine has."""

import os
import platform
import shutil
from typing import Any

import psutil

from core.facade.home import home
from core.recipes.base import versions


def doctor() -> dict[str, Any]:
    """Versions, cores, memory, disk and device; loads no model."""
    home().mkdir(parents=True, exist_ok=True)
    disk = shutil.disk_usage(home())
    return {
        **versions(),
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "device": device(),
        "home": str(home()),
        "disk_free_gb": round(disk.free / 2**30, 1),
    }


def device() -> str:
    """ "gpu" where the driver shows one, else "cpu"; told without torch, which a page must not load."""
    return "gpu" if os.path.exists("/dev/nvidia0") or shutil.which("nvidia-smi") else "cpu"
