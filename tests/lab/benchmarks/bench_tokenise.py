"""Measure what a cache of tokenised text beside the corpus could save: the share of tokenising in embedding, in a
cascade, and in continued pre-training.

usage: python -m tests.lab.benchmarks.bench_tokenise [--sentences 20000] [--trained 2000] [--embedded 0.1] [--encoder minilm]

Uses real English sentences (WINNOW_REAL_DATA or ../shared/data). Times are CPU seconds of all threads, so that other
work on the machine matters little. The cache is the cheapest one: the ids of all pieces in one file, memory-mapped. A
cascade is computed from the rates: all sentences are ranked, and a share of them is embedded.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from core import cards
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.encoders.embed import CHUNK
from core.models.encoder import Encoder
from core.models.static import StaticVectors, Words
from core.paths import home
from core.projects import runs
from core.reporter import Silent
from core.selection import make_strategy
from core.selection.cascade import Known, Ranking
from core.text.sentence import Sentence, sentence_id
from tests.lab.benchmarks.bench_embedding import sentences

Value = TypeVar("Value")
PAYS = 0.1  # smallest saving for which a cache is worth its code and its disk space


class Clock:
    """CPU seconds by name."""

    def __init__(self) -> None:
        self.of = dict[str, float]()

    def __call__(self, name: str, work: Callable[[], Value]) -> Value:
        begin = time.process_time()
        value = work()
        self.of[name] = self.of.get(name, 0.0) + time.process_time() - begin
        return value


def stored(folder: Path, texts: list[str]) -> Corpus:
    rows = (Sentence(id=sentence_id(text), tokens=tuple(text.split()), text=text) for text in texts)
    return Library(folder).seal(rows, name="text", origin={})


def of_embedding(corpus: Corpus, encoder: Encoder, clock: Clock) -> None:
    for start in range(0, len(corpus), CHUNK):
        texts = clock("read", partial(corpus.texts, start, min(start + CHUNK, len(corpus))))
        cut = clock("cut", partial(encoder.cut, texts))
        clock("encode", partial(encoder.encode_cut, cut, Silent()))


def of_ranking(corpus: Corpus, encoder: Encoder, clock: Clock, folder: Path) -> None:
    ids, texts = corpus.ids(), corpus.texts(0, len(corpus))
    strategy = make_strategy("knn", {}, 0)
    words = clock("pieces", lambda: Words.of(texts, encoder.tokenizer))
    static = StaticVectors.distil(encoder, words, Silent())
    known = Known(ids, texts, [words])
    ranking = Ranking.fit(strategy, [static], known, np.random.default_rng(0).normal(size=len(texts)))
    clock("rank", lambda: ranking.keys(known))
    np.save(
        folder / "pieces.npy", np.concatenate([words.ids, words.starts, words.pieces, words.begins]).astype(np.int32)
    )
    print(
        f"cache: {(folder / 'pieces.npy').stat().st_size / sum(len(text.encode()) for text in texts):.1f} bytes per byte"
    )
    clock("load", lambda: np.load(folder / "pieces.npy", mmap_mode="r").astype(np.int64))


def of_training(n: int, texts: list[str], encoder: str) -> None:
    """Print the share of wall time that a pre-training spends on tokenising, by its events."""
    corpus = stored(home(), texts[:n])
    run = runs.execute("pretrain", {"corpora": (corpus.fingerprint,), "init": encoder, "epochs": 1})
    events, _ = run.events()
    stages = [(event.time, event.data["name"]) for event in events if event.kind == "stage"]
    ends = [*(begin for begin, _ in stages[1:]), events[-1].time]
    cut = sum(end - begin for (begin, name), end in zip(stages, ends, strict=True) if name.startswith("tokenising"))
    print(
        f"pre-training, one epoch: {cut:.1f} of {ends[-1] - stages[0][0]:.1f} s ({cut / (ends[-1] - stages[0][0]):.1%})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--trained", type=int, default=2_000)
    parser.add_argument("--embedded", type=float, default=0.1, help="share of D_C that the cascade embeds")
    parser.add_argument("--encoder", default="minilm")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WINNOW_HOME"] = folder
        texts, clock = sentences(options.sentences), Clock()
        corpus, encoder = stored(Path(folder) / "measured", texts), Encoder.load(options.encoder)
        print(f"{cards.processor()}, {encoder.model.dtype}, {len(corpus):,} sentences", flush=True)
        encoder.encode(texts[:256])
        of_embedding(corpus, encoder, clock)
        of_ranking(corpus, encoder, clock, Path(folder))
        for name, seconds in clock.of.items():
            print(f"{name:<8} {1e5 * seconds / len(corpus):8.1f} CPU seconds per 100,000 sentences")
        took, share = clock.of, options.embedded
        embed = took["read"] + took["cut"] + took["encode"]
        cascade = took["read"] + took["pieces"] + took["rank"] + share * embed
        # The first cascade on a corpus has to tokenise it once, with or without a cache.
        savings = {
            "embedding": (took["cut"] - took["load"]) / embed,
            "the first cascade": share * (took["cut"] - took["load"]) / cascade,
            "a later cascade": (took["pieces"] + share * took["cut"] - took["load"]) / cascade,
        }
        for name, saving in savings.items():
            print(
                f"a cache saves {saving:.1%} of {name}: {'it pays' if saving > PAYS else 'it does not pay'}", flush=True
            )
        if options.trained:
            of_training(options.trained, texts, options.encoder)


if __name__ == "__main__":
    main()
