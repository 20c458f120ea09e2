"""Copies of a line that hygiene must find: the same words again, or nearly the same (SOURCES.md, Near duplicates)."""

from collections.abc import Callable
from random import Random

from core.samples.grammar import Line, pick
from core.samples.guard import jaccard, similarity, words
from core.text.words import fold

Copy = tuple[str, str]  # text, what was changed


def exact(line: Line, rng: Random) -> Copy:
    """The same words: as they are (three in five), or in other case, or with other marks."""
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
    """A few letters or one word changed, yet a near duplicate by either definition; None where that cannot be done.

    10 tokens or more: 5-gram Jaccard of at least 0.8, marks counted or not. Fewer: edit similarity of at least 0.9.
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
    """Whether `copy` is a near, not an exact, duplicate of `text`, with and without its marks."""
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
    """One letter doubled or left out, or two swapped, in a word at either end."""
    head = text.split()
    at = (0, 1, -2, -1)[pick(4, rng)]
    word = head[at]
    if len(word) < 5 or not word.strip(".?").isalpha():
        return text
    i = 1 + pick(len(word) - 4, rng)
    slips = (word[:i] + word[i] + word[i:], word[:i] + word[i + 1 :], word[:i] + word[i + 1] + word[i] + word[i + 2 :])
    head[at] = slips[pick(3, rng)]
    return " ".join(head)
