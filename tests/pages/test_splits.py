"""The page divides a corpus by the column that was kept at import, and gives the parts their roles."""

import json
from pathlib import Path

import pytest

from core.facade import corpora, runs
from tests.pages.test_pages import opened, texts
from tests.recipes.test_split import unlike


def test_sentences_are_divided_by_the_values_of_a_column(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"text": text, "ward": "abc"[i % 3]} for i, text in enumerate(unlike(12))]
    file = tmp_path / "notes.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    notes = str(runs.execute("add", {"path": str(file), "group_column": "ward"}).result()["corpus"])
    monkeypatch.setattr(runs, "start", lambda kind, options: runs.execute(kind, options).id)
    app = opened("pages/1_Corpora.py")
    app.selectbox(key="corpora.split.corpus").select(notes).run()
    app.selectbox(key=f"corpora.split.by.{notes}").select("column").run()
    app.multiselect(key="corpora.split.values").select("b")
    app.button(key="corpora.split.start").click().run()
    assert not app.exception
    assert "of duplicates across parts moved to the smallest" in texts(app)
    app.button(key="corpora.split.roles").click().run()
    task = corpora.find(corpora.roles()["task"])
    assert {s.group for s in next(task.batches())} == {"b"}
    assert corpora.find(corpora.roles()["domain"]).name == "notes-domain"
