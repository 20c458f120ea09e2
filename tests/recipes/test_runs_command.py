"""`runs label`, `list`, `diff`, `curves`, `remove`: what the page Runs does, typed."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from core.corpora.corpus import Corpus
from core.projects import removals, run_comparison, runs
from core.projects import run_labels as labels
from core.tagging import training_view as training
from tests import finished
from tests.conftest import Command

Call = Callable[..., str]


@pytest.fixture
def call(command: Command) -> Call:
    def run(*words: object) -> str:
        code, out, err = command(*words)
        assert code == 0, err
        return out

    return run


@pytest.fixture
def corpora(home: Path) -> dict[str, Corpus]:
    return finished.corpora(home)


def test_a_run_is_named_tagged_and_noted_and_its_key_stays(home: Path, corpora: dict[str, Corpus], call: Call) -> None:
    run = finished.tuned(home, corpora, "tiny", 0.6)
    call("runs", "label", run.id, "--name", "with crf", "--tag", "march,tiny", "--note", "best so far", "--pin")
    answer = json.loads(call("runs", "label", run.id, "--untag", "tiny", "--json"))
    says = {"name": "with crf", "tags": ["march"], "note": "best so far", "pinned": True, "archived": False}
    assert answer == {"run": run.id, **says}
    assert "with crf  #march  pinned" in call("runs", "list")
    assert finished.tuned(home, corpora, "tiny", 0.6).id == run.id


def test_the_list_leaves_out_what_is_archived_and_what_has_not_the_tag(
    home: Path, corpora: dict[str, Corpus], call: Call
) -> None:
    one, two, three = (finished.tuned(home, corpora, "tiny", 0.6, epochs=n) for n in (3, 4, 5))
    labels.change(one.id, tags=["a", "b"])
    labels.change(two.id, tags=["a"])
    labels.change(three.id, tags=["a", "b"], archived=True)
    tagged = json.loads(call("runs", "list", "--tag", "a", "--tag", "b", "--json"))["runs"]
    assert [row["run"] for row in tagged] == [one.id]
    everything = json.loads(call("runs", "list", "--archived", "--json"))["runs"]
    assert {row["run"] for row in everything} == {one.id, two.id, three.id}


def finish(home: Path, kind: str, options: dict[str, object]) -> str:
    return finished.finish(home, kind, options, finished.constant({})).id


def test_the_diff_has_options_of_options_and_corpora_by_name(
    home: Path, corpora: dict[str, Corpus], call: Call
) -> None:
    one = finished.tuned(home, corpora, "tiny", 0.6, epochs=3)
    two = finished.tuned(home, {**corpora, "train": corpora["dev"]}, "tiny", 0.6, epochs=4)
    answer = json.loads(call("runs", "diff", one.id, two.id, "--json"))["differences"]
    assert answer["epochs"] == ["3", "4"]
    assert answer["train"] == ["my train", "my dev"]
    assert "learning rate" not in answer
    assert call("runs", "diff", one.id, one.id).strip() == "Their options are equal."
    experiment = finished.experiment(home, corpora, finished.LINES)
    options = {row.option: row.values for row in run_comparison.differences([one.id, experiment.id])}
    assert options["epochs"] == ("3", "")
    nested = finish(home, "experiment", {**runs.get(experiment.id).manifest.config, "finetune": {"epochs": 7}})
    options = {row.option: row.values for row in run_comparison.differences([experiment.id, nested])}
    assert options["finetune: epochs"][1] == "7"


def test_curves_of_all_trainings_of_a_run(home: Path, corpora: dict[str, Corpus], call: Call, tmp_path: Path) -> None:
    one, two = (finished.tuned(home, corpora, "tiny", 0.6, epochs=epochs) for epochs in (3, 4))
    call("runs", "curves", one.id, two.id, "--output", tmp_path / "curves.csv")
    with (tmp_path / "curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["run"] for row in rows} == {one.id, two.id}
    points = sum(len(metric.steps) for run in (one, two) for metric in training.curves(run.id))
    assert len(rows) == points > 0
    assert {row["metric"] for row in rows} == {"dev_f1"}


def test_what_a_removal_frees_is_what_the_home_has_less(home: Path, corpora: dict[str, Corpus], call: Call) -> None:
    run = finished.tuned(home, corpora, "tiny", 0.6)

    def held() -> int:
        return sum(path.stat().st_size for path in (home / "runs").rglob("*") if path.is_file())

    (run.artifacts / "model" / "weights").write_bytes(b"x" * 50_000)
    labels.change(run.id, note="not long")
    before = held()
    answer = json.loads(call("runs", "remove", run.id, "--json"))
    assert answer["freed"] == before - held() > 50_000
    goes = removals.removal(corpora["train"].fingerprint)
    sealed = sum(path.stat().st_size for path in corpora["train"].path.iterdir())
    assert removals.bytes_of(goes) == sealed + sum(map(labels.size, goes.runs))
