"""Fixtures that tests of pages share."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.importing import view as corpora
from core.project_list import shared_home
from core.projects import preferences, runs
from tests.conftest import elsewhere
from tests.full_home import furnish
from tests.homes import Homes, project_in


@pytest.fixture(autouse=True)
def sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test if a page that it draws shows an exception."""
    draw = AppTest._run

    def checked(self: AppTest, *how: Any, **more: Any) -> AppTest:
        app = draw(self, *how, **more)
        assert not app.exception
        return app

    monkeypatch.setattr(AppTest, "_run", checked)


@pytest.fixture
def expert(home: Path) -> None:
    """Show the fields that only experts need."""
    preferences.set_expert(True)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Execute in this process every run that a page starts, before the page continues."""
    monkeypatch.setattr(runs, "start", lambda kind, options, *where, **more: runs.execute(kind, options).id)


@pytest.fixture
def started_runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the list of runs that a page starts, as (kind, options). None of them is executed."""
    started: list[tuple[str, Mapping[str, Any]]] = []

    def start(kind: str, options: Mapping[str, Any], *where: object, **more: object) -> str:
        started.append((kind, options))
        return ""

    monkeypatch.setattr(runs, "start", start)
    return started


def build_furnished(home: Path) -> dict[str, str]:
    """Build a home with content on every page. Return {page: its run, or ""}."""
    return {page: address.partition("?run=")[2] for page, address in furnish(home).items()}


@pytest.fixture(scope="session")
def filled_home(homes: Homes, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Return a home with content on every page, which tests must not change, and {page: its run, or ""}."""
    home = project_in(tmp_path_factory.mktemp("furnished") / "home")
    return home, homes.copy(build_furnished, home)


@pytest.fixture(scope="session")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """`copied(home)` -> the project in a copy of a prepared home. home: its project."""

    def copy(home: Path) -> Path:
        return project_in(Path(shutil.copytree(shared_home(home), tmp_path_factory.mktemp("copied") / "home")))

    return copy


@pytest.fixture(scope="session")
def home_without_corpora(
    filled_home: tuple[Path, dict[str, str]], copied: Callable[[Path], Path]
) -> tuple[Path, dict[str, str]]:
    """Return a home that has all its runs but no corpora."""
    with elsewhere(copied(filled_home[0])) as home:
        for corpus in corpora.listed():
            corpora.remove(corpus.fingerprint)
    return home, filled_home[1]
