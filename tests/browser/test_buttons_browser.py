"""Press the buttons of every page once, on a home with finished runs, and check its visible effect."""

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from core.bias import view as bias_facade
from core.corpora.library import Library
from core.encoders.rank import Proposal, RankResult
from core.experiment import find_out
from core.experiment import view as experiments
from core.explore import regions
from core.explore import view as maps
from core.importing import uploads
from core.importing import view as facade_corpora
from core.importing.result import ROLES
from core.projects import labels, runs
from core.runs.run import Run
from core.selection import view as selections
from tests import finished
from tests.browser.buttons import BUTTONS, BY_WALK, registered
from tests.browser.conftest import end_workers
from tests.browser.driver import Server, expert, insisting, left, pick, settled, still, tick
from tests.browser.forge import Forge
from tests.browser.prepared_home import Prepared, build_prepared
from tests.conftest import sentence
from tests.homes import Homes
from tests.pages.test_ranking import ranked
from tests.waiting import until, within

STILL = """e => Promise.all(e.getAnimations({subtree: true}).filter(a => a.effect.getComputedTiming().endTime < 1e6)
    .map(a => a.finished.catch(() => 0)))"""
VECTORS = "External word vectors (GloVe, word2vec, fastText)"
LARGER = "Start from a larger encoder: slower, and better at most tasks"
ROAD = {"bias", "project", "selection"}  # walks of `make test`; the others run in `make test-full`
WALKS: dict[str, Callable[["Walk"], None]] = {}


@pytest.fixture(scope="module")
def prepared(homes: Homes, tmp_path_factory: pytest.TempPathFactory, forge: Forge) -> Iterator[tuple[Server, Prepared]]:
    """Start one server on one home for all walks."""
    place = tmp_path_factory.mktemp("pressed")
    (place / "data").mkdir()
    (place / "index").mkdir()
    nobody = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null", "PIP_FIND_LINKS": str(place / "index")}
    with (
        Server(home=place / "home", data=place / "data", environment=nobody, forge=forge) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("WINNOW_HOME", str(server.home))
        runs = Prepared(**homes.copy(build_prepared, server.project))
        server.start()
        yield server, runs


@dataclass
class Walk:
    """Press buttons on the pages. pressed: the keys of `BUTTONS` that were pressed."""

    page: Page
    server: Server
    runs: Prepared
    pressed: set[str] = field(default_factory=set)

    def go(self, path: str, tab: str = "", opened: str = "") -> None:
        """Go to a page, and open one of its tabs and one of its expanders."""
        self.page.goto(f"{self.server.url}/{path}")
        settled(self.page)
        if tab:
            self.tab(tab)
        if opened:
            self.open(opened)

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name).click()
        settled(self.page)

    def open(self, name: str) -> None:
        """Open an expander if it is closed; of nested expanders with this text, the inner one."""
        expander = self.page.get_by_test_id("stExpander").filter(has=self.page.get_by_text(name, exact=True)).last
        if expander.locator("details").first.get_attribute("open") is None:
            expander.locator("summary").first.click()
            expect(expander.get_by_test_id("stExpanderDetails").first).to_be_visible()
            # a click is lost if the element moves between mouse down and mouse up
            expander.evaluate(STILL)

    def button(self, key: str) -> Locator:
        """Find a button by its key, which Streamlit turns into a class."""
        name = re.sub(r"[^a-zA-Z0-9_-]", "-", key)
        return self.page.locator(f".st-key-{name}").get_by_role("button")

    def press(self, key: str, sees: Locator | re.Pattern[str] | str = "", starts: str = "") -> None:
        """Press a button, and wait until its effect is visible. starts: kind of the run that it starts."""
        before = {run.id for run in runs.listed(starts)} if starts else set()
        button = self.button(key)
        seen = sees if isinstance(sees, Locator) else self.page.get_by_text(sees)
        expect(button).to_be_enabled()
        if sees:
            expect(seen.first, f"seen before {key} is pressed").not_to_be_visible()
        button.click()
        if sees:
            expect(seen.first).to_be_visible()
        if starts:
            self.end_new_run(starts, before, key)
        self.well(key)

    def end_new_run(self, kind: str, before: set[str], key: str) -> None:
        """Wait until a run of `kind` has started, and end it. The page refreshes itself until then."""

        def new() -> list[str]:
            self.well(key)
            return [run.id for run in runs.listed(kind) if run.id not in before]

        until(new, f"{key} begins a {kind}")
        for run_id in new():
            end(runs.get(run_id))
        settled(self.page)

    def download(self, key: str) -> bytes:
        """Return the file that a button downloads."""
        button = self.button(key)
        settled(self.page)  # a download button that is redrawn during the click downloads nothing
        expect(button).to_be_enabled()
        with self.page.expect_download() as caught:
            button.click()
        data = Path(caught.value.path()).read_bytes()
        assert data, f"{key} handed over nothing"
        self.well(key)
        return data

    def well(self, key: str) -> None:
        """Assert that the page shows no error, and count the button as pressed."""
        for problem in ("This is a bug in Winnow", "This did not work"):
            expect(self.page.get_by_text(problem)).to_have_count(0)
        expect(self.page.get_by_test_id("stException")).to_have_count(0)
        self.pressed.add(registered(key))


def end(run: Run) -> None:
    """Cancel a run and kill its worker: the walks only test that a button starts the run."""
    until(lambda: run.worker() or not run.state().active, "a worker comes")
    runs.cancel(run.id)
    if worker := run.worker():
        worker.signal(signal.SIGKILL)


def walk(one: Callable[[Walk], None]) -> Callable[[Walk], None]:
    """Register a walk under its name in `BUTTONS`."""
    WALKS[one.__name__] = one
    return one


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.road] * (name in ROAD)) for name in sorted(BY_WALK)],
)
def test_every_button_does_something(
    prepared: tuple[Server, Prepared], page: Page, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(prepared[0].home))
    parts, before = facade_corpora.roles(), {run.id for run in runs.listed()}
    one = Walk(page, *prepared)
    try:
        WALKS[name](one)
    finally:  # a failed walk must not fail the next one or leave its runs behind
        end_workers(prepared[0].home.parent / "road")
        for run in runs.listed():
            if run.state().active:
                end(run)
        until(lambda: not any(run.state().active for run in runs.listed()), "what a walk began ends")
        for run in runs.listed():
            if run.id not in before and run.state().state != "succeeded":
                shutil.rmtree(run.path)
        for role in ROLES:
            facade_corpora.set_role(role, parts.get(role))
    assert one.pressed == {key for key, walk in BUTTONS.items() if walk == name}


@walk
def samples(one: Walk) -> None:
    one.go("Selection?run=20200101-000000-select-dead")
    one.press("selection.run.latest", sees="Export selection as")
    one.go("")
    one.press("home.sample.legal")  # the project has corpora in use, so the sample opens in a separate project
    expect(one.page).to_have_url(re.compile("project=legal-sample"))
    settled(one.page)
    one.page.goto(f"{one.server.url}/Selection?project=legal-sample")
    one.page.get_by_text("Corpora: legal-task").click()
    expect(one.page.get_by_role("combobox", name="Domain corpus")).to_have_value(re.compile("legal"))


@walk
def corpora(one: Walk) -> None:
    file = one.server.data / "rows.jsonl"
    file.write_text('{"text": "A clause is here ."}\n{"text": "Another one follows ."}\n{"text": \n', encoding="utf-8")
    drop = one.page.get_by_test_id("stFileUploaderDropzoneInput")
    one.go("Corpora", opened="Import a corpus")
    one.page.get_by_role("radio", name="A path on this machine").click()
    settled(one.page)
    one.page.get_by_role("textbox", name="File or folder").fill(str(file))
    one.press("corpora.look", sees="Another one follows .")
    settled(one.page)
    one.page.get_by_role("radio", name="Upload a file").click()
    settled(one.page)
    drop.set_input_files(file)
    one.press("corpora.discard")
    settled(one.page)
    expect(one.page.get_by_test_id("stFileUploaderDropzone")).to_be_visible()  # also once the form has closed
    drop.set_input_files(file)
    one.press("corpora.submit", sees="Download the rejected rows")
    assert b"rows.jsonl" in one.download("corpora.rejects")
    settled(one.page)
    one.open("Import a corpus")
    drop.set_input_files(file)
    one.page.get_by_role("textbox", name="Name", exact=True).fill("the same again")
    one.press("corpora.submit", sees=one.button("corpora.rename"))
    settled(one.page)
    table = one.page.get_by_role("table", name="All corpora")
    one.press("corpora.rename", sees=table.get_by_text("the same again", exact=True))
    settled(one.page)
    one.press("corpora.check", sees="exact duplicates")
    settled(one.page)
    one.open("Divide a corpus into parts")
    pick(one.page, "To be divided", re.compile(r"^my test \("), typed="my test (")
    one.press("corpora.split.start", sees=one.button("corpora.split.roles"))
    one.press("corpora.split.roles")
    settled(one.page)
    assert facade_corpora.find(facade_corpora.roles()["dev"]).name == "my test-dev"
    for part in ("train", "dev", "test"):
        facade_corpora.remove(f"my test-{part}")
    rows = one.page.get_by_role("table", name="All corpora").get_by_text("rows", exact=True)
    one.press("corpora.removal", sees="keep some of its text")
    pick(one.page, re.compile("^Corpus$"), re.compile(r"^the same again \("))
    one.press("corpora.remove")
    expect(one.page.get_by_role("table", name="All corpora").get_by_text("the same again", exact=True)).to_have_count(0)
    one.go("Corpora", opened="Import a corpus")
    drop.set_input_files(file)
    expect(one.button("corpora.discard")).to_be_visible()
    one.go("Corpora", opened="Import a corpus")
    [token] = uploads.waiting()
    one.press(f"corpora.waiting.{token}", sees=one.button("corpora.submit"))
    one.go("Corpora", opened="Import a corpus")
    one.press(f"corpora.forget.{token}")
    expect(one.button(f"corpora.forget.{token}")).to_have_count(0)
    assert not uploads.waiting()
    drop.set_input_files(file)
    one.press("corpora.submit", sees="Download the rejected rows")
    settled(one.page)
    one.press("corpora.removal", sees="keep some of its text")
    pick(one.page, re.compile("^Corpus$"), re.compile(r"^rows \("))
    expect(
        one.page.get_by_text(re.compile(r"Removing everything made from it deletes 1 corpus, \d other runs"))
    ).to_be_visible()
    one.press("corpora.remove.all")
    expect(rows).to_have_count(0)
    parts = facade_corpora.roles()
    other = one.server.data / "other.txt"
    other.write_text("One more clause .\nAnd another .\n", encoding="utf-8")
    one.go("Corpora", opened="Import a corpus")
    drop.set_input_files([file, other])
    one.press("corpora.one", sees=one.button("corpora.submit"))
    one.go("Corpora", opened="Import a corpus")
    [token] = uploads.waiting()
    one.press(f"corpora.waiting.{token}", sees=one.button("corpora.use"))
    one.press("corpora.use", sees="The other sources are in the list All corpora")
    settled(one.page)
    assert facade_corpora.roles() == parts
    facade_corpora.set_role(next(iter(parts)), None)
    one.go("Corpora")
    one.press("corpora.undo")
    settled(one.page)
    assert facade_corpora.roles() == parts


@walk
def runs_table(one: Walk) -> None:
    for key in ("runs.remove", "runs.remove.all"):
        made = runs.execute("audit", {"corpus": facade_corpora.roles()["task"]})
        _look_at(one, made.id)
        one.page.get_by_label("Name", exact=True).fill("the first look")
        one.press("runs.keep", sees=one.page.get_by_role("heading", name="the first look"))
        assert labels.read(made).name == "the first look"
        one.press("runs.pin", sees="Unpin")
        one.press("runs.archive", sees=re.compile("^Tick a run"))
        assert labels.read(made).archived
        labels.change(made.id, archived=False)
        _look_at(one, made.id)
        one.press("runs.removal", sees="The run is deleted with its model")
        one.press(key)
        settled(one.page)
        assert made.id not in [run.id for run in runs.listed()]


def _look_at(one: Walk, run_id: str) -> None:
    """Find a run by its id and tick it in the table."""
    one.go("Runs")
    one.page.get_by_text("Imports and checks", exact=True).click()
    settled(one.page)
    search = one.page.get_by_placeholder("Name, tag, note or run")
    search.fill(run_id)
    search.press("Enter")
    expect(one.page.get_by_text(re.compile(r"^1 of \d+ runs"))).to_be_visible()
    settled(one.page)
    table = one.page.get_by_test_id("stDataFrame")
    still(table)
    insisting(one.page, lambda: table.click(position={"x": 18, "y": 55}))
    expect(one.button("runs.keep")).to_be_visible()
    settled(one.page)


@walk
def road(one: Walk) -> None:
    """Walk on a separate home that has no experiment yet."""
    place = one.server.home.parent / "road"
    (place / "data").mkdir(parents=True)
    with (
        Server(home=place / "home", data=place / "data", forge=one.server.forge) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("WINNOW_HOME", str(server.home))
        finished.corpora(server.project)
        calibration = experiments.calibrations(find_out.options())[0]
        finished.finish(server.project, "calibrate", calibration, lambda _: finished.TIMED)
        server.start()
        alone = Walk(one.page, server, one.runs, one.pressed)
        alone.go("")
        plan = "one without further pre-training; one pre-trained on"
        alone.press("home.find", sees=plan)
        one.page.reload()
        settled(one.page)
        expect(one.page.get_by_text(plan)).to_be_visible()
        alone.press("home.find.away")
        expect(one.page.get_by_text(plan)).to_have_count(0)
        settled(one.page)
        alone.press("home.find", sees=plan)
        alone.press("home.find.start", sees="The experiment is running.", starts="experiment")
        facade_corpora.set_role("test", None)
        alone.go("")
        assert b"Plain sentence" in alone.download("home.label")


@walk
def similarity(one: Walk) -> None:
    table = one.page.get_by_role("table", name="Similarity of each source to fruit")
    one.go(f"Similarity?run={one.runs.similarity}")
    expect(table).to_be_visible()
    assert b"orchard" in one.download("similarity.csv")
    assert b"<html" in one.download("similarity.html")
    one.tab("What do the measures predict?")
    lines = ["target,source,tvc,F1", "t,None,,50", "t,a,60,55", "t,b,40,51", "u,None,,40", "u,a,30,41", "u,b,50,44"]
    one.page.get_by_role("textbox", name="The table").fill("\n".join(lines))
    one.press("similarity.judge", sees=one.page.get_by_role("table", name=re.compile("following each measure")))
    settled(one.page)
    one.press(
        "similarity.example", sees=one.page.get_by_role("table", name=re.compile("following each measure, LM F1"))
    )
    one.go(f"Similarity?run={one.runs.similarity}", opened="What to compare")
    one.press("similarity.start", starts="similarity")


@walk
def selection(one: Walk) -> None:
    one.go(f"Selection?run={one.runs.select}")
    assert b" ." in one.download("selection.download")
    one.page.get_by_role("radio", name="folder for datasets").click()
    one.press("selection.export", sees=re.compile("^Written to:"))
    one.open("What to select")
    budget = one.page.get_by_role("textbox", name="Budget", exact=True)
    budget.fill("1000000")
    budget.press("Enter")
    one.press("selection.cure.budget")
    expect(budget).to_have_value("10%")
    settled(one.page)
    one.press("selection.start", starts="select")
    one.go(f"Selection?run={one.runs.select}")
    one.press("selection.map", sees=one.page.get_by_role("heading", name="Explore", exact=True))


@walk
def explore(one: Walk) -> None:
    page = one.page
    one.go(f"Explore?run={one.runs.select}")
    one.press("explore.next", sees="11 to 20 of")
    one.press("explore.previous", sees="1 to 10 of")
    page.get_by_text("Narrow down", exact=True).click()
    settled(page)
    pick(one.page, "Pick a topic or a class", "All sentences that are not selected")
    one.press("explore.add", sees=re.compile(r"^By hand: \d+ added, 0 removed"))
    settled(page)
    one.press("explore.add-flagged", sees="You added flagged sentences to the selection")
    settled(page)
    one.press("explore.undo")
    expect(page.get_by_text("You added flagged sentences to the selection")).to_have_count(0)
    settled(page)
    one.press("explore.seal", sees="The selection with its hand edits is now a corpus")
    pick(one.page, "Pick a topic or a class", "All selected sentences")
    for kind in ("csv", "txt", "jsonl", "parquet"):
        one.download(f"explore.export.{kind}")
    one.press("explore.remove", sees=re.compile(r"^By hand: 0 added, \d+ removed"))
    settled(page)
    one.press("explore.clear", sees=page.get_by_role("heading", name="The whole map"))
    one.press("explore.options", sees="Sentences to draw")
    page.keyboard.press("Escape")
    page.get_by_label("Search all sentences").fill("the")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Sentences with the")).to_be_visible()
    settled(page)
    pick(one.page, "Pick a topic or a class", "All sentences that are not selected")
    expect(page.get_by_role("heading", name="All sentences that are not selected")).to_be_visible()
    one.press("explore.drop.class")
    one.press("explore.clear", sees=one.button("explore.hits"))
    one.press("explore.hits", sees=page.get_by_role("heading", name="Sentences with the"))
    settled(page)
    table = page.get_by_test_id("stDataFrame")
    still(table)
    insisting(page, lambda: table.click(position={"x": 18, "y": 70}))
    expect(page.get_by_role("heading", name="Why this sentence")).to_be_visible()
    before = page.locator(".st-key-explore-edits").inner_text()
    one.press("explore.one.list")
    expect(page.locator(".st-key-explore-edits")).not_to_have_text(before)
    settled(page)
    one.press("explore.close")
    expect(page.get_by_role("heading", name="Why this sentence")).to_have_count(0)
    _named(one)
    while selections.edits(one.runs.select).history:  # restore the selection for other walks
        selections.undo(one.runs.select)


def _named(one: Walk) -> None:
    """Name a region of the map, and remove the name."""
    map_run = str(maps.of(one.runs.select))
    regions.keep_region(map_run, {"kind": "point", "value": len(maps.get(map_run)) - 1})
    one.go(f"Explore?run={one.runs.select}")
    one.press("explore.one.map")
    settled(one.page)
    one.press("explore.drop.point")
    region: regions.Region = {"kind": "box", "value": [[-1e3, 1e3, -1e3, 1e3]]}
    regions.keep_region(map_run, region)
    one.go(f"Explore?run={one.runs.select}")
    one.press("explore.naming", sees=one.button("explore.name"))
    one.page.get_by_label("Name", exact=True).fill("all of it")
    one.press("explore.name", sees=one.page.get_by_role("heading", name="all of it"))
    regions.name_region(map_run, region, "")
    settled(one.page)
    one.press("explore.clear")
    expect(one.page.get_by_role("heading", name="all of it")).to_have_count(0)
    settled(one.page)
    one.press("explore.options", sees=one.button("explore.atlas"))
    one.press("explore.atlas", sees="Open it in Embedding Atlas with")
    assert list((one.server.project / "exports").glob("atlas-*/map.parquet"))


@walk
def training(one: Walk) -> None:
    page = one.page
    panel = page.locator(".st-key-training-run-panel")
    one.go("Training", opened="What to train")
    one.open(LARGER)
    settled(page)
    expect(one.button("training.fetch")).to_be_disabled()
    tick(page, "I agree that mpnet is fetched from these hosts")
    one.press("training.fetch", starts="fetch")
    file = one.server.data / "few.vec"
    file.write_text("of 1 2\n", encoding="utf-8")
    one.open(VECTORS)
    box = page.locator(".st-key-training-vectors-path input")
    box.fill(str(file))
    box.press("Tab")
    one.press("training.vectors.start", starts="vectors-import")
    pick(page, "Start from", re.compile("tiny"), typed="tiny")
    one.open("Which encoder, and which of its layers?")
    one.press("training.rank", starts="rank")
    expert(page)
    page.get_by_role("radio", name="Custom").click()
    for label in ("Epochs", "Patience"):
        box = page.get_by_label(re.compile(rf"^{label}(?! on the corpus)")).and_(page.locator("input"))
        box.fill("400")
        box.press("Enter")
        settled(page)
    before = {run.id for run in runs.listed("finetune")}
    one.press("training.start", sees=panel.get_by_text("Running"))
    [interrupted] = [run for run in runs.listed("finetune") if run.id not in before]
    worker = interrupted.worker()
    assert worker
    os.kill(worker.pid, signal.SIGKILL)
    with within(10):
        expect(panel.get_by_text("Interrupted")).to_be_visible()
    one.press("training.run.smaller", sees=panel.get_by_text("Running"))
    one.press("training.run.cancel", sees=one.button("training.run.resume"))
    one.press("training.run.resume", sees=panel.get_by_text(re.compile("Starting|Running")))


@walk
def ranking(one: Walk) -> None:
    roles = facade_corpora.roles()
    options = {"train": roles["train"], "dev": roles["dev"], "encoders": ("tiny",)}
    result = RankResult(train=1, dev=1, words=1, encoders=[ranked("tiny", Proposal(layers="2", why="It is ahead."))])
    finished.finish(one.server.project, "rank", options, lambda context: result)
    one.go("Training", opened="What to train")
    one.open("Which encoder, and which of its layers?")
    one.press("training.layers.0", sees=one.page.get_by_label("Layers", exact=True))
    expect(one.page.get_by_label("Layers", exact=True)).to_have_value("2")


@walk
def bias(one: Walk) -> None:
    page = one.page
    one.go(f"Bias?run={one.runs.difficulty}")
    _click_the_tallest_bar(one)
    pick(page, "Sentences of a bar", re.compile("."))
    list_key = page.locator("[class*=st-key-bias-list]").filter(has=page.get_by_role("button", name="as CSV")).first
    classes = (list_key.get_attribute("class") or "").split()
    key = next(name for name in classes if name.startswith("st-key-bias-list")).removeprefix("st-key-")
    assert b"," in one.download(key.removesuffix("-csv") + ".csv")
    page.get_by_role("link", name="Review suspicious labels").click()
    expect(page.get_by_role("button", name="Find suspicious labels")).to_be_visible()


def _click_the_tallest_bar(one: Walk) -> None:
    """Click the tallest bar: the list below shows as many mentions as the bar counts."""
    chart = one.page.locator("[class*=st-key-bias-ceim] .stPlotlyChart")
    bars = chart.locator(".bars .point path")
    expect(bars.first).to_be_visible()

    def click() -> None:
        still(chart)
        boxes = [box for bar in bars.all() if (box := bar.bounding_box())]
        tallest = max(boxes, key=lambda box: box["height"])
        one.page.mouse.click(tallest["x"] + tallest["width"] / 2, tallest["y"] + tallest["height"] / 2)

    insisting(one.page, click)
    found = bias_facade.measured(one.runs.difficulty).bars.tolist()
    most = max(found.count(bar) for bar in set(found))
    expect(one.page.get_by_text(re.compile(rf"^{most:,} mentions? with a name minus context"))).to_be_visible()
    marked = one.page.get_by_role("list", name="Sentences with the mention highlighted").locator("mark")
    expect(marked.first).to_be_visible()
    settled(one.page)


@walk
def bias_runs(one: Walk) -> None:
    page = one.page
    one.go(f"Bias?run={one.runs.difficulty}", tab="Rebuild")
    for kind in ("conll", "log"):
        one.download(f"bias.rebuilt.{kind}")
    one.tab("Robustness")
    one.open("View and download a set")
    for kind in ("conll", "log", "slots"):
        one.download(f"bias.robust.{kind}")
    one.open("Make harder test sets")
    one.press("bias.robust.start", starts="robustness")
    one.go(f"Bias?run={one.runs.difficulty}", tab="Rebuild")
    one.open("How to rebuild")
    tick(page, re.compile("has no dev or test set"))
    one.press("bias.rebuild.start", starts="rebuild")
    one.go(f"Bias?run={one.runs.difficulty}", opened="What to measure")
    one.press("bias.start", starts="difficulty")


@walk
def assisting(one: Walk) -> None:
    one.go(f"Assisting?run={one.runs.skl}")
    assert b"\n\n" in one.download("assisting.download")
    one.press("assisting.seal", sees="ready to train on")
    one.tab("Which entities drift")
    assert b"," in one.download("assisting.drift.csv")
    one.tab("Does it help?")
    one.press("assisting.sweep.start", starts="assist")
    one.open("Which corpora")
    pick(one.page, re.compile("^Assisting"), re.compile(r"^away \("))
    one.press("assisting.start", starts="skl")


@walk
def words(one: Walk) -> None:
    one.go("Selection")
    one.press("frame.words", sees="The large corpus of plain text from which sentences are selected.")
    one.go("")
    one.press("home.privacy", sees="There is no telemetry")


@walk
def project(one: Walk) -> None:
    """Walk on a separate home, because a second project moves the home."""
    place = one.server.home.parent / "projects"
    (place / "data").mkdir(parents=True)
    with Server(home=place / "home", data=place / "data", forge=one.server.forge) as server:
        server.start()
        page, apart = one.page, Walk(one.page, server, one.runs, one.pressed)
        name = page.get_by_role("textbox", name="A new project")
        switch = apart.button("project.menu")
        Library(server.project).seal(map(sentence, ["The tenant pays ."]), name="tenants", origin={})
        apart.go("Corpora")
        rows = page.get_by_role("table", name="All corpora")
        expect(rows.get_by_text("tenants")).to_be_visible()

        def menu() -> None:
            """Open the project menu, which a new name or a new page closes."""
            settled(page)
            if not name.is_visible():
                apart.press("project.menu", sees=name)
                settled(page)

        menu()
        exported = place / "first.zip"
        exported.write_bytes(apart.download("project.export"))
        name.fill("Leases")
        apart.press("project.new")
        expect(page).to_have_url(re.compile(r"/\?project=leases$"))
        expect(switch).to_have_text(re.compile("Leases"))
        settled(page)
        page.get_by_role("link", name="Corpora").first.click()
        expect(page).to_have_url(re.compile(r"/Corpora\?project=leases$"))
        settled(page)
        expect(page.get_by_text("tenants")).to_have_count(0)

        menu()
        page.get_by_role("textbox", name="This project's name").fill("Contracts")
        apart.press("project.rename")
        expect(switch).to_have_text(re.compile("Contracts"))
        for key in ("project.archive", "project.unarchive"):
            menu()
            apart.press(key)
            expect(apart.button(key)).to_have_count(0)
        menu()
        page.get_by_test_id("stPopoverBody").get_by_test_id("stFileUploaderDropzoneInput").set_input_files(exported)
        expect(page.get_by_role("textbox", name="Call it")).to_have_value("My first project 2")
        settled(page)
        apart.press("project.import")
        expect(page).to_have_url(re.compile(r"/\?project=my-first-project-2$"))
        menu()
        page.get_by_role("link", name="My first project", exact=True).click()
        expect(page).to_have_url(re.compile(r"/\?project=my-first-project$"))
        settled(page)
        page.goto(f"{server.url}/Corpora?project=my-first-project-2")
        settled(page)
        expect(rows.get_by_text("tenants")).to_be_visible()
        page.goto(f"{server.url}/?project=my-first-project")
        settled(page)
        apart.press("home.finished.legal")
        expect(page).to_have_url(re.compile(r"/\?project=legal-sample-finished$"))
        settled(page)
        expect(apart.button("home.report.pdf")).to_be_enabled()
        left(page)
