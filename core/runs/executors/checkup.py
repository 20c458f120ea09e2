"""What a cluster is, before anything is sent there: its machines, and what it would do to bytes and privacy."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from core.runs.executors.engine import engine
from core.runs.executors.hand import environment
from core.runs.executors.hello import Hello
from core.runs.executors.on_ray import RayHand
from core.runs.versions import versions

PATIENCE = 120.0  # seconds for a node to answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A node. computer: its card, or its processor. differs: packages that are others there, in words. sees_home: so
    that it may take part in an experiment (`companions`). guarded: it asks for a token. answers: else the rest is not
    known."""

    name: str
    cores: int
    cards: int
    computer: str = ""
    differs: tuple[str, ...] = ()
    sees_home: bool = False
    guarded: bool = False
    answers: bool = True


def examine(address: str, home: Path) -> list[Machine]:
    """A worker on every node asked. address: "" for this machine alone. Errors: as of `engine`."""
    nonce = home / f".{secrets.token_hex(8)}.tmp"
    home.mkdir(parents=True, exist_ok=True)
    nonce.touch()
    try:
        with engine(address) as ray:
            return [_asked(ray, node, nonce) for node in ray.nodes() if node["Alive"]]
    finally:
        nonce.unlink(missing_ok=True)


def _asked(ray: Any, node: Mapping[str, Any], nonce: Path) -> Machine:
    has = node.get("Resources", {})
    machine = Machine(name=node["NodeManagerHostname"], cores=int(has.get("CPU", 0)), cards=int(has.get("GPU", 0)))
    here = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    # It takes nothing that a busy node would have to free first.
    hand = ray.remote(RayHand).options(num_cpus=0, num_gpus=0, scheduling_strategy=here).remote(environment())
    try:
        asked = [hand.hello.remote(), hand.computer.remote(card=machine.cards > 0), hand.sees.remote(nonce)]
        hello, computer, sees = ray.get(asked, timeout=PATIENCE)
    except ray.exceptions.RayError:  # a time-out is one too
        return replace(machine, answers=False)
    finally:
        ray.kill(hand)
    return replace(machine, computer=computer, differs=_differs(hello), sees_home=sees, guarded=hello.guarded)


def _differs(hello: Hello) -> tuple[str, ...]:
    pairs = [(name, here, hello.versions.get(name, "none")) for name, here in versions().items()]
    return tuple(f"{name} {there}, here {here}" for name, here, there in pairs if here != there)
