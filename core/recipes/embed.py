"""`embed`: every sentence of a corpus through an encoder, once; all later runs share the result."""

from itertools import chain

import numpy as np
import numpy.typing as npt

from core.artifacts import vectors
from core.artifacts.vectors import EmbedResult
from core.config import option
from core.models.encoder_options import EncoderOptions
from core.recipes.base import Job
from core.recipes.parts.on_device import on_device
from core.reporter import Reporter
from core.runs.chunks import chunked

LARGE = 20_000  # sentences take longer to embed than the map's code to compile
CHUNK = 8192  # rows, as many as an encoder sorts by length together; a resumed run batches as an undisturbed one


class EmbedConfig(EncoderOptions):
    """What to embed."""

    corpus: str = option(..., "The corpus to embed.", corpus=True)


def run(config: EmbedConfig, job: Job) -> EmbedResult:
    """Artifacts: `vectors.npy` `(n, d)` float16 rows of length 1, `norms.npy` `(n,)` float32."""
    from core.maps.projection import compile_ahead
    from core.models.encoder import Encoder

    corpus = job.corpus(config.corpus)
    if len(corpus) >= LARGE:
        compile_ahead(job.home)
    with on_device(job, config.precision, alone=False):
        job.context.stage(f"loading the encoder {config.encoder}")
        options = config.model_dump(include={"pooling", "max_length", "precision", "allow_download"})
        encoder = Encoder.load(config.encoder, **options)
        row = np.dtype([("vector", np.float16, (encoder.dimension,)), ("norm", np.float32)])

        def compute(start: int, stop: int, report: Reporter) -> npt.NDArray[np.void]:
            texts = [sentence.text for sentence in chain.from_iterable(corpus.batches(start, stop))]
            rows = np.empty(len(texts), dtype=row)
            rows["vector"], rows["norm"] = encoder.encode(texts, report)
            return rows

        job.context.stage(f"embedding {corpus.name}")
        chunks = chunked(job.context, len(corpus), CHUNK, compute, "embed")
    vectors.write(job.context.run, chunks, len(corpus), row)
    for path in chunks:
        path.unlink()
    return EmbedResult(rows=len(corpus), dimension=encoder.dimension)
