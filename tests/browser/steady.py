"""Are the browser tests green every time? Runs them again and again beside busy loops, and says how each run ended.

python -m tests.browser.steady [--times 20] [--busy 2] [what pytest is to run, and other words for it]
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--busy", type=int, default=2, help="how many busy loops")
    options, words = parser.parse_known_args()
    red = 0
    with crowd(options.busy):
        for number in range(1, options.times + 1):
            began = time.monotonic()
            green, end = once(words or [str(Path(__file__).parent)])
            red += not green
            print(f"{number} of {options.times}, {time.monotonic() - began:.0f} s: {end}", flush=True)
    print(f"{red} of {options.times} runs failed")
    return min(red, 1)


if __name__ == "__main__":
    sys.exit(main())
