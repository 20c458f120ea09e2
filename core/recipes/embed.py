"""`embed`: every sentence of a corpus through an encoder, once; all later runs share the result."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from core.artifacts import vectors
from core.artifacts.vectors import EmbedResult
from core.config import option
from core.models.encoder_options import EncoderOptions
from core.projects import shared_home
from core.recipes.base import Job
from core.recipes.parts.on_device import on_device
from core.reporter import Reporter
from core.runs.chunks import chunked

if TYPE_CHECKING:
    from core.models.encoder import Cut

Result = TypeVar("Result")

LARGE = 20_000  # sentences take longer to embed than the map's code to compile
CHUNK = 8192  # rows, as many as an encoder sorts by length together; a resumed run batches as an undisturbed one


class EmbedConfig(EncoderOptions):
    """What to embed."""

    corpus: str = option(..., "The corpus to embed.", corpus=True)


def run(config: EmbedConfig, job: Job) -> EmbedResult:
    """Artifacts: see `artifacts.vectors`."""
    from core.maps.projection import compile_ahead
    from core.models.encoder import Encoder

    corpus = job.corpus(config.corpus)
    if len(corpus) >= LARGE:
        compile_ahead(shared_home(job.home))
    with on_device(job, config.precision, alone=False):
        job.context.stage(f"loading the encoder {config.encoder}")
        options = config.model_dump(include={"pooling", "max_length", "precision", "allow_download"})
        encoder = Encoder.load(config.encoder, **options)

        def cut(start: int) -> "Cut":
            batches = corpus.batches(start, min(start + CHUNK, len(corpus)))
            return encoder.cut([sentence.text for sentence in chain.from_iterable(batches)])

        with Ahead(cut) as ahead:

            def compute(start: int, stop: int, report: Reporter) -> npt.NDArray[np.void]:
                pieces = ahead.take(start, stop if stop < len(corpus) else None)
                return vectors.shard(*encoder.encode_cut(pieces, report))

            job.context.stage(f"embedding {corpus.name}")
            name, folder = vectors.shards(job.context.run)
            chunks = chunked(job.context, len(corpus), CHUNK, compute, name, folder=folder)
    vectors.write_norms(job.context.run, chunks)
    return EmbedResult(rows=len(corpus), dimension=encoder.dimension)


class Ahead(Generic[Result]):
    """Does `work` for what is asked for next in a thread, while the caller is at what it has: one at a time."""

    def __init__(self, work: Callable[[int], Result]) -> None:
        self._work, self._pool = work, ThreadPoolExecutor(1)
        self._coming: dict[int, Future[Result]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *given: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def take(self, item: int, following: int | None) -> Result:
        """What `work` makes of `item`; that of `following` is begun."""
        # A tokenizer must not be asked by two threads, so what nobody foresaw is done in the same one.
        result = (self._coming.pop(item, None) or self._pool.submit(self._work, item)).result()
        self._coming = {} if following is None else {following: self._pool.submit(self._work, following)}
        return result
