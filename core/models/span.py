"""A tagger that gives every span of up to MOST words one type or none, as in Wang et al. 2022 (SOURCES.md, MINER).

Its contrastive objective compares representations of one entity under two names.

config.json         the encoder's; `winnow`: network, types, window
model.safetensors   the encoder, and the layer of spans as span.*
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from core.models.networks import MOST
from core.models.tagger import Features, PieceTagger, Reading, Tags, prediction_of
from core.reporter import Reporter, Silent
from core.results import FloatArray, IntArray
from core.text.schemes import encode
from core.text.sentence import Entity, Paired, Place, Prediction, Sentence

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Class number of a span that is not an entity, and the factor of its loss.
NOTHING, NOTHING_COUNTS = 0, 0.5
# Widths of a span's representation, of its length features and of its word shape features.
HIDDEN, LENGTH, SHAPE = 150, 50, 100
# Number of word shapes (`shape_of`), and of buckets for the number of pieces in a span.
SHAPES, BUCKETS = 5, 6


def places(n: int) -> Iterator[Place]:
    """Yield start and end (half-open) of every span of up to MOST words in a sentence of `n` words."""
    for start in range(n):
        for end in range(start + 1, min(start + MOST, n) + 1):
            yield start, end


@lru_cache(maxsize=256)
def numbers(n: int) -> Mapping[Place, int]:
    """Return {span: its number, from 0} for a sentence of `n` words, in the order of `places`."""
    return {place: number for number, place in enumerate(places(n))}


def best_disjoint(scores: FloatArray) -> list[tuple[Entity, int]]:
    """Return the entity spans and their class numbers. Of overlapping spans, only the most probable one is returned.

    scores: `(n, MOST, t + 1)` log-probability of each class of a span. Indices: the span's first word, its length minus
    1, and the class.
    """
    n = len(scores)
    kinds = scores.argmax(-1)
    inside = np.add.outer(np.arange(n), np.arange(MOST)) < n
    starts, lengths = np.nonzero((kinds != NOTHING) & inside)
    kind = kinds[starts, lengths]
    sure = scores[starts, lengths, kind]
    candidates = zip((-sure).tolist(), starts.tolist(), (starts + lengths + 1).tolist(), kind.tolist(), strict=True)
    free, kept = np.ones(n, dtype=np.bool_), []
    # Of equally probable spans, sorting puts the leftmost first, and then the shortest.
    for _, start, end, number in sorted(candidates):
        if free[start:end].all():
            free[start:end] = False
            kept.append((Entity(start=start, end=end, type=""), number))
    return sorted(kept)


class SpanLayer(nn.Module):
    """Computes representations and class scores of spans.

    The inputs for a span are the states of its first and last word, its numbers of words and pieces, and its word
    shapes.
    """

    def __init__(self, width: int, n_classes: int) -> None:
        super().__init__()
        self.words, self.pieces = nn.Embedding(MOST + 1, LENGTH), nn.Embedding(BUCKETS, LENGTH)
        self.shapes = nn.Linear(SHAPES, SHAPE, bias=False)
        self.hidden = nn.Linear(2 * width + 2 * LENGTH + SHAPE, HIDDEN)
        self.dropout = nn.Dropout(0.2)
        self.classes = nn.Linear(HIDDEN, n_classes)

    def represent(self, first: Tensor, last: Tensor, spans: Features) -> Tensor:
        """Return representations of n spans, `(n, HIDDEN)`. first, last: `(n, d)` states of the words at both ends."""
        parts = [first, last, self.words(spans["words"]), self.pieces(spans["pieces"]), self.shapes(spans["shapes"])]
        return nn.functional.gelu(self.hidden(torch.cat(parts, -1)))

    def forward(self, hidden: Tensor) -> Tensor:
        """Return logits `(n, t + 1)` of n spans, for no entity and t types."""
        logits: Tensor = self.classes(self.dropout(hidden))
        return logits


class SpanTagger(PieceTagger):
    """A `SpanLayer` on an encoder. The `LinearChain` of the base class only stores the temperature.

    beta, gamma: weights of the two terms of `Contrast` in training, if sentences are `Paired`.
    """

    def __init__(
        self,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        types: Sequence[str],
        reading: Reading,
        *,
        beta: float = 0.0,
        gamma: float = 0.0,
    ) -> None:
        super().__init__(model, tokenizer, types, "softmax", reading, constrained=True)
        self.span = SpanLayer(int(model.config.hidden_size), len(types) + 1)
        # Draw the weights of `contrast` last, so that all other weights are the same with and without it.
        self.contrast = Contrast(HIDDEN, beta, gamma) if beta or gamma else None
        self._kinds = {kind: number for number, kind in enumerate(self.types, 1)}

    def features(self, sentences: Sequence[Sentence]) -> Features:
        """Return the encoder's inputs, and `spans`: each span's row, first and last word, and `SpanLayer` inputs."""
        asked = [(row, one, list(numbers(len(one.tokens)))) for row, one in enumerate(sentences)]
        return {**super().features(sentences), "spans": self._spans(asked)}

    def _spans(self, asked: Iterable[tuple[int, Sentence, Sequence[Place]]]) -> Features:
        """Return the features of spans. asked: (row, sentence, spans) for each sentence."""
        names, columns, shapes = ("row", "first", "last", "words", "pieces"), [], []
        for row, sentence, at in asked:
            n = len(sentence.tokens)
            starts, ends = np.array(at, dtype=np.int64).reshape(-1, 2).T
            pieces = np.cumsum([0, *map(len, self.pieces.of(sentence.tokens))])
            written = np.zeros((n + 1, SHAPES))
            written[np.arange(1, n + 1), [shape_of(token) for token in sentence.tokens]] = 1
            written = written.cumsum(0)
            # frexp returns the bit length of the number of pieces, so the buckets are 1, 2-3, 4-7, ... pieces.
            bucket = np.minimum(np.frexp(pieces[ends] - pieces[starts])[1], BUCKETS - 1)
            columns.append(np.stack([np.full(len(starts), row), starts, ends - 1, ends - starts, bucket]))
            shapes.append(written[ends] - written[starts])
        table = np.concatenate(columns, 1).astype(np.int64)
        spans = {name: torch.from_numpy(column.copy()) for name, column in zip(names, table, strict=True)}
        return {**spans, "shapes": torch.from_numpy(np.concatenate(shapes).astype(np.float32))}

    def _outputs(self, name: str, types: Sequence[str]) -> tuple[str, ...]:
        # Class 0 means that the span is not an entity.
        return ("", *types) if name.startswith("span.classes.") else super()._outputs(name, types)

    def size(self, sentence: Sentence) -> int:
        return sum(map(super().size, (sentence.own, sentence.other) if isinstance(sentence, Paired) else (sentence,)))

    def represented(self, features: Features, shape: tuple[int, int]) -> Tensor:
        """Return the representation of every span, `(n, HIDDEN)`."""
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
        """Return logits `(b, l, MOST, t + 1)` of the spans that begin at each word; 0 if there is no such span."""
        spans, scores = features["spans"], torch.zeros(*shape, MOST, len(self.types) + 1, device=self.device)
        scores[spans["row"], spans["first"], spans["words"] - 1] = self.span(self.represented(features, shape))
        return scores

    def batch(
        self,
        sentences: Sequence[Sentence],
        weights: Sequence[float] | None = None,
        sources: Sequence[int] | None = None,
    ) -> Features:
        """Return a training batch with `labels` and `weights` per span. Entities of more than MOST words get no label.

        The feature `pairs`, `(2, m)`, holds the span numbers of each renamed entity in the sentence and in its copy.
        Copies have no labels.
        """
        own = [one.own if isinstance(one, Paired) else one for one in sentences]
        labels = [self._labels(sentence) for sentence in own]
        counts = [
            weight * np.where(kinds == NOTHING, NOTHING_COUNTS, 1.0)
            for kinds, weight in zip(labels, weights or [1.0] * len(own), strict=True)
        ]
        begins = [0, *accumulate(map(len, labels))]
        copies = [(row, one) for row, one in enumerate(sentences) if isinstance(one, Paired)]
        read = [*own, *(one.other for _, one in copies)]
        asked: list[tuple[int, Sentence, Sequence[Place]]] = [
            *((row, one, list(numbers(len(one.tokens)))) for row, one in enumerate(own)),
            *((len(own) + i, one.other, [place for _, place in one.pairs]) for i, (_, one) in enumerate(copies)),
        ]
        here = [begins[row] + numbers(len(one.tokens))[place] for row, one in copies for place, _ in one.pairs]
        lengths = np.array([len(sentence.tokens) for sentence in own])
        return {
            "features": {
                **super().features(read),
                "spans": self._spans(asked),
                "shape": (len(read), max(len(sentence.tokens) for sentence in read)),
                "words": int(lengths.sum()),
                "primary": int(lengths[np.array(sources or [0] * len(own)) == 0].sum()),
                **({"pairs": torch.tensor([here, range(begins[-1], begins[-1] + len(here))])} if here else {}),
            },
            "labels": torch.from_numpy(np.concatenate(labels)),
            "weights": torch.from_numpy(np.concatenate(counts).astype(np.float32)),
        }

    def _labels(self, sentence: Sentence) -> IntArray:
        """Return the class number of every span."""
        number = numbers(len(sentence.tokens))
        kinds = np.full(len(number), NOTHING, dtype=np.int64)
        for entity in sentence.entities or ():
            if (place := (entity.start, entity.end)) in number:
                kinds[number[place]] = self._kinds[entity.type]
        return kinds

    def forward(
        self, features: Features, labels: Tensor, weights: Tensor, num_items_in_batch: Tensor | int | None = None
    ) -> dict[str, Tensor]:
        """Return `loss`: the sum of weighted cross entropies, divided by MOST times the words of the step.

        The loss of `Contrast` is added if the batch has pairs.
        """
        hidden = self.represented(features, features["shape"])
        logits = self.span(hidden[: len(labels)])
        losses = nn.functional.cross_entropy(logits, labels, reduction="none") * weights
        words = features["words"] if num_items_in_batch is None else num_items_in_batch
        loss = losses.sum() / (MOST * words)
        if self.contrast is not None and "pairs" in features:
            # Weight the contrast by this part's share of the step's words, so that the weights of a step's parts add up
            # to 1.
            own, other = (hidden[at] for at in features["pairs"])
            loss = loss + self.contrast(own, other) * (features["primary"] / words)
        return {"loss": loss}

    def predict_at(
        self, temperatures: Sequence[float], sentences: Sequence[Sentence], report: Reporter | None = None
    ) -> list[list[Prediction]]:
        return self.read(temperatures, sentences, report)[1]

    def read(
        self, temperatures: Sequence[float], sentences: Sequence[Sentence], report: Reporter | None = None
    ) -> tuple[list[Tags], list[list[Prediction]]]:
        """Return tags and predictions as `Tagger.read` does.

        All four fields of `Tags` are equal. An entity's confidence is the probability of its span's class.
        """

        def flat(scores: Tensor, mask: Tensor, _: Sequence[int]) -> Tensor:
            return scores.flatten(2).transpose(1, 2)

        tagged = [Tags((), (), (), ())] * len(sentences)
        result = [[prediction_of(())] * len(sentences) for _ in temperatures]
        for rows, decoded in self._decoded(sentences, flat, report or Silent()):
            for row, columns in zip(rows, decoded.numpy(), strict=True):
                n = len(sentences[row].tokens)
                logits = columns[:, :n].T.reshape(n, MOST, -1).astype(np.float64)
                kept = best_disjoint(_log_softmax(logits))
                entities = tuple(Entity(start=e.start, end=e.end, type=self.types[kind - 1]) for e, kind in kept)
                tagged[row] = Tags(*(tuple(encode(entities, n, "bioes")),) * 4)
                chosen = [logits[e.start, e.end - e.start - 1] for e, _ in kept]
                for predictions, heat in zip(result, temperatures, strict=True):
                    pairs = zip(chosen, kept, strict=True)
                    confidence = tuple(float(np.exp(_log_softmax(row / heat)[kind])) for row, (_, kind) in pairs)
                    predictions[row] = Prediction(entities=entities, confidence=confidence)
        return tagged, result

    def doubts(self, sentences: Sequence[Sentence], report: Reporter | None = None) -> FloatArray:
        """Return for each sentence 1 minus the lowest confidence of its entities, `(n,)`; 0 without entities.

        A span tagger has no probability of a whole sentence.
        """
        return np.array([1 - min(found.confidence, default=1.0) for found in self.predict(sentences, report)])

    def parameter_groups(
        self, learning_rate: float, head_learning_rate: float, chain_learning_rate: float | None = None
    ) -> list[dict[str, Any]]:
        new = (self.span, *([self.contrast] if self.contrast else []))
        layer = [p for part in new for p in part.parameters() if p.requires_grad]
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
            "context": self.context_pieces,
            **({"cut": self.cut.as_dict()} if self.cut else {}),
        }
        own = {f"span.{name}": tensor for name, tensor in self.span.state_dict().items()}
        weights = {name: tensor.cpu() for name, tensor in {**self.model.state_dict(), **own}.items()}
        self.model.save_pretrained(folder, state_dict=weights)
        self.tokenizer.save_pretrained(folder)


def shape_of(word: str) -> int:
    """Return the shape of a word as a number: 0 upper case, 1 lower case, 2 title case, 3 digits, 4 other."""
    asked = (word.isupper(), word.islower(), word.istitle(), word.isdigit())
    return asked.index(True) if any(asked) else SHAPES - 1


def _log_softmax(logits: FloatArray) -> FloatArray:
    raised = logits - logits.max(-1, keepdims=True)
    result: FloatArray = raised - np.log(np.exp(raised).sum(-1, keepdims=True))
    return result


UNITS = 100  # hidden units of the critic


class Critic(nn.Module):
    """Scores how likely it is that two representations of `width` units belong to the same mention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Sequential(nn.Linear(2 * width, UNITS), nn.ReLU(), nn.Linear(UNITS, 1), nn.Softplus())

    def forward(self, own: Tensor, other: Tensor) -> Tensor:
        """Return InfoNCE of m pairs in nats: the cross entropy of finding a row's partner among m rows; 0 if m is 1."""
        # Apply the first layer to each side and add, which needs less memory than applying it to all m x m pairs.
        first: nn.Linear = self.score[0]  # type: ignore[assignment]
        weights = first.weight.chunk(2, 1)
        sums = nn.functional.linear(own, weights[0], first.bias)[:, None] + nn.functional.linear(other, weights[1])
        scores: Tensor = self.score[1:](sums)[..., 0]
        return -(scores.diagonal() - scores.logsumexp(1)).mean()


def half_squared_distance(own: Tensor, other: Tensor) -> Tensor:
    """Return half the squared distance of two representations, averaged over the pairs."""
    return ((own - other) ** 2).sum(-1).mean() / 2


class Contrast(nn.Module):
    """Loss of pairs of representations: beta times half their squared distance plus gamma times their InfoNCE.

    The critic is trained together with the tagger, but not saved.
    """

    def __init__(self, width: int, beta: float, gamma: float) -> None:
        super().__init__()
        self.beta, self.gamma, self.critic = beta, gamma, Critic(width)

    def forward(self, own: Tensor, other: Tensor) -> Tensor:
        loss: Tensor = self.beta * half_squared_distance(own, other) + self.gamma * self.critic(own, other)
        return loss
