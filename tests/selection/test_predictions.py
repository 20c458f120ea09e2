"""Scores from predicted entities: counts, ties, density, rarity, type balance, and folds."""

from collections.abc import Sequence
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ConfigError, CorpusError
from core.reporter import Silent
from core.results import FloatArray, Role
from core.selection import make_strategy
from core.selection.base import Batch, Source
from core.selection.evidence import SPAN, Spans, flat
from core.selection.strategies.predictions import NerSelected, fold
from core.text.sentence import Entity, Prediction, Sentence
from tests.conftest import Seal, sentence
from tests.fake_models import found_by_list, spans

TYPES = ("LOC", "PER")


def predicted(*entities: tuple[str, float], first: int = 0) -> Prediction:
    """Return one entity per word, beginning with word `first`."""
    return Prediction(
        entities=tuple(Entity(start=first + i, end=first + i + 1, type=name) for i, (name, _) in enumerate(entities)),
        confidence=tuple(value for _, value in entities),
    )


def batch(sentences: Sequence[Sentence], *found: Spans) -> Batch:
    ids = np.array([int(s.id, 16) for s in sentences], dtype=np.uint64)
    return Batch(ids=ids, sentences=sentences, spans=found)


def scores(
    seal: Seal,
    sentences: Sequence[Sentence],
    *found: Sequence[Prediction],
    types: Sequence[str] = TYPES,
    **options: object,
) -> FloatArray:
    """Return the scores of D_C."""
    tables = [spans(each, types) for each in found]
    strategy = make_strategy("ner-selected", {"folds": len(tables), **options}, 0)
    labelled = seal([sentence("Anna left", [(0, 1, "PER")])], "labelled", labelled=True)
    domain = Source(corpus=seal(sentences, "domain"), spans=tables)
    strategy.prepare({Role.DOMAIN: domain, Role.LABELLED: Source(corpus=labelled)}, Silent())
    return strategy.score(batch(sentences, *tables))


words = [sentence(" ".join(["word"] * n) + f" {i}") for i, n in enumerate((7, 7, 3, 7, 9, 4))]


@given(
    st.lists(
        st.tuples(st.lists(st.tuples(st.sampled_from(TYPES), st.integers(1, 8)), max_size=4), st.integers(4, 9)),
        min_size=2,
        max_size=8,
    )
)
@settings(max_examples=60, deadline=None)
def test_score_orders_by_count_then_posterior_then_density(rows: list[tuple[list[tuple[str, int]], int]]) -> None:
    """One float orders like the tuple (count, mean posterior, density)."""
    sentences = [sentence(" ".join(["w"] * n)) for _, n in rows]
    found = [predicted(*((name, eighths / 8) for name, eighths in entities)) for entities, _ in rows]
    strategy = NerSelected(NerSelected.Options.parse({}), 0)
    strategy._types, strategy._labelled = TYPES, np.array([], dtype=np.uint64)
    values = strategy.score(batch(sentences, spans(found, TYPES))).tolist()
    tuples = [
        (len(entities), np.floor(np.mean([e for _, e in entities] or [0]) / 8 * 2**20), len(entities) / n)
        for entities, n in rows
    ]
    for i in range(len(rows)):
        assert int(values[i]) == tuples[i][0]
        for j in range(len(rows)):
            assert (values[i] > values[j]) == (tuples[i] > tuples[j])


def test_density_and_rarity_equal_their_formulas(seal: Seal) -> None:
    found = [predicted(*[("PER", 0.5)] * n) for n in (1, 2, 2, 0, 0)] + [predicted(("LOC", 0.5))]
    lengths = [len(s.tokens) for s in words]
    dense = scores(seal, words, found, rank="density")
    np.testing.assert_allclose(dense, np.array([1, 2, 2, 0, 0, 1]) / lengths, atol=2e-6)
    rare = scores(seal, words, found, rank="rarity")
    per, loc = 1 / log(2 + 5), 1 / log(2 + 1)
    np.testing.assert_allclose(rare, [per, 2 * per, 2 * per, 0, 0, loc], atol=2e-6)
    assert rare[5] > rare[0]
    assert rare[2] > rare[1]  # density breaks the tie


def round_robin(counts: FloatArray, ties: FloatArray) -> list[set[int]]:
    """Return the sentences that each round takes: in round r, each type takes its r-th best sentence."""
    keys = counts + ties[:, None]
    orders = [
        [row for row in np.argsort(-keys[:, t], kind="stable").tolist() if counts[row, t]]
        for t in range(counts.shape[1])
    ]
    taken: set[int] = set()
    rounds = []
    for r in range(max(map(len, orders))):
        turn = {order[r] for order in orders if r < len(order)} - taken
        taken |= turn
        rounds.append(turn)
    return rounds


def test_type_balanced_rank_equals_a_round_robin(seal: Seal) -> None:
    rng = np.random.default_rng(0)
    sentences = [sentence(" ".join(["word"] * 20) + f" {i}") for i in range(60)]
    found = []
    for _ in sentences:  # LOC is rare
        names = ["PER"] * int(rng.integers(0, 6)) + ["LOC"] * int(rng.random() < 0.15) * int(rng.integers(1, 3))
        found.append(predicted(*((name, float(rng.random())) for name in names)))
    values = scores(seal, sentences, found, rank="type-balanced")
    plain = scores(seal, sentences, found)
    table = spans(found, TYPES).counts()
    expected = round_robin(table.astype(float), plain - np.floor(plain))
    for number, turn in enumerate(expected, 1):
        assert {row for row in range(60) if -number <= values[row] < -number + 1 and table[row].any()} == turn
    assert (values[~table.any(axis=1)] == -61).all()
    share = table[np.argsort(-values)[:10]].any(axis=0)
    assert share.all()
    best = table[np.argsort(-values)[:10], 0] > 0
    assert best.sum() > (table[np.argsort(-plain)[:10], 0] > 0).sum()  # rounds give LOC its turns


def test_folds_are_averaged_and_training_copies_use_the_unseen_fold(seal: Seal) -> None:
    copy = sentence("Anna left")  # as in L_C
    mine = int(fold(np.array([int(copy.id, 16)], dtype=np.uint64), 2)[0])
    both = [[predicted(("PER", 0.5), ("PER", 0.5)), predicted(("PER", 1.0))], [predicted(), predicted(("LOC", 0.5))]]
    found = both if mine == 0 else both[::-1]  # the tagger of the copy's fold finds two entities, the other none
    values = scores(seal, [copy, sentence("one two three four")], *found)
    assert np.floor(values[0] * 2) / 2 == 2
    assert np.floor(values[1] * 2) / 2 == 1
    assert values[1] == pytest.approx(1 + 0.75 / 2, abs=1e-5)  # half the mean posterior, because means differ by 1/2


def test_taggers_with_different_types_are_combined(seal: Seal) -> None:
    tables = [spans([predicted(("PER", 0.5))], ("PER",)), spans([predicted(("LOC", 0.5))], ("LOC", "PER"))]
    strategy = make_strategy("ner-selected", {"folds": 2, "rank": "rarity"}, 0)
    labelled = Source(corpus=seal([sentence("Anna left", [(0, 1, "PER")])], "labelled", labelled=True))
    domain = Source(corpus=seal(["some words here"], "d"), spans=tables)
    strategy.prepare({Role.DOMAIN: domain, Role.LABELLED: labelled}, Silent())
    value = strategy.score(batch([sentence("some words here")], *tables))
    assert value[0] == pytest.approx(2 * 0.5 / log(2.5), abs=2e-6)


def test_missing_types_and_unknown_rank_are_refused(seal: Seal) -> None:
    with pytest.raises(CorpusError, match="contains no entity"):
        scores(seal, words[:1], [predicted()], types=())
    with pytest.raises(ConfigError, match="rank"):
        make_strategy("ner-selected", {"rank": "best"}, 0)


def test_spans_equal_the_predictions() -> None:
    sentences = [sentence("Anna and Bob"), sentence(""), sentence("Rome sees Anna")]
    found = found_by_list(sentences, {"anna": "PER", "bob": "PER", "rome": "LOC"})
    table = spans(found, TYPES)
    assert [table.entities(row) for row in range(3)] == [prediction.entities for prediction in found]
    assert table.counts().tolist() == [[0, 2], [0, 0], [1, 1]]
    assert table.confidence().tolist() == [1.5, 0, 1.5]
    later = table.part(1, 3)
    assert len(later) == 2
    assert later.entities(1) == found[2].entities
    assert later.counts().tolist() == [[0, 0], [1, 1]]
    assert flat([], TYPES).dtype == SPAN
    assert len(Spans.make(TYPES, flat([], TYPES), 0)) == 0
