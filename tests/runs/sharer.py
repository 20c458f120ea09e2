"""A process that shares a run of squares, as `--share` has it: python -m tests.runs.sharer HOME RUN FATE."""

import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from core.runs.context import RunContext
from core.runs.executors import share, spread
from core.runs.store import RunStore
from tests.runs.works import Squares

N, SIZE = 40, 4


def main(home: str, run_id: str, fate: str) -> None:
    """Have the run made by all that share it; its result to stdout."""
    store = RunStore(Path(home))
    run = store.get(run_id)

    def squares(context: RunContext) -> Mapping[str, object]:
        paths, about = spread(context, N, SIZE, Squares(run.path, fate), "chunk", device=nullcontext)
        return {**about, "chunks": len(paths)}

    print(share.take_part(run, lambda context: dict(squares(context)), store, lambda each: squares), os.getpid())


if __name__ == "__main__":
    main(*sys.argv[1:])
