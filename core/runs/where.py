"""Where a run computes, kept beside it in `where.json`: what was asked for and, of several machines, who did what.

No part of its config or key, for the same bytes come of it everywhere; a run that is resumed goes back there. Processes
of `--share` know of no head that could write there: each keeps a file of its own in the run's folder `shares`.
"""

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from core import cards
from core.files import read_object, write_atomic
from core.runs.lock import Lock

ON, MIXED = "WINNOW_ON", "WINNOW_MIXED"
SHARE = "WINNOW_SHARE"  # which of several processes this is that share a run; none: it is alone
LOCAL = "local"
FILE = "where.json"
SHARES = "shares"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine. cores, cards: that workers may take. workers: that are there now; chunks: that came of it;
    lost: workers that died; gone: so did the machine."""

    name: str
    cores: int
    cards: int
    workers: int = 0
    chunks: int = 0
    lost: int = 0
    gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A place. on, mixed: as of `--on` and `--mixed`; nodes: the machines that workers of this run were on."""

    on: str = LOCAL
    mixed: bool = False
    nodes: tuple[Node, ...] = ()

    @classmethod
    def asked(cls) -> Self:
        """Place that this process's environment names."""
        return cls(on=os.environ.get(ON) or LOCAL, mixed=bool(os.environ.get(MIXED)))

    @classmethod
    def read(cls, run: Path) -> Self:
        """The place of the run in this folder; a file that cannot be read is none."""
        document: Mapping[str, Any] = read_object(run / FILE) or {}
        try:
            nodes = tuple(_node(each) for each in document.get("nodes", ()))
            on, mixed = document.get("on", LOCAL), document.get("mixed", False)
        except (TypeError, KeyError):
            return cls()
        return cls(on=on, mixed=mixed, nodes=nodes) if isinstance(on, str) and isinstance(mixed, bool) else cls()

    def keep(self, run: Path) -> None:
        """Write it down; the place that is meant where nothing is said needs no file."""
        if self == Where():
            (run / FILE).unlink(missing_ok=True)
            return
        write_atomic(run / FILE, json.dumps(asdict(self)).encode())

    @property
    def environment(self) -> dict[str, str]:
        """Variables that make `asked` of another process this place."""
        return {ON: self.on, MIXED: "1" if self.mixed else ""}


class Deeds:
    """Record of what one process of `--share` does for a run."""

    def __init__(self, run: Path, number: int) -> None:
        """number: of the process."""
        self._run, self._file = run, run / SHARES / f"{number}.json"
        self._lock = Lock(self._file.with_suffix(".lock"))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Let it be seen, by a lock that any death frees, that this process is at the run."""
        self._lock.acquire(self._run.name, patience=0)  # two of one number differ in nothing that is shown
        try:
            self._write(chunks=0)
            yield
        finally:
            self._lock.release()

    def count_chunk(self) -> None:
        """Count a chunk."""
        self._write(chunks=1)

    def _write(self, *, chunks: int) -> None:
        before = read_object(self._file) or {}
        counted = before.get("chunks")
        node = Node(
            name=f"{socket.gethostname()} (share {self._file.stem})",
            cores=os.cpu_count() or 1,
            cards=len(cards.usable()),
            chunks=(counted if isinstance(counted, int) else 0) + chunks,
        )
        write_atomic(self._file, json.dumps(asdict(node)).encode())


def shares(run: Path) -> tuple[Node, ...]:
    """The processes of `--share` that have been at a run, each as a machine: of one that was killed, what it made."""
    nodes = []
    for file in sorted((run / SHARES).glob("*.json"), key=lambda file: (len(file.stem), file.stem)):
        with suppress(TypeError, KeyError):
            nodes.append(replace(_node(read_object(file) or {}), workers=int(Lock(file.with_suffix(".lock")).held())))
    return tuple(nodes)


def _node(document: Mapping[str, Any]) -> Node:
    """Errors: TypeError, KeyError for what no `keep` wrote."""
    node = Node(**{field.name: document[field.name] for field in fields(Node)})
    numbers = (node.cores, node.cards, node.workers, node.chunks, node.lost)
    if not isinstance(node.name, str) or not all(isinstance(number, int) for number in numbers):
        raise TypeError(FILE)
    return node
