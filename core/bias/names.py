"""Names of training sentences, and names that they lack: generated, found by a tagger, or misspelt.

SOURCES.md, Robustness sets.
"""

import string
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from core.bias.training_sentences import Name, folded, name_of, ordered
from core.errors import PathError, ReadError
from core.text.content import FUNCTION_WORDS, is_content
from core.text.sentence import Entity, Sentence, sentence_id
from core.text.words import clean

ORDER = 3  # of the Markov chain: characters that the next one depends on
LENGTHS = range(3, 15)  # characters of a generated word
TRIES = 200  # words drawn from the chain; after that, letters are appended until the word is new
_BEGIN, _END = "\x02", "\x03"
_SLIPS = ("replace", "swap", "insert", "delete")
_SLIP_TRIES = 20  # swapping equal letters or drawing the same letter again changes nothing
Find = tuple[Name, str, float]  # a name, its predicted type, and the confidence
MOST_BYTES, MOST_LETTERS = 20_000_000, 500  # of a list; of a line


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Words and names of training sentences.

    words: all, case-folded. kinds: {case-folded name: types}. names: {type: distinct names in order of appearance}.
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
        """Return True if no entity has this name and none of its content words occurs, in any case."""
        content = [word.casefold() for word in name if is_content_word(word)]
        return bool(content) and folded(name) not in self.kinds and self.words.isdisjoint(content)

    def ambiguity(self, sentence: Sentence, entity: Entity) -> str:
        """Return the reason that the type of `entity` is not certain, "" if it is.

        `name`: the name is known under several types. `no context`: there is no content word outside of entities.
        """
        if len(self.kinds.get(folded(name_of(sentence, entity)), ())) > 1:
            return "name"
        # Words of other entities are no context, because they are renamed too.
        inside = {i for other in sentence.entities or () for i in range(other.start, other.end)}
        has_context = any(is_content(word) for i, word in enumerate(sentence.tokens) if i not in inside)
        return "" if has_context else "no context"


def is_content_word(word: str) -> bool:
    """Return True if `word` is neither punctuation nor a function word."""
    return any(letter.isalnum() for letter in word) and word.casefold() not in FUNCTION_WORDS


class NameMaker:
    """Generates names that look like `names`: a character n-gram Markov chain replaces their content words."""

    def __init__(self, names: Sequence[Name]) -> None:
        self._templates = [name for name in names if any(map(is_content_word, name))] or [("name",)]
        self._next: dict[str, list[str]] = defaultdict(list)
        for word in (word for name in self._templates for word in name if is_content_word(word)):
            # Case-folded, so that ACME and Acme share one chain; `_word` restores the case.
            letters = _BEGIN * ORDER + word.casefold() + _END
            for i in range(ORDER, len(letters)):
                self._next[letters[i - ORDER : i]].append(letters[i])

    def make(self, known: Known, rng: Random) -> Name:
        """Return a name that is new to `known`."""
        # This ends: `_unknown` makes each content word new, and a template has at least one.
        while not known.is_new(
            name := tuple(
                self._word(word, known, rng) if is_content_word(word) else word for word in rng.choice(self._templates)
            )
        ):
            pass
        return name

    def _word(self, like: str, known: Known, rng: Random) -> str:
        """Return a new word in the case of `like`; a number for a number."""
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
        # A chain may loop, so it is cut beyond the longest allowed word.
        while letters[-1] != _END and len(letters) < ORDER + LENGTHS.stop:
            letters += rng.choice(self._next[letters[-ORDER:]])
        return letters[ORDER:].rstrip(_END)


def _unknown(word: str, letters: str, known: Known, rng: Random) -> str:
    """Append random `letters` to `word` until it is a new content word."""
    while word.casefold() in known.words or not is_content_word(word):
        word += rng.choice(letters)
    return word


def new_names(finds: Iterable[Find], known: Known, least: float) -> dict[str, list[Name]]:
    """Return {type: names that a tagger found and `known` lacks}, in order, each once.

    A name gets the type with the highest summed confidence, and is kept if the mean confidence for it is at least
    `least`. Names that begin or end in punctuation or a function word, or are longer than every known name of the type,
    are dropped as tagger errors.
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

    A letter is replaced, inserted, deleted, or swapped with the next. known: characters to draw from, as well as those
    of `letters`, for scripts other than Latin.
    """
    for _ in range(_SLIP_TRIES if len(letters) > 1 else 0):
        # The first character stays: people rarely mistype it, and it carries the capital.
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
    """Return a random character of the script and kind of `like`: digit, capital or small letter."""
    if not like.isascii():
        like = next(filter(str.isalnum, like + known), like)  # a combining mark takes the script of a letter
    if (script := _script(like)) != "LATIN":
        capital = like.isupper()
        # Restore the case after drawing, because few capitals of a script may be known.
        pool = {(c.upper() if capital else c.lower()) for c in known if _script(c) == script}
        # Sorted, because the order of a set of strings differs between processes.
        return rng.choice(sorted(c for c in pool if len(c) == 1))
    return rng.choice(
        string.digits if like.isdigit() else string.ascii_uppercase if like.isupper() else string.ascii_lowercase
    )


def _script(letter: str) -> str:
    """Return the first word of the character's Unicode name, for non-letters with the category; LATIN for all ASCII."""
    if letter.isascii():
        return "LATIN"
    name = unicodedata.name(letter, "LATIN").split()[0]
    return name if letter.isalpha() else f"{name} {unicodedata.category(letter)}"


def read_names(path: Path) -> list[Sentence]:
    """Empty lines are passed over. A name's words stand apart by blanks, as a CoNLL file's do by lines.

    Errors: PathError; ReadError for the first line that is wrong, and where there is no name or far too many.
    """
    if not path.is_file():
        raise PathError(f"{path}: there is no such file; check the path.")
    if path.stat().st_size > MOST_BYTES:
        raise ReadError(path.name, None, f"is larger than {MOST_BYTES / 1e6:.0f} MB; give a shorter list of names.")
    lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines()
    names = [_sentence(path.name, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not names:
        raise ReadError(path.name, None, "holds no name; write a name, a tab and its type on each line.")
    return names


def _sentence(file: str, number: int, line: bytes) -> Sentence:
    try:
        parts = [clean(part) for part in line.decode().split("\t")]
    except UnicodeDecodeError as error:
        raise ReadError(file, number, "is not UTF-8; save the list as UTF-8.") from error
    if sum(map(len, parts)) > MOST_LETTERS:
        raise ReadError(file, number, f"is longer than {MOST_LETTERS} letters; write one name on each line.")
    if len(parts) != 2 or not all(parts) or " " in parts[1]:
        raise ReadError(file, number, "is not a name, one tab and a type of one word; write for example Oslo<tab>LOC.")
    name, kind = parts
    tokens = tuple(name.split())
    entity = Entity(start=0, end=len(tokens), type=kind)
    return Sentence(id=sentence_id(name), tokens=tokens, text=name, entities=(entity,))
