"""The linear-chain CRF of a tagger: weights from pytorch-crf; our own loss, Viterbi and span posteriors.

A softmax head is a chain whose transitions are zero and not learnt, so its Viterbi is the argmax. A maximum entropy
Markov model (`memm`) is a softmax per word that also sees the previous tag (Murthy et al. 2018). Transitions are learnt
as in a CRF, but each word's tags are normalised separately.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor
from torchcrf import CRF

from core.models.forward_backward import NegativeLogLikelihood, Scores, sums

Head = Literal["crf", "softmax", "memm"]

FARTHEST = (
    600.0  # logarithms may differ by this much before exponentials underflow in float64 (exp(-708) is about e-308)
)


def bioes_tags(types: Sequence[str]) -> tuple[str, ...]:
    """Return `("O", "B-x", "I-x", "E-x", "S-x", ...)`."""
    return ("O", *(f"{letter}-{name}" for name in types for letter in "BIES"))


class LinearChain(CRF):  # type: ignore[misc]  # torchcrf has no types
    """Scores of tag sequences over k tags. Emissions are `(b, l, k)`, masks `(b, l)` True at words.

    constrained: loss, Viterbi and posteriors exclude sequences that break BIOES. This does not change the loss of a
    softmax head, which treats every word separately. temperature: divisor of scores in posteriors, which calibrates
    confidences; decoding does not depend on it.
    """

    temperature = 1.0

    def __init__(self, tags: Sequence[str], head: Head = "crf", *, constrained: bool = False) -> None:
        super().__init__(len(tags), batch_first=True)
        self.tags, self.head, self.constrained = tuple(tags), head, constrained
        if head == "softmax":  # transitions stay zero, so the chain adds nothing
            self.level()
            self.requires_grad_(False)
        elif head == "memm":  # its first word has no previous tag, and its last word no next one
            for scores in (self.start_transitions, self.end_transitions):
                torch.nn.init.zeros_(scores)
                scores.requires_grad_(False)
        for name, illegal in zip(Scores._fields, _illegal(self.tags), strict=True):
            self.register_buffer(f"_illegal_{name}", illegal, persistent=False)

    def level(self) -> None:
        """Set all transitions to zero, so that every later difference between tags was learnt.

        pytorch-crf draws them between -.1 and .1, which a short training would hardly change.
        """
        for scores in self.parameters():
            torch.nn.init.zeros_(scores)

    def loss(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Return the negative log-likelihood of each sentence, `(b,)`."""
        if self.head == "softmax":
            chosen = emissions.log_softmax(-1).gather(-1, tags[..., None])[..., 0]
            return -(chosen * mask).sum(1)
        if self.head == "memm":
            begin, follow, _ = self._scores(self.constrained)
            before = torch.cat([begin.expand(len(tags), 1, -1), follow[tags[:, :-1]]], 1)  # the true tag before each
            chosen = (emissions + before).log_softmax(-1).gather(-1, tags[..., None])[..., 0]
            return -chosen.masked_fill(~mask, 0.0).sum(1)
        return NegativeLogLikelihood.apply(  # type: ignore[no-any-return, no-untyped-call]
            emissions, *self._scores(self.constrained), tags, mask, self._near(emissions)
        )

    @torch.no_grad()
    def viterbi(self, emissions: Tensor, mask: Tensor, *, constrained: bool | None = None) -> Tensor:
        """Return the best tag sequence of each sentence, `(b, l)` int64; values beyond its end have no meaning.

        constrained: search only the sequences that BIOES allows, or all; None: the chain's own setting. A `memm`
        decodes greedily: each word gets its best tag given the previous word's.
        """
        begin, follow, end = self._scores(self.constrained if constrained is None else constrained)
        if self.head == "memm":
            return _greedy(emissions, mask, Scores(begin, follow, end))
        sources = follow.T.contiguous()
        scores = [begin + emissions[:, 0]]
        for i in range(1, emissions.shape[1]):
            best = (scores[-1][:, None] + sources).amax(-1) + emissions[:, i]
            scores.append(torch.where(mask[:, i, None], best, scores[-1]))
        path = [(scores[-1] + end).argmax(1)]  # padding carried the scores of the last word to here
        for i in range(emissions.shape[1] - 1, 0, -1):  # previous tags are computed only along the best path
            source = (scores[i - 1] + sources[path[-1]]).argmax(1)
            path.append(torch.where(mask[:, i], source, path[-1]))
        return torch.stack(path[::-1], 1)

    @torch.no_grad()
    def posteriors(
        self, emissions: Tensor, mask: Tensor, tags: Tensor, temperature: float | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return `first` and `last`, `(b, l)` float64: `first[i] + last[j]` is log p(words i to j have these `tags`).

        This probability is exact. It combines the paths to the first word, the scores of the words themselves (a
        difference of running sums), and the paths after the last word. temperature: None for the chain's own
        temperature.
        """
        heat = temperature or self.temperature
        scores = self._scores(self.constrained)
        if self.head == "memm":
            emissions = _memm_emissions(emissions.double(), mask, scores.follow.double())
        near = self._near(emissions, heat)
        scores = Scores(*(part.double() / heat for part in scores))
        emissions = emissions.double() / heat
        of = sums(emissions, mask, scores, scaled=near)
        ahead, behind, own = (x.gather(2, tags[..., None])[..., 0] for x in (of.ahead, of.behind, emissions))
        steps = scores.follow[tags[:, :-1], tags[:, 1:]] + own[:, 1:]
        along = torch.nn.functional.pad(steps.cumsum(1), (1, 0))
        return ahead - along, behind - own + along - of.total[:, None]

    def _learnt(self) -> Scores:
        return Scores(self.start_transitions, self.transitions, self.end_transitions)

    def _scores(self, constrained: bool) -> Scores:
        """Return the scores; if `constrained`, they are -inf for tags and transitions that BIOES forbids."""
        learnt = self._learnt()
        if not constrained:
            return learnt
        illegal = (self._illegal_begin, self._illegal_follow, self._illegal_end)
        return Scores(*(part.masked_fill(off, -torch.inf) for part, off in zip(learnt, illegal, strict=True)))

    def _near(self, emissions: Tensor, temperature: float = 1.0) -> bool:
        """Return True if all sums over sequences are representable together in float64, so matrix products suffice.

        BIOES reaches any tag from the best sequence in at most three steps (`I-a E-a B-b I-b`). Two sums at one place
        therefore differ by at most the scores of three steps. A product of two sums and a transition differs by at most
        seven. Returns False on a GPU, because reading the answer would make the host wait.
        """
        if emissions.device.type != "cpu":
            return False
        with torch.no_grad():
            step = (emissions.amax(-1) - emissions.amin(-1)).amax()
            learnt = torch.stack([part.amax() - part.amin() for part in self._learnt()]).amax()
            return bool(7 * ((step + learnt) / temperature + math.log(self.num_tags)) < FARTHEST)


def _greedy(emissions: Tensor, mask: Tensor, scores: Scores) -> Tensor:
    """Return every word's best tag given the previous word's, `(b, l)`."""
    last = torch.nn.functional.pad(mask[:, 1:], (0, 1)) != mask  # True at the last word of a sentence
    emissions = emissions + torch.where(last[..., None], scores.end, 0.0)
    path = [(scores.begin + emissions[:, 0]).argmax(1)]
    for i in range(1, emissions.shape[1]):
        best = (scores.follow[path[-1]] + emissions[:, i]).argmax(1)
        path.append(torch.where(mask[:, i], best, path[-1]))
    return torch.stack(path, 1)


def _memm_emissions(emissions: Tensor, mask: Tensor, follow: Tensor) -> Tensor:
    """Return emissions under which a CRF gives every sequence the probability that a `memm` gives it.

    The normaliser of the next word after a tag is subtracted from that tag, so that only the first word's normaliser
    remains.
    """
    paid = emissions.clone()
    for i in range(1, emissions.shape[1]):
        sums = (emissions[:, i, None] + follow).logsumexp(-1)
        paid[:, i - 1] -= sums.masked_fill(~mask[:, i, None], 0.0)
    return paid


def _illegal(tags: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
    """Return masks of forbidden first tags `(k,)`, tags (column) after another (row) `(k, k)`, and last tags `(k,)`."""
    opens = torch.tensor([tag[0] in "OBS" for tag in tags])
    closes = torch.tensor([tag[0] in "OES" for tag in tags])
    same = torch.tensor([[a[1:] == b[1:] for b in tags] for a in tags])
    legal = torch.where(closes[:, None], opens[None], ~opens[None] & same)
    return ~opens, ~legal, ~closes
