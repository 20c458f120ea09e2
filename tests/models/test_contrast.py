"""MINER's objective: InfoNCE against a plain second implementation, and a critic that learns."""

import math

import pytest
import torch

from core.models.contrast import Critic, half_squared_distance


def test_info_nce_is_the_mean_log_share_of_the_right_pair_and_the_critic_learns_from_it() -> None:
    torch.manual_seed(1)
    critic, own, other = Critic(6), torch.randn(4, 6), torch.randn(4, 6)
    loss = critic(own, other)
    shares = []
    for i in range(4):
        scores = [critic.score(torch.cat([own[i], other[j]])).item() for j in range(4)]
        shares.append(math.exp(scores[i]) / sum(map(math.exp, scores)))
    assert loss.item() == pytest.approx(-sum(map(math.log, shares)) / 4, rel=1e-5)
    loss.backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in critic.parameters())
    assert critic(own[:1], other[:1]).item() == pytest.approx(0, abs=1e-6)


def test_the_distance_is_half_its_square() -> None:
    assert (
        float(half_squared_distance(torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[1.0, 0.0], [3.0, 4.0]])))
        == 29 / 4
    )
