"""Who is refused work on a run: whoever would make other bytes, by what it says of itself and makes of a few items."""

import json
import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from core import cards
from core.errors import ResourceError
from core.files import read_object, write_atomic
from core.reporter import Silent
from core.runs.chunks import Array, Chunks, Opened, Work
from core.runs.context import RunContext
from core.runs.versions import versions
from core.runs.where import Where

PROBED = 64  # items that every worker computes first


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """A worker. versions: of what numbers depend on. node: its machine; place: the engine's name of it. guarded: its
    engine asks for a token."""

    versions: Mapping[str, str]
    node: str
    place: str = ""
    guarded: bool


def digest(array: Array) -> str:
    """The hash of an array's bytes, type and shape."""
    return sha256(f"{array.dtype} {array.shape}".encode() + array.tobytes()).hexdigest()


class Roll:
    """Makers of chunks, held to this machine's versions and to what the first of them made of the same items.

    Processors differ in their last digits (AMX on or off: not one vector of 192 is the same), and nothing else tells.
    """

    def __init__(self, context: RunContext, *, mixed: bool, probe: Path | None = None) -> None:
        """mixed: whoever differs is taken all the same, and the run says so. probe: keeps the first one, for whoever
        goes on with the run; None: nobody will."""
        self._context, self.mixed, self._probe = context, mixed, probe
        self._first: tuple[str, str] | None = None

    def admit(self, hello: Hello) -> None:
        """Errors: ResourceError for other versions than here."""
        for package, here in versions().items():
            if (there := hello.versions.get(package, "none")) != here:
                self._differs(
                    f"worker on {hello.node}: has {package} {there}, this machine {here}",
                    f"install {package} {here} there",
                )

    def trains(self, hello: Hello, computer: str) -> None:
        """Errors: ResourceError for who trains on another card or processor than this machine: no probe tells what
        comes of that. computer: its name."""
        if computer != (here := cards.machine()):
            self._differs(
                f"worker on {hello.node}: trains on {computer}, this machine on {here}",
                "use nodes of one kind, and begin the run on one of them",
            )

    def probed(self, hello: Hello, of_probe: str) -> None:
        """Errors: ResourceError for other numbers than the first worker's, who may have begun the run long ago."""
        if self._first is None:
            self._first = self._begun_by(hello.node, of_probe)
        if of_probe != self._first[1]:
            self._differs(
                f"worker on {hello.node}: makes other numbers of the same {PROBED} sentences than the one on "
                f"{self._first[0]} (another processor or card)",
                "use nodes of one kind, resume the run where it was begun, remove it to begin anew",
            )

    def _begun_by(self, node: str, of_probe: str) -> tuple[str, str]:
        """The first of all, with what it made: this one where nobody is known. Of several processes one is first."""
        if self._probe is None:
            return node, of_probe
        draft = self._probe.with_name(f".{self._probe.name}.{secrets.token_hex(4)}.tmp")
        write_atomic(draft, json.dumps({"node": node, "probe": of_probe}).encode())
        try:
            os.link(draft, self._probe)
        except FileExistsError:
            pass
        except OSError:  # a disk without links, which several processes hardly share
            if not self._probe.exists():
                draft.replace(self._probe)
        finally:
            draft.unlink(missing_ok=True)
        kept = read_object(self._probe) or {}
        return str(kept.get("node", node)), str(kept.get("probe", of_probe))

    def _differs(self, what: str, way_out: str) -> None:
        if not self.mixed:
            raise ResourceError(f"{what}; {way_out}, or give --mixed.")
        self._context.note(f"{what}. --mixed allows it: this result is equal to about 4 digits, not to the byte.")


def roll(chunks: Chunks, work: Work) -> Roll:
    """The roll of who makes `chunks`: it outlives this process where several may make them, and their bytes differ."""
    lasting = len(chunks.paths) > 1 and not work.exact
    return Roll(chunks.context, mixed=Where.asked().mixed, probe=chunks.probe if lasting else None)


def compare(chunks: Chunks, work: Work, opened: Opened) -> None:
    """Hold this process to whoever began `chunks`, before it makes one. Errors: ResourceError for other numbers."""
    if work.exact or not chunks.missing or len(chunks.paths) < 2:
        return
    start, stop = chunks.bounds(0)
    rows = work.read(start, min(start + PROBED, stop), opened.about)
    array = opened.compute(opened.ahead(rows) if opened.ahead else rows, _Unseen(chunks.context))
    here = Hello(versions=versions(), node=socket.gethostname(), guarded=True)
    roll(chunks, work).probed(here, digest(array))


class _Unseen(Silent):
    """Progress that is none, for nothing of it is kept; a wish to cancel is heeded."""

    def __init__(self, context: RunContext) -> None:
        self._context = context

    def check(self) -> None:
        self._context.check()
