"""Who can read what is kept here: the checks of `doctor --privacy`, each a verdict and a sentence."""

import os
import socket
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from core import audit_log, disks
from core import door as doors
from core.config import offline
from core.errors import ConfigError
from core.paths import allowed_roots
from core.projects import door
from core.projects.home import machine_home

Verdict = Literal["ok", "look", "bad"]
Finding = tuple[Verdict, str]
ROOT = Path(__file__).resolve().parents[2]
# What Streamlit has to be told, and what it does if nobody tells it.
STREAMLIT = {
    "browser.gatherUsageStats": (False, True),
    "client.allowedOrigins": ([], "Streamlit's own list"),
    "client.showErrorLinks": (False, "links that carry an error's text"),
    "server.address": ("127.0.0.1", "every address"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line: `look` is for a person to judge, `bad` breaks what SECURITY.md promises."""

    name: str
    verdict: Verdict
    says: str

    def as_dict(self) -> dict[str, str]:
        """Its fields, for JSON."""
        return asdict(self)


def checks() -> list[Check]:
    """Door, modes, owner, offline, roots, audit log, Streamlit's settings, disk and swap, in this order."""
    return [
        Check(name=name, verdict=verdict, says=says) for name, check in CHECKS.items() for verdict, says in [check()]
    ]


def _door() -> Finding:
    try:
        mode = door.mode()
    except ConfigError as error:
        return "bad", str(error)
    if mode == "open":
        return "bad", "WINNOW_DOOR=open: every account of this machine can use Winnow and read what it holds."
    if mode == "key":
        return "ok", "Who comes is asked for the key."
    if not _sees_who_connects():
        return "look", "This system does not show who connects, so everybody, the owner too, is asked for the key."
    return "ok", "The account that started Winnow comes in, and nobody else of this machine."


def _sees_who_connects() -> bool:
    """Tried on a connection to itself."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return doors.sees_owner(server.getsockname())


def _modes() -> Finding:
    wide = [path for path, status in _files() if stat.S_IMODE(status.st_mode) & 0o077]
    if wide:
        more = f" and {len(wide) - 1:,} more" if len(wide) > 1 else ""
        return "bad", f"{wide[0]}{more}: other accounts may read or change it; chmod -R go-rwx {machine_home()}."
    return "ok", "Every file and folder of the home is its owner's alone (0600, 0700)."


def _owner() -> Finding:
    foreign = [path for path, status in _files() if status.st_uid != os.getuid()]
    if foreign:
        return "bad", f"{foreign[0]}: belongs to another account than the one that asks; give Winnow a home of its own."
    return "ok", f"{machine_home()} belongs to the account that asks."


def _files() -> Iterator[tuple[Path, os.stat_result]]:
    """Everything in the home but links, the home first."""
    if not machine_home().is_dir():
        return
    for path in (machine_home(), *machine_home().rglob("*")):
        with suppress(FileNotFoundError):  # gone since it was listed
            status = path.lstat()
            if not stat.S_ISLNK(status.st_mode):
                yield path, status


def _offline() -> Finding:
    if offline():
        return "ok", "WINNOW_OFFLINE is set: no model is fetched, whoever asks."
    return "look", "A model is fetched where somebody asks for one by name; WINNOW_OFFLINE=1 refuses that."


def _roots() -> Finding:
    roots = allowed_roots()
    shown = ", ".join(str(root) for root in roots)
    if any(root.resolve() == Path(root.anchor) for root in roots):
        return "bad", f"Pages may read the whole disk ({shown}); start Winnow in a folder and with a HOME of its own."
    return "ok", f"Pages may read {shown}, nothing else."


def _audit() -> Finding:
    try:
        path = audit_log.place(machine_home())
    except ConfigError as error:
        return "bad", str(error)
    if path is None:
        return "look", "The audit log is off (WINNOW_AUDIT=off)."
    there = path if path.exists() else path.parent
    coming = there == machine_home() and not there.exists()  # a home is made when it is first needed
    if path.is_dir() or not (coming or os.access(there, os.W_OK)):
        return "bad", f"{path}: the audit log cannot be written."
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
    if mode & 0o007:
        return "bad", f"{path}: every account may read or change the audit log; chmod o-rwx it."
    return (
        ("look", f"{path}: its group may read the audit log.") if mode & 0o070 else ("ok", f"The audit log is {path}.")
    )


def _streamlit() -> Finding:
    try:
        settings = _settings()
    except (OSError, tomllib.TOMLDecodeError) as error:
        return "bad", f"A config.toml of Streamlit cannot be read ({error}); mend it."
    wrong = [
        f"{name} is {settings.get(name, usual)}"
        for name, (due, usual) in STREAMLIT.items()
        if settings.get(name) != due
    ]
    if wrong:
        return "bad", f"{'; '.join(wrong)}: restore .streamlit/config.toml, and unset STREAMLIT_ variables."
    return "ok", "No usage statistics, no orders from other pages, bound to 127.0.0.1."


def _settings() -> Mapping[str, object]:
    """{"section.name": value} of Streamlit: the account's settings, the project's, the environment's, in this order."""
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
    encrypted = disks.encrypted(where)
    if encrypted:
        return "ok", f"{where} lies on a disk that this system encrypts."
    if encrypted is None:
        return "look", f"Whether {where} lies on an encrypted disk is not known here; see FileVault, BitLocker or LUKS."
    return (
        "look",
        f"{where} lies on a disk that this system does not encrypt; unless the disk itself or its host does, use LUKS.",
    )


def _swap() -> Finding:
    swaps = disks.open_swaps()
    if swaps is None:
        return "look", "Whether swap is encrypted is not known here."
    if swaps:
        return (
            "look",
            f"Memory, and with it text, may be written in clear to {', '.join(swaps)}; encrypt swap or do without.",
        )
    return "ok", "No swap, or none that is in clear."


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
