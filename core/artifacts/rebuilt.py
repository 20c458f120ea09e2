"""What `rebuild` and `robustness` write beside their sentences, one JSON object a line, and what else they share."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from core.config import Config
from core.corpora.corpus import Corpus
from core.files import replacing
from core.reconstruction.robustness import Slot
from core.reconstruction.training import Edit
from core.runs.context import RunContext
from core.text.sentence import Sentence


def write_log(context: RunContext, rows: Iterable[Edit] | Iterable[Slot], name: str = "edits") -> Path:
    """`<name>.jsonl`, an artifact of the run."""
    path = context.run.artifacts / f"{name}.jsonl"
    with replacing(path) as file:
        for row in rows:
            file.write(json.dumps(asdict(row), ensure_ascii=False).encode() + b"\n")
    context.artifact(name, path)
    return path


def read_edits(path: Path) -> list[Edit]:
    """What `write_log` wrote of edits."""
    with path.open(encoding="utf-8") as file:
        return [Edit(**json.loads(line)) for line in file]


def read_slots(path: Path) -> list[Slot]:
    """What `write_log` wrote of slots."""
    with path.open(encoding="utf-8") as file:
        return [Slot(**json.loads(line)) for line in file]


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


def unusual(config: Config, names: Iterable[str]) -> list[str]:
    """Those of the options `names` that are not at their default, in words: `entity low 0.5`, `seed 2`."""
    usual = {name: field.default for name, field in type(config).model_fields.items()}
    values = {name: getattr(config, name) for name in names}
    return [
        f"{name.replace('_', ' ')} {str(value).rstrip('/').rsplit('/', 1)[-1]}"
        for name, value in values.items() if value != usual[name]
    ]  # fmt: skip
