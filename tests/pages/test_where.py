"""On Corpora and Selection: where a run computes, what is like the task is counted, and a corpus is divided."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.importing import view as corpora
from core.projects import runs
from core.runs.result import read
from core.selection import view as selections
from core.selection.prevalence import PrevalenceResult
from tests.conftest import Seal
from tests.homes import Names
from tests.importing.test_intake import unlike
from tests.pages.drawing import add, audit, keys, opened, press
from tests.planted import contracts, kitchen

PLACES = {"pages/1_Corpora.py": ("corpora.check", "audit"), "pages/3_Selection.py": ("selection.start", "select")}


@pytest.mark.parametrize("page", list(PLACES))
def test_a_run_starts_where_it_was_asked_to_if_there_is_a_choice(
    page: str, seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpora.set_role("task", seal(contracts(20, seed=1), "task").fingerprint)
    corpora.set_role("domain", seal([*contracts(40, seed=2), *kitchen(40)], "domain").fingerprint)
    begun = list[tuple[str, str]]()

    def start(kind: str, options: Mapping[str, object], on: str = "", **others: object) -> str:
        begun.append((kind, on))
        return audit(corpora.roles()["task"])

    monkeypatch.setattr(runs, "start", start)
    key, kind = PLACES[page]
    where = f"{key.removesuffix('.start')}.where"
    for places in (("local",), ("local", "ray")):
        monkeypatch.setattr(runs, "places", lambda places=places: places)
        app = opened(page)
        assert bool([box for box in app.selectbox if box.key == where]) == (len(places) > 1)
    app.selectbox(key=where).select("ray")
    press(app, key)
    assert set(begun) == {(kind, "ray")}


def test_what_is_like_the_task_is_counted_on_request_and_taken_as_the_budget(
    selected: Names, begun: list[tuple[str, Mapping[str, Any]]]
) -> None:
    select = selected["select"]
    opened("pages/3_Selection.py", run=select).button(key="selection.count").click().run()
    [(kind, options)] = begun
    assert (kind, options["encoder"]) == ("prevalence", "tiny")
    count = read(runs.execute(kind, options), PrevalenceResult)
    app = opened("pages/3_Selection.py", run=select)
    assert any(f"{count.about:,} of the " in part.value for part in app.markdown)
    press(app, "selection.counted")
    assert selections.kept_budget(select) == str(count.about)
    assert "selection.counted" not in keys(app)


@pytest.mark.usefixtures("at_once")
def test_sentences_are_divided_by_the_values_of_a_column(home: Path, tmp_path: Path) -> None:
    rows = [{"text": text, "ward": "abc"[i % 3]} for i, text in enumerate(unlike(12))]
    file = tmp_path / "notes.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    notes = str(add(file, group_column="ward").result()["corpus"])
    app = opened("pages/1_Corpora.py", {"corpora.split.corpus": notes, f"corpora.split.by.{notes}": "column"})
    app.multiselect(key="corpora.split.values").select("b")
    press(app, "corpora.split.start")
    press(app, "corpora.split.roles")
    task = corpora.find(corpora.roles()["task"])
    assert {s.group for s in next(task.batches())} == {"b"}
    assert corpora.find(corpora.roles()["domain"]).name == "notes-domain"
