"""What older versions left in a home becomes "My first project", whatever happens meanwhile."""

import shutil
from pathlib import Path

import pytest

from core.errors import RunBusy
from core.experiment import reports
from core.importing import view as corpora
from core.project_list import FIRST, HELD, PROJECTS
from core.projects import adopt, runs
from core.projects import view as projects
from core.projects.home import home as here
from tests import finished
from tests.conftest import Seal
from tests.finished import at_work
from tests.planted import contracts

SHARED = {PROJECTS, "locks", "audit.jsonl", "encoders"}


@pytest.fixture
def old(home: Path, seal: Seal) -> Path:
    """A home of an older version: corpora, a finished run, roles, and what is the machine's."""
    task, domain = seal(["One clause .", "Another clause ."], "task"), seal(contracts(30, seed=2), "domain")
    corpora.set_role("task", task.fingerprint)
    options = {"task": task.fingerprint, "domain": domain.fingerprint, "strategy": "random", "budget": "3"}
    runs.execute("select", options)
    (home / "uploads" / "abc").mkdir(parents=True)
    (home / "uploads" / "abc" / "left.txt").write_text("An upload .\n")
    (home / "encoders").mkdir()
    reports.keep_cover(reports.Cover(firm="Ottersea"))
    return home


def tree(folder: Path) -> dict[str, bytes]:
    """What is in it, but for who last held a lock."""
    paths = (path for name in HELD for path in (folder / name, *(folder / name).rglob("*")))
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in paths if path.is_file() and path.name != "lock"
    }


def test_it_is_one_project_from_the_beginning_and_moves_when_a_second_is_made(old: Path) -> None:
    before, selected = tree(old), runs.listed("select")[0]
    assert (projects.current().name, projects.current().folder) == (FIRST, old)
    result = selected.result()
    made = projects.new("Leases")
    assert [project.name for project in projects.listed()] == [FIRST, "Leases"]
    assert here() == old / PROJECTS / "my-first-project"
    assert tree(here()) == before
    assert {path.name for path in old.iterdir()} <= SHARED
    assert runs.get(selected.id).result() == result
    assert corpora.roles()["task"] == corpora.find("task").fingerprint
    with projects.within(made.slug):
        assert not corpora.listed()
        assert not runs.listed()


def test_whatever_ends_it_the_next_start_goes_on(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, kept = tree(old), tmp_path / "kept"
    shutil.copytree(old, kept)
    moves = 0
    whole = {"replace": Path.replace, "rename": Path.rename}

    for last in range(20):
        shutil.rmtree(old)
        shutil.copytree(kept, old)
        moves = 0

        def broken(path: Path, target: Path, *, by: str, last: int = last) -> Path:
            nonlocal moves
            if old in path.parents and moves == last and path.parent in (old, old / PROJECTS):
                raise KeyboardInterrupt
            moves += path.parent in (old, old / PROJECTS)
            return whole[by](path, target)

        with monkeypatch.context() as patch:
            for by in whole:
                patch.setattr(Path, by, lambda path, target, by=by: broken(path, target, by=by))
            try:
                adopt.adopt(old)
            except KeyboardInterrupt:
                pass
            else:
                break
        projects.settle()
        assert tree(old / PROJECTS / "my-first-project") == before
        assert [project.name for project in projects.listed()] == [FIRST]
        assert not adopt.unfinished(old)
    assert last == len(HELD) - 1 + 1  # a folder for exports was not there; the draft's own name comes last


def test_it_waits_for_a_run_at_work(old: Path) -> None:
    run = runs.listed("select")[0]
    with at_work(run), pytest.raises(RunBusy, match=rf"is needed by a run at work.*{run.id}"):
        projects.new("Leases")
    assert {path.name for path in old.iterdir()} == {*HELD, *SHARED} - {PROJECTS, "exports"}
    assert not (old / PROJECTS).exists()


def test_what_an_older_version_leaves_beside_projects_gets_one_too(old: Path, home: Path) -> None:
    projects.new("Leases")
    shutil.copytree(old / PROJECTS / "my-first-project" / "corpora", home / "corpora")
    projects.settle()
    assert [project.name for project in projects.listed()] == [FIRST, "Leases", f"{FIRST} 2"]
    with projects.within("my-first-project-2"):
        assert {corpus.name for corpus in corpora.listed()} >= {"task", "domain"}


def test_what_runs_name_by_their_place_is_found_in_the_new_one(old: Path) -> None:
    """Of older versions a run's result names its model's folder from / on, and so do options of parts of a run."""
    run = runs.listed("select")[0]
    finished.returned(run, {**run.result(), "model": f"{run.path}/artifacts/model"})
    projects.new("Leases")
    folder = here() / "runs" / run.id
    assert runs.get(run.id).result()["model"] == f"{folder}/artifacts/model"
