"""Part 1 of bench_gpu, correctness: each figure is compared with the CPU in fp32, or with enumeration.

`right` is true if a figure is within its bound. The bounds for bf16 allow for its 8 bits.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from signal import SIGKILL
from typing import Any

import numpy as np
import torch
import transformers
from scipy.stats import spearmanr
from torch import Tensor
from torchcrf import CRF

from core import cards
from core.experiment import view as experiments
from core.kind import register
from core.kinds import KINDS
from core.models.crf import LinearChain, bioes_tags
from core.models.devices import Precision, pick_device, release_memory, to_device
from core.models.encoder import Encoder
from core.models.mlm import MaskedLM, Masking
from core.models.taggers import new_tagger
from core.projects import removals, runs
from core.projects.home import store
from core.reporter import Silent
from core.results import FloatArray
from core.runs import Run, launch
from core.training.steps import fixed, tokenised
from tests.lab.benchmarks.gpu_scope import LEGAL, SPLITS, Scope, home

Values = Mapping[str, Any]
FEW: Mapping[str, object] = {"epochs": 3, "batch_size": 4, "seeds": (1,)}
TYPES = [f"t{i}" for i in range(14)]  # 57 tags, as CrossNER's domains have


def machine(scope: Scope) -> Values:
    """Describe the machine."""
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    if scope.rehearsal:
        return {"name": cards.processor(), **versions, "why no card": cards.hindrance()}
    there = torch.cuda.get_device_properties(0)
    card = next(iter(cards.installed()), None)
    return {
        "name": there.name,
        "memory_gb": round(there.total_memory / 1e9, 1),
        "driver": card and card.driver,
        "cuda": torch.version.cuda,
        **versions,
    }


def encoder(scope: Scope) -> Values:
    """Compare the vectors of the same sentences."""
    texts = scope.written[: scope.texts]
    usual, _ = Encoder.load(scope.encoder, device="cpu", precision="fp32").encode(texts)
    usual = usual.astype(np.float32)
    query, values = usual[:20].mean(0), dict[str, Any]()
    for precision in scope.precisions:
        there = Encoder.load(scope.encoder, device=scope.device, precision=precision)
        vectors, _ = there.encode(texts)
        cosine = _least_cosine(vectors, usual)
        rank = float(spearmanr(vectors.astype(np.float32) @ query, usual @ query).statistic)
        values[precision] = {"least_cosine": cosine, "rank_correlation": rank}
        del there
        release_memory()
    right = values["fp32"]["least_cosine"] > 0.999 and values["bf16"]["rank_correlation"] > 0.995
    return {**values, "sentences": len(texts), "right": right}


def _least_cosine(a: FloatArray, b: FloatArray) -> float:
    """Return the lowest cosine between two sets of vectors, row by row."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(((a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)).min())


def mlm(scope: Scope) -> Values:
    """Compare the loss and the gradient of a masked batch."""

    def of(device: str, precision: str) -> tuple[float, Tensor]:
        torch.manual_seed(0)
        lm = MaskedLM.load(scope.encoder, device=device)
        lm.model.eval()
        texts = scope.written[:32]
        rows = tokenised([texts], lm.tokenizer, max_length=64, n=len(texts), report=Silent())
        micros = list(fixed(rows, Masking.of(lm.tokenizer), pieces=2048, pad=int(lm.tokenizer.pad_token_id or 0)))
        there, total = pick_device(device), 0.0
        for micro in micros:
            ids, attend, at, targets = to_device(list(micro), there)
            with torch.autocast(there.type, torch.bfloat16, enabled=precision == "bf16"):
                loss = lm.loss(ids, attend, at, targets)
            torch.autograd.backward(loss)
            total += float(loss.detach())
        gradients = [p.grad.flatten().cpu() for p in lm.model.parameters() if p.grad is not None]
        return total, torch.cat(gradients)

    loss, gradient = of("cpu", "fp32")
    values: dict[str, Any] = {"loss": loss}
    for precision in scope.precisions:
        other, there = of(scope.device, precision)
        cosine = float(torch.nn.functional.cosine_similarity(gradient.double(), there.double(), dim=0))
        values[precision] = {"loss_off": abs(other - loss) / loss, "gradient_cosine": cosine}
    right = values["fp32"]["loss_off"] < 1e-4 and values["fp32"]["gradient_cosine"] > 0.9999
    return {**values, "right": right and values["bf16"]["loss_off"] < 0.01 and values["bf16"]["gradient_cosine"] > 0.98}


def crf(scope: Scope) -> Values:
    """Compare the CRF's loss and gradient with pytorch-crf in float64 on the CPU, and posteriors with all paths."""
    torch.manual_seed(0)
    tags, n = bioes_tags(TYPES), 60
    mask = torch.arange(n) < torch.tensor([[n], [37], [1], [22]])
    emissions, labels = 3 * torch.randn(4, n, len(tags)), torch.randint(len(tags), (4, n))
    chain, one = LinearChain(tags), torch.nn.init.normal_
    for weights in chain.parameters():
        one(weights)
    there = LinearChain(tags)
    there.load_state_dict(chain.state_dict())
    there.to(scope.device)
    chain.double()
    at, on = emissions.double().requires_grad_(), emissions.to(scope.device).requires_grad_()
    losses = -CRF.forward(chain, at, labels, mask, reduction="none")
    ours = there.loss(on, labels.to(scope.device), mask.to(scope.device))
    torch.autograd.backward([losses.sum(), ours.sum()])
    assert at.grad is not None
    assert on.grad is not None
    loss_off = float((ours.detach().cpu().double() / losses.detach() - 1).abs().max())
    gradient_off = float((on.grad.cpu().double() - at.grad).abs().max())
    same = bool((there.viterbi(on, mask.to(scope.device)).cpu() == chain.viterbi(at, mask)).logical_or(~mask).all())
    posterior_off = _enumerated(scope)
    right = loss_off < 1e-4 and gradient_off < 1e-4 and posterior_off < 1e-10 and same
    return {
        "loss_off": loss_off,
        "gradient_off": gradient_off,
        "same_paths": same,
        "posterior_off": posterior_off,
        "right": right,
    }


def _enumerated(scope: Scope) -> float:
    """Return the largest error of tag posteriors, compared with all tag sequences of a short sentence."""
    chain = LinearChain(bioes_tags(["A"]), constrained=True).double().to(scope.device)
    emissions = 3 * torch.randn(1, 5, 5, dtype=torch.float64)
    begin, follow, end = (part.detach().cpu() for part in chain._scores(True))
    paths = torch.tensor(list(itertools.product(range(5), repeat=5)))
    scores = begin[paths[:, 0]] + end[paths[:, -1]] + emissions[0, torch.arange(5), paths].sum(1)
    weights = (scores + follow[paths[:, :-1], paths[:, 1:]].sum(1)).softmax(0)
    off = 0.0
    for tag in range(5):
        asked = torch.full((1, 5), tag)
        first, last = chain.posteriors(*(x.to(scope.device) for x in (emissions, torch.ones(1, 5) > 0, asked)))
        exact = torch.stack([weights[paths[:, i] == tag].sum() for i in range(5)])
        off = max(off, float(((first + last).exp()[0].cpu() - exact).abs().max()))
    return off


def tagger(scope: Scope) -> Values:
    """Compare a tagger's tags and confidences."""
    sentences, values = scope.sentences(min(scope.texts, 500)), dict[str, Any]()

    def asked(device: str, precision: Precision) -> tuple[list[Any], Any]:
        torch.manual_seed(0)
        made = new_tagger(scope.encoder, TYPES, device="cpu", precision=precision, constrained=True)
        return made.to(device).tag(sentences), made.predict(sentences)

    tags, predictions = asked("cpu", "fp32")
    for precision in scope.precisions:
        other, sure = asked(scope.device, precision)
        words = [a == b for x, y in zip(tags, other, strict=True) for a, b in zip(x.best, y.best, strict=True)]
        pairs = [(x, y) for x, y in zip(predictions, sure, strict=True) if x.entities == y.entities]
        off = [abs(a - b) for x, y in pairs for a, b in zip(x.confidence, y.confidence, strict=True)]
        values[precision] = {"same_tags": float(np.mean(words)), "confidence_off": max(off, default=0.0)}
    right = values["fp32"]["same_tags"] > 0.999 and values["bf16"]["same_tags"] > 0.9
    return {**values, "right": right}


def killed(precision: Precision) -> Callable[[Scope], Values]:
    """Return a figure that kills a training after a checkpoint, resumes it, and compares it with an undisturbed one.

    The killed training runs in its own process; this process resumes it.
    """

    def figure(scope: Scope) -> Values:
        with home(scope, f"killed {precision}"):
            corpora = {split: runs.fingerprint_of(str(getattr(LEGAL, split))) for split in SPLITS}
            options = {**corpora, "test": (corpora["test"],), "init": scope.encoder, "precision": precision, **FEW}
            for run in runs.listed("finetune"):  # left by an attempt that was killed
                removals.remove_run(run.id)
            try:
                calm = _told(runs.execute("finetune", options))
                removals.remove_run(runs.listed("finetune")[0].id)
                run = _begun(options)
                _wait(lambda: any(event.kind == "checkpoint" for event in run.events()[0]) or not run.state().active)
                _kill(run)
                _wait(lambda: not run.state().active)
                interrupted = run.state().state
                again = _told(runs.execute("finetune", options))
            finally:
                for run in runs.listed("finetune"):
                    _kill(run)
        same = calm["weights"] == again["weights"]
        off = max(abs(a - b) for a, b in zip(calm["f1"], again["f1"], strict=True))
        return {
            "interrupted": interrupted == "interrupted",
            "attempts": run.state().attempts,
            "same_bytes": same,
            "f1": calm["f1"],
            "f1_off": off,
            # On a GPU, repeated trainings may differ in the last digits.
            "right": interrupted == "interrupted" and (same if scope.rehearsal else off < 2.0),
        }

    return figure


def repeated(scope: Scope) -> Values:
    """Train twice without and twice with torch's deterministic algorithms: are the bytes equal, and what is the cost?

    cuBLAS needs no setting, because with one stream it adds in one order.
    """
    values, switches = dict[str, Any](), vars(torch.utils)["deterministic"]
    before, switches.fill_uninitialized_memory = switches.fill_uninitialized_memory, False  # else it fills all memory
    try:
        for name, only in (("as it is", False), ("deterministic", True)):
            torch.use_deterministic_algorithms(only, warn_only=True)
            twice = [_trained(scope, f"repeated {name} {i}") for i in range(2)]
            seconds = min(sum(run.result()["seconds"]) for run in twice)
            values[name] = {"same_bytes": len({_told(run)["weights"] for run in twice}) == 1, "seconds": seconds}
    finally:
        torch.use_deterministic_algorithms(False)
        switches.fill_uninitialized_memory = before
    return {**values, "cost": values["deterministic"]["seconds"] / values["as it is"]["seconds"] - 1}


def _trained(scope: Scope, name: str) -> Run:
    with home(scope, name):
        corpora = {split: runs.fingerprint_of(str(getattr(LEGAL, split))) for split in SPLITS}
        options = {**corpora, "test": (corpora["test"],), "init": scope.encoder, **FEW, **scope.finetune}
        return runs.execute("finetune", options)


def _kill(run: Run) -> None:
    if worker := run.worker():
        worker.signal(SIGKILL)


def _begun(options: Mapping[str, object]) -> Run:
    recipe = KINDS["finetune"]
    run = register(recipe, recipe.config.parse(dict(options)), store())
    launch.start(run, module="tests.runs.training_worker")  # ten checkpoints per second
    return run


def _told(run: Run) -> dict[str, Any]:
    result = run.result()
    weights = (run.artifacts / "model" / "model.safetensors").read_bytes()
    return {"f1": [*result["dev"]["micro_f1"], *result["test"]["micro_f1"]], "weights": sha256(weights).hexdigest()}


def _wait(true: Callable[[], object]) -> None:
    while not true():
        time.sleep(0.02)


def memory(scope: Scope) -> Values:
    """Embed on a GPU without the memory for the usual batches: smaller batches must give the same vectors."""
    texts = [" ".join(scope.written[i : i + 8]) for i in range(min(scope.texts, 512))]
    model = Encoder.load(scope.encoder, device=scope.device, precision="fp32")
    release_memory()
    before = torch.cuda.memory_allocated() if torch.cuda.is_available() else 0
    usual, _ = model.encode(texts)
    with _little_memory(before):
        vectors, _ = model.encode(texts)
    cosine = _least_cosine(vectors, usual)
    parts = model._halved.parts
    return {"parts": parts, "least_cosine": cosine, "right": parts > 1 and cosine > 0.999}


@contextmanager
def _little_memory(before: int) -> Iterator[None]:
    """Limit a GPU to a third of the memory used beyond `before`; on a CPU, raise out of memory above eight rows."""
    if torch.cuda.is_available():
        peak, total = torch.cuda.max_memory_allocated(), torch.cuda.get_device_properties(0).total_memory
        release_memory()
        torch.cuda.set_per_process_memory_fraction((before + max(peak - before, 2**26) / 3) / total)
        try:
            yield
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        return
    vectors = Encoder._vectors

    def limited(self: Encoder, ids: list[list[int]], special: list[list[int]]) -> Tensor:
        if len(ids) > 8:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return vectors(self, ids, special)

    Encoder._vectors = limited  # type: ignore[method-assign]
    try:
        yield
    finally:
        Encoder._vectors = vectors  # type: ignore[method-assign]


def calibrate(scope: Scope) -> Values:
    """Return the results of `calibrate`, which failed on every GPU before it was fixed."""
    with home(scope, "demo"):
        run = runs.execute("calibrate", experiments.calibrations(_demo(scope))[0])
        result = experiments.calibrated(run.id)
    names = ("machine", "device", "mlm", "tagger", "embed", "memory_gb")
    return {**{name: getattr(result, name) for name in names}, "right": result.device == scope.device}


def demo(scope: Scope) -> Values:
    """Return the table and the hours of `python -m core demo`."""
    with home(scope, "demo"):
        result = runs.execute("experiment", _demo(scope)).result()
    rows = {row["arm"]: {name: row[name] for name in ("mean", "sd", "verdict")} for row in result["leaderboard"]}
    return {**rows, "hours": result["hours"], "right": scope.rehearsal or rows["none"]["mean"] > 70}


def _demo(scope: Scope) -> dict[str, object]:
    options = {**experiments.demo(), "encoder": scope.encoder}
    if scope.rehearsal:
        options |= {"seeds": scope.seeds, "pretrain": {"max_steps": 4}, "finetune": {"epochs": 1}, "budgets": ("100",)}
    return options


FIGURES: dict[str, Callable[[Scope], Values]] = {
    "machine": machine,
    "correct crf": crf,
    "correct encoder": encoder,
    "correct mlm": mlm,
    "correct tagger": tagger,
    "correct memory": memory,
    "correct calibrate": calibrate,
    "correct killed fp32": killed("fp32"),
    "correct killed bf16": killed("bf16"),
    "correct repeated": repeated,
    "correct demo": demo,
}
