"""`python -m core.work work RUN --home HOME`: how a worker process begins; no page, no command, no figure is loaded.
`help` in the place of `work`: a process that helps with a run for as long as another works on it; `--tied`: and for
as long as whoever began it is there, who has the other end of its stdin.

Exit 0 done, 2 the input was wrong, 1 a bug, 130 cancelled; what it has to say goes to stderr, which is worker.log.
"""

import argparse
import os
import sys
import threading

from core.errors import WinnowError, for_the_log
from core.files import on_disk
from core.kind import help_of, work_of
from core.kinds import KINDS
from core.paths import home, private
from core.runs import worker
from core.runs.executors import share
from core.runs.store import RunStore
from core.shown import shown


def work(run_id: str) -> int:
    """Do the work of a run of this home; the exit status."""
    run = RunStore(home()).get(run_id)
    return worker.work(run, work_of(run, KINDS))


def help_with(run_id: str) -> int:
    """Help with a run of this home until it has ended; the exit status."""
    store = RunStore(home())
    run = store.get(run_id)
    while run.lock.held():
        share.help_along(run, store, lambda each: help_of(each, KINDS))
    return 0


def _tie() -> None:
    """End this process when whoever began it does: stdin then ends, of which nothing is ever read."""

    def wait() -> None:
        os.read(0, 1)
        os._exit(1)

    threading.Thread(target=wait, name="tied", daemon=True).start()


def main() -> int:
    """The whole of a worker process; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m core.work")
    parser.add_argument("command", choices=["work", "help"])
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
            return (help_with if options.command == "help" else work)(options.run)
    except WinnowError as error:
        print(shown(str(error)), file=sys.stderr)
        return 2
    except Exception as error:  # noqa: BLE001  the last door: a bug, told apart from wrong input by its exit status
        print(*map(shown, for_the_log(error).splitlines()), sep="\n", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
