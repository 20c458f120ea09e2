"""Check who can read the stored data, for `doctor --privacy`. Each check gives a verdict and a sentence."""

import os
import socket
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import psutil

from core import audit_log, door
from core.config import offline
from core.errors import ConfigError
from core.paths import allowed_roots, machine_home

Verdict = Literal["ok", "look", "bad"]
Finding = tuple[Verdict, str]
ROOT = Path(__file__).resolve().parents[2]
BLOCK, SWAPS = Path("/sys/dev/block"), Path("/proc/swaps")
# Required settings of Streamlit: {setting: (required value, Streamlit's default)}.
STREAMLIT = {
    "browser.gatherUsageStats": (False, True),
    "client.allowedOrigins": ([], "Streamlit's own list"),
    "client.showErrorLinks": (False, "links that contain an error's text"),
    "server.address": ("127.0.0.1", "every address"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Result of a check.

    verdict: "ok"; "look" if a person must judge the result; "bad" if the result breaks a promise of SECURITY.md. says:
    the result as a sentence.
    """

    name: str
    verdict: Verdict
    says: str

    def as_dict(self) -> dict[str, str]:
        """Return the fields as JSON values."""
        return asdict(self)


def checks() -> list[Check]:
    """Run all checks, in the order of `CHECKS`."""
    return [
        Check(name=name, verdict=verdict, says=says) for name, check in CHECKS.items() for verdict, says in [check()]
    ]


def _door() -> Finding:
    try:
        mode = door.mode()
    except ConfigError as error:
        return "bad", str(error)
    if mode == "open":
        return "bad", "WINNOW_DOOR=open: every account of this machine can use Winnow and read its data."
    if mode == "key":
        return "ok", "Every visitor is asked for the key."
    if not _sees_who_connects():
        return "look", "This system does not show who connects, so all visitors are asked for the key, even the owner."
    return "ok", "Only the account that started Winnow is admitted, no other account of this machine."


def _sees_who_connects() -> bool:
    """Return True if this system shows which account opened a connection. The test is a connection to this process."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return door.sees_owner(server.getsockname())


def _modes() -> Finding:
    wide = [path for path, status in _files() if stat.S_IMODE(status.st_mode) & 0o077]
    if wide:
        more = f" and {len(wide) - 1:,} more" if len(wide) > 1 else ""
        return "bad", f"{wide[0]}{more}: other accounts may read or change it; run chmod -R go-rwx {machine_home()}."
    return "ok", "Only the owner can read the files and folders in Winnow's home folder (0600, 0700)."


def _owner() -> Finding:
    foreign = [path for path, status in _files() if status.st_uid != os.getuid()]
    if foreign:
        return "bad", f"{foreign[0]}: belongs to another account than yours; set WINNOW_HOME to a folder of your own."
    return "ok", f"{machine_home()} belongs to your account."


def _files() -> Iterator[tuple[Path, os.stat_result]]:
    """Yield (path, status) of Winnow's home folder and of all files and folders in it. Links are skipped."""
    if not machine_home().is_dir():
        return
    for path in (machine_home(), *machine_home().rglob("*")):
        with suppress(FileNotFoundError):  # deleted since it was listed
            status = path.lstat()
            if not stat.S_ISLNK(status.st_mode):
                yield path, status


def _offline() -> Finding:
    if offline():
        return "ok", "WINNOW_OFFLINE is set: no model is downloaded, and no text is sent to another host."
    return (
        "look",
        "Winnow downloads a model, or sends text to a language model on another host, only if a user names this model. "
        "WINNOW_OFFLINE=1 forbids both.",
    )


def _roots() -> Finding:
    roots = allowed_roots()
    shown = ", ".join(str(root) for root in roots)
    if any(root.resolve() == Path(root.anchor) for root in roots):
        return "bad", f"Pages may read the whole disk ({shown}); start Winnow in another folder, and with another HOME."
    return "ok", f"Pages may read {shown}, nothing else."


def _audit() -> Finding:
    try:
        path = audit_log.place()
    except ConfigError as error:
        return "bad", str(error)
    if path is None:
        return "look", "The audit log is off (WINNOW_AUDIT=off)."
    there = path if path.exists() else path.parent
    coming = there == machine_home() and not there.exists()  # the home folder will be created on first use
    if path.is_dir() or not (coming or os.access(there, os.W_OK)):
        return "bad", f"{path}: the audit log cannot be written."
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
    if mode & 0o007:
        return "bad", f"{path}: every account may read or change the audit log; run chmod o-rwx on it."
    return (
        ("look", f"{path}: its group may read the audit log.") if mode & 0o070 else ("ok", f"The audit log is {path}.")
    )


def _streamlit() -> Finding:
    try:
        settings = _settings()
    except (OSError, tomllib.TOMLDecodeError) as error:
        return "bad", f"A config.toml of Streamlit cannot be read ({error}); correct it."
    wrong = [
        f"{name} is {settings.get(name, usual)}"
        for name, (due, usual) in STREAMLIT.items()
        if settings.get(name) != due
    ]
    if wrong:
        return "bad", f"{'; '.join(wrong)}: restore .streamlit/config.toml, and unset STREAMLIT_ variables."
    return (
        "ok",
        "Streamlit sends no usage statistics, takes no commands from other pages and listens on 127.0.0.1 only.",
    )


def _settings() -> Mapping[str, object]:
    """Return Streamlit's settings as {"section.name": value}.

    Environment variables override the config.toml in Winnow's folder. This file overrides the config.toml of the
    account.
    """
    settings = dict[str, object]()
    for folder in (Path.home(), ROOT):
        path = folder / ".streamlit" / "config.toml"
        if path.exists():
            sections = tomllib.loads(path.read_text(encoding="utf-8"))
            settings |= {f"{part}.{name}": value for part, table in sections.items() for name, value in table.items()}
    for name in STREAMLIT:
        variable = "STREAMLIT_" + "".join(f"_{char}" if char.isupper() else char for char in name)
        given = os.environ.get(variable.upper().replace(".", "_"))
        if given is not None:
            settings[name] = {"false": False, "[]": [], "": []}.get(given.lower(), given)
    return settings


def _disk() -> Finding:
    where = next(path for path in (machine_home(), *machine_home().parents) if path.exists())
    known = encrypted(where)
    if known:
        return "ok", f"{where} is on a disk that this system encrypts."
    if known is None:
        return "look", f"It is unknown if {where} is on an encrypted disk; check FileVault, BitLocker or LUKS."
    return (
        "look",
        f"{where} is on a disk that this system does not encrypt; use LUKS, unless the disk or the host encrypts it.",
    )


def _swap() -> Finding:
    swaps = open_swaps()
    if swaps is None:
        return "look", "It is unknown if swap is encrypted."
    if swaps:
        return (
            "look",
            f"Memory, and with it text, may be written unencrypted to {', '.join(swaps)}; encrypt swap or disable it.",
        )
    return "ok", "No swap, or only encrypted swap."


def encrypted(path: Path) -> bool | None:
    """Return True if this system encrypts the disk of a file or folder; None if unknown.

    Encryption by the disk's hardware, or by the host of a virtual machine, cannot be detected.
    """
    with suppress(OSError):
        number = os.stat(path).st_dev
        if os.major(number) == 0:  # the file system is on no disk, or may be on several disks (btrfs)
            number = _mounted(path)
        return _is_encrypted(BLOCK / f"{os.major(number)}:{os.minor(number)}")
    return None


def open_swaps() -> list[str] | None:
    """Return the paths of swap devices and files that are not encrypted; None if unknown."""
    if not psutil.swap_memory().total:
        return []
    try:
        rows = [line.split() for line in SWAPS.read_text(encoding="utf-8").splitlines()[1:]]
    except OSError:
        return None
    return [name for name, kind, *_ in rows if not _keeps_secret(Path(name), kind)]


def _keeps_secret(swap: Path, kind: str) -> bool:
    if swap.name.startswith("zram"):  # zram swaps into compressed memory, not onto a disk
        return True
    if kind == "file":
        return encrypted(swap) is True
    with suppress(OSError):
        number = os.stat(swap).st_rdev
        return _is_encrypted(BLOCK / f"{os.major(number)}:{os.minor(number)}") is True
    return False


def _mounted(path: Path) -> int:
    """Return the device number of a path's file system. Errors: OSError if the file system has no device."""
    real = path.resolve()
    mounts = {Path(partition.mountpoint): partition.device for partition in psutil.disk_partitions(all=True)}
    below = [point for point in mounts if real.is_relative_to(point)]
    return os.stat(mounts[max(below, key=lambda point: len(point.parts))]).st_rdev


def _is_encrypted(device: Path) -> bool | None:
    """Return True if a device in /sys/dev/block, or every device that it is built on, is encrypted; None if unknown."""
    if not device.exists():
        return None
    with suppress(OSError):
        if (device / "dm" / "uuid").read_text(encoding="ascii").startswith("CRYPT-"):
            return True
    parts = device / "slaves"
    below = [_is_encrypted(part) for part in parts.iterdir()] if parts.is_dir() else []
    return bool(below) and all(below)


CHECKS: Mapping[str, Callable[[], Finding]] = {
    "door": _door,
    "modes": _modes,
    "owner": _owner,
    "offline": _offline,
    "roots": _roots,
    "audit": _audit,
    "streamlit": _streamlit,
    "disk": _disk,
    "swap": _swap,
}
