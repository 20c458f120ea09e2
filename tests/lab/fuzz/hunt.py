"""Run inputs in a child process, which any of them may kill. Record the outcome and the faults of each.

An input depends only on its number, its reader and the seed, so each can be repeated.
"""

import faulthandler
import os
import resource
import shutil
import signal
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

SECONDS = 10  # CPU time of one small input; SIGPROF then ends the child
MEMORY = 900 << 20  # bytes of address space beyond that of the imports
GROWTH = 300 << 10  # KB of memory that one small input may add
MEMORY_DISK = "/dev/shm"
EACH = 1000  # inputs per child process


class Target(Protocol):
    """Something that reads a file."""

    @property
    def name(self) -> str: ...

    def prepare(self) -> None:
        """Create or import what all inputs need, before time and memory are measured."""
        ...

    def attempt(self, random: Random, folder: Path) -> str:
        """Make an input, read it in the empty `folder` and check the outcome. Return "taken" or "refused"."""
        ...

    def attempt_apart(self, random: Random, folder: Path) -> str:
        """Do the same for an input that killed its process, with the isolation that the app uses for such files."""
        ...


@dataclass
class Find:
    """A fault, identified by its place in the code. first: number of the first input of `target` that shows it."""

    target: str
    what: str
    first: int
    times: int = 1


@dataclass
class Report:
    """Outcomes of all inputs. outcomes: {(target, "taken" | "refused" | "found"): number of inputs}."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    finds: dict[str, Find] = field(default_factory=dict)

    def add(self, target: str, number: int, outcome: str, what: str) -> None:
        self.outcomes[target, outcome] += 1
        if outcome == "found":
            found = self.finds.setdefault(what.rsplit("\n", 1)[-1], Find(target, what, number, 0))
            found.times += 1


def hunt(targets: Callable[[], Sequence[Target]], numbers: Sequence[int], seed: int) -> Report:
    """Run the inputs, each with the next target in turn. targets: called in each child, as it may start threads."""
    report, at = Report(), 0
    names = [target.name for target in targets()]
    while at < len(numbers):
        begun = at
        status, lines = _child(targets, numbers[at : at + EACH], seed)
        for line in lines:
            outcome, _, what = line.partition(" ")
            report.add(names[numbers[at] % len(names)], numbers[at], outcome, what.replace("\x1f", "\n"))
            at += 1
        if status > 0 or (status and at in (begun + EACH, len(numbers))):
            raise RuntimeError(f"the child process exited with {status}, but not because of an input")
        if status:
            number = numbers[at]
            target = number % len(names)
            again, lines = _child(targets, [number], seed, apart=True)
            if not again and lines and not lines[0].startswith("found"):
                report.add(names[target], number, lines[0], "")
                at += 1
                continue
            report.add(names[target], number, "found", f"killed its process: {signal.Signals(-status).name}")
            at += 1
    return report


def _child(
    targets: Callable[[], Sequence[Target]], numbers: Sequence[int], seed: int, *, apart: bool = False
) -> tuple[int, list[str]]:
    """Return (exit status, negative for a signal; one line per input that it finished)."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        status = 1
        try:
            with os.fdopen(writing, "w", encoding="utf-8", buffering=1) as out:
                out.writelines(line + "\n" for line in _lines(targets(), numbers, seed, apart))
            status = 0
        except BaseException:  # noqa: BLE001  the parent reads the status
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", newline="\n") as lines:
        got = [line.removesuffix("\n") for line in lines if line.endswith("\n")]
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), got


def folder() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder, in memory if possible."""
    return tempfile.TemporaryDirectory(
        dir=MEMORY_DISK if os.access(MEMORY_DISK, os.W_OK) else None, prefix="winnow-fuzz-"
    )


def _lines(targets: Sequence[Target], numbers: Sequence[int], seed: int, apart: bool) -> Iterator[str]:
    for target in targets:
        target.prepare()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    faulthandler.disable()  # the report names the signal
    with folder() as name:
        for number in numbers:
            place = Path(name) / str(number)
            place.mkdir()
            target = targets[number % len(targets)]
            attempt = target.attempt_apart if apart else target.attempt
            yield _one(attempt, Random(f"{seed} {target.name} {number}"), place)
            shutil.rmtree(place)


def _one(attempt: Callable[[Random, Path], str], random: Random, folder: Path) -> str:
    before = _peak()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        outcome = attempt(random, folder)
    except Exception as error:  # noqa: BLE001  any error is a find
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/core/" in frame.filename]
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "after reading"
        text = "\x1f".join(traceback.format_exc().splitlines()[-14:])
        short = f"{type(error).__name__} at {where}"
        outcome = f"found {text}\x1f{short}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    grown = _peak() - before
    return outcome if grown < GROWTH else f"found {grown >> 10} MB more memory\x1fmemory"


def _peak() -> int:
    """Return the peak resident memory in KB since the last call."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0])
