"""Lay out sentence vectors: PCA to 50 dimensions, UMAP fitted on a sample, other points beside their neighbours.

umap-learn compiles its code for half a minute before the first map. Three measures avoid this wait. torch finds the
exact neighbours, so umap-learn's approximate search is never compiled. Compiled code is cached on disk by numba; by
default, umap-learn keeps it only in memory. `compile_ahead` fills the cache while sentences are embedded.
"""

import os
import subprocess
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Self

import numpy as np

from core.reporter import Reporter, Silent
from core.results import FloatArray, IntArray

DIMENSIONS = 50
_BLOCK = 128  # queries per block: 128 x 20,000 distances are 10 MB, which fit into the CPU cache
_GROUPS = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pca:
    """A PCA. mean: `(d,)`. axes: `(d, k)`, largest variance first; each axis's largest weight is positive."""

    mean: FloatArray
    axes: FloatArray

    @classmethod
    def fit(cls, vectors: FloatArray, dimensions: int = DIMENSIONS) -> Self:
        """Fit `min(dimensions, d)` axes to vectors `(n, d)`."""
        rows = np.asarray(vectors, dtype=np.float64)
        mean = rows.mean(axis=0)
        _, axes = np.linalg.eigh((rows - mean).T @ (rows - mean))
        axes = axes[:, ::-1][:, :dimensions]
        axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
        return cls(mean=mean.astype(np.float32), axes=np.ascontiguousarray(axes, dtype=np.float32))

    def __call__(self, vectors: FloatArray) -> FloatArray:
        """Project vectors `(n, d)` of any float type to `(n, k)` float32."""
        reduced: FloatArray = (np.asarray(vectors, dtype=np.float32) - self.mean) @ self.axes
        return reduced


def nearest(
    queries: FloatArray, targets: FloatArray, k: int, *, itself: bool = False, report: Reporter | None = None
) -> tuple[IntArray, FloatArray]:
    """Return indices and Euclidean distances `(q, k)` of the exact `k` nearest `targets` `(t, d)`, nearest first.

    Targets are divided into groups. The k nearest targets lie in the k groups with the smallest minimum distance, and
    only these groups are sorted. itself: True if the queries are the targets; each query's nearest target is then the
    query itself, at distance 0, even if it has duplicates.
    """
    import torch

    report = report or Silent()
    base = torch.from_numpy(np.ascontiguousarray(targets, dtype=np.float32))
    width = -(-len(base) // _GROUPS)
    padding = width * _GROUPS - len(base)
    # The padding of the last group is infinitely far, so it is never a neighbour.
    squares = torch.cat([(base * base).sum(1), base.new_full((padding,), torch.inf)])
    across = torch.cat([-2 * base, base.new_zeros(padding, base.shape[1])]).T.contiguous()
    steps = width * torch.arange(_GROUPS)[None, :, None]
    indices, distances = [], []
    room = torch.empty(_BLOCK, width * _GROUPS)  # reused, because allocation takes longer than the matrix product
    for start in range(0, len(queries), _BLOCK):
        report.check()
        report.progress(start, len(queries), "sentences")
        block = torch.from_numpy(np.ascontiguousarray(queries[start : start + _BLOCK], dtype=np.float32))
        # Leave out the query's own square: it is the same for all targets, so their order does not change.
        squared = torch.addmm(squares, block, across, out=room[: len(block)])
        if itself:
            squared[torch.arange(len(block)), start + torch.arange(len(block))] = -torch.inf
        group_least = squared.view(len(block), _GROUPS, width).amin(1)
        groups = group_least.topk(min(k, width), largest=False, sorted=False).indices
        candidates = (groups[:, None] + steps).flatten(1)
        least, picks = squared.gather(1, candidates).topk(k, largest=False)
        indices.append(candidates.gather(1, picks))
        distances.append((least + (block * block).sum(1, keepdim=True)).clamp_(min=0).sqrt_())
    return torch.cat(indices).numpy(), torch.cat(distances).numpy()


def fit(
    points: FloatArray,
    *,
    dimensions: int = 2,
    neighbours: int = 15,
    min_distance: float = 0.1,
    seed: int | None = 0,
    report: Reporter | None = None,
) -> FloatArray:
    """Return UMAP coordinates `(n, dimensions)` float32 of `points` `(n, k)`, initialised by the first principal axes.

    neighbours: number of neighbours per point, which include the point itself. seed: with a seed, one core is used and
    results have the same bytes; with None, all cores are used and results differ.
    """
    report = report or Silent()
    neighbours = min(neighbours, len(points))
    # With too few points for a graph, the first principal axes are the map.
    if neighbours < 3 or len(points) <= dimensions + 1:
        return _pad(points[:, :dimensions], dimensions)
    report.stage("finding neighbours")
    known = nearest(points, points, neighbours, itself=True, report=report)
    report.stage("loading UMAP")
    umap = _umap()
    report.stage("laying out the map")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about the missing search index, and about one core with a seed
        model = umap.UMAP(
            n_components=dimensions,
            n_neighbors=neighbours,
            min_dist=min_distance,
            init=_start(points, dimensions),
            random_state=seed,
            n_jobs=-1 if seed is None else 1,
            precomputed_knn=(*known, None),
            force_approximation_algorithm=True,
            tqdm_kwds={"disable": False, "file": _Listener(report), "bar_format": "{n}/{total}", "mininterval": 0.2},
        )
        return np.asarray(model.fit_transform(points), dtype=np.float32)


def place(
    points: FloatArray, fitted: FloatArray, coordinates: FloatArray, k: int = 15, report: Reporter | None = None
) -> FloatArray:
    """Return coordinates `(n, c)` of further points `(n, d)`: the weighted mean of their `k` nearest fitted points.

    The weights are `exp(-(d - d_1) / mean(d - d_1))`, where d is the distance and d_1 that of the nearest point. They
    are similar to UMAP's memberships. `UMAP.transform` starts from the same positions but refines them; here, a point
    always lies among its neighbours. fitted, coordinates: the fitted points, `(m, d)` and `(m, c)`.
    """
    neighbours, distances = nearest(points, fitted, min(k, len(fitted)), report=report)
    # Subtract the distance of the nearest point, because in many dimensions all distances are similar.
    beyond = distances - distances[:, :1]
    # The 1e-9 avoids a division by zero: if all distances are equal, all weights are 1.
    weights = np.exp(-beyond / np.maximum(beyond.mean(axis=1, keepdims=True), 1e-9))
    weights /= weights.sum(axis=1, keepdims=True)
    coordinates = np.asarray(coordinates)[neighbours]
    placed: FloatArray = np.einsum("nk,nkc->nc", weights, coordinates).astype(np.float32)
    return placed


def compile_ahead(home: Path) -> None:
    """Fill numba's cache in a separate process at low priority, once per version of the compiled code."""
    done = home / "cache" / f"umap-{metadata.version('umap-learn')}-numba-{metadata.version('numba')}"
    if done.exists():
        return
    # Create this empty file before the process starts, so that two pages opened at once start only one process.
    done.parent.mkdir(parents=True, exist_ok=True)
    done.touch()
    subprocess.Popen(
        [sys.executable, "-m", "core.explore.projection"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )


class _Listener:
    """File object to which tqdm writes "37/200". Only at these writes can umap-learn report progress or be stopped."""

    def __init__(self, report: Reporter) -> None:
        self._report = report

    def write(self, text: str) -> None:
        self._report.check()
        done, slash, total = text.strip().partition("/")
        if slash and done.isdigit() and total.isdigit():
            self._report.progress(int(done), int(total), "epochs")

    def flush(self) -> None: ...


def _umap() -> ModuleType:
    """Import umap-learn with its compiled code cached on disk; takes half a minute if the cache is empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImportWarning)  # warning about missing TensorFlow
        import umap
        from umap import layouts, umap_

    for function in (
        layouts._nb_optimize_layout_euclidean_single_epoch,
        layouts._nb_optimize_layout_euclidean_single_epoch_parallel,
        umap_.smooth_knn_dist,
        umap_.compute_membership_strengths,
    ):
        # In a read-only folder, or with another version of numba, there is no cache, and code is compiled each time.
        with suppress(RuntimeError, AttributeError):
            function.enable_caching()
    module: ModuleType = umap
    return module


def _start(points: FloatArray, dimensions: int) -> FloatArray:
    """Return initial positions for UMAP that keep distant points apart: the first PCA axes, scaled to a width of 10."""
    start = _pad(points[:, :dimensions], dimensions)
    return np.asarray(10 * start / max(float(np.ptp(start, axis=0).max()), 1e-9), dtype=np.float32)


def _pad(points: FloatArray, dimensions: int) -> FloatArray:
    missing = max(dimensions - points.shape[1], 0)
    return np.pad(points, ((0, 0), (0, missing))).astype(np.float32)


if __name__ == "__main__":
    with suppress(AttributeError, OSError):
        os.nice(10)
    noise = np.random.default_rng(0).normal(size=(200, DIMENSIONS)).astype(np.float32)
    for some_seed in (0, None):
        fit(noise, seed=some_seed)
