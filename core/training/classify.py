"""Training of a sequence classifier, and its probabilities (SOURCES.md, PVI).

A loop of its own, not transformers' Trainer: a cross-validation is dozens of trainings of a minute, none of which is
kept or resumed in its middle, and what the Trainer does around a training would take longer than it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from core.errors import ResourceError, memory_ran_out
from core.models.classifier import Classifier
from core.models.devices import side_by_side
from core.models.encoder import BUDGET, length_groups
from core.models.memory import Halved
from core.models.pieces import Ids
from core.models.transfer import to_device
from core.reporter import Reporter
from core.results import FloatArray, IntArray
from core.training.classify_settings import ClassifySettings
from core.training.lighter import PARTS
from core.training.memory import Smaller
from core.training.threads import Threads

LOG_SECONDS = 1.5  # seconds
POOL = 8  # batches drawn together and cut by length: little padding, and still a mixture

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

    log: is called with the mean loss since its last call, in bits a mention, and the step, 1-based.
    Progress is in pieces.
    Errors: Cancelled, ResourceError where memory runs out.
    """
    torch.manual_seed(seed)
    classifier.encoder.get_input_embeddings().requires_grad_(not settings.keep_embeddings)
    optimizer, schedule = _optimizer(classifier, settings, settings.epochs * -(-len(inputs) // settings.batch_size))
    total, done, step = settings.epochs * sum(map(len, inputs)), 0, 0
    logged, losses = float("-inf"), list[Tensor]()  # read when they are told: a card is not waited for until then
    work = f"classifier, {settings.batch_size} mentions of at most {max(map(len, inputs), default=0)} pieces"
    smaller = Smaller(classifier, work, classifier.device, report)
    classifier.train()
    with ExitStack() as stack:
        parallel = stack.enter_context(Threads(classifier.encoder, classifier)) if _on_cpu(classifier) else None
        for rows in _batches([len(row) for row in inputs], settings, seed):
            report.check()
            gradients = partial(_gradients, classifier, partial(_parts, inputs, labels, rows), parallel, step)
            with _memory_watched(settings.batch_size):
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
    """`(n, k)` float64: log2 of every class's probability."""
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
    # Linear up, then linear down to 0; + 1, so that neither the first nor the last step is wasted at a rate of 0.
    share: Callable[[int], float] = lambda step: min((step + 1) / (warm + 1), (total - step) / (total - warm))
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def _batches(lengths: Sequence[int], settings: ClassifySettings, seed: int) -> Iterator[list[int]]:
    """Rows of each step, all epochs: drawn by seed and epoch alone, those of a batch of about one length."""
    size, pool = settings.batch_size, POOL * settings.batch_size
    for epoch in range(settings.epochs):
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(len(lengths)).tolist()
        # Sorted within a pool only, and the batches shuffled again: like lengths together, no long run of short ones.
        pools = [sorted(order[i : i + pool], key=lengths.__getitem__) for i in range(0, len(order), pool)]
        batches = [rows[i : i + size] for rows in pools for i in range(0, len(rows), size)]
        yield from (batches[i] for i in rng.permutation(len(batches)).tolist())


def _parts(inputs: Sequence[Ids], labels: IntArray, rows: Sequence[int], n: int) -> list[Part]:
    """A batch in at most `n` parts."""
    cuts = [part.tolist() for part in np.array_split(np.array(rows), min(n, len(rows)))]
    return [([inputs[row] for row in part], torch.from_numpy(labels[part])) for part in cuts]


def _gradients(
    classifier: Classifier, parts_of: Callable[[int], list[Part]], parallel: Threads | None, step: int, times: int
) -> Tensor:
    """The mean loss of a batch and its gradients, taken in `times` as many parts as usual."""
    parts = parts_of(times * (PARTS if parallel else 1))
    loss = partial(_loss, classifier, sum(len(inputs) for inputs, _ in parts))
    return parallel.gradients(loss, parts, step) if parallel else _backward(loss, parts)


def _loss(classifier: Classifier, n: int, part: Part) -> Tensor:
    """This part's share of the mean loss of `n` mentions, nats."""
    inputs, labels = part
    # A sum over n, not a mean of parts: parts differ in size, and every mention weighs the same.
    return cross_entropy(classifier(inputs), to_device(labels, classifier.device), reduction="sum") / n


def _backward(loss: Callable[[Part], Tensor], parts: Sequence[Part]) -> Tensor:
    values = []
    for part in parts:
        value = loss(part)
        torch.autograd.backward(value)
        values.append(value.detach())
    return values[0] if len(values) == 1 else torch.stack(values).sum()


def _on_cpu(classifier: Classifier) -> bool:
    return classifier.device.type == "cpu"


class _memory_watched:
    """Errors: ResourceError where memory runs out within."""

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error and memory_ran_out(error):
            raise ResourceError(
                f"batch_size {self.batch_size}: memory ran out; give a smaller one, or choose a smaller encoder."
            ) from error
