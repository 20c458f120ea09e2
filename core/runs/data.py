"""What the events of a run say, by their kind. Whoever reads a log checks it: a failing disk may have spoilt it."""

from collections.abc import Mapping
from typing import TypedDict, TypeGuard

LARGEST = 1e15  # beyond it no time, count or step of ours lies, and arithmetic begins to fail
_WHOLE, _NUMBER, _TEXT, _NONE = (int,), (int, float), (str,), (type(None),)
_SHAPES: Mapping[str, Mapping[str, tuple[type, ...]]] = {  # of an event's data, as far as anybody reads it
    "started": {"pid": _WHOLE, "created": _NUMBER},
    "part": {"number": _WHOLE, "of": _WHOLE, "name": _TEXT, "left": _NUMBER + _NONE, "after": _NUMBER + _NONE},
    "stage": {"name": _TEXT},
    "progress": {"done": _WHOLE, "total": _WHOLE + _NONE, "unit": _TEXT},
    "metric": {"name": _TEXT, "value": _NUMBER, "step": _WHOLE + _NONE},
    "note": {"text": _TEXT, "waiting_for": _TEXT + _NONE},
    "device": {"text": _TEXT, "machine": _TEXT},
    "child": {"run": _TEXT},
    "succeeded": {"size": _WHOLE + _NONE, "crc": _WHOLE + _NONE},  # of result.json; older versions say neither
    "failed": {"error": _TEXT + _NONE},
}


class Data(TypedDict, total=False):
    """The keys that events have, each kind its own of them."""

    pid: int
    created: float
    number: int
    of: int
    name: str
    left: float | None
    after: float | None
    done: int
    total: int | None
    unit: str
    value: float
    step: int | None
    text: str
    passing: bool
    waiting_for: str | None
    machine: str
    reused: str
    run: str
    path: str
    size: int | None
    crc: int | None
    error: str | None
    permanent: bool


def is_whole(kind: str, data: object) -> TypeGuard[Data]:
    """Whether `data` has the shape that its kind's have; kinds and keys of a newer version count."""
    shape = _SHAPES.get(kind, {})
    return isinstance(data, dict) and all(_fits(data.get(name), kinds) for name, kinds in shape.items())


def _fits(value: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and (not isinstance(value, int) or abs(value) < LARGEST)
