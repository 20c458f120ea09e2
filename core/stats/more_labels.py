"""Expected test F1 with more labelled sentences, from taggers on nested parts of the training set (SOURCES.md).

The interval contains the variation by seeds, by the sentences in the parts, and by test sentences, and the uncertainty
about the shape of the learning curve. If the parts cannot carry an estimate, the reason is given instead.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import sqrt

from core.results import Evaluation, FloatArray
from core.shown import count
from core.stats.bootstrap import f1_and_moves, tables_of
from core.stats.power_law import Forecast, forecast
from core.stats.spread import measured

LEAST = 40  # labelled sentences; a quarter of fewer is too little to train on
FURTHEST = 1  # times the training set; in simulations of three times as many, intervals held the truth in only 88%
_FALLS = 0.99  # one-sided level at which F1 falls with more labels by more than chance


def parts(sentences: int) -> tuple[int, ...]:
    """Return the sizes of the parts of a training set, ascending, without the whole set."""
    return sentences // 4, sentences // 2


def lacking(sentences: int, more: int, seeds: int) -> str:
    """Return why a training set cannot carry an estimate, before anything is trained; "" if it may."""
    if sentences < LEAST:
        return f"the training set has {count(sentences, 'sentence')}; an estimate needs {LEAST}"
    if more > FURTHEST * sentences:
        return f"{more:,} more sentences are more than the training set has ({sentences:,}), which is too far ahead"
    return "" if seeds > 1 else "one seed shows no spread; give three"


def expected(tables: Mapping[int, Sequence[Evaluation]], more: int) -> Forecast | str:
    """Return what F1 with `more` labelled sentences may be, or why it cannot be estimated.

    tables: {size: an evaluation per seed}, ascending, three sizes and two seeds at least, all on the same test
    sentences; the largest size is the training set. Errors: CorpusError if sentences, sizes or seeds are others.
    """
    sizes = list(tables)
    whole, by_sentence = f1_and_moves(tables_of([one for size in sizes for one in tables[size]]))
    f1 = whole.reshape(len(sizes), -1)
    spread = measured(list(tables.values()))
    apart = spread.sentences**2 if spread else 0.0
    if fall := _fall(sizes, f1, apart):
        return fall
    common = _of_sentences(by_sentence[-f1.shape[1] :])
    return forecast(sizes, f1, sizes[-1] + more, common=common, apart=apart)


def _of_sentences(moves: FloatArray) -> float:
    """Return the variance of mean F1 by test sentences, squared points. moves: `(seeds, sentences)` points."""
    seeds, m = moves.shape
    # The spread between seeds contains their interaction with the sentences, which is therefore subtracted.
    both = float(moves.var(axis=0, ddof=1).sum() / seeds)
    shift = float((moves.mean(axis=0) ** 2).sum() * m / max(m - 1, 1))
    return max(shift - both, 0.0)


def _fall(sizes: Sequence[int], f1: FloatArray, apart: float) -> str:
    """Return a sentence if F1 falls from one size to the next by more than chance; "" if it does not."""
    from scipy.special import stdtrit  # a second to load

    k, n = f1.shape
    chance = float(stdtrit(k * (n - 1), _FALLS)) * sqrt(2 * float(f1.var(axis=1, ddof=1).mean()) / n + apart)
    means = f1.mean(axis=1)
    for i, (before, after) in enumerate(pairwise(means)):
        if before - after > chance:
            return (
                f"test F1 falls from {before:.1f} with {sizes[i]:,} sentences to {after:.1f} with {sizes[i + 1]:,}, by "
                "more than chance"
            )
    return ""
