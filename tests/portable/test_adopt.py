"""What older versions left in a home becomes "My first project", even if the move is interrupted."""

import shutil
from functools import partialmethod
from pathlib import Path

import pytest

from core.errors import RunBusy
from core.facade import corpora, projects, reports, runs
from core.facade.home import home as here
from core.portable import adopt
from core.projects import FIRST, HELD, PROJECTS
from tests import finished
from tests.conftest import Seal
from tests.finished import at_work
from tests.homes import done
from tests.planted import contracts

SHARED = {PROJECTS, "locks", "audit.jsonl", "encoders"}


@pytest.fixture
def old(home: Path, seal: Seal) -> Path:
    """A home of an older version: corpora, a finished run, roles, and what is the machine's."""
    task, domain = seal(["One clause .", "Another clause ."], "task"), seal(contracts(30, seed=2), "domain")
    corpora.set_role("task", task.fingerprint)
    done("select", task=task.fingerprint, domain=domain.fingerprint, strategy="random", budget="3")
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


def test_a_home_is_one_project_and_moves_when_a_second_is_made_unless_a_run_is_active(old: Path, home: Path) -> None:
    [selected] = runs.listed("select")
    result = {**selected.result(), "model": f"{selected.path}/artifacts/model"}
    with at_work(selected), pytest.raises(RunBusy, match=rf"is needed by a run at work.*{selected.id}"):
        projects.new("Leases")
    assert not (old / PROJECTS).exists()
    finished.returned(selected, result)
    before = tree(old)
    assert (projects.current().name, projects.current().folder) == (FIRST, old)
    made = projects.new("Leases")
    assert [project.name for project in projects.listed()] == [FIRST, "Leases"]
    assert here() == old / PROJECTS / "my-first-project"
    assert tree(here()) == before
    assert {path.name for path in old.iterdir()} <= SHARED
    assert runs.get(selected.id).result()["model"] == f"{here()}/runs/{selected.id}/artifacts/model"
    assert corpora.roles()["task"] == corpora.find("task").fingerprint
    with projects.within(made.slug):
        assert not corpora.listed()
        assert not runs.listed()
    shutil.copytree(here() / "corpora", home / "corpora")  # an older version wrote beside the projects
    projects.settle()
    assert [project.name for project in projects.listed()] == [FIRST, "Leases", f"{FIRST} 2"]
    with projects.within("my-first-project-2"):
        assert {corpus.name for corpus in corpora.listed()} >= {"task", "domain"}


@pytest.mark.parametrize("last", [0, 1, len(HELD) - 1])
def test_an_interrupted_move_is_finished_at_the_next_start(
    old: Path, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, moves = tree(old), 0
    whole = {"replace": Path.replace, "rename": Path.rename}

    def broken(path: Path, target: Path, *, by: str) -> Path:
        nonlocal moves
        if path.parent in (old, old / PROJECTS):
            if moves == last:
                raise KeyboardInterrupt
            moves += 1
        return whole[by](path, target)

    with monkeypatch.context() as patch:
        for by in whole:
            patch.setattr(Path, by, partialmethod(broken, by=by))
        with pytest.raises(KeyboardInterrupt):
            adopt.adopt(old)
    projects.settle()
    assert tree(old / PROJECTS / "my-first-project") == before
    assert [project.name for project in projects.listed()] == [FIRST]
    assert not adopt.unfinished(old)
