"""Training sentences to rebuild: mentions, the PVI of each, and held-out sentences that must not come in."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import NamedTuple

import numpy as np

from core.bias.result import Edit, Mention
from core.results import BoolArray, FloatArray, IntArray
from core.text.sentence import Entity, Sentence, sentence_id
from core.text.words import fold, joined

Name = tuple[str, ...]  # the words of a mention


class Measured(NamedTuple):
    """A mention's result in a `difficulty` run. entity, context: PVI, bits. bin: of its CEIM."""

    entity: float
    context: float
    bin: str


UNMEASURED = Measured(nan, nan, "")
Measures = Mapping[tuple[int, int, int], Measured]  # by row, start, end


def measures(mentions: Iterable[Mention]) -> Measures:
    """Return the measurements of a `difficulty` run by row, start and end of the mention."""
    return {
        (mention.row, mention.start, mention.end): Measured(mention.pvi_entity, mention.pvi_context, mention.bin)
        for mention in mentions
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """A new training set.

    wanted: mentions to change; `edits` holds those that could be changed. reached: see `Pools`. low, measured: low-CEIM
    mentions and all measured mentions of a set drawn by CEIM.
    """

    sentences: list[Sentence]
    edits: list[Edit]
    wanted: int = 0
    reached: str = ""
    low: int = 0
    measured: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Training:
    """n training sentences and their m mentions, ordered by row and start.

    rows, places `(m,)`: a mention's row, and its index among the entities of its sentence from the left. kinds, names,
    bins: m types, names and CEIM bins ("" if unmeasured). entity, context `(m,)`: PVI in bits, NaN if unmeasured.
    closed: keys of held-out sentences, which must not come in. free `(m,)`: True if the mention's sentence is not held
    out.
    """

    sentences: Sequence[Sentence]
    rows: IntArray
    places: IntArray
    kinds: tuple[str, ...]
    names: tuple[Name, ...]
    entity: FloatArray
    context: FloatArray
    bins: tuple[str, ...]
    closed: frozenset[str]
    free: BoolArray

    @classmethod
    def of(
        cls, sentences: Sequence[Sentence], measures: Measures | None = None, held_out: Iterable[str] = ()
    ) -> "Training":
        """Collect the mentions of `sentences`. A mention missing from `measures` is unmeasured. held_out: texts."""
        mentions = [
            (row, place, entity, (measures or {}).get((row, entity.start, entity.end), UNMEASURED))
            for row, sentence in enumerate(sentences)
            for place, entity in enumerate(ordered(sentence))
        ]
        closed = frozenset(map(key_of, held_out))
        free = [key_of(sentence.text) not in closed for sentence in sentences]
        return cls(
            sentences=sentences,
            rows=np.array([row for row, *_ in mentions], dtype=np.int64),
            places=np.array([place for _, place, *_ in mentions], dtype=np.int64),
            kinds=tuple(entity.type for _, _, entity, _ in mentions),
            names=tuple(name_of(sentences[row], entity) for row, _, entity, _ in mentions),
            entity=np.array([measured.entity for *_, measured in mentions], dtype=np.float64),
            context=np.array([measured.context for *_, measured in mentions], dtype=np.float64),
            bins=tuple(measured.bin for *_, measured in mentions),
            closed=closed,
            free=np.array([free[row] for row, *_ in mentions], dtype=np.bool_),
        )

    def __len__(self) -> int:
        """Number of mentions."""
        return len(self.kinds)

    def wanted(self, rate: float) -> int:
        """Number of mentions to change. rate: share of all mentions, measured or not (SOURCES.md, Rebuilding)."""
        return round(rate * len(self))

    def by_row(self, mentions: Iterable[int]) -> dict[int, list[int]]:
        """Group `mentions` (indices below m) by row, ascending."""
        mentions_by_row: dict[int, list[int]] = defaultdict(list)
        for mention in sorted(mentions):
            mentions_by_row[int(self.rows[mention])].append(mention)
        return mentions_by_row


class Taken:
    """Keys of sentences that may not be added: held-out sentences, and those already in the set."""

    def __init__(self, texts: Iterable[str], closed: Collection[str]) -> None:
        self._keys = {*map(key_of, texts), *closed}

    def admit(self, text: str) -> bool:
        """Return True if `text` is new, and add it."""
        key = key_of(text)
        new = key not in self._keys
        self._keys.add(key)
        return new


def key_of(text: str) -> str:
    """Return a key that is equal for the same folded words; a text without words is its own key."""
    return joined(fold(text)) or text


def same_name(a: Name, b: Name) -> bool:
    """Return True if two names are equal except for case."""
    return folded(a) == folded(b)


def surface(name: Name) -> str:
    """Return the name as one string, words joined by blanks."""
    return " ".join(name)


def folded(name: Name) -> str:
    """Return the case-folded name as one string."""
    return surface(name).casefold()


def ordered(sentence: Sentence) -> list[Entity]:
    """Return the entities of `sentence` from the left."""
    return sorted(sentence.entities or ())


def name_of(sentence: Sentence, entity: Entity) -> Name:
    """Return the words of `entity`."""
    return sentence.tokens[entity.start : entity.end]


def with_text(sentence: Sentence, tokens: Sequence[str], entities: Iterable[Entity]) -> Sentence:
    """Return `sentence` with other tokens and entities, and the text and id that follow from them."""
    text = " ".join(tokens)
    return replace(sentence, id=sentence_id(text), tokens=tuple(tokens), text=text, entities=tuple(entities))


def renamed(sentence: Sentence, names: Mapping[int, Name]) -> Sentence:
    """Return `sentence` with other names; types stay. names: {index among the entities from the left: new name}."""
    tokens: list[str] = []
    entities: list[Entity] = []
    # Rebuild the tokens from the left, because a name of another length shifts every later offset.
    at = 0
    for place, entity in enumerate(ordered(sentence)):
        tokens += sentence.tokens[at : entity.start]
        start = len(tokens)
        tokens += names.get(place, name_of(sentence, entity))
        entities.append(Entity(start=start, end=len(tokens), type=entity.type))
        at = entity.end
    return with_text(sentence, [*tokens, *sentence.tokens[at:]], entities)


def edits_of(
    before: Sentence,
    after: Sentence,
    places: Iterable[int],
    *,
    row: int,
    copy_of: int | None,
    kind: str,
    context_of: int | None = None,
) -> list[Edit]:
    """Return an `Edit` for each of `places`, the changed entities counted from the left."""
    old, new = ordered(before), ordered(after)
    return [
        Edit(
            row=row,
            copy_of=copy_of,
            start=new[place].start,
            end=new[place].end,
            type=new[place].type,
            kind=kind,
            before=surface(name_of(before, old[place])),
            after=surface(name_of(after, new[place])),
            context_of=context_of,
        )
        for place in places
    ]
