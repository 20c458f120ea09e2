"""Sentences in a tagger's training: how two corpora are laid out in steps, the order of an epoch, the parts of a batch,
the sample of dev that judges."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from torch.utils.data import Dataset, Sampler

from core.models.tagger import Tagger
from core.text.sentence import Sentence
from core.training.settings import Settings

Row = tuple[Sentence, float, int]  # what its loss counts for, and which corpus it is of
Key = Any  # what a sampler hands to its own rows
Copies = Callable[[Sentence, int], Sentence]  # a sentence and a draw: the sentence, `Paired` where it has a copy
PRIMARY, ASSISTING = 0, 1


class OneCorpus(Dataset[list[Row]]):
    """The sentences of one corpus: a key is a row."""

    def __init__(self, own: Sequence[Row]) -> None:
        self.own = own

    def __len__(self) -> int:
        return len(self.own)

    def __getitem__(self, key: Key) -> list[Row]:
        return [self.own[key]]

    def keys(self, rng: np.random.Generator) -> Sequence[Key]:
        """An epoch of them in a random order."""
        order: list[int] = rng.permutation(len(self)).tolist()
        return order


class Joined(OneCorpus):
    """A batch of the primary corpus and one of the assisting corpus in every step: a key is a row of each, and what the
    second counts for.

    The primary batches are those of `OneCorpus`, so that trainings under one seed differ by the added term alone:
    `weight` times the mean loss of an assisting word, beside the mean of a primary one (SOURCES.md, Assisting taggers).
    """

    def __init__(self, own: Sequence[Row], other: Sequence[Row], weight: float, batch_size: int) -> None:
        super().__init__(own)
        self.other, self.weight, self.batch_size = other, weight, batch_size
        self._words = [np.array([len(row[0].tokens) for row in rows]) for rows in (own, other)]

    def __getitem__(self, key: Key) -> list[Row]:
        at, joined, weight = key
        return [self.own[at], (self.other[joined][0], weight, ASSISTING)]

    def keys(self, rng: np.random.Generator) -> Sequence[Key]:
        """An epoch over the primary corpus; of a larger assisting one it sees a part, of a smaller one copies."""
        n, m = len(self.own), len(self.other)
        at = rng.permutation(n)
        joined = np.concatenate([rng.permutation(m) for _ in range(-(-n // m))])[:n]
        starts = np.arange(0, n, self.batch_size)
        # The loss is divided by the primary words of a step; by this an assisting word comes to be divided by its own.
        own, other = (
            np.add.reduceat(words[rows], starts) for words, rows in zip(self._words, (at, joined), strict=True)
        )
        weights = self.weight * np.repeat(own / other, self.batch_size)[:n]
        return list(zip(at.tolist(), joined.tolist(), weights.tolist(), strict=True))


class Alternating(OneCorpus):
    """A sentence a step, of the primary and of the assisting corpus in turn; the smaller one is repeated to the size of
    the other (Murthy et al. 2018, and their code)."""

    def __init__(self, own: Sequence[Row], other: Sequence[Row]) -> None:
        super().__init__([*own, *other])
        self.sizes = len(own), len(other)

    def __len__(self) -> int:
        return 2 * max(self.sizes)

    def keys(self, rng: np.random.Generator) -> Sequence[Key]:
        n, m = self.sizes
        own, other = (
            np.concatenate([rng.permutation(size) for _ in range(-(-max(n, m) // size))])[: max(n, m)]
            for size in (n, m)
        )
        order: list[int] = np.column_stack([own, n + other]).ravel().tolist()
        return order


class Contrasted(OneCorpus):
    """Other rows whose primary sentences come with copies that are drawn anew in every epoch: a key is one of theirs,
    and a draw. The batches are theirs, so that trainings under one seed differ by the copies alone."""

    def __init__(self, rows: OneCorpus, copies: Copies) -> None:
        super().__init__(rows.own)
        self.rows, self.copies = rows, copies

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Key) -> list[Row]:
        of, draw = key
        return [(self.copies(row[0], draw), *row[1:]) if row[2] == PRIMARY else row for row in self.rows[of]]

    def keys(self, rng: np.random.Generator) -> Sequence[Key]:
        keys = self.rows.keys(rng)
        return list(zip(keys, rng.integers(2**32, size=len(keys)).tolist(), strict=True))


def laid_out(
    train: Sequence[Sentence],
    weights: Sequence[float] | None,
    assisting: Sequence[Sentence],
    assisting_weight: float,
    settings: Settings,
) -> OneCorpus:
    """The sentences that have a word to learn from. weights: of `train`, 1 unless given."""
    own = [(s, w, PRIMARY) for s, w in zip(train, weights or [1.0] * len(train), strict=True) if s.tokens]
    other = [(sentence, assisting_weight, ASSISTING) for sentence in assisting if sentence.tokens]
    if not other:
        return OneCorpus(own)
    if settings.in_turn:
        return Alternating(own, other)
    return Joined(own, other, assisting_weight, settings.batch_size)


def words_of(rows: Sequence[Row]) -> int:
    """Words that the loss of a step is divided by: of the primary rows, where there are some."""
    return sum(len(row[0].tokens) for row in ([row for row in rows if row[2] == PRIMARY] or rows))


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


class Shuffled(Sampler[Key]):
    """All rows in an order that depends on seed and epoch alone, so that a resumed epoch is the same one."""

    def __init__(self, rows: OneCorpus, seed: int) -> None:
        self.rows, self.seed, self.epoch = rows, seed, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[Key]:
        return iter(self.rows.keys(np.random.default_rng([self.seed, self.epoch])))

    def __len__(self) -> int:
        return len(self.rows)
