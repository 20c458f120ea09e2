"""Find the mistakes of a tagger: missed and invented entities, wrong types and wrong borders."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from core.text.sentence import Entity

Kind = Literal["missed", "invented", "wrong type", "wrong border"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A mistake of a tagger.

    gold: labelled entity; None if the tagger invented the entity. guess: predicted entity; None if the tagger missed
    the entity.
    """

    kind: Kind
    gold: Entity | None
    guess: Entity | None

    @property
    def types(self) -> set[str]:
        """Entity types of the labelled and the predicted entity."""
        return {entity.type for entity in (self.gold, self.guess) if entity}


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeMistakes:
    """Mistakes of one entity type. An invented entity counts under its predicted type.

    mentions: number of labelled mentions. kinds: {kind: number of mistakes}. read_as: {type that was predicted instead:
    number of mentions}, most frequent first.
    """

    type: str
    mentions: int
    kinds: Mapping[Kind, int]
    read_as: Mapping[str, int]

    @property
    def right(self) -> int:
        """Number of labelled mentions that were predicted correctly."""
        return self.mentions - sum(self.kinds[kind] for kind in KINDS if kind != "invented")


def by_type(sentences: Iterable[tuple[Iterable[Entity], Iterable[Mistake]]]) -> list[TypeMistakes]:
    """Count mistakes by the type of the labelled entity, frequent types first.

    sentences: labelled entities and mistakes of each sentence.
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
    """Return the mistakes in one sentence, in order.

    Gold and predicted entities that do not match exactly are paired in three steps. The first step pairs entities with
    the same span (wrong type). The second pairs overlapping entities of the same type (wrong border), and the third all
    other overlapping entities (wrong type). Each entity is paired once at most; the rest was missed or invented.
    """
    gold_spans, guess_spans = sorted(set(gold)), sorted(set(guess))
    # Leave out exact matches, because they are not mistakes.
    golds, guesses = (
        [e for e in side if e not in other] for side, other in ((gold_spans, guess_spans), (guess_spans, gold_spans))
    )
    # The order matters, because each call removes the entities that it pairs.
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
    """Return a mistake for each gold entity that is `alike` to a predicted entity; remove both from their lists."""
    pairs = []
    # Iterate over a copy, because the loop removes entities from the list.
    for gold in list(golds):
        guess = next((entity for entity in guesses if alike(gold, entity)), None)
        if guess is not None:
            golds.remove(gold)
            guesses.remove(guess)
            pairs.append(Mistake(kind=kind, gold=gold, guess=guess))
    return pairs


def _overlap(a: Entity, b: Entity) -> bool:
    return a.start < b.end and b.start < a.end
