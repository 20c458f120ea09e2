"""`embed`: every sentence of a corpus through an encoder, once; all later runs share the result."""

from functools import partial

from core.artifacts import vectors
from core.artifacts.vectors import EmbedResult
from core.config import option
from core.models.encoder_options import EncoderOptions
from core.projects import shared_home
from core.recipes.base import Job
from core.recipes.parts.on_device import on_device
from core.recipes.parts.works import EmbedWork
from core.runs.executors import spread

LARGE = 20_000  # sentences take longer to embed than the map's code to compile
CHUNK = 8192  # rows, as many as an encoder sorts by length together; a resumed run batches as an undisturbed one


class EmbedConfig(EncoderOptions):
    """Options: the corpus to embed, and the encoder."""

    corpus: str = option(..., "The corpus to embed.", corpus=True)


def run(config: EmbedConfig, job: Job) -> EmbedResult:
    """Artifacts: see `artifacts.vectors`."""
    from core.maps.projection import compile_ahead

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
