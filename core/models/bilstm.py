"""Recurrent taggers: a two-layer BiLSTM-CRF with a char-CNN, and a BiLSTM that two corpora share.

The first is that of Dai et al. 2019, the second that of Murthy et al. 2018 (SOURCES.md, Recurrent taggers).

config.json         `winnow`: the layout, the types, the head
vocabulary.json     words and letters, of each corpus that has its own
model.safetensors   every weight
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from core.errors import ModelError, memory_ran_out
from core.files import read_json, refuse_changed
from core.models.crf import Head, LinearChain, bioes_tags
from core.models.devices import pick_device
from core.models.hub import VOCABULARY, WEIGHTS
from core.models.recurrent import Tower
from core.models.states import FrozenStates
from core.models.tagger import IGNORED, Features, Tagger, labels_of
from core.models.word_features import UNKNOWN, CharCnn, Vectors, Vocabulary, letter_indices, place
from core.text.cut import Cut
from core.text.sentence import Sentence

Network = Literal["bilstm", "charcnn"]
Share = Literal["all", "sub-word"]
PRIMARY, ASSISTING = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Sizes of a network. hidden: units a direction. widths: of the char-CNN's windows, letters.

    states: an encoder whose frozen layers join at the second BiLSTM; "": none. share: what an assisting corpus
    shares with the primary one: all but the output layer where types differ, or the char-CNN alone.
    """

    layers: int = 2
    hidden: int = 200
    word_size: int = 100
    letter_size: int = 30
    filters: int = 30
    widths: tuple[int, ...] = (3,)
    dropout: float = 0.5
    states: str = ""
    share: Share = "all"


LAYOUTS: dict[Network, Layout] = {
    "bilstm": Layout(),
    "charcnn": Layout(layers=1, filters=20, widths=tuple(range(1, 10))),
}


class BiLstmTagger(Tagger):
    """A BiLSTM-CRF over word vectors and letters, for one corpus or for two that share layers.

    vocabularies: of the primary corpus; of the assisting one too where it has word vectors of its own.

    assisting_types: those of the assisting corpus where it has an output layer of its own; None: it has not.
    vectors: those that the words of each vocabulary begin with.
    """

    def __init__(
        self,
        types: Sequence[str],
        head: Head,
        layout: Layout,
        vocabularies: Sequence[Vocabulary],
        *,
        assisting_types: Sequence[str] | None = None,
        constrained: bool = False,
        vectors: Sequence[Vectors | None] = (),
    ) -> None:
        super().__init__(types, head, constrained=constrained)
        if vectors and (first := vectors[PRIMARY]) is not None:
            layout = replace(layout, word_size=first.values.shape[1])
        self.layout, self.vocabularies = layout, tuple(vocabularies)
        self.assisting_types = None if assisting_types is None else tuple(assisting_types)
        letters = sorted({letter for vocabulary in vocabularies for letter in vocabulary.letters})
        self._letters = {letter: index for index, letter in enumerate(letters, 2)}
        self._words = [vocabulary.lookup() for vocabulary in vocabularies]
        self._states = FrozenStates(layout.states) if layout.states else None
        if self._states and layout.layers < 2:
            raise ModelError(f"{layout.states}: its states join at the second BiLSTM; choose a network with two.")
        self.mix = nn.Parameter(torch.zeros(self._states.layers)) if self._states else None  # softmax: all alike
        self.scale = nn.Parameter(torch.ones(1)) if self._states else None
        self.characters = CharCnn(len(letters), layout.letter_size, layout.filters, layout.widths, layout.dropout)
        self.towers = nn.ModuleList(
            Tower(
                vocabulary,
                word_size=layout.word_size,
                letters=self.characters.size,
                hidden=layout.hidden,
                layers=layout.layers,
                dropout=layout.dropout,
                states=self._states.size if self._states else 0,
                vectors=own,
            )
            for vocabulary, own in zip(vocabularies, [*vectors, None, None], strict=False)
        )
        self.last_layer = nn.Linear(2 * layout.hidden, len(self.tags))
        self._add_assisting_output(head)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move the frozen encoder along, which is no part of what is trained and saved."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self._states:
            self._states.model.to(self.device)
        return self

    def _add_assisting_output(self, head: Head) -> None:
        """An output layer and a chain of the assisting corpus's own, where its types differ."""
        self.assisting_layer: nn.Linear | None = None
        self.assisting_crf: LinearChain | None = None
        if self.assisting_types is not None:
            tags = bioes_tags(self.assisting_types)
            self.assisting_layer = nn.Linear(2 * self.layout.hidden, len(tags))
            self.assisting_crf = LinearChain(tags, head, constrained=self.crf.constrained)
        chain = self.assisting_crf or self.crf
        self._assisting_index = {tag: index for index, tag in enumerate(chain.tags)}

    def batch(
        self,
        sentences: Sequence[Sentence],
        weights: Sequence[float] | None = None,
        sources: Sequence[int] | None = None,
    ) -> Features:
        """A training batch, in one part a corpus.

        sources: PRIMARY or ASSISTING, a sentence each; default all primary. Their labels are of their own tags. They
        make no difference where both corpora share every layer.
        """
        together = self.assisting_types is None and len(self.towers) == 1  # one pass is faster than two
        sources = [PRIMARY] * len(sentences) if together or not sources else list(sources)
        indices = [self._index, self._assisting_index]
        parts = []
        for source in sorted(set(sources)):
            rows = [row for row, origin in enumerate(sources) if origin == source]
            features = self.features([sentences[row] for row in rows], source)
            parts.append({**features, "source": source, "rows": torch.tensor(rows)})
        return {
            "features": {"parts": parts, "pieces": sum(part["pieces"] for part in parts)},
            "labels": labels_of(sentences, [indices[source] for source in sources]),
            "weights": torch.tensor(weights or [1.0] * len(sentences)),
        }

    def forward(
        self, features: Features, labels: Tensor, weights: Tensor, num_items_in_batch: Tensor | int | None = None
    ) -> dict[str, Tensor]:
        """`loss`: as `Tagger` has it, every corpus under its own output layer and chain."""
        words = (labels != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
        loss = torch.zeros((), device=labels.device)
        for part in features["parts"]:
            own = labels[part["rows"], : part["words"].shape[1]]
            layer, chain = self._output(part["source"])
            emissions = layer(self._hidden(part, part["source"]))
            losses = chain.loss(emissions, own.clamp(min=0), own != IGNORED)
            loss = loss + (losses * weights[part["rows"]]).sum()
        return {"loss": loss / words}

    def features(self, sentences: Sequence[Sentence], source: int = PRIMARY) -> Features:
        """words: `(b, l)` indices; letters: `(u, c)` of the u distinct words, spelling: `(b, l)` which of them."""
        own = min(source, len(self._words) - 1)
        lookup, by_parts = self._words[own], self.vocabularies[own].by_parts
        lengths = np.array([len(sentence.tokens) for sentence in sentences])
        shape = (len(sentences), int(lengths.max()))
        words, spelling = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        distinct: dict[str, int] = {}  # letters are convolved once a distinct word, however often a batch has it
        for row, sentence in enumerate(sentences):
            n = len(sentence.tokens)
            words[row, :n] = [place(lookup, token, by_parts=by_parts) or UNKNOWN for token in sentence.tokens]
            spelling[row, :n] = [distinct.setdefault(token, len(distinct)) for token in sentence.tokens]
        places = np.arange(shape[1])[None].repeat(len(sentences), 0)
        turned = np.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
        arrays = {"words": words, "spelling": spelling, "turned": turned}
        return {
            **{name: torch.from_numpy(array) for name, array in arrays.items()},
            "letters": letter_indices(list(distinct), self._letters),
            "pieces": int(lengths.sum()),
            **({"states": self._states.of(sentences)} if self._states else {}),
        }

    def emissions(self, features: Features, shape: tuple[int, int]) -> Tensor:
        emissions: Tensor = self.last_layer(self._hidden(features, PRIMARY))
        assert emissions.shape[:2] == shape
        return emissions

    def _hidden(self, part: Features, source: int) -> Tensor:
        letters = nn.functional.embedding(part["spelling"], self.characters(part["letters"]))
        states = None
        if self.mix is not None and self.scale is not None:
            states = self.scale * torch.einsum("blsd,s->bld", part["states"], self.mix.softmax(0))
        hidden: Tensor = self.towers[min(source, len(self.towers) - 1)](part["words"], letters, part["turned"], states)
        return hidden

    def _output(self, source: int) -> tuple[nn.Linear, LinearChain]:
        if source == PRIMARY or self.assisting_layer is None or self.assisting_crf is None:
            return self.last_layer, self.crf
        return self.assisting_layer, self.assisting_crf

    def size(self, sentence: Sentence) -> int:
        return len(sentence.tokens)

    def parameter_groups(
        self, learning_rate: float, head_learning_rate: float, chain_learning_rate: float | None = None
    ) -> list[dict[str, Any]]:
        """One, and another for the chains where they have a rate: everything is new here. head_learning_rate is not
        used."""
        with_own_rate = self.in_chains() if chain_learning_rate else set()
        trained = [p for p in self.parameters() if p.requires_grad]
        chains = [p for p in trained if id(p) in with_own_rate]
        groups = [{"params": [p for p in trained if id(p) not in with_own_rate], "lr": learning_rate}]
        return [*groups, {"params": chains, "lr": chain_learning_rate}] if chains else groups

    def write(self, folder: Path) -> None:
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        about = {
            "network": "bilstm",
            "types": self.types,
            "tags": self.tags,
            "head": self.crf.head,
            "constrained": self.crf.constrained,
            "temperature": self.crf.temperature,
            "assisting_types": self.assisting_types,
            "layout": asdict(self.layout),
            **({"cut": self.cut.as_dict()} if self.cut else {}),
        }
        config = {"model_type": "winnow", "architectures": [type(self).__name__], "winnow": about}
        (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
        vocabularies = [vocabulary.as_dict() for vocabulary in self.vocabularies]
        (folder / VOCABULARY).write_text(json.dumps(vocabularies, ensure_ascii=False), encoding="utf-8")
        save_file(
            {name: tensor.cpu().contiguous() for name, tensor in self.state_dict().items()},
            folder / WEIGHTS,
        )


def _about(folder: Path) -> dict[str, Any]:
    try:
        about = read_json(folder / "config.json").get("winnow", {})
    except (OSError, ValueError, AttributeError):
        return {}
    return about if isinstance(about, dict) else {}


def network_of(folder: Path) -> object:
    """Name that a tagger's folder gives its network; None where it gives none."""
    return _about(folder).get("network")


def is_bilstm(folder: Path) -> bool:
    """Whether `BiLstmTagger.write` made this folder."""
    return network_of(folder) == "bilstm"


def load(folder: Path, device: str = "auto") -> BiLstmTagger:
    """The tagger that `BiLstmTagger.write` wrote. Errors: ModelError where a file is missing or torn, RunError where
    one is not as its run left it."""
    from safetensors.torch import load_file

    refuse_changed(folder)
    about = _about(folder)
    try:
        layout = about["layout"] | {"widths": tuple(about["layout"]["widths"])}
        values = read_json(folder / VOCABULARY)
        tagger = BiLstmTagger(
            about["types"],
            about["head"],
            Layout(**layout),
            [Vocabulary.from_dict(vocabulary) for vocabulary in values],
            assisting_types=about["assisting_types"],
            constrained=about["constrained"],
        )
        tagger.load_state_dict(load_file(folder / WEIGHTS))
        tagger.crf.temperature = float(about.get("temperature", 1.0))  # older taggers have none
        tagger.cut = Cut.from_dict(about["cut"]) if "cut" in about else None
    except Exception as error:
        if memory_ran_out(error):
            raise
        raise ModelError(
            f"{folder}: is no whole tagger ({type(error).__name__}); copy the folder of the run again."
        ) from error
    return tagger.to(pick_device(device)).eval()
