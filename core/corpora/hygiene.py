"""Sentences of a corpus that a selection should rather not take: flagged with a reason, never deleted.

Two texts are the same sentence if they fold alike but for blanks (`core.text.words`). They are near duplicates if
they are the same but for a tenth of their words, up to 60 of them (edit similarity of at least .9), or their sets of
word 5-grams have a Jaccard of at least .8. Where one has fewer than ten words and the other fewer than twelve, letters
decide, by an edit similarity of at least .9 (SOURCES.md, Near duplicates).

Where a text is written without blanks between words (Han, Kana, Thai, Lao, Khmer, Myanmar), every letter is a word to
5-grams, to too short and to too long. Five make a word where sentences of few words are told from others: a changed
letter is found by edit similarity below 50 letters, by 5-grams from 49 on. Two make a word of a quotation.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from core.corpora.corpus import BLOCK, Corpus
from core.corpora.edit_similarity import SIMILARITY
from core.corpora.pile import Pile, Reading
from core.corpora.table import blocks
from core.files import read_back, read_json
from core.reporter import Reporter
from core.results import BoolArray, IntArray
from core.text.words import tokenize

MASK, CLUSTER, ABOUT = "mask.npy", "cluster.npy", "audit.json"  # files of an audit
FLAGS = ("exact_duplicate", "near_duplicate", "leak", "too_short", "too_long")  # bit i of a row's mask


def counted_once(mask: IntArray, flags: Sequence[str] = FLAGS) -> dict[str, int]:
    """Return the number of rows per flag, each row under one flag: leak first, then in the order of `flags`.

    The counts add up to the flagged rows. The number of leaks is that of all leaks, whatever else is flagged.
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

    corpus: fingerprint of the audited corpus. mask: `(n,)` uint8, bit i set where `FLAGS[i]` holds.
    cluster: `(n,)` int64, the first row of the duplicates (exact and near, in chains) that a row belongs to,
    itself where it has none; that first row is flagged as no duplicate. An exact duplicate of an earlier row is
    not counted as near as well. leak_rules: rows that each rule found, {exact, ngram, near}; exact is not near,
    but a row may break the n-gram rule beside either. near_rules: near duplicates by rule, {edited, overlapping}:
    another sentence but for a few words or letters, or alike in 5-grams alone.
    """

    corpus: str
    mask: npt.NDArray[np.uint8]
    cluster: IntArray
    leak_rules: Mapping[str, int]
    near_rules: Mapping[str, int]

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
        np.save(folder / MASK, self.mask, allow_pickle=False)
        np.save(folder / CLUSTER, self.cluster, allow_pickle=False)
        rules = {"leak_rules": dict(self.leak_rules), "near_rules": dict(self.near_rules)}
        about = {"corpus": self.corpus, **rules, "flags": self.counts}
        (folder / ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The audit that `save` wrote."""
        with read_back(folder, ABOUT, MASK, CLUSTER):
            about = read_json(folder / ABOUT)
            mask, cluster = (np.load(folder / name, allow_pickle=False) for name in (MASK, CLUSTER))
            near = about.get("near_rules", {})  # those of older versions have none
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

    held_out: labelled splits (dev, test) whose sentences must not be trained on. A row leaks if it is one of theirs,
    shares 13 consecutive words with one (8, where that one has 8 to 12; twice as many letters of a script without
    blanks), or is its near duplicate.
    near_threshold: least Jaccard of near duplicates. near_words: their least edit similarity, of words.

    Memory: about 150 bytes a sentence beside 300 MB; disk, in the temporary folder meanwhile: about 14 bytes a word.
    """
    with closing(Pile()) as pile:
        report.stage("reading held-out sentences")
        first = Reading()
        for split in held_out:
            for texts in _texts(split):
                report.check()
                pile.hold(texts, first)
        report.stage("reading sentences")
        reading, done = pile.reading(), 0
        for texts in _texts(corpus):
            report.check()
            pile.add(reading.numbers(texts)[0])
            done += len(texts)
            report.progress(done, len(corpus), "sentences")
        tokens = pile.tokens(corpus.lengths())
        findings = pile.settle(near_threshold, near_words, report)
    mask = _bits((*findings.flags, tokens < min_tokens, tokens > max_tokens))
    rules = {"leak_rules": findings.leak_rules, "near_rules": findings.near_rules}
    return Audit(corpus=corpus.fingerprint, mask=mask, cluster=findings.cluster, **rules)


def _bits(flags: Sequence[BoolArray]) -> npt.NDArray[np.uint8]:
    """One byte a row out of flags in the order of `FLAGS`: a bit's number is the flag's place there."""
    bits: npt.NDArray[np.uint8] = np.packbits(np.stack(flags), axis=0, bitorder="little")[0]
    return bits


def near_duplicates_of(row: int, audit: Audit, limit: int = 20) -> IntArray:
    """Up to `limit` other rows of the cluster that `row` belongs to, ascending."""
    rows = np.flatnonzero(audit.cluster == audit.cluster[row])
    others: IntArray = rows[rows != row]
    return others[:limit]


def differing(text: str, other: str, most: int = 3) -> str:
    """The words by which one text differs from another, `own -> the other's`, at most so many places: "" for none."""
    own, others = tokenize(text), tokenize(other)
    places = [
        f"{' '.join(own[a:b]) or '(nothing)'} -> {' '.join(others[c:d]) or '(nothing)'}"
        # Without autojunk, which would pass over words that a long text has often.
        for change, a, b, c, d in SequenceMatcher(None, own, others, autojunk=False).get_opcodes()
        if change != "equal"
    ]
    more = f"; {len(places) - most} more" if len(places) > most else ""
    return "; ".join(places[:most]) + more


def _texts(corpus: Corpus) -> Iterator[list[str]]:
    with corpus.opened() as file:
        for table in blocks(file, BLOCK, 0, None, ["text"]):
            yield table.column("text").to_pylist()
