"""Projects share no texts, runs, roles or uploads; they share the device locks and encoders of the machine."""

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from core import audit_log
from core import project_list as projects
from core import work as worker
from core.errors import MissingCorpus, ProjectError, RunError
from core.importing import view as corpora
from core.isolated import Isolated
from core.kind import register
from core.kinds import KINDS
from core.models.offered import kept
from core.paths import given_home, machine_home, within
from core.paths import home as here
from core.project_list import FIRST, LONGEST_NAME
from core.projects import runs
from core.projects import view as facade
from core.projects.home import library
from core.projects.view import unreadable
from core.runs.context import RunContext
from core.runs.lock import Lock
from core.runs.shared import device_lock
from core.runs.store import RunStore
from core.runs.worker import execute
from tests.cli.test_commands import COMMANDS
from tests.conftest import Command, Seal, sentence
from tests.finished import as_running
from tests.homes import done, project_in


@pytest.fixture
def two(home: Path, seal: Seal) -> tuple[Path, Path]:
    """Return the folders of "My first project" with a task corpus, and of "Leases" with a corpus without a role."""
    corpora.set_role("task", seal(["The tenant pays ."], "tenants").fingerprint)
    leases = facade.new("Leases").folder
    with within("leases"):
        library().seal([sentence("The landlord repairs .")], name="landlords", origin={})
    return home, leases


def test_every_command_uses_the_named_project(
    two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    seen: list[Path] = []
    for name, known in COMMANDS.items():
        monkeypatch.setattr(known, "params", [])
        monkeypatch.setattr(known, "callback", lambda: seen.append(here()))
        assert command("--project", "leases", *name.split())[0] == 0
        assert command(*name.split())[0] == 0
        with monkeypatch.context() as patch:
            patch.setenv("WINNOW_PROJECT", "Leases")
            assert command(*name.split())[0] == 0
        first, leases = two
        assert (name, seen[-3:]) == (name, [leases, first, leases])
        if not name.startswith("project "):  # these may create the project
            code, _, err = command("--project", "Nope", *name.split())
            assert (code, err) == (2, "There is no project 'Nope'. Projects: My first project, Leases.\n")
    assert len(seen) == 3 * len(COMMANDS)
    assert "WINNOW_PROJECT" not in os.environ


def test_projects_share_no_corpora_roles_or_runs(two: tuple[Path, Path]) -> None:
    assert [corpus.name for corpus in corpora.listed()] == ["tenants"]
    assert corpora.roles()
    with within("leases"):
        assert [corpus.name for corpus in corpora.listed()] == ["landlords"]
        assert not corpora.roles()
        assert Isolated("tests.projects.answering", "ask again", spare=False).ask("this") == str(two[1])
        with pytest.raises(MissingCorpus, match="known: landlords"):
            corpora.find("tenants")
    run_id = done("audit", corpus=corpora.find("tenants").fingerprint)
    with within("leases"), pytest.raises(RunError, match="There is no run"):
        runs.get(run_id)
    with within("9" * 300), pytest.raises(ProjectError, match="Projects: My first project, Leases"):
        here()


def test_a_worker_uses_the_project_of_its_run(
    two: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.txt").write_text("One sentence .\n", encoding="utf-8")
    recipe = KINDS["add"]
    run = register(recipe, recipe.config.parse({"path": str(tmp_path / "text.txt")}), RunStore(two[1]))
    monkeypatch.setenv("WINNOW_PROJECT", FIRST)
    monkeypatch.setenv("WINNOW_HOME", str(given_home()))  # restored after the test
    monkeypatch.setattr(sys, "argv", ["work", "work", run.id, "--home", str(run.home)])
    assert worker.main() == 0
    assert (here(), machine_home()) == (two[1], two[1].parent.parent)
    assert {corpus.name for corpus in corpora.listed()} == {"landlords", "text"}
    assert [line["action"] for line in audit_log.lines()] == ["import"]  # one log for all projects
    with pytest.raises(ProjectError, match="is the folder of a single project"):
        facade.new("Another")


def test_device_locks_and_encoders_are_shared_by_all_projects(two: tuple[Path, Path]) -> None:
    def train(context: RunContext) -> dict[str, object]:
        with device_lock(two[0], "cpu", context):
            assert Lock(given_home() / "locks" / "cpu.lock").held()
            with pytest.raises(RunError, match="holds cpu already"), device_lock(two[1], "cpu", context):
                pass
        return {}

    execute(RunStore(two[0]).create("pretrain", {"a": 1}, {}, versions={}, key="k"), train)
    with within("leases"):
        assert kept("any").parent == given_home() / "encoders"


def test_names_of_projects_are_cleaned_and_unique(home: Path) -> None:
    facade.new("  Leases   of\x1b 2026 ")
    assert [project.name for project in facade.listed()] == ["Leases of� 2026"]
    assert facade.new("Mietverträge").slug == "mietvertrage"
    assert facade.new("契約").slug == "project"
    assert facade.new("合同").slug == "project-2"
    for name in ("", "   ", "x" * (LONGEST_NAME + 1)):
        with pytest.raises(ProjectError, match="1 to 60 characters"):
            facade.new(name)
    for name in ("\u200b", "\u2060 \u00ad", "\ufeff\ufe0f", "\u3164"):
        with pytest.raises(ProjectError, match="all characters of this name are invisible"):
            facade.new(name)
    assert facade.new("👩\u200d💻").slug == "project-3"
    facade.remove("project-3")
    with pytest.raises(ProjectError, match="exists already; give another name, such as 'MIETVERTRÄGE 2'"):
        facade.new("MIETVERTRÄGE")
    facade.rename("mietvertrage", "project")  # names take precedence over slugs
    assert facade.find("Project").slug == "mietvertrage"
    assert facade.find("project-2").name == "合同"


def test_the_first_project_is_kept_once_it_has_a_corpus(home: Path, seal: Seal) -> None:
    assert [(project.name, project.folder) for project in facade.listed()] == [(FIRST, home)]
    assert not facade.several()
    facade.new("Empty")
    assert [project.name for project in facade.listed()] == ["Empty"]
    seal(["One ."], "kept")
    assert [project.name for project in facade.listed()] == [FIRST, "Empty"]
    assert facade.rename(FIRST, "Leases").folder == home
    assert facade.current() == facade.usual() == facade.find("Leases")
    assert [corpus.name for corpus in corpora.listed()] == ["kept"]


def test_a_project_outside_the_folder_of_projects_is_refused(home: Path, command: Command) -> None:
    (given_home() / "corpora").mkdir(parents=True)
    code, out, err = command("corpus", "list")
    assert (code, out) == (2, "")
    assert err == (
        f"{given_home()}: contains corpora of a project of version 0.4, which later versions expect in "
        "projects/my-first-project; move all of them there.\n"
    )


def test_a_child_run_counts_as_running_only_if_its_parent_does_not_run(two: tuple[Path, Path]) -> None:
    with within("my-first-project"):
        run = runs.get(done("audit", corpus=corpora.find("tenants").fingerprint))
        child = RunStore(here()).create("embed", {"corpus": "tenants"}, {}, versions={}, key="k", parent=run.id)
        for held, shown in (((run, child), run), ((child,), child)):
            with ExitStack() as stack:
                for each in held:
                    stack.enter_context(as_running(each))
                assert [each.id for each in runs.at_work()] == [shown.id]
                with within("leases"):
                    assert facade.at_work() == {FIRST: 1}


def test_a_removed_project_leaves_only_its_entry_in_the_audit_log(two: tuple[Path, Path], command: Command) -> None:
    facade.archive(FIRST)
    assert facade.usual().name == facade.current().name == "Leases"
    done("audit", corpus="landlords")
    with within("my-first-project"):
        assert [corpus.name for corpus in corpora.listed()] == ["tenants"]
    facade.archive(FIRST, archived=False)
    assert facade.current().name == FIRST
    mark = corpora.find("tenants").fingerprint
    run = runs.get(done("audit", corpus=mark))
    with as_running(run):
        assert not facade.at_work()
        with within("leases"):
            assert facade.at_work() == {FIRST: 1}
        with pytest.raises(RunError, match="a run is still active"):
            facade.remove(FIRST)
    facade.remove(FIRST)
    everything = command("audit")
    assert everything == command("--project", "Leases", "audit")
    assert [line.split()[2] for line in everything[1].splitlines()][-3:] == ["start", "start", "remove"]
    assert "leases" not in everything[1].casefold()
    assert "in all projects" in command("audit", "--help")[1]
    assert [project.name for project in facade.listed()] == ["Leases"]
    assert not two[0].exists()
    assert not [path for path in given_home().rglob("*") if path.is_file() and b"tenant" in path.read_bytes()]
    last = list(audit_log.lines())[-1]
    assert (last["action"], last["corpora"], last["runs"]) == ("remove", [mark], [run.id])
    with within("my-first-project"), pytest.raises(ProjectError, match="Projects: Leases"):
        here()


def test_a_new_project_may_have_the_name_of_a_removed_one(two: tuple[Path, Path]) -> None:
    with within("leases"):
        done("audit", corpus="landlords")
    facade.remove("Leases")
    facade.new("Leases")
    with within("leases"):
        assert not runs.listed()
        mark = library().seal([sentence("The tenant pays .")], name="tenants", origin={}).fingerprint
        done("audit", corpus=mark)
        assert [run.manifest.kind for run in runs.listed()] == ["audit"]
    facade.remove("Leases")


def test_a_damaged_name_hides_no_project(two: tuple[Path, Path], home: Path) -> None:
    for data in (b"", b"[]", b'{"name": 3}', b'{"name": "\\u001b[2K", "archived": "yes"}'):
        (two[1] / projects.ABOUT).write_bytes(data)
        assert [project.slug for project in facade.listed()] in (
            ["leases", "my-first-project"],  # without a date it counts as the oldest
            ["my-first-project", "leases"],
        )
        with within("leases"):
            assert "\x1b" not in facade.current().name
            assert unreadable() == ([two[1] / projects.ABOUT] if data in (b"", b"[]") else [])


def test_projects_are_managed_on_the_command_line(two: tuple[Path, Path], tmp_path: Path, command: Command) -> None:
    file = str(tmp_path / "a new folder" / "first.zip")
    assert command("--project", "Leases", "project", "list")[1] == f"  {FIRST}\n* Leases\n"
    assert command("project", "export", FIRST, "--output", file) == (0, f"{file}\n", "")
    code, _, err = command("project", "export", FIRST, "--output", f"{file}/again.zip")
    assert (code, err) == (2, f"{file}/again.zip: cannot be written (File exists); choose another path.\n")
    code, _, err = command("project", "import", file)
    assert (code, err) == (2, f"project '{FIRST}': exists already; give another name, such as '{FIRST} 2'.\n")
    assert command("project", "import", file, "--name", "Copy")[0] == 0
    assert "tenants" in command("--project", "Copy", "corpus", "list")[1]
    assert command("project", "archive", "copy")[0] == 0
    assert command("project", "list")[1].endswith("  Copy (archived)\n")
    assert command("project", "unarchive", "Copy")[0] == 0
    assert command("project", "rename", "Copy", "Other")[0] == 0
    assert command("--project", "New", "project", "new", "New")[0] == 0
    code, out, err = command("project", "remove", "Other")
    assert (code, out) == (0, "")
    assert "deletes all data in Other" in err
    assert [project.name for project in facade.listed()] == [FIRST, "Leases", "New"]


def test_a_home_in_a_folder_called_projects_is_not_a_project(tmp_path: Path) -> None:
    """The home of Winnow may be in ~/projects/winnow."""
    root = tmp_path / "projects" / "winnow"
    first = project_in(root)
    assert [project.folder for project in projects.listed(root)] == [first]
    assert not projects.is_project(root)
    assert projects.is_project(first)
    assert projects.shared_home(first) == root == projects.shared_home(root)
