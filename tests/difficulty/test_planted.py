"""What was planted in the legal sample is there: a linear model of words, no encoder, finds which types are told by
their names and which by their context."""

import re

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from core.corpora.readers import ReadOptions, read
from core.difficulty.folds import folds
from core.difficulty.instances import Instance, groups, instances
from core.difficulty.mentions import BAND
from core.difficulty.pvi import log2_prior, pvi
from core.results import FloatArray, IntArray
from core.samples.sets import sample_sets


def name_words(one: Instance) -> list[str]:
    """With how they end, and with every digit as 0: a drug is told by -mab, a sum by its digits."""
    return [form for word in one.name for form in (word, word[-3:], re.sub(r"\d", "0", word))]


def context_words(one: Instance) -> list[str]:
    """Each with its side, the three next to the mention also with their distance."""
    left, right = one.sides
    near = [f"<{i} {word}" for i, word in enumerate(left[:-4:-1])] + [
        f">{i} {word}" for i, word in enumerate(right[:3])
    ]
    return [*(f"< {word}" for word in left), *(f"> {word}" for word in right), *near]


def told(inputs: list[list[str]], labels: IntArray, fold: IntArray) -> FloatArray:
    """`(n,)` PVI in bits, every mention judged by a model that has not seen its fold."""
    found, n_types = np.zeros(len(labels)), int(labels.max()) + 1
    for held in np.unique(fold):
        out = fold == held
        words = HashingVectorizer(analyzer=list, n_features=2**14, alternate_sign=False, norm=None)
        model = make_pipeline(words, LogisticRegression(C=1.0, max_iter=500))
        model.fit([row for row, skip in zip(inputs, out, strict=True) if not skip], labels[~out])
        logs = model.predict_log_proba([row for row, take in zip(inputs, out, strict=True) if take]) / np.log(2)
        rows, null = np.arange(int(out.sum())), log2_prior(labels[~out], n_types)
        found[out] = pvi(logs[rows, labels[out]], null[labels[out]])
    return found


@pytest.mark.full
def test_the_legal_sample_has_types_told_by_their_names_and_one_told_by_its_context() -> None:
    """What its ABOUT.md says was planted; nothing was planted for LAW, which has a bit of both."""
    (sample,) = (one for one in sample_sets() if one.name == "legal")
    found = instances(read(sample.train, ReadOptions(scheme="iob2")))
    kinds = sorted({one.type for one in found})
    labels = np.array([kinds.index(one.type) for one in found], dtype=np.int64)
    fold = folds(groups(found, "sentence", 5)[0], labels, 5, seed=1)
    name, context = (told([*map(words, found)], labels, fold) for words in (name_words, context_words))
    ceim = {kind: float((name - context)[labels == i].mean()) for i, kind in enumerate(kinds)}
    assert {kind for kind in kinds if ceim[kind] >= BAND} == {"AMOUNT", "DATE"}
    assert {kind for kind in kinds if ceim[kind] <= -BAND} == {"GUARANTOR"}
    assert abs(ceim["PARTY"]) < BAND / 2
