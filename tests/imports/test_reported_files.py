"""Rebuilt exports of public reports, stored beside the project, give the answers of their README."""

import sys
from pathlib import Path

import pytest

from core.cli.main import run_main
from core.importing import view as corpora

READ = {
    "r01.tsv": (10, {"ENTITY": 15}),
    "r02a.conll": (8, {"PER": 4, "LOC": 4}),
    "r03a.tsv": (5, {"PER": 5, "LOC": 5}),
    "r03b.conll": (4, {"PER": 4, "LOC": 4}),
    "r04a.csv": (6, {"geo": 3, "org": 3}),
    "r05.csv": (2, {"LOC": 1, "ORG": 1}),
    "r06a.json": (2, {"LOC": 1, "ORG": 1}),
    "r07": (1, {"ORG": 1, "LOC": 1}),
    "r08": (3, {"PER": 2, "LOC": 1}),
    "r09.json": (3, {"LOC": 3}),
}


def add(path: Path, patch: pytest.MonkeyPatch, *flags: str) -> int:
    patch.setattr(sys, "argv", ["core", "corpus", "add", str(path), *flags])
    return run_main()


@pytest.mark.real
@pytest.mark.parametrize("file", READ)
def test_reported_files_are_read_correctly(
    file: str, real_data: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert add(real_data / "imports" / file, monkeypatch) == 0
    (corpus,) = corpora.listed()
    assert (len(corpus), dict(corpus.types)) == READ[file]


@pytest.mark.real
def test_annotators_who_disagree_are_asked_about(
    real_data: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(real_data / "imports" / "r12.zip", monkeypatch) == 2
    assert "--annotator" in capsys.readouterr().err
    assert not corpora.listed()


@pytest.mark.real
def test_binary_answers_become_labelled_sentences_only_with_keep_lost(
    real_data: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = real_data / "imports" / "r11.jsonl"
    assert add(path, monkeypatch) == 2
    assert "unknown, not O" in capsys.readouterr().err
    assert add(path, monkeypatch, "--keep-lost") == 0
    (corpus,) = corpora.listed()
    assert (len(corpus), dict(corpus.types)) == (1, {"PER": 1, "LOC": 1})
    assert "1 text has only binary answers" in capsys.readouterr().out
