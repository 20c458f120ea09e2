"""Is the estimate of in-domain sentences right? Plant known numbers of task sentences among sentences of other kinds.

bc5cdr: T_C is its train sentences, or the first 1,000 or 500 of them. 0, 200, 1,000 and 4,000 of its test sentences are
planted among 31,000 others (no papers). CrossNER: T_C is train and dev. All test sentences are planted among 40,000
others, with and without the encyclopedia, which itself contains sentences of these domains. The same is measured
without the test sentences. Each case prints a JSON line.

    python -m tests.lab.benchmarks.bench_prevalence [--seeds 0 1 2] [--data ../shared/data] [--vectors FILE.npz]
"""

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from core.corpora.library import Library
from core.models.encoder import Encoder
from core.projects.home import library
from core.reporter import Silent
from core.results import FloatArray, Role
from core.selection.base import Source
from core.selection.prevalence import REGULARISATION
from core.selection.strategies.classifier import ClassifierOptions, CrossFitted
from core.stats.prevalence import prevalence
from core.text.sentence import Sentence, sentence_id
from core.text.words import tokenize
from tests.lab.benchmarks.bench_hidden import DOMAINS, OTHERS, sample
from tests.lab.benchmarks.data import DATA, sentences

PAPERS, ENCYCLOPEDIA = ("pubmed",), ("wikipedia", "wikipedia-people")
Case = tuple[str, Sequence[str], Sequence[str], Sequence[str]]  # its name, T_C, what is planted, the others


def cases(data: Path, seed: int) -> Iterator[Case]:
    """Yield the cases. The seed draws the planted sentences of bc5cdr."""
    others = {name: sample(data, name, n) for name, n in OTHERS.items()}
    plain = [s for name, rows in others.items() if name not in PAPERS for s in rows]
    train, test = (list(dict.fromkeys(sentences(data / "bc5cdr" / f"{part}.conll"))) for part in ("train", "test"))
    for task in (train, train[:1000], train[:500]):
        for n in (0, 200, 1000, 4000):
            yield f"bc5cdr, T_C {len(task):,}", task, random.Random(seed).sample(test, n), plain
    for domain in DOMAINS:
        own = [s for part in ("train", "dev") for s in sentences(data / domain / f"{part}.conll")]
        hidden = sentences(data / domain / "test.conll")
        for left_out in ((), ENCYCLOPEDIA):
            rest = [s for name, rows in others.items() if name not in left_out for s in rows]
            what = domain + (", no encyclopedia" if left_out else "")
            yield from ((what, own, planted, rest) for planted in (hidden, []))


def embedded(texts: Sequence[str], kept: Path | None) -> dict[str, FloatArray]:
    """Return {sentence: vector}. kept: file to read the vectors from, or to write them to if it does not exist."""
    if kept and kept.exists():
        with np.load(kept) as file:
            return dict(zip(file["texts"].tolist(), file["vectors"], strict=True))
    vectors, _ = Encoder.load("minilm").encode(texts, Silent())
    if kept:
        np.savez(kept, texts=np.array(texts), vectors=vectors.astype(np.float16))
    return dict(zip(texts, vectors, strict=True))


def measure(library: Library, case: Case, vectors: dict[str, FloatArray], seed: int) -> dict[str, object]:
    """Return the estimate for a case."""
    name, task, planted, others = case
    pile = [s for s in dict.fromkeys([*planted, *others]) if s not in set(task)]
    random.Random(seed).shuffle(pile)
    sources = {}
    for role, texts in ((Role.TASK, list(dict.fromkeys(task))), (Role.DOMAIN, pile)):
        rows = [Sentence(id=sentence_id(text), tokens=tokenize(text), text=text) for text in texts]
        corpus = library.seal(rows, name=str(role), origin={}, labelled=False)
        stored = np.array([vectors[text] for text in texts], dtype=np.float16)
        sources[role] = Source(corpus=corpus, vectors=stored, norms=np.ones(len(texts), dtype=np.float32))
    begun = time.perf_counter()
    strategy = CrossFitted(ClassifierOptions(regularisation=REGULARISATION), seed)
    strategy.prepare(sources, Silent())
    scores = {
        role: np.concatenate([strategy.score(batch) for batch in source.batches("both")])
        for role, source in sources.items()
    }
    told = prevalence(scores[Role.TASK], scores[Role.DOMAIN])
    numbers = {"low": round(told.low), "about": round(told.about), "high": round(told.high)}
    each = [round(above.about) for above in told.quantiles]
    there = len(set(planted) & set(pile))
    return {
        "case": name,
        "planted": there,
        **numbers,
        "by_quantile": each,
        "of": len(pile),
        "seed": seed,
        "seconds": round(time.perf_counter() - begun, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", default="", help="Only cases whose name starts with this.")
    parser.add_argument("--vectors", type=Path, help="Store the embeddings in this file, or read them from it.")
    args = parser.parse_args()
    all_of_them = [(seed, case) for seed in args.seeds for case in cases(args.data, seed)]
    texts = list(dict.fromkeys(s for _, (_, *parts) in all_of_them for part in parts for s in part))
    vectors = embedded(texts, args.vectors)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["WINNOW_HOME"] = scratch
        for seed, case in all_of_them:
            if case[0].startswith(args.only):
                print(json.dumps(measure(library(), case, vectors, seed)), flush=True)


if __name__ == "__main__":
    main()
