"""PVI and V-information in bits from log-probabilities, no model here (Ethayarajh et al. 2022; Ma et al. 2023, 2)."""

import numpy as np

from core.results import FloatArray, IntArray

STRENGTHS = np.linspace(0, 2, 41)  # of tempering: 0 the prior, 1 the model as it is, beyond that surer than it is


def entropy(types: IntArray) -> float:
    """H(Y) of labels `(n,)` in bits, the upper bound of V-information."""
    shares = np.bincount(types) / len(types)
    # + 0.0 turns the -0.0 of a single type into 0.0.
    return float(-sum(share * np.log2(share) for share in shares if share) + 0.0)


def log2_prior(types: IntArray, n_types: int) -> FloatArray:
    """`(n_types,)` the null model of training labels `(n,)`, half a mention added to each type.

    A classifier without input tends to the labels' frequencies, so that none needs to be trained. The half keeps a type
    that no training label has above zero.
    """
    counts = np.bincount(types, minlength=n_types) + 0.5
    return np.log2(counts / counts.sum())  # type: ignore[no-any-return]


def pvi(log2_model: FloatArray, log2_null: FloatArray) -> FloatArray:
    """PVI(x -> y) = -log2 g[null](y) + log2 g'[x](y) in bits, `(n,)`; below 0: worse than the prior.

    log2_model, log2_null: log2 probabilities `(n,)` of each mention's true type, with its input and without.
    """
    return log2_model - log2_null


def tempered(log2_model: FloatArray, log2_null: FloatArray, strength: float) -> FloatArray:
    """Distributions `(n, k)` between the null model `(n, k)` (strength 0) and the model (1), or beyond."""
    # Mixed in logs and normalised again: a geometric mean of two distributions is not one by itself.
    mixed = log2_null + strength * (log2_model - log2_null)
    return mixed - np.logaddexp2.reduce(mixed, axis=1, keepdims=True)


def calibrated(
    log2_model: FloatArray, log2_null: FloatArray, types: IntArray, folds: IntArray
) -> tuple[FloatArray, list[float]]:
    """Return held-out predictions `(n, k)`, tempered fold by fold, and the strength of each fold.

    log2_model, log2_null: held-out log2 distributions `(n, k)`. types, folds: `(n,)`. A fold's strength is the one that
    is best for the predictions of all other folds.

    A classifier that has learnt its few sentences by heart is too sure of others, and a confident mistake costs so many
    bits that V-information can become negative. V-information is defined by the family's best member; a tempered
    classifier is a member too, its last layer scaled and shifted. A fold's predictions do not influence its strength.
    Its labels do, a little: the models that predict the other folds were trained on them.
    """
    rows, result, chosen = np.arange(len(types)), log2_model.copy(), []
    # A grid, no search: 41 strengths cost little, and of equal ones the weakest is taken.
    log2_true = np.stack([tempered(log2_model, log2_null, strength)[rows, types] for strength in STRENGTHS])
    for fold in np.unique(folds):
        in_fold = folds == fold
        chosen.append(float(STRENGTHS[log2_true[:, ~in_fold].mean(1).argmax()]))
        result[in_fold] = tempered(log2_model[in_fold], log2_null[in_fold], chosen[-1])
    return result, chosen


def interval(
    values: FloatArray, groups: IntArray, *, draws: int, seed: int, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Percentile bootstrap of the means of `values` `(n, k)`: low and high `(k,)`. Whole groups are drawn."""
    _, inverse = np.unique(groups, return_inverse=True)
    m = int(inverse.max()) + 1
    sums, sizes = np.zeros((m, values.shape[1])), np.bincount(inverse, minlength=m).astype(float)
    np.add.at(sums, inverse, values)
    rng = np.random.default_rng(seed)
    means = np.empty((draws, values.shape[1]))
    for i in range(draws):
        # Whole groups by counts: mentions of a document err together, and one by one they would look too sure.
        times = np.bincount(rng.integers(m, size=m), minlength=m)
        means[i] = times @ sums / (times @ sizes)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high
