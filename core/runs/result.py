"""A run's result.

result.json    the frozen dataclass that its kind of run returned, as JSON; written when the run succeeds
"""

from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from core.errors import RunError
from core.runs.run import Run

ResultT = TypeVar("ResultT")
_readers: dict[type[object], TypeAdapter[object]] = {}  # kept: building one takes milliseconds, a list shows many runs


def read(run: Run, kind: type[ResultT]) -> ResultT:
    """The result of a finished run of the kind that returns `kind`.

    Errors: RunError where the run has none, or one that is not of this kind or was spoilt.
    """
    if kind not in _readers:
        _readers[kind] = TypeAdapter(kind)
    try:
        result = _readers[kind].validate_python(run.result())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or kind.__name__
        raise RunError(
            f"run {run.id}: its result is not one of {run.manifest.kind} ({place}: {first['msg']}); "
            "remove the run and start it again."
        ) from error
    assert isinstance(result, kind)
    return result
