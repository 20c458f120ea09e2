"""Reference lines: variants that train nothing, beside the others on the same test set."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from core.corpora.library import Library
from core.errors import ConfigError
from core.experiment import arms, results, tables
from core.experiment import result as leaderboard
from core.experiment.config import ExperimentConfig
from core.projects import runs
from core.runs.store import RunStore
from core.stats.bootstrap import compare
from core.tagging import evaluations
from tests.conftest import sentence
from tests.experiment.test_experiment import OPTIONS, fill
from tests.stats.test_verdict import World

OWN = {**OPTIONS, "arms": ("none", "dictionary")}


def test_a_dictionary_stands_beside_the_variants_without_a_tagger(home: Path, untrained: None) -> None:
    made = fill(home)
    names = [sentence(" ".join(s.tokens[:2]), [(0, 2, "PARTY")]) for s in made["test"].take(range(5))]
    given = Library(home).seal(names, name="list <i>", origin={}, labelled=True).fingerprint
    run = runs.execute("experiment", {**OWN, "dictionary": (given,), "also_test": ("dev",)})
    board = results.board(run.id)
    assert [row.arm for row in board.leaderboard] == ["none"]
    [line] = board.references
    child = runs.get(line.run)
    assert child.manifest.parent == run.id
    assert child.manifest.config["test"] == [made[name].fingerprint for name in ("test", "dev")]
    table = evaluations.read_table(child, "test")
    assert line.f1 == pytest.approx(table.f1())
    assert line.f1 > 30
    none = leaderboard.tables(board.leaderboard[0], RunStore(home))
    assert line.difference == compare([table] * len(none), none)
    assert line.difference.lo < line.difference.delta < line.difference.hi
    assert line.about.endswith(" of list <i>")
    assert results.reference_lines(run.id) == [line]
    assert f"| {line.about} | {line.f1:.2f} | {line.against_none} |" in tables.as_markdown(board)
    row = list(csv.DictReader(io.StringIO(tables.as_csv(board))))[-1]
    assert (row["arm"], row["verdict"]) == (line.about, "reference")
    assert float(row["mean"]) == pytest.approx(line.f1)


def test_without_a_list_the_names_of_the_training_set_are_looked_up(home: Path, untrained: None) -> None:
    fill(home)
    run = runs.execute("experiment", OWN)
    [line] = results.board(run.id).references
    assert line.about.endswith(" of train")
    again = runs.execute("experiment", {**OWN, "seeds": (1, 2, 3)})
    assert [one.run for one in results.board(again.id).references] == [line.run]  # computed once


def test_a_reference_line_is_no_claim_and_needs_one_test_set() -> None:
    assert not arms.find("dictionary").judged
    with pytest.raises(ConfigError, match="claim: dictionary is no variant that gets a verdict"):
        ExperimentConfig.parse({**OWN, "claim": "dictionary"})
    with pytest.raises(ConfigError, match="arms: dictionary is looked up in one test set"):
        ExperimentConfig.parse({**OWN, "task": "", "cross": True, "repeat": "pipeline", "seeds": (1, 2)})
    assert len(ExperimentConfig.parse({**OWN, "axis": ("encoder:other",)}).references) == 1


@pytest.mark.parametrize("arm", ["dictionary", "none+dictionary"])
@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_held_out_text_is_no_dictionary(arm: str, split: str) -> None:
    with pytest.raises(ConfigError, match="is also the training set or held out"):
        ExperimentConfig.parse({**OWN, "arms": ("none", arm), "dictionary": (OPTIONS[split],)})


@pytest.mark.parametrize("seeds", [3, 5])
def test_interval_of_a_reference_line_covers_other_seeds_and_sentences(seeds: int) -> None:
    """The line itself has no seeds: for each test set it has one score."""
    rng, experiments, held = np.random.default_rng(seeds), 400, 0
    for _ in range(experiments):
        world = World(rng, 100, seed=0.15, sentence=0.5, both=0.3)
        none, world.spread = world.arm(0.1, seeds), 0.0
        found = compare(world.arm(0.4, 1) * seeds, none)
        truth = world.truth(0.4)
        world.spread = 0.15
        held += found.lo <= truth - world.truth(0.1) <= found.hi
    assert 0.93 <= held / experiments <= 0.985
