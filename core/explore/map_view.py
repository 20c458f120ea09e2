"""A finished map, looked at: no torch, no UMAP; numbers from memory-mapped arrays, text by column."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypedDict, cast

import numpy as np
import pyarrow as pa

from core.corpora.columns import matches, placed, stored, values
from core.corpora.corpus import Corpus
from core.corpora.hygiene import FLAGS
from core.corpora.library import Library
from core.explore.distinctive_words import Telling, count_words, telling_words
from core.explore.region import inside, within
from core.explore.result import CLASSES, Layout, MapResult, Topic
from core.results import BoolArray, FloatArray, IntArray
from core.runs.result import read as read_result
from core.runs.run import Run
from core.selection.result import Scored
from core.stats.draws import stratified
from core.text.sentence import place

WORD_SAMPLE = 20_000  # sentences of each side whose words are counted

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
    """Sentences that were searched for. points: those on the map. rows, task_rows: all of D_C's and T_C's."""

    points: IntArray
    rows: IntArray
    task_rows: IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MapView:
    """`n` points: sentences of T_C (the first `n_task`), then of D_C in row order.

    selection: id of the `select` run. xy: `(2 or 3, n)` float32. rows: `(n,)` rows of their corpus. fitted: `(n,)`
    whether UMAP was fitted on it; the others were placed between their neighbours. cluster: `(n,)` index into
    `clusters`. of: sentences of T_C and D_C in all, mapped or not. embedded: {role: the run with its vectors}.
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
        """A finished `map` run. Errors: RunError, CorpusError."""
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
        """`(n,)` uint8 indices into `CLASSES` when the rows `chosen` of D_C are selected."""
        selected = np.zeros(len(self.domain), dtype=bool)
        selected[chosen] = True
        kinds = np.zeros(len(self), dtype=np.uint8)
        # T_C's points stay 0; in the order of `CLASSES` what is selected is 1, the rest 2.
        kinds[self.n_task :] = 2 - selected[self.rows[self.n_task :]]
        return kinds

    def draw(self, kinds: IntArray, n: int) -> IntArray:
        """Up to `n` points to draw: those UMAP was fitted on where they are enough, else of all."""
        # These lie where the layout wants them; the others only between their neighbours.
        if n <= int(self.fitted.sum()):
            fitted = np.flatnonzero(self.fitted)
            return fitted[stratified(kinds[fitted], n, self.seed)]
        return stratified(kinds, n, self.seed)

    def lasso(self, polygon: Sequence[tuple[float, float]]) -> IntArray:
        """Points in a polygon over the first two axes, drawn or not."""
        return inside(self.xy[0], self.xy[1], polygon)

    def box(self, x0: float, x1: float, y0: float, y1: float) -> IntArray:
        """Points in a box."""
        return within(self.xy[0], self.xy[1], (x0, x1), (y0, y1))

    def points_of(self, rows: IntArray) -> IntArray:
        """The points of some rows of D_C, ascending; rows that are not on the map are left out."""
        return self._points(rows, self.n_task, len(self))

    def domain_rows(self, points: IntArray) -> IntArray:
        """The rows of D_C among `points`, in their order."""
        points = np.asarray(points, dtype=np.int64)
        return np.asarray(self.rows[points[points >= self.n_task]])

    def values(
        self, points: IntArray, of_domain: FloatArray | IntArray, of_task: FloatArray | IntArray | None = None
    ) -> FloatArray:
        """`(m,)` a column of both corpora at `points`; NaN for T_C where it has none."""
        points = np.asarray(points, dtype=np.int64)
        values = np.full(len(points), np.nan)
        task = points < self.n_task
        values[~task] = of_domain[self.rows[points[~task]]]
        if of_task is not None:
            values[task] = of_task[self.rows[points[task]]]
        return values

    def texts(self, points: IntArray) -> list[str]:
        """The sentences at `points`, in their order."""
        return [str(text) for text in self.stored_at(points, "text")]

    def ids(self, points: IntArray) -> list[str]:
        """Their ids, in hex digits."""
        return [f"{number:016x}" for number in self.stored_at(points, "id")]

    def places(self, points: IntArray) -> list[str]:
        """File and page of the sentences at `points` in words, in their order; "" where they are not known."""
        if not (placed(self.task) or placed(self.domain)):
            return [""] * len(points)
        return [*map(place, self.stored_at(points, "file"), self.stored_at(points, "page"))]

    def stored_at(self, points: IntArray, name: str) -> list[object]:
        """A column of both corpora at `points`, in their order."""
        return self._at(points, lambda corpus: stored(corpus, name))

    def further_values(self, points: IntArray, name: str) -> list[str | None]:
        """Values of a further column of the files that `points` came from, in their order."""
        return cast(list[str | None], self._at(points, lambda corpus: values(corpus, name)))

    def _at(self, points: IntArray, column: Callable[[Corpus], pa.ChunkedArray]) -> list[object]:
        points = np.asarray(points, dtype=np.int64)
        task = points < self.n_task
        cells = np.empty(len(points), dtype=object)
        for side, corpus in ((task, self.task), (~task, self.domain)):
            taken = column(corpus).take(pa.array(self.rows[points[side]])).to_pylist()
            cells[side] = np.array([*taken, None], dtype=object)[:-1]  # None: numpy makes lists of one length a table
        return list(cells)

    def table(self, points: IntArray, kinds: IntArray, scored: Scored) -> list[MapRow]:
        """Some points, in the order given."""
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
        """The sentences of D_C and T_C that hold `query`, in any case."""
        rows, task_rows = (matches(stored(corpus, "text"), query, mode) for corpus in (self.domain, self.task))
        points = np.concatenate([self._points(task_rows, 0, self.n_task), self.points_of(rows)])
        return Hits(points=points, rows=rows, task_rows=task_rows)

    def telling(self, points: IntArray, n: int) -> list[Telling]:
        """Words that tell `points` from the other points; of `WORD_SAMPLE` sentences of each side at most."""
        side = np.zeros(len(self), dtype=np.int64)
        side[np.asarray(points, dtype=np.int64)] = 1
        picked, others = (self._sample(np.flatnonzero(side == which)) for which in (1, 0))
        return telling_words(count_words(self.texts(picked)), count_words(self.texts(others)), n)

    def _sample(self, points: IntArray) -> IntArray:
        return points[stratified(np.zeros(len(points), dtype=np.int64), WORD_SAMPLE, self.seed)]

    def _points(self, rows: IntArray, start: int, stop: int) -> IntArray:
        """Points between `start` and `stop`, whose rows ascend, that have one of `rows`."""
        return start + np.flatnonzero(np.isin(self.rows[start:stop], rows))
