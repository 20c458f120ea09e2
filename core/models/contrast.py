"""The objective of Wang et al. 2022 on representations of one entity under two names, after the paper (SOURCES.md)."""

from torch import Tensor, nn

UNITS = 100  # of the critic


class Critic(nn.Module):
    """A learnt score of two representations of `width` units: how much they are of one mention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Sequential(nn.Linear(2 * width, UNITS), nn.ReLU(), nn.Linear(UNITS, 1), nn.Softplus())

    def forward(self, own: Tensor, other: Tensor) -> Tensor:
        """InfoNCE of m pairs, nats: minus the mean log-share of a row of `own` with its row of `other` among all rows
        of `other`. 0 for one pair."""
        # The first layer of each side once, then their sums: the same as of m x m joined rows, which a large batch has
        # no room for.
        first: nn.Linear = self.score[0]  # type: ignore[assignment]
        weights = first.weight.chunk(2, 1)
        sums = nn.functional.linear(own, weights[0], first.bias)[:, None] + nn.functional.linear(other, weights[1])
        scores: Tensor = self.score[1:](sums)[..., 0]
        return -(scores.diagonal() - scores.logsumexp(1)).mean()


def half_squared_distance(own: Tensor, other: Tensor) -> Tensor:
    """The mean over pairs of half the squared distance."""
    return ((own - other) ** 2).sum(-1).mean() / 2


class Contrast(nn.Module):
    """beta times the distance of pairs plus gamma times their InfoNCE. The critic learns with the tagger: its weights
    are in the optimizer. Nothing of it is written with the tagger."""

    def __init__(self, width: int, beta: float, gamma: float) -> None:
        super().__init__()
        self.beta, self.gamma, self.critic = beta, gamma, Critic(width)

    def forward(self, own: Tensor, other: Tensor) -> Tensor:
        loss: Tensor = self.beta * half_squared_distance(own, other) + self.gamma * self.critic(own, other)
        return loss
