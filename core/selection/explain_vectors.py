"""Scores made of embeddings, by the sentences of T_C that they come from."""

from typing import Any

import numpy as np

from core.errors import CorpusError
from core.results import FloatArray, IntArray
from core.selection.parts import SHOWN, Arrays, Evidence, Part, Parts, top


def keep_cosine(strategy: Any) -> Arrays:
    """The queries, the whitening and the mean of D_C of a prepared `CosinePretrained`."""
    kept = {"queries": strategy._queries}
    if strategy._shift is not None:
        kept |= {"shift": strategy._shift, "rotation": strategy._rotation}
    return kept | ({} if strategy._against is None else {"against": strategy._against})


def _task(evidence: Evidence) -> tuple[FloatArray, FloatArray, IntArray]:
    """T_C's vectors and norms that were learnt from, and their rows."""
    if evidence.task is None or evidence.task_norms is None or evidence.vector is None:
        raise CorpusError("T_C's vectors are gone.")
    rows = evidence.model["task_rows"]
    return np.asarray(evidence.task[rows], dtype=np.float64), evidence.task_norms[rows].astype(np.float64), rows


def cosine(evidence: Evidence) -> Parts:
    """cos(x, q) is linear in q: each sentence of T_C has its share of it (SOURCES.md, Cosine to T_C)."""
    task, norms, rows = _task(evidence)
    model = evidence.model
    vector: FloatArray = np.asarray(evidence.vector, dtype=np.float64)
    if "rotation" in model:
        task, vector = (_unit((part - model["shift"]) @ model["rotation"]) for part in (task, vector))
        norms = np.ones(len(task))
    query = evidence.options["query"]
    if query == "k-means":
        near = model["queries"].astype(np.float64) @ vector
        best = int(near.argmax())
        name = f"nearest of {len(near)} topics of T_C (number {best + 1})"
        return Parts(parts=[Part(name=name, value=float(near[best]))])
    weights = norms if query == "raw-mean" else np.ones(len(task))
    mean = (task * weights[:, None]).mean(axis=0)
    shares = (task @ vector) * weights / (len(task) * np.linalg.norm(mean))
    parts = [
        Part(name=f"sentence {row} of T_C", value=share, task_row=int(row))
        for row, share in zip(rows.tolist(), shares.tolist(), strict=True)
    ]
    shown = top(parts, f"the other {len(parts) - SHOWN:,} sentences of T_C")
    if "against" in model:
        against = -evidence.options["contrast"] * float(model["against"][0].astype(np.float64) @ vector)
        shown.append(Part(name="likeness to D_C's average, which counts against it", value=against))
    return Parts(parts=shown)


def neighbours(evidence: Evidence) -> Parts:
    """A k-th of the cosine to each of the k nearest sentences of T_C."""
    task, _, rows = _task(evidence)
    near = _unit(task) @ np.asarray(evidence.vector, dtype=np.float64)
    best = np.argsort(-near, kind="stable")[: evidence.options["neighbours"]]
    return Parts(
        parts=[
            Part(name=f"sentence {row} of T_C", value=value / len(best), task_row=int(row))
            for row, value in zip(rows[best].tolist(), near[best].tolist(), strict=True)
        ],
        formula=f"each part is a cosine divided by {len(best)}; they add up to the score",
    )


def _unit(vectors: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: FloatArray = vectors / np.maximum(lengths, 1e-12)
    return unit
