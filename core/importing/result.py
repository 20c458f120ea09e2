"""Results of runs that import, check and split corpora.

An `add` run writes artifacts/rejects.jsonl (file, line, kind, reason, raw) if it rejected any row.
An `audit` run writes artifacts/audit/ (see `corpora.hygiene.Audit.save`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from core.corpora.annotators import Agreement
from core.corpora.checks import Contradictions
from core.corpora.formats.ledger import Problem
from core.corpora.hygiene import Audit
from core.corpora.proposal import DIVIDE, SOURCE
from core.runs.run import Run
from core.shown import count
from core.terms import DEV, DOMAIN, TASK, TEST, TRAIN

ROLES = {"task": TASK, "domain": DOMAIN, "train": TRAIN, "dev": DEV, "test": TEST}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Rule by which a text was cut into tokens, and the reason for the rule. `own`: the file has its own tokens."""

    rule: Literal["words", "blanks", "own"]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddResult:
    """Result of an `add` run. `ledger.ReadReport` explains how rows are counted.

    corpus: fingerprint. name: the corpus's name. It differs from `asked_name` if the text was imported before
    (`was_here`), or if another corpus has that name. sentences, tokens: numbers in the stored corpus. types: number of
    entities by type. unspaced: number of sentences in a script without blanks between words. problems: the first rows
    that were rejected, repaired or skipped. cut: rule that cut the text into tokens; None in results of older versions.
    contradictory_texts: number of texts that occur with different labels, in `contradictory_sentences` sentences. lost:
    number of sentences left out because they lost an annotation. partial: number of texts with only binary answers.
    agreement: agreement of several annotators; None for a single annotator.
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
        """Messages for the user about problems of the labels, to be read before training on them."""
        contradictory = Contradictions(texts=self.contradictory_texts, sentences=self.contradictory_sentences)
        agreement = self.agreement
        name = agreement.taken if agreement else ""
        taken = f" If annotators differ, the labels of {name} were kept." if name else ""
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
        f"{n:,} labelled sentence{were} left out because of a lost annotation: a span that overlaps another, has a gap,"
        " or does not fit the text. To keep these sentences, import with --keep-lost."
    )


def _partial(n: int) -> str:
    have = "s have" if n > 1 else " has"
    return (
        f"{n:,} text{have} only binary answers, so the labels of all other words are unknown, not O. These texts are"
        " left out unless you import with --keep-lost. Label them in full before you train or test on them."
    )


def rejects_path(run: Run) -> Path:
    """Return the path of the file with the rows that an `add` run rejected.

    The file exists only if rows were rejected.
    """
    return run.artifacts / "rejects.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """Result of an `audit` run.

    flags: {flag: number of rows}. leak_rules, near_rules: number of leaks and of near duplicates, by the rule that
    found them. sentences: number of rows checked.
    """

    flags: Mapping[str, int]
    leak_rules: Mapping[str, int]
    sentences: int
    near_rules: Mapping[str, int] = field(default_factory=dict)  # results of older versions lack this field


def write_audit(run: Run, audit: Audit) -> None:
    """Write the flags and the cluster number of every row to the run's artifacts."""
    audit.save(run.artifacts / "audit")


def read_audit(run: Run) -> Audit:
    """Read the flags and cluster numbers that `write_audit` wrote."""
    return Audit.load(run.artifacts / "audit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a split corpus.

    corpus: fingerprint of the part. units: number of units in it (documents, values of a column, or groups of
    duplicates). left_out: number of sentences left out because a smaller part has a duplicate of them. types: number of
    entities by type.
    """

    name: str
    corpus: str
    sentences: int
    tokens: int
    units: int
    left_out: int
    types: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitResult:
    """Result of a `split` run.

    parts: parts in the order of the option `names`. units: number of units that stay whole (documents, values of the
    column, or sentences with their duplicates). copies: number of sentences that have a duplicate or near duplicate.
    divided: number of groups of duplicates that were drawn into several parts. Each part's `left_out` counts the
    sentences that the part lost because of this.
    """

    parts: Sequence[Part]
    units: int
    copies: int
    divided: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Outcome for the files of one role in an `intake` run.

    part: the role. files: number of files. run: id of the `add` run that read them, "" if it did not finish. problem:
    reason why the files were not imported, "" if they were.
    """

    part: str
    files: int
    run: str
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeResult:
    """Result of an `intake` run.

    roles: roles that were assigned. task_of_train: True if the training set's text became the task corpus.
    """

    parts: Sequence[Taken]
    roles: Sequence[str]
    task_of_train: bool


def roles_in_words(roles: Sequence[str]) -> str:
    """Return the names of the roles of an import, with equal ones counted: `task corpus, 2 further sources`."""
    words = {**{role: term.word for role, term in ROLES.items()}, DIVIDE: "labelled corpus"}
    named = Counter(words.get(role, "further source" if role == SOURCE else role) for role in roles)
    plural = {word: word.replace("corpus", "corpora") for word in named if word.endswith("corpus")}
    return ", ".join(word if n == 1 else count(n, word, plural.get(word, "")) for word, n in named.items())
