"""A training sentence with a copy of it, which a tagger is to read alike."""

from dataclasses import dataclass

from core.text.sentence import Sentence

Place = tuple[int, int]  # start and end of an entity, half-open


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired(Sentence):
    """A sentence with a copy of it in which some entities have other names of their type.

    own: the sentence. other: the copy. pairs: each renamed entity in the one and in the other.
    """

    own: Sentence
    other: Sentence
    pairs: tuple[tuple[Place, Place], ...]

    @classmethod
    def of(cls, own: Sentence, other: Sentence, pairs: tuple[tuple[Place, Place], ...]) -> "Paired":
        return cls(
            id=own.id, tokens=own.tokens, text=own.text, entities=own.entities, own=own, other=other, pairs=pairs
        )
