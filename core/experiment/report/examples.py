"""Sentences that two taggers read unlike, for a reader who wants to see what the figures mean."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.tagging.result import TwoReadings
from core.text.sentence import Entity

SHOWN, WORDS = 3, 40  # sentences, and tokens of each at most where there are such


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A sentence, the entities that were labelled in it, and those that were found without and with what was tried.

    place: file and page that it stands in; "" where that is not known.
    """

    text: str
    place: str
    labelled: str
    without: str
    having: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """better, worse: of `sentences`, how many were read right only with what was tried, and only without."""

    sentences: int
    better: int
    worse: int
    shown: Sequence[Example]


def examples(readings: Sequence[TwoReadings]) -> Examples:
    """The first short ones of each sort, of both where there are both. readings: A without what was tried, B with."""
    better = [reading for reading in readings if reading.wrong_a and not reading.wrong_b]
    worse = [reading for reading in readings if reading.wrong_b and not reading.wrong_a]
    more, fewer = (better, worse) if len(better) >= len(worse) else (worse, better)
    second = _short(fewer)[:1]
    picked = _short(more)[: SHOWN - len(second)] + second
    return Examples(
        sentences=len(readings), better=len(better), worse=len(worse), shown=[_example(reading) for reading in picked]
    )


def _short(readings: Sequence[TwoReadings]) -> list[TwoReadings]:
    """Readings of short sentences first, else in their order."""
    return sorted(readings, key=lambda reading: len(reading.sentence.tokens) > WORDS)


def _example(reading: TwoReadings) -> Example:
    tokens = reading.sentence.tokens

    def words(entities: Sequence[Entity]) -> str:
        listed = [f"{' '.join(tokens[one.start : one.end])} ({one.type})" for one in entities]
        return ", ".join(listed) or "nothing"

    return Example(
        text=reading.sentence.text or " ".join(tokens),
        place=reading.sentence.place,
        labelled=words(reading.sentence.entities or ()),
        without=words(reading.a),
        having=words(reading.b),
    )
