"""Run the browser tests repeatedly beside busy loops, and report how each run ended.

python -m tests.lab.steady [--times 20] [--busy 2] [--load WORDS] [--log FILE] [tests and options for pytest]

With --log, each run appends a JSON line to the file. Lines of earlier calls count too, so twenty runs may be spread
over days. If the machine is busy already, say with what: `--busy 0 --load "two trainings, one a core"`.
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
    """Keep `n` processes busy during the block."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def once(words: Sequence[str]) -> tuple[bool, str]:
    """Run pytest. Return True if it passed, and the lines of failed tests with pytest's last line (the counts)."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rfE", "--tb=short", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode:
        print(done.stdout, flush=True)
    return done.returncode == 0, "; ".join(
        [*(line for line in lines if line.startswith(("FAILED", "ERROR"))), lines[-1]]
    )


def known(log: Path | None) -> list[Line]:
    """Return the runs in a log."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log and log.exists() else []


def added(green: bool, end: str, seconds: float, load: str, log: Path | None) -> Line:
    """Return the line of a run, and append it to the log if there is one."""
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
    parser.add_argument("--busy", type=int, default=2, help="number of busy loops")
    parser.add_argument("--load", default="", help="description of other load on the machine")
    parser.add_argument("--log", type=Path, help="append a JSON line per run; count its earlier lines")
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
