"""Every page in each of its states: empty, with a finished run, with running runs, and with removed corpora."""

import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.kind import register
from core.kinds import KINDS
from core.project_list import shared_home
from core.projects import preferences
from core.projects.home import store
from core.runs.events import Data, EventLog
from core.runs.store import Run
from pages.ui import empty
from pages.ui.frame import PAGES
from pages.ui.widgets import plain
from tests import finished
from tests.conftest import ROOT, elsewhere
from tests.pages.drawing import opened, texts

ALL = sorted(file for pages in PAGES.values() for file, *_ in pages)
NAMES = {file: name for pages in PAGES.values() for file, name, _ in pages}
Home = tuple[Path, dict[str, str]]
GONE = "No longer on this machine"
DEAD = "20200101-000000-select-dead"
CHARTS: dict[str, tuple[str, ...]] = {  # elements that a page draws only for a finished run
    "Home": ("download_button",),
    "Corpora": ("vega_lite_chart", "html"),
    "Runs": ("dataframe",),
    "Similarity": ("success", "plotly_chart"),
    "Selection": ("metric", "vega_lite_chart"),
    "Explore": ("plotly_chart", "dataframe"),
    "Label": ("bidi_component", "text_area"),
    "Training": ("metric", "vega_lite_chart"),
    "Results": ("plotly_chart",),
    "Bias": ("plotly_chart",),
    "Assisting": ("metric",),
    "Papers": ("code",),
}


def test_menu_names_every_page_and_each_has_its_pictures() -> None:
    assert sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "pages").glob("*.py")) == ALL[1:]
    names = {name.lower() for name in NAMES.values()} - {"papers"}
    assert set(empty.SHOWN) == names
    pictures = sorted(f"{name}-{theme}.webp" for name in names for theme in ("light", "dark"))
    assert sorted(path.name for path in empty.PICTURES.iterdir()) == pictures


@pytest.mark.parametrize("page", ALL)
def test_empty_page_offers_a_sample_and_shows_its_picture(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    theme = "dark" if page > "pages/5" else "light"
    monkeypatch.setattr(empty, "is_dark", lambda: theme == "dark")
    app = opened(page)
    assert not app.error
    assert {link.proto.page for link in app.sidebar.get("page_link")} >= set(NAMES.values()) - {"Home"}
    assert [popover for popover in app.get("popover") if popover.proto.popover.label == "Words"]
    assert [toggle.value for toggle in app.sidebar.toggle] == [False]  # the switch for experts
    if page != "pages/9_Papers.py":
        name = NAMES[page].lower()
        assert any((button.key or "").endswith(".sample.legal") for button in app.button)
        [picture] = [picture for drawn in app.get("image") for picture in drawn.proto.imgs]
        kept = (empty.PICTURES / f"{name}-{theme}.webp").read_bytes()
        assert picture.url == f"data:image/webp;base64,{b64encode(kept).decode()}"
        assert picture.alt == empty.SHOWN[name]


@pytest.mark.parametrize("page", ALL)
def test_page_shows_its_finished_run(page: str, filled_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(filled_home[0]))
    run_id = filled_home[1][NAMES[page]]
    app = opened(page, run=run_id) if run_id else opened(page)
    assert not app.error
    assert {kind: len(app.get(kind)) > 0 for kind in CHARTS[NAMES[page]]} == dict.fromkeys(CHARTS[NAMES[page]], True)
    assert "<img src=x" not in texts(app)
    assert not [image for image in app.get("image") if image.proto.imgs[0].alt in empty.SHOWN.values()]
    assert not nameless(app)


@pytest.mark.full
@pytest.mark.parametrize("page", ALL)
def test_every_view_of_a_page_is_drawn_for_an_expert(
    page: str, filled_home: Home, copied: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(copied(filled_home[0])))
    preferences.set_expert(True)
    run_id = filled_home[1][NAMES[page]]
    app = opened(page, run=run_id) if run_id else opened(page)
    views = [(row.proto.id, option) for row in rows_of_buttons(app) for option in row.options if option != row.value]
    for row_id, option in views:
        for row in rows_of_buttons(app):
            if row.proto.id == row_id:
                row.set_value([option] if isinstance(row.value, list) else option).run()
                assert not nameless(app)
                break


def nameless(app: AppTest) -> list[str]:
    """Return the charts and tables of a page that have no name for a screen reader."""
    charts = [chart.proto for kind in ("plotly_chart", "vega_lite_chart", "dataframe") for chart in app.get(kind)]
    html = [*(element.proto.body for element in app.get("html")), *(element.value for element in app.markdown)]
    tables = [table for body in html for table in re.findall(r"<table.*?</table>", body, re.DOTALL)]
    return [
        *(str(proto)[:200] for proto in charts if not proto.alt.strip()),
        *(
            table[:200]
            for table in tables
            if not re.search(r"<caption[^>]*>\s*[^<\s]|^<table[^>]* aria-label=\"\S", table)
        ),
    ]


def rows_of_buttons(app: AppTest) -> list[Any]:
    """Return the rows of buttons of which one is pressed."""

    def walked(node: Any) -> Iterator[Any]:
        yield node
        for child in getattr(node, "children", {}).values():
            yield from walked(child)

    return [node for node in walked(app.main) if getattr(node, "type", "") == "button_group"]


@pytest.fixture(scope="module")
def working(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Run]]]:
    """Yield a home and {strategy: run}: two selections run, one waits, and one has failed."""
    with elsewhere(tmp_path_factory.mktemp("working") / "home") as home, ExitStack() as held:
        made, recipe = finished.corpora(home), KINDS["select"]
        names = {role: made[role].fingerprint for role in ("task", "domain")}
        started_runs = {
            by: register(
                recipe, recipe.config.parse({**names, "strategy": by.partition(",")[0], "seed": seed}), store()
            )
            for seed, by in enumerate(("random, failed", "random", "length-matched-random", "ngram-perplexity"))
        }
        failed = started_runs.pop("random, failed")
        for run in started_runs.values():
            held.enter_context(finished.as_running(run))
        part: Data = {"number": 3, "of": 6, "name": "knn 10%: pre-training", "left": 720.0, "after": 60.0}
        with EventLog(started_runs["random"].events_file) as log:
            log.append("part", part)
        with EventLog(started_runs["ngram-perplexity"].events_file) as log:
            log.append("note", {"text": "waiting", "waiting_for": started_runs["random"].id})
        with EventLog(failed.events_file) as log:
            log.append("started", {"pid": 2**22 + 1, "created": 0.0})
            log.append("failed", {"error": "x"})
        yield home, started_runs


@pytest.mark.parametrize("page", ALL)
def test_every_page_shows_the_progress_of_running_runs(
    page: str, working: tuple[Path, dict[str, Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(working[0]))
    app = opened(page)
    links = [link.proto for link in app.sidebar.get("page_link") if "run=" in link.proto.query_string]
    bars = [bar.proto.text for bar in app.sidebar.get("progress")]
    bar_of = {link.query_string.partition("run=")[2].split("&")[0]: bar for link, bar in zip(links, bars, strict=True)}
    assert set(bar_of) == {run.id for run in working[1].values()}
    assert bar_of[working[1]["random"].id].startswith("Part 3 of 6")
    assert plain("by random") in bar_of[working[1]["ngram-perplexity"].id]  # the run that it waits for


@pytest.mark.parametrize("page", ALL)
def test_page_shows_a_run_whose_corpora_were_removed_and_says_so(
    page: str, home_without_corpora: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(home_without_corpora[0]))
    run_id = home_without_corpora[1][NAMES[page]]
    app = opened(page, run=run_id) if run_id else opened(page)
    assert not app.error
    if NAMES[page] in ("Similarity", "Selection", "Explore", "Training", "Results", "Bias", "Assisting"):
        assert GONE in texts(app)
        assert app.metric or app.get("plotly_chart") or app.get("html")
        assert not any((button.key or "").endswith(".resume") for button in app.button)


@pytest.mark.parametrize("page", [page for page in ALL if page[6:7].isdigit() and page[6:8] not in ("9_", "10")])
def test_address_of_an_unknown_run_shows_no_other_run(
    page: str, filled_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(filled_home[0]))
    app = opened(page, run=DEAD)
    assert not app.error
    assert "This result is not in this project" in texts(app)
    assert str(filled_home[0]) not in texts(app)
    assert all("Finished" not in element.value for element in app.markdown)  # no panel of another run


def test_expert_switch_is_stored_for_all_pages_and_a_damaged_file_counts_as_off(home: Path) -> None:
    app = opened("home.py")
    app.sidebar.toggle[0].set_value(True).run()
    assert preferences.expert()
    assert opened("pages/3_Selection.py").sidebar.toggle[0].value
    for damaged in ('{"expert": "yes"', '{"expert": "yes"}'):
        (shared_home(home) / preferences.PREFERENCES_FILE).write_text(damaged)
        assert not preferences.expert()
    app.run()
    preferences.set_expert(True)
    assert preferences.expert()
