"""Tables that a browser can save as CSV by a button of Streamlit's own: no cell of that file is a formula."""

from pathlib import Path

from streamlit.testing.v1 import AppTest

from core.corpora.writers import harmless

ROOT = Path(__file__).resolve().parents[2]
COMPUTED = ("=", "+", "-", "@", "\t", "\r")


def script() -> None:
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
    app = AppTest.from_function(script, default_timeout=300).run()
    table = app.dataframe[0].value
    cells = [str(cell) for name in ("text", "flags") for cell in table[name]]
    assert not [part for cell in cells for part in cell.split(";") if part.lstrip(" ").startswith(COMPUTED)]
    assert table["text"][7] == "a plain one"
    assert table["score"][0] == -0.5
    assert table["text"][0] == harmless("=cmd|'/c calc'!a0")
