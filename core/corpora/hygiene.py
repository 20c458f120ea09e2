"""Flag sentences that a selection should not take: duplicates, test leaks, and too short or too long sentences.

Nothing is deleted.

Two texts are exact duplicates if their folded texts are equal, ignoring blanks (see `fold` in `core.text.words`). They
are near duplicates if one of two rules holds (SOURCES.md, Near duplicates):
- Both have at most 60 words, and their edit similarity in words is at least .9.
- Their sets of word 5-grams have a Jaccard similarity of at least .8.
If one text has fewer than ten words and the other fewer than twelve, they are also compared by letters. They are near
duplicates if their edit similarity in letters is at least .9, and if they have the same numbers.

Some scripts have no blanks between words (Han, Kana, Thai, Lao, Khmer, Myanmar). In these scripts, the rules count
letters instead of words. One letter counts as a word for 5-grams and for the limits on length. Two letters count as a
word for quotations, and five for the rule on short sentences. A change of one letter is always found: by edit
similarity in texts of up to 49 letters, and by 5-grams in longer texts.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from core.corpora.corpus import BLOCK, Corpus, blocks
from core.corpora.edit_similarity import LONGEST, PAYS, SIMILARITY, near_texts
from core.corpora.grams import HASH_BITS, Lookup, Ragged, UIntArray, WordHasher, Words, text_keys
from core.corpora.near import Pairs, near_sets
from core.files import read_back, read_json
from core.processes import in_processes
from core.reporter import Reporter, Silent
from core.results import BoolArray, IntArray
from core.text.words import fold, joined, letters, numbers, tokenize, unspaced

# A sentence of fewer than 10 words has too few 5-grams, and is compared by letters.
SHORT = 10
# A near duplicate of a short sentence may have up to 11 words: fewer than SHORT + 2.
_MORE = 2
# Sentences of more than 60 words need no comparison by words: one changed word leaves their Jaccard at .8 or more.
_MANY = 60
_SHINGLE = 5
_LETTERS_A_WORD = 5
# Each rule is (number of consecutive words that are a quotation, minimum and maximum number of words in the held-out
# sentence, True for scripts without blanks). A held-out sentence of 8 to 12 words does not have 13 words, so 8 are
# enough. Shorter held-out sentences are not tested for quotations, because they share common phrases with many texts
# (SOURCES.md, Leaks).
_QUOTATIONS = ((13, 13, None, False), (8, 8, 12, False), (26, 26, None, True), (16, 16, 25, True))

# (numbers of all sentences in one array, count of numbers per sentence)
Rows = tuple[npt.NDArray[np.unsignedinteger], IntArray]
# Files of an audit.
MASK, CLUSTER, ABOUT = "mask.npy", "cluster.npy", "audit.json"
# Bit i of a row's mask is FLAGS[i].
FLAGS = ("exact_duplicate", "near_duplicate", "leak", "too_short", "too_long")


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Keys, counts and hashes of `n` sentences.

    keys: (n,), equal for exact duplicates. n_words: (n,), number of words; five letters of a script without blanks
    count as a word. n_tokens: (n,), number of tokens of a sentence in a script without blanks, -1 for other sentences.
    quoting: (n,), mask of sentences that quote a held-out sentence. shingles: hashes of 5-grams, ascending. words:
    hashes of words. letters: code points of short sentences.
    """

    keys: UIntArray
    n_words: npt.NDArray[np.int32]
    n_tokens: npt.NDArray[np.int32]
    quoting: BoolArray
    shingles: Rows
    words: Rows
    letters: Rows


@dataclass(slots=True)
class Reading:
    """Computes the `Numbers` of blocks of sentences.

    Held-out sentences are read first, because other sentences may quote them.
    """

    lookups: Mapping[int, Lookup] = field(default_factory=dict)
    hasher: WordHasher = field(default_factory=WordHasher)

    def numbers(self, texts: Sequence[str]) -> tuple[Numbers, dict[int, UIntArray]]:
        """Return the `Numbers` of a block of sentences.

        For held-out sentences, also return {n: hashes of the word n-grams that detect a quotation}, else {}.
        """
        folded = [fold(text) for text in texts]
        whole = [joined(text) for text in folded]
        words = self.hasher(folded)
        n_letters = np.fromiter(map(letters, whole), np.int64, len(whole))
        n_words = words.counts - n_letters + n_letters // _LETTERS_A_WORD
        dense = n_letters > words.counts - n_letters
        # In scripts without blanks, remove the blanks that `fold` puts between letters. With these blanks, texts would
        # be twice as long, and a changed letter would count half as much.
        lines = [one if is_dense else text for one, text, is_dense in zip(whole, folded, dense.tolist(), strict=True)]
        n_tokens = (len(tokenize(text)) if unspaced(text) else -1 for text in texts)
        numbers = Numbers(
            # A text without words (for example a row of dashes) has its original text as key. Only equal texts are then
            # its duplicates.
            keys=text_keys([one or text for one, text in zip(whole, texts, strict=True)]),
            n_words=n_words.astype(np.int32),
            n_tokens=np.fromiter(n_tokens, np.int32, len(texts)),
            quoting=self._quotes(words, dense),
            shingles=_shingle_sets(words),
            words=_middling(words, dense),
            letters=_short_texts(lines, n_words),
        )
        return numbers, {} if self.lookups else _stretches(words, dense)

    def _quotes(self, words: Words, dense: BoolArray) -> BoolArray:
        """Return a mask (n,) of rows that quote a held-out sentence. dense: mask of rows in scripts without blanks."""
        hit = np.zeros(len(words.counts), np.bool_)
        for n, *_, of_letters in _QUOTATIONS:
            if n in self.lookups and (dense == of_letters).any():
                grams, row = words.grams(n)
                hit[row[self.lookups[n].holds(grams) & (dense[row] == of_letters)]] = True
        return hit


def _stretches(words: Words, dense: BoolArray) -> dict[int, UIntArray]:
    stretches = {}
    for n, least, most, of_letters in _QUOTATIONS:
        grams, row = words.grams(n)
        size = words.counts[row]
        stretches[n] = grams[(size >= least) & (size <= (most or size)) & (dense[row] == of_letters)]
    return stretches


def _shingle_sets(words: Words) -> tuple[UIntArray, IntArray]:
    """Return the distinct word 5-grams of each sentence, ascending, and their count per sentence."""
    grams, row = words.grams(_SHINGLE)
    # Keep the upper 40 bits. Any 40 bits would do, because every word affects all bits of the hash.
    key = np.sort(row.astype(np.uint64) << np.uint64(HASH_BITS) | grams >> np.uint64(64 - HASH_BITS))
    # Each key is compared with the key before it. The first key is compared with a value that no key has (all bits
    # set), so it is kept.
    key = key[np.diff(key, prepend=~np.uint64(0)) != 0]
    counts = np.bincount((key >> np.uint64(HASH_BITS)).astype(np.int64), minlength=len(words.counts))
    return key & np.uint64((1 << HASH_BITS) - 1), counts


def _middling(words: Words, dense: BoolArray) -> tuple[npt.NDArray[np.uint32], IntArray]:
    """Return 32-bit word hashes of sentences with 9 to `_MANY` words; other sentences get an empty row.

    dense: mask of sentences in scripts without blanks, which get an empty row too. One in four billion pairs of
    different words has equal hashes.
    """
    # The minimum is nine, because a near duplicate of a sentence of ten words may lack one word.
    kept = (words.counts >= SHORT - 1) & (words.counts <= _MANY) & ~dense
    values = words.hashes[np.repeat(kept, words.counts)] >> np.uint64(32)
    return values.astype(np.uint32), np.where(kept, words.counts, 0)


def _short_texts(folded: Sequence[str], n_words: IntArray) -> tuple[npt.NDArray[np.uint32], IntArray]:
    """Return the code points of short texts: fewer than 12 words, and at most `LONGEST` letters.

    Other texts get an empty row. n_words: number of words per text.
    """
    lengths = np.fromiter(map(len, folded), np.int64, len(folded))
    # Include slightly longer texts, because a near duplicate of a short text may have an inserted word.
    kept = (n_words < SHORT + _MORE) & (lengths <= LONGEST)
    text = "".join(text for text, keep in zip(folded, kept.tolist(), strict=True) if keep)
    return np.frombuffer(text.encode("utf-32-le"), "<u4"), np.where(kept, lengths, 0)


@dataclass(slots=True, kw_only=True)
class Findings:
    flags: tuple[BoolArray, BoolArray, BoolArray]  # masks of exact duplicates, near duplicates and leaks
    cluster: IntArray
    leak_rules: dict[str, int]
    near_rules: dict[str, int]


@dataclass(slots=True)
class Pile:
    """`Numbers` of all sentences, held-out sentences first. Row r of the corpus is row `n_held + r` of this object."""

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
        """Return the `Reading` for the corpus. Call it after all held-out sentences were added."""
        lookups = {n: Lookup(np.concatenate([each[n] for each in self.stretches])) for n in (self.stretches or [{}])[0]}
        return Reading(lookups)

    def add(self, numbers: Numbers) -> None:
        """Add sentences of the corpus."""
        self._add(numbers)
        self.quoting.append(numbers.quoting)
        self.n_tokens.append(numbers.n_tokens)

    def tokens(self, lengths: IntArray) -> IntArray:
        """Return the number of tokens per sentence, shape (n,).

        It is taken from `lengths`, except for sentences in scripts without blanks, whose tokens are counted here.
        """
        counted = np.concatenate(self.n_tokens)
        return np.where(counted < 0, lengths, counted)

    def _add(self, numbers: Numbers) -> None:
        self.keys.append(numbers.keys)
        self.n_words.append(numbers.n_words)
        self.shingles.append(*numbers.shingles)
        self.words.append(*numbers.words)
        self.letters.append(*numbers.letters)

    def settle(self, threshold: float, similarity: float, report: Reporter) -> Findings:
        """Find duplicates and leaks. Call it after all sentences were added.

        threshold: minimum Jaccard of near duplicates. similarity: minimum edit similarity in words.
        """
        for store in (self.shingles, self.words, self.letters):
            store.seal()
        keys, n_words, held = np.concatenate(self.keys), np.concatenate(self.n_words), self.n_held
        first, kind = _first_of_kind(keys[held:])
        # Compare only one of several exact copies: a thousand copies of a disclaimer would be half a million pairs.
        live = np.concatenate([_first_of_kind(keys[:held])[0], held + first])
        leak_near, edited = np.zeros((2, len(keys) - held), np.bool_)
        edges = []
        for rule, pairs in self._near(live, n_words, threshold, similarity, report):
            for i, j in pairs:
                low, high = np.minimum(i, j), np.maximum(i, j)
                leak_near[high[(low < held) & (high >= held)] - held] = True
                # Drop edges to held-out sentences, which must not join two rows of the corpus into one cluster.
                edges.append(np.stack([low, high])[:, low >= held] - held)
                if rule == "edited":
                    edited[edges[-1]] = True
        cluster = _clusters(kind, first, edges)
        rows = np.arange(len(kind))
        leaks = {
            "exact": Lookup(keys[:held]).holds(keys[held:]) if held else np.zeros(len(kind), np.bool_),
            "ngram": np.concatenate(self.quoting),
        }
        # Only the first of several exact copies was compared. Its result applies to the other copies too.
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
        """Yield (rule, pairs): each rule's name and the near duplicates that it finds."""
        yield "overlapping", near_sets(self.shingles, live, threshold, report)
        yield "edited", near_texts(self.words, live, "comparing word by word", report, similarity)
        yield (
            "edited",
            (
                self._of_the_same_numbers(i[few], j[few])
                for i, j in near_texts(self.letters, live, "comparing short sentences", report)
                # Keep pairs in which one sentence has fewer than ten words. Longer sentences are compared by words.
                for few in [np.minimum(n_words[i], n_words[j]) < SHORT]
            ),
        )

    def _of_the_same_numbers(self, i: IntArray, j: IntArray) -> Pairs:
        """Return the pairs of sentences that have the same numbers: "Article 10." is not "Article 12."."""
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
    """Return the first row of each distinct key, and the index of each row's key, shape (n,)."""
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    return first, kind


def _clusters(kind: IntArray, first: IntArray, edges: Sequence[IntArray]) -> IntArray:
    """Return the first row of each row's cluster, shape (n,).

    kind, first: see `_first_of_kind`. edges: near duplicates as pairs of rows, shape (2, m).
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = np.concatenate([np.zeros((2, 0), np.int64), *edges], axis=1)
    left, right = kind[pairs]
    graph = coo_array((np.ones(len(left), np.bool_), (left, right)), shape=(len(first), len(first)))
    _, group = connected_components(graph, directed=False)
    # The number of a cluster is its first row, the only row of the cluster that is not flagged as a duplicate.
    head = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(head, group, first)
    return head[group][kind]


def counted_once(mask: IntArray, flags: Sequence[str] = FLAGS) -> dict[str, int]:
    """Count the rows per flag, each row under its first flag only: leak first, then in the order of `flags`.

    The counts add up to the number of flagged rows, and every leak is counted as a leak.
    """
    rest, counts = mask, dict.fromkeys(flags, 0)
    for flag in sorted(flags, key=lambda flag: flag != "leak"):
        holds = (rest & np.uint8(1 << FLAGS.index(flag))) != 0
        counts[flag] = int(holds.sum())
        rest = rest[~holds]
    return counts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audit:
    """Flags and clusters of a corpus, row by row.

    corpus: fingerprint of the corpus. mask: (n,) uint8; bit i is set if `FLAGS[i]` applies. An exact duplicate is never
    also flagged as a near duplicate. cluster: (n,) int64, first row of each row's cluster of exact and near duplicates;
    this first row is not flagged as a duplicate. leak_rules: {rule: number of leaks that it found}, with the rules
    exact, ngram (quotation) and near; `ngram` and one other rule may find the same row. near_rules: {rule: number of
    near duplicates}, with the rules edited (few words or letters differ) and overlapping (only the 5-grams are
    similar).
    """

    corpus: str
    mask: npt.NDArray[np.uint8]
    cluster: IntArray
    leak_rules: Mapping[str, int]
    near_rules: Mapping[str, int]

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of rows per flag; a row may have several flags."""
        return {flag: int(self.has(flag).sum()) for flag in FLAGS}

    def has(self, flag: str) -> BoolArray:
        """Return a mask of the rows with `flag`, shape (n,)."""
        flagged: BoolArray = (self.mask & (1 << FLAGS.index(flag))) != 0
        return flagged

    def save(self, folder: Path) -> None:
        """Write `mask.npy`, `cluster.npy` and, last, `audit.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / MASK, self.mask, allow_pickle=False)
        np.save(folder / CLUSTER, self.cluster, allow_pickle=False)
        rules = {"leak_rules": dict(self.leak_rules), "near_rules": dict(self.near_rules)}
        about = {"corpus": self.corpus, **rules, "flags": self.counts}
        (folder / ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the audit that `save` wrote."""
        with read_back(folder, ABOUT, MASK, CLUSTER):
            about = read_json(folder / ABOUT)
            mask, cluster = (np.load(folder / name, allow_pickle=False) for name in (MASK, CLUSTER))
            near = about.get("near_rules", {})  # missing in audits by older versions
            leaks = about["leak_rules"]
            return cls(corpus=about["corpus"], mask=mask, cluster=cluster, leak_rules=leaks, near_rules=near)


def audit(
    corpus: Corpus,
    held_out: Sequence[Corpus],
    report: Reporter,
    *,
    min_tokens: int = 5,
    max_tokens: int = 128,
    near_threshold: float = 0.8,
    near_words: float = SIMILARITY,
) -> Audit:
    """Flag the rows of `corpus`.

    held_out: dev and test sets. A row is a leak if it is an exact or near duplicate of a held-out sentence, or shares
    13 consecutive words with one. For held-out sentences of 8 to 12 words, 8 consecutive words are enough. In scripts
    without blanks, twice as many letters are needed. min_tokens, max_tokens: sentences with fewer or more tokens are
    flagged as too short or too long. near_threshold: minimum Jaccard of near duplicates. near_words: minimum edit
    similarity in words of near duplicates.

    If the corpus has at least `PAYS` sentences, one process per core reads and compares them.

    Memory: about 300 MB per process, and 150 bytes per sentence. Temporary disk space: about 14 bytes per word.
    """
    with closing(Pile()) as pile:
        report.stage("reading held-out sentences")
        first = Reading()
        for split in held_out:
            for texts in _texts(split):
                report.check()
                pile.hold(texts, first)
        report.stage("reading sentences")
        parts = [(start, min(start + BLOCK, len(corpus))) for start in range(0, len(corpus), BLOCK)]
        work, pays = partial(_numbers, corpus, pile.reading()), len(corpus) >= PAYS
        with closing(in_processes(work, parts, report, pays=pays)) as found:
            for (_, done), numbers in zip(parts, found, strict=True):
                pile.add(numbers)
                report.progress(done, len(corpus), "sentences")
        tokens = pile.tokens(corpus.lengths())
        findings = pile.settle(near_threshold, near_words, report)
    flags = np.stack((*findings.flags, tokens < min_tokens, tokens > max_tokens))
    mask: npt.NDArray[np.uint8] = np.packbits(flags, axis=0, bitorder="little")[0]  # bit i is set if FLAGS[i] applies
    rules = {"leak_rules": findings.leak_rules, "near_rules": findings.near_rules}
    return Audit(corpus=corpus.fingerprint, mask=mask, cluster=findings.cluster, **rules)


def leaks(texts: Sequence[str], held_out: Sequence[Corpus]) -> BoolArray:
    """Return a mask (n,) of the texts that `audit` would flag as leaks. held_out: dev and test sets."""
    with closing(Pile()) as pile:
        first = Reading()
        for split in held_out:
            for block in _texts(split):
                pile.hold(block, first)
        pile.add(pile.reading().numbers(texts)[0])
        return pile.settle(0.8, SIMILARITY, Silent()).flags[FLAGS.index("leak")]


def near_duplicates_of(row: int, audit: Audit, limit: int = 20) -> IntArray:
    """Return up to `limit` exact and near duplicates of `row`, ascending: the other rows of its cluster."""
    rows = np.flatnonzero(audit.cluster == audit.cluster[row])
    others: IntArray = rows[rows != row]
    return others[:limit]


def differing(text: str, other: str, most: int = 3) -> str:
    """Describe up to `most` differences of two texts, as `words -> other words`; "" if they are equal."""
    own, others = tokenize(text), tokenize(other)
    places = [
        f"{' '.join(own[a:b]) or '(nothing)'} -> {' '.join(others[c:d]) or '(nothing)'}"
        # Turn off autojunk, which would ignore words that are frequent in a long text.
        for change, a, b, c, d in SequenceMatcher(None, own, others, autojunk=False).get_opcodes()
        if change != "equal"
    ]
    more = f"; {len(places) - most} more" if len(places) > most else ""
    return "; ".join(places[:most]) + more


def _numbers(corpus: Corpus, reading: Reading, rows: tuple[int, int], _: Reporter) -> Numbers:
    """Return the `Numbers` of some rows of a corpus. rows: the first row, and the row after the last one."""
    return reading.numbers(corpus.texts(*rows))[0]


def _texts(corpus: Corpus) -> Iterator[list[str]]:
    with corpus.opened() as file:
        for table in blocks(file, BLOCK, 0, None, ["text"]):
            yield table.column("text").to_pylist()
