"""`vectors`: skip-gram word vectors of a corpus, for taggers that start from them (Dai et al. 2019, 6)."""

from core.config import option
from core.encoders import vectors
from core.encoders.vectors import VectorsResult
from core.kind import Job, Kind
from core.similarity.base import draw
from core.similarity.wvv import Wvv, WvvOptions
from core.text.words import Tokens


class VectorsConfig(WvvOptions):
    """Options of a `vectors` run: the corpus, and the training of its vectors."""

    corpus: str = option(..., "Corpus to learn word vectors from.", corpus=True)
    cap_tokens: int = option(0, "Most tokens to use; 0: all.", unit="tokens", ge=0)
    seed: int = option(0, "Seed of the draw and of the vectors.", ge=0)


def run(config: VectorsConfig, job: Job) -> VectorsResult:
    """Write `words.txt`, one word per line, the most frequent first, and `vectors.npy`, `(n, d)` float32."""
    corpus = job.corpus(config.corpus)
    cut: Tokens = "blanks" if corpus.labelled else corpus.tokens
    sample = draw(
        [corpus],
        name=corpus.name,
        cap=config.cap_tokens or None,
        seed=config.seed,
        tokens=cut,
        lowercase=False,
        report=job.context,
    )
    job.context.stage(f"learning word vectors of {corpus.name}")
    options = WvvOptions(**config.model_dump(include=set(WvvOptions.model_fields)))
    trained = Wvv(options, seed=config.seed, vocabulary_size=0).fit(sample, job.context).wv
    vectors.write_words(job.context.run, trained.index_to_key, trained.vectors)
    cosine = vectors.mean_cosine(trained.vectors)
    if warning := vectors.alike_words(cosine):
        job.context.note(warning)
    return VectorsResult(
        words=len(trained),
        dimension=int(trained.vector_size),
        tokens=sample.n_tokens,
        cut=cut,
        mean_cosine=cosine,
    )


KIND = Kind("vectors", VectorsConfig, run, VectorsResult, command=None)
