"""Vectors of sentences, which an `embed` run leaves, and of words, which a `vectors` run leaves.

artifacts/  vectors.npy   (n, d) float16 rows of length 1, of sentences; (n, d) float32, of words
            norms.npy     (n,) float32, of sentences before they were made as long as one another
            words.txt     one a line, the most frequent first
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from core.artifacts import result
from core.corpora.corpus import Corpus
from core.files import read_back, save_array_atomic, write_atomic
from core.models.encoder_options import EncoderOptions
from core.results import FloatArray, Rows
from core.runs.run import Run
from core.runs.store import RunStore
from core.selection.strategies.adapted import Joined
from core.text.words import Tokens

if TYPE_CHECKING:
    from core.models.word_features import Vectors

_VECTORS, _NORMS, _WORDS = "vectors.npy", "norms.npy", "words.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedResult:
    """What an `embed` run came to. rows: sentences. dimension: numbers a vector."""

    rows: int
    dimension: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorsResult:
    """What a `vectors` run came to.

    words: those with a vector of `dimension` numbers. tokens: of text read for it. cut: the rule that cut it.
    """

    words: int
    dimension: int
    tokens: int
    cut: Tokens = "blanks"


def write(run: Run, chunks: Sequence[Path], n: int, row: np.dtype[np.void]) -> None:
    """One memory-mapped array from all chunks: scoring reads it at the speed of memory.

    chunks: files of arrays of dtype `row`, which has a `vector` and its `norm`; n: their rows in all.
    """
    shape = (n, row["vector"].shape[0])
    vectors = np.lib.format.open_memmap(run.artifacts / _VECTORS, mode="w+", dtype=np.float16, shape=shape)
    norms = np.empty(n, dtype=np.float32)
    start = 0
    for path in chunks:
        rows = np.load(path)
        vectors[start : start + len(rows)] = rows["vector"]
        norms[start : start + len(rows)] = rows["norm"]
        start += len(rows)
    vectors.flush()
    np.save(run.artifacts / _NORMS, norms)


def read(run: Run) -> tuple[FloatArray, FloatArray]:
    """`(vectors, norms)` of a finished `embed` run, the vectors memory-mapped."""
    with read_back(run.artifacts):
        return np.load(run.artifacts / _VECTORS, mmap_mode="c"), np.load(run.artifacts / _NORMS)


def read_joined(runs: Sequence[Run], options: Mapping[str, object]) -> tuple[Rows, FloatArray]:
    """Vectors and norms of finished `embed` runs on one corpus, side by side where there are several.

    options: of the strategy that learns by them.
    """
    halves = [read(run) for run in runs]
    if len(halves) == 1:
        return halves[0]
    joined = Joined(halves, raw=options["halves"] == "raw")
    return joined, joined.norms


def find(store: RunStore, config: Mapping[str, object], corpus: Corpus) -> tuple[FloatArray, FloatArray] | None:
    """`(vectors, norms)` of a corpus under the encoder options of `config`, if some finished run has made them."""
    names = [name for name in EncoderOptions.model_fields if name != "weights" or config["weights"]]
    wanted = {name: config[name] for name in names} | {"corpus": corpus.fingerprint}
    for run in store.list("embed"):
        if wanted.items() <= run.manifest.config.items() and run.state().state == "succeeded":
            return read(run)
    return None


def write_words(run: Run, words: Sequence[str], values: FloatArray) -> None:
    """Write what a `vectors` run learnt. values: `(n, d)`."""
    write_atomic(run.artifacts / _WORDS, "\n".join(words).encode())
    save_array_atomic(run.artifacts / _VECTORS, values.astype(np.float32))


def read_words(run: Run) -> "Vectors":
    """Read what `write_words` wrote."""
    from core.models.word_features import Vectors

    words = (run.artifacts / _WORDS).read_text(encoding="utf-8").split("\n")
    cut = result.read(run, VectorsResult).cut
    return Vectors(words=tuple(words), values=np.load(run.artifacts / _VECTORS), tokens=cut)
