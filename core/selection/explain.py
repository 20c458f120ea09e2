"""Explanations of a score: its parts, as the strategy that gave it says, and the nearest sentences of T_C.

What explaining needs and only `prepare` knows is kept by `learned` as plain arrays beside the scores, so that one
sentence can be explained in milliseconds, without torch, by a process that never saw the model.
"""

import numpy as np

from core.errors import CorpusError
from core.results import IntArray
from core.selection import STRATEGIES
from core.selection.base import Strategy
from core.selection.near import cosines
from core.selection.parts import Arrays, Evidence, Parts


def learned(strategy: Strategy, task_rows: IntArray | None) -> Arrays:
    """Arrays that `explain` needs of a prepared strategy. task_rows: T_C's rows that it learnt from (vectors)."""
    return {**({} if task_rows is None else {"task_rows": task_rows}), **strategy.learned()}


def explain(name: str, evidence: Evidence) -> Parts:
    """The parts of a score of strategy `name`. One without parts has one: the score."""
    if np.isnan(evidence.score):
        return Parts(parts=(), formula="", notes=("This sentence could not be scored: it is empty.",))
    strategy = STRATEGIES.get(name, Strategy)
    try:
        return strategy.explain(evidence)
    except (KeyError, CorpusError):  # scored before models were kept, or what it was scored with was removed
        gone = "What this score was made from is gone; score again to see its parts."
        return Parts(parts=[evidence.whole], notes=(gone,))


def neighbours(evidence: Evidence, n: int = 5) -> list[tuple[int, float]]:
    """`(row of T_C, cosine)` of the nearest `n`, nearest first; empty where nothing was embedded."""
    if evidence.vector is None or evidence.task is None:
        return []
    near = cosines(evidence.task, evidence.vector[None])[:, 0]
    best = np.argsort(-near, kind="stable")[:n]
    return [(int(row), float(near[row])) for row in best]
