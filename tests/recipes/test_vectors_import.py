"""Imported word vectors: a run that reads them, and taggers that begin with them."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from core import shown_command as commands
from core.cli.main import main
from core.encoders import vectors
from core.errors import ConfigError, PathError, ReadError
from core.models.bilstm import BiLstmTagger
from core.models.taggers import load_tagger
from core.projects import removals, runs
from tests.conftest import Seal
from tests.recipes.test_skl_recipe import AWAY, HOME

Import = Callable[..., str]
WORDS = sorted({token for one in HOME for token in one.tokens})


@pytest.fixture
def imported(home: Path, tmp_path: Path) -> Import:
    def make(name: str, *lines: str) -> str:
        path = tmp_path / f"{name}.vec"
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return runs.execute("vectors-import", {"path": str(path)}).id

    return make


def test_a_file_becomes_a_run_under_a_name_of_its_own(imported: Import, tmp_path: Path) -> None:
    run = runs.get(imported("far", "3 2", "und 1 2", "und 3 4", "of late 5 6"))
    assert run.result() == {"name": "far", "words": 1, "dimension": 2, "again": 1, "unusable": 1, "whole": True}
    read = vectors.read_words(run)
    assert (read.words, read.values.tolist()) == (("und",), [[1.0, 2.0]])
    assert read.values.dtype == np.float32
    with pytest.raises(ConfigError, match=f"name: far is what {run.id} is called; choose another name"):
        imported("far", "und 1 2")
    listed = CliRunner().invoke(main, ["vectors", "list", "--json"])
    assert [one["run"] for one in json.loads(listed.stdout)["vectors"]] == [run.id]
    command = commands.command("vectors-import", run.manifest.config)
    assert command == f"python -m core vectors add {tmp_path / 'far.vec'}"


def test_what_is_refused_leaves_nothing(imported: Import, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"^far.vec line 3: has 1 numbers, where 2 are expected"):
        imported("far", "2 2", "und 1 2", "oder 1")
    with pytest.raises(PathError, match="cannot be opened"):
        runs.execute("vectors-import", {"path": str(tmp_path / "gone.vec")})
    for run in runs.listed("vectors-import"):
        assert run.state().permanent is (run.manifest.config["path"][-8:] == "/far.vec")
        assert not [*run.artifacts.iterdir(), *run.chunks.iterdir()]
    with pytest.raises(ConfigError, match="name: is written as a run's id or with a comma"):
        runs.execute("vectors-import", {"path": "x.vec", "name": "a,b"})


def test_a_tagger_begins_with_them_and_says_what_share_of_words_has_one(imported: Import, seal: Seal) -> None:
    half = WORDS[: len(WORDS) // 2]
    own = imported("own", *(f"{word} {i} {-i} 0.5" for i, word in enumerate([*half, "nowhere"])))
    other = imported("other", f"{WORDS[-1]} 7 7 7", f"{half[0]} 8 8 8")
    train, theirs = (seal(rows, name, labelled=True).fingerprint for rows, name in ((HOME, "home"), (AWAY, "away")))
    base = {"train": train, "dev": train, "test": (train,), "seeds": (1,), "hidden": 4, "epochs": 1}
    given = {**base, "network": "charcnn", "imported_vectors": "own", "imported_assisting_vectors": "other"}
    run = runs.execute("finetune", {**given, "assisting": theirs})
    assert run.manifest.config["imported_vectors"] == own  # which another import of that name is not
    tagger = load_tagger(run.artifacts / "model", device="cpu")
    assert isinstance(tagger, BiLstmTagger)
    assert tagger.layout.word_size == 3
    kept = tagger.get_buffer("towers.0.words.kept")[tagger.vocabularies[0].further.index("nowhere")]
    assert kept.tolist() == [len(half), -len(half), 0.5]

    covered = {*half, WORDS[-1]}
    tokens = [token for one in HOME for token in one.tokens]
    lower = {word for word in WORDS if word in covered or word.lower() in covered}
    share = sum(token in lower for token in tokens) / len(tokens)
    result = run.result()["with_vector"]
    assert (result["train"], result["tests"]) == (len(lower) / len(WORDS), [share])
    says = f"{len(lower) / len(WORDS):.1%} of the labels' different words have a vector, and of the tokens of the test set "
    notes = [event.data["text"] for event in run.events()[0] if event.kind == "note"]
    [note] = [note for note in notes if note.startswith(f"{says}{share:.1%}.")]
    assert ("nearly all alike" in note) is (result["mean_cosine"] > vectors.ALIKE)

    wide = imported("wide", "und 1 2")
    for wrong, reason in (
        ({"imported_vectors": "gone"}, "imported_vectors: 'gone' names no imported word vectors; here are other, own"),
        ({"vectors": train}, "vectors, imported_vectors: a word begins with one vector; choose one of the two"),
        ({"network": "encoder", "hidden": None, "init": "tiny"}, "are for bilstm and charcnn"),
        ({"imported_vectors": ""}, "give assisting and vectors too"),
        ({"imported_assisting_vectors": wide}, "have 2 numbers a word, and those of vectors 3"),
    ):
        with pytest.raises(ConfigError, match=reason):
            runs.execute("finetune", {**given, "assisting": theirs, **wrong})
    removals.remove_everything(other)
    assert run.id not in [one.id for one in runs.listed()]


def test_vectors_that_are_nearly_all_alike_are_warned_of(home: Path, seal: Seal) -> None:
    rows = np.random.default_rng(1).normal(size=(50, 4))
    pairs = [rows[i] @ rows[j] / np.linalg.norm(rows[i]) / np.linalg.norm(rows[j]) for i in range(50) for j in range(i)]
    assert vectors.mean_cosine(rows) == pytest.approx(np.mean(pairs))
    assert vectors.mean_cosine(rows[:1]) == 0
    assert "mean cosine of two words 0.95" in vectors.alike_words(0.951)
    assert not vectors.alike_words(0.9)
    assert not vectors.alike_words(None)
    text = seal([" ".join(one.tokens) for one in HOME])  # far too little: its vectors stay where they began
    run = runs.execute("vectors", {"corpus": text.fingerprint, "min_count": 1, "dimension": 2, "skipgram_epochs": 1})
    read = vectors.read_words(run)
    assert run.result()["mean_cosine"] == pytest.approx(vectors.mean_cosine(read.values))
