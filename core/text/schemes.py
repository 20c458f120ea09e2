"""Label schemes: convert tags to entities and back (SOURCES.md, Label schemes).

A scheme has four position letters: one for an entity of a single token, and three for the first, inner and last token
of a longer entity. In IOB1, an entity begins with B only if it directly follows an entity of the same type.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from core.text.sentence import Entity

Scheme = Literal["iob1", "iob2", "bioes", "bilou", "io"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

# {scheme: prefixes of an entity's tags on its only token, its first, an inner and its last token}
_WRITES: dict[Scheme, str] = {
    "iob1": "IIII",
    "iob2": "BBII",
    "bioes": "SBIE",
    "bilou": "UBIL",
    "io": "IIII",
}
_LETTERS: dict[Scheme, str] = {"iob1": "IB", "iob2": "BI", "bioes": "BIES", "bilou": "BILU", "io": "I"}
_ALL = "BIESLU"
_TAG_SHAPE = re.compile(r"[A-Z]-[\w.:/-]{1,40}")  # form of a tag that an error message may quote
_CONTINUES = frozenset("IEL")
_CLOSES = frozenset("ESLU")


class TagError(ValueError):
    """Raised if `tags[index]` is not a tag of the scheme."""

    def __init__(self, index: int, tag: str, scheme: Scheme) -> None:
        self.index, self.tag, self.scheme = index, tag, scheme
        expected = "O, a type or I-type" if scheme == "io" else "O or " + ", ".join(f"{x}-" for x in _LETTERS[scheme])
        # Quote only text that looks like a tag, because other text may come from a confidential document.
        subject = f"tag {tag!r}" if _TAG_SHAPE.fullmatch(tag) else "the value in the tag column"
        super().__init__(f"{subject} is not a valid {scheme.upper()} tag; expected {expected} before a type")

    def __reduce__(self) -> tuple[type["TagError"], tuple[int, str, Scheme]]:
        return type(self), (self.index, self.tag, self.scheme)


@lru_cache(maxsize=4096)
def _parse(tag: str, scheme: Scheme) -> tuple[str, str] | None:
    """Return (position letter, type) of a tag; ("", "") for O; None if the tag is not valid in `scheme`."""
    if tag == "O":
        return "", ""
    if tag[1:2] == "-" and tag[0] in _ALL:
        return (tag[0], tag[2:]) if tag[0] in _LETTERS[scheme] and len(tag) > 2 else None
    return ("I", tag) if scheme == "io" and tag else None


def decode(tags: Sequence[str], scheme: Scheme, *, strict: bool = False) -> tuple[tuple[Entity, ...], int]:
    """Return the entities of tags, and the number of tags that had to be repaired.

    A tag that cannot continue an entity of its type begins a new entity. An entity without a closing tag ends before
    the first token that does not continue it. strict: True to leave out repaired entities, as seqeval's strict mode
    does (SOURCES.md, Span scoring). Errors: TagError for a tag that is not valid in the scheme.
    """
    spans = _runs(tags, scheme)
    # Encode the entities again. If a tag differs from the original tag, the original was repaired.
    well_formed = encode(spans, len(tags), scheme)
    if scheme == "io":
        return spans, 0
    repaired = {i for i, (tag, other) in enumerate(zip(tags, well_formed, strict=True)) if tag != other}
    if strict and repaired:
        spans = tuple(span for span in spans if repaired.isdisjoint(range(span.start, span.end)))
    return spans, len(repaired)


def repairs(tags: Sequence[str], scheme: Scheme) -> list[int]:
    """Return the indices of tags that `decode` counts as repaired."""
    if scheme == "io":
        return []
    well_formed = encode(_runs(tags, scheme), len(tags), scheme)
    return [i for i, (tag, other) in enumerate(zip(tags, well_formed, strict=True)) if tag != other]


def _runs(tags: Sequence[str], scheme: Scheme) -> tuple[Entity, ...]:
    entities: list[Entity] = []
    start, kind = -1, ""
    for index, tag in enumerate(tags):
        parsed = _parse(tag, scheme)
        if parsed is None:
            raise TagError(index, tag, scheme)
        letter, tag_type = parsed
        # An entity ends before a tag that cannot continue it, or at a closing tag (E, S, L, U).
        if start >= 0 and not (letter in _CONTINUES and tag_type == kind):
            entities.append(Entity(start=start, end=index, type=kind))
            start = -1
        if letter and start < 0:
            start, kind = index, tag_type
        if letter in _CLOSES:
            entities.append(Entity(start=start, end=index + 1, type=kind))
            start = -1
    if start >= 0:
        entities.append(Entity(start=start, end=len(tags), type=kind))
    return tuple(entities)


def encode(entities: Iterable[Entity], n_tokens: int, scheme: Scheme) -> list[str]:
    """Return one tag per token. The scheme IO cannot separate two adjacent entities of the same type.

    Errors: ValueError if entities overlap or reach outside the sentence.
    """
    single, first, inner, last = tuple(_WRITES[scheme])
    tags = ["O"] * n_tokens
    before = Entity(start=0, end=0, type="")
    # Go from left to right, because the overlap check and the scheme IOB1 need the previous entity.
    for entity in sorted(entities):
        if not before.end <= entity.start < entity.end <= n_tokens:
            raise ValueError(f"entity {entity} overlaps {before} or leaves the sentence of {n_tokens} tokens")
        start, end, kind = entity.start, entity.end, entity.type
        if end - start == 1:
            tags[start] = f"{single}-{kind}"
        else:
            tags[start:end] = [f"{first}-{kind}", *[f"{inner}-{kind}"] * (end - start - 2), f"{last}-{kind}"]
        if scheme == "iob1" and before.end == start and before.type == kind:
            tags[start] = f"B-{kind}"
        before = entity
    return tags


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Schemes that fit the tags of a file.

    candidates: the scheme that fits; two schemes if the user has to decide; none if the file mixes schemes. problem:
    reason why there is not exactly one candidate, else "". where: line number (or sentence index) of the first tag that
    shows the problem. outside: True if every tag is O, so that every scheme gives the same sentences.
    """

    candidates: tuple[Scheme, ...]
    problem: str = ""
    where: int | None = None
    outside: bool = False

    @property
    def scheme(self) -> Scheme | None:
        """Return the scheme if there is exactly one candidate, else None."""
        return self.candidates[0] if len(self.candidates) == 1 else None


_MIXED = (
    "BIOES tags (E-, S-) and BILOU tags (L-, U-) are mixed; correct the file, or give one scheme, so that sentences"
    " with tags of the other scheme are rejected"
)


class Detector:
    """Finds the schemes that fit, from counts of position letters and of well-formed starts and ends of entities."""

    def __init__(self) -> None:
        self.letters: Counter[str] = Counter()
        self.bare = self.entities = self.opened_inside = self.unclosed = 0
        self._opened_at: tuple[int, str, str] | None = None
        # Lines of first occurrences. Keys: a position letter; "" for a tag without one; "open" for the place where an
        # entity ends without a closing tag.
        self._where: dict[str, int] = {}

    def add(self, tags: Sequence[str], places: Sequence[int]) -> None:
        """Add the tags of a sentence. places: line number of each tag."""
        letter, kind, is_open, before = "", "", False, "O"
        for tag, place in zip(tags, places, strict=True):
            prefixed = len(tag) > 2 and tag[1] == "-" and tag[0] in _ALL
            current, current_kind = (tag[0], tag[2:]) if prefixed else ("", "")
            if tag != "O":
                self.letters[current] += prefixed
                self.bare += not prefixed
                self._where.setdefault(current, place)
            continues = is_open and current in _CONTINUES and current_kind == kind
            if is_open and not continues:
                self._leave_open(place)
            if current and not continues:
                self.entities += 1
                if current in _CONTINUES:
                    self.opened_inside += 1
                    self._opened_at = self._opened_at or (place, tag, before)
            letter, kind, before = current, current_kind, tag
            is_open = bool(letter) and letter not in _CLOSES
        if is_open:
            self._leave_open(places[-1])

    def _leave_open(self, place: int) -> None:
        self.unclosed += 1
        self._where.setdefault("open", place)

    def proposal(self) -> Proposal:
        """Return the schemes that fit the tags.

        If some entities begin with B- and others with I-, return both IOB1 and IOB2, so that the user decides.
        """
        seen = {letter for letter, n in self.letters.items() if n}
        if self.bare:
            return self._without_prefix(seen)
        # Only BIOES has E and S, and only BILOU has L and U, so this file mixes schemes.
        if seen & set("ES") and seen & set("LU"):
            where = max(self._where[min(seen & set("ES"))], self._where[min(seen & set("LU"))])
            return Proposal(candidates=(), problem=_MIXED, where=where)
        if seen & _CLOSES:
            return self._closing("bioes" if seen & set("ES") else "bilou")
        if not self.opened_inside:
            return Proposal(candidates=("iob2",), outside=not seen)
        if "B" not in seen:
            return Proposal(candidates=("iob1",))  # without B tags, IOB1, IOB2 and IO give the same entities
        place, tag, before = self._opened_at or (None, "", "")
        return Proposal(
            candidates=("iob1", "iob2"),
            problem=f"tag {tag!r} cannot follow {before!r} in IOB2 ({self.opened_inside:,} of {self.entities:,}"
            " entities begin in this way); choose the scheme iob1, or choose iob2 to repair these tags",
            where=place,
        )

    def _without_prefix(self, seen: set[str]) -> Proposal:
        if not seen:
            return Proposal(candidates=("io",))
        # Report the line of the rarer kind: the first tag with a prefix, or the first without a prefix ("").
        rarer = min(seen) if self.bare > sum(self.letters.values()) else ""
        return Proposal(
            candidates=(),
            problem=f"tags with a prefix ({min(seen)}-) and tags without a prefix are mixed; correct the file, or give"
            " one scheme (io for no prefix), so that sentences with the other tags are rejected",
            where=self._where[rarer],
        )

    def _closing(self, scheme: Scheme) -> Proposal:
        # If at most 1 in 20 entities is broken, assume annotation errors, which `decode` repairs. If more are broken,
        # the file probably mixes schemes.
        if (self.opened_inside + self.unclosed) * 20 <= self.entities:
            return Proposal(candidates=(scheme,))
        place = self._where["open"] if self.unclosed else (self._opened_at or (None,))[0]
        return Proposal(
            candidates=(),
            problem=f"the scheme looks like {scheme.upper()}, but {self.unclosed:,} of {self.entities:,} entities are"
            f" not closed and {self.opened_inside:,} not opened, as if schemes were mixed; give one scheme, so that"
            " these tags are repaired",
            where=place,
        )


def propose(sentences: Iterable[Sequence[str]]) -> Proposal:
    """Return the schemes that fit the tags of `sentences`. `where` in the result is the index of a sentence."""
    detector = Detector()
    for index, tags in enumerate(sentences):
        detector.add(tags, [index] * len(tags))
    return detector.proposal()
