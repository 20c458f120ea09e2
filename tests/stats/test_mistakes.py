"""Mistakes of a tagger, of four kinds."""

import pytest

from core.stats.mistakes import by_type, mistakes
from core.text.sentence import Entity


def spans(text: str) -> list[Entity]:
    """Parse `0-2 PER, 4-5 LOC` into entities."""
    found = []
    for part in filter(None, text.split(", ")):
        where, kind = part.split(" ")
        start, end = where.split("-")
        found.append(Entity(start=int(start), end=int(end), type=kind))
    return found


@pytest.mark.parametrize(
    ("gold", "guess", "kinds"),
    [
        ("0-2 PER", "0-2 PER", []),
        ("0-2 PER", "", ["missed"]),
        ("", "0-2 PER", ["invented"]),
        ("0-2 PER", "0-2 LOC", ["wrong type"]),
        ("0-2 PER", "0-3 PER", ["wrong border"]),
        ("0-2 PER", "1-3 LOC", ["wrong type"]),
        ("0-2 PER", "2-3 PER", ["missed", "invented"]),
        ("0-4 PER", "0-2 PER, 2-4 PER", ["wrong border", "invented"]),
        ("0-2 PER, 2-4 PER", "0-4 PER", ["wrong border", "missed"]),
        ("0-2 PER, 2-4 LOC", "0-2 PER, 1-4 LOC", ["wrong border"]),
        ("0-2 PER", "0-2 PER, 0-2 LOC", ["invented"]),
        ("0-2 PER, 3-5 LOC", "0-5 LOC", ["missed", "wrong border"]),
    ],
)
def test_mistakes_are_classified_by_kind(gold: str, guess: str, kinds: list[str]) -> None:
    found = mistakes(spans(gold), spans(guess))
    assert sorted(one.kind for one in found) == sorted(kinds)


def test_every_wrong_or_missed_entity_is_in_one_mistake() -> None:
    gold, guess = spans("0-2 A, 3-5 B, 6-9 A, 10-11 C"), spans("0-2 B, 2-4 B, 6-7 A, 7-9 A, 10-11 C")
    found = mistakes(gold, guess)
    assert sorted(one.gold for one in found if one.gold) == sorted(set(gold) - set(guess))
    assert sorted(one.guess for one in found if one.guess) == sorted(set(guess) - set(gold))
    [one] = mistakes(spans("0-2 PER"), spans("0-2 LOC"))
    assert one.types == {"PER", "LOC"}
    [one] = mistakes([], spans("0-2 LOC"))
    assert (one.types, one.gold) == ({"LOC"}, None)


def test_mistakes_count_under_gold_type_and_spurious_ones_under_predicted() -> None:
    sentences = [
        (spans("0-2 PER, 3-5 PER, 6-7 LOC"), spans("0-2 LOC, 3-6 PER, 8-9 ORG")),
        (spans("0-2 PER"), spans("0-2 PER")),
    ]
    rows = by_type((gold, mistakes(gold, guess)) for gold, guess in sentences)
    assert [(row.type, row.mentions, row.right) for row in rows] == [("PER", 3, 1), ("LOC", 1, 0), ("ORG", 0, 0)]
    per, loc, org = (row.kinds for row in rows)
    none = dict.fromkeys(per, 0)
    assert (per, loc) == (none | {"wrong type": 1, "wrong border": 1}, none | {"missed": 1})
    assert (org, len(none)) == (none | {"invented": 1}, 4)
    assert [dict(row.read_as) for row in rows] == [{"LOC": 1}, {}, {}]
