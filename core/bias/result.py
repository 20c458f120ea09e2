"""Results of `difficulty`, `rebuild` and `robustness` runs, their files in `artifacts/`, and label reviews.

mentions.parquet                 of `difficulty`: one `Mention` per row, in the order of the corpus
rebuilt.conll, robustness.conll  the new corpus, IOB2
edits.jsonl                      one `Edit` per line
slots.jsonl                      of `robustness`: one `Slot` per line

Reviews of suspicious labels are an append-only log in the folder of the `difficulty` run:

reviews.jsonl    one action per line: {"action": "fix", "mention": 7, "type": "LAW", "time": 1.7e9}
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from core.corpora.corpus import Corpus
from core.corpora.writers import write_conll
from core.files import read_back, replacing
from core.runs import journal
from core.runs.context import RunContext
from core.runs.run import Run
from core.text.sentence import Entity, Sentence

Bin = Literal["low", "near_zero", "high"]
BINS: tuple[Bin, ...] = ("low", "near_zero", "high")
BAND = 0.5  # bits: CEIM strictly between -BAND and BAND is near zero (Ma et al. 2023, 2.3)
EDITS, SLOTS = "edits", "slots"  # names of the logs

_SCHEMA = pa.schema(
    {
        "row": pa.int64(),
        "sentence": pa.string(),
        "start": pa.int32(),
        "end": pa.int32(),
        "type": pa.string(),
        "surface": pa.string(),
        "pvi_entity": pa.float64(),
        "pvi_context": pa.float64(),
        "ceim": pa.float64(),
        "bin": pa.string(),
        "fold": pa.int32(),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One entity in its sentence, with the PVI of its name and of its context.

    row: row of the sentence in its corpus. sentence: id of the sentence. start, end: half-open word offsets. surface:
    the words, joined by blanks. pvi_entity, pvi_context, ceim: bits, mean over repeats; ceim = pvi_entity -
    pvi_context. fold: fold of the first repeat, from 0.
    """

    row: int
    sentence: str
    start: int
    end: int
    type: str
    surface: str
    pvi_entity: float
    pvi_context: float
    ceim: float
    bin: Bin
    fold: int


def bin_of(ceim: float) -> Bin:
    """Return `low` (more information in the context), `high` (more in the name) or `near_zero`."""
    # As printed in the paper, both borders belong to the outer bins: low is at most -0.5, high at least 0.5.
    return "low" if ceim <= -BAND else "high" if ceim >= BAND else "near_zero"


def mentions_file(run: Run) -> Path:
    """Return the path of the mentions of a `difficulty` run."""
    return run.artifacts / "mentions.parquet"


def write_mentions(mentions: Iterable[Mention], path: Path) -> None:
    """Write one Parquet row per mention, in the order given."""
    with replacing(path) as file:
        pq.write_table(pa.Table.from_pylist([asdict(mention) for mention in mentions], schema=_SCHEMA), file)


def read_mentions(path: Path) -> list[Mention]:
    """Read the mentions of `path`. Columns that `Mention` lacks are ignored.

    Errors: RunError if the file lacks a column, even one whose field has a default.
    """
    names = [field.name for field in fields(Mention)]
    with read_back(path):
        return [Mention(**row) for row in pq.read_table(path, columns=names).to_pylist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bits:
    """Mean PVI of names and of contexts, bits per mention."""

    entity: float
    context: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BinBits:
    """Mean PVI of the mentions in one bin of CEIM, bits; None for an empty bin."""

    entity: float | None
    context: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """95% confidence intervals of V-information, (low, high) in bits per mention."""

    entity: tuple[float, float]
    context: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeDifficulty:
    """One entity type.

    entity, context, ceim: means over its mentions, bits. prior: -log2 of the type's share, the upper bound of PVI.
    bins: {bin of CEIM: mentions}.
    """

    mentions: int
    entity: float
    context: float
    ceim: float
    prior: float
    bins: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifficultyResult:
    """Result of a `difficulty` run; information in bits.

    mentions: number of measured mentions, in `sentences` sentences. v_information: mean PVI, with `intervals`. entropy:
    entropy of the types, the upper bound of V-information. by_type: frequent types first. ceim: {bin: mentions}.
    mean_pvi: {bin: mean PVI}. repeats: mean PVI of each cross-validation over `folds` folds. grouped_by: unit that is
    never split between folds, sentences or documents. strength: {view: mean strength of the calibration}, empty without
    calibration. settings: {view: training settings}. notes: sentences for the reader. corpus: fingerprint of the
    corpus. seconds: total training time.
    """

    mentions: int
    sentences: int
    v_information: Bits
    intervals: Intervals
    entropy: float
    by_type: Mapping[str, TypeDifficulty]
    ceim: Mapping[str, int]
    mean_pvi: Mapping[str, BinBits]
    repeats: Sequence[Bits]
    folds: int
    grouped_by: str
    strength: Mapping[str, float]
    settings: Mapping[str, Mapping[str, int | float | str | bool]]
    notes: Sequence[str]
    corpus: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One changed mention. row: row in the new corpus. start, end: word offsets in that row.

    copy_of: row of the original sentence if row `row` is an added copy, None if it was changed in place. before, after:
    the old and the new name in this context. context_of: original row of a replaced context, else None.
    """

    row: int
    copy_of: int | None
    start: int
    end: int
    type: str
    before: str
    after: str
    kind: str
    context_of: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One mention of a robustness set.

    source: origin of its new name, "" if it kept the old one. ambiguous: reason that its type is not certain
    (`Known.ambiguity`), "" if it is certain.
    """

    row: int
    start: int
    end: int
    type: str
    before: str
    after: str
    source: str
    ambiguous: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildResult:
    """Result of a `rebuild` run.

    corpus: fingerprint of the new training set, which has `sentences` and `mentions`. changed, wanted: number of
    changed mentions, and of mentions to change. of: mentions of the original training set. reached: share to which
    "high" thresholds were lowered, "" if the given ones were enough. pools: {pool: {type: mentions}} of the pools drawn
    from. low_mentions, measured_mentions: low-CEIM mentions and all measured mentions of a set drawn by CEIM
    (`low-share`). output, edits: paths.
    """

    corpus: str
    sentences: int
    mentions: int
    changed: int
    wanted: int
    of: int
    reached: str = ""
    pools: Mapping[str, Mapping[str, int]]
    low_mentions: int = 0
    measured_mentions: int = 0
    output: str
    edits: str

    @property
    def low_share(self) -> float | None:
        """Share of low-CEIM mentions among the measured mentions; None for sets that are not drawn by CEIM."""
        return self.low_mentions / self.measured_mentions if self.measured_mentions else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustnessResult:
    """Result of a `robustness` run.

    corpus: fingerprint of the new test set, which has `sentences` and `mentions`. changed: renamed mentions. ambiguous:
    mentions whose type is not certain. sources: {origin of new names: mentions}. output, edits, slots: paths.
    """

    corpus: str
    sentences: int
    mentions: int
    changed: int
    ambiguous: int
    sources: Mapping[str, int]
    output: str
    edits: str
    slots: str


def sentences_file(run: Run) -> Path:
    """Return the path of the new corpus of a `rebuild` or `robustness` run."""
    return run.artifacts / ("rebuilt.conll" if run.manifest.kind == "rebuild" else "robustness.conll")


def write_sentences(context: RunContext, sentences: Iterable[Sentence]) -> Path:
    """Write the new corpus as CoNLL and return its path."""
    path = sentences_file(context.run)
    write_conll(sentences, path)
    context.artifact(path.stem, path)
    return path


def write_log(context: RunContext, log: str, rows: Iterable[Edit] | Iterable[Slot]) -> Path:
    """Write the log `EDITS` or `SLOTS` as JSON lines and return its path."""
    path = _log_file(context.run, log)
    with replacing(path) as file:
        for row in rows:
            file.write(json.dumps(asdict(row), ensure_ascii=False).encode() + b"\n")
    context.artifact(log, path)
    return path


def read_edits(run: Run) -> list[Edit]:
    """Read the edits of a `rebuild` or `robustness` run."""
    reader = TypeAdapter(Edit)
    return [reader.validate_json(line) for line in _lines(run, EDITS)]


def read_slots(run: Run) -> list[Slot]:
    """Read the slots of a `robustness` run; a `rebuild` run has none."""
    reader = TypeAdapter(Slot)
    return [reader.validate_json(line) for line in _lines(run, SLOTS)] if run.manifest.kind == "robustness" else []


def logs(run: Run) -> dict[str, Path]:
    """Return {log: file} of the logs that the run has."""
    return {log: path for log in (EDITS, SLOTS) if (path := _log_file(run, log)).exists()}


def _lines(run: Run, log: str) -> Iterator[bytes]:
    with read_back(path := _log_file(run, log)), path.open("rb") as file:
        yield from file


def _log_file(run: Run, log: str) -> Path:
    return run.artifacts / f"{log}.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """A changed sentence.

    before: the sentence without the edits. after: the sentence with them. gone: another sentence, whose place `after`
    took because its context was deleted; else None. edits: edits of `after`. unsure: start offsets of its ambiguous
    slots.
    """

    before: Sentence
    after: Sentence
    gone: Sentence | None
    edits: tuple[Edit, ...]
    unsure: frozenset[int] = frozenset()


def diffs(
    edits: Sequence[Edit], before: Corpus, after: Corpus, start: int, n: int, *, slots: Iterable[Slot] = ()
) -> list[Diff]:
    """Return changed sentences `start` to `start + n`, in the order of the log. slots: slots of a robustness set."""
    by_row: dict[int, list[Edit]] = defaultdict(list)
    for edit in edits:
        by_row[edit.row].append(edit)
    rows = list(by_row)[start : start + n]
    bases = [row if (copy_of := by_row[row][0].copy_of) is None else copy_of for row in rows]
    replaced = [row for row, base in zip(rows, bases, strict=True) if base != row and row < len(before)]
    gone = dict(zip(replaced, before.take(replaced), strict=True))
    unsure: dict[int, set[int]] = defaultdict(set)
    for slot in slots:
        if slot.ambiguous:
            unsure[slot.row].add(slot.start)
    return [
        Diff(before=old, after=new, gone=gone.get(row), edits=tuple(by_row[row]), unsure=frozenset(unsure[row]))
        for row, old, new in zip(rows, before.take(bases), after.take(rows), strict=True)
    ]


REVIEWS = "reviews.jsonl"
Action = Literal["accept", "fix", "remove", "skip", "undo"]
CHANGES: tuple[Action, ...] = ("fix", "remove")


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The decision on one label. mention: its row of `mentions.parquet`. type: the right type, with `fix` only.

    time: seconds since 1970. by: the account that decided; "" if unknown.
    """

    action: Action
    mention: int
    type: str
    time: float
    by: str = ""


@dataclass(frozen=True, kw_only=True)
class Reviews:
    """All reviews that were not undone, oldest first; the latest one of each mention counts."""

    history: tuple[Review, ...] = ()

    @cached_property
    def latest(self) -> Mapping[int, Review]:
        """{mention: its latest review}."""
        return {review.mention: review for review in self.history}

    @property
    def changes(self) -> list[Review]:
        """Latest reviews that change a label, in the order of the corpus."""
        return [self.latest[number] for number in sorted(self.latest) if self.latest[number].action in CHANGES]


_parse: Callable[[object], Review] = TypeAdapter(Review).validate_python


def append_review(folder: Path, action: Action, mention: int = -1, type: str = "") -> None:
    """Append one action to the log of reviews. mention: -1 with `undo`, which cancels the last action."""
    journal.append(folder / REVIEWS, action=action, mention=mention, type=type)


def read_reviews(folder: Path) -> Reviews:
    """Read the log of reviews and apply each `undo`."""
    return Reviews(history=journal.read(folder / REVIEWS, _parse))


def are_reviews_spoilt(folder: Path) -> bool:
    """Return True if a line of the log of reviews cannot be read."""
    return journal.is_spoilt(folder / REVIEWS, _parse)


def corrected(corpus: Corpus, mentions: Sequence[Mention], changes: Sequence[Review]) -> Iterator[Sentence]:
    """Yield the sentences of `corpus` in order, with `changes` applied to their labels."""
    by_row: dict[int, dict[tuple[int, int], Review]] = defaultdict(dict)
    for review in changes:
        mention = mentions[review.mention]
        by_row[mention.row][mention.start, mention.end] = review
    row = 0
    for block in corpus.batches():
        for sentence in block:
            yield _reviewed(sentence, by_row[row]) if row in by_row else sentence
            row += 1


def _reviewed(sentence: Sentence, reviews: Mapping[tuple[int, int], Review]) -> Sentence:
    """Apply reviews, given by start and end, to the labels of one sentence."""
    entities: list[Entity] = []
    for entity in sentence.entities or ():
        review = reviews.get((entity.start, entity.end))
        if review is None:
            entities.append(entity)
        elif review.action == "fix":
            entities.append(replace(entity, type=review.type))
    return replace(sentence, entities=tuple(entities))
