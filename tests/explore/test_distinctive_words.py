"""Distinctive words against the formula computed word by word."""

from collections import Counter
from math import log, sqrt

import pytest

from core.explore.distinctive_words import count_words, telling_words, topic_words


def z_of(word: str, ours: Counter[str], theirs: Counter[str], prior: float) -> float:
    """Return z by equations 16, 19, and 20 of Monroe et al. 2008, with scalars."""
    everything = ours + theirs
    alpha = prior * everything[word] / everything.total()
    a, b = ours[word] + alpha, theirs[word] + alpha
    ratio = log(a / (ours.total() + prior - a)) - log(b / (theirs.total() + prior - b))
    return ratio / sqrt(1 / a + 1 / b)


def test_z_equals_the_formula_of_monroe_et_al() -> None:
    ours = count_words(["The court held the lease void.", "The court adjourned."])
    theirs = count_words(["Stir the soup.", "The soup is hot, the court is not."])
    found = {t.word: t for t in telling_words(ours, theirs, 100, prior=10)}
    assert found
    for word, telling in found.items():
        assert telling.z == pytest.approx(z_of(word, ours, theirs, 10))
        assert (telling.inside, telling.outside) == (ours[word], theirs[word])
    left_out = {word for word in ours if word not in found and len(word) > 1}
    assert all(z_of(word, ours, theirs, 10) <= 0 for word in left_out)


def test_planted_word_ranks_before_frequent_words() -> None:
    ours = count_words([f"the {word} of the clause" for word in "abcdefgh"])
    theirs = count_words([f"the {word} of the day" for word in "ijklmnopqrstuvw"])
    words = [t.word for t in telling_words(ours, theirs)]
    assert words[0] == "clause"
    assert "the" not in words[:1]


GERMAN = (
    ("die Miete ist an den Vermieter zu zahlen", "der Mieter gibt die Miete an den Vermieter", "ist an der Miete zu"),
    ("die Suppe ist an den Gast zu bringen", "der Koch gibt die Suppe an den Gast", "ist an der Suppe zu salzen"),
)
PROSE = ("and it was the 2026 end", "it was his and the dog slept", "and who was it but the dog", "the end and it was")


def topics(*texts: tuple[str, ...]) -> list[list[str]]:
    holding = [Counter(word for text in topic for word in count_words([text])) for topic in texts]
    return topic_words(holding, [len(topic) for topic in texts])


def test_topics_are_named_by_distinctive_words_in_german() -> None:
    rent, soup = topics(*GERMAN)
    assert {"miete", "vermieter"} <= set(rent)
    assert {"suppe", "gast"} <= set(soup)
    assert not {"die", "der", "ist", "an", "den", "zu", "gibt"} & {*rent, *soup}


def test_topic_names_contain_no_stop_words() -> None:
    law = tuple(f"and it was the {word} clause of the lessee" for word in ("first", "second", "third", "fourth"))
    prose, clauses = topics(PROSE, law)
    assert "dog" in prose
    assert {"clause", "lessee"} <= set(clauses)
    assert not {"and", "it", "was", "the", "2026"} & {*prose, *clauses}


def test_empty_comparisons_give_no_words() -> None:
    assert telling_words(Counter(), Counter({"a": 1, "b": 2})) == []
    assert telling_words(Counter({"same": 3}), Counter({"same": 5})) == []
    assert [t.word for t in telling_words(Counter({"one": 3, "two": 1}), Counter())] == []
    assert topics(("of the and",), ("of the and",)) == [[], []]
    assert topic_words([Counter()], [0]) == [[]]
