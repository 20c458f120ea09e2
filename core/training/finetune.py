"""Fine-tune taggers with transformers' Trainer: measure dev F1 after every epoch, keep the best or the last epoch.

checkpoints/seed-1/checkpoint-120/   a Trainer's checkpoint, and best.safetensors: the best weights and the record of
                                     the epochs so far; the Trainer's state is written last

LPFT first trains only the head, with a frozen encoder, then the whole tagger (Kumar et al. 2022; Ma et al. 2023, 4.1
and A.4). Its folder has

head/               checkpoints of stage 1
head.safetensors    best weights of stage 1, whose presence shows that the stage is finished
whole/              checkpoints of stage 2
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypedDict, Unpack

import torch
from safetensors import safe_open
from safetensors.torch import save, save_file
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import Dataset
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import TrainOutput

from core.errors import Cancelled
from core.files import write_atomic
from core.models.devices import on_one_card
from core.models.name_features import NameFeatures
from core.models.tagger import Features, Tagger, prediction_of
from core.reporter import Reporter, Silent
from core.results import Evaluation
from core.runs.curves import MetricName
from core.stats.calibration import TEMPERATURES, best_temperature, confidences
from core.stats.scoring import evaluate
from core.text.sentence import Prediction, Sentence
from core.training.events import BEST, CHECKPOINT_SECONDS, HEAD, Durable, EventCallback, Saved, last_checkpoint, listen
from core.training.memory import Smaller, memory_watched
from core.training.rows import Contrasted, Copies, OneCorpus, Row, Shuffled, in_parts, judges, laid_out, words_of
from core.training.settings import Settings
from core.training.threads import Threads

BATCH = 64  # sentences per batch when dev loss is computed

# Maximum share of the training's time that is spent on evaluations within epochs.
WITHIN = 0.1
# Function of the number of epochs so far, the dev sentences and their predictions.
Watch = Callable[[float, Sequence[Sentence], Sequence[Prediction]], None]
# Maximum number of dev sentences used to fit a temperature or a scale. To fit one number, more are not needed.
MOST = 1000
# Factors by which `fit_names` tries to scale a dictionary's scores.
SCALES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


@dataclass(slots=True, kw_only=True)
class Epochs:
    """Record of the epochs so far.

    dev_f1: dev F1 of each epoch, percent. dev_loss: dev loss of each epoch if dev loss selects the best epoch, else
    empty. best: number of the kept epoch, from 1; 0 before the first. seconds: training time over all attempts.
    """

    dev_f1: list[float] = field(default_factory=list)
    dev_loss: list[float] = field(default_factory=list)
    best: int = 0
    seconds: float = 0.0

    def ended(self, settings: Settings) -> bool:
        """Return True if training ends after these epochs."""
        scores = self._scores
        waited = len(scores) - 1 - scores.index(max(scores)) if scores else 0
        return (
            len(self.dev_f1) >= settings.epochs
            or (waited >= settings.patience and len(self.dev_f1) >= settings.min_epochs)
            or settings.rate(self.dev_f1, self.dev_loss) < settings.least_rate
        )

    def keeps(self, settings: Settings) -> bool:
        """Return True if the latest epoch replaces the kept weights.

        With the setting `last`, every epoch is kept. Otherwise an epoch is kept if it is better than all earlier ones.
        After a tie the earlier epoch is kept, because it fits the training set less closely.
        """
        scores = self._scores
        return settings.last or len(scores) == 1 or scores[-1] > max(scores[:-1])

    @property
    def _scores(self) -> list[float]:
        return [-loss for loss in self.dev_loss] or self.dev_f1


class Finetuning(Durable):
    """Trains the tagger of one seed. Results: `epochs`, the record, and `best`, the kept weights on the CPU."""

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
        watch: Watch | None = None,
        dev_every: int = 0,
    ) -> None:
        super().__init__(
            model=tagger,
            args=arguments,
            train_dataset=train,
            # Any list that is not empty. With an empty list, the Trainer would not call `evaluate`, which uses
            # `self.dev`.
            eval_dataset=[None],
            data_collator=self._collate,
            optimizers=(optimizer_of(tagger, settings), None),
        )
        self.tagger, self.dev, self.settings, self.types, self.events = tagger, dev, settings, types, events
        self.watch, self.epochs, self.best = watch, Epochs(), dict[str, Tensor]()
        self.threads: Threads | None = None
        work = f"tagger, {settings.batch_size} sentences"
        self._smaller = Smaller(tagger, work, tagger.device, events.report)
        # `Threads` needs a model of transformers, so it cannot train a recurrent network.
        alone = arguments.world_size == 1 and tagger.device.type == "cpu" and hasattr(tagger, "model")
        self._n_parts = settings.parts if alone else 1
        self._began = time.monotonic()
        self._within = 0.0  # seconds spent on evaluations within epochs so far
        listen(self, events)
        if dev_every:
            self.add_callback(_WithinEpochs(self, dev_every))

    def _collate(self, examples: Sequence[Sequence[Row]]) -> Features:
        """Return the batch's `rows`, the same rows cut into `parts`, and `labels`.

        `labels` has one value per word. The Trainer counts these values in all batches of a step, and the loss is
        divided by this count.
        """
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
        """Return the learning rate schedule.

        With `decay`, the schedule computes the rate from the scores of the epochs so far, also after a resume.
        """
        if self.settings.decay == 1:
            scheduler: LRScheduler = super().create_scheduler(num_training_steps, optimizer)
            return scheduler
        # `LambdaLR` multiplies the initial rate by the result, so return the rate divided by the initial rate.
        settings = self.settings
        share = lambda step: settings.rate(self.epochs.dev_f1, self.epochs.dev_loss) / settings.learning_rate
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer or self.optimizer, share)
        return self.lr_scheduler

    def _get_train_sampler(self, train_dataset: Dataset[list[Row]] | None = None) -> Shuffled:
        return Shuffled(self.train_dataset, self.args.seed)

    def training_step(
        self, model: torch.nn.Module, inputs: Features, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Add the gradients of a batch. Return the batch's loss, divided by the words of the optimizer step."""
        parts, state = inputs["parts"], self.state
        if self.settings.in_turn and state.global_step % self.an_epoch == 0:
            self._roll_back()
        state.num_input_tokens_seen += sum(part["features"]["pieces"] for part in parts) * self.args.world_size

        def gradients(times: int) -> Tensor:
            cut = parts if times == 1 else self._cut(inputs["rows"], times * self._n_parts)
            if self.threads is None:
                step = super(Finetuning, self).training_step
                losses = [step(model, part, num_items_in_batch) for part in cut]
                return losses[0] if len(losses) == 1 else torch.stack(losses).sum()
            model.train()
            dropout_seed = int(torch.randint(2**63 - 1, ()))  # drawn from the generator that checkpoints restore
            loss = lambda part: model(**part, num_items_in_batch=num_items_in_batch)["loss"]
            return self.threads.gradients(loss, cut, dropout_seed)

        # With accumulation, a retry in smaller parts would delete the gradients of the step's earlier batches.
        alone = self.args.gradient_accumulation_steps == self.args.world_size == 1
        return self._smaller.step(gradients, len(inputs["rows"]) if alone else 1)

    @property
    def an_epoch(self) -> int:
        """Optimizer steps per epoch."""
        return -(-len(self.train_dataset) // self.settings.batch_size)

    def _roll_back(self) -> None:
        """Restore the best weights after an epoch that was not the best.

        This method is called at the start of the next epoch, so that a training that resumes there restores these
        weights too.
        """
        if self.epochs.best < len(self.epochs.dev_f1):
            self.tagger.load_state_dict(self.best)

    def evaluate(self, *args: object, **kw: object) -> dict[str, float]:
        """Return dev metrics of an epoch, and copy its weights if the epoch is kept; return {} if the user cancels."""
        try:
            found = _found(self.tagger, self.dev, _Cancellable(self))
        except Cancelled:
            return {}  # without a record of this epoch, a resumed training evaluates it again
        table, epochs = evaluate(self.dev, found, self.types), self.epochs
        metrics = _metrics("dev_f1", table)
        epochs.dev_f1.append(table.f1())
        if self.watch and self.args.should_save:
            self.watch(len(epochs.dev_f1), self.dev, found)
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

    def evaluate_within(self) -> None:
        """Report the dev F1 within an epoch, as `dev_f1_within`.

        The evaluation changes neither the weights nor the random number generators, so the training stays the same.
        Skip it if earlier calls have taken more than a share of the training's time; `WITHIN` is this share.
        """
        began = time.monotonic()
        if self.events.cancelling or self._within > WITHIN * (began - self._began):
            return
        try:
            found = _found(self.tagger, self.dev, _Cancellable(self))
        except Cancelled:
            return  # the Trainer writes a checkpoint and stops after this step
        if self.watch and self.args.should_save:
            self.watch(self.state.global_step / self.an_epoch, self.dev, found)
        metrics = _metrics("dev_f1_within", evaluate(self.dev, found, self.types))
        # Report the metrics directly, because the Trainer's own log would store them in every checkpoint.
        self.events.on_log(self.args, self.state, self.control, metrics)
        self.events.on_evaluate(self.args, self.state, self.control)
        self._within += time.monotonic() - began

    def _save_checkpoint(self, model: torch.nn.Module, trial: object) -> None:
        folder = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
        if self.best and self.args.should_save:
            # Write this file before the Trainer's state, because the state marks the checkpoint as complete.
            folder.mkdir(parents=True, exist_ok=True)
            record = asdict(self.epochs) | {"seconds": self.seconds()}
            save_file(self.best, folder / BEST, metadata={"epochs": json.dumps(record)})
        super()._save_checkpoint(model, trial)

    def run_to_end(self, folder: Path, stopped: Callable[[Epochs], None] | None) -> Epochs:
        """Train all epochs, starting from the last checkpoint in `folder` if there is one; see `finetune`.

        Afterwards the tagger has the weights of the kept epoch.
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
        """Restore the record of the epochs from a checkpoint. Evaluate the last epoch if the record lacks it."""
        if (checkpoint / BEST).exists():
            with safe_open(checkpoint / BEST, framework="pt") as file:
                self.epochs = Epochs(**json.loads(file.metadata()["epochs"]))
                self.best = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        self.state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
        # If the user cancelled at the end of an epoch, the checkpoint was written before that epoch was evaluated.
        if self.state.global_step // self.an_epoch > len(self.epochs.dev_f1):
            self._load_from_checkpoint(str(checkpoint))
            self.evaluate()
            self.events.stop_if_cancelled()

    def seconds(self) -> float:
        """Return the seconds of training over all attempts."""
        return self.epochs.seconds + time.monotonic() - self._began


class _WithinEpochs(TrainerCallback):  # type: ignore[misc]  # transformers is untyped here
    """Evaluates on dev after every `every` steps, except at the end of an epoch, when the Trainer does this itself."""

    def __init__(self, trainer: Finetuning, every: int) -> None:
        self.trainer, self.every = trainer, every

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kw: object) -> None:
        if state.global_step % self.every == 0 and state.global_step % self.trainer.an_epoch:
            self.trainer.evaluate_within()


class _Cancellable(Silent):
    """Reporter of an evaluation on dev. Its method `check` raises Cancelled if the user cancels."""

    def __init__(self, trainer: Finetuning) -> None:
        self.trainer = trainer

    def check(self) -> None:
        trainer = self.trainer
        trainer.callback_handler.on_prediction_step(trainer.args, trainer.state, trainer.control)
        if trainer.events.cancelling:
            raise Cancelled("The evaluation was stopped on request.")


def optimizer_of(tagger: Tagger, settings: Settings) -> torch.optim.Optimizer:
    """Return AdamW, or with `decay` plain SGD as in Murthy et al. 2018, 3.2."""
    rates = (settings.learning_rate, settings.head_learning_rate, settings.chain_learning_rate)
    groups = tagger.parameter_groups(*rates)
    if settings.decay < 1:
        return torch.optim.SGD(groups, weight_decay=settings.weight_decay)
    return torch.optim.AdamW(groups, betas=(0.9, 0.999), eps=1e-8, weight_decay=settings.weight_decay, fused=True)


def arguments_of(folder: Path, settings: Settings, seed: int, device: torch.device) -> TrainingArguments:
    """Return the Trainer's arguments. folder: folder for the checkpoints."""
    world = max(1, torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1)
    arguments = TrainingArguments(
        output_dir=str(folder),
        seed=seed,
        data_seed=seed,
        num_train_epochs=settings.epochs,
        # Sentences per process and part, rounded up.
        per_device_train_batch_size=-(-settings.batch_size // (settings.accumulation * world)),
        gradient_accumulation_steps=settings.accumulation,
        max_grad_norm=settings.clip,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=0,
        eval_strategy="epoch",
        logging_strategy="no",
        save_strategy="no",
        save_total_limit=1,
        remove_unused_columns=False,
        report_to=[],
        disable_tqdm=True,
        use_cpu=device.type == "cpu",
        dataloader_pin_memory=device.type == "cuda",
        accelerator_config={"non_blocking": device.type == "cuda"},
        # Do not hide a NaN loss from the curve.
        logging_nan_inf_filter=False,
    )
    return on_one_card(arguments)


def loss_of(tagger: Tagger, dev: Sequence[Sentence], moved: Callable[[Features], Features]) -> float:
    """Return the mean loss per dev word. moved: function that moves features to the tagger's device."""
    # Leave out sentences with types that the tagger does not know, because no tag would be right for them.
    known = [s for s in dev if s.tokens and {entity.type for entity in s.entities or ()} <= set(tagger.types)]
    total = words = 0.0
    tagger.eval()
    with torch.no_grad():
        for start in range(0, len(known), BATCH):
            part = known[start : start + BATCH]
            n = sum(len(sentence.tokens) for sentence in part)
            total += float(tagger(**moved(tagger.batch(part)))["loss"]) * n
            words += n
    return total / max(words, 1.0)


def score(tagger: Tagger, gold: Sequence[Sentence], types: Sequence[str], report: Reporter) -> Evaluation:
    """Return the strict evaluation of the tagger's best tags against `gold`."""
    return evaluate(gold, _found(tagger, gold, report), types)


def _metrics(name: str, table: Evaluation) -> dict[str, float]:
    """Return the F1 over all types and of each type, as {name of the metric: F1}."""
    return {name: table.f1()} | {str(MetricName(name, type)): f1 for type, f1 in table.by_type().items()}


def _found(tagger: Tagger, gold: Sequence[Sentence], report: Reporter) -> list[Prediction]:
    return [prediction_of(tags.best) for tags in tagger.tag(gold, report)]


def fit_temperature(tagger: Tagger, dev: Sequence[Sentence], report: Reporter) -> float:
    """Set the tagger's temperature to the value that calibrates its confidences best on dev, and return this value.

    The temperature does not change the entities.
    """
    gold = judges(dev, MOST)
    confidence, right = confidences(gold, tagger.predict_at(TEMPERATURES, gold, report))
    tagger.crf.temperature = best_temperature(confidence, right)
    return tagger.crf.temperature


def fit_names(tagger: Tagger, dev: Sequence[Sentence], types: Sequence[str], report: Reporter) -> float:
    """Scale the scores of the tagger's dictionary by the factor with the highest dev F1, and return this factor.

    A tagger trained on few sentences gives the dictionary too little weight, because it has memorised these sentences.
    Among factors with the same F1, the factor nearest to 1 is used. Return 1.0 if the tagger has no dictionary.
    """
    names = getattr(tagger, "names", None)
    if not isinstance(names, NameFeatures):
        return 1.0
    gold, learnt = judges(dev, MOST), names.scores.weight.detach().clone()
    f1 = {}
    for factor in SCALES:
        with torch.no_grad():
            names.scores.weight.copy_(factor * learnt)
        f1[factor] = score(tagger, gold, types, report).f1()
    best = max(SCALES, key=lambda factor: (f1[factor], -abs(factor - 1)))
    with torch.no_grad():
        names.scores.weight.copy_(best * learnt)
    return best


class Options(TypedDict, total=False):
    """Options that `lpft` passes to `finetune`."""

    types: Sequence[str] | None
    weights: Sequence[float] | None
    assisting: Sequence[Sentence]
    assisting_weight: float
    copies: Copies | None
    saved: Saved | None
    watch: Watch | None
    dev_every: int
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
    watch: Watch | None = None,
    dev_every: int = 0,
    stopped: Callable[[Epochs], None] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Epochs:
    """Train `tagger`, load the weights of the kept epoch into it, and return the record of its epochs.

    types: entity types to evaluate, by default all types of `train` and `dev`. weights: factor of each training
    sentence's loss. assisting: sentences of another corpus that the tagger is also trained on (`Joined`,
    `Alternating`). assisting_weight: factor of the assisting sentences' loss. copies: function that copies training
    sentences (`Contrasted`). folder: folder for the checkpoints; training resumes from the last one, with the same
    result as without interruption. saved: called with every checkpoint. watch: called after each evaluation with the
    number of epochs so far, the dev sentences and their predictions. dev_every: report dev F1 every this many steps
    within an epoch; 0: only after each epoch. stopped: called with the record of the epochs if the user cancels after
    at least one epoch. Errors: Cancelled, ResourceError if memory runs out.
    """
    rows = laid_out(train, weights, assisting, assisting_weight, settings)
    rows = Contrasted(rows, copies) if copies else rows
    settings = settings.planned(len(rows))
    events = EventCallback(report, seed=seed, saved=saved, checkpoint_seconds=checkpoint_seconds)
    trainer = Finetuning(
        tagger,
        rows,
        judges(dev, settings.dev_sentences),
        settings,
        events=events,
        arguments=arguments_of(folder, settings, seed, tagger.device),
        types=types or sorted({e.type for s in (*train, *dev) for e in s.entities or ()}),
        watch=watch,
        dev_every=dev_every,
    )
    return trainer.run_to_end(folder, stopped)


def lpft(
    tagger: Tagger,
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    settings: Settings,
    *,
    seed: int,
    folder: Path,
    report: Reporter,
    stopped: Callable[[Epochs], None] | None = None,
    **options: Unpack[Options],
) -> Epochs:
    """Train first the head with a frozen encoder, then all weights; return the epochs of the second stage.

    Both stages have the same settings, but each has its own optimizer and schedule. The second stage starts from the
    best epoch of the first. The returned `seconds` include both stages. If the user cancels in the first stage, no
    tagger is kept.
    """
    done = folder / HEAD
    if done.exists():
        seconds = _read_head(tagger, done)
    else:
        report.stage(f"training the head alone, seed {seed}")
        with frozen_encoder(tagger):
            first = finetune(
                tagger,
                train,
                dev,
                settings,
                seed=seed,
                folder=folder / "head",
                report=StageReporter(report, "head"),
                **options,
            )
        seconds = first.seconds
        _write_head(tagger, done, seconds)
        report.stage(f"training the whole tagger, seed {seed}")
    epochs = finetune(
        tagger, train, dev, settings, seed=seed, folder=folder / "whole", report=report, stopped=stopped, **options
    )
    return replace(epochs, seconds=epochs.seconds + seconds)


@contextmanager
def frozen_encoder(tagger: Tagger) -> Iterator[None]:
    """Freeze the encoder within this context. Only the last layer, other new layers and the CRF are trained."""
    # The first group is always the encoder. Learning rates of 0 will do, because only the parameters are used.
    encoder = tagger.parameter_groups(0.0, 0.0)[0]["params"]
    # A learning rate of 0 is not enough: AdamW would still decay the weights, and gradients would still be computed.
    for parameter in encoder:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in encoder:
            parameter.requires_grad_(True)


class StageReporter:
    """Prefixes the metrics of a stage with the name of the stage: `loss@1` of `head` becomes `head_loss@1`."""

    def __init__(self, report: Reporter, name: str) -> None:
        self.stage, self.progress, self.note, self.check = report.stage, report.progress, report.note, report.check
        self._report, self._name = report, name

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        self._report.metric(f"{self._name}_{name}", value, step)


def _write_head(tagger: Tagger, path: Path, seconds: float) -> None:
    if torch.distributed.is_initialized() and torch.distributed.get_rank():
        return  # all processes have the same weights, so only the first one writes them
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in tagger.state_dict().items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, save(weights, metadata={"seconds": json.dumps(seconds)}))


def _read_head(tagger: Tagger, path: Path) -> float:
    with safe_open(path, framework="pt") as file:
        tagger.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
        metadata: Mapping[str, str] = file.metadata()
    return float(json.loads(metadata["seconds"]))
