"""Health of S_C: lengths, duplicates, variety, coverage of T_C, new names, warnings (SOURCES.md, Health of S_C)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from core.results import BoolArray, FloatArray, IntArray, Rows
from core.selection.near import BLOCK, widened
from core.shown import count
from core.terms import plainly
from core.text.words import fold

TOLERANCE = 0.25  # medians that differ by more are worth a warning
REPEATED, SAME, HALF, POOR = 0.02, 0.02, 0.5, 0.75  # and so are these: shares, by our own judgement
READ = 5_000  # sentences of each corpus whose words are counted
WORDS = 50_000  # words of each corpus at most
VARIED = 2_000  # sentences that the Vendi score is computed on
COVERED = 500  # sentences of T_C that coverage is measured on
_NAME = re.compile(r"(?<=[\w,;:’'] )[^\W\d_a-z]\w*(?: [^\W\d_a-z]\w*)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The health of a selection; None where it could not be measured.

    sentences, tokens: size of S_C. median_tokens: {S_C, D_C, T_C}. duplicates: rows of S_C whose duplicate (exact
    or near) is in S_C too, each cluster's first not counted. type_token: {S_C, D_C, T_C} different words over
    words, in `type_token_words` of each. variety: effective number of different sentences among `variety_of` drawn
    (Vendi score). coverage: share of T_C whose nearest S_C sentence is at least as close as the nearest filtered
    one, 0 to 1, on `coverage_of` sentences of T_C. new_entities: share of the different names in S_C, found by
    their capital letters alone, that L_C does not have; `new_entities_of` were found. warnings: for people.
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
    """Number of rows that repeat another's cluster; `cluster` `(k,)` of the selected rows alone."""
    return len(cluster) - len(np.unique(cluster))


def type_token(texts: Mapping[str, Iterable[str]], most: int = WORDS) -> tuple[dict[str, float], int]:
    """{corpus: different words over words} on equally many words of each, and how many: the ratio falls with length."""
    words = {name: list(islice(_words(corpus_texts), most)) for name, corpus_texts in texts.items()}
    n = min(map(len, words.values()), default=0)
    return {name: len(set(own_words[:n])) / n if n else 0.0 for name, own_words in words.items()}, n


def _words(texts: Iterable[str]) -> Iterator[str]:
    return (word for text in texts for word in fold(text).split())


def vendi(vectors: FloatArray) -> float:
    """exp of the entropy of the eigenvalues of K/n, K the cosines of `(n, d)` rows: 1 if all equal, n if orthogonal.

    K/n and the d x d matrix of the same products have the same eigenvalues but for zeros (Friedman and Dieng 2023).
    """
    rows = np.asarray(vectors, dtype=np.float64)
    rows = rows[rows.any(axis=1)]
    if not len(rows):
        return 0.0
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    # Whichever of the two products is smaller: eigenvalues cost the cube of its side.
    gram = rows.T @ rows if len(rows) > rows.shape[1] else rows @ rows.T
    values = np.linalg.eigvalsh(gram / len(rows))
    # Rounding leaves zeros slightly negative, which have no logarithm.
    values = values[values > 1e-12]
    return float(np.exp(-(values * np.log(values)).sum()))


def coverage(task: FloatArray, domain: Rows, selected: BoolArray) -> float | None:
    """Share of unit rows `task` `(t, d)` whose nearest selected row of `domain` `(n, d)` is as close as any filtered.

    None where either side is empty. A few seconds for a million rows and `COVERED` sentences.
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
    """Share of the different names in `texts` that are not among `known`, and how many there are.

    A name is a run of capitalised words that does not begin the sentence: no tagger is asked, so names in lower
    case are missed, German nouns count, and a script without capitals has none.
    """
    names = {fold(name) for text in texts for name in _NAME.findall(text) if name[0].isupper()} - {""}
    fresh = names - {fold(name) for name in known}
    return (len(fresh) / len(names) if names else None), len(names)


def warnings(health: Health) -> Iterator[str]:
    """Warnings to people before they train on S_C, a sentence each."""
    median, selected = health.median_tokens, health.median_tokens["S_C"]
    for other in ("T_C", "D_C"):
        median_other = median.get(other)
        if median_other and abs(selected / median_other - 1) > TOLERANCE:
            sort = "long" if selected > median_other else "short"
            yield (
                f"Sentences of the selection have a median of {selected:.0f} tokens, those of the {plainly(other)} "
                f"{median_other:.0f}: the selection prefers {sort} ones."
            )
    if health.duplicates > REPEATED * health.sentences:
        yield (
            f"{health.duplicates:,} of {health.sentences:,} sentences repeat another one of the selection; withhold "
            "duplicates."
        )
    if health.variety is not None and health.variety < SAME * health.variety_of:
        yield (
            f"{count(health.variety_of, 'sentence')} of the selection are worth {health.variety:.1f} different ones; "
            "select with diversity."
        )
    if health.coverage is not None and health.coverage < HALF:
        yield (
            f"Only {health.coverage:.0%} of the task corpus is nearer to the selection than to what was filtered; "
            "try the strategy knn or a larger budget."
        )
    others = {name: ratio for name, ratio in health.type_token.items() if name != "S_C" and ratio}
    if others and health.type_token["S_C"] < POOR * min(others.values()):  # a task's own text may be as uniform
        yield (
            f"The selection uses far fewer different words than the {' and the '.join(map(plainly, others))} in as "
            "many words: it may be boilerplate."
        )
