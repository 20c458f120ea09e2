"""Time one query, and the 5 nearest of 500 sentences, against stored rows, in one run with other ways.

usage: python -m tests.lab.benchmarks.bench_search [--rows 1000000] [--rounds 3] [--busy 0]

The rows are float16 and memory-mapped, as `embed` stores them. All ways alternate round by round; the ratio is the
median over rounds of the ratio within a round. "shared" is the way of version 0.5: all threads share every product of
1,024 rows. faiss and usearch are timed if they are installed; both get the rows in the form that they need beforehand.
--busy: number of processes that keep a core busy meanwhile. Goals on two cores: a query in 0.1 s, the nearest in 10 s.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

import numpy as np
import torch

from core.results import FloatArray
from core.selection.strategies.cosine import cosine, top_k_mean

WIDTH, TARGETS, NEAREST, BLOCK = 384, 500, 5, 1024
Ways = dict[str, Callable[[], FloatArray]]


def stored(file: Path, rows: int) -> FloatArray:
    """Write random float16 rows of length 1, and return them memory-mapped."""
    rng = np.random.default_rng(0)
    written = np.lib.format.open_memmap(file, mode="w+", dtype=np.float16, shape=(rows, WIDTH))
    for start in range(0, rows, 65536):
        block = rng.standard_normal((min(65536, rows - start), WIDTH), dtype=np.float32)
        written[start : start + len(block)] = block / np.linalg.norm(block, axis=1, keepdims=True)
    written.flush()
    found: FloatArray = np.load(file, mmap_mode="c")
    return found


def shared(unit: FloatArray, targets: FloatArray, k: int) -> FloatArray:
    """Return the mean of the `k` largest cosines; all threads share each product."""
    across = torch.from_numpy(targets).T.contiguous()
    means = [
        (torch.from_numpy(unit[start : start + BLOCK]).float() @ across).topk(k, sorted=False).values.mean(1)
        for start in range(0, len(unit), BLOCK)
    ]
    return torch.cat(means).numpy()


def libraries(unit: FloatArray, targets: FloatArray, k: int) -> Ways:
    """Return the exact searches of installed libraries."""
    ways: Ways = {}
    with suppress(ImportError):
        faiss, wide = import_module("faiss"), unit.astype(np.float32)
        # faiss finds, for each row of its first argument, the nearest of the second.
        ways["faiss (float32)"] = lambda: faiss.knn(wide, targets, k, metric=faiss.METRIC_INNER_PRODUCT)[0].mean(1)
    with suppress(ImportError):
        search, half = import_module("usearch.index").search, targets.astype(np.float16)
        ways["usearch"] = lambda: 1 - search(half, unit, k, "ip", exact=True).distances.mean(1)
    return ways


@contextmanager
def company(processes: int) -> Iterator[None]:
    """Keep cores busy with as many other processes."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def compare(title: str, ways: Ways, rounds: int) -> None:
    """Print seconds, CPU seconds, the ratio to the first way, and the largest difference from it."""
    taken: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    first: FloatArray | None = None
    apart = dict.fromkeys(ways, 0.0)
    for _ in range(rounds):
        for way, work in ways.items():
            begin, cpu = time.perf_counter(), time.process_time()
            found = work().ravel()
            taken[way].append((time.perf_counter() - begin, time.process_time() - cpu))
            first = found if first is None else first
            apart[way] = float(np.abs(found - first).max())
    ours = taken[next(iter(ways))]
    print(f"{title:<36} {'seconds':>8} {'CPU':>7} {'x ours':>7} {'apart':>9}")
    for way, times in taken.items():
        seconds, cpu = (statistics.median(column) for column in zip(*times, strict=True))
        ratio = statistics.median(a[0] / b[0] for a, b in zip(times, ours, strict=True))
        print(f"  {way:<34} {seconds:>8.3f} {cpu:>7.2f} {ratio:>7.2f} {apart[way]:>9.1e}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    query, targets = (rng.standard_normal((n, WIDTH), dtype=np.float32) for n in (1, TARGETS))
    query, targets = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (query, targets))
    print(f"{options.rows:,} x {WIDTH} rows, {torch.get_num_threads()} threads, {options.busy} busy processes")
    with tempfile.TemporaryDirectory() as folder, company(options.busy):
        unit = stored(Path(folder) / "unit.npy", options.rows)
        one: Ways = {"ours": lambda: cosine(unit, query), "shared": lambda: shared(unit, query, 1)}
        compare("one query", one | libraries(unit, query, 1), options.rounds)
        some: Ways = {
            "ours": lambda: top_k_mean(unit, targets, NEAREST),
            "shared": lambda: shared(unit, targets, NEAREST),
        }
        title = f"mean of the {NEAREST} nearest of {TARGETS}"
        compare(title, some | libraries(unit, targets, NEAREST), options.rounds)


if __name__ == "__main__":
    main()
