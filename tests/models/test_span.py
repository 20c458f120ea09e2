"""The span network: enumeration of spans, decoding, losses, learning, and reloading."""

import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import set_seed

from core.models.networks import MOST, beyond
from core.models.span import NOTHING, Critic, SpanTagger, best_disjoint, half_squared_distance, places
from core.models.tagger import prediction_of
from core.models.taggers import load_tagger, new_span_tagger
from core.reporter import Silent
from core.results import FloatArray
from core.training.finetune import finetune
from tests.conftest import sentence
from tests.training.test_finetune import DEV, SETTINGS, TRAIN, TYPES

LONG = sentence("a b c d e f", [(0, 5, "PER"), (5, 6, "LOC")])


def test_short_spans_are_enumerated_once() -> None:
    for n in range(7):
        every = [(a, b) for a, b in combinations(range(n + 1), 2) if b - a <= MOST]
        assert sorted(places(n)) == sorted(every)
        assert len(set(places(n))) == len(every)


def by_removal(scores: FloatArray) -> list[tuple[int, int, int]]:
    """Decode by another method: take the most confident span and remove all that overlap it, until none is left."""
    left = []
    for start, end in places(len(scores)):
        kind = int(np.argmax(scores[start, end - start - 1]))
        if kind != NOTHING:
            left.append((float(scores[start, end - start - 1, kind]), start, end, kind))
    kept = []
    while left:
        _, start, end, kind = max(left, key=lambda one: one[0])
        kept.append((start, end, kind))
        left = [one for one in left if one[2] <= start or one[1] >= end]
    return sorted(kept)


def test_most_confident_spans_win_without_overlap() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        logits = rng.normal(size=(int(rng.integers(1, 9)), MOST, 3))
        scores = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        assert [(e.start, e.end, kind) for e, kind in best_disjoint(scores)] == by_removal(scores)


def test_span_loss_weights_spans_without_entity_by_half() -> None:
    torch.manual_seed(1)
    tagger = new_span_tagger("tiny", ["LOC", "PER"], precision="fp32").eval()
    both = [LONG, sentence("Bob met Ann", [(0, 1, "PER"), (2, 3, "PER")])]
    loss = 0.0
    with torch.no_grad():
        for one in both:
            n = len(one.tokens)
            logits = tagger.emissions(tagger.features([one]), (1, n))[0].log_softmax(-1)
            kinds = {(e.start, e.end): 1 + ["LOC", "PER"].index(e.type) for e in one.entities or ()}
            for start, end in places(n):
                kind = kinds.get((start, end), 0)
                loss -= float(logits[start, end - start - 1, kind]) * (1.0 if kind else 0.5)
        assert float(tagger(**tagger.batch(both))["loss"]) == pytest.approx(loss / (MOST * 9), rel=1e-4)
    assert beyond(both) == (1, 4)


def test_info_nce_is_the_mean_log_share_of_the_right_pair() -> None:
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
    one, two = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    assert float(half_squared_distance(one, two)) == 29 / 4


def test_span_tagger_learns_and_reloads(tmp_path: Path) -> None:
    set_seed(1)
    tagger = new_span_tagger("tiny", TYPES, precision="fp32", max_length=64)
    settings = replace(SETTINGS, epochs=6, patience=6)
    epochs = finetune(tagger, TRAIN, DEV, settings, seed=1, folder=tmp_path / "work", report=Silent(), types=TYPES)
    assert max(epochs.dev_f1) > 50
    tags, columns = tagger.read((1.0, 3.0), DEV)
    assert [prediction_of(each.best).entities for each in tags] == [each.entities for each in columns[0]]
    assert sum(map(sum, (p.confidence for p in columns[1]))) < sum(map(sum, (p.confidence for p in columns[0])))
    tagger.write(tmp_path / "model")
    again = load_tagger(tmp_path / "model", precision="fp32")
    assert isinstance(again, SpanTagger)
    assert again.read((1.0, 3.0), DEV) == (tags, columns)
