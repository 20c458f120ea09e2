"""Taggers fine-tuned with transformers' Trainer: dev F1 after every epoch, the best epoch kept, or the last.

checkpoints/seed-1/checkpoint-120/   a Trainer's checkpoint, and best.safetensors: the best weights so far and
                                     what is known of the epochs so far; the Trainer's state is written last
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypedDict

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import Dataset
from transformers import TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import TrainOutput

from core.errors import Cancelled
from core.models.tagger import Features, Tagger, prediction_of
from core.reporter import Reporter, Silent
from core.results import Evaluation
from core.stats.scoring import evaluate
from core.text.sentence import Sentence
from core.training.arguments import arguments_of, optimizer_of
from core.training.epochs import Epochs, loss_of
from core.training.events import BEST, CHECKPOINT_SECONDS, Durable, EventCallback, Saved, last_checkpoint, listen
from core.training.memory import Smaller, memory_watched
from core.training.rows import Contrasted, Copies, OneCorpus, Row, Shuffled, in_parts, judges, laid_out, words_of
from core.training.settings import Settings
from core.training.threads import Threads


class Finetuning(Durable):
    """The loop of one seed. `epochs` and `best` (weights, on the CPU) are what it leaves behind."""

    def __init__(
        self,
        tagger: Tagger,
        train: OneCorpus,
        dev: Sequence[Sentence],
        settings: Settings,
        *,
        events: EventCallback,
        arguments: TrainingArguments,
        types: Sequence[str],
    ) -> None:
        super().__init__(
            model=tagger,
            args=arguments,
            train_dataset=train,
            # The Trainer evaluates only where it has something; `evaluate` reads dev itself.
            eval_dataset=[None],
            data_collator=self._collate,
            optimizers=(optimizer_of(tagger, settings), None),
        )
        self.tagger, self.dev, self.settings, self.types, self.events = tagger, dev, settings, types, events
        self.epochs, self.best = Epochs(), dict[str, Tensor]()
        self.threads: Threads | None = None
        work = f"tagger, {settings.batch_size} sentences"
        self._smaller = Smaller(tagger, work, tagger.device, events.report)
        # Threads are laid into a model of transformers; a recurrent network has none.
        alone = arguments.world_size == 1 and tagger.device.type == "cpu" and hasattr(tagger, "model")
        self._n_parts = settings.parts if alone else 1
        self._began = time.monotonic()
        listen(self, events)

    def _collate(self, examples: Sequence[Sequence[Row]]) -> Features:
        """`rows`, and `parts` of them; `labels`, one a word that the loss is divided by: the Trainer
        counts them over all parts of a step."""
        rows = [row for example in examples for row in example]
        return {"rows": rows, "parts": self._cut(rows, self._n_parts), "labels": torch.zeros(words_of(rows))}

    def _cut(self, rows: Sequence[Row], n: int) -> list[Features]:
        return [self.tagger.batch(*zip(*part, strict=True)) for part in in_parts(rows, self.tagger, n)]

    def train(self, *args: object, **kw: object) -> TrainOutput:
        if self._n_parts == 1:
            return super().train(*args, **kw)
        with Threads(self.tagger.model, self.tagger) as self.threads:
            return super().train(*args, **kw)

    def create_scheduler(self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None) -> LRScheduler:
        """A rate that depends on the epochs so far alone comes back the same after an interruption."""
        if self.settings.decay == 1:
            scheduler: LRScheduler = super().create_scheduler(num_training_steps, optimizer)
            return scheduler
        # The scheduler multiplies the first rate, hence the share of it.
        settings = self.settings
        share = lambda step: settings.rate(self.epochs.dev_f1, self.epochs.dev_loss) / settings.learning_rate
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer or self.optimizer, share)
        return self.lr_scheduler

    def _get_train_sampler(self, train_dataset: Dataset[list[Row]] | None = None) -> Shuffled:
        return Shuffled(self.train_dataset, self.args.seed)

    def training_step(
        self, model: torch.nn.Module, inputs: Features, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """The loss of a word of the optimizer step; its gradients."""
        parts, state = inputs["parts"], self.state
        if self.settings.in_turn and state.global_step % self._an_epoch == 0:
            self._roll_back()
        state.num_input_tokens_seen += sum(part["features"]["pieces"] for part in parts) * self.args.world_size

        def gradients(times: int) -> Tensor:
            cut = parts if times == 1 else self._cut(inputs["rows"], times * self._n_parts)
            if self.threads is None:
                step = super(Finetuning, self).training_step
                losses = [step(model, part, num_items_in_batch) for part in cut]
                return losses[0] if len(losses) == 1 else torch.stack(losses).sum()
            model.train()
            dropout_seed = int(torch.randint(2**63 - 1, ()))  # of the Trainer's generator: a checkpoint brings it back
            loss = lambda part: model(**part, num_items_in_batch=num_items_in_batch)["loss"]
            return self.threads.gradients(loss, cut, dropout_seed)

        # A batch of an accumulated step adds to the gradients of those before it: it cannot be begun anew.
        alone = self.args.gradient_accumulation_steps == self.args.world_size == 1
        return self._smaller.step(gradients, len(inputs["rows"]) if alone else 1)

    @property
    def _an_epoch(self) -> int:
        return -(-len(self.train_dataset) // self.settings.batch_size)

    def _roll_back(self) -> None:
        """Take the best weights up again after an epoch that was not the best. At the next epoch's begin, so that
        a training which is resumed there does it too."""
        if self.epochs.best < len(self.epochs.dev_f1):
            self.tagger.load_state_dict(self.best)

    def evaluate(self, *args: object, **kw: object) -> dict[str, float]:
        """Dev F1, strict; keeps the weights if it is the best. Nothing if somebody asks for an end."""
        try:
            table = score(self.tagger, self.dev, self.types, _Cancellable(self))
        except Cancelled:
            return {}  # the checkpoint that now follows stands before this evaluation, and so begins with it
        epochs = self.epochs
        metrics = {"dev_f1": table.f1(), **{f"dev_f1/{name}": f1 for name, f1 in table.by_type().items()}}
        epochs.dev_f1.append(table.f1())
        if self.settings.in_turn:
            epochs.dev_loss.append(loss_of(self.tagger, self.dev, self._prepare_inputs))
            metrics["dev_loss"] = epochs.dev_loss[-1]
        if epochs.keeps(self.settings):
            epochs.best = len(epochs.dev_f1)
            self.best = {name: tensor.detach().cpu().clone() for name, tensor in self.tagger.state_dict().items()}
        self.log(metrics)
        self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        if epochs.ended(self.settings):
            self.control.should_training_stop = True
        return metrics

    def _save_checkpoint(self, model: torch.nn.Module, trial: object) -> None:
        folder = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
        if self.best and self.args.should_save:
            # Before the Trainer's state, which is written last and says that a checkpoint is whole.
            folder.mkdir(parents=True, exist_ok=True)
            record = asdict(self.epochs) | {"seconds": self.seconds()}
            save_file(self.best, folder / BEST, metadata={"epochs": json.dumps(record)})
        super()._save_checkpoint(model, trial)

    def run_to_end(self, folder: Path, stopped: Callable[[Epochs], None] | None) -> Epochs:
        """Train all epochs that are wanted, from the last checkpoint in `folder` where there is one; see `finetune`.

        The tagger has the best epoch's weights then.
        """
        try:
            with memory_watched(self.settings.batch_size, self.settings.accumulation):
                if checkpoint := last_checkpoint(folder):
                    self.go_on_from(checkpoint)
                if not self.epochs.ended(self.settings):
                    self.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
                    self.events.stop_if_cancelled()
        except Cancelled:
            if self.best and stopped:
                self.tagger.load_state_dict(self.best)
                stopped(self.epochs)
            raise
        self.tagger.load_state_dict(self.best)
        self.epochs.seconds = self.seconds()
        return self.epochs

    def go_on_from(self, checkpoint: Path) -> None:
        """Take up what is known of the epochs, and evaluate the last one if it ended without that."""
        if (checkpoint / BEST).exists():
            with safe_open(checkpoint / BEST, framework="pt") as file:
                self.epochs = Epochs(**json.loads(file.metadata()["epochs"]))
                self.best = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        self.state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
        # A checkpoint that a stop brought about at an epoch's end was written before that epoch was judged.
        if self.state.global_step // self._an_epoch > len(self.epochs.dev_f1):
            self._load_from_checkpoint(str(checkpoint))
            self.evaluate()
            self.events.stop_if_cancelled()

    def seconds(self) -> float:
        """Seconds of training, over all attempts."""
        return self.epochs.seconds + time.monotonic() - self._began


class _Cancellable(Silent):
    """Raises Cancelled where a stop is asked for while dev is evaluated."""

    def __init__(self, trainer: Finetuning) -> None:
        self.trainer = trainer

    def check(self) -> None:
        trainer = self.trainer
        trainer.callback_handler.on_prediction_step(trainer.args, trainer.state, trainer.control)
        if trainer.events.cancelling:
            raise Cancelled("The evaluation was stopped on request.")


def score(tagger: Tagger, gold: Sequence[Sentence], types: Sequence[str], report: Reporter) -> Evaluation:
    """The tagger's evaluation on `gold`: strict, of the best tags as it decodes."""
    return evaluate(gold, [prediction_of(tags.best) for tags in tagger.tag(gold, report)], types)


class Options(TypedDict, total=False):
    """Options that `lpft` passes on to `finetune`, which says what they mean."""

    types: Sequence[str] | None
    weights: Sequence[float] | None
    assisting: Sequence[Sentence]
    assisting_weight: float
    copies: Copies | None
    saved: Saved | None
    checkpoint_seconds: float


def finetune(
    tagger: Tagger,
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    settings: Settings,
    *,
    seed: int,
    folder: Path,
    report: Reporter,
    types: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
    assisting: Sequence[Sentence] = (),
    assisting_weight: float = 1.0,
    copies: Copies | None = None,
    saved: Saved | None = None,
    stopped: Callable[[Epochs], None] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Epochs:
    """Train `tagger` and leave it with the weights of its best epoch on dev.

    types: those that dev may hold, default all of `train` and `dev`. weights: what each training sentence's loss
    counts for. assisting: sentences of another corpus to learn from too (`Joined`, `Alternating`), and what their loss
    counts for. copies: of training sentences (`Contrasted`). folder: of checkpoints; from the last one training goes
    on, to the same end as if undisturbed. saved: is called with every checkpoint. stopped: is called where `Cancelled`
    ends it and there is a best epoch. Errors: Cancelled, ResourceError where memory runs out.
    """
    rows = laid_out(train, weights, assisting, assisting_weight, settings)
    rows = Contrasted(rows, copies) if copies else rows
    settings = settings.planned(len(rows))
    events = EventCallback(report, suffix=f"@{seed}", saved=saved, checkpoint_seconds=checkpoint_seconds)
    trainer = Finetuning(
        tagger,
        rows,
        judges(dev, settings.dev_sentences),
        settings,
        events=events,
        arguments=arguments_of(folder, settings, seed, tagger.device),
        types=types or sorted({e.type for s in (*train, *dev) for e in s.entities or ()}),
    )
    return trainer.run_to_end(folder, stopped)
