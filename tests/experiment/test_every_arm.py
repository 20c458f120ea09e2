"""Contract of every arm: all lines of an experiment are tested alike, are counted in its cost, and are in every table."""

import csv
import html
import io
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.experiment import arms, deliver, results
from core.experiment import result as boards
from core.experiment import view as experiments
from core.experiment.cli import in_figures
from core.experiment.config import ExperimentConfig
from core.experiment.cost import _WORDS
from core.experiment.words import VERDICT_MARKS, line_name
from core.projects import runs
from core.projects.home import library, store
from core.tagging.evaluations import read_predictions
from pages.ui.training.variants import arm_label, grouped
from tests import fake_llm, smallest_options
from tests.conftest import ROOT, sentence
from tests.experiment.test_arms import SPLITS, fill_all
from tests.finished import html_report
from tests.homes import Homes
from tests.pages.drawing import opened_on, seen
from tests.untrained import without_training

VALUES = {
    "SOURCE": "law",
    "THRESHOLD": "4",
    "RATE": "50%",
    "SIZE": "6",
    "CORPUS": "theirs",
    "FOLDER": "/models/ready",
    "MODEL@ADDRESS": "fake@http://127.0.0.1:9/v1",
    "+N": "+5",
}  # a new kind of value needs an example here
NETWORKS = ("encoder", "bilstm")
GIVEN = {
    "task": "law",
    "domain": "food",
    "sources": ("law", "food"),
    "assisting": "theirs",
    "transfer": ("theirs",),
    "dictionary": ("names",),
}


def every(values: Mapping[str, str]) -> list[str]:
    """Return the names of all arms but the strategies, which have a contract of their own. values: as `VALUES`."""
    shapes = (shape.partition(":") for shape in arms.ARM_SHAPES)
    return [*arms.FIXED_NAMES, *(f"{head}:{values[value]}" for head, _, value in shapes), "random"]


def options(network: str, values: Mapping[str, str] = VALUES) -> dict[str, Any]:
    """Return the experiment of all arms that have a network, in which none is left out."""
    known = {name: arms.find(name) for name in every(values)}
    of_encoder = [name for name, arm in known.items() if "encoder" in arm.networks]
    others = [name for name, arm in known.items() if arm.reference or name not in of_encoder]
    names = of_encoder if network == "encoder" else others
    return {**SPLITS, **GIVEN, "arms": tuple(names), "rebuild": {"size": 6}}


def made(home: Path) -> dict[str, str]:
    """Execute both experiments with a ready model and a server that answers."""
    fill_all(home).seal([sentence("The supplier", [(0, 2, "PARTY")])], name="names", origin={}, labelled=True)
    values = {**VALUES, "FOLDER": str(smallest_options.ready()), "MODEL@ADDRESS": f"fake@{fake_llm.lasting()}"}
    with without_training():
        return {network: runs.execute("experiment", options(network, values)).id for network in NETWORKS}


def asked(run_id: str) -> dict[str, Any]:
    """Return the options of an experiment, with the folder and the address that `made` gave."""
    return dict(runs.get(run_id).manifest.config)


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run_id(homes: Homes, home: Path, network: str) -> str:
    return homes.copy(made, home)[network]


def test_every_arm_has_a_line_on_the_same_test_sets(run_id: str, network: str) -> None:
    cells, rows = ExperimentConfig.parse(asked(run_id)).cells, results.board(run_id).leaderboard
    estimates = {(line.arm, "") for line in results.board(run_id).more_labels}
    assert estimates == {(cell.arm.name, "") for cell in cells if cell.arm.more}
    lines = {(row.arm, row.budget) for row in rows} | estimates
    assert lines == {(cell.arm.name, cell.budget) for cell in cells}
    assert len(cells) == len(ExperimentConfig.parse(options(network)).cells)
    assert {*every(VALUES)} <= {
        cell.arm.name for each in NETWORKS for cell in ExperimentConfig.parse(options(each)).cells
    }
    tests = [library().find(name).fingerprint for name in ("test", "hard")]
    [gold] = {boards.tables(row, store())[0].gold.sum() for row in rows}
    for row in rows:
        assert [runs.get(run).manifest.config["test"] for run in row.finetunes] == [tests] * len(row.finetunes)
        found = boards.tables(row, store())
        assert [table.f1() for table in found] == row.micro_f1
        assert gold == found[0].gold.sum()
        for run in map(runs.get, row.finetunes):
            for seed in run.manifest.config.get("seeds", (None,)):
                assert len(read_predictions(run, seed)) == len(library().find("test"))
        baseline = boards.baseline(row, rows) or row
        assert row.delta == pytest.approx(row.mean - baseline.mean)
        assert [test.test for test in row.also] == ["hard"]


def test_every_arm_is_counted_in_the_cost(run_id: str) -> None:
    assert all(row.gpu_hours > 0 for row in results.board(run_id).leaderboard)
    assert experiments.cost(asked(run_id)).seconds == 0
    wanted = asked(run_id)
    for run in store().list():
        if run.manifest.kind != "calibrate":
            store().remove(run.id)
    planned = experiments.cost(wanted)
    cells = {str(cell) for cell in ExperimentConfig.parse(wanted).cells}
    assert {name for name, seconds in planned.lines.items() if seconds} == cells
    lines = in_figures(planned)
    assert all(any(line.startswith(f"{cell} ") for line in lines) for cell in cells)
    assert all(step.kind in _WORDS for step in planned.steps)  # the words for the progress
    assert sum(experiments.seconds_by_arm(wanted).values()) == pytest.approx(planned.seconds)
    start = {**wanted, "arms": wanted["arms"][:1], "claim": "", "looks": ()}
    added = experiments.seconds_by_arm(start, wanted["arms"])
    for name in wanted["arms"][1:]:
        wider = experiments.cost({**start, "arms": (*start["arms"], name)}).seconds
        assert added[name] == pytest.approx(wider - experiments.cost(start).seconds), name


@pytest.mark.parametrize("group", ["text", "labels", "ready", "other"])
def test_every_arm_is_in_one_group(group: str) -> None:
    expected = {
        "text": ("none", "random", "classifier", "tapt", "dapt", "tapt+dapt", "random-only", "length-matched-random"),
        "labels": (
            "labels:+100",
            "none+dictionary",
            "distant",
            "distant:random",
            "self-train",
            "transfer:x",
            "skl:1",
            "all",
        ),
        "ready": ("dictionary", "llm:m@http://127.0.0.1:1/v1"),
        "other": ("states", "span", "lpft", "dataaug", "random2low:20%", "base+low:1000", "vectors:x", "lm:x"),
    }
    every_name = [name for names in expected.values() for name in names]
    assert sorted(grouped(every_name)[group]) == sorted(expected[group])


def test_every_arm_is_in_every_table(run_id: str) -> None:
    rows, estimates = results.board(run_id).leaderboard, results.board(run_id).more_labels
    names = {(row.arm, row.budget) for row in rows} | {(line.arm, "") for line in estimates}
    table = csv.DictReader(io.StringIO(deliver.board_csv(run_id).decode("utf-8-sig")))
    assert {(row["arm"], row["budget"]) for row in table} == names
    lines = deliver.board_markdown(run_id).splitlines()
    report, page = html_report(run_id), seen(opened_on("pages/6_Results.py", run_id))
    for line in estimates:
        assert any(text.startswith(f"| {line.arm} | ") for text in lines)
        assert f"- {line.arm}: {line.words}" in lines
        assert f">{line.arm}</td>" in report
        assert html.escape(line.words) in report
        assert f">{line.arm}" in page
        assert arm_label(line.arm) != line.arm
    for row in rows:
        budget = row.budget.replace("|", r"\|")
        assert any(line.startswith(f"| {row.arm} | {budget} | ") for line in lines)
        assert any(line.startswith(f"- {row.arm} {row.budget}".rstrip()) and row.why in line for line in lines)
        assert f">{line_name(row)}</td>" in report
        assert f">{line_name(row)}" in page
        assert VERDICT_MARKS[row.verdict].words in page
        spread = f"{row.mean:.2f}" + ("" if row.sd is None else f" ± {row.sd:.2f}")
        assert f">{spread}</td>" in report
        assert (row.sd is None) == bool(row.reference)
        assert arm_label(row.arm) != row.arm or row.verdict == "control"


NEW_LINE = """
import sys
from dataclasses import replace

from core.experiment import reference

assert "core.experiment.arms" not in sys.modules  # it makes an arm of every entry when it is imported
line = reference.KINDS["dictionary"]
kind = replace(line.kind, name="guess")
reference.KINDS["guess"] = replace(line, kind=kind, named=lambda _: "guessing", doing="guessing names")

from core.kinds import KINDS

KINDS["guess"] = kind

from core.experiment import deliver, results, view
from core.experiment.cost import _WORDS
from core.experiment.words import name_of
from core.projects import runs
from pages.ui.training.variants import arm_label, arm_names
from tests.experiment.test_arms import SPLITS
from tests.finished import html_report
from tests.untrained import without_training

asked = {**SPLITS, "arms": ("none", "guess")}
with without_training():
    run = runs.execute("experiment", asked)
    board = results.board(run.id)
    row = next(row for row in board.leaderboard if row.arm == "guess")
    assert (row.reference, len(row.micro_f1), bool(row.about)) == ("guess", 1, True), row
    assert name_of(row, board.leaderboard) == "guessing"
    assert "| guess |" in deliver.board_markdown(run.id)
    assert ">guess</td>" in html_report(run.id)
    assert "guess" in arm_names({"sources": (), "assisting": ""})
    assert arm_label("guess") != "guess"
    assert _WORDS["guess"] == "guessing names"
    assert {step.kind for step in view.cost(asked).steps} == {"finetune", "guess"}
    halves = {**asked, "cross": True, "repeat": "pipeline", "seeds": (1, 2)}
    rows = results.board(runs.execute("experiment", halves).id).leaderboard
    assert [len(row.micro_f1) for row in rows if row.arm == "guess"] == [2]
"""


def test_a_new_reference_line_only_needs_its_kind_and_its_entry(home: Path) -> None:
    """It then has an arm, a cost, a row in all tables, words, and a run for each half, without other changes."""
    fill_all(home)
    done = subprocess.run([sys.executable, "-c", NEW_LINE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
