"""Taggers of a sample project, shipped as differences from the bundled encoder: at most 3 MB instead of 90 MB.

runs/<run>/artifacts/small/    the folder of the run's model, with difference.safetensors in place of its weights

Training with LoRA adds the product of two small matrices to a matrix W of the encoder. Pre-training and fine-tuning
with LoRA add one product each. The sum of both products is again a product of two small matrices. Its rank r is at most
the sum of both ranks. The two matrices are stored as `W.left`, shape (out, r), and `W.right`, shape (r, in). Tensors
that the encoder lacks, such as the head, are stored whole.
"""

import shutil
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from core.errors import ModelError
from core.files import ARTIFACTS, sum_up
from core.models.hub import BUNDLED, BUNDLED_SHA256, WEIGHTS, folder_of
from core.training.saved_models import NAME

SMALL, DIFFERENCE = "small", "difference.safetensors"
_FACTORS = (".left", ".right")
_MOST = 32  # maximum rank of a difference

_CLOSE = 1e-5  # maximum error of a restored weight; only much larger errors would change predictions

Tensors = dict[str, np.ndarray]


def shrink(run: Path) -> None:
    """Write the folder `small` beside the model of a finished `finetune` run with LoRA on the bundled encoder.

    run: folder of the run. Errors: ModelError if the difference is not of low rank, as after a training without LoRA.
    """
    model, small = run / ARTIFACTS / NAME, run / ARTIFACTS / SMALL
    tensors, encoder = load_file(model / WEIGHTS), load_file(folder_of(BUNDLED) / WEIGHTS)
    kept: Tensors = {}
    for name, tensor in tensors.items():
        base = _base(name, encoder)
        if base is None:
            kept[name] = tensor
        elif not np.array_equal(base, tensor):
            kept |= zip((name + end for end in _FACTORS), _factors(name, tensor - base), strict=True)
    shutil.rmtree(small, ignore_errors=True)
    shutil.copytree(model, small, ignore=shutil.ignore_patterns(WEIGHTS))
    with safe_open(model / WEIGHTS, "numpy") as file:
        about = dict(file.metadata() or {})
    save_file(kept, small / DIFFERENCE, {**about, "encoder": BUNDLED_SHA256, "names": "\n".join(sorted(tensors))})


def restore(project: Path) -> None:
    """Restore the models of all runs in a project's folder that have a folder `small`, and remove these folders.

    Errors: ModelError if the bundled encoder is not installed, or if the difference was made with another encoder.
    """
    for difference in sorted(project.glob(f"runs/*/{ARTIFACTS}/{SMALL}/{DIFFERENCE}")):
        with safe_open(difference, "numpy") as file:
            about = dict(file.metadata() or {})
        names = about.pop("names").split("\n")
        if about.pop("encoder") != BUNDLED_SHA256:
            raise ModelError(
                f"{difference}: was made with another version of {BUNDLED}; use the Winnow that made this file."
            )
        kept, encoder = load_file(difference), load_file(folder_of(BUNDLED) / WEIGHTS)
        small = difference.parent
        save_file({name: _restored(name, kept, encoder) for name in names}, small / WEIGHTS, about)
        (small / WEIGHTS).chmod(0o600)
        difference.unlink()
        small.rename(small.with_name(NAME))
        sum_up(small.parent.parent)


def _base(name: str, encoder: Tensors) -> np.ndarray | None:
    """Return the encoder's tensor that corresponds to a tensor of the tagger; None if there is none.

    name: name of the tagger's tensor. It has a prefix, such as `bert.`.
    """
    return encoder.get(name.partition(".")[2])


def _factors(name: str, difference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return float32 matrices (out, r) and (r, in) whose product is the difference, with the smallest possible r.

    Errors: ModelError if r would be above _MOST.
    """
    if difference.ndim == 2:
        # Products with a few random vectors span the column space of a low-rank matrix (randomised SVD). Only a small
        # matrix then needs an SVD.
        seen = difference.astype(np.float64) @ np.random.default_rng(0).normal(size=(difference.shape[1], _MOST))
        basis = np.linalg.qr(seen)[0]
        u, s, v = np.linalg.svd(basis.T @ difference, full_matrices=False)
        rank = int((s > _CLOSE).sum())
        left, right = ((basis @ u)[:, :rank] * s[:rank]).astype(np.float32), v[:rank].astype(np.float32)
        if np.abs(left @ right - difference).max() < _CLOSE:
            return left, right
    raise ModelError(
        f"{name}: the difference to the bundled encoder is not a matrix of rank {_MOST} or less; "
        "train the tagger with lora."
    )


def _restored(name: str, kept: Tensors, encoder: Tensors) -> np.ndarray:
    if name in kept:
        return kept[name]
    base = _base(name, encoder)
    assert base is not None  # because `shrink` has stored every tensor that the encoder lacks
    left, right = (kept.get(name + end) for end in _FACTORS)
    return base if left is None or right is None else base + left @ right
