"""A comparison in a browser: from files to a matrix, a download, a reload."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.corpora.library import Library
from core.importing import view as corpora
from tests.browser.driver import Server, settled
from tests.conftest import sentence
from tests.planted import contracts, kitchen

LONG = "what was cooked and eaten in the kitchen of the house by the sea every summer"  # 76 characters


@pytest.mark.road
def test_a_comparison_runs_and_shows_its_matrix(server: Server, page: Page, home: Path) -> None:
    for name, lines in {"law": contracts(300, 2) * 4, LONG: kitchen(300) * 4, "my-task": contracts(60, 1)}.items():
        Library(home).seal(map(sentence, lines), name=name, origin={})
    corpora.set_role("task", "my-task")
    assert home == server.project
    page.goto(f"{server.url}/Similarity")
    settled(page)
    page.get_by_role("button", name="Compare", exact=True).click()
    matrix = page.get_by_role("table", name="Similarity of each source to my-task")
    expect(matrix).to_contain_text("closest", timeout=600_000)
    expect(matrix).to_contain_text("lower is closer")
    expect(page.get_by_text("law is closest to my-task")).to_be_visible()
    expect(page.get_by_test_id("stPlotlyChart")).to_have_count(2)  # bars and size curve
    with page.expect_download() as caught:
        page.get_by_role("button", name="Table (.csv)").click()
    assert Path(caught.value.path()).read_text(encoding="utf-8-sig").startswith("target,source,measure,value")
    page.reload()
    expect(matrix).to_be_visible()
