"""Duplicates and leaks among the sentences of a corpus and of what is held out from it, by the rules of `hygiene`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from core.corpora.candidate_pairs import Pairs
from core.corpora.edit_similarity import near_texts
from core.corpora.grams import Lookup, Ragged, UIntArray
from core.corpora.near import near_sets
from core.corpora.numbers import SHORT, Numbers, Reading
from core.reporter import Reporter
from core.results import BoolArray, IntArray
from core.text.words import numbers


@dataclass(slots=True, kw_only=True)
class Findings:
    flags: tuple[BoolArray, BoolArray, BoolArray]  # exact_duplicate, near_duplicate, leak
    cluster: IntArray
    leak_rules: dict[str, int]
    near_rules: dict[str, int]


@dataclass(slots=True)
class Pile:
    """Held-out sentences, then the corpus's, as numbers: row r of the corpus is row n_held + r here."""

    shingles: Ragged = field(default_factory=lambda: Ragged(np.uint64))
    words: Ragged = field(default_factory=lambda: Ragged(np.uint32))
    letters: Ragged = field(default_factory=lambda: Ragged(np.uint32))
    keys: list[UIntArray] = field(default_factory=list)
    n_words: list[npt.NDArray[np.int32]] = field(default_factory=list)
    n_tokens: list[npt.NDArray[np.int32]] = field(default_factory=list)
    n_held: int = 0
    stretches: list[dict[int, UIntArray]] = field(default_factory=list)
    quoting: list[BoolArray] = field(default_factory=list)

    def hold(self, texts: Sequence[str], reading: Reading) -> None:
        """Add held-out sentences."""
        numbers, stretches = reading.numbers(texts)
        self.stretches.append(stretches)
        self._add(numbers)
        self.n_held += len(texts)

    def reading(self) -> Reading:
        """Reading of the corpus, once all that is held out has been added."""
        lookups = {n: Lookup(np.concatenate([each[n] for each in self.stretches])) for n in (self.stretches or [{}])[0]}
        return Reading(lookups)

    def add(self, numbers: Numbers) -> None:
        """Add sentences of the corpus."""
        self._add(numbers)
        self.quoting.append(numbers.quoting)
        self.n_tokens.append(numbers.n_tokens)

    def tokens(self, lengths: IntArray) -> IntArray:
        """`(n,)` how long the corpus's sentences are: its own count, but of scripts without blanks."""
        counted = np.concatenate(self.n_tokens)
        return np.where(counted < 0, lengths, counted)

    def _add(self, numbers: Numbers) -> None:
        self.keys.append(numbers.keys)
        self.n_words.append(numbers.n_words)
        self.shingles.append(*numbers.shingles)
        self.words.append(*numbers.words)
        self.letters.append(*numbers.letters)

    def settle(self, threshold: float, similarity: float, report: Reporter) -> Findings:
        """Find duplicates and leaks, once everything has been added."""
        for store in (self.shingles, self.words, self.letters):
            store.seal()
        keys, n_words, held = np.concatenate(self.keys), np.concatenate(self.n_words), self.n_held
        first, kind = _first_of_kind(keys[held:])
        # Exact copies are compared once: a page of one disclaimer would else be a million pairs.
        live = np.concatenate([_first_of_kind(keys[:held])[0], held + first])
        leak_near, edited = np.zeros((2, len(keys) - held), np.bool_)
        edges = []
        for rule, pairs in self._near(live, n_words, threshold, similarity, report):
            for i, j in pairs:
                low, high = np.minimum(i, j), np.maximum(i, j)
                leak_near[high[(low < held) & (high >= held)] - held] = True
                # Edges within the corpus alone: a held-out sentence must not bind two of its rows into one cluster.
                edges.append(np.stack([low, high])[:, low >= held] - held)
                if rule == "edited":
                    edited[edges[-1]] = True
        cluster = _clusters(kind, first, edges)
        rows = np.arange(len(kind))
        leaks = {
            "exact": Lookup(keys[:held]).holds(keys[held:]) if held else np.zeros(len(kind), np.bool_),
            "ngram": np.concatenate(self.quoting),
        }
        # Only the first of a kind was compared; its copies leak as it does.
        leaks["near"] = leak_near[first][kind] & ~leaks["exact"]
        exact = first[kind] != rows
        near = ~exact & (cluster != rows)
        return Findings(
            flags=(exact, near, leaks["exact"] | leaks["ngram"] | leaks["near"]),
            cluster=cluster,
            leak_rules={rule: int(hits.sum()) for rule, hits in leaks.items()},
            near_rules={"edited": int((near & edited).sum()), "overlapping": int((near & ~edited).sum())},
        )

    def close(self) -> None:
        for store in (self.shingles, self.words, self.letters):
            store.close()

    def _near(
        self, live: IntArray, n_words: IntArray, threshold: float, similarity: float, report: Reporter
    ) -> Iterator[tuple[str, Iterator[Pairs]]]:
        """Yield each rule and the near pairs that it finds."""
        yield "overlapping", near_sets(self.shingles, live, threshold, report)
        yield "edited", near_texts(self.words, live, "comparing word by word", report, similarity)
        yield (
            "edited",
            (
                self._of_the_same_numbers(i[few], j[few])
                for i, j in near_texts(self.letters, live, "comparing short sentences", report)
                # Of two sentences of ten words or more, words decide.
                for few in [np.minimum(n_words[i], n_words[j]) < SHORT]
            ),
        )

    def _of_the_same_numbers(self, i: IntArray, j: IntArray) -> Pairs:
        """Pairs of short sentences without those that differ in a number: "Article 10." is not "Article 12."."""
        rows, place = np.unique(np.concatenate([i, j]), return_inverse=True)
        points, counts = self.letters.gather(rows)
        text, ends = points.astype("<u4").tobytes().decode("utf-32-le"), np.cumsum(counts)
        kinds = dict[tuple[str, ...], int]()
        kind_of_row = [
            kinds.setdefault(numbers(text[start:end]), len(kinds))
            for start, end in zip((ends - counts).tolist(), ends.tolist(), strict=True)
        ]
        kind = np.array(kind_of_row, np.int64)[place]
        same = kind[: len(i)] == kind[len(i) :]
        return i[same], j[same]


def _first_of_kind(keys: UIntArray) -> tuple[IntArray, IntArray]:
    """The first row of each distinct key, and `(n,)` which of them a row is like."""
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    return first, kind


def _clusters(kind: IntArray, first: IntArray, edges: Sequence[IntArray]) -> IntArray:
    """`(n,)` the first row of each row's cluster: kinds joined by `edges` `(2, m)`, which name first rows."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = np.concatenate([np.zeros((2, 0), np.int64), *edges], axis=1)
    left, right = kind[pairs]
    graph = coo_array((np.ones(len(left), np.bool_), (left, right)), shape=(len(first), len(first)))
    _, group = connected_components(graph, directed=False)
    # The earliest row stands for its cluster: whoever keeps one of each keeps the first that was met.
    head = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(head, group, first)
    return head[group][kind]
