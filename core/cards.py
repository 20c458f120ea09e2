"""Cards (GPUs) of this machine as their driver shows them, and whether the installed torch can use them; without torch.

Pages, `doctor` and workers ask this file, so that all of them speak of the same device. `WINNOW_DEVICE` (the option
`--device`) and `CUDA_VISIBLE_DEVICES` say which cards may be used.
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
# By CUDA's first number, which is torch's build's: the least driver, and the least capability that it has code for.
_LEAST: dict[int, tuple[int, float]] = {11: (450, 3.7), 12: (525, 5.0), 13: (580, 7.5)}
_OLDER, _NEWER = "cu126", "cu130"  # PyTorch's own builds: for older drivers and cards, for today's
_ASKED = ("uuid", "name", "driver_version", "compute_cap")
_before: "tuple[Card, ...]" = ()  # cards that were usable before `keep_to`


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card. uuid: what CUDA_VISIBLE_DEVICES may call it, in whatever order. driver: its version, "580.65.06".
    capability: of its computing, 9.0 for an H100; None: not known."""

    uuid: str
    name: str
    driver: str
    capability: float | None

    @property
    def lock(self) -> str:
        """The name of its lock: of the card itself, by whatever number a process knows it."""
        return lock_name(self.uuid)


def processor_lock() -> str:
    """The name of the lock of this machine's processor: machines that share a home have one each."""
    return lock_name(f"cpu-{socket.gethostname()}")


def lock_name(device: str) -> str:
    """Name that a lock may be called by: small letters, digits and hyphens of `device`."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Memory and use of a card. free, total: bytes of its memory. busy: percent of the last moment that it computed."""

    free: int
    total: int
    busy: int | None


@cache
def installed() -> tuple[Card, ...]:
    """All that the driver shows, in its order; none where there is no driver."""
    if (nvml := _nvml()) is not None:
        with suppress(nvml.NVMLError):  # one of the cards is lost: the driver's own program leaves it out
            return _by_nvml(nvml)
    # Older drivers do not know the last question, and then answer none.
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
    """Cards that CUDA_VISIBLE_DEVICES leaves, in its order, as CUDA reads it."""
    asked = os.environ.get(VISIBLE)
    if asked is None:
        return installed()
    cards: list[Card] = []
    for entry in map(str.strip, asked.split(",")):
        named = (c for i, c in enumerate(installed()) if entry and (entry == str(i) or c.uuid.startswith(entry)))
        card = next(named, None)
        if card is None and entry.startswith("MIG-") and installed():
            card = Card(uuid=entry, name=installed()[0].name, driver=installed()[0].driver, capability=None)
        if card is None:  # CUDA too sees none of those behind one that it does not know
            break
        cards.append(card)
    return tuple(cards)


def usable() -> tuple[Card, ...]:
    """The cards that work may take; none: it is done on the processor. Errors: as of `asked`."""
    wanted, cards = asked(), _of_use()
    if wanted in ("auto", "cuda"):
        return cards
    return () if wanted == "cpu" else cards[int(wanted.partition(":")[2]) :][:1]


def of_workers() -> tuple[Card, ...]:
    """Return the cards that workers of this process may take: `usable`, also those that `keep_to` gave up."""
    return _before or usable()


def keep_to(card: Card) -> None:
    """Make `card` the only one that this process sees. Call it before torch lists cards, which it does once."""
    global _before  # noqa: PLW0603  (as lasting as torch's list)
    _before = of_workers()
    os.environ[VISIBLE] = card.uuid
    os.environ[DEVICE] = "cuda" if asked().startswith("cuda") else "auto"


def _of_use() -> tuple[Card, ...]:
    return tuple(card for card in visible() if not _hindrance(card))


def check() -> None:
    """Errors: ConfigError, ResourceError where `--device` asks for what is not here."""
    if asked().startswith("cuda") and not usable():
        raise ResourceError(f"device: {asked()} is not to be had; {_instead()}")


def _instead() -> str:
    if there := [f"cuda:{i} ({card.name})" for i, card in enumerate(_of_use())]:
        return f"give {', '.join(there)}, or cpu."
    return hindrance() or "the driver shows no card here (nvidia-smi); give cpu."


def asked() -> str:
    """Device that `--device` names: auto, cpu, cuda (any card) or cuda:1 (the second of the visible ones).

    Errors: ConfigError for anything else.
    """
    wanted = os.environ.get(DEVICE) or "auto"
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", wanted):
        raise ConfigError(f"device: {wanted!r} is no device; give auto, cpu, cuda or cuda:1.")
    return wanted


def hindrance() -> str:
    """Reason that a card that is here is not used, a sentence with the way out; "" where one is used, none is here, or
    the processor was asked for."""
    if asked() == "cpu" or not installed():
        return ""
    cards = visible()
    if not cards:
        return f"A GPU is here ({installed()[0].name}), but {VISIBLE} hides it."
    reasons = [_hindrance(card) for card in cards]
    if not all(reasons):
        return ""
    return f"A GPU is here ({cards[0].name}), but torch cannot use it: {reasons[0]}."


def _hindrance(card: Card) -> str:
    cuda = built_for()
    driver = int(_number(card.driver.partition(".")[0]) or 0)
    if cuda is None:
        return f"this torch is built for processors alone; {_other(_NEWER if driver >= _LEAST[13][0] else _OLDER)}"
    least, capability = _LEAST.get(int(cuda.partition(".")[0]), (0, 0.0))
    if driver < least:
        return f"driver {driver}, this build needs {least}; update the driver, or {_other(_OLDER)}"
    if card.capability is not None and card.capability < capability:
        return f"its capability is {card.capability}, this build has code for {capability} on; {_other(_OLDER)}"
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
    """The CUDA that the installed torch is built for, "13.0"; None: for processors alone."""
    spec = find_spec("torch")  # finds it, and does not load it
    if spec is None or spec.origin is None:
        return None
    with suppress(OSError):
        about = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
        if match := re.search(r"^cuda\b.*= '([\d.]+)'", about, re.MULTILINE):
            return match[1]
    return None


def machine() -> str:
    """The name of what training computes on here: of the first card that it may take, else of the processor."""
    cards = usable()
    return cards[0].name if cards else processor()


def processor() -> str:
    """The processor's name."""
    return _processor("model name") or "cpu"


def precision() -> Literal["auto", "bf16", "fp32"]:
    """Precision that `auto` comes to on the processor, where that is what computes; on a card it stays, for no bytes
    are promised there."""
    if usable():
        return "auto"
    return "bf16" if processor_has_bf16() else "fp32"


def processor_has_bf16() -> bool:
    """Whether it multiplies bf16 natively; without these units that is slower than fp32."""
    return not {"avx512_bf16", "amx_tile"}.isdisjoint(_processor("flags").split())


@cache
def _processor(field: str) -> str:
    """Value of a field of the system's first processor; "" where it says nothing."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(field)), "")


def load(card: Card) -> Load | None:
    """Memory and use of a card now; None where the driver does not tell."""
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
    """The same by NVIDIA's library alone, in microseconds; None without `nvidia-ml-py`."""
    nvml = _nvml()
    if nvml is None:
        return None
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(card.uuid)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    except nvml.NVMLError:
        return None
    busy = None
    with suppress(nvml.NVMLError):  # a part of a card (MIG) does not tell
        busy = int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    return Load(free=int(memory.free), total=int(memory.total), busy=busy)


@cache
def _nvml() -> Any:
    """NVIDIA's management library; None without `nvidia-ml-py` or a driver."""
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
    """A row a card; none where it is not here or does not know a field."""
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
    """Ask the driver again the next time."""
    global _before  # noqa: PLW0603
    _before = ()
    for function in (installed, _nvml):
        function.cache_clear()
