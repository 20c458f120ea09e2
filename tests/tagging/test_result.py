"""Tables that compare finished taggers."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.experiment.words import weakest_words
from core.results import Evaluation
from core.tagging import evaluations
from core.tagging.result import Found, weakest


def scored(**found: tuple[int, int]) -> Evaluation:
    """Return the table of one sentence. found: mentions found and mentions in the test set, by type."""
    right, gold = (np.array([[pair[i] for pair in found.values()]], dtype=np.int32) for i in (0, 1))
    return Evaluation(types=tuple(found), tp=right, predicted=right, gold=gold)


def test_weakest_type_has_the_lowest_recall_and_rare_types_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = {
        "a": [scored(LAW=(0, 9), PARTY=(9, 10), SUM=(2, 10)), scored(LAW=(0, 9), PARTY=(10, 10), SUM=(8, 10))],
        "b": [scored(LAW=(0, 9), PARTY=(1, 10), SUM=(10, 10))],
        "all": [scored(LAW=(0, 9), PARTY=(10, 10))],
    }
    monkeypatch.setattr(evaluations, "read", lambda run: tables[run.id])
    runs: dict[str, Any] = {name: SimpleNamespace(id=name) for name in tables}
    assert weakest([runs["a"]]) == Found(type="SUM", share=0.5)
    assert weakest([runs["a"], runs["b"]]) == Found(type="PARTY", share=20 / 30)
    assert weakest([runs["all"]]) is None
    assert weakest_words(Found(type="SUM", share=0.104)) == "Found least often: SUM, in 10 of 100 cases."
    assert weakest_words(None) == ""
