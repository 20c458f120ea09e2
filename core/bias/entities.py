"""Less informative names: A Random2Low, B HighC2Low, C Redundant2Low (Ma et al. 2023, 4.3; SOURCES.md, Rebuilding).

Where too few names, or contexts, tell much to reach the rate, the thresholds are lowered a rung at a time.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import TypeVar

import numpy as np

from core.bias.names import is_content_word
from core.bias.pools import Pools
from core.bias.result import Edit
from core.bias.training_sentences import Name, Rebuilt, Taken, Training, edits_of, renamed, surface
from core.results import BoolArray
from core.text.sentence import Sentence

TRIES = 20  # draws of other names, where a sentence would come twice or is held out
Order = Callable[[Training, Sequence[int], Random], list[int]]  # which mentions of a pool are changed, the first first
K = TypeVar("K", tuple[str, str], tuple[str, Name])


def random2low(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """A: mentions of high PVI_E, drawn at random, get names of their type of low PVI_E, in copies of
    their sentences that are added; several mentions of a sentence share its one copy."""
    return _rebuilt(training, ladder, rate, seed, source=_names, order=_drawn, kind="random2low")


def highc2low(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """B: as A, but of mentions whose context has high PVI too."""
    return _rebuilt(training, ladder, rate, seed, source=_both, order=_drawn, kind="highc2low")


def redundant2low(training: Training, ladder: Sequence[Pools], rate: float, seed: int) -> Rebuilt:
    """C: of names of high PVI that come more than once one mention is kept, then one of those that share a word; the
    others, those of the most frequent name first, get names of their type of low PVI, in place."""
    return _rebuilt(training, ladder, rate, seed, source=_names, order=_redundant, kind="redundant2low", in_place=True)


def _names(pools: Pools) -> BoolArray:
    return pools.entity_high


def _both(pools: Pools) -> BoolArray:
    return pools.entity_high & pools.context_high


def _drawn(training: Training, mentions: Sequence[int], rng: Random) -> list[int]:
    return rng.sample(mentions, len(mentions))


def _redundant(training: Training, mentions: Sequence[int], rng: Random) -> list[int]:
    """All but one of each name, then all but one of those left whose names share a content word."""
    groups: dict[tuple[str, Name], list[int]] = defaultdict(list)
    for mention in mentions:
        groups[training.kinds[mention], training.names[mention]].append(mention)
    stays, extra = list[int](), list[int]()
    for group in _largest_first(groups):
        # One mention of each name stays, drawn by lot: which it is should not depend on the order of sentences.
        first, *others = rng.sample(group, len(group))
        stays.append(first)
        extra += others
    alike: dict[tuple[str, str], list[int]] = defaultdict(list)
    for mention in sorted(stays):
        # Sorted, for a set of words has another order in every process.
        for word in sorted({word.casefold() for word in training.names[mention] if is_content_word(word)}):
            alike[training.kinds[mention], word].append(mention)
    kept, gone = set[int](), set[int]()
    for group in _largest_first(alike):
        left = [mention for mention in group if mention not in gone]
        if left and kept.isdisjoint(left):
            kept.add(rng.choice(left))  # for good: else a longer name's other words would take it away again
        more = [mention for mention in left if mention not in kept]
        gone.update(more)
        extra += more
    return extra


def _largest_first(groups: dict[K, list[int]]) -> list[list[int]]:
    return [groups[key] for key in sorted(groups, key=lambda key: (-len(groups[key]), key))]


def _rebuilt(
    training: Training,
    ladder: Sequence[Pools],
    rate: float,
    seed: int,
    *,
    source: Callable[[Pools], BoolArray],
    order: Order,
    kind: str,
    in_place: bool = False,
) -> Rebuilt:
    """ladder: from the most demanding pools; of these the first is drawn from that has mentions enough."""
    wanted, low = training.wanted(rate), _LowNames(training, ladder[0])
    for pools in ladder:
        rng = Random(seed)
        # A mention that nothing can replace takes no part: it would use up the rate.
        waiting = order(training, [m for m in _rows(source(pools) & training.free) if low.has_other(m)], rng)
        if len(waiting) >= wanted:
            break
    sentences, edits = list(training.sentences), list[Edit]()
    taken = Taken((sentence.text for sentence in sentences), training.closed)
    visited = set[int]()
    while waiting and (lacking := wanted - len(edits)):
        batch, waiting = waiting[:lacking], waiting[lacking:]
        for row, mentions in training.by_row(batch).items():
            if row not in visited and (edited := low.rename(row, mentions, taken, rng)):
                original, places = training.sentences[row], training.places[mentions].tolist()
                to, copy_of = (row, None) if in_place else (len(sentences), row)
                edits += edits_of(original, edited, places, row=to, copy_of=copy_of, kind=kind)
                sentences[to : to + 1] = [edited]
            visited.add(row)
    return Rebuilt(sentences=sentences, edits=edits, wanted=wanted, reached=pools.reached)


class _LowNames:
    """Names of low PVI by type, as often as they are mentioned. None comes from a held-out sentence."""

    def __init__(self, training: Training, pools: Pools) -> None:
        self.training = training
        self.names: dict[str, list[Name]] = defaultdict(list)
        for mention in _rows(pools.entity_low & training.free):
            self.names[training.kinds[mention]].append(training.names[mention])
        self.folded = {kind: {surface(name).casefold() for name in names} for kind, names in self.names.items()}

    def has_other(self, mention: int) -> bool:
        """Whether the mention's type has a low name other than its own."""
        own = surface(self.training.names[mention]).casefold()
        return bool(self.folded.get(self.training.kinds[mention], set()) - {own})

    def rename(self, row: int, mentions: Iterable[int], taken: Taken, rng: Random) -> Sentence | None:
        """The sentence at `row` with another name for each of its `mentions`; None where no draw makes a new one."""
        for _ in range(TRIES):
            names = {int(self.training.places[mention]): self._other(mention, rng) for mention in mentions}
            edited = renamed(self.training.sentences[row], names)
            if taken.admit(edited.text):
                return edited
        return None

    def _other(self, mention: int, rng: Random) -> Name:
        own = surface(self.training.names[mention]).casefold()
        # Ends: `has_other` was asked of every mention that comes here.
        while surface(name := rng.choice(self.names[self.training.kinds[mention]])).casefold() == own:
            pass
        return name


def _rows(mask: BoolArray) -> list[int]:
    rows: list[int] = np.flatnonzero(mask).tolist()
    return rows
