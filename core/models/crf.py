"""The linear-chain CRF of a tagger: pytorch-crf's weights, our own loss, Viterbi and span posteriors, BIOES tags.

A softmax head is the same with transitions of zero that are not learnt: its Viterbi is the argmax. A maximum entropy
Markov model (`memm`) is a softmax a word that sees the tag before it too (Murthy et al. 2018): what a tag adds to the
next one is learnt, as in a CRF, but each word's tags are weighed among themselves.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor
from torchcrf import CRF

from core.models.forward_backward import NegativeLogLikelihood, Scores, sums

Head = Literal["crf", "softmax", "memm"]

FARTHEST = 600.0  # of two logarithms whose exponentials float64 still adds: it holds e-308, which is exp(-708)


def bioes_tags(types: Sequence[str]) -> tuple[str, ...]:
    """`("O", "B-x", "I-x", "E-x", "S-x", ...)`."""
    return ("O", *(f"{letter}-{name}" for name in types for letter in "BIES"))


class LinearChain(CRF):  # type: ignore[misc]  # torchcrf has no types
    """Scores of tag sequences over k tags. Emissions are `(b, l, k)`, masks `(b, l)` with a sentence's words on.

    constrained: no sequence that breaks BIOES is known to the loss, Viterbi and posteriors. The loss of a softmax head,
    which asks every word by itself, does not change. temperature: what scores are divided by where posteriors are asked
    for, so that they are no surer than they are right; what is found does not hang on it.
    """

    temperature = 1.0

    def __init__(self, tags: Sequence[str], head: Head = "crf", *, constrained: bool = False) -> None:
        super().__init__(len(tags), batch_first=True)
        self.tags, self.head, self.constrained = tuple(tags), head, constrained
        if head == "softmax":  # transitions of zero that never learn: the chain then adds nothing
            self.level()
            self.requires_grad_(False)
        elif head == "memm":  # its first word sees no tag, its last none that would follow
            for scores in (self.start_transitions, self.end_transitions):
                torch.nn.init.zeros_(scores)
                scores.requires_grad_(False)
        for name, illegal in zip(Scores._fields, _illegal(self.tags), strict=True):
            self.register_buffer(f"_illegal_{name}", illegal, persistent=False)

    def level(self) -> None:
        """Begin anew with no tag before another: what then sets two apart was learnt.

        pytorch-crf begins between -.1 and .1 at random, which few steps would leave as it is.
        """
        for scores in self.parameters():
            torch.nn.init.zeros_(scores)

    def loss(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Negative log-likelihood of each sentence, `(b,)`."""
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
        """The best tag sequence of each sentence, `(b, l)` int64; to be cut off where the sentence ends.

        constrained: of those that BIOES allows, or of all; None: as the chain is. Of a `memm` it is the greedy one,
        every word's best tag after the one that was given before it.
        """
        begin, follow, end = self._scores(self.constrained if constrained is None else constrained)
        if self.head == "memm":
            return _greedy(emissions, mask, Scores(begin, follow, end))
        sources = follow.T.contiguous()
        scores = [begin + emissions[:, 0]]
        for i in range(1, emissions.shape[1]):
            best = (scores[-1][:, None] + sources).amax(-1) + emissions[:, i]
            scores.append(torch.where(mask[:, i, None], best, scores[-1]))
        path = [(scores[-1] + end).argmax(1)]  # the scores of the last word were carried over the padding to here
        for i in range(emissions.shape[1] - 1, 0, -1):  # whence a tag came is asked of the best path's tags alone
            source = (scores[i - 1] + sources[path[-1]]).argmax(1)
            path.append(torch.where(mask[:, i], source, path[-1]))
        return torch.stack(path[::-1], 1)

    @torch.no_grad()
    def posteriors(
        self, emissions: Tensor, mask: Tensor, tags: Tensor, temperature: float | None = None
    ) -> tuple[Tensor, Tensor]:
        """Two `(b, l)`, float64: words i to j have all these `tags` with log-probability `first[i] + last[j]`.

        That is the share of all tag sequences' weight, exactly: what leads to the first word, the words' own scores
        (as a difference of running sums), and what follows the last one. temperature: None: the chain's own.
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
        """Without what BIOES forbids, if so."""
        learnt = self._learnt()
        if not constrained:
            return learnt
        illegal = (self._illegal_begin, self._illegal_follow, self._illegal_end)
        return Scores(*(part.masked_fill(off, -torch.inf) for part, off in zip(learnt, illegal, strict=True)))

    def _near(self, emissions: Tensor, temperature: float = 1.0) -> bool:
        """Whether no sum over sequences can vanish beside another in float64, so that matrix products will do.

        From the best sequence so far any tag is reached by three steps at most, as BIOES has it (`I-a E-a B-b I-b`),
        so two sums of one place lie at most three steps' scores apart, and a product of two of them and a transition
        seven. Not asked of a device whose answer the host would have to wait for.
        """
        if emissions.device.type != "cpu":
            return False
        with torch.no_grad():
            step = (emissions.amax(-1) - emissions.amin(-1)).amax()
            learnt = torch.stack([part.amax() - part.amin() for part in self._learnt()]).amax()
            return bool(7 * ((step + learnt) / temperature + math.log(self.num_tags)) < FARTHEST)


def _greedy(emissions: Tensor, mask: Tensor, scores: Scores) -> Tensor:
    """Every word's best tag after that of the word before it, `(b, l)`."""
    last = torch.nn.functional.pad(mask[:, 1:], (0, 1)) != mask  # the word behind which there is none
    emissions = emissions + torch.where(last[..., None], scores.end, 0.0)
    path = [(scores.begin + emissions[:, 0]).argmax(1)]
    for i in range(1, emissions.shape[1]):
        best = (scores.follow[path[-1]] + emissions[:, i]).argmax(1)
        path.append(torch.where(mask[:, i], best, path[-1]))
    return torch.stack(path, 1)


def _memm_emissions(emissions: Tensor, mask: Tensor, follow: Tensor) -> Tensor:
    """Emissions under which a CRF gives every sequence the probability that a `memm` does.

    What the next word's tags sum to after a tag is taken from that tag beforehand, so that all sums together are those
    of the first word."""
    paid = emissions.clone()
    for i in range(1, emissions.shape[1]):
        sums = (emissions[:, i, None] + follow).logsumexp(-1)
        paid[:, i - 1] -= sums.masked_fill(~mask[:, i, None], 0.0)
    return paid


def _illegal(tags: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
    """Masks of what BIOES forbids: a first tag `(k,)`, a tag (column) behind another (row) `(k, k)`, a last tag."""
    opens = torch.tensor([tag[0] in "OBS" for tag in tags])
    closes = torch.tensor([tag[0] in "OES" for tag in tags])
    same = torch.tensor([[a[1:] == b[1:] for b in tags] for a in tags])
    legal = torch.where(closes[:, None], opens[None], ~opens[None] & same)
    return ~opens, ~legal, ~closes
