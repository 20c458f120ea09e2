"""Sentences as pieces, tokenised once: flat int32 arrays, not lists of lists; and how they are laid in batches."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from core.models.windows import LONGEST, even_parts
from core.reporter import Reporter
from core.results import BoolArray, IntArray

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

STRETCH = 1.15  # the longest row of a micro-batch over the shortest: at most this share is padding


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Rows of pieces, special ones included.

    ids: `(n_pieces,)` int32. begins: `(n_pieces,)` the piece begins a word. ends: `(n,)` int64, where each row ends.
    first: `(n,)` the row is a text, or the first part of a long one.
    """

    ids: IntArray
    begins: BoolArray
    ends: IntArray
    first: BoolArray

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lengths(self) -> IntArray:
        """`(n,)` pieces a row."""
        return np.diff(self.ends, prepend=0)

    def at(self, rows: IntArray) -> IntArray:
        """Addresses in `ids` of all pieces of `rows`, row after row."""
        lengths = self.lengths_of(rows)
        first = np.cumsum(lengths) - lengths
        return np.repeat(self.ends[rows] - lengths - first, lengths) + np.arange(int(lengths.sum()))

    def lengths_of(self, rows: IntArray) -> IntArray:
        """`(k,)` pieces of each of `rows`."""
        return self.ends[rows] - np.where(rows > 0, self.ends[rows - 1], 0)

    def take(self, rows: IntArray) -> Self:
        """`rows` as examples of their own."""
        addresses = self.at(rows)
        return type(self)(
            ids=self.ids[addresses],
            begins=self.begins[addresses],
            ends=np.cumsum(self.lengths_of(rows)),
            first=self.first[rows],
        )

    @classmethod
    def join(cls, parts: "Sequence[Examples]") -> Self:
        """The rows of all `parts` in order."""
        starts = np.cumsum([0, *(len(part.ids) for part in parts)])
        return cls(
            ids=np.concatenate([part.ids for part in parts]),
            begins=np.concatenate([part.begins for part in parts]),
            ends=np.concatenate([part.ends + start for part, start in zip(parts, starts, strict=False)]),
            first=np.concatenate([part.first for part in parts]),
        )


def tokenised(
    blocks: Iterable[Sequence[str]], tokenizer: "PreTrainedTokenizerBase", *, max_length: int, n: int, report: Reporter
) -> Examples:
    """One row a text, or as few as hold one of more than `max_length` pieces. n: texts there are, for the progress."""
    none = np.zeros(0, np.bool_)
    parts = [Examples(ids=np.zeros(0, np.int32), begins=none, ends=np.zeros(0, np.int64), first=none)]
    done = 0
    for texts in blocks:
        report.check()
        rows = list(_rows(texts, tokenizer, max_length))
        lengths = np.array([len(row.ids) for row in rows], dtype=np.int64)
        ids = np.fromiter((piece for row in rows for piece in row.ids), np.int32, int(lengths.sum()))
        word = np.fromiter((-1 if at is None else at for row in rows for at in row.words), np.int32, len(ids))
        begins = (word < 0) | (word != np.concatenate([[-2], word[:-1]]))
        # A row's first piece begins a word, though the row before may end in one of the same number.
        begins[np.cumsum(lengths)[:-1]] = True
        first = np.array([row.first for row in rows], dtype=np.bool_)
        parts.append(Examples(ids=ids, begins=begins, ends=np.cumsum(lengths), first=first))
        done += len(texts)
        report.progress(done, n, "sentences")
    return Examples.join(parts)


class _Row(NamedTuple):
    """words: the number of each piece's word. first: of its text."""

    ids: Sequence[int]
    words: Sequence[int | None]
    first: bool


def _rows(texts: Sequence[str], tokenizer: "PreTrainedTokenizerBase", max_length: int) -> Iterator[_Row]:
    pieces = tokenizer(
        list(texts),
        truncation=True,
        max_length=max(LONGEST, max_length),
        return_special_tokens_mask=True,
        return_attention_mask=False,
        return_token_type_ids=False,
    )
    encoded = zip(pieces["input_ids"], pieces["special_tokens_mask"], pieces.encodings, strict=True)
    for ids, special, encoding in encoded:
        words = encoding.word_ids
        if len(ids) <= max_length:
            yield _Row(ids, words, first=True)
            continue
        for i, places in enumerate(even_parts(special, max_length)):
            yield _Row([ids[place] for place in places], [words[place] for place in places], first=not i)


def packed(examples: Examples, tokenizer: "PreTrainedTokenizerBase", max_length: int) -> Examples:
    """Rows of `max_length` pieces, the last one shorter: sentences one after another, a separator behind each."""
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    # Without pieces to part sentences by there is nothing to pack with; rows then stay one sentence each.
    if first is None or last is None or max_length < 3:
        return examples
    starts = examples.ends - examples.lengths
    keep = np.ones(len(examples.ids), dtype=np.bool_)
    keep[starts[examples.lengths > 0]] = False  # [CLS]; the [SEP] that ends a row stays and parts the sentences
    ids, begins = examples.ids[keep], examples.begins[keep]
    room = max_length - 2
    cuts = np.arange(0, len(ids), room)
    parts = [(ids[cut : cut + room], begins[cut : cut + room]) for cut in cuts]
    return Examples(
        ids=np.concatenate([np.concatenate([[first], part, [last]]) for part, _ in parts]).astype(np.int32),
        begins=np.concatenate([np.concatenate([[True], part, [True]]) for _, part in parts]),
        ends=np.cumsum([len(part) + 2 for part, _ in parts]),
        first=np.ones(len(parts), dtype=np.bool_),
    )


def near_equal(lengths: IntArray, *, pieces: int, rows: int, stretch: float = STRETCH) -> Iterator[IntArray]:
    """Micro-batches as places in `lengths`: at most `pieces` with padding (or one row) and `rows` rows each, the
    longest at most `stretch` times as long as the shortest."""
    # Longest first: what threads take last is short, so they end at about one time.
    order = np.argsort(lengths, kind="stable")[::-1]
    start = 0
    while start < len(order):
        longest = max(int(lengths[order[start]]), 1)
        stop = min(start + max(pieces // longest, 1), start + rows, len(order))
        near = lengths[order[start:stop]] * stretch >= longest
        stop = start + int(near.sum())
        yield order[start:stop]
        start = stop
