"""The words of the subject: what they mean beside every page's heading, and the switch for what experts need."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.facade import preferences, terms
from tests.conftest import elsewhere
from tests.furnished import furnish
from tests.pages.test_pages import ROOT, opened

PAGES = ("home.py", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "pages").glob("*.py"))))


@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_what_its_words_mean_and_where_the_switch_is(home: Path, page: str) -> None:
    app = opened(page)
    assert [popover for popover in app.get("popover") if popover.proto.popover.label == "Words"]
    assert [toggle.label for toggle in app.sidebar.toggle] == ["Expert"]
    assert not app.sidebar.toggle[0].value


def test_words_have_one_meaning_each() -> None:
    for name in ("word", "meaning"):
        values = [getattr(term, name) for term in terms.TERMS]
        assert all(values)
        assert len(set(values)) == len(values)
    symbols = [term.symbol for term in terms.TERMS if term.symbol]
    assert len(set(symbols)) == len(symbols)
    assert terms.TASK.title == "Task text"
    assert terms.TASK.named == "Task text (T_C)"
    assert terms.TAGGER.named == "Tagger"
    assert [terms.plainly(name) for name in ("T_C", "D_C", "S_C", "L_C")] == [
        "task text",
        "big corpus",
        "choice",
        "labels",
    ]
    assert terms.plainly("selected") == "selected"


def test_the_switch_is_kept_for_all_projects_and_a_spoilt_file_is_off(home: Path) -> None:
    assert not preferences.expert()
    app = opened("home.py")
    app.sidebar.toggle[0].set_value(True).run()
    assert not app.exception
    assert preferences.expert()
    assert (home / preferences.PREFERENCES_FILE).is_file()
    for page in ("home.py", "pages/3_Selection.py"):
        assert opened(page).sidebar.toggle[0].value
    again = opened("home.py").sidebar.toggle[0].set_value(False).run()
    assert not again.exception
    assert not preferences.expert()
    (home / preferences.PREFERENCES_FILE).write_text('{"expert": "yes"')
    assert not preferences.expert()
    assert not opened("home.py").sidebar.toggle[0].value
    (home / preferences.PREFERENCES_FILE).write_text('{"expert": "yes"}')
    assert not preferences.expert()
    preferences.set_expert(True)
    assert preferences.expert()


def walked(node: Any) -> Iterator[Any]:
    """Yield a block of a page and everything in it."""
    yield node
    for child in getattr(node, "children", {}).values():
        yield from walked(child)


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    with elsewhere(tmp_path_factory.mktemp("furnished")) as home:
        return home, furnish(home)


def shown(home: tuple[Path, dict[str, str]], page: str) -> AppTest:
    """A page with the run that it is about, on a furnished home."""
    app = AppTest.from_file(str(ROOT / "home.py"), default_timeout=300).run()
    if page != "home.py":
        run = home[1][Path(page).stem.split("_", 1)[1]].partition("?run=")[2]
        app = app.switch_page(page)
        app.query_params.update({"run": run} if run else {})
        app.run()
    assert not app.exception
    return app


@pytest.mark.parametrize("page", PAGES)
def test_every_view_of_a_page_is_drawn_for_an_expert(
    furnished: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(furnished[0]))
    preferences.set_expert(True)
    app = shown(furnished, page)
    for id, button in [(row.proto.id, button) for row in buttons(app) for button in row.options]:
        for row in buttons(app):
            if row.proto.id == id:
                row.set_value([button] if isinstance(row.value, list) else button).run()
                assert not app.exception, button
                break


def buttons(app: AppTest) -> list[Any]:
    """The rows of buttons of which one is pressed."""
    return [node for node in walked(app.main) if getattr(node, "type", "") == "button_group"]
