"""The audit log: one line an action, by page and by command line; no text and no name in it; its place and switch."""

import json
import logging
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from core import audit_log
from core.cli.main import run_main
from core.errors import ConfigError, ResourceError
from core.facade import audit, removals, selections
from core.facade import corpora as facade_corpora
from core.facade import runs as facade_runs
from core.facade.home import store
from core.recipes.base import register
from core.runs import launch
from tests.conftest import Seal
from tests.finished import at_work
from tests.pages.test_pages import opened, opened_on

ROOT = Path(__file__).resolve().parents[1]
MARKED = ("Quackenbush", "Zebulon", "Amoxitran")
Log = Callable[[], list[dict[str, Any]]]
Command = Callable[..., tuple[int, str]]


@pytest.fixture
def log(home: Path) -> Log:
    """What the log holds now, each line read."""
    path = home / "audit.jsonl"
    return lambda: [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


@pytest.fixture
def new(log: Log) -> Log:
    """What was added to the log since it was asked last, without time and account."""
    seen = 0

    def since() -> list[dict[str, Any]]:
        nonlocal seen
        lines, before = log(), seen
        seen = len(lines)
        return [{k: v for k, v in line.items() if k not in ("time", "uid", "account")} for line in lines[before:]]

    return since


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`command("corpus", "list")` -> (exit code, stdout), in this process."""

    def call(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["core", *map(str, words)])
        return run_main(), capsys.readouterr().out

    return call


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """T_C and D_C of patients, whose names the files bear too."""
    found = {}
    for role, n in (("task", 20), ("domain", 60)):
        found[role] = tmp_path / f"Zebulon Quackenbush {role}.txt"
        lines = [f"{role} {i} : Zebulon Quackenbush of ward {i % 7} takes Amoxitran ." for i in range(n)]
        found[role].write_text("\n".join(lines), encoding="utf-8")
    return found


def line(action: str, origin: str = "page", **marks: str) -> dict[str, Any]:
    return {"action": action, "origin": origin, **{name: list(mark.split()) for name, mark in marks.items()}}


def no_name_in(home: Path) -> bool:
    told = (home / "audit.jsonl").read_text(encoding="utf-8").lower()
    return not any(name.lower() in told for name in MARKED)


def selection(files: dict[str, Path], new: Log) -> tuple[str, dict[str, str]]:
    """A finished selection of two imported files: its id, and the fingerprints."""
    marks = {role: facade_runs.execute("add", {"path": str(path)}).result()["corpus"] for role, path in files.items()}
    run_id = facade_runs.execute("select", {**marks, "strategy": "random", "budget": "20%"}).id
    new()
    return run_id, marks


def test_imports_runs_exports_and_removals_of_a_page(
    files: dict[str, Path], new: Log, home: Path, tmp_path: Path
) -> None:
    marks, whole = {}, {"strategy": "random", "budget": "20%"}
    for role, path in files.items():
        added = facade_runs.execute("add", {"path": str(path)})
        marks[role] = added.result()["corpus"]
        assert new() == [line("import", runs=added.id, corpora=marks[role])]
    both = f"{marks['domain']} {marks['task']}"
    select = facade_runs.execute("select", {**marks, **whole}).id
    (started,) = new()
    assert started | {"corpora": sorted(started["corpora"])} == line(
        "start", runs=select, corpora=" ".join(sorted(both.split()))
    )
    assert facade_runs.execute("select", {**marks, **whole}).id == select
    assert new() == []  # nothing began
    selections.export(select, "20%", [], tmp_path / "S_C.txt")
    assert [(each["action"], each["runs"]) for each in new()] == [("export", [select])]
    facade_corpora.remove(marks["domain"])
    assert new() == [line("remove", corpora=marks["domain"])]
    removals.remove_run(select)
    assert [(each["action"], each["runs"][0]) for each in new()] == [("remove", select)]
    assert no_name_in(home)


def test_a_removal_with_everything_is_one_line_that_names_it_all(files: dict[str, Path], new: Log, home: Path) -> None:
    run_id, marks = selection(files, new)
    gone = removals.remove_everything(marks["domain"])
    (told,) = new()
    assert told["action"] == "remove"
    assert marks["domain"] in told["corpora"]
    assert run_id in told["runs"]
    assert (set(told["runs"]), set(told["corpora"])) == (
        {run.id for run in gone.runs},
        {corpus.fingerprint for corpus in gone.corpora},
    )
    assert no_name_in(home)


def test_start_cancel_and_resume_of_a_page(
    trio_marks: dict[str, str], new: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "start", lambda run: None)  # no worker: what it would do is not asked here
    options = {**trio_marks, "strategy": "random", "budget": "20%"}
    run_id = facade_runs.start("select", options)
    assert [(each["action"], each["runs"]) for each in new()] == [("start", [run_id])]
    facade_runs.cancel(run_id)
    assert [(each["action"], each["runs"]) for each in new()] == [("cancel", [run_id])]
    facade_runs.resume(run_id)
    assert new() == [line("resume", runs=run_id)]


@pytest.fixture
def trio_marks(seal: Seal, new: Log) -> dict[str, str]:
    marks = {
        role: seal([f"a sentence {i} of {role} ." for i in range(20)], role).fingerprint for role in ("task", "domain")
    }
    new()
    return marks


def test_an_import_by_a_worker_is_the_pages(files: dict[str, Path], new: Log) -> None:
    run_id = facade_runs.start("add", {"path": str(files["task"])})
    deadline = time.monotonic() + 300
    while (state := facade_runs.state(run_id)).active:
        assert time.monotonic() < deadline, state
        time.sleep(0.02)
    assert new() == [line("import", runs=run_id, corpora=facade_runs.get(run_id).result()["corpus"])]


def test_a_sample_is_one_import(new: Log) -> None:
    facade_corpora.open_sample("legal")
    (told,) = new()
    assert told["action"] == "import"
    assert set(told["corpora"]) == {corpus.fingerprint for corpus in facade_corpora.listed()}


def test_every_action_of_the_command_line(
    files: dict[str, Path], new: Log, home: Path, tmp_path: Path, command: Command, trio_marks: dict[str, str]
) -> None:
    def did(*words: object) -> list[tuple[str, str]]:
        assert command(*words)[0] == 0
        return [(told["action"], told["origin"]) for told in new()]

    typed = "command line"
    assert did("corpus", "add", files["task"]) == [("import", typed)]
    words = ("select", "--task", files["task"].stem, "--domain", files["domain"], "--strategy", "random", "--json")
    assert did(*words, "--output", tmp_path / "S_C.txt") == [("import", typed), ("start", typed), ("export", typed)]
    run_id = facade_runs.listed("select")[0].id
    assert did("export", run_id, "--output", tmp_path / "again.txt") == [("export", typed)]
    waiting = register(
        facade_runs.RECIPES["select"],
        facade_runs.RECIPES["select"].config.parse({**trio_marks, "strategy": "random"}),
        store(),
    ).id
    assert did("runs", "resume", waiting) == [("resume", typed)]
    assert did("runs", "resume", waiting) == []  # it had succeeded
    assert did("runs", "remove", run_id) == [("remove", typed)]
    assert did("corpus", "remove", files["domain"].stem) == [("remove", typed)]
    assert did("corpus", "list") == did("runs", "list") == did("audit") == []
    assert no_name_in(home)


def test_a_run_that_is_cancelled_by_command(
    trio_marks: dict[str, str], new: Log, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = facade_runs.RECIPES["select"].config.parse({**trio_marks, "strategy": "random"})
    run = register(facade_runs.RECIPES["select"], config, store())
    monkeypatch.setattr(launch, "stop", lambda run: run.state())  # nobody is there who would hear it
    with at_work(run):
        assert command("runs", "cancel", run.id, "--json")[0] == 0
    assert new() == [line("cancel", "command line", runs=run.id)]


def test_a_look_counts_once_a_visit_and_corpus(trio_marks: dict[str, str], new: Log) -> None:
    task, domain = trio_marks["task"], trio_marks["domain"]
    facade_corpora.set_role("task", task)
    app = opened("pages/1_Corpora.py")
    assert not app.exception
    assert new() == [line("look", corpora=task)]
    app.run()
    assert new() == []
    facade_corpora.set_role("domain", domain)
    app.run()
    assert new() == [line("look", corpora=domain)]
    opened("pages/1_Corpora.py")
    assert new() == [line("look", corpora=task), line("look", corpora=domain)]  # another visit


def test_a_look_at_a_selection(files: dict[str, Path], new: Log, home: Path) -> None:
    run_id, marks = selection(files, new)
    for page, seen in (("pages/3_Selection.py", ["domain"]), ("pages/4_Explore.py", ["task", "domain"])):
        app = opened_on(page, run_id)
        assert not app.exception
        assert new() == [line("look", corpora=marks[part]) for part in seen]
        app.run()
        assert new() == []
    assert no_name_in(home)


HANDS_OUT = {"board_markdown", "copy_model", "export", "figure_page", "report", "review_log"}
HANDS_NOTHING_OUT = {"take_share", "take_up"}  # a part in a run; a choice


def test_whatever_hands_something_out_writes_a_line() -> None:
    modules = [import_module(f"core.facade.{path.stem}") for path in (ROOT / "core" / "facade").glob("[a-z]*.py")]
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


def test_curves_of_several_runs_are_one_line_that_names_them_all(
    files: dict[str, Path], new: Log, command: Command, tmp_path: Path
) -> None:
    first, marks = selection(files, new)
    second = facade_runs.execute("select", {**marks, "strategy": "random", "budget": "30%"}).id
    new()
    assert command("runs", "curves", first, second, first, "--output", tmp_path / "curves.csv")[0] == 0
    (told,) = new()
    assert (told["action"], told["origin"], told["runs"]) == ("export", "command line", [first, second])
    assert sorted(told["corpora"]) == sorted(marks.values())


def test_a_line_has_time_and_account_and_the_log_is_its_owners_alone(log: Log, home: Path) -> None:
    before = os.umask(0)
    try:
        audit.note_look(["f" * 24])
    finally:
        os.umask(before)
    assert stat.S_IMODE((home / "audit.jsonl").stat().st_mode) == 0o600
    (told,) = log()
    assert datetime.fromisoformat(told["time"]).utcoffset() is not None
    assert told["time"].endswith("Z")
    assert told["uid"] == os.getuid()
    assert told["account"]


def test_a_torn_line_is_survived(log: Log, home: Path) -> None:
    audit.note_look(["a" * 24])
    with (home / "audit.jsonl").open("ab") as file:
        file.write(b'{"time": "2026-')  # its writer was killed
    audit.note_look(["b" * 24])
    assert [told["corpora"] for told in audit.lines()[1]] == [["a" * 24], ["b" * 24]]


def test_two_processes_write_whole_lines(home: Path) -> None:
    program = "from core.facade import audit\nfor i in range(100): audit.note_look([str(i) * 24])"
    workers = [subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) for _ in range(2)]
    assert [worker.wait() for worker in workers] == [0, 0]
    assert len(audit.lines()[1]) == 200
    assert len((home / "audit.jsonl").read_bytes().splitlines()) == 200


def test_the_log_can_be_off_or_in_another_place(
    monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path, command: Command
) -> None:
    monkeypatch.setenv("WINNOW_AUDIT", "off")
    audit.note_look(["f" * 24])
    assert not (home / "audit.jsonl").exists()
    assert json.loads(command("audit", "--json")[1]) == {"log": None, "lines": []}
    monkeypatch.setenv("WINNOW_AUDIT", str(tmp_path / "elsewhere.jsonl"))
    audit.note_look(["f" * 24])
    assert not (home / "audit.jsonl").exists()
    assert audit.lines()[0] == tmp_path / "elsewhere.jsonl"
    assert len(audit.lines()[1]) == 1
    monkeypatch.setenv("WINNOW_AUDIT", "here.jsonl")  # a worker has another working folder
    with pytest.raises(ConfigError, match="WINNOW_AUDIT"):
        audit.note_look(["f" * 24])


def test_without_the_administrators_log_nothing_is_done(
    files: dict[str, Path], new: Log, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run_id, marks = selection(files, new)
    runs, corpora = len(facade_runs.listed()), len(facade_corpora.listed())
    monkeypatch.setenv("WINNOW_AUDIT", str(tmp_path))  # a folder
    actions: list[Callable[[], object]] = [
        lambda: facade_runs.execute("add", {"path": str(files["task"]), "name": "again"}),
        lambda: facade_runs.start("select", {**marks, "strategy": "random", "budget": "30%"}),
        lambda: selections.export(run_id, "20%", [], tmp_path / "S_C.txt"),
        lambda: facade_corpora.remove(marks["domain"]),
        lambda: removals.remove_run(run_id),
        lambda: removals.remove_everything(run_id),
        lambda: facade_runs.resume(run_id),
        lambda: facade_runs.cancel(run_id),
        lambda: audit.note_look([marks["task"]]),
        lambda: facade_corpora.open_sample("legal"),
    ]
    for action in actions:
        with pytest.raises(ResourceError, match="audit log"):
            action()
    assert (len(facade_runs.listed()), len(facade_corpora.listed())) == (runs, corpora)
    assert not (tmp_path / "S_C.txt").exists()
    app = opened_on("pages/4_Explore.py", run_id)
    assert [error.value for error in app.error if "audit log" in error.value]


def test_a_usual_log_that_cannot_be_written_is_a_warning(
    seal: Seal, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mark = seal(["a sentence ."], "mine").fingerprint
    (home / "audit.jsonl").mkdir()
    with caplog.at_level(logging.WARNING):
        facade_corpora.remove(mark)
    assert facade_corpora.listed() == []
    assert "audit log cannot be written" in caplog.text


def test_the_list_is_from_a_day_on_and_keeps_the_terminal_clean(home: Path, command: Command) -> None:
    audit.note_look(["a" * 24])
    with (home / "audit.jsonl").open("ab") as file:
        old = {"time": "2020-01-01T00:00:00.000Z", "uid": 1, "account": "a\x07b\rc", "action": "look", "origin": "page"}
        file.write(json.dumps(old).encode() + b"\n")
    code, out = command("audit")
    assert code == 0
    assert len(out.splitlines()) == 2
    assert "a" * 24 in out
    assert "a\ufffdb\ufffdc" in out
    told = json.loads(command("audit", "--json", "--since", "2021-01-01")[1])
    assert told["log"] == str(home / "audit.jsonl")
    assert [each["corpora"] for each in told["lines"]] == [["a" * 24]]
    assert list(audit_log.lines(home, datetime(2100, 1, 1)))[:1] == []
