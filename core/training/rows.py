"""Training rows of a tagger: mixing two corpora, the order of an epoch, the parts of a batch, the dev sample."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from torch.utils.data import Dataset, Sampler

from core.models.tagger import Tagger
from core.text.sentence import Sentence
from core.training.settings import Settings

# A sentence, the factor of its loss, and the number of its corpus (PRIMARY or ASSISTING).
Row = tuple[Sentence, float, int]
# What the sampler draws; each class below has its own kind of key.
Key = Any
# Function of a sentence and a random number. It returns the sentence, as a `Paired` if it has a copy.
Copies = Callable[[Sentence, int], Sentence]
PRIMARY, ASSISTING = 0, 1


class OneCorpus(Dataset[list[Row]]):
    """The training sentences of one corpus. A sampler's key is the number of a row."""

    def __init__(self, own: Sequence[Row]) -> None:
        self.own = own

    def __len__(self) -> int:
        return len(self.own)

    def __getitem__(self, key: Key) -> list[Row]:
        return [self.own[key]]

    def keys(self, rng: np.random.Generator) -> Sequence[Key]:
        """Return the keys of an epoch in random order."""
        order: list[int] = rng.permutation(len(self)).tolist()
        return order


class Joined(OneCorpus):
    """One batch of the primary and one of the assisting corpus per step.

    A key is (row of the primary corpus, row of the assisting corpus, weight of the assisting loss).

    The primary batches equal those of `OneCorpus` under the same seed. The loss has one more term: `weight` times the
    mean loss per assisting word (SOURCES.md, Assisting taggers).
    """

    def __init__(self, own: Sequence[Row], other: Sequence[Row], weight: float, batch_size: int) -> None:
        super().__init__(own)
        self.other, self.weight, self.batch_size = other, weight, batch_size
        self._words = [np.array([len(row[0].tokens) for row in rows]) for rows in (own, other)]

    def __getitem__(self, key: Key) -> list[Row]:
        at, joined, weight = key
        return [self.own[at], (self.other[joined][0], weight, ASSISTING)]

    def keys(self, rng: np.random.Generator) -> Sequence[Key]:
        """Return the keys of one epoch. Each primary row occurs once; assisting rows are cut or repeated to match."""
        n, m = len(self.own), len(self.other)
        at = rng.permutation(n)
        joined = np.concatenate([rng.permutation(m) for _ in range(-(-n // m))])[:n]
        starts = np.arange(0, n, self.batch_size)
        # The loss of all rows is divided by the step's number of primary words. The factor own / other corrects this
        # for assisting rows, whose loss is to be divided by the step's number of assisting words.
        own, other = (
            np.add.reduceat(words[rows], starts) for words, rows in zip(self._words, (at, joined), strict=True)
        )
        weights = self.weight * np.repeat(own / other, self.batch_size)[:n]
        return list(zip(at.tolist(), joined.tolist(), weights.tolist(), strict=True))


class Alternating(OneCorpus):
    """One sentence per step, from the primary and the assisting corpus in turn (Murthy et al. 2018, and their code).

    The smaller corpus is repeated to the size of the larger.
    """

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
    """Wraps `rows` and pairs each primary sentence with a copy that is newly drawn in each epoch.

    A key is a pair: a key of `rows`, and the random number from which the copies are drawn. The batches equal those of
    `rows` under the same seed, so that trainings with and without copies are comparable.
    """

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
    """Return the rows of all sentences that have words. weights: loss factors of `train`, by default 1."""
    own = [(s, w, PRIMARY) for s, w in zip(train, weights or [1.0] * len(train), strict=True) if s.tokens]
    other = [(sentence, assisting_weight, ASSISTING) for sentence in assisting if sentence.tokens]
    if not other:
        return OneCorpus(own)
    if settings.in_turn:
        return Alternating(own, other)
    return Joined(own, other, assisting_weight, settings.batch_size)


def words_of(rows: Sequence[Row]) -> int:
    """Return the divisor of a step's loss: the number of words in primary rows, or in all rows if none is primary."""
    return sum(len(row[0].tokens) for row in ([row for row in rows if row[2] == PRIMARY] or rows))


def in_parts(rows: Sequence[Row], tagger: Tagger, n: int) -> list[Sequence[Row]]:
    """Return the rows in at most `n` parts with about equal numbers of pieces, sorted by length to reduce padding."""
    if n == 1:
        return [rows]
    # Balance pieces instead of sentences, because the time of a part depends on its pieces.
    rows = sorted(rows, key=lambda row: tagger.size(row[0]))
    sizes = np.cumsum([tagger.size(row[0]) for row in rows])
    cuts = np.searchsorted(sizes, sizes[-1] * np.arange(1, n) / n)
    return [rows[a:b] for a, b in pairwise([0, *cuts.tolist(), len(rows)]) if a < b]


def judges(dev: Sequence[Sentence], most: int) -> Sequence[Sentence]:
    """Return the dev sentences for scoring each epoch: a sample of at most `most`, or all if `most` is 0."""
    if not most or len(dev) <= most:
        return dev
    # Always use seed 0, so that all epochs and seeds are evaluated on the same sample.
    rows = np.random.default_rng(0).choice(len(dev), most, replace=False)
    return [dev[row] for row in sorted(rows.tolist())]


class Shuffled(Sampler[Key]):
    """Draws all rows in an order given by seed and epoch, so that a resumed epoch has the same order."""

    def __init__(self, rows: OneCorpus, seed: int) -> None:
        self.rows, self.seed, self.epoch = rows, seed, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[Key]:
        return iter(self.rows.keys(np.random.default_rng([self.seed, self.epoch])))

    def __len__(self) -> int:
        return len(self.rows)
