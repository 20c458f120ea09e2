"""Some shapes uploaded on the drawn page Corpora: what the page shows, asks and imports."""

from collections.abc import Mapping
from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.importing import view as corpora
from core.projects import runs
from tests.imports.every import SHAPES
from tests.imports.judge import problems
from tests.imports.run import Outcome
from tests.imports.shape import Content, Refused, Right, Shape
from tests.pages.drawing import opened, texts

READ = (
    "lower-case-tags",
    "kaggle-annotated-corpus",
    "brat-crlf",
    "webanno-tsv-3.3",
    "germeval-2014",
    "prodigy-binary",
    "label-studio-hypertext",
    "pdf-ligature-nul",
    "wikiner-one-line",
)
REFUSED = ("uima-xmi", "git-lfs-pointer", "doccano-classification", "tagtog-zip", "part-of-speech-tags")


def shape(name: str) -> Shape:
    return next(each for each in SHAPES if each.name == name)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run imports in this process before the page continues."""
    monkeypatch.setattr(runs, "start", lambda kind, options: runs.execute(kind, options).id)


def dropped(files: Mapping[str, Content]) -> AppTest:
    """Upload files on the page; several files of one import open the form with all options."""
    app = opened("pages/1_Corpora.py")
    for name, content in files.items():
        app.file_uploader[0].upload(name, content if isinstance(content, bytes) else content.encode())
    app.run()
    if any(button.key == "corpora.one" for button in app.button):
        app.button(key="corpora.one").click().run()
    return app


@pytest.mark.parametrize("name", [*READ[:2], *(pytest.param(name, marks=pytest.mark.full) for name in READ[2:])])
def test_the_page_imports_the_files(name: str, home: Path) -> None:
    app = dropped(shape(name).files)
    assert not app.exception
    app.button(key="corpora.submit").click().run()
    assert not app.exception
    right = shape(name).right
    assert isinstance(right, Right)
    page_text = unescape(texts(app)) + "".join(str(table.value.to_dict()) for table in app.dataframe)
    assert problems(right, Outcome(0, tuple(corpora.listed()), page_text)) == []


@pytest.mark.parametrize("name", [*REFUSED[:2], *(pytest.param(name, marks=pytest.mark.full) for name in REFUSED[2:])])
def test_the_page_refuses_and_says_what_to_do(name: str, home: Path) -> None:
    app = dropped(shape(name).files)
    if any(button.key == "corpora.submit" for button in app.button):
        app.button(key="corpora.submit").click().run()
    right = shape(name).right
    assert isinstance(right, Refused)
    assert problems(right, Outcome(2, tuple(corpora.listed()), unescape(texts(app)))) == []
