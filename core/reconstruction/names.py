"""What training sentences say of names, and new names that they do not hold (SOURCES.md, Robustness sets)."""

import string
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from core.reconstruction.training import Name, name_of, ordered, surface
from core.text.content import FUNCTION_WORDS, is_content
from core.text.sentence import Entity, Sentence

ORDER = 3  # characters that the next one depends on
LENGTHS = range(3, 15)  # characters of a generated word
TRIES = 200
_BEGIN, _END = "\x02", "\x03"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What training sentences hold. words: all, case-folded. kinds: {case-folded name: types}. names: {type: its
    names, each once, in the order in which they come}."""

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
            names={kind: tuple(found) for kind, found in names.items()},
        )

    def is_new(self, name: Name) -> bool:
        """No entity is called so, and none of its words but function words and marks comes anywhere, in any case."""
        told = [word.casefold() for word in name if tells(word)]
        return bool(told) and folded(name) not in self.kinds and self.words.isdisjoint(told)

    def ambiguity(self, sentence: Sentence, entity: Entity) -> str:
        """Why `entity` cannot be told for sure: `name`, known under several types; `no context`, where no content
        word stands outside the entities; else nothing."""
        if len(self.kinds.get(folded(name_of(sentence, entity)), ())) > 1:
            return "name"
        inside = {i for other in sentence.entities or () for i in range(other.start, other.end)}
        has_context = any(is_content(word) for i, word in enumerate(sentence.tokens) if i not in inside)
        return "" if has_context else "no context"


def folded(name: Name) -> str:
    """In any case the same."""
    return surface(name).casefold()


def tells(word: str) -> bool:
    """Whether it is neither a mark nor a function word."""
    return any(letter.isalnum() for letter in word) and word.casefold() not in FUNCTION_WORDS


class NameMaker:
    """Names that look like `names`: their words but marks and function words by a character n-gram Markov chain."""

    def __init__(self, names: Sequence[Name]) -> None:
        self._moulds = [name for name in names if any(map(tells, name))] or [("name",)]
        self._next: dict[str, list[str]] = defaultdict(list)
        for word in (word for name in self._moulds for word in name if tells(word)):
            letters = _BEGIN * ORDER + word.casefold() + _END
            for i in range(ORDER, len(letters)):
                self._next[letters[i - ORDER : i]].append(letters[i])

    def make(self, known: Known, lots: Random) -> Name:
        """A name that is new to `known`."""
        while not known.is_new(
            name := tuple(self._word(word, known, lots) if tells(word) else word for word in lots.choice(self._moulds))
        ):
            pass
        return name

    def _word(self, like: str, known: Known, lots: Random) -> str:
        """Written as `like` is: capitals, digits."""
        if like.isdigit():
            return _unknown("".join(lots.choice(string.digits) for _ in like), string.digits, known, lots)
        made = ""
        for _ in range(TRIES):
            made = self._chain(lots)
            if len(made) in LENGTHS and made not in known.words and tells(made):
                break
        made = _unknown(made, string.ascii_lowercase, known, lots)
        if like.isupper() and len(like) > 1:
            return made.upper()
        return made[:1].upper() + made[1:] if like[:1].isupper() else made

    def _chain(self, lots: Random) -> str:
        made = _BEGIN * ORDER
        while made[-1] != _END and len(made) < ORDER + LENGTHS.stop:
            made += lots.choice(self._next[made[-ORDER:]])
        return made[ORDER:].rstrip(_END)


def _unknown(word: str, letters: str, known: Known, lots: Random) -> str:
    """`word`, and as many letters more as it takes to be new."""
    while word.casefold() in known.words or not tells(word):
        word += lots.choice(letters)
    return word
