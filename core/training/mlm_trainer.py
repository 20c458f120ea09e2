"""The Trainer of masked language modelling: steps of micro-batches, dev losses on held-out T_C and general text."""

import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_model, save_model
from torch.utils.data import DataLoader
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import TrainOutput

from core.files import sync
from core.models.devices import on_one_card
from core.models.masking import Masking
from core.models.mlm import MaskedLM
from core.models.transfer import to_device
from core.reporter import Reporter, Silent
from core.training.events import BEST, Durable, EventCallback, listen
from core.training.examples import Examples
from core.training.memory import Smaller
from core.training.mlm_settings import Settings
from core.training.steps import Draw, Micro, Step, Steps, fixed
from core.training.threads import Threads

# A general dev loss so many times the one before training is worth a warning (SOURCES.md, Forgetting).
FORGETTING = 1.10
TASK, GENERAL = "dev_loss_task", "dev_loss_general"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piles:
    """Rows to read. train: rows of T_C, S_C, ...; draw: which of them an epoch reads.

    task, general: held-out rows of T_C and of general text.
    """

    train: Examples
    draw: Draw
    task: Examples
    general: Examples


class Pretraining(Durable):
    """A step is a list of micro-batches of nearly one length; together they weigh what one padded batch would."""

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
        self._since: float | None = None  # begun steps without a break
        longest = int(steps.examples.lengths.max(initial=0))
        work = f"mlm, {settings.batch_size} rows of at most {longest} pieces in {settings.accumulation} parts"
        self._smaller = Smaller(lm.model, work, lm.model.device, report)
        # What is read without gradients is read in larger batches than a step is; that one of them was cut is no news.
        self.reading = Smaller(lm.model, f"mlm, reading {steps.pieces} pieces", lm.model.device, Silent())
        self.reading_most = steps.pieces if steps.world == 1 else 1
        super().__init__(lm.model, _arguments(folder, settings, rate, lm.model.device), train_dataset=steps)
        self.add_callback(_EpochEnds(steps.an_epoch if piles else 0))
        listen(self, events)

    def get_train_dataloader(self) -> DataLoader[Step]:
        # In their order, by no sampler: a step is drawn from its number alone.
        return DataLoader(self.steps, batch_size=1, collate_fn=lambda items: items[0])

    def train(self, *args: object, **kw: object) -> TrainOutput:
        if self.lm.model.device.type != "cpu" or self.steps.world > 1:
            return super().train(*args, **kw)
        with Threads(self.lm.model) as self.threads:
            return super().train(*args, **kw)

    def floating_point_ops(self, inputs: Step) -> int:
        return 0  # transformers would guess them from padded inputs

    def training_step(
        self, model: torch.nn.Module, inputs: Step, num_items_in_batch: torch.Tensor | int | None = None
    ) -> torch.Tensor:
        """The mean loss over the masked positions of all processes; its gradients."""
        self._since = self._since or time.perf_counter()
        model.train(not self.frozen)  # a head is fitted to the encoder as it will be used
        state, world = self.state, self.steps.world
        seed = hash((self.settings.seed, state.global_step, self.steps.rank)) % 2**63
        scale = world / inputs["masked"]

        def gradients(times: int) -> torch.Tensor:
            torch.manual_seed(seed)  # dropout draws the same in a resumed training
            micros = inputs["micro"] if times == 1 else self.steps.cut(state.global_step, times)
            if self.threads:
                return self.threads.gradients(lambda micro: self._sum(micro, model) * scale, micros, seed)
            return self._in_turn(model, micros, scale)

        # Of several processes one alone cannot begin a step anew: the others wait for its gradients.
        total = self._smaller.step(gradients, self.steps.batch_size if world == 1 else 1)
        state.num_input_tokens_seen += inputs["pieces"]
        self.seen += inputs["pieces"]
        return total

    def _in_turn(self, model: torch.nn.Module, micros: list[Micro], scale: float) -> torch.Tensor:
        """Take one after the other, on a GPU or as one of several processes: gradients are exchanged at the last."""
        total = torch.zeros((), device=self.args.device)
        with self._precision():  # around all of them: the weights are cast once
            for left, micro in zip(reversed(range(len(micros))), micros, strict=True):
                with self.accelerator.no_sync(model=model) if left else nullcontext():
                    loss = self._sum(micro, model) * scale
                    with self._precision(on=False):  # each gradient in the precision of what it is a gradient of
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
        """Count the steps until now as trained; a card must have done what it was given."""
        if self._since is not None:
            if self.args.device.type == "cuda":
                torch.cuda.synchronize(self.args.device)
            self.busy += time.perf_counter() - self._since
        self._since = None

    def evaluate(self, *args: object, **kw: object) -> dict[str, float]:
        """Dev losses on T_C and on general text, nats a masked piece. Each process takes its share."""
        assert self.piles
        self._pause()
        losses = {name: self.dev_loss(rows) for name, rows in ((TASK, self.piles.task), (GENERAL, self.piles.general))}
        losses = {name: loss for name, loss in losses.items() if not np.isnan(loss)}
        # Before the first step it is a reading, not a point of the curve that patience counts.
        if self.state.global_step:
            self.log(dict(losses))
            self.callback_handler.on_evaluate(self.args, self.state, self.control, losses)
            self._warn(losses)
            self._wait()
        return losses

    def dev_loss(self, rows: Examples) -> float:
        """Mean loss over `rows` in nats a masked piece, under fixed masks; NaN where there is no row."""
        # Always 15%, whatever is trained with, so that losses of two settings compare; other masks than training's.
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
        """Real pieces a second of this attempt, evaluations and checkpoints left out."""
        self._pause()
        return self.seen / self.busy if self.busy else 0.0

    def _warn(self, losses: Mapping[str, float]) -> None:
        # General text alone: on T_C a rising loss is overfitting, which `patience` sees to.
        was, now = self.before.get(GENERAL), losses.get(GENERAL)
        if was and now and now > was * FORGETTING and not self.warned:
            self.warned = True
            self.report.note(
                f"The loss on general text rose from {was:.2f} to {now:.2f}: the encoder begins to forget what it knew;"
                " fewer epochs or a lower learning rate keep more of it."
            )

    @property
    def curve(self) -> list[float]:
        """Dev losses on T_C, one an epoch."""
        return [log[TASK] for log in self.state.log_history if TASK in log]

    def _wait(self) -> None:
        """Keep the best epoch's weights; an end where patience is. An epoch done again after a kill is the same one."""
        if not (self.settings.patience and self.curve):
            return
        # argmin takes the first of equals: an epoch must be better, not as good, to be kept in its stead.
        if int(np.argmin(self.curve)) == len(self.curve) - 1 and not self.steps.rank:
            # A kill while weights are written must leave the last best ones whole.
            draft = Path(self.args.output_dir) / f".{BEST}"
            save_model(self.lm.model, str(draft))
            sync(draft)
            draft.replace(draft.with_name(BEST))
        if self._out_of_patience():
            self.control.should_training_stop = True

    def _out_of_patience(self) -> bool:
        """Whether no better epoch is waited for."""
        patience = self.settings.patience
        return bool(patience and self.curve) and len(self.curve) - 1 - int(np.argmin(self.curve)) >= patience

    def go_on(self, checkpoint: Path | None) -> None:
        """Train, from a checkpoint where there is one; not at all if it was written as patience ran out."""
        if checkpoint:
            self.state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
        if not self._out_of_patience():
            self.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)

    def take_best(self) -> None:
        """Leave the model with the weights that are to be kept, and say so where they are not the last ones."""
        if not self.curve or (best := int(np.argmin(self.curve)) + 1) == len(self.curve):
            return
        note = f"The loss on held-out sentences of the task corpus was lowest after epoch {best} of {len(self.curve)}"
        if not self.settings.patience:
            self.report.note(f"{note}; the last epoch is kept, and patience would keep the best one.")
            return
        self.report.note(f"{note}, which is kept.")
        if not self.steps.rank:
            load_model(self.lm.model, Path(self.args.output_dir) / BEST)

    def _save_checkpoint(self, model: torch.nn.Module, trial: object) -> None:
        self._pause()
        super()._save_checkpoint(model, trial)

    def _save_rng_state(self, output_dir: str) -> None:
        """The Trainer's state, which says that a checkpoint is complete, is written after this by one process."""
        super()._save_rng_state(output_dir)
        if self.steps.world > 1:
            torch.distributed.barrier()


class _EpochEnds(TrainerCallback):  # type: ignore[misc]  # transformers is untyped here
    """A dev evaluation after each `an_epoch` steps and after the last; 0: never."""

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
        # A row of the data set is a whole step, and the data set the whole training.
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
