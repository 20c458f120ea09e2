"""Health of a selection: measures against enumeration, and warnings."""

from dataclasses import replace

import numpy as np
import pytest

from core.selection import health
from core.selection.health import Health


def test_vendi_score_equals_the_entropy_of_the_kernel() -> None:
    assert health.vendi(np.tile([0.6, 0.8], (50, 1))) == pytest.approx(1)
    assert health.vendi(np.eye(7)) == pytest.approx(7)
    assert health.vendi(np.concatenate([np.eye(3)] * 4)) == pytest.approx(3)  # more rows than columns
    assert health.vendi(np.zeros((4, 3))) == 0
    assert health.vendi(np.concatenate([np.eye(3), np.zeros((5, 3))])) == pytest.approx(3)  # empty rows do not count
    rows = np.random.default_rng(0).normal(size=(20, 6))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    values = np.linalg.eigvalsh(rows @ rows.T / 20)
    values = values[values > 1e-12]
    assert health.vendi(rows) == pytest.approx(np.exp(-(values * np.log(values)).sum()))


def test_coverage_equals_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "BLOCK", 7)
    rng = np.random.default_rng(1)
    drawn = (rng.normal(size=(n, 4)) for n in (9, 40))
    task, domain = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in drawn)
    selected = rng.random(40) < 0.3
    monkeypatch.setattr(health, "widened", lambda rows, start: rows[start : start + 7].astype(np.float32))
    wanted = [max(t @ d for d in domain[selected]) >= max(t @ d for d in domain[~selected]) for t in task]
    assert 0 < sum(wanted) < 9
    assert health.coverage(task, domain, selected) == pytest.approx(sum(wanted) / 9)
    for nothing_or_all in (np.zeros(40, dtype=bool), np.ones(40, dtype=bool)):
        assert health.coverage(task, domain, nothing_or_all) is None
    assert health.duplicates_left(np.array([3, 3, 5, 9, 3])) == 2


def test_type_token_ratio_uses_equal_sample_sizes() -> None:
    ratio, n = health.type_token({"S_C": ["a b A, b"], "D_C": ["one two three", "four five six"]})
    assert n == 4
    assert ratio == {"S_C": 0.5, "D_C": 1.0}
    assert health.type_token({"S_C": [], "D_C": ["x"]}) == ({"S_C": 0.0, "D_C": 0.0}, 0)


def test_new_names_are_found_by_capitalisation() -> None:
    texts = ["Yesterday Ann Lee met the mayor of Basel.", "In Basel, Harlow Ltd sued.", "Nobody came."]
    share, n = health.new_entities(texts, ["basel", "Ann Lee"])
    assert share == pytest.approx(1 / 3)  # Harlow Ltd alone is new
    assert n == 3
    assert health.new_entities(["nothing here"], []) == (None, 0)


GOOD = Health(
    sentences=100,
    tokens=2000,
    median_tokens={"S_C": 20, "D_C": 20, "T_C": 20},
    duplicates=0,
    type_token={"S_C": 0.4, "D_C": 0.4, "T_C": 0.4},
    type_token_words=1000,
    variety=30.0,
    variety_of=100,
    coverage=0.9,
    coverage_of=50,
    new_entities=None,
    new_entities_of=0,
    warnings=(),
)


def test_low_type_token_ratio_is_compared_with_the_task_corpus() -> None:
    like_the_task = replace(GOOD, type_token={"S_C": 0.119, "D_C": 0.2, "T_C": 0.126})
    assert list(health.warnings(like_the_task)) == []
    (warning,) = health.warnings(replace(GOOD, type_token={"S_C": 0.08, "D_C": 0.2, "T_C": 0.126}))
    assert (
        "Compared with the domain corpus and the task corpus, the selection uses far fewer different words" in warning
    )
    (warning,) = health.warnings(replace(GOOD, type_token={"S_C": 0.08, "D_C": 0.2}))  # T_C without words
    assert "Compared with the domain corpus, the selection" in warning


def test_length_warnings_do_not_contradict_each_other() -> None:
    found = list(health.warnings(replace(GOOD, median_tokens={"S_C": 14, "D_C": 37, "T_C": 11})))
    assert [warning for warning in found if "prefers long" in warning] == []
    assert "11 in the task corpus: the selection's sentences are longer" in found[0]
    assert "37 in the domain corpus: the selection prefers short" in found[1]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"median_tokens": {"S_C": 26, "D_C": 20, "T_C": 25}}, "20 in the domain corpus: the selection prefers long"),
        (
            {"median_tokens": {"S_C": 10, "D_C": 10, "T_C": 20}},
            "20 in the task corpus: the selection's sentences are shorter",
        ),
        ({"duplicates": 10}, "10 of 100"),
        ({"variety": 1.1}, "1.1 unrelated ones; select with the option diversity"),
        ({"coverage": 0.2}, "20% of the task corpus"),
        ({"type_token": {"S_C": 0.2, "D_C": 0.4, "T_C": 0.4}}, "boilerplate"),
    ],
)
def test_each_health_problem_gives_one_warning(change: dict[str, object], says: str) -> None:
    assert list(health.warnings(GOOD)) == []
    (warning,) = health.warnings(replace(GOOD, **change))  # type: ignore[arg-type]
    assert says in warning
