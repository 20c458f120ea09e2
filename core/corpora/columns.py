"""Whole columns of a corpus, kept in memory for the next question, and searching them."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.corpora.corpus import Corpus, Library
from core.results import IntArray
from core.text.words import clean


def stored(corpus: Corpus, name: str) -> pa.ChunkedArray:
    """A corpus's column whole (`text`, `doc`, `id`, `n_tokens`), the last few kept: 130 MB a million texts."""
    return _column(corpus.path.parents[1], corpus.fingerprint, name)


@lru_cache(maxsize=12)
def _column(home: Path, fingerprint: str, name: str) -> pa.ChunkedArray:
    return Library(home).find(fingerprint).column(name)


def placed(corpus: Corpus) -> bool:
    """Whether its sentences know their file."""
    return int(stored(corpus, "file").null_count) < len(corpus)


def matches(texts: pa.ChunkedArray, query: str, mode: Literal["substring", "words"]) -> IntArray:
    """Rows whose text holds `query` (substring), or all of its words whole and in any order (words); any case."""
    query = clean(query)
    needles = query.split() if mode == "words" else [query]
    rows = np.arange(len(texts))
    for needle in filter(None, needles):
        hit = pc.match_substring(texts, needle, ignore_case=True)
        kept = np.flatnonzero(hit.to_numpy())
        rows, texts = rows[kept], texts.take(pa.array(kept))
        if mode == "words":
            pattern = rf"(?i)(^|[^\pL\pN_]){re.escape(needle)}($|[^\pL\pN_])"
            kept = np.flatnonzero(pc.match_substring_regex(texts, pattern).to_numpy())
            rows, texts = rows[kept], texts.take(pa.array(kept))
    return rows if query else rows[:0]
