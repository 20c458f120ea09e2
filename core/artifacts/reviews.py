"""Labels looked at by a person: an append-only log beside the `difficulty` run that found them suspicious.

home/runs/<run_id>/reviews.jsonl    one line an action: {"action": "fix", "mention": 7, "type": "LAW", "time": 1.7e9}
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

from core.corpora.corpus import Corpus
from core.difficulty.mentions import Mention
from core.files import append_line
from core.text.sentence import Entity, Sentence

FILE = "reviews.jsonl"
Action = Literal["accept", "fix", "remove", "skip", "undo"]
CHANGES: tuple[Action, ...] = ("fix", "remove")


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What was said of one label. mention: its row of `mentions.parquet`. type: the right one, where it was fixed.

    time: seconds since 1970.
    """

    action: Action
    mention: int
    type: str
    time: float


@dataclass(frozen=True, kw_only=True)
class Reviews:
    """All reviews that were not undone, oldest first; the latest of a mention counts."""

    history: tuple[Review, ...] = ()

    @cached_property
    def latest(self) -> Mapping[int, Review]:
        """{mention: what counts}."""
        return {review.mention: review for review in self.history}

    @property
    def changes(self) -> list[Review]:
        """What changes a label, in the order of the corpus."""
        return [self.latest[number] for number in sorted(self.latest) if self.latest[number].action in CHANGES]


def append(folder: Path, action: Action, mention: int = -1, type: str = "") -> None:
    """Write one action down. mention: -1 with `undo`, which takes the last one back."""
    entry = {"action": action, "mention": mention, "type": type, "time": round(time.time(), 3)}
    append_line(folder / FILE, json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode())


def read(folder: Path) -> Reviews:
    """Fold the log. A line that is torn or spoilt counts as never written."""
    try:
        lines = (folder / FILE).read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        lines = []
    history: list[Review] = []
    for review in filter(None, map(_parse, lines)):
        if review.action != "undo":
            history.append(review)
        elif history:
            history.pop()
    return Reviews(history=tuple(history))


def corrected(corpus: Corpus, mentions: Sequence[Mention], changes: Sequence[Review]) -> Iterator[Sentence]:
    """Every sentence of `corpus` in order, its labels as `changes` say."""
    by_row: dict[int, dict[tuple[int, int], Review]] = defaultdict(dict)
    for review in changes:
        mention = mentions[review.mention]
        by_row[mention.row][mention.start, mention.end] = review
    row = 0
    for block in corpus.batches():
        for sentence in block:
            yield _changed(sentence, by_row[row]) if row in by_row else sentence
            row += 1


def _changed(sentence: Sentence, said: Mapping[tuple[int, int], Review]) -> Sentence:
    """Found by place, so that other entities of the sentence stay what they are."""
    found: list[Entity] = []
    for entity in sentence.entities or ():
        review = said.get((entity.start, entity.end))
        if review is None:
            found.append(entity)
        elif review.action == "fix":
            found.append(replace(entity, type=review.type))
    return replace(sentence, entities=tuple(found))


def _parse(line: bytes) -> Review | None:
    try:
        told = json.loads(line)
        if told["action"] not in get_args(Action):
            return None
        return Review(
            action=told["action"], mention=int(told["mention"]), type=str(told["type"]), time=float(told["time"])
        )
    except (ValueError, TypeError, KeyError):
        return None
