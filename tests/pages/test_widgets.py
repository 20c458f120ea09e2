"""Parts that all pages share: buttons, text that is shown as it is, tables, and fields."""

import gc
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.corpora.corpus import Corpus
from core.corpora.writers import harmless
from core.importing import view as corpora
from core.project_list import shared_home
from pages.ui import frame
from pages.ui.training.parts import several
from pages.ui.widgets import corpus_picker, plain
from tests.conftest import Seal
from tests.pages.drawing import CORPORA, NASTY, opened, press, texts

COMPUTED = ("=", "+", "-", "@", "\t", "\r")  # first characters of a formula
Named = Callable[[str], str]


def test_button_press_survives_an_earlier_rerun() -> None:
    def script() -> None:
        import streamlit as st

        from pages.ui.widgets import forget_presses, pressed

        if st.session_state.pop("overtake", False):
            st.rerun()  # a changed field also reruns before the button is drawn
        if st.session_state.get("wrong"):
            st.error("A field is wrong.")
        elif pressed("Go", "go"):
            st.session_state["started"] = st.session_state.get("started", 0) + 1
        forget_presses("")

    app = AppTest.from_function(script, default_timeout=300).run()
    app.session_state["overtake"] = True
    press(app, "go")
    app.run()
    assert app.session_state["started"] == 1
    app.session_state["wrong"] = True
    press(app, "go")
    app.session_state["wrong"] = False
    app.run()
    assert app.session_state["started"] == 1  # a press that an error stopped does not act later


def test_form_press_survives_an_earlier_rerun_and_the_end_of_a_fragment() -> None:
    def script() -> None:
        import streamlit as st

        from pages.ui.frame import guard
        from pages.ui.widgets import pressed, submitted

        @st.fragment
        def first() -> None:
            with guard(buttons="first."):
                pressed("First", "first.go")

        first()
        if st.session_state.pop("overtake", False):
            st.rerun()
        with st.form("asked"):
            typed = st.text_input("Name", key="name")
            sent = submitted("Send", "second.send")
        if sent:
            st.session_state["sent"] = [*st.session_state.get("sent", []), typed]

    app = AppTest.from_function(script, default_timeout=300).run()
    app.session_state["overtake"] = True
    app.text_input(key="name").input("Mary")
    press(app, "second.send")
    app.run()
    assert app.session_state["sent"] == ["Mary"]


def test_bug_is_shown_neutrally_and_logged_with_its_exception(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setattr(frame, "logger", logging.getLogger("winnow.pages.test"))
    monkeypatch.setattr(corpora, "listed", lambda: 1 / 0)
    app = opened(CORPORA)
    assert len(app.error) == 1
    assert "ZeroDivisionError" not in texts(app)
    assert "ZeroDivisionError" in (shared_home(home) / "app.log").read_text(encoding="utf-8")


def test_plain_escapes_all_markup() -> None:
    escaped = plain(NASTY + " :smile: www.evil.example https://evil.example a -> b\n# heading")
    assert not set(escaped) & set("<>[]()*_`$:#!@~|\\\n") - set("#")
    assert all(escaped[i - 1] == "&" for i, sign in enumerate(escaped) if sign == "#")
    assert "www." not in escaped.replace("&#46;", ".")


def draw_grid() -> None:
    from pages.ui.widgets import grid

    grid(
        {
            "text": [
                "=cmd|'/c calc'!a0",
                "@SUM(1)",
                "+1",
                "-1+1",
                "\tx",
                "\r=1",
                "pays ;=1+1; ends",
                "a plain one",
                None,
            ],
            "score": [-0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
            "flags": ["", "too short", "=x", "", "", "", "", "", ""],
        },
        hide_index=True,
    )


def test_no_cell_of_a_grid_is_a_formula() -> None:
    app = AppTest.from_function(draw_grid, default_timeout=300).run()
    table = app.dataframe[0].value
    cells = [str(cell) for name in ("text", "flags") for cell in table[name]]
    assert not [part for cell in cells for part in cell.split(";") if part.lstrip(" ").startswith(COMPUTED)]
    assert table["text"][7] == "a plain one"
    assert table["score"][0] == -0.5
    assert table["text"][0] == harmless("=cmd|'/c calc'!a0")


def held(by: Iterable[object], steps: int) -> list[object]:
    """Return the objects that `by` refers to in at most `steps` steps, without modules and classes."""
    found, at = list[object](), list(by)
    for _ in range(steps):
        at = [each for each in gc.get_referents(*at) if not isinstance(each, type) and not hasattr(each, "__file__")]
        at = [each for each in at if not (isinstance(each, dict) and "__name__" in each)]
        found += at
    return found


def test_fields_of_an_open_tab_keep_names_but_no_corpora(seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit forgets a field only when its tab closes. After an hour of runs, an app held 27,776 corpora in memory."""
    kept = list[Named]()

    def field(label: str, options: list[str], *more: object, format_func: Named, **others: object) -> str:
        kept.append(format_func)
        return " ".join(map(format_func, options))

    monkeypatch.setattr(st, "selectbox", field)
    monkeypatch.setattr(st, "multiselect", field)
    seal(["One sentence of it."], "contracts")
    assert str(corpus_picker("Corpus", "test.corpus", None)).startswith("contracts (1 ")
    assert "".join(several("Corpora", "test.corpora", "")).startswith("contracts (1 ")
    assert not [each for each in held(kept, 4) if isinstance(each, Corpus)]
