"""Names, types and words of training sentences, and new names that they do not hold (SOURCES.md, Robustness sets)."""

import string
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from core.bias.training_sentences import Name, name_of, ordered, surface
from core.text.content import FUNCTION_WORDS, is_content
from core.text.sentence import Entity, Sentence

ORDER = 3  # characters that the next one depends on
LENGTHS = range(3, 15)  # characters of a generated word
TRIES = 200  # runs of the chain for one word; after that letters are added until the word is new
_BEGIN, _END = "\x02", "\x03"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Words and names of training sentences.

    words: all, case-folded. kinds: {case-folded name: types}. names: {type: its names, each once, in the order in
    which they come}.
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
        """No entity is called so, and none of its words but function words and marks comes anywhere, in any case."""
        content = [word.casefold() for word in name if is_content_word(word)]
        return bool(content) and folded(name) not in self.kinds and self.words.isdisjoint(content)

    def ambiguity(self, sentence: Sentence, entity: Entity) -> str:
        """Reason that the type of `entity` is not certain: `name`, known under several types; `no context`, where no
        content word stands outside the entities; else nothing."""
        if len(self.kinds.get(folded(name_of(sentence, entity)), ())) > 1:
            return "name"
        # Words of other entities are no context: they are renamed too.
        inside = {i for other in sentence.entities or () for i in range(other.start, other.end)}
        has_context = any(is_content(word) for i, word in enumerate(sentence.tokens) if i not in inside)
        return "" if has_context else "no context"


def folded(name: Name) -> str:
    """The name in lower case, to compare by."""
    return surface(name).casefold()


def is_content_word(word: str) -> bool:
    """Whether `word` is neither a mark nor a function word."""
    return any(letter.isalnum() for letter in word) and word.casefold() not in FUNCTION_WORDS


class NameMaker:
    """Names that look like `names`: their words but marks and function words by a character n-gram Markov chain."""

    def __init__(self, names: Sequence[Name]) -> None:
        self._moulds = [name for name in names if any(map(is_content_word, name))] or [("name",)]
        self._next: dict[str, list[str]] = defaultdict(list)
        for word in (word for name in self._moulds for word in name if is_content_word(word)):
            # Case-folded, so that ACME and Acme teach one chain; `_word` lays the case on again.
            letters = _BEGIN * ORDER + word.casefold() + _END
            for i in range(ORDER, len(letters)):
                self._next[letters[i - ORDER : i]].append(letters[i])

    def make(self, known: Known, rng: Random) -> Name:
        """A name that is new to `known`."""
        # Ends: `_unknown` lengthens every content word until `known` lacks it, and a mould has at least one.
        while not known.is_new(
            name := tuple(
                self._word(word, known, rng) if is_content_word(word) else word for word in rng.choice(self._moulds)
            )
        ):
            pass
        return name

    def _word(self, like: str, known: Known, rng: Random) -> str:
        """Written as `like` is: capitals, digits."""
        if like.isdigit():
            # Digits are drawn, not chained: the chain would turn a year into letters.
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
        # A chain may go round in letters for ever: it is cut where no name would be so long.
        while letters[-1] != _END and len(letters) < ORDER + LENGTHS.stop:
            letters += rng.choice(self._next[letters[-ORDER:]])
        return letters[ORDER:].rstrip(_END)


def _unknown(word: str, letters: str, known: Known, rng: Random) -> str:
    """`word`, and as many letters more as it takes to be new."""
    while word.casefold() in known.words or not is_content_word(word):
        word += rng.choice(letters)
    return word
