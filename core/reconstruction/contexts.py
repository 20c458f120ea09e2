"""More informative contexts: I Random2High and II Low2High (Ma et al. 2023, 4.4; SOURCES.md, Rebuilding).

A context goes with its sentence, and with it those of the sentence's other mentions. So that the set's size and types
stay what they were, a deleted sentence gives way to a copy of a retained one with mentions of the same types, whose
contexts are all informative, and its own names are put there. A sentence that no retained one fits stays.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from random import Random

import numpy as np

from core.reconstruction.pools import Pools
from core.reconstruction.training import (
    Edit,
    Name,
    Rebuilt,
    Taken,
    Training,
    edits_of,
    name_of,
    ordered,
    renamed,
    same_name,
)
from core.results import FloatArray
from core.text.sentence import Sentence

Types = tuple[str, ...]  # of a sentence's mentions, sorted
TRIES = 50  # retained sentences that are tried, where a copy would come twice or keep a name


def random2high(training: Training, pools: Pools, rate: float, seed: int) -> Rebuilt:
    """I: contexts are deleted at random."""
    rng = Random(seed)
    rows = list(training.by_row(range(len(training))))
    return _moved(training, pools, rng.sample(rows, len(rows)), rate=rate, rng=rng, kind="random2high")


def low2high(training: Training, pools: Pools, rate: float, seed: int) -> Rebuilt:
    """II: the least informative ones are deleted: by the rank of PVI_C within the type, a sentence by the mean."""
    # Ranks, not bits: types differ in how many bits there are to have, and rare types would all go first or last.
    ranks = _ranks(training)
    order = {row: float(ranks[mentions].mean()) for row, mentions in training.by_row(range(len(training))).items()}
    measured = [row for row, rank in order.items() if not np.isnan(rank)]
    measured.sort(key=lambda row: (order[row], row))
    return _moved(training, pools, measured, rate=rate, rng=Random(seed), kind="low2high")


def _ranks(training: Training) -> FloatArray:
    """`(m,)` 0 to 1 within the type, NaN where there is no measurement."""
    from scipy.stats import rankdata  # a second to load, which no page should wait for

    kinds = np.array(training.kinds, dtype=np.str_)
    ranks = np.full(len(training), np.nan)
    for kind in np.unique(kinds):
        mentions = np.flatnonzero((kinds == kind) & ~np.isnan(training.context))
        ranks[mentions] = rankdata(training.context[mentions]) / max(len(mentions), 1)
    return ranks


def _moved(training: Training, pools: Pools, order: Iterable[int], *, rate: float, rng: Random, kind: str) -> Rebuilt:
    wanted = training.wanted(rate)
    gone, hosts = _deleted(training, pools, order, wanted)
    sentences, edits = list(training.sentences), list[Edit]()
    taken = Taken((sentence.text for sentence in sentences), training.closed)
    for row in gone:
        orphaned = training.sentences[row]
        fitting = hosts[_types(orphaned)]
        for host in rng.sample(fitting, min(TRIES, len(fitting))):
            names = _seats(training.sentences[host], orphaned)
            if names and taken.admit((copy := renamed(training.sentences[host], names)).text):
                edits += edits_of(training.sentences[host], copy, names, row=row, copy_of=host, kind=kind)
                sentences[row] = copy
                break
    return Rebuilt(sentences=sentences, edits=edits, wanted=wanted)


def _deleted(
    training: Training, pools: Pools, order: Iterable[int], wanted: int
) -> tuple[list[int], dict[Types, list[int]]]:
    """Rows to delete, of `wanted` mentions at most, and the retained rows whose contexts are high, by their types."""
    free = training.by_row(np.flatnonzero(training.free).tolist())
    high = {row for row, mentions in free.items() if pools.context_high[mentions].all()}
    # A retained sentence of the same types must be left as host, the row itself not counted (`> (row in high)`).
    left = Counter(_types(training.sentences[row]) for row in high)
    gone: list[int] = []
    for row in order:
        types = _types(training.sentences[row])
        if row in free and len(types) <= wanted and left[types] > (row in high):
            left[types] -= row in high
            wanted -= len(types)
            gone.append(row)
    hosts: dict[Types, list[int]] = defaultdict(list)
    for row in sorted(high.difference(gone)):
        hosts[_types(training.sentences[row])].append(row)
    return gone, hosts


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
