"""A page with nothing to work with shows a picture of itself with the finished sample, in the window's theme."""

import ast
import re
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pages.ui import empty
from tests.browser.pictures import MOST, THEMES, VIEWS
from tests.conftest import ROOT, Seal
from tests.pages.test_pages import opened

ALL_PICTURES = 1_500_000  # bytes


def _empty_pages() -> dict[str, str]:
    """{a page that calls `empty`, or `picture` itself: the name that it gives}."""
    calls = {
        str(path.relative_to(ROOT)): node.args[-1 if node.func.id == "picture" else 1]
        for path in sorted([ROOT / "home.py", *(ROOT / "pages").glob("*.py")])
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("empty", "picture")
    }
    return {path: str(name.value) for path, name in calls.items() if isinstance(name, ast.Constant)}


PAGES = _empty_pages()


def test_every_page_that_may_be_empty_has_a_picture_for_each_theme() -> None:
    assert len(PAGES) == 10
    names = [f"{name}-{theme}.webp" for name in PAGES.values() for theme in THEMES]
    assert sorted(path.name for path in empty.PICTURES.iterdir()) == sorted(names)
    assert sorted(empty.SHOWN) == sorted(PAGES.values()) == sorted(name.lower() for name in VIEWS)


def test_pictures_are_small_and_of_their_theme() -> None:
    files = sorted(empty.PICTURES.iterdir())
    sizes = [file.stat().st_size for file in files]
    assert max(sizes) <= MOST
    assert sum(sizes) < ALL_PICTURES
    for file in files:
        with Image.open(file) as picture:
            assert picture.format == "WEBP", file
            assert picture.width > empty.WIDTH, file
            assert (float(np.median(np.asarray(picture.convert("L")))) < 128) == ("-dark." in file.name), file


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("page", PAGES)
def test_an_empty_page_shows_its_picture(page: str, theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(empty, "is_dark", lambda: theme == "dark")
    app = opened(page)
    assert not app.exception
    (drawn,) = app.get("image")
    (picture,) = drawn.proto.imgs
    kept = (ROOT / "assets" / "pictures" / f"{PAGES[page]}-{theme}.webp").read_bytes()
    assert picture.url == f"data:image/webp;base64,{b64encode(kept).decode()}"
    assert picture.caption == "This page with the finished legal sample."
    assert picture.alt == empty.SHOWN[PAGES[page]]


def test_without_a_picture_the_page_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(empty, "PICTURES", tmp_path)
    app = opened("pages/3_Selection.py")
    assert not app.exception
    assert re.match("A choice needs", app.info[0].value)
    assert not app.get("image")


def test_a_page_that_has_something_shows_no_picture(seal: Seal) -> None:
    seal(["The buyer pays the price ."])
    app = opened("pages/3_Selection.py")
    assert not app.exception
    assert not app.get("image")
