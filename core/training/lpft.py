"""LPFT: the head alone under a frozen encoder, then all of the tagger (Kumar et al. 2022; Ma et al. 2023, 4.1 and A.4).

<folder>/head/          the checkpoints of stage 1
<folder>/head.safetensors   its best weights, which say that it is done
<folder>/whole/         the checkpoints of stage 2
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import torch
from safetensors import safe_open
from safetensors.torch import save

from core.files import write_atomic
from core.models.tagger import Tagger
from core.reporter import Reporter
from core.text.sentence import Sentence
from core.training.epochs import Epochs
from core.training.events import HEAD
from core.training.finetune import Options, finetune
from core.training.settings import Settings


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
    """Train as `finetune` does, twice with the same settings, each with an optimizer and a schedule of its own; stage 2
    begins from the best epoch of stage 1. Epochs: of stage 2, seconds of both. A stop in stage 1 keeps no tagger."""
    done = folder / HEAD
    if done.exists():
        seconds = _read(tagger, done)
    else:
        report.stage(f"training the head alone, seed {seed}")
        with frozen_encoder(tagger):
            first = finetune(
                tagger, train, dev, settings, seed=seed, folder=folder / "head", report=_Head(report), **options
            )
        seconds = first.seconds
        _write(tagger, done, seconds)
        report.stage(f"training all of it, seed {seed}")
    epochs = finetune(
        tagger, train, dev, settings, seed=seed, folder=folder / "whole", report=report, stopped=stopped, **options
    )
    return replace(epochs, seconds=epochs.seconds + seconds)


@contextmanager
def frozen_encoder(tagger: Tagger) -> Iterator[None]:
    """Nothing but the last layer, what the encoder's file lacked and the CRF learns within."""
    # Its first group is the encoder by contract; the rates do not matter here.
    encoder = tagger.parameter_groups(0.0, 0.0)[0]["params"]
    # Not by a rate of 0: AdamW's decay and the cost of gradients would remain.
    for parameter in encoder:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in encoder:
            parameter.requires_grad_(True)


class _Head:
    """Stage 1's curves beside those of stage 2: `loss@1` is reported as `head_loss@1`."""

    def __init__(self, report: Reporter) -> None:
        self.stage, self.progress, self.note, self.check = report.stage, report.progress, report.note, report.check
        self._report = report

    def metric(self, name: str, value: float, step: int | None = None) -> None:
        self._report.metric(f"head_{name}", value, step)


def _write(tagger: Tagger, path: Path, seconds: float) -> None:
    if torch.distributed.is_initialized() and torch.distributed.get_rank():
        return  # the first process writes what all of them hold
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in tagger.state_dict().items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, save(weights, metadata={"seconds": json.dumps(seconds)}))


def _read(tagger: Tagger, path: Path) -> float:
    with safe_open(path, framework="pt") as file:
        tagger.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
        metadata: Mapping[str, str] = file.metadata()
    return float(json.loads(metadata["seconds"]))
