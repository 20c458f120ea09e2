"""Special cases of verdicts: taggers that learnt nothing, labels that hardly changed, and the planned test; advice."""

import csv
import re
from dataclasses import replace
from html import unescape
from math import isinf
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from core.experiment import leaderboard as judging
from core.experiment import result as leaderboard
from core.experiment import results
from core.experiment.arms import Cell, find
from core.experiment.cheapest import cheapest
from core.experiment.config import Replicate
from core.experiment.leaderboard import planned_test
from core.experiment.result import ArmRow, CurvePoint
from core.experiment.results import labels_spared, next_budget
from core.experiment.tables import answers, as_csv, as_markdown, interval_words
from core.experiment.words import IDLE, NOTHING, of_experiment, planned_words
from core.results import Evaluation, IntArray
from core.runs.run import Run
from core.runs.store import RunStore
from core.stats.verdict import Arm, verdicts
from core.tagging import result as taggers
from tests import finished
from tests.finished import ARM_ROW
from tests.pages.drawing import opened, texts
from tests.pages.test_results import PAGE, tab

LINES = (("none", "", 0), ("classifier", "10", 60), ("random", "10", 60))
NEVER = (-9.0, -9.0, -9.0)


def test_no_verdict_is_given_if_no_tagger_learnt_anything(home: Path) -> None:
    run = finished.experiment(home, finished.corpora(home), LINES, seed_effects={arm: NEVER for arm, *_ in LINES})
    board = leaderboard.read(run)
    rows = {row.arm: row for row in board.leaderboard}
    verdicts = {name: row.verdict for name, row in rows.items()}
    assert verdicts == {"none": "baseline", "classifier": "nothing learnt", "random": "control"}
    assert (rows["classifier"].why, rows["classifier"].seeds_needed) == (NOTHING, "")
    assert all(list(row.collapsed) == [1, 2, 3] for row in rows.values())
    assert results.finding(run.id).what == IDLE
    report = finished.html_report(run.id)
    assert results.finding(run.id).sentence in report
    assert "no evidence</td>" not in report
    assert as_markdown(board).split("\n")[0] == NOTHING
    app = opened(PAGE)
    assert not app.exception
    text = unescape(texts(app)).replace("\u2060", "")
    assert results.finding(run.id).sentence in text
    assert "● no evidence" not in text
    for part in ("1, 2, 3", "train longer, with more epochs or a higher learning rate"):
        assert part in text
    for part in ("better", "[+0.00", "Choose a variant by", "more labels", "Helped", "won, level, lost"):
        assert part not in text


@pytest.mark.parametrize("arm", ["", "none", "classifier", "random"])
def test_seed_that_learnt_nothing_is_named_in_the_verdicts_it_affects(home: Path, arm: str) -> None:
    seed_effects = {arm: (0.0, -9.0, 0.02)} if arm else {}
    run = finished.experiment(home, finished.corpora(home), LINES, seed_effects=seed_effects)
    rows = {row.arm: row for row in leaderboard.read(run).leaderboard}
    assert {name: list(row.collapsed) for name, row in rows.items() if row.collapsed} == ({arm: [2]} if arm else {})
    assert rows["classifier"].verdict in ("improves", "helped", "no evidence", "hurts")
    assert ("Learnt nothing" in rows["random"].why) == (arm == "random")
    assert "No tagger" not in as_markdown(leaderboard.read(run))
    named = f"Learnt nothing, but counted in the scores: seed 2 of {arm}"
    assert (named in rows["classifier"].why) == (named in finished.html_report(run.id)) == bool(arm)
    if arm == "classifier":
        app = opened(PAGE)
        warned = (
            "Some taggers learnt nothing (dev F1 no better than chance) and are still included: classifier 10: seed 2."
        )
        assert warned in unescape(texts(tab(app, "Leaderboard"))).replace("\u2060", "")


def test_a_failed_repetition_of_two_is_mentioned_everywhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finished, "SEEDS", (1, 2))
    run = finished.experiment(home, finished.corpora(home), LINES, seed_effects={arm: (0.0, -9.0) for arm, *_ in LINES})
    board, finding = leaderboard.read(run), results.finding(run.id)
    row = next(row for row in board.leaderboard if row.arm == "classifier")
    assert finding.sure.startswith("Two taggers, of which one learnt nothing: ")
    assert finding.next == "Next: train longer; half of the taggers learnt nothing."
    assert row.seeds_needed == "Train longer first: half of the taggers learnt nothing."
    assert results.repetitions_to_settle(run.id) == 0
    assert interval_words(row).endswith("(2 seeds, 1 learnt nothing: no interval)")
    for words in (unescape(finished.html_report(run.id)), as_markdown(board)):
        assert not re.search(r"single replicate|one seed|-100\.00|\d replicates|better buy", words)


def test_only_dev_f1_decides_if_a_tagger_learnt_anything(home: Path) -> None:
    made = finished.corpora(home)
    run = finished.tuned(home, made, "tiny", 0.6, seed_effects=(0, -9, -0.5))
    assert taggers.collapsed_seeds(run) == [2]
    assert taggers.failed_seeds(run) == [2, 3]
    options = {"init": "tiny", "seeds": (1, 2), "train": made["train"].fingerprint, "dev": made["dev"].fingerprint}
    scores = finished.fine_tuned((0.0, 40.0), dev=(40.0, 0.0))
    run = finished.finish(home, "finetune", options, finished.constant(scores))
    assert taggers.collapsed_seeds(run) == [2]


C, II = "redundant2low:40%", "low2high:40%"
REBUILT = (("none", "", 0), (C, "", 0), (II, "", 0))


def judged(home: Path, of_c: int) -> tuple[Run, dict[str, leaderboard.ArmRow]]:
    seed_effects, changed = dict.fromkeys((C, II), (0.3, 0.32, 0.28)), {C: (of_c, 100), II: (99, 100)}
    run = finished.experiment(home, finished.corpora(home), REBUILT, seed_effects=seed_effects, changed=changed)
    return run, {row.arm: row for row in leaderboard.read(run).leaderboard}


def test_variant_with_too_few_changes_gets_no_verdict_and_no_holm_share(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = Mock(side_effect=verdicts)
    monkeypatch.setattr(judging, "verdicts", tested)
    run, rows = judged(home, 79)
    assert [set(call.args[0]) for call in tested.call_args_list] == [{II}]  # Holm's correction counts no other arm
    assert (rows[C].verdict, rows[C].helped, rows[C].chose, rows[C].seeds_needed) == ("not tested", None, None, "")
    assert rows[C].why.startswith("Not tested: only 79 of 100 mentions could be changed, and a test needs 80%")
    assert (rows[C].changed, rows[C].wanted, rows["none"].wanted) == (79, 100, 0)
    assert rows[II].verdict == "improves"
    assert results.finding(run.id).what.endswith(f"too few labels could be changed: “{C}” (79 of 100 changed).")
    board = leaderboard.read(run)
    way = cheapest(board, RunStore(home))
    assert way
    assert C not in way.words  # nothing is concluded from its difference
    alone = of_experiment(replace(board, leaderboard=[rows["none"], rows[C]]))
    assert (alone.what[:22], alone.sure, alone.next[:25]) == ("No result. Not tested,", "", "Next: ask for a lower sha")
    assert f"- {C} (79 of 100 changed): Not tested" in as_markdown(board)
    assert ",not tested," in as_csv(board)
    report = unescape(finished.html_report(run.id))
    assert "○ not tested" in report
    assert "Mentions: 99 of 100 changed." in report
    text = texts(tab(opened(PAGE), "Leaderboard"))
    assert "○ not tested" in text
    assert "79 of 100 changed" in text


def test_variant_that_changed_80_percent_gets_a_verdict(home: Path) -> None:
    run, rows = judged(home, 80)
    assert (rows[C].verdict, rows[C].changed_words) == ("improves", "80 of 100 changed")
    assert "ot tested" not in results.finding(run.id).what


def line(arm: str, *counts: tuple[int, int], home: Path) -> Any:
    made = finished.corpora(home)
    runs = [finished.rebuilt(home, made, arm, *n, seed=seed) for seed, n in enumerate(counts)]
    chains = [SimpleNamespace(labels=(run,)) for run in runs]
    return SimpleNamespace(cell=Cell(arm=find(arm)), chains=chains)


def test_changes_are_averaged_and_a_claim_with_too_few_is_not_tested(home: Path) -> None:
    assert judging.changed_of(line(C, (70, 100), (88, 100), home=home)) == (79, 100)
    # Changes in a control do not count.
    assert judging.changed_of(line("copies:random2low:10%", (1, 100), home=home)) == (0, 0)
    few: Any = line(C, (5, 100), home=home)
    none: Any = SimpleNamespace(cell=Cell(arm=find("none")))
    given = config(claimed=few.cell, seeds=(1, 2), stops=(2, 4))
    assert all(planned_test(given, [none, few], number) is None for number in (0, 1))


CLAIM, RANDOM, NONE = (
    Cell(arm=find(name), budget=budget) for name, budget in (("classifier", "10"), ("random", "10"), ("none", ""))
)


def arm(rng: np.random.Generator, gold: IntArray, skill: float) -> list[Evaluation]:
    """Return three replicates, each of which finds a share `skill` of the entities."""
    right = [rng.binomial(gold, skill)[:, None].astype(np.int32) for _ in range(3)]
    whole = gold[:, None].astype(np.int32)
    return [Evaluation(types=("X",), tp=tp, predicted=whole, gold=whole) for tp in right]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a claim, its control and `none` on 20 sentences, two of them long.

    p is below 0.05, but the interval includes 0, because it extends further downwards.
    """
    rng = np.random.default_rng(122)
    gold = rng.poisson(1.5, 20) + (rng.random(20) < 0.1) * rng.integers(5, 20, 20)
    tables = {CLAIM: arm(rng, gold, 0.75), RANDOM: arm(rng, gold, 0.6)}
    tables[NONE] = tables[RANDOM]
    monkeypatch.setattr(judging, "evaluations_of", lambda line: tables[line.cell])
    monkeypatch.setattr(judging, "collapsed_seeds", lambda lines: {line.cell: line.collapsed for line in lines})
    chains = [SimpleNamespace(replicate=Replicate(draw=0, seeds=(1, 2, 3), number=1))]
    return [SimpleNamespace(cell=cell, chains=chains, tables=tables[cell], collapsed=[1]) for cell in tables]


def config(**fields: Any) -> Any:
    known = {"claimed": CLAIM, "seeds": (1, 2, 3), "stops": (3,), "effect": 1.0, "draw_seed": 0}
    return SimpleNamespace(**(known | fields))


def test_planned_test_shows_no_effect_if_the_interval_includes_0(lines: list[Any]) -> None:
    test = planned_test(config(), lines, 0)
    assert test
    assert test.p < test.bound
    system, random, none = (line.tables for line in lines)
    row = verdicts({"it": Arm(system=system, random=random)}, none, claim="it", bound=test.bound)["it"]
    assert row.random
    assert row.random.lo < 0
    assert (test.ended, row.chose) == ("complete", "no evidence")
    tested = "p = 0.046, significance level 0.05, but the interval includes 0: not shown. Learnt nothing, but counted"
    assert tested in test.why
    assert planned_test(config(seeds=(1, 2, 3, 4), stops=(3, 4)), lines, 0) is None  # the plan continues
    for where, early in (("", "1 replicate early."), (" on each of 2 tasks", "1 replicate on each of 2 tasks early.")):
        words = planned_words(replace(test, looks=(2, 5, 6), replicates=5, ended="shown", why=""), "replicates", where)
        assert words.endswith(f"shown. It ended there, {early}")
        assert f"after 5 of 6 replicates{where}: p" in words
    for line in lines:
        line.collapsed = [1, 2, 3]
    assert planned_test(config(), lines, 0) is None  # no tagger learnt anything
    lines[0].collapsed = [1, 2]
    assert planned_test(config(), lines, 0)


def test_variants_other_than_the_claim_are_exploratory(home: Path) -> None:
    lines = (("none", "", 0), ("random", "10", 60), ("classifier", "10", 60), ("lpft", "", 0))
    run = finished.experiment(home, finished.corpora(home), lines, claim=CLAIM)
    board = results.board(run.id)
    [lpft] = [row for row in board.leaderboard if row.exploratory]
    claim = next(row for row in board.leaderboard if row.arm == "classifier")
    assert lpft.arm == "lpft"
    assert answers(lpft) == (f"{lpft.helped}, exploratory", "")
    assert answers(claim) == (claim.helped, claim.chose)
    random = next(row for row in board.leaderboard if row.arm == "random")
    assert answers(random) == (f"control: {random.helped}", "")
    assert f"| control: {random.helped} |  |" in as_markdown(board)
    assert f"| {lpft.helped}, exploratory |  |" in as_markdown(board)
    assert [row["exploratory"] for row in csv.DictReader(as_csv(board).splitlines())].count("True") == 1
    assert f"{lpft.helped}, exploratory" in finished.html_report(run.id)


def test_table_has_f1_by_training_size_and_shares_of_low_ceim_mentions(home: Path) -> None:
    board = leaderboard.read(finished.experiment(home, finished.corpora(home), LINES))
    assert "by number of training sentences" not in as_markdown(replace(board, curve=[]))
    points = [
        CurvePoint(arm=arm, budget=budget, train_sentences=n, draw=d, micro_f1=[n / 2 + d, n / 2], finetune_run="r")
        for arm, budget in (("none", ""), ("random", "100"))
        for n in (10, 20)
        for d in (0, 1)
        if (arm, n) != ("none", 10)
    ]
    lines = as_markdown(replace(board, curve=points)).splitlines()
    start = lines.index("| variant | budget | 10 | 20 |")
    assert lines[start + 2 : start + 4] == ["| none |  |  | 10.25 |", "| random | 100 | 5.25 | 10.25 |"]
    first, *others = board.leaderboard
    board = replace(board, leaderboard=[replace(first, low_share=0.142, mentions=148), *others])
    assert f"- {first.arm} {first.budget}".rstrip() + " (14.2% of 148 mentions have low CEIM)" in as_markdown(board)
    row = next(csv.DictReader(as_csv(board).splitlines()))
    assert (row["low_share"], row["mentions"]) == ("0.142", "148")


def board(dev: list[float], test: list[float], arm: str = "knn") -> list[ArmRow]:
    return [
        replace(
            ARM_ROW,
            arm=arm,
            sentences=n,
            dev_f1=[d] * 3,
            dev_mean=d,
            micro_f1=[t] * 3,
            finetune_runs=("a", "b", "c"),
            hours={"pretrain": 3 * n / 1000},  # of three pre-trainings
        )
        for n, d, t in zip((1000, 2000, 4000), dev, test, strict=True)
    ]


def test_budget_advice_uses_only_dev_f1() -> None:
    flat, rising = [50.0, 50.0, 50.0], [50.0, 55.0, 59.0]
    (stop,), (on,) = next_budget(board(flat, rising), 0.1), next_budget(board(rising, flat), 0.1)
    assert (stop.sentences, stop.hours) == (8000, 8.0)
    assert stop.stop
    assert stop.gain == pytest.approx(0, abs=1e-6)
    assert not on.stop
    assert on.gain > 2
    # Taggers that share a pre-training agree in any case, so one pre-training per budget never advises to stop.
    (advice,) = next_budget([replace(row, finetune_runs=("a",)) for row in board(flat, flat)], 1e9)
    assert isinf(advice.upper)
    assert not advice.stop
    none = [replace(row, arm="none", sentences=0) for row in board(flat, flat)]
    assert next_budget([*none, *board(flat, flat)[:2]], 0.1) == []  # two budgets are too few


def test_labels_are_saved_by_a_variant_with_higher_f1() -> None:
    def curve(arm: str, f1: list[float]) -> list[CurvePoint]:
        return [
            CurvePoint(arm=arm, budget="", train_sentences=n, draw=0, micro_f1=[x, x], finetune_run="")
            for n, x in zip((10, 50, 250), f1, strict=True)
        ]

    rows = [*curve("none", [20.0, 30.0, 38.0]), *curve("tapt", [30.0, 38.0, 44.0])]
    (spared,) = labels_spared(rows, 50)
    assert spared.arm == "tapt"
    assert 100 < spared.spared < 300  # `none` reaches 38 with about 250 sentences
    (never,) = labels_spared([*curve("none", [20.0, 20.0, 20.0]), *curve("tapt", [30.0, 38.0, 44.0])], 50)
    assert isinf(never.spared)
