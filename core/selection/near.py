"""Find the exact nearest sentences by cosine for a few queries, without torch."""

import numpy as np

from core.results import FloatArray, IntArray, Rows

BLOCK = 1024  # number of rows converted to float32 at a time; they fit into the CPU cache


def widened(vectors: Rows, start: int) -> FloatArray:
    """Return rows `start` to `start + BLOCK - 1` in float32."""
    return np.asarray(vectors[start : start + BLOCK], dtype=np.float32)


def cosines(vectors: Rows, queries: FloatArray) -> FloatArray:
    """Return float32 cosines, shape (n, q), of unit rows (n, d) with unit queries (q, d)."""
    across = np.ascontiguousarray(np.asarray(queries, dtype=np.float32).T)
    result = np.empty((len(vectors), across.shape[1]), dtype=np.float32)
    for start in range(0, len(vectors), BLOCK):
        result[start : start + BLOCK] = widened(vectors, start) @ across
    return result


def nearest_rows(vectors: Rows, queries: IntArray, among: IntArray) -> tuple[IntArray, FloatArray]:
    """Return, for each row in `queries`, the index into `among` of the nearest row, and the cosine, both shape (q,)."""
    query_vectors = np.asarray(vectors[queries], dtype=np.float32)
    best, indices = np.full(len(query_vectors), -np.inf, dtype=np.float32), np.zeros(len(query_vectors), dtype=np.int64)
    for start in range(0, len(among), BLOCK):
        near = np.asarray(vectors[among[start : start + BLOCK]], dtype=np.float32) @ query_vectors.T
        at = near.argmax(axis=0)
        value = near[at, np.arange(len(query_vectors))]
        # Strictly greater, so that ties go to the first row for every block size.
        better = value > best
        best[better], indices[better] = value[better], start + at[better]
    return indices, best
