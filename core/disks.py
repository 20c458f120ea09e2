"""Check if disks and swap are encrypted by Linux (dm-crypt, which LUKS uses)."""

import os
from contextlib import suppress
from pathlib import Path

import psutil

BLOCK = Path("/sys/dev/block")
SWAPS = Path("/proc/swaps")


def encrypted(path: Path) -> bool | None:
    """Return True if the disk of a file or folder is encrypted by this system; None if unknown.

    A disk that encrypts in hardware, or below a virtual machine, looks like an unencrypted one.
    """
    with suppress(OSError):
        number = os.stat(path).st_dev
        if os.major(number) == 0:  # a file system that may span disks, such as btrfs, or has none
            number = _mounted(path)
        return _is_encrypted(BLOCK / f"{os.major(number)}:{os.minor(number)}")
    return None


def open_swaps() -> list[str] | None:
    """Return swap devices and files that are not encrypted; None if unknown."""
    if not psutil.swap_memory().total:
        return []
    try:
        rows = [line.split() for line in SWAPS.read_text(encoding="utf-8").splitlines()[1:]]
    except OSError:
        return None
    return [name for name, kind, *_ in rows if not _keeps_secret(Path(name), kind)]


def _keeps_secret(swap: Path, kind: str) -> bool:
    if swap.name.startswith("zram"):  # compressed memory
        return True
    if kind == "file":
        return encrypted(swap) is True
    with suppress(OSError):
        number = os.stat(swap).st_rdev
        return _is_encrypted(BLOCK / f"{os.major(number)}:{os.minor(number)}") is True
    return False


def _mounted(path: Path) -> int:
    """Return the number of the device of a path's file system. Errors: OSError if it has none."""
    real = path.resolve()
    mounts = {Path(partition.mountpoint): partition.device for partition in psutil.disk_partitions(all=True)}
    below = [point for point in mounts if real.is_relative_to(point)]
    return os.stat(mounts[max(below, key=lambda point: len(point.parts))]).st_rdev


def _is_encrypted(device: Path) -> bool | None:
    """Return True if a device of /sys/dev/block, or each device below it, is encrypted."""
    if not device.exists():
        return None
    with suppress(OSError):
        if (device / "dm" / "uuid").read_text(encoding="ascii").startswith("CRYPT-"):
            return True
    parts = device / "slaves"
    below = [_is_encrypted(part) for part in parts.iterdir()] if parts.is_dir() else []
    return bool(below) and all(below)
