"""DataAug (Dai and Adel 2020), as Ma et al. 2023 have it from MINER's code: one copy of each sentence with an entity,
with typos in one entity or with one entity for another of its type that is spelt like it (SOURCES.md, DataAug)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from math import log
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from core.bias.result import Edit
from core.bias.training_sentences import (
    Name,
    Rebuilt,
    Taken,
    Training,
    edits_of,
    name_of,
    ordered,
    renamed,
    surface,
)
from core.bias.typos import slip
from core.results import IntArray

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Split = Callable[[str], Sequence[tuple[str, str]]]  # a word's pieces: as the vocabulary has them, their letters in it

GUARDED = 0.3  # of a type's pieces, those of the highest PMI with it, take no typo
NEAREST = 10
LONGEST = 40  # characters by which names are compared: a bound on memory, longer names differ before it
TRIES = 5  # draws of a mention and a way before a sentence goes without a copy
_OUTSIDE = "O"


def dataaug(training: Training, split: Split, seed: int, *, typo_share: float = 0.5) -> Rebuilt:
    """split: pieces, whose letters together are the word. typo_share: chance of typos in place of another name.

    Where the one cannot be done the other is; a sentence for which neither makes a new one has no copy.
    """
    rng = Random(seed)
    guarded = guard(training, split)
    spelling = _Spelling(training)
    sentences, edits = list(training.sentences), list[Edit]()
    taken = Taken((sentence.text for sentence in sentences), training.closed)
    rows = training.by_row(np.flatnonzero(training.free).tolist())
    for row in rows:
        sentence = training.sentences[row]
        for _ in range(TRIES):
            place = rng.randrange(len(sentence.entities or ()))
            entity = ordered(sentence)[place]
            name = name_of(sentence, entity)
            ways: dict[str, Callable[[], Name | None]] = {
                "typo": lambda: with_typos(name, guarded[entity.type], split, rng),  # noqa: B023  called at once
                "mention": lambda: spelling.near(name, entity.type, rng),  # noqa: B023
            }
            first = "typo" if rng.random() < typo_share else "mention"
            kind, new_name = _first_done(ways, first)
            if new_name and taken.admit((copy := renamed(sentence, {place: new_name})).text):
                edits += edits_of(sentence, copy, [place], row=len(sentences), copy_of=row, kind=kind)
                sentences.append(copy)
                break
    return Rebuilt(sentences=sentences, edits=edits, wanted=len(rows))


def _first_done(ways: Mapping[str, Callable[[], Name | None]], first: str) -> tuple[str, Name | None]:
    """The way taken and the name it gives: `first`, or another one where that gives none; ("", None) if none does."""
    for way in (first, *(way for way in ways if way != first)):
        if name := ways[way]():
            return way, name
    return "", None


def guard(training: Training, split: Split) -> dict[str, set[str]]:
    """{type: pieces typical of it, which take no typo}; words outside entities are a type too.

    Of pieces with the same PMI the more frequent count first.
    """
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for kind, words in chain(_named(training), _outside(training)):
        for word, n in words.items():
            for piece, _ in split(word):
                counts[kind][piece] += n
    total: Counter[str] = sum(counts.values(), Counter())
    n = total.total()

    # Rounded before sorting: equal PMIs leave log with different last bits, and the order would hang on them.
    def best(pieces: Counter[str]) -> list[str]:
        pmi = {piece: log(times * n / (total[piece] * pieces.total())) for piece, times in pieces.items()}
        # Rounded: of pieces that differ in the last digits alone the commoner one comes first.
        return sorted(pieces, key=lambda piece: (-round(pmi[piece], 9), -pieces[piece], piece))

    return {kind: set(best(pieces)[: int(GUARDED * len(pieces))]) for kind, pieces in counts.items()}


def _named(training: Training) -> Iterable[tuple[str, Mapping[str, int]]]:
    words: dict[str, Counter[str]] = defaultdict(Counter)
    for kind, name in zip(training.kinds, training.names, strict=True):
        words[kind].update(name)
    return words.items()


def _outside(training: Training) -> Iterable[tuple[str, Mapping[str, int]]]:
    words: Counter[str] = Counter()
    for sentence in training.sentences:
        words.update(sentence.tokens)
        for entity in sentence.entities or ():
            words.subtract(name_of(sentence, entity))
    return [(_OUTSIDE, +words)]


def by_tokenizer(tokenizer: "PreTrainedTokenizerBase") -> Split:
    """The pieces of a fast tokenizer; a word of which it drops letters is one piece."""

    @cache
    def split(word: str) -> Sequence[tuple[str, str]]:
        encoding = tokenizer(word, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        names = tokenizer.convert_ids_to_tokens(encoding["input_ids"])
        pieces = [(name, word[a:b]) for name, (a, b) in zip(names, encoding["offset_mapping"], strict=True)]
        return pieces if "".join(letters for _, letters in pieces) == word else [(word, word)]

    return split


def with_typos(name: Name, guarded: set[str], split: Split, rng: Random) -> Name | None:
    """`name` with one edit in every piece that is not guarded; None where that changes nothing."""
    words = tuple(
        "".join(letters if piece in guarded else slip(letters, rng) or letters for piece, letters in split(word))
        for word in name
    )
    return words if words != name else None


class _Spelling:
    """The names of each type, and how alike they are spelt."""

    def __init__(self, training: Training) -> None:
        self.names: dict[str, list[Name]] = {}
        for kind in sorted(set(training.kinds)):
            own_names = {
                name
                for name, name_kind, free in zip(training.names, training.kinds, training.free, strict=True)
                if name_kind == kind and free
            }
            self.names[kind] = sorted(own_names)
        self.letters = {kind: _letters([surface(name) for name in names]) for kind, names in self.names.items()}
        self._nearest = cache(self._find)

    def near(self, name: Name, kind: str, rng: Random) -> Name | None:
        """One of the ten names of `kind` that are nearest to `name`, another in any case; None if there is none."""
        nearest = self._nearest(name, kind)
        return rng.choice(nearest) if nearest else None

    def _find(self, name: Name, kind: str) -> list[Name]:
        distances = levenshtein(surface(name), self.letters[kind])
        nearest: list[Name] = []
        for i in np.argsort(distances, kind="stable").tolist():
            other = self.names[kind][i]
            if surface(other).casefold() != surface(name).casefold():
                nearest.append(other)
            if len(nearest) == NEAREST:
                break
        return nearest


def _letters(texts: Sequence[str]) -> tuple[IntArray, IntArray]:
    """`(l, n)` code points, a column a text, 0 behind its end; `(n,)` lengths."""
    texts = [text[:LONGEST] for text in texts]
    codes = np.zeros((max(map(len, texts), default=1), len(texts)), np.int32)
    for column, text in enumerate(texts):
        codes[: len(text), column] = [ord(letter) for letter in text]
    return codes, np.array([len(text) for text in texts], dtype=np.int64)


def levenshtein(text: str, others: tuple[IntArray, IntArray]) -> IntArray:
    """`(n,)` edits from `text` to each of `others` (see `_letters`), all at once: one line of the table a letter."""
    codes, lengths = others
    steps = np.arange(len(codes) + 1, dtype=np.int16)[:, None]
    line = np.repeat(steps, len(lengths), axis=1)
    for done, letter in enumerate(text[:LONGEST], 1):
        best = np.minimum(line[1:] + 1, line[:-1] + (codes != ord(letter)))
        line = np.concatenate([np.full((1, len(lengths)), done, np.int16), best])
        line = np.minimum.accumulate(line - steps, axis=0) + steps  # an insertion costs one a step
    distances: IntArray = line[lengths, np.arange(len(lengths))]
    return distances
