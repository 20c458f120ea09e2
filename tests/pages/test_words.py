"""The words of the subject: what they mean beside every page's heading, and the switch for what experts need."""

import re
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


OTHER_WORDS = re.compile(
    r"\b(task corpus|domain corpus|large corpus|text of (?:your|the) task|task's text|(?:dev|test|training) split)\b",
    re.IGNORECASE,
)


def walked(node: Any) -> Iterator[Any]:
    """A block of a page and all that is in it."""
    yield node
    for child in getattr(node, "children", {}).values():
        yield from walked(child)


def names(app: AppTest) -> Iterator[str]:
    """Labels, headings, buttons, tabs and helps of a page."""
    for node in (*walked(app.main), *walked(app.sidebar)):
        proto = getattr(node, "proto", None)
        kinds = ("expandable", "tab", "popover") if type(node).__name__ == "Block" else ()
        for part in (proto, *(getattr(proto, kind, None) for kind in kinds)):
            yield from (str(getattr(part, name, "")) for name in ("label", "help"))
        if getattr(node, "type", "") in ("title", "header", "subheader"):
            yield str(node.value)


def without_word(text: str) -> list[str]:
    """Symbols that a text has and not their words."""
    return [
        term.symbol
        for term in terms.TERMS
        if re.search(rf"(?<!\w){re.escape(term.symbol or '-' * 9)}(?!\w)", text) and term.word not in text.lower()
    ]


def test_a_symbol_without_its_word_is_seen_and_so_is_another_word() -> None:
    assert without_word("Look at S_C and L_C train") == ["S_C", "L_C", "L_C train"]
    assert not without_word("Labels to learn from :gray[L_C train], the task text and its score (F1), warm")
    assert OTHER_WORDS.search("Its test split")
    assert not OTHER_WORDS.search("The task text")


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    with elsewhere(tmp_path_factory.mktemp("furnished")) as home:
        return home, furnish(home)


@pytest.mark.parametrize("shown", [False, True], ids=["usual", "expert"])
@pytest.mark.parametrize("page", PAGES)
def test_labels_headings_buttons_and_helps_say_the_plain_word(
    furnished: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch, page: str, shown: bool
) -> None:
    home, addresses = furnished
    monkeypatch.setenv("WINNOW_HOME", str(home))
    preferences.set_expert(shown)
    app = AppTest.from_file(str(ROOT / "home.py"), default_timeout=300).run()
    if page != "home.py":
        run = addresses[Path(page).stem.split("_", 1)[1]].partition("?run=")[2]
        app = app.switch_page(page)
        app.query_params.update({"run": run} if run else {})
        app.run()
    assert not app.exception
    said = [text for text in names(app) if text]
    assert len(said) > 10
    assert not {text: symbols for text in said if (symbols := without_word(text))}
    assert not [text for text in said if OTHER_WORDS.search(text)]
