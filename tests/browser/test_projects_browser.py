"""Two projects in one browser: nothing of one shows in the other, searches included; and the finished one that ships."""

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from core.facade import corpora, maps, projects, runs
from core.facade.home import library
from tests.browser.driver import PAGES, Server, settled
from tests.conftest import sentence
from tests.planted import contracts, kitchen


def mapped(name: str, seed: int, more: list[str]) -> str:
    """Texts, a choice and its map in the project that is at work; the choice's run."""
    lines = {"task": contracts(30, seed=seed), "domain": [*contracts(60, seed=seed + 1), *kitchen(60), *more]}
    for role, rows in lines.items():
        corpus = library().seal(map(sentence, rows), name=f"{name} {role}", origin={}, labelled=False)
        corpora.set_role(role, corpus.fingerprint)
    options = {role: corpora.roles()[role] for role in lines}
    select = runs.execute("select", {**options, "encoder": "tiny", "strategy": "knn", "budget": "30"})
    runs.execute("map", maps.options(select.id, clusters=3))
    return select.id


def found(page: Page, word: str) -> None:
    """Search on Explore."""
    page.get_by_label("Search all sentences").fill(word)
    page.keyboard.press("Enter")
    settled(page)


def test_two_projects_are_kept_apart(server: Server, page: Page, home: Path) -> None:
    secret = "The zebrawood clause of Ottersea binds the buyer ."
    first = mapped("Ottersea", 1, [secret])
    page.goto(server.url)
    settled(page)
    page.locator(".st-key-project-menu").get_by_role("button").first.click()
    page.get_by_role("textbox", name="A new project").fill("Leases")
    page.get_by_role("textbox", name="A new project").press("Enter")
    settled(page)
    page.get_by_role("button", name="Make it").click()
    expect(page).to_have_url(re.compile(r"\?project=leases$"))
    with projects.within("leases"):
        second = mapped("Leases", 7, [])
    for path in PAGES.values():
        page.goto(f"{server.url}/{path}?project=leases")
        settled(page)
        said = page.get_by_test_id("stApp").inner_text()
        assert "Ottersea" not in said
        assert first[-4:] not in said
    for run, project, hits in (
        (second, "leases", "No sentence of the domain corpus or the task corpus holds zebrawood."),
        (first, "my-first-project", "1 in the domain corpus and 0 in the task corpus hold zebrawood."),
    ):
        page.goto(f"{server.url}/Explore?run={run}&project={project}")
        settled(page)
        found(page, "zebrawood")
        expect(page.get_by_text(hits)).to_be_visible()
    page.goto(f"{server.url}/Explore?run={first}&project=leases")  # an address of the other's run
    expect(page.get_by_text("This result is not in this project")).to_be_visible()
    expect(page.get_by_text("Ottersea")).to_have_count(0)
