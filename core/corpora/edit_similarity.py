"""Find pairs of texts with an edit similarity of at least `similarity`.

The default of .9 allows a Levenshtein distance of at most a tenth of the longer text's length. All pairs are found,
except if very many texts share a segment (see below). Short texts are compared letter by letter, longer texts word by
word. In this module, "letter" means either.

PassJoin (Li et al. 2011), for texts that differ by at most d edits: cut the shorter text into d + 1 segments. At least
one of them is unchanged; it occurs in the other text, shifted by a few positions. Texts that share a segment are
compared, many pairs at a time: first by their letter counts, then by their distance.

One approximation: if more than `_MEET` texts share a segment, each text is compared only with its neighbours in
alphabetical order, spelt forwards and spelt backwards. A thousand variants of one short text then form ten clusters
instead of one, so 990 of them are flagged instead of 999.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from core.corpora.grams import Gathered, UIntArray, mix
from core.processes import in_processes
from core.reporter import Reporter
from core.results import BoolArray, IntArray

LONGEST = 160  # maximum number of letters (or words) of a text; longer texts are not compared
SIMILARITY = 0.9
# With fewer texts, starting further processes (0.3 s each) takes more time than they save.
PAYS = 100_000
# If more than 64 texts share a segment, not all pairs of them are compared.
_MEET = 64
# Up to 4,096 pairs, comparing all of them is faster than searching by segments.
_FEW = 1 << 12
# Number of texts before and after a text, in alphabetical order, with which it is compared.
_NEIGHBOURS = 8
# Number of candidate pairs in memory.
_AT_ONCE = 1 << 22
# Number of candidate pairs compared at a time.
_PAIRS = 1 << 15
# Added before rounding down, because (1 - .9) * 10, for example, is slightly below 1.
_HAIR = 1e-9

_BASE = 0x9E3779B97F4A7C15  # base of the polynomial hashes; odd, so that it has an inverse modulo 2**64
_POWERS, _INVERSES = (
    np.cumprod(np.array([1, *[base] * LONGEST], np.uint64)) for base in (_BASE, pow(_BASE, -1, 1 << 64))
)

Texts = npt.NDArray[np.uint32]  # code points (or word hashes) of n texts of equal length, shape (n, length)
Pairs = tuple[IntArray, IntArray]
_Sided = tuple[IntArray, Texts]  # (row numbers, the texts of these rows, which have equal lengths)


def near_texts(
    texts: Gathered, live: IntArray, stage: str, report: Reporter, similarity: float = SIMILARITY
) -> Iterator[Pairs]:
    """Yield pairs of `live` rows with edit similarity >= `similarity`; a pair may be yielded more than once.

    texts: code points or word hashes, at most `LONGEST` per row; an empty row has no near duplicates. live: numbers of
    the rows to compare.
    """
    lengths = texts.counts[live]
    by_length = {int(n): live[lengths == n] for n in np.unique(lengths) if n}
    # Let near duplicates have the lengths short <= long. Their distance is at least long - short, and at most
    # (1 - similarity) * long. Therefore long <= short / similarity.
    reach = {
        short: [
            long
            for long in range(short, int(short / similarity + _HAIR) + 1)
            # Skip lengths that allow no edit (fewer than ten letters at a similarity of .9). Texts of these lengths can
            # only match if they are equal, and equal texts are exact duplicates.
            if long in by_length and int((1 - similarity) * long + _HAIR)
        ]
        for short in by_length
    }
    shorts = [short for short in by_length if reach[short]]

    def texts_of(length: int) -> _Sided:
        return by_length[length], texts.gather(by_length[length])[0].reshape(-1, length)

    report.stage(stage)
    items = (
        (texts_of(short), [None if long == short else texts_of(long) for long in reach[short]]) for short in shorts
    )
    work, pays = partial(_near_of_length, similarity), len(live) >= PAYS
    with closing(in_processes(work, items, report, pays=pays)) as found:
        for done, pairs in enumerate(found):
            report.progress(done, len(shorts), "lengths")
            yield from pairs


def _near_of_length(similarity: float, item: tuple[_Sided, Sequence[_Sided | None]], report: Reporter) -> list[Pairs]:
    """Return the near duplicates among texts of one length, and between these texts and longer texts.

    item: (texts of one length, list of texts to compare them with). An entry of the list has all texts of one length,
    or is None to compare the first texts with each other.
    """
    own, others = item
    left, pairs = _Side(*own), list[Pairs]()
    for right in (left if other is None else _Side(*other) for other in others):
        edits = int((1 - similarity) * right.length + _HAIR)
        pairs += [(left.rows[i], right.rows[j]) for i, j in _compare(left, right, edits, report)]
    return pairs


def within(left: Texts, right: Texts, edits: int) -> BoolArray:
    """Return a mask (n,) of pairs (left[i], right[i]) whose Levenshtein distance is at most `edits`.

    left: shape (n, a); right: shape (n, b), with a <= b. Only those diagonals of the edit matrix are computed that a
    path of at most `edits` edits can reach (Ukkonen 1985).
    """
    (n, a), b = left.shape, right.shape[1]
    hopeful = np.arange(n)
    # A path through the edit matrix needs b - a steps to reach the last diagonal. Each further step to a side needs a
    # second step back.
    aside = (edits - (b - a)) // 2
    width = b - a + 2 * aside + 1
    far = np.int16(edits + 1)
    a_columns, b_columns = np.ascontiguousarray(left.T), np.ascontiguousarray(right.T)
    now = np.full((width + 2, n), far, np.int16)  # row d + 1 is diagonal d - aside; first and last row stay `far`
    for d in range(aside, width):
        now[d + 1] = d - aside
    for i in range(1, a + 1):
        before, now = now, np.full((width + 2, len(hopeful)), far, np.int16)
        for d in range(width):
            j = i + d - aside
            if j == 0:
                now[d + 1] = min(i, int(far))
            elif 0 < j <= b:
                best = before[d + 1] + (a_columns[i - 1] != b_columns[j - 1])
                np.minimum(best, before[d + 2] + np.int16(1), out=best)
                np.minimum(best, now[d] + np.int16(1), out=best)
                now[d + 1] = np.minimum(best, far)
        # Drop pairs that already differ too much. This copies all other pairs, so do it only at every eighth letter.
        if i % 8 == 0 and not (kept := (now <= edits).any(axis=0)).all():
            hopeful, now, a_columns, b_columns = hopeful[kept], now[:, kept], a_columns[:, kept], b_columns[:, kept]
            if not len(hopeful):
                break
    result = np.zeros(n, np.bool_)
    result[hopeful[now[b - a + aside + 1] <= edits]] = True
    return result


class _Side:
    """Texts of one length, shape (n, length), with letter counts and cached hashes for comparisons."""

    def __init__(self, rows: IntArray, text: Texts) -> None:
        self.rows, self.text, self.length = rows, text, text.shape[1]
        # Count letters in 32 counters. If letters share a counter, only the bound in `_weigh` is weaker.
        self.letters = np.zeros((len(rows), 32), np.int16)
        counters = (self._hashes & np.uint64(31)).astype(np.intp) + 32 * np.arange(len(rows))[:, None]
        self.letters[:] = np.bincount(counters.ravel(), minlength=self.letters.size).reshape(self.letters.shape)

    @property
    def _hashes(self) -> UIntArray:
        return mix(self.text.astype(np.uint64))

    @cached_property
    def _sums(self) -> UIntArray:
        """Return polynomial hashes of all prefixes, shape (n, length + 1).

        The difference of two prefix hashes is the hash of the letters that only the longer prefix has.
        """
        sums = np.zeros((len(self.rows), self.length + 1), np.uint64)
        np.cumsum(self._hashes * _POWERS[: self.length], axis=1, out=sums[:, 1:])
        return sums

    def piece(self, start: int, stop: int) -> UIntArray:
        """Return a hash of letters `start` to `stop` of each text, shape (n,). It does not depend on their position."""
        # Multiplying by the inverse power gives the hash that these letters would have at position 0.
        return mix((self._sums[:, stop] - self._sums[:, start]) * _INVERSES[start])


def _compare(left: _Side, right: _Side, edits: int, report: Reporter) -> Iterator[Pairs]:
    """Yield pairs of near duplicates, as positions in `left` and `right`."""
    pending: list[IntArray] = []
    for candidates in _candidates(left, right, edits):
        report.check()
        pending.append(candidates)
        if sum(map(len, pending)) > _AT_ONCE:
            yield from _weigh(left, right, edits, np.concatenate(pending), report)
            pending.clear()
    if pending:
        yield from _weigh(left, right, edits, np.concatenate(pending), report)


def _weigh(left: _Side, right: _Side, edits: int, candidates: IntArray, report: Reporter) -> Iterator[Pairs]:
    """Yield the candidate pairs whose distance is at most `edits`, each pair once."""
    more = right.length - left.length
    pairs = np.unique(candidates)
    for done in range(0, len(pairs), _PAIRS):
        report.check()
        i, j = (part.astype(np.int64) for part in np.divmod(pairs[done : done + _PAIRS], np.int64(len(right.rows))))
        # Test a cheap bound first. A substitution changes two letter counts, an insertion one. At least `more` edits
        # are insertions.
        alike = np.abs(left.letters[i] - right.letters[j]).sum(axis=1) <= 2 * edits - more
        if alike.any():
            i, j = i[alike], j[alike]
            near = within(left.text[i], right.text[j], edits)
            yield i[near], j[near]


def _candidates(left: _Side, right: _Side, edits: int) -> Iterator[IntArray]:
    """Yield arrays of candidate pairs. The pair (i, j) is stored as `i * len(right) + j`."""
    sizes = len(left.rows), len(right.rows)
    if sizes[0] <= _MEET and sizes[0] * sizes[1] <= _FEW:  # few texts: all pairs are candidates
        i, j = np.indices(sizes).reshape(2, -1)
        yield np.flatnonzero(i < j) if left is right else np.arange(len(i))
        return
    more = right.length - left.length
    cuts = [left.length * part // (edits + 1) for part in range(edits + 2)]
    for part, (start, stop) in enumerate(pairwise(cuts)):
        # Near duplicates share at least one of edits + 1 segments (pigeonhole principle), perhaps at another position.
        key = left.piece(start, stop)
        order = np.argsort(key, kind="stable")
        key = key[order]
        # The edits before and after the segment add up to at most `edits`, which limits the shift (PassJoin's
        # multi-match-aware selection).
        lowest, highest = max(-part, more - (edits - part)), min(part, more + (edits - part))
        for shift in range(max(lowest, -start), min(highest, right.length - stop) + 1):
            pieces = right.piece(start + shift, stop + shift)
            low, high = np.searchsorted(key, pieces), np.searchsorted(key, pieces, "right")
            n = high - low
            # Each text finds itself here, so a count of 1 means that no other text has the segment.
            if left is right and shift == 0:
                n = np.where(n > 1, n, 0)
            # If many texts share a segment, compare alphabetical neighbours instead of all pairs.
            crowd = np.flatnonzero(n > _MEET)
            n[crowd] = 0
            j = np.repeat(np.arange(len(n)), n)
            positions = np.repeat(low, n) + np.arange(len(j)) - np.repeat(np.cumsum(n) - n, n)
            i = order[positions]
            if left is right:
                i, j = i[i != j], j[i != j]
                i, j = np.minimum(i, j), np.maximum(i, j)
            yield i * len(right.rows) + j
            if len(crowd):
                crowded = np.isin(key, pieces[crowd])
                bucket = np.concatenate([key[crowded], pieces[crowd]])
                yield from _neighbours(left, right, (order[crowded], crowd), bucket)


def _neighbours(left: _Side, right: _Side, rows: Pairs, bucket: UIntArray) -> Iterator[IntArray]:
    """Yield candidate pairs among many texts that share a segment: neighbours in two alphabetical orders.

    rows: row numbers in `left`, and row numbers in `right`. bucket: hash of the shared segment for each row, first for
    rows of `left`, then for rows of `right`.
    """
    rows_left, crowd = rows
    # Sort reversed texts too: texts that differ near their beginning are neighbours only in reverse order.
    for step in (1, -1):
        texts = (side.text[rows, ::step] for side, rows in ((left, rows_left), (right, crowd)))
        words = [np.ascontiguousarray(text).view(f"U{text.shape[1]}")[:, 0] for text in texts]  # strings, to sort them
        sorted_ = np.lexsort((np.concatenate(words), bucket))
        for offset in range(1, 2 * _NEIGHBOURS + 1):
            a, b = sorted_[:-offset], sorted_[offset:]
            a, b = np.minimum(a, b), np.maximum(a, b)
            kept = (bucket[a] == bucket[b]) & (a < len(rows_left)) & (b >= len(rows_left))
            i, j = rows_left[a[kept]], crowd[b[kept] - len(rows_left)]
            if left is right:
                i, j = i[i != j], j[i != j]
                i, j = np.minimum(i, j), np.maximum(i, j)
            yield i * len(right.rows) + j
