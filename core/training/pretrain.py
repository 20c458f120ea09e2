"""Continued masked language modelling on transformers' Trainer (SPEC A1), with dev losses that show what is forgotten.

folder/head/checkpoint-80/   while a missing vocabulary head is fitted, the encoder frozen
       head.safetensors      the fitted head
       before.json           dev losses and pseudo-perplexity before the first step
       checkpoint-300/       a Trainer's checkpoint; its state is written last
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainingArguments

from core.errors import ResourceError
from core.files import write_atomic
from core.models.masking import Masking, Unit
from core.models.mlm import MaskedLM, begin_head, head_parameters, pseudo_perplexity
from core.reporter import Reporter, Silent
from core.training.events import EventCallback, last_checkpoint, listen
from core.training.examples import Examples
from core.training.steps import Draw, Micro, Steps, fixed, pieces_until

PIECES = {"cpu": 2048, "cuda": 32_768}  # of a micro-batch: what two cores turn over best, what fills a card
HEAD_STEPS, HEAD_RATE = 400, 1e-3  # at most one epoch; the head's own learning rate
FORGETTING = 1.10  # a general dev loss so many times the one before training is worth a warning (SPEC C17)
PROBES, PROBE_SECONDS = 64, 30.0  # sentences of the pseudo-perplexity, and the longest it may take
TASK, GENERAL = "dev_loss_task", "dev_loss_general"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How an encoder is pre-trained.

    batch_size: sentences an optimizer step, of all processes together. accumulation: into how many parts, at least,
    a step's batch is cut; the step stays the same. max_steps, max_pieces: instead of the epochs; 0: no.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    accumulation: int = 1
    clip: float = 1.0
    max_steps: int = 0
    max_pieces: int = 0
    mask_probability: float = 0.15
    mask_unit: Unit = "piece"
    seed: int = 1
    bf16: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Piles:
    """What is read. train: rows of T_C, S_C, ...; draw: which of them an epoch reads.

    task, general: held-out rows of T_C and of general text.
    """

    train: Examples
    draw: Draw
    task: Examples
    general: Examples


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What came of it. Losses in nats a masked piece, one an epoch; before: the same before the first step."""

    steps: int
    dev_loss: list[float]
    dev_loss_general: list[float]
    pseudo_perplexity: dict[str, float]
    before: Mapping[str, float]
    head_fitted: bool
    tokens_per_second: float = field(default=0.0)


class Pretraining(Trainer):  # type: ignore[misc]  # transformers is untyped here
    """A step is a list of micro-batches of nearly one length; together they weigh what one padded batch would."""

    def __init__(
        self, lm: MaskedLM, steps: Steps, piles: Piles | None, settings: Settings, events: EventCallback, folder: Path,
        *, rate: float, report: Reporter,
    ) -> None:  # fmt: skip
        self.lm, self.steps, self.piles, self.settings, self.report = lm, steps, piles, settings, report
        self.before: Mapping[str, float] = {}
        self.frozen = piles is None
        self.busy, self.seen, self.warned = 0.0, 0, False
        super().__init__(lm.model, _arguments(folder, settings, rate, lm.model.device), train_dataset=steps)
        self.add_callback(_EpochEnds(steps.an_epoch if piles else 0))
        listen(self, events)

    def get_train_dataloader(self) -> Any:
        return DataLoader(self.steps, batch_size=1, collate_fn=lambda items: items[0])

    def floating_point_ops(self, inputs: Any) -> int:
        return 0  # transformers would guess them from padded inputs

    def training_step(self, model: Any, inputs: Mapping[str, Any], num_items_in_batch: Any = None) -> torch.Tensor:
        """The mean loss over the masked positions of all processes; its gradients."""
        started = time.perf_counter()
        model.train(not self.frozen)  # a head is fitted to the encoder as it will be used
        state, world = self.state, self.steps.world
        torch.manual_seed(hash((self.settings.seed, state.global_step, self.steps.rank)) % 2**63)  # dropout's lots
        micros, total = inputs["micro"], torch.zeros((), device=self.args.device)
        for left, micro in zip(reversed(range(len(micros))), micros, strict=True):
            with self.accelerator.no_sync(model=model) if left else torch.enable_grad():
                loss = self._sum(micro, model) * (world / inputs["masked"])
                self.accelerator.backward(loss)
            total += loss.detach()
        state.num_input_tokens_seen += inputs["pieces"]
        self.seen += inputs["pieces"]
        self.busy += time.perf_counter() - started
        return total

    def _sum(self, micro: Micro, model: Any) -> Any:
        ids, attend, at, wanted = (None if part is None else part.to(self.args.device) for part in micro)
        with torch.autocast(self.args.device.type, torch.bfloat16, enabled=self.settings.bf16):
            return self.lm.loss(ids, attend, at, wanted, run=model)

    def evaluate(self, *given: Any, **kw: Any) -> dict[str, float]:
        """Dev losses on T_C and on general text, nats a masked piece. Each process takes its share."""
        assert self.piles
        losses = {name: self.dev_loss(rows) for name, rows in ((TASK, self.piles.task), (GENERAL, self.piles.general))}
        losses = {name: loss for name, loss in losses.items() if not np.isnan(loss)}
        if self.state.global_step:
            self.log(dict(losses))
            self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, losses)
            self._warn(losses)
        return losses

    def dev_loss(self, rows: Examples) -> float:
        """NaN where there is no row."""
        masking = Masking.of(self.lm.tokenizer, probability=0.15, seed=self.settings.seed + 1)
        self.lm.model.eval()
        sums = torch.zeros(2, dtype=torch.float64, device=self.args.device)
        with torch.inference_mode():
            for i, micro in enumerate(fixed(rows, masking, pieces=self.steps.pieces, pad=self.steps.pad)):
                self.callback_handler.on_prediction_step(self.args, self.state, self.control)
                if i % self.steps.world == self.steps.rank:
                    sums[0] += self._sum(micro, self.lm.model).double()
                    sums[1] += len(micro[2])
        if self.steps.world > 1:
            torch.distributed.all_reduce(sums)
        return float(sums[0] / sums[1]) if sums[1] else float("nan")

    def tokens_per_second(self) -> float:
        """Real pieces a second of this attempt, evaluations and checkpoints left out."""
        return self.seen / self.busy if self.busy else 0.0

    def _warn(self, losses: Mapping[str, float]) -> None:
        was, now = self.before.get(GENERAL), losses.get(GENERAL)
        if was and now and now > was * FORGETTING and not self.warned:
            self.warned = True
            self.report.note(
                f"The loss on general text rose from {was:.2f} to {now:.2f}: the encoder begins to forget what it knew;"
                " fewer epochs or a lower learning rate keep more of it."
            )

    def _save_rng_state(self, output_dir: str) -> None:
        """The Trainer's state, which says that a checkpoint is complete, is written after this by one process."""
        super()._save_rng_state(output_dir)
        if self.steps.world > 1:
            torch.distributed.barrier()


class _EpochEnds(TrainerCallback):  # type: ignore[misc]  # transformers is untyped here
    """A dev evaluation after each `an_epoch` steps and after the last; 0: never."""

    def __init__(self, an_epoch: int) -> None:
        self.an_epoch = an_epoch

    def on_step_end(self, args: Any, state: Any, control: Any, **kw: Any) -> None:
        last = state.global_step >= state.max_steps
        if self.an_epoch and (last or state.global_step % self.an_epoch == 0):
            control.should_evaluate = control.should_log = True


def pretrain(
    lm: MaskedLM, piles: Piles, settings: Settings, folder: Path, report: Reporter, saved: Any = None
) -> Outcome:
    """Train `lm` in place; a missing vocabulary head is fitted first.

    folder: of checkpoints; from the last one training goes on, to the same end as if undisturbed. saved: is told of
    each. With `torchrun`, every process calls this, and all but the first with a silent reporter.
    Errors: Cancelled, once a checkpoint holds what is learnt so far; ResourceError where memory runs out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        fitted = not lm.has_head
        if fitted:
            _fit_head(lm, piles, settings, folder, report, saved)
        return _pretrain(lm, piles, settings, folder, report, saved, fitted)
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error).lower():
            raise
        raise ResourceError(
            f"batch_size {settings.batch_size}: memory ran out; set accumulation to {2 * settings.accumulation}, which"
            " keeps the batch and takes it in smaller parts, or choose a smaller encoder."
        ) from error


def _pretrain(
    lm: MaskedLM, piles: Piles, settings: Settings, folder: Path, report: Reporter, saved: Any, fitted: bool
) -> Outcome:
    events = EventCallback(report, saved=saved)
    trainer = Pretraining(
        lm, _steps(lm, piles, settings), piles, settings, events, folder, rate=settings.learning_rate, report=report
    )
    probes = [piles.task.ids[piles.task.at(np.array([row]))] for row in range(min(PROBES, len(piles.task)))]
    before = trainer.before = _before(trainer, probes, folder, report)
    report.stage("pre-training")
    checkpoint = last_checkpoint(folder)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    events.stop_if_cancelled()
    report.stage("pseudo-perplexity after pre-training")
    after, _ = pseudo_perplexity(lm, probes[: int(before["probes"])], pieces=trainer.steps.pieces, report=report)
    report.metric("pseudo_perplexity", after, trainer.state.global_step)
    curve = {name: [log[name] for log in trainer.state.log_history if name in log] for name in (TASK, GENERAL)}
    return Outcome(
        steps=trainer.state.global_step, dev_loss=curve[TASK], dev_loss_general=curve[GENERAL],
        pseudo_perplexity={"before": before["pseudo_perplexity"], "after": after},
        before={name: before[name] for name in (TASK, GENERAL) if name in before}, head_fitted=fitted,
        tokens_per_second=trainer.tokens_per_second(),
    )  # fmt: skip


def _before(trainer: Pretraining, probes: list[Any], folder: Path, report: Reporter) -> dict[str, float]:
    """Dev losses and pseudo-perplexity before the first step; measured once, so that a resumed run can tell."""
    file = folder / "before.json"
    if not file.exists():
        report.stage("measuring before pre-training")
        found = trainer.evaluate()
        perplexity, asked = pseudo_perplexity(
            trainer.lm, probes, pieces=trainer.steps.pieces, report=report, seconds=PROBE_SECONDS
        )
        found |= {"pseudo_perplexity": perplexity, "probes": float(asked)}
        if trainer.steps.rank:
            return found
        write_atomic(file, json.dumps(found).encode())
        for name in (TASK, GENERAL, "pseudo_perplexity"):
            if name in found:
                report.metric(name, found[name], 0)
    before: dict[str, float] = json.loads(file.read_bytes())
    return before


def _fit_head(lm: MaskedLM, piles: Piles, settings: Settings, folder: Path, report: Reporter, saved: Any) -> None:
    """Fit a missing head while the encoder stands still, else the encoder would learn to please a random head.

    At most one epoch; from what `begin_head` gives (PERF: it matters as much as the selection).
    """
    file, head = folder / "head.safetensors", head_parameters(lm.model)
    if not file.exists():
        report.stage("fitting the vocabulary head")
        begin_head(lm, np.bincount(piles.train.ids, minlength=lm.model.config.vocab_size))
        steps = _steps(lm, piles, settings)
        steps.total = min(steps.an_epoch, HEAD_STEPS, steps.total)
        lm.model.base_model.requires_grad_(False)
        events = EventCallback(_Head(report), saved=saved)
        try:
            trainer = Pretraining(lm, steps, None, settings, events, folder / "head", rate=HEAD_RATE, report=report)
            checkpoint = last_checkpoint(folder / "head")
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
            events.stop_if_cancelled()
        finally:
            lm.model.base_model.requires_grad_(True)
        if steps.rank:
            return
        weights = {name: parameter.detach().cpu().contiguous() for name, parameter in head.items()}
        save_file(weights, folder / "head.tmp")
        (folder / "head.tmp").replace(file)
    with torch.no_grad():
        for name, weight in load_file(file).items():
            head[name].copy_(weight)


class _Head(Silent):
    """The head's own curve; what the main training shows is not mixed up with it."""

    def __init__(self, report: Reporter) -> None:
        self.progress, self.check, self._metric = report.progress, report.check, report.metric  # type: ignore[method-assign]

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        if name == "loss":
            self._metric("head_loss", value, step)


def _steps(lm: MaskedLM, piles: Piles, settings: Settings) -> Steps:
    world = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    masking = Masking.of(
        lm.tokenizer, probability=settings.mask_probability, unit=settings.mask_unit, seed=settings.seed
    )
    pieces = PIECES.get(lm.model.device.type, PIECES["cpu"]) // settings.accumulation
    steps = Steps(
        piles.train, masking, piles.draw, batch_size=settings.batch_size, pieces=pieces,
        pad=int(lm.tokenizer.pad_token_id or 0), total=settings.max_steps, world=world,
        rank=torch.distributed.get_rank() if world > 1 else 0,
    )  # fmt: skip
    if settings.max_pieces:
        steps.total = pieces_until(steps, settings.max_pieces)
    steps.total = steps.total or settings.epochs * steps.an_epoch
    return steps


def _arguments(folder: Path, settings: Settings, rate: float, device: torch.device) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(folder), seed=settings.seed, num_train_epochs=1, per_device_train_batch_size=1,
        learning_rate=rate, lr_scheduler_type="linear", warmup_steps=0, weight_decay=0.0,
        max_grad_norm=settings.clip, logging_strategy="no", save_strategy="no", save_total_limit=1, report_to=[],
        disable_tqdm=True, use_cpu=device.type == "cpu", dataloader_pin_memory=False, logging_nan_inf_filter=False,
        ddp_find_unused_parameters=False,
    )  # fmt: skip
