"""Chunks made by workers of Ray: a worker a card, or a processor. Ray starts them and says which are gone, no more.

A chunk may be made twice, for it is the same bytes: it is dealt again when its worker is lost, and to whoever is idle
at the end, so that nothing waits for a machine that stands still.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from time import monotonic
from typing import Any

from core import cards
from core.errors import ResourceError
from core.runs.chunks import Chunks, Work
from core.runs.context import RunContext
from core.runs.executors.engine import engine, own_cards
from core.runs.executors.hand import Failure, Hand, environment
from core.runs.executors.hello import PROBED, Hello, digest, roll
from core.runs.executors.machines import Machines
from core.runs.worker import log_traceback

LOSSES = 4  # workers that one chunk may cost, or that may die before any has begun
_AHEAD = 2  # chunks a worker has: the next one is there when it has done one
_LOOK = 0.2  # seconds between two looks at a wish to cancel
_COUNT = 2.0  # seconds between two counts of processors and cards
_PATIENCE = 30.0  # seconds without a worker, before the run says that it waits


def make(chunks: Chunks, work: Work, address: str) -> Mapping[str, Any]:
    """Make what is missing of `chunks`: what the work says of its model. address: "" for this machine alone.

    Errors: ConfigError, ResourceError of Ray and of its workers; whatever ends the work on any of them.
    """
    with ExitStack() as stack:
        held = _held[-1] if _held else stack.enter_context(session())
        if held.ray is None:
            chunks.context.stage("starting workers")
            held.begin(address, chunks.context, card=work.card)
        return _Crew(held, chunks, work).work_off()


class Session:
    """An engine and its workers, for one work after the other: both take seconds to begin."""

    def __init__(self) -> None:
        self.ray: Any = None
        self.address = ""
        self.members = dict[int, _Member]()
        self._engine = ExitStack()

    def begin(self, address: str, context: RunContext, *, card: bool) -> None:
        """card: whether works may have one; on this machine they then have all."""
        own = None if address else self._engine.enter_context(own_cards(context, wanted=card))
        self.ray, self.address = self._engine.enter_context(engine(address, own)), address

    def close(self) -> None:
        """End the workers, and the engine where it was begun here."""
        with self._engine:
            for member in self.members.values():
                self.ray.kill(member.actor)


_held: list[Session] = []  # of this process, the innermost last


@contextmanager
def session() -> Iterator[Session]:
    """One for all that is made in the block."""
    _held.append(new := Session())
    try:
        yield new
    finally:
        _held.remove(new)
        new.close()


class RayHand(Hand):
    """A worker that Ray started, which knows on which of its nodes it is."""

    def hello(self) -> Hello:
        place: str = import_module("ray").get_runtime_context().get_node_id()
        return replace(super().hello(), place=place)


@dataclass(eq=False)
class _Member:
    """A worker. card: how many it has. ready: it may be given chunks. begun: it has been, also by a work before.
    refused: it would make other bytes, and keeps its place so that none is begun there in its stead. held: chunks that
    it has, the one that it is at first."""

    number: int
    actor: Any
    card: int
    hello: Hello | None = None
    ready: bool = False
    begun: bool = False
    refused: ResourceError | None = None
    held: list[int] = field(default_factory=list)


class _Crew:
    """The workers of one run. `_asked` is all that is waited for: of whom, what, and which chunk."""

    def __init__(self, held: Session, chunks: Chunks, work: Work) -> None:
        self._ray, self._chunks, self._work, self._roll = held.ray, chunks, work, roll(chunks, work)
        self._address, self._members = held.address, held.members
        self._on = f"ray:{held.address}" if held.address else "ray"
        self._machines = Machines(chunks.context, self._on, mixed=self._roll.mixed)
        self._context, self._shipped = chunks.context, held.ray.put(work)
        self._todo, self._left = deque(chunks.missing), set(chunks.missing)
        self._asked = dict[Any, tuple[_Member, str, int]]()
        self._about: Mapping[str, Any] | None = None
        self._losses, self._stillborn, self._hired = Counter[int](), 0, max(self._members, default=0)
        self._room, self._cards, self._announced = 1, 0, False
        self._counted, self._since = float("-inf"), monotonic()
        self._probe: Any = None

    def work_off(self) -> Mapping[str, Any]:
        """Have all chunks made."""
        try:
            self._count()
            self._ask_again()
            while self._left or self._about is None:
                self._hire()
                self._deal()
                for reference in self._ray.wait(list(self._asked), timeout=_LOOK)[0]:
                    if reference in self._asked:  # not one of a worker that was lost meanwhile
                        self._take(reference)
                self._context.check()
            return self._about
        finally:
            self._machines.over()

    def _count(self) -> None:
        """Look what there is room for."""
        resources = self._ray.cluster_resources()
        self._counted = monotonic()
        self._cards = int(resources.get("GPU", 0)) if self._work.card and cards.asked() != "cpu" else 0
        self._room = self._cards or int(resources.get("CPU", 0)) or 1
        self._machines.seen(nodes := self._ray.nodes())
        alive = {node["NodeID"] for node in nodes if node["Alive"]}
        for member in [each for each in self._members.values() if each.refused and _place(each) not in alive]:
            del self._members[member.number]  # whose death nobody hears of, for it is asked nothing

    def _ask_again(self) -> None:
        """Open the work on workers of the one before, where they have the device that it wants."""
        for member in list(self._members.values()):
            if member.hello is None or member.card != int(self._cards > 0):
                del self._members[member.number]
                self._ray.kill(member.actor)
            elif not member.refused:
                member.ready, member.held = False, []
                self._ask(member, "opened", self._shipped)

    def _hire(self) -> None:
        """Workers up to what there is room for, and work."""
        now = monotonic()
        if now - self._counted > _COUNT:
            self._count()
        refused = [member.refused for member in self._members.values() if member.refused]
        while len(self._members) < min(self._room, max(len(self._left), 1) + len(refused)):
            card = int(self._cards > 0)
            options = {"num_cpus": 1, "num_gpus": card, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
            self._hired += 1
            member = _Member(self._hired, self._ray.remote(RayHand).options(**options).remote(environment()), card)
            self._members[member.number] = member
            self._ask(member, "hello")
        if len(refused) == len(self._members):  # who was left has gone
            raise refused[-1]
        if now - self._since > _PATIENCE and not any(member.hello for member in self._members.values()):
            self._since = now
            self._context.note(f"{self._on}: no worker has begun; waiting for a free processor or card.", passing=True)

    def _deal(self) -> None:
        for member in [member for member in self._members.values() if member.ready]:
            while len(member.held) < _AHEAD and self._todo:
                self._give(member, self._todo.popleft())
            if not member.held and (waiting := self._backup()) is not None:
                self._give(member, waiting)

    def _backup(self) -> int | None:
        """The chunk that has been with one worker for longest, and that nobody else has."""
        held = Counter(i for member in self._members.values() for i in member.held)
        return next(
            (i for _, what, i in self._asked.values() if what == "chunk" and i in self._left and held[i] == 1), None
        )

    def _give(self, member: _Member, i: int) -> None:
        member.held.append(i)
        assert self._about is not None
        self._ask(member, "chunk", self._work.read(*self._chunks.bounds(i), self._about), of=i)

    def _ask(self, member: _Member, what: str, *given: Any, of: int = -1) -> None:
        method = {"hello": "hello", "opened": "open"}.get(what, "make")
        self._asked[getattr(member.actor, method).remote(*given)] = member, what, of

    def _take(self, reference: Any) -> None:
        member, what, i = self._asked.pop(reference)
        try:
            answer = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:  # whatever it is, the worker is of no use (ray issue 59667)
            self._lose(member, error)
            return
        if isinstance(answer, Failure):
            raise answer.raised()
        if what == "chunk":
            member.held.remove(i)
            if i in self._left:
                self._left.remove(i)
                self._machines.finished(_place(member))
                self._chunks.keep(i, answer)
        else:
            answered: Mapping[str, Callable[[_Member, Any], None]]
            answered = {"hello": self._greet, "opened": self._learn, "probed": self._admit}
            answered[what](member, answer)

    def _greet(self, member: _Member, hello: Hello) -> None:
        if self._address and not hello.guarded:
            raise ResourceError(
                f"on: {self._on} takes code from whoever reaches its ports; start it under RAY_AUTH_MODE=token."
            )
        member.hello = hello
        with self._refusing(member):
            self._roll.admit(hello)
            self._ask(member, "opened", self._shipped)

    def _learn(self, member: _Member, opened: tuple[Mapping[str, Any], tuple[str, str]]) -> None:
        self._about, device = opened
        if not self._announced:
            self._announced = True
            self._context.runs_on(f"workers on Ray: {device[0]}", device[1])
            self._context.stage(self._work.stage)
        if self._work.exact:
            self._begin(member)
            return
        if self._probe is None:
            start, stop = self._chunks.bounds(0)
            rows = self._work.read(start, min(start + PROBED, stop), self._about)
            self._probe = self._ray.put(rows)
        self._ask(member, "probed", self._probe)

    def _admit(self, member: _Member, array: Any) -> None:
        assert member.hello
        with self._refusing(member):
            self._roll.probed(member.hello, digest(array))
            self._begin(member)

    @contextmanager
    def _refusing(self, member: _Member) -> Iterator[None]:
        """Go on without a worker that would make other bytes. Errors: ResourceError where most would."""
        try:
            yield
        except ResourceError as error:
            member.refused = error
            refused = sum(bool(each.refused) for each in self._members.values())
            if refused > len(self._members) - refused:
                raise
            self._context.note(f"{error} It is left idle, and the others go on.", passing=True)

    def _begin(self, member: _Member) -> None:
        assert member.hello
        member.ready = member.begun = True
        self._stillborn = 0
        self._machines.begun(member.hello.place)

    def _lose(self, member: _Member, error: Exception) -> None:
        """Take a worker off, and its chunks back. Errors: ResourceError where that is no use."""
        del self._members[member.number]
        self._ray.kill(member.actor)
        self._asked = {ref: asked for ref, asked in self._asked.items() if asked[0] is not member}
        elsewhere = {i for other in self._members.values() for i in other.held}
        again = [i for i in member.held if i in self._left and i not in elsewhere]
        self._todo.extendleft(reversed(again))
        node = member.hello.node if member.hello else "a node"
        self._machines.lost(_place(member), ready=member.ready)
        # Who was given nothing yet quotes no corpus.
        log_traceback(self._context.run, error if member.hello else RuntimeError(str(error)))
        if not member.begun:
            self._stillborn += 1
            if self._stillborn >= LOSSES:
                raise ResourceError(
                    f"on: {LOSSES} workers died before they could begin, the last on {node} ({type(error).__name__}, "
                    "see worker.log); see that Winnow is at the same path there, with the same packages, and that the "
                    "model fits its memory."
                )
        self._losses.update(member.held[:1])
        if max(self._losses.values(), default=0) >= LOSSES:
            raise ResourceError(
                f"on: {LOSSES} workers died of the same sentences, the last on {node}; their memory is too small for "
                "the model or a batch: start fewer workers a machine, or give local."
            )
        self._context.note(f"A worker on {node} is lost; chunks to be made again: {len(again)}.", passing=True)


def _place(member: _Member) -> str:
    return member.hello.place if member.hello else ""
