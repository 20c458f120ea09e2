"""Read a run's result.json as the frozen dataclass that its kind of run returned."""

from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from core.errors import RunError
from core.runs.run import Run

ResultT = TypeVar("ResultT")
_readers: dict[type[object], TypeAdapter[object]] = {}  # cached, because building one takes milliseconds


def read(run: Run, kind: type[ResultT]) -> ResultT:
    """Return the result of a finished run as a `kind`.

    Errors: RunError if the run has no result, or if its result is of another kind or damaged.
    """
    if kind not in _readers:
        _readers[kind] = TypeAdapter(kind)
    try:
        result = _readers[kind].validate_python(run.result())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or kind.__name__
        raise RunError(
            f"run {run.id}: its result is not a valid result of {run.manifest.kind} ({place}: {first['msg']}); "
            "remove the run and start it again."
        ) from error
    assert isinstance(result, kind)
    return result
