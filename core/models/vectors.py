"""The products that score stored sentence vectors, in blocks that stay in a core's cache."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from core.reporter import Reporter, Silent
from core.results import FloatArray

if TYPE_CHECKING:
    import torch

BLOCK = 1024  # rows widened to float32 at a time: 1.5 MB at 384, so they are still in a core's cache when multiplied


def cosine(unit: FloatArray, queries: FloatArray, report: Reporter | None = None) -> FloatArray:
    """Cosines `(n, q)` float32 of stored unit rows `(n, d)` with queries `(q, d)` of any length.

    A query of zeros gives 0.
    """
    import torch

    scaled = torch.from_numpy(_normalised(queries)).T.contiguous()
    scores = np.empty((len(unit), scaled.shape[1]), dtype=np.float32)
    for start, block in _blocks(unit, report or Silent()):
        torch.mm(block, scaled, out=torch.from_numpy(scores[start : start + len(block)]))
    return scores


def top_k_mean(unit: FloatArray, targets: FloatArray, k: int, report: Reporter | None = None) -> FloatArray:
    """Mean `(n,)` float32 of the `k` largest cosines of each unit row `(n, d)` with the targets `(t, d)`.

    All targets where there are fewer than `k`. Exact, in memory for 1,024 x 1,024 cosines at a time.
    """
    import torch

    scaled = torch.from_numpy(_normalised(targets)).T.contiguous()
    k = min(k, scaled.shape[1])
    scores = np.empty(len(unit), dtype=np.float32)
    for start, block in _blocks(unit, report or Silent()):
        best = torch.empty((len(block), 0))
        for first in range(0, scaled.shape[1], BLOCK):
            near = block @ scaled[:, first : first + BLOCK]
            best = torch.cat([best, near.topk(min(k, near.shape[1]), sorted=False).values], dim=1)
            best = best.topk(min(k, best.shape[1]), sorted=False).values
        scores[start : start + len(block)] = best.mean(1).numpy()
    return scores


def _blocks(unit: FloatArray, report: Reporter) -> Iterator[tuple[int, "torch.Tensor"]]:
    """First row and float32 tensor of each `BLOCK` rows."""
    import torch

    for start in range(0, len(unit), BLOCK):
        report.check()
        block = unit[start : start + BLOCK]  # mapped with mode "c" torch takes it as it is; read-only it must copy
        yield start, torch.from_numpy(block if block.flags.writeable else block.copy()).float()


def _normalised(rows: FloatArray) -> FloatArray:
    """Rows of length 1 in float32; rows of zeros stay."""
    rows = np.asarray(rows, dtype=np.float32)
    unit: FloatArray = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return unit
