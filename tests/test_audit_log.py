"""The audit log: one line per action of pages and commands, without text or names; its location and switch."""

import json
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from core import audit_log
from core.errors import ConfigError, ResourceError, RunBusy
from core.importing import view as facade_corpora
from core.kind import register
from core.kinds import KINDS
from core.project_list import shared_home
from core.projects import audit, removals
from core.projects import runs as facade_runs
from core.projects import view as projects
from core.projects.home import store
from core.runs import launch
from core.runs.store import Run
from core.selection import view as selections
from tests.conftest import ROOT, Command, Seal
from tests.finished import as_running
from tests.homes import Homes, Names, done
from tests.lint.imports import CAPABILITIES
from tests.lint.repository import Repository
from tests.pages.drawing import opened, opened_on
from tests.waiting import until

MARKED = ("Quackenbush", "Zebulon", "Amoxitran")
RANDOM = {"strategy": "random", "budget": "20%"}
New = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def new(home: Path) -> New:
    """Return a function that returns the lines added to the log since its last call, without time and account."""
    path, seen = shared_home(home) / "audit.jsonl", 0

    def since() -> list[dict[str, Any]]:
        nonlocal seen
        lines = [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
        added, seen = lines[seen:], len(lines)
        return [{k: v for k, v in each.items() if k not in ("time", "uid", "account")} for each in added]

    return since


def write_patients(folder: Path) -> dict[str, Path]:
    """Write T_C and D_C of patients, whose names are also in the file names."""
    found = {}
    for role, n in (("task", 20), ("domain", 60)):
        found[role] = folder / f"Zebulon Quackenbush {role}.txt"
        lines = [f"{role} {i} : Zebulon Quackenbush of ward {i % 7} takes Amoxitran ." for i in range(n)]
        found[role].write_text("\n".join(lines), encoding="utf-8")
    return found


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return write_patients(tmp_path)


def build(home: Path) -> Names:
    """Import both files and select 20% and 30% of the domain corpus."""
    paths = write_patients(shared_home(home).parent)
    names = {role: facade_runs.execute("add", {"path": str(path)}).result()["corpus"] for role, path in paths.items()}
    return names | {budget: done("select", names, strategy="random", budget=budget) for budget in ("20%", "30%")}


@pytest.fixture
def patients(homes: Homes, home: Path, new: New) -> Names:
    """Copy the home of `build`: `task`, `domain`, `20%`, `30%`."""
    names = homes.copy(build, home)
    new()
    return names


def line(action: str, origin: str = "page", **marks: str) -> dict[str, Any]:
    return {"action": action, "origin": origin, **{name: list(mark.split()) for name, mark in marks.items()}}


def holds_no_name(home: Path) -> bool:
    written = (shared_home(home) / "audit.jsonl").read_text(encoding="utf-8").lower()
    return not any(name.lower() in written for name in MARKED)


def test_imports_runs_exports_and_removals_of_a_page_are_logged(
    files: dict[str, Path], new: New, home: Path, tmp_path: Path
) -> None:
    facade_corpora.open_sample("legal")  # logged as one import
    ((action, corpora),) = [(each["action"], set(each["corpora"])) for each in new()]
    assert (action, corpora) == ("import", {each.fingerprint for each in facade_corpora.listed()})
    marks = {}
    for role, path in files.items():
        added = facade_runs.execute("add", {"path": str(path)})
        marks[role] = added.result()["corpus"]
        assert new() == [line("import", runs=added.id, corpora=marks[role])]
    for is_first in (True, False):
        select = done("select", marks, **RANDOM)  # the second call starts no run
        started = [{**each, "corpora": sorted(each["corpora"])} for each in new()]
        assert started == [line("start", runs=select, corpora=" ".join(sorted(marks.values())))] * is_first
    selections.export(select, "20%", [], tmp_path / "S_C.txt")
    assert [(each["action"], each["runs"]) for each in new()] == [("export", [select])]
    facade_corpora.remove(marks["domain"])
    assert new() == [line("remove", corpora=marks["domain"])]
    removals.remove_run(select)
    assert [(each["action"], each["runs"][0]) for each in new()] == [("remove", select)]
    assert holds_no_name(home)


def test_a_removal_with_everything_is_one_line_with_all_ids(patients: Names, new: New, home: Path) -> None:
    gone = removals.remove_everything(patients["domain"])
    (entry,) = new()
    assert entry["action"] == "remove"
    assert patients["domain"] in entry["corpora"]
    assert {patients["20%"], patients["30%"]} <= {*entry["runs"]}
    assert (set(entry["runs"]), set(entry["corpora"])) == (
        {run.id for run in gone.runs},
        {corpus.fingerprint for corpus in gone.corpora},
    )
    assert holds_no_name(home)


def test_start_cancel_and_resume_of_a_page_are_logged(
    patients: Names, new: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "start", lambda run: None)  # without a worker
    run_id = facade_runs.start("select", {**RANDOM, "task": patients["task"], "domain": patients["domain"], "seed": 9})
    assert [(each["action"], each["runs"]) for each in new()] == [("start", [run_id])]
    facade_runs.cancel(run_id)
    assert [(each["action"], each["runs"]) for each in new()] == [("cancel", [run_id])]
    facade_runs.resume(run_id)
    assert new() == [line("resume", runs=run_id)]


def test_a_run_that_another_process_works_on_is_not_logged_as_started_or_resumed(patients: Names, new: New) -> None:
    options = {**RANDOM, "task": patients["task"], "domain": patients["domain"], "seed": 9}
    run = register(KINDS["select"], KINDS["select"].config.parse(options), store())
    with as_running(run):
        with pytest.raises(RunBusy):
            facade_runs.execute("select", options)
        with pytest.raises(RunBusy):
            facade_runs.go_on(run.id)
    assert new() == []


def test_an_import_by_a_worker_is_logged_for_the_page(files: dict[str, Path], new: New) -> None:
    run_id = facade_runs.start("add", {"path": str(files["task"])})
    until(lambda: not facade_runs.state(run_id).active)
    assert new() == [line("import", runs=run_id, corpora=facade_runs.get(run_id).result()["corpus"])]


def test_every_action_of_the_command_line_is_logged(
    patients: Names, new: New, home: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def did(*words: object) -> list[tuple[str, str]]:
        assert command(*words)[0] == 0
        return [(entry["action"], entry["origin"]) for entry in new()]

    def unfinished(seed: int) -> Run:
        options = {**RANDOM, "task": patients["task"], "domain": patients["domain"], "seed": seed}
        return register(KINDS["select"], KINDS["select"].config.parse(options), store())

    typed, first, second = "command line", patients["20%"], patients["30%"]
    assert command("runs", "curves", first, second, first, "--output", tmp_path / "curves.csv")[0] == 0
    (entry,) = new()  # one line that names all runs
    assert (entry["action"], entry["origin"], entry["runs"]) == ("export", typed, [first, second])
    assert sorted(entry["corpora"]) == sorted((patients["task"], patients["domain"]))
    for path in write_patients(tmp_path).values():
        path.write_text(path.read_text().replace("ward", "floor"))
    task, domain = tmp_path / "Zebulon Quackenbush task.txt", tmp_path / "Zebulon Quackenbush domain.txt"
    assert did("corpus", "add", task, "--name", "floors") == [("import", typed)]
    words = ("select", "--task", "floors", "--domain", domain, "--strategy", "random", "--json")
    assert did(*words, "--output", tmp_path / "S_C.txt") == [("import", typed), ("start", typed), ("export", typed)]
    run_id = facade_runs.listed("select")[0].id
    assert did("export", run_id, "--output", tmp_path / "again.txt") == [("export", typed)]
    waiting = unfinished(8).id
    assert did("runs", "resume", waiting) == [("resume", typed)]
    assert did("runs", "resume", waiting) == []  # nothing to log, because the run has succeeded
    monkeypatch.setattr(launch, "stop", lambda run: run.state())
    with as_running(unfinished(9)) as run:
        assert command("runs", "cancel", run.id, "--json")[0] == 0
    assert new() == [line("cancel", typed, runs=run.id)]
    assert did("runs", "remove", run_id) == [("remove", typed)]
    assert did("corpus", "remove", "floors") == [("remove", typed)]
    assert did("corpus", "list") == did("runs", "list") == did("audit") == []
    assert holds_no_name(home)


def test_a_look_is_logged_once_per_visit_and_corpus(patients: Names, new: New, home: Path) -> None:
    looks = {role: line("look", corpora=patients[role]) for role in ("task", "domain")}
    facade_corpora.set_role("task", patients["task"])
    app = opened("pages/1_Corpora.py")
    assert not app.exception
    assert new() == [looks["task"]]
    app.run()
    assert new() == []
    facade_corpora.set_role("domain", patients["domain"])
    app.run()
    assert new() == [looks["domain"]]
    for page, seen in (("pages/3_Selection.py", ["domain"]), ("pages/4_Explore.py", ["task", "domain"])):
        app = opened_on(page, patients["20%"])  # a second visit
        assert not app.exception
        assert new() == [looks[role] for role in seen]
    app.run()
    assert new() == []
    assert holds_no_name(home)


HANDS_OUT = {"board_markdown", "copy_model", "export", "figure_page", "report"}
HANDS_NOTHING_OUT = {"take_share", "take_up"}  # they take part in a run or make a selection


def test_every_function_that_exports_writes_a_line() -> None:
    modules = [
        import_module(source.path.removesuffix(".py").replace("/", "."))
        for source in Repository(ROOT).under(*(f"core/{name}" for name in CAPABILITIES))
        if ("core.projects.home" in source.text or "core.paths" in source.text) and "/cli" not in source.path
    ]
    functions = {
        (module.__name__, name): function
        for module in modules
        for name, function in vars(module).items()
        if name.startswith(("export_", "zip_", "take")) or name.endswith("_csv") or name in HANDS_OUT
        if not name.startswith("_") and getattr(function, "__module__", "") == module.__name__
        if name not in HANDS_NOTHING_OUT
    }
    assert len(functions) > 14
    assert {name for _, name in functions} >= HANDS_OUT
    assert [name for name, function in functions.items() if not hasattr(function, "__wrapped__")] == []


def test_a_line_has_time_and_account_and_survives_an_incomplete_one(home: Path) -> None:
    before = os.umask(0)
    try:
        audit.note_look(["a" * 24])
    finally:
        os.umask(before)
    path = shared_home(home) / "audit.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    entry = json.loads(path.read_bytes())
    assert datetime.fromisoformat(entry["time"]).utcoffset() is not None
    assert entry["time"].endswith("Z")
    assert entry["uid"] == os.getuid()
    assert entry["account"]
    with path.open("ab") as file:
        file.write(b'{"time": "2026-')  # the process was killed while it wrote this line
    audit.note_look(["b" * 24])
    assert [each["corpora"] for each in list(audit_log.lines())] == [["a" * 24], ["b" * 24]]


def test_two_processes_write_complete_lines(home: Path) -> None:
    program = "from core.projects import audit\nfor i in range(100): audit.note_look([str(i) * 24])"
    workers = [subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) for _ in range(2)]
    assert [worker.wait() for worker in workers] == [0, 0]
    assert len(list(audit_log.lines())) == 200
    assert len((shared_home(home) / "audit.jsonl").read_bytes().splitlines()) == 200


def test_the_log_can_be_off_or_in_another_place(
    monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path, command: Command
) -> None:
    monkeypatch.setenv("WINNOW_AUDIT", "off")
    audit.note_look(["f" * 24])
    assert not (shared_home(home) / "audit.jsonl").exists()
    assert json.loads(command("audit", "--json")[1]) == {"log": None, "lines": []}
    monkeypatch.setenv("WINNOW_AUDIT", str(tmp_path / "elsewhere.jsonl"))
    audit.note_look(["f" * 24])
    assert not (shared_home(home) / "audit.jsonl").exists()
    assert audit_log.place() == tmp_path / "elsewhere.jsonl"
    assert len(list(audit_log.lines())) == 1
    monkeypatch.setenv("WINNOW_AUDIT", str(tmp_path))
    with pytest.raises(ConfigError, match="is a folder; give the path of a file in it"):
        list(audit_log.lines())
    monkeypatch.setenv("WINNOW_AUDIT", "here.jsonl")  # a worker has another working folder
    with pytest.raises(ConfigError, match="WINNOW_AUDIT"):
        audit.note_look(["f" * 24])


def test_without_the_configured_log_no_action_is_done(
    files: dict[str, Path], patients: Names, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run_id, marks = patients["20%"], {role: patients[role] for role in ("task", "domain")}
    runs, corpora = len(facade_runs.listed()), len(facade_corpora.listed())
    packed = BytesIO(projects.export_bytes(projects.current()))
    monkeypatch.setenv("WINNOW_AUDIT", str(tmp_path))  # a folder
    actions: list[Callable[[], object]] = [
        lambda: done("add", path=str(files["task"]), name="again"),
        lambda: facade_runs.start("select", {**marks, **RANDOM, "seed": 9}),
        lambda: selections.export(run_id, "20%", [], tmp_path / "S_C.txt"),
        lambda: facade_corpora.remove(marks["domain"]),
        lambda: removals.remove_run(run_id),
        lambda: removals.remove_everything(run_id),
        lambda: facade_runs.resume(run_id),
        lambda: facade_runs.cancel(run_id),
        lambda: audit.note_look([marks["task"]]),
        lambda: facade_corpora.open_sample("legal"),
        lambda: projects.bring_in(packed, "mine.zip", "Copy"),
    ]
    for action in actions:
        with pytest.raises(ResourceError, match="audit log"):
            action()
    assert (len(facade_runs.listed()), len(facade_corpora.listed())) == (runs, corpora)
    assert not projects.several()
    assert not (tmp_path / "S_C.txt").exists()
    app = opened_on("pages/4_Explore.py", run_id)
    assert [error.value for error in app.error if "audit log" in error.value]


def test_a_default_log_that_cannot_be_written_is_a_warning(
    seal: Seal, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mark = seal(["a sentence ."], "mine").fingerprint
    (shared_home(home) / "audit.jsonl").mkdir()
    with caplog.at_level(logging.WARNING):
        facade_corpora.remove(mark)
    assert facade_corpora.listed() == []
    assert "audit log cannot be written" in caplog.text


def test_the_list_starts_at_a_day_and_prints_no_control_characters(home: Path, command: Command) -> None:
    audit.note_look(["a" * 24])
    with (shared_home(home) / "audit.jsonl").open("ab") as file:
        old = {"time": "2020-01-01T00:00:00.000Z", "uid": 1, "account": "a\x07b\rc", "action": "look", "origin": "page"}
        file.write(json.dumps(old).encode() + b"\n")
    code, out, _ = command("audit")
    assert code == 0
    assert len(out.splitlines()) == 2
    assert "a" * 24 in out
    assert "a\ufffdb\ufffdc" in out
    entry = json.loads(command("audit", "--json", "--since", "2021-01-01")[1])
    assert entry["log"] == str(shared_home(home) / "audit.jsonl")
    assert [each["corpora"] for each in entry["lines"]] == [["a" * 24]]
    assert list(audit_log.lines(datetime(2100, 1, 1)))[:1] == []
