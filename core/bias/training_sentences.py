"""Training sentences to rebuild, with the PVI of each mention, and held-out sentences that must not be added.

The module also reads the names of the training sentences, and makes new names: generated, found by a tagger, or
misspelt (SOURCES.md, Robustness sets).
"""

import string
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from random import Random
from typing import NamedTuple

import numpy as np

from core.bias.result import Edit, Mention
from core.errors import CorpusError
from core.results import BoolArray, FloatArray, IntArray
from core.text.content import FUNCTION_WORDS, is_content
from core.text.sentence import Entity, Sentence, sentence_id
from core.text.words import fold, in_unspaced, joined, token_places

Name = tuple[str, ...]  # words of a mention


class Measured(NamedTuple):
    """A mention's result in a `difficulty` run. entity, context: PVI, bits. bin: bin of its CEIM."""

    entity: float
    context: float
    bin: str


UNMEASURED = Measured(nan, nan, "")
Measures = Mapping[tuple[int, int, int], Measured]  # {(row, start, end of a mention): its measurement}


def measures(mentions: Iterable[Mention]) -> Measures:
    """Return the measurements of a `difficulty` run, as {(row, start, end of a mention): measurement}."""
    return {
        (mention.row, mention.start, mention.end): Measured(mention.pvi_entity, mention.pvi_context, mention.bin)
        for mention in mentions
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """A rebuilt training set.

    wanted: number of mentions to change. edits: the changes that were possible. reached: see `Pools`. low, measured:
    number of low-CEIM mentions and of all measured mentions in a set drawn by CEIM.
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

    rows, places `(m,)`: row of each mention's sentence, and index of the mention in it from the left. kinds, names,
    bins: type, name and CEIM bin ("" if not measured) of each mention. entity, context `(m,)`: PVI in bits, NaN if not
    measured. closed: keys (`key_of`) of held-out sentences, which must not be added. free `(m,)`: True if the mention's
    sentence is not held out.
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
        """Return the sentences with all their mentions. A mention that `measures` lacks counts as not measured.

        held_out: texts of the held-out sentences.
        """
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
        """Return the number of mentions."""
        return len(self.kinds)

    def wanted(self, rate: float) -> int:
        """Return the number of mentions to change. rate: share of all mentions, measured or not."""
        return round(rate * len(self))

    def by_row(self, mentions: Iterable[int]) -> dict[int, list[int]]:
        """Return {row: mentions of this row, ascending}. mentions: indices from 0 to m - 1."""
        mentions_by_row: dict[int, list[int]] = defaultdict(list)
        for mention in sorted(mentions):
            mentions_by_row[int(self.rows[mention])].append(mention)
        return mentions_by_row


class Taken:
    """Keys (`key_of`) of sentences that may not be added: held-out sentences, and sentences already in the set."""

    def __init__(self, texts: Iterable[str], closed: Collection[str]) -> None:
        self._keys = {*map(key_of, texts), *closed}

    def admit(self, text: str) -> bool:
        """Return True if no sentence has the key of `text` yet, and add the key."""
        key = key_of(text)
        new = key not in self._keys
        self._keys.add(key)
        return new


def key_of(text: str) -> str:
    """Return a key that is equal for texts with the same normalised words. A text without words is its own key."""
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


def with_text(sentence: Sentence, tokens: Sequence[str], entities: Iterable[Entity], text: str = "") -> Sentence:
    """Return `sentence` with other tokens and entities, and with the id of its new text.

    text: the new text; by default the tokens, joined by blanks.
    """
    text = text or " ".join(tokens)
    return replace(sentence, id=sentence_id(text), tokens=tuple(tokens), text=text, entities=tuple(entities))


def renamed(sentence: Sentence, names: Mapping[int, Name]) -> Sentence:
    """Return `sentence` with other names of the same types. names: {index of an entity, from the left: new name}."""
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
    return with_text(sentence, [*tokens, *sentence.tokens[at:]], entities, _renamed_text(sentence, names))


def _renamed_text(sentence: Sentence, names: Mapping[int, Name]) -> str:
    """Return the text of `sentence` with other names (see `renamed`), and otherwise unchanged.

    Language models read the text, so it must not get other blanks than the original. Return "" if the text lacks a
    token.
    """
    try:
        places = token_places(sentence.text, sentence.tokens)
    except CorpusError:
        return ""
    parts, at = list[str](), 0
    for place, entity in enumerate(ordered(sentence)):
        if place in names:
            parts += [sentence.text[at : places[entity.start][0]], _written(names[place])]
            at = places[entity.end - 1][1]
    return "".join([*parts, sentence.text[at:]])


def _written(name: Name) -> str:
    """Return the words of a name, joined by blanks except between letters of scripts without blanks."""
    return "".join(
        word if i == 0 or (in_unspaced(name[i - 1][-1]) and in_unspaced(word[0])) else f" {word}"
        for i, word in enumerate(name)
    )


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
    """Return an `Edit` for each changed entity. places: indices of the changed entities, from the left."""
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


# Order of the Markov chain: the next character depends on this number of characters.
ORDER = 3
# Allowed numbers of characters of a generated word.
LENGTHS = range(3, 15)
# Maximum number of words to draw from the chain. Then letters are appended to the last word until it is new.
TRIES = 200
_BEGIN, _END = "\x02", "\x03"
_SLIPS = ("replace", "swap", "insert", "delete")
# Maximum number of draws of a typo. A draw can change nothing, for example if it swaps two equal letters.
_SLIP_TRIES = 20
# (name, predicted type, confidence)
Find = tuple[Name, str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Words and names of training sentences.

    words: all words, case-folded. kinds: {case-folded name: types}. names: {type: distinct names in order of
    appearance}.
    """

    words: frozenset[str]
    kinds: dict[str, frozenset[str]]
    names: dict[str, tuple[Name, ...]]

    @classmethod
    def of(cls, sentences: Iterable[Sentence]) -> "Known":
        words: set[str] = set()
        kinds: dict[str, set[str]] = defaultdict(set)
        names: dict[str, dict[Name, None]] = defaultdict(dict)
        for sentence in sentences:
            words.update(token.casefold() for token in sentence.tokens)
            for entity in ordered(sentence):
                name = name_of(sentence, entity)
                kinds[folded(name)].add(entity.type)
                names[entity.type][name] = None
        return cls(
            words=frozenset(words),
            kinds={name: frozenset(types) for name, types in kinds.items()},
            names={kind: tuple(by_name) for kind, by_name in names.items()},
        )

    def is_new(self, name: Name) -> bool:
        """Return True if the training sentences have neither `name` nor any of its content words. Case is ignored.

        A name without content words is not new.
        """
        content = [word.casefold() for word in name if is_content_word(word)]
        return bool(content) and folded(name) not in self.kinds and self.words.isdisjoint(content)

    def ambiguity(self, sentence: Sentence, entity: Entity) -> str:
        """Return the reason why the type of `entity` is not certain; "" if it is certain.

        `name`: the name is known with several types. `no context`: the sentence has no content word outside of
        entities.
        """
        if len(self.kinds.get(folded(name_of(sentence, entity)), ())) > 1:
            return "name"
        # Words of the other entities do not count as context, because they are renamed too.
        inside = {i for other in sentence.entities or () for i in range(other.start, other.end)}
        has_context = any(is_content(word) for i, word in enumerate(sentence.tokens) if i not in inside)
        return "" if has_context else "no context"


def is_content_word(word: str) -> bool:
    """Return True if `word` is neither punctuation nor a function word."""
    return any(letter.isalnum() for letter in word) and word.casefold() not in FUNCTION_WORDS


class NameMaker:
    """Generates names that look like `names`.

    Content words of a name are replaced by words from a Markov chain over characters.
    """

    def __init__(self, names: Sequence[Name]) -> None:
        self._templates = [name for name in names if any(map(is_content_word, name))] or [("name",)]
        self._next: dict[str, list[str]] = defaultdict(list)
        for word in (word for name in self._templates for word in name if is_content_word(word)):
            # Fold the case, so that ACME and Acme give the same transitions. `_word` restores the case.
            letters = _BEGIN * ORDER + word.casefold() + _END
            for i in range(ORDER, len(letters)):
                self._next[letters[i - ORDER : i]].append(letters[i])

    def make(self, known: Known, rng: Random) -> Name:
        """Return a generated name that is new to `known` (`Known.is_new`)."""
        # The loop ends: `_unknown` makes each content word new, and each template has at least one content word.
        while not known.is_new(
            name := tuple(
                self._word(word, known, rng) if is_content_word(word) else word for word in rng.choice(self._templates)
            )
        ):
            pass
        return name

    def _word(self, like: str, known: Known, rng: Random) -> str:
        """Return a new word with the capitals of `like`; new digits if `like` is a number."""
        if like.isdigit():
            # Digits are drawn uniformly, because the chain would turn a year into letters.
            return _unknown("".join(rng.choice(string.digits) for _ in like), string.digits, known, rng)
        word = ""
        for _ in range(TRIES):
            word = self._chain(rng)
            if len(word) in LENGTHS and word not in known.words and is_content_word(word):
                break
        word = _unknown(word, string.ascii_lowercase, known, rng)
        if like.isupper() and len(like) > 1:
            return word.upper()
        return word[:1].upper() + word[1:] if like[:1].isupper() else word

    def _chain(self, rng: Random) -> str:
        letters = _BEGIN * ORDER
        # The chain can run in a loop, so stop once the word is longer than allowed.
        while letters[-1] != _END and len(letters) < ORDER + LENGTHS.stop:
            letters += rng.choice(self._next[letters[-ORDER:]])
        return letters[ORDER:].rstrip(_END)


def _unknown(word: str, letters: str, known: Known, rng: Random) -> str:
    """Return `word`, followed by random `letters` until it is a content word that `known` does not contain."""
    while word.casefold() in known.words or not is_content_word(word):
        word += rng.choice(letters)
    return word


def new_names(finds: Iterable[Find], known: Known, least: float) -> dict[str, list[Name]]:
    """Return {type: names that a tagger found and `known` lacks}, without repetitions, in the order found.

    A name gets the type with the highest summed confidence. It is kept if its mean confidence for that type is at least
    `least`. Likely tagger errors are dropped: names that begin or end in punctuation or a function word, and names with
    more words than any known name of the type.
    """
    confidences: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    spellings: dict[str, Name] = {}
    for name, kind, confidence in finds:
        if name and is_content_word(name[0]) and is_content_word(name[-1]) and known.is_new(name):
            spellings.setdefault(folded(name), name)
            confidences[folded(name)][kind].append(confidence)
    longest = {kind: max(map(len, names)) for kind, names in known.names.items()}
    by_type: dict[str, list[Name]] = {}
    for key, by_kind in confidences.items():
        kind = max(by_kind, key=lambda kind: sum(by_kind[kind]))
        if sum(by_kind[kind]) >= least * len(by_kind[kind]) and len(spellings[key]) <= longest.get(kind, 0):
            by_type.setdefault(kind, []).append(spellings[key])
    return by_type


def slip(letters: str, rng: Random, known: str = "") -> str | None:
    """Return `letters` with one typo after the first character; None if no draw changes them.

    A letter is replaced, inserted, deleted, or swapped with the next one. known: characters to draw from, in addition
    to `letters`, for scripts other than Latin.
    """
    for _ in range(_SLIP_TRIES if len(letters) > 1 else 0):
        # Never change the first character: people rarely mistype it, and it may be a capital.
        way, at = rng.choice(_SLIPS), rng.randrange(1, len(letters))
        match way:
            case "replace":
                edited = letters[:at] + _letter(letters[at], rng, letters + known) + letters[at + 1 :]
            case "insert":
                edited = letters[:at] + _letter(letters[at], rng, letters + known) + letters[at:]
            case "swap":
                edited = letters[:at] + letters[at : at + 2][::-1] + letters[at + 2 :]
            case _:
                edited = letters[:at] + letters[at + 1 :]
        if edited != letters:
            return edited
    return None


def _letter(like: str, rng: Random, known: str) -> str:
    """Return a random character of the same script as `like` and of the same kind: digit, capital or small letter."""
    if not like.isascii():
        # A combining mark has no script of its own, so use that of the first letter or digit in `known`.
        like = next(filter(str.isalnum, like + known), like)
    if (script := _script(like)) != "LATIN":
        capital = like.isupper()
        # Convert all known characters to the wanted case, because few capitals of a script may be known.
        pool = {(c.upper() if capital else c.lower()) for c in known if _script(c) == script}
        # Sorted, because the order of a set of strings differs between processes.
        return rng.choice(sorted(c for c in pool if len(c) == 1))
    return rng.choice(
        string.digits if like.isdigit() else string.ascii_uppercase if like.isupper() else string.ascii_lowercase
    )


def _script(letter: str) -> str:
    """Return the script of a character: the first word of its Unicode name, or LATIN for an ASCII character.

    For a character that is not a letter, the Unicode category is appended.
    """
    if letter.isascii():
        return "LATIN"
    name = unicodedata.name(letter, "LATIN").split()[0]
    return name if letter.isalpha() else f"{name} {unicodedata.category(letter)}"
