"""The main workflow in a browser: import, select, export, cancel and resume; and the memory of an upload."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core import cards
from core.corpora.library import Library
from core.importing import view as corpora
from core.projects import runs
from core.selection import STRATEGIES
from tests.browser.driver import PAGES, ROOT, Server, Watch, left, loaded, pick, settled, still
from tests.conftest import sentence
from tests.waiting import frozen, until, within

LINKS = 1 + len(list((ROOT / "pages").glob("*.py")))  # Home and every page that exists
NASTY = [
    "<img src=x onerror=alert(1)> is what the clause of the contract says today .",
    "The clause of [the contract](http://evil.example) is :red[void] and costs $x^2$ now .",
]


def option(page: Page, name: str) -> None:
    """Choose one of a row of radio buttons."""
    page.get_by_role("radio", name=name, exact=True).click()


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_a_cold_server_opens_a_deep_link_and_home_for_an_unknown_address(cold: Server, page: Page) -> None:
    page.goto(f"{cold.url}/Corpora")
    expect(page.get_by_role("heading", name="Corpora", exact=True)).to_be_visible()
    settled(page)
    expect(page.get_by_test_id("stSidebar").get_by_role("link")).to_have_count(LINKS)
    page.get_by_test_id("stSidebar").get_by_role("link", name="Selection").click()
    expect(page.get_by_role("heading", name="Selection", exact=True)).to_be_visible()
    settled(page)
    for name, path in PAGES.items():  # each as a deep link, loaded anew
        page.goto(f"{cold.url}/{path}")
        expect(page.get_by_role("heading", level=1)).to_have_text("Winnow" if name == "Home" else name)
        settled(page)
        expect(page.get_by_test_id("stSidebar").get_by_role("link")).to_have_count(LINKS)
    page.goto(f"{cold.url}/nonsense<b>")
    expect(page.get_by_role("heading", name="Winnow", exact=True)).to_be_visible()
    expect(page.get_by_test_id("stAlert")).to_contain_text("There is no page nonsense<b> here")
    settled(page)
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_test_id("stSidebar").get_by_role("link", name="Explore").click()
    expect(page.get_by_role("heading", name="Explore", exact=True)).to_be_visible()
    expect(page.get_by_test_id("stAlert").get_by_text("There is no page")).to_have_count(0)


@pytest.mark.alone
def test_three_clicks_give_a_selection_and_map_and_four_an_experiment(
    cold: Server, fresh_page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(cold.home))
    fresh_page.goto(cold.url)
    settled(fresh_page)
    # Embedding takes most of the time, and twice as long without bf16.
    with within(60 if cards.processor_has_bf16() else 90):
        sample = fresh_page.get_by_role("button", name="Open the legal sample")
        for _ in range(40):  # the first of three clicks, here by keyboard alone
            if sample.evaluate("button => button === document.activeElement"):
                break
            fresh_page.keyboard.press("Tab")
        fresh_page.keyboard.press("Enter")
        press(fresh_page, "Score and select")
        download = fresh_page.get_by_role("button", name="Download", exact=True)
        expect(download).to_be_visible(timeout=600_000)
        settled(fresh_page)
        with fresh_page.expect_download() as caught:
            download.click()
        expect(fresh_page.get_by_text("Withheld from the selection:")).to_be_visible()
        expect(fresh_page.get_by_test_id("stVegaLiteChart")).to_have_count(2)
        press(fresh_page, "See the selection on a map")  # the third click: it leads to the first map
        drawn = fresh_page.get_by_role("figure", name=re.compile("^Map of 7,100 sentences"))
        expect(drawn).to_be_visible(timeout=600_000)
    selected = Path(caught.value.path()).read_text(encoding="utf-8").splitlines()
    assert len(selected) == 660  # a tenth of 6,600
    settled(fresh_page)
    fresh_page.get_by_test_id("stSidebar").get_by_role("link", name="Home", exact=True).click()  # the second click
    press(fresh_page, "Find out")
    press(fresh_page, "Start")
    expect(fresh_page.get_by_text("The experiment is running.")).to_be_visible()
    [experiment] = runs.own("experiment")
    runs.cancel(experiment.id)
    expect(fresh_page.get_by_text("The experiment is running.")).to_have_count(0)


@pytest.mark.road
def test_an_uploaded_file_becomes_a_selection_and_an_export(
    server: Server, page: Page, lines: Callable[[int, int], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    (server.data / "domain.txt").write_text("\n".join([*NASTY, *lines(300, 1)]), encoding="utf-8")
    page.goto(server.url + "/Corpora")
    settled(page)
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(server.data / "domain.txt")
    expect(page.get_by_text(NASTY[0])).to_be_visible()  # the preview, letter by letter
    page.reload()  # the upload is on disk, so it is shown again
    expect(page.get_by_text(NASTY[1])).to_be_visible()
    press(page, "Import")
    use(page, "Import domain", "Domain corpus")
    task = Library(server.project).seal(map(sentence, [*NASTY, *lines(40, 2)]), name="my task", origin={})
    corpora.set_role("task", task.fingerprint)
    page.get_by_test_id("stSidebar").get_by_role("link", name="Selection").click()
    select(page, "ngram-perplexity")
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(2)
    expect(page.get_by_role("cell", name=NASTY[0])).to_be_visible()
    expect(page.get_by_role("cell", name=NASTY[1])).to_be_visible()
    assert page.locator("img[src=x], a[href*='evil.example'], .katex").count() == 0
    settled(page)
    with page.expect_download() as caught:
        press(page, "Download")
    assert Path(caught.value.path()).stat().st_size > 500
    option(page, "folder for datasets")
    press(page, "Export")
    expect(page.get_by_text("Written to:", exact=True)).to_be_visible()
    assert list((server.project / "exports").glob("*/selected.parquet"))


def use(page: Page, title: str, part: str) -> None:
    """Wait until an import has finished, and assign a role to its corpus."""
    expect(page.locator(".st-key-corpora-run-panel").get_by_text(title, exact=True)).to_be_visible()
    expect(page.get_by_text("Use it as")).to_be_visible()
    settled(page)
    option(page, part)
    expect(page.get_by_role("radio", name=part, exact=True)).to_be_checked()
    settled(page)


def select(page: Page, strategy: str) -> None:
    pick(page, "Strategy", re.compile(strategy), typed=strategy)
    expect(page.get_by_text(STRATEGIES[strategy].summary)).to_be_visible()
    press(page, "Score and select")


@pytest.mark.alone
def test_a_chart_shows_markup_in_an_entity_type_as_text(
    server: Server, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["<img/src=x/onerror=alert(1)>", "<b>PER</b>"]
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    rows = [f"Ann{i} B-{name}\nsleeps O\n\n" for i, name in enumerate(names)]
    (server.data / "labels.conll").write_text("".join(rows), encoding="utf-8")
    added = runs.execute("add", {"path": str(server.data / "labels.conll"), "name": "labels"})
    corpora.set_role("train", added.result()["corpus"])
    page.goto(server.url + "/Corpora")
    settled(page)
    chart, tooltip = page.locator(".stVegaLiteChart").first, page.locator("#vg-tooltip-element")
    for name in names:
        expect(chart.locator("svg text").filter(has_text=name)).to_have_count(1)
    unseen = set(names)
    for bar in chart.locator(".mark-rect.role-mark path").all():
        still(bar)
        bar.hover()
        unseen.discard(until(lambda: next((name for name in unseen if name in tooltip.inner_text()), ""), "a tooltip"))
    assert not unseen
    assert page.locator("img[src=x], .stVegaLiteChart b, #vg-tooltip-element b").count() == 0


@pytest.mark.road
def test_a_run_outlives_page_and_server_and_can_be_cancelled_and_resumed(
    server: Server, page: Page, lines: Callable[[int, int], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    for role, n in (("domain", 30_000), ("task", 400)):
        corpora.set_role(
            role, Library(server.project).seal(map(sentence, lines(n, n)), name=role, origin={}).fingerprint
        )
    page.goto(server.url + "/Selection")
    settled(page)
    select(page, "ngram-perplexity")
    panel = page.locator(".st-key-selection-run-panel")
    with frozen(until(lambda: selecting(server.project), "a worker begins")):
        expect(panel.get_by_text("Running")).to_be_visible()
        page.reload()
        expect(panel.get_by_text("Running")).to_be_visible()
        loaded(page)
        server.stop()
        server.start()
        page.goto(server.url + "/Selection")  # without the run's id in the address
        with within(3):
            expect(panel.get_by_text("Running")).to_be_visible()
        press(page, "Cancel")
        expect(panel.get_by_text("Stopping")).to_be_visible()
    expect(panel.get_by_text("Cancelled")).to_be_visible()
    expect(page.get_by_text("Stopped at your request")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_have_count(0)
    press(page, "Resume")
    expect(page.get_by_role("button", name="Download", exact=True)).to_be_visible()
    expect(panel.get_by_text("Finished")).to_be_visible()
    assert [run.state().attempts for run in runs.listed("select")] == [2]
    left(page)


def selecting(home: Path) -> int:
    """Return the process id of the select run's worker, or 0 before it has started."""
    for file in home.glob("runs/*-select-*/events.jsonl"):
        if (text := file.read_text()).count("\n"):
            return int(json.loads(text.splitlines()[0])["data"]["pid"])
    return 0


@pytest.mark.alone
def test_the_server_frees_the_memory_of_an_upload(cold: Server, page: Page) -> None:
    line = b"The tenant shall pay the rent on the first day of every month, and the landlord shall thank him .\n"
    (cold.data / "small.txt").write_bytes(line)
    (cold.data / "large.txt").write_bytes(line * 1_500_000)  # 147 MB
    size = (cold.data / "large.txt").stat().st_size
    page.goto(cold.url + "/Corpora")
    settled(page)
    drop = page.get_by_test_id("stFileUploaderDropzoneInput")
    # The first preview imports libraries, whose memory does not count as the upload's.
    drop.set_input_files(cold.data / "small.txt")
    expect(page.get_by_text("First rows")).to_be_visible()
    press(page, "Take another file")
    expect(drop).to_be_attached()
    settled(page)
    assert cold.process
    with Watch(cold.process.pid) as watch:
        before = watch.now
        drop.set_input_files(cold.data / "large.txt")
        expect(page.get_by_text("First rows")).to_be_visible(timeout=600_000)
        settled(page)
        assert watch.peak - before < 4 / 3 * size  # 300 MB cost 400 at most
        with within(10):
            assert watch.falls(before + size / 3)
