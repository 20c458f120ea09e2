"""Learn the tokenisation of labelled sentences, so that raw text is tokenised in the same way (SOURCES.md, Words)."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, pairwise

from core.text.sentence import Entity, Prediction, Sentence
from core.text.words import in_unspaced, tokenize

# Characters that are written directly after a word.
_CLOSE = frozenset(".,;:!?)]}%…»”’、。，")
# Characters that are written directly before a word.
_OPEN = frozenset("([{$£€#«“‘¿¡")
_APOSTROPHES = "'’"
# Represents the end of a sentence in keys, because a full stop there is nearly always a separate token.
_END = "$"
# Weight of a border at which the text may have had a blank, such as next to a dash.
_DOUBTFUL = 0.1
# A pair of words gets its own rule if it occurs at least this often, so that rare names are not stored.
_OFTEN = 5
# Maximum number of words whose tokens are cached.
_KEPT = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Rules that decide whether two adjacent pieces without a blank between them belong to one token.

    rules: {key of a border: True if the two pieces at the border belong to one token}. A border has several keys
    (`_keys`); the most specific key that has a rule decides. If no key has a rule, the pieces are two tokens.
    """

    rules: Mapping[str, bool]
    _known: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, text: str) -> tuple[str, ...]:
        """Return the tokens of a cleaned text."""
        *chunks, last = text.split() or [""]
        return (*(token for chunk in chunks for token in self.of(chunk)), *self.of(last, _END))

    def of(self, chunk: str, end: str = "") -> tuple[str, ...]:
        """Return the tokens of a text without blanks. end: `_END` if the sentence ends with this text, else ""."""
        tokens = self._known.get((chunk, end))
        if tokens is None:
            pieces, cut = _pieces(chunk), list[str]()
            for i, piece in enumerate(pieces):
                if i and next((self.rules[key] for key in _keys(pieces, i, end) if key in self.rules), False):
                    cut[-1] += piece
                else:
                    cut.append(piece)
            if len(self._known) == _KEPT:
                self._known.clear()
            tokens = self._known[chunk, end] = tuple(cut)
        return tokens

    def as_dict(self) -> dict[str, list[str]]:
        """Return the rules in a form that can be stored as JSON."""
        keys = sorted(self.rules)
        return {
            "joins": [key for key in keys if self.rules[key]],
            "parts": [key for key in keys if not self.rules[key]],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Sequence[str]]) -> "Cut":
        return cls(rules={**dict.fromkeys(values["parts"], False), **dict.fromkeys(values["joins"], True)})


def learn(sentences: Iterable[Sequence[str]]) -> Cut | None:
    """Return rules learnt from tokenised `sentences`; None if they reproduce no more tokens than `tokenize`."""
    written = [list(_chunks(tokens)) for tokens in sentences]
    weights: defaultdict[str, float] = defaultdict(float)  # above 0 if most borders with this key lie within a token
    borders = [border for chunks in written for border in _borders(chunks)]
    for keys, weight in borders:
        for key in keys:
            weights[key] += weight
    often = Counter(keys[0] for keys, _ in borders)
    rules = {key: weight > 0 for key, weight in weights.items() if " = " not in key or often[key] >= _OFTEN}
    cut = Cut(rules=_telling((keys for keys, _ in borders), rules))
    texts = [" ".join("".join(tokens) for tokens in chunks) for chunks in written]
    ours, its = (
        sum(_shared(rule(text), [*chain(*chunks)]) for text, chunks in zip(texts, written, strict=True))
        for rule in (tokenize, cut)
    )
    return cut if its > ours else None


def recut(sentence: Sentence, cut: Cut) -> Sentence:
    """Return a copy of the sentence, tokenised by `cut`."""
    return replace(sentence, tokens=cut(sentence.text))


def over_tokens(prediction: Prediction, cut: Sequence[str], tokens: Sequence[str]) -> Prediction:
    """Return a prediction, made on the tokens `cut`, mapped to the tokens `tokens` of the same text.

    An entity covers each of `tokens` with which it shares a letter. If two entities share a token, the first one gets
    the token.
    """
    if tuple(cut) == tuple(tokens):
        return prediction
    starts, ends = list(accumulate(map(len, cut), initial=0)), list(accumulate(map(len, tokens)))
    entities, confidence, free = list[Entity](), list[float](), 0
    for entity, sure in zip(prediction.entities, prediction.confidence, strict=True):
        start = max(bisect_right(ends, starts[entity.start]), free)
        free = bisect_left(ends, starts[entity.end]) + 1
        if start < free:
            entities.append(replace(entity, start=start, end=free))
            confidence.append(sure)
    return Prediction(entities=tuple(entities), confidence=tuple(confidence))


def _chunks(tokens: Sequence[str]) -> Iterator[list[str]]:
    """Yield groups of tokens that probably had no blank between them in the original text."""
    chunk: list[str] = []
    for token in tokens:
        if chunk and not _glued(chunk[-1], token):
            yield chunk
            chunk = []
        chunk.append(token)
    if chunk:
        yield chunk


def _glued(left: str, right: str) -> bool:
    clitic = right == "n't" or (right[0] in _APOSTROPHES and right[1:].isalpha())
    return right[0] in _CLOSE or left[-1] in _OPEN or clitic or (in_unspaced(left[-1]) and in_unspaced(right[0]))


def _borders(chunks: Sequence[Sequence[str]]) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield (keys, weight) of each border between two pieces: weight > 0 inside a token, < 0 between tokens."""
    for i, tokens in enumerate(chunks):
        after = chunks[i + 1] if i + 1 < len(chunks) else None
        pieces, ends = _pieces("".join(tokens)), {*accumulate(map(len, tokens))}
        for k, at in enumerate(accumulate(map(len, pieces[:-1])), 1):
            yield _keys(pieces, k, "" if after else _END), -1.0 if at in ends else 1.0
        if after and not (tokens[-1][-1].isalnum() and after[0][0].isalnum()):
            yield _keys([*pieces, *_pieces("".join(after))], len(pieces)), -_DOUBTFUL


def _telling(borders: Iterable[Sequence[str]], rules: Mapping[str, bool]) -> dict[str, bool]:
    """Return the rules that decide at least one border differently from all less specific rules."""
    telling: dict[str, bool] = {}
    for keys in borders:
        joined = False
        for key in reversed(keys):
            if rules.get(key, joined) != joined:
                joined = telling[key] = rules[key]
    return telling


def _shared(tokens: Sequence[str], others: Sequence[str]) -> int:
    """Return the number of tokens that two tokenisations of one text have in common."""
    ends, of_others = (accumulate(map(len, each), initial=0) for each in (tokens, others))
    return len({*pairwise(ends)} & {*pairwise(of_others)})


def _pieces(chunk: str) -> list[str]:
    """Return the pieces of a text: the tokens of `tokenize`, but "don" before "'t" is split into "do" and "n".

    Rules can then join "n", "'" and "t" to the token "n't".
    """
    pieces = list(tokenize(chunk))
    for i in range(len(pieces) - 2, 0, -1):
        verb = pieces[i - 1]
        if pieces[i] in _APOSTROPHES and pieces[i + 1] == "t" and verb[-1] == "n" and len(verb) > 1:
            pieces[i - 1 : i] = [verb[:-1], "n"]
    return pieces


def _keys(pieces: Sequence[str], i: int, end: str = "") -> tuple[str, ...]:
    """Return the keys of the border before piece `i`, the most specific key first.

    1. The two pieces at the border, unless one is a number.
    2. The kinds of the two pieces on each side, with short words unchanged.
    3. The same kinds, but short words are also replaced by their kind.
    4. The kinds of the two pieces at the border.
    """
    left, right = pieces[i - 1], pieces[i]
    around = (pieces[i - 2] if i > 1 else "", left, right, pieces[i + 1] if i + 1 < len(pieces) else end)
    fine, (a, b, c, d) = [_kind(piece, 2) for piece in around], [_kind(piece, 0) for piece in around]
    keys = (f"{fine[0]} {fine[1]}|{fine[2]} {fine[3]}", f"{a} {b}|{c} {d}", f"{b}|{c}")
    # The first key is left out for numbers, because all numbers are treated alike.
    return keys if "0" in (b, c) else (f"{left} = {right}", *keys)


def _kind(piece: str, exact: int) -> str:
    """Return the kind of a piece: "0" for digits, "X" for a single capital letter, "w" for a word, else the piece.

    exact: words of up to this many letters are not replaced by "w".
    """
    if piece.isdigit():
        return "0"
    if not piece.isalnum():
        return piece
    if len(piece) == 1 and piece.isupper():
        return "X"
    return piece.lower() if len(piece) <= exact else "w"
