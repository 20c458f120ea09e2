"""What a `difficulty` run leaves: its result, and the mentions that it measured.

artifacts/mentions.parquet    see `difficulty.mentions`
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.bias import mentions as table
from core.bias.mentions import Mention
from core.runs.context import RunContext
from core.runs.run import Run

_FILE = "mentions.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bits:
    """Bits a mention that names tell, and that contexts tell."""

    entity: float
    context: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BinBits:
    """The same of a bin of CEIM; None where no mention is in it."""

    entity: float | None
    context: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """95% intervals of what names and contexts tell, (low, high) in bits a mention."""

    entity: tuple[float, float]
    context: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeDifficulty:
    """A type's mentions. entity, context, ceim: mean PVI of its names and contexts and their difference, bits. prior:
    -log2 of its share, the most that PVI can come to. bins: {bin of CEIM: mentions}."""

    mentions: int
    entity: float
    context: float
    ceim: float
    prior: float
    bins: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifficultyResult:
    """Result of a `difficulty` run; bits throughout.

    mentions: judged, in so many `sentences`. v_information: mean PVI of all, with `intervals`. entropy: of the types,
    the most that there is to tell. by_type: frequent types first. ceim: {bin: mentions}; mean_pvi: {bin: mean PVI}.
    repeats: mean PVI of each cross-validation, of so many `folds`. grouped_by: what is never on both sides of a fold.
    strength: {view: mean strength of the calibration}, where there was one. settings: {view: how it was trained}.
    notes: sentences that a reader should know. corpus: its fingerprint. seconds: of all trainings.
    """

    mentions: int
    sentences: int
    v_information: Bits
    intervals: Intervals
    entropy: float
    by_type: Mapping[str, TypeDifficulty]
    ceim: Mapping[str, int]
    mean_pvi: Mapping[str, BinBits]
    repeats: Sequence[Bits]
    folds: int
    grouped_by: str
    strength: Mapping[str, float]
    settings: Mapping[str, Mapping[str, int | float | str | bool]]
    notes: Sequence[str]
    corpus: str
    seconds: float


def file(run: Run) -> Path:
    """The path of the table."""
    return run.artifacts / _FILE


def write(context: RunContext, mentions: Iterable[Mention]) -> None:
    """Write them in the order of the corpus, which numbers them."""
    path = file(context.run)
    table.write(mentions, path)
    context.artifact("mentions", path)


def read(run: Run) -> list[Mention]:
    """Read what `write` wrote."""
    return table.read(file(run))
