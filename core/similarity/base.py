"""Interface of similarity measures, and the equal samples that they compare (Dai et al. 2019, 4 and 5).

`fit` and `compare` are separate, because fitting a source takes most of the time, and the result serves every target.
Only `Grid.closeness` flips the signs of values. Everywhere else, `prefer` says if low or high values mean "closer".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from core.config import Config
from core.corpora.corpus import BLOCK, Corpus
from core.errors import CorpusError
from core.reporter import Reporter
from core.results import IntArray, Measurement, Prefer
from core.terms import Term
from core.text.words import Tokens, cutter


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Tokenised sentences drawn from one or several corpora; no sentence is empty.

    name: name of the source or target. seed: seed of the random sample. whole: True if the sample contains every
    sentence of its corpora.
    """

    name: str
    sentences: Sequence[Sequence[str]]
    n_tokens: int
    seed: int
    whole: bool


class Measure(Protocol):
    """A measure of how close a source is to a target.

    term: name and definition. prefer: "low" if low values mean "closer", else "high". summary: what the measure
    compares, in a sentence for pages. looks_at: the same in one or two words. columns: {name of a further value in
    `Measurement.columns`: its definition}.
    """

    name: ClassVar[str]
    term: ClassVar[Term]
    unit: ClassVar[str]
    prefer: ClassVar[Prefer]
    summary: ClassVar[str]
    looks_at: ClassVar[str]
    columns: ClassVar[Mapping[str, str]]
    Options: ClassVar[type[Config]]

    def __init__(self, options: Any, *, seed: int, vocabulary_size: int) -> None:
        """Prepare the measure.

        options: an instance of `Options`. vocabulary_size: number of distinct tokens of all sources and targets.
        """

    def fit(self, source: Sample, report: Reporter) -> Any:
        """Return a model of the source for `compare`. Errors: CorpusError if the source is too small."""

    def compare(self, learnt: Any, target: Sample, report: Reporter) -> Measurement:
        """Return the value of the measure for a fitted source and a target.

        learnt: result of `fit` for the source; it is not changed. Errors: CorpusError if there is nothing to compare.
        """


def measurement(measure: Measure, value: float, *, convention: str, columns: Mapping[str, float | None]) -> Measurement:
    """Return a value of a measure as a `Measurement`, with the measure's name, unit and direction."""
    return Measurement(
        name=measure.name,
        unit=measure.unit,
        prefer=measure.prefer,
        value=value,
        convention=convention,
        columns=dict(columns),
    )


def draw(
    corpora: Sequence[Corpus],
    *,
    name: str,
    cap: int | None,
    seed: int,
    tokens: Tokens,
    lowercase: bool,
    report: Reporter,
    part: tuple[int, int] | None = None,
) -> Sample:
    """Pool corpora, draw sentences at random up to a number of tokens, and return them in the order of the corpora.

    name: name of the sample. cap: maximum number of tokens, counted as stored in the corpora; None: all. part: (index,
    number of parts) to return only one contiguous part of the drawn sentences; this part may be empty. With a smaller
    cap and the same seed, a subset of the same sentences is drawn. Errors: CorpusError if no token is left.

    All texts, labelled or not, are tokenised by one rule, because both sides of a comparison must be tokenised alike
    (SOURCES.md, Words).
    """
    cut = cutter(tokens)
    # Draw from all corpora at once, so that each contributes in proportion to its size.
    sizes = np.concatenate([corpus.lengths() for corpus in corpora])
    rows = capped(sizes, cap, seed)
    if part:
        rows = stretch(rows, sizes[rows], *part)
    report.stage(f"drawing a sample of {name}")
    sentences = [words for text in _texts(corpora, rows, report) if (words := cut(text.lower() if lowercase else text))]
    n_tokens = sum(map(len, sentences))
    if not (n_tokens or part):
        raise CorpusError(
            f"{name}: no sentence contains a token, so there is nothing to compare; give a corpus of text."
        )
    return Sample(name=name, sentences=sentences, n_tokens=n_tokens, seed=seed, whole=len(rows) == len(sizes))


def _texts(corpora: Sequence[Corpus], rows: IntArray, report: Reporter) -> Iterator[str]:
    """Yield the texts of some rows of the concatenated corpora. rows: ascending row numbers."""
    start = n_read = 0
    for corpus in corpora:
        own_rows = rows[(rows >= start) & (rows < start + len(corpus))] - start
        start += len(corpus)
        for first in range(0, len(own_rows), BLOCK):
            report.check()
            report.progress(n_read, len(rows), "sentences")
            block = own_rows[first : first + BLOCK]
            yield from (sentence.text for sentence in corpus.take(block))
            n_read += len(block)


def capped(lengths: IntArray, cap: int | None, seed: int) -> IntArray:
    """Draw rows at random, up to `cap` tokens, and return them ascending, `(k,)`; at least one row is drawn.

    Return all rows if `cap` is None or large enough. lengths: number of tokens of each row.
    """
    if cap is None or int(lengths.sum(dtype=np.int64)) <= cap:
        return np.arange(len(lengths))
    # Take the beginning of a random order, so that a smaller cap gives a subset of the larger sample.
    order = np.random.default_rng(seed).permutation(len(lengths))
    n = int(np.searchsorted(np.cumsum(lengths[order], dtype=np.int64), cap, side="right"))
    # Take at least one row, even if it is longer than the cap.
    return np.sort(order[: max(n, 1)])


def stretch(rows: IntArray, lengths: IntArray, which: int, of: int) -> IntArray:
    """Divide rows into contiguous parts with about equally many tokens, and return the rows of one part.

    lengths: number of tokens of each row. which: index of the part, from 0. of: number of parts. Parts are contiguous
    to keep the sentences of a document together.
    """
    before = np.cumsum(lengths, dtype=np.int64) - lengths
    inside: IntArray = np.flatnonzero(before * of // max(int(lengths.sum(dtype=np.int64)), 1) == which)
    return np.asarray(rows[inside])
