"""A tagger stored as its difference to the bundled encoder becomes the same tagger again."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from core.errors import ModelError, ProjectError
from core.files import ARTIFACTS, SUMS, refuse_changed
from core.models.hub import BUNDLED, WEIGHTS, folder_of
from core.projects import small_tagger
from core.projects import view as projects
from core.projects.small_tagger import DIFFERENCE, SMALL, restore, shrink

MATRIX, BIAS = "encoder.layer.2.attention.self.query.weight", "encoder.layer.2.attention.self.query.bias"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose tagger differs from the bundled encoder by a matrix of rank 2, and by a head."""
    rng, encoder = np.random.default_rng(0), load_file(folder_of(BUNDLED) / WEIGHTS)
    tensors = {f"bert.{name}": tensor for name, tensor in encoder.items()}
    change = rng.normal(size=(384, 2)) @ rng.normal(size=(2, 384)) / 100
    tensors[f"bert.{MATRIX}"] = tensors[f"bert.{MATRIX}"] + change.astype(np.float32)
    tensors["classifier.weight"] = rng.normal(size=(9, 384)).astype(np.float32)
    model = tmp_path / "runs" / "one" / ARTIFACTS / "model"
    model.mkdir(parents=True)
    save_file(tensors, model / WEIGHTS, {"format": "pt"})
    (model / "config.json").write_text("{}")
    return model.parents[1]


def test_small_tagger_is_small_and_restores_the_same_tagger(run: Path) -> None:
    model = run / ARTIFACTS / "model"
    before = load_file(model / WEIGHTS)
    shrink(run)
    small = run / ARTIFACTS / SMALL
    assert sum(file.stat().st_size for file in small.iterdir()) < 60_000 < 10_000_000 < (model / WEIGHTS).stat().st_size
    for file in model.iterdir():
        file.unlink()
    model.rmdir()
    restore(run.parents[1])
    assert {path.name for path in (run / ARTIFACTS).iterdir()} == {"model"}
    assert {path.name for path in model.iterdir()} == {"config.json", WEIGHTS}
    after = load_file(model / WEIGHTS)
    assert after.keys() == before.keys()
    assert all(np.allclose(after[name], before[name], rtol=0, atol=1e-6) for name in before)
    assert not np.array_equal(after[f"bert.{MATRIX}"], load_file(folder_of(BUNDLED) / WEIGHTS)[MATRIX])
    assert (model / WEIGHTS).stat().st_mode & 0o777 == 0o600
    refuse_changed(model)  # the checksums fit the restored files
    assert (run / SUMS).exists()
    (model / WEIGHTS).unlink()
    restore(run.parents[1])  # a model that a user deleted stays deleted
    assert not (model / WEIGHTS).exists()


@pytest.mark.parametrize("name", [MATRIX, BIAS])
def test_tagger_trained_without_lora_is_refused(run: Path, name: str) -> None:
    weights = run / ARTIFACTS / "model" / WEIGHTS
    tensors = load_file(weights)
    changed = tensors[f"bert.{name}"]
    noise = np.random.default_rng(1).normal(size=changed.shape).astype(np.float32)
    save_file({**tensors, f"bert.{name}": changed + noise}, weights, {"format": "pt"})
    with pytest.raises(ModelError, match=f"{name}: .*train the tagger with lora"):
        shrink(run)
    assert not (run / ARTIFACTS / SMALL).exists()


def test_difference_to_another_encoder_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(run)
    monkeypatch.setattr(small_tagger, "BUNDLED_SHA256", "0" * 64)
    with pytest.raises(ModelError, match="was made with another version of minilm"):
        restore(run.parents[1])
    assert (run / ARTIFACTS / SMALL / DIFFERENCE).exists()


def test_tagger_of_an_import_with_the_samples_name_is_not_restored(home: Path) -> None:
    with projects.FINISHED["legal"].open("rb") as file:
        given = projects.bring_in(file, "given.zip")
    with pytest.raises(ProjectError):
        projects.open_finished_sample()
    assert list(given.folder.glob(f"runs/*/{ARTIFACTS}/{SMALL}"))
