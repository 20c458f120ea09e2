"""Compare embedding with `SentenceTransformer.encode` in one run.

usage: python -m tests.lab.benchmarks.bench_embedding [--sentences 1000] [--rounds 3] [--encoder minilm]

Uses real English sentences (WINNOW_REAL_DATA or ../shared/data). Both sides alternate round by round on the same
sentences and threads. The ratio is the median over rounds of the ratio within a round, so that other work on the
machine affects both. The share is that of the measured rate of matrix products in the same precision: 2 FLOPs per weight
of the layers and piece, and 4 per number of a state and pair of pieces in a sentence. Goals: 5x with bf16 matrix units,
at rank correlation .9999; 60% of the rate.
"""

import argparse
import gzip
import os
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

from core.models import hub
from core.models.devices import pick_device, pick_dtype
from core.models.encoder import Encoder

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("WINNOW_REAL_DATA", ROOT.parent / "shared" / "data"))
CORPORA = ("pubmed", "wikipedia", "news")


def sentences(n: int) -> list[str]:
    """Return a seeded sample, with equally many sentences from each corpus."""
    found: list[str] = []
    for name in CORPORA:
        with gzip.open(DATA / "unlabeled" / f"{name}.txt.gz", "rt", encoding="utf-8") as file:
            found += random.Random(0).sample(file.read().splitlines(), -(-n // len(CORPORA)))
    random.Random(1).shuffle(found)
    return found[:n]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def embedding(name: str, texts: list[str], rounds: int) -> None:
    """Print sentences per second, share of the matrix rate, ratio, cosine and rank correlation of each way."""
    from sentence_transformers import SentenceTransformer

    rates = matrix_rates()

    ours = {"fp32": Encoder.load(name, precision="fp32")}
    peer = SentenceTransformer(str(hub.folder_of(name)), device=str(pick_device()), local_files_only=True)
    peer.max_seq_length = 128
    if pick_dtype("auto", pick_device()) == torch.bfloat16:
        ours["bf16"] = Encoder.load(name, precision="bf16")
    ways: dict[str, Callable[[], object]] = {"SentenceTransformer": lambda: peer.encode(texts, show_progress_bar=False)}
    ways |= {way: partial(encoder.encode, texts) for way, encoder in ours.items()}
    for encoder in ours.values():
        encoder.encode(texts[:64])
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, work in ways.items():
            times[way].append(seconds(work))
    truth = reference(peer, texts)
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    query = truth[:100].mean(0)
    print(f"{len(texts)} sentences, {torch.get_num_threads()} threads, {pick_device()}, {rounds} rounds")
    print(
        "way                  sentences/s      x  share  min cosine  rank correlation (query cosines; both against the peer's "
        "states, pooled alike)"
    )
    flops = work_of(ours["fp32"], texts)
    for way, taken in times.items():
        share = flops / statistics.median(taken) / rates[torch.bfloat16 if way == "bf16" else torch.float32]
        unit = truth if way not in ours else ours[way].encode(texts)[0].astype(np.float64)
        ratio = statistics.median(a / b for a, b in zip(times["SentenceTransformer"], taken, strict=True))
        near, rank = (unit * truth).sum(1).min(), spearmanr(unit @ query, truth @ query).statistic
        print(
            f"{way:<20} {len(texts) / statistics.median(taken):>10.0f} {ratio:>6.2f} {share:>6.0%} {near:>10.5f} {rank:>10.6f}"
        )


def reference(peer: Any, texts: list[str]) -> np.ndarray:
    """Return the peer's own fp32 states, pooled as ours: without [CLS] and [SEP], which the peer includes."""
    states = peer.encode(texts, output_value="token_embeddings", show_progress_bar=False)
    return np.array([state[1:-1].double().mean(0).cpu().numpy() for state in states])


def tokenising(name: str, texts: list[str]) -> None:
    encoder = Encoder.load(name)
    many = texts * (1 + 8000 // len(texts))
    taken = min(seconds(lambda: encoder.tokenizer(many, truncation=True, max_length=128)) for _ in range(3))
    print(f"tokenising alone: {len(many) / taken:.0f} sentences/s")


def products(a: torch.Tensor, b: torch.Tensor) -> None:
    for _ in range(10):
        a @ b


def work_of(encoder: Encoder, texts: list[str]) -> float:
    """Return the FLOPs of the layers for the real pieces of all texts; padding is not counted."""
    layers = sum(p.numel() for n, p in encoder.model.named_parameters() if n.startswith("encoder.layer"))
    config = encoder.model.config
    lengths = [len(ids) for ids in encoder.tokenizer(texts, truncation=True, max_length=128)["input_ids"]]
    pairs = sum(length**2 for length in lengths)
    return float(2.0 * layers * sum(lengths) + 4.0 * config.hidden_size * config.num_hidden_layers * pairs)


def matrix_rates() -> dict[torch.dtype, float]:
    """Print and return the FLOP/s of matrix products on the threads in use, the limit of every encoder."""
    rates = dict[torch.dtype, float]()
    for dtype in dict.fromkeys((torch.float32, pick_dtype("auto", pick_device()))):
        a, b = torch.randn(2048, 384).to(dtype), torch.randn(384, 1536).to(dtype)
        rates[dtype] = 10 * 2 * 2048 * 384 * 1536 / min(seconds(partial(products, a, b)) for _ in range(5))
    print("matrix products: " + ", ".join(f"{dtype} {rate / 1e9:.0f} GFLOP/s" for dtype, rate in rates.items()))
    return rates


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--encoder", default=hub.BUNDLED)
    options = parser.parse_args()
    sample = sentences(options.sentences)
    embedding(options.encoder, sample, options.rounds)
    tokenising(options.encoder, sample)
