"""Stored vectors: shards on disk that are read as one array."""

from pathlib import Path

import numpy as np
import pytest

from core.encoders import embed, vectors
from core.errors import RunError
from core.files import save_array_atomic
from core.results import Index
from core.runs.store import Run, RunStore
from tests.conftest import Seal
from tests.homes import executed

RNG = np.random.default_rng(3)
VECTORS, NORMS = RNG.normal(size=(11, 6)).astype(np.float16), RNG.uniform(size=11).astype(np.float32)


@pytest.fixture
def made(home: Path) -> Run:
    """Store 11 vectors in files of 4."""
    run = RunStore(home).create("embed", {}, {}, seed=None, versions={}, key="k")
    name, folder = vectors.shards(run)
    paths = [folder / f"{name}-{i:06d}.npy" for i in range(3)]
    for i, path in enumerate(paths):
        part = slice(4 * i, 4 * i + 4)
        save_array_atomic(path, vectors.shard(VECTORS[part], NORMS[part]))
    vectors.write_norms(run, paths)
    return run


def test_shards_are_read_as_one_array(made: Run) -> None:
    rows, norms = vectors.read(made)
    assert len(rows) == 11
    np.testing.assert_array_equal(norms, NORMS)
    some: list[Index] = [
        slice(None),
        slice(4, 8),
        slice(2, 9),
        slice(8, 40),
        slice(11, 20),
        slice(5, 5),
        slice(9, 1, -3),
    ]
    some += [np.array([10, 0, 4, 4, -1]), np.array([], dtype=np.int64), NORMS > 0.5, 7, -2]
    for pick in some:
        np.testing.assert_array_equal(rows[pick], VECTORS[pick])
        assert rows[pick].dtype == np.float16
    wrongs: list[Index] = [np.array([11]), np.array([-12]), 11, NORMS[:5] > 0]
    for wrong in wrongs:
        with pytest.raises(IndexError):
            rows[wrong]


def test_vectors_in_one_old_file_are_read(made: Run) -> None:
    for path in made.artifacts.glob("vectors-*.npy"):
        path.unlink()
    np.save(made.artifacts / "vectors.npy", VECTORS)
    np.testing.assert_array_equal(vectors.read(made)[0][:], VECTORS)


def test_missing_or_truncated_shard_raises_a_readable_error(made: Run) -> None:
    first, *_, last = sorted(made.artifacts.glob("vectors-*.npy"))
    rows, _ = vectors.read(made)
    last.write_bytes(last.read_bytes()[:-9])
    with pytest.raises(RunError, match="remove the run that wrote it, and start that run again"):
        vectors.read(made)
    with pytest.raises(RunError, match="remove the run that wrote it, and start that run again"):
        rows[9:]  # opened before the damage
    last.unlink()
    with pytest.raises(RunError, match="remove the run that wrote it, and start that run again"):
        vectors.read(made)
    first.unlink()


def test_vectors_are_stored_once(seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 100 million rows, a second copy would take 77 GB."""
    monkeypatch.setattr(embed, "CHUNK", 16)
    corpus = seal([f"sentence number {i}" for i in range(40)])
    run = executed("embed", corpus=corpus.fingerprint, encoder="tiny")
    files = [path for path in run.path.rglob("*.npy") if path.name != "norms.npy"]
    dimension = run.result()["dimension"]
    assert len(files) == 3
    assert sum(path.stat().st_size for path in files) < 40 * (2 * dimension + 4) + 3 * 512
    rows, norms = vectors.read(run)
    np.testing.assert_allclose(np.linalg.norm(rows[:].astype(np.float32), axis=1), 1, atol=2e-3)
    assert norms.shape == (40,)
