"""How fast a machine trains and embeds with an encoder, as `calibrate` runs have measured it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from core.runs import result
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


def newest(store: RunStore, machine: str, texts: Collection[str] = (), **asked: object) -> CalibrateResult | None:
    """The newest of a machine with the options `asked`; None where it was never timed so.

    texts: fingerprints of corpora; one that was timed on more of them goes before a newer one.
    """
    runs = [
        run
        for run in store.list("calibrate", state="succeeded")
        if run.manifest.config["machine"] == machine
        and all(run.manifest.config.get(name) == value for name, value in asked.items())
    ]
    runs.sort(key=lambda run: -len({*texts} & {*run.manifest.inputs.values()}))
    return result.read(runs[0], CalibrateResult) if runs else None
