"""Texts and words as pieces, and windows over texts of more pieces than an encoder reads at once.

For sentence vectors (`windows`), all windows have the same length. The last window reaches back over pieces of the
window before it, so that each piece has context. For masked language modelling (`even_parts`), no piece is read twice,
and a text is cut into parts of similar length.

For a tagger (`Pieces`), windows hold whole words. A word is represented by its first piece. Its emission comes from the
window in which the word has the most context. Viterbi then runs once over the whole sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from core.results import IntArray
from core.text.sentence import InContext, Sentence

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Maximum number of pieces that are read from a text; no sentence has more.
LONGEST = 8192
# Neighbouring windows of a tagger share at most 1 / CONTEXT of their pieces.
CONTEXT = 4

Ids = tuple[int, ...]


def rectangle(rows: Sequence[Sequence[int]], padding: int) -> tuple[IntArray, IntArray]:
    """Return rows of pieces padded to one length, and an attention mask that is 1 at the pieces; both `(b, l)`."""
    ids = np.full((len(rows), max(map(len, rows))), padding, dtype=np.int64)
    attention = np.zeros_like(ids)
    for line, row in enumerate(rows):
        ids[line, : len(row)], attention[line, : len(row)] = row, 1
    return ids, attention


@dataclass(frozen=True, slots=True, kw_only=True)
class TextWindow:
    """Part of a text's row of pieces.

    places: positions in the row, special pieces included. new: range in `places` of the pieces that are neither special
    nor in an earlier window.
    """

    places: Sequence[int]
    new: range


def windows(special: Sequence[int], most: int) -> list[TextWindow]:
    """Return windows of `most` pieces over a longer row. Each piece that is not special is `new` in exactly one window.

    special: for each piece of the row, 1 if it is special. The row and every window begin and end with special pieces.
    """
    before, stop, room = _bounds(special, most)
    parts = []
    for start in range(before, stop, room):
        end = min(start + room, stop)
        begin = end - room
        places = [*range(before), *range(begin, end), *range(stop, len(special))]
        parts.append(TextWindow(places=places, new=range(before + start - begin, before + end - begin)))
    return parts


def even_parts(special: Sequence[int], most: int) -> list[list[int]]:
    """Divide a row into as few parts of at most `most` pieces as possible, and return the positions of each part.

    Each part includes the special pieces. Parts have similar lengths, so that no part is a single piece without
    context.
    """
    before, stop, room = _bounds(special, most)
    inner = np.array_split(np.arange(before, stop), -(-(stop - before) // room))
    return [[*range(before), *part.tolist(), *range(stop, len(special))] for part in inner]


def _bounds(special: Sequence[int], most: int) -> tuple[int, int, int]:
    """Return start and end of a row's pieces that are not special, and how many of these fit into a window."""
    before, behind = special.index(0), special[::-1].index(0)
    return before, len(special) - behind, most - before - behind


@dataclass(frozen=True, slots=True, kw_only=True)
class WordWindow:
    """Part of a sentence as the encoder reads it.

    ids: pieces, special ones included. start: index of the first word whose emission is taken from this window. first:
    for each word from `start` on, the position of its first piece in `ids`.
    """

    ids: Ids
    start: int
    first: tuple[int, ...]


class Pieces:
    """A fast tokenizer, applied word by word.

    max_length: pieces per window, special ones included. Every word has at least one piece (`[UNK]` if the tokenizer
    gives none) and at most as many as fit into a window.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", max_length: int) -> None:
        self.tokenizer, self.max_length = tokenizer, max_length
        probe = tokenizer("a", return_special_tokens_mask=True)
        special = probe["special_tokens_mask"]
        before, behind = special.index(0), special[::-1].index(0)
        self._before: Ids = tuple(probe["input_ids"][:before])
        self._behind: Ids = tuple(probe["input_ids"][len(special) - behind :])
        self.room = max_length - before - behind
        self._unknown: Ids = (_unknown(tokenizer),)
        self._pieces: dict[str, Ids] = {}

    def of(self, words: Sequence[str]) -> list[Ids]:
        """Return the pieces of each word. They do not depend on neighbouring words."""
        new = list({word for word in words if word not in self._pieces})
        if new:
            # Byte-level tokenizers expect a space before a word; all others ignore it.
            new_ids = self.tokenizer([f" {word}" for word in new], add_special_tokens=False, verbose=False)["input_ids"]
            self._pieces |= {
                word: tuple(ids[: self.room]) or self._unknown for word, ids in zip(new, new_ids, strict=True)
            }
        return [self._pieces[word] for word in words]

    def wrapped(self, ids: Ids) -> Ids:
        """Return `ids` between the special pieces that the encoder expects. ids: at most `room` pieces."""
        return (*self._before, *ids, *self._behind)

    def around(self, sentence: Sentence, context_pieces: int) -> tuple[Ids, Ids]:
        """Return the pieces of neighbouring sentences that are read before and after a sentence.

        Each side has at most `context_pieces` pieces and at most half of the room that the sentence leaves in a window.
        """
        if not context_pieces or not isinstance(sentence, InContext) or not sentence.tokens:
            return (), ()
        room = max(self.room - sum(map(len, self.of(sentence.tokens))), 0)
        most = min(context_pieces, room // 2)
        before, after = (
            tuple(piece for ids in self.of(words) for piece in ids) for words in (sentence.before, sentence.after)
        )
        return before[max(len(before) - most, 0) :], after[:most]

    def windows(self, words: Sequence[str], around: tuple[Ids, Ids] = ((), ())) -> list[WordWindow]:
        """Return one window if the sentence fits, else overlapping windows; an empty list if the sentence has no words.

        around: pieces to read before and after the words.
        """
        pieces = self.of(words)
        ends = [0, *accumulate(map(len, pieces))]  # ends[i]: number of pieces before word i
        spans = _spans(ends, self.room)
        # Divide an overlap in the middle, so that each word belongs to the window in which it has the most context.
        owned = [0, *((b + e + 1) // 2 for (_, e), (b, _) in pairwise(spans)), len(pieces)]
        before, after = around
        offset = len(self._before) + len(before)
        return [
            WordWindow(
                ids=self.wrapped((*before, *(piece for word in pieces[begin:end] for piece in word), *after)),
                start=owned[i],
                first=tuple(offset + ends[word] - ends[begin] for word in range(owned[i], owned[i + 1])),
            )
            for i, (begin, end) in enumerate(spans)
        ]


def _spans(ends: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Return the words (begin, end) of each window. Each window has at least one word that no earlier window has."""
    spans: list[tuple[int, int]] = []
    begin, end, n = 0, 0, len(ends) - 1
    while end < n:
        # Repeat words of the previous window only if the next word still fits; else both windows would end at the same
        # word.
        begin = end
        while begin > 0 and ends[end] - ends[begin - 1] <= room // CONTEXT and ends[end + 1] - ends[begin - 1] <= room:
            begin -= 1
        while end < n and ends[end + 1] - ends[begin] <= room:
            end += 1
        spans.append((begin, end))
    return spans


def _unknown(tokenizer: "PreTrainedTokenizerBase") -> int:
    # Byte-level vocabularies may lack an unknown piece. Then use any other special piece.
    candidates = (tokenizer.unk_token_id, tokenizer.mask_token_id, tokenizer.pad_token_id)
    return next((int(piece) for piece in candidates if piece is not None), 0)
