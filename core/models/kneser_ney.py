"""Interpolated modified Kneser-Ney over arrays: counts, discounts, probabilities, back-offs (SOURCES.md, Kneser-Ney).

The conventions are KenLM's (Heafield et al. 2013). Lower orders count left continuations, except that an n-gram which
begins with `<s>` keeps its raw count. Nothing is pruned. Unigrams interpolate with the uniform distribution.

Words are ids, `<s>` the lowest. The n-grams of an order are numbered in lexicographic order of their words. An n-gram's
key is the integer `prefix << bits | word`, where prefix is the number of the n-gram without its last word. Keys ascend,
the n-grams of one context are neighbours, and those that begin with `<s>` come first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from core.reporter import Reporter
from core.results import BoolArray, FloatArray, IntArray

BOS, UNK, EOS = 0, 1, 2
FALLBACK = (0.5, 1.0, 1.5)  # the discounts of KenLM's --discount_fallback

Discounts = tuple[float, float, float]
Ids = npt.NDArray[np.int32]
_Int64 = npt.NDArray[np.int64]
_Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NgramTable:
    """The `m` n-grams of one order.

    keys: `(m,)` int64, ascending. log_probs: `(m,)` float32, log10 P(last word | the words before it). backoffs: `(m,)`
    float32, log10 weight of the next lower order after this context; 0 if the n-gram is not a context.
    """

    keys: IntArray
    log_probs: FloatArray
    backoffs: FloatArray

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, keys: IntArray) -> tuple[BoolArray, IntArray]:
        """Return a mask of the `keys` that the table contains, and the rows of these keys in the table."""
        rows = np.searchsorted(self.keys, keys)
        hit = rows < len(self.keys)
        hit[hit] = self.keys[rows[hit]] == keys[hit]
        return hit, rows[hit]


@dataclass(slots=True, kw_only=True)
class _Level:
    """The n-grams of one order during the fit.

    suffix: `(m,)` for each n-gram, the row of its last n - 1 words in the next lower order.
    """

    keys: _Int64
    counts: Ids
    suffix: Ids


def word_bits(n_words: int) -> int:
    """Return the number of bits that a key needs for its word."""
    return max(1, (n_words - 1).bit_length())


def closed_form(n1: int, n2: int, n3: int, n4: int) -> Discounts | None:
    """Return the discounts D1, D2 and D3+ in closed form; None if the form fails.

    n1 to n4: numbers of n-grams that occur once, twice, three times and four times.
    """
    if not (n1 and n2 and n3):
        return None
    y = n1 / (n1 + 2 * n2)
    d = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    return d if min(d) >= 0 else None  # the closed form never gives a Dj above j, so only the sign is checked


def fit_tables(
    words: Ids, *, n_words: int, order: int, vocabulary_size: int, report: Reporter
) -> tuple[list[NgramTable], list[Discounts | None]]:
    """Return one table per order, from unigrams up, and its closed-form discounts (None: `FALLBACK` was used).

    words: `(t,)`, the sentences one after another, each as `<s> ... </s>`. n_words: number of ids in use.
    vocabulary_size: V; unigrams interpolate with the uniform probability 1/V.
    """
    levels = list(_count(words, n_words=n_words, order=order, report=report))
    _adjust(levels, word_bits(n_words))
    tables: list[NgramTable] = []
    formed: list[Discounts | None] = []
    probs: _Float64 = np.array([1 / vocabulary_size])
    keys, log_probs = np.zeros(1, np.int64), np.zeros(1, np.float32)  # order 0 has only one context, the empty one
    while levels:
        report.check()
        # Pop the level, so that its counts are freed after the order is smoothed; the counts need most of the memory.
        level = levels.pop(0)
        # Count the n-grams that occur once, twice, 3 and 4 times. Bin 5 collects all others, which the closed form
        # ignores.
        formed.append(closed_form(*np.bincount(np.minimum(level.counts, 5), minlength=6)[1:5].tolist()))
        probs, weights = _smooth(level, probs, formed[-1] or FALLBACK, contexts=len(keys), bits=word_bits(n_words))
        if len(formed) == 1:
            probs[BOS] = 1  # <s> is never predicted, so it must not change a sentence's P; KenLM's lmplz also writes 1
        else:
            tables.append(NgramTable(keys=keys, log_probs=log_probs, backoffs=_log10(weights)))
        keys, log_probs = level.keys, _log10(probs)
    tables.append(NgramTable(keys=keys, log_probs=log_probs, backoffs=np.zeros(len(keys), np.float32)))
    return tables, formed


def _count(words: Ids, *, n_words: int, order: int, report: Reporter) -> Iterator[_Level]:
    """Yield the n-grams of each order with their raw counts.

    To sort an order's n-grams by key, positions in the text are sorted by word, then stably by prefix.
    """
    bits = word_bits(n_words)
    counts = np.bincount(words, minlength=n_words).astype(np.int32)
    begin, counts[BOS] = counts[BOS], 0  # <s> is never predicted, so it has no count
    yield _Level(keys=np.arange(n_words), counts=counts, suffix=np.zeros(n_words, np.int32))
    # Sort the positions by word, and leave out those of <s>, the lowest id.
    positions = _by(words, n_words, np.arange(len(words), dtype=np.int32))[0][begin:]
    # ids: number of the n-gram that ends at each position; -1 if it would begin before <s>.
    ids, size = words, n_words
    for _ in range(2, order + 1):
        report.check()
        prefix = ids[positions - 1]
        positions, prefix = positions[prefix >= 0], prefix[prefix >= 0]
        ordered, repeats = _by(prefix, size, positions)
        keys = np.repeat(np.arange(size) << bits, repeats) | words[ordered]
        new = np.ones(len(ordered), np.bool_)
        np.not_equal(keys[1:], keys[:-1], out=new[1:])
        first = np.flatnonzero(new)
        suffix = ids[ordered[first]]
        ids, size = np.full(len(words), -1, np.int32), len(first)
        ids[ordered] = np.cumsum(new, dtype=np.int32) - 1
        yield _Level(keys=keys[first], counts=np.diff(first, append=len(ordered)).astype(np.int32), suffix=suffix)


def _by(values: Ids, size: int, what: Ids) -> tuple[Ids, IntArray]:
    """Return `what` stably sorted by `values` in `[0, size)`, and the count of each value, `(size,)`.

    It is a counting sort: scipy converts a sparse matrix from rows to columns. For ten million ids this takes a fifth
    of the time of `np.argsort`.
    """
    from scipy.sparse import csr_array  # slow to load, and pages import this module

    cells = csr_array((what, values, np.arange(len(values) + 1, dtype=np.int32)), shape=(len(values), size)).tocsc()
    return cells.data, np.diff(cells.indptr)


def _adjust(levels: list[_Level], bits: int) -> None:
    """Replace counts below the highest order by the number of distinct words to the left of the n-gram.

    N-grams that begin with `<s>` keep their counts.
    """
    begin = 1  # number of n-grams of the order that begin with <s>
    for lower, upper in pairwise(levels):
        continuations = np.bincount(upper.suffix, minlength=len(lower.keys))
        lower.counts[begin:] = continuations[begin:]
        begin = int(np.searchsorted(upper.keys, begin << bits))


def _smooth(
    level: _Level, lower: _Float64, discounts: Discounts, *, contexts: int, bits: int
) -> tuple[_Float64, _Float64]:
    """Return P of each n-gram, `(m,)`, and the weight of the next lower order after each context, `(contexts,)`."""
    context = level.keys >> bits
    # Clip the counts, because three and more occurrences share D3+.
    discounted = np.array([0, *discounts]).take(level.counts, mode="clip")
    total = np.bincount(context, weights=level.counts, minlength=contexts)
    withheld = np.bincount(context, weights=discounted, minlength=contexts)
    # A context without continuations gives all weight to the next lower order.
    weights: _Float64 = np.divide(withheld, total, out=np.ones(contexts), where=total > 0)
    return (level.counts - discounted) / total[context] + weights[context] * lower[level.suffix], weights


def _log10(values: _Float64) -> npt.NDArray[np.float32]:
    with np.errstate(divide="ignore"):  # if D2 is 0, a context whose n-grams all occur twice has weight 0
        return np.log10(values).astype(np.float32)
