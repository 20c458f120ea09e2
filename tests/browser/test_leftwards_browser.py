"""Sentences in right-to-left scripts, with Winnow's style sheet alone: no server is needed."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page

from pages.ui.widgets import entity_html
from tests.browser.driver import ROOT
from tests.conftest import sentence

ARABIC = "لكل شخص الحق في الحياة."
LETTER = """([selector, at]) => {
  const reading = document.createTreeWalker(document.querySelector(selector), NodeFilter.SHOW_TEXT)
  const texts = []
  while (reading.nextNode()) texts.push(reading.currentNode)
  const range = document.createRange(), text = at < 0 ? texts.at(-1) : texts[0]
  const place = at < 0 ? text.length + at : at
  range.setStart(text, place), range.setEnd(text, place + 1)
  return range.getBoundingClientRect().x
}"""
TABLE = '<table class="w-table"><tr><td class="w-number">1</td><td id="text">{}</td></tr></table>'
LISTED = '<ol class="w-sentences"><li id="text">{}</li></ol>'
QUOTED = '<blockquote class="w-sentences" id="text">{}</blockquote>'


@pytest.mark.parametrize("shown", [TABLE, LISTED, QUOTED])
def test_a_sentence_starts_at_the_side_of_its_script(page: Page, shown: str) -> None:
    style = (ROOT / "assets" / "style.css").read_text(encoding="utf-8")
    labelled = sentence(ARABIC, [(1, 2, "PER")])
    for text, leftwards in (
        (ARABIC, True),
        (entity_html(labelled, ["PER"]), True),
        ("Everyone has the right to life.", False),
    ):
        page.set_content(f"<style>{style}</style>{shown.format(text)}")
        first, last = (page.evaluate(LETTER, ["#text", at]) for at in (0, -1))
        assert (last < first) == leftwards
        box = page.locator("#text").bounding_box()
        assert box is not None
        assert (first - box["x"] > box["width"] / 2) == leftwards  # a line starts at the side where reading begins


def test_text_in_an_input_starts_at_the_side_of_its_script(page: Page) -> None:
    style = (ROOT / "assets" / "style.css").read_text(encoding="utf-8")
    field = '<div data-testid="stTextInput"><input style="width: 600px"></div>'
    page.set_content(f"<style>{style}</style>{field}")
    shown = []
    for text in (ARABIC, "Everyone has the right to life."):
        page.locator("input").fill(text)
        page.locator("input").evaluate("field => { field.blur(); field.scrollLeft = 0; }")
        pixels = page.locator("input").screenshot()
        with Image.open(BytesIO(pixels)) as image:
            dark = np.asarray(image.convert("L"))[4:-4, 6:-6] < 128
        shown.append(np.flatnonzero(dark.any(axis=0)).mean() > dark.shape[1] / 2)
    assert shown == [True, False]
