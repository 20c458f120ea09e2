"""Tokenised texts as flat arrays, and the optimizer steps of masked language modelling.

A step depends only on its number. A resumed training therefore gives the same result as an uninterrupted one, and
several processes together read the same texts as a single process.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Self, TypedDict

import numpy as np
import torch
from torch import Tensor

from core.models.mlm import Masking
from core.models.pieces import LONGEST, even_parts
from core.reporter import Reporter
from core.results import BoolArray, IntArray

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# The longest row of a micro-batch is at most this many times as long as the shortest, which limits padding.
STRETCH = 1.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Rows of pieces, special ones included.

    ids: `(n_pieces,)` int32. begins: `(n_pieces,)` True if the piece begins a word. ends: `(n,)` int64, end of each
    row. first: `(n,)` True if the row is a whole text, or the first part of a long one.
    """

    ids: IntArray
    begins: BoolArray
    ends: IntArray
    first: BoolArray

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lengths(self) -> IntArray:
        """Pieces per row, `(n,)`."""
        return np.diff(self.ends, prepend=0)

    def at(self, rows: IntArray) -> IntArray:
        """Return the indices in `ids` of all pieces of `rows`, row after row."""
        lengths = self.lengths_of(rows)
        first = np.cumsum(lengths) - lengths
        return np.repeat(self.ends[rows] - lengths - first, lengths) + np.arange(int(lengths.sum()))

    def lengths_of(self, rows: IntArray) -> IntArray:
        """Return the number of pieces of each of `rows`, `(k,)`."""
        return self.ends[rows] - np.where(rows > 0, self.ends[rows - 1], 0)

    def take(self, rows: IntArray) -> Self:
        """Return only `rows`, in the given order."""
        addresses = self.at(rows)
        return type(self)(
            ids=self.ids[addresses],
            begins=self.begins[addresses],
            ends=np.cumsum(self.lengths_of(rows)),
            first=self.first[rows],
        )

    @classmethod
    def join(cls, parts: "Sequence[Examples]") -> Self:
        """Return the rows of all `parts` in order."""
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
    """Return one row per text, or as few rows as possible for a text of more than `max_length` pieces.

    n: number of texts, to report the progress.
    """
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
        # A row's first piece always begins a word, even if the last word of the previous row has the same index.
        begins[np.cumsum(lengths)[:-1]] = True
        first = np.array([row.first for row in rows], dtype=np.bool_)
        parts.append(Examples(ids=ids, begins=begins, ends=np.cumsum(lengths), first=first))
        done += len(texts)
        report.progress(done, n, "sentences")
    return Examples.join(parts)


class _Row(NamedTuple):
    """A row of pieces. words: for each piece, the index of its word. first: True for the first row of a text."""

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
    """Return rows of `max_length` pieces that hold consecutive sentences, each followed by a separator piece."""
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    # If the tokenizer has no separator pieces, keep one sentence per row.
    if first is None or last is None or max_length < 3:
        return examples
    starts = examples.ends - examples.lengths
    keep = np.ones(len(examples.ids), dtype=np.bool_)
    keep[starts[examples.lengths > 0]] = False  # drop [CLS]; keep [SEP] to separate sentences
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
    """Yield micro-batches as indices into `lengths`.

    A micro-batch has at most `rows` rows and, unless it is a single row, at most `pieces` pieces with padding. Its
    longest row is at most `stretch` times as long as its shortest.
    """
    # Start with the longest rows. The last micro-batches are then short, so threads finish at about the same time.
    order = np.argsort(lengths, kind="stable")[::-1]
    start = 0
    while start < len(order):
        longest = max(int(lengths[order[start]]), 1)
        stop = min(start + max(pieces // longest, 1), start + rows, len(order))
        near = lengths[order[start:stop]] * stretch >= longest
        stop = start + int(near.sum())
        yield order[start:stop]
        start = stop


MEGA = 50  # number of steps whose sentences are sorted by length together

# Function of an epoch's number. It returns the indices of the rows that the epoch reads.
Draw = Callable[[int], IntArray]
# A step's pieces, the pieces after masking, True at pieces to predict, and the end of each row.
Flat = tuple[IntArray, IntArray, BoolArray, IntArray]
# Arguments of `MaskedLM.loss`: pieces, attention mask, masked positions, true pieces at these positions.
Micro = tuple[Tensor, Tensor | None, Tensor, Tensor]


class Step(TypedDict):
    """One step. micro: micro-batches of this process.

    masked, pieces: number of masked pieces and of all pieces, over all processes.
    """

    micro: list[Micro]
    masked: int
    pieces: int


class Steps(torch.utils.data.Dataset[Step]):
    """All steps of a training, in order.

    batch_size: sentences per step over all processes. pieces: maximum number of pieces per micro-batch, padding
    included. parts: minimum number of micro-batches per step; more micro-batches need less memory. stretch: see
    `near_equal`. total: number of steps.
    """

    def __init__(
        self,
        examples: Examples,
        masking: Masking,
        draw: Draw,
        *,
        batch_size: int,
        pieces: int,
        pad: int,
        total: int,
        stretch: float = STRETCH,
        parts: int = 1,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.examples, self.masking, self.draw = examples, masking, draw
        self.batch_size, self.pieces, self.pad, self.total = batch_size, pieces, pad, total
        self.stretch, self.parts, self.rank, self.world = stretch, parts, rank, world
        self.an_epoch = -(-len(draw(0)) // batch_size)
        # Cache the plan of one epoch only: steps are read in order, and a plan is as large as the corpus.
        self._plan = lru_cache(maxsize=1)(self._lay)

    def __len__(self) -> int:
        return self.total

    def __getitem__(self, step: int) -> Step:
        epoch, place = divmod(step, self.an_epoch)
        rows, order = self._plan(epoch)
        slots = order[place * self.batch_size : (place + 1) * self.batch_size]
        # Sort by length, because each process takes every n-th row. All processes then have about equal work.
        slots = slots[np.argsort(self.examples.lengths_of(rows[slots]), kind="stable")]
        return step_of(self.examples, rows[slots], slots, masking=self.masking, epoch=epoch, like=self)

    def cut(self, step: int, times: int) -> list[Micro]:
        """Return the micro-batches of step number `step`, with `times` times the usual minimum number of parts."""
        finer = copy(self)
        finer.parts *= times
        return finer[step]["micro"]

    def _lay(self, epoch: int) -> tuple[IntArray, IntArray]:
        """Return an epoch's rows and the order in which steps take them, so that a step has rows of similar length."""
        rows = self.draw(epoch)
        rng = np.random.default_rng([self.masking.seed, epoch])
        order = rng.permutation(len(rows))
        lengths = self.examples.lengths_of(rows)
        # Sort by length only within MEGA steps. This saves padding and keeps the overall order random.
        for start in range(0, len(order), MEGA * self.batch_size):
            part = order[start : start + MEGA * self.batch_size]
            order[start : start + MEGA * self.batch_size] = part[np.argsort(lengths[part], kind="stable")]
        n_whole = len(order) // self.batch_size
        steps = order[: n_whole * self.batch_size].reshape(n_whole, self.batch_size)[rng.permutation(n_whole)]
        return rows, np.concatenate([steps.reshape(-1), order[n_whole * self.batch_size :]])


def pieces_until(steps: Steps, pieces: int) -> int:
    """Return the number of steps until the model has read `pieces` pieces, without padding."""
    seen = step = 0
    # The number of epochs is limited, because rows without pieces would loop forever.
    for epoch in range(10**6):
        rows, order = steps._plan(epoch)
        lengths = steps.examples.lengths_of(rows[order])
        sums = np.add.reduceat(lengths, np.arange(0, len(lengths), steps.batch_size)).cumsum() + seen
        if sums[-1] >= pieces:
            return step + int(np.searchsorted(sums, pieces)) + 1
        seen, step = int(sums[-1]), step + len(sums)
    return step


def step_of(
    examples: Examples, rows: IntArray, slots: IntArray, *, masking: Masking, epoch: int, like: "Steps | _OneProcess"
) -> Step:
    """Return a step with the micro-batches that one process computes.

    rows: indices of the step's rows in `examples`. slots: position of each row in the epoch. like: gives the number of
    the process (`rank`), the number of processes (`world`), and the limits of a micro-batch.
    """
    lengths = examples.lengths_of(rows)
    at = examples.at(rows)
    line = np.repeat(np.arange(len(rows)), lengths)
    places = np.arange(len(at)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    ids = examples.ids[at]
    # Draw masks by slot instead of row, so that a sentence that is read twice in an epoch gets different masks.
    seen, chosen = masking.draw(ids, slots[line], places, examples.begins[at], epoch)
    # Count before the rows are divided among processes, because all processes divide the loss by the same number.
    masked = max(int(chosen.sum()), 1)
    own = np.arange(like.rank, len(rows), like.world)
    if not len(own):  # fewer rows than processes: this process computes one row but predicts nothing
        own, chosen = np.arange(1), np.zeros_like(chosen)
    # Limit the pieces of a micro-batch so that there are about `parts` micro-batches, and no thread waits for another.
    # If rows of any length may share a micro-batch, include padding; otherwise there would be more than `parts`.
    total = lengths[own].sum() if like.stretch < math.inf else len(own) * lengths[own].max()
    limit = min(like.pieces, -(-int(total) // like.parts))
    flat: Flat = (ids, seen, chosen, np.cumsum(lengths))
    micro = [
        _padded(own[part], lengths, flat, like.pad)
        for part in near_equal(lengths[own], pieces=limit, rows=-(-len(own) // like.parts), stretch=like.stretch)
    ]
    return {"micro": micro, "masked": masked, "pieces": len(at)}


def _padded(lines: IntArray, lengths: IntArray, flat: Flat, pad: int) -> Micro:
    """Return some rows of a step as one padded micro-batch. lines: indices of these rows in the step."""
    ids, seen, chosen, ends = flat
    widths = lengths[lines]
    shape = (len(lines), int(widths.max()))
    inside = np.arange(shape[1]) < widths[:, None]
    source = (ends[lines] - widths)[:, None] + np.arange(shape[1])
    source = source[inside]
    tokens = np.full(shape, pad, dtype=np.int64)
    tokens[inside] = seen[source]
    masked_places = np.zeros(shape, dtype=np.bool_)
    masked_places[inside] = chosen[source]
    attend = None if inside.all() else torch.from_numpy(inside.astype(np.int64))
    targets = ids[source][chosen[source]].astype(np.int64)
    return torch.from_numpy(tokens), attend, torch.from_numpy(np.flatnonzero(masked_places)), torch.from_numpy(targets)


def fixed(examples: Examples, masking: Masking, *, pieces: int, pad: int) -> Iterator[Micro]:
    """Yield all rows once, in batches of similar length and with fixed masks, to compute a dev loss."""
    like = _OneProcess(pieces, pad)
    for part in near_equal(examples.lengths, pieces=pieces, rows=len(examples)):
        yield from step_of(examples, part, part, masking=masking, epoch=0, like=like)["micro"]


class _OneProcess:
    """Replaces `Steps` as the argument `like` of `step_of` if a single process reads all rows."""

    parts, rank, world, stretch = 1, 0, 1, STRETCH

    def __init__(self, pieces: int, pad: int) -> None:
        self.pieces, self.pad = pieces, pad
