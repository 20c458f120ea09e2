"""`rebuild`: a training set with less informative names, more informative contexts, or other shares of CEIM bins.

The methods are those of Ma et al. 2023, section 4, and DataAug, one of their baselines. LPFT, another baseline, is an
option of `finetune`. MINER is left out: it needs a span classifier, and its released code trains a loss that differs
from the paper (SOURCES.md, MINER). Only training data is rebuilt, never a set that taggers are tested on (SOURCES.md,
Rebuilding).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, Self, get_args

from pydantic import field_validator

from core.bias import pools
from core.bias.pools import Pools, Thresholds, base_and, find_pools, ladder, low_share
from core.bias.replacements import by_tokenizer, dataaug, highc2low, low2high, random2high, random2low, redundant2low
from core.bias.result import (
    BINS,
    EDITS,
    Mention,
    RebuildResult,
    mentions_file,
    read_mentions,
    write_log,
    write_sentences,
)
from core.bias.robustness import Perturbation
from core.bias.training_sentences import Measures, Rebuilt, Training, key_of, measures
from core.config import Config, option, unusual
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import ConfigError, CorpusError, Unfinished
from core.kind import Job, Kind
from core.models.fingerprint import fingerprint
from core.models.hub import load_tokenizer
from core.runs.store import RunStore
from core.shown import count
from core.tagging.evaluations import labelled
from core.text.sentence import Sentence

# Kinds of runs that have a test set.
TESTING = ("finetune", "experiment", "assist", "evaluate", "dictionary", "llm", "zero-shot")
# Inputs of a run that must not become training data.
HELD_OUT = ("dev", "test", "also_test", "holdout")
# Words that replace "train" in the name of a dev or test set.
_OTHER_PARTS = ("dev", "devel", "valid", "validation", "val", "test")
Method = Literal["random2low", "highc2low", "redundant2low", "random2high", "low2high", "low-share", "dataaug"]
METHODS: Mapping[str, Callable[[Training, Sequence[Pools], float, int], Rebuilt]] = {
    "random2low": random2low,
    "highc2low": highc2low,
    "redundant2low": redundant2low,
    "random2high": random2high,
    "low2high": low2high,
}
# Methods that lower the thresholds of "high" if the rate cannot be reached otherwise.
NAMES = ("random2low", "highc2low", "redundant2low")
# Version of METHODS. Raise it if a code change makes the same options give other sets.
EDITION = "2"
# Version of the method `low-share`.
SHARES_EDITION = "2"
# {method: pools that it needs, which must not be empty}
READS: Mapping[str, tuple[str, ...]] = {
    "random2low": ("entity_high", "entity_low"),
    "highc2low": ("both_high", "entity_low"),
    "redundant2low": ("entity_high", "entity_low"),
    "random2high": ("context_high",),
    "low2high": ("context_high",),
}
# Maximum number of sentences that a corpus may share with a held-out set: 20, or 10% of the smaller of the two sets if
# that is more. Some overlap is allowed because stock phrases occur in both.
STOCK, SHARED = 20, 0.1
# A corpus is also refused if the shared sentences are at least this proportion of the smaller of the two sets, even if
# there are fewer of them than STOCK.
NEARLY = 0.9


class RebuildOptions(Config):
    """Options that do not depend on the training set: thresholds, sizes and the seed."""

    entity_low: str = option(
        pools.AUTO,
        "A name with at most this information (PVI) is low. Give bits (0.5), or a quantile of the type (20%: its "
        "lowest fifth). auto: below 0 bits, or the lowest 20% of a type if fewer than 5% of its names are below 0 "
        "bits.",
    )
    entity_high: str = option(
        "50%",
        "A name with at least this information (PVI) is high. Give bits, or a quantile of the type's PVI (50%: its "
        "median). If too few names are high to reach the rate, the threshold is lowered in steps of 10%.",
    )
    context_high: str = option(
        "50%",
        "A context with at least this information (PVI) is high. low2high and random2high never lower this threshold.",
    )
    size: int = option(1000, "low-share: number of sentences.", unit="sentences", ge=1)
    add_bin: Literal["", "low", "near_zero", "high", "none"] = option(
        "",
        "low-share: draw `size` sentences of random mentions, and `size` more with a mention in this bin of name minus "
        "context (CEIM). none: draw only the first. In both cases, rate is ignored.",
    )
    seed: int = option(1, "Seed of all random draws.", ge=0)

    @field_validator("entity_low", "entity_high", "context_high")
    @classmethod
    def _threshold(cls, threshold: str) -> str:
        return pools.check(threshold)

    @property
    def thresholds(self) -> Thresholds:
        """Thresholds of low and high PVI, from these options."""
        return Thresholds(entity_low=self.entity_low, entity_high=self.entity_high, context_high=self.context_high)


class RebuildConfig(RebuildOptions):
    """Options of a `rebuild` run: the training set, the method, and the `difficulty` run that measured the set."""

    train: str = option(..., "Training set to change: labelled sentences (L_C), never a test set.", corpus=True)
    method: Method = option(
        ...,
        "random2low, highc2low, redundant2low: less informative names. random2high, low2high: more informative "
        "contexts. low-share: a set of a fixed size in which a given share of sentences has a low-CEIM mention and the "
        "others have none. dataaug: typos and names of similar spelling.",
    )
    rate: float = option(
        0.2,
        "Share of all mentions to change (0.2 or 20%); low-share: share of sentences with a mention of low CEIM "
        "(name minus context).",
        ge=0,
        le=1,
    )
    difficulty: str = option("", "Finished difficulty run of this corpus; all methods except dataaug need one.")
    holdout: tuple[str, ...] = option(
        (), "Dev and test sets. Their sentences are never added to the new set.", corpus=True
    )
    encoder: str = option(
        "minilm", "dataaug: encoder whose tokenizer splits words into pieces. Pieces typical of a type get no typo."
    )

    weights: str = option("", "Hash of the encoder.", hidden=True)
    edition: str = option(
        "", "Version of the method, set by Winnow. A set of an older version is made again.", hidden=True
    )

    def settled(self) -> Self:
        """Return these options with the hash of the encoder or the version of the method.

        Errors: ModelError if the encoder is not on this computer.
        """
        if self.method == "dataaug":
            return self.model_copy(update={"weights": fingerprint(self.encoder)})
        return self.model_copy(update={"edition": EDITION if self.method in METHODS else SHARES_EDITION})

    @field_validator("rate", mode="before")
    @classmethod
    def _rate(cls, rate: object) -> object:
        """Convert a percentage such as `20%` to 0.2. Return any other value unchanged."""
        return float(rate[:-1]) / 100 if isinstance(rate, str) and rate[-1:] == "%" and rate[:-1].strip() else rate


def run(config: RebuildConfig, job: Job) -> RebuildResult:
    """Rebuild a training set. Artifacts: see `core.bias.result`."""
    train = job.corpus(config.train)
    refuse_tests(train, RunStore(job.home))
    job.context.stage("reading the training sentences")
    sentences = labelled(train)
    if not train.types:
        raise CorpusError(f"{train.name}: has no entity, so there is no mention to change; give a labelled corpus.")
    closed = held_out(train, sentences, [job.corpus(name) for name in config.holdout], job.context.note)
    training = Training.of(sentences, _measures(config, job, sentences), closed)
    rungs = _pools_of(config, training)
    check_pools(config.method, rungs, train.name)
    job.context.stage(f"rebuilding by {config.method}")
    outcome = rebuild(config, training, rungs)
    for note in _notes(outcome):
        job.context.note(note)
    corpus = _sealed(config, job, train, sentences, outcome)
    edits = write_log(job.context, EDITS, outcome.edits)
    conll = write_sentences(job.context, outcome.sentences)
    return RebuildResult(
        corpus=corpus.fingerprint,
        sentences=len(corpus),
        mentions=sum(corpus.types.values()),
        changed=len(outcome.edits),
        wanted=outcome.wanted,
        of=len(training),
        reached=outcome.reached,
        pools=_sizes(rungs, outcome),
        low_mentions=outcome.low,
        measured_mentions=outcome.measured,
        output=str(conll),
        edits=str(edits),
    )


def refuse_tests(corpus: Corpus, store: RunStore) -> None:
    """Raise a ConfigError if `corpus` is a robustness set or the test set of a run."""
    if corpus.origin.get("kind") in get_args(Perturbation):
        raise ConfigError(
            f"{corpus.name}: is a robustness set ({corpus.origin['kind']}), made for testing; only training data is"
            " rebuilt, so give a training set."
        )
    for run in store.list(*TESTING):
        inputs = run.manifest.inputs.items()
        roles = {role.partition(".")[0] for role, fingerprint in inputs if fingerprint == corpus.fingerprint}
        if roles & {"test", "also_test"}:
            raise ConfigError(
                f"{corpus.name}: is a test set of the run {run.id}; only training data is rebuilt, so give a"
                " training set, or remove that run if it was tested on training data."
            )


def held_out(
    train: Corpus, sentences: Sequence[Sentence], holdout: Sequence[Corpus], note: Callable[[str], None]
) -> list[str]:
    """Return the texts of all sentences in `holdout`.

    sentences: all sentences of `train`. note: function to call with each note for the user. Errors: CorpusError if too
    many sentences of `train` are in a held-out set.
    """
    if not holdout:
        note("No dev or test set was given, so no sentence was checked against them; give the dev and test sets.")
    train_keys = {key_of(sentence.text) for sentence in sentences}
    held_texts: list[str] = []
    for corpus in holdout:
        texts = [sentence.text for sentence in chain.from_iterable(corpus.batches())]
        held_keys = set(map(key_of, texts))
        shared, smaller = len(train_keys & held_keys), min(len(train_keys), len(held_keys))
        if shared >= NEARLY * smaller or shared > max(STOCK, SHARED * smaller):
            raise CorpusError(
                f"{train.name}: {shared:,} of its sentences are in the held-out {corpus.name}; only training data is"
                " rebuilt, so give a training set."
            )
        if shared:
            note(
                f"{shared:,} sentences are also in {corpus.name}: they stay unchanged, and no name is taken from them."
            )
        held_texts += texts
    return held_texts


def _measures(config: RebuildConfig, job: Job, sentences: Sequence[Sentence]) -> Measures:
    """Read the measurements of the `difficulty` run. Errors: ConfigError, RunError, Unfinished."""
    if config.method == "dataaug":
        return {}
    if not config.difficulty:
        raise ConfigError(
            f"difficulty: {config.method} needs pointwise V-information (PVI); give a finished difficulty run."
        )
    run = RunStore(job.home).get(config.difficulty)
    if run.manifest.kind != "difficulty" or run.state().state != "succeeded":
        raise Unfinished(
            f"difficulty: {run.id} is not a finished difficulty run; run `difficulty` on the corpus first."
        )
    if run.manifest.inputs["train"] != config.train:
        raise ConfigError(
            f"difficulty: {run.id} measured {job.corpus(run.manifest.inputs['train']).name}, not"
            f" {job.corpus(config.train).name}; run `difficulty` on the corpus to rebuild."
        )
    mentions = read_mentions(mentions_file(run))
    assert all(sentences[mention.row].id == mention.sentence for mention in mentions)
    total = sum(len(sentence.entities or ()) for sentence in sentences)
    if len(mentions) < total:
        job.context.note(
            f"{len(mentions):,} of {total:,} mentions were measured. Only these can be changed, but the rate is a share"
            " of all mentions."
        )
    return measures(mentions)


def _pools_of(config: RebuildConfig, training: Training) -> list[Pools]:
    """Return the pools to draw from, highest thresholds first; [] if the method uses no pools."""
    if config.method not in METHODS:
        return []
    by = ladder if config.method in NAMES else lambda *given: [find_pools(*given)]
    return by(training.kinds, training.entity, training.context, config.thresholds)


def check_pools(method: str, rungs: Sequence[Pools], corpus: str) -> None:
    """Check that the pools that the method needs contain mentions.

    Errors: CorpusError if one of them is empty even with the lowest thresholds, or if the corpus has only one type.
    """
    if method not in READS:
        return
    sizes = rungs[-1].sizes()
    if len(sizes["entity_low"]) < 2:
        raise CorpusError(
            f"{corpus}: has one type only, so there are no types to distinguish; give a corpus with"
            " two types or more, or choose dataaug."
        )
    for pool in READS[method]:
        if not any(sizes[pool].values()):
            raise CorpusError(
                f"{corpus}: no mention is in the pool {pool}, from which {method} draws; change its threshold."
            )


def rebuild(config: RebuildConfig, training: Training, rungs: Sequence[Pools]) -> Rebuilt:
    """Return the rebuilt training set. rungs: pools to draw from, highest thresholds first."""
    if config.method == "dataaug":
        return dataaug(training, by_tokenizer(load_tokenizer(config.encoder)), config.seed)
    if config.method != "low-share":
        return METHODS[config.method](training, rungs, config.rate, config.seed)
    if config.add_bin:
        return base_and(training, config.add_bin, config.size, config.seed)
    return low_share(training, config.rate, config.size, config.seed)


def _sizes(rungs: Sequence[Pools], outcome: Rebuilt) -> dict[str, dict[str, int]]:
    """Return {pool: {type: number of mentions}} of the pools that the method drew from; {} if it used none."""
    return next((pools.sizes() for pools in rungs if pools.reached == outcome.reached), {})


def _notes(outcome: Rebuilt) -> list[str]:
    sentences = []
    if outcome.reached:
        sentences.append(
            "The given thresholds leave too few mentions, so the thresholds of high names and contexts were lowered to"
            f" the {outcome.reached} quantile of their type. The threshold of low names is unchanged."
        )
    if len(outcome.edits) < outcome.wanted:
        sentences.append(
            f"{len(outcome.edits):,} of {outcome.wanted:,} mentions are changed: the pools have no more mentions, or"
            " changing them would repeat a sentence of the set."
        )
    if outcome.measured:
        sentences.append(
            f"{outcome.low:,} of the set's {outcome.measured:,} measured mentions have low CEIM"
            f" ({outcome.low / outcome.measured:.1%}): their context is more informative than their name."
        )
    return sentences


def _sealed(config: RebuildConfig, job: Job, train: Corpus, sentences: list[Sentence], outcome: Rebuilt) -> Corpus:
    """Store the new set as a corpus and return it. If nothing changed, return the training corpus."""
    if outcome.sentences == sentences:
        return train
    origin = {"run": job.context.run.id, "from": train.fingerprint, "method": config.method}
    # The corpus's name contains the method and all options that differ from their default.
    text = f"{config.method} {config.rate * 100:.6g}%"
    options: tuple[str, ...] = ("entity_low", "entity_high", "context_high")
    if config.method == "dataaug":
        text, options = config.method, ("encoder",)
    elif config.method == "low-share":
        text, options = f"{text} of {config.size:,}", ()
        if config.add_bin == "none":
            text = f"{config.size:,} at random"
        elif config.add_bin:
            text = f"{config.size:,} and {config.size:,} {config.add_bin}"
    name = ", ".join([train.name, text, *unusual(config, (*options, "seed"))])
    return job.library.seal(iter(outcome.sentences), name=name, origin=origin, labelled=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Expected outcome of a rebuild, in numbers.

    pools, reached: see `RebuildResult`. of: number of mentions in the training set. measured: number of measured
    mentions. wanted: number of mentions to change. able: number of mentions that can be changed. bins: {CEIM bin:
    number of sentences with a mention in this bin}. low, drawn: number of low-CEIM mentions, and of all measured
    mentions, in a set drawn by CEIM. empty: reason why the rebuild cannot run, else "".
    """

    pools: Mapping[str, Mapping[str, int]]
    reached: str
    of: int
    measured: int
    wanted: int
    able: int
    bins: Mapping[str, int]
    low: int
    drawn: int
    empty: str


def preview(
    config: RebuildConfig, train: Corpus, mentions: Sequence[Mention], training: Training, store: RunStore
) -> Preview:
    """Return what the chosen method would change in the training set, as numbers.

    mentions: measured by `difficulty`. training: the training set with these measurements.
    """
    rungs = _pools_of(config, training)
    outcome, empty = Rebuilt(sentences=[], edits=[]), ""
    try:
        refuse_tests(train, store)
        check_pools(config.method, rungs, train.name)
        if config.method in (*METHODS, "low-share"):
            outcome = rebuild(config, training, rungs)
    except (ConfigError, CorpusError) as error:
        empty = str(error)
    return Preview(
        pools=_sizes(rungs, outcome),
        reached=outcome.reached,
        of=len(training),
        measured=len(mentions),
        wanted=outcome.wanted,
        able=len(outcome.edits),
        bins={name: len({mention.row for mention in mentions if mention.bin == name}) for name in BINS},
        low=outcome.low,
        drawn=outcome.measured,
        empty=empty,
    )


def splits_of(train: Corpus, roles: Mapping[str, str], library: Library, store: RunStore) -> tuple[list[str], str]:
    """Return the fingerprints of the dev and test sets that belong to `train`, and a phrase for how they were found.

    They are the held-out sets of runs that trained on `train` or on a corpus that it was made from, and the dev and
    test sets of the page Corpora, if its training set is one of these corpora. If there are none, they are corpora with
    the same name except that dev or test replaces train. Return `([], "")` if there are none either.
    """
    here = {corpus.fingerprint: corpus for corpus in library.list() if corpus.labelled}
    family = {corpus.fingerprint: corpus for corpus in _family(train, here)}

    def others(found: Iterable[str]) -> list[str]:
        return [each for each in dict.fromkeys(found) if each in here and each not in family]

    # Use both of these, because a run may have had a dev set only.
    known = {
        "held out in runs that trained on it": others(_of_runs(set(family), store)),
        "given as dev and test sets, on the page Corpora": others(
            roles[role] for role in ("dev", "test") if role in roles and roles.get("train") in family
        ),
    }
    if any(known.values()):
        return others(chain.from_iterable(known.values())), ", or ".join(source for source in known if known[source])
    named = others(other for other in here for corpus in family.values() if _named_as_part(corpus, here[other]))
    return named, "found by their names" if named else ""


def _family(train: Corpus, here: Mapping[str, Corpus]) -> Iterator[Corpus]:
    """Yield `train`, then the corpus that it was made from, then that corpus's own source, and so on."""
    corpus: Corpus | None = train
    seen: set[str] = set()
    while corpus and corpus.fingerprint not in seen:
        yield corpus
        seen.add(corpus.fingerprint)
        corpus = here.get(corpus.parent)


def _of_runs(trained_on: set[str], store: RunStore) -> list[str]:
    """Return the held-out sets of all runs that trained on one of these corpora. `rebuild` runs do not train."""
    runs = [run.manifest.inputs for run in store.list(*TESTING)]
    return [
        fingerprint
        for inputs in runs
        if inputs.get("train") in trained_on
        for name, fingerprint in inputs.items()
        if name.partition(".")[0] in HELD_OUT
    ]


def _named_as_part(train: Corpus, other: Corpus) -> bool:
    """Return True if replacing "train" by "dev" or "test" in the name of `train` gives the name of `other`.

    "training" is replaced too, and other words for dev, such as "valid", are also tried (`_OTHER_PARTS`). Former names
    of both corpora count too.
    """
    parts = "|".join(_OTHER_PARTS)
    patterns = [
        re.sub(r"(?<![a-z])train(?:ing)?(?![a-z])", f"(?:{parts})", re.escape(name.lower()))
        for name in {train.name, *train.names}
        if re.search(r"(?<![a-z])train(?:ing)?(?![a-z])", name.lower())
    ]
    return any(re.fullmatch(pattern, name.lower()) for pattern in patterns for name in (other.name, *other.names))


KIND = Kind(
    "rebuild",
    RebuildConfig,
    run,
    RebuildResult,
    title=lambda run: f"Rebuild {run.corpus(run.config['train'])} by {run.config['method']}",
    outcome=lambda result, _: f"{count(result.changed, 'mention')} changed",
    page="Bias",
)
