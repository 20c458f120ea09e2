"""Training sets of one size with more or fewer mentions of a CEIM bin: S3's Fig. 4 and Table 3 (SPEC A6).

A mention stands for its sentence, which is taken once and keeps all its labels. Sets of other shares under the same
seed are drawn in the same order, so the sentences of a bin in a smaller share are among those of a larger one.
"""

from collections.abc import Callable, Sequence
from random import Random

from core.errors import ConfigError
from core.reconstruction.training import Rebuilt, Training

LOW = "low"


def low_share(training: Training, share: float, size: int, seed: int) -> Rebuilt:
    """Fig. 4: `size` sentences, `share` of them for a low-CEIM mention, the others for one that is not.

    Errors: ConfigError where there are not so many.
    """
    n_low = round(share * size)
    low = _drawn(training, lambda bin: bin == LOW, n_low, seed=seed, taken=set(), name="low-CEIM")
    rest = _drawn(
        training,
        lambda bin: bin not in ("", LOW),
        size - n_low,
        seed=seed,
        taken=set(low),
        name="near-zero- or high-CEIM",
    )
    return _set(training, low + rest)


def base_and(training: Training, bin: str, size: int, seed: int) -> Rebuilt:
    """Table 3: `size` sentences for any mention, and `size` more for mentions of `bin`. Errors: as `low_share`."""
    base = _drawn(training, bool, size, seed=seed, taken=set(), name="measured")
    more = _drawn(training, lambda found: found == bin, size, seed=seed, taken=set(base), name=f"{bin}-CEIM")
    return _set(training, base + more)


def _drawn(
    training: Training, inside: Callable[[str], bool], n: int, *, seed: int, taken: set[int], name: str
) -> list[int]:
    """`n` rows, none of `taken`, in the order of mentions drawn at random from those whose bin is `inside`."""
    pool = [m for m, bin in enumerate(training.bins) if training.free[m] and inside(bin)]
    order = dict.fromkeys(int(training.rows[m]) for m in Random(seed).sample(pool, len(pool)))
    rows = [row for row in order if row not in taken]
    if len(rows) < n:
        raise ConfigError(
            f"size: {n:,} sentences with a {name} mention are wanted and {len(rows):,} are there; give a smaller size"
            " or another share."
        )
    return rows[:n]


def _set(training: Training, rows: Sequence[int]) -> Rebuilt:
    return Rebuilt(sentences=[training.sentences[row] for row in sorted(rows)], edits=[])
