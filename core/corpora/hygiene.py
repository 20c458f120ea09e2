"""Flags for sentences that a selection should not take: duplicates, leaks, too short, too long. Nothing is deleted.

Two texts are exact duplicates if they fold to the same text, blanks aside (`core.text.words`). They are near duplicates
if at most a tenth of up to 60 words differ (edit similarity of at least .9), or if their sets of word 5-grams have a
Jaccard of at least .8. If one has fewer than ten words and the other fewer than twelve, letters decide instead, with an
edit similarity of at least .9 (SOURCES.md, Near duplicates).

In a script without blanks between words (Han, Kana, Thai, Lao, Khmer, Myanmar), 5-grams and the limits on length count
every letter as a word. The limit for short sentences counts five letters as a word: edit similarity finds a changed
letter below 50 letters, 5-grams find it from 49 on. Quotations count two letters as a word.
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

    The counts add up to the number of flagged rows, and every leak counts as a leak.
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

    corpus: fingerprint of the corpus. mask: (n,) uint8; bit i is set if `FLAGS[i]` applies. cluster: (n,) int64, the
    first row of the chain of exact and near duplicates around a row, or the row itself; that first row is not flagged
    as a duplicate. An exact duplicate is never also flagged as near. leak_rules: rows found by each rule, {exact,
    ngram, near}; a row may be found by `ngram` and by one of the others. near_rules: near duplicates by rule: edited
    (few words or letters differ), overlapping (only the 5-grams are similar).
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

    held_out: dev and test sets. A row leaks if it equals one of their sentences, is its near duplicate, or shares 13
    consecutive words with it (8 if that sentence has 8 to 12 words; twice as many letters in scripts without blanks).
    near_threshold: minimum Jaccard of near duplicates. near_words: minimum edit similarity of words.

    Memory: about 300 MB and 150 bytes per sentence. Temporary disk space: about 14 bytes per word.
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
    flags = np.stack((*findings.flags, tokens < min_tokens, tokens > max_tokens))
    mask: npt.NDArray[np.uint8] = np.packbits(flags, axis=0, bitorder="little")[0]  # bit i is FLAGS[i]
    rules = {"leak_rules": findings.leak_rules, "near_rules": findings.near_rules}
    return Audit(corpus=corpus.fingerprint, mask=mask, cluster=findings.cluster, **rules)


def near_duplicates_of(row: int, audit: Audit, limit: int = 20) -> IntArray:
    """Return up to `limit` other rows of the cluster of `row`, ascending."""
    rows = np.flatnonzero(audit.cluster == audit.cluster[row])
    others: IntArray = rows[rows != row]
    return others[:limit]


def differing(text: str, other: str, most: int = 3) -> str:
    """Describe up to `most` differences of two texts, as `own words -> other words`; "" for none."""
    own, others = tokenize(text), tokenize(other)
    places = [
        f"{' '.join(own[a:b]) or '(nothing)'} -> {' '.join(others[c:d]) or '(nothing)'}"
        # autojunk would ignore words that are frequent in a long text.
        for change, a, b, c, d in SequenceMatcher(None, own, others, autojunk=False).get_opcodes()
        if change != "equal"
    ]
    more = f"; {len(places) - most} more" if len(places) > most else ""
    return "; ".join(places[:most]) + more


def _texts(corpus: Corpus) -> Iterator[list[str]]:
    with corpus.opened() as file:
        for table in blocks(file, BLOCK, 0, None, ["text"]):
            yield table.column("text").to_pylist()
