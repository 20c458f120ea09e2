"""What a `map` run leaves: where its points lie, and a table for others.

artifacts/  map.parquet       x, y, (z,) id, text, class, score, row, corpus: for Embedding Atlas and notebooks
            coordinates.npy   (2 or 3, n) float32       rows.npy     (n,) int64, rows of T_C, then of D_C
            fitted.npy        (n,) whether UMAP saw it  cluster.npy  (n,) int16
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.corpora.corpus import Corpus
from core.files import read_back, replacing, save_array_atomic
from core.results import BoolArray, FloatArray, IntArray
from core.runs.context import RunContext
from core.runs.run import Run

TABLE = "map.parquet"
CLASSES = ("T_C", "selected", "filtered")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Sentences that lie together. name: the words that tell them from the others. size: points."""

    name: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MapResult:
    """Result of a `map` run.

    points, task_points: on the map, in all and of T_C. fitted: points that UMAP saw. of: sentences of T_C and D_C in
    all. task, domain: their fingerprints. clusters: by number. layout: equal where the layout must be. embedded:
    {"task", "domain": id of the `embed` run}.
    """

    points: int
    task_points: int
    fitted: int
    of: int
    task: str
    domain: str
    clusters: Sequence[Topic]
    layout: str
    embedded: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """Places of `n` points. coordinates: `(2 or 3, n)` float32. rows: `(n,)` of their corpus. fitted: `(n,)` whether
    UMAP was fitted on it; the others were placed between their neighbours. cluster: `(n,)` its topic."""

    coordinates: FloatArray
    rows: IntArray
    fitted: BoolArray
    cluster: IntArray

    def write(self, run: Run) -> None:
        """A file an array."""
        for name in self.__slots__:
            save_array_atomic(run.artifacts / f"{name}.npy", getattr(self, name))

    @classmethod
    def read(cls, run: Run) -> Self:
        """Memory-mapped."""
        with read_back(run.artifacts, *(f"{name}.npy" for name in cls.__slots__)):
            return cls(**{name: np.load(run.artifacts / f"{name}.npy", mmap_mode="r") for name in cls.__slots__})


# A sentence of the map. point: its number there. corpus: T_C or D_C. row: its place in that. class: one of `CLASSES`.
# score: NaN for T_C. flags: those that hold.


def table_file(run: Run) -> Path:
    """The path of the table."""
    return run.artifacts / TABLE


def write_table(
    context: RunContext,
    coordinates: FloatArray,
    kinds: IntArray,
    blocks: Iterable[tuple[Corpus, IntArray, FloatArray | None]],
) -> None:
    """x, y, (z,) id, text, class, score, row, corpus: what Embedding Atlas and notebooks open.

    kinds: `(n,)` indices into `CLASSES`. blocks: all points in order, rows of one corpus and their scores.
    """
    axes = ["x", "y", "z"][: len(coordinates)]
    schema = pa.schema(
        [
            *((axis, pa.float32()) for axis in axes),
            ("id", pa.string()),
            ("text", pa.string()),
            ("class", pa.string()),
            ("score", pa.float64()),
            ("row", pa.int64()),
            ("corpus", pa.string()),
        ]
    )
    path, done = table_file(context.run), 0
    with replacing(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for corpus, rows, scores in blocks:
            context.check()
            context.progress(done, len(kinds), "sentences")
            here = slice(done, done + len(rows))
            sentences = corpus.take(rows)
            known = np.full(len(rows), np.nan) if scores is None else scores
            columns: dict[str, object] = {axis: values[here] for axis, values in zip(axes, coordinates, strict=True)}
            columns |= {"id": [s.id for s in sentences], "text": [s.text for s in sentences]}
            columns |= {"class": [CLASSES[kind] for kind in kinds[here].tolist()]}
            columns |= {"score": pa.array(known, from_pandas=True), "row": rows, "corpus": [corpus.name] * len(rows)}
            writer.write_table(pa.table(columns, schema=schema))
            done += len(rows)
    context.artifact("map", path)


def read_points(run: Run) -> tuple[FloatArray, FloatArray, IntArray]:
    """x, y and class (an index into `CLASSES`) of all points, which no corpus is needed for."""
    with read_back(table_file(run)):
        table = pq.read_table(table_file(run), columns=["x", "y", "class"])
        kinds = np.array([CLASSES.index(name) for name in table["class"].to_pylist()], dtype=np.uint8)
    return table["x"].to_numpy(), table["y"].to_numpy(), kinds
