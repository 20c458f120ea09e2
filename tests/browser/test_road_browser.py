"""The road on Home as a person goes it: to the answer, and to the first map, in few clicks."""

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from core.facade import experiments, find_out, runs
from tests import finished
from tests.browser.driver import Server, pick, settled

MAPPED = CHOSEN = 600_000  # milliseconds that a map, and a choice before it, may take beside other work


def at_home(server: Server, page: Page) -> None:
    page.goto(server.url)
    settled(page)


def test_find_out_shows_the_plan_first_and_the_road_fills_in_while_it_runs(
    server: Server, page: Page, home: Path
) -> None:
    finished.corpora(home)
    for encoder in ("minilm", "tiny"):  # timed: the person need not wait for it here
        asked = experiments.calibration(find_out.options(encoder=encoder))
        finished.finish(home, "calibrate", asked, lambda _: finished.TIMED)
    at_home(server, page)
    page.get_by_role("button", name="Find out").click()
    expect(page.get_by_text("Your tagger as it is; after reading")).to_be_visible()
    pick(page, "Start from", re.compile("tiny"), typed="tiny")
    page.reload()
    settled(page)
    expect(page.get_by_text("Your tagger as it is; after reading")).to_be_visible()  # the plan is still asked for
    pick(page, "Start from", re.compile("tiny"), typed="tiny")
    for known in (
        r"^It takes about .+ on this machine\.",
        r"It can detect gains of .+ in 80 of 100 cases; .+ in \d+ of 100\.",
    ):
        expect(page.locator(".st-key-home-plan").get_by_text(re.compile(known))).to_be_visible()
    assert not runs.own("experiment")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_text("It is being found out now.")).to_be_visible()
    expect(page.get_by_text(re.compile("of 90 sentences"))).to_be_visible()  # the choice, while the rest goes on
    [experiment] = runs.own("experiment")
    assert experiment.manifest.config["encoder"] == "tiny"
    runs.cancel(experiment.id)
    expect(page.get_by_role("button", name="Find out")).to_be_visible()
    finished.experiment(home, finished.corpora(home), finished.LINES[:2])
    at_home(server, page)
    expect(page.get_by_role("link", name="All figures")).to_be_visible()
    expect(page.get_by_role("button", name="Find out")).to_have_count(0)
    expect(page.get_by_role("button", name="Report (.pdf)")).to_be_visible()


def test_the_sample_is_asked_in_four_clicks_and_mapped_in_three(server: Server, page: Page, home: Path) -> None:
    clicks: list[str] = []

    def click(name: str, role: str = "button") -> None:
        page.get_by_role(role, name=name, exact=True).click()  # type: ignore[arg-type]
        clicks.append(name)
        settled(page)

    at_home(server, page)
    click("Open the legal sample")
    click("Home", "link")
    click("Find out")
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_visible(timeout=CHOSEN)
    click("Start")
    assert len(clicks) <= 4
    expect(page.get_by_text("It is being found out now.")).to_be_visible()
    [experiment] = runs.own("experiment")
    runs.cancel(experiment.id)
    expect(page.get_by_text("It is being found out now.")).to_have_count(0)
    del clicks[1:]
    page.goto(f"{server.url}/Selection")  # where the first click led
    settled(page)
    click("Score and select")
    mapped = page.get_by_role("button", name="See selected and filtered sentences on a map")
    expect(mapped).to_be_visible(timeout=CHOSEN)
    click("See selected and filtered sentences on a map")
    expect(page.locator(".st-key-explore-map .nsewdrag.drag").first).to_be_visible(timeout=MAPPED)
    assert len(clicks) <= 3
