"""Import on the page Corpora: proposed roles of several files, questions about labels, and the report."""

import json
import sys
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.cli.main import run_main
from core.corpora import looks
from core.corpora.proposal import DIVIDE, SOURCE, UNUSED, Look
from core.corpora.readers import Preview, ReadOptions, sniff
from core.errors import ReadError
from core.importing import view as corpora
from core.importing.result import ROLES
from core.projects import runs
from pages.ui.widgets import plain
from tests import documents
from tests.conftest import Seal, sentence
from tests.corpora.test_annotation_tools import LYON, MARA, TEXT, lines, two_people
from tests.importing.test_intake import labels
from tests.pages.drawing import TRAINING, add, dropped, keys, opened, opened_on, press, seen, texts
from tests.planted import kitchen

FILES = {"mine.conll": labels(120).encode(), "pile.txt": "\n".join(kitchen(300)).encode()}


TWO = {f"{name}.txt": "\n".join(kitchen(n, seed=n)).encode() for name, n in (("x", 60), ("y", 90))}
CORPORA = "pages/1_Corpora.py"
pytestmark = pytest.mark.usefixtures("at_once")


def parts(app: AppTest) -> dict[str, str]:
    """Return {file: its proposed role}."""
    boxes = [box for box in app.selectbox if box.label.startswith("Role of ")]
    return {box.label.removeprefix("Role of "): str(box.value) for box in boxes}


def box(app: AppTest, name: str) -> Any:
    return next(box for box in app.selectbox if box.label == f"Role of {name}")


def test_proposed_roles_survive_a_reload_and_are_used_with_one_press(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[Sequence[Path]]()
    real = looks.looks

    def counted(paths: Sequence[Path], encoding: str) -> list[Look]:
        read.append(paths)
        return real(paths, encoding)

    monkeypatch.setattr(looks, "looks", counted)
    app = dropped(**FILES)
    assert parts(app) == {"mine.conll": DIVIDE, "pile.txt": "domain"}
    page_text = unescape(texts(app))
    assert "120 sentences · labelled (PARTY)" in page_text
    assert "300 sentences" in page_text
    assert "upload" in app.query_params
    app.run()
    assert len(read) == 1
    press(app, "corpora.use")
    assert set(corpora.roles()) == set(ROLES)
    assert not list((home / "uploads").iterdir())
    assert "upload" not in app.query_params
    corpora.remove(corpora.roles()["domain"])
    app = opened_on(CORPORA, runs.listed("intake")[0].id)  # the report stays after its corpora are removed
    assert "a removed corpus" in texts(app)


def test_the_link_to_an_import_shows_no_markup_of_a_name(home: Path) -> None:
    app = dropped(**{"a **b** [c](d).txt": FILES["pile.txt"], "mine.conll": FILES["mine.conll"]})
    press(app, "corpora.use")
    shown = [link.proto.label for link in app.get("page_link")]
    assert f"Import details of {plain('a **b** [c](d)')}" in shown


def test_each_file_offers_its_possible_roles_and_a_changed_role_is_used(home: Path) -> None:
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
    assert app.button(key="corpora.use").disabled  # no file has a role
    box(app, "pile.txt").select("task").run()
    press(app, "corpora.use")
    assert set(corpora.roles()) == {"task"}


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_the_encoding_of_files_that_are_not_in_utf_8_is_asked_and_used(home: Path, encoding: str) -> None:
    words = "Der Mieter zahlt die Miete für März.\n"
    app = dropped(**FILES, **{"old.txt": (words * 40).encode("utf-16-le" if encoding == "utf-16" else encoding)})
    assert parts(app)["old.txt"] == UNUSED
    field = next(box for box in app.selectbox if box.label == "Encoding of files that are not in UTF-8")
    field.select(encoding).run()
    assert parts(app)["old.txt"] == "domain"
    press(app, "corpora.use")
    corpus = corpora.find(corpora.roles()["domain"])
    assert words.strip() in {sentence.text for batch in corpus.batches() for sentence in batch}
    app = dropped(**FILES)
    assert not [box for box in app.selectbox if box.label == "Encoding of files that are not in UTF-8"]


def test_second_drop_adds_sources_and_replaces_only_the_chosen_role(home: Path) -> None:
    dropped(**FILES).button(key="corpora.use").click().run()
    before = corpora.roles()
    app = dropped(**TWO)
    assert parts(app) == {"x.txt": SOURCE, "y.txt": SOURCE}
    box(app, "y.txt").select("domain").run()
    assert "pile (300 sentences)" in unescape(texts(app))  # the corpus that it replaces
    press(app, "corpora.use")
    assert corpora.find(corpora.roles()["domain"]).name == "y"
    other = opened(CORPORA)  # a second tab
    press(app, "corpora.undo")
    assert corpora.roles() == before
    press(other, "corpora.undo")  # It still names the change that the first tab has undone.
    assert corpora.roles() == before
    press(other, "corpora.undo")
    assert corpora.find(corpora.roles()["domain"]).name == "y"
    press(other, "corpora.undo")
    assert corpora.roles() == before
    assert {"x", "y"} <= {corpus.name for corpus in corpora.listed()}


def test_texts_dropped_together_are_kept_apart_on_request(home: Path) -> None:
    app = dropped(**TWO)
    assert set(parts(app).values()) == {"domain"}
    [joined] = [control for control in app.segmented_control if control.label.startswith("2 texts")]
    joined.set_value(joined.options[-1]).run()
    assert parts(app) == {"x.txt": SOURCE, "y.txt": "domain"}
    press(app, "corpora.use")
    assert {corpus.name for corpus in corpora.listed()} == {"x", "y"}
    assert corpora.find(corpora.roles()["domain"]).name == "y"


def test_import_of_documents_asks_which_are_like_the_task(home: Path) -> None:
    app = dropped(**{f"{i}.docx": documents.docx([f"The deed of party {i} is signed."] * 3) for i in range(4)})
    assert list(parts(app).values()) == ["domain"]
    [ask] = app.multiselect
    assert ask.options == [f"{i}.docx" for i in range(4)]
    ask.select("2.docx").run()
    assert sorted(parts(app).values()) == ["domain", "task"]
    press(app, "corpora.use")
    names = {role: corpora.find(mark).name for role, mark in corpora.roles().items()}
    assert names == {"task": "2", "domain": "0 and 2 more"}


def test_file_that_cannot_be_imported_shows_the_reason_in_its_row_and_is_kept(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sniffed(path: Path, options: ReadOptions) -> Preview:
        if path.name == "mine.conll":
            raise ReadError(path.name, 3, "the schemes are mixed")
        return sniff(path, options)

    monkeypatch.setattr("core.importing.add.sniff", sniffed)
    app = dropped(**FILES)
    press(app, "corpora.use")
    assert "are mixed" in texts(app)
    assert set(corpora.roles()) == {"domain"}
    assert len(list((home / "uploads").iterdir())) == 1


def test_folder_by_path_gets_proposed_roles_and_stays_unchanged(home: Path, tmp_path: Path) -> None:
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
def test_import_asks_for_a_missing_entity_type_or_tag_column(
    name: str, rows: str, key: str, answer: str, types: dict[str, int], home: Path
) -> None:
    app = dropped(**{name: (rows * 4).encode()})
    next(field for field in app.text_input if (field.key or "").startswith(key)).set_value(answer)
    if "column" in key:
        app.run()  # the file is read again
    press(app, "corpora.submit")
    assert dict(corpora.listed()[0].types) == types


def test_import_asks_for_one_annotator_and_reports_the_agreement(home: Path, tmp_path: Path) -> None:
    app = dropped(**{"tasks.json": two_people(tmp_path, "labelstudio").read_bytes()})
    assert any("They agree on 1 of the 2 texts" in info.value for info in app.info)
    press(app, "corpora.submit")
    assert "Choose the annotator first" in texts(app)
    assert not runs.listed("add")
    app.selectbox(key="corpora.annotator").select("ben")
    press(app, "corpora.submit")
    assert corpora.listed()[0].types == {"PER": 2, "LOC": 1}
    warnings = " ".join(warning.value for warning in app.warning)
    assert "They agree on 1 of the 2 texts" in warnings
    assert "the labels of ben were kept" in warnings


def test_sentence_that_lost_an_annotation_is_kept_on_request(home: Path) -> None:
    rows = [{"text": TEXT, "label": [MARA, LYON, [100, 110, "X"]]}, {"text": "No rent is due.", "label": []}]
    app = dropped(**{"rows.jsonl": lines(rows).encode()})
    app.toggle(key="corpora.keep_lost").set_value(True)
    press(app, "corpora.submit")
    assert corpora.listed()[0].n_sentences == 2
    assert "1 labelled sentence was left out" not in " ".join(warning.value for warning in app.warning)


def test_import_command_reports_lost_annotations_and_can_keep_their_sentences(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([[TEXT, {"entities": [MARA, [100, 110, "X"]]}], [TEXT, {"entities": [MARA]}]]))
    monkeypatch.setattr(sys, "argv", ["core", "corpus", "add", str(path)])
    assert run_main() == 0
    printed = capsys.readouterr().out
    assert "1 span rejected, 1 sentence that lost an annotation" in printed
    assert "check        1 labelled sentence was left out" in printed
    monkeypatch.setattr(sys, "argv", ["core", "corpus", "add", str(path), "--keep-lost", "--json"])
    assert run_main() == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["lost"], result["sentences"], result["contradictory_texts"]) == (0, 2, 0)


def test_zip_of_two_annotators_asks_for_one_before_it_is_used(home: Path, tmp_path: Path) -> None:
    app = dropped(**{"d.zip": two_people(tmp_path, "doccano").read_bytes()})
    assert any("They agree on 1 of the 2 texts" in info.value for info in app.info)
    assert app.button(key="corpora.use").disabled
    app.selectbox(key="corpora.annotator").select("ana")
    for box in [box for box in app.selectbox if box.label.startswith("Role of ")]:  # too few sentences to divide
        box.select("train")
    app.run()
    press(app, "corpora.use")
    (labels,) = [corpus for corpus in corpora.listed() if not corpus.derived]
    assert labels.types == {"PER": 2, "LOC": 1}
    warnings = " ".join(warning.value for warning in app.warning)
    assert "the labels of ana were kept" in warnings


def test_a_list_of_names_is_previewed_imported_and_offered_where_names_are_looked_up(home: Path, seal: Seal) -> None:
    app = dropped(**{"drugs <b>.txt": b"Aspirin\nlead <i>\n=1+1\n"})
    app.selectbox(key="corpora.holds").select("A list of names").run()
    assert "Give the type of the names." in texts(app)
    assert "corpora.submit" not in keys(app)
    next(field for field in app.text_input if field.label == "Type of the names").set_value("DRUG").run()
    shown = texts(app)
    assert "Read as **a list of names**, labelled" in shown
    assert "Aspirin (DRUG)" in shown
    assert "lead &lt;i&gt; (DRUG)" in shown
    assert "line 3: a formula of a spreadsheet" in seen(app)
    press(app, "corpora.submit")
    [made] = corpora.lists_of_names()
    assert (made.name, made.types) == ("drugs <b>", {"DRUG": 2})
    assert not list((home / "uploads").iterdir())
    assert not [control for control in app.segmented_control if control.label == "Use it as"]
    assert "Suggest them as labels" in [link.proto.label for link in app.get("page_link")]
    for role in ("train", "dev", "test"):
        sealed = seal([sentence(f"Lead is for {role}", [(0, 1, "DRUG")])], role, labelled=True)
        corpora.set_role(role, sealed.fingerprint)
    training = opened(TRAINING, {"training.kind": "experiment"})
    [lists] = [each for each in training.multiselect if each.key == "training.experiment.dictionary"]
    assert "drugs <b> (2 sentences)" in lists.options


def test_a_list_that_cannot_be_read_stays_uploaded_with_the_line_of_the_fault(home: Path) -> None:
    app = dropped(**{"people.csv": b"name,type\nBo,PER\nAnn,two words\n"})
    app.selectbox(key="corpora.holds").select("A list of names").run()
    assert "people.csv line 3: has a type that is not one word" in seen(app)
    assert "corpora.submit" not in keys(app)
    app = dropped(**{"people.csv": b"name,type\n" + b"Bo %d,PER\n" * 1 % 1 + b"Zo\xeb,PER\n"})
    app.selectbox(key="corpora.holds").select("A list of names").run()
    assert "is not UTF-8" in seen(app)
    app.selectbox(key="corpora.encoding").select("cp1252").run()
    assert "Zo\u00eb (PER)" in seen(app)
    assert not runs.listed("add")
    assert corpora.listed() == []


def test_text_without_labels_is_offered_only_the_roles_of_text(home: Path, tmp_path: Path) -> None:
    for text, roles in (("One line.\nAnother line.\n", 2), ("Acme\tB-ORG\npays\tO\n", 5)):
        path = tmp_path / ("lines.txt" if roles == 2 else "labelled.conll")
        path.write_text(text)
        run = add(path)
        app = opened_on(CORPORA, run.id)
        [offered] = [each for each in app.segmented_control if each.label == "Use it as"]
        assert len(offered.options) == roles
        assert any("Task corpus: sentences like those" in each.value for each in app.caption)
        assert any("It has no labels" in each.value for each in app.caption) == (roles == 2)


def test_an_imported_file_gets_a_proposal_for_its_role(home: Path, tmp_path: Path) -> None:
    def proposed(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text)
        app = opened_on(CORPORA, add(path).id)
        return unescape(" ".join(each.value for each in app.markdown if each.value.startswith("Proposed")))

    conll = "{}\tB-ORG\npays\tO\n"
    assert proposed("notes.txt", "One line.\nAnother line.\n") == ""
    assert "Proposed: divide it into" in proposed("labels.conll", conll.format("Acme"))
    corpora.set_role("train", "labels")
    assert "Proposed: dev set (labelled, and the name suggests" in proposed("dev.conll", conll.format("Byte"))
    assert "Proposed: domain corpus (" in proposed("archive.txt", "A third line.\nA fourth line.\n")
    assert "Proposed: no role (labels is already the training set" in proposed("more.conll", conll.format("Corp"))
