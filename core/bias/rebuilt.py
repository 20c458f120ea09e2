"""What `rebuild` and `robustness` runs leave.

artifacts/  rebuilt.conll, robustness.conll  the new set, IOB2
            edits.jsonl                      what was changed, a `reconstruction.training.Edit` a line
            slots.jsonl                      of a robustness set: a `reconstruction.robustness.Slot` a mention
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from core.bias.robustness_sets import Slot
from core.bias.training_sentences import Edit
from core.corpora.corpus import Corpus
from core.corpora.writers import write_conll
from core.files import read_back, replacing
from core.runs.context import RunContext
from core.runs.run import Run
from core.text.sentence import Sentence

EDITS, SLOTS = "edits", "slots"  # the logs, by the name that the run tells them by


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildResult:
    """Result of a `rebuild` run.

    corpus: fingerprint of the new set, of so many `sentences` and `mentions`. changed, wanted: mentions. of: mentions
    of the training set. reached: the share of their type from which names and contexts count as telling much, "" where
    the thresholds as given gave mentions enough. pools: {pool: {type: mentions in it}}, those that were drawn from.
    low_mentions, measured_mentions: of a set drawn by CEIM (`low-share`), its low-CEIM mentions and all its mentions
    with a CEIM. output, edits: paths of the new set and of the log.
    """

    corpus: str
    sentences: int
    mentions: int
    changed: int
    wanted: int
    of: int
    reached: str = ""  # results of older versions have none
    pools: Mapping[str, Mapping[str, int]]
    low_mentions: int = 0  # results of older versions have neither
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

    corpus: fingerprint of the new set, of so many `sentences` and `mentions`. changed: mentions under another name.
    ambiguous: mentions whose type is not certain. sources: {where new names are from: mentions}. output, edits, slots:
    paths of the new set and of the logs.
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


def write_edits(context: RunContext, rows: Iterable[Edit]) -> Path:
    """Write the changes, one a line."""
    return _write(context, EDITS, rows)


def write_slots(context: RunContext, rows: Iterable[Slot]) -> Path:
    """Write each mention's place and whether it is ambiguous, one a line."""
    return _write(context, SLOTS, rows)


def write_sentences(context: RunContext, sentences: Iterable[Sentence]) -> Path:
    """The new set as CoNLL."""
    path = sentences_file(context.run)
    write_conll(sentences, path)
    context.artifact(path.stem, path)
    return path


def sentences_file(run: Run) -> Path:
    """The path of the new set."""
    return run.artifacts / ("rebuilt.conll" if run.manifest.kind == "rebuild" else "robustness.conll")


def read_edits(run: Run) -> list[Edit]:
    """Read what `write_edits` wrote."""
    reader = TypeAdapter(Edit)
    return [reader.validate_json(line) for line in _read(run, EDITS)]


def read_slots(run: Run) -> list[Slot]:
    """Read what `write_slots` wrote; nothing of a `rebuild` run, which has none."""
    reader = TypeAdapter(Slot)
    return [reader.validate_json(line) for line in _read(run, SLOTS)] if run.manifest.kind == "robustness" else []


def logs(run: Run) -> dict[str, Path]:
    """{log: its file}, those that the run has."""
    return {log: path for log in (EDITS, SLOTS) if (path := _file(run, log)).exists()}


def _write(context: RunContext, log: str, rows: Iterable[Edit] | Iterable[Slot]) -> Path:
    path = _file(context.run, log)
    with replacing(path) as file:
        for row in rows:
            file.write(json.dumps(asdict(row), ensure_ascii=False).encode() + b"\n")
    context.artifact(log, path)
    return path


def _read(run: Run, log: str) -> Iterator[bytes]:
    with read_back(path := _file(run, log)), path.open("rb") as file:
        yield from file


def _file(run: Run, log: str) -> Path:
    return run.artifacts / f"{log}.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """A changed sentence. before: the sentence it was made from. after: as it is. gone: the one it took the place of,
    where its context was deleted. edits: of `after`. unsure: where its ambiguous slots start."""

    before: Sentence
    after: Sentence
    gone: Sentence | None
    edits: tuple[Edit, ...]
    unsure: frozenset[int] = frozenset()


def diffs(
    edits: Sequence[Edit], before: Corpus, after: Corpus, start: int, n: int, *, slots: Iterable[Slot] = ()
) -> list[Diff]:
    """Changed rows `start` to `start + n`, in the order of the log. slots: of a robustness set."""
    by_row: dict[int, list[Edit]] = defaultdict(list)
    for edit in edits:
        by_row[edit.row].append(edit)
    rows = list(by_row)[start : start + n]
    bases = [row if (copy_of := by_row[row][0].copy_of) is None else copy_of for row in rows]
    replaced = [row for row, base in zip(rows, bases, strict=True) if base != row and row < len(before)]
    gone = dict(zip(replaced, before.take(replaced), strict=True))
    unsure: dict[int, set[int]] = defaultdict(set)
    for slot in slots:
        unsure[slot.row].update({slot.start} if slot.ambiguous else ())
    return [
        Diff(before=old, after=new, gone=gone.get(row), edits=tuple(by_row[row]), unsure=frozenset(unsure[row]))
        for row, old, new in zip(rows, before.take(bases), after.take(rows), strict=True)
    ]
