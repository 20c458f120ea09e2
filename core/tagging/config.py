"""Options of `finetune`, and checks that they can be combined."""

from typing import Literal, Self

from pydantic import field_validator

from core.assisting.skl import parse_map
from core.config import LARGEST_SEED, Config, checked, option
from core.encoders.vectors import find_import
from core.errors import ConfigError
from core.models.fingerprint import fingerprint
from core.models.networks import ON_ENCODER
from core.paths import home
from core.runs.store import RunStore, is_run_id
from core.similarity.wvv import WvvOptions
from core.training.settings import TaggerSettings

IMPORTED = ("imported_vectors", "imported_assisting_vectors")


class WordVectorOptions(Config):
    """Options for the initial word vectors of a recurrent tagger. Vectors are learnt from a corpus or imported."""

    vectors: str = option(
        "", "bilstm, charcnn: learn skip-gram vectors from this corpus and start from them.", corpus=True
    )
    assisting_vectors: str = option(
        "",
        "Also learn skip-gram vectors from this corpus, in the language of the assisting corpus. With share all, "
        "these vectors are used for words without a vector from `vectors`; with share sub-word, for all words of the "
        "assisting corpus.",
        corpus=True,
    )
    imported_vectors: str = option(
        "", "Use these word vectors instead of `vectors`: name or run id of an import (`vectors add`)."
    )
    imported_assisting_vectors: str = option("", "Use these imported word vectors instead of `assisting_vectors`.")
    skipgram: dict[str, object] = option(
        {}, "Skip-gram settings, such as window=2 or dimension=200; also negative, min_count, skipgram_epochs."
    )

    def settled(self) -> Self:
        """Return these options with names of imports replaced by run ids. Errors: ConfigError for an unknown name."""
        references = {name: getattr(self, name) for name in IMPORTED if getattr(self, name)}
        ids = {name: find_import(name, text, RunStore(home()))[0] for name, text in references.items()}
        return super().settled().model_copy(update=ids)

    @field_validator("skipgram")
    @classmethod
    def _skipgram(cls, options: dict[str, object]) -> dict[str, object]:
        return checked("skipgram", options, WvvOptions)

    @property
    def own_words(self) -> str:
        """Corpus or import that the word vectors come from; "" if they start at random."""
        return self.vectors or self.imported_vectors

    @property
    def assisting_words(self) -> str:
        """Corpus or import that the vectors for words of the assisting corpus come from; "" if there is none."""
        return self.assisting_vectors or self.imported_assisting_vectors

    def check_words(self) -> None:
        """Raise ConfigError if word vectors are both learnt and imported, so that a word would have two vectors."""
        for learnt, imported in zip(("vectors", "assisting_vectors"), IMPORTED, strict=True):
            if getattr(self, learnt) and getattr(self, imported):
                raise ConfigError(f"{learnt}, {imported}: a word can start from only one vector; choose one option.")


class FinetuneConfig(WordVectorOptions, TaggerSettings):
    """Options of `finetune`: the encoder, the labelled data, and the settings of the training."""

    init: str = option(
        "minilm", "A Hugging Face name, a folder, minilm (bundled), or the id of a finished pretrain run."
    )
    train: str = option(..., "Training set: labelled sentences (L_C).", corpus=True)
    dev: str = option(..., "Dev set: labelled sentences on which the best epoch is chosen.", corpus=True)
    test: tuple[str, ...] = option((), "Test sets: labelled sentences, each scored once.", corpus=True)
    seeds: tuple[int, ...] = option(
        (1, 2, 3), "One tagger is trained per seed. Use 3 seeds for a first result, and 5 for a reliable one."
    )
    stages: Literal["joint", "lpft"] = option(
        "joint",
        "lpft: first train the last layer and the CRF with a frozen encoder, then everything, with the same settings.",
    )
    states: str = option("", "bilstm: an encoder whose frozen layers are mixed and fed to the second BiLSTM.")
    dictionary: tuple[str, ...] = option(
        (),
        "encoder: lists of names, as labelled corpora. The tagger learns how far to trust a listed name in a sentence. "
        "Do not give the training set as a list.",
        corpus=True,
    )
    first: str = option(
        "",
        "encoder, span: another labelled corpus to train on first, without sentences that are also in dev or test. "
        "Training on the training set then continues with this encoder, and with the output weights of the types that "
        "both corpora have.",
        corpus=True,
    )
    first_epochs: int = option(
        2, "Epochs of training on `first`; the weights of the last epoch are kept.", ge=1, le=100
    )
    type_map: tuple[str, ...] = option(
        (), "OLD=NEW renames a type of `first` to a type of the training set (PER=person); OLD= leaves the type out."
    )
    unlabelled: str = option(
        "",
        "encoder: unlabelled sentences for self-training, such as a selection. Sentences that are also in dev or test "
        "are left out. A tagger trained on the training set labels them, and a second tagger also learns from its "
        "confident labels. The second tagger is used if its dev F1 is higher.",
        corpus=True,
    )
    distant: tuple[str, ...] = option(
        (),
        "encoder: lists of names, as labelled corpora. A first tagger learns from their matches in `unlabelled`, "
        "then from its own predictions there (distant supervision). The final tagger starts from the first one.",
        corpus=True,
    )
    assisting: str = option(
        "",
        "Assisting corpus: another labelled corpus to train on too, such as the sentences kept by the command `skl`.",
        corpus=True,
    )
    assisting_types: tuple[str, ...] = option(
        (),
        "bilstm, charcnn: all entity types of the corpus that the assisting sentences come from. If these types differ "
        "from those of the training set, the assisting sentences get a separate output layer.",
    )

    weights: str = option("", "Hash of the encoder.", hidden=True)

    def settled(self) -> Self:
        """Return these options with the encoder's hash, unless the encoder is given as the id of a run.

        Errors: ModelError if the encoder is missing.
        """
        encoder, settled = self.init if self.network in ON_ENCODER else self.states, super().settled()
        if not encoder or is_run_id(encoder) or self.allow_download:
            return settled
        return settled.model_copy(update={"weights": fingerprint(encoder)})

    @field_validator("type_map")
    @classmethod
    def _type_map(cls, pairs: tuple[str, ...]) -> tuple[str, ...]:
        """Return the pairs OLD=NEW in a standard spelling and order. Errors: ConfigError if one is malformed."""
        return tuple(sorted(f"{old}={new}" for old, new in parse_map(pairs).items()))

    @field_validator("seeds")
    @classmethod
    def _seeds(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        return check_seeds(seeds)


def check_seeds(seeds: tuple[int, ...]) -> tuple[int, ...]:
    """Return the seeds of a training. Errors: ConfigError if there are none, or one is given twice or not allowed."""
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0 or max(seeds) > LARGEST_SEED:
        raise ConfigError(
            f"seeds: {seeds} are not allowed; give one or more different whole numbers from 0 to {LARGEST_SEED:,}."
        )
    return seeds


def check_network(config: FinetuneConfig) -> None:
    """Check that the network has all chosen options. Errors: ConfigError for an option that it does not have."""
    check_stages(config.stages, config.network)
    check_settings(config)
    if config.type_map and not config.first:
        raise ConfigError("type_map: renames types of the corpus `first`, which is missing; add it, or drop type_map.")
    if config.first and config.network not in ON_ENCODER:
        raise ConfigError(
            f"first: needs a network with an encoder, and {config.network} has none; choose the network encoder."
        )
    if config.dictionary and config.network != "encoder":
        raise ConfigError(f"dictionary: works with the network encoder, not with {config.network}; choose encoder.")
    _check_unlabelled(config)
    if own := {config.train, config.dev, *config.test} & set(config.dictionary):
        raise ConfigError(
            f"dictionary: {', '.join(sorted(own))} is also the training, dev or test set, so its names would be found "
            "too often; give a list of other names."
        )


def _check_unlabelled(config: FinetuneConfig) -> None:
    if config.distant and not config.unlabelled:
        raise ConfigError("distant: names are looked up in unlabelled sentences; give unlabelled too.")
    if not config.unlabelled:
        return
    if config.network != "encoder" or config.head == "memm":
        raise ConfigError(
            "unlabelled: needs the network encoder with the head crf or softmax, whose loss accepts unknown tags; "
            "choose these, or leave unlabelled out."
        )
    if config.assisting or config.first:
        raise ConfigError("unlabelled: cannot be combined with assisting or first; give one of the three.")
    if config.stages == "lpft":
        raise ConfigError("unlabelled: cannot be combined with stages lpft; choose joint, or leave unlabelled out.")
    if held := {config.dev, *config.test} & set(config.distant):
        raise ConfigError(
            f"distant: {', '.join(sorted(held))} is also the dev or test set, so its names would be found too often; "
            "give a list of other names."
        )


def check_stages(stages: str, network: str) -> None:
    """Check the option `stages`. Errors: ConfigError for `lpft` with a network that has no encoder."""
    if stages == "lpft" and network not in ON_ENCODER:
        raise ConfigError(f"stages: lpft freezes an encoder, and {network} has none; choose the network encoder.")


def check_settings(config: TaggerSettings) -> None:
    """Check the settings. Errors: ConfigError if the network lacks a setting, or if two settings exclude each other."""
    network, layers = config.network, config.layers
    if layers != "last" and network == "span":
        raise ConfigError(f"layers: {layers} needs the network encoder; the network span reads the last layer.")
    if layers != "last" and network != "encoder":
        raise ConfigError(f"layers: {layers} needs an encoder, and {network} has none; choose the network encoder.")
    if (config.lora or config.checkpointing) and network not in ON_ENCODER:
        raise ConfigError(f"lora, checkpointing: need an encoder, and {network} has none; choose the network encoder.")
    if config.lora and layers.startswith("reinit"):
        raise ConfigError(f"lora: does not train the layers that {layers} resets; set lora to 0, or layers to last.")
    if config.in_turn and network != "charcnn":
        raise ConfigError(f"in_turn: works with charcnn only, but the network is {network}; choose charcnn.")
    if (config.beta or config.gamma) and network != "span":
        raise ConfigError(f"beta, gamma: need the network span, but the network is {network}; choose span.")
    if config.context and network not in ON_ENCODER:
        raise ConfigError(f"context: {network} reads one sentence at a time; choose the network encoder.")
    if 2 * config.context >= config.max_length:
        raise ConfigError(
            f"context: {config.context} pieces on both sides fill a window of {config.max_length}; give fewer, or a "
            "larger max_length."
        )
