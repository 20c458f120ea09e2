"""The place where a run computes: stored beside the run, passed to its worker, not in its key; `doctor --on`."""

import json
import subprocess
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.cli.main import run_main
from core.config import Config
from core.corpora.corpus import Corpus
from core.errors import ConfigError
from core.kind import Kind, work_of
from core.kinds import KINDS
from core.paths import within
from core.projects import machine, runs
from core.projects import view as projects
from core.projects.machine import Cluster
from core.runs import in_processes, launch
from core.runs.ray_engine import Machine
from core.runs.store import RunStore
from core.runs.where import Where, checked, clusters_of
from core.runs.worker import execute
from tests.conftest import Command
from tests.finished import corpora
from tests.runs.works import new_run

CLUSTER = "ray:head:6379"
WARD = Machine(name="ward3", cores=8, cards=0, computer="Xeon", sees_home=True, guarded=True)
OTHER = replace(WARD, name="ward4")


@pytest.fixture
def made(home: Path) -> dict[str, Corpus]:
    return corpora(home)


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Collect the environments of workers without starting them."""
    environments = list[dict[str, str]]()

    def popen(command: list[str], **options: Any) -> SimpleNamespace:
        environments.append({name: options["env"].get(name, "") for name in ("WINNOW_ON", "WINNOW_MIXED")})
        return SimpleNamespace(pid=2**30, wait=lambda: 0)

    monkeypatch.setattr(launch, "subprocess", SimpleNamespace(Popen=popen, DEVNULL=subprocess.DEVNULL))
    monkeypatch.setattr("core.runs.where.find_spec", lambda name: name)
    return environments


def options(made: dict[str, Corpus]) -> dict[str, object]:
    return {"task": made["task"].fingerprint, "domain": made["domain"].fingerprint, "strategy": "random"}


def test_a_run_computes_at_the_given_place_and_is_resumed_there_or_here(
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
    Where(on=CLUSTER).keep(run.path)
    runs.resume(run_id, "local")
    assert spawned[-1]["WINNOW_ON"] == "local"
    assert runs.place(run_id) == Where()
    launch.start(new_run(run.home, "here"))
    assert spawned[-1] == {"WINNOW_ON": "local", "WINNOW_MIXED": ""}


def test_the_place_of_this_process_is_the_default_and_mixed_is_not_kept(
    made: dict[str, Corpus], spawned: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_ON", CLUSTER)
    monkeypatch.setenv("WINNOW_MIXED", "")
    assert runs.places() == (CLUSTER, "local", "ray")
    run_id, places = runs.start("select", options(made)), list[Where]()
    monkeypatch.setattr("core.runs.worker.execute", lambda run, function, listener: places.append(Where.asked()))
    monkeypatch.setenv("WINNOW_MIXED", "1")
    runs.go_on(run_id)
    assert places == [Where(on=CLUSTER, mixed=True)]
    runs.start("select", options(made) | {"seed": 5})
    assert spawned == [{"WINNOW_ON": CLUSTER, "WINNOW_MIXED": mixed} for mixed in ("", "1")]


@pytest.mark.parametrize(("on", "here", "notes"), [(CLUSTER, True, 1), (CLUSTER, False, 0), ("local", True, 0)])
def test_a_kind_that_computes_in_its_own_process_notes_it(
    home: Path, on: str, here: bool, notes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_ON", on)
    run = new_run(home, "here")
    execute(run, work_of(run, {"embed": Kind("embed", Config, lambda config, job: {}, dict, here=here)}))
    expected = f"Runs of the kind embed compute in this process, not on {CLUSTER}."
    assert run.state().notes == (expected,) * notes
    assert {kind for kind, known in KINDS.items() if known.here} >= {"pretrain", "finetune", "difficulty"}


def test_an_invalid_place_is_refused_before_a_run_is_created(
    made: dict[str, Corpus], spawned: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="is not a valid place"):
        runs.start("select", options(made), "the moon")
    monkeypatch.setattr("core.runs.where.find_spec", lambda name: None)
    assert runs.places() == ("local",)
    monkeypatch.setattr(in_processes, "cores", lambda: 6)
    assert runs.places(steps=True) == ("local", "processes:3")
    assert [Where(on=checked(on)).processes for on in ("local", "processes:16")] == [1, 16]
    with pytest.raises(ConfigError, match=r"Ray is not installed; .*requirements-cluster\.txt"):
        runs.start("select", options(made), "ray")
    assert not runs.listed("select")
    assert not spawned


@pytest.mark.parametrize("text", ["", "[]", '{"on": 3}', '{"mixed": "yes"}'])
def test_a_damaged_place_file_is_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / "where.json").write_text(text)
    assert Where.read(tmp_path) == Where()


def test_two_processes_may_keep_a_place_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placed, place = list[Path](), Path.replace

    def replaced(path: Path, target: Path) -> Path:
        if target.name == "where.json":
            placed.append(path)
        if placed == [path]:
            Where(on="ray").keep(tmp_path)  # another window writes just before
        return place(path, target)

    monkeypatch.setattr(Path, "replace", replaced)
    Where(on=CLUSTER).keep(tmp_path)
    assert len(placed) == 2
    assert Where.read(tmp_path).on == CLUSTER


def test_a_cluster_that_got_text_is_remembered_after_a_resume_here_and_an_import(home: Path) -> None:
    run = RunStore(home).create("add", {"path": "x.txt"}, {}, versions={}, key="k")
    Where(on=CLUSTER).keep(run.path)
    Where().keep(run.path)
    Where(on="ray").keep(run.path)
    run.launched_file.touch()
    backup = BytesIO(projects.export_bytes(projects.current()))
    with within(projects.bring_in(backup, "given.zip", "Brought").slug):
        brought = runs.get(run.id)
        assert (Where.read(brought.path), clusters_of(brought.path)) == (Where(), {CLUSTER})


@pytest.mark.parametrize(
    ("on", "sentence"),
    [
        ("the moon", "'the moon' is not a valid place; give local, processes:N (1 to 99), ray"),
        ("processes:0", "'processes:0' is not a valid place"),
        ("ray:head", "'ray:head' is not a valid place"),
    ],
)
def test_an_invalid_place_option_is_a_clear_error(
    on: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WINNOW_ON", "")  # restored after the test
    monkeypatch.setattr(sys, "argv", ["winnow", "--on", on, "samples"])
    assert run_main() == 2
    assert sentence in capsys.readouterr().err


def test_a_cluster_of_one_kind_of_machine_is_accepted() -> None:
    fit = Cluster(on="ray:ward3:6379", machines=[WARD, OTHER])
    assert not fit.bad
    assert fit.bytes.startswith("the same: all machines are of one kind")
    assert fit.home == "visible on all machines, so each of them also runs steps of an experiment."
    assert "without encryption" in fit.privacy[0]
    assert "A token is required, but the traffic is not encrypted" in fit.privacy[1]
    assert "usage reports" in fit.privacy[2]
    assert fit.lines[0].split() == ["ward3", "8", "cores", "0", "GPUs", "Xeon"]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            replace(OTHER, computer="EPYC"),
            "would differ in the last digits, so workers are refused without --mixed: EPYC",
        ),
        (replace(OTHER, differs=("numpy 1.0, here 2.0",)), "ward4 has numpy 1.0, here 2.0"),
        (replace(OTHER, answers=False), "no answer from ward4"),
        (replace(OTHER, guarded=False), "ward4 requires no token"),
    ],
)
def test_the_check_names_what_would_be_refused(other: Machine, words: str) -> None:
    bad = Cluster(on="ray:ward3:6379", machines=[WARD, other])
    assert bad.bad
    assert words in "\n".join(bad.lines)
    lines = Cluster(on="ray:ward3:6379", machines=[WARD, replace(OTHER, sees_home=False)]).lines
    [home] = [line for line in lines if line.startswith("home: ")]
    assert home.startswith("home: not visible on ward4. ")
    assert home.endswith("and they run no steps of an experiment.")


def test_the_command_exits_2_if_a_run_would_be_refused(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.setenv("WINNOW_ON", "local")
    monkeypatch.setattr("core.runs.where.find_spec", lambda name: name)
    machines = [replace(WARD, guarded=False)]
    monkeypatch.setattr(machine, "examine", lambda address, home: machines)
    with pytest.raises(SystemExit) as left:
        command("doctor", "--on", "ray:ward3:6379", "--json")
    assert left.value.code == 2
    code, out, stderr = command("doctor", "--on", "local")
    assert code == 2
    assert json.loads(out)["machines"][0]["name"] == "ward3"  # from the first command
    assert "use doctor without --on" in stderr
