"""Removal of a corpus with everything made from it: no file of the home keeps a word of it."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.corpora.library import Library
from core.experiment import deliver, results
from core.explore import view as maps
from core.importing import uploads
from core.importing import view as corpora
from core.kinds import KINDS
from core.paths import home, private
from core.project_list import shared_home
from core.projects import removals, runs
from core.runs.store import Run
from core.selection import view as selections
from core.tagging import calibrate
from core.text.sentence import Sentence
from tests import finished_bias, smallest_options
from tests.conftest import Command, sentence
from tests.planted import contracts
from tests.test_files_on_disk import wider
from tests.word_search import holding

NAMES = [f"Zyxnåme{i}" for i in range(40)]


def test_the_word_search_covers_every_kind_of_file(tmp_path: Path) -> None:
    text = "on file: Zyxnåme7 ."
    pq.write_table(pa.table({"rows": [[{"text": text}]]}), tmp_path / "a.parquet", compression="zstd")
    np.savez_compressed(tmp_path / "a.npz", words=np.array([text]))
    np.save(tmp_path / "a.npy", np.array([text]))
    (tmp_path / "a.gz").write_bytes(gzip.compress(json.dumps({"text": text}).encode()))
    (tmp_path / "a.json").write_text(json.dumps({"text": text}))
    (tmp_path / "a.txt").write_text(text, encoding="utf-16")
    (tmp_path / "a.log").write_text(text)
    (tmp_path / "Zyxnåme7.bin").write_bytes(b"nothing")
    files = sorted(path.name for path in tmp_path.iterdir())
    assert holding(tmp_path, NAMES) == [f"{name}: Zyxnåme7" for name in files]
    assert holding(tmp_path, ["Zyxnåme8"]) == []


def labelled(shift: int) -> str:
    """Return CoNLL sentences with a name each."""
    rows = [f"{NAMES[(i + shift) % 40]} B-PATIENT\nsees O\nDr O\nRoe{i} B-DOCTOR\n. O\n" for i in range(40)]
    return "\n".join(rows)


def did(kind: str, /, **options: object) -> Run:
    return runs.execute(kind, options)


def upload(file_name: str, text: str, **options: object) -> str:
    """Import a file as the page does; return the fingerprint of its corpus."""
    source = shared_home(home()).parent / "sent" / file_name
    source.parent.mkdir(exist_ok=True, parents=True)
    source.write_text(text, encoding="utf-8")
    with source.open("rb") as file:
        path = uploads.spooled(uploads.spool(file_name, file))
    return str(did("add", path=str(path), move=True, **options).result()["corpus"])


@pytest.fixture
def notes(home: Path) -> str:
    """Make a labelled corpus with names and everything that users derive from it, and a corpus of contracts."""
    train = upload("Zyxnåme3 notes.conll", labelled(0), scheme="iob2", name="notes")
    dev = upload("dev.conll", labelled(7), scheme="iob2", name="notes dev")
    rows = [json.dumps({"text": f"{name} came again on day {i} and left ."}) for i, name in enumerate(NAMES * 6)]
    pile = upload("pile.jsonl", "\n".join([*rows, '{"text": "Zyxnåme9', '{"other": 1}']), name="pile")
    other = upload("contracts.txt", "\n".join(contracts(60)), name="contracts")
    for corpus in (pile, other):
        did("audit", corpus=corpus)
    select = did("select", task=train, domain=pile, encoder="tiny", budget="30")
    did("map", **maps.options(select.id, sample=100, clusters=3))
    selections.export(select.id, "30", (), deliver.exports() / f"my_domain-random-{select.id[-4:]}-30.txt")
    selections.edit(select.id, "add", np.arange(5))
    selections.seal(select.id)
    few: dict[str, object] = {"network": "charcnn", "vectors": pile, "seeds": (1,), "hidden": 4, "epochs": 1}
    tuned = did("finetune", train=train, dev=dev, **few)
    deliver.export_model(tuned.id)
    did("predict", model=tuned.id, corpus=pile)
    finished_bias.measured(home, corpora.find(train))
    corpora.set_role("domain", pile)
    return train


def test_no_file_contains_a_name_after_its_corpora_are_removed_with_everything(
    home: Path, notes: str, command: Command
) -> None:
    before = {line.rsplit("/", 1)[-1].split(":")[0] for line in holding(shared_home(home), NAMES)}
    assert {
        "sentences.parquet",
        "map.parquet",
        "predictions.jsonl",
        "predictions.conll",
        "mentions.parquet",
        "vocabulary.json",
        "words.txt",
        "rejects.jsonl",
    } <= before
    summary = removals.removal(notes).in_words
    assert "1 selection" in summary
    assert "1 training" in summary
    code, _, stderr = command("corpus", "remove", "notes", "--with-runs")
    assert code == 0, stderr
    assert summary in stderr
    assert corpora.find("contracts")
    assert [results.corpus_name(run.manifest.inputs["corpus"]) for run in runs.listed("audit")] == ["contracts", "pile"]
    for name in ("pile", "notes dev"):
        removals.remove_everything(name)
    assert holding(shared_home(home), NAMES) == []
    assert corpora.roles() == {}
    assert [corpus.name for corpus in corpora.listed()] == ["contracts"]
    assert {run.manifest.kind for run in runs.listed()} == {"add", "audit"}


def patients(texts: list[str], labelled: bool) -> list[Sentence]:
    """Put a name before each text, as an entity if labelled."""
    named = [f"{NAMES[i % 40]} {text}" for i, text in enumerate(texts)]
    return [sentence(text, [(0, 1, "PATIENT")] if labelled else None) for text in named]


def folder_of_patients(tmp_path: Path) -> dict[str, object]:
    """Return options for an intake of a folder outside the home; its files have names in text and file name."""
    folder = tmp_path / "several"
    folder.mkdir()
    for name, seed in (("Zyxnåme1 one.txt", 20), ("two.txt", 21)):
        lines = patients(contracts(100, seed=seed), False)
        (folder / name).write_text("\n".join(each.text for each in lines), encoding="utf-8")
    (folder / "Zyxnåme2 three.conll").write_text("Zyxnåme2\n", encoding="utf-8")
    parts = {"domain": ("Zyxnåme1 one.txt",), "task": ("two.txt",), "test": ("Zyxnåme2 three.conll",)}
    return {"path": str(folder), **parts}


@pytest.fixture
def every_run(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Finish a run of every kind on text with names; yield the fingerprints of the corpora."""
    monkeypatch.setattr(calibrate, "SECONDS", 0.0)
    mask = os.umask(0o022)
    private()  # every process of Winnow starts with this call
    library = Library(home)
    made = dict[str, str]()
    for name, lines in smallest_options.piles().items():
        rows = patients(lines, name not in ("task", "domain"))
        made[name] = library.seal(rows, name=name, origin={}, labelled=rows[0].entities is not None).fingerprint
    file = tmp_path / "more.txt"
    file.write_text("\n".join(each.text for each in patients(contracts(20, seed=5), False)), encoding="utf-8")
    again = made.pop("again")
    first = dict(smallest_options.first(made, again, file))
    first["intake"] = {**first["intake"], **folder_of_patients(tmp_path)}
    for kind, options in first.items():
        did(kind, **options)
    for kind, options in smallest_options.second(made).items():
        did(kind, **options)
    imported = [str(run.result()["corpus"]) for run in runs.listed("add", state="succeeded")]
    assert len(imported) == 3, "the file, and two parts of the folder"
    hideable = [corpora.find(f"hideable {role}").fingerprint for role in ("task", "domain")]
    yield [*made.values(), again, *imported, *hideable]
    os.umask(mask)


@pytest.mark.full
def test_no_run_of_any_kind_leaves_a_name_after_removal(home: Path, every_run: list[str]) -> None:
    """This test fails for a new kind of run whose files are not removed."""
    kinds = {run.manifest.kind for run in runs.listed() if runs.state(run.id).state == "succeeded"}
    assert kinds == set(KINDS), "add the new kind of run to tests/smallest_options.py"
    assert wider(shared_home(home)) == []  # other accounts can read no file of any kind of run
    keeping = {line.split("/")[1].split("-")[2] for line in holding(home, NAMES) if line.startswith("runs/")}
    assert {"map", "predict", "finetune", "rebuild", "difficulty", "robustness", "llm"} <= keeping
    for mark in every_run:
        removals.remove_everything(mark)
    assert holding(shared_home(home), NAMES) == []
    assert corpora.listed() == []
    assert {run.manifest.kind for run in runs.listed()} == {"fetch", "vectors-import"}  # which read no corpus
