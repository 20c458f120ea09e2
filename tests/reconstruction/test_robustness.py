"""Robustness sets hold what they promise, on planted sentences and on real ones."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.bias.robustness import Robust, cross_category, misspelt, unseen
from core.bias.training_sentences import Known, NameMaker, is_content_word, name_of, ordered, slip, surface
from core.corpora.readers import ReadOptions, read
from core.errors import CorpusError
from core.text.sentence import Sentence
from tests.conftest import entities_of, sentence
from tests.reconstruction.planted import sentences

TRAIN, TEST = sentences(80, 1), sentences(40, 2)
KNOWN = Known.of(TRAIN)
MAKE: dict[str, Callable[[Sequence[Sentence], Known], Robust]] = {
    "oov": lambda test, known: unseen(test, known, {}, 1),
    "strict": lambda test, known: cross_category(test, known, strict=True, seed=1),
    "textflint": lambda test, known: cross_category(test, known, strict=False, seed=1),
    "typos": lambda test, known: misspelt(test, known, 1),
}


def surfaces(rows: Iterable[Sentence]) -> set[tuple[str, str]]:
    return {(entity.type, surface(name_of(row, entity)).casefold()) for row in rows for entity in entities_of(row)}


def hold(kind: str, made: Robust, test: Sequence[Sentence], train: Sequence[Sentence]) -> None:
    """The promises, by a reading of their own."""
    assert len(made.sentences) == len(test)
    assert len(made.slots) == sum(len(entities_of(s)) for s in test)
    assert [[e.type for e in ordered(s)] for s in made.sentences] == [[e.type for e in ordered(s)] for s in test]
    for before, after in zip(test, made.sentences, strict=True):
        outside = [
            [t for i, t in enumerate(s.tokens) if not any(e.start <= i < e.end for e in entities_of(s))]
            for s in (before, after)
        ]
        assert outside[0] == outside[1]
    changed = {(slot.type, slot.after.casefold()) for slot in made.slots if slot.source}
    assert not any(slot.after.casefold() == slot.before.casefold() for slot in made.slots if slot.source)
    seen = surfaces(train)
    words = {token.casefold() for s in train for token in s.tokens}
    if kind == "oov":
        assert not changed & seen
        assert not {name for _, name in changed} & {name for _, name in seen}
        assert not {word for _, name in changed for word in name.split() if is_content_word(word)} & words
    elif kind == "strict":
        assert not changed & seen
        assert {name for _, name in changed} <= {name for _, name in seen}
    elif kind == "textflint":
        assert all(any(name == n and t != kind for t, n in seen) for kind, name in changed)
    else:
        assert not {name for _, name in changed} & {name for _, name in seen}


@pytest.mark.parametrize("kind", MAKE)
def test_promises_hold(kind: str) -> None:
    made = MAKE[kind](TEST, KNOWN)
    hold(kind, made, TEST, TRAIN)
    assert made == MAKE[kind](TEST, KNOWN)
    assert len(made.edits) == len([slot for slot in made.slots if slot.source]) > 20


@pytest.mark.real
@pytest.mark.parametrize(
    "corpus", [pytest.param("conll2003", marks=pytest.mark.full), "crossner-ai", "crossner-literature"]
)
def test_promises_hold_on_real_data(real_data: Path, corpus: str) -> None:
    train, test = (
        list(read(real_data / corpus / f"{part}.conll", ReadOptions(scheme="iob2"))) for part in ("train", "test")
    )
    known = Known.of(train)
    for kind, make in MAKE.items():
        made = make(test, known)
        hold(kind, made, test, train)
        assert len(made.edits) >= 0.98 * len(made.slots)  # of a name of one letter (C, R) no typo is made


def test_new_names_come_from_finds_then_lists_then_are_generated() -> None:
    names = {"PER": [("Zora", "Quill"), ("Bex",)], "LOC": [TRAIN[0].tokens[:1]]}
    made = unseen(TEST, KNOWN, names, 1)
    hold("oov", made, TEST, TRAIN)
    by = {kind: Counter(slot.source for slot in made.slots if slot.type == kind) for kind in ("PER", "LOC", "ORG")}
    assert set(by["PER"]) == {"gazetteer"}
    assert set(by["LOC"]) == set(by["ORG"]) == {"generated"}
    assert {slot.after for slot in made.slots if slot.type == "PER"} == {"Zora Quill", "Bex"}
    names = {"PER": [("Bex",)], "LOC": [("Ulm",)]}
    made = unseen(TEST, KNOWN, names, 1, {"PER": [("Zora", "Quill"), TRAIN[0].tokens[:1]]})
    hold("oov", made, TEST, TRAIN)
    sources = {kind: {slot.source for slot in made.slots if slot.type == kind} for kind in ("PER", "LOC", "ORG")}
    assert sources == {"PER": {"finds"}, "LOC": {"gazetteer"}, "ORG": {"generated"}}


def test_generated_names_look_like_those_of_the_type() -> None:
    maker = NameMaker([("Bank", "of", "Norland"), ("Bank", "of", "Sudland"), ("ACME", "1996", ".")])
    known = Known.of([sentence("Bank of Norland and ACME 1996", [(0, 3, "ORG")])])
    made = [maker.make(known, Random(seed)) for seed in range(40)]
    assert any(name[1:2] == ("of",) and name[0].istitle() for name in made)
    assert any(name[0].isupper() and len(name) == 3 and name[1].isdigit() and name[2] == "." for name in made)
    assert all(known.is_new(name) for name in made)


def test_slots_that_cannot_be_told_are_marked() -> None:
    train = [sentence("Ford sold Ford shares", [(0, 1, "ORG"), (2, 3, "PER")]), sentence("Rome fell", [(0, 1, "LOC")])]
    known = Known.of(train)
    test = sentence("FORD 1996 and Rome", [(0, 1, "ORG"), (3, 4, "LOC")])
    assert [known.ambiguity(test, entity) for entity in entities_of(test)] == ["name", "no context"]
    open_ = sentence("Rome burns", [(0, 1, "LOC")])
    assert known.ambiguity(open_, entities_of(open_)[0]) == ""
    made = cross_category([open_], known, strict=False, seed=1)
    assert made.slots[0].ambiguous == "name"


def test_one_type_has_no_names_of_another() -> None:
    one = [sentence("Ada came", [(0, 1, "PER")])]
    with pytest.raises(CorpusError, match="names of another type are needed"):
        cross_category(one, Known.of(one), strict=True, seed=1)
    both = [sentence("Ada of Ada", [(0, 1, "PER"), (2, 3, "LOC")])]
    with pytest.raises(CorpusError, match="is a PER somewhere; choose textflint"):
        cross_category(one, Known.of(both), strict=True, seed=1)


@pytest.mark.parametrize(("word", "script"), [("Москва", "CYRILLIC"), ("दिल्ली", "DEVANAGARI"), ("北京市", "CJK")])
def test_a_slip_stays_in_the_script_of_the_word(word: str, script: str) -> None:
    slips = {slip(word, Random(seed), "abcбгджकखगघ東西") or "" for seed in range(40)}
    assert {unicodedata.name(letter).split()[0] for made in slips for letter in made} == {script}
    assert any(set(made) - set(word) for made in slips)  # letters that it had not, too


@given(st.text("abcXY19é-", min_size=2, max_size=12), st.integers(0, 10**6))
@settings(deadline=None)
def test_a_slip_is_one_edit_and_spares_the_first_character(word: str, seed: int) -> None:
    made = slip(word, Random(seed))
    if made is None:
        return
    assert made != word
    assert made[0] == word[0]
    assert abs(len(made) - len(word)) <= 1
    assert slip("a", Random(seed)) is None
