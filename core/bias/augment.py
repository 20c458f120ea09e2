"""DataAug (Dai and Adel 2020), as Ma et al. 2023 take it from MINER's code (SOURCES.md, DataAug).

Each sentence with an entity gets one copy, with typos in one entity, or with another entity of its type and of similar
spelling in its place.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from math import log
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from core.bias.names import slip
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
    same_name,
    surface,
)
from core.results import IntArray

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Split = Callable[[str], Sequence[tuple[str, str]]]  # pieces of a word: (vocabulary entry, letters in the word)

GUARDED = 0.3  # share of a type's pieces, those of highest PMI with it, that get no typo
NEAREST = 10
LONGEST = 40  # characters compared per name, to bound memory; names differ before that
TRIES = 5  # draws of a mention and a way before a sentence gets no copy
_OUTSIDE = "O"


def dataaug(training: Training, split: Split, seed: int, *, typo_share: float = 0.5) -> Rebuilt:
    """Add one copy per sentence. split: pieces whose letters concatenate to the word. typo_share: probability of typos.

    If the chosen way gives no name the other is tried; a sentence for which neither gives a new copy has none.
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
            kinds = ("typo", "mention") if rng.random() < typo_share else ("mention", "typo")
            for kind in kinds:
                new_name = (
                    with_typos(name, guarded[entity.type], split, rng)
                    if kind == "typo"
                    else spelling.near(name, entity.type, rng)
                )
                if new_name:
                    break
            if new_name and taken.admit((copy := renamed(sentence, {place: new_name})).text):
                edits += edits_of(sentence, copy, [place], row=len(sentences), copy_of=row, kind=kind)
                sentences.append(copy)
                break
    return Rebuilt(sentences=sentences, edits=edits, wanted=len(rows))


def guard(training: Training, split: Split) -> dict[str, set[str]]:
    """Return {type: pieces typical of it, by PMI}; words outside entities are a type too.

    Among pieces of equal PMI the more frequent come first.
    """
    words: dict[str, Counter[str]] = defaultdict(Counter)
    for kind, name in zip(training.kinds, training.names, strict=True):
        words[kind].update(name)
    outside: Counter[str] = Counter()
    for sentence in training.sentences:
        outside.update(sentence.tokens)
        for entity in sentence.entities or ():
            outside.subtract(name_of(sentence, entity))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for kind, of_kind in (*words.items(), (_OUTSIDE, +outside)):
        for word, n in of_kind.items():
            for piece, _ in split(word):
                counts[kind][piece] += n
    total: Counter[str] = sum(counts.values(), Counter())
    n = total.total()

    def best(pieces: Counter[str]) -> list[str]:
        pmi = {piece: log(times * n / (total[piece] * pieces.total())) for piece, times in pieces.items()}
        # Rounded, because equal PMIs may differ in the last bits of the logarithm.
        return sorted(pieces, key=lambda piece: (-round(pmi[piece], 9), -pieces[piece], piece))

    return {kind: set(best(pieces)[: int(GUARDED * len(pieces))]) for kind, pieces in counts.items()}


def by_tokenizer(tokenizer: "PreTrainedTokenizerBase") -> Split:
    """Return a split into the pieces of a fast tokenizer. A word stays whole if the tokenizer drops letters of it."""

    @cache
    def split(word: str) -> Sequence[tuple[str, str]]:
        encoding = tokenizer(word, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        names = tokenizer.convert_ids_to_tokens(encoding["input_ids"])
        pieces = [(name, word[a:b]) for name, (a, b) in zip(names, encoding["offset_mapping"], strict=True)]
        return pieces if "".join(letters for _, letters in pieces) == word else [(word, word)]

    return split


def with_typos(name: Name, guarded: set[str], split: Split, rng: Random) -> Name | None:
    """Return `name` with one typo in each piece that is not guarded; None if that changes nothing."""
    words = tuple(
        "".join(letters if piece in guarded else slip(letters, rng) or letters for piece, letters in split(word))
        for word in name
    )
    return words if words != name else None


class _Spelling:
    """Names of each type, to find those of similar spelling."""

    def __init__(self, training: Training) -> None:
        names: dict[str, set[Name]] = defaultdict(set)
        for name, kind, free in zip(training.names, training.kinds, training.free, strict=True):
            names[kind] |= {name} if free else set()
        self.names = {kind: sorted(names[kind]) for kind in sorted(names)}
        self.letters = {kind: _letters([surface(name) for name in of_kind]) for kind, of_kind in self.names.items()}
        self._nearest = cache(self._find)

    def near(self, name: Name, kind: str, rng: Random) -> Name | None:
        """Return one of the ten names of `kind` nearest to `name`, other than by case; None if there is none."""
        nearest = self._nearest(name, kind)
        return rng.choice(nearest) if nearest else None

    def _find(self, name: Name, kind: str) -> list[Name]:
        distances = levenshtein(surface(name), self.letters[kind])
        nearest: list[Name] = []
        for i in np.argsort(distances, kind="stable").tolist():
            other = self.names[kind][i]
            if not same_name(other, name):
                nearest.append(other)
            if len(nearest) == NEAREST:
                break
        return nearest


def _letters(texts: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Return code points `(l, n)`, one column per text, padded with 0, and lengths `(n,)`."""
    texts = [text[:LONGEST] for text in texts]
    codes = np.zeros((max(map(len, texts), default=1), len(texts)), np.int32)
    for column, text in enumerate(texts):
        codes[: len(text), column] = [ord(letter) for letter in text]
    return codes, np.array([len(text) for text in texts], dtype=np.int64)


def levenshtein(text: str, others: tuple[IntArray, IntArray]) -> IntArray:
    """Return edit distances `(n,)` from `text` to each of `others` (see `_letters`); one table row per letter."""
    codes, lengths = others
    steps = np.arange(len(codes) + 1, dtype=np.int16)[:, None]
    line = np.repeat(steps, len(lengths), axis=1)
    for done, letter in enumerate(text[:LONGEST], 1):
        best = np.minimum(line[1:] + 1, line[:-1] + (codes != ord(letter)))
        line = np.concatenate([np.full((1, len(lengths)), done, np.int16), best])
        line = np.minimum.accumulate(line - steps, axis=0) + steps  # an insertion costs 1 per step
    distances: IntArray = line[lengths, np.arange(len(lengths))]
    return distances
