"""Searching a column: what is found does not depend on how its parts are cut, nor on the order of the tests."""

import itertools
import random
import re

import pyarrow as pa
import pytest

from core.corpora import columns
from core.corpora.columns import matches
from core.results import IntArray

WORDS = ["the", "Theft", "and", "and_so", "Über", "über3", "a", "of", "x-ray", "goods,", "合同", "合同法", "."]
TEXTS = [" ".join(random.Random(i).choices(WORDS, k=6)) for i in range(300)]


def wanted(text: str, query: str, *, whole: bool) -> bool:
    """The same by Python's own expressions."""
    if not whole:
        return query.lower() in text.lower()
    return all(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) for word in query.split())


@pytest.mark.parametrize(
    "cuts", [(0, 300), (0, 1, 1, 150, 299, 300), (0, 0, 40, 300)], ids=["one", "six", "empty first"]
)
@pytest.mark.parametrize("query", ["the", "A", "of the a", "ÜBER goods", "合同", "and x-ray", ". the", "nowhere", "he"])
def test_rows_are_those_that_hold_it_however_the_column_is_cut(query: str, cuts: tuple[int, ...]) -> None:
    parts = [TEXTS[a:b] for a, b in itertools.pairwise(cuts)]
    column = pa.chunked_array(parts, type=pa.string())
    for mode in ("words", "substring"):
        rows = [i for i, text in enumerate(TEXTS) if wanted(text, query, whole=mode == "words")]
        assert matches(column, query, mode).tolist() == rows
    assert len(matches(pa.chunked_array([], type=pa.string()), query, "words")) == 0


def test_every_core_searches_a_part_of_a_column_of_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    passing, lengths = columns._passing, []

    def kept(texts: pa.ChunkedArray, tests: list[tuple[str, bool]]) -> IntArray:
        lengths.append(len(texts))
        return passing(texts, tests)

    monkeypatch.setattr(columns, "_passing", kept)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    rows = [i for i, text in enumerate(TEXTS) if "the" in text.lower()]
    assert matches(pa.chunked_array([TEXTS]), "the", "substring").tolist() == rows
    assert lengths == [75] * 4
