"""Tokenised text is recognised by blanks before commas and full stops."""

from collections.abc import Sequence

import pytest

from core.text.words import Marks, marks

RAW = ["The U.S. buyer, he said, pays $3,000.5 at once.", "Warum nicht, fragte er..."]
CUT = ["The U.S. buyer , he said , pays $ 3,000.5 at once .", "Warum nicht , fragte er ..."]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (RAW, (4, 0)),
        (CUT, (4, 4)),
        (["Vraiment ? Oui , dit-il !", "Oui, dit-il : « non » !"], (2, 1)),  # French has blanks before the other marks
        (["\u6211\uff0c\u4f60\u3002", "\u6211 \uff0c \u4f60 \u3002"], (4, 2)),
        ([], (0, 0)),
    ],
)
def test_marks_and_spaced_marks_are_counted(texts: Sequence[str], expected: tuple[int, int]) -> None:
    assert (marks(texts).n, marks(texts).spaced) == expected


def test_a_rule_is_proposed_if_it_is_evident() -> None:
    assert (marks(RAW * 9).tokens, marks(CUT * 9).tokens) == ("words", "blanks")
    assert marks(CUT * 4).tokens == "words"  # too few marks
    assert "too few" in marks(CUT * 4).why
    assert (Marks(n=40, spaced=30).tokens, Marks(n=40, spaced=38).tokens) == ("words", "blanks")
    assert Marks(n=40, spaced=38).why.startswith("95% of 40 commas")
