"""Sentences as pieces, tokenised once: flat int32 arrays, not lists of lists; and how they are laid in batches."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from core.reporter import Reporter
from core.results import BoolArray, IntArray

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

STRETCH = 1.15  # the longest row of a micro-batch over the shortest: at most this share is padding


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Rows of pieces, special ones included.

    ids: `(n_pieces,)` int32. begins: `(n_pieces,)` the piece begins a word. ends: `(n,)` int64, where each row ends.
    """

    ids: IntArray
    begins: BoolArray
    ends: IntArray

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
        return type(self)(ids=self.ids[addresses], begins=self.begins[addresses], ends=np.cumsum(self.lengths_of(rows)))

    @classmethod
    def join(cls, parts: "Sequence[Examples]") -> Self:
        """The rows of all `parts` in order."""
        starts = np.cumsum([0, *(len(part.ids) for part in parts)])
        return cls(
            ids=np.concatenate([part.ids for part in parts]),
            begins=np.concatenate([part.begins for part in parts]),
            ends=np.concatenate([part.ends + start for part, start in zip(parts, starts, strict=False)]),
        )


def tokenised(
    blocks: Iterable[Sequence[str]], tokenizer: "PreTrainedTokenizerBase", *, max_length: int, n: int, report: Reporter
) -> Examples:
    """One row a text, cut at `max_length` pieces. n: texts there are, for the progress."""
    parts = [Examples(ids=np.zeros(0, np.int32), begins=np.zeros(0, np.bool_), ends=np.zeros(0, np.int64))]
    done = 0
    for texts in blocks:
        report.check()
        rows = tokenizer(
            list(texts),
            truncation=True,
            max_length=max_length,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        lengths = np.array([len(row) for row in rows["input_ids"]], dtype=np.int64)
        ids = np.fromiter((piece for row in rows["input_ids"] for piece in row), np.int32, int(lengths.sum()))
        words = (word for i in range(len(lengths)) for word in rows.encodings[i].word_ids)
        word = np.fromiter((-1 if at is None else at for at in words), np.int32, len(ids))
        begins = (word < 0) | (word != np.concatenate([[-2], word[:-1]]))
        begins[np.cumsum(lengths)[:-1]] = (
            True  # a row's first piece, though the row before may end in a word of the same number
        )
        parts.append(Examples(ids=ids, begins=begins, ends=np.cumsum(lengths)))
        done += len(lengths)
        report.progress(done, n, "sentences")
    return Examples.join(parts)


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
