"""The leaderboard as a table for people."""

from dataclasses import replace
from pathlib import Path

from core.experiment import result as leaderboard
from core.experiment.result import CurvePoint
from core.experiment.tables import as_csv, as_markdown
from tests import finished
from tests.recipes.test_collapsed import LINES


def test_f1_by_number_of_training_sentences_is_a_table_below_the_leaderboard(home: Path) -> None:
    board = leaderboard.read(finished.experiment(home, finished.corpora(home), LINES))
    assert "by number of training sentences" not in as_markdown(replace(board, curve=[]))
    points = [
        CurvePoint(
            arm=arm, budget=budget, train_sentences=n, draw=draw, micro_f1=[n / 2 + draw, n / 2], finetune_run="r"
        )
        for arm, budget in (("none", ""), ("random", "100"))
        for n in (10, 20)
        for draw in (0, 1)
        if (arm, n) != ("none", 10)
    ]
    lines = as_markdown(replace(board, curve=points)).splitlines()
    start = lines.index("| variant | budget | 10 | 20 |")
    assert lines[start + 2 : start + 4] == ["| none |  |  | 10.25 |", "| random | 100 | 5.25 | 10.25 |"]


def test_the_realised_share_of_low_ceim_mentions_is_printed_and_stored(home: Path) -> None:
    board = leaderboard.read(finished.experiment(home, finished.corpora(home), LINES))
    first, *others = board.leaderboard
    board = replace(board, leaderboard=[replace(first, low_share=0.142, mentions=148), *others])
    assert f"- {first.arm} {first.budget}".rstrip() + " (14.2% of 148 mentions are low-CEIM)" in as_markdown(board)
    head, row = as_csv(board).splitlines()[:2]
    columns = dict(zip(head.split(","), row.split(",")[: len(head.split(","))], strict=True))
    assert (columns["low_share"], columns["mentions"]) == ("0.142", "148")
