"""Words to pieces for a tagger: the piece that stands for a word, and windows over a sentence that is too long.

A word is stood for by its first piece. A long sentence is read in overlapping windows, and every word's
emission is taken from the window in which it has the most context, so that one Viterbi can run over the whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from core.text.neighbours import InContext
from core.text.sentence import Sentence

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Ids = tuple[int, ...]

CONTEXT = 4  # a window shares a quarter of its pieces with the next one


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Part of a sentence as the encoder reads it.

    ids: pieces, special ones included. start: the first word whose emission is taken from here.
    first: where in `ids` the words from `start` on have their first piece; as many as are taken from here.
    """

    ids: Ids
    start: int
    first: tuple[int, ...]


class Pieces:
    """A fast tokenizer, asked word by word.

    max_length: pieces a window, special ones included. Every word keeps at least one piece (`[UNK]` where the
    tokenizer finds none) and at most as many as a window holds.
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
        """The pieces of each word, whatever stands beside it."""
        new = list({word for word in words if word not in self._pieces})
        if new:
            # The space is what byte-level tokenizers expect before a word, and nothing to the others.
            new_ids = self.tokenizer([f" {word}" for word in new], add_special_tokens=False, verbose=False)["input_ids"]
            self._pieces |= {
                word: tuple(ids[: self.room]) or self._unknown for word, ids in zip(new, new_ids, strict=True)
            }
        return [self._pieces[word] for word in words]

    def wrapped(self, ids: Ids) -> Ids:
        """`ids`, at most `room` of them, between the special pieces that the encoder expects."""
        return (*self._before, *ids, *self._behind)

    def around(self, sentence: Sentence, context: int) -> tuple[Ids, Ids]:
        """The pieces of its document that are read before a sentence and after it: at most `context` a side, and at
        most half of what the sentence leaves of a window; none for a sentence that is alone or fills one."""
        if not context or not isinstance(sentence, InContext) or not sentence.tokens:
            return (), ()
        room = max(self.room - sum(map(len, self.of(sentence.tokens))), 0)
        most = min(context, room // 2)
        before, after = (
            tuple(piece for ids in self.of(words) for piece in ids) for words in (sentence.before, sentence.after)
        )
        return before[max(len(before) - most, 0) :], after[:most]

    def windows(self, words: Sequence[str], around: tuple[Ids, Ids] = ((), ())) -> list[Window]:
        """One window where the sentence fits into it, else overlapping ones; none for a sentence without words.

        around: what is read before and after the words, where they leave room for it.
        """
        pieces = self.of(words)
        ends = [0, *accumulate(map(len, pieces))]  # ends[i]: pieces before word i
        spans = _spans(ends, self.room)
        # Two windows that overlap are parted in the middle: there each word has the most context it can have.
        owned = [0, *((b + e + 1) // 2 for (_, e), (b, _) in pairwise(spans)), len(pieces)]
        before, after = around
        offset = len(self._before) + len(before)
        return [
            Window(
                ids=self.wrapped((*before, *(piece for word in pieces[begin:end] for piece in word), *after)),
                start=owned[i],
                first=tuple(offset + ends[word] - ends[begin] for word in range(owned[i], owned[i + 1])),
            )
            for i, (begin, end) in enumerate(spans)
        ]


def _spans(ends: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Words (begin, end) of each window. Each holds at least one word that the windows before it do not."""
    spans: list[tuple[int, int]] = []
    begin, end, n = 0, 0, len(ends) - 1
    while end < n:
        begin = end  # back over shared words first, as far as the next word still fits in, so that the end moves on
        while begin > 0 and ends[end] - ends[begin - 1] <= room // CONTEXT and ends[end + 1] - ends[begin - 1] <= room:
            begin -= 1
        while end < n and ends[end + 1] - ends[begin] <= room:
            end += 1
        spans.append((begin, end))
    return spans


def _unknown(tokenizer: "PreTrainedTokenizerBase") -> int:
    # Byte-level vocabularies may have no unknown piece; another that is no word does as well.
    candidates = (tokenizer.unk_token_id, tokenizer.mask_token_id, tokenizer.pad_token_id)
    return next((int(piece) for piece in candidates if piece is not None), 0)
