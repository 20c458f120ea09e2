"""The objective of Wang et al. 2022 on representations of one entity under two names, after the paper (SOURCES.md)."""

import torch
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
        m = len(own)
        pairs = torch.cat([own[:, None].expand(m, m, -1), other[None].expand(m, m, -1)], -1)
        scores: Tensor = self.score(pairs)[..., 0]
        return -(scores.diagonal() - scores.logsumexp(1)).mean()


def apart(own: Tensor, other: Tensor) -> Tensor:
    """The mean over pairs of half the squared distance."""
    return ((own - other) ** 2).sum(-1).mean() / 2
