"""What a mouse can press, the Tab key can reach: every control of every page."""

import pytest
from playwright.sync_api import Page, expect

from core.facade import corpora
from tests.browser.driver import Server, settled, visit

ADDRESSES = [
    "",
    "Corpora",
    "Similarity",
    "Selection",
    "Explore",
    "Training",
    "Results",
    "Bias",
    "Assisting",
    "Papers",
    "Runs",
]
CONTROLS = """() => [...document.querySelectorAll(
    'button, a[href], input, textarea, select, summary, [role=button], [role=slider], [role=tab], [role=combobox]'
  )].filter(e => e.checkVisibility({visibilityProperty: true, opacityProperty: true}) && !e.disabled
     && !e.closest('[data-testid=stHeader], [data-testid=stToolbar], [data-testid=stElementToolbar], [inert]')
     && e.getAttribute('aria-hidden') !== 'true')
   .map((e, i) => { e.dataset.seen = e.dataset.seen || String(i); return e })"""
# A group of radios, tabs or segments is one stop: its arrow keys lead to the others.
REACHED = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const group = at.closest('[role=radiogroup], [role=tablist]');
  for (const e of group ? group.querySelectorAll('*') : [at]) e.dataset.reached = 'yes';
  return at.outerHTML.slice(0, 80);
}"""


def unreached(page: Page) -> list[str]:
    """The controls that a walk by Tab from the top does not come to."""
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
