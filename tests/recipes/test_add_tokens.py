"""What cuts an imported text: proposed by the text, asked for, and said; labelled files that bring none alike."""

import json
from pathlib import Path

import pytest

from core.corpora.library import Library
from core.importing import view as corpora
from core.projects import runs
from tests.pages.test_pages import opened_on, texts

CUT = "The U.S. buyer , he said , did n't pay .\n" * 12
RAW = "The U.S. buyer, he said, didn't pay.\n" * 12
OWN = ("The", "U.S.", "buyer", ",", "he", "said", ",", "did", "n't", "pay", ".")


def added(path: Path, **options: str) -> runs.Run:
    return runs.execute("add", {"path": str(path), **options})


@pytest.mark.parametrize(
    ("text", "asked", "rule", "n"),
    [
        (CUT, "auto", "blanks", 11),
        (RAW, "auto", "words", 15),
        (CUT, "words", "words", 16),
        (RAW, "blanks", "blanks", 7),
    ],
)
def test_a_text_is_cut_as_it_came_or_as_asked(
    home: Path, tmp_path: Path, text: str, asked: str, rule: str, n: int
) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in text.splitlines()))
    run = added(tmp_path / "a.jsonl", tokens=asked)
    result = corpora.import_result(run.id)
    corpus = Library(home).find(result.corpus)
    assert result.cut is not None
    assert (result.cut.rule, corpus.tokens, corpora.describe(corpus)["cut"]) == (rule, rule, rule)
    assert result.cut.why == "asked for" if asked != "auto" else "stand apart" in result.cut.why
    (first, *_) = next(corpus.batches())
    assert len(first.tokens) == n == corpus.lengths()[0]
    assert rule == "words" or first.tokens == tuple(first.text.split())


def test_spans_of_a_tokenised_text_are_over_its_tokens_and_tokens_of_a_file_are_its_own(
    home: Path, tmp_path: Path
) -> None:
    row, name = CUT.splitlines()[0], tmp_path / "a.jsonl"
    name.write_text(f"{json.dumps({'text': row, 'label': [[4, 8, 'GPE']]})}\n" * 12)
    results = [corpora.import_result(added(name).id)]
    (tmp_path / "b.conll").write_text("".join(f"{token}\tO\n" for token in OWN) + "\n")
    results.append(corpora.import_result(added(tmp_path / "b.conll").id))
    assert [result.cut.rule for result in results if result.cut] == ["blanks", "own"]
    for result in results:
        (first, *_) = next(Library(home).find(result.corpus).batches())
        assert first.tokens == OWN


def test_the_page_proposes_what_cuts_a_text_and_the_report_says_it(home: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.txt").write_text(CUT)
    app = opened_on("pages/1_Corpora.py", added(tmp_path / "cut.txt").id)
    app.file_uploader[0].upload("cut.txt", CUT.encode()).run()
    box = next(box for box in app.selectbox if box.label == "Its tokens are")
    assert (box.value, "100% of 36 commas" in box.help) == ("blanks", True)
    assert "Its tokens are what blanks separate (100% of 36 commas" in texts(app)
    assert not app.exception
