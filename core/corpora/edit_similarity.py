"""Pairs of texts with an edit similarity of at least `similarity`, by default .9: a Levenshtein distance of at most a
tenth of the longer text. Finds all pairs, except among very many texts that share a segment (see below).

Texts of few words are compared by letters, others by words; "letter" below means either.

PassJoin (Li et al. 2011): cut the shorter text into d + 1 segments; d edits leave at least one segment unchanged, and
it occurs in the other text within a few places. Texts that share such a segment are compared, first by their counts of
letters, then by the distance itself, many pairs at a time.

One approximation: if more than `_MEET` texts share a segment, a text is only compared with its neighbours in
alphabetical order, read forwards and backwards. A thousand variants of one short text then form ten clusters instead of
one: 990 of them are flagged, not 999.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from core.corpora.grams import Gathered, UIntArray, mix
from core.reporter import Reporter
from core.results import BoolArray, IntArray

LONGEST = 160  # letters (or words) of a text; a longer text has exact duplicates only
SIMILARITY = 0.9
_MEET = 64  # texts that share a segment and are compared all with all
_FEW = 1 << 12  # pairs; fewer are compared directly, which is faster than a search by segments
_NEIGHBOURS = 8  # neighbours on either side
_AT_ONCE = 1 << 22  # candidates held in memory
_PAIRS = 1 << 15  # candidates compared at a time
_HAIR = 1e-9  # guards against rounding: (1 - .9) * 10 is slightly below 1

_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2**64
_POWERS, _INVERSES = (
    np.cumprod(np.array([1, *[base] * LONGEST], np.uint64)) for base in (_BASE, pow(_BASE, -1, 1 << 64))
)

Texts = npt.NDArray[np.uint32]  # (n, length) code points of n texts of one length
Pairs = tuple[IntArray, IntArray]


def near_texts(
    texts: Gathered, live: IntArray, stage: str, report: Reporter, similarity: float = SIMILARITY
) -> Iterator[Pairs]:
    """Yield pairs of `live` rows with edit similarity >= `similarity`; a pair may come more than once.

    texts: code points or hashes of words, at most `LONGEST` per row; an empty row is near to none.
    """
    lengths = texts.counts[live]
    by_length = {int(n): live[lengths == n] for n in np.unique(lengths) if n}
    # The distance is at least long - short and may be (1 - similarity) of long, so long <= short / similarity.
    reach = {
        short: [
            long
            for long in range(short, int(short / similarity + _HAIR) + 1)
            # If no edit is allowed (at .9: below ten letters), equal texts are exact duplicates already.
            if long in by_length and int((1 - similarity) * long + _HAIR)
        ]
        for short in by_length
    }
    shorts = [short for short in by_length if reach[short]]

    def side(length: int) -> _Side:
        return _Side(by_length[length], texts.gather(by_length[length])[0].reshape(-1, length))

    report.stage(stage)
    for done, short in enumerate(shorts):
        report.check()
        report.progress(done, len(shorts), "lengths")
        left = side(short)
        for right in (left if long == short else side(long) for long in reach[short]):
            edits = int((1 - similarity) * right.length + _HAIR)
            for i, j in _compare(left, right, edits, report):
                yield left.rows[i], right.rows[j]


def within(left: Texts, right: Texts, edits: int) -> BoolArray:
    """Return a mask (n,) of pairs whose Levenshtein distance is at most `edits`.

    left: (n, a); right: (n, b), with a <= b.
    A path of at most `edits` steps leaves the main diagonals by at most `aside` diagonals (Ukkonen 1985).
    """
    (n, a), b = left.shape, right.shape[1]
    hopeful = np.arange(n)
    # Every path needs b - a steps to the last diagonal; each further step aside costs one step back.
    aside = (edits - (b - a)) // 2
    width = b - a + 2 * aside + 1
    far = np.int16(edits + 1)
    a_columns, b_columns = np.ascontiguousarray(left.T), np.ascontiguousarray(right.T)
    now = np.full((width + 2, n), far, np.int16)  # row d + 1 is diagonal d - aside; a wall on both sides
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
        # Only every eighth letter, because dropping hopeless pairs copies the others.
        if i % 8 == 0 and not (kept := (now <= edits).any(axis=0)).all():
            hopeful, now, a_columns, b_columns = hopeful[kept], now[:, kept], a_columns[:, kept], b_columns[:, kept]
            if not len(hopeful):
                break
    result = np.zeros(n, np.bool_)
    result[hopeful[now[b - a + aside + 1] <= edits]] = True
    return result


class _Side:
    """All texts of one length, shape (n, length), with cached values for their comparison."""

    def __init__(self, rows: IntArray, text: Texts) -> None:
        self.rows, self.text, self.length = rows, text, text.shape[1]
        # 32 counters for all letters: letters that share a counter only weaken the bound below.
        self.letters = np.zeros((len(rows), 32), np.int16)
        counters = (self._hashes & np.uint64(31)).astype(np.intp) + 32 * np.arange(len(rows))[:, None]
        self.letters[:] = np.bincount(counters.ravel(), minlength=self.letters.size).reshape(self.letters.shape)

    @property
    def _hashes(self) -> UIntArray:
        return mix(self.text.astype(np.uint64))

    @cached_property
    def _sums(self) -> UIntArray:
        """Return polynomial hashes of all prefixes, shape (n, length + 1); a piece's hash is a difference of two."""
        sums = np.zeros((len(self.rows), self.length + 1), np.uint64)
        np.cumsum(self._hashes * _POWERS[: self.length], axis=1, out=sums[:, 1:])
        return sums

    def piece(self, start: int, stop: int) -> UIntArray:
        """Return a hash of characters `start` to `stop`, shape (n,), independent of their position."""
        # The inverse power shifts the hash to position 0.
        return mix((self._sums[:, stop] - self._sums[:, start]) * _INVERSES[start])


def _compare(left: _Side, right: _Side, edits: int, report: Reporter) -> Iterator[Pairs]:
    """Yield the near pairs, as positions in `left` and `right`."""
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
    """Yield the candidates within `edits`, each once."""
    more = right.length - left.length
    pairs = np.unique(candidates)
    for done in range(0, len(pairs), _PAIRS):
        report.check()
        i, j = (part.astype(np.int64) for part in np.divmod(pairs[done : done + _PAIRS], np.int64(len(right.rows))))
        # A cheap bound first: a substitution changes two letter counts, an insertion one; `more` edits are insertions.
        alike = np.abs(left.letters[i] - right.letters[j]).sum(axis=1) <= 2 * edits - more
        if alike.any():
            i, j = i[alike], j[alike]
            near = within(left.text[i], right.text[j], edits)
            yield i[near], j[near]


def _candidates(left: _Side, right: _Side, edits: int) -> Iterator[IntArray]:
    """Yield candidates as `i * len(right) + j`, segment by segment, shift by shift."""
    sizes = len(left.rows), len(right.rows)
    if sizes[0] <= _MEET and sizes[0] * sizes[1] <= _FEW:  # few texts: all pairs are candidates
        i, j = np.indices(sizes).reshape(2, -1)
        yield np.flatnonzero(i < j) if left is right else np.arange(len(i))
        return
    more = right.length - left.length
    cuts = [left.length * part // (edits + 1) for part in range(edits + 2)]
    for part, (start, stop) in enumerate(pairwise(cuts)):
        # At least one of edits + 1 segments is unchanged (pigeonhole), so near texts share it, shifted a little.
        key = left.piece(start, stop)
        order = np.argsort(key, kind="stable")
        key = key[order]
        # There cannot be many edits both before and after the segment (multi-match-aware bounds).
        lowest, highest = max(-part, more - (edits - part)), min(part, more + (edits - part))
        for shift in range(max(lowest, -start), min(highest, right.length - stop) + 1):
            pieces = right.piece(start + shift, stop + shift)
            low, high = np.searchsorted(key, pieces), np.searchsorted(key, pieces, "right")
            n = high - low
            # A text always finds itself; a segment that no other text has gives no pair.
            if left is right and shift == 0:
                n = np.where(n > 1, n, 0)
            # For a segment that many texts share, only neighbours are compared, not all pairs.
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
    """Yield candidates from crowded buckets: neighbours in two alphabetical orders.

    rows: of `left` and of `right`. bucket: bucket of each row, first of `left`'s rows, then of `right`'s.
    """
    rows_left, crowd = rows
    # Backwards too: texts that differ near their beginning are neighbours only if read backwards.
    for step in (1, -1):
        texts = (side.text[rows, ::step] for side, rows in ((left, rows_left), (right, crowd)))
        words = [np.ascontiguousarray(text).view(f"U{text.shape[1]}")[:, 0] for text in texts]  # sortable strings
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
