"""Taggers on an encoder, and the folders from which any tagger is loaded: ordinary Hugging Face folders.

config.json         id2label in IOB2, so that `pipeline("token-classification")` joins words to entities;
                    `winnow`: BIOES tags, head, window, mix of layers, tokenisation of raw text
model.safetensors   the emission model, and crf.start_transitions, crf.transitions, crf.end_transitions; for a mix of
                    layers also mix.weights, mix.gamma
tokenizer files     README.md (the card, written by the training run)
names.json          only for a tagger with a dictionary (`name_features`), with names.scores in model.safetensors
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from core.errors import ModelError
from core.models import bilstm, hub
from core.models.crf import Head, bioes_tags
from core.models.devices import Precision, pick_device, pick_dtype
from core.models.encoder import longest
from core.models.layers import LayerMix, arrange
from core.models.model_files import json_object
from core.models.name_features import NameFeatures
from core.models.networks import LayerChoice
from core.models.span import SpanTagger
from core.models.tagger import Features, PieceTagger, Reading, Tagger, complete
from core.text.cut import Cut
from core.text.sentence import Sentence

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_LAST_LAYERS = ("classifier", "score")
_NEW_TOO = ("head.",)  # ModernBERT's second-to-last layer, which is not part of a plain encoder
_IOB2 = str.maketrans("ES", "IB")


class EncoderTagger(PieceTagger):
    """A Hugging Face token-classification model and a `LinearChain` (SOURCES.md, Taggers).

    The emissions of a word are the logits of its first piece. The last layer and the chain always compute in float32.
    mixed: True to read a mix of all layers instead of the last layer. names (attribute): scores of a dictionary, added
    to the logits; None: no dictionary.
    """

    def __init__(
        self,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        types: Sequence[str],
        head: Head,
        reading: Reading,
        *,
        constrained: bool = False,
        mixed: bool = False,
    ) -> None:
        super().__init__(model, tokenizer, types, head, reading, constrained=constrained)
        # torch calls `self.forward`, so an attribute of the object replaces the method of the class.
        self.last_layer.__dict__["forward"] = _in_float32(self.last_layer)
        self.mix = LayerMix(model) if mixed else None
        self.names: NameFeatures | None = None

    @property
    def last_layer(self) -> nn.Linear:
        """The linear layer that computes the logits."""
        layers = (getattr(self.model, name, None) for name in _LAST_LAYERS)
        layer = next((part for part in layers if isinstance(part, nn.Linear)), None)
        if layer is None:
            raise ModelError(
                f"{type(self.model).__name__}: Winnow does not know its last layer; choose an encoder such as BERT."
            )
        return layer

    def features(self, sentences: Sequence[Sentence]) -> Features:
        features = super().features(sentences)
        return {**features, "names": self.names.rows(sentences)} if self.names else features

    def emissions(self, features: Features, shape: tuple[int, int]) -> Tensor:
        result = torch.zeros(*shape, len(self.tags), device=self.device)
        sentence, word, window, piece = features["places"]
        with self._precision():
            attention = features["attention"] if features["padded"] else None
            options = {"output_hidden_states": True} if self.mix else {}
            logits = self.model(input_ids=features["ids"], attention_mask=attention, **options).logits
        result[sentence, word] = logits[window, piece].float()
        return result + self.names(features["names"]) if self.names else result

    def _outputs(self, name: str, types: Sequence[str]) -> tuple[str, ...]:
        last = [f"model.{layer}.{part}" for layer in _LAST_LAYERS for part in ("weight", "bias")]
        return bioes_tags(types) if name in last else super()._outputs(name, types)

    def parameter_groups(
        self, learning_rate: float, head_learning_rate: float, chain_learning_rate: float | None = None
    ) -> list[dict[str, Any]]:
        parts: list[nn.Module] = [self.last_layer, *([self.mix] if self.mix else [])]
        chain, layer = self.in_chains(), {id(p) for part in parts for p in part.parameters()}
        # A dictionary's scores have the chain's learning rate. Like transitions, each changes by about this rate per
        # step.
        chain |= {id(p) for p in self.names.parameters()} if self.names else set()
        # Weights that were not in the encoder's file also have the last layer's rate.
        drawn: Collection[str] = self.model.__dict__.get("drawn", ())
        layer |= {id(p) for name, p in self.model.named_parameters() if name in drawn}
        trained = [p for p in self.parameters() if p.requires_grad]
        with_own_rate = chain if chain_learning_rate else set()  # otherwise, chains have the last layer's rate
        groups: list[dict[str, Any]] = [
            {"params": [p for p in trained if id(p) not in chain | layer], "lr": learning_rate},
            {"params": [p for p in trained if id(p) in (chain | layer) - with_own_rate], "lr": head_learning_rate},
            {"params": [p for p in trained if id(p) in with_own_rate], "lr": chain_learning_rate},
        ]
        return [*groups[:2], *(group for group in groups[2:] if group["params"])]

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.model.config.winnow = {
            "tags": list(self.tags),
            "types": list(self.types),
            "head": self.crf.head,
            "constrained": self.crf.constrained,
            "temperature": self.crf.temperature,
            "max_length": self.pieces.max_length,
            "context": self.context_pieces,
            **({"layers": "mix"} if self.mix else {}),
            **({"cut": self.cut.as_dict()} if self.cut else {}),
        }
        own = {f"crf.{name}": scores for name, scores in self.crf.state_dict().items()}
        if self.mix:
            own |= {f"mix.{name}": tensor for name, tensor in self.mix.state_dict().items()}
        if self.names:
            own |= {f"names.{name}": tensor for name, tensor in self.names.state_dict().items()}
            self.names.write(folder)
        weights = {name: tensor.cpu() for name, tensor in {**self.model.state_dict(), **own}.items()}
        self.model.save_pretrained(folder, state_dict=weights)
        self.tokenizer.save_pretrained(folder)


def new_tagger(
    init: str,
    types: Sequence[str],
    *,
    head: Head = "crf",
    constrained: bool = False,
    layers: str = "last",
    max_length: int = 256,
    context_pieces: int = 0,
    precision: Precision = "auto",
    device: str = "auto",
    allow_download: bool = False,
) -> EncoderTagger:
    """Make a tagger of encoder `init` with a new last layer and chain, drawn from torch's current random state.

    layers: see `LayerChoice`. Errors: ModelError, ResourceError, ConfigError.
    """
    from transformers import AutoModelForTokenClassification

    on_device, choice = pick_device(device), LayerChoice.parse(layers)
    # One logit per BIOES tag, under the tag's name in IOB2: `E-x` is an `I-x`, `S-x` a `B-x`.
    names = {i: tag[:1].translate(_IOB2) + tag[1:] for i, tag in enumerate(bioes_tags(types))}
    model = hub.load_model(
        init,
        AutoModelForTokenClassification,
        allow_download=allow_download,
        new_layers=("pooler", *_LAST_LAYERS, *_NEW_TOO),
        id2label=names,
        # Two BIOES tags share an IOB2 name. The reverse mapping gives the first of them.
        label2id={name: i for i, name in reversed(names.items())},
        # A fine-tuned encoder has a last layer for other tags. It is reinitialised below anyway.
        ignore_mismatched_sizes=True,
        dtype=torch.float32,
    )
    arrange(model, choice, init)
    tokenizer = hub.load_tokenizer(init, allow_download=allow_download)
    reading = Reading(
        max_length=min(max_length, longest(model, tokenizer)),
        context_pieces=context_pieces,
        dtype=pick_dtype(precision, on_device),
    )
    mixed = choice.kind == "mix"
    tagger = EncoderTagger(model, tokenizer, types, head, reading, constrained=constrained, mixed=mixed)
    # Initialise like the encoder's layers, because a last layer in the file was trained on other tags.
    nn.init.normal_(tagger.last_layer.weight, std=float(getattr(model.config, "initializer_range", 0.02)))
    nn.init.zeros_(tagger.last_layer.bias)
    return tagger.to(on_device)


def new_span_tagger(
    init: str,
    types: Sequence[str],
    *,
    max_length: int = 256,
    context_pieces: int = 0,
    beta: float = 0.0,
    gamma: float = 0.0,
    precision: Precision = "auto",
    device: str = "auto",
    allow_download: bool = False,
) -> SpanTagger:
    """Make a tagger of encoder `init` with a new layer of spans, drawn from torch's current random state.

    beta, gamma: see `SpanTagger`. Errors: ModelError, ResourceError.
    """
    on_device = pick_device(device)
    model = hub.load_model(init, allow_download=allow_download, dtype=torch.float32)
    tokenizer = hub.load_tokenizer(init, allow_download=allow_download)
    reading = Reading(
        max_length=min(max_length, longest(model, tokenizer)),
        context_pieces=context_pieces,
        dtype=pick_dtype(precision, on_device),
    )
    return SpanTagger(model, tokenizer, types, reading, beta=beta, gamma=gamma).to(on_device)


def load_tagger(folder: Path, device: str = "auto", precision: Precision = "auto") -> Tagger:
    """Load the tagger of a `finetune` run. Errors: ModelError if `folder` holds no tagger made by Winnow."""
    from transformers import AutoModelForTokenClassification

    if (network := bilstm.network_of(folder)) == "bilstm":
        return bilstm.load(folder, device)
    on_device = pick_device(device)
    if network == "span":
        return _load_span(folder, on_device, precision)
    # A plain encoder is refused here, because `load_model` would only say that it lacks a tagger's last layer.
    about: Any = json_object(str(folder), hub.folder_of(str(folder)) / "config.json").get("winnow")
    if about is None:
        raise ModelError(
            f"{folder}: is not a tagger made by Winnow (its config.json has no `winnow`); run finetune first."
        )
    model = hub.load_model(str(folder), AutoModelForTokenClassification, new_layers=(), dtype=torch.float32)
    tokenizer = hub.load_tokenizer(str(folder))
    with complete(folder):
        options = {"constrained": about["constrained"], "mixed": about.get("layers") == "mix"}
        tagger = EncoderTagger(
            model, tokenizer, about["types"], about["head"], _reading(about, on_device, precision), **options
        )
        chain = _tensors(folder, "crf.")
        if len(chain) != 3:
            raise ModelError(
                f"{folder}: its safetensors hold no CRF transitions; copy the whole folder of the run again."
            )
        tagger.crf.load_state_dict(chain)
        tagger.crf.temperature = float(about.get("temperature", 1.0))
        tagger.cut = Cut.from_dict(about["cut"]) if "cut" in about else None
        if tagger.mix:
            tagger.mix.load_state_dict(_tensors(folder, "mix."))
        tagger.names = NameFeatures.read(folder, tagger.tags)
        if tagger.names:
            tagger.names.load_state_dict(_tensors(folder, "names."))
    return tagger.to(on_device).eval()


def _load_span(folder: Path, on_device: torch.device, precision: Precision) -> SpanTagger:
    model = hub.load_model(str(folder), dtype=torch.float32)
    tokenizer, about = hub.load_tokenizer(str(folder)), model.config.winnow
    with complete(folder):
        tagger = SpanTagger(model, tokenizer, about["types"], _reading(about, on_device, precision))
        tagger.span.load_state_dict(_tensors(folder, "span."))
        tagger.crf.temperature = float(about["temperature"])
        tagger.cut = Cut.from_dict(about["cut"]) if "cut" in about else None
    return tagger.to(on_device).eval()


def _reading(about: Mapping[str, Any], on_device: torch.device, precision: Precision) -> Reading:
    """Return how a stored tagger reads sentences. Older taggers have no `context`."""
    return Reading(
        max_length=about["max_length"],
        context_pieces=int(about.get("context", 0)),
        dtype=pick_dtype(precision, on_device, frozen=True),
    )


def _tensors(folder: Path, begin: str) -> dict[str, torch.Tensor]:
    """Return the tensors whose names begin with `begin`, as {rest of the name: tensor}."""
    from safetensors import safe_open

    tensors: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            tensors |= {name[len(begin) :]: file.get_tensor(name) for name in file.keys() if name.startswith(begin)}  # noqa: SIM118
    return tensors


def _in_float32(layer: nn.Linear) -> Callable[[Tensor], Tensor]:
    """Return a `forward` in float32, because bf16 keeps three digits of a logit, too few for the chain."""

    def forward(hidden: Tensor) -> Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            return nn.functional.linear(hidden.float(), layer.weight, layer.bias)

    return forward
