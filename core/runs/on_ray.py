"""Compute chunks and whole runs with Ray, on the cores and GPUs of this machine or of a cluster.

Workers store no results; only chunk files and run folders hold results. If a worker is lost or hangs, another worker
computes its chunks.
"""

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core import cards
from core.cards import Card
from core.errors import ResourceError, WinnowError, for_the_log, memory_ran_out
from core.reporter import Silent
from core.runs import launch
from core.runs.chunks import About, Chunks, Opened, Work, refuse
from core.runs.context import RunContext
from core.runs.ray_engine import Greeting, ask, engine, environment, n_cards, n_cores, on_node, take_over
from core.runs.shared import STEP_OF, device_lock
from core.runs.store import Run, RunStore
from core.runs.where import LOCAL, MIXED, ON
from core.runs.worker import log_traceback
from core.shown import count

LOSSES = 4  # the run fails after so many worker deaths: on one chunk, or before any worker starts

_AHEAD = 2  # maximum number of chunks sent to a worker: the chunk that it computes, and the next one

_LOOK = 0.2  # seconds between two checks for a cancellation

_COUNT = 2.0  # seconds between two checks for new and lost nodes

_PATIENCE = 30.0  # seconds without any worker after which a note tells the user that the run is waiting

_THREADS = "OMP_NUM_THREADS"
_PASSED_ON = (MIXED, "WINNOW_CONFINED", "WINNOW_DATA_DIRS", _THREADS)


class _Nodes:
    """The nodes of a cluster. Winnow admits or refuses each node; a node may also leave the cluster."""

    def __init__(self, ray: Any, on: str, context: RunContext, *, for_runs: bool = False) -> None:
        """Start with no nodes; `look` finds them. on: value of the option `--on`.

        for_runs: True to admit only nodes that can read the home folder and train on the same device as this machine.
        """
        self.admitted = dict[str, Mapping[str, Any]]()  # {Ray's id of a node: Ray's description of the node}
        self.have_cards = False
        self._ray, self._on, self._context, self._for_runs = ray, on, context, for_runs
        self._known = dict[str, str]()  # {Ray's id of a node: its name}
        self._asked = dict[Any, Mapping[str, Any]]()
        self._refused = dict[str, ResourceError]()
        self._looked = float("-inf")

    def look(self) -> None:
        """Admit or refuse new nodes, and drop lost nodes. Errors: ResourceError if every node was refused."""
        if time.monotonic() - self._looked > _COUNT:
            self._looked = time.monotonic()
            alive = {node["NodeID"]: node for node in self._ray.nodes() if node["Alive"]}
            self.have_cards = cards.asked() != "cpu" and any(map(n_cards, alive.values()))
            for gone in self._known.keys() - alive.keys():
                name = self._known.pop(gone)
                self._refused.pop(gone, None)
                self._drop(gone, name)
            hosts = Counter(node["NodeManagerHostname"] for node in alive.values())
            for new in [node for node in alive if node not in self._known]:
                host = alive[new]["NodeManagerHostname"]
                self._known[new] = host if hosts[host] == 1 else f"{host} {new[:4]}"
                self._asked[ask(self._ray, alive[new], self._context.run.lock.path)] = alive[new]
        answered = self._ray.wait(list(self._asked), num_returns=len(self._asked), timeout=0)[0] if self._asked else []
        for reference in answered:
            self._admit(self._asked.pop(reference), reference)
        if self._refused and not self.admitted and not self._asked:
            raise next(iter(self._refused.values()))

    def name(self, node: str) -> str:
        """Return the name of a node."""
        return self._known.get(node, "a node")

    def is_gone(self, node: str, error: Exception) -> bool:
        """Return True, and drop the node, if `error` shows that it has left. Ray still lists it for some seconds."""
        gone = type(error).__name__.endswith("UnschedulableError")
        if gone:
            self._drop(node, self.name(node))
        return gone

    def _drop(self, node: str, name: str) -> None:
        if self.admitted.pop(node, None):
            self._context.note(f"Node {name} is gone.", passing=True)

    def refuse(self, node: str, error: ResourceError) -> None:
        """Leave a node idle because it cannot run Winnow, or because other nodes compute different results.

        Errors: `error`, if the refused nodes outnumber the nodes that are admitted or have not answered yet.
        """
        self.admitted.pop(node, None)
        self._refused[node] = error
        if len(self._refused) > len(self.admitted) + len(self._asked):
            raise error
        self._context.note(f"{error} This node is left idle; the other nodes continue.", passing=True)

    def _admit(self, node: Mapping[str, Any], reference: Any) -> None:
        place = node["NodeID"]
        name = self.name(place)
        try:
            answer: Greeting = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            log_traceback(self._context.run, RuntimeError(str(error)))
            way_out = "see worker.log, and check that Winnow is at the same path there, with the same packages"
            self.refuse(place, ResourceError(f"node {name}: cannot run Winnow ({type(error).__name__}); {way_out}."))
            return
        if self._on != "ray" and not answer.guarded:
            raise ResourceError(
                f"on: {self._on} runs code from anyone who can reach its ports; start it with RAY_AUTH_MODE=token."
            )
        if self._for_runs and (answer.holder is None or answer.holder != self._context.run.lock.holder()):
            self._context.note(
                f"Node {name} cannot read Winnow's home folder, so it runs no steps of the experiment.", passing=True
            )
            return
        try:
            if answer.differs:
                refuse(self._context, f"node {name}: has {', '.join(answer.differs)}", "install the same packages")
            if self._for_runs and answer.computer != (here := cards.machine()):
                way_out = "use nodes of one kind, and start the run on one of them"
                refuse(
                    self._context,
                    f"node {name}: trains on {answer.computer}, but this machine trains on {here}",
                    way_out,
                )
        except ResourceError as error:
            self.refuse(place, error)
            return
        self.admitted[place] = node
        if self._on != "ray":
            has = f"{count(n_cores(node), 'core')}, {count(n_cards(node), 'GPU')}"
            self._context.note(f"Node {name} takes part: {has}.", passing=True)


def _address(on: str) -> str:
    return on.removeprefix("ray").removeprefix(":")


def compute(chunks: Chunks, work: Work, on: str) -> About:
    """Compute the missing chunks on workers of Ray, one worker per GPU or core. Return `Opened.about`.

    on: value of the option `--on`. Errors: those of `engine`; ResourceError if too many workers die or nodes are
    refused; any error that a worker raises.
    """
    chunks.context.stage("starting workers")
    with ExitStack() as stack:
        own: Sequence[Card] | None = None
        if not _address(on) and cards.installed():
            own = sorted(cards.of_workers(), key=lambda card: card.lock) if work.card else []
            for card in own:  # all runs lock GPUs in the same order, to avoid deadlocks
                stack.enter_context(device_lock(chunks.context.run.home, card.lock, chunks.context))
        ray = stack.enter_context(engine(_address(on), own))
        return _Crew(ray, on, chunks, work).compute()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error of a worker.

    error: the error, if it can be shown to users; None otherwise. log: traceback of any other exception, see
    `for_the_log`. memory: True if memory ran out.
    """

    error: WinnowError | None = None
    log: str = ""
    memory: bool = False

    def raised(self) -> Exception:
        """Return the exception to raise in the run's process."""
        if self.error:
            return self.error
        return MemoryError() if self.memory else RuntimeError(f"in a worker:\n{self.log}")


class Actor:
    """The process of a worker. It computes chunks, but reads no corpus and writes no file."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        take_over(variables)
        self._opened: Opened | None = None

    def open(self, work: Work) -> tuple[About, tuple[str, str]] | Failure:
        """Load the model. Return `Opened.about` and the result of `Work.device`, or a `Failure`."""

        def opened() -> tuple[About, tuple[str, str]]:
            device = work.device()
            self._opened = work.open(Silent())
            return self._opened.about, device

        answer: tuple[About, tuple[str, str]] | Failure = self._or_failure(opened)
        return answer

    def make(self, rows: Any) -> Any:
        """Compute and return the array of the input `rows`, or return a `Failure`."""
        opened = self._opened
        assert opened
        return self._or_failure(lambda: opened.array(rows, Silent()))

    @staticmethod
    def _or_failure(work: Callable[[], Any]) -> Any:
        """Call `work`; return a `Failure` if it raises. Ray would print an exception and replace the worker."""
        try:
            return work()
        except WinnowError as error:
            return Failure(error=error)
        except Exception as error:  # noqa: BLE001  raised again in the run's process
            return Failure(log=for_the_log(error), memory=memory_ran_out(error))


@dataclass(eq=False)
class _Worker:
    """A worker.

    begun: True once its model is loaded and its first results were compared (`Chunks.hold_to_first`). held: numbers of
    the chunks that were sent to the worker; it is computing the first of them.
    """

    node: str
    actor: Any
    begun: bool = False
    held: list[int] = field(default_factory=list)


class _Crew:
    """The workers that compute one run's chunks.

    `_asked` maps Ray's reference of each open request to the worker, the kind of request, and the chunk.
    """

    def __init__(self, ray: Any, on: str, chunks: Chunks, work: Work) -> None:
        self._ray, self._on, self._chunks, self._work = ray, on, chunks, work
        self._context, self._nodes = chunks.context, _Nodes(ray, on, chunks.context)
        self._workers, self._shipped = list[_Worker](), ray.put(work)
        self._todo, self._left = deque(chunks.missing), set(chunks.missing)
        self._asked = dict[Any, tuple[_Worker, str, int]]()
        self._about: About | None = None
        self._probe: Any = None
        self._losses, self._stillborn, self._since = Counter[int](), 0, time.monotonic()

    def compute(self) -> About:
        """Compute all chunks on the workers, and return `Opened.about`."""
        try:
            while self._left or self._about is None:
                self._nodes.look()
                self._hire()
                self._deal()
                if not self._asked:
                    time.sleep(_LOOK)
                for reference in self._ray.wait(list(self._asked), timeout=_LOOK)[0] if self._asked else []:
                    if reference in self._asked:  # False if an earlier pass of this loop removed the worker
                        self._take(reference)
                self._context.check()
            return self._about
        finally:
            for worker in self._workers:
                self._ray.kill(worker.actor)

    def _hire(self) -> None:
        """Start workers on free cores or GPUs, at most one worker per unfinished chunk."""
        card = self._work.card and self._nodes.have_cards
        size = n_cards if card else n_cores
        there = Counter(worker.node for worker in self._workers)
        while len(self._workers) < max(len(self._left), 1):
            free = [place for place, node in self._nodes.admitted.items() if there[place] < size(node)]
            if not free:
                break
            place = min(free, key=there.__getitem__)
            there[place] += 1
            actor = on_node(self._ray, Actor, place, num_cpus=1, num_gpus=int(card)).remote(environment())
            self._workers.append(worker := _Worker(place, actor))
            self._ask(worker, "open", self._shipped)
        if time.monotonic() - self._since > _PATIENCE and self._about is None:
            self._since = time.monotonic()
            self._context.note(f"{self._on}: no worker has started; waiting for a free core or GPU.", passing=True)

    def _deal(self) -> None:
        for worker in [worker for worker in self._workers if worker.begun]:
            while len(worker.held) < _AHEAD and self._todo:
                self._give(worker, self._todo.popleft())
            if not worker.held and (i := self._waited_for()) is not None:
                self._give(worker, i)

    def _waited_for(self) -> int | None:
        """Return the oldest unfinished chunk that only one worker computes, or None.

        An idle worker then computes this chunk too, because the first worker may hang.
        """
        held = Counter(i for worker in self._workers for i in worker.held)
        return next(
            (i for _, what, i in self._asked.values() if what == "chunk" and i in self._left and held[i] == 1), None
        )

    def _give(self, worker: _Worker, i: int) -> None:
        assert self._about is not None
        worker.held.append(i)
        self._ask(worker, "chunk", self._work.read(*self._chunks.bounds(i), self._about), of=i)

    def _ask(self, worker: _Worker, what: str, given: Any, of: int = -1) -> None:
        method = worker.actor.open if what == "open" else worker.actor.make
        self._asked[method.remote(given)] = worker, what, of

    def _take(self, reference: Any) -> None:
        worker, what, i = self._asked.pop(reference)
        try:
            answer = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:  # every RayError means a lost worker (Ray issue 59667)
            self._lose(worker, error)
            return
        if isinstance(answer, Failure):
            raise answer.raised()
        if what == "open":
            self._learn(worker, *answer)
        elif what == "probe":
            try:
                self._chunks.hold_to_first(self._nodes.name(worker.node), answer)
            except ResourceError as error:
                for other in [each for each in self._workers if each.node == worker.node]:
                    self._remove(other)
                self._nodes.refuse(worker.node, error)
            else:
                self._begin(worker)
        else:
            worker.held.remove(i)
            if i in self._left:
                self._left.remove(i)
                self._chunks.keep(i, answer)

    def _learn(self, worker: _Worker, about: About, device: tuple[str, str]) -> None:
        if self._about is None:
            self._about = about
            self._context.runs_on(f"workers on Ray: {device[0]}", device[1])
            self._context.stage(self._work.stage)
            self._probe = self._ray.put(self._work.read(*self._chunks.probed, about)) if self._left else None
        if self._left:
            self._ask(worker, "probe", self._probe)
        else:
            self._begin(worker)

    def _begin(self, worker: _Worker) -> None:
        worker.begun = True
        self._stillborn = 0

    def _remove(self, worker: _Worker) -> int:
        """End a worker, and put its chunks that no other worker has back into the queue. Return their number."""
        self._workers.remove(worker)
        self._ray.kill(worker.actor)
        self._asked = {ref: asked for ref, asked in self._asked.items() if asked[0] is not worker}
        elsewhere = {i for other in self._workers for i in other.held}
        again = [i for i in worker.held if i in self._left and i not in elsewhere]
        self._todo.extendleft(reversed(again))
        return len(again)

    def _lose(self, worker: _Worker, error: Exception) -> None:
        """Continue without a worker that died. Errors: ResourceError after `LOSSES` deaths."""
        again, node = self._remove(worker), self._nodes.name(worker.node)
        log_traceback(self._context.run, error)
        if self._nodes.is_gone(worker.node, error):
            return
        self._stillborn += not worker.begun
        if self._stillborn >= LOSSES:
            raise ResourceError(
                f"on: {LOSSES} workers died before they could start, the last on {node} ({type(error).__name__}, see "
                "worker.log); check that the model fits into the node's memory and is at the same path there."
            )
        self._losses.update(worker.held[:1])
        if max(self._losses.values(), default=0) >= LOSSES:
            raise ResourceError(
                f"on: {LOSSES} workers died on the same sentences, the last on {node}. Their memory is too small for "
                "the model or a batch; start fewer workers per machine, or use --on local."
            )
        self._context.note(f"A worker on {node} died; chunks to compute again: {again}.", passing=True)


def work_on_node(run_id: str, home: Path, variables: Mapping[str, str]) -> int:
    """Work on a run in a new process on this node, and return its exit status.

    Ray limits its own workers to one thread. The new process uses as many threads as the process that asked for it.
    """
    given = {name: value for name, value in os.environ.items() if name != _THREADS}
    return launch.tied(RunStore(home).get(run_id), {**given, **variables, ON: LOCAL}).wait()


class RunsOnRay:
    """Executes runs on the nodes of a Ray cluster: one run at a time per GPU, or per node if there are no GPUs.

    The first call of `begin` connects to Ray. on: value of the option `--on`.
    """

    def __init__(self, context: RunContext, on: str) -> None:
        self._context, self._on, self._stack = context, on, ExitStack()
        self._ray: Any = None
        self._at = dict[Any, tuple[Run, str]]()  # {Ray's reference: (run, node that works on the run)}
        self._losses = Counter[str]()

    def __enter__(self) -> "RunsOnRay":
        return self

    def __exit__(self, *given: object) -> None:
        """Cancel the runs in progress. Each run has `launch.CHECKPOINT` seconds to write a checkpoint."""
        with self._stack:
            for run, _ in self._at.values():
                run.cancel()
            if self._at:
                self._ray.wait(list(self._at), num_returns=len(self._at), timeout=launch.CHECKPOINT)
            for reference in self._at:
                self._ray.cancel(reference, force=True)

    @property
    def n(self) -> int:
        """Maximum number of runs in progress at the same time."""
        return max(sum(map(self._room, self._nodes.admitted.values())), 1) if self._ray else 1

    @property
    def free(self) -> bool:
        """True if another run may start."""
        return len(self._at) < self.n

    @property
    def at_work(self) -> bool:
        """True if a run is in progress."""
        return bool(self._at)

    def begin(self, run: Run) -> bool:
        """Start a process for a run. Return False if no node is free, or if a process already works on the run."""
        if self._ray is None:
            self._connect()
        used = Counter(node for _, node in self._at.values())
        free = [place for place, node in self._nodes.admitted.items() if used[place] < self._room(node)]
        if not free or run.lock.held() or any(run.id == other.id for other, _ in self._at.values()):
            return False
        place = min(free, key=used.__getitem__)
        run.cancel_file.unlink(missing_ok=True)
        self._context.child(run)
        variables = environment() | {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        variables[STEP_OF] = str(self._context.root.path)
        task = on_node(self._ray, work_on_node, place, num_cpus=1, num_gpus=int(self._nodes.have_cards))
        self._at[task.remote(run.id, run.home, variables)] = run, place
        return True

    def wait(self, seconds: float) -> list[Run]:
        """Wait until a run ends, at most `seconds`, and return the runs that have succeeded meanwhile.

        If the node or process of a run died, the caller must call `begin` again; the run continues from its checkpoint.
        Errors: those of `launch.succeeded`; ResourceError if every node was refused.
        """
        if self._ray:
            self._nodes.look()
        if not self._at:
            time.sleep(seconds)
            return []
        return [
            run
            for reference in self._ray.wait(list(self._at), timeout=seconds)[0]
            for run in self._ended(reference, *self._at.pop(reference))
        ]

    def _connect(self) -> None:
        self._context.stage("starting workers")
        own = cards.of_workers() if not _address(self._on) and cards.installed() else None
        self._ray = self._stack.enter_context(engine(_address(self._on), own))
        self._nodes = _Nodes(self._ray, self._on, self._context, for_runs=True)
        while not self._nodes.admitted:
            self._nodes.look()
            self._context.check()
            time.sleep(_LOOK)

    def _room(self, node: Mapping[str, Any]) -> int:
        return n_cards(node) if self._nodes.have_cards else 1

    def _ended(self, reference: Any, run: Run, place: str) -> list[Run]:
        """Handle a run whose process has ended. Return [run] if the run has succeeded, else []. Errors: see `wait`."""
        status, name = -1, self._nodes.name(place)
        try:
            status = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            log_traceback(self._context.run, error)
            if self._nodes.is_gone(place, error):
                return []
        return [run] if launch.succeeded(run, status, self._losses, name, self._context) else []
