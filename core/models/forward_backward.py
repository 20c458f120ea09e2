"""Sums over all tag sequences of a linear chain: their total weight, and the shares of a tag and of a pair of tags.

Scores are logarithms: emissions `(b, l, k)` of k tags; masks `(b, l)` True at words, from the first on. All sums are
in float64, because they grow with length and exponentials must not underflow. The backward sums are forward sums over
reversed sentences, so one pass over the places computes both.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

PAIRS = 2**22  # most values that are held at once, k x k per place


class Scores(NamedTuple):
    """Scores of first tags `(k,)`, of a tag (column) after another (row) `(k, k)`, of last tags `(k,)`.

    -inf forbids. At least one sequence of every length must be possible.
    """

    begin: Tensor
    follow: Tensor
    end: Tensor


class Sums(NamedTuple):
    """Logarithms of sums.

    ahead, behind: `(b, l, k)` sums over all paths to a tag and from it; both include the tag's own emission. total:
    `(b,)` sums over all sequences.
    """

    ahead: Tensor
    behind: Tensor
    total: Tensor


@torch.no_grad()
def sums(emissions: Tensor, mask: Tensor, scores: Scores, *, scaled: bool) -> Sums:
    """Return the forward and backward sums of float64 emissions.

    scaled: use matrix products of exponentials, which are fast. The caller must know that no two scores lie so far
    apart that one underflows (`LinearChain._near`). Otherwise logarithms are summed, which is always right.
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
    """Return the place of each word counted from the end of its sentence, `(b, l)`; padding keeps its place."""
    places = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - places, places)


def _products(first: Tensor, follow: Tensor, emissions: Tensor) -> Tensor:
    """Return sums in both directions, `(l, 2, b, k)`, scaled at every place of every row by its own sum."""
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
    """Do the same as `_products` with `logsumexp` over `(2, b, k, k)` at every place."""
    sources = follow.transpose(1, 2).contiguous()[:, None]
    rows = [first + emissions[0]]
    for here in emissions[1:].unbind():
        rows.append((rows[-1][:, :, None] + sources).logsumexp(-1) + here)
    return torch.stack(rows)


def _pairs(of: Sums, follow: Tensor, on: Tensor, weights: Tensor, *, scaled: bool) -> Tensor:
    """Return the expected number of each tag (column) after another (row), `(k, k)`, summed over all places.

    on: `(b, l - 1)`, True if the place has a second tag. weights: `(b, l - 1)`, weight of each pair.
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
