"""A linear probe: softmax regression from frozen states of words to BIOES tags, decoded among the legal sequences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from core.models.crf import LinearChain, bioes_tags
from core.results import Evaluation, FloatArray, IntArray
from core.stats.scoring import evaluate
from core.text.schemes import decode, encode
from core.text.sentence import Prediction, Sentence

PENALTY = 1.0  # on half the squared weights, beside the summed loss of all words
ROUNDS = 40  # of L-BFGS
DRAWS = 2000


def tag_codes(sentences: Sequence[Sentence], types: Sequence[str]) -> IntArray:
    """The BIOES tag of every word, as its place in `bioes_tags(types)`."""
    place = {tag: i for i, tag in enumerate(bioes_tags(types))}
    return np.array([place[tag] for s in sentences for tag in encode(s.entities or (), len(s.tokens), "bioes")])


def probed(
    states: FloatArray, train: Sequence[Sentence], other: FloatArray, gold: Sequence[Sentence], types: Sequence[str]
) -> list[Prediction]:
    """Predictions of a probe that learnt from the states `(n, d)` of `train` in `gold`, whose states are `other`.

    types: of `train`.
    """
    # A unit that never moves has no spread to be divided by.
    mean, spread = states.mean(0, dtype=np.float64), states.std(0, dtype=np.float64).clip(min=1e-6)
    x, y = (torch.from_numpy(((part - mean) / spread).astype(np.float32)) for part in (states, other))
    weight, bias = _fit(x, torch.from_numpy(tag_codes(train, types)), 4 * len(types) + 1)
    return _decoded(y @ weight + bias, [len(sentence.tokens) for sentence in gold], types)


def _fit(x: Tensor, codes: Tensor, n_tags: int) -> tuple[Tensor, Tensor]:
    """Weights `(d, k)` and biases `(k,)`, from zero: the same for the same words."""
    weight, bias = torch.zeros(x.shape[1], n_tags, requires_grad=True), torch.zeros(n_tags, requires_grad=True)
    # Convex, by its penalty strictly: there is one minimum, and from zero the way to it is the same.
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=ROUNDS, history_size=10, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(x @ weight + bias, codes)
        value = value + PENALTY / (2 * len(x)) * weight.square().sum()
        torch.autograd.backward(value)
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]  # torch has no types for it
    return weight.detach(), bias.detach()


def _decoded(scores: Tensor, lengths: list[int], types: Sequence[str]) -> list[Prediction]:
    """The entities of sentences of so many words, whose scores `(n, k)` stand one below the other."""
    chain = LinearChain(bioes_tags(types), "softmax", constrained=True)
    padded = torch.nn.utils.rnn.pad_sequence(list(torch.split(scores, lengths)), batch_first=True)
    mask = torch.arange(padded.shape[1]) < torch.tensor(lengths)[:, None]
    paths = chain.viterbi(padded, mask).tolist() if len(scores) else [[]] * len(lengths)
    tags = ([chain.tags[i] for i in path[:n]] for path, n in zip(paths, lengths, strict=True))
    return [Prediction(entities=decode(each, "bioes", strict=True)[0], confidence=()) for each in tags]


def within(states: FloatArray, train: Sequence[Sentence], types: Sequence[str], folds: int) -> Evaluation:
    """Evaluation of probes on the sentences of `train`, each by one that learnt from the other folds."""
    at = np.cumsum([0, *(len(sentence.tokens) for sentence in train)])
    fold_of = np.random.default_rng(0).permutation(len(train)) % folds
    words = np.repeat(fold_of, np.diff(at))
    predictions = [Prediction(entities=(), confidence=())] * len(train)
    for fold in range(folds):
        rows, others = np.flatnonzero(fold_of == fold).tolist(), np.flatnonzero(fold_of != fold).tolist()
        learnt, judged = [train[row] for row in others], [train[row] for row in rows]
        part = probed(states[words != fold], learnt, states[words == fold], judged, types)
        for row, prediction in zip(rows, part, strict=True):
            predictions[row] = prediction
    return evaluate(train, predictions, types)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeGain:
    """Points of F1 by which one probe is ahead of another. lo, hi: of the interval."""

    delta: float
    lo: float
    hi: float


def probe_gain(system: Evaluation, other: Evaluation, level: float) -> ProbeGain:
    """The difference of two probes on the same sentences, which are drawn with replacement for its interval."""
    n = len(system.gold)
    counts = np.vstack([np.ones(n), np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=DRAWS)])
    f1 = [
        200 * (counts @ table.tp.sum(1)) / np.maximum(counts @ (table.predicted.sum(1) + table.gold.sum(1)), 1)
        for table in (system, other)
    ]
    delta, *draws = (f1[0] - f1[1]).tolist()
    lo, hi = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return ProbeGain(delta=delta, lo=float(lo), hi=float(hi))
