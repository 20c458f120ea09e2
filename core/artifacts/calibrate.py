"""How fast a machine trains and embeds with an encoder, as `calibrate` runs have measured it."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.artifacts import result
from core.runs.store import RunStore


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateResult:
    """Result of a `calibrate` run.

    machine: its processor or card. busy: with other work meanwhile. device: torch's. mlm, tagger, embed: seconds (a
    step, a piece). load: seconds, of the encoder. has_head: for vocabulary. parameters: of the encoder with its head.
    dimension: of its states. memory_gb: 10^9 bytes, the most that was taken. pieces: a token has, by the corpus's role.
    """

    machine: str
    busy: bool
    device: str
    mlm: tuple[float, float]
    tagger: tuple[float, float]
    embed: tuple[float, float]
    load: float
    has_head: bool
    parameters: int
    dimension: int
    memory_gb: float
    pieces: Mapping[str, float]


def newest(store: RunStore, encoder: str, machine: str) -> CalibrateResult | None:
    """The newest of an encoder on a machine; None where it was never timed there."""
    for run in store.list("calibrate"):
        here = (run.manifest.config["encoder"], run.manifest.config["machine"]) == (encoder, machine)
        if here and run.state().state == "succeeded":
            return result.read(run, CalibrateResult)
    return None
