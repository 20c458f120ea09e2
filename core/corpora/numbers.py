"""A block of sentences as the numbers that a search for duplicates and leaks compares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from core.corpora.edit_similarity import LONGEST
from core.corpora.grams import HASH_BITS, Lookup, UIntArray, WordHasher, Words, text_keys
from core.results import BoolArray, IntArray
from core.text.words import fold, joined, letters, tokenize, unspaced

SHORT = 10  # words; below, 5-grams are too few to compare and characters decide
_MORE = 2  # words that a short sentence's near duplicate may have beyond that
_MANY = 60  # words; beyond, one changed word leaves a Jaccard of .8 and more
_SHINGLE = 5
_LETTERS_A_WORD = 5
# (n words in a row are a quotation, of held-out sentences of at least, at most so many words, written without blanks).
# A held-out sentence of 8 to 12 words has no 13 in a row, so there 8 decide; what a shorter one shares is a phrase that
# anybody may write (SOURCES.md, Leaks).
_QUOTATIONS = ((13, 13, None, False), (8, 8, 12, False), (26, 26, None, True), (16, 16, 25, True))

Rows = tuple[npt.NDArray[np.unsignedinteger], IntArray]  # numbers, and how many of them a sentence has


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Keys, counts and hashes of `n` sentences.

    keys: `(n,)`, alike for sentences that fold alike. n_words: `(n,)`; five letters of a script without blanks are one.
    n_tokens: `(n,)` of such a script, -1 of any other. quoting: `(n,)` whether it has a stretch of a held-out one.
    shingles: its 5-grams, ascending; words: hashes of them; letters: code points, where it is short.
    """

    keys: UIntArray
    n_words: npt.NDArray[np.int32]
    n_tokens: npt.NDArray[np.int32]
    quoting: BoolArray
    shingles: Rows
    words: Rows
    letters: Rows


@dataclass(slots=True)
class Reading:
    """Reads blocks of sentences, the held-out ones first: their stretches of words are what others may quote."""

    lookups: Mapping[int, Lookup] = field(default_factory=dict)
    hasher: WordHasher = field(default_factory=WordHasher)

    def numbers(self, texts: Sequence[str]) -> tuple[Numbers, dict[int, UIntArray]]:
        """A block's numbers, and the stretches of words that are quotations of it where it is held out."""
        folded = [fold(text) for text in texts]
        whole = [joined(text) for text in folded]
        words = self.hasher(folded)
        n_letters = np.fromiter(map(letters, whole), np.int64, len(whole))
        n_words = words.counts - n_letters + n_letters // _LETTERS_A_WORD
        dense = n_letters > words.counts - n_letters
        # Blanks that `fold` put between letters would halve the weight of every edit.
        lines = [one if is_dense else text for one, text, is_dense in zip(whole, folded, dense.tolist(), strict=True)]
        n_tokens = (len(tokenize(text)) if unspaced(text) else -1 for text in texts)
        numbers = Numbers(
            # A text without a single word is equal to itself alone, not to every other row of dashes.
            keys=text_keys([one or text for one, text in zip(whole, texts, strict=True)]),
            n_words=n_words.astype(np.int32),
            n_tokens=np.fromiter(n_tokens, np.int32, len(texts)),
            quoting=self._quotes(words, dense),
            shingles=_shingle_sets(words),
            words=_middling(words, dense),
            letters=_short_texts(lines, n_words),
        )
        return numbers, {} if self.lookups else _stretches(words, dense)

    def _quotes(self, words: Words, dense: BoolArray) -> BoolArray:
        """`(n,)` whether a row shares a stretch of words with a held-out sentence. dense: written without blanks."""
        hit = np.zeros(len(words.counts), np.bool_)
        for n, *_, of_letters in _QUOTATIONS:
            if n in self.lookups and (dense == of_letters).any():
                grams, row = words.grams(n)
                hit[row[self.lookups[n].holds(grams) & (dense[row] == of_letters)]] = True
        return hit


def _stretches(words: Words, dense: BoolArray) -> dict[int, UIntArray]:
    stretches = {}
    for n, least, most, of_letters in _QUOTATIONS:
        grams, row = words.grams(n)
        size = words.counts[row]
        stretches[n] = grams[(size >= least) & (size <= (most or size)) & (dense[row] == of_letters)]
    return stretches


def _shingle_sets(words: Words) -> tuple[UIntArray, IntArray]:
    """Each sentence's word 5-grams, ascending, each once: the members, and how many a sentence."""
    grams, row = words.grams(_SHINGLE)
    # The hash's upper bits: the n-gram's mixing spreads every word over all of them, so any 40 do.
    key = np.sort(row.astype(np.uint64) << np.uint64(HASH_BITS) | grams >> np.uint64(64 - HASH_BITS))
    # All ones are no key, so the first of them is kept.
    key = key[np.diff(key, prepend=~np.uint64(0)) != 0]
    counts = np.bincount((key >> np.uint64(HASH_BITS)).astype(np.int64), minlength=len(words.counts))
    return key & np.uint64((1 << HASH_BITS) - 1), counts


def _middling(words: Words, dense: BoolArray) -> tuple[npt.NDArray[np.uint32], IntArray]:
    """The words of each sentence as numbers, where a tenth of them is one at least and there are `_MANY` at most.

    dense: written without blanks, where a letter is no word. Two words share a number once in four billion pairs.
    """
    # One word fewer than ten: that may be what was left out.
    kept = (words.counts >= SHORT - 1) & (words.counts <= _MANY) & ~dense
    values = words.hashes[np.repeat(kept, words.counts)] >> np.uint64(32)
    return values.astype(np.uint32), np.where(kept, words.counts, 0)


def _short_texts(folded: Sequence[str], n_words: IntArray) -> tuple[npt.NDArray[np.uint32], IntArray]:
    """Code points of each text that has few words; none of the others."""
    lengths = np.fromiter(map(len, folded), np.int64, len(folded))
    # Longer ones may be the near duplicate of a short one: an insertion makes a word more.
    kept = (n_words < SHORT + _MORE) & (lengths <= LONGEST)
    text = "".join(text for text, keep in zip(folded, kept.tolist(), strict=True) if keep)
    return np.frombuffer(text.encode("utf-32-le"), "<u4"), np.where(kept, lengths, 0)
