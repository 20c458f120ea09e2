"""Importing labels that several people made or that lost spans: what the page asks, and what its report says."""

import json
import sys
from pathlib import Path

import pytest

from core.cli.main import run_main
from core.importing import view as corpora
from core.projects import runs
from tests.corpora.test_annotation_tools import LYON, MARA, TEXT, lines, two_people
from tests.pages.drawing import dropped, press, texts

pytestmark = pytest.mark.usefixtures("at_once")  # of conftest.py


def test_the_page_asks_for_one_annotator_and_reports_the_agreement(home: Path, tmp_path: Path) -> None:
    app = dropped(**{"tasks.json": two_people(tmp_path, "labelstudio").read_bytes()})
    assert any("They agree on 1 of the 2 texts" in info.value for info in app.info)
    press(app, "corpora.submit")
    assert "Choose the annotator first" in texts(app)
    assert not runs.listed("add")
    app.selectbox(key="corpora.annotator").select("ben")
    press(app, "corpora.submit")
    assert corpora.listed()[0].types == {"PER": 2, "LOC": 1}
    said = " ".join(warning.value for warning in app.warning)
    assert "They agree on 1 of the 2 texts" in said
    assert "the labels of ben were kept" in said


def test_a_sentence_that_lost_an_annotation_is_kept_if_asked(home: Path) -> None:
    rows = [{"text": TEXT, "label": [MARA, LYON, [100, 110, "X"]]}, {"text": "No rent is due.", "label": []}]
    app = dropped(**{"rows.jsonl": lines(rows).encode()})
    app.toggle(key="corpora.keep_lost").set_value(True)
    press(app, "corpora.submit")
    assert corpora.listed()[0].n_sentences == 2
    assert "1 labelled sentence was left out" not in " ".join(warning.value for warning in app.warning)


def test_the_command_tells_the_same(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([[TEXT, {"entities": [MARA, [100, 110, "X"]]}], [TEXT, {"entities": [MARA]}]]))
    monkeypatch.setattr(sys, "argv", ["core", "corpus", "add", str(path)])
    assert run_main() == 0
    said = capsys.readouterr().out
    assert "1 span rejected, 1 sentence that lost an annotation" in said
    assert "check        1 labelled sentence was left out" in said
    monkeypatch.setattr(sys, "argv", ["core", "corpus", "add", str(path), "--keep-lost", "--json"])
    assert run_main() == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["lost"], result["sentences"], result["contradictory_texts"]) == (0, 2, 0)


def test_a_zip_of_two_annotators_asks_for_one_before_it_is_used(home: Path, tmp_path: Path) -> None:
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
    said = " ".join(warning.value for warning in app.warning)
    assert "the labels of ana were kept" in said
