"""The health of a selection, measured on bounded samples, so that a page can wait for it."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa

from core.corpora.columns import stored
from core.corpora.corpus import Corpus
from core.results import IntArray, Rows
from core.selection import health
from core.selection.health import Health
from core.selection.result import Scored
from core.stats.draws import stratified


def check_up(
    scored: Scored,
    rows: IntArray,
    task: Corpus,
    *,
    domain_vectors: Rows | None,
    task_vectors: Rows | None,
    labelled: Corpus | None,
    seed: int,
) -> Health:
    """Measure the rows that are S_C.

    vectors: `(n, d)` unit rows, None where nothing was embedded. seed: of the samples.
    """
    domain = scored.domain
    lengths = {"S_C": scored.lengths[rows], "D_C": scored.lengths, "T_C": stored(task, "n_tokens").to_numpy()}
    some = {"S_C": _some(rows, health.READ, seed), "D_C": _some(np.arange(len(domain)), health.READ, seed)}
    texts = {name: _texts(domain, part) for name, part in some.items()}
    texts["T_C"] = _texts(task, _some(np.arange(len(task)), health.READ, seed))
    ratio, words = health.type_token(texts)
    varied = _some(rows, health.VARIED, seed)
    covered = _some(np.arange(len(task)), health.COVERED, seed)
    fresh, names = (None, 0) if labelled is None else health.new_entities(texts["S_C"], _names(labelled))
    result = Health(
        sentences=len(rows),
        tokens=int(lengths["S_C"].sum(dtype=np.int64)),
        median_tokens={name: float(np.median(values)) if len(values) else 0.0 for name, values in lengths.items()},
        duplicates=health.duplicates_left(scored.audit.cluster[rows]),
        type_token=ratio,
        type_token_words=words,
        variety=None if domain_vectors is None else health.vendi(domain_vectors[varied]),
        variety_of=len(varied),
        coverage=_coverage(rows, covered, domain_vectors, task_vectors),
        coverage_of=len(covered),
        new_entities=fresh,
        new_entities_of=names,
        warnings=(),
    )
    return replace(result, warnings=tuple(health.warnings(result)))


def _coverage(
    rows: IntArray, covered: IntArray, domain_vectors: Rows | None, task_vectors: Rows | None
) -> float | None:
    """The coverage of T_C's rows `covered` by S_C's `rows`; None where one of the two was not embedded."""
    if domain_vectors is None or task_vectors is None:
        return None
    inside = np.zeros(len(domain_vectors), dtype=bool)
    inside[rows] = True
    return health.coverage(task_vectors[covered], domain_vectors, inside)


def _some(rows: IntArray, n: int, seed: int) -> IntArray:
    """Up to `n` of `rows`, ascending."""
    return np.sort(rows[stratified(np.zeros(len(rows), dtype=np.int64), n, seed)])


def _texts(corpus: Corpus, rows: IntArray) -> list[str]:
    texts: list[str] = stored(corpus, "text").take(pa.array(rows)).to_pylist()
    return texts


def _names(labelled: Corpus) -> Iterable[str]:
    """The surfaces of L_C's entities."""
    for sentence in chain.from_iterable(labelled.batches()):
        for entity in sentence.entities or ():
            yield " ".join(sentence.tokens[entity.start : entity.end])
