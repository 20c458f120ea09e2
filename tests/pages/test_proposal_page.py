"""A drop of several files on Corpora: the parts that are proposed, changes, the question, one button, and its report."""

from collections.abc import Sequence
from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.corpora import looks
from core.corpora.grouped import Look
from core.corpora.readers import Preview, ReadOptions, sniff
from core.errors import ReadError
from core.facade import corpora, intake, runs
from tests import documents
from tests.pages.test_pages import opened, opened_on, texts
from tests.planted import kitchen
from tests.recipes.test_intake import labels

FILES = {"mine.conll": labels(120).encode(), "pile.txt": "\n".join(kitchen(300)).encode()}


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that workers would do is done by this process, before the page goes on."""
    monkeypatch.setattr(runs, "start", lambda kind, options: runs.execute(kind, options).id)


def dropped(**files: bytes) -> AppTest:
    app = opened("pages/1_Corpora.py")
    for name, data in files.items():
        app.file_uploader[0].upload(name, data)
    return app.run()


def parts(app: AppTest) -> dict[str, str]:
    """{row: the part in its list}."""
    boxes = [box for box in app.selectbox if box.label.startswith("Part of ")]
    return {box.label.removeprefix("Part of "): str(box.value) for box in boxes}


def box(app: AppTest, name: str) -> object:
    return next(box for box in app.selectbox if box.label == f"Part of {name}")


def test_parts_are_proposed_with_what_was_seen_and_used_in_one_press(home: Path) -> None:
    app = dropped(**FILES)
    assert not app.exception
    assert parts(app) == {"mine.conll": intake.DIVIDE, "pile.txt": "domain"}
    said = unescape(texts(app))
    assert "120 sentences · labelled (PARTY)" in said
    assert "300 sentences" in said
    assert "the domain corpus to choose from" in said
    assert "divided into a training set, a dev set and a test set" in said
    assert "The task corpus will be the text of your training set" in said
    app.button(key="corpora.use").click().run()
    assert not app.exception
    assert set(corpora.roles()) == set(corpora.ROLES)
    assert not list((home / "uploads").iterdir())
    assert "upload" not in app.query_params
    said = unescape(texts(app))
    assert "In use now as task corpus, domain corpus, training set" in said
    assert "The task corpus is the text of the training set" in said


def test_a_changed_part_is_what_is_used(home: Path) -> None:
    app = dropped(**FILES)
    box(app, "pile.txt").select("task").run()  # type: ignore[attr-defined]
    assert "No domain corpus yet" in texts(app)
    box(app, "mine.conll").select(intake.UNUSED).run()  # type: ignore[attr-defined]
    app.button(key="corpora.use").click().run()
    assert set(corpora.roles()) == {"task"}


def test_a_second_drop_adds_sources_and_replaces_only_what_is_chosen(home: Path) -> None:
    dropped(**FILES).button(key="corpora.use").click().run()
    before = corpora.roles()
    app = dropped(**{f"{name}.txt": "\n".join(kitchen(n, seed=n)).encode() for name, n in (("x", 60), ("y", 90))})
    assert parts(app) == {"x.txt": intake.SOURCE, "y.txt": intake.SOURCE}
    assert "No task corpus yet" not in texts(app)
    assert "No domain corpus yet" not in texts(app)
    box(app, "y.txt").select("domain").run()  # type: ignore[attr-defined]
    assert "Replaces pile (300 sentences) as domain corpus" in unescape(texts(app))
    app.button(key="corpora.use").click().run()
    assert corpora.find(corpora.roles()["domain"]).name == "y"
    app.button(key="corpora.undo").click().run()
    assert not app.exception
    assert corpora.roles() == before
    assert {"x", "y"} <= {corpus.name for corpus in corpora.listed()}


def test_texts_dropped_together_are_kept_apart_if_asked(home: Path) -> None:
    app = dropped(**{f"{name}.txt": "\n".join(kitchen(n, seed=n)).encode() for name, n in (("x", 60), ("y", 90))})
    assert set(parts(app).values()) == {"domain"}
    [joined] = [control for control in app.segmented_control if control.label == "2 texts without labels"]
    joined.set_value("Keep apart, to compare").run()
    assert parts(app) == {"x.txt": intake.SOURCE, "y.txt": "domain"}
    app.button(key="corpora.use").click().run()
    assert not app.exception
    assert {corpus.name for corpus in corpora.listed()} == {"x", "y"}
    assert corpora.find(corpora.roles()["domain"]).name == "y"


def test_a_row_offers_what_it_can_be(home: Path) -> None:
    app = dropped(**FILES, **{"torn.docx": b"PK\x03\x04 torn"})
    offered = {row: box(app, row).options for row in ("mine.conll", "pile.txt", "torn.docx")}  # type: ignore[attr-defined]
    assert offered["pile.txt"] == ["Task corpus", "Domain corpus", "Further source, kept apart", "Not used"]
    assert offered["torn.docx"] == ["Not used"]
    assert "Labels, to be divided" in offered["mine.conll"]
    assert "Cannot be read" in texts(app)


def test_nothing_used_or_two_train_parts_cannot_be_used(home: Path) -> None:
    app = dropped(**FILES, **{"more.conll": labels(30, start=150).encode()})
    box(app, "more.conll").select("train").run()  # type: ignore[attr-defined]
    box(app, "mine.conll").select(intake.DIVIDE).run()  # type: ignore[attr-defined]
    assert app.button(key="corpora.use").disabled
    assert "change one of them" in texts(app)
    for name in ("mine.conll", "more.conll", "pile.txt"):
        box(app, name).select(intake.UNUSED).run()  # type: ignore[attr-defined]
    assert app.button(key="corpora.use").disabled


def test_documents_alone_ask_which_are_like_the_task(home: Path) -> None:
    app = dropped(**{f"{i}.docx": documents.docx([f"The deed of party {i} is signed."] * 3) for i in range(4)})
    assert parts(app) == {"4 files (DOCX)": "domain"}
    [ask] = app.multiselect
    assert (ask.label, ask.options) == ("Which of these files are like your task?", [f"{i}.docx" for i in range(4)])
    ask.select("2.docx").run()
    assert parts(app) == {"2.docx": "task", "3 files (DOCX)": "domain"}
    app.button(key="corpora.use").click().run()
    assert {role: corpora.find(mark).name for role, mark in corpora.roles().items()} == {
        "task": "2",
        "domain": "0 and 2 more",
    }


def test_a_reload_finds_the_drop_again(home: Path) -> None:
    token = dropped(**FILES).query_params["upload"]
    again = AppTest.from_file(str(Path("home.py").absolute()), default_timeout=300).run()
    again.switch_page("pages/1_Corpora.py")
    again.query_params["upload"] = token[0] if isinstance(token, list) else token
    again.run()
    assert parts(again) == {"mine.conll": intake.DIVIDE, "pile.txt": "domain"}


def test_files_are_looked_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Sequence[Path]]()
    real = looks.looks

    def counted(paths: Sequence[Path]) -> list[Look]:
        asked.append(paths)
        return real(paths)

    monkeypatch.setattr(looks, "looks", counted)
    app = dropped(**FILES)
    box(app, "pile.txt").select("task").run()  # type: ignore[attr-defined]
    app.run()
    assert len(asked) == 1


def test_what_failed_is_said_in_its_row_and_waits(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sniffed(path: Path, options: ReadOptions) -> Preview:
        if path.name == "mine.conll":
            raise ReadError(path.name, 3, "the schemes are mixed")
        return sniff(path, options)

    monkeypatch.setattr("core.recipes.intake.sniff", sniffed)
    app = dropped(**FILES)
    app.button(key="corpora.use").click().run()
    assert not app.exception
    said = unescape(texts(app))
    assert "not imported" in said
    assert "are mixed" in said
    assert set(corpora.roles()) == {"domain"}
    assert "1 upload waiting" in said


def test_a_folder_by_its_path_is_looked_at_too(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "matter"
    folder.mkdir()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    app = opened("pages/1_Corpora.py")
    app.segmented_control(key="corpora.source").set_value("A path on this machine").run()
    app.text_input[0].set_value(str(folder))
    app.button(key="corpora.look").click().run()
    assert parts(app) == {"mine.conll": intake.DIVIDE, "pile.txt": "domain"}
    app.button(key="corpora.use").click().run()
    assert set(corpora.roles()) == set(corpora.ROLES)
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)  # one's own files stay


def test_the_report_outlives_what_it_speaks_of(home: Path, tmp_path: Path) -> None:
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    run = runs.execute("intake", {"path": str(tmp_path), "domain": ("pile.txt",), "train": ("mine.conll",)})
    corpora.remove(corpora.roles()["domain"])
    app = opened_on("pages/1_Corpora.py", run.id)
    assert not app.exception
    assert "a removed corpus" in texts(app)


def test_tags_without_a_type_are_called_as_the_form_says(home: Path) -> None:
    rows = "Aspirin\tB\nhelps\tO\n.\tO\n\nDock\tB\nfever\tI\neased\tO\n.\tO\n\n" * 4
    app = dropped(**{"train.tsv": rows.encode()})
    assert "The tags name no type" in texts(app)
    next(field for field in app.text_input if field.label == "Entity type").set_value("DISEASE")
    app.button(key="corpora.submit").click().run()
    assert not app.exception
    assert dict(corpora.listed()[0].types) == {"DISEASE": 8}


def test_the_column_of_the_tags_is_asked_for_if_no_column_is_plain(home: Path) -> None:
    rows = "Mara\tNNP\tNP\nleft\tVBD\tVP\nLyon\tNNP\tNP\n.\t.\t.\n\n" * 4
    app = dropped(**{"words.txt": rows.encode()})
    assert "none of its 3 columns holds entity tags" in texts(app)
    next(field for field in app.text_input if field.label == "Column of the tags").set_value("2").run()
    assert not app.exception
    app.button(key="corpora.submit").click().run()
    assert not app.exception
