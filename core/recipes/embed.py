"""`embed`: every sentence of a corpus through an encoder, once; all later runs share the result."""

from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from core.config import Config, option
from core.errors import ModelError
from core.models.fingerprint import fingerprint
from core.recipes.base import Job, Result
from core.reporter import Reporter
from core.results import FloatArray
from core.runs.chunks import chunked

LARGE = 20_000  # sentences take longer to embed than the map's code to compile
CHUNK = 8192  # rows, as many as an encoder sorts by length together; a resumed run batches as an undisturbed one


class EncoderOptions(Config):
    """Which embedding, the same for every recipe that embeds."""

    encoder: str = option("minilm", "A Hugging Face name, a local folder, or minilm (bundled).")
    pooling: Literal["mean", "cls", "last4"] = option(
        "mean", "Mean of the last layer's pieces, its [CLS] piece, or the mean of the last four layers."
    )
    max_length: int = option(128, "Longer sentences are cut.", unit="pieces", ge=8, le=8192)
    precision: Literal["auto", "bf16", "fp32"] = option("auto", "auto takes bf16 where the device has it.")
    allow_download: bool = option(False, "Fetch the encoder from the Hugging Face hub if it is not here yet.")

    weights: str = option("", "Hash of the encoder, so that other weights under an old name embed anew.", hidden=True)

    def settled(self) -> Self:
        """With the encoder's hash. Errors: ModelError if the encoder is not here and may not be fetched."""
        try:
            return self.model_copy(update={"weights": fingerprint(self.encoder)})
        except ModelError:
            if not self.allow_download:
                raise
            return self  # the worker fetches it; a page must not wait for that


class EmbedConfig(EncoderOptions):
    """What to embed."""

    corpus: str = option(..., "The corpus to embed.", corpus=True)


def encoder_options(config: EncoderOptions) -> dict[str, Any]:
    """The options of `config` that say which embedding."""
    return config.model_dump(include=set(EncoderOptions.model_fields))


def run(config: EmbedConfig, job: Job) -> Result:
    """Artifacts: `vectors.npy` `(n, d)` float16 rows of length 1, `norms.npy` `(n,)` float32."""
    from core.maps.projection import compile_ahead
    from core.models.encoder import Encoder

    corpus = job.corpus(config.corpus)
    if len(corpus) >= LARGE:
        compile_ahead(job.home)
    job.context.stage(f"loading the encoder {config.encoder}")
    options = config.model_dump(include={"pooling", "max_length", "precision", "allow_download"})
    encoder = Encoder.load(config.encoder, **options)
    row = np.dtype([("vector", np.float16, (encoder.dimension,)), ("norm", np.float32)])

    def compute(start: int, stop: int, report: Reporter) -> npt.NDArray[Any]:
        texts = [sentence.text for sentence in chain.from_iterable(corpus.batches(start, stop))]
        rows = np.empty(len(texts), dtype=row)
        rows["vector"], rows["norm"] = encoder.encode(texts, report)
        return rows

    job.context.stage(f"embedding {corpus.name}")
    chunks = chunked(job.context, len(corpus), CHUNK, compute, "embed")
    _join(chunks, len(corpus), row, job.context.run.artifacts)
    for path in chunks:
        path.unlink()
    return {"rows": len(corpus), "dimension": encoder.dimension}


def load(folder: Path) -> tuple[FloatArray, FloatArray]:
    """`(vectors, norms)` of a finished run's artifacts, memory-mapped."""
    return np.load(folder / "vectors.npy", mmap_mode="c"), np.load(folder / "norms.npy")


def _join(chunks: list[Path], n: int, row: np.dtype[Any], folder: Path) -> None:
    """One memory-mapped array from all chunks: scoring reads it at the speed of memory."""
    dimension = row["vector"].shape[0]
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float16, shape=(n, dimension))
    norms = np.empty(n, dtype=np.float32)
    start = 0
    for path in chunks:
        rows = np.load(path)
        vectors[start : start + len(rows)] = rows["vector"]
        norms[start : start + len(rows)] = rows["norm"]
        start += len(rows)
    vectors.flush()
    np.save(folder / "norms.npy", norms)
