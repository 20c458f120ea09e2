"""What a tagger's Trainer is told, and its optimizer."""

from pathlib import Path

import torch
from transformers import TrainingArguments

from core.models.devices import on_one_card
from core.models.tagger import Tagger
from core.training.settings import Settings


def optimizer_of(tagger: Tagger, settings: Settings) -> torch.optim.Optimizer:
    rates = (settings.learning_rate, settings.head_learning_rate, settings.chain_learning_rate)
    groups = tagger.parameter_groups(*rates)
    # As Murthy et al. 2018, 3.2: plain SGD, whose rate falls with dev F1.
    if settings.decay < 1:
        return torch.optim.SGD(groups, weight_decay=settings.weight_decay)
    return torch.optim.AdamW(groups, betas=(0.9, 0.999), eps=1e-8, weight_decay=settings.weight_decay, fused=True)


def arguments_of(folder: Path, settings: Settings, seed: int, device: torch.device) -> TrainingArguments:
    world = max(1, torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1)
    arguments = TrainingArguments(
        output_dir=str(folder),
        seed=seed,
        data_seed=seed,
        num_train_epochs=settings.epochs,
        # Of all processes and parts together a batch; rounded up, where they do not divide it.
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
        # A loss that is no number must show in the curve, not be skipped.
        logging_nan_inf_filter=False,
    )
    return on_one_card(arguments)
