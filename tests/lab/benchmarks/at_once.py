"""Run a benchmark on a lent GPU machine, N steps of an experiment at once, with the encoder of `bench_gpu --prepare`.

    WINNOW_BENCH_MINILM=FOLDER python -m tests.lab.benchmarks.at_once N MODULE ARGUMENTS
    ... at_once 16 tests.lab.benchmarks.bench_choosing --ground bio-300 --pair 1 --home DIR

FOLDER replaces the bundled encoder, in all processes. If the bundled encoder is installed, `WINNOW_ON=processes:N python -m
MODULE ARGUMENTS` does the same. On a GPU, start NVIDIA's Multi-Process Service first (`nvidia-cuda-mps-control -d`):
otherwise the processes take turns.
"""

import os
import runpy
import sys
from functools import partial
from pathlib import Path

from core import work
from core.runs import launch
from core.runs.where import ON, PROCESSES
from tests.lab.benchmarks.gpu_scope import stand_in

MINILM = "WINNOW_BENCH_MINILM"


def main() -> int:
    if len(sys.argv) < 3 or MINILM not in os.environ:
        sys.exit(__doc__)
    stand_in(Path(os.environ[MINILM]))
    if sys.argv[1] == "work":  # a process of `core.runs.in_processes`
        return work.main()
    os.environ[ON] = f"{PROCESSES}{sys.argv[1]}"
    launch.tied = partial(launch.tied, module="tests.lab.benchmarks.at_once")
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
