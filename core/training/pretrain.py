"""Continued masked language modelling: a missing vocabulary head first, then encoder and head together.

folder/head/checkpoint-80/   while a missing vocabulary head is fitted, the encoder frozen
       head.safetensors      the fitted head
       before.json           dev losses and pseudo-perplexity before the first step
       checkpoint-300/       a Trainer's checkpoint; its state is written last
       best.pt               the weights of the best epoch so far, where `patience` is given
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
from accelerate import PartialState
from safetensors.torch import load_file, save_file

from core.files import read_json, sync, write_atomic
from core.models.lora import Lora
from core.models.masking import Masking
from core.models.mlm import MaskedLM, begin_head, head_parameters, pseudo_perplexity
from core.reporter import Reporter, Silent
from core.results import IntArray
from core.training.events import HEAD, EventCallback, Saved, last_checkpoint
from core.training.examples import STRETCH
from core.training.lighter import checkpoint_layers
from core.training.memory import memory_watched
from core.training.mlm_settings import Settings
from core.training.mlm_trainer import GENERAL, TASK, Piles, Pretraining
from core.training.steps import Steps, pieces_until

PIECES = {"cpu": 2048, "cuda": 32_768}  # of a micro-batch: what two cores turn over best, what fills a card
HEAD_STEPS, HEAD_RATE = 400, 1e-3  # at most one epoch; the head's own learning rate
PROBES, PROBE_SECONDS = 64, 30.0  # sentences of the pseudo-perplexity, and the longest it may take


@dataclass(slots=True, kw_only=True)
class Outcome:
    """Outcome of a pre-training.

    Losses in nats a masked piece, one an epoch; before: the same before the first step.
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
    """Train `lm` in place; a missing vocabulary head is fitted first.

    folder: of checkpoints; from the last one training goes on, to the same end as if undisturbed. saved: is called
    with each. With `torchrun`, every process calls this, and all but the first with a silent reporter.
    Errors: Cancelled, once a checkpoint holds what is learnt so far; ResourceError where memory runs out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # The processes meet, each once it has its card, which another run may have until tomorrow.
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
    # Once the head is there: until then all of the encoder stands still anyway.
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
    # The first ones, no draw: before and after training, and after a resume, they must be the same.
    probes = [piles.task.ids[piles.task.at(np.array([row]))] for row in range(min(PROBES, len(piles.task)))]
    before = trainer.before = _before(trainer, probes, folder, report)
    report.stage("pre-training")
    trainer.go_on(last_checkpoint(folder))
    events.stop_if_cancelled()
    trainer.take_best()
    if lora:
        lora.merge()
    report.stage("pseudo-perplexity after pre-training")
    # As many as there was time for before training: a mean over others would be no comparison.
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
    """Dev losses and pseudo-perplexity before the first step; measured once, so that a resumed run can tell."""
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
    """`pseudo_perplexity`, in batches as large as the memory holds."""

    def asked(times: int) -> tuple[float, int]:
        pieces = trainer.steps.pieces // times
        return pseudo_perplexity(trainer.lm, probes, pieces=pieces, report=report, seconds=seconds)

    return trainer.reading.step(asked, trainer.reading_most)


def _fit_head(
    lm: MaskedLM, piles: Piles, settings: Settings, *, folder: Path, report: Reporter, saved: Saved | None
) -> None:
    """Fit a missing head while the encoder stands still, else the encoder would learn to please a random head.

    At most one epoch; from what `begin_head` gives (SOURCES.md, Masked language modelling).
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
    """Reports the head's own curve; what the main training shows is not mixed up with it."""

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
    # Accumulation is for memory, so it makes the micro-batches smaller too, not only more.
    pieces = PIECES.get(lm.model.device.type, PIECES["cpu"]) // settings.accumulation
    steps = Steps(
        piles.train,
        masking,
        piles.draw,
        batch_size=settings.batch_size,
        pieces=pieces,
        pad=int(lm.tokenizer.pad_token_id or 0),
        # A card waits longer for a second micro-batch to be begun than it takes for some padding.
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
