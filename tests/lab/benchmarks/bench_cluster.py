"""Past one machine: what an engine costs, what two workers are worth, and what the head does for millions of rows.

    python -m tests.lab.benchmarks.bench_cluster [PART --home DIR] [--rows N]

engine          chunks that sleep, here and by one and two workers of Ray: what the engine takes beyond them, begins in
ship            chunks of 8,192 sentences out and their vectors back: the head's processor time a chunk
embed-local, embed-one, embed-two, embed-nodes      real sentences embedded here, by one worker, by two, by two nodes:
                one checksum, seconds
frozen          chunks that sleep, on two nodes, of which one stands still once ten are there: what the rest take
experiment      three arms by three seeds of a tiny encoder, alone; by two shares, of which one is killed at a training
experiment-nodes      the same alone; on two nodes, of which one is killed at a training: leaderboard.csv, hours left out
audit-make; audit-local, audit-two     --rows real sentences with planted copies; duplicates found here, by two workers
head-make; head-stubs, head-score, head-choose     a corpus of --rows short rows; ids read chunk by chunk; `score` of
                all (random) and their order; a choice of a thousandth, sealed: seconds a chunk, peak memory
table           what is known so far
all             each of them, in a home of its own where none is said; what is meant where no part is

Each part takes nine minutes at most where the machine is quiet; its figures are a line in DIR/lines.jsonl, with the
load. It has one thread, as a worker has. Real sentences: WINNOW_REAL_DATA/unlabeled.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.corpora.corpus import ABOUT, BLOCK, SENTENCES, Corpus
from core.corpora.hygiene import Audit
from core.corpora.library import Library
from core.corpora.table import _PLAIN, KEPT
from core.encoders.embed import EmbedWork
from core.experiment.result import read as read_experiment
from core.projects import runs
from core.runs.chunks import Array, Work
from core.runs.context import RunContext
from core.runs.events import Event
from core.runs.executors import engine, spread
from core.runs.executors.hello import PROBED
from core.runs.store import RunStore
from core.runs.worker import execute
from core.selection.choose import ranking
from core.selection.score import CHUNK
from tests.clusters import token, two_nodes
from tests.homes import project_in
from tests.lab.benchmarks import bench_hygiene
from tests.lab.benchmarks.timed import Ship, Sleep, Stub, Timed
from tests.patience import until
from tests.recipes.test_experiment import OPTIONS, fill
from tests.recipes.test_fan import at_it
from tests.runs.test_companions import board, trainers

Figures = dict[str, object]
SENTENCES_EMBEDDED, LONGEST = 8 * 8192, 60  # sentences; characters, so that a worker alone has done within minutes
SLEEPS, SECONDS = 80, 0.25


def spread_out(
    home: Path, work: Work, n: int, size: int, workers: int, cluster: str = "", freeze: Callable[[], None] | None = None
) -> tuple[Figures, list[Path]]:
    """A run that is all this work, here (0) or by so many workers: seconds until its first chunk begins and from there
    to the last, the chunks' processor time and the head's; and their files.

    cluster: where the workers are, as of `--on`. freeze: called once ten chunks are there; the figures then say how
    many were left, and how long these took.
    """
    run = RunStore(home).create("embed", {}, {}, seed=None, versions={}, key=str(time.time()))
    into = run.path / "timed"
    into.mkdir()
    os.environ["WINNOW_ON"] = cluster or ("ray" if workers else "local")
    engine.PROCESSORS = workers or None
    frozen = list[tuple[int, float]]()

    def stop() -> None:
        there = until(lambda: (n := len(list(run.chunks.glob("chunk-*.npy")))) >= 10 and n, "ten chunks are there")
        assert freeze
        freeze()
        frozen.append((-(-n // size) - int(there), time.time()))

    stopper = threading.Thread(target=stop)
    if freeze:
        stopper.start()
    paths = list[Path]()

    def function(context: RunContext) -> dict[str, object]:
        paths.extend(spread(context, n, size, Timed(work=work, into=into), "chunk", device=nullcontext)[0])
        return {}

    def listen(event: Event) -> None:
        if event.kind == "stage" and event.data["name"] == work.stage:
            ready.append(time.process_time())

    begin, cpu, ready = time.time(), time.process_time(), list[float]()
    execute(run, function, listener=listen)
    end = time.process_time()
    lines = [json.loads(line) for file in into.glob("*.jsonl") for line in file.read_text().splitlines()]
    chunks = [line for line in lines if work.exact or line["items"] != PROBED]
    first, last = min(line["begin"] for line in chunks), max(line["end"] for line in chunks)
    figures: Figures = {
        "workers": workers,
        "until the first chunk": round(first - begin, 1),
        "chunks": round(last - first, 1),
        "cpu in chunks": round(sum(line["cpu"] for line in chunks), 1),
        "head cpu": round(end - cpu, 2),
        "of these in chunks": round(end - ready[0], 2),
        "made": len(chunks),
        "of": -(-n // size),
    }
    for left, since in frozen:
        figures |= {"left": left, "these took": round(last - since, 1)}
    return figures, paths


def sleeping(home: Path, rows: int) -> Figures:
    here, one, two = (spread_out(home, Sleep(seconds=SECONDS), SLEEPS, 1, workers)[0] for workers in (0, 1, 2))
    ratio = float(str(one["chunks"])) / float(str(two["chunks"]))
    return {"here": here, "one": one, "two": two, "two over one": round(ratio, 2)}


def freezing(home: Path, rows: int) -> Figures:
    """Beside what the node that is left would take for what is left."""
    with token(), two_nodes() as (cluster, second):
        work = Sleep(seconds=SECONDS)
        figures, paths = spread_out(home, work, SLEEPS, 1, 2, cluster, second.freeze)
        whole = sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]
    expected = sha256(npy(np.zeros(1, np.int8)) * SLEEPS).hexdigest()[:12]
    times = float(str(figures["these took"])) / (int(str(figures["left"])) * SECONDS)
    return {**figures, "times the time of who is left": round(times, 2), "same bytes": whole == expected}


def npy(array: Array) -> bytes:
    file = BytesIO()
    np.save(file, array)
    return file.getvalue()


def experimenting(home: Path, rows: int) -> Figures:
    options = {**OPTIONS, "arms": ("none", "tapt", "classifier"), "seeds": (1, 2, 3)}
    boards, trained_by = list[list[tuple[object, ...]]](), dict[str, int]()
    words = [sys.executable, "-c", f"from core.projects import runs; runs.execute('experiment', {options!r})"]
    for name, of in (("alone", 1), ("shared", 2)):
        os.environ["WINNOW_HOME"] = str(project_in(home / f"experiment {name}"))
        shutil.rmtree(os.environ["WINNOW_HOME"], ignore_errors=True)
        fill(Path(os.environ["WINNOW_HOME"]))
        shares = [f"{number}/{of}" if of > 1 else "" for number in range(of)]
        processes = [subprocess.Popen(words, env={**os.environ, "WINNOW_SHARE": share}) for share in shares]
        if of > 1:
            until(lambda: at_it(processes[1].pid), "the second process is at a training")  # noqa: B023
            processes[1].kill()
        assert processes[0].wait() == 0
        store = RunStore(Path(os.environ["WINNOW_HOME"]))
        (run,) = store.list("experiment")
        workers = {(run.state().worker or (0,))[0] for kind in ("pretrain", "finetune") for run in store.list(kind)}
        rows_of = read_experiment(run).leaderboard
        boards.append([(row.arm, row.micro_f1, row.dev_f1, row.delta, row.interval, row.verdict) for row in rows_of])
        trained_by[name] = len(workers)
    return {"lines": boards[0], "trained by": trained_by, "same leaderboard": boards[0] == boards[1]}


def experimenting_on_nodes(home: Path, rows: int) -> Figures:
    options = {**OPTIONS, "arms": ("none", "tapt", "classifier"), "seeds": (1, 2, 3)}
    boards, notes, trained_by = list[list[list[str]]](), list[str](), dict[str, int]()
    words = [sys.executable, "-c", f"from core.projects import runs; runs.execute('experiment', {options!r})"]
    for name in ("alone", "nodes"):
        os.environ["WINNOW_HOME"] = str(project_in(home / f"experiment {name}"))
        shutil.rmtree(os.environ["WINNOW_HOME"], ignore_errors=True)
        fill(Path(os.environ["WINNOW_HOME"]))
        with token(), two_nodes() if name == "nodes" else nullcontext(("local", None)) as (cluster, second):
            process = subprocess.Popen(words, env={**os.environ, "WINNOW_ON": cluster})
            if second:
                pid = until(lambda: trainers() - {process.pid}, "the other node is at a training").pop()  # noqa: B023
                helper = psutil.Process(pid)
                helper.suspend()
                second.kill()
                helper.kill()
            assert process.wait() == 0
        store = RunStore(Path(os.environ["WINNOW_HOME"]))
        (run,) = store.list("experiment")
        workers = {(run.state().worker or (0,))[0] for kind in ("pretrain", "finetune") for run in store.list(kind)}
        boards.append(board(run))
        notes.extend(note for note in run.state().notes if note.startswith(("Node ", "What helped")))
        trained_by[name] = len(workers)
    return {"lines": len(boards[0]), "trained by": trained_by, "named": notes, "same csv": boards[0] == boards[1]}


def shipping(home: Path, rows: int) -> Figures:
    figures, _ = spread_out(home, Ship(corpus=real(home, 24 * BLOCK)), 24 * BLOCK, BLOCK, 2)
    return {**figures, "head ms a chunk": round(1000 * float(str(figures["of these in chunks"])) / 24, 1)}


def embedded(home: Path, workers: int, cluster: str = "") -> Figures:
    corpus = real(home, SENTENCES_EMBEDDED, LONGEST)
    options = {"pooling": "mean", "max_length": 128, "precision": "bf16", "allow_download": False}
    work = EmbedWork(corpus=corpus, encoder="minilm", options=options)
    figures, paths = spread_out(home, work, len(corpus), 8192, workers, cluster)
    whole = sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]
    return {**figures, "sentences": len(corpus), "sha256": whole}


def embedded_by_nodes(home: Path, rows: int) -> Figures:
    with token(), two_nodes() as (cluster, _):
        return embedded(home, 2, cluster)


def real(home: Path, n: int, longest: int = 10_000) -> Corpus:
    """So many different real sentences of no more characters."""
    name = f"real {n} {longest}"
    if name in {corpus.name for corpus in Library(home).list()}:
        return Library(home).find(name)
    texts = dict.fromkeys(" ".join(text.split()) for text in bench_hygiene.texts(40 * n) if len(text) <= longest)
    return sealed(home, list(texts)[:n], name)


def sealed(home: Path, texts: list[str], name: str) -> Corpus:
    corpus = bench_hygiene.seal(str(home), texts)
    return Library(home).rename(corpus.fingerprint, name)


def made_audit(home: Path, rows: int) -> Figures:
    texts, _ = bench_hygiene.planted(rows)
    corpus = sealed(home, texts, f"audit {rows}")
    return {"rows": len(corpus), "tokens": corpus.n_tokens}


def audited(home: Path, rows: int, workers: int) -> Figures:
    """An `audit` run here or by so many workers, beside the same of before, which is removed."""
    corpus = Library(home).find(f"audit {rows}")
    for run in RunStore(home).list("audit"):
        RunStore(home).remove(run.id)
    os.environ["WINNOW_ON"] = "ray" if workers else "local"
    engine.PROCESSORS = workers or None
    stages, sizes = dict[str, float](), dict[str, int]()

    def listen(event: Event) -> None:
        if event.kind == "stage":
            stages.setdefault(event.data["name"], event.time)
            for path in home.glob("runs/*/chunks/*.npy"):
                sizes[path.name] = path.stat().st_size

    begin, cpu = time.time(), time.process_time()
    run = runs.execute("audit", {"corpus": corpus.fingerprint}, listen)
    end = time.time()
    found = Audit.load(run.artifacts / "audit")
    same = sha256(found.mask.tobytes() + found.cluster.tobytes()).hexdigest()[:12]
    names = [*stages, ""]
    seconds = {name: round((stages.get(after) or end) - stages[name], 1) for name, after in pairwise(names)}
    bytes_a_row = {
        kind: round(sum(n for name, n in sizes.items() if name.startswith(kind)) / rows, 1)
        for kind in ("numbers", "entries", "pairs")
    }
    return {
        "rows": rows,
        "workers": workers,
        "seconds": round(end - begin, 1),
        "from the first chunk": round(end - stages["reading sentences"], 1),
        "cpu here": round(time.process_time() - cpu, 1),
        "stages": seconds,
        "bytes a row": bytes_a_row,
        "mask and cluster": same,
        "near": found.counts["near_duplicate"],
    }


def made_head(home: Path, rows: int) -> Figures:
    """A corpus of rows that say their number, written without being read: its fingerprint is invented."""
    fingerprint = f"{rows:024x}"
    folder = Library(home).folder / fingerprint
    folder.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(folder / SENTENCES, _PLAIN, compression="zstd", compression_level=1) as writer:
        for start in range(0, rows, BLOCK):
            number = np.arange(start, min(start + BLOCK, rows), dtype=np.uint64)
            none = {name: pa.nulls(len(number), _PLAIN.field(name).type) for name in ("doc", *KEPT)}
            ids = pa.array(number * np.uint64(0x9E3779B97F4A7C15))
            columns = {"id": ids, "text": pc.cast(pa.array(number), pa.string())}
            lengths = pa.array((number % np.uint64(40) + np.uint64(5)).astype(np.int32))
            writer.write_table(pa.table({**columns, "n_tokens": lengths, **none}, schema=_PLAIN))
    about: Mapping[str, object] = {
        "fingerprint": fingerprint,
        "n_sentences": rows,
        "n_tokens": 24 * rows,
        "labelled": False,
        "types": {},
        "tokens": "words",
        "names": [f"head {rows}"],
        "origin": {},
    }
    (folder / ABOUT).write_text(json.dumps(about))
    sealed(home, [f"sentence number {i} of a task" for i in range(1000)], "head task")
    return {"rows": rows, "MB": (folder / SENTENCES).stat().st_size >> 20}


def stubs(home: Path, rows: int) -> Figures:
    figures, paths = spread_out(home, Stub(corpus=Library(home).find(f"head {rows}")), rows, BLOCK, 0)
    loop = float(str(figures["chunks"])) / len(paths)
    cpu = float(str(figures["head cpu"])) / len(paths)
    return {
        "rows": rows,
        "made": len(paths),
        "ms a chunk": round(1000 * loop, 1),
        "cpu ms a chunk": round(1000 * cpu, 1),
    }


def scored(home: Path, rows: int) -> Figures:
    for run in RunStore(home).list("score"):
        RunStore(home).remove(run.id)
    loop = list[tuple[int, float]]()

    def listen(event: Event) -> None:
        if event.kind == "progress" and event.data["total"] == rows:
            loop.append((event.data["done"], time.process_time()))

    begin, cpu = time.time(), time.process_time()
    options = {"task": "head task", "domain": f"head {rows}", "strategy": "random"}
    run = runs.execute("score", options, listen)
    size = sum(path.stat().st_size for path in run.artifacts.rglob("*") if path.is_file())
    spent = time.process_time() - cpu
    (done, first), (all_done, last) = loop[0], loop[-1]
    return {
        "rows": rows,
        "seconds": round(time.time() - begin, 1),
        "cpu": round(spent, 1),
        "cpu ms a chunk": round(1000 * (last - first) / ((all_done - done) / CHUNK), 1),
        "bytes a row left": round(size / rows, 1),
    }


def chosen(home: Path, rows: int) -> Figures:
    """What comes after `score`, by the functions that do it, of scores that are drawn here."""
    corpus, scores = Library(home).find(f"head {rows}"), np.random.default_rng(0).random(rows)
    cpu = time.process_time()
    order = ranking(scores, "high")
    lengths = corpus.lengths()
    taken = np.sort(order[: rows // 1000])
    ordering = time.process_time() - cpu
    part = Library(home).subset(corpus, taken, name=f"chosen of {rows}", origin={"from": corpus.fingerprint})
    return {
        "rows": rows,
        "chosen": len(part),
        "words": int(lengths[taken].sum()),
        "cpu to choose": round(ordering, 1),
        "cpu to seal": round(time.process_time() - cpu - ordering, 1),
    }


PARTS: Mapping[str, Callable[[Path, int], Figures]] = {
    "engine": sleeping,
    "ship": shipping,
    "embed-local": lambda home, rows: embedded(home, 0),
    "embed-one": lambda home, rows: embedded(home, 1),
    "embed-two": lambda home, rows: embedded(home, 2),
    "embed-nodes": embedded_by_nodes,
    "frozen": freezing,
    "experiment": experimenting,
    "experiment-nodes": experimenting_on_nodes,
    "audit-make": made_audit,
    "audit-local": lambda home, rows: audited(home, rows, 0),
    "audit-two": lambda home, rows: audited(home, rows, 2),
    "head-make": made_head,
    "head-stubs": stubs,
    "head-score": scored,
    "head-choose": chosen,
}


def in_a_process(part: str, home: Path, rows: int) -> int:
    """The part's exit status, of a process with one thread, which must be said before anything is loaded."""
    words = [sys.executable, "-m", "tests.lab.benchmarks.bench_cluster", part, "--home", str(home), "--rows", str(rows)]
    return subprocess.run(words, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}).returncode


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("part", nargs="?", default="all", choices=[*PARTS, "all", "table"])
    parser.add_argument("--home", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    if given.part == "all":
        with TemporaryDirectory() as folder:
            sys.exit(max(in_a_process(part, given.home or Path(folder), given.rows) for part in PARTS))
    if not given.home:
        parser.error("--home: say where its corpora and figures are kept.")
    if os.environ.get("OMP_NUM_THREADS") != "1":
        sys.exit(in_a_process(given.part, given.home, given.rows))
    lines: Path = given.home / "lines.jsonl"
    if given.part == "table":
        print(lines.read_text(), end="")
        return
    project = project_in(given.home.resolve())
    os.environ["WINNOW_HOME"] = str(project)
    project.mkdir(parents=True, exist_ok=True)
    load, begin = os.getloadavg()[0], time.time()
    figures: dict[str, Any] = PARTS[given.part](project, given.rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    line = {
        "part": given.part,
        **figures,
        "peak MB": peak,
        "part s": round(time.time() - begin, 1),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "at": datetime.now(UTC).isoformat(timespec="minutes"),
    }
    with lines.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line, indent=1), file=sys.stdout)


if __name__ == "__main__":
    main()
