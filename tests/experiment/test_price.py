"""Cost of a leaderboard line: the machine's time, labelled sentences, and downloads."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from core.corpora.library import Library
from core.experiment import price, results, tables
from core.experiment.result import ArmRow
from core.projects import runs
from core.runs.run import Run
from core.runs.store import RunStore
from tests.conftest import sentence
from tests.experiment.test_experiment import OPTIONS, fill
from tests.finished import ARM_ROW, html_report
from tests.planted import contracts

TRAIN = 24  # sentences of the training set that `fill` seals


def rows(run_id: str) -> dict[str, ArmRow]:
    """Return the leaderboard by variant."""
    return {row.arm: row for row in results.board(run_id).leaderboard}


@pytest.mark.usefixtures("untrained")
def test_labels_are_the_training_set_and_what_is_borrowed(home: Path) -> None:
    fill(home)
    texts = contracts(160, seed=9)[110:]
    other = [sentence(text, [(0, 2, "PARTY")]) for text in texts]
    library = Library(home)
    away = library.seal(other, name="away", origin={}, labelled=True)
    names = [sentence(" ".join(text.split()[:2]), [(0, 2, "PARTY")]) for text in texts[:5]]
    given = library.seal(names, name="parties.txt", origin={"format": "names"}, labelled=True)
    shared = {**OPTIONS, "budgets": (), "transfer": (away.fingerprint,), "assisting": away.fingerprint}
    arms = ("none", "transfer:away", "all", "dataaug", "dictionary", "none+dictionary")
    found = rows(runs.execute("experiment", {**shared, "arms": arms, "dictionary": (given.fingerprint,)}).id)
    borrowed = len(away) - 5  # five are near duplicates of sentences of the dev or test set
    labels = {"none": TRAIN, "transfer:away": TRAIN + borrowed, "all": TRAIN + borrowed}
    # Copies and lists of names cost no labels.
    labels |= {"dataaug": TRAIN, "copies:dataaug": TRAIN, "dictionary": 0, "none+dictionary": TRAIN}
    assert {name: row.labels for name, row in found.items()} == labels
    own = rows(runs.execute("experiment", {**shared, "arms": ("dictionary",)}).id)
    assert own["dictionary"].labels == TRAIN  # without a list, the names of the training set
    assert {row.downloads for row in found.values()} == {""}
    assert {row.person_seconds for row in found.values()} == {0.0}


@pytest.mark.usefixtures("untrained")
def test_a_line_takes_its_first_replicate_with_one_tagger(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home)
    run = runs.execute("experiment", {**OPTIONS, "arms": ("none", "random"), "seeds": (1, 2)})
    took = {"finetune": 100.0, "pretrain": 30.0, "select": 7.0}
    monkeypatch.setattr(
        "core.runs.durations.by_kind", lambda some, store: {each.id: took[each.manifest.kind] for each in some}
    )
    store, found = RunStore(home), rows(run.id)
    for arm, seconds in (("none", 100 / 2), ("random", 100 / 2 + 30 + 7)):
        row = found[arm]
        added = [store.get(each) for each in (row.select_run, row.pretrain_run) if each]
        assert price.price(store.get(row.finetune_run), added, "", store).seconds == seconds


@pytest.mark.usefixtures("untrained")
def test_downloads_are_encoders_that_are_not_bundled(home: Path, tmp_path: Path) -> None:
    made, store = fill(home), RunStore(home)
    data = {name: made[name].fingerprint for name in ("train", "dev")} | {"seeds": (1,)}
    (tmp_path / "bert").mkdir()
    pretrained = runs.execute("pretrain", {"corpora": (made["task"].fingerprint,), "init": "tiny"})
    inside = pretrained.artifacts / "model"
    inside.mkdir(exist_ok=True)
    expected = {
        "minilm": "",
        pretrained.id: "",
        str(inside): "",
        "mpnet": "the encoder mpnet",
        "bert-base-cased": "the encoder bert-base-cased",
        str(tmp_path / "bert"): "the folder bert",
    }
    tuned = runs.execute("finetune", {**data, "init": "tiny"})

    def downloads(**changed: str) -> str:
        config = {**tuned.manifest.config, **changed}
        return price.price(Run(tuned.path, replace(tuned.manifest, config=config)), (), "", store).downloads

    assert {init: downloads(init=init) for init in expected} == expected
    assert downloads(init="mpnet", network="bilstm") == ""
    assert downloads(init="mpnet", network="bilstm", states="bert-base-cased") == "the encoder bert-base-cased"


@pytest.mark.usefixtures("untrained")
def test_tables_and_report_show_what_a_line_takes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home)
    run = runs.execute("experiment", {**OPTIONS, "arms": ("none", "dictionary")})
    board = results.board(run.id)
    lines = [
        replace(row, seconds=120.0, person_seconds=3000.0, labels=1234, downloads="the encoder mpnet")
        if row.arm == "none"
        else row
        for row in board.leaderboard
    ]
    board = replace(board, leaderboard=lines)
    first = next(csv.DictReader(io.StringIO(tables.as_csv(board))))
    assert [first[name] for name in ("machine_minutes", "person_minutes", "labels", "downloads")] == [
        *("2.0", "50.0", "1234", "the encoder mpnet")
    ]
    assert "| 2 min | 50 min | 1,234 | the encoder mpnet |" in tables.as_markdown(board)
    monkeypatch.setattr("core.experiment.deliver.board", lambda run_id: board)
    page = html_report(run.id)
    assert [
        f"<td>{text}</td>" in page or f">{text}</td>" in page for text in ("50 min", "1,234", "the encoder mpnet")
    ] == [*[True] * 3]


def test_an_experiment_of_an_earlier_version_shows_no_price() -> None:
    assert set(tables.takes(ARM_ROW).values()) == {""}
