"""Runs of `difficulty` on planted corpora: information of names and contexts, notes, refusals, and the command."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.bias import view as bias
from core.bias.difficulty import Trained, summary
from core.bias.pvi import entropy
from core.bias.result import BINS, Mention, bin_of, read_mentions
from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.projects import removals
from core.runs import Run
from core.text.sentence import Entity, Sentence, sentence_id
from tests.conftest import Command, Seal, entities_of
from tests.homes import executed

QUICK = {
    "encoder": "tiny",
    "folds": 2,
    "batch_size": 8,
    "learning_rate": 1e-3,
    "head_learning_rate": 1e-2,
    "context_epochs": 6,
    "entity_epochs": 6,
    "precision": "fp32",
    "draws": 200,
}
SHORT: dict[str, Any] = {"context_epochs": 1, "entity_epochs": 1}


def one(i: int, name: str, word: str, kind: str) -> Sentence:
    tokens = (word, *name.split(), f"q{i}")
    entity = Entity(start=1, end=1 + len(name.split()), type=kind)
    text = " ".join(tokens)
    return Sentence(id=sentence_id(text), tokens=tokens, text=text, entities=(entity,))


def planted(n: int, kinds: dict[str, tuple[str, str]]) -> list[Sentence]:
    """Return `n` sentences with one mention each. kinds: {type: (names, preceding words)}, drawn from these letters."""
    rng = np.random.default_rng(0)
    types = rng.choice(list(kinds), n)
    words = [[str(rng.choice(list(letters))) for letters in kinds[kind]] for kind in types]
    return [one(i, name, word, kind) for i, ((name, word), kind) in enumerate(zip(words, types, strict=True))]


def found(corpus: Corpus, **options: Any) -> Run:
    return executed("difficulty", {**QUICK, **options}, train=corpus.fingerprint)


def mentions(run: Run) -> list[Mention]:
    return read_mentions(run.artifacts / "mentions.parquet")


def test_name_equal_to_the_label_has_full_information_and_noise_none(seal: Seal) -> None:
    sentences = planted(160, {"A": ("a", "xyz"), "B": ("b", "xyz")})
    run = found(seal(sentences, labelled=True))
    result, rows = run.result(), mentions(run)
    labels = np.array([entities_of(s)[0].type == "A" for s in sentences], dtype=int)
    assert result["entropy"] == pytest.approx(entropy(labels), abs=1e-4)
    assert result["v_information"]["entity"] == pytest.approx(result["entropy"], abs=0.05)
    assert -0.3 < result["v_information"]["context"] <= 0.01
    assert result["ceim"]["high"] > 140
    assert result["intervals"]["entity"][0] <= result["v_information"]["entity"] <= result["intervals"]["entity"][1]
    for row, sentence in zip(rows, sentences, strict=True):
        assert (row.sentence, row.type) == (sentence.id, entities_of(sentence)[0].type)
        assert row.surface == sentence.tokens[1]
        assert row.ceim == row.pvi_entity - row.pvi_context
        assert row.bin == bin_of(row.ceim)
    assert {row.fold for row in rows} == {0, 1}


@pytest.mark.full
def test_information_per_type_shows_whether_name_or_context_reveals_it(seal: Seal) -> None:
    """Names reveal types N and M; types C and D share names, and the preceding word reveals them."""
    kinds = {"N": ("n", "xy"), "M": ("m", "xy"), "C": ("k", "c"), "D": ("k", "d")}
    run = found(seal(planted(240, kinds), labelled=True), context_epochs=10, entity_epochs=10)
    result = run.result()["by_type"]
    for view, given_away, other in (("entity", "NM", "CD"), ("context", "CD", "NM")):
        assert min(result[kind][view] for kind in given_away) > 1.6
        assert np.mean([result[kind][view] for kind in other]) < 1.2  # the other view leaves 1 of 2 bits open
    for kind in "NMCD":
        assert max(result[kind]["bins"], key=result[kind]["bins"].get) == ("high" if kind in "NM" else "low")


def test_same_seed_gives_the_same_bytes_and_loss_is_recorded(seal: Seal) -> None:
    corpus = seal(planted(40, {"A": ("a", "xyz"), "B": ("b", "xyz")}), labelled=True)
    once: dict[str, Any] = {"repeats": 2, **SHORT}
    first = found(corpus, **once)
    result, table, events = first.result(), (first.artifacts / "mentions.parquet").read_bytes(), first.events()[0]
    assert len(list(first.chunks.glob("*.npz"))) == 8
    assert len(result["repeats"]) == 2
    assert result["v_information"]["entity"] == pytest.approx(
        np.mean([r["entity"] for r in result["repeats"]]), abs=2e-4
    )
    for view in ("context", "entity"):
        steps = [e.data["step"] or 0 for e in events if e.kind == "metric" and e.data["name"] == f"loss/{view}"]
        assert steps == sorted(steps)
        assert len(steps) >= 2
    progress = [(e.data["done"], e.data["total"]) for e in events if e.kind == "progress"]
    assert progress[-1][0] == progress[-1][1]
    assert progress[-1][0] > 0
    assert [done for done, _ in progress] == sorted(done for done, _ in progress)
    assert found(corpus, **once).id == first.id
    removals.remove_run(first.id)
    again = found(corpus, **once)
    assert (again.artifacts / "mentions.parquet").read_bytes() == table
    assert {**again.result(), "seconds": 0} == {**result, "seconds": 0}
    other = found(corpus, **{**once, "repeats": 1, "seed": 2})
    assert [row.pvi_context for row in mentions(other)] != [row.pvi_context for row in mentions(again)]


@pytest.mark.full
def test_trained_null_model_approximates_the_prior_and_leaves_ceim_unchanged(seal: Seal) -> None:
    sentences = [one(i, "a", "x", "B" if i % 4 == 0 else "A") for i in range(80)]
    corpus = seal(sentences, labelled=True)
    options = {"calibrate": "no", "batch_size": 2, "learning_rate": 1e-5, "head_learning_rate": 1e-3, **SHORT}
    closed, trained = (mentions(found(corpus, **options, null=null)) for null in ("closed", "trained"))
    apart = [a.pvi_entity - b.pvi_entity for a, b in zip(closed, trained, strict=True)]
    assert 0 < np.abs(apart).max() < 1.2
    assert abs(np.mean(apart)) < 0.3
    assert [a.ceim for a in closed] == pytest.approx([b.ceim for b in trained], abs=1e-9)


@pytest.mark.parametrize(
    ("sentences", "words"),
    [
        (
            [one(0, "a", "x", "A"), *planted(40, {"B": ("b", "x"), "C": ("c", "x")})],
            "A (1): fewer mentions than the 2 f",
        ),
        (planted(6, {"A": ("a", "x")}), "A: is the only type"),
        (
            [one(0, "a " * 40, "x", "A"), *planted(20, {"B": ("b", "x")})],
            "1 name is longer than the window of 16 pieces",
        ),
        ([one(0, "a", "abcdefghijklmnopqrst", "A"), *planted(20, {"B": ("b", "x")})], "1 context is longer than the w"),
        (
            [
                *(replace(row, doc="a") for row in planted(30, {"A": ("a", "x")})),
                *(replace(row, doc="bc"[i % 2]) for i, row in enumerate(planted(30, {"B": ("b", "x")}))),
            ],
            "A (30): all mentions are in one document, so the models",
        ),
        (
            [*planted(2, {"A": ("a", "x")}), one(9, "b", "x", "B")],
            "Only 3 sentences have an entity, so there are 3 folds",
        ),
    ],
    ids=["one mention", "one type", "long name", "long context", "one document", "few sentences"],
)
def test_odd_mentions_are_noted_and_the_rest_is_measured(seal: Seal, sentences: Sequence[Sentence], words: str) -> None:
    options = {**SHORT, "max_length": 16, "folds": 2 if len(sentences) > 3 else 5}
    run = found(seal(sentences, labelled=True), **options)
    result = run.result()
    assert any(words in note for note in result["notes"]), result["notes"]
    assert result["notes"] == [e.data["text"] for e in run.events()[0] if e.kind == "note"]
    assert result["mentions"] == len(mentions(run)) == len(sentences)
    assert all(np.isfinite([row.pvi_entity, row.pvi_context]).all() for row in mentions(run))
    if "one document" in words:
        assert bias.measured(run.id).weak == {"A": "all in one fold, so its models never saw it"}
    if len(result["by_type"]) == 1:
        assert result["v_information"] == {"entity": 0, "context": 0}
        assert result["ceim"] == {"low": 0, "near_zero": len(sentences), "high": 0}


def test_labels_without_usable_mentions_are_refused(seal: Seal) -> None:
    empty = Sentence(id="0" * 16, tokens=("x",), text="x", entities=())
    for sentences, words in (
        ([empty], "no sentence has an entity, so there is"),
        ([replace(empty, entities=None)], "is not labelled; give a corpus with entities"),
        ([one(0, "a", "x", "A"), one(0, "a", "x", "B")], "all its entities are in one sentence, so no model can"),
    ):
        with pytest.raises(CorpusError, match=words):
            found(seal(sentences, labelled=sentences[0].entities is not None))


@pytest.mark.parametrize(
    ("counts", "means", "expected"),
    [
        ((1962, 18266, 3271), (-1.01, 1.90, 1.95), 1.664),
        ((516, 880, 579), (-2.05, 1.73, 2.12), 0.857),
        ((957, 3130, 2089), (-1.34, 1.52, 1.64), 1.117),
    ],
    ids=["conll2003", "wnut2017", "twitter"],
)
def test_summary_of_bins_equals_ma_et_al_2023(
    counts: tuple[int, ...], means: tuple[float, ...], expected: float
) -> None:
    place: dict[str, Any] = {"sentence": "0" * 16, "start": 0, "end": 1, "type": "T", "surface": "x", "fold": 0}
    rows = [
        Mention(row=i, **place, pvi_entity=mean, pvi_context=mean - ceim, ceim=ceim, bin=bin_of(ceim))
        for ceim, count, mean in zip((-2.0, 0.0, 2.0), counts, means, strict=True)
        for i in range(count)
    ]
    result = summary(rows, 100, 0, Trained())
    assert result.v_information.entity == pytest.approx(expected, abs=1e-3)
    assert result.ceim == dict(zip(BINS, counts, strict=True))
    assert [result.mean_pvi[name].entity for name in BINS] == pytest.approx(means)


def test_difficulty_command_prints_the_result_and_writes_the_mentions(
    seal: Seal, tmp_path: Path, command: Command
) -> None:
    sentences = planted(60, {"A": ("a", "xyz"), "B": ("b", "xyz")})
    corpus, output = seal(sentences, labelled=True), tmp_path / "D.parquet"
    options = [f"--{name.replace('_', '-')}={value}" for name, value in {**QUICK, **SHORT, "mentions": 20}.items()]
    arguments = ["difficulty", "--train", corpus.name, *options, "--json", "--output"]
    result = json.loads(command(*arguments, output)[1])
    assert (result["output"], result["mentions"], result["corpus"]) == (str(output), 20, corpus.fingerprint)
    assert set(result["v_information"]) == {"entity", "context"}
    assert set(result["ceim"]) == {"low", "near_zero", "high"}
    rows = read_mentions(output)
    assert len(rows) == 20
    assert all(sentences[row.row].id == row.sentence for row in rows)  # row numbers are those of the whole corpus
    code, _, err = command(*arguments, tmp_path / "D.csv")
    assert (code, "D.csv: mentions are written as Parquet; end the name in .parquet" in err) == (2, True)
