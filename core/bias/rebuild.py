"""`rebuild`: a training set in which names tell less, contexts tell more, or CEIM bins have other shares.

Beside the ways of Ma et al. 2023, 4, there is DataAug, one of their baselines; LPFT is an option of `finetune`. MINER's
objective is left out: its span classifier is another model, and its released code trains a loss other than the printed
one (SOURCES.md, MINER).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, Self

from pydantic import field_validator

from core.bias import pools
from core.bias.augment import by_tokenizer, dataaug
from core.bias.contexts import low2high, random2high
from core.bias.entities import highc2low, random2low, redundant2low
from core.bias.pools import Pools, Thresholds, find_pools, ladder
from core.bias.rebuildable import held_out, refuse_tests
from core.bias.result import EDITS, Mention, RebuildResult, mentions_file, read_mentions, write_log, write_sentences
from core.bias.shares import base_and, low_share
from core.bias.training_sentences import Measured, Measures, Rebuilt, Training
from core.config import Config, option, unusual
from core.corpora.corpus import Corpus
from core.errors import ConfigError, CorpusError, Unfinished
from core.kind import Job, Kind
from core.models.fingerprint import fingerprint
from core.models.hub import load_tokenizer
from core.runs.store import RunStore
from core.shown import count
from core.tagging.scores import labelled
from core.text.sentence import Sentence

Method = Literal["random2low", "highc2low", "redundant2low", "random2high", "low2high", "low-share", "dataaug"]
METHODS: Mapping[str, Callable[[Training, Sequence[Pools], float, int], Rebuilt]] = {
    "random2low": random2low,
    "highc2low": highc2low,
    "redundant2low": redundant2low,
    "random2high": random2high,
    "low2high": low2high,
}
NAMES = ("random2low", "highc2low", "redundant2low")  # for which thresholds are lowered where the rate asks for it
EDITION = "2"  # of METHODS: another one where the same options come to other sets
SHARES_EDITION = "2"  # of `low-share`, likewise
READS: Mapping[str, tuple[str, ...]] = {  # the pools that must not be empty
    "random2low": ("entity_high", "entity_low"),
    "highc2low": ("both_high", "entity_low"),
    "redundant2low": ("entity_high", "entity_low"),
    "random2high": ("context_high",),
    "low2high": ("context_high",),
}


class RebuildOptions(Config):
    """Options of what tells little or much, and what is drawn, whichever way is taken."""

    entity_low: str = option(
        pools.AUTO,
        "A name tells little at most at so many bits (0.5) or in this share of its type (20%); auto: below "
        "0 bits, or the bottom 20% of a type with fewer than 5% there.",
    )
    entity_high: str = option(
        "50%",
        "A name tells much at least at so many bits, or from this share of its type on; lowered by tenths where names "
        "that tell less are too few to reach the rate.",
    )
    context_high: str = option("50%", "The same of contexts; contexts that tell more go by it as it is.")
    size: int = option(1000, "low-share: number of sentences.", unit="sentences", ge=1)
    add_bin: Literal["", "low", "near_zero", "high", "none"] = option(
        "",
        "low-share: instead of a share, `size` random sentences and `size` more with a mention of this bin of name "
        "minus context (CEIM); none: the random sentences alone.",
    )
    seed: int = option(1, "What is drawn at random.", ge=0)

    @field_validator("entity_low", "entity_high", "context_high")
    @classmethod
    def _threshold(cls, threshold: str) -> str:
        return pools.check(threshold)

    @property
    def thresholds(self) -> Thresholds:
        """Thresholds of names and contexts that tell much or little."""
        return Thresholds(entity_low=self.entity_low, entity_high=self.entity_high, context_high=self.context_high)


class RebuildConfig(RebuildOptions):
    """Options: the training set, how it is changed, and by what measurement."""

    train: str = option(..., "Training set to change: labelled sentences (L_C), never a test set.", corpus=True)
    method: Method = option(
        ...,
        "random2low, highc2low, redundant2low: names that tell less. random2high, low2high: contexts that tell more. "
        "low-share: a set of a fixed size in which this share of sentences holds a low-CEIM mention and the others "
        "hold none. dataaug: typos and names spelt alike.",
    )
    rate: float = option(
        0.2,
        "Share of all mentions to change (0.2 or 20%); low-share: share of sentences with a mention whose name minus "
        "context (CEIM) is low.",
        ge=0,
        le=1,
    )
    difficulty: str = option("", "The finished difficulty run of this corpus; all but dataaug need one.")
    holdout: tuple[str, ...] = option((), "Dev and test sets, whose text must not come in.", corpus=True)
    encoder: str = option("minilm", "dataaug: the encoder whose pieces are weighed, those that tell a type kept.")

    weights: str = option("", "Hash of the encoder.", hidden=True)
    edition: str = option("", "Edition of the method, so that a set of an older one is made anew.", hidden=True)

    def settled(self) -> Self:
        """These options with the hash of the encoder or the method's edition, whichever matters.

        Errors: ModelError if the encoder is not here.
        """
        if self.method == "dataaug":
            return self.model_copy(update={"weights": fingerprint(self.encoder)})
        return self.model_copy(update={"edition": EDITION if self.method in METHODS else SHARES_EDITION})

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
    closed = held_out(train, sentences, [job.corpus(name) for name in config.holdout], job.context.note)
    training = Training.of(sentences, _measures(config, job, sentences), closed)
    rungs = pools_of(config, training)
    check_pools(config.method, rungs, train.name)
    job.context.stage(f"rebuilding by {config.method}")
    outcome = rebuild(config, training, rungs)
    for note in notes(outcome):
        job.context.note(note)
    corpus = _sealed(config, job, train, sentences, outcome)
    log = write_log(job.context, EDITS, outcome.edits)
    conll = write_sentences(job.context, outcome.sentences)
    return RebuildResult(
        corpus=corpus.fingerprint,
        sentences=len(corpus),
        mentions=sum(corpus.types.values()),
        changed=len(outcome.edits),
        wanted=outcome.wanted,
        of=len(training),
        reached=outcome.reached,
        pools=sizes(rungs, outcome),
        low_mentions=outcome.low,
        measured_mentions=outcome.measured,
        output=str(conll),
        edits=str(log),
    )


def pools_of(config: RebuildConfig, training: Training) -> list[Pools]:
    """The pools that a method draws from, the most demanding first; none where it goes by no measurement."""
    if config.method not in METHODS:
        return []
    by = ladder if config.method in NAMES else lambda *given: [find_pools(*given)]
    return by(training.kinds, training.entity, training.context, config.thresholds)


def sizes(rungs: Sequence[Pools], outcome: Rebuilt) -> dict[str, dict[str, int]]:
    """The sizes of the pools that were drawn from; see `Pools.sizes`."""
    return next((pools.sizes() for pools in rungs if pools.reached == outcome.reached), {})


def notes(outcome: Rebuilt) -> list[str]:
    """Notes on a rebuilt set for its reader: thresholds that were lowered, mentions that stay as they were."""
    sentences = []
    if outcome.reached:
        sentences.append(
            f"The thresholds as given leave too few mentions: names and contexts count as telling much from"
            f" {outcome.reached} of their type on; low names never do."
        )
    if len(outcome.edits) < outcome.wanted:
        sentences.append(
            f"{len(outcome.edits):,} of {outcome.wanted:,} mentions are changed: no more are in the pools, or the"
            " others would make a sentence that is there already."
        )
    if outcome.measured:
        sentences.append(
            f"{outcome.low:,} of the set's {outcome.measured:,} measured mentions are low-CEIM"
            f" ({outcome.low / outcome.measured:.1%})."
        )
    return sentences


def check_pools(method: str, rungs: Sequence[Pools], corpus: str) -> None:
    """Errors: CorpusError where the method has nothing to draw from, however far thresholds are lowered."""
    if method not in READS:
        return
    sizes = rungs[-1].sizes()
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


def rebuild(config: RebuildConfig, training: Training, rungs: Sequence[Pools]) -> Rebuilt:
    """The new set. rungs: as `pools_of` has them."""
    if config.method == "dataaug":
        return dataaug(training, by_tokenizer(load_tokenizer(config.encoder)), config.seed)
    if config.method != "low-share":
        return METHODS[config.method](training, rungs, config.rate, config.seed)
    if config.add_bin:
        return base_and(training, config.add_bin, config.size, config.seed)
    return low_share(training, config.rate, config.size, config.seed)


def measures(mentions: Iterable[Mention]) -> Measures:
    """Measurements of a `difficulty` run, by the mention's place."""
    return {
        (mention.row, mention.start, mention.end): Measured(mention.pvi_entity, mention.pvi_context, mention.bin)
        for mention in mentions
    }


def _measures(config: RebuildConfig, job: Job, sentences: Sequence[Sentence]) -> Measures:
    if config.method == "dataaug":
        return {}
    if not config.difficulty:
        raise ConfigError(
            f"difficulty: {config.method} needs pointwise V-information (PVI); give a finished difficulty run."
        )
    run = RunStore(job.home).get(config.difficulty)
    if run.manifest.kind != "difficulty" or run.state().state != "succeeded":
        raise Unfinished(f"difficulty: {run.id} is no finished difficulty run; run `difficulty` on the corpus first.")
    if run.manifest.inputs["train"] != config.train:
        raise ConfigError(
            f"difficulty: {run.id} measured {job.corpus(run.manifest.inputs['train']).name}, not"
            f" {job.corpus(config.train).name}; run `difficulty` on the corpus that is to be rebuilt."
        )
    mentions = read_mentions(mentions_file(run))
    assert all(sentences[mention.row].id == mention.sentence for mention in mentions)
    total = sum(len(sentence.entities or ()) for sentence in sentences)
    if len(mentions) < total:
        job.context.note(
            f"{len(mentions):,} of {total:,} mentions were measured; the others are in no pool, but the rate is of all."
        )
    return measures(mentions)


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


KIND = Kind(
    "rebuild",
    RebuildConfig,
    run,
    RebuildResult,
    title=lambda run: f"Rebuild {run.corpus(run.config['train'])} by {run.config['method']}",
    outcome=lambda result, _: f"{count(result.changed, 'mention')} changed",
    page="Bias",
)
