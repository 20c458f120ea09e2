"""How well a frozen encoder's states tell labels apart, without a training: H-score and LogME (SOURCES.md, Ranking
encoders)."""

import numpy as np

from core.results import FloatArray, IntArray

ROUNDS = 100  # of LogME's fixed point; it settles in about ten
SETTLED = 1e-3  # relative change of the ratio of both precisions from which a further round adds nothing


def h_score(states: FloatArray, labels: IntArray) -> float:
    """H-score (Bao et al. 2019) of states `(n, d)` and classes `(n,)`, its covariance shrunk by Ledoit and Wolf's rule
    (Ibrahim et al. 2022): how far class means lie apart, in units of the spread; at most the number of classes - 1."""
    centred = np.asarray(states, dtype=np.float64) - states.mean(axis=0, dtype=np.float64)
    n, d = centred.shape
    spread = centred.T @ centred / n
    shrinkage = _shrinkage(centred, spread)
    shrunk = (1 - shrinkage) * spread + shrinkage * np.trace(spread) / d * np.eye(d)
    targets = _targets(labels)
    sums = targets.T @ centred
    between = (sums.T / targets.sum(axis=0)) @ sums / n
    return float((1 - shrinkage) * np.trace(np.linalg.pinv(shrunk, hermitian=True) @ between))


def _shrinkage(rows: FloatArray, spread: FloatArray) -> float:
    """Ledoit and Wolf's: how far the covariance `spread` of centred `rows` is from the truth by chance, as a share of
    how far it is from a sphere."""
    n, d = rows.shape
    squares = (spread**2).sum()
    by_chance = ((rows**2).sum(axis=1) ** 2).mean() - squares
    from_sphere = squares - np.trace(spread) ** 2 / d
    return float(min(by_chance / n / from_sphere, 1.0)) if from_sphere > 0 else 1.0


def log_me(states: FloatArray, labels: IntArray) -> float:
    """LogME (You et al. 2021): the logarithm of the highest evidence, a row, of a Bayesian linear model from states
    `(n, d)` to "is it this class", mean over the classes."""
    features = np.asarray(states, dtype=np.float64)
    n, d = features.shape
    squared, axes = np.linalg.eigh(features.T @ features)  # of the singular values; cheaper than those of (n, d)
    squared = squared.clip(min=0)
    # Below that they are rounding, as `numpy.linalg.matrix_rank` has it.
    kept = squared > squared.max(initial=0) * max(n, d) * np.finfo(np.float64).eps
    targets = _targets(labels)
    along = (axes[:, kept].T @ (features.T @ targets)) ** 2 / squared[kept, None]  # of each target, squared
    evidence = [_evidence(squared[kept], along[:, k], n, d, targets[:, k].sum()) for k in range(targets.shape[1])]
    return float(np.mean(evidence))


def _evidence(squared: FloatArray, along: FloatArray, n: int, d: int, length: float) -> float:
    """A row's share of the evidence of one target. length: of the target, squared; along: of it on each axis.

    The two precisions, of the weights (prior) and of the noise, are a fixed point.
    """
    beyond = max(length - along.sum(), 0.0)
    prior = noise = 1.0
    for _ in range(ROUNDS):
        ratio = prior / noise
        used = (squared / (squared + ratio)).sum()
        weights = (squared * along / (squared + ratio) ** 2).sum()
        error = (along * (ratio / (squared + ratio)) ** 2).sum() + beyond
        # States that tell a target exactly leave no error, and those that tell nothing of it no weights.
        prior, noise = used / max(weights, 1e-12), (n - used) / max(error, 1e-12)
        if abs(prior / noise - ratio) <= SETTLED * ratio:
            break
    volume = np.log(prior + noise * squared).sum() + (d - len(squared)) * np.log(prior)
    fit = d * np.log(prior) + n * np.log(noise / (2 * np.pi)) - volume - noise * error - prior * weights
    return float(fit / (2 * n))


def _targets(labels: IntArray) -> FloatArray:
    """`(n, k)`: 1 where a row is of the class, else 0."""
    classes, rows = np.unique(labels, return_inverse=True)
    targets: FloatArray = np.eye(len(classes))[rows]
    return targets
