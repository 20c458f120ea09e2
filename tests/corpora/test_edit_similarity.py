"""The edit join against the definition: Levenshtein's table for every pair."""

from collections.abc import Sequence
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.corpora import edit_similarity
from core.corpora.edit_similarity import LONGEST, near_texts, within
from core.corpora.grams import Ragged
from core.reporter import Silent


def distance(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the Levenshtein distance in letters or words."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


def stored(texts: list[str]) -> Ragged:
    store = Ragged(np.uint32)
    values = np.array([ord(c) for text in texts for c in text], np.uint32)
    store.append(values, np.array([len(text) for text in texts], np.int64))
    store.seal()
    return store


def found(texts: list[str]) -> set[tuple[int, int]]:
    """Return the near pairs. Comparing all texts, and only those that share a segment, must give the same pairs."""
    ways = []
    for few in (edit_similarity._FEW, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(edit_similarity, "_FEW", few)
            pairs = near_texts(stored(texts), np.arange(len(texts)), "letters", Silent())
            ways.append({tuple(sorted(pair)) for i, j in pairs for pair in zip(i.tolist(), j.tolist(), strict=True)})
    assert ways[0] == ways[1]
    return ways[0]


def expected(texts: list[str]) -> set[tuple[int, int]]:
    """Return the near pairs by the definition. Texts are distinct, because equal ones are found earlier."""
    return {
        (i, j)
        for (i, a), (j, b) in combinations(enumerate(texts), 2)
        if a and b and abs(len(a) - len(b)) <= max(len(a), len(b)) // 10 >= distance(a, b)
    }


def damaged(rng: Random, text: str, n: int, letters: str) -> str:
    chars = list(text)
    for _ in range(n):
        at = rng.randrange(len(chars))
        match rng.randrange(3):
            case 0:
                chars[at] = rng.choice(letters)
            case 1:
                chars.insert(at, rng.choice(letters))
            case _ if len(chars) > 1:
                del chars[at]
    return "".join(chars)


@pytest.mark.parametrize("letters", ["ab", "abcdefgh ", "äöπ漢𝔘 "])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2, 3))])
def test_finds_exactly_the_near_pairs(seed: int, letters: str) -> None:
    rng = Random(seed)
    bases = ["".join(rng.choices(letters, k=rng.randrange(8, 50))) for _ in range(8)]
    bases.append("".join(rng.choices(letters, k=LONGEST - 20)))
    texts = sorted(
        {damaged(rng, base, rng.randrange(0, len(base) // 10 + 3), letters) for base in bases for _ in range(6)}
    )
    rng.shuffle(texts)
    assert len(expected(texts)) > 10
    assert found(texts) == expected(texts)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("ab", min_size=8, max_size=24), max_size=12, unique=True))
def test_finds_exactly_the_near_pairs_of_two_letters(texts: list[str]) -> None:
    assert found(texts) == expected(texts)


@settings(max_examples=100, deadline=None)
@given(st.text("abc", min_size=1, max_size=15), st.text("abc", min_size=1, max_size=15), st.integers(0, 15))
def test_within_equals_levenshtein_distance(a: str, b: str, most: int) -> None:
    a, b = sorted((a, b), key=len)
    if most < len(b) - len(a):  # the search never calls it with such a limit
        return
    one, two = (np.array([[ord(c) for c in text]], np.uint32) for text in (a, b))
    assert within(one, two, most).tolist() == [distance(a, b) <= most]


def test_texts_that_differ_by_a_tenth_are_near_and_by_more_are_not() -> None:
    assert found(["abcdefghij", "abcdefghiX"]) == {(0, 1)}  # 1 of 10
    assert found(["abcdefghi", "abcdefghX"]) == set()  # 1 of 9
    assert found(["abcdefghi", "abcdefghij"]) == {(0, 1)}  # 1 of the longer, 10
    assert found(["", "a", ""]) == set()


def test_many_near_texts_form_few_clusters_with_few_pairs() -> None:
    texts = [f"note {i:03d} continued" for i in range(1000)]
    pairs = found(texts)
    assert all(distance(texts[i], texts[j]) <= max(len(texts[i]), len(texts[j])) // 10 for i, j in pairs)
    heads = {i: {i} for i in range(len(texts))}
    for i, j in pairs:
        if heads[i] is not heads[j]:
            heads[i] |= heads[j]
            heads.update(dict.fromkeys(heads[j], heads[i]))
    assert len({id(cluster) for cluster in heads.values()}) <= 10
    assert len(pairs) < 40 * len(texts)


def test_small_batches_of_candidates_give_the_same_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(9)
    texts = sorted({damaged(rng, "the quick brown fox jumps over it", 3, "abc ") for _ in range(30)})
    whole = found(texts)
    monkeypatch.setattr(edit_similarity, "_AT_ONCE", 10)
    monkeypatch.setattr(edit_similarity, "_PAIRS", 3)
    assert found(texts) == whole == expected(texts)
