"""Reviews of suspicious labels: an append-only log in the folder of the `difficulty` run, and the corrected corpus.

home/runs/<run_id>/reviews.jsonl    one action per line: {"action": "fix", "mention": 7, "type": "LAW", "time": 1.7e9}
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from core.bias.result import Mention
from core.corpora.corpus import Corpus
from core.runs import journal
from core.text.sentence import Entity, Sentence

FILE = "reviews.jsonl"
Action = Literal["accept", "fix", "remove", "skip", "undo"]
CHANGES: tuple[Action, ...] = ("fix", "remove")


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The decision on one label. mention: its row of `mentions.parquet`. type: the right type, with `fix` only.

    time: seconds since 1970. by: the account that decided, "" in logs of older versions.
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


def append(folder: Path, action: Action, mention: int = -1, type: str = "") -> None:
    """Append one action. mention: -1 with `undo`, which cancels the last action."""
    journal.append(folder / FILE, action=action, mention=mention, type=type)


def read(folder: Path) -> Reviews:
    """Read the log and apply each `undo`."""
    return Reviews(history=journal.read(folder / FILE, _parse))


def is_spoilt(folder: Path) -> bool:
    """Return True if a line of the log cannot be read."""
    return journal.is_spoilt(folder / FILE, _parse)


def corrected(corpus: Corpus, mentions: Sequence[Mention], changes: Sequence[Review]) -> Iterator[Sentence]:
    """Yield the sentences of `corpus` in order, with `changes` applied to their labels."""
    by_row: dict[int, dict[tuple[int, int], Review]] = defaultdict(dict)
    for review in changes:
        mention = mentions[review.mention]
        by_row[mention.row][mention.start, mention.end] = review
    row = 0
    for block in corpus.batches():
        for sentence in block:
            yield _changed(sentence, by_row[row]) if row in by_row else sentence
            row += 1


def _changed(sentence: Sentence, reviews: Mapping[tuple[int, int], Review]) -> Sentence:
    """Apply reviews, given by start and end, to the labels of one sentence."""
    entities: list[Entity] = []
    for entity in sentence.entities or ():
        review = reviews.get((entity.start, entity.end))
        if review is None:
            entities.append(entity)
        elif review.action == "fix":
            entities.append(replace(entity, type=review.type))
    return replace(sentence, entities=tuple(entities))
