"""Rules of tokenisation are learnt from labelled sentences and applied to raw text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.cut import Cut, _chunks, learn, over_tokens
from core.text.sentence import Entity, Prediction
from core.text.words import clean, tokenize

TREEBANK = (
    "The U.S. buyer , based in St. Gallen , did n't pay .",
    "It 's a Zurich-based firm ( founded 1996-08-22 ) .",
    "He paid $ 3,000.5 - half of it - to O'Brien & Co. of Moody 's .",
    "Ms. Smith of St. Paul sold 6.5 % .",
)
SPACY = ("A well - known drug / placebo trial .", "The alpha - 2 - receptor of e.g. rats .")


def test_raw_text_is_cut_like_the_labelled_sentences() -> None:
    cut = learn([text.split() for text in TREEBANK * 3])
    assert cut is not None
    raw = "Didn't Mr. O'Neil, of St. Louis, say the Basel-based bank's 12.5% (since 2001-02-03) isn't cheap?"
    wanted = (
        "Did n't Mr. O'Neil , of St. Louis , say the Basel-based bank 's 12.5 % ( since 2001-02-03 ) is n't cheap ?"
    )
    assert cut(raw) == (*wanted.split(),)
    assert Cut.from_dict(json.loads(json.dumps(cut.as_dict()))) == cut
    assert cut("") == ()
    assert "Gallen" not in json.dumps(cut.as_dict())  # rare words make no rule


def test_rules_are_learnt_only_if_needed_and_in_every_script() -> None:
    assert learn([tokenize(text) for text in TREEBANK]) is None
    assert learn([]) is None
    cut = learn([text.split() for text in SPACY])
    assert cut is not None
    wanted = "A beta - 3 - blocker , e.g. new / old ."
    assert cut("A beta-3-blocker, e.g. new/old.") == (*wanted.split(),)
    words = ["北京", "大学", "在", "哪里"]
    cut = learn([words] * 5)
    assert cut is not None
    assert cut("".join(words)) == tuple(words)
    # Vowels and tones are marks, not letters; a token of their own does not begin after a blank.
    for text in ("สัญญานี้มีผล", "ສັນຍາມີຜົນ", "កិច្ចសន្យា", "စာချုပ်", "合同自双方"):
        assert list(_chunks(list(text))) == [list(text)]


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_cutting_loses_no_letter(text: str) -> None:
    cut = learn([row.split() for row in TREEBANK])
    assert cut is not None
    assert "".join(cut(clean(text))) == "".join(clean(text).split())
    learn([cut(clean(text)), clean(text).split()])


@pytest.mark.parametrize(
    ("cut", "tokens", "spans", "expected"),
    [
        ("the U.S. buyer", "the U . S . buyer", [(1, 2)], [(1, 5)]),
        ("the U . S . buyer", "the U.S. buyer", [(1, 5), (5, 6)], [(1, 2), (2, 3)]),
        ("did n't go", "didn ' t go", [(0, 1), (1, 3)], [(0, 1), (1, 4)]),  # the n belongs to the first entity
        ("a b c", "ab c", [(0, 1), (1, 2), (2, 3)], [(0, 1), (1, 2)]),
    ],
)
def test_entities_are_mapped_to_other_tokens(
    cut: str, tokens: str, spans: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    sure = tuple(0.1 * i for i in range(len(spans)))
    found = Prediction(entities=tuple(Entity(start=a, end=b, type="X") for a, b in spans), confidence=sure)
    moved = over_tokens(found, cut.split(), tokens.split())
    assert [(entity.start, entity.end) for entity in moved.entities] == expected
    assert len(moved.confidence) == len(expected)
