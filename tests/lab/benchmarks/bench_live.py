"""Time what a page shows: the first map, a budget that changes, and a run that is reloaded, stopped or killed.

    python -m tests.lab.benchmarks.bench_live                   a training: new tab, new server, kill, resume, stop; curves
    python -m tests.lab.benchmarks.bench_live --rows 1000000    the budget slider of a selection from a million sentences
    python -m tests.lab.benchmarks.bench_live --first-map       three clicks from a new home to the sample's first map

With a real server and chromium, and the tiny encoder; the first map with the bundled one. Goals: the first map within
60 s; the slider's count and examples change within 0.3 s; a page shows a run again within 3 s; a killed worker shows
within 10 s; a stopped training leaves no process after 15 s; curves of 5,000 steps change every 2 s, in the same node of
the page.
"""

import argparse
import os
import re
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Page, expect, sync_playwright

from core.corpora.library import Library
from core.errors import Cancelled
from core.importing import view as corpora
from core.projects import runs
from core.runs.context import RunContext
from core.text.sentence import Sentence, sentence_id
from tests.browser.driver import Server, settled
from tests.browser.test_progress_browser import start_run
from tests.browser.test_training_browser import labelled
from tests.lab.benchmarks.bench_pages import opened
from tests.waiting import until

PANEL = ".st-key-training-run-panel"
STEPS = 5_000
ROUNDS = 10
# Milliseconds from a key on the slider until the count, the table and the page's script have changed and ended.
MOVED = """() => new Promise(moved => {
    const app = document.querySelector("[data-testid=stApp]"), start = performance.now();
    const count = () => document.querySelector("[data-testid=stMetricValue]").innerText, before = count();
    (function look() {
        if (count() !== before && app.dataset.testScriptState === "notRunning") moved(performance.now() - start);
        else requestAnimationFrame(look);
    })();
})"""
# Marks the first chart, and records when its line changes.
CHANGES = """() => {
    const chart = document.querySelector("[data-testid=stVegaLiteChart] svg"), line = ".mark-line path";
    chart.dataset.mark = "here";
    window.changes = [];
    let before = "";
    (function look() {
        const path = document.querySelector(`svg[data-mark=here] ${line}`)?.getAttribute("d");
        if (path && path !== before) { before = path; window.changes.push(performance.now()); }
        requestAnimationFrame(look);
    })();
}"""


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def slider(server: Server, page: Page, rows: int) -> None:
    """Print how long the budget slider takes with `rows` scored sentences."""
    texts = (f"Clause {i} binds the tenant of house {i % 977} to pay {i % 7919} pounds ." for i in range(rows))
    sentences = (Sentence(id=sentence_id(text), text=text, tokens=tuple(text.split())) for text in texts)
    corpora.open_sample("legal")
    corpora.set_role("domain", Library(server.project).seal(sentences, name="big", origin={}).fingerprint)
    roles = {name: corpora.roles()[name] for name in ("task", "domain")}
    run = runs.execute("select", {**roles, "strategy": "length-matched-random", "budget": "1%"})
    page.goto(f"{server.url}/Selection?run={run.id}")
    settled(page)
    thumb = page.get_by_test_id("stMain").get_by_role("slider").first
    took = []
    for _ in range(ROUNDS):
        thumb.focus()
        waiting = page.evaluate_handle(f"() => {{ window.moved = ({MOVED})(); }}")
        page.keyboard.press("ArrowRight")
        took.append(float(page.evaluate("window.moved")) / 1000)
        waiting.dispose()
        settled(page)
    print(
        f"budget slider, {rows:,} sentences      {statistics.median(took):.2f} s ({min(took):.2f} to {max(took):.2f}, "
        f"{ROUNDS} times)   goal 0.3 s"
    )


def first_map(server: Server, page: Page) -> None:
    """Print how long it takes from the first click in a new home until the map of the legal sample is drawn."""
    page.goto(server.url)
    settled(page)
    began = time.perf_counter()
    for name in ("Open the legal sample", "Score and select", "See the selection on a map"):
        page.get_by_role("button", name=name).click(timeout=600_000)
        print(f"{f'pressed {name!r}':<38} {time.perf_counter() - began:.1f} s", flush=True)
    expect(page.get_by_role("figure", name=re.compile("^Map of 7,100 sentences"))).to_be_visible(timeout=600_000)
    print(f"the map is drawn                       {time.perf_counter() - began:.1f} s   goal 60 s")


def training(server: Server, page: Page) -> Page:
    """Print how long a page takes to show a run again, its death and its end. Return the page that is open."""
    sets = {part: labelled(server.project, f"my-{part}", n) for part, n in (("train", 300), ("dev", 40), ("test", 40))}
    for part, corpus in sets.items():
        corpora.set_role(part, corpus.fingerprint)
    marks = {part: corpus.fingerprint for part, corpus in sets.items()}
    options = {**marks, "test": (marks["test"],), "init": "tiny", "epochs": 400, "patience": 400, "seeds": (1,)}
    run = runs.get(runs.start("finetune", options))
    until(lambda: "dev_f1@1" in runs.state(run.id).metrics)
    address = f"{server.url}/Training"
    panel = page.locator(PANEL)

    def shows(words: str) -> float:
        return seconds(lambda: expect(panel.get_by_text(words).first).to_be_visible(timeout=60_000))

    page.goto(address)
    shows("Running")
    began = time.perf_counter()
    page.reload()
    shows("Running")
    print(f"reloaded                               {time.perf_counter() - began:.2f} s   goal 3 s")
    context = page.context
    page.close()
    page = context.new_page()
    panel = page.locator(PANEL)
    began = time.perf_counter()
    page.goto(address)
    shows("Running")
    print(f"closed, opened in a new tab            {time.perf_counter() - began:.2f} s   goal 3 s")
    page.goto("about:blank")
    server.stop()
    server.start()
    began = time.perf_counter()
    page.goto(address)
    shows("Running")
    print(f"the server started again               {time.perf_counter() - began:.2f} s   goal 3 s")
    print(
        f"runs of this training                  {len(runs.listed('finetune'))}, attempts {runs.state(run.id).attempts}"
    )

    worker = runs.get(run.id).worker()
    assert worker
    os.kill(worker.pid, signal.SIGKILL)
    logged = run.events_file.stat().st_size
    print(f"the worker killed with SIGKILL         {shows('Interrupted'):.2f} s   goal 10 s")
    expect(page.get_by_text("Notes and log")).to_be_visible()
    page.get_by_role("button", name="Resume", exact=True).click()
    shows("Running")
    until(lambda: b'"dev_f1@1"' in run.events_file.read_bytes()[logged:])  # it trains again
    again = runs.get(run.id).worker()
    assert again
    leader = psutil.Process(again.pid)
    members = [leader, *leader.children(recursive=True)]
    page.get_by_role("button", name="Stop and keep", exact=True).click()
    began = time.perf_counter()
    _, left = psutil.wait_procs(members, timeout=60)
    gone = time.perf_counter() - began
    shows("Stopped")
    print(f"stopped, no process left               {gone:.2f} s ({len(left)} left)   goal 15 s")
    assert list(runs.get(run.id).checkpoints.rglob("*"))
    return page


def curves(server: Server, page: Page) -> None:
    """Print how often the curves of a run of `STEPS` steps change."""
    marks = {part: corpora.roles()[part] for part in ("train", "dev", "test")}
    many, enough = threading.Event(), threading.Event()

    def work(context: RunContext) -> dict[str, Any]:
        context.part(1, 1, "seed 1")
        context.stage("training, seed 1")
        step = 0
        while not enough.wait(0.05 if step > STEPS else 0):
            context.check()
            step += 1
            context.metric("loss@1", 9.0 / step, step)
            if step == STEPS:
                many.set()
        raise Cancelled("the curves have been timed.")

    options = {**marks, "test": (marks["test"],), "init": "tiny", "seeds": (7,)}
    thread = start_run(server.project, "finetune", options, work)
    try:
        run = until(lambda: next((run for run in runs.listed("finetune") if 7 in run.manifest.config["seeds"]), None))
        assert run
        assert many.wait(120)
        page.goto(f"{server.url}/Training?run={run.id}")
        expect(page.locator("[data-testid=stVegaLiteChart] svg").first).to_be_visible()
        time.sleep(3)
        page.evaluate(CHANGES)
        time.sleep(20)
        at = page.evaluate("window.changes")
        same = page.locator("svg[data-mark=here]").count() == 1
        gaps = [(b - a) / 1000 for a, b in pairwise(at)]
        print(
            f"curve of more than {STEPS:,} steps        every {statistics.median(gaps):.2f} s (longest {max(gaps):.2f} s, "
            f"{len(at)} changes in 20 s); the same node: {same}   goal 2 s"
        )
    finally:
        enough.set()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=0, help="Time the budget slider over so many sentences instead.")
    parser.add_argument("--first-map", action="store_true", help="Time the first map of the legal sample instead.")
    asked = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.environ["WINNOW_HOME"] = str(Path(folder) / "home")
        with Server(home=Path(folder) / "home", data=Path(folder)) as server:
            server.start()
            page = opened(playwright)
            if asked.first_map:
                first_map(server, page)
            elif asked.rows:
                slider(server, page, asked.rows)
            else:
                curves(server, training(server, page))


if __name__ == "__main__":
    main()
