"""Explore where the texts came with columns of their own: each colours the map and goes into the Atlas folder."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from core.facade import atlas, corpora, maps, runs
from pages.ui.explore.controls import COLOURINGS
from tests.conftest import Seal
from tests.pages.test_explore import PAGE, figure_of, numbers
from tests.pages.test_pages import opened
from tests.planted import contracts, kitchen

COURTS = ("Ulm", "<b>Hamburg</b>")


@pytest.fixture
def map_run(home: Path, seal: Seal, tmp_path: Path) -> str:
    corpora.set_role("task", seal(contracts(20, seed=1), "task").fingerprint)
    lines = [*contracts(40, seed=2), *kitchen(40)]
    rows = [
        {"text": line, "year": 1990 + row % 30 if row else None, "court": COURTS[row % 2], "state": "one", "score": row}
        for row, line in enumerate(lines)
    ]
    path = tmp_path / "domain.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    corpora.set_role("domain", str(runs.execute("add", {"path": str(path)}).result()["corpus"]))
    options = {**corpora.roles(), "strategy": "knn", "encoder": "tiny", "budget": "20"}
    select = runs.execute("select", options).id
    return runs.execute("map", maps.options(select, sample=100, clusters=2)).id


def test_every_column_that_tells_sentences_apart_colours_them(map_run: str) -> None:
    app = opened(PAGE)
    app.segmented_control(key="explore.by").set_value("column").run()
    assert not app.exception
    chosen = app.selectbox(key="explore.column")
    assert chosen.options == ["court", "score", "year"]  # all of one state
    names = {trace["name"] for trace in figure_of(app)["data"] if trace.get("legendgroup")}
    assert names == {"&lt;b&gt;Hamburg&lt;/b&gt; (40)", "Ulm (40)", "unknown (20)"}  # the task's have no court
    chosen.select("year").run()
    assert not app.exception
    figure = figure_of(app)
    values = [
        number
        for trace in figure["data"]
        if trace["marker"].get("coloraxis")
        for number in numbers(trace["marker"]["color"])
    ]
    assert sorted(values) == sorted(float(1990 + row % 30) for row in range(1, 80))
    assert figure["layout"]["coloraxis"]["colorbar"]["title"]["text"] == "year"


def test_without_any_column_none_is_offered(seal: Seal) -> None:
    corpora.set_role("task", seal(contracts(20, seed=1), "task").fingerprint)
    corpora.set_role("domain", seal([*contracts(40, seed=2), *kitchen(40)], "domain").fingerprint)
    options = {**corpora.roles(), "strategy": "knn", "encoder": "tiny", "budget": "20"}
    select = runs.execute("select", options).id
    runs.execute("map", maps.options(select, sample=60, clusters=2))
    assert COLOURINGS["column"] not in opened(PAGE).segmented_control(key="explore.by").options


def test_they_stand_in_the_atlas_folder_apart_from_winnows_own(map_run: str, tmp_path: Path) -> None:
    table = pq.read_table(atlas.export(map_run, tmp_path / "atlas") / "map.parquet")
    mapped = maps.get(map_run)
    of_domain = np.arange(len(mapped)) >= mapped.n_task
    rows = mapped.rows[of_domain].tolist()
    assert [table["court"].to_pylist()[point] for point in np.flatnonzero(of_domain)] == [
        COURTS[row % 2] for row in rows
    ]
    assert table["score (file)"].to_numpy()[of_domain].tolist() == [float(row) for row in rows]
    assert "state" not in table.column_names
    assert table["score"].to_numpy()[of_domain].tolist() != table["score (file)"].to_numpy()[of_domain].tolist()
