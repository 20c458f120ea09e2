"""Train a tagger on another labelled corpus, and copy its weights to the tagger of L_C (SOURCES.md, Transfer).

The first tagger has an output layer for all types of the other corpus, so its encoder also learns from types that L_C
lacks. `PieceTagger.begin_from` then copies the encoder, and the output weights of the types that both corpora have. A
seed's folder has

first/               checkpoints of the first training; removed when this training has ended
first.safetensors    weights of the first tagger, whose presence shows that the first training has ended
"""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from core.files import write_atomic
from core.models.tagger import PieceTagger
from core.reporter import Reporter
from core.text.sentence import Sentence
from core.training.events import CHECKPOINT_SECONDS, Saved
from core.training.finetune import Epochs, StageReporter, finetune
from core.training.rows import Copies
from core.training.settings import Settings

FILE, CURVES = "first.safetensors", "first"  # CURVES: name of the stage's folder, and prefix of its metrics


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class First:
    """A tagger that was trained on another corpus. weights: state of the tagger, on the CPU. seconds: training time."""

    types: Sequence[str]
    weights: dict[str, Tensor]
    seconds: float


def train_first(
    made: Callable[[], tuple[PieceTagger, Callable[[], None]]],
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    settings: Settings,
    *,
    seed: int,
    folder: Path,
    report: Reporter,
    weights: Sequence[float] | None = None,
    copies: Copies | None = None,
    saved: Saved | None = None,
    stopped: Callable[[PieceTagger], None] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> First:
    """Return a tagger of another corpus: loaded from `folder` if it was trained before, else newly trained.

    made: function that returns a pair: a new tagger, and a function to call after the training
    (`tagging.network.save_memory`). dev: dev set of L_C; its F1 is only shown as a curve. settings: from
    `Settings.brief`. folder: the seed's folder.
    stopped: called with the tagger if the user cancels after at least one epoch. Other parameters: see `finetune`. If
    the training is interrupted, the next call continues it, with the same result. Errors: Cancelled, ResourceError.
    """
    if (done := folder / FILE).exists():
        return _read(done)
    tagger, merge = made()

    def keep(_: Epochs) -> None:
        merge()
        if stopped:
            stopped(tagger)

    epochs = finetune(
        tagger,
        train,
        dev,
        settings,
        seed=seed,
        folder=folder / CURVES,
        report=StageReporter(report, CURVES),
        types=sorted({entity.type for sentence in (*train, *dev) for entity in sentence.entities or ()}),
        weights=weights,
        copies=copies,
        saved=saved,
        stopped=keep,
        checkpoint_seconds=checkpoint_seconds,
    )
    merge()
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in tagger.state_dict().items()}
    about = {"types": json.dumps(tagger.types), "seconds": json.dumps(epochs.seconds)}
    write_atomic(done, save(state, metadata=about))
    shutil.rmtree(folder / CURVES, ignore_errors=True)
    return First(types=tagger.types, weights=state, seconds=epochs.seconds)


def _read(path: Path) -> First:
    with safe_open(path, framework="pt") as file:
        about = file.metadata()
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return First(types=json.loads(about["types"]), weights=weights, seconds=json.loads(about["seconds"]))
