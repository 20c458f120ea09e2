"""Mentions and how difficult they are: one row a mention of `artifacts/mentions.parquet`."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from core.files import read_back, replacing

Bin = Literal["low", "near_zero", "high"]
BINS: tuple[Bin, ...] = ("low", "near_zero", "high")
BAND = 0.5  # bits: below it, and above its negative, CEIM is near zero (Ma et al. 2023, 2.3)

_SCHEMA = pa.schema(
    {
        "row": pa.int64(),
        "sentence": pa.string(),
        "start": pa.int32(),
        "end": pa.int32(),
        "type": pa.string(),
        "surface": pa.string(),
        "pvi_entity": pa.float64(),
        "pvi_context": pa.float64(),
        "ceim": pa.float64(),
        "bin": pa.string(),
        "fold": pa.int32(),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One entity in its sentence, and the PVI of its name and of its context.

    row: of the sentence in its corpus. sentence: its id. start, end: half-open word offsets. surface: the words,
    a space between. pvi_entity, pvi_context, ceim: bits, the mean over repeats; ceim = pvi_entity - pvi_context.
    fold: 0-based, of the first repeat: which models did not train on it.
    """

    row: int
    sentence: str
    start: int
    end: int
    type: str
    surface: str
    pvi_entity: float
    pvi_context: float
    ceim: float
    bin: Bin
    fold: int


def bin_of(ceim: float) -> Bin:
    """`low`: the context tells more; `high`: the name does; `near_zero`: neither by half a bit."""
    # Both borders belong to the outer bins, as printed: low at most -.5, high at least .5.
    return "low" if ceim <= -BAND else "high" if ceim >= BAND else "near_zero"


def write(mentions: Iterable[Mention], path: Path) -> None:
    """Write one Parquet row a mention, in the order given."""
    with replacing(path) as file:
        pq.write_table(pa.Table.from_pylist([asdict(mention) for mention in mentions], schema=_SCHEMA), file)


def read(path: Path) -> list[Mention]:
    """Read the mentions of `path`; columns that `Mention` lacks are passed over."""
    names = [field.name for field in fields(Mention)]
    with read_back(path):
        return [Mention(**row) for row in pq.read_table(path, columns=names).to_pylist()]
