"""The machines of a cluster while a run computes on them, kept beside it for whoever looks."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from core.runs.context import RunContext
from core.runs.where import Node, Where


class Machines:
    """The nodes of a cluster, their workers, and what came of them, those of earlier chunks of the run included."""

    def __init__(self, context: RunContext, on: str, *, mixed: bool) -> None:
        """Kept beside the run that somebody asked for, whose child this may be."""
        self._context, self._folder = context, context.root.path
        nodes = Where.read(self._folder).nodes
        self._before = {node.name: replace(node, workers=0) for node in nodes}  # who was killed told of no end
        self._where = Where(on=on, mixed=mixed)
        self._nodes = dict[str, Node]()  # by the engine's name of them
        self._workers, self._chunks, self._lost = Counter[str](), Counter[str](), Counter[str]()
        self._kept: Where | None = None

    def seen(self, nodes: Iterable[Mapping[str, Any]]) -> None:
        """Keep what the engine says of its nodes now; one that died since is noted."""
        nodes = list(nodes)
        names = Counter(node["NodeManagerHostname"] for node in nodes)
        for node in nodes:
            place, name, has = node["NodeID"], node["NodeManagerHostname"], node.get("Resources", {})
            before = self._nodes.get(place)
            if not node["Alive"]:
                if before and not before.gone:
                    self._context.note(f"Node {before.name} is gone.", passing=True)
                    self._nodes[place] = replace(before, gone=True)
                continue
            self._nodes[place] = Node(
                name=name if names[name] == 1 else f"{name} {place[:4]}",
                cores=int(has.get("CPU", 0)),
                cards=int(has.get("GPU", 0)),
            )
        self.keep()

    def name(self, place: str) -> str:
        """The name of a node that was seen."""
        return self._nodes[place].name

    def begun(self, place: str) -> None:
        """A worker may be given chunks there."""
        self._workers[place] += 1

    def finished(self, place: str) -> None:
        """A chunk came of there."""
        self._chunks[place] += 1

    def lost(self, place: str, *, ready: bool) -> None:
        """A worker died there. ready: it had been given chunks."""
        self._workers[place] -= ready
        self._lost[place] += 1

    def over(self) -> None:
        """No worker is left, for the work is done or stopped."""
        self._workers.clear()
        self.keep()

    def keep(self) -> None:
        """Write down what is new."""
        now = {node.name: self._now(place, node) for place, node in self._nodes.items()}
        where = replace(self._where, nodes=tuple({**self._before, **now}.values()))
        if where != self._kept:
            where.keep(self._folder)
            self._kept = where

    def _now(self, place: str, node: Node) -> Node:
        before = self._before.get(node.name, node)
        return replace(
            node,
            workers=0 if node.gone else self._workers[place],
            chunks=before.chunks + self._chunks[place],
            lost=before.lost + self._lost[place],
        )
