"""Pointwise V-information (PVI) of mentions: inputs of the classifiers, folds and formulas. The models are elsewhere.

PVI is from Ethayarajh et al. 2022; PVI of names and contexts is from Ma et al. 2023, section 2 (SOURCES.md, Mentions
and inputs).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.results import FloatArray, IntArray
from core.text.sentence import Sentence

View = Literal["entity", "context"]
VIEWS: tuple[View, ...] = ("entity", "context")
Group = Literal["", "sentence", "document"]
# Strengths of tempering to try. 0 gives the prior, 1 the unchanged model, and 2 doubles its distance from the prior.
STRENGTHS = np.linspace(0, 2, 41)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One mention of an entity. row: row of its sentence in the corpus. start, end: half-open word offsets."""

    row: int
    sentence: Sentence
    start: int
    end: int
    type: str

    @property
    def name(self) -> tuple[str, ...]:
        """Words of the mention: the input of the name classifier."""
        return self.sentence.tokens[self.start : self.end]

    @property
    def sides(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Words before and after the mention. The context classifier gets one mask token in place of the name."""
        return self.sentence.tokens[: self.start], self.sentence.tokens[self.end :]


def instances(sentences: Iterable[Sentence]) -> list[Instance]:
    """Return every mention, ordered by row and offset. sentences: all sentences of a labelled corpus, in order."""
    return [
        Instance(row=row, sentence=sentence, start=entity.start, end=entity.end, type=entity.type)
        for row, sentence in enumerate(sentences)
        for entity in sorted(sentence.entities or ())
    ]


def sampled(mentions: Sequence[Instance], n: int, seed: int) -> list[Instance]:
    """Draw random sentences until they have at least `n` mentions together. Return all their mentions, in order.

    n: 0 returns all mentions.
    """
    if not n or len(mentions) <= n:
        return list(mentions)
    rows, counts = np.unique([mention.row for mention in mentions], return_counts=True)
    order = np.random.default_rng([seed, len(rows)]).permutation(len(rows))
    # Take the first sentences of one shuffle. With the same seed, a larger sample then contains every smaller one.
    enough = int(np.searchsorted(np.cumsum(counts[order]), n)) + 1
    # Draw whole sentences, because each mention is part of the context of the other mentions in its sentence.
    kept = set(rows[order[:enough]].tolist())
    return [mention for mention in mentions if mention.row in kept]


def groups(mentions: Sequence[Instance], by: Group, folds: int) -> tuple[IntArray, Literal["sentence", "document"]]:
    """Return the group of each mention, `(n,)` from 0, and the kind of group.

    by: "" groups by document if every document is known and there are at least `folds` documents, else by sentence.
    With "document", a mention whose document is unknown is grouped by its sentence. Equal sentences are then in one
    group only within a document, because a phrase that many documents share would join them all.
    """
    documents = [mention.sentence.doc for mention in mentions]
    known = None not in documents and len(set(documents)) >= folds
    chosen: Literal["sentence", "document"] = ("document" if known else "sentence") if by == "" else by
    # The prefixes d and s prevent a document and a sentence with the same id from sharing a group.
    names = [
        f"d {document}" if chosen == "document" and document is not None else f"s {mention.sentence.id}"
        for document, mention in zip(documents, mentions, strict=True)
    ]
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.int64), chosen


def folds(groups: IntArray, types: IntArray, n: int, seed: int) -> IntArray:
    """Return the fold of each mention, `(m,)` from 0 to n - 1. groups, types: `(m,)`, numbered from 0.

    Groups are never split. They are assigned from the largest to the smallest. Each goes to the fold that has the
    fewest mentions of its types so far, weighted by the group's share of each type. This is a greedy descent on the
    chi-square of types over folds.
    """
    counts = np.zeros((int(groups.max()) + 1, int(types.max()) + 1))
    np.add.at(counts, (groups, types), 1)
    # Shuffle, then sort stably by size, so that groups of equal size are in a random but reproducible order.
    shuffled = np.random.default_rng(seed).permutation(len(counts))
    order = shuffled[np.argsort(-counts[shuffled].sum(1), kind="stable")]
    share = counts / np.maximum(counts.sum(0), 1)
    fold_counts = np.zeros((n, counts.shape[1]))
    fold_of = np.zeros(len(counts), dtype=np.int64)
    for group in order.tolist():
        cost = fold_counts @ share[group]
        # Costs that differ only by rounding count as equal. Of the cheapest folds, the one with fewest mentions is
        # taken, which keeps the sizes even.
        cheapest = np.flatnonzero(cost <= cost.min() + 1e-12)
        fold_of[group] = fold = cheapest[fold_counts[cheapest].sum(1).argmin()]
        fold_counts[fold] += counts[group]
    return fold_of[groups]


def entropy(types: IntArray) -> float:
    """Return H(Y) of labels `(n,)` in bits, the upper bound of V-information."""
    shares = np.bincount(types) / len(types)
    # With a single type the sum is -0.0; adding 0.0 turns it into 0.0.
    return float(-sum(share * np.log2(share) for share in shares if share) + 0.0)


def log2_prior(types: IntArray, n_types: int) -> FloatArray:
    """Return the null model of training labels `(n,)` as log2 probabilities `(n_types,)`.

    A classifier without input would only learn the frequencies of the labels, so the frequencies are used directly.
    Half a mention is added to each type, so that a type without training labels has a probability above zero.
    """
    counts = np.bincount(types, minlength=n_types) + 0.5
    return np.log2(counts / counts.sum())  # type: ignore[no-any-return]


def pvi(log2_model: FloatArray, log2_null: FloatArray) -> FloatArray:
    """Return PVI(x -> y) = -log2 g[null](y) + log2 g'[x](y) in bits, `(n,)`. Negative: worse than the prior.

    log2_model, log2_null: log2 probabilities `(n,)` of each mention's true type, with and without its input.
    """
    return log2_model - log2_null


def tempered(log2_model: FloatArray, log2_null: FloatArray, strength: float) -> FloatArray:
    """Return log2 distributions `(n, k)`, mixed from those of the model and of the null model.

    strength: 0 gives the null model, 1 gives the model, and a number above 1 increases their distance.
    """
    # Normalise, because a weighted geometric mean of two distributions does not sum to 1.
    mixed = log2_null + strength * (log2_model - log2_null)
    return mixed - np.logaddexp2.reduce(mixed, axis=1, keepdims=True)


def calibrated(
    log2_model: FloatArray, log2_null: FloatArray, types: IntArray, folds: IntArray
) -> tuple[FloatArray, list[float]]:
    """Return held-out predictions `(n, k)`, tempered per fold, and the strength used for each fold.

    log2_model, log2_null: held-out log2 distributions `(n, k)`. types, folds: `(n,)`. The strength of a fold is the
    best one for the predictions of all other folds.

    A classifier that overfits a few sentences is overconfident on others. A confident mistake costs so many bits that
    V-information can become negative. V-information is defined by the best member of the model family. A tempered
    classifier is a member too, because tempering only scales and shifts its last layer. A fold's predictions do not
    influence its strength. Its labels do, slightly: the models that predict the other folds were trained on them.
    """
    rows, result, chosen = np.arange(len(types)), log2_model.copy(), []
    # Grid search over 41 strengths. `argmax` takes the lowest of equally good ones.
    log2_true = np.stack([tempered(log2_model, log2_null, strength)[rows, types] for strength in STRENGTHS])
    for fold in np.unique(folds):
        in_fold = folds == fold
        chosen.append(float(STRENGTHS[log2_true[:, ~in_fold].mean(1).argmax()]))
        result[in_fold] = tempered(log2_model[in_fold], log2_null[in_fold], chosen[-1])
    return result, chosen


def interval(
    values: FloatArray, groups: IntArray, *, draws: int, seed: int, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds `(k,)` of percentile bootstrap intervals of the column means of `values`, `(n, k)`.

    groups: group of each row, `(n,)`; whole groups are resampled. level: confidence level.
    """
    _, inverse = np.unique(groups, return_inverse=True)
    m = int(inverse.max()) + 1
    sums, sizes = np.zeros((m, values.shape[1])), np.bincount(inverse, minlength=m).astype(float)
    np.add.at(sums, inverse, values)
    rng = np.random.default_rng(seed)
    means = np.empty((draws, values.shape[1]))
    for i in range(draws):
        # Resample whole groups. Errors within a group are correlated, so resampling single mentions would make the
        # intervals too narrow.
        times = np.bincount(rng.integers(m, size=m), minlength=m)
        means[i] = times @ sums / (times @ sizes)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high
