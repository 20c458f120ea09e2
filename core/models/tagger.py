"""A tagger: words to emissions, a linear chain over them, entities out. BIOES inside, strict at the door.

It is an `nn.Module` that makes its own batches from sentences. `Tagger` holds what every kind shares; a kind (see
`taggers`) adds `features`, `emissions`, `size`, `parameter_groups` and `write`, and is trained by `training.finetune`.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from core.models.crf import Head, LinearChain, bioes_tags
from core.models.devices import side_by_side
from core.models.encoder import BUDGET, length_groups
from core.models.memory import Halved
from core.models.transfer import to_device
from core.reporter import Reporter, Silent
from core.results import FloatArray
from core.text.cut import Cut
from core.text.schemes import decode, encode
from core.text.sentence import Prediction, Sentence

Features = dict[str, Any]
IGNORED = -100  # the label of a place without a word: never seen by the CRF, counted by nobody


class Tags(NamedTuple):
    """One sentence's tags.

    best: as the tagger decodes, which is one of the next two. constrained: the best sequence that BIOES allows.
    viterbi: the best of all sequences. argmax: as every word alone would have it.
    """

    best: tuple[str, ...]
    constrained: tuple[str, ...]
    viterbi: tuple[str, ...]
    argmax: tuple[str, ...]


def prediction_of(tags: Sequence[str]) -> Prediction:
    """The entities of BIOES tags, those that are not well-formed left out; their confidence is not known."""
    return Prediction(entities=decode(tags, "bioes", strict=True)[0], confidence=())


def labels_of(sentences: Sequence[Sentence], indices: Sequence[Mapping[str, int]]) -> Tensor:
    """`(b, l)` BIOES tags of the entities by each sentence's index, IGNORED behind its end.

    Whatever scheme a corpus was written in, its entities are encoded here, so every sequence is one that BIOES allows:
    a constrained chain gives any other an infinite loss.
    """
    labels = torch.full((len(sentences), max(len(s.tokens) for s in sentences)), IGNORED)
    for row, (sentence, index) in enumerate(zip(sentences, indices, strict=True)):
        tags = encode(sentence.entities or (), len(sentence.tokens), "bioes")
        assert not decode(tags, "bioes")[1], f"a training sentence's tags are not well-formed: {tags}"
        labels[row, : len(tags)] = torch.tensor([index[tag] for tag in tags], dtype=torch.int64)
    return labels


class Tagger(nn.Module):
    """Words to emissions, and a chain over them.

    types: t names. tags: the k = 4t + 1 BIOES tags of the output layer. context: how many words of neighbouring
    sentences on each side it makes use of, where sentences bring some (`text.neighbours`). cut: how its training
    sentences were cut into tokens, and raw text is to be; None: by our rule."""

    crf: LinearChain
    context: int = 0
    cut: Cut | None = None

    def __init__(self, types: Sequence[str], head: Head, *, constrained: bool = False) -> None:
        super().__init__()
        self.types, self.tags = tuple(types), bioes_tags(types)
        self.crf = LinearChain(self.tags, head, constrained=constrained)
        self.accepts_loss_kwargs = True  # the Trainer then tells the words of a whole optimizer step
        self._index = {tag: i for i, tag in enumerate(self.tags)}

    @property
    def labels(self) -> tuple[str, ...]:
        return self.tags

    @property
    def device(self) -> torch.device:
        device: torch.device = self.crf.transitions.device
        return device

    def features(self, sentences: Sequence[Sentence]) -> Features:
        """Inputs of `emissions`, as tensors (or lists and dictionaries of them). No sentence is empty."""
        raise NotImplementedError

    def emissions(self, features: Features, shape: tuple[int, int]) -> Tensor:
        """`(b, l, k)` float32, one row a word; `shape` is (b, l)."""
        raise NotImplementedError

    def size(self, sentence: Sentence) -> int:
        """Pieces (or words) that this sentence costs."""
        raise NotImplementedError

    def parameter_groups(
        self, learning_rate: float, head_learning_rate: float, chain_learning_rate: float | None = None
    ) -> list[dict[str, Any]]:
        """Parameter groups for AdamW: the encoder first, whose rate is the one that is shown.

        chain_learning_rate: of all chains' transitions; None: as the layer below them.
        """
        raise NotImplementedError

    def level_chains(self) -> None:
        """Begin every chain with no tag before another (`LinearChain.level`)."""
        for part in self.modules():
            if isinstance(part, LinearChain):
                part.level()

    def in_chains(self) -> set[int]:
        """The `id` of every parameter of a chain."""
        return {id(p) for part in self.modules() if isinstance(part, LinearChain) for p in part.parameters()}

    def write(self, folder: Path) -> None:
        """Write into an empty folder, from which `load_tagger` makes the same tagger."""
        raise NotImplementedError

    def batch(
        self,
        sentences: Sequence[Sentence],
        weights: Sequence[float] | None = None,
        sources: Sequence[int] | None = None,
    ) -> Features:
        """A training batch. weights: what each sentence's loss counts for.

        sources: which corpus each is of, 0 the one to do well on; for the kinds that tell corpora apart.
        """
        return {
            "features": self.features(sentences),
            "labels": labels_of(sentences, [self._index] * len(sentences)),
            "weights": torch.tensor(weights or [1.0] * len(sentences)),
        }

    def forward(
        self, features: Features, labels: Tensor, weights: Tensor, num_items_in_batch: Tensor | int | None = None
    ) -> dict[str, Tensor]:
        """`loss`: weighted negative log-likelihood a word; of all words of the optimizer step where they are given."""
        mask = labels != IGNORED
        losses = self.crf.loss(self.emissions(features, tuple(labels.shape)), labels.clamp(min=0), mask)  # type: ignore[arg-type]
        words = mask.sum() if num_items_in_batch is None else num_items_in_batch
        return {"loss": (losses * weights).sum() / words}

    def tag(self, sentences: Sequence[Sentence], report: Reporter | None = None) -> list[Tags]:
        """Tags of each sentence under all decodings; of one without words, none."""
        return self.read((), sentences, report)[0]

    def predict(self, sentences: Sequence[Sentence], report: Reporter | None = None) -> list[Prediction]:
        """Entities of each sentence's best tags; confidence is an entity's posterior under the chain, exact and at its
        temperature."""
        (predictions,) = self.predict_at((self.crf.temperature,), sentences, report)
        return predictions

    def predict_at(
        self, temperatures: Sequence[float], sentences: Sequence[Sentence], report: Reporter | None = None
    ) -> list[list[Prediction]]:
        """The same under each temperature: the entities are alike, how sure they are is not."""

        def weighed(emissions: Tensor, mask: Tensor) -> Tensor:
            path = self.crf.viterbi(emissions, mask)
            return torch.stack([path.double(), *self._sums(emissions, mask, path, temperatures)], 1)

        result = [[prediction_of(())] * len(sentences) for _ in temperatures]
        for rows, decoded in self._decoded(sentences, weighed, report or Silent()):
            for row, (path, *sums) in zip(rows, decoded.numpy(), strict=True):
                tags = [self.tags[int(i)] for i in path[: len(sentences[row].tokens)]]
                for predictions, prediction in zip(result, _confident(tags, sums), strict=True):
                    predictions[row] = prediction
        return result

    def read(
        self, temperatures: Sequence[float], sentences: Sequence[Sentence], report: Reporter | None = None
    ) -> tuple[list[Tags], list[list[Prediction]]]:
        """Results of `tag` and `predict_at`, of one pass through the network."""

        def paths(emissions: Tensor, mask: Tensor) -> Tensor:
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
        """The two sums of `LinearChain.posteriors` under each temperature, one behind the other."""
        return [part for heat in temperatures for part in self.crf.posteriors(emissions, mask, path, heat)]

    def _decoded(
        self, sentences: Sequence[Sentence], decode: Callable[[Tensor, Tensor], Tensor], report: Reporter
    ) -> Iterator[tuple[list[int], Tensor]]:
        """Batches of nearly one length: their rows, and on the CPU what `decode` makes of emissions and mask."""
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
                    return decode(self.emissions(features, tuple(mask.shape)), mask)

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
    """The entities of a sentence's tags, how sure they are by every pair of `sums`."""
    entities = prediction_of(tags).entities
    for first, last in zip(sums[::2], sums[1::2], strict=True):
        # By rounding a hair above 0, which is more than certain.
        sure = tuple(math.exp(min(first[e.start] + last[e.end - 1], 0.0)) for e in entities)
        yield Prediction(entities=entities, confidence=sure)


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """Parts of a batch that are as long as the longest of their own sentences."""
    if len(parts) == 1:
        return parts[0]
    longest = max(part.shape[-1] for part in parts)
    return torch.cat([nn.functional.pad(part, (0, longest - part.shape[-1])) for part in parts])
