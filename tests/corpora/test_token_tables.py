"""Tables of labelled tokens: one token per row, or lists in cells."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpora.formats.token_tables import _items
from core.corpora.readers import ReadOptions, read, sniff
from core.errors import OptionsError, ReadError
from core.text.sentence import Sentence
from tests.conftest import entities_of
from tests.corpora.reading import load, spans, write

HEAD = "Sentence #,Word,Tag,Source\n"
BODY = "1,Ann,B-PER,mail\n,owes,O,mail\n,rent,O,mail\n2,Bo,B-PER,letter\n,pays,O,letter\n"


def loaded(path: Path, text: str) -> list[Sentence]:
    return load(write(path, text))[0]


def test_a_token_per_row_keeps_sentences_and_further_columns(tmp_path: Path) -> None:
    first, second = loaded(tmp_path / "a.csv", HEAD + BODY)
    assert (first.tokens, second.tokens) == (("Ann", "owes", "rent"), ("Bo", "pays"))
    assert spans(second) == [(0, 1, "PER")]
    assert (dict(first.columns), dict(second.columns)) == ({"Source": "mail"}, {"Source": "letter"})

    assert len(loaded(tmp_path / "a.csv", HEAD + BODY * 3)) == 6  # sentence numbers start again
    preview = sniff(tmp_path / "a.csv", ReadOptions(text_column="Word"))
    assert (preview.labelled, preview.text_column) == (False, "Word")  # the user asked for the column as text


@pytest.mark.parametrize("once", [False, True])
def test_sentence_numbers_may_start_again_in_each_document(once: bool, tmp_path: Path) -> None:
    words = [("t1", ("Ann", "owes")), ("t2", ("Bo", "pays", "rent")), ("t2", ("Di", "owns")), ("t3", ("Cy", "left"))]
    rows = [
        (doc if (i == 0 and number == 1) or not once else "", number, word, "B-PER" if i == 0 else "O")
        for (doc, sentence), number in zip(words, (1, 1, 2, 1), strict=True)
        for i, word in enumerate(sentence)
    ]
    text = "doc_id,sentence,word,tag\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    found = loaded(tmp_path / "a.csv", text)
    assert [(s.doc, s.tokens) for s in found] == words
    assert [spans(s) for s in found] == [[(0, 1, "PER")]] * 4


def test_one_token_per_row_without_sentences_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionsError, match=r"a.csv line 1: it has one token per row \(Word and Tag\).*empty row"):
        loaded(tmp_path / "a.csv", "Word,Tag\nAnn,B-PER\nowes,O\nBo,B-PER\npays,O\n")


@pytest.mark.parametrize(
    "text",
    [
        "name,blood\nAnn,O\nBo,A\nCy,B\nDi,O\n",  # a column of letters whose name does not say tags
        "id,text,label\n1,the rent is due,legal\n2,a good film,other\n",
        "text,labels\nthe rent is due,a b\nno rent,c\n",
    ],
)
def test_other_tables_stay_unlabelled(tmp_path: Path, text: str) -> None:
    assert not sniff(write(tmp_path / "a.csv", text)).labelled


def test_numbered_tags_in_a_cell_need_their_names(tmp_path: Path) -> None:
    text = "tokens,ner_tags\n\"['Ann' 'owes']\",[1 0]\n\"['Bo' 'pays']\",[1 0]\n"
    with pytest.raises(ReadError, match="its tags are numbers"):
        loaded(tmp_path / "a.csv", text)
    info = {"features": {"ner_tags": {"feature": {"names": ["O", "B-PER"]}}}}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info), encoding="utf-8")
    first, _ = read(tmp_path / "a.csv")
    assert first.tokens == ("Ann", "owes")
    assert spans(first) == [(0, 1, "PER")]


WORDS = st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8), min_size=1, max_size=6)


@given(WORDS)
def test_lists_are_read_as_json_as_python_and_as_numpy_write_them(words: list[str]) -> None:
    assert _items(json.dumps(words)) == words
    assert _items(str(words)) == words
    assert _items("[" + " ".join(map(repr, words)) + "]") == words


def test_tokens_of_white_space_are_left_out(tmp_path: Path) -> None:
    row = {"tokens": ["Ann", "\n\n", "Lee", "owes", " "], "tags": ["B-PER", "I-PER", "I-PER", "O", "O"]}
    (sentence,) = loaded(tmp_path / "a.jsonl", json.dumps(row) + "\n")
    assert sentence.tokens == ("Ann", "Lee", "owes")
    assert spans(sentence) == [(0, 2, "PER")]


def test_csv_ignores_empty_lines_in_text_and_takes_no_tag_as_header(tmp_path: Path) -> None:
    assert len(loaded(tmp_path / "b.csv", "id,text\n1,the rent is due\n\n2,no rent is due\n")) == 2

    found = loaded(tmp_path / "a.csv", "Mara,B-PER\nleft,O\n.,O\n\nRent,O\nis,O\ndue,O\n\n" * 3)
    assert [sentence.tokens for sentence in found] == [("Mara", "left", "."), ("Rent", "is", "due")] * 3
    assert [len(entities_of(sentence)) for sentence in found] == [1, 0] * 3


@pytest.mark.parametrize("tags", [["b-per", "i-per", "o"], ["PER_B", "PER_I", "O"], ["B.PER", "I.PER", "O"]])
def test_every_spelling_of_tag_lists_is_translated(tmp_path: Path, tags: list[str]) -> None:
    for sentence in read(rows_of(tmp_path / "a.jsonl", ner_tags=tags)):
        assert spans(sentence) == [(0, 2, "PER")]


POS = ["NNP", "NNP", "VBZ"]
NER = ["B-PER", "I-PER", "O"]
ROLES = ["B-buyer", "I-buyer", "O"]


def rows_of(path: Path, **columns: object) -> Path:
    row = {"id": "case-a", "tokens": ["Ann", "Lee", "owes"], **columns}
    path.write_text(f"{json.dumps(row)}\n" * 2, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("columns", "column", "expected"),
    [
        ({"tags": POS, "named": NER}, "", "PER"),
        ({"labels": ROLES, "ner_tags": NER}, "", "PER"),
        ({"labels": ROLES, "ner_tags": NER}, "labels", "buyer"),
        ({"labels": ROLES, "tags": NER}, "4", "PER"),
        ({"tags": POS, "ner": ["PER", "PER", "O"]}, "", "PER"),
    ],
)
def test_the_tag_list_with_entities_is_read(
    tmp_path: Path, columns: dict[str, list[str]], column: str, expected: str
) -> None:
    for sentence in read(rows_of(tmp_path / "a.jsonl", **columns), ReadOptions(tag_column=column)):
        assert spans(sentence) == [(0, 2, expected)]


@pytest.mark.parametrize(
    ("columns", "question", "example"),
    [
        ({"tags": POS}, "tags has parts of speech", "Ann/NNP Lee/NNP owes/VBZ"),
        ({"tags": ["PROPN", "PROPN", "VERB"]}, "tags has parts of speech", "Ann/PROPN Lee/PROPN owes/VERB"),
        ({"tags": ["1", "2", "0"]}, "tags has numbers without names", "Ann/1 Lee/2 owes/0"),
        ({"tags": ["B-NP", "I-NP", "B-VP"]}, "tags has chunks or semantic roles", "Ann/B-NP Lee/I-NP owes/B-VP"),
        ({"xpos": POS}, r"none of its lists \(xpos\)", "Ann/NNP Lee/NNP owes/VBZ"),
        ({"labels": ROLES, "tags": NER}, "tags and labels have tags of different types", "Ann/B-PER/B-buyer"),
    ],
)
def test_lists_without_entities_are_asked_about(
    tmp_path: Path, columns: dict[str, list[str]], question: str, example: str
) -> None:
    with pytest.raises(OptionsError, match=f"{question}.*--tag-column") as raised:
        list(read(rows_of(tmp_path / "a.jsonl", **columns)))
    assert raised.value.examples[0].startswith(example)
    assert "Ann" not in str(raised.value)
    path = rows_of(tmp_path / "b.jsonl", xpos=POS, text="Ann Lee owes")
    assert [sentence.text for sentence in read(path)] == ["Ann Lee owes"] * 2  # a text beside the lists is read


def test_tag_names_beside_the_file_apply_to_the_tags_alone(tmp_path: Path) -> None:
    (tmp_path / "label.json").write_text(json.dumps({"O": 0, "B-PER": 1, "I-PER": 2}), encoding="utf-8")
    for sentence in read(path := rows_of(tmp_path / "a.jsonl", head=[0, 1, 2], tags=[1, 2, 0])):
        assert spans(sentence) == [(0, 2, "PER")]
    assert sniff(path).notes == ()
