"""Where a run computes: kept beside it, handed to its worker, of no weight for its key; and the machines it was on."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.config import Config
from core.corpora.corpus import Corpus
from core.errors import ConfigError
from core.facade import runs
from core.recipes import RECIPES
from core.recipes.base import Recipe, work_of
from core.runs import executors, launch
from core.runs.executors.machines import Machines
from core.runs.where import Node, Where
from core.runs.worker import execute
from tests.finished import corpora
from tests.runs.works import begun

CLUSTER = "ray:head:6379"
WARD = {"NodeID": "ab12", "NodeManagerHostname": "ward3", "Alive": True, "Resources": {"CPU": 8.0, "GPU": 2.0}}
TWIN = {**WARD, "NodeID": "cd34"}


@pytest.fixture
def made(home: Path) -> dict[str, Corpus]:
    return corpora(home)


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What workers would have been told, none of which begins."""
    told = list[dict[str, str]]()

    def popen(command: list[str], **options: Any) -> SimpleNamespace:
        told.append({name: options["env"].get(name, "") for name in ("WINNOW_ON", "WINNOW_MIXED")})
        return SimpleNamespace(pid=2**30, wait=lambda: 0)

    monkeypatch.setattr(launch, "subprocess", SimpleNamespace(Popen=popen, DEVNULL=subprocess.DEVNULL))
    monkeypatch.setattr(executors, "find_spec", lambda name: name)
    return told


def options(made: dict[str, Corpus]) -> dict[str, object]:
    return {"task": made["task"].fingerprint, "domain": made["domain"].fingerprint, "strategy": "random"}


def test_a_run_is_sent_where_it_was_asked_to_and_resumed_there_or_here(
    made: dict[str, Corpus], spawned: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WINNOW_ON", raising=False)
    run_id = runs.start("select", options(made), CLUSTER)
    assert spawned == [{"WINNOW_ON": CLUSTER, "WINNOW_MIXED": ""}]
    run = runs.get(run_id)
    assert runs.place(run_id).on == CLUSTER
    assert "where" not in run.manifest.config
    runs.resume(run_id)
    assert spawned[-1]["WINNOW_ON"] == CLUSTER
    assert runs.start("select", options(made)) == run_id  # the place is not part of the key
    assert spawned[-1]["WINNOW_ON"] == "local"
    assert not (run.path / "where.json").exists()
    node = Node(name="ward3", cores=8, cards=2, chunks=3)
    Where(on=CLUSTER, nodes=(node,)).keep(run.path)
    runs.resume(run_id, "local")
    assert spawned[-1]["WINNOW_ON"] == "local"
    assert runs.place(run_id) == Where(nodes=(node,))
    launch.start(begun(run.home, "here"))
    assert spawned[-1] == {"WINNOW_ON": "local", "WINNOW_MIXED": ""}


def test_the_place_of_this_process_is_the_default_and_mixed_is_asked_for_anew(
    made: dict[str, Corpus], spawned: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_ON", CLUSTER)
    monkeypatch.setenv("WINNOW_MIXED", "")
    assert runs.places() == (CLUSTER, "local", "ray")
    run_id, asked = runs.start("select", options(made)), list[Where]()
    monkeypatch.setattr(runs, "_work", lambda run, listener: asked.append(Where.asked()))
    monkeypatch.setenv("WINNOW_MIXED", "1")
    runs.go_on(run_id)
    assert asked == [Where(on=CLUSTER, mixed=True)]
    runs.start("select", options(made) | {"seed": 5})
    assert spawned == [{"WINNOW_ON": CLUSTER, "WINNOW_MIXED": mixed} for mixed in ("", "1")]


@pytest.mark.parametrize(("on", "here", "notes"), [(CLUSTER, True, 1), (CLUSTER, False, 0), ("local", True, 0)])
def test_a_kind_of_run_that_computes_in_its_own_process_says_so(
    home: Path, on: str, here: bool, notes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_ON", on)
    run = begun(home, "here")
    execute(run, work_of(run, {"embed": Recipe("embed", Config, lambda config, job: {}, here=here)}))
    expected = f"A run of the kind embed computes in this process, not on {CLUSTER}."
    assert run.state().notes == (expected,) * notes
    assert {kind for kind, recipe in RECIPES.items() if recipe.here} >= {"pretrain", "finetune", "difficulty"}


def test_nowhere_is_refused_before_there_is_a_run(
    made: dict[str, Corpus], spawned: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="nowhere to compute"):
        runs.start("select", options(made), "the moon")
    monkeypatch.setattr(executors, "find_spec", lambda name: None)
    assert runs.places() == ("local",)
    with pytest.raises(ConfigError, match=r"Ray is not installed; .*requirements-cluster\.txt"):
        runs.start("select", options(made), "ray")
    assert not runs.listed("select")
    assert not spawned


@pytest.mark.parametrize(
    "text", ["", "[]", '{"on": 3}', '{"nodes": 3}', '{"nodes": [{}]}', '{"nodes": ["a"]}', '{"mixed": "yes"}']
)
def test_a_spoilt_file_is_no_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "where.json").write_text(text)
    assert Where.read(tmp_path) == Where()


def test_machines_say_who_made_what_and_what_died(home: Path) -> None:
    run, notes = begun(home, "one"), list[str]()
    context: Any = SimpleNamespace(root=run, note=lambda text, passing: notes.append(text))
    for _ in range(2):  # resumed: what was made before counts
        machines = Machines(context, "ray", mixed=False)
        machines.seen([WARD, TWIN])
        machines.begun("ab12")
        machines.begun("cd34")
        machines.finished("ab12")
        machines.lost("cd34", ready=True)
        machines.seen([WARD, {**TWIN, "Alive": False, "Resources": {}}])
        assert notes.pop() == "Node ward3 cd34 is gone."
        machines.seen([WARD, {**TWIN, "Alive": False, "Resources": {}}])
        assert [(node.name, node.workers, node.gone) for node in Where.read(run.path).nodes] == [
            ("ward3 ab12", 1, False),
            ("ward3 cd34", 0, True),
        ]
        machines.over()
    assert Where.read(run.path).nodes == (
        Node(name="ward3 ab12", cores=8, cards=2, chunks=2),
        Node(name="ward3 cd34", cores=8, cards=2, lost=2, gone=True),
    )
    assert not notes
    killed = begun(home, "killed")
    Where(on="ray", nodes=(Node(name="ward1", cores=8, cards=2, workers=3, chunks=5),)).keep(killed.path)
    context.root = killed
    Machines(context, "ray", mixed=False).seen([WARD])
    left = [(node.name, node.workers, node.chunks) for node in Where.read(killed.path).nodes]
    assert left == [("ward1", 0, 5), ("ward3", 0, 0)]  # the workers of a killed process are gone


def test_two_that_write_it_at_once_are_not_in_each_other_s_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placed, place = list[Path](), Path.replace

    def replaced(path: Path, target: Path) -> Path:
        placed.append(path)
        if len(placed) == 1:
            Where(on="ray").keep(tmp_path)  # another window, a moment before
        return place(path, target)

    monkeypatch.setattr(Path, "replace", replaced)
    Where(on=CLUSTER).keep(tmp_path)
    assert len(placed) == 2
    assert Where.read(tmp_path).on == CLUSTER
