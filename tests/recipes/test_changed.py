"""An arm that could change too little of L_C is not tested: no verdict, no part in Holm's count or the planned test."""

from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from core.experiment import changed_labels, results
from core.experiment import leaderboard as judging
from core.experiment import result as leaderboard
from core.experiment.arms import Cell, find
from core.experiment.finding import of_experiment
from core.experiment.interim_analysis import planned_test
from core.experiment.tables import as_csv, as_markdown
from core.runs.run import Run
from core.stats.verdict import verdicts
from tests import finished
from tests.pages.test_pages import opened, texts
from tests.pages.test_results import PAGE, tab

C, II = "redundant2low:40%", "low2high:40%"
LINES = (("none", "", 0), (C, "", 0), (II, "", 0))


def judged(home: Path, of_c: int) -> tuple[Run, dict[str, leaderboard.ArmRow]]:
    lucks = dict.fromkeys((C, II), (0.3, 0.32, 0.28))
    changed = {C: (of_c, 100), II: (99, 100)}
    run = finished.experiment(home, finished.corpora(home), LINES, lucks=lucks, changed=changed)
    return run, {row.arm: row for row in leaderboard.read(run).leaderboard}


def test_an_arm_that_changed_too_little_has_no_verdict_and_costs_the_others_none(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = Mock(side_effect=verdicts)
    monkeypatch.setattr(judging, "verdicts", tested)
    run, rows = judged(home, 79)
    assert [set(call.args[0]) for call in tested.call_args_list] == [{II}]  # Holm counts no other
    assert (rows[C].verdict, rows[C].helped, rows[C].chose, rows[C].seeds_needed) == ("not tested", None, None, "")
    assert rows[C].why.startswith("Not tested: 79 of 100 mentions are changed, which is less than 80%")
    assert (rows[C].changed, rows[C].wanted, rows["none"].wanted) == (79, 100, 0)
    assert rows[II].verdict == "improves"
    assert results.finding(run.id).what.endswith(f"too few labels could be changed: “{C}” (79 of 100 changed).")
    board = leaderboard.read(run)
    alone = of_experiment(replace(board, leaderboard=[rows["none"], rows[C]]))
    assert (alone.what[:11], alone.sure, alone.next[:25]) == ("Not tested,", "", "Next: ask for a lower sha")
    assert f"- {C} (79 of 100 changed): Not tested" in as_markdown(board)
    assert ",not tested," in as_csv(board)
    report = unescape(finished.html_report(run.id))
    assert "○ not tested" in report
    assert "Of its mentions 99 of 100 changed." in report
    app = opened(PAGE)
    assert not app.exception
    said = texts(tab(app, "Leaderboard"))
    assert "○ not tested" in said
    assert "79 of 100 changed" in said


def test_an_arm_that_changed_enough_is_judged(home: Path) -> None:
    run, rows = judged(home, 80)
    assert rows[C].verdict == "improves"
    assert rows[C].changed_words == "80 of 100 changed"
    assert "ot tested" not in results.finding(run.id).what


def line(arm: str, *counts: tuple[int, int], home: Path) -> Any:
    made = finished.corpora(home)
    runs = [finished.rebuilt(home, made, arm, *n, seed=seed) for seed, n in enumerate(counts)]
    chains = [SimpleNamespace(labels=(run,)) for run in runs]
    return SimpleNamespace(cell=Cell(arm=find(arm)), chains=chains)


def test_replicates_count_by_their_mean_and_controls_not_at_all(home: Path) -> None:
    assert changed_labels.of_line(line(C, (70, 100), (88, 100), home=home)) == (79, 100)
    assert changed_labels.of_line(line("copies:random2low:10%", (1, 100), home=home)) == (0, 0)


def test_the_claim_of_such_an_arm_is_not_tested(home: Path) -> None:
    few = line(C, (5, 100), home=home)
    none: Any = SimpleNamespace(cell=Cell(arm=find("none")))
    config: Any = SimpleNamespace(claimed=few.cell, seeds=(1, 2), stops=(2, 4))
    assert all(planned_test(config, [none, few], number) is None for number in (0, 1))
