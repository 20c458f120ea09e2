"""Which network a tagger is, and what it may borrow: word vectors, an encoder's states, another corpus's labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal

from core.artifacts.drift import check_assisting
from core.artifacts.vectors import read_words
from core.config import Config, option
from core.errors import ConfigError
from core.recipes.base import Job
from core.text.sentence import Sentence
from core.training.settings import QUICK_STEPS, Settings

if TYPE_CHECKING:
    from core.models.tagger import Tagger
    from core.models.word_features import Vectors

MONOLINGUAL, MULTILINGUAL = 200, 400  # LSTM units of Murthy et al. 2018, alone and with an assisting corpus


class NetworkOptions(Config):
    """What reads the words, and what it learns from beside the training sentences."""

    network: Literal["encoder", "bilstm", "charcnn"] = option(
        "encoder",
        "encoder: from init. bilstm: the two-layer BiLSTM-CRF with a char-CNN of Dai et al. 2019. charcnn: the BiLSTM "
        "with a wide char-CNN of Murthy et al. 2018. The last two are small and begin from nothing.",
    )
    hidden: int | None = option(
        None, "bilstm, charcnn: LSTM units a direction; None: 200, charcnn with an assisting corpus 400.", ge=1, le=4096
    )
    vectors: str = option("", "bilstm, charcnn: a corpus whose skip-gram vectors words begin with.", corpus=True)
    states: str = option("", "bilstm: an encoder whose frozen layers, mixed, join at the second BiLSTM.")
    assisting: str = option("", "Another labelled corpus to learn from too, such as what skl keeps.", corpus=True)
    assisting_weight: float = option(0.1, "What the loss of one of its sentences counts for.", gt=0, le=1)
    share: Literal["all", "sub-word"] = option(
        "all", "bilstm, charcnn: what both corpora learn together; all, or the char-CNN alone."
    )
    assisting_types: tuple[str, ...] = option(
        (),
        "bilstm, charcnn: all types of the corpus that the assisting sentences are a part of; with others than the "
        "training sentences' they get an output layer of their own, whatever the part holds.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Borrowed:
    """What a training takes from elsewhere. states: an encoder's name or folder, "" for none."""

    assisting: list[Sentence]
    vectors: "Vectors | None" = None
    states: str = ""

    @property
    def types(self) -> set[str]:
        """Of the assisting corpus."""
        return {entity.type for sentence in self.assisting for entity in sentence.entities or ()}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSet:
    """Sentences, what the loss of each counts for, and whose they are (0 primary, 1 assisting)."""

    sentences: list[Sentence]
    weights: list[float]
    sources: list[int]


def check_stages(stages: str, network: str) -> None:
    """Errors: ConfigError where two stages are asked of a network without an encoder."""
    if stages == "lpft" and network != "encoder":
        raise ConfigError(f"stages: lpft freezes an encoder, and {network} has none; choose the network encoder.")


def borrow(config: NetworkOptions, job: Job, types: Sequence[str], states: str = "") -> Borrowed:
    """Fetch all that the config names; vectors are learnt as a run of their own. types: of the training sentences.

    Errors: CorpusError, ConfigError where the network cannot make use of it.
    """
    if config.network == "encoder" and (config.vectors or config.states or config.hidden):
        raise ConfigError("network: vectors, states and hidden are for bilstm and charcnn; choose one of them.")
    assisting: list[Sentence] = []
    if config.assisting:
        corpus = job.corpus(config.assisting)
        check_assisting(config.network, corpus, types)
        assisting = list(chain.from_iterable(corpus.batches()))
    vectors = read_words(job.child("vectors", corpus=config.vectors)) if config.vectors else None
    return Borrowed(assisting=assisting, vectors=vectors, states=states)


def training_set(config: NetworkOptions, train: Sequence[Sentence], borrowed: Borrowed) -> TrainingSet:
    """Both corpora, the primary one repeated until it is as large as the assisting one (Murthy et al. 2018, 3.2)."""
    other = borrowed.assisting
    n = max(len(train), len(other))
    return TrainingSet(
        sentences=[*(train[row % len(train)] for row in range(n)), *other],
        weights=[*[1.0] * n, *[config.assisting_weight] * len(other)],
        sources=[*[0] * n, *[1] * len(other)],
    )


def new_recurrent(
    config: NetworkOptions,
    train: Sequence[Sentence],
    types: Sequence[str],
    borrowed: Borrowed,
    *,
    head: Literal["crf", "softmax"],
    constrained: bool,
) -> "Tagger":
    """A `bilstm` or `charcnn` tagger, random from torch's seed as it stands.

    Its size and layers follow from whether there is an assisting corpus and from all its types, not from a part of it.
    """
    from core.models.bilstm import LAYOUTS, BiLstmTagger
    from core.models.devices import pick_device
    from core.models.word_features import build_vocabulary

    assert config.network != "encoder"
    other = borrowed.assisting
    usual = MULTILINGUAL if other and config.network == "charcnn" else MONOLINGUAL
    layout = replace(LAYOUTS[config.network], hidden=config.hidden or usual, states=borrowed.states, share=config.share)
    own_words = bool(other) and config.share == "sub-word"
    other_types = borrowed.types | set(config.assisting_types)
    parts = [train, other] if own_words else [[*train, *other]]
    tagger = BiLstmTagger(
        types,
        head,
        layout,
        [build_vocabulary(part, borrowed.vectors if index == 0 else None) for index, part in enumerate(parts)],
        assisting_types=sorted(other_types) if own_words or (other and other_types != set(types)) else None,
        constrained=constrained,
        vectors=borrowed.vectors,
    )
    return tagger.to(pick_device())


def recurrent_settings(config: NetworkOptions, preset: Literal["quick", "paper", "custom"]) -> Settings:
    """bilstm: Adam at 1e-3 (SOURCES.md, Recurrent taggers). charcnn: SGD at 0.4, times 0.7 when dev F1 falls, until
    below 0.002 (Murthy et al. 2018, 3.2)."""
    steps = QUICK_STEPS if preset == "quick" else 0
    epochs = 200 if preset == "paper" else 40
    if config.network == "charcnn":
        return Settings(
            epochs=epochs,
            batch_size=16,
            learning_rate=0.4,
            head_learning_rate=0.4,
            weight_decay=0.0,
            patience=epochs,
            min_epochs=1,
            max_steps=steps,
            clip=5.0,
            decay=0.7,
            least_rate=0.002,
        )
    return Settings(
        epochs=epochs,
        batch_size=16,
        learning_rate=1e-3,
        head_learning_rate=1e-3,
        weight_decay=0.0,
        patience=10,
        min_epochs=10,
        max_steps=steps,
        clip=5.0,
    )
