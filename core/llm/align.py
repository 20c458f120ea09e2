"""Align the strings that a model quotes from a sentence to the sentence's tokens (SOURCES.md, Language models)."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from core.text.sentence import Entity
from core.text.words import nfc

MALFORMED, UNKNOWN, ABSENT, TAKEN = "malformed", "unknown type", "not in the sentence", "overlapping"


def aligned(
    tokens: Sequence[str], quotes: Sequence[object], types: Sequence[str]
) -> tuple[tuple[Entity, ...], Counter[str]]:
    """Return the entities of a model's answer in the order of the sentence, and the dropped quotes by reason.

    The quotes are aligned in the order of the answer. Each quote takes the first of its occurrences that does not
    overlap an earlier quote. Occurrences in the same case are tried first. An occurrence starts and ends at token
    borders. White space is ignored.
    quotes: items of the answer, each an object with `text` and `type` unless it is malformed.
    """
    exact, folded = _Text(tokens, str), _Text(tokens, str.casefold)
    by_case, known = {type.casefold(): type for type in types}, set(types)
    free, entities, dropped = [True] * len(tokens), list[Entity](), Counter[str]()
    for quote in quotes:
        text, type = _fields(quote)
        if not (words := _solid(nfc(text))):
            dropped[MALFORMED] += 1
            continue
        if (kept := type if type in known else by_case.get(type.strip().casefold(), "")) not in known:
            dropped[UNKNOWN] += 1
            continue
        places = [*exact.places(words), *folded.places(words.casefold())]
        place = next(((start, end) for start, end in places if all(free[start:end])), None)
        if place is None:
            dropped[TAKEN if places else ABSENT] += 1
            continue
        start, end = place
        free[start:end] = [False] * (end - start)
        entities.append(Entity(start=start, end=end, type=kept))
    return tuple(sorted(entities)), dropped


def _fields(quote: object) -> tuple[str, str]:
    """Return the text and the type of a quote; ("", "") if the quote is malformed."""
    text, type = (quote.get("text"), quote.get("type")) if isinstance(quote, dict) else (None, None)
    return (text, type) if isinstance(text, str) and isinstance(type, str) else ("", "")


class _Text:
    """The text of a sentence without white space, with the positions at which tokens start and end."""

    def __init__(self, tokens: Sequence[str], fold: Callable[[str], str]) -> None:
        self._text, self._starts, self._ends = "", dict[int, int](), dict[int, int]()
        for number, token in enumerate(tokens):
            # Tokens that were stored for this position before are empty, so this token replaces them.
            self._starts[len(self._text)] = number
            self._text += _solid(fold(token))
            self._ends.setdefault(len(self._text), number + 1)

    def places(self, words: str) -> Iterator[tuple[int, int]]:
        """Yield start and end, in tokens, of each occurrence of a text that is not empty."""
        for at, start in self._starts.items():
            if self._text.startswith(words, at) and at + len(words) in self._ends:
                yield start, self._ends[at + len(words)]


def _solid(text: str) -> str:
    return "".join(text.split())
