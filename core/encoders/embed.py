"""`embed`: embed every sentence of a corpus once; later runs share the result."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from core.config import option
from core.corpora.corpus import Corpus
from core.encoders import vectors
from core.encoders.vectors import EmbedResult
from core.kind import Job, Kind
from core.models.encoder import EncoderOptions
from core.project_list import shared_home
from core.reporter import Reporter
from core.runs.chunks import About, Opened
from core.runs.spread import spread
from core.training.on_device import on_device, worker_device

# From this number of sentences, embedding takes longer than compiling the code of the map, so both run in parallel.
LARGE = 20_000
# Number of sentences that are sorted by length together. It is fixed, so that a resumed run makes the same batches.
CHUNK = 8192


class EmbedConfig(EncoderOptions):
    """Options of an `embed` run: the corpus to embed, and the encoder."""

    corpus: str = option(..., "The corpus to embed.", corpus=True)


@dataclass(frozen=True, kw_only=True)
class EmbedWork:
    """The work of embedding a corpus, in chunks of sentences. options: arguments of `Encoder.load`."""

    corpus: Corpus
    encoder: str
    options: Mapping[str, Any]
    card: bool = True

    @property
    def stage(self) -> str:
        return f"embedding {self.corpus.name}"

    def read(self, start: int, stop: int, about: About) -> list[str]:
        return self.corpus.texts(start, stop)

    def open(self, report: Reporter) -> Opened:
        from core.models.encoder import Encoder

        report.stage(f"loading the encoder {self.encoder}")
        encoder = Encoder.load(self.encoder, **self.options)
        return Opened(
            compute=lambda pieces, report: vectors.shard(*encoder.encode_cut(pieces, report)),
            ahead=encoder.cut,
            about={"dimension": encoder.dimension},
        )

    def device(self) -> tuple[str, str]:
        return worker_device(self.options["precision"])


def run(config: EmbedConfig, job: Job) -> EmbedResult:
    """Embed all sentences of a corpus. The module `vectors` describes the artifacts."""
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


KIND = Kind("embed", EmbedConfig, run, EmbedResult, command=None)
