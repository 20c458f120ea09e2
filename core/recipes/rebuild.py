"""`rebuild`: a training set in which names tell less, contexts tell more, or CEIM bins have other shares.

Beside the ways of Ma et al. 2023, 4, there is DataAug, one of their baselines; LPFT is an option of `finetune`. MINER's
objective is left out: its span classifier is another model, and its released code trains a loss other than the printed
one (SOURCES.md, MINER).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from pydantic import field_validator

from core.artifacts import rebuilt
from core.artifacts.mentions import read
from core.artifacts.rebuilt import RebuildResult
from core.config import Config, option, unusual
from core.corpora.corpus import Corpus
from core.difficulty.mentions import BINS, Mention
from core.errors import ConfigError, CorpusError, Unfinished
from core.models.fingerprint import fingerprint
from core.models.hub import load_tokenizer
from core.recipes.base import Job
from core.recipes.parts.rebuildable import held_out, refuse_tests
from core.recipes.parts.tested import labelled
from core.reconstruction import pools
from core.reconstruction.augment import by_tokenizer, dataaug
from core.reconstruction.contexts import low2high, random2high
from core.reconstruction.entities import highc2low, random2low, redundant2low
from core.reconstruction.pools import Pools, Thresholds, find_pools
from core.reconstruction.shares import Mark, base_and, base_and_rows, low_share, low_share_rows
from core.reconstruction.training import Measured, Rebuilt, Training
from core.runs.store import RunStore
from core.text.sentence import Sentence

Method = Literal["random2low", "highc2low", "redundant2low", "random2high", "low2high", "low-share", "dataaug"]
METHODS: Mapping[str, Callable[[Training, Pools, float, int], Rebuilt]] = {
    "random2low": random2low,
    "highc2low": highc2low,
    "redundant2low": redundant2low,
    "random2high": random2high,
    "low2high": low2high,
}
READS: Mapping[str, tuple[str, ...]] = {  # the pools that must not be empty
    "random2low": ("entity_high", "entity_low"),
    "highc2low": ("both_high", "entity_low"),
    "redundant2low": ("entity_high", "entity_low"),
    "random2high": ("context_high",),
    "low2high": ("context_high",),
}


class RebuildOptions(Config):
    """What tells little or much, and what is drawn, whichever way is taken."""

    entity_low: str = option(
        pools.AUTO,
        "A name tells little at most at so many bits (0.5) or in this share of its type (20%); auto: below "
        "0 bits, or the bottom 20% of a type with fewer than 5% there.",
    )
    entity_high: str = option("50%", "A name tells much at least at so many bits, or from this share of its type on.")
    context_high: str = option("50%", "The same of contexts.")
    size: int = option(1000, "low-share: how many sentences.", unit="sentences", ge=1)
    add_bin: Literal["", "low", "near_zero", "high", "none"] = option(
        "",
        "low-share: as many sentences of this CEIM bin beside as many of any, in place of a share; none: those of any "
        "alone.",
    )
    seed: int = option(1, "What is drawn at random.", ge=0)

    @field_validator("entity_low", "entity_high", "context_high")
    @classmethod
    def _threshold(cls, threshold: str) -> str:
        return pools.check(threshold)

    @property
    def thresholds(self) -> Thresholds:
        """Which names and contexts tell much or little."""
        return Thresholds(entity_low=self.entity_low, entity_high=self.entity_high, context_high=self.context_high)


class RebuildConfig(RebuildOptions):
    """Which training set, how it is changed, and by what measurement."""

    train: str = option(..., "L_C: the labelled training split to change; never a test split.", corpus=True)
    method: Method = option(
        ...,
        "random2low, highc2low, redundant2low: names that tell less. random2high, low2high: contexts that tell more. "
        "low-share: a set of one size with this share of low CEIM. dataaug: typos and names spelt alike.",
    )
    rate: float = option(
        0.2, "Share of all mentions that is changed; low-share: of sentences drawn for a low CEIM. Or 20%.", ge=0, le=1
    )
    difficulty: str = option("", "The finished difficulty run of this corpus; all but dataaug need one.")
    holdout: tuple[str, ...] = option((), "Dev and test splits whose text must not come in.", corpus=True)
    encoder: str = option("minilm", "dataaug: the encoder whose pieces are weighed, those that tell a type kept.")

    weights: str = option("", "Hash of the encoder.", hidden=True)

    def settled(self) -> Self:
        """These options with the hash of the encoder, where it matters. Errors: ModelError if it is not here."""
        return self.model_copy(update={"weights": fingerprint(self.encoder)}) if self.method == "dataaug" else self

    @field_validator("rate", mode="before")
    @classmethod
    def _rate(cls, rate: object) -> object:
        """`20%` is 0.2."""
        return float(rate[:-1]) / 100 if isinstance(rate, str) and rate[-1:] == "%" and rate[:-1].strip() else rate


def run(config: RebuildConfig, job: Job) -> RebuildResult:
    """Artifacts: see `artifacts.rebuilt`."""
    train = job.corpus(config.train)
    refuse_tests(train, RunStore(job.home))
    job.context.stage("reading the training sentences")
    sentences = labelled(train)
    if not train.types:
        raise CorpusError(f"{train.name}: holds no entity, so there is no mention to change; give a labelled corpus.")
    closed = held_out(train, sentences, config.holdout, job)
    training = Training.of(sentences, _measures(config, job, sentences), closed)
    mention_pools = find_pools(training.kinds, training.entity, training.context, config.thresholds)
    sizes = mention_pools.sizes() if config.method in METHODS else {}
    check_pools(config.method, sizes, train.name)
    job.context.stage(f"rebuilding by {config.method}")
    outcome = _rebuild(config, training, mention_pools)
    if len(outcome.edits) < outcome.wanted:
        job.context.note(
            f"{len(outcome.edits):,} of {outcome.wanted:,} mentions are changed: no more are in the pools, or the"
            " others would make a sentence that is there already."
        )
    corpus = _sealed(config, job, train, sentences, outcome)
    log = rebuilt.write_edits(job.context, outcome.edits)
    conll = rebuilt.write_sentences(job.context, outcome.sentences)
    return RebuildResult(
        corpus=corpus.fingerprint,
        sentences=len(corpus),
        mentions=sum(corpus.types.values()),
        changed=len(outcome.edits),
        wanted=outcome.wanted,
        of=len(training),
        pools=sizes,
        output=str(conll),
        edits=str(log),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a rebuild would draw from.

    pools: as the result's. of: mentions of the training set; measured: of these. wanted: to be changed; able: how many
    could be at most (several may share a sentence that must stay new). bins: {CEIM bin: sentences with such a
    mention}. empty: why it cannot be run, or "".
    """

    pools: Mapping[str, Mapping[str, int]]
    of: int
    measured: int
    wanted: int
    able: int
    bins: Mapping[str, int]
    empty: str


def preview(config: RebuildConfig, train: Corpus, mentions: Sequence[Mention], store: RunStore) -> Preview:
    """Preview a rebuild before it is run; no sentence is read, so held-out ones are counted too.

    mentions: as a finished `difficulty` run measured them.
    """
    entity, context = (
        np.array([getattr(mention, name) for mention in mentions]) for name in ("pvi_entity", "pvi_context")
    )
    sizes = find_pools([mention.type for mention in mentions], entity, context, config.thresholds).sizes()
    total = sum(train.types.values())
    able = {"random2high": total, "low2high": len(mentions)}.get(config.method)
    if able is None:
        able = sum(sizes[READS.get(config.method, ("entity_high",))[0]].values())
    drawn = Preview(
        pools=sizes,
        of=total,
        measured=len(mentions),
        wanted=round(config.rate * total),
        able=able,
        bins={name: len({mention.row for mention in mentions if mention.bin == name}) for name in BINS},
        empty="",
    )
    try:
        refuse_tests(train, store)
        check_pools(config.method, sizes, train.name)
        _check_shares(config, mentions)
    except (ConfigError, CorpusError) as error:
        return replace(drawn, wanted=0, able=0, empty=str(error))
    return drawn


def _check_shares(config: RebuildConfig, mentions: Sequence[Mention]) -> None:
    """Errors: ConfigError where `low-share` would find too few sentences: what it draws is drawn, and left."""
    if config.method != "low-share":
        return
    marks = [Mark(mention.row, mention.bin) for mention in sorted(mentions, key=lambda one: (one.row, one.start))]
    if config.add_bin:
        base_and_rows(marks, config.add_bin, config.size, config.seed)
    else:
        low_share_rows(marks, config.rate, config.size, config.seed)


def check_pools(method: str, sizes: Mapping[str, Mapping[str, int]], corpus: str) -> None:
    """Errors: CorpusError where the method has nothing to draw from."""
    if method not in READS:
        return
    if len(sizes["entity_low"]) < 2:
        raise CorpusError(
            f"{corpus}: has one type only, so neither names nor contexts can tell it from another; give a corpus with"
            " two types or more, or choose dataaug."
        )
    for pool in READS[method]:
        if not any(sizes[pool].values()):
            raise CorpusError(
                f"{corpus}: no mention is in the pool {pool}, from which {method} draws; move its threshold."
            )


def _rebuild(config: RebuildConfig, training: Training, mention_pools: Pools) -> Rebuilt:
    if config.method == "dataaug":
        return dataaug(training, by_tokenizer(load_tokenizer(config.encoder)), config.seed)
    if config.method != "low-share":
        return METHODS[config.method](training, mention_pools, config.rate, config.seed)
    if config.add_bin:
        return base_and(training, config.add_bin, config.size, config.seed)
    return low_share(training, config.rate, config.size, config.seed)


def _measures(config: RebuildConfig, job: Job, sentences: Sequence[Sentence]) -> dict[tuple[int, int, int], Measured]:
    if config.method == "dataaug":
        return {}
    if not config.difficulty:
        raise ConfigError(f"difficulty: {config.method} goes by PVI; give the id of a finished difficulty run.")
    run = RunStore(job.home).get(config.difficulty)
    if run.manifest.kind != "difficulty" or run.state().state != "succeeded":
        raise Unfinished(f"difficulty: {run.id} is no finished difficulty run; run `difficulty` on the corpus first.")
    if run.manifest.inputs["train"] != config.train:
        raise ConfigError(
            f"difficulty: {run.id} measured {job.corpus(run.manifest.inputs['train']).name}, not"
            f" {job.corpus(config.train).name}; run `difficulty` on the corpus that is to be rebuilt."
        )
    mentions = read(run)
    assert all(sentences[mention.row].id == mention.sentence for mention in mentions)
    total = sum(len(sentence.entities or ()) for sentence in sentences)
    if len(mentions) < total:
        job.context.note(
            f"{len(mentions):,} of {total:,} mentions were measured; the others are in no pool, but the rate is of all."
        )
    return {
        (mention.row, mention.start, mention.end): Measured(mention.pvi_entity, mention.pvi_context, mention.bin)
        for mention in mentions
    }


def _sealed(config: RebuildConfig, job: Job, train: Corpus, sentences: list[Sentence], outcome: Rebuilt) -> Corpus:
    """The new set as a corpus; the training corpus itself where nothing changed, which keeps its name."""
    if outcome.sentences == sentences:
        return train
    origin = {"run": job.context.run.id, "from": train.fingerprint, "method": config.method}
    name = f"{train.name}, {in_words(config)}"
    return job.library.seal(iter(outcome.sentences), name=name, origin=origin, labelled=True)


def in_words(config: RebuildConfig) -> str:
    """The method and what else makes the set another one, options at their default left out."""
    text = f"{config.method} {config.rate * 100:.6g}%"
    names: tuple[str, ...] = ("entity_low", "entity_high", "context_high")
    if config.method == "dataaug":
        text, names = config.method, ("encoder",)
    elif config.method == "low-share":
        text, names = f"{text} of {config.size:,}", ()
        if config.add_bin:
            more = "" if config.add_bin == "none" else f" and {config.size:,} {config.add_bin}"
            text = f"{config.size:,} at random" if not more else f"{config.size:,}{more}"
    return ", ".join([text, *unusual(config, (*names, "seed"))])
