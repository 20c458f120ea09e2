"""A run's result goes to disk and comes back as what it was."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from core.errors import RunError
from core.explore.result import MapResult, Topic
from core.importing.result import AuditResult
from core.kind import as_json
from core.runs.result import read
from core.runs.store import RunStore
from core.runs.worker import execute
from core.tagging.evaluations import SeedOutcome, SplitScores

RESULT = AuditResult(flags={"leak": 1}, leak_rules={"exact": 1}, near_rules={"edited": 0}, sentences=7)


MAP = MapResult(
    points=9,
    task_points=2,
    fitted=9,
    of=12,
    task="t",
    domain="d",
    layout="l",
    embedded={"task": "a", "domain": "b"},
    clusters=[Topic(name="deed, clause", size=5), Topic(name="mixed", size=4)],
)


@pytest.mark.parametrize("result", [RESULT, MAP])
def test_what_a_recipe_returned_is_read_back(result: object, tmp_path: Path) -> None:
    run = RunStore(tmp_path).create("audit", {}, {}, seed=None, versions={}, key="k")
    execute(run, lambda context: as_json(result))
    assert read(run, type(result)) == result
    older = RunStore(tmp_path).create("audit", {"x": 1}, {}, seed=None, versions={}, key="older")
    execute(older, lambda context: {"flags": {"leak": 1}, "leak_rules": {"exact": 1}, "sentences": 7})
    assert read(older, AuditResult).near_rules == {}


@pytest.mark.parametrize("damaged", [{}, {"flags": 3, "leak_rules": {}, "sentences": 7}])
def test_another_result_is_refused_in_a_sentence(tmp_path: Path, damaged: dict[str, object]) -> None:
    run = RunStore(tmp_path).create("audit", {}, {}, seed=None, versions={}, key="k")
    execute(run, lambda context: damaged)
    with pytest.raises(RunError, match=f"run {run.id}: its result is not one of audit .*; remove the run"):
        read(run, AuditResult)


def test_a_switch_among_a_seed_s_settings_is_read_again_as_one() -> None:
    """A seed that an attempt has ended is read by the next, whose result is that of an undisturbed run."""
    settings: Mapping[str, float] = {"in_turn": False, "epochs": 3, "rate": 0.5}
    scores = SplitScores(micro_f1=1.0, precision=1.0, recall=1.0, by_type={}, decodings={})
    outcome = SeedOutcome(seed=1, best_epoch=1, epochs=3, seconds=9.0, dev=scores, tests=[], settings=settings)
    again = TypeAdapter(SeedOutcome).validate_python(json.loads(json.dumps(asdict(outcome))))
    assert json.dumps(again.settings) == json.dumps(settings)
