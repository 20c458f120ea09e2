"""Vectors of sentences, which an `embed` run leaves, and of words, which a `vectors` or a
`vectors-import` run leaves.

artifacts/  vectors-000012.npy  (1,) of 8,192 sentences: (m, d) float16 rows of length 1, then their (m,) norms
            norms.npy           (n,) float32, of sentences before they were made as long as one another
            vectors.npy         (n, d) float32, of words; of sentences, float16, where an older version made it
            words.txt           one a line, the most frequent first, or in the order of the file they were imported from
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from core.corpora.corpus import Corpus
from core.encoders.shards import Shards
from core.errors import ConfigError, Unfinished
from core.files import read_back, save_array_atomic, write_atomic
from core.models.encoder_options import EncoderOptions
from core.results import FloatArray, Rows
from core.runs import result
from core.runs.run import Run
from core.runs.store import RunStore, is_run_id
from core.selection.strategies.adapted import Joined
from core.text.words import Tokens

if TYPE_CHECKING:
    from core.models.word_features import Vectors

IMPORT = "vectors-import"  # the kind of run that reads word vectors of elsewhere
# Mean cosine above which word vectors hardly differ. Skip-gram on Wikipedia: 0.99 from 30,000 tokens, 0.90 from
# 100,000, 0.78 from 300,000, 0.71 from 555,000 (tests/lab/benchmarks/RESULTS.md).
ALIKE = 0.9
_VECTORS, _NORMS, _WORDS, _SHARD = "vectors.npy", "norms.npy", "words.txt", "vectors"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedResult:
    """Result of an `embed` run. rows: sentences. dimension: numbers a vector."""

    rows: int
    dimension: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorsResult:
    """Result of a `vectors` run.

    words: those with a vector of `dimension` numbers. tokens: of text read for it. cut: the rule that cut it.
    mean_cosine: of all pairs of words; None in results of older versions.
    """

    words: int
    dimension: int
    tokens: int
    cut: Tokens = "blanks"
    mean_cosine: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """Result of a `vectors-import` run.

    words: those with a vector of `dimension` numbers. again, unusable: lines left out, of words that were there before
    and of words that no token can be. whole: the file was read to its end.
    """

    name: str
    words: int
    dimension: int
    again: int
    unusable: int
    whole: bool

    @property
    def says(self) -> str:
        """Numbers of words and dimensions, in words."""
        return f"{self.words:,} words of {self.dimension:,} numbers" + ("" if self.whole else ", the file's first")


def shard(vectors: FloatArray, norms: FloatArray) -> npt.NDArray[np.void]:
    """Array that the file of some sentences holds: their vectors, one block, and behind them their norms."""
    record = np.dtype([("vectors", np.float16, vectors.shape), ("norms", np.float32, norms.shape)])
    result = np.empty(1, dtype=record)
    result["vectors"], result["norms"] = vectors, norms
    return result


def shards(run: Run) -> tuple[str, Path]:
    """Name of the files that `shard` fills, and their folder, from the first on: none is written again."""
    return _SHARD, run.artifacts


def write_norms(run: Run, paths: Sequence[Path]) -> None:
    """Write the norms of all sentences, which are small, out of their files."""
    norms = [np.load(path, mmap_mode="r")["norms"][0] for path in paths]
    save_array_atomic(run.artifacts / _NORMS, np.concatenate(norms))


def read(run: Run) -> tuple[Rows, FloatArray]:
    """`(vectors, norms)` of a finished `embed` run, the vectors memory-mapped."""
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


def _vectors_of(path: Path) -> FloatArray:
    vectors: FloatArray = np.load(path, mmap_mode="c")["vectors"][0]
    return vectors


def read_joined(runs: Sequence[Run], options: Mapping[str, object]) -> tuple[Rows, FloatArray]:
    """Vectors and norms of finished `embed` runs on one corpus, side by side where there are several.

    options: of the strategy that learns by them.
    """
    halves = [read(run) for run in runs]
    if len(halves) == 1:
        return halves[0]
    joined = Joined(halves, raw=options["halves"] == "raw")
    return joined, joined.norms


def find(store: RunStore, config: Mapping[str, object], corpus: Corpus) -> tuple[Rows, FloatArray] | None:
    """`(vectors, norms)` of a corpus under the encoder options of `config`, if some finished run has made them."""
    names = [name for name in EncoderOptions.model_fields if name != "weights" or config["weights"]]
    wanted = {name: config[name] for name in names} | {"corpus": corpus.fingerprint}
    for run in store.list("embed"):
        if wanted.items() <= run.manifest.config.items() and run.state().state == "succeeded":
            return read(run)
    return None


def write_words(run: Run, words: Sequence[str], values: FloatArray) -> None:
    """Write what a run learnt or imported. values: `(n, d)`."""
    write_atomic(run.artifacts / _WORDS, "\n".join(words).encode())
    save_array_atomic(run.artifacts / _VECTORS, values.astype(np.float32, copy=False))


def read_words(run: Run) -> "Vectors":
    """Read what `write_words` wrote."""
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
    # The sum over all pairs is |sum of the unit vectors|², of which each word's cosine with itself is no pair.
    return float((np.square(unit.sum(axis=0)).sum() - np.square(unit).sum()) / (n * (n - 1))) if n > 1 else 0.0


def alike_words(cosine: float | None) -> str:
    """Warn of word vectors that hardly differ; empty where the mean cosine is at most `ALIKE` or unknown."""
    if cosine is None or cosine <= ALIKE:
        return ""
    return (
        f"The word vectors are nearly all alike (mean cosine of two words {cosine:.2f}), so a comparison of their"
        " sources says little. Learn them from more text, 300,000 tokens or more."
    )


def imports(store: RunStore) -> dict[str, ImportResult]:
    """Finished imports of word vectors by their run's id, newest first."""
    return {run.id: result.read(run, ImportResult) for run in store.list(IMPORT, state="succeeded")}


def find_import(option: str, reference: str, store: RunStore) -> tuple[str, ImportResult]:
    """`(run's id, result)` of a finished import, by its name or id. option: that names it, for what an error says.

    Errors: ConfigError where there is none.
    """
    here = imports(store)
    for run_id, imported in here.items():
        if reference in (run_id, imported.name):
            return run_id, imported
    if is_run_id(reference) and store.get(reference).manifest.kind == IMPORT:
        raise Unfinished(f"{option}: {reference} has not finished; wait for its end, or resume it.")
    names = ", ".join(sorted(imported.name for imported in here.values())[:20]) or "none"
    raise ConfigError(
        f"{option}: {reference[:80]!r} names no imported word vectors; here are {names}. Import them by "
        "`python -m core vectors add FILE --name NAME`."
    )
