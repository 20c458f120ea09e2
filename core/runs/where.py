"""The place where a run computes (this machine or a cluster): the values of the options `--on` and `--mixed`.

The place is stored in `where.json` in the run's folder, so that a resumed run computes there again. It is not part of
the run's config or key, because results have the same bytes in every place.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from core.errors import ConfigError
from core.files import read_object, write_atomic

ON, MIXED = "WINNOW_ON", "WINNOW_MIXED"
LOCAL = "local"
PROCESSES = "processes:"
FILE = "where.json"
# File with all clusters to which a run was ever sent. Unlike FILE, it stays if the run is resumed here, and it is
# exported.
SENT = "sent-to.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A place to compute. on, mixed: values of the options `--on` and `--mixed`."""

    on: str = LOCAL
    mixed: bool = False

    @classmethod
    def asked(cls) -> Self:
        """Return the place that the environment variables of this process name."""
        return cls(on=os.environ.get(ON) or LOCAL, mixed=bool(os.environ.get(MIXED)))

    @classmethod
    def read(cls, run: Path) -> Self:
        """Return the place stored in the run's folder; the default place if there is no readable file."""
        document: Mapping[str, Any] = read_object(run / FILE) or {}
        on, mixed = document.get("on", LOCAL), document.get("mixed", False)
        return cls(on=on, mixed=mixed) if isinstance(on, str) and isinstance(mixed, bool) else cls()

    def keep(self, run: Path) -> None:
        """Store the place in the run's folder. The default place needs no file."""
        if sent := {on for on in (*clusters_of(run), self.on) if _is_cluster(on)}:
            write_atomic(run / SENT, json.dumps({"clusters": sorted(sent)}).encode())
        if self == Where():
            (run / FILE).unlink(missing_ok=True)
        else:
            write_atomic(run / FILE, json.dumps(asdict(self)).encode())

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables with which `asked` returns this place in another process."""
        return {ON: self.on, MIXED: "1" if self.mixed else ""}

    @property
    def processes(self) -> int:
        """Number of processes of this machine that execute steps of an experiment at the same time."""
        return int(self.on.removeprefix(PROCESSES)) if self.on.startswith(PROCESSES) else 1


def clusters_of(run: Path) -> set[str]:
    """Return the clusters to which a run was ever sent, as values of the option `--on`. run: the run's folder."""
    stored = (read_object(run / SENT) or {}).get("clusters")
    named = {on for on in stored if isinstance(on, str)} if isinstance(stored, list) else set[str]()
    # A run of an older version has only the place where it last computed.
    return {on for on in (*named, Where.read(run).on) if _is_cluster(on)}


def _is_cluster(on: str) -> bool:
    return on.startswith("ray:")


def checked(on: str = "") -> str:
    """Return a valid value of `--on`.

    Values: local, processes:N (N steps of an experiment at once), ray (this machine's cores and GPUs) or ray:HOST:PORT
    (a cluster).

    on: "" for the value of this process. Errors: ConfigError for another value, and if Ray is not installed.
    """
    on = on or Where.asked().on
    if not re.fullmatch(r"local|processes:[1-9]\d?|ray(:[^:\s]+:\d{1,5})?", on):
        raise ConfigError(
            f"on: {on!r} is not a valid place; give local, processes:N (1 to 99), ray (this machine) or ray:HOST:PORT."
        )
    if uses_ray(on) and not ray_installed():
        raise ConfigError(
            "on: Ray is not installed; give local or processes:N, or pip install -r requirements-cluster.txt into "
            ".venv."
        )
    return on


def uses_ray(on: str) -> bool:
    """Return True if this value of `--on` asks for Ray, on this machine or on a cluster."""
    return on == "ray" or on.startswith("ray:")


def ray_installed() -> bool:
    """Return True if Ray is installed. Without Ray, runs can compute only in their own process."""
    return find_spec("ray") is not None
