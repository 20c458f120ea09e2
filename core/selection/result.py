"""Results of `score` and `select` runs: read them, select from them and export S_C, without loading a model.

artifacts/ of score   scores.npy  (n,) float64, NaN if a sentence could not be scored or a cascade left it out
                      order.npy   (m,) int64, scored rows, best first
                      model.npz   arrays that explain a score (see `selection.why`)
artifacts/ of select  rows.npy    (k,) int64, rows of D_C in rank order
                      order.npy   as for `score`, if diversity changed the order
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor
from pathlib import Path
from typing import Self, TypedDict

import numpy as np

from core.config import Budget
from core.corpora.columns import kept_names, value_names
from core.corpora.corpus import BLOCK, Corpus
from core.corpora.hygiene import FLAGS, Audit
from core.corpora.library import Library
from core.corpora.writers import Format, Row, format_of, further_names, spare_readme, write_card, write_selection
from core.errors import ConfigError
from core.files import read_back
from core.importing.result import read_audit
from core.results import BoolArray, FloatArray, IntArray, Prefer, Scores, Selection
from core.runs.result import read as read_result
from core.runs.store import Run
from core.selection.choice import Edits
from core.selection.choose import choose
from core.selection.evidence import Arrays
from core.shown import count

_SELECTED = "selected.parquet"
_SCORES, _ORDER, _LEARNT, _ROWS = "scores.npy", "order.npy", "model.npz", "rows.npy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """Summary of a `cascade` run: what it embedded, and which selections can use its scores.

    within: largest number of sentences that may be selected; 0 if the cascade was not used. withheld: flags that
    withhold a sentence. embedded: number of D_C's sentences with a vector. trial: size of the random sample. selected:
    number of the sample's sentences that the exact scores select. missed: number of selected sentences of the sample
    that the ranking leaves out. bound: lower bound of the share of the exact selection that was embedded. why: reason
    why the cascade was not used.
    """

    within: int
    withheld: Sequence[str]
    embedded: int = 0
    trial: int = 0
    selected: int = 0
    missed: int = 0
    bound: float = 0.0
    why: str = ""

    def in_words(self, n: int) -> str:
        """Return a description of the cascade for users. n: number of D_C's sentences."""
        if not self.within:
            return f"The cascade was not used, and every sentence was embedded: {self.why}."
        return (
            f"Cascade: {self.embedded:,} of {count(n, 'sentence')} ({self.embedded / n:.1%}) were embedded; a quick "
            "ranking by words and static vectors left out the others. With 95% confidence, at least "
            f"{floor(1000 * self.bound) / 10:.1f}% of the exact selection was embedded. This bound comes from a random "
            f"sample of {self.trial:,}: the exact scores select {self.selected:,} of them, and the ranking left out "
            f"{self.missed:,} of these."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreResult:
    """Result of a `score` or a `cascade` run.

    unit: unit of the scores. prefer: "high" or "low", the better scores. scored: number of D_C's sentences. made_by:
    ids of the runs that the scores depend on, by kind of run; for embeddings the key is `embed <role>`. These runs
    trained models, embedded or tagged sentences, or computed scores of other strategies.
    cascade: summary of the cascade, if this is the result of a `cascade` run.
    """

    strategy: str
    unit: str
    prefer: Prefer
    scored: int
    made_by: Mapping[str, Sequence[str]]
    cascade: Cascade | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectResult:
    """Result of a `select` run.

    selected, of: number of sentences of S_C and of D_C. tokens: number of tokens of S_C. dropped: {flag: number of
    sentences that it withheld}. corpus: fingerprint of S_C. score_run, audit_run: ids of the runs that computed the
    scores and the flags.
    """

    strategy: str
    selected: int
    of: int
    tokens: int
    dropped: Mapping[str, int]
    corpus: str
    score_run: str
    audit_run: str


def withheld_flags(keep: Sequence[str]) -> tuple[str, ...]:
    """Return the flags that withhold a sentence: all except `keep`. Errors: ConfigError for an unknown flag."""
    if unknown := sorted(set(keep) - set(FLAGS)):
        raise ConfigError(f"keep: {unknown[0]!r} is not a flag; the flags are {', '.join(FLAGS)}.")
    return tuple(flag for flag in FLAGS if flag not in keep)


def write(run: Run, values: FloatArray, order: IntArray, learnt: Arrays) -> None:
    """Store the results of a `score` run: scores, order of the rows, and arrays that explain a score."""
    np.save(run.artifacts / _SCORES, values)
    write_order(run, order)
    # No pickles, because loading a pickle from a forged project would run its code.
    np.savez(run.artifacts / _LEARNT, allow_pickle=False, **learnt)


def write_order(run: Run, order: IntArray) -> None:
    """Write the scored rows, best first. A `select` run with diversity writes the re-ordered rows."""
    np.save(run.artifacts / _ORDER, order)


def write_rows(run: Run, rows: IntArray) -> None:
    """Write the rows that a `select` run selected, in rank order."""
    np.save(run.artifacts / _ROWS, rows)


def read_values(score_run: Run) -> FloatArray:
    """Return the scores of D_C, shape (n,)."""
    with read_back(path := score_run.artifacts / _SCORES):
        values: FloatArray = np.load(path)
        return values


def read_learnt(score_run: Run) -> Arrays:
    """Return the arrays that the strategy learnt, by name; {} for runs of older versions, which stored none."""
    if not (path := score_run.artifacts / _LEARNT).exists():
        return {}
    with read_back(path), np.load(path, allow_pickle=False) as kept:
        return dict(kept)


def read_rows(select_run: Run) -> IntArray:
    """Return the selected rows, without hand edits, shape (k,)."""
    with read_back(path := select_run.artifacts / _ROWS):
        rows: IntArray = np.load(path)
        return rows


class NotServed(ConfigError):
    """Error: a cascade scored too few sentences for a budget or for the flags. A new `select` run can score more."""


class ScoredRow(TypedDict):
    """A sentence of D_C. row: its row in D_C. flags: names of its flags. place: file and page, or ""."""

    row: int
    id: str
    score: float
    tokens: int
    flags: list[str]
    text: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """D_C with scores `(n,)`, the order `(m,)` of its scored rows, flags, and `lengths` `(n,)`: tokens per sentence.

    cascade: summary of the cascade; None if every sentence was scored.
    """

    domain: Corpus
    scores: Scores
    order: IntArray
    audit: Audit
    lengths: IntArray
    cascade: Cascade | None = None

    @classmethod
    def read(cls, score_run: Run, audit_run: Run, library: Library, select_run: Run | None = None) -> Self:
        """Read the results of a `score` and an `audit` run.

        select_run: `select` run whose stored order of the rows, if it has one, replaces the order by score.
        """
        own_order = select_run.artifacts / _ORDER if select_run else None
        result = read_result(score_run, ScoreResult)
        domain = library.find(score_run.manifest.inputs["domain"])
        scores = Scores(
            name=result.strategy,
            unit=result.unit,
            prefer=result.prefer,
            values=read_values(score_run),
            corpus=domain.fingerprint,
            params=score_run.manifest.config,
        )
        # Only a selection with diversity stores its own order.
        with read_back(path := own_order if own_order and own_order.exists() else score_run.artifacts / _ORDER):
            order: IntArray = np.load(path)
        return cls(
            domain=domain,
            scores=scores,
            order=order,
            audit=read_audit(audit_run),
            lengths=domain.lengths(),
            cascade=result.cascade,
        )

    def choose(self, budget: Budget, drop: Sequence[str]) -> Selection:
        """Return the best rows within a budget, see `selection.choose`. Takes milliseconds for a million rows.

        Errors: those of `selection.choose`; NotServed if a cascade scored too few sentences for the budget, or if it
        left out sentences with a flag that is not in `drop`.
        """
        chosen = choose(self.scores, budget, lengths=self.lengths, mask=self.audit.mask, drop=drop, order=self.order)
        return self._of_cascade(chosen, self.cascade, drop) if self.cascade else chosen

    def _of_cascade(self, chosen: Selection, cascade: Cascade, drop: Sequence[str]) -> Selection:
        """Return `chosen`, with only embedded sentences counted as sentences that could not be scored.

        Errors: NotServed, see `choose`.
        """
        again = "select again with this"
        if kept := [flag for flag in cascade.withheld if flag not in drop]:
            raise NotServed(
                f"keep: sentences flagged {kept[0]} have no scores, because a cascade embedded only the most promising "
                f"sentences without flags; {again} option."
            )
        if len(chosen.rows) > cascade.within:
            raise NotServed(
                f"budget: {chosen.budget} selects {count(len(chosen.rows), 'sentence')}, but a cascade scored only "
                f"enough for the best {cascade.within:,}; give a smaller budget, or {again} one."
            )
        empty = cascade.embedded - len(self.order)
        dropped = {reason: n for reason, n in chosen.dropped.items() if reason != "not_scored"}
        return replace(chosen, dropped=dropped | ({"not_scored": empty} if empty else {}))

    def eligible(self, drop: Sequence[str]) -> IntArray:
        """Return the rows that may be selected, in order: scored and not withheld by a flag in `drop`."""
        bits = np.uint8(sum(1 << FLAGS.index(flag) for flag in drop))  # bit i of an audit's mask is `FLAGS[i]`
        rows: IntArray = self.order[(self.audit.mask[self.order] & bits) == 0]
        return rows

    def rank(self, row: int) -> int | None:
        """Return a row's rank by score, ties in row order; 1 is best. None if the row has no score."""
        return None if np.isnan(self.scores.values[row]) else int(self.better(row).sum()) + 1

    def better(self, row: int) -> BoolArray:
        """Return a mask, `(n,)`, of the rows with a better rank by score than `row`, ties in row order."""
        values, value = self.scores.values, self.scores.values[row]
        # Comparisons with NaN are False, so rows without a score never count as better.
        better: BoolArray = values > value if self.scores.prefer == "high" else values < value
        better[:row] |= values[:row] == value
        return better

    def table(self, rows: IntArray) -> list[ScoredRow]:
        """Return the sentences of `rows`, in this order, with scores and flags."""
        return [
            {
                "row": int(row),
                "id": sentence.id,
                "score": float(self.scores.values[row]),
                "tokens": int(self.lengths[row]),
                "flags": [flag for bit, flag in enumerate(FLAGS) if self.audit.mask[row] >> bit & 1],
                "text": sentence.text,
                "place": sentence.place,
            }
            for row, sentence in zip(rows.tolist(), self.domain.take(rows), strict=True)
        ]

    def borderline(self, chosen: Selection, drop: Sequence[str], n: int) -> tuple[IntArray, IntArray]:
        """Return the last `n` selected and the first `n` rejected rows, without withheld rows."""
        eligible = self.eligible(drop)
        k = len(chosen.rows)
        return eligible[max(k - n, 0) : k], eligible[k : k + n]

    def export(
        self, chosen: Selection, path: Path, run_id: str, edits: Edits | None, format: Format | None = None
    ) -> None:
        """Write S_C as txt, jsonl, parquet or csv, or into a folder that `datasets.load_dataset` reads.

        edits: hand edits that `chosen` contains, for the card of a folder; None for none. format: default is that of
        the suffix.
        Errors: ConfigError for an unknown suffix, and for a folder with another README.md; PathError if the file
        cannot be written.
        """
        format, kept = format or format_of(path), kept_names(self.domain)
        names = further_names(value_names(self.domain), kept)
        rows, more = self._records(chosen, names), tuple(names.values())
        if format != "folder":
            write_selection(rows, path, format, kept=kept, more=more)
            return
        spare_readme(path)
        write_selection(rows, path / _SELECTED, kept=kept, more=more)
        write_card(
            path,
            data_file=_SELECTED,
            title=f"Selection from {self.domain.name}",
            about={
                "strategy": self.scores.name,
                "unit": f"{self.scores.unit}, {self.scores.prefer}er is better",
                "budget": str(chosen.budget),
                "selected": f"{len(chosen.rows):,} of {count(len(self.domain), 'sentence')}",
                "withheld": ", ".join(f"{n:,} {reason}" for reason, n in chosen.dropped.items()) or "none",
                **({"hand edits": str(edits)} if edits else {}),
                "D_C": self.domain.fingerprint,
                "run": run_id,
            },
        )

    def _records(self, chosen: Selection, names: Mapping[str, str]) -> Iterator[Row]:
        """Yield the rows of an export. names: {further column of D_C: its name in the export}."""
        # Read in blocks, because the text of millions of sentences may not fit into memory.
        for start in range(0, len(chosen.rows), BLOCK):
            rows = chosen.rows[start : start + BLOCK]
            for rank, (row, sentence) in enumerate(zip(rows.tolist(), self.domain.take(rows), strict=True), start + 1):
                yield {
                    "id": sentence.id,
                    "text": sentence.text,
                    "row": row,
                    "score": float(self.scores.values[row]),
                    "rank": rank,
                    "doc": sentence.doc,
                    "group": sentence.group,
                    "file": sentence.file,
                    "page": sentence.page,
                    "more": {names[name]: value for name, value in sentence.columns if name in names},
                }
