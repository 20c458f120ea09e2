"""Thresholds of types against trying all of them, and what they leave out."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from core.text.sentence import Entity, Prediction, Sentence
from core.zero_shot.thresholds import best_thresholds, renamed, surer_than
from tests.conftest import sentence

SURE = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
PLACES = [Entity(start=i, end=i + 1, type=type) for i in range(3) for type in ("a", "b")]
SENTENCES = st.lists(
    st.tuples(st.sets(st.sampled_from(PLACES)), st.dictionaries(st.sampled_from(PLACES), SURE)), max_size=6
)


def split(pairs: list[tuple[set[Entity], dict[Entity, float]]]) -> tuple[list[Sentence], list[Prediction]]:
    gold = [sentence("x y z", [(e.start, e.end, e.type) for e in sorted(truth)]) for truth, _ in pairs]
    found = [Prediction(entities=tuple(one), confidence=tuple(one.values())) for _, one in pairs]
    return gold, found


@given(SENTENCES)
def test_a_threshold_has_the_highest_f1_and_is_the_lowest_of_those(
    pairs: list[tuple[set[Entity], dict[Entity, float]]],
) -> None:
    def f1(type: str, least: float) -> Fraction:
        predicted = [
            (i, e) for i, (_, one) in enumerate(pairs) for e, s in one.items() if e.type == type and s >= least
        ]
        right = sum(e in pairs[i][0] for i, e in predicted)
        return Fraction(2 * right, len(predicted) + labelled[type])

    labelled = {type: sum(e.type == type for truth, _ in pairs for e in truth) for type in "ab"}
    chosen = best_thresholds(*split(pairs), ("a", "b"))
    assert set(chosen) == {type for type in "ab" if labelled[type]}
    for type, least in chosen.items():
        tried = [0.0, *(sure for _, one in pairs for e, sure in one.items() if e.type == type)]
        best = max(f1(type, each) for each in tried)
        assert least == min(each for each in tried if f1(type, each) == best)


def test_entities_below_their_threshold_and_of_dropped_types_are_left_out() -> None:
    entities = tuple(Entity(start=i, end=i + 1, type=type) for i, type in enumerate("abca"))
    prediction = renamed(Prediction(entities=entities, confidence=(0.9, 0.5, 0.8, 0.4)), {"a": "A", "b": "A", "c": ""})
    assert [(e.start, e.type) for e in prediction.entities] == [(0, "A"), (1, "A"), (3, "A")]
    kept = surer_than(prediction, {"A": 0.5})
    assert [e.start for e in kept.entities] == [0, 1]
    assert kept.confidence == (0.9, 0.5)
