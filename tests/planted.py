"""Sentences with a known answer: contracts are in the domain, recipes are not."""

import random
import zlib
from collections.abc import Sequence

import numpy as np

from core.results import FloatArray

_CONTRACT = (
    ["The supplier", "The buyer", "Either party", "The lessee", "The guarantor", "Harlow Ltd"],
    ["shall deliver", "shall indemnify", "may terminate", "warrants", "shall pay", "assigns"],
    ["the goods", "the other party", "this agreement", "the purchase price", "all notices", "the premises"],
    ["within thirty days", "under clause four", "without prior notice", "as set out in schedule two", "in writing"],
)
_KITCHEN = (
    ["Gently", "Slowly", "Quickly", "With a fork", "Every Sunday my aunt would", "Now"],
    ["stir", "whisk", "bake", "chop", "simmer", "fold in"],
    ["two ripe tomatoes", "the egg whites", "a pinch of salt", "some basil", "the dough", "warm butter"],
    ["until golden", "for ten minutes", "over a low flame", "before the guests arrive", "and taste"],
)


def contracts(n: int, seed: int = 0) -> list[str]:
    return _draw(_CONTRACT, n, seed)


def kitchen(n: int, seed: int = 0) -> list[str]:
    return _draw(_KITCHEN, n, seed)


def _draw(parts: tuple[list[str], ...], n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    every = [f"{a} {b} {c} {d} ." for a in parts[0] for b in parts[1] for c in parts[2] for d in parts[3]]
    return rng.sample(every, n)


def distinct(texts: Sequence[str], seed: int, start: str = "") -> list[str]:
    """Return the texts with three random words each, so that none is a near duplicate. start: of these words."""
    rng = np.random.default_rng(seed)
    words = [[start + "".join(rng.choice(list("abcdefghij"), 6)) for _ in range(3)] for _ in texts]
    return [f"{' '.join(own)} {text}" for own, text in zip(words, texts, strict=True)]


def bag_vectors(texts: Sequence[str], dimension: int = 64) -> tuple[FloatArray, FloatArray]:
    """Return (vectors, norms) of hashed words, which replace an encoder without weights."""
    raw = np.zeros((len(texts), dimension), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            code = zlib.crc32(word.encode())
            raw[row, code % dimension] += 1 if code & (1 << 20) else -1
    norms = np.linalg.norm(raw, axis=1)
    return (raw / np.maximum(norms, 1e-12)[:, None]).astype(np.float16), norms
