"""The run `halves`: split a pool of labelled sentences into two halves, each the test set of the other.

A sentence and its near duplicates (`corpora.hygiene`) are in the same half (SOURCES.md, Halves swapped).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from core.config import Config, option
from core.corpora.corpus import Corpus
from core.corpora.shares import dealt
from core.errors import ConfigError
from core.experiment.result import Half, HalvesResult, write_halves
from core.importing.audit import Flagging
from core.importing.result import read_audit
from core.kind import Job, Kind
from core.results import IntArray
from core.tagging.scores import labelled
from core.text.sentence import Sentence


class HalvesConfig(Config):
    """Options of splitting labelled sentences into halves."""

    train: str = option(..., "Training set: labelled sentences (L_C).", corpus=True)
    dev: str = option(..., "Dev set.", corpus=True)
    test: str = option(..., "Labelled test split.", corpus=True)
    train_sentences: int = option(..., "Training sentences of a half.", unit="sentences", ge=1)
    dev_sentences: int = option(..., "Dev sentences of a half.", unit="sentences", ge=1)
    seed: int = option(0, "Seed of the split.", ge=0)


def run(config: HalvesConfig, job: Job) -> HalvesResult:
    """Seal the pool and all parts of both halves as corpora. Artifacts: `halves.npz`.

    Errors: ConfigError if a half is too small, CorpusError if a corpus is not labelled.
    """
    corpora = [job.corpus(name) for name in dict.fromkeys((config.train, config.dev, config.test))]
    origin = {"from": corpora[0].fingerprint, "with": [other.fingerprint for other in corpora[1:]]}
    sentences = chain.from_iterable(map(labelled, corpora))
    pool = job.library.seal(sentences, name=f"{corpora[0].name} pool", origin=origin, labelled=True)
    job.context.part(1, 2, "copies")
    clusters = read_audit(job.child("audit", corpus=pool.fingerprint, **Flagging().model_dump())).cluster
    job.context.part(2, 2, "halves")
    job.context.stage("splitting")
    sides = dealt(clusters, (1, 1), config.seed)
    least, wanted = min(map(len, sides)), config.train_sentences + config.dev_sentences
    if wanted > least:
        raise ConfigError(
            f"cross_train: {config.train_sentences:,} sentences to learn from and {config.dev_sentences:,} to decide "
            f"by are more than a half of {len(pool):,} has ({least:,}, as copies stay together); ask for fewer."
        )
    swapped = ((sides[0], sides[1]), (sides[1], sides[0]))
    halves = [_half(config, job, pool, own, other) for own, other in swapped]
    write_halves(job.context, [np.sort(other) for _, other in swapped])
    return HalvesResult(pool=pool.fingerprint, sentences=len(pool), halves=halves)


def _half(config: HalvesConfig, job: Job, pool: Corpus, own: IntArray, test: IntArray) -> Half:
    """Seal the corpora of one half. own: its rows in random order. test: rows of the other half."""
    train, dev = np.split(own[: config.train_sentences + config.dev_sentences], [config.train_sentences])
    origin, name = {"from": pool.fingerprint}, f"{pool.name} {config.seed}"

    def text() -> Iterator[Sentence]:
        return (replace(sentence, entities=None) for sentence in pool.take(np.sort(own)))

    parts = {
        part: job.library.subset(pool, np.sort(rows), name=f"{name} {part}", origin=origin)
        for part, rows in (("train", train), ("dev", dev), ("test", test))
    }
    parts["task"] = job.library.seal(text(), name=f"{name} text", origin=origin)
    return Half(
        **{part: corpus.fingerprint for part, corpus in parts.items()},
        sentences={part: len(corpus) for part, corpus in parts.items()},
    )


KIND = Kind(
    "halves",
    HalvesConfig,
    run,
    HalvesResult,
    title=lambda run: f"Split {run.corpus(run.config['train'])} into halves",
    command=None,
)
