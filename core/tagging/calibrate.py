"""`calibrate`: time training and embedding with an encoder on this machine and the user's data, in a few seconds.

A training step over n word pieces takes t = a + b n seconds (SOURCES.md, Cost). Timing a small and a large batch gives
a and b.
"""

import math
import os
import resource
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from core.cards import machine
from core.config import Config, option
from core.corpora.corpus import Corpus
from core.kind import About, Job, Kind
from core.models.encoder import EncoderOptions
from core.models.networks import Network
from core.models.pieces import LONGEST
from core.reporter import Reporter, Silent
from core.runs import result
from core.runs.store import RunStore
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

# Number of sentences sampled from each corpus.
SAMPLE = 512
# Batch sizes of a small and a large training step, in sentences.
MLM_SIZES, TAGGER_SIZES = (8, 64), (4, 32)
# Time in seconds for all timed steps of one batch size; the last step may end later.
SECONDS = 1.5

Line = tuple[float, float]  # a and b of t = a + b n: seconds per step, and seconds per word piece


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateResult:
    """Result of a `calibrate` run.

    machine: name of the processor or GPU. busy: True if other programs were running. device: `cpu` or `cuda`. mlm,
    tagger, embed: seconds per step, and seconds per word piece, of pre-training, fine-tuning and embedding. load:
    seconds to load the encoder. has_head: True if the encoder has a vocabulary head. parameters: number of parameters,
    including the head. dimension: size of a hidden state. memory_gb: peak memory in 10^9 bytes. pieces: {role of a
    corpus, such as `train`: word pieces per token}.
    """

    machine: str
    busy: bool
    device: str
    mlm: tuple[float, float]
    tagger: tuple[float, float]
    embed: tuple[float, float]
    load: float
    has_head: bool
    parameters: int
    dimension: int
    memory_gb: float
    pieces: Mapping[str, float]


class CalibrateConfig(Config):
    """Options of `calibrate`: the encoder, the corpora, and the network to time."""

    encoder: str = option("minilm", "Encoder: a Hugging Face name, a local folder, or minilm (bundled).")
    task: str = option(..., "Task corpus (T_C), used to time masked language modelling.", corpus=True)
    train: str = option(..., "Labelled data (L_C), used to time fine-tuning.", corpus=True)
    domain: str = option("", "Domain corpus (D_C), used to time embedding.", corpus=True)
    allow_download: bool = option(False, "Download the encoder from the Hugging Face hub if it is not on this machine.")

    network: Network = option("encoder", "Network of the tagger to time.")
    hidden: int | None = option(None, "bilstm, charcnn: LSTM units per direction.", ge=1)

    weights: str = option("", "Hash of the encoder, so that changed weights are timed again.", hidden=True)
    machine: str = option("", "Name of the device, so that each device is timed separately.", hidden=True)

    def settled(self) -> Self:
        """Return the options with the encoder's hash and the device. Errors: ModelError if the encoder is missing."""
        named = EncoderOptions(encoder=self.encoder, allow_download=self.allow_download).settled()
        return self.model_copy(update={"weights": named.weights, "machine": machine()})


def run(config: CalibrateConfig, job: Job) -> CalibrateResult:
    """Time a small and a large step of pre-training and fine-tuning, and the embedding, on samples of the corpora."""
    from core.models.encoder import Encoder
    from core.models.mlm import MaskedLM

    busy = os.getloadavg()[0] > (os.cpu_count() or 1) + 1
    if busy:
        job.context.note("This machine is busy with other work, so the measured times may be too long.")
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
    """Return the peak memory of the GPU, or else of this process, in GB (10^9 bytes)."""
    if device == "cuda":
        import torch

        return torch.cuda.max_memory_allocated() / 1e9
    # Linux reports this value in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def _sample(corpus: Corpus) -> list[Sentence]:
    """Return up to `SAMPLE` sentences, evenly spread over a corpus."""
    rows = np.linspace(0, len(corpus) - 1, min(SAMPLE, len(corpus))).astype(np.int64)
    return [sentence for sentence in corpus.take(rows) if sentence.tokens]


def _tokens(sample: Sequence[Sentence]) -> int:
    return max(sum(len(sentence.tokens) for sentence in sample), 1)


def _pieces(lm: "MaskedLM", sample: Sequence[Sentence]) -> int:
    texts = [sentence.text for sentence in sample]
    return sum(len(ids) for ids in lm.tokenizer(texts, truncation=True, max_length=LONGEST)["input_ids"])


def _time_mlm(lm: "MaskedLM", sample: Sequence[Sentence], report: Reporter) -> Line:
    """Time MLM training steps (forward, backward, update), and return seconds per step and per word piece.

    On a CPU, each micro-batch has its own thread.
    """
    import torch

    from core.models.mlm import Masking
    from core.training.memory import PARTS
    from core.training.pretrain import PIECES
    from core.training.steps import STRETCH, Steps, tokenised
    from core.training.threads import Threads

    device, loss = lm.model.device, _mlm_loss(lm)
    texts = [sentence.text for sentence in sample]
    examples = tokenised([texts], lm.tokenizer, max_length=128, n=len(texts), report=Silent())
    masking = Masking.of(lm.tokenizer)
    # Steps with a learning rate of 0 take as long as others, but do not change the model.
    optimizer = torch.optim.AdamW(lm.model.parameters(), lr=0.0, fused=True)
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
            # Run all micro-batches in one autocast context, which casts the weights only once.
            with _precision(device):
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
    """Return a function that computes the loss of a micro-batch in the training precision of this device."""
    from core.models.devices import to_device

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

    # Without labels, use any type, because only the time matters.
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

    from core.training.memory import PARTS
    from core.training.rows import in_parts
    from core.training.threads import Threads

    optimizer = torch.optim.AdamW(tagger.parameter_groups(0.0, 0.0), fused=True)
    order = np.random.default_rng(0).permutation(len(sample)).tolist()
    # Use threads if `training.finetune` would use them: on a CPU, for a tagger with an encoder.
    alone = tagger.device.type == "cpu" and hasattr(tagger, "model")
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
    """Time the embedding of `sample`, and return seconds per step and per word piece.

    The encoder chooses its own batches. All time is therefore divided among the word pieces, and none among the steps.
    """
    texts = [sentence.text for sentence in sample]
    encoder.encode(texts[:64], Silent())  # Warm up, because the first call takes longer.
    started = time.perf_counter()
    encoder.encode(texts, Silent())
    return 0.0, (time.perf_counter() - started) / max(_pieces(lm, sample), 1)


def _line(step: Callable[[int, int], int], sizes: Sequence[int], report: Reporter) -> Line:
    """Return a and b of t = a + b n, fitted to the fastest small step and the fastest large step.

    step: function that runs one training step, given its number of sentences and its index, and returns its number of
    pieces. sizes: a small and a large number of sentences. The first step of each size is a warm-up.
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
        # Other programs can only slow a step down, so take the fastest step.
        points.append(min(timings, key=lambda point: point[1] / max(point[0], 1)))
    (n, t), (m, u) = points
    # Other programs may make the small step as slow as the large one. b is at least a quarter of the large step's
    # time per piece, so that b stays above 0.
    b = max((u - t) / max(m - n, 1.0), u / m / 4)
    return max(t - b * n, 0.0), b


def newest(store: RunStore, machine: str, texts: Collection[str] = (), **asked: object) -> CalibrateResult | None:
    """Return the newest `calibrate` result of a machine; None if there is none.

    texts: fingerprints of corpora; a result that was timed on more of these corpora is preferred to a newer result.
    asked: options that the `calibrate` run must have had.
    """
    runs = [
        run
        for run in store.list("calibrate", state="succeeded")
        if run.manifest.config["machine"] == machine
        and all(run.manifest.config.get(name) == value for name, value in asked.items())
    ]
    runs.sort(key=lambda run: -len({*texts} & {*run.manifest.inputs.values()}))
    return result.read(runs[0], CalibrateResult) if runs else None


def _outcome(result: CalibrateResult, _: About) -> str:
    pace = 1 / max(result.mlm[1], 1e-9)
    busy = ", while it was busy with other work" if result.busy else ""
    return f"{result.machine}: about {pace:,.0f} pieces per second in pre-training{busy}"


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
