"""python -m tests.lab.soak: browser sessions visit all pages of one app for an hour or a day, while runs start and end.

Each minute adds a JSON line: the app's memory, open handles, threads, processes, temporary files, and seconds per page.
Exits 1 if the app's memory reaches 1 GiB, if any of these has grown at the end, or if pages have become slower.

python -m tests.lab.soak --minutes 60 --log soak.jsonl
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

import numpy as np
import psutil
from playwright.sync_api import Error, Page, sync_playwright

from core.errors import WinnowError
from core.files import TEMPORARY
from tests.browser import chromium
from tests.browser.driver import ROOT, Server, settled, visit, watched
from tests.homes import project_in

SESSIONS = 3
MINUTE = 60.0  # seconds
PATIENCE = 90_000  # milliseconds for a page
MOST = 1 << 30  # bytes
VIEWPORT = {"width": 1280, "height": 900}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One minute. memory: bytes of the app's process. all_memory: bytes with its child processes. pages, runs: totals.

    seconds: median per page in this minute; None if no page was drawn. gauge: mean CPU time in ms of a fixed small
    computation in this minute; other load on the machine increases it. problems: of this minute.
    """

    date: str
    machine: str
    minute: float
    memory: int
    all_memory: int
    handles: int
    threads: int
    processes: int
    temporary: int
    pages: int
    runs: int
    seconds: float | None
    gauge: float
    problems: Sequence[str] = ()


@dataclass
class Tally:
    """Observations of the sessions since the last line, and totals."""

    seconds: list[float] = field(default_factory=list)
    gauge: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    pages: int = 0
    runs: int = 0
    over: threading.Event = field(default_factory=threading.Event)


def session(number: int, url: str, addresses: Mapping[str, str], tally: Tally) -> None:
    """Visit all pages repeatedly, each round in a new tab, like a user who comes back later."""
    with sync_playwright() as playwright, ExitStack() as stack:
        browser = chromium.start(playwright, chromium.find())
        if isinstance(browser, str):
            tally.problems.append(f"session {number}: {browser}")
            return
        stack.callback(browser.close)
        context = stack.enter_context(watched(browser, viewport=VIEWPORT))
        context.set_default_timeout(PATIENCE)
        order = list(addresses)
        order = order[number * 3 % len(order) :] + order[: number * 3 % len(order)]
        while not tally.over.is_set():
            page = context.new_page()
            try:
                page.goto(url)
                settled(page)
                _round(page, [addresses[name] for name in order], tally)
            except (Error, AssertionError) as error:
                tally.problems.append(f"session {number} at {page.url}: {str(error).splitlines()[0][:200]}")
            page.close()


def _round(page: Page, addresses: Sequence[str], tally: Tally) -> None:
    for address in addresses:
        if tally.over.is_set():
            return
        began = time.monotonic()
        visit(page, address)
        tally.seconds.append(time.monotonic() - began)
        tally.pages += 1


def coming_and_going(options: Mapping[str, object], tally: Tally) -> None:
    """Start one selection after another as a page does, each in its own worker, and remove it when it has ended."""
    from core.projects import removals, runs

    seed = 0
    while not tally.over.is_set():
        seed += 1
        try:
            run = runs.get(runs.start("select", {**options, "seed": seed}))
            while run.state().active and not tally.over.wait(0.5):
                pass
            if tally.over.is_set():
                runs.cancel(run.id)
                return
            if run.state().state != "succeeded":
                tally.problems.append(f"{run.id}: {run.state().state}: {run.state().error}")
            removals.remove_run(run.id)
            tally.runs += 1
        except WinnowError as error:
            tally.problems.append(f"a run: {error}")
        tally.over.wait(5)


def gauging(tally: Tally) -> None:
    """Repeat a small computation about once per second, because a virtual CPU may double its speed within a minute."""
    while not tally.over.wait(1):
        begun = time.thread_time()
        sum(i * i for i in range(200_000))
        tally.gauge.append(1000 * (time.thread_time() - begun))


def measured(server: psutil.Process, folders: Sequence[Path], tally: Tally, minute: float) -> Line:
    """Return the next line, with the sessions' observations since the last one."""
    seconds, tally.seconds = tally.seconds, []
    gauge, tally.gauge = tally.gauge, []
    problems, tally.problems = tally.problems, []
    helpers = []
    for child in server.children(recursive=True):
        try:
            helpers.append(child.memory_info().rss)
        except psutil.NoSuchProcess:
            continue
    memory = server.memory_info().rss
    home, temporary = folders
    return Line(
        date=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        machine=f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        minute=round(minute, 2),
        memory=memory,
        all_memory=memory + sum(helpers),
        handles=server.num_fds(),
        threads=server.num_threads(),
        processes=len(helpers),
        temporary=sum(1 for _ in temporary.rglob("*")) + sum(1 for _ in home.rglob(TEMPORARY)),
        pages=tally.pages,
        runs=tally.runs,
        seconds=round(median(seconds), 3) if seconds else None,
        gauge=round(fmean(gauge), 2) if gauge else 0.0,
        problems=problems[:20],
    )


def judged(lines: Sequence[Line]) -> list[str]:
    """Return what is wrong: problems, too much memory, growth, or slower pages.

    Growth compares the last third of the minutes with the second. Pages of the last third are compared with the faster
    of the first two thirds.
    """
    wrong = [f"{line.date}: {problem}" for line in lines for problem in line.problems]
    if (most := max((line.memory for line in lines), default=0)) >= MOST:
        wrong.append(f"the app took {most >> 20} MB")
    if len(lines) < 6:
        return [*wrong, f"{len(lines)} minutes say nothing of what grows"]
    third = len(lines) // 3
    middle, end = lines[third : 2 * third], lines[2 * third :]
    for name, room in (("handles", 8), ("threads", 4), ("temporary", 4), ("processes", 2), ("memory", 64 << 20)):
        before, after = (median(getattr(line, name) for line in part) for part in (middle, end))
        if after > before * 1.05 + room:
            wrong.append(f"{name} grew from {before:,.0f} to {after:,.0f}")
    before = min((_pages(part) for part in (lines[1:third], middle)), key=lambda pages: pages.of_gauge)
    after = _pages(end)
    if math.isinf(after.of_gauge):
        wrong.append("no page was drawn at the end")
    elif after.of_gauge > before.of_gauge * 1.25:
        wrong.append(
            f"pages took {before.seconds:.2f} s ({before.of_gauge:.0f} times the gauge), "
            f"and {after.seconds:.2f} s ({after.of_gauge:.0f} times) at the end"
        )
    return wrong


@dataclass(frozen=True, slots=True)
class _Pages:
    """Median time per page over some minutes. of_gauge: in multiples of the gauge of the same minute."""

    seconds: float
    of_gauge: float


def _pages(lines: Sequence[Line]) -> _Pages:
    drawn = [(line.seconds, 1000 * line.seconds / line.gauge) for line in lines if line.seconds and line.gauge]
    return _Pages(*map(median, zip(*drawn, strict=True))) if drawn else _Pages(math.inf, math.inf)


def soak(folder: Path, minutes: float, log: Path, choices: int = 0) -> list[Line]:
    """Return one line per minute, and append each to `log` at once. choices: see `furnish`."""
    home, temporary = folder / "home", folder / "tmp"
    home.mkdir(parents=True)
    temporary.mkdir()
    os.environ.update(WINNOW_HOME=str(home), HF_HUB_OFFLINE="1")
    file = folder / "addresses.json"
    command = [sys.executable, "-m", "tests.lab.soak", "--furnish", str(file), "--choices", str(choices)]
    subprocess.run(command, check=True, cwd=ROOT)
    addresses, options = json.loads(file.read_text())
    tally, lines = Tally(), list[Line]()
    with Server(home=home, data=folder, environment={"TMPDIR": str(temporary)}) as server:
        server.start()
        assert server.process
        process = psutil.Process(server.process.pid)
        walks = [
            threading.Thread(target=session, args=(n, server.url, addresses, tally), daemon=True)
            for n in range(SESSIONS)
        ]
        walks.append(threading.Thread(target=coming_and_going, args=(options, tally), daemon=True))
        walks.append(threading.Thread(target=gauging, args=(tally,), daemon=True))
        for walk in walks:
            walk.start()
        began = time.monotonic()
        while len(lines) < minutes:
            time.sleep(max(0.0, began + MINUTE * (len(lines) + 1) - time.monotonic()))
            lines.append(measured(process, (home, temporary), tally, (time.monotonic() - began) / MINUTE))
            with log.open("a", encoding="utf-8") as written:
                written.write(json.dumps(asdict(lines[-1])) + "\n")
            print(json.dumps(asdict(lines[-1])), file=sys.stderr, flush=True)
        tally.over.set()
        for walk in walks:
            walk.join(PATIENCE / 1000)
    return lines


def furnish(file: Path, choices: int) -> None:
    """Fill this process's home with finished runs. file: receives the pages' addresses and the options of later runs.

    choices: number of selected corpora that exist from the start, as after hours of use.
    """
    from core.corpora.library import Library
    from core.projects import runs
    from tests import full_home

    home = project_in(Path(os.environ["WINNOW_HOME"]))
    addresses = full_home.furnish(home)
    marks = runs.listed("select")[0].manifest.inputs
    library, lots = Library(home), np.random.default_rng(0)
    domain = library.find(marks["domain"])
    for number in range(choices):
        rows = lots.choice(domain.n_sentences, 5, replace=False)
        library.subset(domain, rows, name=f"choice {number}", origin={"from": domain.fingerprint})
    options = {"task": marks["task"], "domain": marks["domain"], "strategy": "random", "budget": "5"}
    file.write_text(json.dumps([addresses, options]))


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.soak", description=__doc__)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--log", type=Path, default=Path("soak.jsonl"), help="file for the lines; they are appended")
    parser.add_argument("--choices", type=int, default=0, help="selected corpora that exist from the start")
    parser.add_argument("--furnish", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(words)
    if asked.furnish:
        furnish(asked.furnish, asked.choices)
        return 0
    with TemporaryDirectory(prefix="winnow-soak-") as folder:
        lines = soak(Path(folder), asked.minutes, asked.log.absolute(), asked.choices)
    wrong = judged(lines)
    print("\n".join(wrong) or f"{len(lines)} minutes, {lines[-1].pages:,} pages, {lines[-1].runs:,} runs: nothing grew")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
