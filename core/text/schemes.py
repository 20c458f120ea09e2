"""Label schemes as tables: from tags to entities and back (SOURCES.md, Label schemes).

A scheme is four letters: what it writes on an entity of one token, and on the first, an inner
and the last token of a longer one. IOB1 alone looks back: an entity that touches one of its own
type begins with B.
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

_WRITES: dict[Scheme, str] = {  # single, first, inner, last
    "iob1": "IIII",
    "iob2": "BBII",
    "bioes": "SBIE",
    "bilou": "UBIL",
    "io": "IIII",
}
_LETTERS: dict[Scheme, str] = {"iob1": "IB", "iob2": "BI", "bioes": "BIES", "bilou": "BILU", "io": "I"}
_ALL = "BIESLU"
_LOOKS = re.compile(r"[A-Z]-[\w.:/-]{1,40}")  # what may be quoted: anything else may be a word of the text
_CONTINUES = frozenset("IEL")
_CLOSES = frozenset("ESLU")


class TagError(ValueError):
    """`tags[index]` is no tag of the scheme."""

    def __init__(self, index: int, tag: str, scheme: Scheme) -> None:
        self.index, self.tag, self.scheme = index, tag, scheme
        expected = "O, a type or I-type" if scheme == "io" else "O or " + ", ".join(f"{x}-" for x in _LETTERS[scheme])
        what = f"tag {tag!r}" if _LOOKS.fullmatch(tag) else "what stands in the column of the tags"  # a word, perhaps
        super().__init__(f"{what} is no {scheme.upper()} tag; expected {expected} before a type")

    def __reduce__(self) -> tuple[type["TagError"], tuple[int, str, Scheme]]:
        return type(self), (self.index, self.tag, self.scheme)


@lru_cache(maxsize=4096)
def _parse(tag: str, scheme: Scheme) -> tuple[str, str] | None:
    """(letter, type), ("", "") for O, None if `tag` is no tag of `scheme`."""
    if tag == "O":
        return "", ""
    if tag[1:2] == "-" and tag[0] in _ALL:
        return (tag[0], tag[2:]) if tag[0] in _LETTERS[scheme] and len(tag) > 2 else None
    return ("I", tag) if scheme == "io" and tag else None


def decode(tags: Sequence[str], scheme: Scheme, *, strict: bool = False) -> tuple[tuple[Entity, ...], int]:
    """Entities, and how many tags had to be read as another one to make sense.

    A tag that cannot continue an entity (of its own type) begins one; an entity that is not closed
    ends where it ends. `strict` leaves such entities out instead, as seqeval's strict mode does
    (SOURCES.md, Span scoring). Errors: TagError for a tag that is not of the scheme.
    """
    spans = _runs(tags, scheme)
    written = encode(spans, len(tags), scheme)
    if scheme == "io":
        return spans, 0
    wrong = {i for i, (tag, other) in enumerate(zip(tags, written, strict=True)) if tag != other}
    if strict and wrong:
        spans = tuple(span for span in spans if wrong.isdisjoint(range(span.start, span.end)))
    return spans, len(wrong)


def repairs(tags: Sequence[str], scheme: Scheme) -> list[int]:
    """Indices of the tags that `decode` counts as repaired."""
    if scheme == "io":
        return []
    written = encode(_runs(tags, scheme), len(tags), scheme)
    return [i for i, (tag, other) in enumerate(zip(tags, written, strict=True)) if tag != other]


def _runs(tags: Sequence[str], scheme: Scheme) -> tuple[Entity, ...]:
    found: list[Entity] = []
    start, kind = -1, ""
    for index, tag in enumerate(tags):
        parsed = _parse(tag, scheme)
        if parsed is None:
            raise TagError(index, tag, scheme)
        letter, type_ = parsed
        if start >= 0 and not (letter in _CONTINUES and type_ == kind):
            found.append(Entity(start=start, end=index, type=kind))
            start = -1
        if letter and start < 0:
            start, kind = index, type_
        if letter in _CLOSES:
            found.append(Entity(start=start, end=index + 1, type=kind))
            start = -1
    if start >= 0:
        found.append(Entity(start=start, end=len(tags), type=kind))
    return tuple(found)


def encode(entities: Iterable[Entity], n_tokens: int, scheme: Scheme) -> list[str]:
    """One tag a token. IO cannot tell two touching entities of one type apart.

    Errors: ValueError if entities overlap or leave the sentence.
    """
    single, first, inner, last = tuple(_WRITES[scheme])
    tags = ["O"] * n_tokens
    before = Entity(start=0, end=0, type="")
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
    """What the tags can be.

    candidates: one scheme where the tags leave no doubt; two or three where they do; none where
    schemes are mixed. problem: why it is not one, "" if it is. where: the first place (a line, or
    the sentence's index) that speaks against a single scheme.
    """

    candidates: tuple[Scheme, ...]
    problem: str = ""
    where: int | None = None

    @property
    def scheme(self) -> Scheme | None:
        """The one scheme without a doubt, else None."""
        return self.candidates[0] if len(self.candidates) == 1 else None


_MIXED = (
    "BIOES tags (E-, S-) and BILOU tags (L-, U-) are mixed; mend it, or give the scheme to have the sentences with the"
    " others rejected"
)


class Detector:
    """Collects what tags look like; `proposal()` says which schemes they fit."""

    def __init__(self) -> None:
        self.letters: Counter[str] = Counter()
        self.bare = self.entities = self.opened_inside = self.unclosed = 0
        self._opened_at: tuple[int, str, str] | None = None
        self._where: dict[str, int] = {}  # first sight of a letter, "" for a tag without one, "open" for unclosed

    def add(self, tags: Sequence[str], places: Sequence[int]) -> None:
        """One sentence's tags; `places[i]` (a line number) is where `tags[i]` stands."""
        letter, kind, is_open, before = "", "", False, "O"
        for tag, place in zip(tags, places, strict=True):
            prefixed = len(tag) > 2 and tag[1] == "-" and tag[0] in _ALL
            now, now_kind = (tag[0], tag[2:]) if prefixed else ("", "")
            if tag != "O":
                self.letters[now] += prefixed
                self.bare += not prefixed
                self._where.setdefault(now, place)
            goes_on = is_open and now in _CONTINUES and now_kind == kind
            if is_open and not goes_on:
                self._leave_open(place)
            if now and not goes_on:
                self.entities += 1
                if now in _CONTINUES:
                    self.opened_inside += 1
                    self._opened_at = self._opened_at or (place, tag, before)
            letter, kind, before = now, now_kind, tag
            is_open = bool(letter) and letter not in _CLOSES
        if is_open:
            self._leave_open(places[-1])

    def _leave_open(self, place: int) -> None:
        self.unclosed += 1
        self._where.setdefault("open", place)

    def proposal(self) -> Proposal:
        """IOB1 against IOB2 is never decided: an entity that begins with I- may be either's."""
        seen = {letter for letter, n in self.letters.items() if n}
        if self.bare:
            return self._without_prefix(seen)
        if seen & set("ES") and seen & set("LU"):
            where = max(self._where[min(seen & set("ES"))], self._where[min(seen & set("LU"))])
            return Proposal(candidates=(), problem=_MIXED, where=where)
        if seen & _CLOSES:
            return self._closing("bioes" if seen & set("ES") else "bilou")
        if not self.opened_inside:
            return Proposal(candidates=("iob2",))
        place, tag, before = self._opened_at or (None, "", "")
        return Proposal(
            candidates=("iob1", "iob2") if "B" in seen else ("iob1", "iob2", "io"),
            problem=f"tag {tag!r} cannot follow {before!r} in IOB2 ({self.opened_inside:,} of {self.entities:,}"
            " entities begin so); choose the scheme iob1, or iob2 to have these repaired",
            where=place,
        )

    def _without_prefix(self, seen: set[str]) -> Proposal:
        if not seen:
            return Proposal(candidates=("io",))
        odd = min(seen) if self.bare > sum(self.letters.values()) else ""  # what the fewer tags look like
        return Proposal(
            candidates=(),
            problem=f"tags with a prefix ({min(seen)}-) and tags without one stand in one file; mend it, or give the"
            " scheme (io: without) to have the sentences with the others rejected",
            where=self._where[odd],
        )

    def _closing(self, scheme: Scheme) -> Proposal:
        if (self.opened_inside + self.unclosed) * 20 <= self.entities:
            return Proposal(candidates=(scheme,))
        place = self._where["open"] if self.unclosed else (self._opened_at or (None,))[0]
        return Proposal(
            candidates=(),
            problem=f"the scheme looks like {scheme.upper()}, but {self.unclosed:,} of {self.entities:,} entities are"
            f" not closed and {self.opened_inside:,} not opened, as if schemes were mixed; give the scheme to have"
            " them repaired",
            where=place,
        )


def propose(sentences: Iterable[Sequence[str]]) -> Proposal:
    """Which schemes the tags of `sentences` fit; `where` is a sentence's index."""
    detector = Detector()
    for index, tags in enumerate(sentences):
        detector.add(tags, [index] * len(tags))
    return detector.proposal()
