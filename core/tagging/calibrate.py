"""`calibrate`: how fast this machine trains and embeds with an encoder, on the data itself, in a few seconds.

A step over n pieces takes t = a + b n seconds (SOURCES.md, Cost): a small and a large batch tell a and b.
"""

import math
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Self

import numpy as np

from core.cards import machine
from core.config import Config, option
from core.corpora.corpus import Corpus
from core.kind import About, Job, Kind
from core.models.encoder_options import EncoderOptions
from core.models.networks import Network
from core.models.windows import LONGEST
from core.reporter import Reporter, Silent
from core.tagging.calibration import CalibrateResult
from core.tagging.network import Borrowed, new_recurrent
from core.text.sentence import Sentence
from core.training.on_device import on_device
from core.training.settings import TaggerSettings

if TYPE_CHECKING:
    import torch

    from core.models.encoder import Encoder
    from core.models.mlm import MaskedLM
    from core.models.tagger import Tagger
    from core.training.steps import Micro

SAMPLE = 512  # sentences of each corpus
MLM_SIZES, TAGGER_SIZES = (8, 64), (4, 32)  # sentences of a small and of a large step
SECONDS = 1.5  # of each measurement, begun steps not counted

Line = tuple[float, float]  # seconds a step, seconds a piece


class CalibrateConfig(Config):
    """Options of what to time."""

    encoder: str = option("minilm", "A Hugging Face name, a local folder, or minilm (bundled).")
    task: str = option(..., "Task corpus (T_C), which masked language modelling reads.", corpus=True)
    train: str = option(..., "Labelled data (L_C), which fine-tuning reads.", corpus=True)
    domain: str = option("", "Domain corpus (D_C), which is embedded.", corpus=True)
    allow_download: bool = option(False, "Fetch the encoder from the Hugging Face hub if it is not here yet.")

    network: Network = option("encoder", "What is timed as the tagger.")
    hidden: int | None = option(None, "bilstm, charcnn: LSTM units a direction.", ge=1)

    weights: str = option("", "Hash of the encoder.", hidden=True)
    machine: str = option("", "The device that is timed, so that another one is timed anew.", hidden=True)

    def settled(self) -> Self:
        """These options with the encoder's hash and the device. Errors: ModelError if the encoder is not here."""
        named = EncoderOptions(encoder=self.encoder, allow_download=self.allow_download).settled()
        return self.model_copy(update={"weights": named.weights, "machine": machine()})


def run(config: CalibrateConfig, job: Job) -> CalibrateResult:
    """Times a small and a large step of each way to train, and the embedding, on samples of the corpora."""
    from core.models.encoder import Encoder
    from core.models.mlm import MaskedLM

    busy = os.getloadavg()[0] > (os.cpu_count() or 1) + 1
    if busy:
        job.context.note("This machine is busy with other work, so what it is timed at is too slow.")
    names = {name: getattr(config, name) for name in ("task", "train", "domain")}
    samples = {name: _sample(job.corpus(reference)) for name, reference in names.items() if reference}
    with on_device(job):
        job.context.stage(f"loading {config.encoder}")
        started = time.perf_counter()
        lm = MaskedLM.load(config.encoder, allow_download=config.allow_download)
        load = time.perf_counter() - started
        job.context.stage("timing pre-training")
        mlm = _time_mlm(lm, samples["task"], job.context)
        job.context.stage("timing fine-tuning")
        tagger = _time_tagger(_new_tagger(config, samples["train"]), samples["train"], job.context)
        job.context.stage("timing the embedding")
        encoder = Encoder.load(config.encoder, allow_download=config.allow_download)
        embed = _time_embedding(encoder, samples.get("domain", samples["task"]), lm)
        memory_gb = _memory_gb(lm.model.device.type)
    return CalibrateResult(
        machine=config.machine,
        busy=busy,
        device=lm.model.device.type,
        mlm=mlm,
        tagger=tagger,
        embed=embed,
        load=load,
        has_head=lm.has_head,
        parameters=sum(parameter.numel() for parameter in lm.model.parameters()),
        dimension=lm.model.config.hidden_size,
        memory_gb=memory_gb,
        pieces={name: _pieces(lm, sample) / _tokens(sample) for name, sample in samples.items()},
    )


def _memory_gb(device: str) -> float:
    """The most that training has taken so far, of the GPU's memory or of the machine's, in GB (10^9 bytes)."""
    if device == "cuda":
        import torch

        return torch.cuda.max_memory_allocated() / 1e9
    # Linux counts KiB, macOS bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def _sample(corpus: Corpus) -> list[Sentence]:
    """Some sentences from all over a corpus."""
    rows = np.linspace(0, len(corpus) - 1, min(SAMPLE, len(corpus))).astype(np.int64)
    return [sentence for sentence in corpus.take(rows) if sentence.tokens]


def _tokens(sample: Sequence[Sentence]) -> int:
    return max(sum(len(sentence.tokens) for sentence in sample), 1)


def _pieces(lm: "MaskedLM", sample: Sequence[Sentence]) -> int:
    texts = [sentence.text for sentence in sample]
    return sum(len(ids) for ids in lm.tokenizer(texts, truncation=True, max_length=LONGEST)["input_ids"])


def _time_mlm(lm: "MaskedLM", sample: Sequence[Sentence], report: Reporter) -> Line:
    """Forward, backward and update, laid out as `training.pretrain` does: on a CPU a thread for each micro-batch."""
    import torch

    from core.models.masking import Masking
    from core.training.examples import STRETCH, tokenised
    from core.training.lighter import PARTS
    from core.training.pretrain import PIECES
    from core.training.steps import Steps
    from core.training.threads import Threads

    device, loss = lm.model.device, _mlm_loss(lm)
    texts = [sentence.text for sentence in sample]
    examples = tokenised([texts], lm.tokenizer, max_length=128, n=len(texts), report=Silent())
    masking = Masking.of(lm.tokenizer)
    optimizer = torch.optim.AdamW(lm.model.parameters(), lr=0.0, fused=True)  # as slow, and the model stays
    lm.model.train()
    stretch = STRETCH if device.type == "cpu" else math.inf
    layout = {"pieces": PIECES.get(device.type, PIECES["cpu"]), "pad": int(lm.tokenizer.pad_token_id or 0), "total": 0}

    def step(size: int, i: int) -> int:
        parts = PARTS if threads else 1
        rows = np.arange(len(examples))
        batch = Steps(examples, masking, lambda epoch: rows, batch_size=size, parts=parts, stretch=stretch, **layout)[i]
        if threads:
            threads.gradients(loss, batch["micro"], i)
        else:
            with _precision(device):  # around all of them: the weights are cast once
                for micro in batch["micro"]:
                    value = loss(micro)
                    with _precision(device, on=False):
                        value.backward()  # type: ignore[no-untyped-call]
            if device.type == "cuda":
                torch.cuda.synchronize(device)
        optimizer.step()
        optimizer.zero_grad()
        return int(batch["pieces"])

    with Threads(lm.model) if device.type == "cpu" else nullcontext() as threads:
        return _line(step, MLM_SIZES, report)


def _mlm_loss(lm: "MaskedLM") -> "Callable[[Micro], torch.Tensor]":
    """The loss of a micro-batch, in the precision that this device trains in."""
    from core.models.transfer import to_device

    device = lm.model.device

    def loss(micro: "Micro") -> "torch.Tensor":
        ids, attend, at, wanted = to_device(list(micro), device)
        with _precision(device):
            return lm.loss(ids, attend, at, wanted)

    return loss


def _precision(device: "torch.device", *, on: bool = True) -> "torch.autocast":
    import torch

    from core.models.devices import pick_dtype

    dtype = pick_dtype("auto", device)
    return torch.autocast(device.type, dtype, enabled=on and dtype != torch.float32)


def _new_tagger(config: CalibrateConfig, train: Sequence[Sentence]) -> "Tagger":
    from core.models.taggers import new_span_tagger, new_tagger

    # Without labels any type will do: only the time is asked for.
    types = sorted({entity.type for s in train for entity in s.entities or ()}) or ["X"]
    if config.network == "span":
        return new_span_tagger(config.encoder, types, allow_download=config.allow_download)
    if config.network == "encoder":
        return new_tagger(config.encoder, types, constrained=True, allow_download=config.allow_download)
    network = TaggerSettings(network=config.network, hidden=config.hidden)
    return new_recurrent(network, train, types, Borrowed(assisting=[]))


def _time_tagger(tagger: "Tagger", sample: Sequence[Sentence], report: Reporter) -> Line:
    import torch
    from accelerate.utils import send_to_device

    from core.training.lighter import PARTS
    from core.training.rows import in_parts
    from core.training.threads import Threads

    optimizer = torch.optim.AdamW(tagger.parameter_groups(0.0, 0.0), fused=True)
    order = np.random.default_rng(0).permutation(len(sample)).tolist()
    alone = tagger.device.type == "cpu" and hasattr(tagger, "model")  # as `training.finetune` has it
    tagger.train()

    def step(size: int, i: int) -> int:
        sentences = [sample[order[(i * size + k) % len(order)]] for k in range(size)]
        if threads:
            rows = in_parts([(sentence, 1.0, 0) for sentence in sentences], tagger, PARTS)
            parts = [tagger.batch([sentence for sentence, *_ in part]) for part in rows]
            threads.gradients(lambda part: tagger(**part)["loss"], parts, i)
        else:
            tagger(**send_to_device(tagger.batch(sentences), tagger.device))["loss"].backward()
            if tagger.device.type == "cuda":
                torch.cuda.synchronize(tagger.device)
        optimizer.step()
        optimizer.zero_grad()
        return sum(map(tagger.size, sentences))

    with Threads(tagger.model, tagger) if alone else nullcontext() as threads:
        return _line(step, TAGGER_SIZES, report)


def _time_embedding(encoder: "Encoder", sample: Sequence[Sentence], lm: "MaskedLM") -> Line:
    """A whole sample at once: batches are sorted by length, so their size is the encoder's own affair."""
    texts = [sentence.text for sentence in sample]
    # The first call warms up what all others find warm.
    encoder.encode(texts[:64], Silent())
    started = time.perf_counter()
    encoder.encode(texts, Silent())
    return 0.0, (time.perf_counter() - started) / max(_pieces(lm, sample), 1)


def _line(step: Callable[[int, int], int], sizes: Sequence[int], report: Reporter) -> Line:
    """a and b through a small and a large step, of each the fastest a piece, which other work disturbed least.

    step: (sentences, number) -> pieces; the first of each size only warms up.
    """
    points = []
    for size in sizes:
        step(size, 0)
        timings, end = [], time.perf_counter() + SECONDS
        for i in range(1, 9):
            report.check()
            started = time.perf_counter()
            pieces = step(size, i)
            timings.append((pieces, time.perf_counter() - started))
            if time.perf_counter() > end:
                break
        # The fastest: other work can only slow a step down.
        points.append(min(timings, key=lambda point: point[1] / max(point[0], 1)))
    (n, t), (m, u) = points
    # Other work may make the small step as slow as the large one: a piece never counts for less than a quarter of the
    # large step's pace, so b stays above 0.
    b = max((u - t) / max(m - n, 1.0), u / m / 4)
    return max(t - b * n, 0.0), b


def _outcome(result: CalibrateResult, _: About) -> str:
    pace = 1 / max(result.mlm[1], 1e-9)
    busy = ", while it was busy with other work" if result.busy else ""
    return f"{result.machine}: pre-training reads about {pace:,.0f} pieces a second{busy}"


KIND = Kind(
    "calibrate",
    CalibrateConfig,
    run,
    CalibrateResult,
    title=lambda run: f"Time this machine with {run.encoder(run.config['encoder'])}",
    outcome=_outcome,
    page="Training",
    command=None,
)
