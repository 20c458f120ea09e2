"""Stretches: the words of a sentence that go with each of its mentions, so that one context can be moved alone."""

import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from core.bias.training_sentences import ordered
from core.text.sentence import Entity, Sentence, sentence_id

OPENING = ("Ps", "Pi")  # Unicode's categories of marks that belong to what follows them


def stretches(sentence: Sentence) -> list[tuple[int, int]]:
    """Start and end of each mention's stretch, from the left; they share out the sentence.

    Between two mentions it is cut at the mark that is nearest to the middle, or there where no mark is.
    """
    cuts = [0]
    for left, right in pairwise(ordered(sentence)):
        middle = (left.end + right.start) / 2
        marks = [cut for i in range(left.end, right.start) if (cut := _cut(sentence.tokens[i], i)) is not None]
        cuts.append(min(marks, key=lambda cut: (abs(cut - middle), cut), default=int(middle)))
    return list(pairwise([*cuts, len(sentence.tokens)]))


def _cut(token: str, i: int) -> int | None:
    """Place at which the `i`-th token cuts, if it is a mark: before an opening one, behind any other."""
    if any(letter.isalnum() for letter in token):
        return None
    return i if unicodedata.category(token[0]) in OPENING else i + 1


def context_words(sentence: Sentence) -> list[int]:
    """Numbers of words beside the name in each mention's stretch, marks not counted."""
    return [
        sum(
            any(letter.isalnum() for letter in sentence.tokens[i]) for i in (*range(a, name.start), *range(name.end, b))
        )
        for (a, b), name in zip(stretches(sentence), ordered(sentence), strict=True)
    ]


def moved(sentence: Sentence, lenders: Mapping[int, tuple[Sentence, int]]) -> Sentence:
    """`sentence` with, at these places, the stretch of another sentence's mention around the name that is there.

    lenders: {place: (sentence, the lent mention's place in it)}. Types and names stay.
    """
    tokens: list[str] = []
    entities: list[Entity] = []
    for place, (name, own) in enumerate(zip(ordered(sentence), stretches(sentence), strict=True)):
        before, after = sentence.tokens[own[0] : name.start], sentence.tokens[name.end : own[1]]
        if place in lenders:
            before, after = _around(*lenders[place])
        start = len(tokens) + len(before)
        entities.append(Entity(start=start, end=start + name.end - name.start, type=name.type))
        tokens += [*before, *sentence.tokens[name.start : name.end], *after]
    text = " ".join(tokens)
    return replace(sentence, id=sentence_id(text), tokens=tuple(tokens), text=text, entities=tuple(entities))


def _around(sentence: Sentence, place: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of a mention's stretch before and behind its name."""
    (start, end), name = stretches(sentence)[place], ordered(sentence)[place]
    return sentence.tokens[start : name.start], sentence.tokens[name.end : end]
