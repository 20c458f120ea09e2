"""Base classes of taggers: words to emissions, a linear chain over them, and strictly decoded BIOES entities.

A tagger is an `nn.Module` that makes its own batches from sentences. `Tagger` holds the code of all kinds of taggers,
`PieceTagger` the code of the kinds based on an encoder. Each kind (see `taggers`) adds `features`, `emissions`, `size`,
`parameter_groups` and `write`. `training.finetune` trains taggers.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from core.errors import ModelError, memory_ran_out
from core.models.crf import Head, LinearChain, bioes_tags
from core.models.devices import Halved, side_by_side, to_device
from core.models.encoder import BUDGET, length_groups
from core.models.pieces import Pieces, rectangle
from core.reporter import Reporter, Silent
from core.results import FloatArray
from core.text.cut import Cut
from core.text.schemes import decode, encode
from core.text.sentence import Partial, Prediction, Sentence

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Features = dict[str, Any]
IGNORED = -100  # label of padding, which does not count in the loss


class Tags(NamedTuple):
    """Tags of one sentence under several decodings.

    best: the tagger's own decoding, which is `constrained` or `viterbi`. constrained: the best sequence that BIOES
    allows. viterbi: the best of all sequences. argmax: the best tag of each word, without the chain.
    """

    best: tuple[str, ...]
    constrained: tuple[str, ...]
    viterbi: tuple[str, ...]
    argmax: tuple[str, ...]


def prediction_of(tags: Sequence[str]) -> Prediction:
    """Return the well-formed entities of BIOES tags, without confidences."""
    return Prediction(entities=decode(tags, "bioes", strict=True)[0], confidence=())


def labels_of(sentences: Sequence[Sentence], indices: Sequence[Mapping[str, int]]) -> Tensor:
    """Return the tag number of each word, `(b, l)`; IGNORED after a sentence's end.

    indices: {BIOES tag: number} for each sentence. This function makes the tags from entities, so every sequence is
    valid BIOES. An invalid sequence would have an infinite loss under a constrained chain.
    """
    labels = torch.full((len(sentences), max(len(s.tokens) for s in sentences)), IGNORED)
    for row, (sentence, index) in enumerate(zip(sentences, indices, strict=True)):
        tags = encode(sentence.entities or (), len(sentence.tokens), "bioes")
        assert not decode(tags, "bioes")[1], f"a training sentence's tags are not well-formed: {tags}"
        labels[row, : len(tags)] = torch.tensor([index[tag] for tag in tags], dtype=torch.int64)
    return labels


def _unknown(sentences: Sequence[Sentence], length: int) -> Tensor:
    """Return `(b, l)`, True at words whose tag is unknown. length: number of words of the longest sentence."""
    unknown = torch.zeros((len(sentences), length), dtype=torch.bool)
    for row, sentence in enumerate(sentences):
        if isinstance(sentence, Partial):
            unknown[row, sorted(sentence.unknown)] = True
    return unknown


@contextmanager
def complete(folder: Path) -> Iterator[None]:
    """Raise ModelError if loading a tagger within this context fails; out-of-memory errors stay unchanged."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        if memory_ran_out(error):
            raise
        raise ModelError(
            f"{folder}: is not a complete tagger ({type(error).__name__}); copy the folder of the run again."
        ) from error


class Tagger(nn.Module):
    """A network that maps words to emissions (scores of tags), and a `LinearChain` over the emissions.

    types: names of the t entity types. tags: the k = 4t + 1 BIOES tags of the output layer. context_pieces: see
    `Reading`; 0 if the tagger reads each sentence alone. cut: rules that tokenise raw text like the training sentences;
    None: use `tokenize`.
    """

    crf: LinearChain
    context_pieces: int = 0
    cut: Cut | None = None

    def __init__(self, types: Sequence[str], head: Head, *, constrained: bool = False) -> None:
        super().__init__()
        self.types, self.tags = tuple(types), bioes_tags(types)
        self.crf = LinearChain(self.tags, head, constrained=constrained)
        self.accepts_loss_kwargs = True  # the Trainer then passes num_items_in_batch, the words of a whole step
        self._index = {tag: i for i, tag in enumerate(self.tags)}

    @property
    def device(self) -> torch.device:
        device: torch.device = self.crf.transitions.device
        return device

    def features(self, sentences: Sequence[Sentence]) -> Features:
        """Return the inputs of `emissions`: tensors, or lists and dictionaries of them. No sentence may be empty."""
        raise NotImplementedError

    def emissions(self, features: Features, shape: tuple[int, int]) -> Tensor:
        """Return emissions `(b, l, k)` float32, one row per word. shape: (b, l)."""
        raise NotImplementedError

    def size(self, sentence: Sentence) -> int:
        """Return the number of pieces (or words) to compute for a sentence."""
        raise NotImplementedError

    def parameter_groups(
        self, learning_rate: float, head_learning_rate: float, chain_learning_rate: float | None = None
    ) -> list[dict[str, Any]]:
        """Return parameter groups for the optimizer, the encoder first, because the curve shows the first group's rate.

        chain_learning_rate: rate of all transitions of chains; None: the rate of the layer that gives the emissions.
        """
        raise NotImplementedError

    def level_chains(self) -> None:
        """Set the transitions of every chain to zero (`LinearChain.level`)."""
        for part in self.modules():
            if isinstance(part, LinearChain):
                part.level()

    def in_chains(self) -> set[int]:
        """Return the `id` of every parameter that belongs to a chain."""
        return {id(p) for part in self.modules() if isinstance(part, LinearChain) for p in part.parameters()}

    def write(self, folder: Path) -> None:
        """Write the tagger into an empty folder, from which `load_tagger` restores it."""
        raise NotImplementedError

    def batch(
        self,
        sentences: Sequence[Sentence],
        weights: Sequence[float] | None = None,
        sources: Sequence[int] | None = None,
    ) -> Features:
        """Return a training batch. weights: factor of each sentence's loss.

        sources: number of each sentence's corpus, 0 for the primary one. Only some kinds of taggers use it.
        """
        features, labels = self.features(sentences), labels_of(sentences, [self._index] * len(sentences))
        if any(isinstance(sentence, Partial) for sentence in sentences):
            features["unknown"] = _unknown(sentences, labels.shape[1])
        return {"features": features, "labels": labels, "weights": torch.tensor(weights or [1.0] * len(sentences))}

    def forward(
        self, features: Features, labels: Tensor, weights: Tensor, num_items_in_batch: Tensor | int | None = None
    ) -> dict[str, Tensor]:
        """Return `loss`: the weighted negative log-likelihood per word.

        num_items_in_batch: number of words in the whole optimizer step; None: the number of words in this batch.
        """
        mask, emissions = labels != IGNORED, self.emissions(features, tuple(labels.shape))  # type: ignore[arg-type]
        losses = self.crf.loss(emissions, labels.clamp(min=0), mask, features.get("unknown"))
        words = mask.sum() if num_items_in_batch is None else num_items_in_batch
        return {"loss": (losses * weights).sum() / words}

    def tag(self, sentences: Sequence[Sentence], report: Reporter | None = None) -> list[Tags]:
        """Return the tags of each sentence under all decodings; empty for a sentence without words."""
        return self.read((), sentences, report)[0]

    def predict(self, sentences: Sequence[Sentence], report: Reporter | None = None) -> list[Prediction]:
        """Return the entities of each sentence's best tags.

        An entity's confidence is its exact posterior probability under the chain, at the chain's temperature.
        """
        (predictions,) = self.predict_at((self.crf.temperature,), sentences, report)
        return predictions

    def predict_at(
        self, temperatures: Sequence[float], sentences: Sequence[Sentence], report: Reporter | None = None
    ) -> list[list[Prediction]]:
        """Return one list of predictions per temperature. The lists differ in confidences, not in entities."""

        def weighed(emissions: Tensor, mask: Tensor, _: Sequence[int]) -> Tensor:
            path = self.crf.viterbi(emissions, mask)
            return torch.stack([path.double(), *self._sums(emissions, mask, path, temperatures)], 1)

        result = [[prediction_of(())] * len(sentences) for _ in temperatures]
        for rows, decoded in self._decoded(sentences, weighed, report or Silent()):
            for row, (path, *sums) in zip(rows, decoded.numpy(), strict=True):
                tags = [self.tags[int(i)] for i in path[: len(sentences[row].tokens)]]
                for predictions, prediction in zip(result, _confident(tags, sums), strict=True):
                    predictions[row] = prediction
        return result

    def doubts(self, sentences: Sequence[Sentence], report: Reporter | None = None) -> FloatArray:
        """Return how unsure the tagger is of each sentence, `(n,)`, 0 to 1; 0 for a sentence without words.

        The value is 1 - p^(1/n). p is the probability of the best tag sequence for n tokens under the chain, at the
        chain's temperature. The n-th root makes sentences of different lengths comparable.
        """

        def along(emissions: Tensor, mask: Tensor, _: Sequence[int]) -> Tensor:
            first, last = self.crf.posteriors(emissions, mask, self.crf.viterbi(emissions, mask))
            ends = mask.sum(1, keepdim=True) - 1
            return ((first[:, :1] + last.gather(1, ends)) / (ends + 1)).clamp(max=0.0)

        doubts = np.zeros(len(sentences))
        for rows, decoded in self._decoded(sentences, along, report or Silent()):
            doubts[rows] = -np.expm1(decoded[:, 0].numpy())
        return doubts

    def named(self, sentences: Sequence[Sentence], report: Reporter | None = None) -> list[FloatArray]:
        """Return the probability that each word is part of an entity, one array `(words,)` per sentence.

        The probabilities are exact posteriors under the chain, at the chain's temperature.
        """
        outside = self.tags.index("O")

        def along(emissions: Tensor, mask: Tensor, _: Sequence[int]) -> Tensor:
            first, last = self.crf.posteriors(emissions, mask, torch.full_like(mask, outside, dtype=torch.int64))
            return first + last

        shares: list[FloatArray] = [np.zeros(len(sentence.tokens)) for sentence in sentences]
        for rows, decoded in self._decoded(sentences, along, report or Silent()):
            for row, log_outside in zip(rows, decoded.numpy(), strict=True):
                shares[row] = -np.expm1(np.minimum(log_outside[: len(shares[row])], 0.0))
        return shares

    def beliefs(self, sentences: Sequence[Sentence], report: Reporter | None = None) -> list[tuple[float, ...]]:
        """Return the probability of each labelled entity, one tuple per sentence, from left to right.

        It is the entity's exact posterior under the chain, at the chain's temperature; NaN if the tagger does not know
        the entity's type.
        """
        labels = [sorted(sentence.entities or ()) for sentence in sentences]
        known = [tuple(entity for entity in own if entity.type in self.types) for own in labels]
        read = [replace(sentence, entities=own) for sentence, own in zip(sentences, known, strict=True)]

        def along(emissions: Tensor, mask: Tensor, rows: Sequence[int]) -> Tensor:
            path = labels_of([read[row] for row in rows], [self._index] * len(rows)).clamp(min=0)
            return torch.stack(self.crf.posteriors(emissions, mask, path.to(emissions.device)), 1)

        result = [(math.nan,) * len(own) for own in labels]
        for rows, decoded in self._decoded(read, along, report or Silent()):
            for row, (first, last) in zip(rows, decoded.numpy(), strict=True):
                result[row] = tuple(
                    math.exp(min(first[e.start] + last[e.end - 1], 0.0)) if e.type in self.types else math.nan
                    for e in labels[row]
                )
        return result

    def read(
        self, temperatures: Sequence[float], sentences: Sequence[Sentence], report: Reporter | None = None
    ) -> tuple[list[Tags], list[list[Prediction]]]:
        """Return the results of `tag` and `predict_at` from one pass through the network."""

        def paths(emissions: Tensor, mask: Tensor, _: Sequence[int]) -> Tensor:
            legal, free = (self.crf.viterbi(emissions, mask, constrained=only) for only in (True, False))
            best = legal if self.crf.constrained else free
            decodings = torch.stack([best, legal, free, emissions.argmax(-1)], 1)
            sums = self._sums(emissions, mask, best, temperatures)
            return torch.cat([decodings.double(), torch.stack(sums, 1)], 1) if sums else decodings

        tagged = [Tags((), (), (), ())] * len(sentences)
        result = [[prediction_of(())] * len(sentences) for _ in temperatures]
        for rows, decoded in self._decoded(sentences, paths, report or Silent()):
            for row, decodings, sums in zip(rows, decoded[:, :4].long().tolist(), decoded[:, 4:].numpy(), strict=True):
                n = len(sentences[row].tokens)
                tagged[row] = Tags(*(tuple(self.tags[i] for i in path[:n]) for path in decodings))
                for predictions, prediction in zip(result, _confident(tagged[row].best, sums), strict=True):
                    predictions[row] = prediction
        return tagged, result

    def _sums(self, emissions: Tensor, mask: Tensor, path: Tensor, temperatures: Sequence[float]) -> list[Tensor]:
        """Return the two sums of `LinearChain.posteriors` under each temperature, in one flat list."""
        return [part for heat in temperatures for part in self.crf.posteriors(emissions, mask, path, heat)]

    def _decoded(
        self,
        sentences: Sequence[Sentence],
        decode: Callable[[Tensor, Tensor, Sequence[int]], Tensor],
        report: Reporter,
    ) -> Iterator[tuple[list[int], Tensor]]:
        """Yield the row numbers of each batch, and the result of `decode` on the CPU.

        The sentences of a batch have similar lengths. decode: function of a batch's emissions, mask and row numbers.
        """
        self.eval()
        sizes = np.array([self.size(s) if s.tokens else 0 for s in sentences], dtype=np.int64)

        def inputs(rows: Sequence[int]) -> tuple[Features, Tensor]:
            batch = [sentences[row] for row in rows]
            lengths = torch.tensor([len(sentence.tokens) for sentence in batch])
            return self.features(batch), torch.arange(int(lengths.max())) < lengths[:, None]

        def batches() -> Iterator[tuple[list[int], tuple[Features, Tensor]]]:
            for group in length_groups(sizes, BUDGET.get(self.device.type, BUDGET["cpu"])):
                yield group.tolist(), inputs(group.tolist())

        def decoded(batch: tuple[list[int], tuple[Features, Tensor]]) -> tuple[list[int], Tensor]:
            rows, laid = batch

            def of(part: Sequence[int]) -> Tensor:
                features, mask = to_device([*(laid if len(part) == len(rows) else inputs(part))], self.device)
                with torch.inference_mode():
                    return decode(self.emissions(features, tuple(mask.shape)), mask, part)

            return rows, _joined(halved.each(rows, of))

        n_weights = sum(weight.numel() for weight in self.parameters())
        done, halved = 0, Halved(f"tag by {type(self).__name__}, {n_weights} weights", self.device)
        with closing(side_by_side(decoded, batches(), self.device)) as results:
            for rows, result in results:
                report.check()
                yield rows, result
                done += len(rows)
                report.progress(done, len(sentences), "sentences")


def _confident(tags: Sequence[str], sums: Sequence[FloatArray]) -> Iterator[Prediction]:
    """Yield the entities of a sentence's tags with confidences, one prediction per pair of `sums`."""
    entities = prediction_of(tags).entities
    for first, last in zip(sums[::2], sums[1::2], strict=True):
        # Clip at 0, because rounding can give a log-probability slightly above it.
        sure = tuple(math.exp(min(first[e.start] + last[e.end - 1], 0.0)) for e in entities)
        yield Prediction(entities=entities, confidence=sure)


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """Return the parts of a batch concatenated, padded to the longest sentence."""
    if len(parts) == 1:
        return parts[0]
    longest = max(part.shape[-1] for part in parts)
    return torch.cat([nn.functional.pad(part, (0, longest - part.shape[-1])) for part in parts])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How an encoder reads sentences.

    max_length: pieces per window. context_pieces: pieces of neighbouring sentences (`text.sentence.InContext`) that are
    read but not tagged, on each side (Schweter and Akbik 2020). dtype: number format of the computation.
    """

    max_length: int
    context_pieces: int = 0
    dtype: torch.dtype = torch.float32


class PieceTagger(Tagger):
    """A tagger whose encoder represents a word by the state of its first piece."""

    def __init__(
        self,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        types: Sequence[str],
        head: Head,
        reading: Reading,
        *,
        constrained: bool = False,
    ) -> None:
        super().__init__(types, head, constrained=constrained)
        self.model, self.tokenizer, self.dtype = model, tokenizer, reading.dtype
        self.context_pieces = reading.context_pieces
        self.pieces = Pieces(tokenizer, reading.max_length)

    def features(self, sentences: Sequence[Sentence]) -> Features:
        """Return `ids` and `attention` `(w, p)`, `padded`, `places` `(4, words)` and the number of `pieces`.

        padded: True if `attention` contains a 0. places: four indices per word: its sentence, its position in the
        sentence, its window, and its first piece's position in the window.
        """
        windows = [
            (row, window)
            for row, s in enumerate(sentences)
            for window in self.pieces.windows(s.tokens, self.pieces.around(s, self.context_pieces))
        ]
        ids, attention = rectangle([window.ids for _, window in windows], self.tokenizer.pad_token_id or 0)
        places = [
            (row, window.start + i, line, piece)
            for line, (row, window) in enumerate(windows)
            for i, piece in enumerate(window.first)
        ]
        arrays = {"ids": ids, "attention": attention, "places": np.array(places, dtype=np.int64).T}
        pieces = sum(len(window.ids) for _, window in windows)
        padded = not attention.all()  # computed on the CPU; without padding, torch has a faster kernel
        return {"pieces": pieces, "padded": padded, **{name: torch.from_numpy(array) for name, array in arrays.items()}}

    @torch.no_grad()
    def begin_from(self, weights: Mapping[str, Tensor], types: Sequence[str]) -> None:
        """Start from a tagger of the same kind and encoder that learnt other types (SOURCES.md, Transfer).

        Copy the output weights of the tags that both taggers have, and all weights that do not depend on tags. Output
        weights of other tags do not change, nor do weights that the other tagger lacks (such as a dictionary's).

        weights: state of the other tagger. types: types of the other tagger.
        """
        for name, own in self.state_dict().items():
            if name not in weights:
                continue
            here, there = self._outputs(name, self.types), self._outputs(name, types)
            if not here:
                own.copy_(weights[name])
                continue
            pairs = [(row, there.index(output)) for row, output in enumerate(here) if output in there]
            to, source = torch.tensor(pairs).T
            if name == "crf.transitions":  # row: previous tag, column: next tag
                own[to[:, None], to] = weights[name][source[:, None], source].to(own)
            else:
                own[to] = weights[name][source].to(own)

    def _outputs(self, name: str, types: Sequence[str]) -> tuple[str, ...]:
        """Return the tag or type that each row of weight `name` scores in a tagger of `types`; () if none."""
        return bioes_tags(types) if name.startswith("crf.") else ()

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32)

    def size(self, sentence: Sentence) -> int:
        around = self.pieces.around(sentence, self.context_pieces)
        return sum(map(len, (*self.pieces.of(sentence.tokens), *around)))
