"""Evaluation: its F1 against seqeval's, and what it writes it reads."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import f1_score
from seqeval.scheme import IOB2

from core.results import Evaluation, IntArray
from core.text.schemes import decode, encode
from core.text.sentence import Entity

TYPES = ("LOC", "PER")


def evaluation(gold: list[tuple[Entity, ...]], predicted: list[tuple[Entity, ...]]) -> Evaluation:
    def table(spans: Iterable[set[Entity]]) -> IntArray:
        return np.array([[sum(e.type == t for e in row) for t in TYPES] for row in spans], dtype=np.int32)

    both = [set(g) & set(p) for g, p in zip(gold, predicted, strict=True)]
    return Evaluation(types=TYPES, tp=table(both), predicted=table(map(set, predicted)), gold=table(map(set, gold)))


tags = st.lists(st.sampled_from(["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]), min_size=6, max_size=6)


@given(st.lists(st.tuples(tags, tags), min_size=1, max_size=5))
def test_f1_is_seqevals(pairs: list[tuple[list[str], list[str]]]) -> None:
    gold, predicted = ([decode(row[side], "iob2")[0] for row in pairs] for side in (0, 1))
    found = evaluation(gold, predicted)
    written = [[encode(spans, 6, "iob2") for spans in side] for side in (gold, predicted)]
    if sum(map(len, gold)) and sum(map(len, predicted)):
        assert np.isclose(found.f1(), 100 * f1_score(*written, mode="strict", scheme=IOB2))
        p, r = found.precision(), found.recall()
        assert np.isclose(found.f1(), 2 * p * r / (p + r) if p + r else 0)
    else:
        assert found.f1() == 0


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    found = evaluation([(Entity(start=0, end=1, type="LOC"),), ()], [(Entity(start=0, end=1, type="LOC"),), ()])
    found.save(tmp_path / "e.npz")
    again = Evaluation.load(tmp_path / "e.npz")
    assert again.types == TYPES
    assert again.by_type() == {"LOC": 100.0, "PER": 0.0}
    assert all((getattr(again, name) == getattr(found, name)).all() for name in ("tp", "predicted", "gold"))
