"""Equal samples: so many tokens of every source, drawn by sentence, the same ones for a seed (Dai et al. 2019, 5)."""

from collections.abc import Iterator, Sequence

import numpy as np

from core.corpora.corpus import BLOCK, Corpus
from core.errors import CorpusError
from core.reporter import Reporter
from core.results import IntArray
from core.similarity.base import Sample
from core.text.words import Tokens, cutter


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
    """Sentences of `corpora`, taken together, up to `cap` tokens (None: all), in the order they stand there.

    part: (which, of how many) of these alone; a part may be empty.

    A smaller cap with the same seed draws a part of the same sentences. Every text is cut into tokens by one rule,
    labelled or not, since a measure that compares two corpora must cut both alike (SOURCES.md, Words); the cap
    counts the corpora's own tokens. Errors: CorpusError where no token is left.
    """
    cut = cutter(tokens)
    lengths = [corpus.lengths() for corpus in corpora]
    # Drawn over all corpora at once, so that each has its share by size.
    sizes = np.concatenate(lengths)
    rows = capped(sizes, cap, seed)
    if part:
        rows = stretch(rows, sizes[rows], *part)
    report.stage(f"drawing a sample of {name}")
    sentences = [words for text in _texts(corpora, rows, report) if (words := cut(text.lower() if lowercase else text))]
    n_tokens = sum(map(len, sentences))
    if not (n_tokens or part):
        raise CorpusError(f"{name}: no sentence holds a token, so there is nothing to compare; give a corpus of text.")
    whole = len(rows) == sum(map(len, lengths))
    return Sample(name=name, sentences=sentences, n_tokens=n_tokens, seed=seed, whole=whole)


def _texts(corpora: Sequence[Corpus], rows: IntArray, report: Reporter) -> Iterator[str]:
    """The texts of `rows`, counted over all corpora, ascending."""
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
    """`(k,)` rows, ascending, of the first sentences of a shuffle that hold at most `cap` tokens; at least one."""
    if cap is None or int(lengths.sum(dtype=np.int64)) <= cap:
        return np.arange(len(lengths))
    # A shuffle cut short, not a draw of n: a smaller cap then gives a part of the larger sample.
    order = np.random.default_rng(seed).permutation(len(lengths))
    n = int(np.searchsorted(np.cumsum(lengths[order], dtype=np.int64), cap, side="right"))
    # One at least, though it is longer than the cap.
    return np.sort(order[: max(n, 1)])


def stretch(rows: IntArray, lengths: IntArray, which: int, of: int) -> IntArray:
    """The rows of one of `of` stretches of about equally many tokens; neighbours, so documents, stay in one.

    lengths: tokens of each of `rows`. which: from 0. The stretches are disjoint and make up `rows`.
    """
    before = np.cumsum(lengths, dtype=np.int64) - lengths
    inside: IntArray = np.flatnonzero(before * of // max(int(lengths.sum(dtype=np.int64)), 1) == which)
    return np.asarray(rows[inside])
