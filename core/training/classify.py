"""Train a sequence classifier, and compute its probabilities (SOURCES.md, PVI).

A cross-validation trains dozens of classifiers for a minute each. This module does not use transformers' Trainer,
because its overhead would take longer than the training. Classifiers are not stored. If a training is interrupted, it
is repeated from the start.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from core.models.classifier import Classifier
from core.models.devices import Halved, side_by_side, to_device
from core.models.encoder import BUDGET, length_groups
from core.models.pieces import Ids
from core.reporter import Reporter
from core.results import FloatArray, IntArray
from core.training.memory import PARTS, Smaller, memory_watched
from core.training.settings import ClassifySettings
from core.training.threads import Threads

LOG_SECONDS = 1.5
# Number of batches whose rows are sorted by length together. This saves padding and keeps the order nearly random.
POOL = 8

Logged = Callable[[float, int], None]
Part = tuple[list[Ids], Tensor]


def train(
    classifier: Classifier,
    inputs: Sequence[Ids],
    labels: IntArray,
    settings: ClassifySettings,
    *,
    seed: int,
    report: Reporter,
    log: Logged,
) -> None:
    """Train on `inputs` and their `labels` `(n,)`; the same seed gives the same weights.

    log: function of the mean loss since the previous call (bits per mention) and the number of the step (from 1).
    Progress is reported in sub-word pieces. Errors: Cancelled, ResourceError if memory runs out.
    """
    torch.manual_seed(seed)
    classifier.encoder.get_input_embeddings().requires_grad_(not settings.keep_embeddings)
    optimizer, schedule = _optimizer(classifier, settings, settings.epochs * -(-len(inputs) // settings.batch_size))
    total, done, step = settings.epochs * sum(map(len, inputs)), 0, 0
    # Collect the losses without reading them. Only `log` reads them, so the host seldom waits for the GPU.
    logged, losses = float("-inf"), list[Tensor]()
    work = f"classifier, {settings.batch_size} mentions of at most {max(map(len, inputs), default=0)} pieces"
    smaller = Smaller(classifier, work, classifier.device, report)
    classifier.train()
    with ExitStack() as stack:
        parallel = None
        if classifier.device.type == "cpu":
            parallel = stack.enter_context(Threads(classifier.encoder, classifier))
        for rows in _batches([len(row) for row in inputs], settings, seed):
            report.check()
            gradients = partial(_gradients, classifier, partial(_parts, inputs, labels, rows), parallel, step)
            with memory_watched(settings.batch_size):
                losses.append(smaller.step(gradients, len(rows)))
                torch.nn.utils.clip_grad_norm_(classifier.parameters(), 1.0)
                optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            step, done = step + 1, done + sum(len(inputs[row]) for row in rows)
            report.progress(done, total, "pieces")
            if time.monotonic() - logged >= LOG_SECONDS or done == total:
                log(float(np.mean(torch.stack(losses).cpu().tolist())) / np.log(2), step)
                logged, losses = time.monotonic(), []


def log2_probabilities(classifier: Classifier, inputs: Sequence[Ids], report: Reporter) -> FloatArray:
    """Return log2 of the probability of each of k classes for each of n inputs, `(n, k)` float64."""
    classifier.eval()
    result = np.zeros((len(inputs), classifier.last_layer.out_features))
    halved = Halved(f"asking a classifier of width {classifier.last_layer.in_features}", classifier.device)

    def logs_of(rows: Sequence[int]) -> Tensor:
        with torch.inference_mode():
            logits: Tensor = classifier([inputs[row] for row in rows])
            return logits.double().log_softmax(-1)

    def work(rows: IntArray) -> tuple[IntArray, Tensor]:
        return rows, torch.cat(halved.each(rows.tolist(), logs_of))

    budget = BUDGET.get(classifier.device.type, BUDGET["cpu"])
    groups = length_groups(np.array([len(row) for row in inputs]), budget)
    with closing(side_by_side(work, groups, classifier.device)) as results:
        for rows, logs in results:
            report.check()
            result[rows] = logs.numpy() / np.log(2)
    return result


def _optimizer(
    classifier: Classifier, settings: ClassifySettings, total: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    groups = [
        {"params": [p for p in classifier.encoder.parameters() if p.requires_grad], "lr": settings.learning_rate},
        {"params": list(classifier.last_layer.parameters()), "lr": settings.head_learning_rate},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=settings.weight_decay, fused=True)
    warm = settings.warmup * total
    # Rise linearly, then fall linearly to 0. The + 1 keeps the rate of the first and the last step above 0.
    share: Callable[[int], float] = lambda step: min((step + 1) / (warm + 1), (total - step) / (total - warm))
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def _batches(lengths: Sequence[int], settings: ClassifySettings, seed: int) -> Iterator[list[int]]:
    """Yield the rows of each step of all epochs, drawn by seed and epoch. The rows of a batch have similar lengths."""
    size, pool = settings.batch_size, POOL * settings.batch_size
    for epoch in range(settings.epochs):
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(len(lengths)).tolist()
        # Sort only within a pool and shuffle the batches again, so that short batches do not follow each other.
        pools = [sorted(order[i : i + pool], key=lengths.__getitem__) for i in range(0, len(order), pool)]
        batches = [rows[i : i + size] for rows in pools for i in range(0, len(rows), size)]
        yield from (batches[i] for i in rng.permutation(len(batches)).tolist())


def _parts(inputs: Sequence[Ids], labels: IntArray, rows: Sequence[int], n: int) -> list[Part]:
    """Cut a batch into at most `n` parts."""
    cuts = [part.tolist() for part in np.array_split(np.array(rows), min(n, len(rows)))]
    return [([inputs[row] for row in part], torch.from_numpy(labels[part])) for part in cuts]


def _gradients(
    classifier: Classifier, parts_of: Callable[[int], list[Part]], parallel: Threads | None, step: int, times: int
) -> Tensor:
    """Add a batch's gradients and return its mean loss in nats.

    times: multiple of the usual number of parts to cut the batch into. step: number of the step, which seeds dropout.
    """
    parts = parts_of(times * (PARTS if parallel else 1))
    n = sum(len(inputs) for inputs, _ in parts)

    def loss_of(part: Part) -> Tensor:
        inputs, labels = part
        # Divide each sum by n instead of averaging per part, so that every mention has the same weight in parts of any
        # size.
        return cross_entropy(classifier(inputs), to_device(labels, classifier.device), reduction="sum") / n

    if parallel:
        return parallel.gradients(loss_of, parts, step)
    values = []
    for part in parts:
        value = loss_of(part)
        torch.autograd.backward(value)
        values.append(value.detach())
    return values[0] if len(values) == 1 else torch.stack(values).sum()
