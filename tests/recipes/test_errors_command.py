"""The command `errors`: mistakes of a tagger, counted by type and kind, and shown."""

import json
from collections import Counter
from pathlib import Path

import pytest

from core.bias import reviews
from core.experiment import results
from core.projects.audit import lines
from core.runs.context import RunContext
from core.runs.store import Run
from core.tagging import evaluations
from tests import finished
from tests.conftest import Command


@pytest.fixture
def tuned(home: Path) -> Run:
    return finished.tuned(home, finished.corpora(home), "tiny", 0.6)


def test_counts_by_type_and_the_first_sentences(tuned: Run, command: Command) -> None:
    code, out, _ = command("errors", tuned.id, "--seed", 2, "--show", 3, "--json")
    assert code == 0
    answer = json.loads(out)
    readings = results.side_by_side(tuned.id, 2, tuned.id, 2)
    counts = Counter(one.kind for row in readings for one in row.wrong_a)
    assert {kind: sum(row[kind] for row in answer["types"]) for kind in reviews.KINDS} == {
        kind: counts[kind] for kind in reviews.KINDS
    }
    assert answer["wrong"] == sum(bool(row.wrong_a) for row in readings)
    assert len(answer["shown"]) == 3
    first = answer["shown"][0]["mistakes"][0]
    assert first["kind"] in reviews.KINDS
    span = first.get("labelled") or first["read"]
    assert span["text"] in answer["shown"][0]["text"]


def test_only_what_is_asked_for_is_shown(tuned: Run, command: Command) -> None:
    readings = results.own_readings(tuned.id)
    wanted = [row for row in readings if any(one.kind == "wrong type" and "DATE" in one.types for one in row.wrong_a)]
    code, out, _ = command("errors", tuned.id, "--kind", "wrong type", "--type", "DATE", "--show", 1000)
    assert code == 0
    assert f"{len(wanted)} of 150 test sentences have such a mistake." in out
    assert "\n  wrong type: " in out
    assert "missed: " not in out
    assert "\nPARTY" not in out  # the table holds what was asked for
    assert [line for line in lines()[1] if line["action"] == "look"]


def test_without_sentences_nothing_was_looked_at(tuned: Run, command: Command) -> None:
    code, out, _ = command("errors", tuned.id, "--show", 0)
    assert code == 0
    assert "read as" in out.splitlines()[0]
    assert not [line for line in lines()[1] if line["action"] == "look"]


def test_an_evaluate_run_has_its_errors_too(tuned: Run, home: Path, command: Command) -> None:
    gold = [row.sentence for row in results.own_readings(tuned.id)]
    options = {"model": "minilm", "test": results.tested_on(tuned.id)[0]}

    def work(context: RunContext) -> object:
        evaluations.write_predictions(context.run, "test", finished.read_by_lot(gold, -1, 1))  # nothing is read
        return {}

    run = finished.finish(home, "evaluate", options, work)
    code, out, _ = command("errors", run.id, "--show", 0, "--json")
    assert code == 0
    assert sum(row["missed"] for row in json.loads(out)["types"]) == 300
    assert json.loads(out)["wrong"] == 150


def test_what_has_no_test_sentences_is_refused(tuned: Run, home: Path, command: Command) -> None:
    options = {"corpora": (results.tested_on(tuned.id)[0],), "init": "tiny"}
    other = finished.finish(home, "pretrain", options, finished.constant(finished.pretrained(3)))
    code, _, err = command("errors", other.id)
    assert (code, "has no test sentences" in err) == (2, True)
    corpora = {name: tuned.manifest.config[name] for name in ("train", "dev")}
    untested = finished.finish(home, "finetune", {**corpora, "init": "tiny"}, lambda _: finished.TIMED)
    code, _, err = command("errors", untested.id)
    assert (code, "has no test sentences" in err) == (2, True)
    code, _, err = command("errors", tuned.id, "--kind", "missed,lost")
    assert (code, "kind: lost is none" in err) == (2, True)
    code, _, err = command("errors", tuned.id, "--seed", 9)
    assert (code, "choose one of 1, 2, 3" in err) == (2, True)
