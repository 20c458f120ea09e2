"""A run on two nodes of a cluster, started, watched, cancelled and resumed from the page."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest
from playwright.sync_api import Page, expect

from core.importing import view as corpora
from core.projects import runs
from tests.browser.driver import Server, asking, settled
from tests.browser.test_app import press
from tests.browser.test_progress_browser import PANEL, texts
from tests.clusters import token, two_nodes

pytestmark = [
    pytest.mark.alone,  # the nodes' processes take both cores as they begin
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install -r requirements-cluster.txt"),
]


@pytest.fixture
def cluster() -> Iterator[str]:
    """Start two nodes, with their token in the environment that the server inherits."""
    with token(), two_nodes() as (cluster, _):
        yield cluster


def test_a_run_on_two_nodes_is_begun_seen_cancelled_and_resumed(
    cluster: str, server: Server, page: Page, lines: Callable[[int, int], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    for role, n in (("domain", 60_000), ("task", 400)):
        corpora.set_role(role, texts(server.home, role, lines(n, n)).fingerprint)
    page.goto(server.url + "/Selection")
    settled(page)
    strategy = page.get_by_role("combobox", name="Strategy").first
    strategy.click()
    strategy.fill("ngram")
    asking(page, page.get_by_role("option", name="ngram-perplexity").first.click)
    place = page.get_by_role("combobox", name="Where").first
    place.click()
    place.fill(cluster)
    place.press("Enter")
    press(page, "Score and select")
    panel = page.locator(PANEL)
    expect(panel.get_by_text("2 machines, 2 cores")).to_be_visible()
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_text("Stopped at your request")).to_be_visible()
    settled(page)
    [run] = runs.listed("select")
    assert (run.state().state, runs.place(run.id).on) == ("cancelled", cluster)
    expect(page.get_by_role("combobox", name="Where").last).to_have_value(f"the cluster at {cluster[4:]}")
    press(page, "Resume")
    expect(page.get_by_role("button", name="Download", exact=True)).to_be_visible()
    expect(panel.get_by_text("Finished")).to_be_visible()
    expect(panel.get_by_text("2 machines, 2 cores")).to_be_visible()
    assert [node.workers for node in runs.place(run.id).nodes] == [0, 0]
    assert sum(node.chunks for node in runs.place(run.id).nodes) >= 60_000 // 8192  # of duplicates alone
    there, options = runs.get(run.id).result(), dict(run.manifest.config)
    elsewhere = server.home.with_name("elsewhere")
    monkeypatch.setenv("WINNOW_HOME", str(elsewhere))
    for role, n in (("domain", 60_000), ("task", 400)):
        texts(elsewhere, role, lines(n, n))
    assert runs.execute("select", options).result()["corpus"] == there["corpus"]  # S_C, by its content
