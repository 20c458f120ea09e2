"""Span scoring against seqeval and the golden numbers (SOURCES.md, Span scoring)."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from seqeval.metrics import f1_score
from seqeval.scheme import IOBES

from core.models.crf import bioes_tags
from core.models.tagger import prediction_of
from core.results import Evaluation
from core.stats.scoring import MICRO, cited_spans, evaluate, seqeval_report
from core.text.schemes import decode
from core.text.sentence import Entity, Prediction, Sentence
from tests.conftest import sentence

GOLD = ["B-PER", "E-PER", "O", "S-LOC", "O", "B-ORG", "I-ORG", "E-ORG"]
BAD = {
    "all E replaced by I": ("B-PER I-PER O S-LOC O B-ORG I-ORG I-ORG", 1.0, 0.5, 0.5),
    "I-LOC for S-LOC": ("B-PER E-PER O I-LOC O B-ORG I-ORG E-ORG", 1.0, 0.8, 0.8),
    "O inside ORG": ("B-PER E-PER O S-LOC O B-ORG O E-ORG", 0.5714, 0.8, 1.0),
    "B-ORG I-LOC E-ORG": ("B-PER E-PER O S-LOC O B-ORG I-LOC E-ORG", 0.5, 0.8, 1.0),
}


def labelled(tags: Sequence[str]) -> Sentence:
    entities = [(e.start, e.end, e.type) for e in decode(tags, "bioes", strict=True)[0]]
    return sentence(" ".join("w" * len(tags)), entities)


@pytest.mark.parametrize("name", BAD)
def test_golden_numbers_of_bad_sequences(name: str) -> None:
    text, default, strict, cited = BAD[name]
    tags = text.split()
    assert f1_score([GOLD], [tags]) == pytest.approx(default, abs=1e-4)
    assert f1_score([GOLD], [tags], mode="strict", scheme=IOBES) == pytest.approx(strict, abs=1e-4)
    gold = [labelled(GOLD)]
    assert evaluate(gold, [prediction_of(tags)]).f1() == pytest.approx(100 * strict, abs=0.01)
    assert evaluate(gold, [cited_spans(tags)]).f1() == pytest.approx(100 * cited, abs=0.01)


def test_micro_f1_equals_seqeval_and_the_report_equals_the_counts() -> None:
    rng, tags, pairs = random.Random(0), bioes_tags(["A", "B", "C"]), []
    for _ in range(1000):
        truth = [rng.choice(tags) for _ in range(rng.randint(1, 12))]
        pairs.append((truth, [tag if rng.random() < 0.7 else rng.choice(tags) for tag in truth]))
    truths, guesses = zip(*pairs, strict=True)
    gold, predictions = [labelled(each) for each in truths], [prediction_of(each) for each in guesses]
    table = evaluate(gold, predictions)
    theirs = f1_score(list(truths), list(guesses), mode="strict", scheme=IOBES)
    assert 0.2 < theirs < 0.9
    assert table.f1() == pytest.approx(100 * theirs, abs=1e-9)
    for a, b in pairs[:50]:
        assert cited_spans(a).entities == tuple(sorted(set(cited_spans(a).entities)))
        assert len(evaluate([labelled(a)], [prediction_of(b)]).tp) == 1  # one row per sentence
    *types, micro = seqeval_report(gold, predictions)
    assert [line.type for line in types] == list(table.types) == ["A", "B", "C"]
    sums = zip(*(counts.sum(axis=0).tolist() for counts in (table.tp, table.predicted, table.gold)), strict=True)
    for line, (right, predicted, labels) in zip(types, sums, strict=True):
        assert line.support == labels
        assert (line.precision, line.recall) == pytest.approx((100 * right / predicted, 100 * right / labels))
        assert line.f1 == pytest.approx(table.by_type()[line.type])
    assert (micro.type, micro.support) == (MICRO, int(table.gold.sum()))
    assert (micro.precision, micro.recall, micro.f1) == pytest.approx((table.precision(), table.recall(), table.f1()))


def test_report_lists_types_of_either_side_and_is_empty_without_entities() -> None:
    gold = [sentence("a b", [(0, 1, "X")])]
    predicted = [Prediction(entities=(Entity(start=1, end=2, type="Y"),), confidence=())]
    lines = {
        line.type: (line.precision, line.recall, line.f1, line.support) for line in seqeval_report(gold, predicted)
    }
    assert lines == {"X": (0, 0, 0, 1), "Y": (0, 0, 0, 0), MICRO: (0, 0, 0, 1)}
    assert seqeval_report([sentence("a", [])], [Prediction(entities=(), confidence=())]) == []


def test_counts_have_a_row_per_sentence_and_a_column_per_type() -> None:
    gold = [sentence("a b c", [(0, 1, "X"), (1, 3, "Y")]), sentence("a", []), sentence("b", [(0, 1, "Y")])]
    predicted = [
        (Entity(start=0, end=1, type="X"), Entity(start=1, end=2, type="Y")),
        (Entity(start=0, end=1, type="X"),),
        (),
    ]
    table = evaluate(gold, [Prediction(entities=spans, confidence=()) for spans in predicted], ["Y", "X", "never"])
    assert table.types == ("X", "Y", "never")
    assert table.tp.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert table.predicted.tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert table.gold.tolist() == [[1, 1, 0], [0, 0, 0], [0, 1, 0]]
    assert table.by_type()["never"] == 0


def test_counts_are_read_back_unchanged_and_f1_without_hits_is_zero(tmp_path: Path) -> None:
    missed = Prediction(entities=prediction_of(GOLD).entities[:2], confidence=())
    table = evaluate([labelled(GOLD), sentence("a", [])], [missed, prediction_of(["O"])])
    table.save(tmp_path / "e.npz")
    again = Evaluation.load(tmp_path / "e.npz")
    assert again.types == table.types == ("LOC", "ORG", "PER")
    assert again.by_type() == {"LOC": 100.0, "ORG": 0.0, "PER": 100.0}
    assert all(np.array_equal(getattr(again, name), getattr(table, name)) for name in ("tp", "predicted", "gold"))
    nothing = [Prediction(entities=(), confidence=())]
    assert evaluate([sentence("a b", [])], nothing, ["X"]).f1() == 0
    assert evaluate([sentence("a b", [(0, 1, "X")])], nothing).f1() == 0
    with pytest.raises(ValueError, match="'X'"):
        evaluate([sentence("a", [(0, 1, "X")])], [prediction_of(["O"])], ["Y"])
    with pytest.raises(ValueError, match="shorter"):
        evaluate([sentence("a", [])], [])
