"""Ray, begun for one run on this machine or joined where it runs: silent, without its dashboard, behind a token."""

import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from core import cards
from core.cards import Card
from core.errors import ConfigError, ResourceError
from core.runs.context import RunContext
from core.runs.shared import device_lock
from core.shown import brief

# A socket's path has at most 107 characters: Ray's part takes up to 65, the names of our two folders up to 33.
_LONGEST = 9
_INNER = "r"
_STORE = 512 * 2**20  # bytes of memory for what is on its way: a few chunks a worker
_LOOPBACK = "127.0.0.2" if sys.platform == "linux" else None  # Ray makes 127.0.0.1 an address that others reach
_QUIET = {"log_to_driver": False, "configure_logging": False}
_TOKEN = secrets.token_hex(32)  # of this process: a token that Ray was once given stays in its memory
PROCESSORS: int | None = None  # of this machine that workers may take; None: all


@contextmanager
def engine(address: str, own: Sequence[Card] | None = None) -> Iterator[Any]:
    """Ray, connected, for a block; "": begun on this machine, and ended. Else joined at HOST:PORT.

    own: the cards of this machine that its workers may take; None: all.
    Errors: ConfigError without a token for a cluster; ResourceError where it does not answer.
    """
    given = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token"}
    if address:
        _need_token(address)
    elif not os.environ.get("RAY_AUTH_TOKEN"):
        given["RAY_AUTH_TOKEN"] = _TOKEN  # else it would write one into the account's home
    if own:
        given[cards.VISIBLE] = ",".join(card.uuid for card in own)
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)  # before it is imported, and for the processes that it starts
    folder = None if address else _folder()
    ray = import_module("ray")
    # What it has to say of a dead worker would go to stdout, where a command's result alone belongs.
    speaker: Any = import_module("ray._private.worker")
    speaker.print_to_stdstream = _unheard
    try:
        with _own_signals():
            _connect(ray, address, folder, None if own is None else len(own))
        yield ray
    finally:
        ray.shutdown()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def own_cards(context: RunContext, *, wanted: bool) -> Iterator[Sequence[Card] | None]:
    """Have all cards that `--device` leaves, or none, for a block: those. None: the driver cannot be asked.

    Each is waited for in its turn, of which there is one order, so that no two runs wait for each other.
    """
    if not cards.installed():
        yield None
        return
    with ExitStack() as stack:
        own = sorted(cards.usable(), key=lambda card: card.lock) if wanted else []
        for card in own:
            stack.enter_context(device_lock(context.run.home, card.lock, context))
        yield own


def _connect(ray: Any, address: str, folder: Path | None, n_cards: int | None) -> None:
    try:
        if not folder:
            ray.init(address=address, **_QUIET)
            return
        ray.init(
            address="local",  # never one that this machine happens to know of
            include_dashboard=False,
            num_cpus=PROCESSORS,
            num_gpus=n_cards,
            object_store_memory=_STORE,
            _temp_dir=str(folder / _INNER),
            _node_ip_address=_LOOPBACK,
            **_QUIET,
        )
    except Exception as error:  # of many kinds, by what is wrong with a cluster
        raise _unreachable(address, error) from error


def _need_token(address: str) -> None:
    file = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    if not os.environ.get("RAY_AUTH_TOKEN") and not file.is_file():
        raise ConfigError(
            f"on: ray:{address} needs the cluster's token, without which its ports run anybody's code; start it under "
            f"RAY_AUTH_MODE=token and copy its ~/.ray/auth_token to {file}, or set RAY_AUTH_TOKEN."
        )


def _unreachable(address: str, error: Exception) -> ResourceError:
    why = brief(str(error).strip().partition("\n")[0])
    if not address:
        return ResourceError(f"on: Ray cannot begin on this machine ({type(error).__name__}: {why}); give local.")
    return ResourceError(
        f"on: ray:{address} cannot be joined ({type(error).__name__}: {why}); see that the cluster runs with the same "
        f"Ray and Python, and that this machine is of it (ray start --address={address})."
    )


def _folder() -> Path:
    """Make a folder for Ray's, which only this account may enter; remove those of processes that were killed.

    Ray makes its own folder, and all in it, writable for everybody, whatever the umask. So it gets one below ours.
    """
    root = Path(tempfile.gettempdir())
    root = root if len(str(root)) <= _LONGEST else Path("/tmp")  # noqa: S108  (what is made there is ours alone)
    for left in root.glob(f"winnow-{os.geteuid()}-*-*"):
        pid = left.name.split("-")[2]
        with suppress(FileNotFoundError):  # another that begins removes it too
            if pid.isdigit() and not psutil.pid_exists(int(pid)) and left.stat().st_uid == os.geteuid():
                shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"winnow-{os.geteuid()}-{os.getpid()}-", dir=root))


def _unheard(*message: object, **options: object) -> None: ...


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray takes SIGTERM, which is a wish to cancel here."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
