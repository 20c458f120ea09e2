"""Make near and exact copies of sentences, and prevent accidental copies (SOURCES.md, Near duplicates).

The duplicate check (`hygiene`) must find all planted copies and nothing else. `Guard` therefore rejects a sentence
even if its similarity to an earlier sentence is a little below the limits of `hygiene`.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random
from typing import Generic, TypeVar

from core.samples.grammar import Line, pick
from core.text.words import fold, tokenize

# Maximum Jaccard similarity of the 5-grams of two sentences. `hygiene` flags 0.8 or more.
_JACCARD = 0.6
# Maximum edit similarity of two short sentences. `hygiene` flags 0.9 or more.
_EDIT = 0.88
# Sentences of up to this number of words are also compared by edit similarity.
_SHORT = 10
# A sentence is rejected if it shares this number of consecutive words with a held-out sentence. The second limit is for
# pairs in which one sentence has at most _FEW words. The limits of `hygiene` are 13 and 8.
_LONG_RUN, _SHORT_RUN = 12, 7
# Number of words up to which a sentence counts as short when it is compared with held-out sentences.
_FEW = 13

Run = tuple[str, ...]
T = TypeVar("T", bound=str | tuple[str, ...])
Copy = tuple[str, str]  # (text, name of the change)


class Guard:
    """Admits sentences to a set, unless they are too similar to a sentence that was admitted before."""

    def __init__(self) -> None:
        self._folded: set[str] = set()
        # 5-grams of the admitted sentences, first with punctuation, then without.
        self._shingles: tuple[_Index[Run], _Index[Run]] = (_Index(), _Index())
        self._shorts: list[str] = []
        self._trigrams: _Index[str] = _Index()
        self._long_runs: set[Run] = set()
        self._short_runs: set[Run] = set()
        self._runs_of_short: set[Run] = set()

    def admit(self, line: Line, *, held_out: bool = False) -> bool:
        """Add `line` if it differs enough from all earlier lines. Return True if it was added.

        held_out: True for a line of the dev or test set, from which all later lines must differ even more.
        """
        folded = fold(line.text)
        views = (words(line.text), tuple(folded.split()))
        if folded in self._folded or self._like_a_held_out(views):
            return False
        short = len(views[1]) <= _SHORT
        pairs = [(index, set(runs(view, 5))) for index, view in zip(self._shingles, views, strict=True)]
        if any(index.like(shingles, _JACCARD) for index, shingles in pairs):
            return False
        if short and self._like_a_short_one(folded):
            return False
        self._folded.add(folded)
        for index, shingles in pairs:
            index.add(shingles)
        if short:
            self._shorts.append(folded)
            self._trigrams.add(_trigrams(folded))
        if held_out:
            self._hold_out(views)
        return True

    def _hold_out(self, views: tuple[Run, ...]) -> None:
        for view in views:
            self._long_runs.update(runs(view, _LONG_RUN))
            self._short_runs.update(runs(view, _SHORT_RUN))
            if len(view) <= _FEW:
                self._runs_of_short.update(runs(view, _SHORT_RUN))

    def _like_a_held_out(self, views: tuple[Run, ...]) -> bool:
        return any(
            not self._long_runs.isdisjoint(runs(view, _LONG_RUN))
            or not self._runs_of_short.isdisjoint(runs(view, _SHORT_RUN))
            or (len(view) <= _FEW and not self._short_runs.isdisjoint(runs(view, _SHORT_RUN)))
            for view in views
        )

    def _like_a_short_one(self, folded: str) -> bool:
        # A text has len - 2 trigrams, and each edit changes at most three of them. Subtract another 5, because trigrams
        # may repeat.
        needed = len(folded) - 7 - 3 * (1 - _EDIT) * len(folded) / _EDIT
        close = self._trigrams.sharing(_trigrams(folded), int(needed))
        return any(similarity(folded, self._shorts[i], _EDIT) > _EDIT for i in close)


class _Index(Generic[T]):
    """Collection of sets that quickly finds the sets similar to a given set."""

    def __init__(self) -> None:
        self._sets: list[set[T]] = []
        self._holders: dict[T, list[int]] = defaultdict(list)

    def add(self, items: set[T]) -> None:
        for item in items:
            self._holders[item].append(len(self._sets))
        self._sets.append(items)

    def sharing(self, items: set[T], n: int) -> list[int]:
        """Return the indices of the sets that share at least `n` items with `items` (at least one item if n < 1)."""
        n = max(1, n)
        # A set that shares n of the items contains at least one of any len(items) - n + 1 of them. So only that many
        # are looked up. The rarest ones are chosen, because they are in the fewest sets.
        rare = sorted(items, key=lambda item: len(self._holders.get(item, ())))[: max(0, len(items) - n + 1)]
        near = {i for item in rare for i in self._holders.get(item, ())}
        return [i for i in near if len(items & self._sets[i]) >= n]

    def like(self, items: set[T], limit: float) -> bool:
        """Return True if any set in the collection has a Jaccard similarity above `limit` to `items`."""
        close = self.sharing(items, math.ceil(limit * len(items)))
        return any(len(items & self._sets[i]) > limit * len(items | self._sets[i]) for i in close)


def words(text: str) -> tuple[str, ...]:
    """Return the case-folded tokens of a text, with punctuation."""
    return tokenize(text.casefold())


def runs(items: tuple[str, ...], n: int) -> list[Run]:
    """Return all subsequences of n consecutive items."""
    return [items[i : i + n] for i in range(len(items) - n + 1)]


def jaccard(a: tuple[str, ...], b: tuple[str, ...]) -> float:
    """Return the Jaccard similarity of the 5-grams of two token sequences, 0 to 1."""
    of_a, of_b = set(runs(a, 5)), set(runs(b, 5))
    return len(of_a & of_b) / max(1, len(of_a | of_b))


def similarity(a: str, b: str, least: float = 0.0) -> float:
    """Return 1 - Levenshtein distance / length of the longer text; 0 if it is below `least`."""
    longer = max(1, len(a), len(b))
    allowed = (1 - least) * longer
    # Each letter that occurs more often in one text than in the other needs an edit. This cheap bound excludes most
    # pairs.
    if (Counter(a) - Counter(b)).total() > allowed or (Counter(b) - Counter(a)).total() > allowed:
        return 0.0
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
        # The minimum of a row never decreases from row to row, so the distance can only grow.
        if min(row) > allowed:
            return 0.0
    return 1 - row[-1] / longer


def _trigrams(text: str) -> set[str]:
    return {text[i : i + 3] for i in range(len(text) - 2)}


def exact(line: Line, rng: Random) -> Copy:
    """Return an exact duplicate: in three of five cases unchanged, else with other case or final punctuation."""
    text = line.text
    changed = (
        (text, "nothing"),
        (text, "nothing"),
        (text, "nothing"),
        (text.upper() if pick(2, rng) else text.lower(), "case"),
        (text.rstrip(".?") + ("" if pick(2, rng) else " ."), "marks"),
    )[pick(5, rng)]
    assert fold(changed[0]) == fold(text)
    return changed


def near(line: Line, rng: Random) -> Copy | None:
    """Return a near duplicate: a few letters or one word are changed. Return None if six attempts fail.

    If both texts have 10 tokens or more, the Jaccard similarity of their 5-grams is at least 0.8, with and without
    punctuation. If both have fewer, their edit similarity is at least 0.9. If only one has fewer, the attempt fails.
    """
    ways: tuple[tuple[str, Callable[[str, Random], str]], ...] = (
        ("added word", _add),
        ("dropped word", _drop),
        ("opening word", _open),
        ("typing slip", _slip),
        ("typing slip", _slip),
    )
    for _ in range(6):
        name, way = ways[pick(len(ways), rng)]
        copy = way(line.text, rng)
        if is_near(line.text, copy):
            return copy, name
    return None


def is_near(text: str, copy: str) -> bool:
    """Return True if `copy` is a near duplicate of `text`, with and without punctuation, but not an exact duplicate."""
    folded = fold(text), fold(copy)
    if folded[0] == folded[1]:
        return False
    views = (words(text), words(copy)), (tuple(folded[0].split()), tuple(folded[1].split()))
    if all(len(a) >= 10 and len(b) >= 10 for a, b in views):
        return all(jaccard(a, b) >= 0.8 for a, b in views)
    if all(len(a) < 10 and len(b) < 10 for a, b in views):
        return similarity(text, copy) >= 0.9 and similarity(*folded) >= 0.9
    return False


def _add(text: str, rng: Random) -> str:
    return text.rstrip(".?") + (" too.", " again.", " as well.", " after all.")[pick(4, rng)]


def _drop(text: str, rng: Random) -> str:
    head = text.split()
    return " ".join(head[:-1]).rstrip(",;:") + "." if pick(2, rng) else " ".join(head[1:])


def _open(text: str, rng: Random) -> str:
    return ("Also, ", "And ", "NB ", "Note: ")[pick(4, rng)] + text


def _slip(text: str, rng: Random) -> str:
    """Return the text with one typo in one of its first or last two words.

    A letter is doubled or dropped, or two letters are swapped.
    """
    head = text.split()
    at = (0, 1, -2, -1)[pick(4, rng)]
    word = head[at]
    if len(word) < 5 or not word.strip(".?").isalpha():
        return text
    i = 1 + pick(len(word) - 4, rng)
    slips = (word[:i] + word[i] + word[i:], word[:i] + word[i + 1 :], word[:i] + word[i + 1] + word[i] + word[i + 2 :])
    head[at] = slips[pick(3, rng)]
    return " ".join(head)
