"""Predictions have offsets in the original text of the user, although an import cleans the text."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpora.readers import ReadReport
from core.importing.result import AddResult
from core.projects import runs
from core.projects.home import library
from core.runs.context import RunContext
from core.runs.result import read as read_result
from core.runs.run import Run
from core.tagging import predictions, view
from core.tagging.predictions import PredictResult
from core.text.sentence import Entity, Sentence
from core.text.source import Places, Source
from core.text.words import clean
from tests import documents
from tests.finished import finish

LINES = ("   Mara Lind rents   hall 7\tin Lyon .", "", "Otto\u00a0Barr pays 🙂 Ines Holm in Bre\u0301men .")
NAMES = [["Mara Lind", "Lyon"], ["Otto\u00a0Barr", "Ines Holm", "Bre\u0301men"]]


def predict(home: Path, path: Path) -> Run:
    """Finish a run whose tagger finds all names of `NAMES` in the cleaned text."""
    corpus = runs.fingerprint_of(str(path))
    sentences = [sentence for batch in library().find(corpus).batches() for sentence in batch]

    def work(context: RunContext) -> PredictResult:
        found = [replace(each, entities=tuple(entities_of(each))) for each in sentences]
        predictions.write(context.run, [(each, [0.9] * len(each.entities or ())) for each in found])
        return PredictResult(sentences=len(found), entities=5, types={"NAME": 5})

    return finish(home, "predict", {"corpus": corpus, "model": "tiny"}, work)


def entities_of(sentence: Sentence) -> list[Entity]:
    tokens, found = list(sentence.tokens), list[Entity]()
    for name in map(clean, chain(*NAMES)):
        words = name.split(" ")
        for start in range(len(tokens)):
            if tokens[start : start + len(words)] == words:
                found.append(Entity(start=start, end=start + len(words), type="NAME"))
    return found


def plain(path: Path) -> list[str]:
    path.write_bytes("\r\n".join([*LINES, ""]).encode())
    return [LINES[0], LINES[2]]


def table(path: Path) -> list[str]:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["n", "text"], *([str(i), line] for i, line in enumerate(LINES) if line)])
    return [LINES[0], LINES[2]]


def json_lines(path: Path) -> list[str]:
    path.write_bytes(b"".join(json.dumps({"text": line}).encode() + b"\r\n" for line in LINES if line))
    return [LINES[0], LINES[2]]


def conll(path: Path) -> list[str]:
    tokens = [line.split() for line in LINES if line]
    path.write_bytes("\r\n".join("\r\n".join(f"{token}\tO" for token in each) + "\r\n" for each in tokens).encode())
    return [" ".join(each) for each in tokens]


@pytest.mark.parametrize(
    ("name", "write", "lines"),
    [
        ("a.txt", plain, [1, 1, 3, 3, 3]),
        ("a.csv", table, [2, 2, 3, 3, 3]),
        ("a.jsonl", json_lines, [1, 1, 2, 2, 2]),
        ("a.conll", conll, [1, 7, 10, 14, 17]),
    ],
)
def test_every_entity_has_its_offsets_in_the_original_file(
    home: Path, tmp_path: Path, name: str, write: Callable[[Path], list[str]], lines: list[int]
) -> None:
    path = tmp_path / name
    texts = write(path)
    sentences = list(view.found_sentences(predict(home, path).id, str(path)))
    assert [sentence.text for sentence in sentences] == texts
    for sentence, names in zip(sentences, NAMES, strict=True):
        assert sentence.file == name
        assert [clean(entity.text) for entity in sentence.entities] == [clean(each) for each in names]
        for entity in sentence.entities:
            assert sentence.text[entity.start : entity.end] == entity.text
            assert sentence.tokens[entity.first_token] in clean(entity.text)
    assert [entity.line for sentence in sentences for entity in sentence.entities] == lines


def test_offsets_in_plain_text_also_count_from_the_start_of_the_file(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    plain(path)
    content = path.read_bytes().decode()
    run = predict(home, path)
    found = [entity for sentence in view.found_sentences(run.id, str(path)) for entity in sentence.entities]
    assert [content[entity.file_start : entity.file_end] for entity in found] == [*chain(*NAMES)]
    # The corpus knows its import, so its name is enough while the file exists.
    assert list(view.found_sentences(run.id)) == list(view.found_sentences(run.id, str(path)))
    path.write_text(
        "Something else.\n", encoding="utf-8"
    )  # the file has changed, so only offsets in the cleaned text remain
    first, _ = view.found_sentences(run.id, str(path))
    assert (first.text, first.line) == (clean(LINES[0]), None)
    assert [first.text[each.start : each.end] for each in first.entities] == NAMES[0]


def test_entities_of_a_document_have_their_page(home: Path, tmp_path: Path) -> None:
    pages = [documents.lines([clean(LINES[0])]), documents.lines(["Ines Holm pays."])]
    path = tmp_path / "a.pdf"
    path.write_bytes(documents.pdf(pages))
    run = predict(home, path)
    found = tmp_path / "new folder" / "found.csv"
    view.write_found(run.id, found, str(path))
    with found.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["file"], row["page"], row["text"]) for row in rows] == [
        ("a.pdf", "1", "Mara Lind"),
        ("a.pdf", "1", "Lyon"),
        ("a.pdf", "2", "Ines Holm"),
    ]


def test_damaged_tokens_are_counted_and_affect_only_their_sentence(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [["Mara", "Lind"], ["Otto", "", "Barr"], ["Lyon", "\ud83d"], ["in", "Lyon"]]
    path.write_text("".join(json.dumps({"tokens": row, "ner_tags": ["O"] * len(row)}) + "\n" for row in rows))
    result = read_result(runs.get(runs.execute("add", {"path": str(path)}).id), AddResult)
    assert (result.kept, result.repaired, result.rejected) == (3, 1, 1)
    report = ReadReport()
    found = list(view.found_sentences(predict(home, path).id, str(path), report))
    assert report.rejected == 1
    assert [(each.line, [entity.text for entity in each.entities]) for each in found] == [
        (1, ["Mara Lind"]),
        (2, ["Otto Barr"]),
        (4, ["Lyon"]),
    ]


@given(st.text(alphabet=" \t\u00a0ae\u0301\u0323n\u0303각\u1100\u1161\u11a8\u09c7\u09be🙂Å", min_size=1, max_size=30))
def test_characters_of_the_cleaned_text_map_to_their_origin(raw: str) -> None:
    text = clean(raw)
    places = Places(text, Source(text=raw))
    for start, end in (match.span() for match in re.finditer(r"\S+", text)):
        assert clean(raw[slice(*places.span(start, end))]) == text[start:end]
        for at in range(start, end):
            first, last = places.span(at, at + 1)
            assert text[at] in clean(raw[first:last])
