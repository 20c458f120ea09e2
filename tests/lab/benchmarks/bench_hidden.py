"""Does a selection find the right sentences? A test without training.

T_C: train and dev sentences of a CrossNER domain. D_C: its test sentences hidden among 40,000 others. For every
strategy that trains no model, and for further options, this prints the share of them among the best 2% of D_C, with the
leak filter off. A draw samples other sentences, shuffles D_C, and gives the strategies another seed. The last table has
the mean over draws, and the standard deviation if there are several.

    python -m tests.lab.benchmarks.bench_hidden [--draws 5] [--domains crossner-ai ...] [--strategies knn ...]
        [--task 100] [--others 40000] [--data ../shared/data] [--home DIR]
"""

import argparse
import gzip
import os
import random
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path

from core.projects import runs
from core.selection import view as selections
from core.selection.which_strategy import untrained
from tests.lab.benchmarks.data import DATA, sentences

OTHERS = {"legal": 9000, "reviews": 9000, "pubmed": 9000, "news": 6000, "wikipedia": 5000, "wikipedia-people": 2000}
DOMAINS = ("crossner-ai", "crossner-music", "crossner-literature")
FURTHER: tuple[tuple[str, dict[str, object]], ...] = (
    ("cos-pretrained", {"query": "unit-mean"}),
    ("cos-pretrained", {"query": "contrastive"}),
    ("cos-pretrained", {"query": "k-means"}),
    ("cos-pretrained", {"whiten": True}),
    ("cos-pretrained", {"query": "contrastive", "whiten": True}),
    ("knn", {"query": "round-robin"}),
    ("dsir", {"smoothing": 0.0}),
)


def sample(data: Path, name: str, n: int, seed: int = 0) -> list[str]:
    with gzip.open(data / "unlabeled" / f"{name}.txt.gz", "rt", encoding="utf-8") as file:
        return random.Random(seed).sample(file.read().splitlines(), n)


def build(data: Path, domain: str, out: Path, draw: int = 0, n_task: int = 0, n_others: int = 40_000) -> set[str]:
    """Write task.txt and domain.txt; return the hidden sentences. n_task: sentences of T_C; 0: all."""
    out.mkdir(parents=True, exist_ok=True)
    task = [s for split in ("train", "dev") for s in sentences(data / domain / f"{split}.conll")]
    task = random.Random(draw).sample(task, n_task) if n_task else task
    gold = list(dict.fromkeys(sentences(data / domain / "test.conll")))
    shares = {name: round(n * n_others / sum(OTHERS.values())) for name, n in OTHERS.items()}
    pool = gold + [s for name, n in shares.items() for s in sample(data, name, n, draw)]
    random.Random(draw + 1).shuffle(pool)
    for name, rows in (("task", task), ("domain", pool)):
        (out / f"{name}.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return set(gold)


def found(options: Mapping[str, object], gold: set[str]) -> float:
    run = runs.execute("select", options)
    chosen = selections.choose(run.id, "2%", ["leak"])
    texts = {row["text"] for row in selections.scored(run.id).table(chosen.rows)}
    return len(gold & texts) / min(len(gold), len(chosen.rows))


def main() -> None:
    every = untrained(labels=True)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--domains", nargs="+", default=DOMAINS)
    parser.add_argument("--strategies", nargs="+", choices=every, default=every)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--task", type=int, default=0)
    parser.add_argument("--others", type=int, default=sum(OTHERS.values()))
    parser.add_argument("--home", type=Path)
    args = parser.parse_args()
    arms: list[tuple[str, dict[str, object]]] = [(name, {}) for name in args.strategies] + [
        each for each in FURTHER if each[0] in args.strategies
    ]
    table: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["WINNOW_HOME"] = str(args.home or Path(scratch) / "home")
        for domain, draw in ((domain, draw) for domain in args.domains for draw in range(args.draws)):
            folder = Path(scratch) / f"{domain}-{draw}"
            gold = build(args.data, domain, folder, draw, args.task, args.others)
            refs = {role: add(folder / f"{role}.txt", f"{domain}-{draw}-{role}") for role in ("task", "domain")}
            refs["train"] = add(args.data / domain / "train.conll", f"{domain}-train")
            for strategy, options in arms:
                name = " ".join([strategy, *(f"{key}={value}" for key, value in options.items())])
                wanted = {"strategy": strategy, "options": options, "budget": "2%", "keep": ["leak"], "seed": draw}
                value = found({**refs, **wanted}, gold)
                table.setdefault(name, {}).setdefault(domain, []).append(value)
                print(f"{domain} draw {draw} {name}: {value:.3f}", flush=True)
    print("\n| strategy | " + " | ".join(args.domains) + " |\n|---|" + "---:|" * len(args.domains))
    for name, values in table.items():
        print(f"| `{name}` | " + " | ".join(map(cell, values.values())) + " |")


def cell(values: list[float]) -> str:
    """Return the mean over draws, with the standard deviation if there are several."""
    spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.3f}{spread}"


def add(path: Path, name: str) -> str:
    fingerprint: str = runs.execute("add", {"path": str(path), "name": name}).result()["corpus"]
    return fingerprint


if __name__ == "__main__":
    main()
