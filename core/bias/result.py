"""Results of `difficulty`, `rebuild` and `robustness` runs, and their files in `artifacts/`.

mentions.parquet                 of a `difficulty` run: one `Mention` per row, in the order of the corpus
rebuilt.conll, robustness.conll  the new corpus, IOB2
edits.jsonl                      one `Edit` per line
slots.jsonl                      of a `robustness` run: one `Slot` per line
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from core.corpora.corpus import Corpus
from core.corpora.writers import write_conll
from core.files import read_back, replacing
from core.results import IntArray
from core.runs.context import RunContext
from core.runs.run import Run
from core.text.sentence import Sentence

Bin = Literal["low", "near_zero", "high"]
BINS: tuple[Bin, ...] = ("low", "near_zero", "high")
# Minimum number of mentions of a type. With fewer, its means are too uncertain.
FEW = 20
# Number of decimals of PVI that count. Further decimals are rounding errors.
_DECIMALS = 6
# CEIM strictly between -BAND and BAND bits is near zero (Ma et al. 2023, 2.3).
BAND = 0.5
# Names of the logs.
EDITS, SLOTS = "edits", "slots"

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
    words of the name, joined by blanks. pvi_entity, pvi_context, ceim: bits, mean over repeats; ceim = pvi_entity -
    pvi_context. fold: number of the fold in the first repeat, from 0.
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
    """Return the bin of a CEIM value, in bits.

    The bin is `low` if the context is more informative, `high` if the name is more informative, else `near_zero`.
    """
    # As in the paper, the borders belong to the outer bins: low is at most -0.5, and high is at least 0.5.
    return "low" if ceim <= -BAND else "high" if ceim >= BAND else "near_zero"


def mentions_file(run: Run) -> Path:
    """Return the path of the mentions of a `difficulty` run."""
    return run.artifacts / "mentions.parquet"


def write_mentions(mentions: Iterable[Mention], path: Path) -> None:
    """Write one Parquet row per mention, in the order given."""
    with replacing(path) as file:
        pq.write_table(pa.Table.from_pylist([asdict(mention) for mention in mentions], schema=_SCHEMA), file)


def read_mentions(path: Path) -> list[Mention]:
    """Return the mentions in the file `path`. Columns that are no fields of `Mention` are ignored.

    Errors: RunError if the file lacks a column, even if the field has a default.
    """
    names = [field.name for field in fields(Mention)]
    with read_back(path):
        return [Mention(**row) for row in pq.read_table(path, columns=names).to_pylist()]


def unsupported(mentions: Sequence[Mention]) -> IntArray:
    """Return the indices `(k,)` of the mentions whose name and context both have a PVI of 0 or less.

    At least one of the two PVIs must be negative. PVI is rounded first, because a view without information has a PVI of
    0 up to a rounding error, which must not count as above 0.
    """
    entity, context = (
        np.round([getattr(m, name) for m in mentions], _DECIMALS) for name in ("pvi_entity", "pvi_context")
    )
    return np.flatnonzero((np.maximum(entity, context) <= 0) & (entity + context < 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bits:
    """Mean PVI of names and of contexts, bits per mention."""

    entity: float
    context: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BinBits:
    """Mean PVI of names and of contexts in one bin of CEIM, in bits; None for an empty bin."""

    entity: float | None
    context: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """95% confidence intervals of V-information, (low, high) in bits per mention."""

    entity: tuple[float, float]
    context: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeDifficulty:
    """Summary of the mentions of one entity type.

    entity, context, ceim: means over the mentions, in bits. prior: -log2 of the type's share, the upper bound of PVI.
    bins: {bin of CEIM: number of mentions}.
    """

    mentions: int
    entity: float
    context: float
    ceim: float
    prior: float
    bins: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifficultyResult:
    """Result of a `difficulty` run; information is in bits.

    mentions: number of measured mentions, in `sentences` sentences. v_information: mean PVI, with `intervals`. entropy:
    entropy of the types, the upper bound of V-information. by_type: frequent types first. ceim: {bin: number of
    mentions}. mean_pvi: {bin: mean PVI}. repeats: mean PVI in each cross-validation, which has `folds` folds.
    grouped_by: unit that is never split between folds, sentence or document. strength: {view: mean calibration
    strength}, empty without calibration. settings: {view: training settings}. notes: sentences for the user. corpus:
    fingerprint of the corpus. seconds: total training time.
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
    """One changed mention. row: its row in the new corpus. start, end: word offsets in that row.

    copy_of: row of the original corpus that was copied, None if its sentence was changed in place. before, after: the
    old and the new name in this context. context_of: row of the original corpus that the new context comes from, or
    None.
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

    source: origin of the new name; "" if the name did not change. ambiguous: reason why the type is not certain
    (`Known.ambiguity`); "" if it is certain.
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
    changed mentions, and of mentions to change. of: number of mentions in the original training set. reached: quantile
    to which "high" thresholds were lowered, "" if the given ones were enough. pools: {pool: {type: number of mentions}}
    of the pools drawn from. low_mentions, measured_mentions: low-CEIM mentions and all measured mentions of a set drawn
    by CEIM (`low-share`). output, edits: paths of the new set and of the log of edits.
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

    corpus: fingerprint of the new test set, which has `sentences` and `mentions`. changed: number of renamed mentions.
    ambiguous: number of mentions whose type is not certain. sources: {origin of new names: number of mentions}. output,
    edits, slots: paths of the new set and of its logs.
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
    """Return {log: path} of the logs that the run has; the names are `EDITS` and `SLOTS`."""
    return {log: path for log in (EDITS, SLOTS) if (path := _log_file(run, log)).exists()}


def _lines(run: Run, log: str) -> Iterator[bytes]:
    with read_back(path := _log_file(run, log)), path.open("rb") as file:
        yield from file


def _log_file(run: Run, log: str) -> Path:
    return run.artifacts / f"{log}.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """A changed sentence, before and after.

    before: the original sentence. after: the changed sentence, or the changed copy. gone: the deleted sentence that
    `after` replaced; None if `after` was added or changed in place. edits: the changes from `before` to `after`.
    unsure: start offsets of the ambiguous slots of `after`.
    """

    before: Sentence
    after: Sentence
    gone: Sentence | None
    edits: tuple[Edit, ...]
    unsure: frozenset[int] = frozenset()


def diffs(
    edits: Sequence[Edit], before: Corpus, after: Corpus, start: int, n: int, *, slots: Iterable[Slot] = ()
) -> list[Diff]:
    """Return `n` changed sentences from number `start` on, in the order of the log.

    edits: the log. before, after: the original and the new corpus. slots: slots of a robustness set.
    """
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
