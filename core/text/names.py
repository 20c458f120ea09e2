"""Find the names of a dictionary in text, by the longest match from left to right (SOURCES.md, Dictionary)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from core.text.sentence import Entity, Prediction, Sentence
from core.text.words import tokenize

Key = tuple[str, ...]  # words of a name, as `tokenize` splits it
_words = lru_cache(100_000)(tokenize)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A name that was found in a sentence. key: words of the name, as in `Dictionary.types`."""

    entity: Entity
    key: Key


class Dictionary:
    """A dictionary of names. types: {words of a name: its type}. case_sensitive: False to ignore case.

    A match begins at the start of a token and ends at the end of a token. Token borders inside a match are ignored:
    `T-cell` is found if it is one token, and also if it is three tokens.
    """

    def __init__(self, types: Mapping[Key, str], *, case_sensitive: bool = False) -> None:
        self.types, self.case_sensitive = dict(types), case_sensitive
        self._fold = folding(case_sensitive=case_sensitive)
        self._longest: dict[str, int] = {}  # {first word: number of words of the longest name with this first word}
        for key in self.types:
            self._longest[key[0]] = max(len(key), self._longest.get(key[0], 0))

    def find(self, tokens: Sequence[str]) -> Iterator[Match]:
        """Yield the longest names in a sentence from left to right; they do not overlap."""
        words, starts = list[str](), [0]
        for token in tokens:
            words += map(self._fold, _words(token))
            starts.append(len(words))
        start = 0
        while start < len(tokens):
            end = self._end(words, starts, start)
            if end > start:
                key = tuple(words[starts[start] : starts[end]])
                yield Match(entity=Entity(start=start, end=end, type=self.types[key]), key=key)
            start = max(end, start + 1)

    def predict(self, sentence: Sentence) -> Prediction:
        """Return the names in a sentence, each with confidence 1."""
        entities = tuple(match.entity for match in self.find(sentence.tokens))
        return Prediction(entities=entities, confidence=(1.0,) * len(entities))

    def _end(self, words: Sequence[str], starts: Sequence[int], start: int) -> int:
        """Return the end token of the longest name that begins at token `start`; `start` if no name begins there."""
        if starts[start] == len(words):
            return start
        limit = starts[start] + self._longest.get(words[starts[start]], 0)
        ends = [end for end in range(start + 1, len(starts)) if starts[end] <= limit]
        for end in reversed(ends):
            if tuple(words[starts[start] : starts[end]]) in self.types:
                return end
        return start


def folding(*, case_sensitive: bool) -> Callable[[str], str]:
    """Return a function that folds the case of a word; if `case_sensitive`, it returns the word unchanged."""
    return (lambda word: word) if case_sensitive else str.casefold


def count_names(sentences: Iterable[Sentence], *, case_sensitive: bool) -> dict[Key, Counter[str]]:
    """Return how often each name is labelled with each type, as {words of the name: {type: number of entities}}."""
    fold, counts = folding(case_sensitive=case_sensitive), dict[Key, Counter[str]]()
    for sentence in sentences:
        for entity in sentence.entities or ():
            tokens = sentence.tokens[entity.start : entity.end]
            if key := tuple(fold(word) for token in tokens for word in _words(token)):
                counts.setdefault(key, Counter())[entity.type] += 1
    return counts


def commoner_outside(dictionary: Dictionary, inside: Iterable[Sentence], outside: Iterable[Sentence]) -> set[Key]:
    """Return the names that occur more often per token in `outside` (other domains) than in `inside` (the domain)."""
    rates = []
    for sentences in (inside, outside):
        tokens, found = 0, Counter[Key]()
        for sentence in sentences:
            tokens += len(sentence.tokens)
            found.update(match.key for match in dictionary.find(sentence.tokens))
        rates.append((found, max(tokens, 1)))
    (here, of_here), (there, of_there) = rates
    return {key for key, n in there.items() if n / of_there > here[key] / of_here}
