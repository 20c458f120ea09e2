"""A drop of several files on Corpora: the parts that are proposed, changes, the question, one button, and its report."""

from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.corpora import looks
from core.corpora.proposal import DIVIDE, SOURCE, UNUSED, Look
from core.corpora.readers import Preview, ReadOptions, sniff
from core.errors import ReadError
from core.importing import view as corpora
from core.importing.result import ROLES
from core.projects import runs
from tests import documents
from tests.importing.test_intake import labels
from tests.pages.drawing import dropped, opened, opened_on, press, texts
from tests.planted import kitchen

FILES = {"mine.conll": labels(120).encode(), "pile.txt": "\n".join(kitchen(300)).encode()}


TWO = {f"{name}.txt": "\n".join(kitchen(n, seed=n)).encode() for name, n in (("x", 60), ("y", 90))}
CORPORA = "pages/1_Corpora.py"
pytestmark = pytest.mark.usefixtures("at_once")


def parts(app: AppTest) -> dict[str, str]:
    """{row: the part in its list}."""
    boxes = [box for box in app.selectbox if box.label.startswith("Role of ")]
    return {box.label.removeprefix("Role of "): str(box.value) for box in boxes}


def box(app: AppTest, name: str) -> Any:
    return next(box for box in app.selectbox if box.label == f"Role of {name}")


def test_parts_are_proposed_found_again_after_a_reload_and_used_in_one_press(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[Sequence[Path]]()
    real = looks.looks

    def counted(paths: Sequence[Path]) -> list[Look]:
        asked.append(paths)
        return real(paths)

    monkeypatch.setattr(looks, "looks", counted)
    app = dropped(**FILES)
    assert parts(app) == {"mine.conll": DIVIDE, "pile.txt": "domain"}
    said = unescape(texts(app))
    assert "120 sentences · labelled (PARTY)" in said
    assert "300 sentences" in said
    assert "upload" in app.query_params
    app.run()
    assert len(asked) == 1
    press(app, "corpora.use")
    assert set(corpora.roles()) == set(ROLES)
    assert not list((home / "uploads").iterdir())
    assert "upload" not in app.query_params
    corpora.remove(corpora.roles()["domain"])
    app = opened_on(CORPORA, runs.listed("intake")[0].id)  # its report outlives what it describes
    assert "a removed corpus" in texts(app)


def test_a_row_offers_what_it_can_be_and_a_changed_part_is_what_is_used(home: Path) -> None:
    app = dropped(**FILES, **{"<b>torn.docx": b"PK\x03\x04 torn", "more.conll": labels(30, start=150).encode()})
    offered = {row: len(box(app, row).options) for row in parts(app)}
    assert offered["pile.txt"] == 4  # task, domain, further source, not used
    assert [n for row, n in offered.items() if "torn.docx" in row] == [1]  # not used
    assert "<b>torn" not in texts(app)
    box(app, "more.conll").select("train")
    box(app, "mine.conll").select(DIVIDE).run()
    assert app.button(key="corpora.use").disabled  # two training sets
    for name in ("mine.conll", "more.conll"):
        box(app, name).select(UNUSED)
    box(app, "pile.txt").select(UNUSED).run()
    assert app.button(key="corpora.use").disabled  # nothing is used
    box(app, "pile.txt").select("task").run()
    press(app, "corpora.use")
    assert set(corpora.roles()) == {"task"}


def test_a_second_drop_adds_sources_and_replaces_only_what_is_chosen(home: Path) -> None:
    dropped(**FILES).button(key="corpora.use").click().run()
    before = corpora.roles()
    app = dropped(**TWO)
    assert parts(app) == {"x.txt": SOURCE, "y.txt": SOURCE}
    box(app, "y.txt").select("domain").run()
    assert "pile (300 sentences)" in unescape(texts(app))  # what it replaces
    press(app, "corpora.use")
    assert corpora.find(corpora.roles()["domain"]).name == "y"
    press(app, "corpora.undo")
    assert corpora.roles() == before
    assert {"x", "y"} <= {corpus.name for corpus in corpora.listed()}


def test_texts_dropped_together_are_kept_apart_if_asked(home: Path) -> None:
    app = dropped(**TWO)
    assert set(parts(app).values()) == {"domain"}
    [joined] = [control for control in app.segmented_control if control.label.startswith("2 texts")]
    joined.set_value(joined.options[-1]).run()
    assert parts(app) == {"x.txt": SOURCE, "y.txt": "domain"}
    press(app, "corpora.use")
    assert {corpus.name for corpus in corpora.listed()} == {"x", "y"}
    assert corpora.find(corpora.roles()["domain"]).name == "y"


def test_documents_alone_ask_which_are_like_the_task(home: Path) -> None:
    app = dropped(**{f"{i}.docx": documents.docx([f"The deed of party {i} is signed."] * 3) for i in range(4)})
    assert list(parts(app).values()) == ["domain"]
    [ask] = app.multiselect
    assert ask.options == [f"{i}.docx" for i in range(4)]
    ask.select("2.docx").run()
    assert sorted(parts(app).values()) == ["domain", "task"]
    press(app, "corpora.use")
    names = {role: corpora.find(mark).name for role, mark in corpora.roles().items()}
    assert names == {"task": "2", "domain": "0 and 2 more"}


def test_a_file_that_cannot_be_imported_says_why_in_its_row_and_waits(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sniffed(path: Path, options: ReadOptions) -> Preview:
        if path.name == "mine.conll":
            raise ReadError(path.name, 3, "the schemes are mixed")
        return sniff(path, options)

    monkeypatch.setattr("core.importing.intake.sniff", sniffed)
    app = dropped(**FILES)
    press(app, "corpora.use")
    assert "are mixed" in texts(app)
    assert set(corpora.roles()) == {"domain"}
    assert len(list((home / "uploads").iterdir())) == 1


def test_a_folder_by_its_path_is_proposed_too_and_stays_as_it_is(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "matter"
    folder.mkdir()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    app = opened(CORPORA, {"corpora.source": "A path on this machine"})
    app.text_input[0].set_value(str(folder))
    press(app, "corpora.look")
    assert parts(app) == {"mine.conll": DIVIDE, "pile.txt": "domain"}
    press(app, "corpora.use")
    assert set(corpora.roles()) == set(ROLES)
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


@pytest.mark.parametrize(
    ("name", "rows", "key", "answer", "types"),
    [
        (
            "train.tsv",
            "Aspirin\tB\nhelps\tO\n.\tO\n\nDock\tB\nfever\tI\neased\tO\n.\tO\n\n",
            "corpora.entity_type.",
            "DISEASE",
            {"DISEASE": 8},
        ),
        ("words.txt", "Mara\tNNP\tB-PER\tB\nleft\tVBD\tO\tO\n.\t.\tO\tO\n\n", "corpora.tag_column.", "3", {"PER": 4}),
    ],
)
def test_a_type_or_a_column_of_tags_that_the_file_leaves_open_is_asked_for(
    name: str, rows: str, key: str, answer: str, types: dict[str, int], home: Path
) -> None:
    app = dropped(**{name: (rows * 4).encode()})
    next(field for field in app.text_input if (field.key or "").startswith(key)).set_value(answer)
    if "column" in key:
        app.run()  # the file is looked at again
    press(app, "corpora.submit")
    assert dict(corpora.listed()[0].types) == types
