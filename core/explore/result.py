"""Result of a `map` run: positions of its points, a table for other tools, and queries on the finished map.

artifacts/  map.parquet       x, y, (z,) id, text, class, score, row, corpus: for Embedding Atlas and notebooks
            coordinates.npy   (2 or 3, n) float32       rows.npy     (n,) int64, rows of T_C, then of D_C
            fitted.npy        (n,) bool, fitted by UMAP cluster.npy  (n,) int16
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TypedDict, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.corpora.columns import kept_values, matches, placed, stored, values
from core.corpora.corpus import Corpus
from core.corpora.hygiene import FLAGS
from core.corpora.library import Library
from core.explore.distinctive_words import Telling, count_words, telling_words
from core.files import read_back, replacing, save_array_atomic
from core.results import BoolArray, FloatArray, IntArray
from core.runs.context import RunContext
from core.runs.result import read as read_result
from core.runs.run import Run
from core.selection.result import Scored
from core.stats.draws import stratified
from core.text.sentence import place

TABLE = "map.parquet"
CLASSES = ("T_C", "selected", "filtered")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A cluster of points. name: words that are over-represented in its sentences. size: number of points."""

    name: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MapResult:
    """Result of a `map` run.

    points, task_points: number of points on the map, and of those from T_C. fitted: number of points that UMAP was
    fitted on. of: number of sentences of T_C and D_C. task, domain: fingerprints of T_C and D_C. clusters: topics; the
    index is a topic's number. layout: hash of the layout's inputs. embedded: {"task", "domain": id of the `embed` run}.
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
    """Positions of `n` points.

    coordinates: shape (2 or 3, n), float32. rows: rows in their corpus, shape (n,). fitted: mask of the points that
    UMAP was fitted on, shape (n,); the others lie between their neighbours. cluster: topics, shape (n,).
    """

    coordinates: FloatArray
    rows: IntArray
    fitted: BoolArray
    cluster: IntArray

    def write(self, run: Run) -> None:
        """Write one file per array."""
        for name in self.__slots__:
            save_array_atomic(run.artifacts / f"{name}.npy", getattr(self, name))

    @classmethod
    def read(cls, run: Run) -> Self:
        """Read the arrays as memory maps."""
        with read_back(run.artifacts, *(f"{name}.npy" for name in cls.__slots__)):
            return cls(**{name: np.load(run.artifacts / f"{name}.npy", mmap_mode="r") for name in cls.__slots__})


def table_file(run: Run) -> Path:
    """Return the path of the table."""
    return run.artifacts / TABLE


def write_table(
    context: RunContext,
    coordinates: FloatArray,
    kinds: IntArray,
    blocks: Iterable[tuple[Corpus, IntArray, FloatArray | None]],
) -> None:
    """Write the table for Embedding Atlas and notebooks: x, y, (z,) id, text, class, score, row, corpus.

    kinds: indices into `CLASSES`, shape (n,). blocks: (corpus, rows, scores) of all points, in the order of the map.
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
    """Return x, y and class (index into `CLASSES`) of all points. This works even if the corpora were removed."""
    with read_back(table_file(run)):
        table = pq.read_table(table_file(run), columns=["x", "y", "class"])
        kinds = np.array([CLASSES.index(name) for name in table["class"].to_pylist()], dtype=np.uint8)
    return table["x"].to_numpy(), table["y"].to_numpy(), kinds


def inside(x: FloatArray, y: FloatArray, polygon: Sequence[tuple[float, float]]) -> IntArray:
    """Return the indices of the points in a polygon, ascending, by the even-odd rule.

    An edge includes its lower end but not its upper end, so no corner counts twice. Points are sorted by y, and each
    edge is compared only with the points at its height. A million points and hundreds of edges take less than a second.
    x, y: shape (n,). A polygon with fewer than three corners is empty.
    """
    corners = np.asarray(polygon, dtype=np.float64).reshape(-1, 2)
    if len(corners) < 3:
        return np.empty(0, dtype=np.int64)
    (left, low), (right, high) = corners.min(axis=0), corners.max(axis=0)
    # First drop the points outside of the polygon's bounding box, which are most points of a large map.
    near = np.flatnonzero((x >= left) & (x <= right) & (y >= low) & (y <= high))
    near = near[np.argsort(y[near], kind="stable")]
    xs, ys = x[near].astype(np.float64), y[near].astype(np.float64)
    odd: BoolArray = np.zeros(len(near), dtype=bool)
    for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        # Skip horizontal edges, because the horizontal ray from a point does not cross them.
        if y1 != y2:
            first, last = np.searchsorted(ys, (min(y1, y2), max(y1, y2)))
            odd[first:last] ^= xs[first:last] < x1 + (ys[first:last] - y1) * (x2 - x1) / (y2 - y1)
    return np.sort(near[odd])


def within(x: FloatArray, y: FloatArray, x_span: tuple[float, float], y_span: tuple[float, float]) -> IntArray:
    """Return the indices of the points in a box, borders included. The two ends of a span may be in any order."""
    in_box = (x >= min(x_span)) & (x <= max(x_span)) & (y >= min(y_span)) & (y <= max(y_span))
    return np.flatnonzero(in_box)


WORD_SAMPLE = 20_000  # maximum number of sentences whose words are counted, in each set that `telling` compares

# A sentence of the map. point: number of the point. corpus: T_C or D_C. row: row in this corpus. class: value of
# `CLASSES`. score: NaN for T_C. flags: flags such as duplicate that are set.
MapRow = TypedDict(
    "MapRow",
    {
        "point": int,
        "corpus": str,
        "row": int,
        "id": str,
        "class": str,
        "score": float,
        "tokens": int,
        "flags": list[str],
        "text": str,
        "place": str,
        "file": str | None,
        "page": int | None,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hits:
    """Sentences that a search found.

    points: numbers of the found points on the map. rows, task_rows: rows of all found sentences in D_C and in T_C.
    """

    points: IntArray
    rows: IntArray
    task_rows: IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MapView:
    """A finished map of `n` points: sentences of T_C (the first `n_task`), then of D_C in row order.

    Neither torch nor UMAP is loaded: numbers are read from memory-mapped arrays, and text is read by column. selection:
    id of the `select` run. xy: positions, shape (2 or 3, n), float32. rows, fitted, cluster: see `Layout`. of: number
    of sentences of T_C and D_C, including those not on the map. embedded: {role: id of the run with its vectors}.
    """

    run_id: str
    selection: str
    task: Corpus
    domain: Corpus
    xy: FloatArray
    rows: IntArray
    n_task: int
    fitted: BoolArray
    cluster: IntArray
    clusters: Sequence[Topic]
    seed: int
    embedded: Mapping[str, str]

    @classmethod
    def read(cls, run: Run, library: Library) -> Self:
        """Read a finished `map` run. Errors: RunError, CorpusError."""
        result = read_result(run, MapResult)
        layout = Layout.read(run)
        return cls(
            run_id=run.id,
            selection=run.manifest.config["selection"],
            task=library.find(result.task),
            domain=library.find(result.domain),
            xy=layout.coordinates,
            rows=layout.rows,
            n_task=result.task_points,
            fitted=layout.fitted,
            cluster=layout.cluster,
            clusters=result.clusters,
            seed=run.manifest.config["seed"],
            embedded=result.embedded,
        )

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def of(self) -> int:
        return len(self.task) + len(self.domain)

    def classes(self, chosen: IntArray) -> IntArray:
        """Return the class of each point, an index into `CLASSES`, uint8, shape (n,). chosen: selected rows of D_C."""
        selected = np.zeros(len(self.domain), dtype=bool)
        selected[chosen] = True
        kinds = np.zeros(len(self), dtype=np.uint8)
        # `CLASSES`: 0 is T_C, 1 is selected, 2 is filtered.
        kinds[self.n_task :] = 2 - selected[self.rows[self.n_task :]]
        return kinds

    def draw(self, kinds: IntArray, n: int) -> IntArray:
        """Return up to `n` points to draw: from the points that UMAP was fitted on if they suffice, else from all."""
        # Prefer the fitted points, because the positions of other points are only interpolated between them.
        if n <= int(self.fitted.sum()):
            fitted = np.flatnonzero(self.fitted)
            return fitted[stratified(kinds[fitted], n, self.seed)]
        return stratified(kinds, n, self.seed)

    def lasso(self, polygon: Sequence[tuple[float, float]]) -> IntArray:
        """Return the points in a polygon in the plane of the first two axes, whether they are drawn or not."""
        return inside(self.xy[0], self.xy[1], polygon)

    def box(self, x0: float, x1: float, y0: float, y1: float) -> IntArray:
        """Return the points in a box in the plane of the first two axes, whether they are drawn or not."""
        return within(self.xy[0], self.xy[1], (x0, x1), (y0, y1))

    def points_of(self, rows: IntArray) -> IntArray:
        """Return the points of `rows` of D_C, ascending; rows that are not on the map are left out."""
        return self._points(rows, self.n_task, len(self))

    def domain_rows(self, points: IntArray) -> IntArray:
        """Return the rows of the sentences of D_C among `points`, in order."""
        points = np.asarray(points, dtype=np.int64)
        return np.asarray(self.rows[points[points >= self.n_task]])

    def values(
        self, points: IntArray, of_domain: FloatArray | IntArray, of_task: FloatArray | IntArray | None = None
    ) -> FloatArray:
        """Return the values of `points`, shape (m,), from arrays with one value per row of D_C and of T_C.

        If `of_task` is None, points of T_C have the value NaN.
        """
        points = np.asarray(points, dtype=np.int64)
        values = np.full(len(points), np.nan)
        task = points < self.n_task
        values[~task] = of_domain[self.rows[points[~task]]]
        if of_task is not None:
            values[task] = of_task[self.rows[points[task]]]
        return values

    def texts(self, points: IntArray) -> list[str]:
        """Return the text of `points`, in order."""
        return [str(text) for text in self.stored_at(points, "text")]

    def ids(self, points: IntArray) -> list[str]:
        """Return the sentence ids of `points` in hexadecimal."""
        return [f"{number:016x}" for number in self.stored_at(points, "id")]

    def places(self, points: IntArray) -> list[str]:
        """Return file and page of `points` in words, in order; "" if unknown."""
        if not (placed(self.task) or placed(self.domain)):
            return [""] * len(points)
        return [*map(place, self.stored_at(points, "file"), self.stored_at(points, "page"))]

    def stored_at(self, points: IntArray, name: str) -> list[object]:
        """Return the values of `points`, in order, in the column `name` of their corpora."""
        return self._at(points, lambda corpus: stored(corpus, name))

    def further_values(self, points: IntArray, name: str) -> list[str | None]:
        """Return the values of `points`, in order, in a further column of the imported files."""
        return cast(list[str | None], self._at(points, lambda corpus: values(corpus, name)))

    def coded(self, name: str, missing: str) -> tuple[Sequence[str], IntArray]:
        """Return the different values of a column, and the index of each point's value, int32, shape (n,).

        name: doc, group, file or a further column. missing: replaces missing values. The values are sorted by their
        first occurrence on the map.
        """
        sides = ((self.task, self.rows[: self.n_task]), (self.domain, self.rows[self.n_task :]))
        taken = [kept_values(corpus, name).take(pa.array(rows)) for corpus, rows in sides]
        column = pa.chunked_array([chunk for part in taken for chunk in part.chunks], pa.string())
        encoded = column.fill_null(missing).dictionary_encode().combine_chunks()
        held = [value or missing for value in encoded.dictionary.to_pylist()]  # an empty string counts as missing
        numbers = {value: number for number, value in enumerate(dict.fromkeys(held))}
        codes = np.array([numbers[value] for value in held], dtype=np.int32)
        return tuple(numbers), codes[encoded.indices.to_numpy()]

    def _at(self, points: IntArray, column: Callable[[Corpus], pa.ChunkedArray]) -> list[object]:
        points = np.asarray(points, dtype=np.int64)
        task = points < self.n_task
        cells = np.empty(len(points), dtype=object)
        for side, corpus in ((task, self.task), (~task, self.domain)):
            taken = column(corpus).take(pa.array(self.rows[points[side]])).to_pylist()
            # The extra None keeps numpy from turning lists of equal length into a two-dimensional array.
            cells[side] = np.array([*taken, None], dtype=object)[:-1]
        return list(cells)

    def table(self, points: IntArray, kinds: IntArray, scored: Scored) -> list[MapRow]:
        """Return the sentences of `points`, in order. kinds: class of every point of the map, shape (n,)."""
        scores = self.values(points, scored.scores.values).tolist()
        lengths = self.values(points, *(stored(c, "n_tokens").to_numpy() for c in (self.domain, self.task))).tolist()
        flags = self.values(points, scored.audit.mask, np.zeros(len(self.task))).astype(np.uint8).tolist()
        return [
            {
                "point": point,
                "corpus": "T_C" if point < self.n_task else "D_C",
                "row": int(self.rows[point]),
                "id": id,
                "class": CLASSES[kinds[point]],
                "score": score,
                "tokens": int(length),
                "flags": [flag for bit, flag in enumerate(FLAGS) if mask >> bit & 1],
                "text": text,
                "place": place(file, page),
                "file": file,
                "page": page,
            }
            for point, id, text, score, length, mask, file, page in zip(
                np.asarray(points).tolist(),
                self.ids(points),
                self.texts(points),
                scores,
                lengths,
                flags,
                cast(list[str | None], self.stored_at(points, "file")),
                cast(list[int | None], self.stored_at(points, "page")),
                strict=True,
            )
        ]

    def search(self, query: str, mode: Literal["substring", "words"]) -> Hits:
        """Return the sentences of D_C and T_C that contain `query`, ignoring case."""
        rows, task_rows = (matches(stored(corpus, "text"), query, mode) for corpus in (self.domain, self.task))
        points = np.concatenate([self._points(task_rows, 0, self.n_task), self.points_of(rows)])
        return Hits(points=points, rows=rows, task_rows=task_rows)

    def telling(self, points: IntArray, n: int) -> list[Telling]:
        """Return the `n` words that are most over-represented in `points`, compared with all other points.

        Words are counted in at most `WORD_SAMPLE` sentences of `points`, and in at most as many of all other points.
        """
        side = np.zeros(len(self), dtype=np.int64)
        side[np.asarray(points, dtype=np.int64)] = 1
        picked, others = (self._sample(np.flatnonzero(side == which)) for which in (1, 0))
        return telling_words(count_words(self.texts(picked)), count_words(self.texts(others)), n)

    def _sample(self, points: IntArray) -> IntArray:
        return points[stratified(np.zeros(len(points), dtype=np.int64), WORD_SAMPLE, self.seed)]

    def _points(self, rows: IntArray, start: int, stop: int) -> IntArray:
        """Return the points from `start` to `stop - 1` whose row is one of `rows`."""
        return start + np.flatnonzero(np.isin(self.rows[start:stop], rows))
