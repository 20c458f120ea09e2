"""Who makes a run's chunks: this process, or workers of an engine. The run's own process alone writes them.

`WINNOW_ON` (the option `--on`) names it, and nothing that a result or its key depends on.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
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
    """What `--on` says: local, ray (this machine's processors and cards) or ray:HOST:PORT (a cluster).

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


def spread(
    context: RunContext, n: int, size: int, work: Work, name: str, *, device: Device, folder: Path | None = None
) -> tuple[list[Path], Mapping[str, Any]]:
    """The files of all chunks as of `chunked`, whoever makes them; and what the work says of its model.

    device: what this process has to itself while it computes; a worker has what the engine gave it. folder: as of
    `Chunks`.
    """
    own = share.share()
    chunks = Chunks(context, n, size, name, folder=folder, alone=own is None)
    where = on()
    if own:
        about = share.make(chunks, work, device, own)
    elif where == LOCAL or (where == "ray" and len(chunks.missing) < 2):  # which one process makes sooner
        about = local.make(chunks, work, device)
    else:
        from core.runs.executors import on_ray

        about = on_ray.make(chunks, work, where.removeprefix("ray").removeprefix(":"), mixed=Where.asked().mixed)
    context.progress(n, n, "sentences")
    return chunks.paths, about
