"""Mistakes of a tagger: each of one of four kinds, counted as people would."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeMistakes:
    """Mistakes of one type: the one that is labelled or, where something was invented, the one that was read.

    mentions: labelled ones. kinds: mistakes of each. read_as: {type: times that it was taken for}, frequent ones first.
    """

    type: str
    mentions: int
    kinds: Mapping[Kind, int]
    read_as: Mapping[str, int]

    @property
    def right(self) -> int:
        """Labelled mentions that were read as they are."""
        return self.mentions - sum(self.kinds[kind] for kind in KINDS if kind != "invented")


def by_type(sentences: Iterable[tuple[Iterable[Entity], Iterable[Mistake]]]) -> list[TypeMistakes]:
    """Mistakes of each type that is labelled or was read, frequent types first.

    sentences: what is labelled in each, and the mistakes that were made of it.
    """
    mentions, kinds, read_as = Counter[str](), Counter[tuple[str, Kind]](), Counter[tuple[str, str]]()
    for gold, wrong in sentences:
        mentions.update(entity.type for entity in set(gold))
        for one in wrong:
            entity = one.gold or one.guess
            assert entity is not None
            kinds[entity.type, one.kind] += 1
            if one.kind == "wrong type" and one.guess:
                read_as[entity.type, one.guess.type] += 1
    names = sorted({*mentions, *(name for name, _ in kinds)}, key=lambda name: (-mentions[name], name))
    return [
        TypeMistakes(
            type=name,
            mentions=mentions[name],
            kinds={kind: kinds[name, kind] for kind in KINDS},
            read_as={other: n for (of, other), n in read_as.most_common() if of == name},
        )
        for name in names
    ]


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
