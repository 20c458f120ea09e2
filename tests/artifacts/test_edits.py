"""Hand edits: folded, taken back, read again, and never lost to a torn line."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.config import Budget
from core.errors import RunError
from core.results import Scores, Selection
from core.selection.choice import EDITS, append_edit, edits_spoilt, read_edits

ACTION = st.tuples(st.sampled_from(["add", "remove", "undo"]), st.sets(st.integers(0, 9), min_size=1, max_size=4))


@settings(max_examples=30)
@given(st.lists(ACTION, max_size=12))
def test_the_fold_is_replaying_what_was_not_undone(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, set[int]]]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    assert str(read_edits(folder)) == "no hand edits"
    stack: list[tuple[str, set[int]]] = []
    for action, rows in actions:
        append_edit(folder, action, np.array(sorted(rows)))  # type: ignore[arg-type]
        if action != "undo":
            stack.append((action, rows))
        elif stack:
            stack.pop()
    state: dict[int, str] = {}
    for action, rows in stack:
        state |= dict.fromkeys(rows, action)
    found = read_edits(folder)
    assert found.added.tolist() == sorted(row for row, action in state.items() if action == "add")
    assert found.removed.tolist() == sorted(row for row, action in state.items() if action == "remove")
    assert [edit.action for edit in found.history] == [action for action, _ in stack]


def test_a_torn_line_costs_itself_alone(tmp_path: Path) -> None:
    append_edit(tmp_path, "add", np.array([1]))
    whole = (tmp_path / EDITS).read_bytes()
    append_edit(tmp_path, "add", np.array([2, 3, 4]))
    (tmp_path / EDITS).write_bytes((tmp_path / EDITS).read_bytes()[:-5])  # killed while writing
    assert read_edits(tmp_path).added.tolist() == [1]
    append_edit(tmp_path, "remove", np.array([7]))
    found = read_edits(tmp_path)
    assert (found.added.tolist(), found.removed.tolist()) == ([1], [7])
    assert (tmp_path / EDITS).read_bytes().startswith(whole)
    (tmp_path / EDITS).write_bytes(whole + b'{"action": "explode", "rows": [1]}\n[]\n\xff\n')
    assert read_edits(tmp_path).added.tolist() == [1]
    deep, endless = b'{"a":' * 50_000, b'{"action": "add", "rows": [%s], "time": 1}' % (b"9" * 30)
    (tmp_path / EDITS).write_bytes(b"\n".join([deep, endless, whole]))
    assert read_edits(tmp_path).added.tolist() == [1]


@pytest.mark.parametrize("spoilt", [b"[]", b"\xff", b'{"action": "add", "rows": [-1], "time": 1}', b"\0" * 40])
def test_a_line_that_was_whole_once_is_told_from_a_torn_one(spoilt: bytes, tmp_path: Path) -> None:
    append_edit(tmp_path, "add", np.array([1]))
    whole = (tmp_path / EDITS).read_bytes()
    (tmp_path / EDITS).write_bytes(whole + whole[:-9] + b"\n" + whole + whole[:-4])  # two writers were killed
    assert not edits_spoilt(tmp_path)
    (tmp_path / EDITS).write_bytes(whole + spoilt + b"\n")
    assert edits_spoilt(tmp_path)
    assert read_edits(tmp_path).added.tolist() == [1]


def test_a_row_that_nobody_can_have_added_is_a_sentence(tmp_path: Path) -> None:
    scores = Scores(name="s", unit="u", prefer="high", values=np.array([5.0, 4, 3]), corpus="c")
    chosen = Selection(corpus="c", rows=np.array([0]), scores=scores.values[:1], budget=Budget.parse("1"), dropped={})
    append_edit(tmp_path, "add", np.array([2, 3]))
    with pytest.raises(RunError, match="adds row 3, and the domain corpus has 3; bring it back"):
        read_edits(tmp_path).apply(chosen, scores)


@pytest.mark.parametrize("prefer", ["high", "low"])
def test_applied_to_a_selection(tmp_path: Path, prefer: str) -> None:
    scores = Scores(name="s", unit="u", prefer=prefer, values=np.array([5.0, 4, 3, np.nan, 1, 0]), corpus="c")  # type: ignore[arg-type]
    rows = np.array([0, 1, 2])
    chosen = Selection(corpus="c", rows=rows, scores=scores.values[rows], budget=Budget.parse("3"), dropped={"leak": 2})
    append_edit(tmp_path, "add", np.array([1, 3, 4, 5]))
    append_edit(tmp_path, "remove", np.array([0]))
    found = read_edits(tmp_path).apply(chosen, scores)
    behind = [4, 5, 3] if prefer == "high" else [5, 4, 3]  # best first, the one without a score last
    assert found.rows.tolist() == [1, 2, *behind]
    np.testing.assert_array_equal(found.scores, scores.values[found.rows])
    assert found.dropped == {"leak": 2, "removed_by_hand": 1}
