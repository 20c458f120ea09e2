"""A cluster as `doctor --on` shows it: its machines, and what it would do to bytes and privacy."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from core.errors import ConfigError
from core.projects.home import machine_home
from core.runs import executors
from core.runs.executors.checkup import Machine, examine
from core.runs.where import LOCAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """on: as of `--on`. machines: its nodes."""

    on: str
    machines: Sequence[Machine]

    @property
    def bad(self) -> bool:
        """Whether a run would be refused there."""
        kinds = {machine.computer for machine in self.machines}
        refused = any(machine.differs or not machine.answers for machine in self.machines)
        return refused or len(kinds) > 1 or not all(machine.guarded for machine in self.machines)

    @property
    def bytes(self) -> str:
        """Sentence on what becomes of the promise of same bytes."""
        if silent := [machine.name for machine in self.machines if not machine.answers]:
            return f"not known: no answer from {', '.join(silent)}."
        if others := [
            f"{machine.name} has {', '.join(machine.differs)}" for machine in self.machines if machine.differs
        ]:
            return f"would differ, so workers are refused without --mixed: {'; '.join(others)}."
        kinds = sorted({machine.computer for machine in self.machines})
        if len(kinds) > 1:
            return f"would differ in the last digits, so workers are refused without --mixed: {', '.join(kinds)}."
        return "one kind of machine, and the packages of here; every run compares the numbers of its workers too."

    @property
    def privacy(self) -> list[str]:
        """Sentences on what would leave this machine, and what guards it."""
        if self.on == "ray":
            return [
                "Nothing leaves this machine; ports of Ray are open on it while a run lasts, behind a token of its own."
            ]
        open_to = [machine.name for machine in self.machines if machine.answers and not machine.guarded]
        guard = (
            f"No token is asked for on {', '.join(open_to)}: who reaches its ports runs code there, so it is not used."
            if open_to
            else "A token is asked for, which is no encryption: keep the cluster on a network of its own."
        )
        return [
            "Sentences go to these machines and numbers come back, in the clear; Winnow writes nothing of them there.",
            guard,
            "Ray's usage reports are its starter's to switch off (RAY_USAGE_STATS_ENABLED=0 before ray start); this "
            "process can do it for itself alone.",
        ]

    @property
    def home(self) -> str:
        """Sentence on who could take part in an experiment."""
        if self.on == "ray" or len(self.machines) < 2:
            return "one machine: nothing to share."
        blind = [machine.name for machine in self.machines if not machine.sees_home]
        if blind:
            return (
                f"not seen from {', '.join(blind)}: these score by words, compute with no other model than they have "
                "at the same path (as the encoder that comes with Winnow), and take no steps of "
                "an experiment, by --on or --share."
            )
        return "seen from all machines: each also takes steps of an experiment, by --on, or a --share of any run."

    def as_json(self) -> dict[str, object]:
        """All of it, for `--json`."""
        machines = [asdict(machine) for machine in self.machines]
        return {"on": self.on, "machines": machines, "bytes": self.bytes, "privacy": self.privacy, "home": self.home}

    @property
    def lines(self) -> list[str]:
        """The same to read."""
        rows = [
            f"{machine.name:<24} {machine.cores:>4} cores {machine.cards:>3} GPUs  "
            f"{machine.computer if machine.answers else 'does not answer'}"
            for machine in self.machines
        ]
        return [*rows, f"bytes: {self.bytes}", f"home: {self.home}", *(f"privacy: {line}" for line in self.privacy)]


def checked(on: str) -> Cluster:
    """The cluster that `--on` names, asked. Errors: ConfigError, ResourceError where there is none to be had."""
    where = executors.on(on)
    if where == LOCAL:
        raise ConfigError("on: local is this process, which doctor without --on tells of; give ray or ray:HOST:PORT.")
    return Cluster(on=where, machines=examine(where.removeprefix("ray").removeprefix(":"), machine_home()))
