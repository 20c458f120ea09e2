"""`knn` with `query=round-robin`: T_C's sentences take sentences of D_C in turn (Ivison et al. 2025)."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from core.reporter import Reporter
from core.results import FloatArray, IntArray, Rows
from core.selection.evidence import Arrays, Evidence, Part, Parts

# Number of D_C's rows whose cosines to all of T_C are in memory at a time. There are fewer rows if these cosines would
# be more than `_HELD`.
BLOCK = 4096
# largest number of cosines in memory at a time, 64 MB
_HELD = 1 << 24
# The lists of all T_C sentences (see `Turns`) together have this many entries per row of D_C, about 64 bytes.
_DEPTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """The first round in which each sentence of D_C is taken.

    In round r, every sentence of T_C takes its r-th nearest sentence of D_C. Several sentences of T_C may take the same
    one. There are `last` rounds, so each sentence of T_C has a list of `last` sentences. Some sentences of D_C may be
    in no list.

    ids: `(k,)` uint64, ascending: ids of the sentences in a list. rounds: `(k,)`, from 1. takers: `(k,)`, the first row
    of T_C's vectors that takes the sentence in this round. cosines: `(k,)`, cosine to this row. last: number of rounds.
    """

    ids: IntArray
    rounds: IntArray
    takers: IntArray
    cosines: FloatArray
    last: int

    @classmethod
    def of(cls, task: FloatArray, domain: Rows, ids: IntArray, report: Reporter) -> Self:
        """Return the turns of T_C's rows. task: `(m, d)` unit rows. domain: `(n, d)` unit rows with `ids`, `(n,)`.

        Rows of zeros are not taken. Ties in a list go to the lower row. The cost is n x m x d products.
        """
        last = min(-(-_DEPTH * len(ids) // len(task)), len(ids))
        takers, rows, cosines = _lists(task, domain, last, report)
        starts = np.searchsorted(takers, np.arange(len(task)))
        rounds = np.arange(len(takers)) - starts[takers] + 1
        # Equal sentences have one id. All of them get the round of the one that is taken first.
        order = np.lexsort((takers, rounds, ids[rows]))
        known, first = np.unique(ids[rows][order], return_index=True)
        best = order[first]
        return cls(ids=known, rounds=rounds[best], takers=takers[best], cosines=cosines[best], last=last)

    def scores(self, ids: IntArray, largest: FloatArray) -> FloatArray:
        """Return (1 + c) / 2 - r for each sentence, `(n,)`; see `standing`.

        c: its cosine to the sentence of T_C that takes it. r: the round in which it is taken. Sentences that are never
        taken rank last, in the order of `largest`. largest: `(n,)` largest cosine to T_C.
        """
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        taken = self.ids[places] == ids
        rounds = np.where(taken, self.rounds[places], self.last + 1)
        return standing(np.where(taken, self.cosines[places], largest), rounds)

    def arrays(self) -> Arrays:
        """Return the arrays that `explained` needs: ids of the taken sentences, and their takers."""
        return {"taken": self.ids, "takers": self.takers.astype(np.int32)}


def standing(cosines: FloatArray, rounds: IntArray) -> FloatArray:
    """Return scores `(n,)`: earlier rounds score higher; within a round, larger cosines do."""
    # The cosine's term stays below 1, so that it cannot move a sentence into another round.
    result: FloatArray = np.clip((1 + cosines.astype(np.float64)) / 2, 0, 1 - 2.0**-20) - rounds
    return result


def explained(evidence: Evidence, near: FloatArray, rows: IntArray) -> Parts:
    """Return the parts of a score: round and tie-break. near, rows: cosine and row of each T_C sentence, `(m,)`."""
    model, id = evidence.model, np.uint64(int(evidence.sentence.id, 16))
    at = int(np.searchsorted(model["taken"], id))
    taken = at < len(model["taken"]) and model["taken"][at] == id
    taker = int(model["takers"][at] if taken else near.argmax())
    half = float(standing(near[[taker]], np.zeros(1, dtype=np.int64))[0])
    number = round(half - evidence.score)
    who = f"sentence {rows[taker]} of the task corpus"
    late = f"taken in no round, so ranked after the last round, {number - 1:,}"
    round_ = f"taken in round {number:,} by {who}" if taken else late
    return Parts(
        parts=[
            Part(name=f"{round_} (-1 per round)", value=-float(number), task_row=int(rows[taker]) if taken else None),
            Part(name=f"tie-break: (1 + cosine to {who}) / 2", value=half, task_row=int(rows[taker])),
        ]
    )


def _lists(task: FloatArray, domain: Rows, depth: int, report: Reporter) -> tuple[IntArray, IntArray, FloatArray]:
    """Return takers, rows and cosines, `(t,)`: for each row of T_C its `depth` nearest rows of D_C, nearest first."""
    block = max(min(BLOCK, _HELD // len(task)), 1)
    across = np.ascontiguousarray(task.T)
    least = np.full(len(task), -np.inf, dtype=np.float32)  # smallest cosine that can still enter each list
    kept: list[tuple[IntArray, IntArray, FloatArray]] = []
    for start in range(0, len(domain), block):
        report.check()
        report.progress(start, len(domain), "sentences")
        vectors = np.asarray(domain[start : start + block], dtype=np.float32)
        near = vectors @ across
        near[~vectors.any(axis=1)] = -np.inf  # an empty sentence has no direction
        rows, takers = np.nonzero((near >= least) & np.isfinite(near))
        kept.append((takers.astype(np.int32), (rows + start).astype(np.int32), near[rows, takers]))
        if sum(len(part[0]) for part in kept) > 2 * depth * len(task):
            kept = [_cut(kept, depth)]
            full = np.bincount(kept[0][0], minlength=len(task)) == depth
            ends = np.searchsorted(kept[0][0], np.arange(len(task)), side="right") - 1
            least[full] = kept[0][2][ends[full]]
    return _cut(kept, depth)


def _cut(parts: list[tuple[IntArray, IntArray, FloatArray]], depth: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Join lists of candidates, and keep the `depth` entries with the highest cosine per sentence of T_C (taker)."""
    takers, rows, cosines = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((rows, -cosines, takers))
    takers, rows, cosines = takers[order], rows[order], cosines[order]
    place = np.arange(len(takers)) - np.searchsorted(takers, takers)
    inside = place < depth
    return takers[inside], rows[inside], cosines[inside]
