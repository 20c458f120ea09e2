"""The sentences of the samples are correct English: every production of the grammars, and the checks themselves."""

from random import Random

import pytest

from core.samples import sets
from tests.samples.english import problems

NAMES = {"first", "surname", "place", "coined", "trade", "title", "weekday", "form", "company", "person", "name"}


@pytest.mark.parametrize("name", ["legal", pytest.param("medical", marks=pytest.mark.full)])
def test_every_production_of_the_grammars_is_correct_english(name: sets.Name) -> None:
    plan, grammar, seen = sets.SETS[name], sets.grammar_of(name, Random(0)), 0
    for topic in dict.fromkeys((*plan.inside, *plan.outside)):
        for sentence in grammar.productions(topic, NAMES):
            assert not problems(sentence), sentence
            seen += 1
    assert seen > 50_000


def test_productions_use_every_alternative_with_different_neighbours() -> None:
    sentences = sets.grammar_of("legal", Random(0)).productions("general")
    for words in ("This memorandum", "the Isle of Man", "Sableport", "clauses 9 to 16", "30 September 2026"):
        assert any(words in sentence for sentence in sentences), words
    for verb in ("constitutes", "contains"):
        assert any(f"This letter {verb}" in sentence for sentence in sentences), verb


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("These conditions constitutes the entire bargain.", "number: These conditions constitutes"),
        ("These terms is made on 3 May 2020.", "number: These terms is"),
        ("The Licensor warrants that the Patents infringes no right.", "number: the Patents infringes"),
        ("Where clauses 3 to 12 applies, the Lender shall pay.", "number: clauses 3 to 12 applies"),
        ("No objections exists.", "number: No objections exists"),
        ("A tow bar suit the old saloon.", "number: A tow bar suit"),
        ("The platelets was normal.", "number: The platelets was"),
        ("Weight loss persist.", "number: Weight loss persist"),
        ("The data is processed.", "number: The data is"),
        ("Every consignments are late.", "a wrong plural: Every consignments"),
        ("The goods shall conforms to it.", "a wrong verb form: shall conforms"),
        ("Thank you for referring he.", "a wrong case: referring he"),
        ("An urinary leak was seen.", "a wrong article: An urinary"),
        ("A ulcer was seen.", "a wrong article: A ulcer"),
        ("A ECG was normal.", "a wrong article: A ECG"),
        ("Pain for the past a fortnight.", "two articles: the past a"),
        ("No a haematoma seen.", "two articles: No a"),
        ("The the law applies.", "a doubled word: The the"),
        ("Serves two: 1 onions.", "one of a plural: : 1 onions"),
        ("It was the Rovers's third win.", "a wrong possessive: s's"),
        ("the goods are late.", "no capital: t"),
        ("The goods are late", "no end: e"),
        ("The goods , are late.", "a blank or mark too many:  ,"),
    ],
)
def test_the_checks_find_what_was_wrong_in_the_samples(sentence: str, found: str) -> None:
    assert found in problems(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "This Agreement constitutes the entire bargain.",
        "The price of the glass bottles is £4.50 per crate.",
        "Notes and Bonds fall due on 3 May 2020.",
        "An MRI of the spine, a unit, a US firm, an hour and a urinary leak.",
        "Neither party nor its affiliates shall be liable.",
        "Where clause 1 applies, the Rovers are late.",
    ],
)
def test_the_checks_accept_correct_sentences(sentence: str) -> None:
    assert problems(sentence) == []
