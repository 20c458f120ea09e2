"""Projects in the app: no page shows data of another project; and the project menu."""

import errno
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from core import shown_command as commands
from core.importing import view as corpora
from core.paths import home as here
from core.paths import within
from core.project_list import FIRST, shared_home
from core.projects import preferences, runs
from core.projects import view as projects
from pages.ui import project as module
from tests.conftest import ROOT, elsewhere
from tests.finished import as_running
from tests.pages.drawing import audit, opened, press, seen, texts

PAGES = ["home.py", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "pages").glob("*.py"))]
Ids = dict[str, str]


@pytest.fixture(scope="module")
def two(filled_home: tuple[Path, dict[str, str]], copied: Callable[[Path], Path]) -> Iterator[tuple[Path, Ids]]:
    """Yield a home with "My first project", which has finished runs, and the empty "Leases"; and {page: run}."""
    with elsewhere(copied(filled_home[0])) as home:
        for number, corpus in enumerate(corpora.listed()):
            corpora.rename(corpus.fingerprint, f"quillwort-{number}")  # a name that no page contains
        projects.new("Leases")
        yield home, filled_home[1]


@pytest.fixture
def ids(two: tuple[Path, Ids], monkeypatch: pytest.MonkeyPatch) -> Ids:
    monkeypatch.setenv("WINNOW_HOME", str(shared_home(two[0])))
    return two[1]


def of_links(app: AppTest) -> set[str]:
    """Return the projects in the addresses of a page's links."""
    return {parse_qs(link.proto.query_string)["project"][0] for link in app.get("page_link")}


PICTURE = re.compile(r"data:image/webp;base64,[\w+/=]+")


def whole(app: AppTest) -> str:
    """Return everything that is sent to a browser, without pictures, which show the bundled sample."""
    parts = (getattr(part, "proto", None) for part in app._tree.root)  # a list of element types could miss one
    return PICTURE.sub("", "\n".join(map(str, parts)))


def marks() -> set[str]:
    """Return names and ids that occur only in "My first project"."""
    with within("my-first-project"):
        names = {corpus.name for corpus in corpora.listed()} | {run.id for run in runs.listed()}
        return names | {corpus.fingerprint for corpus in corpora.listed()}


@pytest.mark.parametrize("page", PAGES)
def test_no_page_shows_what_another_project_has(page: str, ids: Ids) -> None:
    named = {"run": run_id} if (run_id := ids.get(Path(page).stem.partition("_")[2])) else {}
    leases = opened(page, None, project="leases", **named)
    allowed = set(named.values())  # the run in the address, which the page reports as missing
    assert [mark for mark in marks() - allowed if mark in whole(leases)] == []
    links = [link.proto.query_string for link in leases.get("page_link")]
    assert len(links) > 9
    assert all("project=leases" in link for link in links), links


def test_address_without_a_project_opens_the_one_shown_last(ids: Ids) -> None:
    for slug in ("my-first-project", "leases"):
        opened("home.py", project=slug)
        assert of_links(opened("pages/1_Corpora.py")) == {slug}
    projects.archive("leases")
    assert of_links(opened("home.py")) == {"my-first-project"}
    projects.archive("leases", archived=False)


def test_project_of_a_run_or_of_the_environment_overrides_the_one_shown_last(
    ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened("home.py", project="leases")
    assert of_links(opened("pages/5_Training.py", run="20260101-000000-finetune-0000")) == {"my-first-project"}
    monkeypatch.setenv("WINNOW_PROJECT", "my-first-project")
    assert of_links(opened("home.py")) == {"my-first-project"}


def test_page_is_shown_on_a_full_disk(ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(preferences, "write_atomic", full)
    for slug in ("leases", "my-first-project"):
        assert of_links(opened("home.py", project=slug)) == {slug}


def test_run_of_another_project_is_only_counted(ids: Ids) -> None:
    with within("my-first-project"):
        run = runs.get(audit(corpora.roles()["task"]))
    with as_running(run):
        leases = opened("pages/3_Selection.py", project="leases")
        assert "1 run running in another project" in texts(leases)
        assert FIRST not in texts(leases)
        assert run.id not in whole(leases)
        first = opened("pages/3_Selection.py", project="my-first-project")
        assert "running in" not in texts(first)
        assert [
            mark for mark in marks() if mark in whole(first)
        ]  # the marks that must not appear in another project appear here


def test_address_of_an_unknown_project_lists_the_projects(ids: Ids) -> None:
    app = opened("pages/1_Corpora.py", project="nope")
    page_text = seen(app)
    assert "There is no project 'nope'. Projects: My first project, Leases." in page_text
    assert "Corpora" in [link.proto.label for link in app.sidebar.get("page_link")]
    assert "Leases" in app.error[0].value
    assert '<a href="/?project=leases">Leases</a>' in texts(app)
    assert not app.title


def test_typed_text_is_forgotten_when_the_project_changes(ids: Ids) -> None:
    app = opened("home.py", {"results.try.text": "The patient Ada Quill"}, project="my-first-project")
    assert "results.try.text" in app.session_state
    app.query_params["project"] = "leases"
    app.run()
    assert "results.try.text" not in app.session_state


def test_download_comes_from_the_project_that_offered_it(ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    with within("leases"):
        work = module.later(here)
    got: list[Path] = []
    thread = Thread(target=lambda: got.append(work()))
    thread.start()
    thread.join()
    assert got == [projects.find("Leases").folder]


@pytest.fixture
def opened_addresses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of addresses that a window is sent to."""
    addresses: list[str] = []
    monkeypatch.setattr(module, "_go", lambda data, **look: addresses.append(data["address"]))
    return addresses


def menu(**query: str) -> AppTest:
    """Draw Home with the project menu open."""
    return opened("home.py", {"project.menu": True}, **query)


def test_new_project_is_opened_and_shares_nothing_with_the_first(
    home: Path, seal: Any, opened_addresses: list[str]
) -> None:
    seal(["One clause ."], "quillwort")
    app = menu()
    app.text_input(key="project.new.name").set_value("Leases & <b>more</b>")
    press(app, "project.new")
    assert opened_addresses == ["/?project=leases-b-more-b"]
    assert [project.name for project in projects.listed()] == [FIRST, "Leases & <b>more</b>"]
    assert "&lt;b&gt;more" in texts(menu())
    again = menu(project="leases-b-more-b")
    assert "quillwort" not in whole(again)
    again.text_input(key="project.new.name").set_value(FIRST)
    assert "exists already" in press(again, "project.new").error[0].value.replace("&#58;", ":")


def test_project_is_renamed_archived_and_restored(home: Path) -> None:
    projects.new("Leases")
    projects.new("Rentals")
    app = menu(project="leases")
    app.text_input(key="project.name").set_value("Contracts")
    press(app, "project.rename")
    assert projects.find("Contracts").slug == "leases"
    press(menu(project="leases"), "project.archive")
    assert projects.find("Contracts").archived
    page_text = texts(menu())
    assert page_text.index("Archived") < page_text.index("Contracts")
    press(menu(project="leases"), "project.unarchive")
    assert not projects.find("Contracts").archived


def test_the_menu_changes_the_shown_project_if_another_one_is_called_like_its_slug(home: Path) -> None:
    projects.new("Leases")
    projects.rename("Leases", "Leases 2026")
    other = projects.new("leases").folder
    app = menu(project="leases")
    app.text_input(key="project.name").set_value("Old leases")
    press(app, "project.rename")
    press(menu(project="leases"), "project.archive")
    shown = projects.find("Old leases")
    assert (shown.slug, shown.archived) == ("leases", True)
    assert (projects.find("leases").folder, projects.find("leases").archived) == (other, False)


def test_export_states_the_size_of_the_models_and_gives_a_command_if_too_large(
    home: Path, seal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = seal(["One clause ."], "clauses").fingerprint
    run = runs.get(audit(mark))
    (run.path / "artifacts" / "model").mkdir()
    (run.path / "artifacts" / "model" / "model.safetensors").write_bytes(b"w" * 3_000_000)
    app = menu()
    assert app.toggle(key="project.weights").label == "Export with its models and vectors (1: 3 MB)"
    assert [button.proto.label for button in app.get("download_button")] == ["Export"]
    monkeypatch.setattr(module, "ZIP_LIMIT", 1_000_000)
    app.toggle(key="project.weights").set_value(True).run()
    assert not app.get("download_button")
    assert "project export 'My first project' --output my-first-project.zip --with-weights" in app.code[0].value


def test_command_names_the_project_unless_it_is_the_default(ids: Ids) -> None:
    assert commands.command("add", {"path": "x.txt"}) == "python -m core corpus add x.txt"
    with within("leases"):
        assert commands.command("add", {"path": "x.txt"}) == "python -m core --project Leases corpus add x.txt"
