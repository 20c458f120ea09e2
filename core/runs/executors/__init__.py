"""Who makes a run's chunks: this process, or workers of an engine. The run's own process alone writes them.

`WINNOW_ON` (the option `--on`) names it, and nothing that a result or its key depends on.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from core.errors import ConfigError
from core.runs.chunks import Chunks, Work
from core.runs.context import RunContext
from core.runs.executors import local, share
from core.runs.where import LOCAL, Where

Device = Callable[[], AbstractContextManager[object]]


def on(wanted: str = "") -> str:
    """Place that `--on` names: local, ray (this machine's processors and cards) or ray:HOST:PORT (a cluster).

    wanted: the same for another process than this one.
    Errors: ConfigError for anything else, and where Ray is not installed.
    """
    wanted = wanted or Where.asked().on
    if not re.fullmatch(r"local|ray(:[^:\s]+:\d{1,5})?", wanted):
        raise ConfigError(f"on: {wanted!r} is nowhere to compute; give local, ray (this machine) or ray:HOST:PORT.")
    if wanted != LOCAL and not installed():
        raise ConfigError(
            "on: Ray is not installed; give local, or pip install -r requirements-cluster.txt into .venv."
        )
    return wanted


def installed() -> bool:
    """Whether there is an engine, so that there is a choice."""
    return find_spec("ray") is not None


@contextmanager
def together() -> Iterator[None]:
    """Whatever engine and workers a `spread` begins in this block serve those after it too."""
    if on() == LOCAL or share.share():
        yield
        return
    from core.runs.executors import on_ray

    with on_ray.session():
        yield


def spread(
    context: RunContext,
    n: int,
    size: int,
    work: Work,
    name: str,
    *,
    device: Device,
    folder: Path | None = None,
    unit: str = "sentences",
    sent: bool = True,
    last: bool = True,
) -> tuple[list[Path], Mapping[str, Any]]:
    """The files of all chunks as of `chunked`, whoever makes them; and what the work says of its model.

    device: what this process has to itself while it computes; a worker has what the engine gave it. folder, unit: as
    of `Chunks`. sent: else its rows take longer to send than to compute, and no engine is asked. last: nothing that
    another process could help with comes after it.
    """
    own = share.share()
    chunks = Chunks(context, n, size, name, unit=unit, folder=folder, alone=own is None)
    where = on()
    few = len(chunks.missing) < 2 and (where == "ray" or work.exact)  # which one process makes sooner
    if own:
        about = share.make(chunks, work, device, own, last=last)
    elif where == LOCAL or few or not sent:
        about = local.make(chunks, work, device)
    else:
        from core.runs.executors import on_ray

        about = on_ray.make(chunks, work, where.removeprefix("ray").removeprefix(":"))
    context.progress(n, n, unit)
    return chunks.paths, about
