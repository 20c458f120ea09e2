"""The keyboard: it reaches every control, leads through the whole road, and keeps its place when a control disappears."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from core.importing import view as corpora
from core.projects import runs
from tests.browser.driver import Server, asking, settled, visit

ADDRESSES = [
    "",
    "Corpora",
    "Similarity",
    "Selection",
    "Explore",
    "Label",
    "Training",
    "Results",
    "Bias",
    "Assisting",
    "Papers",
    "Runs",
]
COLOURS = "StreamlitSyntaxHighlighter"  # highlights commands: 1.5 MB of script
CONTROLS = """() => [...document.querySelectorAll(
    'button, a[href], input, textarea, select, summary, [role=button], [role=slider], [role=tab], [role=combobox]'
  )].filter(e => e.checkVisibility({visibilityProperty: true, opacityProperty: true}) && !e.disabled
     && !e.closest('[data-testid=stHeader], [data-testid=stToolbar], [data-testid=stElementToolbar], [inert]')
     && e.getAttribute('aria-hidden') !== 'true')
   .map((e, i) => { e.dataset.seen = e.dataset.seen || String(i); return e })"""
# Tab stops once per group of radios, tabs or segments; arrow keys reach the others.
REACHED = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const group = at.closest('[role=radiogroup], [role=tablist]');
  for (const e of group ? group.querySelectorAll('*') : [at]) e.dataset.reached = 'yes';
  return at.outerHTML.slice(0, 80);
}"""


def unreached(page: Page) -> list[str]:
    """Return the controls that Tab, pressed from the top, does not reach."""
    page.evaluate("document.querySelectorAll('[data-reached]').forEach(e => delete e.dataset.reached)")
    n = page.evaluate(f"({CONTROLS})().length")
    page.evaluate("document.activeElement?.blur?.(); window.getSelection().removeAllRanges()")
    for _ in range(0, 2 * n + 20, n + 1):
        for _ in range(n + 1):
            page.keyboard.press("Tab")
            page.evaluate(REACHED)
        if not (missed := _missed(page)):
            break
    return missed


def _missed(page: Page) -> list[str]:
    return page.evaluate(  # type: ignore[no-any-return]
        f"({CONTROLS})().filter(e => !e.dataset.reached && e.tabIndex >= -1 && !e.querySelector('[data-reached]')"
        " && !e.closest('[data-reached]')).map(e => (e.closest('[class*=st-key-]')?.className.match(/st-key-[^ ]*/)?.[0]"
        " || '') + ' ' + e.outerHTML.slice(0, 160))"
    )


def test_the_tab_key_reaches_every_control(server: Server, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    corpora.open_sample("legal")
    page.goto(server.url)
    settled(page)
    for address in ADDRESSES:
        visit(page, address)
        expect(page.get_by_role("heading", level=1)).to_have_text(address or "Winnow")
        assert not unreached(page), f"page {address or 'Home'}"
    page.evaluate("document.querySelector('[data-testid=stSidebar] a[href]').tabIndex = -1")
    assert len(unreached(page)) == 1, "a control out of the Tab key's reach is noticed"


def test_the_syntax_highlighter_is_fetched_when_a_command_is_opened_by_keyboard(
    server: Server, fresh_page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    corpora.open_sample("legal")
    fetched: list[str] = []
    fresh_page.on("request", lambda request: fetched.append(request.url))
    fresh_page.goto(f"{server.url}/Bias")
    settled(fresh_page)
    assert not [url for url in fetched if COLOURS in url]
    opens = fresh_page.locator(".st-key-bias-command summary")
    opens.focus()
    asking(fresh_page, lambda: fresh_page.keyboard.press("Enter"))
    expect(fresh_page.get_by_test_id("stCode")).to_contain_text("python -m core difficulty --train legal-train")
    assert [url for url in fetched if COLOURS in url]
    expect(opens).to_be_focused()
    asking(fresh_page, lambda: fresh_page.keyboard.press("Enter"))
    expect(fresh_page.get_by_test_id("stCode")).to_have_count(0)


def test_focus_stays_near_a_pressed_button_that_disappears(server: Server, page: Page) -> None:
    """Without this, the browser moves the focus back to the top of the page, before the menu."""
    page.goto(server.url)
    settled(page)
    sample = page.get_by_role("button", name="Open the legal sample")
    sample.focus()
    asking(page, lambda: page.keyboard.press("Enter"))
    expect(sample).to_have_count(0)
    expect(page.get_by_role("heading", level=1, name="Selection")).to_be_focused()  # not a button of the new page
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Words")).to_be_focused()
    visit(page, "Corpora")
    (server.data / "lines.txt").write_text("One line.\nAnother line.\n", encoding="utf-8")
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(server.data / "lines.txt")
    discard = page.get_by_role("button", name="Take another file")
    expect(discard).to_be_visible()
    settled(page)
    discard.focus()
    asking(page, lambda: page.keyboard.press("Enter"))
    expect(discard).to_have_count(0)
    expect(page.get_by_role("button", name="Upload", exact=True)).to_be_focused()


def press(page: Page, control: Locator, key: str = "Enter") -> None:
    """Move the focus to a control with Tab alone, then press a key, which requests a rerun."""
    reach(page, control)
    asking(page, lambda: page.keyboard.press(key))


def reach(page: Page, control: Locator) -> None:
    """Press Tab until the control has the focus. A group of tabs or segments takes arrow keys after that."""
    expect(control).to_be_visible()
    for _ in range(300):
        if control.evaluate("e => e.contains(document.activeElement)"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"300 presses of Tab do not reach {control}")


@pytest.mark.full
def test_the_keyboard_alone_leads_from_the_sample_to_verdict_clause_and_sentence(server: Server, page: Page) -> None:
    page.goto(server.url)
    settled(page)
    reach(page, page.get_by_role("button", name="Open the finished legal sample"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Report (.pdf)")).to_be_visible()  # the browser loads another address
    settled(page)
    menu = page.get_by_test_id("stSidebar").get_by_role("link")
    press(page, menu.filter(has_text="Results"))
    expect(page.get_by_role("heading", name="Helped", exact=True)).to_be_visible()

    tab = page.get_by_role("tab", name="Try it")
    for _ in range(10):
        # A page that is drawn again may take the focus away from its tabs.
        reach(page, page.get_by_role("tab", selected=True))
        if tab.get_attribute("aria-selected") == "true":
            break
        page.keyboard.press("ArrowRight")  # opens the next tab
        settled(page)
    reach(page, page.get_by_label("A sentence, or several pages"))
    page.keyboard.type("The Guarantor, Fairmont Bank, pays Harlow Mills Ltd 5,000 pounds.")
    press(page, page.get_by_role("button", name="Find entities"))
    expect(page.get_by_role("region", name="The text").locator("mark").first).to_be_visible()

    press(page, menu.filter(has_text="Explore"))
    expect(page.locator(".st-key-explore-map .main-svg").first).to_be_visible()
    reach(page, page.get_by_label("Search all sentences"))
    page.keyboard.type("guarantor")
    asking(page, lambda: page.keyboard.press("Enter"))
    expect(page.get_by_role("heading", name="Sentences with guarantor")).to_be_visible()
    table = page.get_by_test_id("stDataFrame").last.locator("canvas").first
    reach(page, table)
    page.keyboard.press("ArrowDown")
    asking(page, lambda: page.keyboard.press("Shift+Space"))
    expect(page.get_by_role("heading", name="Why this sentence")).to_be_visible()


@pytest.mark.full
def test_the_keyboard_alone_leads_from_texts_to_a_selection_a_map_and_an_experiment(
    server: Server, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    page.goto(server.url)
    settled(page)
    press(page, page.get_by_role("button", name="Open the legal sample"))
    expect(page.get_by_role("heading", level=1, name="Selection")).to_be_visible()
    press(page, page.get_by_role("button", name="Score and select"))
    download = page.get_by_role("button", name="Download", exact=True)
    expect(download).to_be_visible(timeout=600_000)
    settled(page)
    reach(page, download)
    with page.expect_download() as caught:
        page.keyboard.press("Enter")
    assert len(Path(caught.value.path()).read_text(encoding="utf-8").splitlines()) == 660  # a tenth of 6,600
    press(page, page.get_by_role("button", name="See the selection on a map"))
    expect(page.get_by_role("figure", name=re.compile("^Map of 7,100 sentences"))).to_be_visible(timeout=600_000)
    settled(page)
    press(page, page.get_by_test_id("stSidebar").get_by_role("link", name="Home", exact=True))
    press(page, page.get_by_role("button", name="Find out"))
    reach(page, page.get_by_role("button", name="Start", exact=True))
    page.keyboard.press("Enter")  # not `press`: a page with a running experiment refreshes itself and never settles
    expect(page.get_by_text("The experiment is running.")).to_be_visible()
    reach(page, page.get_by_role("button", name="Stop", exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_text("The experiment is running.")).to_have_count(0, timeout=60_000)
    assert [runs.state(run.id).state for run in runs.own("experiment")] == ["cancelled"]
