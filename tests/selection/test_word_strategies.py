"""Strategies that compare words only, `dsir` and `moore-lewis`, against second implementations and the papers."""

from collections import Counter
from itertools import pairwise
from math import log, log2

import numpy as np
import pytest
from sklearn.utils import murmurhash3_32

from core.models.ngram import KneserNey
from core.reporter import Silent
from core.results import Role
from core.selection import make_strategy
from core.selection.base import Batch, Source, Strategy
from core.selection.strategies.baselines import gumbel
from core.selection.strategies.dsir import log_ratio
from core.stats.draws import sample
from core.text.words import tokenize
from tests.conftest import Seal, sentence
from tests.planted import contracts, kitchen

TASK, DOMAIN = contracts(40, seed=1), [*contracts(60, seed=2), *kitchen(60)]
ASKED = ["The supplier shall pay the goods .", "stir stir stir the dough", "unheard-of words", *DOMAIN[:3]]


def batch(texts: list[str]) -> Batch:
    sentences = [sentence(text) for text in texts]
    return Batch(ids=np.array([int(s.id, 16) for s in sentences], dtype=np.uint64), sentences=sentences)


def prepared(seal: Seal, name: str, options: dict[str, object], task: list[str] = TASK) -> Strategy:
    strategy = make_strategy(name, options, 3)
    sources = {Role.TASK: Source(corpus=seal(task, "task")), Role.DOMAIN: Source(corpus=seal(DOMAIN, "domain"))}
    strategy.prepare(sources, Silent())
    return strategy


def buckets(text: str, n: int) -> Counter[int]:
    """Count the buckets of words and word pairs in plain Python."""
    words = tokenize(text.lower())
    grams = [*words, *(f"{first} {second}" for first, second in pairwise(words))]
    return Counter(abs(murmurhash3_32(gram, seed=0)) % n for gram in grams)


@pytest.mark.parametrize("smoothing", [0.0, 1.0, 0.25])
def test_dsir_equals_a_plain_implementation(seal: Seal, smoothing: float) -> None:
    n = 500
    task, domain = (sum((buckets(text, n) for text in texts), Counter[int]()) for texts in (TASK, DOMAIN))
    drawn, known = task.total(), domain.total()
    expected = []
    for text in ASKED:
        weight = 0.0
        for bucket, times in buckets(text, n).items():
            p_domain = (domain[bucket] + smoothing) / (known + n * smoothing)
            p_task = (task[bucket] + n * smoothing * p_domain) / (drawn + n * smoothing)
            weight += times * (log(p_task + 1e-8) - log(p_domain + 1e-8))
        expected.append(weight)
    scores = prepared(seal, "dsir", {"buckets": n, "smoothing": smoothing}).score(batch(ASKED))
    noise = gumbel(batch(ASKED).ids, 3)
    np.testing.assert_allclose(scores - noise, expected, rtol=1e-9)


def test_dsir_draws_in_proportion_to_the_weights() -> None:
    """The best of 3 rows with the weights 1, 2 and 5 is each of them in 1/8, 2/8 and 5/8 of 20,000 draws."""
    weights, ids = np.array([1.0, 2.0, 5.0]), np.array([7, 8, 9], dtype=np.uint64)
    first = Counter(int(np.argmax(np.log(weights) + gumbel(ids, seed))) for seed in range(20_000))
    for row, weight in enumerate(weights):
        assert first[row] / 20_000 == pytest.approx(weight / 8, abs=0.015)


def test_dsir_smooths_towards_the_domain_corpus() -> None:
    """By hand: 2 buckets, T_C has 3 and 0 grams, D_C 2 and 6, one pseudo-count per bucket.

    p_D = (2 + 1) / 10 and (6 + 1) / 10. p_T = (3 + 2 * .3) / 5 = .72 and (0 + 2 * .7) / 5 = .28.
    """
    found = log_ratio(np.array([3.0, 0.0]), np.array([2.0, 6.0]), 1.0)
    np.testing.assert_allclose(found, [log(0.72 / 0.3), log(0.28 / 0.7)], rtol=1e-6)
    paper = log_ratio(np.array([3.0, 0.0]), np.array([2.0, 6.0]), 0.0)
    np.testing.assert_allclose(paper, [log(1 / 0.25), log(1e-8 / 0.75)], rtol=1e-6)


def test_dsir_does_not_score_a_sentence_without_words(seal: Seal) -> None:
    assert np.isnan(prepared(seal, "dsir", {}).score(batch(["", "word"]))).tolist() == [True, False]


def test_moore_lewis_is_a_difference_of_cross_entropies(seal: Seal) -> None:
    """Unigram models of T_C and of as many sentences of D_C, each fitted here."""
    task = ["a a b", "a b b"]
    strategy = prepared(seal, "moore-lewis", {"order": 1}, task)
    drawn = [DOMAIN[row] for row in sample(batch(DOMAIN).ids, 2, 3)]
    words = {word for text in (*task, *drawn) for word in text.split()}
    ours, rest = (
        KneserNey.fit([text.split() for text in texts], order=1, vocabulary_size=len(words) + 2)
        for texts in (task, drawn)
    )
    expected = (sum(log2(rest.prob(w)) - log2(ours.prob(w)) for w in ("a", "b", "b", "</s>"))) / 4
    np.testing.assert_allclose(strategy.score(batch(["a b b"])), [expected], rtol=1e-6)
    assert expected < 0  # low is better, and these are the words of T_C


def test_moore_lewis_ignores_words_that_are_common_in_both_corpora(seal: Seal) -> None:
    """`ngram-perplexity` prefers the frequent phrase, `moore-lewis` the phrase that only T_C has."""
    both, own = "it is said that this is so", "whereas the lessee assigns"
    task = [*[both] * 30, *[own] * 10]
    domain = [*[both] * 60, *kitchen(60), *[own] * 2]
    sources = {Role.TASK: Source(corpus=seal(task, "t")), Role.DOMAIN: Source(corpus=seal(domain, "d"))}
    preferred = {}
    for name in ("ngram-perplexity", "moore-lewis"):
        strategy = make_strategy(name, {}, 0)
        strategy.prepare(sources, Silent())
        preferred[name] = [both, own][int(np.argmin(strategy.score(batch([both, own]))))]
    assert preferred == {"ngram-perplexity": both, "moore-lewis": own}
