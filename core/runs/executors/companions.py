"""Processes on a cluster's other nodes that help with a run as those of `--share` do: they see its home, and know of
the others by its files alone. The engine starts them and says which are gone, no more."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from subprocess import TimeoutExpired
from time import monotonic
from typing import Any

from core import cards
from core.errors import ResourceError
from core.runs import launch
from core.runs.context import RunContext
from core.runs.executors.engine import engine
from core.runs.executors.hand import environment
from core.runs.executors.hello import Hello, Roll
from core.runs.executors.machines import Machines
from core.runs.executors.on_ray import RayHand
from core.runs.lock import Lock, Worker
from core.runs.store import RunStore
from core.runs.where import LOCAL, MIXED, ON, Where
from core.runs.worker import log_traceback

_LOOK = 0.2  # seconds between two looks at who has answered, and at a wish to cancel
_COUNT = 2.0  # seconds between two counts of nodes
_GRACE = 1.0  # seconds in which who helps sees a wish to cancel by itself, and leaves a checkpoint
_THREADS = "OMP_NUM_THREADS"
_PASSED_ON = (MIXED, "WINNOW_CONFINED", "WINNOW_DATA_DIRS", _THREADS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """A node's answer. computer: the name of what a training has there. holder: who works on the run, as its lock says
    there: the same as here where both see one home, and the locks in it."""

    hello: Hello
    computer: str
    holder: Worker | None


class Companion(RayHand):
    """A worker of the engine that has a process of its node help with a run, which ends with it."""

    def greet(self, lock: Path) -> Greeting:
        holder = None
        with suppress(OSError):  # another account's home, or something else at its path
            holder = Lock(lock).holder()
        return Greeting(hello=self.hello(), computer=cards.machine(), holder=holder)

    def help(self, run_id: str, home: Path, given: Mapping[str, str]) -> int:
        """The exit status of a process that helps for as long as the run is worked on. given: of its environment."""
        # Ray leaves a worker one thread, and a training has its node, or its card's share of it, to itself.
        own = {name: value for name, value in os.environ.items() if name != _THREADS}
        run = RunStore(home).get(run_id)
        process = launch.helper(run, environment={**own, **given}, tied=True)
        while True:
            wished = run.cancel_file.exists()
            with suppress(TimeoutExpired):
                return process.wait(_GRACE if wished else _LOOK)
            if wished:  # sooner than the engine ends this worker, and the process with it
                process.kill()


@dataclass(eq=False)
class _Member:
    """A companion. place: the engine's name of its node."""

    place: str
    actor: Any
    helps: bool = False


class Companions:
    """Companions of a run: one for each card of the nodes that are not this machine's, or one for a node without.

    A thread begins them, names who is left idle or gone, and ends them, also while this process is at a step for hours.
    """

    def __init__(self, ray: Any, on: str, context: RunContext) -> None:
        self._ray, self._context, self._run = ray, context, context.run
        mixed = Where.asked().mixed
        self._machines, self._roll = Machines(context, on, mixed=mixed), Roll(context, mixed=mixed)
        self._holder = self._run.lock.holder()
        self._hired, self._members = {ray.get_runtime_context().get_node_id()}, list[_Member]()
        self._asked = dict[Any, _Member]()
        self._counted, self._idle = float("-inf"), set[str]()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"companions {self._run.id}", daemon=True)
        self._thread.start()

    @property
    def n(self) -> int:
        """Number of those that help now."""
        return sum(member.helps for member in self._members)

    def close(self) -> None:
        """End them."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        try:
            while not self._over.wait(_LOOK) and not self._run.cancel_file.exists():
                self._look()
        except Exception as error:  # noqa: BLE001  the run goes on alone, and says so
            log_traceback(self._run, error)
            self._note("The other nodes of the cluster are done without from here on; worker.log says why.")
        finally:
            self._end()

    def _look(self) -> None:
        if monotonic() - self._counted > _COUNT:
            nodes = self._ray.nodes()
            self._machines.seen(nodes)
            for node in nodes:
                if node["Alive"] and node["NodeID"] not in self._hired:
                    self._hire(node["NodeID"], int(node.get("Resources", {}).get("GPU", 0)))
            self._counted = monotonic()
        if self._asked:
            for reference in self._ray.wait(list(self._asked), num_returns=len(self._asked), timeout=0)[0]:
                self._take(self._asked.pop(reference), reference)
            self._machines.keep()

    def _hire(self, place: str, n_cards: int) -> None:
        self._hired.add(place)
        n_cards = 0 if cards.asked() == "cpu" else n_cards
        here = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy(place, soft=False)
        options = {"num_cpus": 1, "num_gpus": min(n_cards, 1), "max_restarts": 0, "scheduling_strategy": here}
        for _ in range(max(n_cards, 1)):
            member = _Member(place, self._ray.remote(Companion).options(**options).remote(environment()))
            self._members.append(member)
            self._asked[member.actor.greet.remote(self._run.lock.path)] = member

    def _take(self, member: _Member, reference: Any) -> None:
        name = self._machines.name(member.place)
        try:
            answer = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            log_traceback(self._run, RuntimeError(str(error)))
            how = "is lost" if member.helps else f"could not begin ({type(error).__name__}, see worker.log)"
            self._lose(member, f"What helped on {name} {how}; its steps are made elsewhere.")
            return
        if not isinstance(answer, Greeting):
            self._lose(member, f"What helped on {name} has ended, see worker.log; its steps are made elsewhere.")
        elif reason := self._refused(name, answer):
            self._fire(member)
            if name not in self._idle:  # of several cards the first has spoken for all
                self._idle.add(name)
                self._note(reason)
        else:
            member.helps = True
            self._machines.begun(member.place)
            given = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
            self._asked[member.actor.help.remote(self._run.id, self._run.home, given)] = member

    def _refused(self, name: str, greeting: Greeting) -> str:
        """Sentence on why a node is left idle; "" where it may help."""
        if not greeting.hello.guarded:
            return f"Node {name} takes code from whoever reaches its ports: it is left idle; start it with a token."
        if greeting.holder is None or greeting.holder != self._holder:
            return f"Node {name} does not see the home: its steps are made elsewhere."
        try:
            self._roll.admit(greeting.hello)
            self._roll.trains(greeting.hello, greeting.computer)
        except ResourceError as error:
            return f"{error} It is left idle, and the others go on."
        return ""

    def _lose(self, member: _Member, sentence: str) -> None:
        self._machines.lost(member.place, ready=member.helps)
        self._fire(member)
        self._note(sentence)

    def _fire(self, member: _Member) -> None:
        self._members.remove(member)
        self._ray.kill(member.actor)

    def _note(self, sentence: str) -> None:
        self._context.note(sentence, passing=True)

    def _end(self) -> None:
        if self._run.cancel_file.exists() and self._asked:
            self._ray.wait(list(self._asked), num_returns=len(self._asked), timeout=_GRACE + 2 * _LOOK)
        for member in list(self._members):
            self._fire(member)
        self._machines.over()


@contextmanager
def companions(context: RunContext, on: str) -> Iterator[Companions]:
    """Companions on the cluster that `on` names, for a block, in which this process makes its chunks itself.

    Errors: as of `engine`.
    """
    with engine(on.removeprefix("ray:")) as ray:
        before = os.environ.get(ON, "")
        os.environ[ON] = LOCAL  # workers would wait for cards that companions have until the run is over
        helping = Companions(ray, on, context)
        try:
            yield helping
        finally:
            os.environ[ON] = before
            helping.close()
