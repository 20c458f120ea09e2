"""Sentences in a tagger's training: the order of an epoch, the parts of a batch, the sample of dev that judges."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from torch.utils.data import Sampler

from core.models.tagger import Tagger
from core.text.sentence import Sentence

Row = tuple[Sentence, float, int]  # what its loss counts for, and which corpus it is of


def with_words(
    train: Sequence[Sentence], weights: Sequence[float] | None, sources: Sequence[int] | None
) -> tuple[Sequence[Sentence], Sequence[float], Sequence[int]]:
    """The sentences that have a word to learn from, what each counts for and its corpus: 1 and 0 unless given."""
    n = len(train)
    rows = [row for row in zip(train, weights or [1.0] * n, sources or [0] * n, strict=True) if row[0].tokens]
    return [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]


def in_parts(rows: Sequence[Row], tagger: Tagger, n: int) -> list[Sequence[Row]]:
    """Cut into at most `n` parts of about as many pieces, the short sentences together: little padding, equal work."""
    if n == 1:
        return [rows]
    # Cut where the sums of pieces are even, not the numbers of sentences: a part's time is that of its pieces.
    rows = sorted(rows, key=lambda row: tagger.size(row[0]))
    sizes = np.cumsum([tagger.size(row[0]) for row in rows])
    cuts = np.searchsorted(sizes, sizes[-1] * np.arange(1, n) / n)
    return [rows[a:b] for a, b in pairwise([0, *cuts.tolist(), len(rows)]) if a < b]


def judges(dev: Sequence[Sentence], most: int) -> Sequence[Sentence]:
    """The sentences of dev that every epoch of every seed is judged by, in their order."""
    if not most or len(dev) <= most:
        return dev
    # Seed 0 whatever the training's: F1s of epochs and seeds differ by the weights alone, not by the sample.
    rows = np.random.default_rng(0).choice(len(dev), most, replace=False)
    return [dev[row] for row in sorted(rows.tolist())]


class Shuffled(Sampler[int]):
    """All rows in an order that depends on seed and epoch alone, so that a resumed epoch is the same one."""

    def __init__(self, n: int, seed: int) -> None:
        self.n, self.seed, self.epoch = n, seed, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        order: list[int] = np.random.default_rng([self.seed, self.epoch]).permutation(self.n).tolist()
        return iter(order)

    def __len__(self) -> int:
        return self.n
