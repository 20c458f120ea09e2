"""Select from a large D_C: rate, memory, resuming after SIGKILL, and the time to apply a budget.

D_C: the first N sentences of real unlabelled text (default 300,000). T_C: crossner-music. The command runs twice in
separate homes: once undisturbed, and once killed with SIGKILL half way and resumed. Both S_C must be equal.

    python -m tests.lab.benchmarks.bench_select [--rows 300000] [--strategy classifier] [--data ../shared/data]
"""

import argparse
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import psutil

from core.encoders import embed
from core.selection import STRATEGIES, score
from tests.homes import project_in

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("wikipedia", "wikipedia-people", "news", "legal", "reviews", "pubmed")


def lines(data: Path) -> Iterator[str]:
    for name in SOURCES:
        with gzip.open(data / "unlabeled" / f"{name}.txt.gz", "rt", encoding="utf-8") as file:
            yield from file


def command(home: Path, scratch: Path, data: Path, strategy: str, output: Path) -> list[str]:
    return [
        sys.executable,
        "-m",
        "core",
        "--home",
        str(home),
        "select",
        "--task",
        str(scratch / "task.txt"),
        "--domain",
        str(scratch / "domain.txt"),
        "--holdout",
        str(data / "crossner-music" / "test.conll"),
        "--strategy",
        strategy,
        "--budget",
        "10%",
        "--exact",
        "--output",
        str(output),
        "--json",
    ]


def run(words: list[str], kill_at: float | None = None) -> tuple[dict[str, object], float, float]:
    """Run a command; return (result, seconds, peak resident MiB). kill_at: chunks after which it is killed."""
    begin, peak = time.perf_counter(), 0.0
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    watched = psutil.Process(process.pid)
    home = Path(words[words.index("--home") + 1])
    while process.poll() is None:
        try:
            peak = max(peak, watched.memory_info().rss / 2**20)
        except psutil.NoSuchProcess:
            break
        if kill_at is not None and chunks_done(home) >= kill_at:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return {}, time.perf_counter() - begin, peak
        time.sleep(0.05)
    out = process.communicate()[0]
    assert process.returncode == 0, f"exit {process.returncode}"
    return json.loads(out), time.perf_counter() - begin, peak


def chunks_done(home: Path) -> int:
    chunks = ("*-embed-*/artifacts/vectors-*.npy", "*-score-*/chunks/score-*.npy")
    return sum(1 for pattern in chunks for _ in project_in(home).glob(f"runs/{pattern}"))


def million() -> None:
    """Time what the budget slider does with a million scores, and the scoring of a million stored rows."""
    from core.config import Budget
    from core.results import Scores
    from core.selection.choose import choose, ranking
    from core.selection.strategies.cosine import cosine

    rng = np.random.default_rng(0)
    values = rng.normal(size=1_000_000)
    scores = Scores(name="s", unit="u", prefer="high", values=values, corpus="c")
    lengths, mask = rng.integers(5, 60, len(values)), (rng.random(len(values)) < 0.1).astype(np.uint8)
    order = ranking(values, "high")
    unit = rng.standard_normal((1_000_000, 384), dtype=np.float32).astype(np.float16)
    query = rng.standard_normal((1, 384)).astype(np.float32)
    for name, work in (
        (
            "choose 100,000 of a million, order stored",
            lambda: choose(scores, Budget.parse("100000"), lengths=lengths, mask=mask, order=order),
        ),
        ("rank a million", lambda: ranking(values, "high")),
        ("score a million stored rows of 384", lambda: cosine(unit, query)),
    ):
        times = []
        for _ in range(6):
            begin = time.perf_counter()
            work()
            times.append(time.perf_counter() - begin)
        print(f"| {name} | {np.median(times[1:]):.3f} s |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--strategy", default="classifier")
    args = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        task = [
            " ".join(line.split("\t")[0] for line in block.split("\n"))
            for split in ("train", "dev")
            for block in (args.data / "crossner-music" / f"{split}.conll").read_text("utf-8").strip().split("\n\n")
        ]
        (scratch / "task.txt").write_text("\n".join(task), encoding="utf-8")
        with (scratch / "domain.txt").open("w", encoding="utf-8") as out:
            out.writelines(islice(lines(args.data), args.rows))
        a, b = scratch / "undisturbed.jsonl", scratch / "resumed.jsonl"
        words = command(scratch / "home-b", scratch, args.data, args.strategy, b)
        text_only = STRATEGIES[args.strategy].reads in ("ids", "text")
        half = args.rows / (score.CHUNK if text_only else embed.CHUNK) / 2
        run(words, kill_at=half)
        killed = chunks_done(scratch / "home-b")
        _, rest, _ = run(words)
        result, seconds, peak = run(command(scratch / "home-a", scratch, args.data, args.strategy, a))
        print(f"| `{args.strategy}`, {result['of']:,} sentences, from files to S_C | {seconds:.0f} s |")
        print(f"| the same, sentences per second | {args.rows / seconds:,.0f} |")
        print(f"| peak resident memory of the worker | {peak:,.0f} MiB |")
        print(f"| killed after {killed} chunks; time of the resumed command | {rest:.0f} s |")
        print(f"| both S_C are equal byte for byte | {a.read_bytes() == b.read_bytes()} |")
        assert a.read_bytes() == b.read_bytes()
    million()


if __name__ == "__main__":
    main()
