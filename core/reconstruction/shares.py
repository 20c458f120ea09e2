"""Training sets of one size with more or fewer mentions of a CEIM bin: Ma et al. 2023, Fig. 4 and Table 3.

A mention stands for its sentence, which is taken once and keeps all its labels. Sets of other shares under the same
seed are drawn in the same order, so the sentences of a bin in a smaller share are among those of a larger one.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from core.errors import ConfigError
from core.reconstruction.training import Rebuilt, Training

LOW = "low"


class Mark(NamedTuple):
    """A measured mention. row: of its sentence. bin: of its CEIM."""

    row: int
    bin: str


def low_share(training: Training, share: float, size: int, seed: int) -> Rebuilt:
    """Fig. 4: `size` sentences, `share` of them for a low-CEIM mention, the others for one that is not.

    Errors: ConfigError where there are not so many.
    """
    return _set(training, low_share_rows(_marks(training), share, size, seed))


def base_and(training: Training, bin: str, size: int, seed: int) -> Rebuilt:
    """Table 3: `size` sentences for any mention, and `size` more for mentions of `bin`, unless that is "none".

    Errors: as `low_share`.
    """
    return _set(training, base_and_rows(_marks(training), bin, size, seed))


def low_share_rows(marks: Sequence[Mark], share: float, size: int, seed: int) -> list[int]:
    """Choose the rows of `low_share`. marks: of measured mentions, in their order. Errors: as `low_share`."""
    # The second draw excludes the sentences of the first: one with mentions of both bins would come twice.
    n_low = round(share * size)
    low = _draw(marks, lambda bin: bin == LOW, n_low, seed=seed, excluded=set(), name="low-CEIM")
    name = "near-zero- or high-CEIM"
    return low + _draw(marks, lambda bin: bin != LOW, size - n_low, seed=seed, excluded=set(low), name=name)


def base_and_rows(marks: Sequence[Mark], bin: str, size: int, seed: int) -> list[int]:
    """Choose the rows of `base_and`. marks, errors: as `low_share_rows`."""
    base = _draw(marks, bool, size, seed=seed, excluded=set(), name="measured")
    if bin == "none":
        return base
    return base + _draw(marks, lambda other: other == bin, size, seed=seed, excluded=set(base), name=f"{bin}-CEIM")


def _marks(training: Training) -> list[Mark]:
    measured = zip(training.rows.tolist(), training.bins, training.free.tolist(), strict=True)
    return [Mark(row, bin) for row, bin, free in measured if free and bin]


def _draw(
    marks: Sequence[Mark], in_pool: Callable[[str], bool], n: int, *, seed: int, excluded: set[int], name: str
) -> list[int]:
    """`n` rows, none of `excluded`, in the order of mentions drawn at random from those whose bin is `in_pool`."""
    # A whole shuffle cut at `n`, not a sample of `n`: a smaller share is then a prefix of a larger one (same seed).
    pool = [mark.row for mark in marks if in_pool(mark.bin)]
    rows = [row for row in dict.fromkeys(Random(seed).sample(pool, len(pool))) if row not in excluded]
    if len(rows) < n:
        raise ConfigError(
            f"size: {n:,} sentences with a {name} mention are wanted and {len(rows):,} are there; give a smaller size"
            " or another share."
        )
    return rows[:n]


def _set(training: Training, rows: Sequence[int]) -> Rebuilt:
    return Rebuilt(sentences=[training.sentences[row] for row in sorted(rows)], edits=[])
