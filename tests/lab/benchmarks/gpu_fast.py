"""Part 2 of bench_gpu, speed: compared with the GPU's matrix products and with other libraries."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForMaskedLM, BertConfig

from core.models import hub
from core.models.devices import pick_device, pick_dtype, release_memory
from core.models.encoder import Encoder
from core.models.mlm import MaskedLM
from core.models.taggers import new_tagger
from core.projects import runs
from core.projects.home import library
from tests.lab.benchmarks import bench_mlm
from tests.lab.benchmarks.gpu_correct import TYPES, Values
from tests.lab.benchmarks.gpu_scope import CARRIED, LEGAL, SPLITS, Scope, home, seconds, stand_in


def rates(scope: Scope) -> Values:
    """Return the TFLOP/s of a square matrix product with random numbers. `share` refers to them."""
    found = {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        a, b = (torch.randn(scope.side, scope.side, device=scope.device).to(dtype) for _ in range(2))
        seconds(lambda: a @ b, 3)  # noqa: B023  done here
        taken = seconds(lambda: [a @ b for _ in range(10)], 3)  # noqa: B023
        found[name] = 10 * 2 * scope.side**3 / taken / 1e12
    return found


def share(flops: float, scope: Scope) -> float:
    """Return FLOP/s as a share of the matrix products in the precision that `auto` selects."""
    dtype = pick_dtype("auto", pick_device())
    return flops / 1e12 / float(rates(scope)["bf16" if dtype == torch.bfloat16 else "fp32"])


def launches(scope: Scope) -> Values:
    """Measure what a GPU waits for if batches are small.

    These are microseconds of one operation on one number, and milliseconds of a plain training step of a BERT-base on
    64, 256, and 1,024 sequences of 24 pieces.
    """
    number = torch.zeros(1, device=scope.device)
    times = 200 * scope.steps
    values: dict[str, Any] = {"operation_us": 1e6 / times * seconds(lambda: [number.add_(1) for _ in range(times)], 2)}
    size = {"num_hidden_layers": 1} if scope.rehearsal else {}
    model = AutoModelForMaskedLM.from_config(BertConfig(**size)).to(scope.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def steps(n: int) -> None:
        for _ in range(n):
            with torch.autocast(ids.device.type, torch.bfloat16):
                loss = model(input_ids=ids, labels=ids).loss
            torch.autograd.backward(loss)
            optimizer.step()
            optimizer.zero_grad()

    for batch in (2,) if scope.rehearsal else (64, 256, 1024):
        ids = torch.randint(5, 30_000, (batch, 24), device=scope.device)
        steps(3)
        values[f"step_ms_{batch}"] = 100 * seconds(lambda: steps(10))
    return values


def shapes(scope: Scope) -> Values:
    """Return milliseconds of forward and backward on batches of new shapes, and of the same shapes again.

    Both are measured with the settings of runs, and with cuDNN's attention enabled, which is torch's default.
    """
    model = MaskedLM.load(scope.encoder, device=scope.device).model.train()
    values: dict[str, Any] = {}

    def each(rows: int) -> float:
        """Run twelve shapes, masked like a padded batch."""
        for width in range(20, 32):
            ids = torch.randint(5, model.config.vocab_size, (rows, width), device=scope.device)
            mask = torch.ones_like(ids)
            mask[:, -1] = 0
            with torch.autocast(ids.device.type, torch.bfloat16):
                loss = model(input_ids=ids, attention_mask=mask, labels=ids).loss
            torch.autograd.backward(loss)
        return float(loss.detach())

    each(4)  # loads the kernels
    try:
        for rows, name in enumerate(("runs", "cudnn"), 2 if scope.rehearsal else 40):
            torch.backends.cuda.enable_cudnn_sdp(name == "cudnn")
            for when in ("new", "again"):
                values[f"{name}_{when}_ms"] = 1000 / 12 * seconds(lambda: each(rows))  # noqa: B023  done here
    finally:
        torch.backends.cuda.enable_cudnn_sdp(scope.rehearsal)
    return values


def embedding(scope: Scope) -> Values:
    """Compare sentences per second with `SentenceTransformer.encode`, with the same weights and precision."""
    texts = scope.written[: scope.fast]
    ours = Encoder.load(scope.encoder)
    ours.encode(texts[:512])
    taken = seconds(lambda: ours.encode(texts))
    pieces = sum(map(len, ours.cut(texts).ids))
    layers = sum(p.numel() for name, p in ours.model.named_parameters() if "embeddings" not in name)
    values: dict[str, Any] = {
        "sentences": len(texts),
        "sentences_per_second": len(texts) / taken,
        "pieces_per_second": pieces / taken,
        "share": share(2.0 * layers * pieces / taken, scope),
        "cutting_alone": len(texts) / seconds(lambda: ours.cut(texts)),
    }
    few = texts[: max(len(texts) // 5, 1)]
    with tempfile.TemporaryDirectory() as folder:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            return {**values, "peer": "sentence-transformers is not installed"}
        ours.model.save_pretrained(folder)
        ours.tokenizer.save_pretrained(folder)
        peer = SentenceTransformer(folder, device=scope.device, local_files_only=True)
    peer = peer.to(ours.model.dtype)
    peer.max_seq_length = 128
    peer.encode(few[:512], batch_size=256, show_progress_bar=False)
    other = seconds(lambda: peer.encode(few, batch_size=256, show_progress_bar=False))
    return {**values, "peer": len(few) / other, "ratio": (len(texts) / taken) / (len(few) / other)}


def embed(scope: Scope) -> Values:
    """Time a whole `embed` run of a corpus: reading, tokenising, encoding, writing."""
    with home(scope, "embed"):
        path = scope.out / "fast.txt"
        path.write_text("\n".join(scope.written[: scope.fast]) + "\n", encoding="utf-8")
        corpus = runs.fingerprint_of(str(path))
        taken = seconds(lambda: runs.execute("embed", {"corpus": corpus, "encoder": scope.encoder}))
        n = len(library().find(corpus))
    return {"sentences": n, "seconds": taken, "sentences_per_second": n / taken}


def mlm(scope: Scope) -> Values:
    """Compare pre-training with a stock `Trainer`: real pieces per second and memory, in the device's own precision."""
    bf16 = pick_dtype("auto", pick_device()) == torch.bfloat16
    texts, values = scope.written[: 64 * 50], dict[str, Any]({"bf16": bf16})
    for name, work in (("stock", bench_mlm.stock), ("ours", bench_mlm.ours)):
        lm = _large(scope)
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(sys.stderr):  # a stock Trainer prints
            work(lm, texts, min(scope.steps, 10), bf16, Path(folder))
            release_memory()
            pieces, taken = work(lm, texts, scope.steps, bf16, Path(folder))
        values[name] = pieces / taken
        values[f"{name}_memory_gb"] = torch.cuda.max_memory_allocated() / 1e9 if not scope.rehearsal else None
        flops = bench_mlm.flops(lm.model)
    return {**values, "ratio": values["ours"] / values["stock"], "share": share(flops * values["ours"], scope)}


def _large(scope: Scope) -> MaskedLM:
    """Return a BERT-base with random weights and the encoder's vocabulary; in a rehearsal, the encoder."""
    if scope.rehearsal:
        return MaskedLM.load(scope.encoder)
    tokenizer = hub.load_tokenizer(scope.encoder)
    model = AutoModelForMaskedLM.from_config(BertConfig(vocab_size=len(tokenizer)))
    return MaskedLM(model.to(pick_device()), tokenizer, has_head=True)


def seed(scope: Scope) -> Values:
    """Time one seed of a tagger, with the preset `quick`, on the labelled corpus of part 3."""
    with home(scope, "seed"):
        corpora = {split: runs.fingerprint_of(str(scope.labelled[split])) for split in SPLITS}
        options = {**corpora, "test": (corpora["test"],), "init": scope.encoder, "seeds": (1,), **scope.finetune}
        result = runs.execute("finetune", options).result()
    return {"seconds": result["seconds"], "epochs": result["epochs"], "f1": result["test"]["micro_f1"]}


def tag(scope: Scope) -> Values:
    """Return the sentences per second that a tagger with 57 tags reads and decodes, with confidences."""
    sentences = scope.sentences(scope.fast)
    tagger = new_tagger(scope.encoder, TYPES, constrained=True)
    tagger.predict(sentences[:256])
    return {"sentences_per_second": len(sentences) / seconds(lambda: tagger.predict(sentences))}


def together(scope: Scope) -> Values:
    """Time small trainings on one device, each a process with its own home: one alone, and several at once.

    ratio: estimated time in sequence / time at once.
    """
    epochs = str(scope.finetune.get("epochs", 3))
    words = [sys.executable, "-m", "tests.lab.benchmarks.gpu_fast", scope.encoder, epochs]
    with tempfile.TemporaryDirectory() as folder:

        def begun(name: str) -> "subprocess.Popen[bytes]":
            environment = {**os.environ, "WINNOW_HOME": str(Path(folder) / name)}
            return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

        def ended(process: "subprocess.Popen[bytes]") -> None:
            _, words = process.communicate()
            if process.returncode:
                raise RuntimeError(words.decode(errors="replace")[-300:])

        def at_once() -> None:
            for process in [begun(f"at once {i}") for i in range(scope.together)]:
                ended(process)

        alone, shared = seconds(lambda: ended(begun("alone"))), seconds(at_once)
    ratio = scope.together * alone / shared
    return {"trainings": scope.together, "one alone": alone, "at once": shared, "ratio": ratio}


FIGURES: dict[str, Callable[[Scope], Mapping[str, Any]]] = {
    "fast rates": rates,
    "fast launches": launches,
    "fast shapes": shapes,
    "fast embedding": embedding,
    "fast mlm": mlm,
    "fast seed": seed,
    "fast tag": tag,
    "fast embed": embed,
    "fast together": together,
}


def one(encoder: str, epochs: int) -> None:
    """Run a small training, in its own process and home."""
    if carried := os.environ.get(CARRIED):
        stand_in(Path(carried))
    corpora = {split: runs.fingerprint_of(str(getattr(LEGAL, split))) for split in SPLITS}
    runs.execute("finetune", {**corpora, "test": (corpora["test"],), "init": encoder, "epochs": epochs, "seeds": (1,)})


if __name__ == "__main__":
    one(sys.argv[1], int(sys.argv[2]))
