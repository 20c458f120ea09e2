"""One instance a mention: its context with one mask in its place, its name alone, and who must not part.

SOURCES.md, Mentions and inputs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.results import IntArray
from core.text.sentence import Sentence

View = Literal["entity", "context"]
VIEWS: tuple[View, ...] = ("entity", "context")
Group = Literal["", "sentence", "document"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One entity mention in its sentence. row: of the sentence in its corpus. start, end: half-open word offsets."""

    row: int
    sentence: Sentence
    start: int
    end: int
    type: str

    @property
    def name(self) -> tuple[str, ...]:
        """The entity-only input, words."""
        return self.sentence.tokens[self.start : self.end]

    @property
    def sides(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The context-only input, words before and behind the one mask, which hides how long the name is."""
        return self.sentence.tokens[: self.start], self.sentence.tokens[self.end :]


def instances(sentences: Iterable[Sentence]) -> list[Instance]:
    """Every mention of labelled sentences (all of a corpus, in order), by row and place."""
    return [
        Instance(row=row, sentence=sentence, start=entity.start, end=entity.end, type=entity.type)
        for row, sentence in enumerate(sentences)
        for entity in sorted(sentence.entities or ())
    ]


def sampled(mentions: Sequence[Instance], n: int, seed: int) -> list[Instance]:
    """Mentions of whole sentences drawn at random until there are at least `n`; 0: all. In their order."""
    if not n or len(mentions) <= n:
        return list(mentions)
    rows, counts = np.unique([mention.row for mention in mentions], return_counts=True)
    order = np.random.default_rng([seed, len(rows)]).permutation(len(rows))
    # A shuffle cut short: a smaller n with the same seed takes a part of the same sentences.
    enough = int(np.searchsorted(np.cumsum(counts[order]), n)) + 1
    # Whole sentences: the context of one mention holds the others, whose difficulty is measured too.
    kept = set(rows[order[:enough]].tolist())
    return [mention for mention in mentions if mention.row in kept]


def groups(mentions: Sequence[Instance], by: Group, folds: int) -> tuple[IntArray, Literal["sentence", "document"]]:
    """`(n,)` the group of each mention, 0 up, and what groups are: a sentence goes with its copies.

    by: "" takes documents where each is known and there are at least `folds` of them. A mention whose document is
    not known is grouped by its sentence.
    """
    documents = [mention.sentence.doc for mention in mentions]
    # Fewer documents than folds cannot be dealt into them.
    known = None not in documents and len(set(documents)) >= folds
    chosen: Literal["sentence", "document"] = ("document" if known else "sentence") if by == "" else by
    # Prefixes keep a document's name and a sentence's id apart, which may be spelt alike.
    names = [
        f"d {document}" if chosen == "document" and document is not None else f"s {mention.sentence.id}"
        for document, mention in zip(documents, mentions, strict=True)
    ]
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.int64), chosen
