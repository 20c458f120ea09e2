"""The map in a browser: the mouse draws a lasso, and the coordinates on disk tell which sentences are inside."""

import json
import math
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Locator, Page, expect
from playwright.sync_api import TimeoutError as TooLate

from core.explore import view as maps
from core.explore.result import CLASSES
from core.paths import within
from core.projects import runs
from core.projects import view as projects
from core.selection import view as selections
from core.terms import plainly
from tests.browser import driver
from tests.browser.driver import AGAIN, Server, drag, insisting, settled, still
from tests.browser.forge import Forge
from tests.browser.prepared_home import NASTY, build_prepared
from tests.browser.test_keyboard import unreached
from tests.homes import Homes, project_in
from tests.waiting import until

MAP = ".st-key-explore-map"
OUTLINE = f"document.querySelector('{MAP} .js-plotly-plot')?.layout?.selections?.map(s => s.path)"
RANGES = f"(l => [...l.xaxis.range, ...l.yaxis.range])(document.querySelector('{MAP} .js-plotly-plot')._fullLayout)"
PLACE = """([x, y]) => {
    const plot = document.querySelector('.st-key-explore-map .js-plotly-plot'), box = plot.getBoundingClientRect();
    const { xaxis, yaxis } = plot._fullLayout;
    return [box.x + xaxis._offset + xaxis.d2p(x), box.y + yaxis._offset + yaxis.d2p(y)];
}"""
Points = dict[str, dict[str, Any]]  # rows of the map's file


@pytest.fixture(scope="module")
def built(homes: Homes, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Points]:
    """Copy a home with a selection and its map; return the map's file too, as `{corpus/row: row}`."""
    home = tmp_path_factory.mktemp("explored") / "home"
    select = homes.copy(build_prepared, project_in(home))["select"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINNOW_HOME", str(home))
        rows = pq.read_table(runs.get(str(maps.of(select))).artifacts / "map.parquet").to_pylist()
    return home, select, {f"{row['corpus']}/{row['row']}": row for row in rows}


@pytest.fixture
def mapped(built: tuple[Path, str, Points], server: Server, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Points]:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    shutil.copytree(built[0], server.home, dirs_exist_ok=True)
    return built[1:]


@pytest.fixture(scope="module")
def shared(built: tuple[Path, str, Points], tmp_path_factory: pytest.TempPathFactory, forge: Forge) -> Iterator[Server]:
    """Start one server on one copy of the home, for tests whose edits do not affect each other."""
    place = tmp_path_factory.mktemp("shared")
    shutil.copytree(built[0], place / "home")
    with Server(home=place / "home", data=place, forge=forge) as server:
        server.start()
        yield server


LISTEN = f"""() => {{
  const plot = document.querySelector("{MAP} .js-plotly-plot");
  plot.on("plotly_hover", event => window.late = () => plot.emit("plotly_hover", event));
}}"""  # `late` repeats the last hover event of the map


def lasso(page: Page, corners: int = 9, size: float = 0.3) -> None:
    """Draw a lasso around the middle of the map."""

    def border(box: Mapping[str, float]) -> list[tuple[float, float]]:
        x, y, r = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, size * min(box["width"], box["height"])
        turns = [2 * math.pi * i / corners for i in range(corners)]
        return [(x + r * math.cos(turn), y + 0.8 * r * math.sin(turn)) for turn in turns]

    drag(page, page.locator(f"{MAP} .nsewdrag.drag").first, border)
    expect(page.get_by_role("heading", name="Your lasso")).to_be_visible()
    settled(page)


def tooltip(page: Page, row: Mapping[str, Any]) -> Locator:
    """Move the mouse to a point until its tooltip appears, because a map that is redrawn meanwhile loses the mouse."""
    tip = page.get_by_role("tooltip")

    def shown() -> bool:
        page.mouse.move(0, 0)
        expect(tip).to_have_count(0)
        page.mouse.move(*page.evaluate(PLACE, [row["x"], row["y"]]))
        with suppress(TooLate):
            tip.wait_for(timeout=AGAIN)
        return tip.is_visible()

    until(shown, "the tooltip of a point")
    return tip


def crossings(x: float, y: float, corners: list[tuple[float, float]]) -> bool:
    """Return True if a ray to the right of a point crosses the border an odd number of times."""
    odd = False
    for (x1, y1), (x2, y2) in zip(corners, corners[1:] + corners[:1], strict=True):
        if (y1 > y) != (y2 > y) and x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
            odd = not odd
    return odd


def lassoed(page: Page, points: Points) -> Points:
    """Return the points inside the border that the browser shows, by the coordinates on disk."""
    (path,) = page.evaluate(OUTLINE)
    numbers = [float(number) for number in re.findall(r"-?\d[\d.e+-]*", path)]
    corners = list(zip(numbers[::2], numbers[1::2], strict=True))
    assert len(corners) >= 9
    return {key: row for key, row in points.items() if crossings(row["x"], row["y"], corners)}


def counts(page: Page, picked: Mapping[str, int]) -> None:
    """Assert that the panel lists {class: picked} and no other class."""
    rows = page.locator("[data-testid=stMarkdown] table tbody tr")
    expect(rows).to_have_count(len(picked))
    for row, (name, n) in enumerate(picked.items()):
        expect(rows.nth(row).locator("td").nth(0)).to_have_text(name)
        expect(rows.nth(row).locator("td").nth(1)).to_have_text(f"{n:,}")


def press(page: Page, name: str | re.Pattern[str]) -> None:
    page.get_by_role("button", name=name).first.click()
    settled(page)


def taken(page: Page, kind: str) -> bytes:
    with page.expect_download() as caught:
        page.get_by_role("button", name=kind, exact=True).click()
    return Path(caught.value.path()).read_bytes()


@pytest.mark.road
def test_a_lasso_adds_undoes_and_exports_and_survives_a_reload(
    server: Server, page: Page, mapped: tuple[str, Points]
) -> None:
    select, points = mapped
    page.goto(f"{server.url}/Explore?run={select}")
    expect(page.locator(f"{MAP} .nsewdrag.drag").first).to_be_visible()
    settled(page)
    lasso(page)
    inside = lassoed(page, points)
    assert 20 < len(inside) < len(points) - 20
    classes = [row["class"] for row in inside.values()]
    counts(page, {plainly(name): classes.count(name) for name in CLASSES})
    scored = [row for row in inside.values() if row["score"] is not None]
    best = max(scored, key=lambda row: row["score"])
    expect(page.get_by_test_id("glide-cell-1-0")).to_have_text(best["class"])
    page.evaluate(LISTEN)
    middle = [float(np.mean([row[axis] for row in scored])) for axis in "xy"]
    central = min(scored, key=lambda row: math.dist((row["x"], row["y"]), middle))  # far from the lasso's border
    expect(tooltip(page, central)).to_contain_text("score")  # tooltips also work inside the lasso
    page.mouse.move(0, 0)
    page.evaluate("late()")
    expect(page.get_by_role("tooltip")).to_have_count(0)
    rows = [json.loads(line) for line in taken(page, "JSONL").splitlines()]
    assert sorted(row["id"] for row in rows) == sorted(row["id"] for row in inside.values())

    filtered = {row["row"] for row in inside.values() if row["class"] == "filtered"}
    mask = selections.scored(select).audit.mask
    fresh = {row for row in filtered if not mask[row]}
    assert fresh < filtered
    old = {row["row"] for row in inside.values() if row["class"] == "selected"}
    read = page.get_by_role("link", name=f"Read the {len(inside):,} sentences below the map")
    clean, flagged = (page.get_by_role("button", name=re.compile(name)) for name in ("Add .* to the", "flagged too"))
    expect(read).to_have_css("background-color", "rgb(0, 114, 178)")  # blue
    for button in (clean, flagged):
        expect(button).not_to_have_css("background-color", "rgb(0, 114, 178)")
    expect(clean).to_contain_text(f"Add {len(fresh):,} to the selection")
    expect(flagged).to_contain_text(f"Add the {len(filtered - fresh):,} flagged too")
    page.keyboard.press("Alt+a")
    expect(page.get_by_text(f"{len(fresh):,} added, 0 removed.")).to_be_visible()
    settled(page)
    left = len(filtered - fresh)
    drawn = {"task corpus": classes.count("T_C"), "selected": len(fresh | old), "not selected": left}
    counts(page, drawn)
    press(page, re.compile("flagged too"))
    expect(page.get_by_text("You added flagged sentences to the selection")).to_be_visible()
    settled(page)
    counts(page, {**drawn, "selected": len(fresh | old) + left, "not selected": 0})
    press(page, re.compile("Undo add"))
    expect(page.get_by_text("You added flagged sentences to the selection")).to_have_count(0)
    picked = re.compile(rf"choice={select}&region=lasso(:|%3A)[0-9a-f]{{8}}$")
    expect(page).to_have_url(picked)
    page.reload()
    expect(page.get_by_text(f"{len(fresh):,} added, 0 removed.")).to_be_visible()
    settled(page)
    expect(page).to_have_url(picked)
    counts(page, drawn)
    page.wait_for_function(f"{OUTLINE}?.length === 1")
    assert len(lassoed(page, points)) == len(inside)
    press(page, "Clear")
    filters(page)
    pick(page, "All selected sentences")
    edited = [json.loads(line)["row"] for line in taken(page, "JSONL").splitlines()]
    selected = {row["row"] for row in points.values() if row["class"] == "selected"}
    assert set(edited) == selected | fresh


def filters(page: Page) -> None:
    """Open the panel of filters beside the map."""
    page.get_by_text("Narrow down", exact=True).click()
    settled(page)


def pick(page: Page, name: str) -> None:
    """Pick a topic or a class by keyboard."""
    box = page.get_by_role("combobox", name="Pick a topic or a class")
    box.focus()
    box.press_sequentially(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    settled(page)


def test_a_histogram_drag_filters_and_tab_reaches_every_control(
    shared: Server, page: Page, built: tuple[Path, str, Points]
) -> None:
    _, select, points = built
    page.goto(f"{shared.url}/Explore?run={select}")
    expect(page.locator(f"{MAP} .nsewdrag.drag").first).to_be_visible()
    settled(page)
    filters(page)
    bars = page.locator("[class*=st-key-explore-scores] .nsewdrag.drag").first
    drag(
        page, bars, lambda box: [(box["x"] + part * box["width"], box["y"] + box["height"] / 2) for part in (0.5, 0.9)]
    )
    expect(page.get_by_role("heading", name="Scores from")).to_be_visible()
    low, high = map(float, re.findall(r"score(?::|%3A)(-?[\d.e-]+)~(-?[\d.e-]+)$", page.url)[0])
    spare = 1e-5 * max(abs(low), abs(high))  # the address stores the limits with six digits
    scores = [row["score"] for row in points.values() if row["score"] is not None]
    inside = [score for score in scores if low - spare <= score <= high + spare]
    assert 0 < len(inside) < len(scores)
    [listed] = re.findall(r"1 to 10 of ([\d,]+)", page.get_by_test_id("stMain").inner_text())
    assert int(listed.replace(",", "")) == len(inside)  # the list agrees
    pick(page, "All selected sentences")
    assert not unreached(page)


def test_map_scripts_are_fetched_before_the_first_paint(
    shared: Server, fresh_page: Page, built: tuple[Path, str, Points]
) -> None:
    fresh_page.goto(f"{shared.url}/Explore?run={built[1]}")
    expect(fresh_page.locator(f"{MAP} .nsewdrag.drag").first).to_be_visible()
    settled(fresh_page)
    starts = "part => performance.getEntriesByType('resource').filter(e => e.name.includes(part)).map(e => e.startTime)"
    painted = fresh_page.evaluate("performance.getEntriesByType('paint')[0].startTime")
    for part in ("PlotlyChart.", "withFullScreenWrapper.", "BidiComponent.", "Selectbox."):
        [start] = fresh_page.evaluate(starts, part)  # fetched once: the page uses the prefetched file
        assert start < painted, part


def test_a_search_reaches_all_sentences_and_their_markup_is_shown_as_text(
    shared: Server, page: Page, built: tuple[Path, str, Points]
) -> None:
    page.goto(f"{shared.url}/Explore?run={built[1]}")
    cleared(page)
    page.get_by_label("Search all sentences").fill("onerror")
    page.keyboard.press("Enter")
    expect(
        page.get_by_text("Sentences that contain onerror: 1 in the domain corpus, 0 in the task corpus.")
    ).to_be_visible()
    expect(page.get_by_test_id("glide-cell-2-0")).to_have_text(NASTY)
    settled(page)
    nasty = next(row for row in built[2].values() if row["text"] == NASTY)
    wanted = re.compile(rf"^(selected|not selected) · score [\d.e-]+ · row [\d,]+\s+{re.escape(NASTY)}$")
    expect(tooltip(page, nasty)).to_have_text(wanted)
    for name in ("Read them below the map", "Read the sentence below the map"):
        page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop = 0")
        expect(page.get_by_test_id("stDataFrame")).not_to_be_in_viewport()
        page.get_by_role("link", name=name).click()
        expect(page.get_by_test_id("stDataFrame")).to_be_in_viewport(ratio=1)
    box = still(page.get_by_test_id("stDataFrame"))
    insisting(page, lambda: page.mouse.click(box["x"] + 18, box["y"] + 70))
    card = page.locator(".st-key-explore-why-list")
    expect(card.get_by_text(NASTY)).to_be_visible()
    press(page, re.compile("(Add to|Remove from) the selection"))
    expect(page.get_by_text(re.compile("By hand"))).to_be_visible()
    for tab in ("Compare", "Side by side", "Health of the selection"):
        page.get_by_role("tab", name=tab).click()
        settled(page)
    assert page.locator("img[src=x], a[href*='evil.example']").count() == 0


def cleared(page: Page) -> None:
    """Press Clear if the map keeps the filters of an earlier test."""
    settled(page)
    clear = page.get_by_role("button", name="Clear", exact=True)
    if clear.count():
        clear.click()
        settled(page)


@pytest.mark.parametrize("width", [1280, 800])
def test_a_ticked_sentence_is_explained_in_view_until_close_is_pressed(
    shared: Server, page: Page, built: tuple[Path, str, Points], width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{shared.url}/Explore?run={built[1]}")
    cleared(page)
    table, card = page.get_by_test_id("stDataFrame"), page.locator(".st-key-explore-why-list")
    for row in (0, 9):
        table.locator("canvas").first.evaluate("node => node.scrollIntoView({ block: 'end' })")
        before = still(table)
        insisting(page, lambda: page.mouse.click(before["x"] + 18, before["y"] + 70 + 66 * row))  # noqa: B023
        expect(card.get_by_role("heading", name="Why this sentence")).to_be_in_viewport(ratio=1)
        expect(card.get_by_text(re.compile("^(Selected|Below the cut|Withheld)"))).to_be_in_viewport(ratio=1)
        after = table.bounding_box()
        assert after
        assert after["y"] == before["y"]  # the table does not move
        card.get_by_role("button", name="Close").click()
        expect(card).to_have_count(0)
        settled(page)


def test_a_tick_in_the_table_of_groups_picks_the_group(
    shared: Server, page: Page, built: tuple[Path, str, Points], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(shared.home))
    map_run = str(maps.of(built[1]))
    kinds = maps.classes(map_run)
    largest = maps.groups(map_run, np.arange(len(kinds)), kinds, maps.TOPIC)[0]
    page.goto(f"{shared.url}/Explore?run={built[1]}&region=topic:{maps.get(map_run).cluster[-1]}")
    settled(page)
    page.get_by_role("button", name="Clear", exact=True).click()
    settled(page)
    driver.pick(page, "Group the sentences", "by topic")
    expect(page.get_by_test_id("glide-cell-1-0")).to_have_text(largest["name"])
    box = still(page.get_by_test_id("stDataFrame"))
    page.mouse.click(box["x"] + 18, box["y"] + 52)
    expect(page.get_by_role("heading", name=f"Topic {largest['name']}")).to_be_visible()
    size = largest["task"] + largest["domain"]
    expect(page.get_by_text(f"{size:,} of {len(kinds):,} sentences")).to_be_visible()


def test_a_redrawn_map_keeps_its_zoom_and_lasso(shared: Server, page: Page, built: tuple[Path, str, Points]) -> None:
    sent: list[bytes] = []

    def record(frame: bytes | str) -> None:
        sent.append(frame if isinstance(frame, bytes) else frame.encode())

    page.on("websocket", lambda socket: socket.on("framesent", record))
    page.goto(f"{shared.url}/Explore?run={built[1]}")
    field = page.locator(f"{MAP} .nsewdrag.drag").first
    expect(field).to_be_visible()
    settled(page)
    whole = page.evaluate(RANGES)

    def turn() -> None:
        still(field)
        field.hover()
        page.mouse.wheel(0, -400)

    insisting(page, turn)  # plotly reports a wheel event only after the wheel has stopped
    page.wait_for_function(f"before => ({RANGES})[0] !== before", arg=whole[0])
    near = page.evaluate(RANGES)
    lasso(page, size=0.2)
    outlines = [frame for frame in sent if b'"lasso":[{' in frame]
    assert outlines
    assert not any(
        b"customdata" in frame for frame in outlines
    )  # of a lasso, the browser sends the outline and not the points inside
    by = page.get_by_role("combobox", name="Colour by")
    by.focus()
    by.press_sequentially("score")
    page.keyboard.press("Enter")
    expect(page.locator(f"{MAP} .js-plotly-plot .cbaxis, {MAP} .js-plotly-plot .colorbar").first).to_be_visible()
    settled(page)
    until(lambda: np.allclose(page.evaluate(RANGES), near), "the map shows what it showed")
    expect(page.get_by_role("heading", name="Your lasso")).to_be_visible()
    page.wait_for_function(f"{OUTLINE}?.length === 1")


BESIDE = """([name, x, y]) => {
    const map = document.querySelector(".st-key-explore-map"), plot = map.querySelector(".js-plotly-plot");
    const { xaxis, yaxis } = plot._fullLayout, corner = plot.getBoundingClientRect();
    const found = [...map.querySelectorAll(".w-names span")].find(span => span.textContent === name);
    if (!found) return null;
    const box = found.getBoundingClientRect();
    return [
        (box.left + box.right) / 2 - corner.left - xaxis._offset - xaxis.d2p(x),
        box.bottom - corner.top - yaxis._offset - yaxis.d2p(y),
    ];
}"""  # pixels from a place on the map to the middle and the lower end of a name
COVERED = """() => {
    const boxes = selector => [...document.querySelectorAll(`.st-key-explore-map ${selector}`)]
        .filter(element => element.checkVisibility({ visibilityProperty: true }))
        .map(element => element.getBoundingClientRect());
    const names = boxes(".w-names span"), all = [...names, ...boxes(".annotation-text-g")];
    const over = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    return [names.length, names.filter(name => all.some(other => other !== name && over(name, other))).length];
}"""  # visible names, and those of them that cover another name


def test_smaller_groups_are_named_as_the_map_is_enlarged(
    server: Server, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    sample = projects.open_finished_sample().slug
    with within(sample):
        map_run = maps.finished()[0].id
        first, second, _ = maps.zoom_names(map_run)
        across, up = (float(np.ptp(axis)) for axis in maps.get(map_run).xy[:2])
    pairs = [(one, other) for i, one in enumerate(second) for other in second[i + 1 :]]
    closest, other = min(
        pairs, key=lambda two: math.hypot((two[0].x - two[1].x) / across, 4 * (two[0].y - two[1].y) / up)
    )
    page.goto(f"{server.url}/Explore?project={sample}")
    field = page.locator(f"{MAP} .nsewdrag.drag").first
    expect(field).to_be_visible()
    settled(page)
    still(field)
    names = page.locator(f"{MAP} .w-names span")
    expect(names).to_have_count(0)

    def enlarged(x: float, y: float, n: int) -> bool:
        page.mouse.move(*page.evaluate(PLACE, [x, y]))
        page.mouse.wheel(0, -200)
        settled(page)
        return names.count() == n

    until(lambda: enlarged(closest.x, closest.y, len(first)), "the names of the largest groups")
    right, below = page.evaluate(BESIDE, [first[0].text, first[0].x, first[0].y])
    assert abs(right) < 2
    assert -30 < below < 0
    until(lambda: enlarged(closest.x, closest.y, len(second)), "the names of smaller groups")
    shown, covered = page.evaluate(COVERED)
    assert shown > 5
    assert covered == 0
    assert names.get_by_text(closest.text, exact=True).is_visible()  # the larger of two groups has its name
    assert not names.get_by_text(other.text, exact=True).is_visible()
    page.get_by_role("button", name="Options").click()
    page.get_by_role("button", name="topic words").click()
    expect(names).to_have_count(0)


BOX = f"""() => {{
    const box = document.querySelector('{MAP} .js-plotly-plot').getBoundingClientRect();
    const main = document.querySelector('[data-testid=stMain]').getBoundingClientRect();
    return {{ share: box.height / innerHeight, end: box.bottom / innerHeight, wide: box.width / main.width }};
}}"""


def test_the_map_fills_the_page_and_the_panel_keeps_its_height(
    server: Server, page: Page, mapped: tuple[str, Points]
) -> None:
    for width, height, wide in ((1280, 900, 0.9), (1920, 1080, 0.9), (800, 900, 0.85)):
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{server.url}/Explore?run={mapped[0]}")
        field = page.locator(f"{MAP} .nsewdrag.drag").first
        expect(field).to_be_visible()
        settled(page)
        still(field)
        box = page.evaluate(BOX)
        assert box["share"] >= 0.7, (width, box)
        assert box["wide"] >= wide, (width, box)
        assert box["end"] <= 1 or width == 800, (width, box)  # the chart fits without scrolling
        filters(page)
        expect(page.get_by_role("heading", name="The whole map")).to_be_visible()
        if width > 800:
            page.wait_for_function(f"({BOX})().wide < 0.9")  # the panel is beside the map
        assert page.evaluate(BOX)["share"] == pytest.approx(box["share"])
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
