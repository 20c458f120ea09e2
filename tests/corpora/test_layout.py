"""Columns of CoNLL-like files: which are tokens and tags, and when the import asks."""

from pathlib import Path
from typing import Unpack

import pytest

from core.corpora.formats.conll import looks_like_conll
from core.corpora.readers import ReadReport
from core.errors import OptionsError
from tests.corpora.reading import Options, all_surfaces, load, spans, write


def loaded(path: Path, text: str, **options: Unpack[Options]) -> tuple[list[list[tuple[str, str]]], ReadReport]:
    """Read a text as a file; return (words, type) of each sentence's entities, and the report."""
    sentences, report = load(write(path, text), **options)
    return all_surfaces(sentences), report


FILE = "Ann\tNNP\tB-NP\tB-PER\nowes\tVBZ\tB-VP\tO\nrent\tNN\tB-NP\tO\n\nBo\tNNP\tB-NP\tB-PER\npays\tVBZ\tB-VP\tO\n\n"


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 1, 2), (3, 0, 1, 2), (0, 3, 2, 1)])
def test_columns_are_found_in_any_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    lines = [line.split("\t") for line in FILE.splitlines()]
    text = "".join("\t".join(line[at] for at in order) + "\n" if len(line) == 4 else "\n" for line in lines)
    found, report = loaded(tmp_path / "a.conll", text)
    assert found == [[("Ann", "PER")], [("Bo", "PER")]]
    assert report.scheme == "iob2"


def test_a_file_with_chunks_but_no_entities_is_asked_about(tmp_path: Path) -> None:
    text = "".join("\t".join(line.split("\t")[:3]) + "\n" for line in FILE.splitlines())
    with pytest.raises(
        OptionsError, match=r"a.conll line 1: column 3 has chunks or semantic roles.*--tag-column"
    ) as raised:
        loaded(tmp_path / "a.conll", text)
    assert raised.value.examples[0] == "Ann/NNP/B-NP owes/VBZ/B-VP rent/NN/B-NP"
    assert "Ann" not in str(raised.value)
    assert loaded(tmp_path / "a.conll", text, tag_column="3")[0][0][0] == ("Ann", "NP")
    empty = FILE.replace("B-PER", "O")  # chunks are not read if the column of entities is empty
    assert loaded(tmp_path / "a.conll", empty)[0] == [[], []]


def test_two_columns_with_different_types_are_asked_about(tmp_path: Path) -> None:
    text = "Ann\tB-PER\tB-buyer\nowes\tO\tO\nBo\tB-PER\tO\n\n" * 3
    with pytest.raises(OptionsError, match="columns 2 and 3 have tags of different types"):
        loaded(tmp_path / "a.conll", text)
    found, report = loaded(tmp_path / "a.conll", text, tag_column="3")
    assert found[0] == [("Ann", "buyer")]
    assert "Column 3 is read as the tags. Tags in column 2" in report.notes[0]


def test_multiword_tokens_and_empty_nodes_of_conll_u_are_not_tokens(tmp_path: Path) -> None:
    rows = ["1-2\tdon't\t_", "1\tdo\tner=O", "2\tnot\tner=O", "2.1\t_\t_", "3\tleave\tner=O", "4\tLyon\tner=S-LOC"]
    ((sentence,), _) = load(write(tmp_path / "a.conllu", "\n".join(rows) + "\n\n"))
    assert sentence.tokens == ("do", "not", "leave", "Lyon")
    assert spans(sentence) == [(3, 4, "LOC")]


@pytest.mark.parametrize(
    "text",
    [
        "O wondrous night\nO wondrous day\nO sad hour\nA bitter end\n",
        "Loan of 3 May\nFee of 9 May\nSum of all\n",
        "name\tage\nAnn\t31\nBo\t40\n",
        "The U.S. court heard it .\n" * 12,
    ],
)
def test_prose_and_tables_do_not_look_like_conll(text: str) -> None:
    assert not looks_like_conll(text)


WORDS = ["Ann", "Lee", "owes", "the", "rent", "of", "hall", "seven", "in", "Lyon", "since", "March"]
BARE = ["PER", "PER", "O", "O", "O", "O", "O", "O", "O", "LOC", "O", "DATE"]


def written(columns: list[list[str]]) -> str:
    """Write two columns, words and values, as nine sentences that start at different words."""
    return "".join(
        "".join(f"{word}\t{value}\n" for word, value in zip(WORDS[at:], values[at:], strict=True)) + "\n"
        for at, values in enumerate(columns[:9])
    )


def repeated(*values: str) -> list[list[str]]:
    """Repeat the values; each sentence starts one value later."""
    return [[values[(at + i) % len(values)] for i in range(12)] for at in range(9)]


def whole(*values: str) -> list[list[str]]:
    """Give each sentence one value for all its words."""
    return [[values[at % len(values)]] * 12 for at in range(9)]


NO_TAGS = {
    "gender of the word": repeated("M", "O", "F", "O"),
    "blood group": repeated("A", "B", "AB", "O"),
    "country code": repeated("DE", "O", "FR", "O", "IT"),
    "language code": repeated("eng", "O", "spa"),
    "language without O": repeated("lang1", "lang2", "other"),
    "points of the compass": repeated("N", "O", "S", "W"),
    "answers": repeated("yes", "O", "no", "O"),
    "truth": repeated("TRUE", "O"),
    "truth without O": repeated("true", "false"),
    "number": repeated("SG", "O", "PL", "O"),
    "relations": repeated("nsubj", "O", "obj", "root"),
    "nearly no O": repeated("ALPHA", "BETA", "GAMMA", "ALPHA", "BETA", "O"),
    "part of the data": whole("train", "O", "test"),
    "speaker": whole("ANNA", "OTTO", "O"),
    "language of the sentence": whole("deutsch", "O", "suomi"),
}


@pytest.mark.parametrize("ending", ["conll", "txt", "tsv"])
@pytest.mark.parametrize("column", NO_TAGS)
def test_columns_without_tags_are_asked_about(tmp_path: Path, column: str, ending: str) -> None:
    text = written(NO_TAGS[column])
    with pytest.raises(OptionsError, match="none of its 2 columns has entity tags"):
        loaded(tmp_path / f"a.{ending}", text)
    assert len(load(tmp_path / f"a.{ending}", format="txt")[0]) == text.count("\n") - 9
    if ending == "txt":  # blanks separate columns too
        with pytest.raises(OptionsError, match="none of its 2 columns has entity tags"):
            loaded(tmp_path / "b.txt", text.replace("\t", " "))


@pytest.mark.parametrize("column", [BARE, [tag.lower() if tag != "O" else tag for tag in BARE]])
@pytest.mark.parametrize("separator", ["\t", " "])
def test_types_without_prefixes_are_read_from_the_last_column(
    tmp_path: Path, column: list[str], separator: str
) -> None:
    found, report = loaded(tmp_path / "a.txt", written([column] * 9).replace("\t", separator))
    assert found[0] == [("Ann Lee", column[0]), ("Lyon", column[9]), ("March", column[11])]
    assert report.scheme == "io"
    other = written([column] * 9).replace("\t", separator + "en" + separator)  # with a column for the language
    assert loaded(tmp_path / "b.conll", other)[0] == found


def test_names_and_word_tables_are_imported_as_text_without_a_question(tmp_path: Path) -> None:
    names = "".join(f"Ann{n} Lee{n}\n" for n in range(40))
    numbered = "".join(f"{i}\tThe deed of hall {i} is signed.\n" for i in range(9))
    table = "word\tclass\n" + "rent\tnoun\n" * 9
    for name, text, n in (("a.txt", f"{names}\n{names}", 80), ("b.tsv", table, 9), ("c.txt", numbered, 9)):
        assert len(load(write(tmp_path / name, text))[0]) == n
