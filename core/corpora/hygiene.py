"""Sentences of a corpus that a selection should rather not take: flagged with a reason, never deleted.

Two texts are the same sentence if they fold alike but for blanks (`core.text.words`). They are near duplicates if
their sets of word 5-grams have a Jaccard of at least .8 or, where one has fewer than ten words and the other fewer than
twelve, if their folded texts have an edit similarity of at least .9 (SOURCES.md, Near duplicates).

Where a text is written without blanks between words (Han, Kana, Thai, Lao, Khmer, Myanmar), every letter is a word to
5-grams, to too short and to too long. Five make a word where sentences of few words are told from others: a changed
letter is found by edit similarity below 50 letters, by 5-grams from 49 on. Two make a word of a quotation.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from core.corpora.corpus import BLOCK, SENTENCES, Corpus
from core.corpora.edits import LONGEST, near_texts
from core.corpora.grams import Lookup, Ragged, UIntArray, WordHasher, Words, text_keys
from core.corpora.near import HASH_BITS, near_sets
from core.reporter import Reporter
from core.results import BoolArray, IntArray
from core.text.words import fold, joined, letters, tokenize, unspaced

FLAGS = ("exact_duplicate", "near_duplicate", "leak", "too_short", "too_long")  # bit i of a row's mask

_SHORT = 10  # words; below, 5-grams are too few to compare and characters decide
_MORE = 2  # words that a short sentence's near duplicate may have beyond that
_SHINGLE = 5
_LETTERS_A_WORD = 5
# (n words in a row are a quotation, of held-out sentences of at least, at most so many words, written without blanks).
# A held-out sentence of 8 to 12 words has no 13 in a row, so there 8 decide; what a shorter one shares is a phrase that
# anybody may write (SOURCES.md, Leaks).
_QUOTATIONS = ((13, 13, None, False), (8, 8, 12, False), (26, 26, None, True), (16, 16, 25, True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audit:
    """Flags and clusters of a corpus, row by row.

    corpus: fingerprint of the audited corpus. mask: `(n,)` uint8, bit i set where `FLAGS[i]` holds.
    cluster: `(n,)` int64, the first row of the duplicates (exact and near, in chains) that a row belongs to,
    itself where it has none; that first row is flagged as no duplicate. An exact duplicate of an earlier row is
    not counted as near as well. leak_rules: rows that each rule found, {exact, ngram, near}; exact is not near,
    but a row may break the n-gram rule beside either.
    """

    corpus: str
    mask: npt.NDArray[np.uint8]
    cluster: IntArray
    leak_rules: Mapping[str, int]

    @property
    def counts(self) -> dict[str, int]:
        """Rows a flag; a row may have several."""
        return {flag: int(self.has(flag).sum()) for flag in FLAGS}

    def has(self, flag: str) -> BoolArray:
        """`(n,)` whether a row bears `flag`."""
        flagged: BoolArray = (self.mask & (1 << FLAGS.index(flag))) != 0
        return flagged

    def save(self, folder: Path) -> None:
        """Write `mask.npy`, `cluster.npy` and, last, `audit.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "mask.npy", self.mask, allow_pickle=False)
        np.save(folder / "cluster.npy", self.cluster, allow_pickle=False)
        about = {"corpus": self.corpus, "leak_rules": dict(self.leak_rules), "flags": self.counts}
        (folder / "audit.json").write_text(json.dumps(about, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The audit that `save` wrote."""
        about = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
        mask, cluster = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("mask", "cluster"))
        return cls(corpus=about["corpus"], mask=mask, cluster=cluster, leak_rules=about["leak_rules"])


def audit(
    corpus: Corpus,
    held_out: Sequence[Corpus],
    report: Reporter,
    *,
    min_tokens: int = 5,
    max_tokens: int = 128,
    near_threshold: float = 0.8,
) -> Audit:
    """Flag the rows of `corpus`.

    held_out: labelled splits (dev, test) whose sentences must not be trained on. A row leaks if it is one of theirs,
    shares 13 consecutive words with one (8, where that one has 8 to 12; twice as many letters of a script without
    blanks), or is its near duplicate.
    near_threshold: least Jaccard of near duplicates.

    Memory: about 150 bytes a sentence beside 300 MB; disk, in the temporary folder meanwhile: about 10 bytes a word.
    """
    with closing(_Pile()) as pile:
        report.stage("reading held-out sentences")
        for split in held_out:
            for texts in _blocks(split):
                report.check()
                pile.add(texts, held_out=True)
        report.stage("reading sentences")
        done, lengths = 0, np.array(corpus.lengths())
        for texts in _blocks(corpus):
            report.check()
            pile.add(texts, held_out=False)
            for row, text in enumerate(texts, done):
                if unspaced(text):
                    lengths[row] = len(tokenize(text))
            report.progress(done := done + len(texts), len(corpus), "sentences")
        findings = pile.settle(near_threshold, report)
    flags = (*findings.flags, lengths < min_tokens, lengths > max_tokens)
    mask = np.zeros(len(corpus), np.uint8)
    # In the order of `FLAGS`: a bit's number is the flag's place there.
    for i, bits in enumerate(flags):
        mask |= bits.astype(np.uint8) << np.uint8(i)
    return Audit(corpus=corpus.fingerprint, mask=mask, cluster=findings.cluster, leak_rules=findings.leak_rules)


def near_duplicates_of(row: int, audit: Audit, limit: int = 20) -> IntArray:
    """Up to `limit` other rows of the cluster that `row` belongs to, ascending."""
    rows = np.flatnonzero(audit.cluster == audit.cluster[row])
    others: IntArray = rows[rows != row]
    return others[:limit]


def _blocks(corpus: Corpus) -> Iterator[list[str]]:
    with pq.ParquetFile(corpus.path / SENTENCES) as file:
        for batch in file.iter_batches(BLOCK, columns=["text"]):
            yield batch.column(0).to_pylist()


@dataclass(slots=True, kw_only=True)
class _Findings:
    flags: tuple[BoolArray, BoolArray, BoolArray]  # exact_duplicate, near_duplicate, leak
    cluster: IntArray
    leak_rules: dict[str, int]


@dataclass(slots=True)
class _Pile:
    """Held-out sentences, then the corpus's, as numbers: row r of the corpus is row n_held + r here."""

    hasher: WordHasher = field(default_factory=WordHasher)
    shingles: Ragged = field(default_factory=lambda: Ragged(np.uint64))
    letters: Ragged = field(default_factory=lambda: Ragged(np.uint32))
    keys: list[UIntArray] = field(default_factory=list)
    n_words: list[IntArray] = field(default_factory=list)  # five letters of a script without blanks are one
    n_held: int = 0
    stretches: dict[int, list[UIntArray]] = field(default_factory=lambda: {n: [] for n, *_ in _QUOTATIONS})
    lookups: dict[int, Lookup] = field(default_factory=dict)
    quoting: list[BoolArray] = field(default_factory=list)

    def add(self, texts: Sequence[str], *, held_out: bool) -> None:
        folded = [fold(text) for text in texts]
        whole = [joined(text) for text in folded]
        words = self.hasher(folded)
        n_letters = np.fromiter(map(letters, whole), np.int64, len(whole))
        n_words = words.counts - n_letters + n_letters // _LETTERS_A_WORD
        dense = n_letters > words.counts - n_letters
        # A text without a single word is equal to itself alone, not to every other row of dashes.
        self.keys.append(text_keys([one or text for one, text in zip(whole, texts, strict=True)]))
        self.n_words.append(n_words.astype(np.int32))
        self.shingles.append(*_shingle_sets(words))
        # Blanks that `fold` put between letters would halve the weight of every edit.
        lines = [one if is_dense else text for one, text, is_dense in zip(whole, folded, dense.tolist(), strict=True)]
        self.letters.append(*_short_texts(lines, n_words))
        if held_out:
            self.n_held += len(texts)
            for n, least, most, of_letters in _QUOTATIONS:
                grams, row = words.grams(n)
                size = words.counts[row]
                kept = (size >= least) & (size <= (most or size)) & (dense[row] == of_letters)
                self.stretches[n].append(grams[kept])
        elif self.n_held:
            self.quoting.append(self._quotes(words, dense))

    def settle(self, threshold: float, report: Reporter) -> _Findings:
        """Find duplicates and leaks, once everything has been added."""
        for store in (self.shingles, self.letters):
            store.seal()
        keys, n_words, held = np.concatenate(self.keys), np.concatenate(self.n_words), self.n_held
        first, kind = _first_of_kind(keys[held:])
        # Exact copies are compared once: a page of one disclaimer would else be a million pairs.
        live = np.concatenate([_first_of_kind(keys[:held])[0], held + first])
        leak_near = np.zeros(len(keys) - held, np.bool_)
        edges = []
        for i, j in self._near(live, n_words, threshold, report):
            low, high = np.minimum(i, j), np.maximum(i, j)
            leak_near[high[(low < held) & (high >= held)] - held] = True
            # Edges within the corpus alone: a held-out sentence must not bind two of its rows into one cluster.
            edges.append(np.stack([low, high])[:, low >= held] - held)
        cluster = _clusters(kind, first, edges)
        rows = np.arange(len(kind))
        leaks = {
            "exact": Lookup(keys[:held]).holds(keys[held:]) if held else np.zeros(len(kind), np.bool_),
            "ngram": np.concatenate(self.quoting) if self.quoting else np.zeros(len(kind), np.bool_),
        }
        # Only the first of a kind was compared; its copies leak as it does.
        leaks["near"] = leak_near[first][kind] & ~leaks["exact"]
        exact = first[kind] != rows
        return _Findings(
            flags=(exact, ~exact & (cluster != rows), leaks["exact"] | leaks["ngram"] | leaks["near"]),
            cluster=cluster,
            leak_rules={rule: int(hits.sum()) for rule, hits in leaks.items()},
        )

    def close(self) -> None:
        self.shingles.close()
        self.letters.close()

    def _quotes(self, words: Words, dense: BoolArray) -> BoolArray:
        """`(n,)` whether a row shares a stretch of words with a held-out sentence. dense: written without blanks."""
        hit = np.zeros(len(words.counts), np.bool_)
        for n, *_, of_letters in _QUOTATIONS:
            if n not in self.lookups:
                self.lookups[n] = Lookup(np.concatenate(self.stretches[n]))
            if (dense == of_letters).any():
                grams, row = words.grams(n)
                hit[row[self.lookups[n].holds(grams) & (dense[row] == of_letters)]] = True
        return hit

    def _near(
        self, live: IntArray, n_words: IntArray, threshold: float, report: Reporter
    ) -> Iterator[tuple[IntArray, IntArray]]:
        report.stage("comparing sentences")
        yield from near_sets(self.shingles, live, threshold, report)
        report.stage("comparing short sentences")
        for i, j in near_texts(self.letters, live, report):
            # Two sentences of ten words or more have 5-grams enough and were compared by these.
            short = np.minimum(n_words[i], n_words[j]) < _SHORT
            yield i[short], j[short]


def _shingle_sets(words: Words) -> tuple[UIntArray, IntArray]:
    """Each sentence's word 5-grams, ascending, each once: the members, and how many a sentence."""
    grams, row = words.grams(_SHINGLE)
    # The hash's upper bits: the n-gram's mixing spreads every word over all of them, so any 40 do.
    key = np.sort(row.astype(np.uint64) << np.uint64(HASH_BITS) | grams >> np.uint64(64 - HASH_BITS))
    # All ones are no key, so the first of them is kept.
    key = key[np.diff(key, prepend=~np.uint64(0)) != 0]
    counts = np.bincount((key >> np.uint64(HASH_BITS)).astype(np.int64), minlength=len(words.counts))
    return key & np.uint64((1 << HASH_BITS) - 1), counts


def _short_texts(folded: Sequence[str], n_words: IntArray) -> tuple[npt.NDArray[np.uint32], IntArray]:
    """Code points of each text that has few words; none of the others."""
    lengths = np.fromiter(map(len, folded), np.int64, len(folded))
    # Longer ones may be the near duplicate of a short one: an insertion makes a word more.
    kept = (n_words < _SHORT + _MORE) & (lengths <= LONGEST)
    text = "".join(text for text, keep in zip(folded, kept.tolist(), strict=True) if keep)
    return np.frombuffer(text.encode("utf-32-le"), "<u4"), np.where(kept, lengths, 0)


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
