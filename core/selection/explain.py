"""Why a score is what it is: its parts, for every strategy that has any, and the nearest sentences of T_C.

What explaining needs and only `prepare` knows is kept by `learned` as plain arrays beside the scores, so that one
sentence can be explained in milliseconds, without torch, by a process that never saw the model.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from core.errors import CorpusError
from core.results import IntArray
from core.selection import explain_entities, explain_vectors, explain_words
from core.selection.base import Strategy
from core.selection.near import cosines
from core.selection.parts import Arrays, Evidence, Part, Parts

_COSINES = ("cos-pretrained", "cos-mlm", "cos-mlm-ner")
_KEEP: Mapping[str, Callable[[Any], Arrays]] = {
    **dict.fromkeys(_COSINES, explain_vectors.keep_cosine),
    "ner-selected": explain_entities.keep_entities,
    "classifier": explain_words.keep_classifier,
    "ngram-perplexity": explain_words.keep_ngram,
    "length-matched-random": explain_words.keep_lengths,
}
_EXPLAIN: Mapping[str, Callable[[Evidence], Parts]] = {
    **dict.fromkeys(_COSINES, explain_vectors.cosine),
    "ner-selected": explain_entities.entities,
    "knn": explain_vectors.neighbours,
    "classifier": explain_words.classifier,
    "ngram-perplexity": explain_words.ngram,
    "gazetteer": explain_words.gazetteer,
    "length-matched-random": explain_words.length_matched,
    "random": explain_words.random,
}


def learned(strategy: Strategy, task_rows: IntArray | None) -> Arrays:
    """Arrays that `explain` needs of a prepared strategy. task_rows: T_C's rows that it learnt from (vectors)."""
    make = _KEEP.get(strategy.name)
    return {**({} if task_rows is None else {"task_rows": task_rows}), **(make(strategy) if make else {})}


def explain(name: str, evidence: Evidence) -> Parts:
    """The parts of a score of strategy `name`. One without parts has one: the score."""
    if np.isnan(evidence.score):
        return Parts(parts=(), formula="", notes=("This sentence could not be scored: it is empty.",))
    make = _EXPLAIN.get(name)
    whole = [Part(name=f"score ({evidence.unit})", value=evidence.score)]
    if make is None:
        return Parts(parts=whole, notes=("This strategy's score has no parts.",))
    try:
        return make(evidence)
    except (KeyError, CorpusError):  # scored before models were kept, or what it was scored with was removed
        return Parts(parts=whole, notes=("What this score was made from is gone; score again to see its parts.",))


def neighbours(evidence: Evidence, n: int = 5) -> list[tuple[int, float]]:
    """`(row of T_C, cosine)` of the nearest `n`, nearest first; empty where nothing was embedded."""
    if evidence.vector is None or evidence.task is None:
        return []
    near = cosines(evidence.task, evidence.vector[None])[:, 0]
    best = np.argsort(-near, kind="stable")[:n]
    return [(int(row), float(near[row])) for row in best]
