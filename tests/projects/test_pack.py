"""Export of a project to one file: the same bytes each time, and the same project after an import."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from core.errors import ProjectError
from core.importing import view as corpora
from core.project_list import FIRST, Project
from core.projects import pack, runs
from core.projects import view as projects
from core.projects.home import store
from core.projects.pack import LIST
from core.selection import insights
from tests.conftest import Seal
from tests.finished import as_running
from tests.homes import done
from tests.planted import contracts

MODEL = "artifacts/model/model.safetensors"


@pytest.fixture
def project(home: Path, seal: Seal) -> Project:
    task, domain = seal(["One clause .", "Another clause ."], "task"), seal(contracts(30, seed=2), "domain")
    corpora.set_role("task", task.fingerprint)
    run = runs.get(done("select", task=task.fingerprint, domain=domain.fingerprint, strategy="random", budget="3"))
    (run.path / MODEL).parent.mkdir()
    (run.path / MODEL).write_bytes(b"weights" * 99)
    (run.path / "checkpoints" / "optimizer.pt").write_bytes(b"pickle")
    (home / "runs" / ".removed-x").mkdir()
    (home / "runs" / ".removed-x" / "gone").write_text("gone")
    return projects.current()


def entries(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_an_exported_and_imported_project_is_equal_byte_by_byte(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, again, back = tmp_path / "one.zip", tmp_path / "two.zip", tmp_path / "back.zip"
    packed = projects.export(projects.current(), first)
    projects.export(projects.current(), again)
    assert first.read_bytes() == again.read_bytes()
    assert (packed.left_models, packed.left_bytes) == (1, 7 * 99) == pack.weights_of(projects.current())
    names = set(entries(first))
    assert not [name for name in names if "removed" in name or name.endswith((".pt", ".safetensors", "/lock"))]
    order = [corpus.name for corpus in corpora.listed()]

    monkeypatch.setenv("WINNOW_HOME", str(tmp_path / "elsewhere"))
    with first.open("rb") as file:
        made = projects.bring_in(file, "one.zip")
    assert made.name == FIRST
    assert [corpus.name for corpus in corpora.listed()] == order
    assert corpora.roles() == {"task": corpora.find("task").fingerprint}
    (run,) = runs.listed("select")
    assert run.state().state == "succeeded"
    assert not [
        path
        for path in made.folder.rglob("*")
        if path.is_file() and path.name not in ("lock", "project.json") and path.stat().st_mode & 0o077
    ]
    projects.export(projects.current(), back)
    old, new = entries(first), entries(back)
    assert {name: data for name, data in old.items() if name != LIST} == {
        name: data for name, data in new.items() if name != LIST
    }
    assert json.loads(old[LIST])["files"] == json.loads(new[LIST])["files"]


def test_exports_leave_out_vectors_and_explanations_need_them_again(
    home: Path, seal: Seal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, domain = (seal(contracts(n, seed=n), f"{n}").fingerprint for n in (20, 30))
    options = {"task": task, "domain": domain, "encoder": "tiny", "strategy": "knn", "budget": "3"}
    select = done("select", options)
    whole = insights.why(select, 0)
    file = tmp_path / "one.zip"
    packed = projects.export(projects.current(), file)
    assert (packed.left_models, packed.left_vectors) == (0, 2)
    assert packed.left_bytes > 0
    assert not [name for name in entries(file) if "-embed-" in name]
    assert any("-embed-" in name for name in entries(projects.export(projects.current(), file, weights=True).file))

    projects.export(projects.current(), file)
    monkeypatch.setenv("WINNOW_HOME", str(tmp_path / "elsewhere"))
    with file.open("rb") as opened:
        projects.bring_in(opened, "one.zip")
    without = insights.why(select, 0)
    assert (without.score, without.rank) == (whole.score, whole.rank)
    assert whole.neighbours
    assert not without.neighbours
    assert not runs.listed("embed")
    done("select", options, strategy="cos-pretrained")
    assert insights.why(select, 0).neighbours == whole.neighbours


def test_classifier_explains_its_scores_without_vectors(home: Path, seal: Seal) -> None:
    task, domain = (seal(contracts(n, seed=n), f"{n}").fingerprint for n in (20, 30))
    select = done(
        "select", {"task": task, "domain": domain, "encoder": "tiny", "strategy": "classifier", "budget": "3"}
    )
    whole = insights.why(select, 0)
    for run in runs.listed("embed"):
        store().remove(run.id)
    without = insights.why(select, 0)
    assert [part.name for part in without.parts] == [part.name for part in whole.parts]
    assert len(without.parts) > 3
    values = [part.value for part in whole.parts]
    np.testing.assert_allclose([part.value for part in without.parts], values, atol=1e-5)
    assert (without.neighbours, bool(whole.neighbours)) == ([], True)
    assert "nearest sentences of the task corpus are not shown" in without.notes[0]
    assert whole.notes == ()
    first, *_ = sorted(whole.parts, key=lambda part: -part.value)
    assert whole.mostly.startswith(f"Its score comes mostly from: {first.name}")
    assert without.mostly == whole.mostly


def test_an_import_under_an_existing_name_proposes_another(project: Project, tmp_path: Path) -> None:
    projects.export(project, tmp_path / "one.zip")
    data = io.BytesIO((tmp_path / "one.zip").read_bytes())
    with pytest.raises(ProjectError, match="exists already; give another name, such as 'My first project 2'"):
        projects.bring_in(data, "one.zip")
    assert (proposed := projects.name_in(data, "one.zip")) == "My first project 2"
    assert projects.bring_in(data, "one.zip", proposed).slug == "my-first-project-2"
    assert [each.name for each in projects.listed()] == [FIRST, proposed]


def test_exports_contain_weights_on_request_and_no_active_runs(project: Project, tmp_path: Path) -> None:
    packed = projects.export(project, tmp_path / "all.zip", weights=True)
    assert packed.left_models == 0
    assert [data for name, data in entries(packed.file).items() if name.endswith(MODEL)] == [b"weights" * 99]
    with pytest.raises(ProjectError, match="is in a folder of the exported project"):
        projects.export(project, project.folder / "runs" / "all.zip")
    (select,), others = runs.listed("select"), {run.id for run in runs.listed()}
    (select.path / "chunks" / "layout.npz").write_bytes(b"half way")
    name = f"runs/{select.id}/chunks/layout.npz"
    assert name not in entries(projects.export(project, tmp_path / "ended.zip").file)
    select.result_file.unlink()
    assert entries(projects.export(project, tmp_path / "stopped.zip").file)[name] == b"half way"
    with as_running(select):
        packed = projects.export(project, tmp_path / "rest.zip")
    assert packed.left_runs == (select.id,)
    assert {name.split("/")[1] for name in entries(packed.file) if name.startswith("runs/")} == others - {select.id}
