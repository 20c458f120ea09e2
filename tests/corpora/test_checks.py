"""The data check: the level of each item at its boundary, and its one sentence."""

from collections.abc import Sequence

import pytest

from core.corpora import checks
from core.corpora.checks import Check, contradictions
from core.text.sentence import Entity, Sentence, sentence_id
from tests.conftest import Seal, sentence
from tests.planted import contracts, kitchen


def numbered(n: int, start: int = 0) -> list[str]:
    return [f"The tenant pays rent number {i} ." for i in range(start, start + n)]


def entities(n: int, kind: str = "PARTY", start: int = 0) -> list[Sentence]:
    """Return `n` sentences with one entity each."""
    return [sentence(text, [(1, 2, kind)]) for text in numbered(n, start)]


def level_and_words(check: Check, level: str, words: str) -> None:
    assert (check.level, words in check.sentence) == (level, True), check
    assert check.cure
    assert check.command.startswith("python -m core ")
    assert check.sentence.endswith(".")


@pytest.mark.parametrize(
    ("n", "level", "words"),
    [
        (100, "green", "has 100 sentences."),
        (99, "amber", "fewer than 100"),
        (5, "amber", "5 sentences"),
        (4, "red", "classifier is not reliable with fewer than 5"),
        (1, "red", "1 sentence;"),
    ],
)
def test_small_task_corpus_is_amber_and_red_below_the_number_of_folds(
    seal: Seal, n: int, level: str, words: str
) -> None:
    level_and_words(checks.task_size(seal(numbered(n)), {"random": 0, "classifier": 5}), level, words)


@pytest.mark.parametrize(
    ("task", "domain", "level", "words"),
    [
        (numbered(10), numbered(10), "red", "have the same sentences"),
        (numbered(10), [*numbered(10)[::-1], *numbered(10)], "red", "have the same sentences"),
        (numbered(10), numbered(20), "amber", "100% of the sentences of the task corpus (T_C)"),
        (numbered(10), numbered(20, 5), "amber", "50% of"),
        (numbered(10), numbered(20, 6), "green", "40% of"),
    ],
)
def test_a_task_corpus_equal_to_the_domain_corpus_is_red(
    seal: Seal, task: Sequence[str], domain: Sequence[str], level: str, words: str
) -> None:
    level_and_words(checks.task_in_domain(seal(task, "t"), seal(domain, "d")), level, words)


@pytest.mark.parametrize(
    ("budgets", "level", "words"),
    [
        (("40",), "green", "enough for the budget"),
        (("41",), "red", "asks for 41 sentences, but the domain corpus (D_C) has 40"),
        (("280tokens", "10%", "threshold:3"), "green", "enough"),
        (("10%", "281tokens"), "red", "asks for 281 tokens"),
    ],
)
def test_a_budget_above_the_domain_corpus_is_red_and_final(
    seal: Seal, budgets: tuple[str, ...], level: str, words: str
) -> None:
    found = checks.budget_fits(budgets, seal(numbered(40)))
    level_and_words(found, level, words)
    assert found.final == (level == "red")


def test_labels_without_an_entity_are_red(seal: Seal) -> None:
    full, empty = seal(entities(3), "full", labelled=True), seal([sentence("Nothing .", [])], "none", labelled=True)
    level_and_words(checks.entities_present({"train": full}), "green", "entities")
    found = checks.entities_present({"train": full, "dev": empty, "test": empty})
    level_and_words(found, "red", "The dev set and test set have no entity")
    assert not found.final
    assert checks.entities_present({"train": empty, "dev": full}).final  # no tagger can be trained
    plain = seal(numbered(3), "plain")
    level_and_words(checks.entities_present({"train": full, "test": plain}), "red", "The test set is not labelled")


def test_a_type_with_few_or_no_entities_in_a_set_is_amber(seal: Seal) -> None:
    ten, nine = seal(entities(10), "ten", labelled=True), seal(entities(9), "nine", labelled=True)
    level_and_words(checks.types_covered({"train": ten, "dev": ten}), "green", "at least 10")
    level_and_words(checks.types_covered({"train": ten, "dev": nine}), "amber", "PARTY (9 in the dev set)")
    other = seal([*entities(10), *entities(10, "DATE", 10)], "other", labelled=True)
    level_and_words(checks.types_covered({"train": other, "test": ten}), "amber", "DATE (none in the test set)")


@pytest.mark.parametrize(("n", "level"), [(300, "green"), (299, "amber")])
def test_a_dev_set_below_300_entities_is_amber(seal: Seal, n: int, level: str) -> None:
    level_and_words(checks.dev_size(seal(entities(n), labelled=True)), level, f"{n} entities")


def test_training_sentences_in_the_test_set_are_amber(seal: Seal) -> None:
    train, other = seal(entities(10), "train", labelled=True), seal(entities(10, start=10), "dev", labelled=True)
    some = seal(entities(4, start=8), "some", labelled=True)
    inside = seal(entities(4), "inside", labelled=True)
    level_and_words(checks.train_in_others(train, {"dev": other}), "green", "No training sentence")
    level_and_words(checks.train_in_others(train, {"dev": other, "test": some}), "amber", "50% of the test set")
    level_and_words(checks.train_in_others(train, {"dev": inside}), "amber", "100% of the dev set")
    level_and_words(checks.train_in_others(train, {"test": inside}), "amber", "is also a training sentence")


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("Die Kündigung – schriftlich – ist gültig .", "green"),
        ("L'été, à Noël : « ça va » …", "green"),
        ("租金每月支付一次。", "green"),
        ("Ã la carte, SÃO PAULO, Â", "green"),
        ("Die Kündigung – schriftlich .".encode().decode("cp1252"), "amber"),
        ("Die “Kündigung” ist gültig".encode().decode("latin-1"), "amber"),
        ("Die Kündigung – schriftlich".encode("cp1252").decode("latin-1"), "amber"),
        ("Die K\ufffdndigung ist gültig .", "amber"),
    ],
)
def test_garbled_characters_are_amber(seal: Seal, text: str, level: str) -> None:
    texts = [f"{text} {i}" if i % 100 == 7 else f"The rent of flat {i} is due ." for i in range(400)]
    level_and_words(checks.garbled({"domain": seal(texts, "d")}), level, "arbled characters")
    texts[7:250] = [f"The rent of flat {i} is due ." for i in range(7, 250)]
    level_and_words(checks.garbled({"domain": seal(texts, "few")}), "green", "No corpus has garbled characters")


def test_text_in_capitals_is_amber(seal: Seal) -> None:
    usual = contracts(20, seed=1)
    most = [*(text.upper() for text in usual[:18]), *usual[18:]]
    level_and_words(checks.upper_case({"task": seal(usual, "t")}), "green", "upper case")
    level_and_words(checks.upper_case({"task": seal(most, "m")}), "amber", "task corpus (T_C) is all upper case")
    level_and_words(checks.upper_case({"task": seal([*most[1:], usual[0]], "l")}), "green", "upper case")
    level_and_words(checks.upper_case({"task": seal(["1900 .", "一 二 。"], "n")}), "green", "upper case")


def test_a_corpus_with_very_long_sentences_is_amber(seal: Seal) -> None:
    long, usual = " ".join(["rent"] * 201), kitchen(9)
    level_and_words(checks.documents({"domain": seal([*usual, long], "a")}), "amber", "domain corpus (D_C) (10%)")
    level_and_words(
        checks.documents({"domain": seal([*usual, "x", long], "b")}), "green", "Few sentences have more than 200"
    )


def test_equal_sentences_with_different_labels_are_amber(seal: Seal) -> None:
    once = entities(5)
    twice = [*once, sentence(once[0].text, [(1, 2, "DATE")])]
    level_and_words(checks.contradictory({"train": seal(once, "o", labelled=True)}), "green", "different labels")
    level_and_words(checks.contradictory({"train": seal(twice, "t", labelled=True)}), "amber", "training set (2 of 6)")


def test_a_sample_spans_a_large_corpus_and_long_lists_are_shortened(seal: Seal) -> None:
    taken = checks.sample(seal(numbered(20_000)))
    assert len(taken) == 500
    assert taken[0] == "The tenant pays rent number 0 ."
    assert taken[-1] == "The tenant pays rent number 19999 ."
    assert [checks.listed(list(names)) for names in ("a", "abc", "abcdef")] == [
        "a",
        "a, b and c",
        "a, b, c, d and 2 more",
    ]


def labelled(text: str, tokens: tuple[str, ...], *entities: tuple[int, int, str]) -> Sentence:
    found = tuple(Entity(start=start, end=end, type=kind) for start, end, kind in entities)
    return Sentence(id=sentence_id(text), text=text, tokens=tokens, entities=found)


def test_equal_texts_with_different_labels_are_counted_once_per_text() -> None:
    text, tokens = "Hall 7 is in Lyon.", ("Hall", "7", "is", "in", "Lyon", ".")
    place = labelled(text, tokens, (4, 5, "LOC"))
    rows = [
        place,
        place,
        labelled(text, tokens),
        labelled(text, ("Hall", "7", "is", "in", "Ly", "on", "."), (4, 6, "LOC")),  # the same labels, cut otherwise
        labelled("No rent is due.", ("No", "rent", "is", "due", "."), (1, 2, "X")),
        labelled("No rent is due.", ("No", "rent", "is", "due", "."), (1, 2, "X")),
    ]
    found = contradictions(rows)
    assert (found.texts, found.sentences) == (1, 4)
    assert found.in_words.startswith("1 text occurs more than once with different labels (4 sentences).")
    assert contradictions(rows[:2]).in_words == ""
