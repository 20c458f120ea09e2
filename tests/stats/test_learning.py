"""The check if a tagger learnt anything: one that guesses did not, however often; one with some skill did."""

from collections.abc import Callable

import numpy as np
import pytest

from core.stats.scoring import LEAST, chance_f1, evaluate, learnt
from core.text.sentence import Entity, Prediction, Sentence

TYPES = ("A", "B", "C")
Guess = Callable[[np.random.Generator, Sentence], set[Entity]]


def sentences(rng: np.random.Generator, n: int) -> list[Sentence]:
    """Return sentences of 1 to 30 words; about 60% of them have an entity of one to three words."""
    rows = []
    for i in range(n):
        words = int(rng.integers(1, 31))
        entities = (span(rng, words),) if rng.random() < 0.6 else ()
        rows.append(Sentence(id=f"{i:016x}", tokens=("w",) * words, text="", entities=entities))
    return rows


def span(rng: np.random.Generator, words: int) -> Entity:
    size = min(int(rng.integers(1, 4)), words)
    start = int(rng.integers(words - size + 1))
    return Entity(start=start, end=start + size, type=TYPES[rng.integers(3)])


def anywhere(rng: np.random.Generator, sentence: Sentence) -> set[Entity]:
    return {span(rng, len(sentence.tokens)) for _ in range(3)}


def every_word(rng: np.random.Generator, sentence: Sentence) -> set[Entity]:
    return {Entity(start=i, end=i + 1, type="B") for i in range(len(sentence.tokens))}


def with_some_skill(rng: np.random.Generator, sentence: Sentence) -> set[Entity]:
    own = {entity for entity in sentence.entities or () if rng.random() < 0.2}
    return own | ({span(rng, len(sentence.tokens))} if rng.random() < 0.5 else set())


def share_that_learnt(guess: Guess, experiments: int = 200) -> float:
    rng, good = np.random.default_rng(0), 0
    for _ in range(experiments):
        gold = sentences(rng, 200)
        read = [Prediction(entities=tuple(sorted(guess(rng, each))), confidence=()) for each in gold]
        good += learnt(evaluate(gold, read, TYPES).f1(), chance_f1(gold, read))
    return good / experiments


@pytest.mark.parametrize("guess", [anywhere, pytest.param(every_word, marks=pytest.mark.full)])
def test_few_guessing_but_most_skilled_taggers_count_as_having_learnt(guess: Guess) -> None:
    assert share_that_learnt(guess) <= 0.05
    assert guess is not anywhere or share_that_learnt(with_some_skill) >= 0.95


@pytest.mark.full
def test_f1_of_guesses_seldom_exceeds_chance_f1() -> None:
    """F1 of guesses exceeds the forecast, two standard deviations above its mean, in at most 5% of cases."""
    rng, f1s, bounds = np.random.default_rng(1), [], []
    for _ in range(300):
        gold = sentences(rng, 300)
        read = [Prediction(entities=tuple(sorted(anywhere(rng, each))), confidence=()) for each in gold]
        f1s.append(evaluate(gold, read, TYPES).f1())
        bounds.append(chance_f1(gold, read))
    assert np.mean(np.array(f1s) > np.array(bounds)) <= 0.05
    assert np.mean(f1s) < np.mean(bounds) < np.mean(f1s) + 3 * np.std(f1s)


def test_learning_needs_a_minimum_f1_above_chance() -> None:
    gold = sentences(np.random.default_rng(2), 400)
    none = [Prediction(entities=(), confidence=())] * len(gold)
    assert chance_f1(gold, none) == 0.0
    assert [learnt(*each) for each in ((0.0, 0.0), (LEAST - 0.01, 0.0), (30.0, 30.0))] == [False] * 3
    assert learnt(LEAST, 0.0)
    # In sentences of one word there is no place to guess; the task is to distinguish sentences and types.
    words = [
        Sentence(id=f"{i:016x}", tokens=("w",), text="", entities=(Entity(start=0, end=1, type=TYPES[i % 3]),))
        for i in range(90)
    ]
    read = [Prediction(entities=sentence.entities or (), confidence=()) for sentence in words]
    assert learnt(100.0, chance_f1(words, read))
