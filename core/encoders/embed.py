"""`embed`: every sentence of a corpus through an encoder, once; all later runs share the result."""

from functools import partial

from core.config import option
from core.encoders import vectors
from core.encoders.vectors import EmbedResult
from core.encoders.works import EmbedWork
from core.kind import Job, Kind
from core.models.encoder_options import EncoderOptions
from core.project_list import shared_home
from core.runs.executors import spread
from core.training.on_device import on_device

LARGE = 20_000  # sentences take longer to embed than the map's code to compile
CHUNK = 8192  # rows, as many as an encoder sorts by length together; a resumed run batches as an undisturbed one


class EmbedConfig(EncoderOptions):
    """Options: the corpus to embed, and the encoder."""

    corpus: str = option(..., "The corpus to embed.", corpus=True)


def run(config: EmbedConfig, job: Job) -> EmbedResult:
    """Artifacts: see `artifacts.vectors`."""
    from core.explore.projection import compile_ahead

    corpus = job.corpus(config.corpus)
    if len(corpus) >= LARGE:
        compile_ahead(shared_home(job.home))
    options = config.model_dump(include={"pooling", "max_length", "precision", "allow_download"})
    work = EmbedWork(corpus=corpus, encoder=config.encoder, options=options)
    name, folder = vectors.shards(job.context.run)
    device = partial(on_device, job, config.precision, alone=False)
    chunks, about = spread(job.context, len(corpus), CHUNK, work, name, device=device, folder=folder)
    vectors.write_norms(job.context.run, chunks)
    return EmbedResult(rows=len(corpus), dimension=about["dimension"])


KIND = Kind("embed", EmbedConfig, run, EmbedResult, command=None, helped=run)
