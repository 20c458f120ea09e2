"""Compare one core with all cores: the import of text and tables, near duplicates, and the import of documents.

usage: python -m tests.lab.benchmarks.bench_cores [--rows 1000000] [--documents 40] [--rounds 3]

The rows are real sentences (`bench_hygiene`), the documents PDFs of 20 pages each. Both sides alternate round by round;
the ratio is the median over rounds of the ratio within a round. Their flags, clusters, sentences and reports must be the
same, byte for byte. CPU time includes the processes that were started. Peak memory is that of the largest process.
"""

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from core import processes
from core.corpora import hygiene
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.corpora.readers import ReadOptions, ReadReport, read
from core.reporter import Silent
from tests import documents as make
from tests.lab.benchmarks.bench_documents import texts
from tests.lab.benchmarks.bench_hygiene import planted, seal

PAGES, LINES = 20, 45


@contextmanager
def on(n: int) -> Iterator[None]:
    """Use `n` cores within the block."""
    with patch("core.processes.cores", lambda: n), patch("core.corpora.formats.documents.cores", lambda: n):
        yield


def audited(corpus: Corpus) -> str:
    found = hygiene.audit(corpus, [], Silent())
    return sha256(found.mask.tobytes() + found.cluster.tobytes()).hexdigest()


def stored(path: Path, home: str) -> str:
    return Library(Path(home)).seal(read(path, storing=True), name="text", origin={}).fingerprint


def imported(folder: Path) -> str:
    report = ReadReport()
    rows = [(each.text, each.doc, each.file, each.page) for each in read(folder, ReadOptions(), report=report)]
    return sha256(repr((rows, report.as_dict())).encode()).hexdigest()


def typeset(folder: Path, n: int) -> None:
    """Write `n` PDFs of real sentences."""
    folder.mkdir()
    lines = (line[:90] for line in cycle(texts()))
    for i in range(n):
        pages = [make.lines([next(lines) for _ in range(LINES)]) for _ in range(PAGES)]
        (folder / f"{i:03}.pdf").write_bytes(make.pdf(pages))


def tables(folder: Path, rows: Sequence[str]) -> Iterator[Path]:
    """Write the rows with a document and a year each, as JSON lines, CSV and Parquet."""
    table = pa.table(
        {
            "text": rows,
            "doc": [f"d{i // 20}" for i in range(len(rows))],
            "year": [1990 + i % 30 for i in range(len(rows))],
        }
    )
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist())
    yield folder / "rows.jsonl"
    arrow_csv.write_csv(table, folder / "rows.csv")
    yield folder / "rows.csv"
    pq.write_table(table, folder / "rows.parquet")
    yield folder / "rows.parquet"


def used() -> float:
    """Return the CPU seconds of this process and of its processes that ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def compare(title: str, work: Callable[[], str], rounds: int) -> None:
    """Print seconds and CPU seconds on one core and on all, and the ratio."""
    many = processes.cores()
    taken: dict[int, list[tuple[float, float]]] = {1: [], many: []}
    found = set[str]()
    for _ in range(rounds):
        for n, times in taken.items():
            begin, cpu = time.perf_counter(), used()
            with on(n):
                found.add(work())
            times.append((time.perf_counter() - begin, used() - cpu))
    ratio = statistics.median(one[0] / all_[0] for one, all_ in zip(taken[1], taken[many], strict=True))
    for n, times in taken.items():
        seconds, cpu = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"{title}, {n} core{'s' * (n > 1)}: {seconds:.1f} s, {cpu:.1f} s of CPU time")
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) // 1024
    print(f"  {ratio:.2f} times as fast; {'same' if len(found) == 1 else 'OTHER'} result; peak {peak} MiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with TemporaryDirectory() as home:
        rows, text = planted(options.rows)[0], Path(home) / "rows.txt"
        text.write_text("\n".join(rows), encoding="utf-8")
        compare(f"import of {options.rows:,} lines", lambda: stored(text, home), options.rounds)
        for path in tables(Path(home), rows):
            compare(f"import of {path.name}", partial(stored, path, home), options.rounds)
        corpus = seal(home, rows)
        del rows
        compare(f"near duplicates of {options.rows:,} rows", lambda: audited(corpus), options.rounds)
        typeset(Path(home) / "documents", options.documents)
        title = f"{options.documents} PDFs of {PAGES} pages"
        compare(title, lambda: imported(Path(home) / "documents"), options.rounds)


if __name__ == "__main__":
    main()
