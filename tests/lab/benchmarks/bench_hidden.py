"""Does a selection find the right sentences? A test without training.

T_C: train and dev sentences of a CrossNER domain. D_C: its test sentences hidden among 40,000 others. For every
strategy and option, this prints the share of them among the best 2% of D_C, with the leak filter off.

    python -m tests.lab.benchmarks.bench_hidden [--domains crossner-ai ...] [--data ../shared/data] [--home DIR]
"""

import argparse
import gzip
import os
import random
import tempfile
from collections.abc import Mapping
from pathlib import Path

from core.projects import runs
from core.selection import view as selections
from tests.lab.benchmarks.data import DATA, sentences

OTHERS = {"legal": 9000, "reviews": 9000, "pubmed": 9000, "news": 6000, "wikipedia": 5000, "wikipedia-people": 2000}
DOMAINS = ("crossner-ai", "crossner-music", "crossner-literature")
ARMS: tuple[tuple[str, dict[str, object]], ...] = (
    ("random", {}),
    ("length-matched-random", {}),
    ("gazetteer", {}),
    ("ngram-perplexity", {}),
    ("cos-pretrained", {}),
    ("cos-pretrained", {"query": "unit-mean"}),
    ("cos-pretrained", {"query": "contrastive"}),
    ("cos-pretrained", {"query": "k-means"}),
    ("cos-pretrained", {"whiten": True}),
    ("cos-pretrained", {"query": "contrastive", "whiten": True}),
    ("knn", {}),
    ("classifier", {}),
)


def sample(data: Path, name: str, n: int) -> list[str]:
    with gzip.open(data / "unlabeled" / f"{name}.txt.gz", "rt", encoding="utf-8") as file:
        return random.Random(0).sample(file.read().splitlines(), n)


def build(data: Path, domain: str, out: Path) -> set[str]:
    """Write task.txt and domain.txt; return the hidden sentences."""
    out.mkdir(parents=True, exist_ok=True)
    task = [s for split in ("train", "dev") for s in sentences(data / domain / f"{split}.conll")]
    gold = list(dict.fromkeys(sentences(data / domain / "test.conll")))
    pool = gold + [s for name, n in OTHERS.items() for s in sample(data, name, n)]
    random.Random(1).shuffle(pool)
    for name, rows in (("task", task), ("domain", pool)):
        (out / f"{name}.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return set(gold)


def found(options: Mapping[str, object], gold: set[str]) -> float:
    run = runs.execute("select", options)
    chosen = selections.choose(run.id, "2%", ["leak"])
    texts = {row["text"] for row in selections.scored(run.id).table(chosen.rows)}
    return len(gold & texts) / min(len(gold), len(chosen.rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--domains", nargs="+", default=DOMAINS)
    parser.add_argument("--home", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["WINNOW_HOME"] = str(args.home or Path(scratch) / "home")
        table: dict[str, list[float]] = {}
        for domain in args.domains:
            gold = build(args.data, domain, Path(scratch) / domain)
            refs = {
                role: add(Path(scratch) / domain / f"{role}.txt", f"{domain}-{role}") for role in ("task", "domain")
            }
            refs["train"] = add(args.data / domain / "train.conll", f"{domain}-train")
            for strategy, options in ARMS:
                name = " ".join([strategy, *(f"{key}={value}" for key, value in options.items())])
                wanted = {**refs, "strategy": strategy, "options": options, "budget": "2%", "keep": ["leak"]}
                table.setdefault(name, []).append(found(wanted, gold))
                print(f"{domain} {name}: {table[name][-1]:.3f}", flush=True)
    print("\n| strategy | " + " | ".join(args.domains) + " |\n|---|" + "---:|" * len(args.domains))
    for name, values in table.items():
        print(f"| `{name}` | " + " | ".join(f"{value:.2f}" for value in values) + " |")


def add(path: Path, name: str) -> str:
    fingerprint: str = runs.execute("add", {"path": str(path), "name": name}).result()["corpus"]
    return fingerprint


if __name__ == "__main__":
    main()
