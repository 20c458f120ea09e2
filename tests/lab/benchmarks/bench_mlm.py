"""Compare pre-training with a stock `Trainer` script on the same sentences, each in its own process.

usage: python -m tests.lab.benchmarks.bench_mlm [--sentences 640] [--steps 6] [--encoder minilm]

The stock script uses DataCollatorForLanguageModeling, batch 64, padded to the longest, in fp32 and bf16. bf16 is left
out on a processor without bf16 instructions, which would take an hour. This prints real pieces per second (padding not
counted), peak memory, and the share of the device's FLOP/s. Goals: 10x on a CPU with bf16 instructions, 5x without; 2x
on a GPU, above 45% of its bf16 peak for a BERT-base (--encoder bert-base, random weights).
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core.models import hub
from core.models.devices import pick_device, pick_dtype
from core.models.mlm import MaskedLM
from core.reporter import Silent
from core.training.events import EventCallback
from core.training.mlm_settings import Settings
from core.training.pretrain import Piles, Pretraining, _steps
from core.training.steps import tokenised
from tests.lab.benchmarks.bench_embedding import sentences

WAYS = ("stock fp32", "stock bf16", "ours fp32", "ours bf16")
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12}  # dense bf16 FLOP/s, from the makers' data sheets


def load(name: str) -> MaskedLM:
    if name != "bert-base":
        return MaskedLM.load(name)
    from transformers import AutoModelForMaskedLM, BertConfig

    model = AutoModelForMaskedLM.from_config(BertConfig()).to(pick_device())
    return MaskedLM(model, hub.load_tokenizer(hub.BUNDLED), has_head=True)


def ours(lm: MaskedLM, texts: list[str], steps: int, bf16: bool, folder: Path) -> tuple[float, float]:
    rows = tokenised([texts], lm.tokenizer, max_length=128, n=len(texts), report=Silent())
    piles = Piles(train=rows, draw=lambda epoch: np.arange(len(rows)), task=rows, general=rows)
    settings = Settings(epochs=1, batch_size=64, learning_rate=5e-5, max_steps=steps, bf16=bf16)
    plan = _steps(lm, piles, settings)
    trainer = Pretraining(
        lm, plan, settings, piles=None, events=EventCallback(Silent()), folder=folder, rate=5e-5, report=Silent()
    )
    trainer.frozen = False
    pieces = sum(plan[i]["pieces"] for i in range(steps))
    started = time.perf_counter()
    trainer.train()
    return pieces, time.perf_counter() - started


def stock(lm: MaskedLM, texts: list[str], steps: int, bf16: bool, folder: Path) -> tuple[float, float]:
    from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

    data = [{"input_ids": ids} for ids in lm.tokenizer(texts, truncation=True, max_length=128)["input_ids"]]
    arguments = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=64,
        max_steps=steps,
        learning_rate=5e-5,
        bf16=bf16,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=lm.model.device.type == "cpu",
        include_num_input_tokens_seen="non_padding",
    )
    trainer = Trainer(
        lm.model, arguments, train_dataset=data, data_collator=DataCollatorForLanguageModeling(lm.tokenizer)
    )
    started = time.perf_counter()
    trainer.train()
    return float(trainer.state.num_input_tokens_seen), time.perf_counter() - started


def flops(model: Any, share: float = 0.15) -> float:
    """Return FLOPs per real piece, forward and backward: 6 per weight. The head counts at masked positions only."""
    config = model.config
    layers = sum(p.numel() for n, p in model.base_model.named_parameters() if "embeddings" not in n)
    return float(6.0 * (layers + share * config.hidden_size * (config.vocab_size + config.hidden_size)))


def peak() -> float:
    """Return FLOP/s: of a GPU in bf16 from its data sheet (NaN if unknown), of a CPU measured in its own precision."""
    if torch.cuda.is_available():
        name = torch.cuda.get_device_name()
        return next((rate for card, rate in PEAKS.items() if card in name), float("nan"))
    a, b = torch.randn(2048, 384), torch.randn(384, 1536)
    dtype = pick_dtype("auto", pick_device())
    a, b = a.to(dtype), b.to(dtype)
    taken = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(10):
            a @ b
        taken.append(time.perf_counter() - started)
    return 10 * 2 * 2048 * 384 * 1536 / min(taken)


def one(way: str, options: argparse.Namespace) -> None:
    """Measure one way in this process, and print the result as JSON."""
    side, _, precision = way.partition(" ")
    lm = load(options.encoder)
    texts, work = sentences(options.sentences), {"ours": ours, "stock": stock}[side]
    with tempfile.TemporaryDirectory() as folder:
        work(lm, texts, 1, precision == "bf16", Path(folder))
        pieces, seconds = work(lm, texts, options.steps, precision == "bf16", Path(folder))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if torch.cuda.is_available():
        memory = torch.cuda.max_memory_allocated()
    print(json.dumps({"rate": pieces / seconds, "memory": memory / 1e9, "flops": flops(lm.model) * pieces / seconds}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=640)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--encoder", default=hub.BUNDLED)
    parser.add_argument("--way", choices=WAYS)
    options = parser.parse_args()
    if options.way:
        one(options.way, options)
        sys.exit()
    limit, base = peak(), None
    print(f"{options.encoder}, {pick_device()}, {torch.get_num_threads()} threads, limit {limit / 1e12:.2f} TFLOP/s")
    print("way          real pieces/s      x   peak GB   TFLOP/s  share of the limit")
    bf16 = pick_dtype("auto", pick_device()) == torch.bfloat16
    for way in (way for way in WAYS if bf16 or "bf16" not in way):
        words = [sys.executable, "-m", "tests.lab.benchmarks.bench_mlm", "--way", way, "--encoder", options.encoder]
        words += ["--sentences", str(options.sentences), "--steps", str(options.steps)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        base = base or found["rate"]
        print(
            f"{way:<12} {found['rate']:>13.0f} {found['rate'] / base:>6.1f} {found['memory']:>9.2f} "
            f"{found['flops'] / 1e12:>9.3f} {found['flops'] / limit:>8.0%}"
        )
