"""The linear-chain CRF of a tagger: pytorch-crf for the loss, our own Viterbi and span posteriors, BIOES tags.

A softmax head is the same with transitions of zero that are not learnt: its Viterbi is the argmax.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor
from torchcrf import CRF

from core.text.schemes import encode
from core.text.sentence import Entity

Head = Literal["crf", "softmax"]

FORBIDDEN = -1e4  # added to a transition that BIOES does not know


def bioes_tags(types: Sequence[str]) -> tuple[str, ...]:
    """`("O", "B-x", "I-x", "E-x", "S-x", ...)`."""
    return ("O", *(f"{letter}-{name}" for name in types for letter in "BIES"))


class LinearChain(CRF):  # type: ignore[misc]  # torchcrf has no types
    """Scores of tag sequences over k tags. Emissions are `(b, l, k)` float32, masks `(b, l)` with the first word on.

    constrained: Viterbi and posteriors know no sequence that breaks BIOES; the loss does not change.
    """

    def __init__(self, tags: Sequence[str], head: Head = "crf", *, constrained: bool = False) -> None:
        super().__init__(len(tags), batch_first=True)
        self.tags, self.head, self.constrained = tuple(tags), head, constrained
        if head == "softmax":  # transitions of zero that never learn: the chain then adds nothing
            for scores in self.parameters():
                torch.nn.init.zeros_(scores).requires_grad_(False)
        begin, follow, end = _illegal(self.tags) if constrained else (0.0, 0.0, 0.0)
        self._forbidden = [torch.as_tensor(scores) * FORBIDDEN for scores in (begin, follow, end)]
        self._index = {tag: i for i, tag in enumerate(self.tags)}

    def loss(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Negative log-likelihood of each sentence, `(b,)`."""
        if self.head == "softmax":
            chosen = emissions.log_softmax(-1).gather(-1, tags[..., None])[..., 0]
            return -(chosen * mask).sum(1)
        return -super().forward(emissions, tags, mask, reduction="none")  # type: ignore[no-any-return]

    def viterbi(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The best tag sequence of each sentence, `(b, l)` int64; to be cut off where the sentence ends."""
        begin, follow, end = self._scores(emissions)
        stay = torch.arange(self.num_tags, device=emissions.device)
        score, back = begin + emissions[:, 0], []
        for i in range(1, emissions.shape[1]):
            best, source = (score[:, :, None] + follow).max(1)
            on = mask[:, i, None]
            score = torch.where(on, best + emissions[:, i], score)
            back.append(torch.where(on, source, stay))
        path = [(score + end).argmax(1)]  # `stay` has carried the last real tag over the padding to here
        for source in reversed(back):
            path.append(source.gather(1, path[-1][:, None])[:, 0])
        return torch.stack(path[::-1], 1)

    def posteriors(self, emissions: Tensor, mask: Tensor, entities: Sequence[Sequence[Entity]]) -> list[list[float]]:
        """The probability of each entity as it is: the share of all tag sequences' weight that has it, exactly.

        Forward up to its first word, its own tags, backward from its last; in float64, as sums grow with length.
        """
        emissions = emissions.double()
        begin, follow, end = (scores.double() for scores in self._scores(emissions))
        n, length, _ = emissions.shape
        alpha, beta = [begin + emissions[:, 0]], [end.expand(n, -1)]
        for i in range(1, length):
            on = mask[:, i, None]
            ahead = torch.logsumexp(alpha[-1][:, :, None] + follow, 1) + emissions[:, i]
            alpha.append(torch.where(on, ahead, alpha[-1]))
            j = length - i
            behind = torch.logsumexp(follow + (emissions[:, j] + beta[-1])[:, None, :], 2)
            beta.append(torch.where(mask[:, j, None], behind, end))
        total = torch.logsumexp(alpha[-1] + end, 1)
        result: list[list[float]] = []
        for row, spans in enumerate(entities):
            result.append([])
            for span in spans:
                path = self._path(span)
                weight = alpha[span.start][row, path[0]] + beta[length - span.end][row, path[-1]] - total[row]
                for i in range(1, len(path)):
                    weight = weight + follow[path[i - 1], path[i]] + emissions[row, span.start + i, path[i]]
                result[-1].append(min(float(weight.exp()), 1.0))
        return result

    def _path(self, span: Entity) -> list[int]:
        n = span.end - span.start
        return [self._index[tag] for tag in encode([Entity(start=0, end=n, type=span.type)], n, "bioes")]

    def _scores(self, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        learnt = (self.start_transitions, self.transitions, self.end_transitions)
        begin, follow, end = (
            (scores.detach() + forbidden.to(scores.device)).to(like.device)
            for scores, forbidden in zip(learnt, self._forbidden, strict=True)
        )
        return begin, follow, end


def _illegal(tags: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
    """1 where BIOES does not allow it: a first tag `(k,)`, a tag (column) behind another (row) `(k, k)`, a last tag."""
    opens = torch.tensor([tag[0] in "OBS" for tag in tags])
    closes = torch.tensor([tag[0] in "OES" for tag in tags])
    same = torch.tensor([[a[1:] == b[1:] for b in tags] for a in tags])
    legal = torch.where(closes[:, None], opens[None], ~opens[None] & same)
    return (~opens).float(), (~legal).float(), (~closes).float()
