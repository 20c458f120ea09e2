"""List the GPUs of this machine, and check if the installed torch can use them, without importing torch.

Pages, `doctor` and workers all use this module, so that they agree on the device. `WINNOW_DEVICE` (the option
`--device`) and `CUDA_VISIBLE_DEVICES` limit the GPUs that may be used.
"""

import importlib
import os
import re
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from core.errors import ConfigError, ResourceError

DEVICE, VISIBLE = "WINNOW_DEVICE", "CUDA_VISIBLE_DEVICES"
SHARED = "WINNOW_SHARED"  # number of processes that may compute on a device at the same time
# {major CUDA version of torch's build: (oldest supported driver version, lowest supported compute capability)}
_LEAST: dict[int, tuple[int, float]] = {11: (450, 3.7), 12: (525, 5.0), 13: (580, 7.5)}
_OLDER, _NEWER = "cu126", "cu130"  # PyTorch build for older drivers and GPUs, and for current ones
_ASKED = ("uuid", "name", "driver_version", "compute_cap")
_before: "tuple[Card, ...]" = ()  # GPUs that were usable before `keep_to` was called; () if it was not called


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A GPU.

    uuid: identifier for CUDA_VISIBLE_DEVICES, which does not depend on the order of GPUs. driver: version of the
    driver, such as "580.65.06". capability: compute capability, such as 9.0 for an H100; None if unknown.
    """

    uuid: str
    name: str
    driver: str
    capability: float | None

    @property
    def lock(self) -> str:
        """Name of the GPU's lock. It contains the uuid, because processes may number GPUs differently."""
        return lock_name(self.uuid)


def processor_lock() -> str:
    """Return the name of this machine's processor lock. It differs between machines that share a home folder."""
    return lock_name(f"cpu-{socket.gethostname()}")


def places(lock: str) -> list[str]:
    """Return the names of the locks of a device. A process that computes on the device holds one of them.

    There is one lock, unless an experiment executes several steps at once (`runs.in_processes`). The first name is
    always `lock`, so that other runs wait for one of the places. lock: name of the device's lock.
    """
    return [lock, *(f"{lock}-place-{i}" for i in range(2, int(os.environ.get(SHARED) or 1) + 1))]


def lock_name(device: str) -> str:
    """Return the name of a device's lock. It has only lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Memory and load of a GPU. free, total: bytes of memory. busy: utilisation in percent; None if unknown."""

    free: int
    total: int
    busy: int | None


@cache
def installed() -> tuple[Card, ...]:
    """Return all GPUs that the driver lists, in its order; () without a driver."""
    if (nvml := _nvml()) is not None:
        with suppress(nvml.NVMLError):  # leave out a GPU that has failed, as nvidia-smi does
            return _by_nvml(nvml)
    # Older drivers do not know the last field; nvidia-smi then returns no rows, so ask again without that field.
    rows = _nvidia_smi(_ASKED) or [[*row, ""] for row in _nvidia_smi(_ASKED[:-1])]
    return tuple(
        Card(uuid=uuid, name=name, driver=driver, capability=_number(capability))
        for uuid, name, driver, capability in (row for row in rows if len(row) == len(_ASKED))
    )


def _by_nvml(nvml: Any) -> tuple[Card, ...]:
    driver, cards = _text(nvml.nvmlSystemGetDriverVersion()), []
    for place in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(place)
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
        uuid, name = _text(nvml.nvmlDeviceGetUUID(handle)), _text(nvml.nvmlDeviceGetName(handle))
        cards.append(Card(uuid=uuid, name=name, driver=driver, capability=float(f"{major}.{minor}")))
    return tuple(cards)


def visible() -> tuple[Card, ...]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES allows, in its order. Like CUDA, stop at an unknown entry."""
    asked = os.environ.get(VISIBLE)
    if asked is None:
        return installed()
    cards: list[Card] = []
    for entry in map(str.strip, asked.split(",")):
        named = (c for i, c in enumerate(installed()) if entry and (entry == str(i) or c.uuid.startswith(entry)))
        card = next(named, None)
        if card is None and entry.startswith("MIG-") and installed():
            card = Card(uuid=entry, name=installed()[0].name, driver=installed()[0].driver, capability=None)
        if card is None:  # like CUDA, ignore all entries after an unknown one
            break
        cards.append(card)
    return tuple(cards)


def usable() -> tuple[Card, ...]:
    """Return the GPUs that runs may use; () if runs use the processor. Errors: those of `asked`."""
    wanted, cards = asked(), _of_use()
    if wanted in ("auto", "cuda"):
        return cards
    return () if wanted == "cpu" else cards[int(wanted.partition(":")[2]) :][:1]


def of_workers() -> tuple[Card, ...]:
    """Return the GPUs that workers of this process may use. In contrast to `usable`, ignore a call of `keep_to`."""
    return _before or usable()


def keep_to(card: Card) -> None:
    """Make `card` the only GPU that this process sees. Call this before torch lists the GPUs, which happens once."""
    global _before  # noqa: PLW0603  (torch also lists GPUs once per process)
    _before = of_workers()
    os.environ[VISIBLE] = card.uuid
    os.environ[DEVICE] = "cuda" if asked().startswith("cuda") else "auto"


def for_workers() -> dict[str, str]:
    """Return environment variables with which `usable` returns the GPUs of `of_workers` in a worker."""
    return {VISIBLE: ",".join(card.uuid for card in _before)} if _before else {}


def _of_use() -> tuple[Card, ...]:
    return tuple(card for card in visible() if not _hindrance(card))


def check() -> None:
    """Check the device that `--device` names. Errors: those of `asked`; ResourceError if it is not available."""
    if asked().startswith("cuda") and not usable():
        raise ResourceError(f"device: {asked()} is not available; {_instead()}")


def _instead() -> str:
    if there := [f"cuda:{i} ({card.name})" for i, card in enumerate(_of_use())]:
        return f"give {', '.join(there)}, or cpu."
    return hindrance() or "the driver lists no GPU on this machine (nvidia-smi); give cpu."


def asked() -> str:
    """Return the value of `--device`: auto, cpu, cuda (any GPU) or cuda:1 (the second visible GPU).

    Errors: ConfigError for any other value.
    """
    wanted = os.environ.get(DEVICE) or "auto"
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", wanted):
        raise ConfigError(f"device: {wanted!r} is not a device; give auto, cpu, cuda or cuda:1.")
    return wanted


def hindrance() -> str:
    """Return a sentence that says why no GPU of this machine is used and what to do.

    Return "" if a GPU is used, if the machine has no GPU, or if `--device` is cpu.
    """
    if asked() == "cpu" or not installed():
        return ""
    cards = visible()
    if not cards:
        return f"This machine has a GPU ({installed()[0].name}), but {VISIBLE} hides it."
    reasons = [_hindrance(card) for card in cards]
    if not all(reasons):
        return ""
    return f"This machine has a GPU ({cards[0].name}), but torch cannot use it: {reasons[0]}."


def _hindrance(card: Card) -> str:
    cuda = built_for()
    driver = int(_number(card.driver.partition(".")[0]) or 0)
    if cuda is None:
        return f"the installed torch has no support for GPUs; {_other(_NEWER if driver >= _LEAST[13][0] else _OLDER)}"
    least, capability = _LEAST.get(int(cuda.partition(".")[0]), (0, 0.0))
    if driver < least:
        return f"driver {driver}, this build needs {least}; update the driver, or {_other(_OLDER)}"
    if card.capability is not None and card.capability < capability:
        return f"its compute capability is {card.capability}, this build needs {capability}; {_other(_OLDER)}"
    return ""


def _other(build: str) -> str:
    try:
        release = version("torch").partition("+")[0]
    except PackageNotFoundError:
        release = ""
    package = f'"torch=={release}+{build}"' if release else "torch"
    return f"install {package} into .venv with pip's --index-url https://download.pytorch.org/whl/{build}"


@cache
def built_for() -> str | None:
    """Return the CUDA version of the installed torch, such as "13.0"; None for a build without CUDA."""
    spec = find_spec("torch")  # finds torch without importing it
    if spec is None or spec.origin is None:
        return None
    with suppress(OSError):
        about = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
        if match := re.search(r"^cuda\b.*= '([\d.]+)'", about, re.MULTILINE):
            return match[1]
    return None


def machine() -> str:
    """Return the name of the device on which this machine trains: the first usable GPU, else the processor."""
    cards = usable()
    return cards[0].name if cards else processor()


def processor() -> str:
    """Return the name of the processor; "cpu" if unknown."""
    return _processor("model name") or "cpu"


def precision() -> Literal["auto", "bf16", "fp32"]:
    """Return the precision to use instead of `auto`: on the processor, bf16 if it has bf16 units, else fp32.

    If a GPU is used, return "auto", because results of GPUs may differ between machines in any case.
    """
    if usable():
        return "auto"
    return "bf16" if processor_has_bf16() else "fp32"


def processor_has_bf16() -> bool:
    """Return True if the processor has bf16 units; without them, bf16 is slower than fp32."""
    return not {"avx512_bf16", "amx_tile"}.isdisjoint(_processor("flags").split())


@cache
def _processor(field: str) -> str:
    """Return a field of /proc/cpuinfo for the first processor; "" if unknown."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(field)), "")


def load(card: Card) -> Load | None:
    """Return the current memory and load of a GPU; None if the driver does not report them."""
    if _nvml():
        return measured(card)
    rows = _nvidia_smi(("memory.free", "memory.total", "utilization.gpu"), f"--id={card.uuid}")
    if not rows or len(rows[0]) != 3:
        return None
    free, total, busy = map(_number, rows[0])
    if free is None or total is None:
        return None
    return Load(free=int(free * 2**20), total=int(total * 2**20), busy=None if busy is None else int(busy))


def measured(card: Card) -> Load | None:
    """Return the memory and load of a GPU; None without NVIDIA's library. The call takes microseconds."""
    nvml = _nvml()
    if nvml is None:
        return None
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(card.uuid)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    except nvml.NVMLError:
        return None
    busy = None
    with suppress(nvml.NVMLError):  # a slice of a GPU (MIG) does not report its load
        busy = int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    return Load(free=int(memory.free), total=int(memory.total), busy=busy)


@cache
def _nvml() -> Any:
    """Return NVIDIA's management library (NVML); None without the package `nvidia-ml-py` or a driver."""
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


def _nvidia_smi(fields: Sequence[str], *more: str) -> list[list[str]]:
    """Return one row of `fields` per GPU; [] if nvidia-smi is missing or does not know a field."""
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", *more]
    with suppress(OSError, subprocess.SubprocessError):
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout
        return [[part.strip() for part in line.split(",")] for line in output.splitlines() if line.strip()]
    return []


def _number(text: str) -> float | None:
    with suppress(ValueError):
        return float(text)
    return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def forget() -> None:
    """Clear the cached list of GPUs, so that the next call asks the driver again."""
    global _before  # noqa: PLW0603
    _before = ()
    for function in (installed, _nvml):
        function.cache_clear()
