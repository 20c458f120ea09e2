"""Steps of a map: exact neighbours, PCA, a deterministic layout, and placed points."""

import numpy as np
import pytest

from core.errors import Cancelled
from core.explore import projection
from core.reporter import Silent


def clouds(n: int, d: int = 20, k: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, k, n)
    return (6 * np.eye(d)[label] + rng.normal(size=(n, d))).astype(np.float32), label


@pytest.mark.parametrize(("n", "q", "k"), [(1, 1, 1), (5, 3, 5), (130, 300, 7), (1000, 50, 15)])
def test_neighbours_equal_brute_force(n: int, q: int, k: int) -> None:
    targets, queries = clouds(n)[0], clouds(q, seed=1)[0]
    which, far = projection.nearest(queries, targets, k)
    every = np.linalg.norm(queries[:, None].astype(float) - targets[None], axis=2)
    np.testing.assert_array_equal(which, np.argsort(every, axis=1, kind="stable")[:, :k])
    np.testing.assert_allclose(far, np.sort(every, axis=1)[:, :k], atol=2e-3)
    rows = np.repeat(clouds(40)[0], 6, axis=0)
    which, far = projection.nearest(rows, rows, 5, itself=True)
    np.testing.assert_array_equal(which[:, 0], np.arange(len(rows)))  # each row is nearest to itself, despite copies
    assert (far[:, 0] == 0).all()
    np.testing.assert_allclose(far, 0, atol=5e-3)  # the others are copies too


def test_pca_equals_svd_with_fixed_signs() -> None:
    rows, _ = clouds(300)
    wide = rows @ np.diag([9, 4, *[0.01] * 18]).astype(np.float32)
    pca = projection.Pca.fit(wide, 2)
    assert pca.axes.shape == (20, 2)
    exact = np.linalg.svd((wide - wide.mean(axis=0)).astype(float))[2][:2].T
    np.testing.assert_allclose(np.abs(pca.axes), np.abs(exact), atol=1e-3)
    assert (pca.axes[np.abs(pca.axes).argmax(axis=0), [0, 1]] > 0).all()
    reduced = pca(wide.astype(np.float16))
    assert reduced.dtype == np.float32
    np.testing.assert_allclose(reduced.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(pca.axes.T @ pca.axes, np.eye(2), atol=1e-5)
    assert projection.Pca.fit(rows[:, :3]).axes.shape == (3, 3)


def test_layout_separates_clusters_and_is_deterministic() -> None:
    rows, label = clouds(150)
    first, second = (projection.fit(rows, seed=1) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert first.tobytes() != projection.fit(rows, seed=2).tobytes()
    centres = np.array([first[label == kind].mean(axis=0) for kind in range(3)])
    nearest = np.linalg.norm(first[:, None] - centres[None], axis=2).argmin(axis=1)
    assert (nearest == label).mean() > 0.97


def test_further_points_are_placed_in_their_cluster() -> None:
    rows, label = clouds(150)
    coordinates = projection.fit(rows, dimensions=3)
    assert coordinates.shape == (150, 3)
    others, theirs = clouds(60, seed=5)
    placed = projection.place(others, rows, coordinates)
    centres = np.array([coordinates[label == kind].mean(axis=0) for kind in range(3)])
    assert (np.linalg.norm(placed[:, None] - centres[None], axis=2).argmin(axis=1) == theirs).mean() > 0.97
    np.testing.assert_allclose(projection.place(rows[:9], rows, coordinates, k=1), coordinates[:9])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_too_few_points_are_padded_instead_of_laid_out(n: int) -> None:
    rows, _ = clouds(n, d=2, k=2)
    np.testing.assert_array_equal(projection.fit(rows, dimensions=3), np.pad(rows, ((0, 0), (0, 1))))


def test_layout_reports_epochs_and_can_be_cancelled() -> None:
    class Stop(Silent):
        def __init__(self) -> None:
            self.stages: list[str] = []
            self.epochs: list[int] = []

        def stage(self, name: str) -> None:
            self.stages.append(name)

        def progress(self, done: int, total: int | None, unit: str) -> None:
            if unit == "epochs":
                self.epochs.append(done)

        def check(self) -> None:
            if self.stages[-1:] == ["laying out the map"] and self.epochs:
                raise Cancelled("stop")

    with pytest.raises(Cancelled):
        projection.fit(clouds(60)[0], report=Stop())
