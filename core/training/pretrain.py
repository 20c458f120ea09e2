"""Continued masked language modelling. A missing vocabulary head is fitted first, with the encoder frozen.

Each step consists of micro-batches. Dev losses are measured on held-out sentences of T_C and on general text.

folder/head/checkpoint-80/   from fitting a missing vocabulary head with the encoder frozen
       head.safetensors      the fitted head
       before.json           dev losses and pseudo-perplexity before the first step
       checkpoint-300/       a Trainer's checkpoint; its state is written last
       best.safetensors      weights of the best epoch so far, if `patience` is set
"""

import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
from accelerate import PartialState
from safetensors.torch import load_file, load_model, save_file, save_model
from torch.utils.data import DataLoader
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import TrainOutput

from core.files import read_json, sync, write_atomic
from core.models.devices import on_one_card, to_device
from core.models.layers import Lora
from core.models.mlm import MaskedLM, Masking, begin_head, head_parameters, pseudo_perplexity
from core.reporter import Reporter, Silent
from core.results import IntArray
from core.training.events import BEST, HEAD, Durable, EventCallback, Saved, last_checkpoint, listen
from core.training.memory import Smaller, checkpoint_layers, memory_watched
from core.training.mlm_settings import Settings
from core.training.steps import STRETCH, Draw, Examples, Micro, Step, Steps, fixed, pieces_until
from core.training.threads import Threads

FORGETTING = 1.10  # warn if the dev loss on general text is this many times the initial one (SOURCES.md, Forgetting)
TASK, GENERAL = "dev_loss_task", "dev_loss_general"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piles:
    """Training text and held-out text, as rows of pieces.

    train: rows of all training corpora. draw: function that returns the indices of an epoch's rows in `train`. task,
    general: held-out rows of T_C and of general text.
    """

    train: Examples
    draw: Draw
    task: Examples
    general: Examples


class Pretraining(Durable):
    """Trainer whose step consists of micro-batches. The sum of their gradients is the gradient of the whole batch."""

    def __init__(
        self,
        lm: MaskedLM,
        steps: Steps,
        settings: Settings,
        *,
        piles: Piles | None,
        events: EventCallback,
        folder: Path,
        rate: float,
        report: Reporter,
    ) -> None:
        self.lm, self.steps, self.piles, self.settings, self.report = lm, steps, piles, settings, report
        self.before: Mapping[str, float] = {}
        self.threads: Threads | None = None
        self.frozen = piles is None
        self.busy, self.seen, self.warned = 0.0, 0, False
        self._since: float | None = None  # time of the first step since the last pause
        longest = int(steps.examples.lengths.max(initial=0))
        work = f"mlm, {settings.batch_size} rows of at most {longest} pieces in {settings.accumulation} parts"
        self._smaller = Smaller(lm.model, work, lm.model.device, report)
        # Evaluation has its own number of parts, because it computes no gradients and so needs less memory. It is
        # silent, because the log needs no note about smaller batches.
        self.reading = Smaller(lm.model, f"mlm, reading {steps.pieces} pieces", lm.model.device, Silent())
        self.reading_most = steps.pieces if steps.world == 1 else 1
        super().__init__(lm.model, _arguments(folder, settings, rate, lm.model.device), train_dataset=steps)
        self.add_callback(_EpochEnds(steps.an_epoch if piles else 0))
        listen(self, events)

    def get_train_dataloader(self) -> DataLoader[Step]:
        # No sampler is needed, because a step depends only on its number.
        return DataLoader(self.steps, batch_size=1, collate_fn=lambda items: items[0])

    def train(self, *args: object, **kw: object) -> TrainOutput:
        if self.lm.model.device.type != "cpu" or self.steps.world > 1:
            return super().train(*args, **kw)
        with Threads(self.lm.model) as self.threads:
            return super().train(*args, **kw)

    def floating_point_ops(self, inputs: Step) -> int:
        return 0  # not used; transformers' own estimate would count padding

    def training_step(
        self, model: torch.nn.Module, inputs: Step, num_items_in_batch: torch.Tensor | int | None = None
    ) -> torch.Tensor:
        """Add the gradients of a step and return its mean loss over the masked positions of all processes."""
        self._since = self._since or time.perf_counter()
        model.train(not self.frozen)  # no dropout while a head is fitted to the frozen encoder
        state, world = self.state, self.steps.world
        seed = hash((self.settings.seed, state.global_step, self.steps.rank)) % 2**63
        scale = world / inputs["masked"]

        def gradients(times: int) -> torch.Tensor:
            torch.manual_seed(seed)  # a resumed training must draw the same dropout
            micros = inputs["micro"] if times == 1 else self.steps.cut(state.global_step, times)
            if self.threads:
                return self.threads.gradients(lambda micro: self._sum(micro, model) * scale, micros, seed)
            return self._in_turn(model, micros, scale)

        # One of several processes cannot repeat a step in more parts, because all others wait for its gradients.
        total = self._smaller.step(gradients, self.steps.batch_size if world == 1 else 1)
        state.num_input_tokens_seen += inputs["pieces"]
        self.seen += inputs["pieces"]
        return total

    def _in_turn(self, model: torch.nn.Module, micros: list[Micro], scale: float) -> torch.Tensor:
        """Run the micro-batches in sequence on a GPU or under torchrun; all-reduce the gradients after the last one."""
        total = torch.zeros((), device=self.args.device)
        with self._precision():  # one context for all micro-batches, so that the weights are cast once
            for left, micro in zip(reversed(range(len(micros))), micros, strict=True):
                with self.accelerator.no_sync(model=model) if left else nullcontext():
                    loss = self._sum(micro, model) * scale
                    with self._precision(on=False):  # off, so that each gradient has the dtype of its tensor
                        self.accelerator.backward(loss)
                total += loss.detach()
        return total

    def _precision(self, *, on: bool = True) -> torch.autocast:
        return torch.autocast(self.args.device.type, torch.bfloat16, enabled=on and self.settings.bf16)

    def _sum(self, micro: Micro, model: torch.nn.Module) -> torch.Tensor:
        ids, attend, positions, targets = to_device(list(micro), self.args.device)
        with self._precision():
            return self.lm.loss(ids, attend, positions, targets, run=model)

    def _pause(self) -> None:
        """Wait until the GPU has finished its work, then add the time of the steps since the last pause to `busy`."""
        if self._since is not None:
            if self.args.device.type == "cuda":
                torch.cuda.synchronize(self.args.device)
            self.busy += time.perf_counter() - self._since
        self._since = None

    def evaluate(self, *args: object, **kw: object) -> dict[str, float]:
        """Return dev losses on T_C and on general text, nats per masked piece. Each process computes its share."""
        assert self.piles
        self._pause()
        losses = {name: self.dev_loss(rows) for name, rows in ((TASK, self.piles.task), (GENERAL, self.piles.general))}
        losses = {name: loss for name, loss in losses.items() if not np.isnan(loss)}
        # Do not log the losses before the first step, because `curve` must have one loss per epoch.
        if self.state.global_step:
            self.log(dict(losses))
            self.callback_handler.on_evaluate(self.args, self.state, self.control, losses)
            self._warn(losses)
            self._wait()
        return losses

    def dev_loss(self, rows: Examples) -> float:
        """Return the mean loss over `rows`, with fixed masks, in nats per masked piece; NaN without rows."""
        # Always mask 15%, so that losses of different settings are comparable. Use another seed than the training.
        masking = Masking.of(self.lm.tokenizer, probability=0.15, seed=self.settings.seed + 1)
        self.lm.model.eval()

        def sums_of(times: int) -> torch.Tensor:
            sums = torch.zeros(2, dtype=torch.float64, device=self.args.device)
            for i, micro in enumerate(fixed(rows, masking, pieces=self.steps.pieces // times, pad=self.steps.pad)):
                self.callback_handler.on_prediction_step(self.args, self.state, self.control)
                if i % self.steps.world == self.steps.rank:
                    sums[0] += self._sum(micro, self.lm.model).double()
                    sums[1] += len(micro[2])
            return sums

        with torch.inference_mode():
            sums = self.reading.step(sums_of, self.reading_most)
        if self.steps.world > 1:
            torch.distributed.all_reduce(sums)
        return float(sums[0] / sums[1]) if sums[1] else float("nan")

    def tokens_per_second(self) -> float:
        """Return pieces per second since the last start or resume, without padding, evaluations and checkpoints."""
        self._pause()
        return self.seen / self.busy if self.busy else 0.0

    def _warn(self, losses: Mapping[str, float]) -> None:
        # Warn only about general text. On T_C, a rising loss means overfitting, which the option `patience` limits.
        was, now = self.before.get(GENERAL), losses.get(GENERAL)
        if was and now and now > was * FORGETTING and not self.warned:
            self.warned = True
            self.report.note(
                f"The loss on general text rose from {was:.2f} to {now:.2f}: the encoder gets worse on text outside of "
                "your task. Train fewer epochs or lower the learning rate."
            )

    @property
    def curve(self) -> list[float]:
        """Dev losses on T_C, one per epoch."""
        return [log[TASK] for log in self.state.log_history if TASK in log]

    def _wait(self) -> None:
        """If `patience` is set, store the weights of a new best epoch, or stop if patience has run out."""
        if not (self.settings.patience and self.curve):
            return
        # argmin returns the first minimum, so a tie does not replace the best epoch.
        if int(np.argmin(self.curve)) == len(self.curve) - 1 and not self.steps.rank:
            # Write to a draft first, so that the previous best weights stay complete if the process is killed.
            draft = Path(self.args.output_dir) / f".{BEST}"
            save_model(self.lm.model, str(draft))
            sync(draft)
            draft.replace(draft.with_name(BEST))
        if self._out_of_patience():
            self.control.should_training_stop = True

    def _out_of_patience(self) -> bool:
        """Return True if the last `patience` epochs were not better."""
        patience = self.settings.patience
        return bool(patience and self.curve) and len(self.curve) - 1 - int(np.argmin(self.curve)) >= patience

    def go_on(self, checkpoint: Path | None) -> None:
        """Train, from the checkpoint if given; do nothing if `patience` had already ended the training."""
        if checkpoint:
            self.state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
        if not self._out_of_patience():
            self.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)

    def take_best(self) -> None:
        """Load the best weights if `patience` is set; report if the last epoch was not the best."""
        if not self.curve or (best := int(np.argmin(self.curve)) + 1) == len(self.curve):
            return
        note = f"The loss on held-out sentences of the task corpus was lowest after epoch {best} of {len(self.curve)}"
        if not self.settings.patience:
            self.report.note(f"{note}, but the last epoch is kept. Set patience to keep the best one.")
            return
        self.report.note(f"{note}, which is kept.")
        if not self.steps.rank:
            load_model(self.lm.model, Path(self.args.output_dir) / BEST)

    def _save_checkpoint(self, model: torch.nn.Module, trial: object) -> None:
        self._pause()
        super()._save_checkpoint(model, trial)

    def _save_rng_state(self, output_dir: str) -> None:
        """Wait until every process has written its part of the checkpoint, before it is marked as complete."""
        super()._save_rng_state(output_dir)
        if self.steps.world > 1:
            torch.distributed.barrier()


class _EpochEnds(TrainerCallback):  # type: ignore[misc]  # transformers is untyped here
    """Evaluates on dev after every `an_epoch` steps and after the last step; never if `an_epoch` is 0."""

    def __init__(self, an_epoch: int) -> None:
        self.an_epoch = an_epoch

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kw: object) -> None:
        last = state.global_step >= state.max_steps
        if self.an_epoch and (last or state.global_step % self.an_epoch == 0):
            control.should_evaluate = control.should_log = True


def _arguments(folder: Path, settings: Settings, rate: float, device: torch.device) -> TrainingArguments:
    arguments = TrainingArguments(
        output_dir=str(folder),
        seed=settings.seed,
        # Each item of the data set is a whole step, so one pass over the data set is the whole training.
        num_train_epochs=1,
        per_device_train_batch_size=1,
        learning_rate=rate,
        lr_scheduler_type="linear",
        warmup_steps=0,
        weight_decay=0.0,
        max_grad_norm=settings.clip,
        logging_strategy="no",
        save_strategy="no",
        save_total_limit=1,
        report_to=[],
        disable_tqdm=True,
        use_cpu=device.type == "cpu",
        dataloader_pin_memory=False,
        logging_nan_inf_filter=False,
        ddp_find_unused_parameters=False,
    )
    return on_one_card(arguments)


# Pieces per micro-batch: 2,048 are fastest on two cores, and 32,768 fill a GPU.
PIECES = {"cpu": 2048, "cuda": 32_768}
# Maximum number of steps to fit a head (at most one epoch), and their learning rate.
HEAD_STEPS, HEAD_RATE = 400, 1e-3
# Number of sentences for the pseudo-perplexity, and its time limit in seconds.
PROBES, PROBE_SECONDS = 64, 30.0


@dataclass(slots=True, kw_only=True)
class Outcome:
    """Outcome of a pre-training.

    dev_loss, dev_loss_general: one loss per epoch, in nats per masked piece. before: dev losses before the first step.
    """

    steps: int
    dev_loss: list[float]
    dev_loss_general: list[float]
    pseudo_perplexity: dict[str, float]
    before: Mapping[str, float]
    head_fitted: bool
    tokens_per_second: float


def pretrain(
    lm: MaskedLM, piles: Piles, settings: Settings, *, folder: Path, report: Reporter, saved: Saved | None = None
) -> Outcome:
    """Train `lm` in place, and return the outcome. A missing vocabulary head is fitted first.

    folder: folder for the checkpoints; training resumes from the last one, with the same result as without
    interruption. saved: called with each checkpoint. Under `torchrun` every process calls this function, and all but
    the first pass a silent reporter. Errors: Cancelled, after a checkpoint was written; ResourceError if memory runs
    out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # The timeout is a day, because each process may have to wait for a GPU that another run holds.
        PartialState(cpu=lm.model.device.type == "cpu", timeout=timedelta(days=1))
    if settings.checkpointing:
        checkpoint_layers(lm.model, lm.model.name_or_path)
    with memory_watched(settings.batch_size, settings.accumulation):
        fitted = not lm.has_head
        if fitted:
            _fit_head(lm, piles, settings, folder=folder, report=report, saved=saved)
        return _pretrain(lm, piles, settings, folder=folder, report=report, saved=saved, fitted=fitted)


def _pretrain(
    lm: MaskedLM, piles: Piles, settings: Settings, *, folder: Path, report: Reporter, saved: Saved | None, fitted: bool
) -> Outcome:
    events = EventCallback(report, saved=saved)
    # Add LoRA only after the head was fitted, because the whole encoder had to be frozen until then.
    lora = Lora(lm.model, settings.lora, settings.seed) if settings.lora else None
    trainer = Pretraining(
        lm,
        _steps(lm, piles, settings),
        settings,
        piles=piles,
        events=events,
        folder=folder,
        rate=settings.learning_rate,
        report=report,
    )
    # Take the first sentences, so that they are the same before and after training, and after a resume.
    probes = [piles.task.ids[piles.task.at(np.array([row]))] for row in range(min(PROBES, len(piles.task)))]
    before = trainer.before = _before(trainer, probes, folder, report)
    report.stage("pre-training")
    trainer.go_on(last_checkpoint(folder))
    events.stop_if_cancelled()
    trainer.take_best()
    if lora:
        lora.merge()
    report.stage("pseudo-perplexity after pre-training")
    # Use the sentences that were measured before training, so that both means are comparable.
    after, _ = _perplexity(trainer, probes[: int(before["probes"])], report, math.inf)
    report.metric("pseudo_perplexity", after, trainer.state.global_step)
    curve = {name: [log[name] for log in trainer.state.log_history if name in log] for name in (TASK, GENERAL)}
    return Outcome(
        steps=trainer.state.global_step,
        dev_loss=curve[TASK],
        dev_loss_general=curve[GENERAL],
        pseudo_perplexity={"before": before["pseudo_perplexity"], "after": after},
        before={name: before[name] for name in (TASK, GENERAL) if name in before},
        head_fitted=fitted,
        tokens_per_second=trainer.tokens_per_second(),
    )


def _before(trainer: Pretraining, probes: Sequence[IntArray], folder: Path, report: Reporter) -> dict[str, float]:
    """Return dev losses and pseudo-perplexity before the first step; read them from before.json in a resumed run."""
    file = folder / "before.json"
    if not file.exists():
        report.stage("measuring before pre-training")
        measured = trainer.evaluate()
        perplexity, n_probes = _perplexity(trainer, probes, report, PROBE_SECONDS)
        measured |= {"pseudo_perplexity": perplexity, "probes": float(n_probes)}
        if trainer.steps.rank:
            return measured
        write_atomic(file, json.dumps(measured).encode())
        for name in (TASK, GENERAL, "pseudo_perplexity"):
            if name in measured:
                report.metric(name, measured[name], 0)
    before: dict[str, float] = read_json(file)
    return before


def _perplexity(
    trainer: Pretraining, probes: Sequence[IntArray], report: Reporter, seconds: float
) -> tuple[float, int]:
    """Return the result of `pseudo_perplexity` on `probes`, in batches as large as memory allows."""

    def asked(times: int) -> tuple[float, int]:
        pieces = trainer.steps.pieces // times
        return pseudo_perplexity(trainer.lm, probes, pieces=pieces, report=report, seconds=seconds)

    return trainer.reading.step(asked, trainer.reading_most)


def _fit_head(
    lm: MaskedLM, piles: Piles, settings: Settings, *, folder: Path, report: Reporter, saved: Saved | None
) -> None:
    """Fit a missing head while the encoder is frozen, because otherwise the encoder would adapt to a random head.

    The head is initialised by `begin_head` and trained for at most one epoch (SOURCES.md, Masked language modelling).
    """
    file, head = folder / HEAD, head_parameters(lm.model)
    if not file.exists():
        report.stage("fitting the vocabulary head")
        begin_head(lm, np.bincount(piles.train.ids, minlength=lm.model.config.vocab_size))
        steps = _steps(lm, piles, settings)
        steps.total = min(steps.an_epoch, HEAD_STEPS, steps.total)
        lm.model.base_model.requires_grad_(False)
        events = EventCallback(_Head(report), saved=saved)
        try:
            trainer = Pretraining(
                lm, steps, settings, piles=None, events=events, folder=folder / "head", rate=HEAD_RATE, report=report
            )
            trainer.go_on(last_checkpoint(folder / "head"))
            events.stop_if_cancelled()
        finally:
            lm.model.base_model.requires_grad_(True)
        if steps.rank:
            return
        weights = {name: parameter.detach().cpu().contiguous() for name, parameter in head.items()}
        save_file(weights, folder / "head.tmp")
        sync(folder / "head.tmp")
        (folder / "head.tmp").replace(file)
    with torch.no_grad():
        for name, weight in load_file(file).items():
            head[name].copy_(weight)


class _Head(Silent):
    """Reports the loss of the head as `head_loss`, so that it is not part of the curve of the main training."""

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
    # The purpose of accumulation is to save memory, so it also makes the micro-batches smaller.
    pieces = PIECES.get(lm.model.device.type, PIECES["cpu"]) // settings.accumulation
    steps = Steps(
        piles.train,
        masking,
        piles.draw,
        batch_size=settings.batch_size,
        pieces=pieces,
        pad=int(lm.tokenizer.pad_token_id or 0),
        # On a GPU, rows of any length may share a micro-batch, because another micro-batch takes longer than the
        # padding.
        stretch=STRETCH if lm.model.device.type == "cpu" else math.inf,
        total=settings.max_steps,
        world=world,
        parts=(settings.parts if lm.model.device.type == "cpu" and world == 1 else 1) * settings.accumulation,
        rank=torch.distributed.get_rank() if world > 1 else 0,
    )
    if settings.max_pieces:
        steps.total = pieces_until(steps, settings.max_pieces)
    steps.total = steps.total or settings.epochs * steps.an_epoch
    return steps
