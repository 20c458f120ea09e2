"""Compare fitting and scoring of a Kneser-Ney 5-gram with KenLM, in one run, on the same real tokens.

    python tests/lab/benchmarks/bench_ngram.py [--data DIR] [--tokens 2000000 10000000] [--repeat 3]

KenLM needs `lmplz` and `build_binary` on the PATH, or in LMPLZ and BUILD_BINARY. Without them, the published seconds
are printed, and no ratio. Each fit runs in its own process, so that its peak memory is its own. The two sides take
turns, and the median of the repetitions counts. CPU seconds (all threads) are printed beside wall seconds, because a
busy machine lengthens the latter.
"""

import argparse
import gzip
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

FILES = ("pubmed", "reviews", "news")  # training text: the first tokens, in this order
HELD_OUT = "wikipedia"
PUBLISHED = {2_000_000: 5.2, 10_000_000: 22.6}  # seconds of lmplz + build_binary on another machine


def write_text(data: Path, tokens: int, path: Path) -> None:
    """Write the first `tokens` tokens of FILES, in whole sentences, to one plain file."""
    with path.open("w", encoding="utf-8") as out:
        for name in FILES:
            with gzip.open(data / f"{name}.txt.gz", "rt", encoding="utf-8") as lines:
                for line in lines:
                    tokens -= len(line.split())
                    if tokens < 0:
                        return
                    out.write(line)


def read(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield line.split()


def child(train: Path, held_out: Path) -> dict[str, float]:
    """Fit and score once; called in a separate process."""
    from core.models.ngram import KneserNey

    begin, cpu = time.perf_counter(), time.process_time()
    model = KneserNey.fit(read(train))
    fitted, fit_cpu = time.perf_counter() - begin, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    rates = {}
    for name, path in (("held_out", held_out), ("seen", train)):
        sentences = [tokens for _, tokens in zip(range(50_000), read(path), strict=False)]
        begin, cpu = time.perf_counter(), time.process_time()
        model.score(sentences)
        tokens = sum(map(len, sentences))
        rates[name] = tokens / (time.perf_counter() - begin)
        rates[f"{name}_cpu"] = tokens / (time.process_time() - cpu)
    return {"fit": fitted, "fit_cpu": fit_cpu, "peak": peak, **rates}


def kenlm(lmplz: str, build_binary: str, train: Path, folder: Path) -> dict[str, float]:
    """Return wall and CPU seconds of lmplz + build_binary, and the peak memory of lmplz in bytes."""
    arpa = folder / "k.arpa"
    begin, before = time.perf_counter(), os.times()
    command = [
        lmplz,
        "-o",
        "5",
        "-S",
        "1G",
        "-T",
        str(folder),
        "--discount_fallback",
        "--text",
        str(train),
        "--arpa",
        str(arpa),
    ]
    log = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    subprocess.run([build_binary, str(arpa), str(folder / "k.bin")], check=True, capture_output=True)
    seconds, after = time.perf_counter() - begin, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"kenlm": seconds, "kenlm_cpu": cpu, "kenlm_peak": int(log.rsplit("RSSMax:", 1)[1].split()[0]) * 1024}


def measure(train: Path, held_out: Path, repeat: int, tools: tuple[str, str] | None) -> dict[str, float]:
    runs: list[dict[str, float]] = []
    for _ in range(repeat):
        command = [sys.executable, __file__, "--child", str(train), str(held_out)]
        run = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        if tools:
            with tempfile.TemporaryDirectory(dir=train.parent) as folder:
                run |= kenlm(*tools, train, Path(folder))
        runs.append(run)
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--tokens", type=int, nargs="+", default=list(PUBLISHED))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--child", type=Path, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(*options.child)))
        return
    lmplz = shutil.which(os.environ.get("LMPLZ", "lmplz"))
    beside = str(Path(lmplz).parent / "build_binary") if lmplz else "build_binary"
    build_binary = shutil.which(os.environ.get("BUILD_BINARY", beside))
    tools = (lmplz, build_binary) if lmplz and build_binary else None
    print("Seconds and rates by wall time, with CPU time in brackets. Scored: million tokens per second.\n")
    print("| tokens | fit s | peak GB | scored held-out | scored seen | lmplz + build_binary s | its peak GB | ratio |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        train, held_out = Path(folder, "train.txt"), Path(folder, "held-out.txt")
        with gzip.open(options.data / "unlabeled" / f"{HELD_OUT}.txt.gz") as source, held_out.open("wb") as out:
            shutil.copyfileobj(source, out)
        for tokens in options.tokens:
            write_text(options.data / "unlabeled", tokens, train)
            m = measure(train, held_out, options.repeat, tools)
            print(row(tokens, m), flush=True)


def row(tokens: int, m: dict[str, float]) -> str:
    def pair(key: str, scale: float = 1, digits: int = 1) -> str:
        return f"{m[key] / scale:.{digits}f} ({m[f'{key}_cpu'] / scale:.{digits}f})"

    ours = (
        f"| {tokens:,} | {pair('fit')} | {m['peak'] / 1e9:.2f} | {pair('held_out', 1e6, 2)} | {pair('seen', 1e6, 2)} |"
    )
    if "kenlm" not in m:
        return f"{ours} not installed; {PUBLISHED.get(tokens, '?')} on another machine | | |"
    ratio = f"{m['kenlm'] / m['fit']:.2f} ({m['kenlm_cpu'] / m['fit_cpu']:.2f})"
    return f"{ours} {pair('kenlm')} | {m['kenlm_peak'] / 1e9:.2f} | {ratio} |"


if __name__ == "__main__":
    main()
