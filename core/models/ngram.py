"""The n-gram language model: interpolated modified Kneser-Ney with KenLM's conventions (SOURCES.md, Kneser-Ney)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise, repeat
from typing import Self

import numpy as np
import numpy.typing as npt

from core.errors import ConfigError, CorpusError
from core.models.kneser_ney import BOS, EOS, FALLBACK, UNK, Discounts, Ids, NgramTable, fit_tables, word_bits
from core.reporter import Reporter, Silent
from core.results import IntArray

RESERVED = {"<s>": BOS, "<unk>": UNK, "</s>": EOS}
# Number of sentences that are read at a time.
_READ = 10_000
# Number of tokens that are scored at a time.
_SCORED = 1 << 19

_Float64 = npt.NDArray[np.float64]
_Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NgramScores:
    """Scores of `n` sentences under a model, in the order of the sentences.

    log10: log10 P of the sentence with its `</s>`. oov_log10: the part of log10 that comes from unknown words. tokens,
    oov: number of tokens and of unknown tokens, without `</s>`. All have shape `(n,)`.
    """

    log10: _Float64
    oov_log10: _Float64
    tokens: _Int64
    oov: _Int64

    def perplexities(self, *, count_end: bool = True, exclude_oov: bool = False) -> _Float64:
        """Return P^(-1/N) of each sentence of N tokens, `(n,)`; NaN if N is 0.

        A low value means that the sentence is close to the model's text. count_end: True to count `</s>` in N, as KenLM
        does; P always includes the probability of `</s>`. exclude_oov: True to leave unknown words out of P and N, but
        not out of the contexts of other words.
        """
        return _perplexity(*self._parts(count_end, exclude_oov))

    def corpus_perplexity(self, *, count_end: bool = True, exclude_oov: bool = False) -> float:
        """Return 10^(-sum of log10 P / sum of N), with options as in `perplexities`."""
        log10, n = self._parts(count_end, exclude_oov)
        return float(_perplexity(log10.sum(), n.sum()))

    def _parts(self, count_end: bool, exclude_oov: bool) -> tuple[_Float64, _Int64]:
        log10 = self.log10 - self.oov_log10 if exclude_oov else self.log10
        return log10, self.tokens + count_end - (self.oov if exclude_oov else 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KneserNey:
    """A fitted n-gram model.

    vocabulary: word -> id, including `<s>`, `<unk>` and `</s>`. tables: one per order, from unigrams up. discounts:
    (D1, D2, D3+) per order; empty if the model was read from a file. fallback_orders: orders that use the discounts
    0.5, 1 and 1.5, because the corpus is too small to estimate them.
    """

    vocabulary: dict[str, int]
    tables: tuple[NgramTable, ...]
    discounts: tuple[Discounts, ...] = ()
    fallback_orders: tuple[int, ...] = ()

    @classmethod
    def fit(
        cls,
        sentences: Iterable[Sequence[str]],
        *,
        order: int = 5,
        vocabulary_size: int | None = None,
        report: Reporter | None = None,
    ) -> Self:
        """Return a model fitted on sentences of tokens, which are read only once.

        The tokens `<s>`, `</s>` and `<unk>` are skipped, as by `lmplz --skip_symbols`. An empty sentence counts as
        `<s> </s>`. vocabulary_size: size V of a vocabulary shared with other models, counting `<unk>` and `</s>` but
        not `<s>`; unigrams interpolate with the uniform probability 1/V. Default: the corpus's own size. Errors:
        CorpusError if there is no token, ConfigError for a wrong order or if V is below the corpus's own size.
        """
        if order < 1:
            raise ConfigError(f"order: {order} is not an n-gram length; give 1 or more, for example 5.")
        report = report or Silent()
        vocabulary, ids, lengths = _encode(sentences, report)
        if not len(ids):
            raise CorpusError("The corpus has no tokens, so no n-gram model can be fitted; give sentences of words.")
        own = len(vocabulary) - 1
        if vocabulary_size is not None and vocabulary_size < own:
            raise ConfigError(
                f"vocabulary_size: {vocabulary_size} is less than the {own} words of the corpus; "
                "give the size of a vocabulary that contains all of these words."
            )
        words, _ = _frame(ids, lengths)
        del ids, lengths
        tables, formed = fit_tables(
            words, n_words=own + 1, order=order, vocabulary_size=vocabulary_size or own, report=report
        )
        return cls(
            vocabulary=vocabulary,
            tables=tuple(tables),
            discounts=tuple(discounts or FALLBACK for discounts in formed),
            fallback_orders=_fallback_orders(formed, report),
        )

    @property
    def order(self) -> int:
        """The n of the longest n-grams."""
        return len(self.tables)

    def score(self, sentences: Sequence[Sequence[str]], *, report: Reporter | None = None) -> NgramScores:
        """Return the scores of sentences of tokens. The tokens `<s>`, `</s>` and `<unk>` count as unknown words."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        log10, oov_log10 = np.zeros(len(sentences)), np.zeros(len(sentences))
        oov = np.zeros(len(sentences), np.int64)
        for start, stop in _blocks(lengths + 2):
            if report is not None:
                report.check()
            sizes = lengths[start:stop]
            words, starts = _frame(self._ids(sentences[start:stop], int(sizes.sum())), sizes)
            by_word = self._log10_by_word(words)
            unknown = words == UNK
            log10[start:stop] = np.add.reduceat(by_word, starts)
            oov_log10[start:stop] = np.add.reduceat(np.where(unknown, by_word, 0), starts)
            oov[start:stop] = np.add.reduceat(unknown, starts, dtype=np.int64)
        return NgramScores(log10=log10, oov_log10=oov_log10, tokens=lengths, oov=oov)

    def perplexities(self, sentences: Sequence[Sequence[str]], *, count_end: bool = True) -> _Float64:
        """Return the perplexity of each sentence, `(n,)`; see `NgramScores.perplexities`."""
        return self.score(sentences).perplexities(count_end=count_end)

    def prob(self, word: str, context: Sequence[str] = ()) -> float:
        """Return P(word | context).

        Here `<s>`, `</s>` and `<unk>` are the reserved tokens. Only the last `order - 1` words of the context are used.
        """
        spelled = [*context[max(0, len(context) - self.order + 1) :], word]
        words = np.fromiter((self.vocabulary.get(token, UNK) for token in spelled), np.int32, len(spelled))
        return float(10 ** self._log10_by_word(words)[-1])

    def _ids(self, sentences: Sequence[Sequence[str]], size: int) -> Ids:
        ids = np.fromiter(map(self.vocabulary.get, chain.from_iterable(sentences), repeat(UNK)), np.int32, size)
        ids[ids <= EOS] = UNK
        return ids

    def _log10_by_word(self, words: Ids) -> _Float64:
        """Return log10 P of each word given the words before it, `(len(words),)`; P of `<s>` counts as 1.

        Contexts are looked up in the order of their first word, so that consecutive look-ups read nearby rows of a
        table.
        """
        bits = word_bits(len(self.vocabulary))
        # Add a position after the last word, at which no n-gram ends.
        words = np.append(words, BOS)
        log10 = self.tables[0].log_probs[words].astype(np.float64)
        # Positions where a context of this order ends.
        ends = np.argsort(words[:-1])
        # Rows of these contexts in this order's table.
        rows: IntArray = words[ends].astype(np.int64)
        # True at positions where a known n-gram of this order ends.
        seen = np.ones(len(words), np.bool_)
        for lower, upper in pairwise(self.tables):
            places = ends + 1
            log10[places] += lower.backoffs[rows]
            likely = seen[places]  # the table has an n-gram only if the next lower order has its suffix
            places = places[likely]
            hit, rows = upper.find(rows[likely] << bits | words[places])
            ends = places[hit]
            log10[ends] = upper.log_probs[rows]
            seen[:] = False
            seen[ends] = True
        return log10[:-1]


def _fallback_orders(formed: Sequence[Discounts | None], report: Reporter) -> tuple[int, ...]:
    """Return the orders, from 1, that use the fallback discounts, and report them."""
    fallback = tuple(n for n, discounts in enumerate(formed, 1) if discounts is None)
    if fallback:
        orders = ", ".join(map(str, fallback))
        report.note(f"The corpus is too small to estimate the discounts of order {orders}; 0.5, 1 and 1.5 are used.")
    return fallback


def _encode(sentences: Iterable[Sequence[str]], report: Reporter) -> tuple[dict[str, int], Ids, Ids]:
    """Return the vocabulary in order of appearance, token ids `(t,)` and sentence lengths `(n,)`.

    Tokens that are spelled like a reserved token (`<s>`, `<unk>`, `</s>`) are left out.
    """
    growing: defaultdict[str, int] = defaultdict(None, RESERVED)
    growing.default_factory = growing.__len__
    ids, lengths = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    source = iter(sentences)
    while block := list(islice(source, _READ)):
        report.check()
        sizes = np.fromiter(map(len, block), np.int32, len(block))
        tokens = np.fromiter(map(growing.__getitem__, chain.from_iterable(block)), np.int32, int(sizes.sum()))
        kept = tokens > EOS
        before = np.append(0, np.cumsum(kept))
        ids.append(tokens[kept])
        lengths.append(np.diff(before[np.append(0, np.cumsum(sizes))]).astype(np.int32))
    return dict(growing), np.concatenate(ids), np.concatenate(lengths)


def _frame(ids: Ids, lengths: IntArray) -> tuple[Ids, _Int64]:
    """Return the sentences as `<s> ... </s>`, one after another, and the start of each sentence."""
    ends = np.cumsum(lengths + 2, dtype=np.int64)
    starts = ends - lengths - 2
    inside = np.ones(len(ids) + 2 * len(lengths), np.bool_)
    inside[starts] = inside[ends - 1] = False
    words = np.full(len(inside), EOS, np.int32)
    words[starts] = BOS
    words[inside] = ids
    return words, starts


def _blocks(sizes: _Int64) -> Iterator[tuple[int, int]]:
    """Yield start and stop of groups of sentences that have about `_SCORED` words each."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _SCORED, side="right")))
        yield start, stop
        start = stop


def _perplexity(log10: _Float64, n: _Int64) -> _Float64:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(n > 0, 10.0 ** (-log10 / n), np.nan)
