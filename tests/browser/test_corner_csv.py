"""Saving a table as CSV with Streamlit's own button in its corner: no cell is a formula."""

import csv
from pathlib import Path

import pytest
from playwright.sync_api import Page

from core.corpora.library import Library
from core.projects import runs
from core.text.sentence import Entity, Sentence, sentence_id
from tests.browser.driver import Server, settled

COMPUTED = ("=", "+", "-", "@", "\t", "\r")
FORMULAS = ("=cmd()", "@sum(1)", "+1+cmd()", "-2+3", "plain")


def spoken(name: str, kind: str) -> Sentence:
    """Return a sentence whose first token is an entity."""
    tokens = (name, "came", "again", ".")
    text = " ".join(tokens)
    return Sentence(id=sentence_id(text), tokens=tokens, text=text, entities=(Entity(start=0, end=1, type=kind),))


def test_a_table_saved_from_its_corner_holds_no_formula(
    server: Server, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    library = Library(server.project)
    marks = [
        library.seal(
            [spoken("Ada", "PER"), *(spoken(name, kind) for name in FORMULAS)],
            name=f"={where}",
            origin={},
            labelled=True,
        ).fingerprint
        for where, kind in (("here", "PER"), ("there", "=ORG()"))
    ]
    run = runs.execute("skl", {"primary": marks[0], "assisting": marks[1]})
    page.add_init_script("delete window.showSaveFilePicker")  # a system dialog, which no test can answer
    page.goto(f"{server.url}/Assisting?run={run.id}")
    settled(page)
    page.get_by_role("tab", name="Which entities drift").click()
    settled(page)
    page.locator("[data-testid=stDataFrame]:visible").hover()
    corner = page.locator("[data-testid=stElementToolbar]:visible")
    with page.expect_download() as caught:
        corner.get_by_role("button", name="Download as CSV").dispatch_event("click")  # at any mouse position
    with Path(caught.value.path()).open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 2 + len(FORMULAS)
    cells = [cell for row in rows for cell in row]
    assert {f"'{name}" for name in FORMULAS if name != "plain"} <= set(cells)
    assert [cell for cell in cells if cell.lstrip(" ").startswith(COMPUTED)] == []
