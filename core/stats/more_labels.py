"""Expected test F1 with more labelled sentences, from taggers on nested parts of the training set (SOURCES.md).

The interval includes the variation from seeds, from the sentences in the parts, and from test sentences. It also
includes the uncertainty about the shape of the learning curve. If no estimate is possible, the reason is returned.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import sqrt

from core.results import Evaluation, FloatArray
from core.shown import count
from core.stats.bootstrap import f1_and_moves, tables_of
from core.stats.power_law import Forecast, forecast
from core.stats.spread import measured

LEAST = 40  # fewest labelled sentences, because a quarter of a smaller set is too little to train on
# At most this many further sentences per training sentence. In simulations of three times as many, intervals included
# the truth in only 88% of cases.
FURTHEST = 1
_FALLS = 0.99  # confidence level of the one-sided test that F1 falls with more labels


def parts(sentences: int) -> tuple[int, ...]:
    """Return the sizes of the parts of a training set, ascending, without the whole set."""
    return sentences // 4, sentences // 2


def lacking(sentences: int, more: int, seeds: int) -> str:
    """Return why no estimate is possible, if this is known before training; else ""."""
    if sentences < LEAST:
        return f"the training set has {count(sentences, 'sentence')}; an estimate needs {LEAST}"
    if more > FURTHEST * sentences:
        return f"{more:,} more sentences are more than the training set has ({sentences:,}), too many for an estimate"
    return "" if seeds > 1 else "one seed shows no spread; give three"


def expected(tables: Mapping[int, Sequence[Evaluation]], more: int) -> Forecast | str:
    """Forecast F1 with `more` further labelled sentences, or return why no estimate is possible.

    tables: {size: an evaluation per seed}, ascending; at least three sizes and two seeds, all on the same test
    sentences. The largest size is the training set. Errors: CorpusError if this does not hold.
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
    """Return the variance of mean F1 that the choice of test sentences causes, squared points.

    moves: `(seeds, sentences)` points by which each sentence moves F1.
    """
    seeds, m = moves.shape
    # Subtract the interaction of seeds and sentences, because the spread between seeds already includes it.
    both = float(moves.var(axis=0, ddof=1).sum() / seeds)
    shift = float((moves.mean(axis=0) ** 2).sum() * m / max(m - 1, 1))
    return max(shift - both, 0.0)


def _fall(sizes: Sequence[int], f1: FloatArray, apart: float) -> str:
    """Return a sentence if F1 falls from one size to the next by more than chance; "" if it does not.

    apart: as in `power_law.forecast`, variance of a difference between two sizes that the test sentences cause, squared
    points.
    """
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
