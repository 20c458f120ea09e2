"""Load whole columns of a corpus, cache them in memory, and search the texts."""

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.results import IntArray
from core.text.words import clean

SAMPLE = 10_000  # number of texts in which the words of a query are counted, to find the rarest word


def stored(corpus: Corpus, name: str) -> pa.ChunkedArray:
    """Return a whole column, for example `text`, `doc`, `id` or `n_tokens`.

    The 12 most recently used columns are cached. A text column takes about 130 MB per million texts.
    """
    return _column(corpus.path.parents[1], corpus.fingerprint, name)


@lru_cache(maxsize=12)
def _column(home: Path, fingerprint: str, name: str) -> pa.ChunkedArray:
    return Library(home).find(fingerprint).column(name)


def value_names(corpus: Corpus) -> list[str]:
    """Return the names of the further columns that the corpus keeps from the imported file, in alphabetical order."""
    return _value_names(corpus.path.parents[1], corpus.fingerprint)


@lru_cache(maxsize=12)
def _value_names(home: Path, fingerprint: str) -> list[str]:
    with_values = Library(home).find(fingerprint).column("columns")
    if with_values.null_count == len(with_values):
        return []
    return sorted({str(name) for part in with_values.chunks for name in pc.unique(part.keys).to_pylist()})


def values(corpus: Corpus, name: str) -> pa.ChunkedArray:
    """Return the values of a further column (see `value_names`) as strings, shape (n,); null if missing."""
    return _values(corpus.path.parents[1], corpus.fingerprint, name)


@lru_cache(maxsize=12)
def _values(home: Path, fingerprint: str, name: str) -> pa.ChunkedArray:
    whole = Library(home).find(fingerprint).column("columns")
    return pa.chunked_array([pc.map_lookup(part, name, "first") for part in whole.chunks], pa.string())


def kept_values(corpus: Corpus, name: str) -> pa.ChunkedArray:
    """Return the values of `doc`, `group`, `file` or a further column as strings, shape (n,); null if missing.

    A further column of the imported file may be named `doc`, `group` or `file` too. Its values are returned if the
    corpus has no documents, groups or files.
    """
    if name in ("doc", "group", "file") and int((own := stored(corpus, name)).null_count) < len(corpus):
        return own
    return values(corpus, name)


def unique(corpus: Corpus, name: str) -> list[str | None]:
    """Return the distinct values of a column (see `kept_values`), in order of occurrence; None for missing values."""
    found: list[str | None] = pc.unique(kept_values(corpus, name)).to_pylist()
    return found


def distinct_values(corpus: Corpus, name: str) -> set[str]:
    """Return the distinct values of a further column (see `value_names`), without missing values."""
    return {str(value) for value in pc.unique(values(corpus, name)).to_pylist() if value is not None}


def placed(corpus: Corpus) -> bool:
    """Return True if at least one sentence of the corpus has the name of its file."""
    return int(stored(corpus, "file").null_count) < len(corpus)


def kept_names(corpus: Corpus) -> tuple[str, ...]:
    """Return those of the columns doc, group and file that have at least one value, and page if file has values."""
    held = [name for name in ("doc", "group", "file") if int(stored(corpus, name).null_count) < len(corpus)]
    return (*held, "page") if "file" in held else tuple(held)


def column_names(corpus: Corpus) -> list[str]:
    """Return the columns to filter or group by: doc, group and file unless they are empty, and all further columns."""
    kept = [name for name in kept_names(corpus) if name != "page"]
    return [*kept, *(name for name in value_names(corpus) if name not in kept)]


def matches(texts: pa.ChunkedArray, query: str, mode: Literal["substring", "words"]) -> IntArray:
    """Return the rows whose text matches `query`, ignoring case.

    mode: "substring" finds texts with the whole query; "words" finds texts with all words of the query, in any order.
    Each core searches a part of the texts, because one core would take more than 0.3 s for a million texts.
    """
    query = clean(query)
    if not query or not len(texts):
        return np.empty(0, dtype=np.int64)
    tests = _tests(query.split() if mode == "words" else [query], texts.slice(0, SAMPLE), whole=mode == "words")
    # Divide the texts into slices. A whole column is a single chunk, which only one core would search.
    cores = os.cpu_count() or 1
    size = -(-len(texts) // cores)
    starts = range(0, len(texts), size)
    with ThreadPoolExecutor(cores) as pool:
        held = pool.map(lambda start: _passing(texts.slice(start, size), tests), starts)
        return np.concatenate([start + rows for start, rows in zip(starts, held, strict=True)])


def _tests(needles: Sequence[str], sample: pa.ChunkedArray, *, whole: bool) -> list[tuple[str, bool]]:
    """Return the tests that a text must pass, fastest first, as (string, True to find it only as a whole word).

    A whole-word test takes three times as long as a substring test. Substring tests therefore come first, rarest string
    first. If `whole`, strings in at least half of the sample get no substring test, because it would exclude few texts.
    needles: searched strings. sample: texts in which they are counted. whole: True to match whole words only.
    """
    held = {needle: pc.mean(_holds(sample, needle)).as_py() or 0.0 for needle in needles}
    rarest = sorted(held, key=held.__getitem__)
    seen = [(needle, False) for needle in rarest if not whole or held[needle] < 0.5]
    return seen + [(needle, True) for needle in rarest if whole]


def _passing(texts: pa.ChunkedArray, tests: Sequence[tuple[str, bool]]) -> IntArray:
    """Return the indices of the texts that pass all tests, ascending. tests: see `_tests`."""
    rows = np.arange(len(texts))
    for needle, alone in tests:
        hit = _holds(texts, needle, alone=alone)
        rows, texts = rows[hit.to_numpy()], texts.filter(hit)
    return rows


def _holds(texts: pa.ChunkedArray, needle: str, *, alone: bool = False) -> pa.ChunkedArray:
    """Return a mask (n,) of texts that contain `needle`, ignoring case. alone: True to match whole words only."""
    if alone:
        return pc.match_substring_regex(texts, rf"(?i)(?:^|[^\pL\pN_]){re.escape(needle)}(?:$|[^\pL\pN_])")
    return pc.match_substring(texts, needle, ignore_case=True)
