"""Taggers that learnt nothing: no verdict where all are such, and no seed of that kind goes unnamed."""

import re
from html import unescape
from pathlib import Path

import pytest

from core.experiment import result as leaderboard
from core.experiment import results
from core.experiment.collapsed import NOTHING
from core.experiment.finding import IDLE
from core.experiment.tables import as_markdown
from core.tagging import result as taggers
from tests import finished
from tests.pages.test_pages import opened, texts
from tests.pages.test_results import PAGE, tab

LINES = (("none", "", 0), ("classifier", "10", 60), ("random", "10", 60))
NEVER = (-9.0, -9.0, -9.0)


def test_where_no_tagger_learnt_anything_there_is_no_verdict(home: Path) -> None:
    lucks = {arm: NEVER for arm, *_ in LINES}
    run = finished.experiment(home, finished.corpora(home), LINES, lucks=lucks)
    board = leaderboard.read(run)
    rows = {row.arm: row for row in board.leaderboard}
    assert {name: row.verdict for name, row in rows.items()} == {
        "none": "baseline",
        "classifier": "nothing learnt",
        "random": "control",
    }
    assert rows["classifier"].why == NOTHING
    assert rows["classifier"].seeds_needed == ""
    assert all(list(row.collapsed) == [1, 2, 3] for row in rows.values())
    assert results.finding(run.id).what == IDLE
    assert IDLE in finished.html_report(run.id)
    assert "no evidence</td>" not in finished.html_report(run.id)
    assert as_markdown(board).split("\n")[0] == NOTHING
    app = opened(PAGE)
    assert not app.exception
    said = texts(app)
    assert IDLE in unescape(said).replace("\u2060", "")
    assert "● no evidence" not in said
    assert "seed 1, 2, 3" in said


@pytest.mark.parametrize("arm", ["none", "classifier", "random"])
def test_one_seed_that_learnt_nothing_is_named_beside_every_verdict_it_touches(home: Path, arm: str) -> None:
    run = finished.experiment(home, finished.corpora(home), LINES, lucks={arm: (0.0, -9.0, 0.02)})
    rows = {row.arm: row for row in leaderboard.read(run).leaderboard}
    assert {name: list(row.collapsed) for name, row in rows.items() if row.collapsed} == {arm: [2]}
    assert rows["classifier"].verdict in ("improves", "helped", "no evidence", "hurts")
    named = f"Learnt nothing, and counted all the same: seed 2 of {arm}"
    assert named in rows["classifier"].why
    assert named in finished.html_report(run.id)
    assert ("Learnt nothing" in rows["random"].why) == (arm == "random")
    app = opened(PAGE)
    assert not app.exception
    warned = "Some taggers learnt nothing (no better than chance) and are still included"
    line = " ".join(word for name, budget, _ in LINES if name == arm for word in (name, budget) if word)
    assert f"{warned}: {line}: seed 2." in unescape(texts(tab(app, "Leaderboard"))).replace("\u2060", "")


def test_two_repetitions_of_which_one_learnt_nothing_are_called_so_everywhere(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finished, "SEEDS", (1, 2))
    run = finished.experiment(home, finished.corpora(home), LINES, lucks={arm: (0.0, -9.0) for arm, *_ in LINES})
    board, told = leaderboard.read(run), results.finding(run.id)
    row = next(row for row in board.leaderboard if row.arm == "classifier")
    assert told.sure.startswith("Two repetitions, of which one learnt nothing: ")
    assert told.next == "Next: train longer first; half of the taggers learnt nothing."
    assert row.seeds_needed == "Train longer first: half of the taggers learnt nothing."
    assert results.repetitions_to_settle(run.id) == 0
    report = unescape(finished.html_report(run.id))
    said = unescape(texts(opened(PAGE))).replace("\u2060", "")
    for words in (report, said, as_markdown(board)):
        assert not re.search(r"single repetition|one seed|-100\.00|\d repetitions|better buy", words)
    assert "(2 seeds, 1 learnt nothing: no interval)" in said


def test_where_all_learnt_nothing_is_said_of_it(home: Path) -> None:
    run = finished.experiment(home, finished.corpora(home), LINES)
    rows = leaderboard.read(run).leaderboard
    assert not any(row.collapsed or "Learnt nothing" in row.why for row in rows)
    assert "No tagger" not in as_markdown(leaderboard.read(run))


def test_a_tagger_that_only_dev_shows_to_have_learnt_did_not_collapse(home: Path) -> None:
    made = finished.corpora(home)
    run = finished.tuned(home, made, "tiny", 0.6, lucks=(0, -9, -0.5))
    assert taggers.collapsed_seeds(run) == [2]
    assert results.collapsed_seeds(run.id) == [2]
    assert taggers.failed_seeds(run) == [2, 3]
    shown = finished.fine_tuned((0.0, 0.0), dev=(40.0, 0.0))
    assert [any(both) for both in zip(shown.dev.learnt, shown.tests[0].learnt, strict=True)] == [True, False]
