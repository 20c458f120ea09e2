"""Fit of frozen encoder states to labels, before any training: H-score, LogME and a linear probe.

See SOURCES.md, Ranking encoders.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from core.errors import ModelError
from core.models import hub
from core.models.crf import LinearChain, bioes_tags
from core.models.devices import pick_device, pick_dtype, side_by_side, to_device
from core.models.encoder import BUDGET, length_groups, longest
from core.models.pieces import Pieces, WordWindow, rectangle
from core.reporter import Reporter
from core.results import Evaluation, FloatArray, IntArray
from core.stats.scoring import evaluate
from core.text.schemes import decode, encode
from core.text.sentence import Prediction, Sentence

# LogME: maximum number of iterations to the fixed point. About ten are usual.
LOG_ME_ROUNDS = 100
# LogME: the iteration ends if the ratio of the two precisions changes by less than this share.
SETTLED = 1e-3
# Probe: weight of the L2 penalty. The loss is the summed cross entropy plus PENALTY / 2 times the squared weights.
PENALTY = 1.0
# Probe: maximum number of iterations of L-BFGS.
PROBE_ROUNDS = 40
# Number of bootstrap samples in `probe_gain`.
DRAWS = 2000

States = npt.NDArray[np.float16]


def word_states(name: str, sentences: Sequence[Sentence], report: Reporter, *, max_length: int = 256) -> States:
    """Return the states of each word's first piece after each layer (without embeddings), `(layers, words, size)`.

    Words are in the order of the sentences. A long sentence is read in windows, as a tagger does. Errors: ModelError.
    """
    device = pick_device()
    model = hub.load_model(name, dtype=pick_dtype("auto", device, frozen=True)).eval().requires_grad_(False).to(device)
    if model.config.is_encoder_decoder:
        raise ModelError(
            f"{name}: is an encoder-decoder model; choose an encoder such as BERT or RoBERTa, or {hub.BUNDLED}."
        )
    tokenizer = hub.load_tokenizer(name)
    pieces = Pieces(tokenizer, min(max_length, longest(model, tokenizer)))
    starts = np.cumsum([0, *(len(sentence.tokens) for sentence in sentences)])
    windows = [
        (int(start) + window.start, window)
        for start, sentence in zip(starts, sentences, strict=False)
        for window in pieces.windows(sentence.tokens)
    ]
    layers, size = int(model.config.num_hidden_layers), int(model.config.hidden_size)
    states = np.zeros((layers, int(starts[-1]), size), dtype=np.float16)

    def read(group: IntArray) -> tuple[list[tuple[int, WordWindow]], torch.Tensor]:
        batch = [windows[row] for row in group.tolist()]
        arrays = rectangle([window.ids for _, window in batch], tokenizer.pad_token_id or 0)
        with torch.inference_mode():
            ids, attention = to_device([torch.from_numpy(array) for array in arrays], device)
            output = model(input_ids=ids, attention_mask=attention, output_hidden_states=True)
            hidden = torch.stack(output.hidden_states[1:])
        return batch, hidden.to(torch.float16)

    done, groups = 0, length_groups(np.array([len(w.ids) for _, w in windows]), BUDGET.get(device.type, BUDGET["cpu"]))
    with closing(side_by_side(read, groups, device)) as results:
        for batch, hidden in results:
            report.check()
            for line, (start, window) in enumerate(batch):
                states[:, start : start + len(window.first)] = hidden[:, line, list(window.first)].numpy()
            done += len(batch)
            report.progress(done, len(windows), "sentences")
    if not np.isfinite(states).all():
        raise ModelError(f"{name}: some states are not finite; its weights are damaged or need more than 16 bits.")
    return states


def h_score(states: FloatArray, labels: IntArray) -> float:
    """Return the H-score (Bao et al. 2019) of states `(n, d)` for classes `(n,)`.

    It measures the spread of the class means relative to the spread of all states. Its maximum is the number of classes
    minus 1. The covariance is shrunk by Ledoit and Wolf's rule (Ibrahim et al. 2022).
    """
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
    """Return Ledoit and Wolf's shrinkage of a covariance matrix, 0 to 1.

    It is the sampling error of the matrix, divided by the distance between the matrix and the nearest multiple of the
    identity. rows: the centred data. spread: their covariance matrix.
    """
    n, d = rows.shape
    squares = (spread**2).sum()
    by_chance = ((rows**2).sum(axis=1) ** 2).mean() - squares
    from_sphere = squares - np.trace(spread) ** 2 / d
    return float(min(by_chance / n / from_sphere, 1.0)) if from_sphere > 0 else 1.0


def log_me(states: FloatArray, labels: IntArray) -> float:
    """Return LogME (You et al. 2021) of states `(n, d)` for classes `(n,)`.

    For each class, a Bayesian linear model predicts whether a row belongs to the class. LogME is the log evidence per
    row, maximised over the model's two precisions and averaged over the classes.
    """
    features = np.asarray(states, dtype=np.float64)
    n, d = features.shape
    # `squared` are the squared singular values of `features`. This is cheaper than an SVD of an (n, d) matrix.
    squared, axes = np.linalg.eigh(features.T @ features)
    squared = squared.clip(min=0)
    # Values up to this limit are rounding errors, by the rule of `numpy.linalg.matrix_rank`.
    kept = squared > squared.max(initial=0) * max(n, d) * np.finfo(np.float64).eps
    targets = _targets(labels)
    # Squared length of each target's projection on each axis.
    along = (axes[:, kept].T @ (features.T @ targets)) ** 2 / squared[kept, None]
    evidence = [_evidence(squared[kept], along[:, k], n, d, targets[:, k].sum()) for k in range(targets.shape[1])]
    return float(np.mean(evidence))


def _evidence(squared: FloatArray, along: FloatArray, n: int, d: int, length: float) -> float:
    """Return the maximum log evidence per row for one class.

    squared: `(k,)` squared singular values of the states `(n, d)`. along: `(k,)` squared length of the target's
    projection on each axis. length: squared length of the target. The precisions of the weights (prior) and of the
    noise are found by fixed-point iteration.
    """
    beyond = max(length - along.sum(), 0.0)
    prior = noise = 1.0
    for _ in range(LOG_ME_ROUNDS):
        ratio = prior / noise
        used = (squared / (squared + ratio)).sum()
        weights = (squared * along / (squared + ratio) ** 2).sum()
        error = (along * (ratio / (squared + ratio)) ** 2).sum() + beyond
        # The limits avoid division by zero: the error is 0 if the states predict the class perfectly, and the weights
        # are 0 if the states predict nothing.
        prior, noise = used / max(weights, 1e-12), (n - used) / max(error, 1e-12)
        if abs(prior / noise - ratio) <= SETTLED * ratio:
            break
    volume = np.log(prior + noise * squared).sum() + (d - len(squared)) * np.log(prior)
    fit = d * np.log(prior) + n * np.log(noise / (2 * np.pi)) - volume - noise * error - prior * weights
    return float(fit / (2 * n))


def _targets(labels: IntArray) -> FloatArray:
    """Return the one-hot classes, `(n, k)`."""
    classes, rows = np.unique(labels, return_inverse=True)
    targets: FloatArray = np.eye(len(classes))[rows]
    return targets


def tag_codes(sentences: Sequence[Sentence], types: Sequence[str]) -> IntArray:
    """Return the BIOES tag of each word as an index into `bioes_tags(types)`, shape (n,)."""
    place = {tag: i for i, tag in enumerate(bioes_tags(types))}
    return np.array([place[tag] for s in sentences for tag in encode(s.entities or (), len(s.tokens), "bioes")])


def probed(
    states: FloatArray, train: Sequence[Sentence], other: FloatArray, gold: Sequence[Sentence], types: Sequence[str]
) -> list[Prediction]:
    """Train a linear probe on the sentences `train`, and return its predictions for the sentences `gold`.

    The probe is a softmax regression from a word's state to its BIOES tag; only valid tag sequences are decoded.
    states, other: states `(n, d)` of the words in `train` and in `gold`. types: entity types in `train`.
    """
    # The limit avoids division by zero if a dimension is constant.
    mean, spread = states.mean(0, dtype=np.float64), states.std(0, dtype=np.float64).clip(min=1e-6)
    x, y = (torch.from_numpy(((part - mean) / spread).astype(np.float32)) for part in (states, other))
    weight, bias = _fit(x, torch.from_numpy(tag_codes(train, types)), 4 * len(types) + 1)
    return _decoded(y @ weight + bias, [len(sentence.tokens) for sentence in gold], types)


def _fit(x: Tensor, codes: Tensor, n_tags: int) -> tuple[Tensor, Tensor]:
    """Return weights `(d, k)` and biases `(k,)` of a probe fitted to words. x: their states. codes: their tags."""
    weight, bias = torch.zeros(x.shape[1], n_tags, requires_grad=True), torch.zeros(n_tags, requires_grad=True)
    # The penalty makes the loss strictly convex. Starting from zero, L-BFGS always takes the same path to its only
    # minimum.
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=PROBE_ROUNDS, history_size=10, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(x @ weight + bias, codes)
        value = value + PENALTY / (2 * len(x)) * weight.square().sum()
        torch.autograd.backward(value)
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]  # torch has no types for it
    return weight.detach(), bias.detach()


def _decoded(scores: Tensor, lengths: list[int], types: Sequence[str]) -> list[Prediction]:
    """Return the entities with the best scores. scores: `(n, k)` of all words. lengths: words per sentence."""
    chain = LinearChain(bioes_tags(types), "softmax", constrained=True)
    padded = torch.nn.utils.rnn.pad_sequence(list(torch.split(scores, lengths)), batch_first=True)
    mask = torch.arange(padded.shape[1]) < torch.tensor(lengths)[:, None]
    paths = chain.viterbi(padded, mask).tolist() if len(scores) else [[]] * len(lengths)
    tags = ([chain.tags[i] for i in path[:n]] for path, n in zip(paths, lengths, strict=True))
    return [Prediction(entities=decode(each, "bioes", strict=True)[0], confidence=()) for each in tags]


def within(states: FloatArray, train: Sequence[Sentence], types: Sequence[str], folds: int) -> Evaluation:
    """Return the evaluation of a probe by cross-validation within `train`. states: `(n, d)`, one row per word."""
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
    """Difference between the F1 of two probes, in points. lo, hi: ends of the difference's confidence interval."""

    delta: float
    lo: float
    hi: float


def probe_gain(system: Evaluation, other: Evaluation, level: float) -> ProbeGain:
    """Return the difference in F1, `system` minus `other`, with a bootstrap confidence interval over sentences."""
    n = len(system.gold)
    counts = np.vstack([np.ones(n), np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=DRAWS)])
    f1 = [
        200 * (counts @ table.tp.sum(1)) / np.maximum(counts @ (table.predicted.sum(1) + table.gold.sum(1)), 1)
        for table in (system, other)
    ]
    delta, *draws = (f1[0] - f1[1]).tolist()
    lo, hi = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return ProbeGain(delta=delta, lo=float(lo), hi=float(hi))
