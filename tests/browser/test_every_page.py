"""Every page with finished runs on it: WCAG A and AA, contrast in both themes, a narrow window, the theme switch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, expect

from pages.ui.empty import SHOWN
from tests.browser.driver import PAGES, Server, settled, visit
from tests.browser.forge import Forge
from tests.browser.traffic import held_to_account
from tests.full_home import furnish
from tests.homes import project_in

CHARTS = {"Similarity", "Selection", "Explore", "Bias", "Assisting", "Training", "Results"}
CHART = "[data-testid=stMain] :is(.stPlotlyChart .main-svg, [data-testid=stVegaLiteChart] svg)"
# The themes differ only in colours, so the dark theme is checked only for contrast.
RULES = {
    "light": {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}},
    "dark": {"runOnly": {"type": "rule", "values": ["color-contrast"]}},
}
THEME = "() => getComputedStyle(document.querySelector('[data-testid=stApp]')).colorScheme"
STILL = """() => !document.querySelector('[data-testid=stSkeleton], [data-stale=true]')
  && document.getAnimations().every(a => a.playState !== 'running' || a.effect.getTiming().iterations === Infinity)"""
# Contrast by WCAG of every chart text against the page's background; axe does not check charts.
FAINT = """() => {
  const rgb = text => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a] };
  const light = c => { const [r, g, b] = c.map(x => (x /= 255) <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
                       return .2126 * r + .7152 * g + .0722 * b };
  const ground = rgb(getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor);
  const texts = [...document.querySelectorAll('[data-testid=stMain] :is(.stPlotlyChart, [data-testid=stVegaLiteChart])'
    + ' svg text')].filter(e => e.textContent.trim() && getComputedStyle(e).opacity !== '0');  // Vega's way to leave out
  return texts.map(e => {
    const style = getComputedStyle(e), ink = rgb(style.fill), part = ink[3] * style.fillOpacity * style.opacity;
    const mixed = [0, 1, 2].map(i => ink[i] * part + ground[i] * (1 - part));
    const [high, low] = [light(mixed), light(ground)].sort((a, b) => b - a);
    return [(high + .05) / (low + .05), e.textContent] });
}"""
# Opens everything that can be opened; returns the number of elements opened.
OPEN = """() => {
  const closed = [...document.querySelectorAll('[data-testid=stMain] details:not([open]) > summary')]
    .filter(e => e.checkVisibility());
  closed.forEach(e => e.click());
  return closed.length;
}"""
CUT = """() => [...document.querySelectorAll(
    '[data-testid=stMain] :is([data-testid=stSelectbox] input, [data-testid=stCode] pre)')]
  .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth && getComputedStyle(e).textOverflow !== 'ellipsis')
  .map(e => e.value || e.innerText)"""


@dataclass(frozen=True, slots=True)
class Furnished:
    """A server, and the address at which each page shows a finished run."""

    server: Server
    addresses: dict[str, str]


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory, forge: Forge) -> Iterator[Furnished]:
    home, data = tmp_path_factory.mktemp("furnished"), tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINNOW_HOME", str(home))
        addresses = furnish(project_in(home))
    with Server(home=home, data=data, forge=forge) as server:
        server.start()
        yield Furnished(server, addresses)


def loaded(page: Page, furnished: Furnished, name: str) -> None:
    """Load a page and wait until it is painted."""
    page.goto(f"{furnished.server.url}/{furnished.addresses[name]}")
    settled(page)
    painted(page, name)


def shown(page: Page, furnished: Furnished, name: str) -> None:
    """Go to a page of the open app and wait until it is painted."""
    visit(page, furnished.addresses[name])
    painted(page, name)


def painted(page: Page, name: str) -> None:
    title = "Winnow" if name == "Home" else name
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    if name in CHARTS:
        expect(page.locator(CHART).first).to_be_visible()
    page.wait_for_function(STILL)


def tabs_of(page: Page) -> Iterator[str]:
    """Open each tab and all its expanders, and yield the name of the tab."""
    tabs = page.get_by_role("main").get_by_role("tab") if page.get_by_role("main").count() else page.get_by_role("tab")
    for number in range(max(tabs.count(), 1)):
        opened = ""
        if tabs.count():
            opened = tabs.nth(number).inner_text()
            tabs.nth(number).click()
            settled(page)
        if page.evaluate(OPEN):
            settled(page)
        page.mouse.move(0, 0)  # an element under the mouse looks different
        page.wait_for_function(STILL)
        yield opened


def lasting(page: Page, look: Callable[[], list[str]]) -> list[str]:
    """Repeat `look` until two results in a row are equal, each after all animations have ended. Return the problems."""
    before, wrong = None, look()
    while wrong and wrong != before:
        settled(page)
        page.wait_for_function(STILL)
        before, wrong = wrong, look()
    return wrong


def wide(page: Page) -> list[str]:
    """Return the elements that are wider than the window or cut off without an ellipsis."""
    over = page.evaluate(
        "[document.documentElement, document.querySelector('[data-testid=stMain]')]"
        ".map(e => e.scrollWidth - e.clientWidth)"
    )
    return [str(over)] * (max(over) > 0) + list(page.evaluate(CUT))


def violations(page: Page) -> list[str]:
    """Return the violations of WCAG in the page's theme."""
    found = Axe().run(page, options=RULES[page.evaluate(THEME)]).response["violations"]
    return [f"{rule['id']}: {node['html'][:150]} {_numbers(node)}" for rule in found for node in rule["nodes"]]


def _numbers(node: dict[str, Any]) -> str:
    data = (node["any"] or [{}])[0].get("data")
    return f"{data['fgColor']} on {data['bgColor']}" if isinstance(data, dict) and "fgColor" in data else ""


@pytest.fixture(scope="module", params=[(theme, width) for theme in ("light", "dark") for width in (800, 1280, 1920)])
def themed(request: pytest.FixtureRequest, profile: BrowserContext, furnished: Furnished) -> Iterator[Page]:
    """Open the app in a theme and a width, to visit every page."""
    theme, width = request.param
    with held_to_account(profile.new_page()) as page:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 5000})  # axe ignores elements out of sight
        loaded(page, furnished, "Home")
        expect(page.get_by_test_id("stApp")).to_have_css("color-scheme", theme)
        yield page
        page.close()


@pytest.mark.parametrize("name", PAGES)
def test_every_page_follows_wcag_and_every_text_has_enough_contrast(
    furnished: Furnished, themed: Page, name: str
) -> None:
    shown(themed, furnished, name)
    texts = 0
    for tab in tabs_of(themed):
        assert not lasting(themed, lambda: violations(themed)), f"{name} {tab}"
        faint = lasting(themed, lambda: [text for ratio, text in themed.evaluate(FAINT) if ratio < 4.5])
        assert not faint, f"{name} {tab}"
        texts += len(themed.evaluate(FAINT))
    assert texts or name not in CHARTS


def test_a_chosen_segment_has_enough_contrast_under_the_mouse(furnished: Furnished, themed: Page) -> None:
    shown(themed, furnished, "Training")
    if themed.evaluate(OPEN):
        settled(themed)
    themed.locator("[data-testid=stButtonGroup] button[data-selected]").first.hover()
    themed.wait_for_function(STILL)
    assert not lasting(themed, lambda: violations(themed))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_empty_page_has_enough_contrast_and_fits_a_narrow_window(
    server: Server, page: Page, theme: Literal["light", "dark"]
) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.set_viewport_size({"width": 480, "height": 3000})
    page.goto(f"{server.url}/Selection")
    settled(page)
    picture = page.get_by_test_id("stMain").locator("img")
    expect(picture).to_have_attribute("alt", SHOWN["selection"])
    page.wait_for_function("img => img.complete && img.naturalWidth > 720", arg=picture.element_handle())
    assert not lasting(page, lambda: [*violations(page), *wide(page)])


def test_no_page_scrolls_sideways_or_cuts_text_in_a_narrow_window(furnished: Furnished, page: Page) -> None:
    page.set_viewport_size({"width": 480, "height": 900})
    loaded(page, furnished, "Home")
    wrong = []
    for name in PAGES:
        shown(page, furnished, name)
        for tab in tabs_of(page):
            wrong += [f"{name} {tab}: {each}" for each in lasting(page, lambda: wide(page))]
    assert not wrong


def test_the_menu_switches_the_theme_of_all_pages_and_a_reload_keeps_it(furnished: Furnished, page: Page) -> None:
    """Charts change their colours at once."""
    page.emulate_media(color_scheme="light")
    loaded(page, furnished, "Selection")
    words = page.locator(".stVegaLiteChart svg.marks text").first
    selected = page.locator(".stVegaLiteChart .mark-rect.role-mark path").first
    expect(words).to_have_css("fill", "rgb(49, 51, 63)")
    expect(selected).to_have_css("fill", "rgb(0, 114, 178)")
    page.get_by_test_id("stMainMenuButton").click()
    switch = page.get_by_role("group", name="Theme").get_by_role("menuitemradio")
    expect(switch).to_have_count(3)
    switch.filter(has_text="Dark").click()
    expect(words).to_have_css("fill", "rgb(230, 230, 230)")
    expect(selected).to_have_css("fill", "rgb(86, 180, 233)")
    page.reload()
    expect(words).to_have_css("fill", "rgb(230, 230, 230)")
    expect(selected).to_have_css("fill", "rgb(86, 180, 233)")
    loaded(page, furnished, "Training")
    expect(page.get_by_test_id("stApp")).to_have_css("color-scheme", "dark")
