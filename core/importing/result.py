"""What an `add` run leaves: its result, and the rows that it could not use.

artifacts/rejects.jsonl    file, line, kind, reason, raw; there only if anything was rejected
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from core.corpora.annotators import Agreement
from core.corpora.contradictions import Contradictions
from core.corpora.formats.ledger import Problem
from core.runs.run import Run

FILE = "rejects.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Rule that cut a text into tokens, `own` where it brought them, and why that was taken."""

    rule: Literal["words", "blanks", "own"]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddResult:
    """Result of an `add` run; rows are counted as in `ledger.ReadReport`.

    corpus: fingerprint. name: what the corpus is called, another than `asked_name` where its text `was_here` or another
    corpus bears that name. sentences, tokens: sealed. types: entities by type. unspaced: sentences with letters of a
    script that writes no blanks between words. problems: the first rows that were not taken as they came. cut: None
    of older runs. contradictory_texts: texts that occur with different labels, in `contradictory_sentences` sentences.
    lost: sentences left out because they lost an annotation. partial: texts of which only some spans were answered.
    agreement: of several annotators, None for one.
    """

    corpus: str
    name: str
    sentences: int
    tokens: int
    types: Mapping[str, int]
    asked_name: str
    was_here: bool
    unspaced: int
    format: str
    scheme: str | None
    text_column: str | None
    encoding: str
    files: int
    read: int
    kept: int
    repaired: int
    repaired_rows: int
    rejected: int
    rejected_spans: int
    skipped: int
    empty: int
    problems: Sequence[Problem]
    cut: Cut | None = None
    pages: int = 0
    blank_pages: int = 0
    margins: int = 0
    unmapped: int = 0
    restored: int = 0
    left_out: int = 0
    contradictory_texts: int = 0
    contradictory_sentences: int = 0
    lost: int = 0
    partial: int = 0
    agreement: Agreement | None = None

    @property
    def of_labels(self) -> Sequence[str]:
        """Sentences on what to know of the labels before they are used."""
        contradictory = Contradictions(texts=self.contradictory_texts, sentences=self.contradictory_sentences)
        agreement = self.agreement
        taken = (
            f" Where they differ, the labels of {agreement.taken} were taken." if agreement and agreement.taken else ""
        )
        found = [
            _lost(self.lost) if self.lost else "",
            _partial(self.partial) if self.partial else "",
            agreement.in_words + taken if agreement else "",
            contradictory.in_words,
        ]
        return [text for text in found if text]


def _lost(n: int) -> str:
    were = "s were" if n > 1 else " was"
    return (
        f"{n:,} labelled sentence{were} left out because an annotation in it was lost: a span that overlaps, has a gap,"
        " or does not fit the text. To keep such sentences, import with keep-lost."
    )


def _partial(n: int) -> str:
    have = "s have" if n > 1 else " has"
    return (
        f"{n:,} text{have} binary answers only: what was not asked is unknown, not O. Such texts are left out unless"
        " you import with keep-lost. Label them in full before you train or test on them."
    )


def path(run: Run) -> Path:
    """The path on which they are, or would be."""
    return run.artifacts / FILE
