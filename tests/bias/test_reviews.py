"""Reviews of labels: their history, undo, damaged lines, and the corrected corpus."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.bias.result import REVIEWS, Mention, append_review, corrected, read_reviews
from tests.conftest import Seal, sentence

ACTION = st.tuples(st.sampled_from(["accept", "fix", "remove", "skip", "undo"]), st.integers(0, 4))
SENTENCES = [
    sentence("Ada sues Rome .", [(0, 1, "PER"), (2, 3, "ORG")]),
    sentence("Nothing here .", []),
    sentence("Rome and New York .", [(0, 1, "LOC"), (2, 4, "ORG")]),
]


def mention(row: int, start: int, end: int, kind: str) -> Mention:
    return Mention(
        row=row,
        sentence=SENTENCES[row].id,
        start=start,
        end=end,
        type=kind,
        surface="",
        pvi_entity=-2.0,
        pvi_context=-1.0,
        ceim=-1.0,
        bin="low",
        fold=0,
    )


MENTIONS = [mention(0, 0, 1, "PER"), mention(0, 2, 3, "ORG"), mention(2, 0, 1, "LOC"), mention(2, 2, 4, "ORG")]


@settings(deadline=None, max_examples=30)
@given(st.lists(ACTION, max_size=12))
def test_review_history_equals_actions_that_were_not_undone(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    stack: list[tuple[str, int]] = []
    for action, number in actions:
        append_review(folder, action, number, "LOC")  # type: ignore[arg-type]
        if action != "undo":
            stack.append((action, number))
        elif stack:
            stack.pop()
    found = read_reviews(folder)
    assert [(review.action, review.mention) for review in found.history] == stack
    last = {number: action for action, number in stack}
    assert {number: review.action for number, review in found.latest.items()} == last
    assert [review.mention for review in found.changes] == sorted(
        number for number, action in last.items() if action in ("fix", "remove")
    )


def test_incomplete_line_is_skipped(tmp_path: Path) -> None:
    append_review(tmp_path, "accept", 1)
    with (tmp_path / REVIEWS).open("ab") as file:
        file.write(b'{"action": "fix", "ment')
    append_review(tmp_path, "skip", 2)
    with (tmp_path / REVIEWS).open("ab") as file:
        file.write(b'{"action": "burn", "mention": 3, "type": "", "time": 1}\n')
    assert [(review.action, review.mention) for review in read_reviews(tmp_path).history] == [
        ("accept", 1),
        ("skip", 2),
    ]


def test_changes_affect_only_their_own_labels(seal: Seal, tmp_path: Path) -> None:
    corpus = seal(SENTENCES, labelled=True)
    assert list(corrected(corpus, MENTIONS, [])) == list(next(corpus.batches()))
    for action, number, kind in (("fix", 1, "LOC"), ("remove", 3, ""), ("accept", 0, ""), ("skip", 2, "")):
        append_review(tmp_path, action, number, kind)  # type: ignore[arg-type]
    made = list(corrected(corpus, MENTIONS, read_reviews(tmp_path).changes))
    assert [[(e.start, e.end, e.type) for e in one.entities or ()] for one in made] == [
        [(0, 1, "PER"), (2, 3, "LOC")],
        [],
        [(0, 1, "LOC")],
    ]
    assert [one.tokens for one in made] == [one.tokens for one in SENTENCES]
