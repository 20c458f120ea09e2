"""Health of S_C: lengths, duplicates, variety, coverage of T_C, new names, warnings (SOURCES.md, Health of S_C).

Only samples of fixed size are measured. This takes seconds, so a page can wait for the result.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np
import pyarrow as pa

from core.corpora.columns import stored
from core.corpora.corpus import Corpus
from core.results import BoolArray, FloatArray, IntArray, Rows
from core.selection.near import BLOCK, widened
from core.selection.result import Scored
from core.shown import count
from core.stats.draws import stratified
from core.terms import plainly
from core.text.words import fold

# A warning is shown if the median lengths of two corpora differ by more than this share.
TOLERANCE = 0.25
# Shares, set by judgement, at which the warnings on duplicates, variety, coverage and vocabulary are shown.
REPEATED, SAME, HALF, POOR = 0.02, 0.02, 0.5, 0.75
# number of sentences per corpus whose words are counted
READ = 5_000
# largest number of words per corpus that are counted
WORDS = 50_000
# number of sentences from which the Vendi score is computed
VARIED = 2_000
# number of T_C's sentences for which coverage is measured
COVERED = 500
_NAME = re.compile(r"(?<=[\w,;:’'] )[^\W\d_a-z]\w*(?: [^\W\d_a-z]\w*)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The health of a selection. Values that could not be measured are None.

    sentences, tokens: size of S_C. median_tokens: {S_C, D_C, T_C: median tokens per sentence}. duplicates: number of
    rows of S_C beyond the first of each cluster of exact or near duplicates. type_token: {S_C, D_C, T_C: distinct
    words / words}, on `type_token_words` words of each corpus. variety: effective number of different sentences among
    `variety_of` sampled ones (Vendi score). coverage: share, 0 to 1, of `coverage_of` sentences of T_C whose nearest
    sentence of D_C is in S_C. new_entities: share of the `new_entities_of` distinct names in S_C that L_C does not
    have; names are found by their capital letters. warnings: sentences shown to users.
    """

    sentences: int
    tokens: int
    median_tokens: Mapping[str, float]
    duplicates: int
    type_token: Mapping[str, float]
    type_token_words: int
    variety: float | None
    variety_of: int
    coverage: float | None
    coverage_of: int
    new_entities: float | None
    new_entities_of: int
    warnings: Sequence[str]


def duplicates_left(cluster: IntArray) -> int:
    """Return the number of selected rows beyond the first of each cluster. cluster: each row's cluster, shape (k,)."""
    return len(cluster) - len(np.unique(cluster))


def type_token(texts: Mapping[str, Iterable[str]], most: int = WORDS) -> tuple[dict[str, float], int]:
    """Return {corpus: distinct words / words} and the number of words used.

    The ratio falls with length, so each corpus is cut to the same number of words.
    """
    words = {name: list(islice(_words(corpus_texts), most)) for name, corpus_texts in texts.items()}
    n = min(map(len, words.values()), default=0)
    return {name: len(set(own_words[:n])) / n if n else 0.0 for name, own_words in words.items()}, n


def _words(texts: Iterable[str]) -> Iterator[str]:
    return (word for text in texts for word in fold(text).split())


def vendi(vectors: FloatArray) -> float:
    """Return the Vendi score (Friedman and Dieng 2023) of rows (n, d): 1 if all are equal, n if all are orthogonal.

    The score is exp of the entropy of the eigenvalues of K/n. For unit rows R, K = R R^T contains the cosines. The
    d x d matrix R^T R / n has the same non-zero eigenvalues as K/n.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    rows = rows[rows.any(axis=1)]
    if not len(rows):
        return 0.0
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    # Take the smaller of the two matrices, because the cost of the eigenvalues is cubic in its side.
    gram = rows.T @ rows if len(rows) > rows.shape[1] else rows @ rows.T
    values = np.linalg.eigvalsh(gram / len(rows))
    # Leave out zero eigenvalues: they have no logarithm, and rounding can make them slightly negative.
    values = values[values > 1e-12]
    return float(np.exp(-(values * np.log(values)).sum()))


def coverage(task: FloatArray, domain: Rows, selected: BoolArray) -> float | None:
    """Return the share of T_C's sentences that are at least as close to a selected sentence as to any other.

    task, domain: unit rows (t, d) and (n, d). selected: mask (n,). None if all or no sentences are selected, or if T_C
    is empty. Takes a few seconds for a million rows and `COVERED` sentences.
    """
    if selected.all() or not selected.any() or not len(task):
        return None
    queries = np.ascontiguousarray(np.asarray(task, dtype=np.float32).T)
    best = np.full((2, queries.shape[1]), -np.inf, dtype=np.float32)
    for start in range(0, len(domain), BLOCK):
        near = widened(domain, start) @ queries
        inside = selected[start : start + BLOCK]
        for side, rows in enumerate((~inside, inside)):
            if rows.any():
                best[side] = np.maximum(best[side], near[rows].max(axis=0))
    return float((best[1] >= best[0]).mean())


def new_entities(texts: Iterable[str], known: Iterable[str]) -> tuple[float | None, int]:
    """Return the share of distinct names in `texts` that are not in `known`, and the number of distinct names.

    A name is a run of capitalised words that does not begin the sentence. Without a tagger, this misses names in lower
    case, counts German nouns and finds nothing in scripts without capitals.
    """
    names = {fold(name) for text in texts for name in _NAME.findall(text) if name[0].isupper()} - {""}
    fresh = names - {fold(name) for name in known}
    return (len(fresh) / len(names) if names else None), len(names)


def warnings(health: Health) -> Iterator[str]:
    """Yield warnings to show before a model is trained on S_C, one sentence each."""
    median, selected = health.median_tokens, health.median_tokens["S_C"]
    for other in ("T_C", "D_C"):
        median_other = median.get(other)
        if median_other and abs(selected / median_other - 1) > TOLERANCE:
            sort = "long" if selected > median_other else "short"
            # Only the comparison with D_C shows which lengths the strategy prefers: S_C can have longer sentences than
            # T_C although the strategy prefers short sentences of D_C.
            how = (
                f"the selection prefers {sort} sentences"
                if other == "D_C"
                else f"the selection's sentences are {sort}er"
            )
            yield (
                f"The median sentence has {selected:.0f} tokens in the selection and {median_other:.0f} in the "
                f"{plainly(other)}: {how}."
            )
    if health.duplicates > REPEATED * health.sentences:
        yield (
            f"{health.duplicates:,} of {health.sentences:,} sentences repeat another sentence of the selection; "
            "withhold duplicates."
        )
    if health.variety is not None and health.variety < SAME * health.variety_of:
        yield (
            f"{count(health.variety_of, 'sentence')} of the selection are only as varied as {health.variety:.1f} "
            "unrelated ones; select with the option diversity."
        )
    if health.coverage is not None and health.coverage < HALF:
        yield (
            f"Only {health.coverage:.0%} of the task corpus is nearer to selected sentences than to sentences that are "
            "not selected; try the strategy knn or a larger budget."
        )
    others = {name: ratio for name, ratio in health.type_token.items() if name != "S_C" and ratio}
    if others and health.type_token["S_C"] < POOR * min(others.values()):
        yield (
            f"Compared with the {' and the '.join(map(plainly, others))}, the selection uses far fewer different words "
            "in text of the same length: the selection may be boilerplate."
        )


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
    """Return the health of a selection. rows: the selected rows of D_C.

    domain_vectors, task_vectors: unit rows, shape (n, d), None if the corpus was not embedded. labelled: L_C, or None.
    seed: seed of the samples.
    """
    domain = scored.domain
    lengths = {"S_C": scored.lengths[rows], "D_C": scored.lengths, "T_C": stored(task, "n_tokens").to_numpy()}
    some = {"S_C": _some(rows, READ, seed), "D_C": _some(np.arange(len(domain)), READ, seed)}
    texts = {name: _texts(domain, part) for name, part in some.items()}
    texts["T_C"] = _texts(task, _some(np.arange(len(task)), READ, seed))
    ratio, words = type_token(texts)
    varied = _some(rows, VARIED, seed)
    covered = _some(np.arange(len(task)), COVERED, seed)
    fresh, names = (None, 0) if labelled is None else new_entities(texts["S_C"], _names(labelled))
    result = Health(
        sentences=len(rows),
        tokens=int(lengths["S_C"].sum(dtype=np.int64)),
        median_tokens={name: float(np.median(values)) if len(values) else 0.0 for name, values in lengths.items()},
        duplicates=duplicates_left(scored.audit.cluster[rows]),
        type_token=ratio,
        type_token_words=words,
        variety=None if domain_vectors is None else vendi(domain_vectors[varied]),
        variety_of=len(varied),
        coverage=_coverage(rows, covered, domain_vectors, task_vectors),
        coverage_of=len(covered),
        new_entities=fresh,
        new_entities_of=names,
        warnings=(),
    )
    return replace(result, warnings=tuple(warnings(result)))


def _coverage(
    rows: IntArray, covered: IntArray, domain_vectors: Rows | None, task_vectors: Rows | None
) -> float | None:
    """Return `coverage` for T_C's rows `covered` and D_C's selected `rows`; None if a corpus was not embedded."""
    if domain_vectors is None or task_vectors is None:
        return None
    inside = np.zeros(len(domain_vectors), dtype=bool)
    inside[rows] = True
    return coverage(task_vectors[covered], domain_vectors, inside)


def _some(rows: IntArray, n: int, seed: int) -> IntArray:
    """Return a random sample of up to `n` of `rows`, ascending."""
    return np.sort(rows[stratified(np.zeros(len(rows), dtype=np.int64), n, seed)])


def _texts(corpus: Corpus, rows: IntArray) -> list[str]:
    texts: list[str] = stored(corpus, "text").take(pa.array(rows)).to_pylist()
    return texts


def _names(labelled: Corpus) -> Iterable[str]:
    """Yield the surface form of each entity of L_C."""
    for sentence in chain.from_iterable(labelled.batches()):
        for entity in sentence.entities or ():
            yield " ".join(sentence.tokens[entity.start : entity.end])
