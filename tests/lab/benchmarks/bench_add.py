"""Add five million sentences of real text; measure rows per second, and the peak memory of the process that adds them.

    python tests/lab/benchmarks/bench_add.py [--sentences 5000000] [--split]

The real sentences of ../shared/data/unlabeled (818,000) are repeated. Each repetition contains different numbers, so
that neither the compression nor the columns meet a row twice. The reader runs in its own process, so that `ru_maxrss`
is the memory of adding alone. Goals: 60,000 rows/s, under 1 GiB.
"""

import argparse
import gzip
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("WINNOW_REAL_DATA", ROOT.parent / "shared" / "data")) / "unlabeled"


def generate(path: Path, n: int) -> None:
    """Write `n` different lines to a .txt.gz file."""
    written = 0
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as out:
        for turn in itertools.count():
            for source in sorted(DATA.glob("*.txt.gz")):
                with gzip.open(source, "rt", encoding="utf-8") as lines:
                    for line in lines:
                        if written == n:
                            return
                        written += 1
                        out.write(f"{line.rstrip()} ( {turn} - {written} )\n" if turn else line)


def add(path: Path, home: Path, split: bool) -> dict[str, float]:
    """Read, clean, tokenise, hash and seal `path`; return the measurements."""
    sys.path.insert(0, str(ROOT))
    from core.corpora.library import Library
    from core.corpora.readers import ReadOptions, ReadReport, read

    report = ReadReport()
    wall, cpu = time.perf_counter(), time.process_time()
    corpus = Library(home).seal(read(path, ReadOptions(split=split), report=report), name="bench", origin={})
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "sentences": len(corpus),
        "tokens": corpus.n_tokens,
        "rejected": report.rejected,
        "rows_per_second": round(report.read / wall),
        "rows_per_cpu_second": round(report.read / cpu),
        "seconds": round(wall, 1),
        "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "file_mib": round(path.stat().st_size / 2**20),
        "sealed_mib": round((corpus.path / "sentences.parquet").stat().st_size / 2**20),
    }


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=5_000_000)
    parser.add_argument("--split", action="store_true")
    parser.add_argument("--add", nargs=2, metavar=("FILE", "HOME"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.add:
        print(json.dumps(add(Path(args.add[0]), Path(args.add[1]), args.split)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.txt.gz"
        generate(path, args.sentences)
        command = [sys.executable, __file__, "--add", str(path), str(Path(folder) / "home")]
        print(
            subprocess.run(
                [*command, *["--split"] * args.split], check=True, capture_output=True, text=True
            ).stdout.strip()
        )


if __name__ == "__main__":
    main()
