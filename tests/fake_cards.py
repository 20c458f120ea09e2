"""A fake driver of GPUs: a stub of `nvidia-smi`, or a module in place of the NVIDIA library."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from core import cards
from core.projects import machine

H100 = ("GPU-aaaa-1111", "NVIDIA H100", "580.65.06", "9.0")
T4 = ("GPU-bbbb-2222", "Tesla T4", "580.65.06", "7.5")
V100 = ("GPU-cccc-3333", "Tesla V100", "580.65.06", "7.0")
GB = 10**9
Row = tuple[str, str, str, str]  # UUID, name, driver, capability


class Driver:
    """`shows(H100, T4)` sets the cards. torch: CUDA version that torch is built for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._patch, self._folder = monkeypatch, folder
        folder.mkdir()
        for name in (cards.DEVICE, cards.VISIBLE):
            monkeypatch.setenv(name, "")  # restored after the test
            monkeypatch.delenv(name)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setitem(sys.modules, "pynvml", None)  # no such module

    def shows(self, *rows: Row, torch: str | None = "13.0", knows_capability: bool = True) -> None:
        """Show cards by `nvidia-smi` only."""
        known = "" if knows_capability else "case $1 in *compute_cap*) exit 2;; esac\n"
        fields = 4 if knows_capability else 3
        identities = "\n".join(", ".join(row[:fields]) for row in rows)
        stub = self._folder / "nvidia-smi"
        stub.write_text(
            f"#!/bin/sh\n{known}case $1 in *memory.free*) echo '70000, 80000, 37';; *) cat <<END\n{identities}\nEND\nesac\n"
        )
        stub.chmod(0o755)
        self._ready(torch)

    def shows_by_library(self, *rows: Row, busy: Callable[[], int] = lambda: 37, torch: str | None = "13.0") -> None:
        """Show cards by the NVIDIA library only."""
        nvml = ModuleType("pynvml")

        class NVMLError(Exception): ...

        def by_uuid(uuid: str) -> Row:
            if found := [row for row in rows if row[0] == uuid]:
                return found[0]
            raise NVMLError("not found")

        functions = {
            "NVMLError": NVMLError,
            "nvmlInit": lambda: None,
            "nvmlSystemGetDriverVersion": rows[0][2].encode,
            "nvmlDeviceGetCount": lambda: len(rows),
            "nvmlDeviceGetHandleByIndex": lambda place: rows[place],
            "nvmlDeviceGetHandleByUUID": by_uuid,
            "nvmlDeviceGetUUID": lambda row: row[0],
            "nvmlDeviceGetName": lambda row: row[1],
            "nvmlDeviceGetCudaComputeCapability": lambda row: tuple(map(int, row[3].split("."))),
            "nvmlDeviceGetMemoryInfo": lambda row: SimpleNamespace(free=70 * GB, total=80 * GB),
            "nvmlDeviceGetUtilizationRates": lambda row: SimpleNamespace(gpu=busy()),
        }
        for name, function in functions.items():
            setattr(nvml, name, function)
        self._patch.setitem(sys.modules, "pynvml", nvml)
        self._ready(torch)

    def _ready(self, torch: str | None) -> None:
        cards.forget()
        machine._load.cache_clear()  # it caches the values of another driver for seconds
        self._patch.setattr(cards, "built_for", lambda: torch)


def seen_by_torch(monkeypatch: pytest.MonkeyPatch, names: Sequence[str] = ("NVIDIA H100",)) -> None:
    """Make torch report cards that it can compute on; nothing is computed there."""
    import torch

    from core.models import devices

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=None: names[getattr(device, "index", None) or 0])
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: "T4" not in names[0])
    monkeypatch.setattr(devices, "failure", lambda card: "")
