"""Ray: start it on this machine or join a cluster, and ask its nodes what they are.

Silent, without its dashboard, and behind a token. Imported by `on_ray` and `doctor --on` only, so that nothing loads
Ray unless asked for.
"""

import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from core import cards
from core.cards import Card
from core.errors import ConfigError, ResourceError
from core.runs.lock import Lock, Worker
from core.runs.versions import versions
from core.shown import brief

PATIENCE = 120.0  # seconds for a node to answer `doctor`
PROCESSORS: int | None = None  # number of cores of this machine that workers may take; None: all
_LONGEST = 9  # a socket's path has at most 107 characters: Ray's part takes up to 65, our two folders up to 33
_INNER = "r"
_STORE = 512 * 2**20  # bytes of shared memory for chunks in transit
_LOOPBACK = "127.0.0.2" if sys.platform == "linux" else None  # Ray turns 127.0.0.1 into an address that others reach
_QUIET = {"log_to_driver": False, "configure_logging": False}
_TOKEN = secrets.token_hex(32)  # one per process, because Ray remembers the first that it is given
_HOME = "WINNOW_HOME"
_PASSED_ON = (_HOME, cards.DEVICE, "WINNOW_OFFLINE", "HF_HUB_OFFLINE")


@contextmanager
def engine(address: str, own: Sequence[Card] | None = None) -> Iterator[Any]:
    """Connect Ray for a block. address: HOST:PORT of a cluster; "" starts Ray on this machine and ends it afterwards.

    own: the cards of this machine that its workers may take; None: all.
    Errors: ConfigError without a token for a cluster; ResourceError if it does not answer.
    """
    given = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token"}
    if address:
        _need_token(address)
    elif not os.environ.get("RAY_AUTH_TOKEN"):
        given["RAY_AUTH_TOKEN"] = _TOKEN  # otherwise Ray writes one into the account's home
    if own:
        given[cards.VISIBLE] = ",".join(card.uuid for card in own)
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)  # before the import, and for the processes that Ray starts
    folder = None if address else _folder()
    ray = import_module("ray")
    # Ray prints messages about dead workers to stdout, which only a command's result may use.
    speaker: Any = import_module("ray._private.worker")
    speaker.print_to_stdstream = lambda *message, **options: None
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


def _connect(ray: Any, address: str, folder: Path | None, n_cards: int | None) -> None:
    try:
        if not folder:
            ray.init(address=address, **_QUIET)
            return
        ray.init(
            address="local",  # never a cluster that RAY_ADDRESS names
            include_dashboard=False,
            num_cpus=PROCESSORS,
            num_gpus=n_cards,
            object_store_memory=_STORE,
            _temp_dir=str(folder / _INNER),
            _node_ip_address=_LOOPBACK,
            **_QUIET,
        )
    except Exception as error:  # of many types, depending on what is wrong
        why = f"{type(error).__name__}: {brief(str(error).strip().partition(chr(10))[0])}"
        if not address:
            raise ResourceError(f"on: Ray cannot start on this machine ({why}); give local.") from error
        raise ResourceError(
            f"on: ray:{address} cannot be joined ({why}); check that the cluster runs the same Ray and Python, and "
            f"that this machine has joined it (ray start --address={address})."
        ) from error


def _need_token(address: str) -> None:
    file = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    if not os.environ.get("RAY_AUTH_TOKEN") and not file.is_file():
        raise ConfigError(
            f"on: ray:{address} needs the cluster's token, because without one its ports run anybody's code; start it "
            f"with RAY_AUTH_MODE=token and copy its ~/.ray/auth_token to {file}, or set RAY_AUTH_TOKEN."
        )


def _folder() -> Path:
    """Make a folder that only this account may enter, and remove those of processes that were killed.

    Ray makes its own folder writable for everybody, whatever the umask, so it gets one inside ours.
    """
    root = Path(tempfile.gettempdir())
    root = root if len(str(root)) <= _LONGEST else Path("/tmp")  # noqa: S108  (the folder below is private)
    for left in root.glob(f"winnow-{os.geteuid()}-*-*"):
        pid = left.name.split("-")[2]
        with suppress(FileNotFoundError):  # another process that starts now may remove it, too
            if pid.isdigit() and not psutil.pid_exists(int(pid)) and left.stat().st_uid == os.geteuid():
                shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"winnow-{os.geteuid()}-{os.getpid()}-", dir=root))


@contextmanager
def _own_signals() -> Iterator[None]:
    """Restore the handler of SIGTERM, which asks a run to stop; Ray sets its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def environment() -> dict[str, str]:
    """Return the variables of this process that a worker takes over."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    if passed.get(cards.DEVICE, "").startswith("cuda"):
        passed[cards.DEVICE] = "cuda"  # a worker sees only the card that Ray gave it
    return passed


def take_over(variables: Mapping[str, str]) -> None:
    """Set the variables of a run's process in a worker; its home counts only if the worker sees that folder."""
    seen = Path(variables.get(_HOME, "")).is_dir()
    os.environ.update({name: value for name, value in variables.items() if seen or name != _HOME})


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """What a node answers.

    versions: of the packages that numbers depend on. computer: name of the card or processor that computes there.
    guarded: Ray asks for a token. holder: holder of the run's lock as seen from there, which shows that the home and
    its locks are shared.
    """

    versions: Mapping[str, str]
    node: str
    computer: str
    guarded: bool
    holder: Worker | None

    @property
    def differs(self) -> tuple[str, ...]:
        """Packages with another version than here, in words."""
        pairs = [(name, here, self.versions.get(name, "none")) for name, here in versions().items()]
        return tuple(f"{name} {there}, here {here}" for name, here, there in pairs if here != there)


def greet(variables: Mapping[str, str], lock: Path, *, has_card: bool) -> Greeting:
    """Answer from a node. lock: the lock of the run that asks."""
    take_over(variables)
    computer, holder = cards.processor(), None
    if has_card and cards.asked() != "cpu":
        computer = next((card.name for card in cards.installed()), "an unknown card")
    with suppress(OSError):  # another account's home, or something else at its path
        holder = Lock(lock).holder()
    guarded = os.environ.get("RAY_AUTH_MODE", "").lower() == "token"
    return Greeting(versions=versions(), node=socket.gethostname(), computer=computer, guarded=guarded, holder=holder)


def on_node(ray: Any, function: Any, node: str, **resources: float) -> Any:
    """Return `function`, or an actor's class, as a Ray task that runs on one node only, without retries."""
    affinity = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy(node, soft=False)
    retries = {"max_restarts": 0} if isinstance(function, type) else {"max_retries": 0}
    return ray.remote(function).options(scheduling_strategy=affinity, **retries, **resources)


def n_cards(node: Mapping[str, Any]) -> int:
    """Return the number of cards of a node, as Ray describes it."""
    return int(node.get("Resources", {}).get("GPU", 0))


def n_cores(node: Mapping[str, Any]) -> int:
    """Return the number of processor cores of a node, as Ray describes it."""
    return int(node.get("Resources", {}).get("CPU", 0))


def ask(ray: Any, node: Mapping[str, Any], lock: Path) -> Any:
    """Return a reference to the `Greeting` of a node. Takes no core, so a busy node answers, too."""
    task = on_node(ray, greet, node["NodeID"], num_cpus=0)
    return task.remote(environment(), lock, has_card=n_cards(node) > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A node for `doctor`. sees_home: it may take steps of an experiment. answers: otherwise the rest is unknown."""

    name: str
    cores: int
    cards: int
    computer: str = ""
    differs: tuple[str, ...] = ()
    sees_home: bool = False
    guarded: bool = False
    answers: bool = True


def examine(address: str, home: Path) -> list[Machine]:
    """Ask every node of a cluster what it is. address: "" for this machine alone. Errors: those of `engine`."""
    lock = Lock(home / f".{secrets.token_hex(8)}.tmp")
    lock.acquire("doctor")
    try:
        with engine(address) as ray:
            return [_examined(ray, node, lock) for node in ray.nodes() if node["Alive"]]
    finally:
        lock.release()
        lock.path.unlink(missing_ok=True)


def _examined(ray: Any, node: Mapping[str, Any], lock: Lock) -> Machine:
    name, cores, n = node["NodeManagerHostname"], n_cores(node), n_cards(node)
    try:
        answer: Greeting = ray.get(ask(ray, node, lock.path), timeout=PATIENCE)
    except ray.exceptions.RayError:  # also a timeout
        return Machine(name=name, cores=cores, cards=n, answers=False)
    return Machine(
        name=name,
        cores=cores,
        cards=n,
        computer=answer.computer,
        differs=answer.differs,
        sees_home=answer.holder is not None and answer.holder == lock.holder(),
        guarded=answer.guarded,
    )
