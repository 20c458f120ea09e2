"""The words of the subject: what they mean beside every page's heading, and the switch for what experts need."""

import ast
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.facade import corpora, preferences, terms
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


NO_WORDS = {"id", "key", "form_id", "url", "page_script_hash", "command_line", "icon"}  # fields of a message
NO_TEXT = {"bdata", "template", "ids", "customdata", "src"}  # parts of a figure
INLINE = re.compile(r"</?(?:small|b|mark|span|code|a|em|strong)\b[^>]*>")


def written(app: AppTest) -> Iterator[str]:
    """All that a page says: its text, tables, options, charts and their other words; commands aside."""
    for node in (*walked(app.main), *walked(app.sidebar)):
        if (proto := getattr(node, "proto", None)) is None or node.type == "code":
            continue
        for text in fields(proto):
            plain = html.unescape(text).replace("\u2060", "").replace("\\", "")
            # A table says a cell at a time: a word in another cell explains nothing.
            yield from re.split("<[^>]*>", INLINE.sub(" ", plain)) if node.type == "html" else (plain,)


def fields(message: Any) -> Iterator[str]:
    """Every text in a message, those in JSON too."""
    for field, value in message.ListFields():
        if field.name in NO_WORDS or (field.message_type and field.message_type.GetOptions().map_entry):
            continue
        for each in value if field.is_repeated else [value]:
            if field.message_type:
                yield from fields(each)
            elif isinstance(each, str):
                yield from strings(each)


def strings(value: object) -> Iterator[str]:
    """The texts of a value; of a text that is JSON, those in it."""
    if isinstance(value, str):
        try:
            inner = json.loads(value) if value[:1] in ("{", "[") else None
        except ValueError:
            inner = None
        yield from [value] if inner is None else strings(inner)
    elif isinstance(value, dict):
        yield from (text for name, part in value.items() if name not in NO_TEXT for text in strings(part))
    elif isinstance(value, list):
        yield from (text for part in value for text in strings(part))


def without_word(text: str) -> list[str]:
    """Symbols that a text has and not their words."""
    bare = [
        term.symbol
        for term in terms.TERMS
        if re.search(rf"(?<!\w){re.escape(term.symbol or '-' * 9)}(?!\w)", text) and term.word not in text.lower()
    ]
    return bare + ["dev"] * bool(
        re.search(r"(?<!train, )(?<!train,)(?<!/)\b[Dd]ev\b", text) and "decide by" not in text.lower()
    )


def test_a_symbol_without_its_word_is_seen_and_so_is_another_word() -> None:
    assert without_word("Look at S_C and L_C train") == ["S_C", "L_C", "L_C train"]
    assert not without_word("Labels to learn from :gray[L_C train], the task text and its score (F1), warm")
    assert without_word("Best dev score") == ["dev"]
    assert not without_word("25 GB free in /dev/shm")
    assert OTHER_WORDS.search("Its test split")
    assert not OTHER_WORDS.search("The task text")


# For who trains models with other software, and for who reads the samples' own folder.
CARDS = {"tagger_card.py", "sets.py"}


def sentences(tree: ast.Module) -> Iterator[str]:
    """What a module may say: its texts of four words or more, docstrings aside, blanks in place of what is filled in."""
    aside = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        if id(node) not in aside and all(isinstance(part, ast.Constant | ast.FormattedValue) for part in parts):
            aside |= {id(part) for part in parts}
            texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            if len(" ".join(texts).split()) >= 4:
                yield " ".join(texts)


def test_no_note_help_or_error_has_a_symbol_without_its_word() -> None:
    """They are said by runs and commands, so that no page of a furnished home has to show them."""
    files = [ROOT / "home.py", *(path for part in ("core", "pages") for path in sorted((ROOT / part).rglob("*.py")))]
    bare = {
        (path.name, text): symbols
        for path in files
        if path.name not in CARDS
        for text in sentences(ast.parse(path.read_text(encoding="utf-8")))
        if (symbols := without_word(text))
    }
    assert len(files) > 300
    assert not bare


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


@pytest.mark.parametrize("experts", [False, True], ids=["usual", "expert"])
@pytest.mark.parametrize("page", PAGES)
def test_all_that_a_page_says_has_the_plain_word(
    furnished: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch, page: str, experts: bool
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(furnished[0]))
    preferences.set_expert(experts)
    app = shown(furnished, page)
    labels = [text for text in names(app) if text]
    assert len(labels) > 10
    assert not [text for text in labels if OTHER_WORDS.search(text)]
    own = re.compile("|".join(re.escape(corpus.name) for corpus in corpora.listed()))  # what a user calls a corpus
    assert not {text for text in written(app) if without_word(own.sub("", text))}
    # What is behind every button of a row of buttons, one at a time.
    behind = [(row.proto.id, button) for row in buttons(app) for button in row.options] if experts else []
    for id, button in behind:
        for row in buttons(app):
            if row.proto.id == id:
                row.set_value([button] if isinstance(row.value, list) else button).run()
                assert not app.exception
                assert not {text for text in written(app) if without_word(own.sub("", text))}, button
                break


def buttons(app: AppTest) -> list[Any]:
    """The rows of buttons of which one is pressed."""
    return [node for node in walked(app.main) if getattr(node, "type", "") == "button_group"]
