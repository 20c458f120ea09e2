"""A shorter plan: the same experiment on a part of the labelled training sentences, drawn at random."""

from dataclasses import replace

import numpy as np

from core.corpora.corpus import Corpus
from core.corpora.library import Library

LONG = 2 * 3600.0  # seconds from which a plan offers a shorter one, and at most that long if it can
WORTH = 0.7  # share of the time that a shorter plan may take; else it saves too little
SIZES = (1000, 500, 300, 200, 100)  # labelled sentences


def sizes_below(train: Corpus) -> list[int]:
    """Sizes of a part that may be offered, largest first."""
    return [size for size in SIZES if size < len(train)]


def resized(train: Corpus, n: int) -> Corpus:
    """A stand-in for a part of n sentences that is not sealed yet: its size alone."""
    return replace(train, n_sentences=n, n_tokens=round(n * train.n_tokens / len(train)))


def part(library: Library, train: Corpus, n: int) -> Corpus:
    """Seal n of the sentences, drawn with a fixed seed, in their order."""
    rows = np.sort(np.random.default_rng(0).choice(len(train), size=n, replace=False))
    name = f"{train.name}, {n:,} sentences"
    return library.subset(train, rows, name=name, origin={"from": train.fingerprint, "sentences": n})
