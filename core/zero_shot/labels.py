"""Read the labels of a ready model in any usual spelling, decode its entities, and map its types to the user's."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from core.errors import ConfigError, ModelError
from core.results import FloatArray
from core.text.schemes import Scheme, decode
from core.text.sentence import Entity, Prediction
from core.text.tag_styles import style_of

# largest number of labels of a model, and of characters of a label
_MOST, _LONGEST = 10_000, 100
# Frequency to assume for the label O: `style_of` expects the tags of words, and most words are outside of entities.
_OFTEN = 1_000_000
_OUTSIDE = ("O", "o", "0", "-", "_")
_LETTER = re.compile(r"[BIESLU]-", re.IGNORECASE)
_DIGITS = 6  # decimals of a confidence; further decimals would depend on the other sentences in the batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Tags of a model's k outputs.

    tags: the m different tags, in a spelling that `schemes` reads. column: for each output, the index of its tag in
    `tags`, `(k,)`. scheme: scheme of the tags. special: labels that are not entity tags, such as padding; they count as
    O.
    """

    tags: tuple[str, ...]
    column: tuple[int, ...]
    scheme: Scheme
    special: tuple[str, ...] = ()

    @classmethod
    def read(cls, model: str, names: Sequence[str]) -> Self:
        """Return the tags of the labels `names`, in the order of the outputs. model: name of the model, for errors.

        Errors: ModelError if the labels are not entity tags, or cannot be printed.
        """
        if not 1 < len(names) <= _MOST:
            raise ModelError(
                f"{model}: its config.json names {len(names):,} labels, expected 2 to {_MOST:,}. Give another model."
            )
        for name in names:
            if not name.isprintable() or len(name) > _LONGEST:
                raise ModelError(
                    f"{model}: its label {name[:40]!r} cannot be printed or has more than {_LONGEST} characters. "
                    "Correct id2label in its config.json."
                )
        style = style_of({name: _OFTEN if name in _OUTSIDE else 1 for name in names})
        if style is None or style.kind not in ("letters", "suffix", "types", "untyped"):
            raise ModelError(
                f"{model}: its labels are not tags of entities ({', '.join(names[:4])}, ...); give a model for named "
                "entities, whose config.json has an id2label with names such as B-PER."
            )
        tags, special = [], []
        for name in names:
            tag = style.canonical(name)
            if style.kind == "types" and tag in style.types:
                tag = f"I-{tag}"  # otherwise a type such as E-MAIL would be read as the tag E of the type MAIL
            known = tag == "O" or bool(_LETTER.match(tag))
            tags.append(tag if known else "O")
            special += [] if known else [name]
        different = tuple(dict.fromkeys(tags))
        return cls(
            tags=different,
            column=tuple(map(different.index, tags)),
            scheme="io" if style.kind == "types" else _scheme(model, {tag[0] for tag in different if tag != "O"}),
            special=tuple(special),
        )

    @property
    def types(self) -> list[str]:
        """The model's entity types, sorted."""
        return sorted({type for letter, type in map(self._parts, self.tags) if letter})

    def _parts(self, tag: str) -> tuple[str, str]:
        """Return (letter, type) of a tag; ("", "") for O."""
        if tag == "O":
            return "", ""
        return tag[0], tag[2:]

    def entities(self, probabilities: FloatArray) -> Prediction:
        """Return the entities of a sentence's most probable tags, with their confidences.

        probabilities: probability of each output for each of n words, `(n, k)`. An inner or last tag that continues no
        entity begins a new entity, because some models begin entities with inner tags (`schemes.decode`, not `strict`).

        A confidence is the exact probability of start, end and type under the model's assumption that words are
        independent (SOURCES.md, Ready models).
        """
        by_tag = np.zeros((len(probabilities), len(self.tags)))
        np.add.at(by_tag.T, list(self.column), probabilities.T)
        tags = [self.tags[best] for best in by_tag.argmax(1)]
        entities = decode(tags, self.scheme)[0]
        place = {self._parts(tag): column for column, tag in enumerate(self.tags)}
        return Prediction(
            entities=entities, confidence=tuple(_confidence(by_tag, entity, place) for entity in entities)
        )


def _scheme(model: str, letters: set[str]) -> Scheme:
    if letters & set("ES") and letters & set("LU"):
        raise ModelError(f"{model}: its labels mix BIOES (E-, S-) and BILOU (L-, U-) tags; give another model.")
    if letters & set("LU"):
        return "bilou"
    return "bioes" if letters & set("ES") else "iob2"


def _confidence(by_tag: FloatArray, entity: Entity, place: Mapping[tuple[str, str], int]) -> float:
    """Return the probability that start, end and type of `entity` are right, if the tags of words are independent.

    by_tag: probability of each tag for each word. place: {(letter, type) of a tag: column of `by_tag`}.
    """

    def p(word: int, letters: str) -> float:
        """Return the probability that a word's tag has one of these letters and the entity's type."""
        if not 0 <= word < len(by_tag):
            return 0.0
        columns = (place.get((letter, entity.type)) for letter in letters)
        return float(sum(by_tag[word, column] for column in columns if column is not None))

    first, last = entity.start, entity.end - 1
    # An inner or last tag begins an entity only if the word before it is not in an open entity of the same type.
    closed = 1 - p(first - 1, "BI")
    ends = 1 - p(last + 1, "IEL")
    opens = p(first, "B") + p(first, "I") * closed
    if first == last:
        result = p(first, "SU") + p(first, "EL") * closed + opens * ends
    else:
        inner = math.prod(p(word, "I") for word in range(first + 1, last))
        result = opens * inner * (p(last, "EL") + p(last, "I") * ends)
    return round(min(max(result, 0.0), 1.0), _DIGITS)


def mapping(types: Sequence[str], own: Collection[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return {type of the model: type of the user, or "" if it is dropped}.

    types: the model's types. own: the user's types. given: the user's entries of the map; case and a prefix such as B-
    are ignored in keys. A type without an entry maps to the user's type of the same name, ignoring case. Errors:
    ConfigError for an unknown type, or if every type is dropped.
    """
    ours, chosen = _by_name(own), dict[str, str]()
    for old, new in given.items():
        if (name := _named(old, types)) is None:
            raise ConfigError(f"type_map: {old!r} is not a type of the model; its types are {', '.join(types)}.")
        if new and new not in own:
            raise ConfigError(
                f"type_map: {new!r} is not a type of the test or dev set; choose among {', '.join(sorted(own))}."
            )
        if chosen.setdefault(name, new) != new:
            raise ConfigError(
                f"type_map: {name!r} is mapped to two types, {chosen[name]!r} and {new!r}; keep one of them."
            )
    result = {
        type: chosen[type] if type in chosen else type if type in own else ours.get(type.casefold(), "")
        for type in types
    }
    if not any(result.values()):
        raise ConfigError(
            f"type_map: no type of the model ({', '.join(types)}) is mapped to one of yours "
            f"({', '.join(sorted(own))}); map at least one, for example --type-map PER=person."
        )
    return result


def known(types: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the entries of `given` (see `mapping`) for types of the model. types: the model's types."""
    return {old: new for old, new in given.items() if _named(old, types) is not None}


def _named(old: str, types: Sequence[str]) -> str | None:
    """Return the type of the model that the user means by `old`; None if there is none."""
    theirs = _by_name(types)
    return old if old in types else theirs.get(old.casefold()) or theirs.get(_LETTER.sub("", old, 1).casefold())


def _by_name(types: Collection[str]) -> dict[str, str]:
    """Return {type in lower case: type}. If types differ only in case, keep the first in sorted order."""
    return {type.casefold(): type for type in sorted(types, reverse=True)}
