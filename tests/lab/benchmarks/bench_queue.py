"""Measure the seconds to queue sentences again after labels were added, with a domain corpus of a million rows.

    python -m tests.lab.benchmarks.bench_queue [--rows 1000000] [--n 25] [--home DIR]

D_C: rows of eight to fourteen random words. Its vectors are random numbers, written as a finished `embed` run; audit
and scores (`cos-pretrained`) are real. The first queue computes both, which happens once. Then five labelled sentences
are added to the training set, and the queue is computed again; this second time is the result. The tagger is trained
for one epoch (bundled MiniLM).
"""

import argparse
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from core.corpora.corpus import Corpus
from core.encoders import vectors
from core.encoders.vectors import EmbedResult
from core.files import save_array_atomic
from core.labelling import view as labelling
from core.labelling.queue import QueueConfig
from core.models.encoder import encoder_options
from core.paths import home
from core.projects import runs
from core.projects.home import library
from core.runs.context import RunContext
from core.text.sentence import Entity, Sentence, sentence_id
from tests import finished

WORDS = [f"word{i}" for i in range(5000)]
CHUNK, DIMENSION = 8192, 384


def drawn(rng: random.Random, n: int, *, labelled: bool = False) -> Iterator[Sentence]:
    """Yield sentences of random words; labelled ones have an entity at their first word."""
    for _ in range(n):
        tokens = tuple(rng.choices(WORDS, k=rng.randint(8, 14)))
        text = " ".join(tokens)
        entities = (Entity(start=0, end=1, type="X"),) if labelled else None
        yield Sentence(id=sentence_id(text), tokens=tokens, text=text, entities=entities)


def embed(corpus: Corpus, config: QueueConfig) -> None:
    """Write random vectors as the finished `embed` run of a corpus."""
    rng = np.random.default_rng(0)

    def work(context: RunContext) -> EmbedResult:
        name, folder = vectors.shards(context.run)
        paths = []
        for i, start in enumerate(range(0, len(corpus), CHUNK)):
            rows = rng.standard_normal((min(CHUNK, len(corpus) - start), DIMENSION), dtype=np.float32)
            norms = np.linalg.norm(rows, axis=1)
            paths.append(folder / f"{name}-{i:06d}.npy")
            save_array_atomic(paths[-1], vectors.shard(rows / norms[:, None], norms))
        vectors.write_norms(context.run, paths)
        return EmbedResult(rows=len(corpus), dimension=DIMENSION)

    finished.finish(home(), "embed", {"corpus": corpus.fingerprint, **encoder_options(config)}, work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--n", type=int, default=25)
    parser.add_argument("--home", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WINNOW_HOME"] = str(given.home or folder)
        rng, began = random.Random(0), time.monotonic()
        domain = library().seal(drawn(rng, given.rows), name="domain", origin={}, labelled=False)
        task = library().seal(drawn(rng, 200), name="task", origin={}, labelled=False)
        labels = list(drawn(rng, 205, labelled=True))
        train, more = (
            library().seal(rows, name=name, origin={}, labelled=True)
            for name, rows in (("train", labels[:200]), ("more", labels))
        )
        dev = library().seal(drawn(rng, 50, labelled=True), name="dev", origin={}, labelled=True)
        print(f"corpora: {time.monotonic() - began:.0f} s", flush=True)
        tagger = runs.execute(
            "finetune", {"train": train.fingerprint, "dev": dev.fingerprint, "seeds": (1,), "epochs": 1}
        )
        options = {"task": task.fingerprint, "domain": domain.fingerprint, "dev": dev.fingerprint, "n": given.n}
        options |= {"model": tagger.id, "strategy": "cos-pretrained"}
        embed(domain, QueueConfig.parse({**options, "train": train.fingerprint}))
        for name, corpus in (("first queue", train), ("again, five labels later", more)):
            began = time.monotonic()
            queued = runs.execute("queue", {**options, "train": corpus.fingerprint})
            print(
                f"{name}: {time.monotonic() - began:.1f} s, {len(labelling.to_label(queued.id))} sentences", flush=True
            )


if __name__ == "__main__":
    main()
