"""More informative contexts: I Random2High and II Low2High (Ma et al. 2023, 4.4; SOURCES.md, Rebuilding).

A context goes with its sentence, and with it those of the sentence's other mentions. So that the set's size and types
stay what they were, a deleted sentence gives way to a copy of a retained one with mentions of the same types, whose
contexts are all informative, and its own names are put there. A sentence that no retained one fits gives way a mention
at a time: the words around a name to those around a retained one of its type, see `stretches`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from core.bias.pools import Pools
from core.bias.result import Edit
from core.bias.stretches import context_words, moved
from core.bias.training_sentences import (
    Name,
    Rebuilt,
    Taken,
    Training,
    edits_of,
    name_of,
    ordered,
    renamed,
    same_name,
    surface,
)
from core.results import BoolArray, FloatArray
from core.text.sentence import Sentence

Types = tuple[str, ...]  # of a sentence's mentions, sorted
TRIES = 50  # retained sentences or mentions that are tried, where a copy would come twice or keep a name
ENOUGH = 3  # words beside a name: fewer are no context to lend


def random2high(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """I: contexts are deleted at random."""
    rng, high = Random(seed), ladder[0].context_high
    rows = list(training.by_row(range(len(training))))
    poor = np.ones(len(training), dtype=np.bool_)
    plan = _plan(training, high, rng.sample(rows, len(rows)), poor, training.wanted(rate))
    return _apply(training, plan, training.wanted(rate), rng=rng, kind="random2high")


def low2high(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """II: the least informative ones are deleted: by the rank of PVI_C within the type, a sentence by the mean. A
    sentence whose contexts are all high stays."""
    # Ranks, not bits: types differ in how many bits there are to have, and rare types would all go first or last.
    ranks, high = _ranks(training), ladder[0].context_high
    rows = training.by_row(range(len(training)))
    order = {row: float(ranks[mentions].mean()) for row, mentions in rows.items() if not high[mentions].all()}
    measured = [row for row, rank in order.items() if not np.isnan(rank)]
    measured.sort(key=lambda row: (order[row], row))
    plan = _plan(training, high, measured, ~high, training.wanted(rate))
    return _apply(training, plan, training.wanted(rate), rng=Random(seed), kind="low2high")


def _ranks(training: Training) -> FloatArray:
    """`(m,)` 0 to 1 within the type, NaN where there is no measurement; equals share the mean of their ranks."""
    kinds = np.array(training.kinds, dtype=np.str_)
    ranks = np.full(len(training), np.nan)
    for kind in np.unique(kinds):
        mentions = np.flatnonzero((kinds == kind) & ~np.isnan(training.context))
        # By hand: scipy.stats takes a second to load, for which no page should wait.
        _, places, times = np.unique(training.context[mentions], return_inverse=True, return_counts=True)
        # Equal values share the middle of their places.
        ranks[mentions] = (np.cumsum(times) - (times - 1) / 2)[places] / max(len(mentions), 1)
    return ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Plan of what is deleted, and what is retained to take its place.

    whole: rows that give way as sentences. by_mention: {row: its mentions that give way one by one}, of `whole` too,
    where no copy comes out new. sentences: retained rows whose contexts are all high, by types; mentions: retained ones
    of high context with words enough beside the name, by type.
    """

    whole: set[int]
    by_mention: dict[int, list[int]]
    sentences: dict[Types, list[int]]
    mentions: dict[str, list[int]]


def _plan(training: Training, high: BoolArray, order: Iterable[int], poor: BoolArray, wanted: int) -> _Plan:
    """Go through the rows of `order` until `wanted` mentions are deleted. poor: those that may be, one by one."""
    free = training.by_row(np.flatnonzero(training.free).tolist())
    all_high = {row for row, mentions in free.items() if high[mentions].all()}
    lending = _lending(training, high, free)
    # The last one is not deleted, sentence or mention, by which others of its types were: they could not be replaced.
    sentences = Counter(_types(training.sentences[row]) for row in all_high)
    mentions = Counter(training.kinds[m] for m in lending)
    whole, by_mention, promised = set[int](), dict[int, list[int]](), set[Types]()
    for row in order:
        if not wanted:
            break
        types = _types(training.sentences[row])
        own = Counter(training.kinds[m] for m in free.get(row, ()) if m in lending)
        others = sentences[types] - (row in all_high)
        last = (types in promised and not others) or any(mentions[kind] == n for kind, n in own.items())
        if row not in free or last:
            continue
        singly = [m for m in free[row] if poor[m] and mentions[training.kinds[m]] > own[training.kinds[m]]]
        if others and len(types) <= wanted:
            whole.add(row)
            promised.add(types)
            wanted -= len(types)
        elif singly := singly[:wanted]:
            wanted -= len(singly)
        else:
            continue
        by_mention[row] = singly
        sentences[types] = others
        mentions -= own
    retained: dict[Types, list[int]] = defaultdict(list)
    for row in sorted(all_high.difference(by_mention)):
        retained[_types(training.sentences[row])].append(row)
    by_kind: dict[str, list[int]] = defaultdict(list)
    for mention in sorted(lending):
        if int(training.rows[mention]) not in by_mention:
            by_kind[training.kinds[mention]].append(mention)
    return _Plan(whole=whole, by_mention=by_mention, sentences=retained, mentions=by_kind)


def _lending(training: Training, high: BoolArray, free: Mapping[int, Sequence[int]]) -> set[int]:
    """Mentions whose context may be lent. free: {row: its mentions}, none that is held out."""
    return {
        mention
        for row, mentions in free.items()
        for mention, words in zip(mentions, context_words(training.sentences[row]), strict=True)
        if high[mention] and words >= ENOUGH
    }


def _apply(training: Training, plan: _Plan, wanted: int, *, rng: Random, kind: str) -> Rebuilt:
    taken = Taken((sentence.text for sentence in training.sentences), training.closed)
    mover = _Mover(training=training, plan=plan, taken=taken, rng=rng, kind=kind)
    sentences, edits = list(training.sentences), list[Edit]()
    for row, mentions in plan.by_mention.items():
        if done := (row in plan.whole and mover.whole(row)) or mover.singly(row, mentions):
            sentences[row] = done[0]
            edits += done[1]
    return Rebuilt(sentences=sentences, edits=edits, wanted=wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mover:
    """Puts names of deleted contexts into retained ones, by lot; into none whose sentence would come twice."""

    training: Training
    plan: _Plan
    taken: Taken
    rng: Random
    kind: str

    def whole(self, row: int) -> tuple[Sentence, list[Edit]] | None:
        """A copy of a retained sentence under the names of `row`; None where none is new."""
        orphaned = self.training.sentences[row]
        fitting = self.plan.sentences[_types(orphaned)]
        for lender in self.rng.sample(fitting, min(TRIES, len(fitting))):
            source = self.training.sentences[lender]
            names = _seats(source, orphaned)
            if names and self.taken.admit((copy := renamed(source, names)).text):
                log = edits_of(source, copy, names, row=row, copy_of=lender, kind=self.kind, context_of=lender)
                return copy, log
        return None

    def singly(self, row: int, mentions: Sequence[int]) -> tuple[Sentence, list[Edit]] | None:
        """The sentence at `row` with other contexts around each of `mentions`; None where none is new."""
        lenders = {mention: fitting for mention in mentions if (fitting := self._fitting(mention))}
        for _ in range(TRIES if lenders else 0):
            chosen = {mention: self.rng.choice(fitting) for mention, fitting in lenders.items()}
            edited = moved(
                self.training.sentences[row],
                {self._place(mention): self._seat(lender) for mention, lender in chosen.items()},
            )
            if self.taken.admit(edited.text):
                return edited, [self._edit(edited, *pair) for pair in chosen.items()]
        return None

    def _fitting(self, mention: int) -> list[int]:
        """Retained mentions of the type whose context may be lent, none of the same name."""
        names, lenders = self.training.names, self.plan.mentions.get(self.training.kinds[mention], [])
        drawn = self.rng.sample(lenders, min(TRIES, len(lenders)))
        return [lender for lender in drawn if not same_name(names[lender], names[mention])]

    def _place(self, mention: int) -> int:
        return int(self.training.places[mention])

    def _seat(self, mention: int) -> tuple[Sentence, int]:
        return self.training.sentences[self.training.rows[mention]], self._place(mention)

    def _edit(self, edited: Sentence, mention: int, lender: int) -> Edit:
        name = ordered(edited)[self._place(mention)]
        return Edit(
            row=int(self.training.rows[mention]),
            copy_of=None,
            start=name.start,
            end=name.end,
            type=name.type,
            before=surface(self.training.names[lender]),
            after=surface(name_of(edited, name)),
            kind=self.kind,
            context_of=int(self.training.rows[lender]),
        )


def _types(sentence: Sentence) -> Types:
    return tuple(sorted(entity.type for entity in sentence.entities or ()))


def _seats(host: Sentence, orphaned: Sentence) -> dict[int, Name]:
    """{place of `host`: orphaned name}, type by type from the left; none if one is there."""
    waiting: dict[str, list[Name]] = defaultdict(list)
    for entity in ordered(orphaned):
        waiting[entity.type].append(name_of(orphaned, entity))
    names: dict[int, Name] = {}
    for place, entity in enumerate(ordered(host)):
        names[place] = waiting[entity.type].pop(0)
        if same_name(names[place], name_of(host, entity)):
            return {}
    return names
