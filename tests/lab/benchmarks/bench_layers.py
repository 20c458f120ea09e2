"""Compare what a tagger reads of its encoder: last layer, learnt mix, each layer, reinitialised top, a probe's choice.

    python -m tests.lab.benchmarks.bench_layers [--home DIR] [--corpora crossner-music ...] [--encoder minilm] [--seeds 1 2 3]
        [--arms last mix 4 5 reinit:1 proposed] [--output lines.jsonl] [--table]

The probe (`encoders rank`) proposes a layer from the training sentences alone. An arm may name further options of
`finetune`: "last lora=8", "last context=64". Trainings run one at a time, each in its own process, whose peak memory is
recorded. Each appends a JSON line when it ends. The same command continues after the last line, and inside a training
with the same --home.

Lines contain the counts per test sentence in the form of choosing.jsonl.

`--table` trains nothing. It prints differences to `last` with their intervals, for each corpus and for all together.
For another encoder than MiniLM, it also prints the difference to MiniLM on corpora that both were trained on. A
training of MiniLM takes a minute and a half on two cores, so never run this in a test.
"""

import argparse
import json
import os
import resource
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from core.models import hub
from core.projects import runs
from core.results import Evaluation
from core.stats.bootstrap import compare
from core.tagging import evaluations
from tests.lab.benchmarks.bench_choosing import counts_of, unpacked
from tests.lab.benchmarks.bench_ner import splits
from tests.lab.benchmarks.data import DATA

CORPORA = ("crossner-music", "crossner-ai", "crossner-literature")
LAST, MINILM = "last", "minilm"
PROPOSED = "proposed"  # the layers that `encoders rank` proposes from the training sentences alone
DRAWN = 3  # largest k of the arms `reinit:k`

Line = dict[str, Any]


def arms(encoder: str) -> list[str]:
    """Return all arms of an encoder. The last layer comes first, because the others are compared with it."""
    n = int(hub.load_model(encoder).config.num_hidden_layers)
    named = [str(layer) for layer in range(1, n)]
    return [LAST, "mix", *named, *(f"reinit:{k}" for k in range(1, min(DRAWN, n) + 1)), PROPOSED]


def train(given: argparse.Namespace, name: str, parts: dict[str, str], arm: str, seed: int) -> Line:
    """Run one training and return its line. The peak memory is that of this process."""
    layers, *words = arm.split()
    if layers == PROPOSED:
        rank = runs.execute("rank", {"train": parts["train"], "dev": parts["dev"], "encoders": (given.encoder,)})
        layers = rank.result()["encoders"][0]["proposal"]["layers"]
    options: dict[str, object] = {"train": parts["train"], "dev": parts["dev"], "test": (parts["test"],)}
    options |= {"init": given.encoder, "seeds": (seed,), "preset": given.preset, "layers": layers}
    options |= dict(word.split("=", 1) for word in words)
    run = runs.execute("finetune", options)
    result = run.result()
    line = {"corpus": name, "encoder": given.encoder, "arm": arm, "layers": layers, "seed": seed, "run": run.id}
    line |= {"dev": result["dev"]["mean"], "test": result["test"]["mean"], "seconds": result["seconds"][0]}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    line |= {"best_epoch": result["best_epoch"][0], "peak_mb": peak, "decodings": result["test"]["decodings"]}
    [tested] = evaluations.read(run, 0)
    return line | counts_of(tested)


def missing(given: argparse.Namespace, done: Sequence[Line]) -> Iterator[tuple[int, str, str]]:
    """Yield (seed, corpus, arm) of missing trainings: all of one seed before the next."""
    known = {(line["corpus"], line["encoder"], line["arm"], line["seed"]) for line in done}
    for seed in given.seeds:
        for name in given.corpora:
            for arm in given.arms or arms(given.encoder):
                if (name, given.encoder, arm, seed) not in known:
                    yield seed, name, arm


def read(path: Path) -> list[Line]:
    """Return the lines so far, without a line that a crash cut off; its training is repeated."""
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue
    return lines


def table(lines: Sequence[Line]) -> None:
    """Print every arm of one encoder against `last`, with the seconds and the peak memory of a seed."""
    print(
        "| corpus | arm | seeds | test F1 | against last | seconds per seed | MB |\n|---|---|---:|---:|---|---:|---:|"
    )
    names = list(dict.fromkeys(line["arm"] for line in lines))
    corpora = list(dict.fromkeys(line["corpus"] for line in lines))
    for of in (*([name] for name in corpora), corpora):
        for arm in names:
            own = [line for line in lines if line["arm"] == arm and line["corpus"] in of]
            if own:
                f1, seconds, peak = (
                    np.mean([line.get(key, np.nan) for line in own]) for key in ("test", "seconds", "peak_mb")
                )
                words = "" if arm == LAST else against(lines, of, arm)
                title = of[0] if len(of) == 1 else "all"
                print(
                    f"| {title} | {arm} | {len({line['seed'] for line in own})} | {f1:.1f} | {words} | {seconds:.0f} "
                    f"| {peak:.0f} |"
                )


def of_encoder(lines: Sequence[Line], corpus: str, encoder: str) -> list[Evaluation]:
    """Return the counts of an encoder's taggers on one corpus, with the last layer, one per seed."""
    own = [line for line in lines if (line["corpus"], line["arm"], line["encoder"]) == (corpus, LAST, encoder)]
    return [joined([line]) for line in sorted(own, key=lambda line: int(line["seed"]))]


def encoders(lines: Sequence[Line], encoder: str) -> None:
    """Print an encoder against MiniLM, both with the last layer, on each corpus that both were trained on."""
    for name in dict.fromkeys(line["corpus"] for line in lines):
        system, other = (of_encoder(lines, name, of) for of in (encoder, MINILM))
        if system and other and encoder != MINILM:
            by = compare(system, other)
            seeds = f"{len(system)} and {len(other)} seeds"
            print(f"{name}: {encoder} against {MINILM} {by.delta:+.1f} ({by.lo:+.1f} to {by.hi:+.1f}), {seeds}")


def against(lines: Sequence[Line], corpora: Sequence[str], arm: str) -> str:
    """Return the difference to `last` over some corpora, for the seeds that both have on all of them."""
    own = {(line["corpus"], line["arm"], line["seed"]): line for line in lines}
    seeds = sorted({line["seed"] for line in lines})
    both = [s for s in seeds if all((name, each, s) in own for name in corpora for each in (arm, LAST))]
    if not both:
        return ""
    system, other = ([joined([own[name, each, s] for name in corpora]) for s in both] for each in (arm, LAST))
    by = compare(system, other)
    return f"{by.delta:+.1f} ({by.lo:+.1f} to {by.hi:+.1f})"


def joined(lines: Sequence[Line]) -> Evaluation:
    """Concatenate the test sentences of several trainings, with the counts of all types added up."""
    tables = [unpacked({"gold": line["gold"], "arms": {LAST: line}}, LAST) for line in lines]
    parts = {part: np.concatenate([getattr(table, part) for table in tables]) for part in ("tp", "predicted", "gold")}
    return Evaluation(types=("all",), **parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--home", type=Path, help="Home of the runs; default: a temporary folder.")
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--encoder", default=MINILM)
    parser.add_argument("--arms", nargs="+", help="Default: all arms of the encoder.")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--output", type=Path, help="File for the lines; default: layers.jsonl in --home.")
    parser.add_argument("--table", action="store_true", help="Train nothing; print the table of the stored lines.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given.home = given.home or Path(folder)
        os.environ["WINNOW_HOME"] = str(given.home)
        work(given)


def work(given: argparse.Namespace) -> None:
    """Train what is missing, and print the table of all lines."""
    given.home.mkdir(parents=True, exist_ok=True)
    path = given.output or given.home / "layers.jsonl"
    if given.table:
        table([line for line in read(path) if line["encoder"] == given.encoder])
        encoders(read(path), given.encoder)
        return
    parts = {name: splits(given.data, name, given.home / "files") for name in given.corpora}
    for seed, name, arm in missing(given, read(path)):
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            line = pool.submit(train, given, name, parts[name], arm, seed).result()
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps({key: line[key] for key in ("corpus", "arm", "seed", "test", "seconds")}), flush=True)
    table([line for line in read(path) if line["encoder"] == given.encoder])


if __name__ == "__main__":
    main()
