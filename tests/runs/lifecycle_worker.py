"""A worker for tests of the life cycle of runs: its chunks have known bytes, and its config requests failures."""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from core.reporter import Reporter
from core.runs import RunContext, RunStore, chunked, device_lock, run_or_reuse, work

CHUNKS = 24


def compute(i: int) -> np.ndarray:
    return np.random.default_rng(i).standard_normal(500)


def crunch(context: RunContext) -> dict[str, object]:
    """Compute chunks. config: seconds per chunk, number of chunks, and gate, a file that the fifth chunk waits for."""
    config = context.config
    context.stage("crunching")

    def slowly(i: int, stop: int, report: Reporter) -> np.ndarray:
        time.sleep(config.get("seconds", 0.005))
        while i >= 4 and "gate" in config and not Path(config["gate"]).exists():
            report.check()
            time.sleep(0.01)
        return compute(i)

    paths = chunked(context, config.get("chunks", CHUNKS), 1, slowly, "piece", unit="chunks")
    total = np.concatenate([np.load(path) for path in paths])
    return {"sum": float(total.sum()), "first": total[:3].tolist(), "n": len(total)}


def unresponsive(context: RunContext) -> dict[str, object]:
    """Ignore check() and SIGTERM, and start a helper process."""
    with subprocess.Popen(["sleep", "60"]) as helper:
        context.metric("helper", helper.pid)
        context.stage("unresponsive")
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            time.sleep(0.05)
    return {}


def parent(context: RunContext) -> dict[str, object]:
    child = run_or_reuse(
        context, "crunch", context.config["child"], {}, crunch, versions={}, key=context.config["child_key"]
    )
    return {"child": child.id, **child.result()}


def train(context: RunContext) -> dict[str, object]:
    """Hold the device until the file `config["until"]` exists."""
    with device_lock(context.run.home, "cpu", context):
        context.stage("training")
        while not Path(context.config["until"]).exists():
            context.check()
            time.sleep(0.02)
    return {}


def parts(context: RunContext) -> dict[str, object]:
    """Train twice in child runs; after each, wait until the file `config["between"]` exists."""
    for number in (1, 2):
        child = {"until": context.config["until"]}
        run_or_reuse(context, "train", child, {}, train, versions={}, key=f"part {number}")
        while not Path(context.config["between"]).exists():
            context.check()
            time.sleep(0.02)
    return {}


RECIPES = {"crunch": crunch, "unresponsive": unresponsive, "parent": parent, "parts": parts, "train": train}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["work"])
    parser.add_argument("run")
    parser.add_argument("--home", type=Path)
    arguments = parser.parse_args()
    run = RunStore(arguments.home).get(arguments.run)
    return work(run, RECIPES[run.manifest.kind])


if __name__ == "__main__":
    sys.exit(main())
