"""Whether what is written to a disk is encrypted there, as far as Linux shows it (dm-crypt, which LUKS uses)."""

import os
from contextlib import suppress
from pathlib import Path

import psutil

BLOCK = Path("/sys/dev/block")
SWAPS = Path("/proc/swaps")


def encrypted(path: Path) -> bool | None:
    """Whether the disk below a file or folder is encrypted by this system. None: that cannot be known here.

    A disk that encrypts by itself, or below a virtual machine, looks like one that does not.
    """
    with suppress(OSError):
        number = os.stat(path).st_dev
        if os.major(number) == 0:  # a file system that may span disks, such as btrfs, or that is on none
            number = _mounted(path)
        return _is_encrypted(BLOCK / f"{os.major(number)}:{os.minor(number)}")
    return None


def open_swaps() -> list[str] | None:
    """The swap devices and files to which memory may go in clear. None: that cannot be known here."""
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
    """The number of the device that a path's file system is mounted from. Errors: OSError where it is no device."""
    real = path.resolve()
    mounts = {Path(partition.mountpoint): partition.device for partition in psutil.disk_partitions(all=True)}
    below = [point for point in mounts if real.is_relative_to(point)]
    return os.stat(mounts[max(below, key=lambda point: len(point.parts))]).st_rdev


def _is_encrypted(device: Path) -> bool | None:
    """A device of /sys/dev/block: encrypted itself, or put together of devices that all are."""
    if not device.exists():
        return None
    with suppress(OSError):
        if (device / "dm" / "uuid").read_text(encoding="ascii").startswith("CRYPT-"):
            return True
    parts = device / "slaves"
    below = [_is_encrypted(part) for part in parts.iterdir()] if parts.is_dir() else []
    return bool(below) and all(below)
