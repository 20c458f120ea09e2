"""Build a tagger's network, and fetch what it needs: word vectors, an encoder's states, an assisting corpus."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from core.assisting.skl import check_assisting
from core.bias.training_sentences import Known, Name, folded, name_of, ordered, renamed
from core.dictionary.dictionary import resolved
from core.encoders.vectors import alike_words, mean_cosine, read_words
from core.errors import ConfigError
from core.kind import Job
from core.models.networks import MOST, ON_ENCODER
from core.runs.store import RunStore
from core.similarity.wvv import WvvOptions
from core.tagging.config import FinetuneConfig, WordVectorOptions
from core.tagging.evaluations import WithVector
from core.text.names import Dictionary
from core.text.sentence import Paired, Sentence, in_context
from core.training.settings import TaggerSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from core.models.tagger import Tagger
    from core.models.word_features import Vectors
    from core.training.rows import Copies

# {value of the option `class_weights`: power in `sentence_weights`}. With power 0, all sentences have equal weight.
CLASS_WEIGHTS = {"none": 0.0, "root": 0.5, "inverse": 1.0}
# LSTM units in Murthy et al. 2018, without and with an assisting corpus.
MONOLINGUAL, MULTILINGUAL = 200, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Borrowed:
    """Assisting sentences, word vectors and an encoder that a training uses in addition to the training set.

    assisting_types: types of the corpus from which the assisting sentences were taken, if known. word_size: dimension
    of the word vectors; 0: the default. states: name or folder of an encoder whose frozen states are read, or "".
    names: dictionary of names that the tagger looks up, or None.
    """

    assisting: list[Sentence]
    assisting_types: tuple[str, ...] = ()
    vectors: "Vectors | None" = None
    assisting_vectors: "Vectors | None" = None
    word_size: int = 0
    states: str = ""
    names: Dictionary | None = None

    @property
    def types(self) -> set[str]:
        """Entity types of the assisting corpus, including those of the assisting sentences."""
        seen = {entity.type for sentence in self.assisting for entity in sentence.entities or ()}
        return seen | set(self.assisting_types)


def borrow(config: FinetuneConfig, job: Job, types: Sequence[str], states: str = "") -> Borrowed:
    """Return the assisting sentences, word vectors and names that `config` asks for.

    Word vectors are learnt in child runs. types: entity types of the training set. states: encoder whose frozen states
    are read, or "". Errors: CorpusError; ConfigError if the network cannot use an option.
    """
    if config.network in ON_ENCODER and (
        config.own_words or config.assisting_words or config.skipgram or config.states or config.hidden
    ):
        raise ConfigError(
            "network: vectors, skipgram, states and hidden need the network bilstm or charcnn; choose one "
            "of these two, or leave the options out."
        )
    config.check_words()
    if config.assisting_words and not (config.own_words and config.assisting):
        raise ConfigError(
            "assisting_vectors: need assisting and vectors too; give both, or leave assisting_vectors out."
        )
    assisting: list[Sentence] = []
    if config.assisting:
        corpus = job.corpus(config.assisting)
        check_assisting(config.network, corpus, types)
        assisting = in_context(list(chain.from_iterable(corpus.batches())), config.context)
    own, other = word_vectors(config, job)
    return Borrowed(
        assisting=assisting,
        assisting_types=config.assisting_types,
        vectors=own if other is None or own is None or config.share == "sub-word" else joined(own, other),
        assisting_vectors=other,
        word_size=WvvOptions.parse(config.skipgram).dimension,
        states=states,
        names=Dictionary(resolved([job.corpus(mark) for mark in config.dictionary])[0]) if config.dictionary else None,
    )


def word_vectors(config: WordVectorOptions, job: Job) -> "tuple[Vectors | None, Vectors | None]":
    """Return the word vectors for the training set and those for the assisting corpus.

    The vectors are learnt in child runs or imported. Vectors that the config does not ask for are None. Errors:
    CorpusError; ConfigError if the two sets of vectors differ in dimension.
    """
    own, other = (
        read_words(job.child("vectors", corpus=corpus, **config.skipgram))
        if corpus
        else read_words(RunStore(job.home).get(imported))
        if imported
        else None
        for corpus, imported in (
            (config.vectors, config.imported_vectors),
            (config.assisting_vectors, config.imported_assisting_vectors),
        )
    )
    if own and other and own.values.shape[1] != other.values.shape[1]:
        raise ConfigError(
            f"assisting_vectors: {other.values.shape[1]} numbers per word, but vectors have "
            f"{own.values.shape[1]}; choose two of the same length (skipgram dimension=N)."
        )
    return own, other


def joined(own: "Vectors", other: "Vectors") -> "Vectors":
    """Join two tables of word vectors; a word in both tables keeps its vector from `own`."""
    from core.models.word_features import Vectors

    known = set(own.words)
    rows = [row for row, word in enumerate(other.words) if word not in known]
    words = (*own.words, *(other.words[row] for row in rows))
    return Vectors(words=words, values=np.concatenate([own.values, other.values[rows]]), tokens=own.tokens)


def count_with_vector(
    vectors: "Vectors | None", train: Sequence[Sentence], tests: Sequence[Sequence[Sentence]], job: Job
) -> WithVector | None:
    """Return the shares of words that have a pretrained vector, and add a note on them; None without vectors."""
    from core.models.word_features import share_with_vector

    if vectors is None:
        return None
    shares = WithVector(
        train=share_with_vector(train, vectors, each_once=True),
        tests=[share_with_vector(test, vectors) for test in tests],
        mean_cosine=mean_cosine(vectors.values),
    )
    job.context.note(" ".join(filter(None, [shares.words, alike_words(shares.mean_cosine)])))
    return shares


def sentence_weights(config: TaggerSettings, train: Sequence[Sentence]) -> list[float]:
    """Return the weight of each training sentence in the loss, 1 on average.

    An entity's weight is (mean number of mentions per type / number of mentions of its type) to the power in
    `CLASS_WEIGHTS`. A sentence's weight is the mean of its entities' weights, or 1 without entities. These weights are
    then scaled to a mean of 1. Sentences are weighted instead of words, because a CRF has no loss per word (SOURCES.md,
    Class weights).
    """
    power = CLASS_WEIGHTS[config.class_weights]
    mentions = Counter(entity.type for sentence in train for entity in sentence.entities or ())
    if not power or not mentions:
        return [1.0] * len(train)
    usual = mentions.total() / len(mentions)
    weights = [
        fmean((usual / mentions[entity.type]) ** power for entity in sentence.entities) if sentence.entities else 1.0
        for sentence in train
    ]
    mean = fmean(weights)  # Divide by the mean, so that the learning rate has the same effect as without weights.
    return [weight / mean for weight in weights]


def new_network(
    config: FinetuneConfig, init: str, train: Sequence[Sentence], types: Sequence[str], borrowed: Borrowed
) -> "Tagger":
    """Build the tagger that `config` describes, initialised with torch's current seed. init: the encoder, or ""."""
    from core.models.name_features import NameFeatures
    from core.models.taggers import new_span_tagger, new_tagger

    read = config.model_dump(include={"max_length", "precision", "allow_download"})
    read["context_pieces"] = config.context
    if config.network == "span":
        return new_span_tagger(init, types, beta=config.beta, gamma=config.gamma, **read)
    if config.network == "encoder":
        legal = config.within_bioes
        tagger = new_tagger(init, types, head=config.head, layers=config.layers, constrained=legal, **read)
        if borrowed.names:
            tagger.names = NameFeatures(borrowed.names, tagger.tags).to(tagger.device)
            tagger.names.fit(train)
        return tagger
    return new_recurrent(config, train, types, borrowed)


def new_recurrent(
    config: TaggerSettings, train: Sequence[Sentence], types: Sequence[str], borrowed: Borrowed
) -> "Tagger":
    """Build a `bilstm` or `charcnn` tagger, initialised with torch's current seed.

    All types of the assisting corpus determine the tagger's layers, even if only some of its sentences are used.
    """
    from core.models.bilstm import LAYOUTS, BiLstmTagger
    from core.models.devices import pick_device
    from core.models.word_features import build_vocabulary

    assert config.network != "encoder"
    assert config.network != "span"
    other = borrowed.assisting
    usual = MULTILINGUAL if other and config.network == "charcnn" else MONOLINGUAL
    layout = replace(LAYOUTS[config.network], hidden=config.hidden or usual, states=borrowed.states, share=config.share)
    layout = replace(layout, word_size=borrowed.word_size or layout.word_size)
    own_words = bool(other) and config.share == "sub-word"
    other_types = borrowed.types
    parts = [train, other] if own_words else [[*train, *other]]
    vectors = [borrowed.vectors, borrowed.assisting_vectors][: len(parts)]
    tagger = BiLstmTagger(
        types,
        config.head,
        layout,
        [build_vocabulary(part, own) for part, own in zip(parts, vectors, strict=True)],
        assisting_types=sorted(other_types) if own_words or (other and other_types != set(types)) else None,
        constrained=config.within_bioes,
        vectors=vectors,
    )
    return tagger.to(pick_device())


def save_memory(config: FinetuneConfig, tagger: "Tagger", seed: int) -> Callable[[], None]:
    """Apply the options `checkpointing` and `lora` to the tagger's encoder.

    Return a function to call after the training; it merges LoRA's weights into the encoder.
    """
    from core.models.layers import Lora
    from core.training.memory import checkpoint_layers

    model: PreTrainedModel = getattr(tagger, "model", None)
    if config.checkpointing:
        checkpoint_layers(model, config.init)
    return Lora(model, config.lora, seed).merge if config.lora else lambda: None


def copies(config: TaggerSettings, train: Sequence[Sentence]) -> "Copies | None":
    """Return the function that MINER uses to copy training sentences with other names; None if MINER is off."""
    return OtherNames(train).copy if config.beta or config.gamma else None


class OtherNames:
    """Copies training sentences for MINER, with each name replaced by another name of its type (SOURCES.md, MINER).

    The other names come from the training set and have at most `MOST` words, the length limit of a span.
    """

    def __init__(self, train: Iterable[Sentence]) -> None:
        self._names: dict[str, list[Name]] = {}
        for kind, names in Known.of(train).names.items():
            once = {folded(name): name for name in names if len(name) <= MOST}
            self._names[kind] = list(once.values())

    def copy(self, sentence: Sentence, draw: int) -> Sentence:
        """Return a pair of `sentence` and a copy with other names, or `sentence` alone if no name can be replaced.

        draw: seed that determines the names.
        """
        rng, names = Random(draw), dict[int, Name]()
        for place, entity in enumerate(ordered(sentence)):
            own, others = folded(name_of(sentence, entity)), self._names.get(entity.type, [])
            if entity.end - entity.start > MOST or len(others) < 2:
                continue
            # The loop ends, because there are at least two different names, so one of them differs from `own`.
            while folded(name := rng.choice(others)) == own:
                pass
            names[place] = name
        if not names:
            return sentence
        other = renamed(sentence, names)
        before, after = ordered(sentence), ordered(other)
        pairs = [((before[i].start, before[i].end), (after[i].start, after[i].end)) for i in names]
        return Paired.of(sentence, other, tuple(pairs))
