"""Exports of other tools, by command and by the page Corpora: read correctly, or refused with advice."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from core.corpora import looks, preview
from core.corpora.readers import sniff
from tests.imports.every import SHAPES
from tests.imports.judge import problems
from tests.imports.run import by_command, by_page, write
from tests.imports.shape import Refused, Right, Shape


def said(shape: Shape) -> bool:
    """Return True if the import of a shape must show a message."""
    return isinstance(shape.right, Refused) or bool(shape.right.says)


# Both ways share the readers, so `make test` uses the command only for shapes that expect a message or need an option.
BY_COMMAND = [
    pytest.param(shape, id=shape.name, marks=[] if shape.asks or shape.options or said(shape) else pytest.mark.full)
    for shape in SHAPES
]


@pytest.mark.parametrize("shape", BY_COMMAND)
def test_the_command_gives_the_right_answer(
    shape: Shape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(shape.files, tmp_path / "files")
    if shape.asks:
        outcome = by_command(path, {}, monkeypatch, capsys)
        assert outcome.code == 2
        assert not outcome.added
        assert re.search(shape.asks, outcome.said, re.IGNORECASE), outcome.said
    assert problems(shape.right, by_command(path, shape.options, monkeypatch, capsys)) == []


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Preview and propose in this process, because starting another process takes a second."""
    for module in (preview, looks):
        monkeypatch.setattr(module, "_process", InProcess(module.answer))


class InProcess:
    """`core.isolated.Isolated` without the process."""

    def __init__(self, answer: Callable[..., object]) -> None:
        self._answer = answer

    def ask(self, what: str, /, **request: object) -> object:
        return json.loads(json.dumps(self._answer(**request)))


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_the_page_gives_the_right_answer(shape: Shape) -> None:
    if shape.asks:
        outcome = by_page(shape.files, {})
        assert outcome.code == 2
        assert not outcome.added
        assert re.search(shape.asks, outcome.said, re.IGNORECASE), outcome.said
    assert problems(shape.right, by_page(shape.files, shape.options)) == []


NAMED = {
    "doccano-1.8-jsonl": "doccano",
    "doccano-csv": "doccano",
    "prodigy-manual": "prodigy",
    "label-studio-json": "labelstudio",
    "brat-standard": "brat",
    "spacy-2-pairs": "spacy",
    "conll-2003-english": "conll",
    "tner-label-json": "hf",
    "text-utf-16": "txt",
}


@pytest.mark.parametrize("name", NAMED)
def test_a_preview_names_the_format(name: str, tmp_path: Path) -> None:
    (shape,) = (shape for shape in SHAPES if shape.name == name)
    seen = sniff(write(shape.files, tmp_path / "files"))
    assert isinstance(shape.right, Right)
    assert (seen.format, seen.labelled) == (NAMED[name], shape.right.labelled)
    assert len(seen.rows) >= shape.right.sentences - 1


def test_there_are_a_hundred_shapes_and_most_are_read() -> None:
    assert len({shape.name for shape in SHAPES}) == len(SHAPES) >= 100
    assert sum(isinstance(shape.right, Right) for shape in SHAPES) >= 85
