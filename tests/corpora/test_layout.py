"""Columns of CoNLL-like files: which are tokens and tags, and when the import asks."""

from pathlib import Path

import pytest

from core.corpora.formats.conll import looks_like_conll
from core.corpora.readers import ReadOptions, ReadReport, read
from core.errors import OptionsError
from tests.conftest import entities_of


def loaded(path: Path, text: str, **options: str) -> tuple[list[list[tuple[str, str]]], ReadReport]:
    """[(words, type) of each sentence's entities], and the report."""
    path.write_text(text, encoding="utf-8")
    report = ReadReport()
    sentences = list(read(path, ReadOptions(**options), report=report))  # type: ignore[arg-type]
    found = [[(" ".join(s.tokens[e.start : e.end]), e.type) for e in entities_of(s)] for s in sentences]
    return found, report


FILE = "Ann\tNNP\tB-NP\tB-PER\nowes\tVBZ\tB-VP\tO\nrent\tNN\tB-NP\tO\n\nBo\tNNP\tB-NP\tB-PER\npays\tVBZ\tB-VP\tO\n\n"


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 1, 2), (3, 0, 1, 2), (0, 3, 2, 1)])
def test_columns_are_found_in_any_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    lines = [line.split("\t") for line in FILE.splitlines()]
    text = "".join("\t".join(line[at] for at in order) + "\n" if len(line) == 4 else "\n" for line in lines)
    found, report = loaded(tmp_path / "a.conll", text)
    assert found == [[("Ann", "PER")], [("Bo", "PER")]]
    assert report.scheme == "iob2"


def test_chunks_alone_are_asked_about(tmp_path: Path) -> None:
    text = "".join("\t".join(line.split("\t")[:3]) + "\n" for line in FILE.splitlines())
    with pytest.raises(OptionsError, match=r"a.conll line 1: column 3 holds chunks or roles.*--tag-column") as asked:
        loaded(tmp_path / "a.conll", text)
    assert asked.value.examples[0] == "Ann/NNP/B-NP owes/VBZ/B-VP rent/NN/B-NP"
    assert "Ann" not in str(asked.value)
    found, _ = loaded(tmp_path / "a.conll", text, tag_column="3")
    assert found[0][0] == ("Ann", "NP")


def test_chunks_are_not_read_where_the_column_of_names_is_empty(tmp_path: Path) -> None:
    found, _ = loaded(tmp_path / "a.conll", FILE.replace("B-PER", "O"))
    assert found == [[], []]


def test_two_columns_of_unlike_types_are_asked_about(tmp_path: Path) -> None:
    text = "Ann\tB-PER\tB-buyer\nowes\tO\tO\nBo\tB-PER\tO\n\n" * 3
    with pytest.raises(OptionsError, match="columns 2 and 3 hold tags of different types"):
        loaded(tmp_path / "a.conll", text)
    found, report = loaded(tmp_path / "a.conll", text, tag_column="3")
    assert found[0] == [("Ann", "buyer")]
    assert "Column 3 is read as the tags. Column 2" in report.notes[0]


def test_multiword_tokens_and_empty_nodes_of_conll_u_are_no_tokens(tmp_path: Path) -> None:
    rows = ["1-2\tdon't\t_", "1\tdo\tner=O", "2\tnot\tner=O", "2.1\t_\t_", "3\tleave\tner=O", "4\tLyon\tner=S-LOC"]
    (tmp_path / "a.conllu").write_text("\n".join(rows) + "\n\n", encoding="utf-8")
    (sentence,) = read(tmp_path / "a.conllu", ReadOptions())
    assert sentence.tokens == ("do", "not", "leave", "Lyon")
    assert [(e.start, e.type) for e in entities_of(sentence)] == [(3, "LOC")]


@pytest.mark.parametrize(
    "text",
    [
        "O wondrous night\nO wondrous day\nO sad hour\nA bitter end\n",
        "Loan of 3 May\nFee of 9 May\nSum of all\n",
        "name\tage\nAnn\t31\nBo\t40\n",
        "The U.S. court heard it .\n" * 12,
    ],
)
def test_prose_and_tables_are_no_columns_of_tags(text: str) -> None:
    assert not looks_like_conll(text)
