"""What is wrong in what a tagger read: each mistake of one of four kinds, counted as people would."""

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
    """In the order of the sentence. An entity is part of one mistake at most: what is not right is paired with what
    overlaps it, of its own type first (wrong border), then of another (wrong type); what then remains is missed or
    invented."""
    labelled, read = sorted(set(gold)), sorted(set(guess))
    wanted, given = ([e for e in side if e not in other] for side, other in ((labelled, read), (read, labelled)))
    found = [
        *_paired("wrong type", wanted, given, lambda a, b: (a.start, a.end) == (b.start, b.end)),
        *_paired("wrong border", wanted, given, lambda a, b: a.type == b.type and _overlap(a, b)),
        *_paired("wrong type", wanted, given, _overlap),
        *(Mistake(kind="missed", gold=entity, guess=None) for entity in wanted),
        *(Mistake(kind="invented", gold=None, guess=entity) for entity in given),
    ]
    return tuple(sorted(found, key=lambda one: one.guess or one.gold or Entity(start=0, end=0, type="")))


def _paired(
    kind: Kind, wanted: list[Entity], given: list[Entity], alike: Callable[[Entity, Entity], bool]
) -> list[Mistake]:
    """The first of `given` that is alike for each of `wanted`, both taken out of their lists."""
    pairs = []
    for gold in list(wanted):
        guess = next((entity for entity in given if alike(gold, entity)), None)
        if guess is not None:
            wanted.remove(gold)
            given.remove(guess)
            pairs.append(Mistake(kind=kind, gold=gold, guess=guess))
    return pairs


def _overlap(a: Entity, b: Entity) -> bool:
    return a.start < b.end and b.start < a.end
