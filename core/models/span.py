"""A tagger of spans: every run of up to MOST words is one type or none, after Wang et al. 2022 (SOURCES.md, MINER).

config.json         the encoder's; `winnow`: the network, the types, the window
model.safetensors   the encoder, and span.*: what is laid on it
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from core.models.piece_tagger import PieceTagger
from core.models.tagger import Features, Tags, prediction_of
from core.reporter import Reporter, Silent
from core.results import FloatArray
from core.text.schemes import encode
from core.text.sentence import Entity, Prediction, Sentence

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MOST = 4  # words of a span
NOTHING, NOTHING_COUNTS = 0, 0.5  # the class of a span that is no entity, and what its loss counts for
HIDDEN, LENGTH, SHAPE = 150, 50, 100  # units
SHAPES, BUCKETS = 5, 6


def places(n: int) -> Iterator[tuple[int, int]]:
    """Start and end of every span of a sentence of `n` words, half-open."""
    for start in range(n):
        for end in range(start + 1, min(start + MOST, n) + 1):
            yield start, end


def beyond(sentences: Sequence[Sentence]) -> tuple[int, int]:
    """Entities that are longer than any span, and all."""
    entities = [entity for sentence in sentences for entity in sentence.entities or ()]
    return sum(entity.end - entity.start > MOST for entity in entities), len(entities)


def best_apart(scores: FloatArray) -> list[tuple[Entity, int]]:
    """The surest spans that are something, none overlapping a surer one: `type` is the class's number.

    scores: `(n, MOST, t + 1)` log-probabilities of the span that begins at a word and is so long less one.
    """
    n = len(scores)
    candidates = []
    for start, end in places(n):
        row = scores[start, end - start - 1]
        kind = int(row.argmax())
        if kind != NOTHING:
            candidates.append((-float(row[kind]), start, end, kind))
    free, kept = np.ones(n, dtype=np.bool_), []
    for _, start, end, kind in sorted(candidates):
        if free[start:end].all():
            free[start:end] = False
            kept.append((Entity(start=start, end=end, type=""), kind))
    return sorted(kept)


class SpanLayer(nn.Module):
    """Representations of spans, and what each is: first and last word, words, pieces, how the words are written."""

    def __init__(self, width: int, n_classes: int) -> None:
        super().__init__()
        self.words, self.pieces = nn.Embedding(MOST + 1, LENGTH), nn.Embedding(BUCKETS, LENGTH)
        self.shapes = nn.Linear(SHAPES, SHAPE, bias=False)
        self.hidden = nn.Linear(2 * width + 2 * LENGTH + SHAPE, HIDDEN)
        self.dropout = nn.Dropout(0.2)
        self.classes = nn.Linear(HIDDEN, n_classes)

    def represent(self, first: Tensor, last: Tensor, spans: Features) -> Tensor:
        """`(n, HIDDEN)`. first, last: `(n, d)` states of the words at both ends."""
        parts = [first, last, self.words(spans["words"]), self.pieces(spans["pieces"]), self.shapes(spans["shapes"])]
        return nn.functional.gelu(self.hidden(torch.cat(parts, -1)))

    def forward(self, hidden: Tensor) -> Tensor:
        """`(n, t + 1)` logits."""
        logits: Tensor = self.classes(self.dropout(hidden))
        return logits


class SpanTagger(PieceTagger):
    """An encoder under a `SpanLayer`. Its chain is one that adds nothing: the temperature lies there."""

    def __init__(
        self,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        types: Sequence[str],
        *,
        max_length: int,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(model, tokenizer, types, "softmax", max_length=max_length, dtype=dtype, constrained=True)
        self.span = SpanLayer(int(model.config.hidden_size), len(types) + 1)
        self._kinds = {kind: number for number, kind in enumerate(self.types, 1)}

    def features(self, sentences: Sequence[Sentence]) -> Features:
        """Inputs of the encoder, and `spans`: of each its row, first and last word, and what a `SpanLayer` reads."""
        lines: list[tuple[int, ...]] = []
        shapes: list[list[int]] = []
        for row, sentence in enumerate(sentences):
            ends = [0, *accumulate(map(len, self.pieces.of(sentence.tokens)))]
            of = [shape_of(token) for token in sentence.tokens]
            for start, end in places(len(sentence.tokens)):
                bucket = min((ends[end] - ends[start]).bit_length(), BUCKETS - 1)
                lines.append((row, start, end - 1, end - start, bucket))
                shapes.append([of[start:end].count(shape) for shape in range(SHAPES)])
        names = ("row", "first", "last", "words", "pieces")
        table = np.array(lines, dtype=np.int64).reshape(-1, len(names)).T
        spans = {name: torch.from_numpy(column.copy()) for name, column in zip(names, table, strict=True)}
        spans["shapes"] = torch.tensor(shapes, dtype=torch.float32)
        return {**super().features(sentences), "spans": spans}

    def represented(self, features: Features, shape: tuple[int, int]) -> Tensor:
        """`(n, HIDDEN)` of every span."""
        with self._precision():
            attention = features["attention"] if features["padded"] else None
            states = self.model(input_ids=features["ids"], attention_mask=attention).last_hidden_state
        words = torch.zeros(*shape, states.shape[-1], device=self.device)
        sentence, word, window, piece = features["places"]
        words[sentence, word] = states[window, piece].float()
        spans = features["spans"]
        first, last = (words[spans["row"], spans[end]] for end in ("first", "last"))
        return self.span.represent(first, last, spans)

    def emissions(self, features: Features, shape: tuple[int, int]) -> Tensor:
        """`(b, l, MOST, t + 1)` logits of the spans that begin at each word; 0 where none does."""
        spans, scores = features["spans"], torch.zeros(*shape, MOST, len(self.types) + 1, device=self.device)
        scores[spans["row"], spans["first"], spans["words"] - 1] = self.span(self.represented(features, shape))
        return scores

    def batch(
        self,
        sentences: Sequence[Sentence],
        weights: Sequence[float] | None = None,
        sources: Sequence[int] | None = None,
    ) -> Features:
        """A training batch: `labels` and `weights` one a span. An entity that is no span is nothing here."""
        labels, counts = [], []
        for sentence, weight in zip(sentences, weights or [1.0] * len(sentences), strict=True):
            kinds = {(entity.start, entity.end): self._kinds[entity.type] for entity in sentence.entities or ()}
            own = [kinds.get(place, NOTHING) for place in places(len(sentence.tokens))]
            labels += own
            counts += [weight * (NOTHING_COUNTS if kind == NOTHING else 1.0) for kind in own]
        return {
            "features": {
                **self.features(sentences),
                "shape": (len(sentences), max(len(sentence.tokens) for sentence in sentences)),
                "words": sum(len(sentence.tokens) for sentence in sentences),
            },
            "labels": torch.tensor(labels, dtype=torch.int64),
            "weights": torch.tensor(counts),
        }

    def forward(
        self, features: Features, labels: Tensor, weights: Tensor, num_items_in_batch: Tensor | int | None = None
    ) -> dict[str, Tensor]:
        """`loss`: weighted cross entropy, a word of the step having MOST spans."""
        logits = self.span(self.represented(features, features["shape"]))
        losses = nn.functional.cross_entropy(logits, labels, reduction="none") * weights
        words = features["words"] if num_items_in_batch is None else num_items_in_batch
        return {"loss": losses.sum() / (MOST * words)}

    def predict_at(
        self, temperatures: Sequence[float], sentences: Sequence[Sentence], report: Reporter | None = None
    ) -> list[list[Prediction]]:
        return self.read(temperatures, sentences, report)[1]

    def read(
        self, temperatures: Sequence[float], sentences: Sequence[Sentence], report: Reporter | None = None
    ) -> tuple[list[Tags], list[list[Prediction]]]:
        """Tags and predictions as of `Tagger`: one decoding stands for all, a confidence is a span's probability."""

        def flat(scores: Tensor, mask: Tensor) -> Tensor:
            return scores.flatten(2).transpose(1, 2)

        tagged = [Tags((), (), (), ())] * len(sentences)
        result = [[prediction_of(())] * len(sentences) for _ in temperatures]
        for rows, decoded in self._decoded(sentences, flat, report or Silent()):
            for row, columns in zip(rows, decoded.numpy(), strict=True):
                n = len(sentences[row].tokens)
                logits = columns[:, :n].T.reshape(n, MOST, -1).astype(np.float64)
                kept = best_apart(_log_softmax(logits))
                entities = tuple(Entity(start=e.start, end=e.end, type=self.types[kind - 1]) for e, kind in kept)
                tagged[row] = Tags(*(tuple(encode(entities, n, "bioes")),) * 4)
                for predictions, heat in zip(result, temperatures, strict=True):
                    sure = np.exp(_log_softmax(logits / heat))
                    confidence = tuple(float(sure[e.start, e.end - e.start - 1, kind]) for e, kind in kept)
                    predictions[row] = Prediction(entities=entities, confidence=confidence)
        return tagged, result

    def parameter_groups(
        self, learning_rate: float, head_learning_rate: float, chain_learning_rate: float | None = None
    ) -> list[dict[str, Any]]:
        layer = [p for p in self.span.parameters() if p.requires_grad]
        encoder = [p for p in self.model.parameters() if p.requires_grad]
        return [{"params": encoder, "lr": learning_rate}, {"params": layer, "lr": head_learning_rate}]

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.model.config.winnow = {
            "network": "span",
            "types": list(self.types),
            "tags": list(self.tags),
            "temperature": self.crf.temperature,
            "max_length": self.pieces.max_length,
            "context": self.context,
            **({"cut": self.cut.as_dict()} if self.cut else {}),
        }
        own = {f"span.{name}": tensor for name, tensor in self.span.state_dict().items()}
        weights = {name: tensor.cpu() for name, tensor in {**self.model.state_dict(), **own}.items()}
        self.model.save_pretrained(folder, state_dict=weights)
        self.tokenizer.save_pretrained(folder)


def shape_of(word: str) -> int:
    """How a word is written: in capitals, in small letters, with one capital, in digits, otherwise."""
    asked = (word.isupper(), word.islower(), word.istitle(), word.isdigit())
    return asked.index(True) if any(asked) else SHAPES - 1


def _log_softmax(logits: FloatArray) -> FloatArray:
    raised = logits - logits.max(-1, keepdims=True)
    result: FloatArray = raised - np.log(np.exp(raised).sum(-1, keepdims=True))
    return result
