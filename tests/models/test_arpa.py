"""ARPA files: the same scores after a round trip, KenLM's own file read, and wrong files named by line."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ModelError, ReadError
from core.models.ngram import KneserNey
from tests.models.arpa import read_arpa, write_arpa

TRAIN = [line.split(" ") for line in ("the cat sat", "a cat saw the naïve\xa0dog", "the cat saw ça", "it sat", "it")]

# What `lmplz -o 3 --discount_fallback` (kenlm 0.3.0) writes for "the cat sat", "the dog sat", "a cat".
LMPLZ = r"""\data\
ngram 1=8
ngram 2=9
ngram 3=8

\1-grams:
-1.146128	<unk>	0
0	<s>	-0.30103
-0.7386427	</s>	0
-0.89625055	the	-0.30103
-0.7386427	cat	-0.30103
-0.7386427	sat	-0.30103
-0.89625055	dog	-0.30103
-0.89625055	a	-0.30103

\2-grams:
-0.46690208	cat </s>	0
-0.22821428	sat </s>	0
-0.40140054	<s> the	-0.30103
-0.46690208	the cat	-0.30103
-0.22821428	a cat	-0.30103
-0.46690208	cat sat	-0.30103
-0.22821428	dog sat	-0.30103
-0.50377345	the dog	-0.30103
-0.63797253	<s> a	-0.30103

\3-grams:
-0.17351383	a cat </s>
-0.09928616	cat sat </s>
-0.09928616	dog sat </s>
-0.37609467	<s> the cat
-0.09928616	<s> a cat
-0.17351383	the cat sat
-0.09928616	the dog sat
-0.39067668	<s> the dog

\end\
"""


def scores_alike(left: KneserNey, right: KneserNey, sentences: list[list[str]]) -> bool:
    return bool((left.log10_probabilities(sentences) == right.log10_probabilities(sentences)).all())


@pytest.mark.parametrize("order", [1, 2, 5])
def test_round_trip(order: int, tmp_path: Path) -> None:
    model = KneserNey.fit(TRAIN, order=order, vocabulary_size=40)
    write_arpa(model, tmp_path / "model.arpa")
    again = read_arpa(tmp_path / "model.arpa")
    assert again.vocabulary == model.vocabulary
    for before, after in zip(model.tables, again.tables, strict=True):
        assert (before.keys == after.keys).all()
        assert (before.log_probs == after.log_probs).all()
        assert (before.backoffs == after.backoffs).all()
    assert scores_alike(model, again, [*TRAIN, ["a", "new", "cat", "sat"], []])


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.text("ab\xa0\u2028\x85é\ud800", min_size=1, max_size=3), max_size=5), min_size=1).filter(any)
)
def test_round_trip_of_any_tokens(tmp_path_factory: pytest.TempPathFactory, sentences: list[list[str]]) -> None:
    path = tmp_path_factory.mktemp("arpa") / "model.arpa"
    model = KneserNey.fit(sentences, order=3)
    write_arpa(model, path)
    assert scores_alike(model, read_arpa(path), sentences)


def test_blocks_of_lines_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.models.arpa._LINES", 3)
    model = KneserNey.fit(TRAIN)
    write_arpa(model, tmp_path / "model.arpa")
    assert scores_alike(model, read_arpa(tmp_path / "model.arpa"), TRAIN)


class TestLmplz:
    def test_its_file_is_read(self, tmp_path: Path) -> None:
        """Scores: `kenlm.Model.score` of the same file."""
        (tmp_path / "s.arpa").write_text(LMPLZ)
        model = read_arpa(tmp_path / "s.arpa")
        scores = model.log10_probabilities([s.split() for s in ("the cat sat", "a dog", "a new dog sat", "")])
        assert scores == pytest.approx([-1.0502953, -3.1759558, -3.6099114, -1.0396727], rel=1e-6)
        assert model.discounts == ()

    def test_its_numbers_are_ours(self, tmp_path: Path) -> None:
        """Every n-gram, probability and back-off of the two files, to five digits; `<s>` as it writes it."""
        write_arpa(KneserNey.fit([["the", "cat", "sat"], ["the", "dog", "sat"], ["a", "cat"]], order=3), tmp_path / "o")
        ours, theirs = entries((tmp_path / "o").read_text()), entries(LMPLZ)
        assert ours.keys() == theirs.keys()
        for gram, numbers in theirs.items():
            assert ours[gram] == pytest.approx(numbers, rel=1e-5), gram
        assert (tmp_path / "o").read_text().splitlines()[:4] == LMPLZ.splitlines()[:4]

    def test_minus_99_for_the_beginning_and_no_unknown_word(self, tmp_path: Path) -> None:
        lines = (
            LMPLZ.replace("ngram 1=8", "ngram 1=7").replace("-1.146128\t<unk>\t0\n", "").replace("0\t<s>", "-99\t<s>")
        )
        (tmp_path / "s.arpa").write_text(lines)
        model = read_arpa(tmp_path / "s.arpa")
        assert model.log10_probabilities([["the", "cat", "sat"]]) == pytest.approx([-1.0502953], rel=1e-6)
        assert model.log10_probabilities([["new"]])[0] < -100


def entries(arpa: str) -> dict[str, list[float]]:
    lines = (line.split("\t") for line in arpa.splitlines() if "\t" in line)
    return {gram: [float(prob), *map(float, backoff)] for prob, gram, *backoff in lines}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\\data\\", "data", r"s.arpa line 1: \\data\\ was expected; give"),
        ("ngram 2=9", "ngram 3=9", "line 3: the size of order 2 was expected"),
        ("\\1-grams:", "\\2-grams:", "line 6: .*1-grams: was expected"),
        ("\\3-grams:", "\\4-grams:", "line 27: .*3-grams: was expected"),
        ("ngram 2=9", "ngram 2=8", "line 25: .*3-grams: was expected; give"),
        ("-0.46690208\tthe cat\t", "x\tthe cat\t", "line 20: log10 P"),
        ("-0.46690208\tthe cat\t", "-0.46690208 the cat ", "line 20: log10 P"),
        ("the cat\t", "the new\t", "line 20: this is not 2 words"),
        ("the cat\t", "the\t", "line 20: this is not 2 words"),
        ("<s> a cat", "<s> sat a", "line 32: this is not 3 words whose first and last 2 are listed"),
        ("\n\\end\\\n", "", "the file ends here"),
    ],
)
def test_wrong_files(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in LMPLZ
    (tmp_path / "s.arpa").write_text(LMPLZ.replace(old, new, 1))
    with pytest.raises(ReadError, match=message):
        read_arpa(tmp_path / "s.arpa")


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "s.arpa").write_bytes(LMPLZ.replace("dog", "d\xf6g").encode("latin-1"))
    with pytest.raises(ReadError, match="UTF-8"):
        read_arpa(tmp_path / "s.arpa")


@pytest.mark.parametrize("word", ["", "two words", "tab\t", "line\n"])
def test_words_that_arpa_cannot_hold(word: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="word 4 of the vocabulary"):
        write_arpa(KneserNey.fit([["a", word]]), tmp_path / "model.arpa")
    assert not (tmp_path / "model.arpa").exists()
