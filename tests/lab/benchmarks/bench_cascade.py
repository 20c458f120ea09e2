"""A cascade against the exact selection: time, memory, overlap, and hidden sentences found, in one run.

D_C: N sentences of all unlabelled corpora, with a CrossNER domain's test sentences hidden among them. If the corpora
hold fewer, sentences are repeated with a third of their words replaced. T_C: train and dev sentences of the domain,
whole and cut to some sizes. Both selections start from imported corpora, each in its own home, one after the other.
The exact selections of one domain share an embedding of D_C, so only the first size compares times. `--no-exact` times
the import and the cascade alone.

`--draws` repeats the cascade with other seeds, against the exact scores of each seed. It takes the vectors from one
embedding of D_C, and counts how often at least 99% of the exact selection was kept.

    python -m tests.lab.benchmarks.bench_cascade [--rows 300000] [--sizes 0 100 30] [--draws 20] [--budget 2%] [--no-exact]

`--kill` instead kills the process that selects with SIGKILL once in each stage, resumes it each time, and compares all
files of all runs with those of an undisturbed selection in a copy of the home. Its samples and chunks are smaller than
usual, so that each stage has several chunks.

    python -m tests.lab.benchmarks.bench_cascade --kill --rows 40000 --budget 10% [--encoder tiny]
"""

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice, pairwise
from pathlib import Path
from signal import SIGKILL

import numpy as np

from core import cards
from core.encoders import vectors
from core.project_list import shared_home
from core.projects import runs
from core.results import IntArray, Role
from core.runs.events import Event, read_events
from core.runs.result import read
from core.selection import cascade
from core.selection import view as selections
from core.selection.base import Source
from core.selection.result import ScoreResult, SelectResult
from tests.homes import project_in
from tests.lab.benchmarks.bench_select import ROOT, run
from tests.lab.benchmarks.data import DATA, sentences
from tests.lab.torture.outcome import differences, here, outcome

DOMAINS = ("crossner-ai", "crossner-music", "crossner-literature")
EDITED = 1 / 3  # share of the words of a repeated sentence that are replaced
# {stage, {} for first or further: begin of its name in the events of a selection}
STAGES = {
    "audit": "audit: comparing",
    "{} embedding": "cascade: embedding ",
    "{} scores": "cascade: scoring ",
    "ranking": "cascade: ranking ",
}
# The command `core` with a smaller sample and smaller chunks, which embeds a part of D_C whatever the ranking is worth.
SMALLER = """
import sys
from core.cli.main import run_main
from core.selection import cascade
cascade.FITTED, cascade.EMBEDDED, cascade.CHUNK, cascade.WORTH = 1_000, 1_024, 4_096, 1.0
sys.exit(run_main())
"""
KILLED = ("audit", "first embedding", "first scores", "ranking", "further embedding", "further scores")
HEAD = (
    "| T_C | import | exact | cascade | ratio | embedded | bound | overlap | hidden, exact | hidden, cascade "
    "| peak, exact / cascade |"
)


def unlabelled(data: Path) -> list[str]:
    found = list[str]()
    for path in sorted((data / "unlabeled").glob("*.txt.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            found += file.read().splitlines()
    random.Random(0).shuffle(found)
    return found


def repeated(texts: list[str], n: int) -> list[str]:
    """Return `n` sentences: the texts, then edited ones."""
    rng, words = random.Random(1), [word for text in texts[:20_000] for word in text.split()]
    edited = (
        " ".join(rng.choice(words) if rng.random() < EDITED else word for word in text.split()) for text in cycle(texts)
    )
    return [*texts[:n], *islice(edited, max(n - len(texts), 0))]


def build(data: Path, domain: str, texts: list[str], out: Path) -> set[str]:
    """Write domain.txt; return the hidden sentences."""
    gold = list(dict.fromkeys(sentences(data / domain / "test.conll")))
    pool = [*gold, *texts]
    random.Random(2).shuffle(pool)
    (out / "domain.txt").write_text("\n".join(pool) + "\n", encoding="utf-8")
    return set(gold)


def selected(home: Path, args: argparse.Namespace, task: Path, way: str) -> tuple[Path, float, float, float]:
    """Select with a command. Return the selection, seconds of import and of selection, and peak MiB."""
    words = [sys.executable, "-m", "core", "--home", str(home)]
    begin = time.perf_counter()
    for path, name in ((task, task.stem), (task.parent / "domain.txt", "domain")):
        run([*words, "corpus", "add", str(path), "--name", name, "--json"])
    imported = time.perf_counter() - begin
    out = home / f"{task.stem}.jsonl"
    given = ["--task", task.stem, "--domain", "domain", "--strategy", args.strategy, "--budget", args.budget]
    result, seconds, peak = run([*words, "select", *given, f"--{way}", "--output", str(out), "--json"])
    assert result["selected"]
    return out, imported, seconds, peak


def compared(args: argparse.Namespace, scratch: Path, gold: set[str], task: Path, *, first: bool) -> str:
    """Return a line of the table. first: D_C has not been embedded yet, so the times can be compared."""
    texts, seconds, peaks = dict[str, list[str]](), dict[str, float](), dict[str, float]()
    imported = 0.0
    for way in ("cascade",) if args.no_exact else ("exact", "cascade"):
        home = scratch / way
        out, imported, seconds[way], peaks[way] = selected(home, args, task, way)
        texts[way] = [json.loads(line)["text"] for line in out.open(encoding="utf-8")]
    os.environ["WINNOW_HOME"] = str(shared_home(project_in(home)))
    found = read(runs.get(read(runs.listed("select")[0], SelectResult).score_run), ScoreResult).cascade
    hidden = {way: len(gold & set(chosen)) / min(len(gold), len(chosen)) for way, chosen in texts.items()}
    exact = texts.get("exact")
    overlap = f"{len(set(exact) & set(texts['cascade'])) / len(exact):.4f}" if exact else "-"
    share = f"{found.embedded / args.rows:.1%} | {found.bound:.4f}" if found and found.within else "all | -"
    return " | ".join(
        [
            f"| {task.stem}",
            f"{imported:.0f} s" if first else "-",
            f"{seconds['exact']:.0f} s" if first and exact else "-",
            f"{seconds['cascade']:.0f} s",
            f"{seconds['exact'] / seconds['cascade']:.1f}" if first and exact else "-",
            share,
            overlap,
            f"{hidden['exact']:.3f}" if exact else "-",
            f"{hidden['cascade']:.3f}",
            " / ".join(f"{peak:,.0f}" for peak in peaks.values()) + " MiB |",
        ]
    )


def draws(args: argparse.Namespace, home: Path, task: str) -> None:
    """Print the share of the exact selection that cascades of several seeds keep."""
    os.environ["WINNOW_HOME"] = str(shared_home(project_in(home)))
    options = {"task": task, "domain": "domain", "strategy": args.strategy, "budget": args.budget}
    runs.execute("select", {**options, "cascade": False})
    mark = runs.listed("select")[0].manifest.inputs["domain"]
    whole, norms = vectors.read(next(each for each in runs.listed("embed") if each.manifest.inputs["corpus"] == mark))

    def stored(work: cascade._Cascade, rows: IntArray, part: str, words: str) -> None:
        work.sources[Role.DOMAIN] = Source(corpus=work._domain, vectors=whole, norms=norms)

    cascade._Cascade.embed = stored  # type: ignore[method-assign, assignment]
    kept = list[float]()
    for seed in range(args.draws):
        begin = time.perf_counter()
        rows = [
            selections.chosen(runs.execute("select", {**options, "seed": seed, "cascade": on}).id).rows
            for on in (False, True)
        ]
        kept.append(len(np.intersect1d(rows[0], rows[1])) / len(rows[0]))
        print(f"seed {seed}: {kept[-1]:.4f} kept ({time.perf_counter() - begin:.0f} s)", flush=True)
    good = sum(share >= cascade.KEPT for share in kept)
    print(f"\nAt least {cascade.KEPT:.0%} kept in {good} of {len(kept)} draws; mean {np.mean(kept):.4f}.")


def attempts(home: Path) -> list[list[Event]]:
    """Return the events of each attempt of the selection in a home."""
    found = list[list[Event]]()
    for log in project_in(home).glob("runs/*-select-*/events.jsonl"):
        for event in read_events(log)[0]:
            if event.kind == "started":
                found.append([])
            found[-1].append(event)
    return found


def stages(attempt: list[Event]) -> list[tuple[str, float]]:
    """Return (stage of `STAGES`, time of its begin) of an attempt. Other stages are named ""."""
    found, part = list[tuple[str, float]](), "first"
    for event in attempt:
        if event.kind == "stage":
            name = event.data["name"]
            part = "further" if "embedding the best-ranked" in name else part
            stage = next((stage.format(part) for stage, words in STAGES.items() if name.startswith(words)), "")
            found.append((stage, event.time))
    return found


def now_in(home: Path, earlier: int) -> str:
    """Return the stage of the newest attempt; "" before it begins. earlier: number of earlier attempts."""
    begun = [stages(attempt) for attempt in attempts(home)[earlier:]]
    return begun[-1][-1][0] if begun and begun[-1] else ""


def killed(words: list[str], home: Path, stage: str, delay: float) -> tuple[bool, str]:
    """Start the command and kill it `delay` seconds after a stage began.

    Return if it was still in this stage, and the stage in which it was.
    """
    earlier = len(attempts(home))
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and now_in(home, earlier) != stage:
        time.sleep(0.01)
    time.sleep(delay)
    process.send_signal(SIGKILL)
    ended, found = process.wait(), now_in(home, earlier)
    return ended == -SIGKILL and found == stage, "no stage, as it had ended" if ended != -SIGKILL else found


def kills(args: argparse.Namespace, scratch: Path, task: Path) -> None:
    """Print the stage of each kill, and the files that differ from those of the undisturbed selection."""
    words = [sys.executable, "-c", SMALLER, "--home"]
    for path, name in ((task, "task"), (task.parent / "domain.txt", "domain")):
        run([*words, str(scratch / "calm"), "corpus", "add", str(path), "--name", name, "--json"])
    for copy in ("stormy", "again"):
        shutil.copytree(scratch / "calm", scratch / copy)
    before = here(project_in(scratch / "calm"))
    select = ["select", "--task", "task", "--domain", "domain", "--strategy", args.strategy, "--budget", args.budget]
    select += ["--cascade", "--json", *(["--encoder", args.encoder] if args.encoder else [])]
    select += ["--option", "sample=1000"] if args.strategy == "classifier" else []
    _, seconds, _ = run([*words, str(scratch / "calm"), *select])
    taken = dict[str, float]()
    found = [*stages(attempts(scratch / "calm")[-1]), ("", time.time())]
    for (stage, begin), (_, end) in pairwise(found):
        taken[stage] = min(taken.get(stage, end - begin), end - begin)  # the audit has several stages
    assert taken.keys() >= set(KILLED), "the cascade was not used; give another budget or number of rows"
    print(
        f"undisturbed: {seconds:.0f} s; " + ", ".join(f"{stage} {taken[stage]:.1f} s" for stage in KILLED), flush=True
    )
    missed, lots = list(KILLED), random.Random(args.seed)
    for home in ("stormy", "again"):  # a stage that was over before the kill is tried again in another home
        for stage in missed:
            there, where = killed(
                [*words, str(scratch / home), *select], scratch / home, stage, lots.random() / 2 * taken[stage]
            )
            missed = [each for each in missed if each != stage or not there]
            print(f"killed in {where}" + ("" if there else f", not in {stage}"), flush=True)
        run([*words, str(scratch / home), *select])
        calm, stormy = (outcome(project_in(scratch / name), before) for name in ("calm", home))
        different = differences(calm, stormy)
        print(f"{len(calm):,} files and results compared, {len(different)} differ {different}", flush=True)
        if not missed:
            return
    print(f"never killed in: {', '.join(missed)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--domains", nargs="+", default=DOMAINS)
    parser.add_argument("--sizes", nargs="+", type=int, default=[0, 100, 30], help="sentences of T_C; 0: all")
    parser.add_argument("--strategy", default="classifier")
    parser.add_argument("--budget", default="2%")
    parser.add_argument("--draws", type=int, default=0)
    parser.add_argument("--no-exact", action="store_true", help="only the cascade, without what it is compared with")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--encoder", default="", help="for --kill; default: the bundled one")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of --kill")
    parser.add_argument("--data", type=Path, default=DATA)
    args = parser.parse_args()
    texts = repeated(unlabelled(args.data), args.rows)
    if args.kill:
        with tempfile.TemporaryDirectory() as folder:
            build(args.data, args.domains[0], texts, Path(folder))
            task = Path(folder) / "task.txt"
            task.write_text("\n".join(sentences(args.data / args.domains[0] / "train.conll")) + "\n", encoding="utf-8")
            kills(args, Path(folder), task)
        return
    print(
        f"{cards.processor()}, {os.cpu_count()} cores, {len(texts):,} sentences\n{HEAD}\n|---|{'---:|' * 10}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        for domain in args.domains:
            scratch = Path(folder) / domain
            scratch.mkdir()
            gold = build(args.data, domain, texts, scratch)
            own = [text for split in ("train", "dev") for text in sentences(args.data / domain / f"{split}.conll")]
            random.Random(3).shuffle(own)
            for i, size in enumerate(args.sizes):
                task = scratch / f"{domain}-{size or 'all'}.txt"
                task.write_text("\n".join(own[: size or None]) + "\n", encoding="utf-8")
                print(compared(args, scratch, gold, task, first=i == 0), flush=True)
        if args.draws:
            draws(args, scratch / "exact", task.stem)


if __name__ == "__main__":
    main()
