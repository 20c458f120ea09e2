"""Less informative names: A Random2Low, B HighC2Low, C Redundant2Low (Ma et al. 2023, 4.3; SOURCES.md, Rebuilding)."""

from collections import defaultdict
from collections.abc import Iterable
from random import Random

import numpy as np

from core.reconstruction.pools import Pools
from core.reconstruction.training import Edit, Name, Rebuilt, Taken, Training, edits_of, key_of, renamed, surface
from core.results import BoolArray
from core.text.sentence import Sentence

TRIES = 20  # draws of other names, where a sentence would come twice or is held out


def random2low(training: Training, pools: Pools, rate: float, seed: int) -> Rebuilt:
    """A: mentions of high PVI_E, drawn at random, get names of their type of low PVI_E, in copies of
    their sentences that are added; several mentions of a sentence share its one copy."""
    return _added(training, pools, pools.entity_high, rate=rate, seed=seed, kind="random2low")


def highc2low(training: Training, pools: Pools, rate: float, seed: int) -> Rebuilt:
    """B: as A, but of mentions whose context has high PVI too."""
    return _added(training, pools, pools.entity_high & pools.context_high, rate=rate, seed=seed, kind="highc2low")


def redundant2low(training: Training, pools: Pools, rate: float, seed: int) -> Rebuilt:
    """C: of names of high PVI that come more than once one mention is kept; the others, those of the most frequent
    name first, get names of their type of low PVI, in place."""
    rng, low = Random(seed), _LowNames(training, pools)
    groups: dict[tuple[str, Name], list[int]] = defaultdict(list)
    for mention in _rows(pools.entity_high & training.free):
        groups[training.kinds[mention], training.names[mention]].append(mention)
    extra: list[int] = []
    for group in sorted(groups, key=lambda group: (-len(groups[group]), group)):
        # One mention of each name stays, drawn by lot: which it is should not depend on the order of sentences.
        extra += rng.sample(groups[group], len(groups[group]))[1:]
    # The rate is filled from the front, most frequent names first; where nothing can replace a mention, it costs none.
    wanted = training.wanted(rate)
    sentences, edits = list(training.sentences), list[Edit]()
    for row, mentions in training.by_row([m for m in extra if low.has_other(m)][:wanted]).items():
        for _ in range(TRIES):
            edited = low.rename(row, mentions, rng)
            if key_of(edited.text) not in training.closed:
                places = training.places[mentions].tolist()
                edits += edits_of(sentences[row], edited, places, row=row, copy_of=None, kind="redundant2low")
                sentences[row] = edited
                break
    return Rebuilt(sentences=sentences, edits=edits, wanted=wanted)


def _added(training: Training, pools: Pools, source: BoolArray, *, rate: float, seed: int, kind: str) -> Rebuilt:
    rng, low = Random(seed), _LowNames(training, pools)
    able = [mention for mention in _rows(source & training.free) if low.has_other(mention)]
    wanted = training.wanted(rate)
    sentences, edits = list(training.sentences), list[Edit]()
    taken = Taken((sentence.text for sentence in sentences), training.closed)
    for row, mentions in training.by_row(rng.sample(able, min(wanted, len(able)))).items():
        for _ in range(TRIES):
            copy = low.rename(row, mentions, rng)
            if taken.admit(copy.text):
                original, places = training.sentences[row], training.places[mentions].tolist()
                edits += edits_of(original, copy, places, row=len(sentences), copy_of=row, kind=kind)
                sentences.append(copy)
                break
    return Rebuilt(sentences=sentences, edits=edits, wanted=wanted)


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

    def rename(self, row: int, mentions: Iterable[int], rng: Random) -> Sentence:
        """The sentence at `row` with another name for each of its `mentions`."""
        names = {int(self.training.places[mention]): self._other(mention, rng) for mention in mentions}
        return renamed(self.training.sentences[row], names)

    def _other(self, mention: int, rng: Random) -> Name:
        own = surface(self.training.names[mention]).casefold()
        # Ends: `has_other` was asked of every mention that comes here.
        while surface(name := rng.choice(self.names[self.training.kinds[mention]])).casefold() == own:
            pass
        return name


def _rows(mask: BoolArray) -> list[int]:
    rows: list[int] = np.flatnonzero(mask).tolist()
    return rows
