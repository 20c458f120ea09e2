"""PVI: golden numbers, calibration, folds, stored mentions, and the legal sample."""

import re
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from core.bias.pvi import (
    STRENGTHS,
    Instance,
    calibrated,
    entropy,
    folds,
    groups,
    instances,
    interval,
    log2_prior,
    pvi,
    sampled,
    tempered,
)
from core.bias.result import BAND, Mention, bin_of, read_mentions, write_mentions
from core.corpora.readers import ReadOptions, read
from core.results import FloatArray, IntArray
from core.samples.sets import sample_sets
from core.text.sentence import Entity, Sentence

CONLL = {"LOC": 7140, "PER": 6600, "ORG": 6321, "MISC": 3438}
LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=40).map(np.array)


def bits(counts: dict[str, int]) -> float:
    return entropy(np.repeat(np.arange(len(counts)), list(counts.values())))


@pytest.mark.parametrize(("p", "expected"), [(0.8, 1.678072), (0.1, -1.321928), (0.25, 0)])
def test_pvi_and_entropy_equal_the_golden_numbers(p: float, expected: float) -> None:
    assert bits(CONLL) == pytest.approx(1.9520, abs=5e-5)
    labels = np.repeat(np.arange(4), list(CONLL.values()))
    assert -log2_prior(labels, 4) == pytest.approx([1.7186, 1.8321, 1.8944, 2.7730], abs=2e-4)
    assert pvi(np.log2([p]), np.log2([0.25])) == pytest.approx([expected], abs=1e-6)


@pytest.mark.real
@pytest.mark.parametrize(("name", "n", "expected"), [("conll2003", 23_499, 1.9520), ("crossner-literature", 541, None)])
def test_entropy_of_real_corpora_equals_the_golden_numbers(
    real_data: Path, name: str, n: int, expected: float | None
) -> None:
    tags = [line.split("\t")[1] for line in (real_data / name / "train.conll").read_text("utf-8").splitlines() if line]
    counts = Counter(tag[2:] for tag in tags if tag.startswith("B-"))
    assert sum(counts.values()) == n
    by_hand = -sum(c / n * np.log2(c / n) for c in counts.values())
    assert bits(counts) == pytest.approx(by_hand)
    if expected:
        assert counts == CONLL
        assert by_hand == pytest.approx(expected, abs=5e-5)


@given(LABELS)
def test_prior_adds_half_a_mention_per_type(labels: np.ndarray) -> None:
    logs = log2_prior(labels, 6)
    assert np.exp2(logs).sum() == pytest.approx(1)
    for kind in range(6):
        assert 2 ** logs[kind] == pytest.approx((list(labels).count(kind) + 0.5) / (len(labels) + 3))


@given(LABELS)
def test_pvi_of_a_perfect_feature_is_the_label_entropy(labels: np.ndarray) -> None:
    shares = np.bincount(labels) / len(labels)
    null = np.log2(shares[labels])
    assert pvi(np.zeros(len(labels)), null).mean() == pytest.approx(entropy(labels), abs=1e-9)


@given(LABELS, st.lists(st.floats(0.01, 1), min_size=5, max_size=5))
def test_pvi_of_a_fixed_guess_is_at_most_zero(labels: np.ndarray, weights: list[float]) -> None:
    """By Gibbs' inequality, no fixed guess is better than the true shares."""
    shares = np.bincount(labels, minlength=5) / len(labels)
    guess = np.array(weights) / sum(weights)
    assert pvi(np.log2(guess[labels]), np.log2(shares[labels])).mean() <= 1e-9


def test_tempering_interpolates_between_null_and_model() -> None:
    rng = np.random.default_rng(0)
    model, null = (np.log2(rng.dirichlet(np.ones(4), 6)) for _ in range(2))
    assert tempered(model, null, 0) == pytest.approx(null)
    assert tempered(model, null, 1) == pytest.approx(model)
    assert np.exp2(tempered(model, null, 1.7)).sum(1) == pytest.approx(np.ones(6))


def test_calibration_corrects_an_overconfident_model() -> None:
    """A model is right in 70% of cases, but with 99.9% confidence. Its PVI is negative; calibration raises it to that
    of 70%.

    The labels of a fold do not influence its own strength.
    """
    rng = np.random.default_rng(1)
    labels, folds = rng.integers(0, 2, 4000), rng.integers(0, 4, 4000)
    says = np.where(rng.random(4000) < 0.7, labels, 1 - labels)
    model, null = np.log2(np.where(np.eye(2)[says] == 1, 0.999, 0.001)), np.full((4000, 2), -1.0)
    rows = np.arange(4000)
    assert pvi(model[rows, labels], null[rows, labels]).mean() < -1.5
    better, strengths = calibrated(model, null, labels, folds)
    assert len(strengths) == 4
    assert max(strengths) < 0.2
    right = (says == labels).mean()
    worth = 1 + right * np.log2(right) + (1 - right) * np.log2(1 - right)
    assert pvi(better[rows, labels], null[rows, labels]).mean() == pytest.approx(worth, abs=0.02)
    held = folds == 2
    turned = np.where(held, 1 - labels, labels)
    assert (calibrated(model, null, turned, folds)[0][held] == better[held]).all()


def test_calibration_removes_noise_and_keeps_correct_probabilities() -> None:
    rng = np.random.default_rng(2)
    labels, folds, rows = rng.integers(0, 3, 3000), rng.integers(0, 5, 3000), np.arange(3000)
    null = np.full((3000, 3), -np.log2(3))
    noise = np.log2(rng.dirichlet(np.ones(3), 3000))
    assert abs(pvi(calibrated(noise, null, labels, folds)[0][rows, labels], null[rows, labels]).mean()) < 0.005
    shares = rng.dirichlet(np.ones(3), 3000)
    drawn = (rng.random((3000, 1)) > shares.cumsum(1)).sum(1)
    _, strengths = calibrated(np.log2(shares), null, drawn, folds)
    assert strengths == pytest.approx([1] * 5, abs=0.15)
    assert 1 in STRENGTHS


def test_interval_equals_enumeration_of_group_resamples() -> None:
    values = np.array([[0.0, 5.0], [1.0, 5.0], [4.0, 5.0], [2.0, 5.0], [2.0, 5.0], [2.0, 5.0]])
    groups = np.array([7, 7, 3, 9, 9, 9])
    by_group = [values[groups == group] for group in (3, 7, 9)]
    every = [np.concatenate([by_group[i] for i in drawn]).mean(0) for drawn in product(range(3), repeat=3)]
    low, high = interval(values, groups, draws=20_000, seed=0, level=0.5)
    assert low == pytest.approx(np.quantile(every, 0.25, axis=0, method="inverted_cdf"), abs=1e-9)
    assert high == pytest.approx(np.quantile(every, 0.75, axis=0, method="inverted_cdf"), abs=1e-9)
    assert low[1] == high[1] == 5
    drawn = np.random.default_rng(0).normal(size=(50, 1))
    low, again, other = (interval(drawn, np.arange(50) // 3, draws=200, seed=seed)[0] for seed in (3, 3, 4))
    assert low == again != other


def test_mention_of_any_length_is_one_instance() -> None:
    words = ("the", "Bank", "of", "Ruritania", "met", "Ada")
    entities = (Entity(start=5, end=6, type="PER"), Entity(start=1, end=4, type="ORG"))
    text = Sentence(id="0" * 16, tokens=words, text=" ".join(words), entities=entities)
    nothing = Sentence(id="1" * 16, tokens=("x",), text="x", entities=())
    bank, ada = instances([nothing, text])
    assert (bank.row, bank.name, bank.sides) == (1, words[1:4], (("the",), ("met", "Ada")))
    assert (ada.name, ada.sides) == (("Ada",), (words[:5], ()))


PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), min_size=2, max_size=80)


def numbered(values: list[int]) -> np.ndarray:
    return np.unique(values, return_inverse=True)[1]


def mentions(*documents: str | None, per: int = 1, copies: int = 1) -> list[Instance]:
    """Return `per` mentions in each of `copies` equal sentences per document."""
    entities = tuple(Entity(start=i, end=i + 1, type="T") for i in range(per))
    return instances(
        Sentence(id=f"{i:016x}", tokens=("w",) * per, text=f"{i}", entities=entities, doc=document)
        for i, document in enumerate(documents)
        for _ in range(copies)
    )


@given(PAIRS, st.integers(2, 6), st.integers(0, 3))
def test_folds_keep_groups_together_and_are_not_empty(pairs: list[tuple[int, int]], n: int, seed: int) -> None:
    number, types = numbered([group for group, _ in pairs]), numbered([kind for _, kind in pairs])
    found = folds(number, types, n, seed)
    assert all(len(set(found[number == group])) == 1 for group in set(number))
    assert len(set(found)) == min(n, len(set(number)))
    assert (found == folds(number, types, n, seed)).all()


@given(st.lists(st.integers(0, 4), min_size=2, max_size=80), st.integers(2, 6), st.integers(0, 3))
def test_ungrouped_mentions_are_spread_evenly_by_type(labels: list[int], n: int, seed: int) -> None:
    types = numbered(labels)
    table = np.zeros((n, types.max() + 1), dtype=int)
    np.add.at(table, (folds(np.arange(len(types)), types, n, seed), types), 1)
    assert (np.ptp(table, axis=0) <= 1).all()
    assert np.ptp(table.sum(1)) <= 1 + (types.max() + 1) // 2
    number = np.arange(60)
    assert (folds(number, number % 3, 5, 1) != folds(number, number % 3, 5, 2)).any()


@pytest.mark.parametrize(
    ("by", "documents", "expected", "n"),
    [
        ("", "aabbc", "document", 3),
        ("", "aabb", "sentence", 4),
        ("sentence", "aabbc", "sentence", 5),
        ("document", "aabb", "document", 2),
    ],
)
def test_folds_group_by_document_if_there_are_enough(by: str, documents: str, expected: str, n: int) -> None:
    number, chosen = groups(mentions(*documents, per=2), by, folds=3)  # type: ignore[arg-type]
    assert (chosen, len(set(number.tolist()))) == (expected, n)
    number, chosen = groups(mentions(None, "a", per=2, copies=3), "", folds=2)
    assert (chosen, number.tolist()) == ("sentence", [0] * 6 + [1] * 6)  # copies of a sentence go together


@given(st.integers(0, 40), st.integers(0, 3))
def test_sample_takes_whole_sentences_up_to_the_limit(n: int, seed: int) -> None:
    every = mentions(*[None] * 10, per=3)
    kept = sampled(every, n, seed)
    assert len(kept) == (30 if n == 0 else min(30, -(-n // 3) * 3))
    assert [one.row for one in kept] == sorted(one.row for one in kept)
    assert kept == sampled(every, n, seed)


BITS = st.floats(-20, 20)
NUMBER = st.integers(0, 2**31 - 1)
MENTION = st.builds(
    Mention,
    row=NUMBER,
    sentence=st.text("0123456789abcdef", min_size=16, max_size=16),
    start=NUMBER,
    end=NUMBER,
    type=st.text(max_size=5),
    surface=st.text(max_size=9),
    pvi_entity=BITS,
    pvi_context=BITS,
    ceim=BITS,
    bin=st.sampled_from(("low", "near_zero", "high")),
    fold=NUMBER,
)


@settings(deadline=None, max_examples=25)
@given(st.lists(MENTION, max_size=5))
def test_written_mentions_are_read_back(tmp_path_factory: pytest.TempPathFactory, mentions: list[Mention]) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "mentions.parquet"
    write_mentions(mentions, path)
    assert read_mentions(path) == mentions


@pytest.mark.parametrize(
    ("ceim", "name"),
    [(-7, "low"), (-0.5, "low"), (-0.4999, "near_zero"), (0, "near_zero"), (0.4999, "near_zero"), (0.5, "high")],
)
def test_bin_edges_are_those_of_the_specification(ceim: float, name: str) -> None:
    assert bin_of(ceim) == name


def name_words(one: Instance) -> list[str]:
    """Return words, their last three letters, and words with digits as 0: -mab marks a drug, digits mark an amount."""
    return [form for word in one.name for form in (word, word[-3:], re.sub(r"\d", "0", word))]


def context_words(one: Instance) -> list[str]:
    """Return words with their side; the nearest three also with their distance."""
    left, right = one.sides
    near = [f"<{i} {word}" for i, word in enumerate(left[:-4:-1])] + [
        f">{i} {word}" for i, word in enumerate(right[:3])
    ]
    return [*(f"< {word}" for word in left), *(f"> {word}" for word in right), *near]


def held_out_pvi(inputs: list[list[str]], labels: IntArray, fold: IntArray) -> FloatArray:
    """Return PVI in bits, shape (n,), by models that did not train on the mention's fold."""
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
def test_legal_sample_has_the_planted_name_and_context_types() -> None:
    """The planted types are those of its ABOUT.md; nothing was planted for LAW, which both views reveal in part."""
    (sample,) = (one for one in sample_sets() if one.name == "legal")
    found = instances(read(sample.train, ReadOptions(scheme="iob2")))
    kinds = sorted({one.type for one in found})
    labels = np.array([kinds.index(one.type) for one in found], dtype=np.int64)
    fold = folds(groups(found, "sentence", 5)[0], labels, 5, seed=1)
    name, context = (held_out_pvi([*map(words, found)], labels, fold) for words in (name_words, context_words))
    ceim = {kind: float((name - context)[labels == i].mean()) for i, kind in enumerate(kinds)}
    assert {kind for kind in kinds if ceim[kind] >= BAND} - {"LAW"} == {"AMOUNT", "DATE"}
    assert {kind for kind in kinds if ceim[kind] <= -BAND} == {"GUARANTOR"}
    assert abs(ceim["PARTY"]) < BAND / 2
