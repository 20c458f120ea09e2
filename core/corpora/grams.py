"""Hash words and word n-grams of blocks of sentences. Every process and machine computes the same hashes."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from tempfile import TemporaryFile

import numpy as np
import numpy.typing as npt

from core.results import BoolArray, IntArray

UIntArray = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.unsignedinteger]

# Bits in the hash of a 5-gram. Fewer than one in a billion pairs of sentences then have a collision.
HASH_BITS = 40
# Maximum number of words whose hashes are cached. The cache takes about 150 MB.
_KNOWN_WORDS = 1 << 20


def mix(values: UIntArray) -> UIntArray:
    """Apply the last step of splitmix64, so that every bit of the input affects every bit of the output."""
    values = values ^ (values >> np.uint64(30))
    values = values * np.uint64(0xBF58476D1CE4E5B9)
    values = values ^ (values >> np.uint64(27))
    values = values * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


# The factors are odd, so that multiplication loses no bit of a word's hash.
_ODD = mix(np.arange(1, 33, dtype=np.uint64)) | np.uint64(1)


def text_keys(texts: Sequence[str]) -> UIntArray:
    """Return a 64-bit key per text, shape (n,).

    Among 5 million texts, the probability that two different texts share a key is below one in a million.
    """
    return np.frombuffer(b"".join(blake2b(t.encode(), digest_size=8).digest() for t in texts), dtype="<u8")


class _Hashes(dict[str, int]):
    def __missing__(self, word: str) -> int:
        self[word] = value = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Words of a block of sentences.

    hashes: hash of each word, shape (words,). starts: index of each sentence's first word, shape (n + 1,).
    """

    hashes: UIntArray
    starts: IntArray

    @property
    def counts(self) -> IntArray:
        """Number of words per sentence, shape (n,)."""
        return np.diff(self.starts)

    def grams(self, n: int) -> tuple[UIntArray, IntArray]:
        """Return the hash and the sentence index of each word n-gram, both of shape (m,). Indices are ascending."""
        rows = np.repeat(np.arange(len(self.starts) - 1), self.counts)
        inside = np.flatnonzero(np.arange(len(rows)) + n <= self.starts[1:][rows])
        total = np.zeros(len(inside), np.uint64)
        for i in range(n):
            # Each position has a different factor, so that the hash depends on the order of the words.
            total += self.hashes[inside + i] * _ODD[i]
        return mix(total), rows[inside]


class WordHasher:
    """Hashes the words of folded texts, and caches their hashes."""

    def __init__(self) -> None:
        self._known = _Hashes()

    def __call__(self, folded: Sequence[str]) -> Words:
        if len(self._known) > _KNOWN_WORDS:
            self._known.clear()
        words = [text.split() for text in folded]
        starts = np.zeros(len(words) + 1, np.int64)
        np.cumsum([len(row) for row in words], out=starts[1:])
        hashes = np.fromiter(map(self._known.__getitem__, chain.from_iterable(words)), np.uint64, int(starts[-1]))
        return Words(hashes=hashes, starts=starts)


class Lookup:
    """A fixed set of hashes with a fast membership test.

    A table of the first 22 bits excludes most hashes that are not in the set. Only other hashes need a binary search.
    """

    def __init__(self, values: UIntArray) -> None:
        self._values = np.unique(values)
        self._maybe = np.zeros(1 << 22, np.bool_)
        self._maybe[self._values >> np.uint64(42)] = True

    def holds(self, values: UIntArray) -> BoolArray:
        """Return a mask, shape (m,), of the values that are in the set."""
        hit: BoolArray = self._maybe[values >> np.uint64(42)]
        likely = values[hit]
        places = np.searchsorted(self._values, likely)
        hit[hit] = self._values[np.minimum(places, len(self._values) - 1)] == likely
        return hit


class Gathered:
    """Rows of numbers, which may have different lengths. Row i is `values[starts[i] : starts[i + 1]]`."""

    def __init__(self, values: Numbers, starts: IntArray) -> None:
        self.values, self.starts = values, starts

    @property
    def counts(self) -> IntArray:
        """Length of each row, shape (rows,)."""
        return np.diff(self.starts)

    def gather(self, rows: IntArray) -> tuple[Numbers, IntArray]:
        """Return the numbers of `rows`, concatenated, and the length of each row, shape (len(rows),)."""
        counts = self.starts[rows + 1] - self.starts[rows]
        ends = np.cumsum(counts)
        at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(self.starts[rows] - ends + counts, counts)
        return self.values[at], counts

    def some(self, rows: IntArray) -> "Gathered":
        """Return a copy with only `rows`."""
        values, counts = self.gather(rows)
        return Gathered(values, np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]))


class Ragged(Gathered):
    """Rows of numbers in an unnamed temporary file. A row takes only 8 bytes of memory.

    First `append` blocks of rows, then call `seal`, then `gather` any rows.
    """

    def __init__(self, dtype: type[np.unsignedinteger]) -> None:
        self._file = TemporaryFile()  # noqa: SIM115  (lives as long as the object)
        self._dtype = np.dtype(dtype)
        self._counts: list[IntArray] = []
        super().__init__(np.zeros(0, self._dtype), np.zeros(1, np.int64))

    def append(self, values: Numbers, counts: IntArray) -> None:
        """Add `len(counts)` rows; `values` holds their numbers, concatenated."""
        assert len(values) == counts.sum()
        np.ascontiguousarray(values, self._dtype).tofile(self._file)
        self._counts.append(counts)

    def seal(self) -> None:
        """Open the file for reading. Call it after the last row was appended."""
        counts = np.concatenate([np.zeros(1, np.int64), *self._counts])
        self.starts = np.cumsum(counts)
        self._counts.clear()
        self._file.flush()
        if self.starts[-1]:
            self.values = np.asarray(np.memmap(self._file, self._dtype, mode="r"))
        self._file.close()  # the data stay readable through the memory map

    def close(self) -> None:
        """Free the disk space. Can be called before or after `seal`."""
        self.values = np.zeros(0, self._dtype)
        self._file.close()
