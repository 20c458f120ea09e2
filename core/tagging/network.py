"""What a tagger may borrow (word vectors, an encoder's states, another corpus's labels), and the recurrent ones."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING

from core.assisting.drift import check_assisting
from core.errors import ConfigError
from core.kind import Job
from core.models.networks import ON_ENCODER
from core.similarity.wvv import WvvOptions
from core.tagging.other_names import OtherNames
from core.tagging.pretrained_words import joined, word_vectors
from core.text.neighbours import in_context
from core.text.sentence import Sentence
from core.training.settings import TaggerSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from core.models.tagger import Tagger
    from core.models.word_features import Vectors
    from core.tagging.finetune import FinetuneConfig
    from core.training.rows import Copies

CLASS_WEIGHTS = {"none": 0.0, "root": 0.5, "inverse": 1.0}  # the power of a type's inverse share
MONOLINGUAL, MULTILINGUAL = 200, 400  # LSTM units of Murthy et al. 2018, alone and with an assisting corpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Borrowed:
    """Data that a training takes from elsewhere. states: an encoder's name or folder, "" for none. assisting_types: of
    the whole corpus that the assisting sentences are a part of, where that is known. word_size: of a word's vector."""

    assisting: list[Sentence]
    assisting_types: tuple[str, ...] = ()
    vectors: "Vectors | None" = None
    assisting_vectors: "Vectors | None" = None
    word_size: int = 0
    states: str = ""

    @property
    def types(self) -> set[str]:
        """Types of the assisting corpus."""
        seen = {entity.type for sentence in self.assisting for entity in sentence.entities or ()}
        return seen | set(self.assisting_types)


def begins_from_encoder(network: str) -> bool:
    """Whether a tagger of that network is an encoder that is fine-tuned."""
    return network in ON_ENCODER


def check_stages(stages: str, network: str) -> None:
    """Errors: ConfigError where two stages are asked of a network without an encoder."""
    if stages == "lpft" and network not in ON_ENCODER:
        raise ConfigError(f"stages: lpft freezes an encoder, and {network} has none; choose the network encoder.")


def check_layers(layers: str, network: str) -> None:
    """Errors: ConfigError where layers are picked of a network that reads the last one, or has none."""
    if layers != "last" and network == "span":
        raise ConfigError(f"layers: {layers} is of the network encoder; a tagger of spans reads the last layer.")
    if layers != "last" and network != "encoder":
        raise ConfigError(f"layers: {layers} is of an encoder, and {network} has none; choose the network encoder.")


def check_lora(config: TaggerSettings) -> None:
    """Errors: ConfigError where the weights of no encoder are to be left as they are, or of layers drawn anew."""
    if (config.lora or config.checkpointing) and config.network not in ON_ENCODER:
        raise ConfigError(
            f"lora, checkpointing: are of an encoder, and {config.network} has none; choose the network encoder."
        )
    if config.lora and config.layers.startswith("reinit"):
        raise ConfigError(
            f"lora: leaves the layers that {config.layers} draws anew as they were drawn; choose one of the two."
        )


def check_context(config: TaggerSettings) -> None:
    """Errors: ConfigError where neighbouring sentences are asked of a network that reads one at a time, or where they
    leave no room for the sentence itself."""
    if config.context and config.network not in ON_ENCODER:
        raise ConfigError(f"context: {config.network} reads a sentence at a time; choose the network encoder.")
    if 2 * config.context >= config.max_length:
        raise ConfigError(
            f"context: {config.context} pieces on both sides fill a window of {config.max_length}; give fewer, or a "
            "larger max_length."
        )


def check_network(config: "FinetuneConfig") -> None:
    """Errors: ConfigError where something is asked of a network that it has not."""
    check_stages(config.stages, config.network)
    check_own(config)


def check_own(config: TaggerSettings) -> None:
    """The same of what a tagger's settings say."""
    check_layers(config.layers, config.network)
    check_lora(config)
    check_in_turn(config)
    check_contrast(config)
    check_context(config)


def borrow(config: "FinetuneConfig", job: Job, types: Sequence[str], states: str = "") -> Borrowed:
    """Fetch all that the config names; vectors are learnt as a run of their own. types: of the training sentences.

    Errors: CorpusError, ConfigError where the network cannot make use of it.
    """
    if config.network in ON_ENCODER and (
        config.own_words or config.assisting_words or config.skipgram or config.states or config.hidden
    ):
        raise ConfigError(
            "network: vectors, skipgram, states and hidden are for bilstm and charcnn; choose one of them."
        )
    config.check_words()
    if config.assisting_words and not (config.own_words and config.assisting):
        raise ConfigError(
            "assisting_vectors: are those of an assisting corpus's words, beside vectors; give assisting and vectors "
            "too, or leave them out."
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
    )


def check_in_turn(config: TaggerSettings) -> None:
    """Errors: ConfigError where a network is to learn a sentence a step that was not made for it."""
    if config.in_turn and config.network != "charcnn":
        raise ConfigError(f"in_turn: is how charcnn was trained, and the network is {config.network}; choose charcnn.")


def check_contrast(config: TaggerSettings) -> None:
    """Errors: ConfigError where names are to be compared by a network that has no representation of one."""
    if (config.beta or config.gamma) and config.network != "span":
        raise ConfigError(f"beta, gamma: are of spans, and the network is {config.network}; choose span.")


def own_weights(config: TaggerSettings, train: Sequence[Sentence]) -> list[float]:
    """Weight of each training sentence's loss."""
    return by_types(train, CLASS_WEIGHTS[config.class_weights])


def by_types(train: Sequence[Sentence], power: float) -> list[float]:
    """Weight of each sentence's loss, 1 on average: the mean over its entities of their types' inverse share
    of all mentions to the `power`, relative to a share like the others'; 1 for a sentence without an entity.

    A sentence and not a word is weighed, since a chain has no loss of single words (SOURCES.md, Class weights).
    """
    mentions = Counter(entity.type for sentence in train for entity in sentence.entities or ())
    if not power or not mentions:
        return [1.0] * len(train)
    usual = mentions.total() / len(mentions)
    weights = [
        fmean((usual / mentions[entity.type]) ** power for entity in sentence.entities) if sentence.entities else 1.0
        for sentence in train
    ]
    mean = fmean(weights)  # so that the learning rate means what it did
    return [weight / mean for weight in weights]


def new_network(
    config: "FinetuneConfig", init: str, train: Sequence[Sentence], types: Sequence[str], borrowed: Borrowed
) -> "Tagger":
    """The tagger that `config` asks for, random from torch's seed as it stands. init: the encoder, "" for none."""
    from core.models.taggers import new_span_tagger, new_tagger

    read = config.model_dump(include={"max_length", "context", "precision", "allow_download"})
    if config.network == "span":
        return new_span_tagger(init, types, beta=config.beta, gamma=config.gamma, **read)
    if config.network == "encoder":
        return new_tagger(init, types, head=config.head, layers=config.layers, constrained=config.within_bioes, **read)
    return new_recurrent(config, train, types, borrowed)


def copies(config: TaggerSettings, train: Sequence[Sentence]) -> "Copies | None":
    """Function that gives training sentences copies to be compared with; None where nothing is."""
    return OtherNames(train).copy if config.beta or config.gamma else None


def new_recurrent(
    config: TaggerSettings, train: Sequence[Sentence], types: Sequence[str], borrowed: Borrowed
) -> "Tagger":
    """A `bilstm` or `charcnn` tagger, random from torch's seed as it stands.

    Its size and layers follow from whether there is an assisting corpus and from all its types, not from a part of it.
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


def lighter(config: "FinetuneConfig", tagger: "Tagger", seed: int) -> Callable[[], None]:
    """Let the encoder's training take less memory, as asked for; what it returns is to be called once that is over."""
    from core.models.lora import Lora
    from core.training.lighter import checkpoint_layers

    model: PreTrainedModel = getattr(tagger, "model", None)
    if config.checkpointing:
        checkpoint_layers(model, config.init)
    return Lora(model, config.lora, seed).merge if config.lora else lambda: None
