"""Training sentences to rebuild: their mentions, the PVI of each, and the held-out sentences to keep out."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import NamedTuple

import numpy as np

from core.bias.result import Edit
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """A new training set.

    wanted: mentions to change; `edits` holds those that could be. reached: see `Pools`. low, measured: of a set that is
    drawn by CEIM, its low-CEIM mentions and all its measured mentions.
    """

    sentences: list[Sentence]
    edits: list[Edit]
    wanted: int = 0
    reached: str = ""
    low: int = 0
    measured: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Training:
    """n training sentences and their m mentions, in order of row and start.

    rows, places `(m,)`: a mention's row, and which of its sentence's entities it is, from the left. kinds, names,
    bins: m types, names and CEIM bins ("" unmeasured). entity, context `(m,)`: PVI in bits, NaN unmeasured.
    closed: keys of held-out sentences, none of which may come in. free `(m,)`: whose sentence is none of those.
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
        """Collect the mentions of `sentences`. measures: a mention outside them is unmeasured. held_out: texts."""
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
        """Number of mentions to change at `rate`, a share of all, measured or not (SOURCES.md, Rebuilding)."""
        return round(rate * len(self))

    def by_row(self, mentions: Iterable[int]) -> dict[int, list[int]]:
        """`mentions` (numbers below m) by their sentence's row, ascending."""
        mentions_by_row: dict[int, list[int]] = defaultdict(list)
        for mention in sorted(mentions):
            mentions_by_row[int(self.rows[mention])].append(mention)
        return mentions_by_row


class Taken:
    """Keys of sentences that may not be added: held-out ones and all that the set has already."""

    def __init__(self, texts: Iterable[str], closed: Collection[str]) -> None:
        self._keys = {*map(key_of, texts), *closed}

    def admit(self, text: str) -> bool:
        """Whether `text` is new; then it is taken from now on."""
        key = key_of(text)
        new = key not in self._keys
        self._keys.add(key)
        return new


def key_of(text: str) -> str:
    """A text's key: equal for the same sentence; a text without a word equals itself alone."""
    return joined(fold(text)) or text


def same_name(a: Name, b: Name) -> bool:
    """Whether two names are equal but for case."""
    return surface(a).casefold() == surface(b).casefold()


def surface(name: Name) -> str:
    """The name as one string, a blank between words."""
    return " ".join(name)


def ordered(sentence: Sentence) -> list[Entity]:
    """The entities of `sentence` from the left."""
    return sorted(sentence.entities or ())


def name_of(sentence: Sentence, entity: Entity) -> Name:
    """The words of `entity`."""
    return sentence.tokens[entity.start : entity.end]


def renamed(sentence: Sentence, names: Mapping[int, Name]) -> Sentence:
    """`sentence` with other names at these places, every type as it was; entities come from the left."""
    tokens: list[str] = []
    entities: list[Entity] = []
    # Left to right into new tokens: a name of another length shifts every later offset, so none is patched in place.
    at = 0
    for place, entity in enumerate(ordered(sentence)):
        tokens += sentence.tokens[at : entity.start]
        start = len(tokens)
        tokens += names.get(place, name_of(sentence, entity))
        entities.append(Entity(start=start, end=len(tokens), type=entity.type))
        at = entity.end
    tokens += sentence.tokens[at:]
    text = " ".join(tokens)
    return replace(sentence, id=sentence_id(text), tokens=tuple(tokens), text=text, entities=tuple(entities))


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
    """The log of changes at `places`, an `Edit` each."""
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
