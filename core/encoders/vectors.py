"""Sentence vectors, written by `embed` runs, and word vectors, written by `vectors` and `vectors-import` runs.

artifacts/  vectors-000012.npy  (1,) record of m <= 8,192 sentences: (m, d) float16 rows of length 1, (m,) float32 norms
            norms.npy           (n,) float32, norms of the sentence vectors before they were scaled to length 1
            vectors.npy         word vectors, (n, d) float32; in older `embed` runs, sentence vectors, float16
            words.txt           one word per line, the most frequent first, or in the order of the imported file
artifacts/vectors/ of a `cascade` run
            first0-000012.npy   as vectors-000012.npy, for the run's random sample; the digit after `first` numbers the
                                encoders from 0
            first.npy           (k,) int64, the rows of D_C in that sample
            further0-*.npy      as first0-*.npy, for the best-ranked sentences
            further.npy         as first.npy, for the best-ranked sentences
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from core.corpora.corpus import Corpus
from core.errors import ConfigError, RunError, Unfinished
from core.files import read_back, save_array_atomic, write_atomic
from core.models.encoder import EncoderOptions
from core.results import FloatArray, Index, IntArray, Rows
from core.runs import result
from core.runs.run import Run
from core.runs.store import RunStore, is_run_id
from core.selection.strategies.cosine import Joined
from core.text.words import Tokens

if TYPE_CHECKING:
    from core.models.word_features import Vectors

# Name of the kind of run that embeds some sentences of a corpus.
CASCADE = "cascade"
# Name of the kind of run that imports word vectors.
IMPORT = "vectors-import"
# Mean cosine above which word vectors hardly differ. Skip-gram vectors learnt from Wikipedia have 0.99 with 30,000
# tokens, 0.90 with 100,000, 0.78 with 300,000, 0.71 with 555,000 (tests/lab/benchmarks/RESULTS.md).
ALIKE = 0.9
# Maximum number of files that are open at a time. A process can usually open only 1,024.
_OPEN = 64
_VECTORS, _NORMS, _WORDS, _SHARD = "vectors.npy", "norms.npy", "words.txt", "vectors"
# The two sets of sentences that a `cascade` run embeds: a random sample, and the best-ranked sentences.
Part = Literal["first", "further"]
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedResult:
    """Result of an `embed` run. rows: number of sentences. dimension: numbers per vector."""

    rows: int
    dimension: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorsResult:
    """Result of a `vectors` run.

    words: number of words with a vector. dimension: numbers per vector. tokens: number of tokens read. cut: how the
    text was tokenised. mean_cosine: mean cosine of all pairs of word vectors; None in results of older versions.
    """

    words: int
    dimension: int
    tokens: int
    cut: Tokens = "blanks"
    mean_cosine: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """Result of a `vectors-import` run.

    words: number of words with a vector. dimension: numbers per vector. again: number of lines skipped because their
    word occurred before. unusable: number of lines skipped because their word cannot be a token. whole: True if the
    file was read to its end.
    """

    name: str
    words: int
    dimension: int
    again: int
    unusable: int
    whole: bool

    @property
    def says(self) -> str:
        """Return the number of words and dimensions as text for users."""
        part = "" if self.whole else " (the first in the file)"
        return f"{self.words:,} words of {self.dimension:,} numbers{part}"


class Shards:
    """Rows of several files as one array `(n, d)`; a file is opened when its rows are read."""

    def __init__(self, paths: Sequence[Path], rows: Sequence[int], load: Callable[[Path], FloatArray]) -> None:
        """Make one array of several files.

        rows: number of rows per file. load: function that returns the rows of a file, memory-mapped.
        """
        self._starts = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
        self._paths, self._load = list(paths), lru_cache(_OPEN)(load)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, rows: Index, /) -> FloatArray:
        """Return the selected rows, indexed as in numpy: a slice within one file is a view, all else is a copy."""
        if isinstance(rows, slice) and rows.step in (None, 1):
            return self._run(*rows.indices(len(self))[:2])
        if isinstance(rows, slice):
            return self._gather(np.arange(len(self))[rows])
        if isinstance(rows, int):
            return self._gather(np.array([rows]))[0]  # type: ignore[no-any-return]
        if rows.dtype == np.bool_ and len(rows) != len(self):
            raise IndexError(f"mask of {len(rows)} values for {len(self)} rows")
        picked: IntArray = np.flatnonzero(rows) if rows.dtype == np.bool_ else np.asarray(rows, dtype=np.int64)
        return self._gather(picked)

    def _part(self, i: int) -> FloatArray:
        with read_back(self._paths[i]):
            part = self._load(self._paths[i])
        if len(part) != self._starts[i + 1] - self._starts[i]:
            raise RunError(
                f"{self._paths[i]}: its number of rows has changed; remove the run that wrote it, and start that run "
                "again."
            )
        return part

    def _run(self, start: int, stop: int) -> FloatArray:
        first = int(np.searchsorted(self._starts, start, "right")) - 1
        parts = []
        # Use `min`, because an empty slice at the end of the array would begin after the last file.
        for i in range(min(first, len(self._paths) - 1), len(self._paths)):
            low, high = max(start - self._starts[i], 0), stop - self._starts[i]
            parts.append(self._part(i)[low : max(high, low)])
            if stop <= self._starts[i + 1]:
                break
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _gather(self, rows: IntArray) -> FloatArray:
        rows = np.where(rows < 0, rows + len(self), rows).astype(np.int64)
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"row out of range: there are {len(self)} rows")
        parts = np.searchsorted(self._starts, rows, "right") - 1
        order = np.argsort(parts, kind="stable")  # sorted, so that each file is opened only once
        result = np.empty((len(rows), self._part(0).shape[1]), self._part(0).dtype)
        for places in np.split(order, np.flatnonzero(np.diff(parts[order])) + 1) if len(rows) else ():
            i = int(parts[places[0]])
            result[places] = self._part(i)[rows[places] - self._starts[i]]
        return result


class Some:
    """Array `(n, d)` with a row for each of the n sentences of a corpus; rows of sentences without a vector are 0."""

    def __init__(self, n: int, rows: IntArray, vectors: Rows) -> None:
        """Make an array for `n` sentences. rows: `(m,)`, the corpus row of each vector. vectors: `(m, d)`."""
        self._vectors, self._places = vectors, np.full(n, -1, dtype=np.int64)
        self._places[rows] = np.arange(len(rows))

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, rows: Index, /) -> FloatArray:
        places = np.atleast_1d(self._places[rows])
        found = np.array(self._vectors[np.maximum(places, 0)])
        found[places < 0] = 0
        return found[0] if isinstance(rows, int) else found


def shard(vectors: FloatArray, norms: FloatArray) -> npt.NDArray[np.void]:
    """Return the record to store in a file of sentence vectors: the vectors, followed by their norms."""
    record = np.dtype([("vectors", np.float16, vectors.shape), ("norms", np.float32, norms.shape)])
    result = np.empty(1, dtype=record)
    result["vectors"], result["norms"] = vectors, norms
    return result


def shards(run: Run) -> tuple[str, Path]:
    """Return the prefix and the folder of an `embed` run's files of sentence vectors."""
    return _SHARD, run.artifacts


def write_norms(run: Run, paths: Sequence[Path]) -> None:
    """Write the norms of all sentences to one small file. paths: files that hold a `shard` each."""
    norms = [np.load(path, mmap_mode="r")["norms"][0] for path in paths]
    save_array_atomic(run.artifacts / _NORMS, np.concatenate(norms))


def read(run: Run) -> tuple[Rows, FloatArray]:
    """Return `(vectors, norms)` of a finished `embed` run; the vectors are memory-mapped."""
    with read_back(run.artifacts, _NORMS):
        norms = np.load(run.artifacts / _NORMS)
        paths = sorted(run.artifacts.glob(f"{_SHARD}-*.npy"))
        if not paths:
            with read_back(run.artifacts / _VECTORS):
                return np.load(run.artifacts / _VECTORS, mmap_mode="c"), norms
        sizes = [len(_vectors_of(path)) for path in paths]
        if sum(sizes) != len(norms):
            raise ValueError(f"{sum(sizes)} vectors, {len(norms)} norms")
        return Shards(paths, sizes, _vectors_of), norms


def _of_files(paths: Sequence[Path]) -> tuple[Rows, FloatArray]:
    """Return `(vectors, norms)` of files that hold a `shard` each; the vectors are memory-mapped."""
    norms = [np.load(path, mmap_mode="r")["norms"][0] for path in paths]
    return Shards(paths, [len(part) for part in norms], _vectors_of), np.concatenate(norms)


def _vectors_of(path: Path) -> FloatArray:
    vectors: FloatArray = np.load(path, mmap_mode="c")["vectors"][0]
    return vectors


def read_joined(runs: Sequence[Run], options: Mapping[str, object]) -> tuple[Rows, FloatArray]:
    """Return `(vectors, norms)` of finished `embed` runs on one corpus; several runs are joined side by side.

    options: options of the strategy that uses the vectors.
    """
    return _joined([read(run) for run in runs], options)


def _joined(halves: Sequence[tuple[Rows, FloatArray]], options: Mapping[str, object]) -> tuple[Rows, FloatArray]:
    if len(halves) == 1:
        return halves[0]
    joined = Joined(halves, raw=options["halves"] == "raw")
    return joined, joined.norms


def some(run: Run, part: Part, encoder: int) -> tuple[str, Path]:
    """Return the prefix and the folder of the vector files of one encoder in a `cascade` run.

    encoder: its number in the run, from 0. Exported projects do not contain this folder.
    """
    return f"{part}{encoder}", run.artifacts / _SHARD


def write_rows(run: Run, part: Part, rows: IntArray) -> None:
    """Write the row numbers of the D_C sentences that a part of a `cascade` run has embedded."""
    save_array_atomic(run.artifacts / _SHARD / f"{part}.npy", rows)


def read_some(run: Run, n: int, options: Mapping[str, object]) -> tuple[Rows, FloatArray]:
    """Return `(vectors, norms)` of a `cascade` run; zeros for sentences that were not embedded.

    n: number of sentences in D_C. options: options of the strategy that uses the vectors. Errors: RunError.
    """
    folder = run.artifacts / _SHARD
    parts = [part for part in PARTS if part == PARTS[0] or (folder / f"{part}.npy").exists()]
    with read_back(folder, *(f"{part}.npy" for part in parts)):
        rows = np.concatenate([np.load(folder / f"{part}.npy") for part in parts])
        halves = list[tuple[Rows, FloatArray]]()
        while paths := [path for part in parts for path in sorted(folder.glob(f"{part}{len(halves)}-*.npy"))]:
            found, own = _of_files(paths)
            norms = np.zeros(n, dtype=np.float32)
            norms[rows] = own
            halves.append((Some(n, rows, found), norms))
        return _joined(halves, options)


def read_any(run: Run, n: int, options: Mapping[str, object]) -> tuple[Rows, FloatArray]:
    """Return `(vectors, norms)` of an `embed` or a `cascade` run. n, options: see `read_some`. Errors: RunError."""
    return read_some(run, n, options) if run.manifest.kind == CASCADE else read(run)


def find(store: RunStore, config: Mapping[str, object], corpus: Corpus) -> tuple[Rows, FloatArray] | None:
    """Return `(vectors, norms)` of a corpus from a finished `embed` run; None if there is no such run.

    config: options of another run; the `embed` run must have the same encoder options.
    """
    names = [name for name in EncoderOptions.model_fields if name != "weights" or config["weights"]]
    wanted = {name: config[name] for name in names} | {"corpus": corpus.fingerprint}
    for run in store.list("embed"):
        if wanted.items() <= run.manifest.config.items() and run.state().state == "succeeded":
            return read(run)
    return None


def write_words(run: Run, words: Sequence[str], values: FloatArray) -> None:
    """Write the words and word vectors of a run. values: `(n, d)`, one vector per word."""
    write_atomic(run.artifacts / _WORDS, "\n".join(words).encode())
    save_array_atomic(run.artifacts / _VECTORS, values.astype(np.float32, copy=False))


def read_words(run: Run) -> "Vectors":
    """Return the words and word vectors of a finished `vectors` or `vectors-import` run."""
    from core.models.word_features import Vectors

    with read_back(run.artifacts, _WORDS, _VECTORS):
        words = (run.artifacts / _WORDS).read_text(encoding="utf-8").split("\n")
        values = np.load(run.artifacts / _VECTORS)
    cut: Tokens = "blanks" if run.manifest.kind == IMPORT else result.read(run, VectorsResult).cut
    return Vectors(words=tuple(words), values=values, tokens=cut)


def mean_cosine(values: FloatArray) -> float:
    """Return the mean cosine of all pairs of different words. values: `(n, d)`; 0 for fewer than two words."""
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    unit = (values / np.maximum(norms, np.finfo(np.float32).tiny)).astype(np.float64)
    n = len(unit)
    # The sum over all pairs is |sum of the unit vectors|², minus each word's cosine with itself.
    return float((np.square(unit.sum(axis=0)).sum() - np.square(unit).sum()) / (n * (n - 1))) if n > 1 else 0.0


def alike_words(cosine: float | None) -> str:
    """Return a warning if word vectors hardly differ; "" if the mean cosine is at most `ALIKE` or unknown."""
    if cosine is None or cosine <= ALIKE:
        return ""
    return (
        f"The word vectors are nearly all alike (mean cosine of two words {cosine:.2f}), so comparing them reveals"
        " little. Learn word vectors from 300,000 tokens or more."
    )


def imports(store: RunStore) -> dict[str, ImportResult]:
    """Return finished imports of word vectors by run id, newest first."""
    return {run.id: result.read(run, ImportResult) for run in store.list(IMPORT, state="succeeded")}


def find_import(option: str, reference: str, store: RunStore) -> tuple[str, ImportResult]:
    """Return `(run id, result)` of a finished import.

    option: name of the option, for the error message. reference: name or run id of the import.

    Errors: ConfigError if there is none, Unfinished if the import has not finished.
    """
    here = imports(store)
    for run_id, imported in here.items():
        if reference in (run_id, imported.name):
            return run_id, imported
    if is_run_id(reference) and store.get(reference).manifest.kind == IMPORT:
        raise Unfinished(f"{option}: {reference} has not finished; wait until it ends, or resume it.")
    names = ", ".join(sorted(imported.name for imported in here.values())[:20]) or "none"
    raise ConfigError(
        f"{option}: {reference[:80]!r} is not the name of imported word vectors (imported: {names}). Import "
        "them with `python -m core vectors add FILE --name NAME`."
    )
