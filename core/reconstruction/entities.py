"""Names that tell less: A Random2Low, B HighC2Low and C Redundant2Low (Ma et al. 2023, 4.3; SOURCES.md, Rebuilding)."""

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
    """A: mentions whose names tell much, drawn at random, get names of their type that tell little, in copies of
    their sentences that are added; several mentions of a sentence share its one copy."""
    return _added(training, pools, pools.entity_high, rate=rate, seed=seed, kind="random2low")


def highc2low(training: Training, pools: Pools, rate: float, seed: int) -> Rebuilt:
    """B: as A, but of mentions whose context tells much too."""
    return _added(training, pools, pools.entity_high & pools.context_high, rate=rate, seed=seed, kind="highc2low")


def redundant2low(training: Training, pools: Pools, rate: float, seed: int) -> Rebuilt:
    """C: of names that tell much and come more than once one mention is kept; the others, those of the most frequent
    name first, get names of their type that tell little, in place."""
    lots, low = Random(seed), _LowNames(training, pools)
    groups: dict[tuple[str, Name], list[int]] = defaultdict(list)
    for mention in _rows(pools.entity_high & training.free):
        groups[training.kinds[mention], training.names[mention]].append(mention)
    extra: list[int] = []
    for group in sorted(groups, key=lambda group: (-len(groups[group]), group)):
        extra += lots.sample(groups[group], len(groups[group]))[1:]
    wanted = training.wanted(rate)
    sentences, edits = list(training.sentences), list[Edit]()
    for row, mentions in training.by_row([m for m in extra if low.has_other(m)][:wanted]).items():
        for _ in range(TRIES):
            made = low.rename(row, mentions, lots)
            if key_of(made.text) not in training.closed:
                edits += edits_of(sentences[row], made, training.places[mentions].tolist(), row=row, copy_of=None,
                                  kind="redundant2low")  # fmt: skip
                sentences[row] = made
                break
    return Rebuilt(sentences=sentences, edits=edits, wanted=wanted)


def _added(training: Training, pools: Pools, source: BoolArray, *, rate: float, seed: int, kind: str) -> Rebuilt:
    lots, low = Random(seed), _LowNames(training, pools)
    able = [mention for mention in _rows(source & training.free) if low.has_other(mention)]
    wanted = training.wanted(rate)
    sentences, edits = list(training.sentences), list[Edit]()
    taken = Taken((sentence.text for sentence in sentences), training.closed)
    for row, mentions in training.by_row(lots.sample(able, min(wanted, len(able)))).items():
        for _ in range(TRIES):
            copy = low.rename(row, mentions, lots)
            if taken.admit(copy.text):
                edits += edits_of(training.sentences[row], copy, training.places[mentions].tolist(),
                                  row=len(sentences), copy_of=row, kind=kind)  # fmt: skip
                sentences.append(copy)
                break
    return Rebuilt(sentences=sentences, edits=edits, wanted=wanted)


class _LowNames:
    """Names that tell little, by type; as often as they are mentioned. None comes from a held-out sentence."""

    def __init__(self, training: Training, pools: Pools) -> None:
        self.training = training
        self.names: dict[str, list[Name]] = defaultdict(list)
        for mention in _rows(pools.entity_low & training.free):
            self.names[training.kinds[mention]].append(training.names[mention])
        self.folded = {kind: {surface(name).casefold() for name in names} for kind, names in self.names.items()}

    def has_other(self, mention: int) -> bool:
        """Whether its type has one that is not its own."""
        own = surface(self.training.names[mention]).casefold()
        return bool(self.folded.get(self.training.kinds[mention], set()) - {own})

    def rename(self, row: int, mentions: Iterable[int], lots: Random) -> Sentence:
        """The sentence at `row` with another name for each of its `mentions`."""
        names = {int(self.training.places[mention]): self._other(mention, lots) for mention in mentions}
        return renamed(self.training.sentences[row], names)

    def _other(self, mention: int, lots: Random) -> Name:
        own = surface(self.training.names[mention]).casefold()
        while surface(name := lots.choice(self.names[self.training.kinds[mention]])).casefold() == own:
            pass
        return name


def _rows(mask: BoolArray) -> list[int]:
    found: list[int] = np.flatnonzero(mask).tolist()
    return found
