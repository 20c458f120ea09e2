"""Runs. Each has a folder, a manifest, an event log and a lock. This package does not know what a run computes.

store = RunStore(home)
run = store.create("select", config, inputs, seed=0, versions=versions, key=run_key(...))
launch.start(run)            # works on it in a new process; worker.execute(run, compute) does so in this process
run.state(), run.events(offset), run.cancel(), run.result()
"""

from core.runs.chunks import chunked
from core.runs.context import RunContext
from core.runs.events import Event, RunState, fold
from core.runs.run import Manifest, Run, run_key
from core.runs.shared import device_lock, run_or_reuse
from core.runs.store import RunStore
from core.runs.worker import execute, work

__all__ = [
    "Event",
    "Manifest",
    "Run",
    "RunContext",
    "RunState",
    "RunStore",
    "chunked",
    "device_lock",
    "execute",
    "fold",
    "run_key",
    "run_or_reuse",
    "work",
]
