"""What a worker says of itself before it is given work, and who is refused: whoever would make other bytes."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from core.errors import ResourceError
from core.runs.chunks import Array
from core.runs.context import RunContext
from core.runs.versions import versions

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
    """The workers of a run, held to this machine's versions and to what the first of them makes of the same items.

    Processors differ in their last digits (AMX on or off: not one vector of 192 is the same), and nothing else tells.
    """

    def __init__(self, context: RunContext, *, mixed: bool) -> None:
        """mixed: whoever differs is taken all the same, and the run says so."""
        self._context, self.mixed = context, mixed
        self._first: tuple[str, str] | None = None

    def admit(self, hello: Hello) -> None:
        """Errors: ResourceError for other versions than here."""
        for package, here in versions().items():
            if (there := hello.versions.get(package, "none")) != here:
                self._differs(
                    f"worker on {hello.node}: has {package} {there}, this machine {here}",
                    f"install {package} {here} there",
                )

    def probed(self, hello: Hello, of_probe: str) -> None:
        """Errors: ResourceError for other numbers than the first worker's."""
        if self._first is None:
            self._first = hello.node, of_probe
        elif of_probe != self._first[1]:
            self._differs(
                f"worker on {hello.node}: makes other numbers of the same {PROBED} sentences than the one on "
                f"{self._first[0]} (another processor or card)",
                "use nodes of one kind",
            )

    def _differs(self, what: str, way_out: str) -> None:
        if not self.mixed:
            raise ResourceError(f"{what}; {way_out}, or give --mixed.")
        self._context.note(f"{what}. --mixed allows it: this result is equal to about 4 digits, not to the byte.")
