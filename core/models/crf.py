"""The linear-chain CRF of a tagger: weights from pytorch-crf; our own loss, Viterbi and span posteriors.

A softmax head is a chain whose transitions are zero and not learnt, so its Viterbi is the argmax. A maximum entropy
Markov model (`memm`) is a softmax per word that also sees the previous tag (Murthy et al. 2018). Transitions are learnt
as in a CRF, but each word's tags are normalised separately.

Scores are logarithms: emissions `(b, l, k)` of k tags; masks `(b, l)` are True at words and False at the padding after
them. Sums over all tag sequences are in float64, because they grow with length and exponentials must not underflow.
Backward sums are forward sums over reversed sentences, so one loop over the words computes both.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torchcrf import CRF

Head = Literal["crf", "softmax", "memm"]
# Logarithms may differ by this much before exponentials underflow in float64 (exp(-708) is about 1e-308).
FARTHEST = 600.0
# Emission of a tag that a word cannot have. With -inf, differences of sums would be NaN.
IMPOSSIBLE = -1e5
# Maximum number of values that `_pairs` computes at once. Each pair of neighbouring words has k x k values.
PAIRS = 2**22


def bioes_tags(types: Sequence[str]) -> tuple[str, ...]:
    """Return the BIOES tags of some entity types, `("O", "B-x", "I-x", "E-x", "S-x", ...)`."""
    return ("O", *(f"{letter}-{name}" for name in types for letter in "BIES"))


class Scores(NamedTuple):
    """Scores of first tags `(k,)`, of tag pairs `(k, k)` (row: first tag, column: next tag), and of last tags `(k,)`.

    A score of -inf forbids a tag or pair. At least one sequence of every length must be possible.
    """

    begin: Tensor
    follow: Tensor
    end: Tensor


class LinearChain(CRF):  # type: ignore[misc]  # torchcrf has no types
    """Scores of tag sequences over k tags. Emissions are `(b, l, k)`, masks `(b, l)` True at words.

    constrained: True to exclude sequences that break BIOES from loss, Viterbi and posteriors. This does not change the
    loss of a softmax head, which treats every word separately. temperature: divisor of scores in posteriors, which
    calibrates confidences; it does not change decoding.
    """

    temperature = 1.0

    def __init__(self, tags: Sequence[str], head: Head = "crf", *, constrained: bool = False) -> None:
        super().__init__(len(tags), batch_first=True)
        self.tags, self.head, self.constrained = tuple(tags), head, constrained
        if head == "softmax":  # transitions stay zero, so they do not affect the tags
            self.level()
            self.requires_grad_(False)
        elif head == "memm":  # a first word has no previous tag, and a last word has no next tag
            for scores in (self.start_transitions, self.end_transitions):
                torch.nn.init.zeros_(scores)
                scores.requires_grad_(False)
        for name, illegal in zip(Scores._fields, _illegal(self.tags), strict=True):
            self.register_buffer(f"_illegal_{name}", illegal, persistent=False)

    def level(self) -> None:
        """Set all transitions to zero, so that the chain prefers no tag sequence before training.

        pytorch-crf draws transitions between -0.1 and 0.1. A short training would hardly change these random
        preferences.
        """
        for scores in self.parameters():
            torch.nn.init.zeros_(scores)

    def loss(self, emissions: Tensor, tags: Tensor, mask: Tensor, unknown: Tensor | None = None) -> Tensor:
        """Return the negative log-likelihood of each sentence, `(b,)`.

        unknown: `(b, l)`, True at words that may have any tag; None if there are none. The likelihood is then the sum
        over all sequences that agree with `tags` at the other words (Tsuboi et al. 2008). Must be None for a `memm`.
        """
        if self.head == "softmax":
            chosen = emissions.log_softmax(-1).gather(-1, tags[..., None])[..., 0]
            return -(chosen * (mask if unknown is None else mask & ~unknown)).sum(1)
        if self.head == "memm":
            begin, follow, _ = self._scores(self.constrained)
            # Transition score of every tag, given the true previous tag.
            before = torch.cat([begin.expand(len(tags), 1, -1), follow[tags[:, :-1]]], 1)
            chosen = (emissions + before).log_softmax(-1).gather(-1, tags[..., None])[..., 0]
            return -chosen.masked_fill(~mask, 0.0).sum(1)
        if unknown is not None:
            return self._partial_loss(emissions, tags, mask, unknown)
        return NegativeLogLikelihood.apply(  # type: ignore[no-any-return, no-untyped-call]
            emissions, *self._scores(self.constrained), tags, mask, self._near(emissions)
        )

    def _partial_loss(self, emissions: Tensor, tags: Tensor, mask: Tensor, unknown: Tensor) -> Tensor:
        others = torch.ones_like(emissions, dtype=torch.bool).scatter(-1, tags[..., None], value=False)
        possible = emissions.masked_fill(others & ~unknown[..., None], IMPOSSIBLE)
        scores = self._scores(self.constrained)
        every = LogSum.apply(emissions, *scores, mask, self._near(emissions))  # type: ignore[no-untyped-call]
        # The argument `scaled` is False, because the scores of `possible` are too far apart for products of
        # exponentials.
        return every - LogSum.apply(possible, *scores, mask, False)  # type: ignore[no-any-return, no-untyped-call]

    @torch.no_grad()
    def viterbi(self, emissions: Tensor, mask: Tensor, *, constrained: bool | None = None) -> Tensor:
        """Return the best tag sequence of each sentence, `(b, l)` int64; values at padding have no meaning.

        constrained: True to search only the sequences that BIOES allows, False to search all, None for the chain's
        setting. A `memm` decodes greedily: each word gets its best tag given the previous word's.
        """
        begin, follow, end = self._scores(self.constrained if constrained is None else constrained)
        if self.head == "memm":
            return _greedy(emissions, mask, Scores(begin, follow, end))
        sources = follow.T.contiguous()
        scores = [begin + emissions[:, 0]]
        for i in range(1, emissions.shape[1]):
            best = (scores[-1][:, None] + sources).amax(-1) + emissions[:, i]
            scores.append(torch.where(mask[:, i, None], best, scores[-1]))
        # Scores at padding are copies of the last word's scores.
        path = [(scores[-1] + end).argmax(1)]
        # Compute previous tags only along the best path.
        for i in range(emissions.shape[1] - 1, 0, -1):
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
        """Return the chain's scores; if `constrained`, with -inf for tags and transitions that BIOES forbids."""
        learnt = self._learnt()
        if not constrained:
            return learnt
        illegal = (self._illegal_begin, self._illegal_follow, self._illegal_end)
        return Scores(*(part.masked_fill(off, -torch.inf) for part, off in zip(learnt, illegal, strict=True)))

    def _near(self, emissions: Tensor, temperature: float = 1.0) -> bool:
        """Return True if `sums` may use products of exponentials, because none can underflow in float64.

        A valid BIOES sequence leads from any tag to any other in at most three steps (`I-a E-a B-b I-b`). The sums for
        two tags of one word therefore differ by at most the scores of three steps. A product of a forward sum, a
        transition and a backward sum varies by at most the scores of seven steps.

        Return False on a GPU, because the host would have to wait for the GPU's result.
        """
        if emissions.device.type != "cpu":
            return False
        with torch.no_grad():
            step = (emissions.amax(-1) - emissions.amin(-1)).amax()
            learnt = torch.stack([part.amax() - part.amin() for part in self._learnt()]).amax()
            return bool(7 * ((step + learnt) / temperature + math.log(self.num_tags)) < FARTHEST)


def _greedy(emissions: Tensor, mask: Tensor, scores: Scores) -> Tensor:
    """Return the best tag of every word, given the tag chosen for the previous word, `(b, l)`."""
    last = torch.nn.functional.pad(mask[:, 1:], (0, 1)) != mask  # True at the last word of a sentence
    emissions = emissions + torch.where(last[..., None], scores.end, 0.0)
    path = [(scores.begin + emissions[:, 0]).argmax(1)]
    for i in range(1, emissions.shape[1]):
        best = (scores.follow[path[-1]] + emissions[:, i]).argmax(1)
        path.append(torch.where(mask[:, i], best, path[-1]))
    return torch.stack(path, 1)


def _memm_emissions(emissions: Tensor, mask: Tensor, follow: Tensor) -> Tensor:
    """Return emissions under which a CRF gives every sequence the probability that a `memm` gives it.

    A `memm` normalises each word's scores given the previous tag. This function subtracts the normaliser from the
    emission of the previous tag instead. The CRF's own total is then the normaliser of the first word.
    """
    paid = emissions.clone()
    for i in range(1, emissions.shape[1]):
        normalisers = (emissions[:, i, None] + follow).logsumexp(-1)
        paid[:, i - 1] -= normalisers.masked_fill(~mask[:, i, None], 0.0)
    return paid


def _illegal(tags: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
    """Return masks of forbidden first tags `(k,)`, tag pairs `(k, k)` and last tags `(k,)`, arranged as in `Scores`."""
    opens = torch.tensor([tag[0] in "OBS" for tag in tags])
    closes = torch.tensor([tag[0] in "OES" for tag in tags])
    same = torch.tensor([[a[1:] == b[1:] for b in tags] for a in tags])
    legal = torch.where(closes[:, None], opens[None], ~opens[None] & same)
    return ~opens, ~legal, ~closes


class Sums(NamedTuple):
    """Logarithms of the forward and backward sums.

    ahead, behind: `(b, l, k)` sums over all paths up to a tag, and over all paths from it; both include the tag's own
    emission. total: `(b,)` sums over all sequences.
    """

    ahead: Tensor
    behind: Tensor
    total: Tensor


@torch.no_grad()
def sums(emissions: Tensor, mask: Tensor, scores: Scores, *, scaled: bool) -> Sums:
    """Return the forward and backward sums of float64 emissions.

    scaled: True to multiply matrices of exponentials, which is fast but wrong if an exponential underflows; the caller
    checks this with `LinearChain._near`. False to add logarithms, which is slower but always correct.
    """
    emissions = emissions.masked_fill(~mask[..., None], 0.0)
    turned = _turned(mask)[..., None].expand_as(emissions)
    both = torch.stack([emissions, emissions.gather(1, turned)]).permute(2, 0, 1, 3).contiguous()
    first = torch.stack([scores.begin, scores.end])[:, None]
    follow = torch.stack([scores.follow, scores.follow.T])
    ahead, behind = (_products if scaled else _logarithms)(first, follow, both).permute(1, 2, 0, 3)
    behind = behind.gather(1, turned)
    return Sums(ahead, behind, (scores.begin + behind[:, 0]).logsumexp(1))


def _turned(mask: Tensor) -> Tensor:
    """Return indices `(b, l)` that reverse the words of each sentence and leave the padding in place."""
    places = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - places, places)


def _products(first: Tensor, follow: Tensor, emissions: Tensor) -> Tensor:
    """Return the logarithms of the forward and the backward sums, `(l, 2, b, k)`, from products of exponentials.

    At every word, each row of exponentials is divided by its total, so that products do not underflow.
    """
    top, most, best = emissions.amax(-1, keepdim=True), follow.amax(), first.amax(-1, keepdim=True)
    shares, weights = (emissions - top).exp_(), (follow - most).exp()
    totals = torch.empty_like(top)
    before = (first - best).exp()
    for i, (here, total) in enumerate(zip(shares.unbind(), totals.unbind(), strict=True)):
        here.mul_(torch.bmm(before, weights) if i else before)
        torch.sum(here, -1, keepdim=True, out=total)
        before = here.div_(total)
    scale = totals.log_().add_(top)
    scale[0] += best
    scale[1:] += most
    return shares.log_().add_(scale.cumsum(0))


def _logarithms(first: Tensor, follow: Tensor, emissions: Tensor) -> Tensor:
    """Return the same values as `_products`, computed with `logsumexp` over `(2, b, k, k)` at every word."""
    sources = follow.transpose(1, 2).contiguous()[:, None]
    rows = [first + emissions[0]]
    for here in emissions[1:].unbind():
        rows.append((rows[-1][:, :, None] + sources).logsumexp(-1) + here)
    return torch.stack(rows)


def _pairs(of: Sums, follow: Tensor, on: Tensor, weights: Tensor, *, scaled: bool) -> Tensor:
    """Return the expected number of each tag pair in all sentences, `(k, k)` as in `Scores`.

    on: `(b, l - 1)`, True if the pair's second word is not padding. weights: `(b, l - 1)`, weight of each pair.
    """
    k = len(follow)
    ahead, behind = (x.reshape(-1, k) for x in (of.ahead[:, :-1], of.behind[:, 1:] - of.total[:, None, None]))
    off, weights = ~on.flatten(), weights.flatten()
    if scaled:
        most, top, peak = follow.amax(), ahead.amax(1), behind.amax(1)
        weights = ((top + peak + most).masked_fill_(off, -torch.inf).exp_() * weights)[:, None]
        together: Tensor = (ahead - top[:, None]).exp_().T @ (behind - peak[:, None]).exp_().mul_(weights)
        return together.mul_((follow - most).exp())
    together, ahead = torch.zeros_like(follow), ahead.masked_fill(off[:, None], -torch.inf)
    size = max(1, PAIRS // k**2)
    for i in range(0, len(ahead), size):
        part = slice(i, i + size)
        shares = (ahead[part, :, None] + follow).add_(behind[part, None]).exp_()
        together += torch.tensordot(weights[part], shares, 1)
    return together


class NegativeLogLikelihood(torch.autograd.Function):
    """Loss of each sentence's tags, `(b,)`, with an explicit gradient: expected minus observed counts.

    The host never waits for the device, and no loop runs over sentences.
    """

    @staticmethod
    def forward(  # noqa: PLR0917  as torch calls it
        ctx: Any,
        emissions: Tensor,
        begin: Tensor,
        follow: Tensor,
        end: Tensor,
        tags: Tensor,
        mask: Tensor,
        scaled: bool,
    ) -> Tensor:
        wide = emissions.double()
        scores = Scores(begin.double(), follow.double(), end.double())
        of = sums(wide, mask, scores, scaled=scaled)
        last = mask.sum(1, keepdim=True) - 1
        steps = scores.follow[tags[:, :-1], tags[:, 1:]].masked_fill(~mask[:, 1:], 0.0)
        chosen = wide.gather(2, tags[..., None])[..., 0].masked_fill(~mask, 0.0)
        ends = scores.begin[tags[:, 0]] + scores.end[tags.gather(1, last)[:, 0]]
        ctx.scaled = scaled
        ctx.save_for_backward(emissions, begin, follow, end, tags, mask, last, *of)
        return (of.total - ends - chosen.sum(1) - steps.sum(1)).to(emissions.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        emissions, begin, follow, end, tags, mask, last, *saved = ctx.saved_tensors
        of, counts = Sums(*saved), gradient.double()
        excess = (of.ahead + of.behind).sub_(emissions).sub_(of.total[:, None, None]).exp_()
        excess.scatter_add_(2, tags[..., None], excess.new_full((1, 1, 1), -1.0).expand(*tags.shape, 1))
        excess.mul_(counts[:, None, None]).masked_fill_(~mask[..., None], 0.0)
        weights = counts[:, None] * mask[:, 1:]
        pairs = _pairs(of, follow.double(), mask[:, 1:], weights, scaled=ctx.scaled)
        pairs.index_put_((tags[:, :-1], tags[:, 1:]), -weights, accumulate=True)
        at_end = excess.gather(1, last[..., None].expand(-1, 1, len(end)))[:, 0]
        return (
            excess.to(emissions.dtype),
            excess[:, 0].sum(0).to(begin.dtype),
            pairs.to(follow.dtype),
            at_end.sum(0).to(end.dtype),
            None,
            None,
            None,
        )


class LogSum(torch.autograd.Function):
    """Logarithm of the sum over all sequences, `(b,)`, with an explicit gradient: expected counts."""

    @staticmethod
    def forward(  # noqa: PLR0917  as torch calls it
        ctx: Any, emissions: Tensor, begin: Tensor, follow: Tensor, end: Tensor, mask: Tensor, scaled: bool
    ) -> Tensor:
        of = sums(emissions.double(), mask, Scores(begin.double(), follow.double(), end.double()), scaled=scaled)
        ctx.scaled = scaled
        ctx.save_for_backward(emissions, begin, follow, end, mask, *of)
        return of.total.to(emissions.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        emissions, begin, follow, end, mask, *saved = ctx.saved_tensors
        of, counts = Sums(*saved), gradient.double()
        shares = (of.ahead + of.behind).sub_(emissions).sub_(of.total[:, None, None]).exp_()
        shares.mul_(counts[:, None, None]).masked_fill_(~mask[..., None], 0.0)
        weights = counts[:, None] * mask[:, 1:]
        pairs = _pairs(of, follow.double(), mask[:, 1:], weights, scaled=ctx.scaled)
        last = mask.sum(1, keepdim=True) - 1
        at_end = shares.gather(1, last[..., None].expand(-1, 1, len(end)))[:, 0]
        return (
            shares.to(emissions.dtype),
            shares[:, 0].sum(0).to(begin.dtype),
            pairs.to(follow.dtype),
            at_end.sum(0).to(end.dtype),
            None,
            None,
        )
