"""Optimizer steps of masked language modelling, each a pure function of its number.

So a resumed training goes on as if undisturbed, and several processes see, together, what one would have seen.
"""

import math
from collections.abc import Callable, Iterator
from copy import copy
from functools import lru_cache
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor

from core.models.masking import Masking
from core.results import BoolArray, IntArray
from core.training.examples import STRETCH, Examples, near_equal

MEGA = 50  # steps whose sentences are sorted by length together

Draw = Callable[[int], IntArray]  # epoch -> the rows it reads
Flat = tuple[IntArray, IntArray, BoolArray, IntArray]  # pieces, pieces as masked, which are; where each row ends
Micro = tuple[Tensor, Tensor | None, Tensor, Tensor]  # what `MaskedLM.loss` takes


class Step(TypedDict):
    """micro: this process's micro-batches. masked, pieces: numbers of all processes together."""

    micro: list[Micro]
    masked: int
    pieces: int


class Steps(torch.utils.data.Dataset[Step]):
    """Every step of a training, in order.

    batch_size: sentences a step, of all processes together. pieces: of a micro-batch, padding counted. parts: that a
    step is cut into at least, the more the less memory it takes. stretch: see `near_equal`. total: steps.
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
        # One epoch's plan is kept: steps are asked for in order, and a plan is as large as the corpus.
        self._plan = lru_cache(maxsize=1)(self._lay)

    def __len__(self) -> int:
        return self.total

    def __getitem__(self, step: int) -> Step:
        epoch, place = divmod(step, self.an_epoch)
        rows, order = self._plan(epoch)
        slots = order[place * self.batch_size : (place + 1) * self.batch_size]
        # Sorted by length and dealt out in turn, so that every process has as much to do.
        slots = slots[np.argsort(self.examples.lengths_of(rows[slots]), kind="stable")]
        return step_of(self.examples, rows[slots], slots, masking=self.masking, epoch=epoch, like=self)

    def cut(self, step: int, times: int) -> list[Micro]:
        """Its micro-batches, into `times` as many parts as usual."""
        finer = copy(self)
        finer.parts *= times
        return finer[step]["micro"]

    def _lay(self, epoch: int) -> tuple[IntArray, IntArray]:
        """The epoch's rows, and their places in the order in which the steps take them: like lengths together."""
        rows = self.draw(epoch)
        rng = np.random.default_rng([self.masking.seed, epoch])
        order = rng.permutation(len(rows))
        lengths = self.examples.lengths_of(rows)
        # Sorted by length within stretches alone: little padding, and the order stays random from one to the next.
        for start in range(0, len(order), MEGA * self.batch_size):
            part = order[start : start + MEGA * self.batch_size]
            order[start : start + MEGA * self.batch_size] = part[np.argsort(lengths[part], kind="stable")]
        n_whole = len(order) // self.batch_size
        steps = order[: n_whole * self.batch_size].reshape(n_whole, self.batch_size)[rng.permutation(n_whole)]
        return rows, np.concatenate([steps.reshape(-1), order[n_whole * self.batch_size :]])


def pieces_until(steps: Steps, pieces: int) -> int:
    """Number of steps until the model has seen `pieces` real pieces."""
    seen = step = 0
    # Bounded: rows without a piece would never come to the end.
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
    """`rows`, masked as `slots` of `epoch`, in micro-batches of process `like.rank` of `like.world`."""
    lengths = examples.lengths_of(rows)
    at = examples.at(rows)
    line = np.repeat(np.arange(len(rows)), lengths)
    places = np.arange(len(at)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    ids = examples.ids[at]
    # By the slot and its place in the row, not by the row: a sentence read twice in an epoch is masked anew.
    seen, chosen = masking.draw(ids, slots[line], places, examples.begins[at], epoch)
    # Counted before the rows are shared out: every process divides by the same number.
    masked = max(int(chosen.sum()), 1)
    own = np.arange(like.rank, len(rows), like.world)
    if not len(own):  # fewer rows than processes; all must take part, so this one guesses nothing
        own, chosen = np.arange(1), np.zeros_like(chosen)
    # As small as the parts that were asked for need, so that no thread waits for one that has it all. Where rows of any
    # length share a rectangle their padding is a part of it; else one rectangle would never hold them.
    total = lengths[own].sum() if like.stretch < math.inf else len(own) * lengths[own].max()
    limit = min(like.pieces, -(-int(total) // like.parts))
    flat: Flat = (ids, seen, chosen, np.cumsum(lengths))
    micro = [
        _padded(own[part], lengths, flat, like.pad)
        for part in near_equal(lengths[own], pieces=limit, rows=-(-len(own) // like.parts), stretch=like.stretch)
    ]
    return {"micro": micro, "masked": masked, "pieces": len(at)}


def _padded(lines: IntArray, lengths: IntArray, flat: Flat, pad: int) -> Micro:
    """Lines of a step as one rectangle."""
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
    """All rows once, in batches of like length, under masks that are always the same: for a dev loss."""
    like = _OneProcess(pieces, pad)
    for part in near_equal(examples.lengths, pieces=pieces, rows=len(examples)):
        yield from step_of(examples, part, part, masking=masking, epoch=0, like=like)["micro"]


class _OneProcess:
    """A stand-in for `Steps` of one process."""

    parts, rank, world, stretch = 1, 0, 1, STRETCH

    def __init__(self, pieces: int, pad: int) -> None:
        self.pieces, self.pad = pieces, pad
