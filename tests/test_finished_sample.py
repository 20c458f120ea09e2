"""The sample that ships with its answer: small, whole, and one click away."""

from pathlib import Path

import pytest

from core.errors import ProjectError
from core.facade import maps, projects, reports, road
from core.facade.projects import FINISHED_SAMPLE, within
from core.portable import unpack
from tests.pages.test_pages import opened

MOST = 6_000_000  # bytes; `.ci/finished` makes nothing larger


def test_it_is_small_enough_to_ship() -> None:
    assert FINISHED_SAMPLE.stat().st_size <= MOST


def test_its_road_is_walked_to_the_end(home: Path) -> None:
    project = projects.open_finished_sample()
    with within(project.slug):
        texts, choice, worth, report = stops = road.stops()
        assert all(stop.ready for stop in stops), stops
        assert maps.result(str(maps.of(choice.run))).points > 1000
        assert worth.run == report.run
        assert reports.report(report.run, "pdf").startswith(b"%PDF")
        assert "sentences" in texts.known


def test_it_is_opened_once(home: Path) -> None:
    first = projects.open_finished_sample()
    assert projects.open_finished_sample() == first
    assert [project.name for project in projects.listed()].count(first.name) == 1


def test_home_says_what_is_wrong_with_it(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (half := tmp_path / "half.zip").write_bytes(FINISHED_SAMPLE.read_bytes()[:1000])
    monkeypatch.setattr(projects, "FINISHED_SAMPLE", half)
    with pytest.raises(ProjectError), half.open("rb") as file:
        unpack.name_in(file, half.name)
    app = opened("home.py")
    next(button for button in app.button if button.label == "See a finished one").click().run()
    assert not app.exception
    assert "is damaged or no zip" in app.error[0].value
    assert len(projects.listed()) == 1
