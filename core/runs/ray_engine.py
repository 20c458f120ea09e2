"""Start Ray on this machine or join a cluster, and ask its nodes for their versions and devices.

Ray is started without messages and without its dashboard, and requires a token. The package `ray` is imported only when
a connection is made.
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

PATIENCE = 120.0  # seconds that `doctor` waits for each node's answer

PROCESSORS: int | None = None  # number of this machine's cores that workers may use; None for all

# Maximum length of the folder for temporary files, in characters. The path of a socket has at most 107 characters.
# Ray uses up to 65 of them, and our two folders up to 33.
_LONGEST = 9
_INNER = "r"
_STORE = 512 * 2**20  # bytes of shared memory for chunks in transit

_LOOPBACK = "127.0.0.2" if sys.platform == "linux" else None  # Ray would replace 127.0.0.1 by a public address
_QUIET = {"log_to_driver": False, "configure_logging": False}
_TOKEN = secrets.token_hex(32)  # one token per process, because Ray keeps the first token that it gets
_HOME = "WINNOW_HOME"
_PASSED_ON = (_HOME, cards.DEVICE, "WINNOW_OFFLINE", "HF_HUB_OFFLINE")


@contextmanager
def engine(address: str, own: Sequence[Card] | None = None) -> Iterator[Any]:
    """Connect to Ray for a block.

    address: HOST:PORT of a cluster; "" starts Ray on this machine and ends it after the block.
    own: GPUs of this machine that the workers may use; None for all GPUs.
    Errors: ConfigError if there is no token for the cluster; ResourceError if Ray does not start or answer.
    """
    given = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token"}
    if address:
        _need_token(address)
    elif not os.environ.get("RAY_AUTH_TOKEN"):
        given["RAY_AUTH_TOKEN"] = _TOKEN  # otherwise Ray writes a token into the account's home directory
    if own:
        given[cards.VISIBLE] = ",".join(card.uuid for card in own)
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)  # set before Ray is imported; the processes that Ray starts inherit these variables
    folder = None if address else _folder()
    ray = import_module("ray")
    # Suppress Ray's messages about dead workers on stdout, because stdout is reserved for a command's result.
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
            address="local",  # otherwise Ray would join the cluster in RAY_ADDRESS
            include_dashboard=False,
            num_cpus=PROCESSORS,
            num_gpus=n_cards,
            object_store_memory=_STORE,
            _temp_dir=str(folder / _INNER),
            _node_ip_address=_LOOPBACK,
            **_QUIET,
        )
    except Exception as error:  # Ray raises many types of errors
        why = f"{type(error).__name__}: {brief(str(error).strip().partition(chr(10))[0])}"
        if not address:
            raise ResourceError(f"on: Ray cannot start on this machine ({why}); use --on local.") from error
        raise ResourceError(
            f"on: ray:{address} cannot be joined ({why}); check that the cluster runs the same Ray and Python, and "
            f"that this machine has joined it (ray start --address={address})."
        ) from error


def _need_token(address: str) -> None:
    file = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    if not os.environ.get("RAY_AUTH_TOKEN") and not file.is_file():
        raise ConfigError(
            f"on: ray:{address} needs the cluster's token. Without one, anybody who reaches its ports can run code on "
            f"it. Start it with RAY_AUTH_MODE=token and copy its ~/.ray/auth_token to {file}, or set RAY_AUTH_TOKEN."
        )


def _folder() -> Path:
    """Create a folder that only this account may enter, and remove the folders of killed processes.

    Ray ignores the umask and makes its own folder writable for everybody. Ray's folder is therefore put into this
    private folder.
    """
    root = Path(tempfile.gettempdir())
    root = root if len(str(root)) <= _LONGEST else Path("/tmp")  # noqa: S108  (the folder below is private)
    for left in root.glob(f"winnow-{os.geteuid()}-*-*"):
        pid = left.name.split("-")[2]
        with suppress(FileNotFoundError):  # another process may remove it at the same time
            if pid.isdigit() and not psutil.pid_exists(int(pid)) and left.stat().st_uid == os.geteuid():
                shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"winnow-{os.geteuid()}-{os.getpid()}-", dir=root))


@contextmanager
def _own_signals() -> Iterator[None]:
    """After the block, restore the previous SIGTERM handler, which cancels the run. Ray replaces it in the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def environment() -> dict[str, str]:
    """Return the environment variables of this process that a worker must have too."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    if passed.get(cards.DEVICE, "").startswith("cuda"):
        passed[cards.DEVICE] = "cuda"  # without a number, because a worker sees only the GPU that Ray gave it
    return passed


def take_over(variables: Mapping[str, str]) -> None:
    """Set environment variables in a worker. Leave out WINNOW_HOME if this folder does not exist on the worker's node.

    variables: result of `environment` in the run's process.
    """
    seen = Path(variables.get(_HOME, "")).is_dir()
    os.environ.update({name: value for name, value in variables.items() if seen or name != _HOME})


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """A node's description of itself.

    versions: versions of the packages that results depend on. computer: name of the GPU or processor that computes.
    guarded: True if Ray requires a token. holder: process that holds the run's lock, as the node sees it. If the node
    sees the right process, it can read the home folder and its locks.
    """

    versions: Mapping[str, str]
    node: str
    computer: str
    guarded: bool
    holder: Worker | None

    @property
    def differs(self) -> tuple[str, ...]:
        """Packages with another version than on this machine, in words: "torch 2.1, here 2.2"."""
        pairs = [(name, here, self.versions.get(name, "none")) for name, here in versions().items()]
        return tuple(f"{name} {there}, here {here}" for name, here, there in pairs if here != there)


def greet(variables: Mapping[str, str], lock: Path, *, has_card: bool) -> Greeting:
    """Return the `Greeting` of the node on which this function runs. lock: lock file of the run that asks."""
    take_over(variables)
    computer, holder = cards.processor(), None
    if has_card and cards.asked() != "cpu":
        computer = next((card.name for card in cards.installed()), "an unknown card")
    with suppress(OSError):  # on this node, the lock file does not exist or belongs to another account
        holder = Lock(lock).holder()
    guarded = os.environ.get("RAY_AUTH_MODE", "").lower() == "token"
    return Greeting(versions=versions(), node=socket.gethostname(), computer=computer, guarded=guarded, holder=holder)


def on_node(ray: Any, function: Any, node: str, **resources: float) -> Any:
    """Return `function`, or an actor's class, as a Ray task that runs only on `node` and is not retried."""
    affinity = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy(node, soft=False)
    retries = {"max_restarts": 0} if isinstance(function, type) else {"max_retries": 0}
    return ray.remote(function).options(scheduling_strategy=affinity, **retries, **resources)


def n_cards(node: Mapping[str, Any]) -> int:
    """Return the number of GPUs of a node. node: Ray's description of the node."""
    return int(node.get("Resources", {}).get("GPU", 0))


def n_cores(node: Mapping[str, Any]) -> int:
    """Return the number of processor cores of a node. node: Ray's description of the node."""
    return int(node.get("Resources", {}).get("CPU", 0))


def ask(ray: Any, node: Mapping[str, Any], lock: Path) -> Any:
    """Ask a node for its `Greeting`, and return Ray's reference to it. The task needs no core, so busy nodes answer."""
    task = on_node(ray, greet, node["NodeID"], num_cpus=0)
    return task.remote(environment(), lock, has_card=n_cards(node) > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A node, as `doctor` shows it.

    cores, cards: number of cores and GPUs. sees_home: True if the node can read the home folder; only such nodes run
    steps of an experiment. answers: False if the node did not answer; the fields from `computer` on are then unknown.
    """

    name: str
    cores: int
    cards: int
    computer: str = ""
    differs: tuple[str, ...] = ()
    sees_home: bool = False
    guarded: bool = False
    answers: bool = True


def examine(address: str, home: Path) -> list[Machine]:
    """Return descriptions of all nodes of a cluster. address: "" for this machine alone. Errors: as for `engine`."""
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
    except ray.exceptions.RayError:  # for example, no answer in time
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
