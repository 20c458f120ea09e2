"""Documents dropped on Corpora: proposed roles, import with one click, and a reload."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pypdfium2
import pytest
from playwright.sync_api import CDPSession, Page, TimeoutError, expect

from core.experiment import find_out, results
from core.experiment import view as experiments
from core.importing import view as corpora
from core.projects import runs
from tests import finished
from tests.browser.driver import Server, pick, settled, still
from tests.corpora.test_proposal import conll, mixed, plain
from tests.waiting import until

LEARNT = 1_200  # seconds that nine small trainings may take while other work runs
ALL = {"task", "domain", "train", "dev", "test"}


class Person:
    """Drop files and click. clicks: number of clicks, without the drop and without typing."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page, self.server, self.clicks = page, server, 0
        page.goto(server.url)
        settled(page)
        self.click("Add your texts", role="link")
        expect(page.get_by_role("heading", level=1)).to_have_text("Corpora")
        settled(page)

    def drop(self, *files: Path) -> None:
        self.page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(files)
        expect(self.page.get_by_role("button", name="Use these")).to_be_visible()
        settled(self.page)

    def drop_folder(self, folder: Path) -> None:
        """Drag a folder from the file manager: no input of a page accepts a folder and files."""
        box = still(self.page.get_by_test_id("stFileUploaderDropzone"))
        place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        dragged = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
        hand = self.page.context.new_cdp_session(self.page)
        self.page.evaluate("addEventListener('drop', () => { window.dropped = true; }, true)")
        until(lambda: self._let_go(hand, {**place, "data": dragged}), "the drop area is no target")
        expect(self.page.get_by_role("button", name="Use these")).to_be_visible()
        settled(self.page)

    def _let_go(self, hand: CDPSession, what: dict[str, object]) -> bool:
        """Return True if the page received the drop. A page that is not ready loses it."""
        for kind in ("dragEnter", "dragOver", "dragOver", "drop"):
            hand.send("Input.dispatchDragEvent", {"type": kind, **what})
        with suppress(TimeoutError):
            self.page.wait_for_function("window.dropped", timeout=5_000)
            return True
        return False

    def click(self, name: str, role: str = "button") -> None:
        self.page.get_by_role(role, name=name, exact=True).click()  # type: ignore[arg-type]
        self.clicks += 1

    def part(self, name: str | re.Pattern[str]) -> str:
        """Return the role that a row's list shows."""
        return self.page.get_by_role("combobox", name=name).input_value()


@pytest.fixture
def legal(real_data: Path, tmp_path: Path) -> list[Path]:
    """Write a folder of documents in four formats, and labelled sentences of the same domain."""
    folder = tmp_path / "matter"
    mixed(folder, plain(real_data / "unlabeled" / "legal.txt.gz", 250))
    conll(real_data / "inlegalner" / "train.conll", folder / "labels.conll", n=60)
    return sorted(file for file in folder.rglob("*") if file.is_file())


@pytest.fixture
def readable_folder() -> Iterator[Path]:
    """Make a folder that Chromium lets a page read. It refuses folders below /dev, where tests may have theirs."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "matter"


@pytest.mark.real
def test_five_clicks_lead_from_mixed_documents_to_the_answer_and_its_report(
    server: Server, page: Page, legal: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    person = Person(page, server)
    person.drop(*legal)
    assert person.part("Role of labels.conll") == "Labels, to be divided"
    assert person.part(re.compile(r"Role of 4 files \(DOCX, EML, HTML, PDF\)")) == "Domain corpus"
    page.reload()  # dropped files are on disk, and the address names them
    expect(page.get_by_role("button", name="Use these")).to_be_visible()
    settled(page)
    assert person.part("Role of labels.conll") == "Labels, to be divided"
    person.click("Use these")
    expect(page.get_by_text("In use now as task corpus, domain corpus, training set")).to_be_visible()
    settled(page)
    roles = corpora.roles()
    assert roles.keys() == ALL
    assert roles["task"] == roles["train"]
    assert not list((server.project / "uploads").iterdir())
    person.click("Go on", role="link")
    expect(page.get_by_text(re.compile(r"\d+ task sentences, .* to select from, \d+ for training"))).to_be_visible()
    slow = replace(finished.TIMED, load=2000.0)  # so slow that a night suffices for only three replicates
    for encoder in ("minilm", "tiny"):  # store a calibration, so that the person need not wait for one
        calibration = experiments.calibrations(find_out.options(encoder=encoder))[0]
        finished.finish(server.project, "calibrate", calibration, lambda _: slow)
    person.click("Find out")
    pick(page, "Start from", re.compile("tiny"), typed="tiny")
    person.click("Start")
    expect(page.get_by_text("The experiment is running.")).to_be_visible()
    expect(
        page.get_by_text(re.compile(r"\d+ of \d+ sentences \("))
    ).to_be_visible()  # the selection is done, the experiment continues
    expect(page.get_by_role("link", name="All figures")).to_be_visible(timeout=LEARNT * 1000)
    settled(page)
    [experiment] = runs.own("experiment")
    answer = results.finding(experiment.id)
    shown = page.get_by_test_id("stMain").inner_text().replace("\u2060", "")
    assert f"{answer.what} {answer.next}" in " ".join(shown.split())
    assert person.clicks == 5  # the limit is six
    with page.expect_download() as caught:
        page.get_by_role("button", name="Report (.pdf)").click()
    with pypdfium2.PdfDocument(caught.value.path()) as report:
        assert len(report) == 2
        first = " ".join(report[0].get_textpage().get_text_range().split())
    assert answer.word in first
    assert answer.sentence in first


@pytest.mark.road
def test_a_dropped_folder_keeps_the_subfolders_of_its_files(
    server: Server, page: Page, readable_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Import two contracts of the same name from two folders, although a picture is among them."""
    monkeypatch.setenv("WINNOW_HOME", str(server.home))
    for place, who in (("a", "Ada"), ("b", "Bo")):
        (readable_folder / place).mkdir(parents=True)
        (readable_folder / place / "contract.html").write_text(f"<p>{who} rents a flat.</p><p>{who} pays the rent.</p>")
    (readable_folder / "b" / "photo.png").write_bytes(b"\x89PNG\r\n")
    person = Person(page, server)
    person.drop_folder(readable_folder)
    for file in ("a/contract.html", "b/contract.html"):
        assert person.part(f"Role of {file}") in ("Domain corpus", "Not used")
        pick(page, f"Role of {file}", "Domain corpus")
    expect(page.get_by_text("b/photo.png", exact=True)).to_be_visible()
    person.click("Use these")
    expect(page.get_by_text("In use now as domain corpus")).to_be_visible()
    settled(page)
    rows = [row for batch in corpora.find(corpora.roles()["domain"]).batches() for row in batch]
    assert {(row.file, row.tokens[0]) for row in rows} == {("a/contract.html", "Ada"), ("b/contract.html", "Bo")}
    assert not list((server.project / "uploads").iterdir())
