"""Spellings of entity tags, and their translation into the spelling that `schemes` reads (`B-PER`, `I-PER`, `O`).

Files spell tags in many ways: `b-per`, `PER_B`, `B.PER`, `B` alone, `PERSON` without a letter, `(PER*` in brackets, or
`ner=S-PER` among other features. A spelling is recognised by the frequencies of all values in a column, because single
values of other columns (parts of speech, token numbers) also look like tags.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Form = Literal["letters", "suffix", "untyped", "types", "brackets", "features", "empty"]

# Type of entities whose tags name no type.
UNTYPED = "ENTITY"
# Position letters, and the letters that `schemes` reads. M (middle) becomes I, and W (whole) becomes S.
_LETTERS = {**{letter: letter for letter in "BIESLU"}, "M": "I", "W": "S"}
_OUTSIDE = ("O", "o", "0", "-", "_", "*")
_SEPARATORS = frozenset("-_./|:")
_TYPE = re.compile(r"[^\W\d_][\w.:/&+ -]{0,60}")
_BRACKETS = re.compile(r"(?:\([\w.-]*[^\W\d_][\w.-]*)*\*?\)*")
_OPENING = re.compile(r"\(([\w.-]+)")
_FEATURE = re.compile(r"(?:^|\|)(?:name|ner|ne|entity|namedentity)=([^|]*)", re.IGNORECASE)
# A column with more distinct values than this does not contain entity types.
_MOST_TYPES = 200
# Maximum number of characters in a tag, because the patterns take quadratic time.
_LONGEST = 200
# Bare words are entity types only if at least this share of the tokens is O.
_LEAST_OUTSIDE = 0.2
# Minimum number of characters of a type. If all words are shorter, they are codes: M and F, DE and FR, en and es.
_SHORTEST_TYPE = 3
# A column describes sentences, not tokens, if more than this share of the sentences has only one value.
_CONSTANT = 0.9
# Parts of speech (Penn Treebank, Universal Dependencies). A column with mostly these values has no entity types.
_POS = frozenset(
    {"CC", "CD", "DT", "EX", "FW", "IN", "JJ", "JJR", "JJS", "LS", "MD", "NN", "NNS", "NNP", "NNPS", "PDT", "POS"}
    | {"PRP", "PRP$", "RB", "RBR", "RBS", "RP", "SYM", "TO", "UH", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ", "WDT", "WP"}
    | {"WP$", "WRB", "ADJ", "ADP", "ADV", "AUX", "CCONJ", "CONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN"}
    | {"PUNCT", "SCONJ", "VERB", "X"}
)
# Relations of Universal Dependencies, in upper or lower case. `case` and `mark` are missing, because they may be entity
# types.
_RELATIONS = frozenset(
    {"NSUBJ", "OBJ", "IOBJ", "OBL", "NMOD", "AMOD", "ADVMOD", "DET", "ROOT", "CONJ", "CC", "AUX", "COP", "ACL", "ADVCL"}
    | {"CCOMP", "XCOMP", "CSUBJ", "PUNCT", "APPOS", "NUMMOD", "FLAT", "FIXED", "COMPOUND", "PARATAXIS", "EXPL", "DEP"}
)
# Values of other columns: answers, splits, codes and word forms. A column with only these has no entity types.
_NO_TYPES = frozenset(
    {"true", "false", "yes", "no", "none", "null", "nan", "unknown", "other", "maybe", "accept", "reject", "ignore"}
    | {"correct", "wrong", "right", "hit", "miss", "train", "training", "dev", "valid", "validation", "eval", "test"}
    | {"male", "female", "man", "woman", "masc", "fem", "neut", "sing", "plur", "singular", "plural", "upper", "lower"}
    | {
        "title",
        "mixed",
        "alpha",
        "digit",
        "punct",
        "eng",
        "deu",
        "ger",
        "fra",
        "fre",
        "spa",
        "ita",
        "nld",
        "dut",
        "por",
    }
    | {"rus", "zho", "chi", "jpn", "ara", "hin", "tur", "pol", "usa", "gbr", "esp", "prt", "chn", "ind", "rou"}
    | {"english", "german", "french", "spanish", "italian", "dutch", "portuguese", "russian", "chinese", "arabic"}
    | {"hindi", "lang1", "lang2", "ambiguous", "high", "medium", "low"}
)
# Chunks (CoNLL-2000) and phrases of a parse (CoNLL-2012), whose tags are spelt like entity tags.
_PHRASES = frozenset(
    {"NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP", "PNP", "TOP", "ROOT", "S", "SQ"}
    | {"SINV", "SBARQ", "FRAG", "NML", "QP", "WHNP", "WHPP", "WHADVP", "WHADJP", "PRN", "NAC", "RRC", "NX", "META"}
)
_ROLE = re.compile(r"(?:[CR]-)?(?:V|ARG[\dAM][\w-]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """A spelling of entity tags.

    outside: value of tokens outside of entities. separator: character between position letter and type. upper: True to
    convert types to upper case, because the position letters are in lower case. type: type of entities whose tags name
    no type. types: entity types in the sample. inner: if a value lists several features, the spelling of the tag in it.
    """

    kind: Form
    outside: str = "O"
    separator: str = "-"
    upper: bool = False
    type: str = UNTYPED
    types: frozenset[str] = frozenset()
    inner: "Style | None" = None
    _known: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def syntax(self) -> bool:
        """Return True if the types are chunks, phrases or semantic roles, not entity types."""
        phrases = self.types <= _PHRASES and bool(self.types & {"NP", "VP", "PP", "TOP"})
        roles = all(map(_ROLE.fullmatch, self.types)) and any("ARG" in kind for kind in self.types)
        return phrases or roles

    @property
    def note(self) -> str:
        """Message to a user whose tags name no type."""
        return f"The tags name no type; the entities are called {self.type}. Name their type with --entity-type."

    @property
    def usual(self) -> bool:
        """Return True if all tags are already in the spelling that `schemes` reads."""
        letters = self.kind == "letters" and self.separator == "-" and not self.upper
        return self.outside == "O" and (letters or self.kind == "types")

    @property
    def entities(self) -> bool:
        """Return True if the sample has an entity."""
        return self.kind != "empty"

    def reads(self, tag: str) -> bool:
        """Return True if a value is a tag in this spelling."""
        if self.kind == "brackets":
            return bool(_BRACKETS.fullmatch(tag))
        if self.kind == "types":
            return tag == self.outside or tag in self.types
        translated = self.canonical(tag)
        return translated == "O" or (translated[1:2] == "-" and translated[:1] in _LETTERS)

    def canonical(self, tag: str) -> str:
        """Return a tag in the spelling of `schemes`.

        A tag that does not have this style is returned unchanged; `schemes` rejects it later.
        """
        known = self._known.get(tag)
        if known is None:
            known = self._known[tag] = self._canonical(tag)
        return known

    def _canonical(self, tag: str) -> str:
        if self.kind == "features":
            assert self.inner
            found = _FEATURE.search(tag)
            return self.inner.canonical(found.group(1)) if found else "O"
        if tag == self.outside:
            return "O"
        if self.kind == "empty":  # The sample had no entity, so the file's spelling is only known from this tag.
            letter, _, name = _split(tag, "letters")
            return _joined(letter, name, replace(self, upper=letter.islower())) or tag
        if self.kind in ("letters", "suffix"):
            return _joined(*_parts(tag, self.kind), self) or tag
        if self.kind == "untyped" and tag.upper() in _LETTERS:
            return f"{_LETTERS[tag.upper()]}-{self.type}"
        return tag

    def sentence(self, tags: list[str]) -> list[str]:
        """Return the tags of one sentence in the spelling of `schemes`."""
        if self.kind == "brackets":
            return _from_brackets(tags)
        known = self._known
        return [known[tag] if tag in known else self.canonical(tag) for tag in tags]


def style_of(counts: Mapping[str, int], *, type: str = UNTYPED, bare: bool = True) -> Style | None:
    """Return the spelling of a column's values; None if they are not entity tags.

    counts: {value: number of occurrences in the sample}. type: type of entities whose tags name no type. bare: True to
    accept types without position letters, such as `PERSON`.
    """
    counts = {value: n for value, n in counts.items() if len(value) <= _LONGEST}
    if not counts or len(counts) > 50 * _MOST_TYPES:
        return None
    return _features(counts, type) or _bracketed(counts) or _plain(counts, type=type, bare=bare)


def of_sentences(style: Style, columns: Iterable[Sequence[str]]) -> bool:
    """Return True if a column's words describe whole sentences (such as language, speaker or split), not tokens.

    columns: for each sentence, the values of the column.
    """
    if style.kind != "types":
        return False
    named = [set(values) for values in columns if len(values) > 2 and set(values) != {style.outside}]
    return len(named) > 1 and sum(len(values) == 1 for values in named) > _CONSTANT * len(named)


def is_lettered(tag: str) -> bool:
    """Return True for a tag with a position letter in the usual spelling, such as B-PER."""
    return bool(_split(tag, "letters")[0])


def parts_of_speech(counts: Mapping[str, int]) -> bool:
    """Return True if more than half of the tags that are not in `_OUTSIDE` are parts of speech or relations."""
    rest = {tag: n for tag, n in counts.items() if tag not in _OUTSIDE}
    return sum(n for tag, n in rest.items() if tag in _POS or tag.upper() in _RELATIONS) > 0.5 * sum(rest.values())


def _bracketed(counts: Mapping[str, int]) -> Style | None:
    if not counts.get("*", 0) or not all(map(_BRACKETS.fullmatch, counts)):
        return None
    types = frozenset(kind for tag in counts for kind in _OPENING.findall(tag))
    return Style(kind="brackets" if types else "empty", outside="*", types=types)


def _plain(counts: Mapping[str, int], *, type: str, bare: bool) -> Style | None:
    """Return the spelling of a column whose values are single tags; None if they are not entity tags."""
    outside = next((value for value in _OUTSIDE if counts.get(value)), "")
    rest = {tag: n for tag, n in counts.items() if tag != outside}
    if not rest:
        return Style(kind="empty", outside=outside) if outside in ("O", "o") else None
    lettered = _lettered(rest, "letters", outside) or _lettered(rest, "suffix", outside)
    if lettered or outside in ("", "*"):
        return lettered
    if all(tag.upper() in _LETTERS for tag in rest) and {"B", "I"} & {tag.upper() for tag in rest}:
        return Style(kind="untyped", outside=outside, type=type, types=frozenset({type}))
    return _types(counts, rest, outside) if bare else None


def _features(counts: Mapping[str, int], type: str) -> Style | None:
    inner: Counter[str] = Counter()
    for value, n in counts.items():
        if (found := _FEATURE.search(value)) is not None:
            inner[found.group(1)] += n
        elif "=" not in value and value != "_":
            return None
    style = _plain({**inner, "O": inner["O"] or 1}, type=type, bare=False) if inner else None
    return Style(kind="features", inner=style, types=style.types) if style else None


def _lettered(rest: Mapping[str, int], kind: Literal["letters", "suffix"], outside: str) -> Style | None:
    """Return the spelling if the tags have position letters, else None.

    Nearly all tags must have the same separator, and at least one tag must begin an entity. In the usual spelling
    (`B-PER`), only half of the tags must have the separator, and no tag has to begin an entity.
    """
    separators: Counter[str] = Counter()
    for tag, n in rest.items():
        letter, separator, _ = _split(tag, kind)
        separators[separator] += n if letter else 0
    separators = +separators
    if not separators:
        return None
    separator, fitting = separators.most_common(1)[0]
    # Accept more wrong tags in the usual spelling, because `schemes.Detector` later reports their lines.
    usual = kind == "letters" and separator == "-"
    if not (outside or usual):  # without an O, words such as "U.S." would pass as tags
        return None
    if fitting < (0.5 if usual else 0.98) * sum(rest.values()):
        return None
    pairs = [pair for tag in rest if (pair := _parts(tag, kind, separator))[0]]
    letters = {letter for letter, _ in pairs}
    if not {*"BISUW"} & {letter.upper() for letter in letters} and not usual:
        return None
    upper = all(letter.islower() for letter in letters)
    types = frozenset(name.upper() if upper else name for _, name in pairs)
    return Style(kind=kind, outside=outside or "O", separator=separator, upper=upper, types=types)


def _parts(tag: str, kind: str, separator: str | None = None) -> tuple[str, str]:
    """Return (position letter, type) of a tag; ("", "") if the tag is spelt differently."""
    letter, found, name = _split(tag, kind)
    return (letter, name) if separator in (None, found) else ("", "")


def _split(tag: str, kind: str) -> tuple[str, str, str]:
    """Return (position letter, separator, type) of a tag; empty strings if the tag is spelt differently."""
    letter, separator, name = (tag[:1], tag[1:2], tag[2:]) if kind == "letters" else (tag[-1:], tag[-2:-1], tag[:-2])
    if letter.upper() in _LETTERS and separator in _SEPARATORS and any(map(str.isalpha, name)):
        return letter, separator, name
    return "", "", ""


def _joined(letter: str, name: str, style: Style) -> str:
    if not letter or (letter.islower() and not style.upper):
        return ""
    letter = letter.upper()
    return f"{_LETTERS[letter]}-{name.upper() if style.upper else name}"


def _types(counts: Mapping[str, int], rest: Mapping[str, int], outside: str) -> Style | None:
    """Return the style of types without prefixes, or None if it does not fit.

    It fits if `O` is frequent and all other values are a few types.
    """
    total = sum(counts.values())
    if outside not in ("O", "o") or counts[outside] < _LEAST_OUTSIDE * total:
        return None
    if len(rest) > min(_MOST_TYPES, max(10, total // 4)) or not all(map(_TYPE.fullmatch, rest)):
        return None
    if parts_of_speech(rest) or all(len(tag) < _SHORTEST_TYPE or tag.casefold() in _NO_TYPES for tag in rest):
        return None
    return Style(kind="types", outside=outside, types=frozenset(rest))


def _from_brackets(tags: list[str]) -> list[str]:
    """Return the IOB2 tags of bracketed spans. Of nested brackets, only the outermost span is used."""
    named: list[str] = []
    stack: list[str] = []
    for tag in tags:
        before = list(stack)
        stack += _OPENING.findall(tag)
        if not stack:
            named.append("O")
        else:
            named.append(f"{'I' if before else 'B'}-{stack[0]}")
        for _ in range(tag.count(")")):
            if stack:
                stack.pop()
    return named
