"""Are the browser tests green every time? Runs them again and again beside busy loops, and says how each run ended.

python -m tests.lab.steady [--times 20] [--busy 2] [--load WORDS] [--log FILE] [what pytest is to run, and other
    words for it]

With --log a line of JSON a run is added to the file, and those of earlier calls count too: twenty runs may be spread
over days. Where the machine is busy with something else already, `--busy 0 --load "two trainings, one a core"` says so.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.files import append_line

ROOT = Path(__file__).resolve().parents[2]
Line = dict[str, Any]


@contextmanager
def crowd(n: int) -> Iterator[None]:
    """So many processes that do nothing but work, as long as the block lasts."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def once(words: Sequence[str]) -> tuple[bool, str]:
    """Whether a run was green, and what pytest says at its end: failures by name, then how many of each outcome."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rfE", "--tb=short", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode:
        print(done.stdout, flush=True)
    return done.returncode == 0, "; ".join(
        [*(line for line in lines if line.startswith(("FAILED", "ERROR"))), lines[-1]]
    )


def known(log: Path | None) -> list[Line]:
    """The runs that a log holds."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log and log.exists() else []


def added(green: bool, end: str, seconds: float, load: str, log: Path | None) -> Line:
    """What is known of a run, written down where there is a log."""
    version = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    line = {
        "date": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {load}",
        "commit": version.stdout.strip(),
        "seconds": round(seconds),
        "green": green,
        "end": end,
    }
    if log:
        append_line(log, json.dumps(line).encode())
    return line


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--busy", type=int, default=2, help="how many busy loops")
    parser.add_argument("--load", default="", help="what else is at work, in words")
    parser.add_argument("--log", type=Path, help="a line of JSON a run is added to it, and its own are counted")
    options, others = parser.parse_known_args(words)
    lines, load = known(options.log), ", ".join(filter(None, (f"{options.busy} busy loops", options.load)))
    with crowd(options.busy):
        for number in range(1, options.times + 1):
            began = time.monotonic()
            green, end = once(others or [str(ROOT / "tests" / "browser")])
            lines.append(added(green, end, time.monotonic() - began, load, options.log))
            print(f"{number} of {options.times}, {lines[-1]['seconds']} s: {end}", flush=True)
    red = sum(not line["green"] for line in lines)
    print(f"{red} of {len(lines)} runs failed")
    return min(red, 1)


if __name__ == "__main__":
    sys.exit(main())
