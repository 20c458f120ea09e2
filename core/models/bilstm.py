"""Recurrent taggers: a two-layer BiLSTM-CRF with a char-CNN, and a BiLSTM whose layers two corpora can share.

The BiLSTM-CRF follows Dai et al. 2019, the shared BiLSTM Murthy et al. 2018 (SOURCES.md, Recurrent taggers). The states
of a frozen encoder may be added as features of words (after Peters et al. 2018).

config.json         `winnow`: layout, types, head
vocabulary.json     words and letters of each corpus that has its own vocabulary
model.safetensors   all weights
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from core.errors import ModelError
from core.files import read_json, refuse_changed
from core.models import hub
from core.models.crf import Head, LinearChain, bioes_tags
from core.models.devices import pick_device, pick_dtype
from core.models.encoder import longest
from core.models.hub import VOCABULARY, WEIGHTS
from core.models.pieces import Pieces
from core.models.tagger import IGNORED, Features, Tagger, complete, labels_of
from core.models.word_features import UNKNOWN, CharCnn, Vectors, Vocabulary, WordVectors, letter_indices, place
from core.text.cut import Cut
from core.text.sentence import Sentence

Network = Literal["bilstm", "charcnn"]
Share = Literal["all", "sub-word"]
PRIMARY, ASSISTING = 0, 1
# Maximum number of bytes of frozen states that are cached for the next epoch.
KEPT = 1 << 29
# Windows per batch. On a CPU only one, because padding would change the last digits of results and save no time.
TOGETHER = {"cpu": 1, "cuda": 64}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Sizes of a network. hidden: units per direction. widths: widths of the char-CNN's windows, in letters.

    states: encoder whose frozen states are added to the input of the second BiLSTM; "" for none. share: layers that
    both corpora share. `all`: all layers, except the output layer if the types differ. `sub-word`: only the char-CNN.
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


class FrozenStates:
    """States of a frozen encoder, computed once per sentence. A word has the states of its first piece.

    layers: number of layers, plus 1 for the embeddings. size: width of a state.
    """

    def __init__(self, name: str, max_length: int = 256) -> None:
        from transformers import AutoModel

        self.model = hub.load_model(name, AutoModel, new_layers=("pooler",), dtype=torch.float32).eval()
        tokenizer = hub.load_tokenizer(name)
        self.pieces = Pieces(tokenizer, min(max_length, longest(self.model, tokenizer)))
        self.layers: int = self.model.config.num_hidden_layers + 1
        self.size: int = self.model.config.hidden_size
        # The keys are tokens, because sentences of a pasted text have no id, and equal texts may be cut differently.
        self._kept: OrderedDict[tuple[str, ...], Tensor] = OrderedDict()
        self._bytes = 0

    def of(self, sentences: Sequence[Sentence]) -> Tensor:
        """Return the states of each word, `(b, l, layers, size)` float32; 0 at padding."""
        asked = dict.fromkeys(sentence.tokens for sentence in sentences)
        states = {tokens: self._kept[tokens] for tokens in asked if tokens in self._kept}
        computed = self._computed([tokens for tokens in asked if tokens not in states])
        for tokens, value in computed.items():
            self._kept[tokens] = value
            self._bytes += value.nbytes
            while self._bytes > KEPT and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1].nbytes
        states |= computed
        return pad_sequence([states[sentence.tokens].float() for sentence in sentences], batch_first=True)

    @torch.inference_mode()
    def _computed(self, sentences: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], Tensor]:
        """Return the states of each sentence by its tokens, `(l, layers, size)` float16."""
        size = self.layers, self.size
        states = {tokens: torch.zeros(len(tokens), *size, dtype=torch.float16) for tokens in sentences}
        windows = [(tokens, window) for tokens in sentences for window in self.pieces.windows(tokens)]
        device = self.model.device
        n = TOGETHER.get(device.type, TOGETHER["cpu"])
        dtype = pick_dtype("auto", device, frozen=True) if device.type == "cuda" else torch.float32
        for part in (windows[i : i + n] for i in range(0, len(windows), n)):
            ids = pad_sequence([torch.tensor(window.ids) for _, window in part], batch_first=True)
            attend = pad_sequence(
                [torch.ones(len(window.ids), dtype=torch.int64) for _, window in part], batch_first=True
            )
            with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
                output = self.model(
                    input_ids=ids.to(device), attention_mask=attend.to(device), output_hidden_states=True
                )
            layers = torch.stack(output.hidden_states).half().cpu()
            for line, (tokens, window) in enumerate(part):
                own = layers[:, line, np.array(window.first)].transpose(0, 1)
                states[tokens][window.start : window.start + len(window.first)] = own
        return states


class BiLstm(nn.Module):
    """A bidirectional LSTM, `(b, l, d)` to `(b, l, 2h)`.

    One LSTM reads forwards, the other reads reversed sentences. The padding then always comes after the words, so
    packed sequences, which are several times slower on a CPU, are not needed.
    """

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.ahead = nn.LSTM(size, hidden, batch_first=True)
        self.behind = nn.LSTM(size, hidden, batch_first=True)
        for lstm in (self.ahead, self.behind):  # a bias of 1, so that the forget gate starts open
            nn.init.ones_(lstm.get_parameter("bias_ih_l0").data[hidden : 2 * hidden])

    def forward(self, inputs: Tensor, turned: Tensor) -> Tensor:
        """Return the outputs of both directions side by side, `(b, l, 2h)`.

        turned: `(b, l)` index that reverses the words of each sentence and leaves the padding in place.
        """
        ahead, behind = self.ahead(inputs)[0], self.behind(_at(inputs, turned))[0]
        return torch.cat([ahead, _at(behind, turned)], 2)


def _at(values: Tensor, places: Tensor) -> Tensor:
    return values.gather(1, places[..., None].expand(-1, -1, values.shape[2]))


class Tower(nn.Module):
    """Word vectors, and BiLSTMs over words and letter features. Two corpora have two towers or share one."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        word_size: int,
        letters: int,
        hidden: int,
        layers: int,
        dropout: float,
        states: int,
        vectors: Vectors | None,
    ) -> None:
        super().__init__()
        self.words = WordVectors(vocabulary, word_size, vectors)
        sizes = [word_size + letters, *([2 * hidden] * (layers - 1))]
        if states:
            sizes[1] += states
        self.layers = nn.ModuleList(BiLstm(size, hidden) for size in sizes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, words: Tensor, letters: Tensor, turned: Tensor, states: Tensor | None) -> Tensor:
        """Return the last BiLSTM's output, `(b, l, 2h)`."""
        hidden = torch.cat([self.words(words), letters], 2)
        for index, layer in enumerate(self.layers):
            if index == 1 and states is not None:
                hidden = torch.cat([hidden, states], 2)
            hidden = layer(self.dropout(hidden), turned)
        dropped: Tensor = self.dropout(hidden)
        return dropped


class BiLstmTagger(Tagger):
    """A BiLSTM-CRF over word vectors and letters, for one corpus or for two corpora that share layers.

    vocabularies: one for the primary corpus, and one for the assisting corpus if it has its own word vectors.
    assisting_types: types of the assisting corpus if it has its own output layer, else None. vectors: initial word
    vectors of each vocabulary.
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
            raise ModelError(
                f"{layout.states}: its states are added to the input of a second BiLSTM, but this network has only "
                "one; choose the network bilstm."
            )
        # Start with zeros, because their softmax gives all layers the same weight.
        self.mix = nn.Parameter(torch.zeros(self._states.layers)) if self._states else None
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
        """Also move the frozen encoder. It is not registered with torch, because it is neither trained nor saved."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self._states:
            self._states.model.to(self.device)
        return self

    def _add_assisting_output(self, head: Head) -> None:
        """Add an output layer and a `LinearChain` for an assisting corpus with other types than the primary corpus."""
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
        """Return a training batch with one part per corpus.

        sources: PRIMARY or ASSISTING for each sentence, by default all primary. A label is an index into the tags of
        its sentence's corpus. If both corpora share every layer, `sources` has no effect.
        """
        # One pass over both corpora is faster than two.
        together = self.assisting_types is None and len(self.towers) == 1
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
        """Return `loss`: the weighted negative log-likelihood per word.

        An assisting corpus with other types has its own output layer and `LinearChain`. num_items_in_batch: see
        `Tagger.forward`.
        """
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
        """Return the inputs of a batch; `words`, `spelling` and `turned` are `(b, l)`.

        `words`: index in the vocabulary. `letters`: `(u, c)` letters of the u distinct words. `spelling`: each word's
        row of `letters`. `turned`: see `BiLstm.forward`. `pieces`: number of words. `states`: see `FrozenStates`.
        """
        own = min(source, len(self._words) - 1)
        lookup, by_parts = self._words[own], self.vocabularies[own].by_parts
        lengths = np.array([len(sentence.tokens) for sentence in sentences])
        shape = (len(sentences), int(lengths.max()))
        words, spelling = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        distinct: dict[str, int] = {}  # letters are convolved once per distinct word of a batch
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
        """Return all parameters as one group for the optimizer.

        If `chain_learning_rate` is given, the parameters of the chains form a second group. head_learning_rate is not
        used.
        """
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
    """Return the name of the network in a tagger's folder; None if its config.json has none."""
    return _about(folder).get("network")


def load(folder: Path, device: str = "auto") -> BiLstmTagger:
    """Load the tagger that `BiLstmTagger.write` wrote.

    Errors: ModelError if a file is missing or damaged, RunError if a file was changed after the run.
    """
    from safetensors.torch import load_file

    refuse_changed(folder)
    about = _about(folder)
    with complete(folder):
        layout = about["layout"] | {"widths": tuple(about["layout"]["widths"])}
        layout["states"] = hub.states_of(folder, layout["states"])
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
        tagger.crf.temperature = float(about.get("temperature", 1.0))  # folders of older versions have no temperature
        tagger.cut = Cut.from_dict(about["cut"]) if "cut" in about else None
    return tagger.to(pick_device(device)).eval()
