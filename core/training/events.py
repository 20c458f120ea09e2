"""Report a Trainer's logs as metrics of the run. If the user cancels, write a checkpoint and raise `Cancelled`.

Set the Trainer's `logging_strategy` and `save_strategy` to "no", because this module logs and saves by elapsed time.
`state.num_input_tokens_seen` must count pieces without padding: set the Trainer's `include_num_input_tokens_seen`, or
add the pieces in the training loop.
"""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_callback import PrinterCallback, ProgressCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from core import cards
from core.errors import Cancelled
from core.files import read_json, sync_all
from core.reporter import Checkpoint, Reporter
from core.runs.curves import MetricName

if TYPE_CHECKING:
    import torch

Saved = Callable[[Checkpoint], None]

LOG_SECONDS = 2.0  # seconds between two points of a curve; four metrics then give two events per second
CHECKPOINT_SECONDS = 60.0
# Weights of a head that was fitted first, while the encoder was frozen.
HEAD = "head.safetensors"
# Weights of the best epoch, stored beside or inside a checkpoint.
BEST = "best.safetensors"
# Several processes agree only every STRIDE steps whether to log, save or stop, because agreeing waits for the GPU.
STRIDE = 8
# These callbacks print to stdout, which is reserved for results.
_TALKATIVE = (PrinterCallback, ProgressCallback)
_NO_CURVES = ("_runtime", "_per_second", "_time")


class EventCallback(TrainerCallback):  # type: ignore[misc]  # transformers is untyped here
    """Reports a Trainer's metrics, and its progress in optimizer steps.

    The metrics are `loss`, `learning_rate`, `grad_norm` (before clipping), `tokens_per_second` and everything logged as
    `dev_...`; on a GPU also `gpu_memory_gb`, `gpu_used_gb` and `gpu_busy`. seed: appended to the name of every metric,
    as in `loss@1`. checkpoint_seconds: time between two checkpoints; inf: write a checkpoint only if the user cancels.
    saved: function that is called with every complete checkpoint, e.g. `RunContext.checkpoint`.

    If `report.check()` raises `Cancelled`, training stops after the current step, a checkpoint is written, and
    `Cancelled` is raised again. If several processes train, only the first process reports. All of them log, save and
    stop at the same steps.
    """

    def __init__(
        self,
        report: Reporter,
        *,
        seed: int | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        saved: Saved | None = None,
    ) -> None:
        self.report, self.seed, self.checkpoint_seconds, self.saved = report, seed, checkpoint_seconds, saved
        self._cancelled: Cancelled | None = None
        self._logged = self._saved = time.monotonic()
        self._from = (self._saved, 0)

    @property
    def cancelling(self) -> bool:
        """True if the training is about to stop early."""
        return self._cancelled is not None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kw: object
    ) -> None:
        self._saved = time.monotonic()
        self._logged = float("-inf")  # log the first step, so that every curve begins there
        self._count_from(state)
        if args.process_index == 0:
            self.report.progress(state.global_step, state.max_steps, "steps")

    def on_substep_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kw: object
    ) -> None:
        self._listen(args, control)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kw: object) -> None:
        now = time.monotonic()
        due = (now - self._logged >= LOG_SECONDS, now - self._saved >= self.checkpoint_seconds)
        agreed = args.world_size == 1 or state.global_step % STRIDE == 1
        # Between two agreements, no process may log, save or stop, because the others would not do the same.
        log, save = self._listen(args, control, *due) if agreed else (False, False)
        if log or state.global_step >= state.max_steps or self.cancelling:
            control.should_log = True
        if save:
            control.should_save = True
        if args.process_index == 0:
            self.report.progress(state.global_step, state.max_steps, "steps")

    def on_epoch_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kw: object) -> None:
        if self.cancelling:
            # Write the checkpoint without evaluating; the resumed training evaluates this epoch.
            control.should_evaluate = False
        control.should_log |= control.should_evaluate  # log the loss, because training may end with this epoch

    def on_prediction_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kw: object
    ) -> None:
        # Several processes must stop at the same step, so they finish the evaluation first, which is short.
        if args.world_size == 1:
            self._listen(args, control)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **kw: object,
    ) -> None:
        metrics = {name: value for name, value in (logs or {}).items() if _is_metric(name)}
        if "loss" in metrics:
            metrics |= self._speed(state) | _of_card(args.device)
        if args.process_index == 0:
            for name, value in metrics.items():
                self.report.metric(MetricName.of_seed(name, self.seed), value, state.global_step)

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kw: object) -> None:
        self._count_from(state)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kw: object) -> None:
        self._saved = time.monotonic()
        self._count_from(state)
        if self.saved and args.process_index == 0:
            self.saved({"name": f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}", "step": state.global_step})
        self.stop_if_cancelled()

    def stop_if_cancelled(self) -> None:
        """Raise Cancelled if the user stopped the training."""
        if self._cancelled:
            raise self._cancelled

    def _listen(self, args: TrainingArguments, control: TrainerControl, *wishes: bool) -> list[bool]:
        """Stop the training if the user cancelled, and return the first process's `wishes` in every process.

        wishes: for each action, such as log or save, True if this process is due to take it.
        """
        try:
            self.report.check()
        except Cancelled as cancelled:
            self._cancelled = cancelled
        stop, *agreed = _agree(args, [self.cancelling, *wishes])
        if stop:
            self._cancelled = self._cancelled or Cancelled("The training was stopped on request.")
            control.should_save = control.should_training_stop = True
        return agreed

    def _speed(self, state: TrainerState) -> dict[str, float]:
        """Return pieces per second since the last point of the curve, without padding, evaluations and checkpoints."""
        (then, pieces), now = self._from, time.monotonic()
        self._count_from(state)
        self._logged = now
        # Use only the pieces since the last point, because an average since the start would hide a recent slowdown.
        seen = state.num_input_tokens_seen - pieces
        return {"tokens_per_second": seen / (now - then)} if seen and now > then else {}

    def _count_from(self, state: TrainerState) -> None:
        self._from = (time.monotonic(), int(state.num_input_tokens_seen))


class Durable(Trainer):  # type: ignore[misc]  # transformers is untyped here
    """A Trainer whose checkpoints survive a power cut and a clock that is set back.

    With a plain Trainer, a power cut could truncate the files of a checkpoint. If the clock was set back, the newest
    checkpoint could be deleted because it looks like the oldest.
    """

    def _save_rng_state(self, output_dir: str) -> None:
        """Save the random states, and sync the checkpoint to disk before the Trainer marks it as complete.

        The Trainer then deletes the checkpoint with the oldest date. An earlier checkpoint with a date in the future
        therefore gets an old date.
        """
        super()._save_rng_state(output_dir)
        if self.args.should_save:
            sync_all(Path(output_dir))
            for other in Path(output_dir).parent.glob(f"{PREFIX_CHECKPOINT_DIR}-*"):
                if other != Path(output_dir) and other.stat().st_mtime > time.time():
                    os.utime(other, (0, 0))


def listen(trainer: Trainer, callback: EventCallback) -> None:
    """Attach `callback` to `trainer`, and remove the callbacks that print to stdout."""
    for talkative in _TALKATIVE:
        trainer.remove_callback(talkative)
    trainer.add_callback(callback)


def last_checkpoint(folder: Path) -> Path | None:
    """Return a Trainer's latest complete checkpoint in `folder`; None if there is none.

    A checkpoint is complete if its state, which is written last, is readable.
    """
    states = {
        int(path.parent.name.rpartition("-")[2]): path
        for path in folder.glob(f"{PREFIX_CHECKPOINT_DIR}-*/*.json")
        if path.name == TRAINER_STATE_NAME and _is_json(path)
    }
    return states[max(states)].parent if states else None


def _is_json(path: Path) -> bool:
    try:
        read_json(path)
    except ValueError:
        return False
    return True


def _is_metric(name: str) -> bool:
    return name in ("loss", "learning_rate", "grad_norm") or (name.startswith("dev_") and not name.endswith(_NO_CURVES))


def _agree(args: TrainingArguments, wishes: list[bool]) -> list[bool]:
    """Return the first process's `wishes` (see `_listen`) in every process, so that all processes act together."""
    if args.world_size == 1:
        return wishes
    import torch

    shared = torch.tensor(wishes, dtype=torch.uint8, device=args.device)
    torch.distributed.broadcast(shared, 0)
    return [bool(wish) for wish in shared.tolist()]


def _of_card(device: "torch.device") -> dict[str, float]:
    """Return metrics of the GPU; {} on a CPU.

    The metrics are this process's peak memory (GB), and the memory (GB) and utilisation (percent) of all programs, as
    the driver reports them.
    """
    import torch

    if device.type != "cuda":
        return {}
    metrics = {"gpu_memory_gb": torch.cuda.max_memory_allocated(device) / 1e9}
    card = next(iter(cards.visible()[device.index or 0 :]), None)
    if card and (load := cards.measured(card)):
        metrics["gpu_used_gb"] = (load.total - load.free) / 1e9
        if load.busy is not None:
            metrics["gpu_busy"] = float(load.busy)
    return metrics
