"""Mistakes of a tagger: each of one of four kinds, counted as people would."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from core.text.sentence import Entity

Kind = Literal["missed", "invented", "wrong type", "wrong border"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """gold: as labelled, None where something was invented. guess: as read, None where something was missed."""

    kind: Kind
    gold: Entity | None
    guess: Entity | None

    @property
    def types(self) -> set[str]:
        """The type that is labelled and the one that was read."""
        return {entity.type for entity in (self.gold, self.guess) if entity}


def mistakes(gold: Iterable[Entity], guess: Iterable[Entity]) -> tuple[Mistake, ...]:
    """Mistakes in the order of the sentence.

    An entity is part of one mistake at most: what is not right is paired with what overlaps it, of its own type first
    (wrong border), then of another (wrong type); what then remains is missed or invented.
    """
    gold_spans, guess_spans = sorted(set(gold)), sorted(set(guess))
    # What is right in all three is no mistake, and takes part in none.
    golds, guesses = (
        [e for e in side if e not in other] for side, other in ((gold_spans, guess_spans), (guess_spans, gold_spans))
    )
    # The likeliest reading first, each entity used up once: same span, then same type overlapping, then any overlap.
    paired = [
        *_paired("wrong type", golds, guesses, lambda a, b: (a.start, a.end) == (b.start, b.end)),
        *_paired("wrong border", golds, guesses, lambda a, b: a.type == b.type and _overlap(a, b)),
        *_paired("wrong type", golds, guesses, _overlap),
        *(Mistake(kind="missed", gold=entity, guess=None) for entity in golds),
        *(Mistake(kind="invented", gold=None, guess=entity) for entity in guesses),
    ]
    return tuple(sorted(paired, key=lambda mistake: mistake.guess or mistake.gold or Entity(start=0, end=0, type="")))


def _paired(
    kind: Kind, golds: list[Entity], guesses: list[Entity], alike: Callable[[Entity, Entity], bool]
) -> list[Mistake]:
    """The first of `guesses` that is alike for each of `golds`, both taken out of their lists."""
    pairs = []
    # A copy is walked, since pairs leave the lists on the way.
    for gold in list(golds):
        guess = next((entity for entity in guesses if alike(gold, entity)), None)
        if guess is not None:
            golds.remove(gold)
            guesses.remove(guess)
            pairs.append(Mistake(kind=kind, gold=gold, guess=guess))
    return pairs


def _overlap(a: Entity, b: Entity) -> bool:
    return a.start < b.end and b.start < a.end
