"""Run a worker process: `python -m core.work work RUN --home HOME`. It imports no pages, no commands and no charts.

With `--tied`, the worker ends when its stdin is closed, because the process that started it has then ended. Exit
status: 0 done, 2 wrong input, 1 a bug, 130 cancelled. Messages go to stderr, which is redirected to worker.log.
"""

import argparse
import os
import sys
import threading

from core.errors import WinnowError, for_the_log
from core.files import on_disk
from core.kind import work_of
from core.kinds import KINDS
from core.paths import home, private
from core.runs import worker
from core.runs.store import RunStore
from core.shown import shown


def work(run_id: str) -> int:
    """Work on a run of the current project, and return the exit status; see `runs.worker.work`."""
    run = RunStore(home()).get(run_id)
    return worker.work(run, work_of(run, KINDS))


def _tie() -> None:
    """Start a thread that ends this process when its stdin is closed. The parent process never writes to this stdin."""

    def wait() -> None:
        os.read(0, 1)
        os._exit(1)

    threading.Thread(target=wait, name="tied", daemon=True).start()


def main() -> int:
    """Run a worker process, and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m core.work")
    parser.add_argument("command", choices=["work"])
    parser.add_argument("run")
    parser.add_argument("--home", required=True)
    parser.add_argument("--tied", action="store_true")
    options = parser.parse_args()
    if options.tied:
        _tie()
    os.environ["WINNOW_HOME"] = options.home
    try:
        private()
        with on_disk(home()):
            return work(options.run)
    except WinnowError as error:
        print(shown(str(error)), file=sys.stderr)
        return 2
    except Exception as error:  # noqa: BLE001  a bug has another exit status than wrong input
        print(*map(shown, for_the_log(error).splitlines()), sep="\n", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
