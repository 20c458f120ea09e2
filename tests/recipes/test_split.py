"""Splits: shares by documents, sentences or a kept column, and copies of a sentence in one part alone."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from core.cli.main import main
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.corpora.shares import kept_in_smallest
from core.errors import ConfigError, OptionsError
from core.importing import view as corpora
from core.importing.view import SplitResult
from core.projects import runs
from core.text.sentence import Sentence

KINDS = ("alliance", "lease", "lease", "supply")  # of every fourth contract


def unlike(n: int) -> list[str]:
    """Sentences of which no two are near copies."""
    draw = random.Random(7)
    return [" ".join("".join(draw.choices("abcdefgh", k=5)) for _ in range(8)).capitalize() + " ." for _ in range(n)]


@pytest.fixture
def exported(home: Path, tmp_path: Path) -> Path:
    """A Doccano export: 20 contracts of nine sentences, each with a line that all contracts have."""
    lines = unlike(180)
    with (path := tmp_path / "export.jsonl").open("w", encoding="utf-8") as file:
        for i in range(20):
            text = "This agreement is governed by the laws of England . " + " ".join(lines[9 * i : 9 * i + 9])
            row = {"text": text, "label": [[0, 14, "DEED"]], "contract": f"C{i}", "meta": {"kind": KINDS[i % 4]}}
            file.write(json.dumps(row) + "\n")
    return path


def added(path: Path, **options: object) -> Corpus:
    options = {"path": str(path), "split": True, "name": "deeds", **options}
    return corpora.find(str(runs.execute("add", options).result()["corpus"]))


def split(corpus: Corpus, **options: object) -> tuple[SplitResult, dict[str, list[Sentence]]]:
    run = runs.execute("split", {"corpus": corpus.fingerprint, **options})
    result = corpora.split_result(run.id)
    return result, {
        part.name: [s for batch in corpora.find(part.corpus).batches() for s in batch] for part in result.parts
    }


def test_an_export_becomes_train_dev_and_test_by_contract(exported: Path) -> None:
    corpus = added(exported, doc_column="contract", group_column="kind")
    result, parts = split(corpus, by="document", shares=(70, 10, 20))
    docs = {name: {s.doc for s in sentences} for name, sentences in parts.items()}
    assert list(docs) == ["train", "dev", "test"]
    assert [len(docs[name]) for name in docs] == [14, 2, 4]
    assert set.union(*docs.values()) == {f"C{i}" for i in range(20)}, "each contract is in one part, none in two"
    everywhere = [s for name in parts for s in parts[name] if "laws of England" in s.text]
    assert {s.doc for s in everywhere} == docs["dev"], "a sentence of all contracts stays in the smallest part"
    assert (result.divided, [part.left_out for part in result.parts]) == (1, [14, 0, 4])
    assert [part.sentences for part in result.parts] == [len(sentences) for sentences in parts.values()]
    assert corpora.find("deeds-test").origin["by"] == "document"
    kept, whole = split(corpus, keep_copies=True)
    assert (kept.divided, [part.left_out for part in kept.parts], sum(map(len, whole.values()))) == (1, [0] * 3, 200)
    again = replace(result.parts[0])
    assert split(corpus, by="document", shares=(7, 1, 2))[0].parts[0] == again, "the same lot, the same bytes"
    assert split(corpus, seed=1)[0].parts[0].corpus != again.corpus


def test_by_the_values_of_a_column(exported: Path) -> None:
    corpus = added(exported, doc_column="contract", group_column="kind")
    assert corpora.split_by(corpus) == {"document": [], "sentence": [], "column": ["alliance", "lease", "supply"]}
    result, parts = split(corpus, by="column", values=("alliance", "supply"))
    assert {name: {s.group for s in sentences} for name, sentences in parts.items()} == {
        "task": {"alliance", "supply"},
        "domain": {"lease"},
    }
    assert sum(part.left_out for part in result.parts) == 10
    _, parts = split(corpus, by="column", shares=(1, 1))
    assert not {s.group for s in parts["train"]} & {s.group for s in parts["test"]}
    with pytest.raises(ConfigError, match="no sentence of deeds has 'loan'; its values are alliance, lease, supply"):
        split(corpus, by="column", values=("loan",))


def test_by_sentence_copies_fall_to_one_part(home: Path, tmp_path: Path) -> None:
    pairs = [f"Then again {line} and {line}" for line in unlike(40)]
    near = [text.replace("Then again", "Then anew") for text in pairs]
    file = tmp_path / "pairs.txt"
    file.write_text("\n".join(pairs + near), encoding="utf-8")
    ran = CliRunner().invoke(
        main, ["corpus", "split", str(file), "--by", "sentence", "--shares", "60,20", "--names", "rest,held", "--json"]
    )
    assert ran.exit_code == 0, ran.output
    result = corpora.split_result(json.loads(ran.stdout)["run"])
    assert [(part.name, part.sentences, part.left_out) for part in result.parts] == [("rest", 60, 0), ("held", 20, 0)]
    assert (result.units, result.copies, result.divided) == (40, 80, 0)
    held = {s.text[10:].strip() for s in next(corpora.find("pairs-held").batches())}
    assert len(held) == 10, "both of a pair are there"


def test_what_cannot_be_split_is_a_sentence(exported: Path) -> None:
    corpus = added(exported)
    assert "column" not in corpora.split_by(corpus)
    with pytest.raises(ConfigError, match="no sentence of deeds has a value of a column"):
        split(corpus, by="column")
    with pytest.raises(ConfigError, match="nothing of deeds is left for f21: it has 20 documents for 21 parts"):
        split(corpus, shares=[1] * 21, names=[f"f{i}" for i in range(1, 22)])
    with pytest.raises(OptionsError, match="there is no column 'clinic'"):
        added(exported, doc_column="clinic")
    with pytest.raises(ConfigError, match="expected 3 different names"):
        split(corpus, names=("train", "test"))


def test_copies_stay_in_the_smallest_of_their_parts() -> None:
    part, copies = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 2, 0, 1, 5])
    kept, divided = kept_in_smallest(part, copies)
    assert (kept.tolist(), divided) == ([False, False, True, True, True, True], 2)


def test_what_a_corpus_is_of_is_read_again_and_changes_no_other_fingerprint(home: Path) -> None:
    rows = [Sentence(id=f"{i:016x}", tokens=("a", "b"), text="a b", doc="d") for i in range(3)]
    plain = Library(home).seal(iter(rows), name="plain", origin={})
    assert plain.fingerprint == "eadf1345154d5684f7c87663"
    of = [replace(row, group="x" if i else None) for i, row in enumerate(rows)]
    assert next(Library(home).seal(iter(of), name="of", origin={}).batches()) == of
