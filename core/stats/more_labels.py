"""Forecast test F1 with more labelled sentences, from taggers trained on nested parts of the training set (SOURCES.md).

The interval includes the variation from seeds, from the choice of the parts' sentences, and from test sentences. It
also includes the uncertainty about the shape of the learning curve.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import sqrt

from core.results import Evaluation, FloatArray
from core.shown import count
from core.stats.bootstrap import f1_and_moves, tables_of
from core.stats.power_law import Forecast, forecast
from core.stats.spread import measured

# Minimum number of training sentences for a forecast. A quarter of a smaller set is too little to train on.
LEAST = 40
# Maximum number of further sentences in a forecast, per training sentence. In simulations with three further sentences
# per training sentence, intervals included the truth in only 88% of cases.
FURTHEST = 1
_FALLS = 0.99  # confidence level of the one-sided test that F1 falls with more labels


def parts(sentences: int) -> tuple[int, ...]:
    """Return the sizes of the parts of a training set to train on, in sentences, ascending: a quarter and a half."""
    return sentences // 4, sentences // 2


def lacking(sentences: int, more: int, seeds: int) -> str:
    """Return why no forecast is possible, if this is known before any training; else "".

    sentences: size of the training set. more: number of further sentences. seeds: number of seeds.
    """
    if sentences < LEAST:
        return f"the training set has {count(sentences, 'sentence')}; an estimate needs {LEAST}"
    if more > FURTHEST * sentences:
        return f"{more:,} more sentences are more than the training set has ({sentences:,}), too many for an estimate"
    return "" if seeds > 1 else "one seed does not show the spread between seeds; give three"


def expected(tables: Mapping[int, Sequence[Evaluation]], more: int) -> Forecast | str:
    """Forecast F1 with `more` further labelled sentences, or return the reason if no forecast is possible.

    tables: {number of training sentences: one evaluation per seed}, ascending; the last is the whole training set.
    Errors: CorpusError for fewer than three sizes or two seeds, or if test sentences differ.
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
    """Return the variance of mean F1, in squared points, that the choice of test sentences causes.

    moves: `(seeds, sentences)` points by which each test sentence moves F1.
    """
    seeds, m = moves.shape
    # Subtract the interaction of seeds and sentences, because the spread between seeds already includes it.
    both = float(moves.var(axis=0, ddof=1).sum() / seeds)
    shift = float((moves.mean(axis=0) ** 2).sum() * m / max(m - 1, 1))
    return max(shift - both, 0.0)


def _fall(sizes: Sequence[int], f1: FloatArray, apart: float) -> str:
    """Return a sentence that says where F1 falls from one size to the next by more than chance; "" if it does not.

    f1: `(sizes, seeds)`, percent. apart: variance that test sentences add to a difference between two sizes, squared
    points.
    """
    from scipy.special import stdtrit  # Imported here because it takes a second to load.

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
