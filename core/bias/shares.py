"""Training sets of one size with more or fewer low-CEIM mentions: Ma et al. 2023, Fig. 4 and Table 3.

A mention stands for its sentence, which is taken once and keeps all its labels. A share is the share of sentences that
hold a low-CEIM mention; the other sentences hold none. The share of mentions is lower, because a sentence with a
low-CEIM mention holds others too: each set reports it (`Rebuilt.low`, `Rebuilt.measured`). Sets of other shares under
the same seed are drawn in the same order, so the low sentences of a smaller share are among those of a larger one.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from core.bias.training_sentences import Rebuilt, Training
from core.errors import ConfigError

LOW = "low"


class Mark(NamedTuple):
    """A measured mention. row: of its sentence. bin: of its CEIM."""

    row: int
    bin: str


class Drawn(NamedTuple):
    """Rows of a set. low, measured: its low-CEIM mentions, and all its mentions that have a CEIM."""

    rows: list[int]
    low: int
    measured: int


def low_share(training: Training, share: float, size: int, seed: int) -> Rebuilt:
    """Draw the sets of Fig. 4: `size` sentences, `share` of them with a low-CEIM mention, the others without one.

    Errors: ConfigError if there are too few of either.
    """
    return _set(training, low_share_rows(_marks(training), share, size, seed))


def base_and(training: Training, bin: str, size: int, seed: int) -> Rebuilt:
    """Draw the sets of Table 3: `size` random sentences and, unless `bin` is "none", `size` more with a mention of it.

    Errors: as `low_share`.
    """
    return _set(training, base_and_rows(_marks(training), bin, size, seed))


def low_share_rows(marks: Sequence[Mark], share: float, size: int, seed: int) -> Drawn:
    """Choose the rows of `low_share`. marks: measured mentions, in their order. Errors: as `low_share`."""
    n_low, with_low = round(share * size), _with_low(marks)
    low = _draw(marks, lambda mark: mark.bin == LOW, n_low, seed=seed, excluded=set(), name="with a low-CEIM mention")
    others = _draw(
        marks,
        lambda mark: mark.row not in with_low,
        size - n_low,
        seed=seed,
        excluded=set(),
        name="with near-zero- or high-CEIM mentions only",
    )
    return _drawn(marks, low + others)


def base_and_rows(marks: Sequence[Mark], bin: str, size: int, seed: int) -> Drawn:
    """Choose the rows of `base_and`; sentences that are added for another bin hold no low-CEIM mention.

    marks, errors: as `low_share_rows`.
    """
    base = _draw(marks, lambda mark: True, size, seed=seed, excluded=set(), name="with a measured mention")
    if bin == "none":
        return _drawn(marks, base)
    with_low = set() if bin == LOW else _with_low(marks)
    name = f"with a {bin}-CEIM mention" + " and no low-CEIM mention" * (bin != LOW)
    excluded = {*base, *with_low}
    return _drawn(
        marks, base + _draw(marks, lambda mark: mark.bin == bin, size, seed=seed, excluded=excluded, name=name)
    )


def _with_low(marks: Sequence[Mark]) -> set[int]:
    return {mark.row for mark in marks if mark.bin == LOW}


def _marks(training: Training) -> list[Mark]:
    measured = zip(training.rows.tolist(), training.bins, training.free.tolist(), strict=True)
    return [Mark(row, bin) for row, bin, free in measured if free and bin]


def _draw(
    marks: Sequence[Mark], in_pool: Callable[[Mark], bool], n: int, *, seed: int, excluded: set[int], name: str
) -> list[int]:
    """Draw `n` rows, none of `excluded`: those of the mentions in the pool, in a random order."""
    # A whole shuffle cut at `n`, not a sample of `n`: a smaller share is then a prefix of a larger one (same seed).
    pool = [mark.row for mark in marks if in_pool(mark)]
    rows = [row for row in dict.fromkeys(Random(seed).sample(pool, len(pool))) if row not in excluded]
    if len(rows) < n:
        raise ConfigError(
            f"size: {n:,} sentences {name} are needed, and the training set has {len(rows):,}. Give a smaller size or"
            " another share."
        )
    return rows[:n]


def _drawn(marks: Sequence[Mark], rows: list[int]) -> Drawn:
    of_set = set(rows)
    bins = [mark.bin for mark in marks if mark.row in of_set]
    return Drawn(rows, low=bins.count(LOW), measured=len(bins))


def _set(training: Training, drawn: Drawn) -> Rebuilt:
    sentences = [training.sentences[row] for row in sorted(drawn.rows)]
    return Rebuilt(sentences=sentences, edits=[], low=drawn.low, measured=drawn.measured)
