"""Make the pictures in `assets/pictures`: screenshots of the finished legal sample, one per page that may be empty.

    python -m tests.lab.pictures [HOME [PAGE ...]]

Some pages need results that the sample lacks. So this script compares two sources, measures names and contexts, and
compares the labels of two corpora (`skl`). It does so in a temporary home, or in HOME, which is kept; results in HOME
are not computed again. It takes some minutes. PAGE: make only the pictures of these pages.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import FloatRect, Locator, Page, sync_playwright

from core.projects import view as projects
from tests.browser import chromium
from tests.browser.driver import FRAMES, PAGES, ROOT, Server, left, pick, settled, watched
from tests.browser.test_every_page import painted

FOLDER = ROOT / "assets" / "pictures"
THEMES = ("light", "dark")
WIDE, MARGIN = 916, 8  # CSS pixels
SHARP = 1.5  # picture pixels per CSS pixel
MOST, QUALITIES = 100_000, (80, 70, 60, 50, 40)  # bytes of a picture; the first quality within this size is used
VIEWPORT = {"width": 1360, "height": 1900}
COMMANDS = (
    f"corpus add {ROOT}/assets/samples/medical/domain.txt.gz --name medical-domain",
    "similarity --target legal-task --source legal-domain,medical-domain",
    "skl --primary legal-train --assisting legal-dev",
    "difficulty --train legal-train --folds 2 --mentions 300 --calibrate no",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The part of a page to photograph after `act`: from `top` down to the end of `bottom`, and `more` pixels."""

    top: Callable[[Page], Locator]
    bottom: Callable[[Page], Locator]
    act: Callable[[Page], None] = lambda page: None
    more: int = 0


def _text(words: str) -> Callable[[Page], Locator]:
    return lambda page: page.get_by_text(words).first


def _heading(words: str) -> Callable[[Page], Locator]:
    return lambda page: page.get_by_role("heading", name=words)


def _nth(selector: str, n: int = 0) -> Callable[[Page], Locator]:
    return lambda page: page.get_by_test_id("stMain").locator(selector).nth(n)


def _lower_map(page: Page) -> None:
    """Give the map the height that it has in a window of usual size."""
    page.add_style_tag(content=".st-key-explore-map { height: 600px !important; }")
    page.evaluate(FRAMES)


def _two_trainings(page: Page) -> None:
    page.get_by_role("button", name="Trainings within experiments").click()
    settled(page)
    for name in ("no further pre-training", "pre-trained on"):
        pick(page, "Look at", re.compile(f"^Fine-tune minilm on .*, {name}"), typed=name)
        page.keyboard.press("Escape")  # close the list, which covers what is below
    settled(page)


VIEWS = {
    "Home": View(top=_nth(".st-key-road-texts"), bottom=_nth(".st-key-road-report")),
    "Corpora": View(top=_nth("[class*=st-key-corpora-card]"), bottom=_nth("[class*=st-key-corpora-card]")),
    "Selection": View(top=_nth(".stVegaLiteChart"), bottom=_nth(".w-table tbody tr", 3)),
    "Explore": View(top=_text("Colour by"), bottom=_text("7,100 sentences"), act=_lower_map, more=250),
    "Label": View(top=_text("labelled"), bottom=_text("Keys:")),
    "Training": View(top=_text("Score of"), bottom=_text("points; the chart draws")),
    "Results": View(top=_nth("[role=tab]"), bottom=_nth(".w-table")),
    "Similarity": View(top=_nth("[data-testid=stAlert]"), bottom=_nth(".stPlotlyChart")),
    "Bias": View(top=_heading("Names are more informative than contexts"), bottom=_nth(".stPlotlyChart", 1)),
    "Assisting": View(top=_nth(".stPlotlyChart"), bottom=_nth(".w-sentences li", 1)),
    "Runs": View(top=_text("Search"), bottom=_nth(".w-table"), act=_two_trainings),
}


def take(page: Page, view: View, file: Path) -> None:
    """Photograph a part of the page. Errors: AssertionError if the picture is larger than `MOST`."""
    view.act(page)
    settled(page)
    page.mouse.move(0, 0)  # so that no element shows a hover effect
    side, top, bottom = (each.bounding_box() for each in (page.locator("h1"), view.top(page), view.bottom(page)))
    if not (side and top and bottom):
        raise AssertionError(f"{file.stem}: the first or the last element of the picture is missing")
    high = bottom["y"] + bottom["height"] - top["y"] + view.more + 2 * MARGIN
    clip: FloatRect = {"x": side["x"] - MARGIN, "y": top["y"] - MARGIN, "width": WIDE, "height": high}
    shot = Image.open(BytesIO(page.screenshot(clip=clip, animations="disabled", caret="hide"))).convert("RGB")
    for quality in QUALITIES:
        shot.save(file, "WEBP", quality=quality, method=6)
        if (size := file.stat().st_size) <= MOST:
            return
    raise AssertionError(f"{file.name} has {size:,} bytes")


def furnish(home: Path) -> None:
    """Open the finished sample, and compute the results that some pages show and the sample lacks."""
    os.environ["WINNOW_HOME"] = str(home)
    os.environ["WINNOW_PROJECT"] = projects.open_finished_sample().slug  # else addresses open another project
    for words in COMMANDS:
        subprocess.run([sys.executable, "-m", "core", *words.split()], cwd=ROOT, check=True)


def photograph(server: Server, names: list[str]) -> None:
    """Take the pictures of some pages, in both themes."""
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = chromium.start(playwright, chromium.find())
        assert not isinstance(browser, str), browser
        for theme in THEMES:
            with watched(
                browser, viewport=VIEWPORT, color_scheme=theme, reduced_motion="reduce", device_scale_factor=SHARP
            ) as context:
                page = context.new_page()
                for name in names:
                    page.goto(f"{server.url}/{PAGES[name]}")
                    settled(page)
                    painted(page, name)
                    file = FOLDER / f"{name.lower()}-{theme}.webp"
                    take(page, VIEWS[name], file)
                    print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes", flush=True)
                left(page)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "home"
        furnish(home)
        with Server(home=home, data=Path(folder)) as server:
            server.start()
            photograph(server, sys.argv[2:] or list(VIEWS))


if __name__ == "__main__":
    main()
