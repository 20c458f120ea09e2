"""The dictionary: longest match against an oracle, lists in every format, forged lists, and its command."""

import bz2
import collections
import gzip
import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpora.formats.name_lists import MOST_LETTERS
from core.dictionary import lists, pickled
from core.dictionary.dictionary import resolved
from core.dictionary.lists import read_list
from core.dictionary.unpacked import unpacked
from core.errors import ConfigError, CorpusError, PathError, ReadError, ResourceError
from core.importing.view import lists_of_names
from core.isolated import Isolated
from core.projects import runs
from core.projects.home import library
from core.tagging import evaluations
from core.text.names import Dictionary, commoner_outside, count_names
from core.text.sentence import Entity
from tests.conftest import Command, Seal, sentence

WORD = st.sampled_from(["a", "b", "c"])


@given(st.sets(st.lists(WORD, min_size=1, max_size=3).map(tuple), max_size=6), st.lists(WORD, max_size=9))
def test_names_are_the_longest_ones_from_left_to_right(names: set[tuple[str, ...]], tokens: list[str]) -> None:
    expected, start = [], 0
    while start < len(tokens):
        end = max((start + n for n in (1, 2, 3) if tuple(tokens[start : start + n]) in names), default=start)
        end = min(end, len(tokens))
        expected += [(start, end)] if end > start else []
        start = max(end, start + 1)
    found = Dictionary(dict.fromkeys(names, "X")).find(tokens)
    assert [(match.entity.start, match.entity.end) for match in found] == expected


def test_names_match_by_text_at_the_borders_of_tokens_and_by_case_only_if_asked() -> None:
    names = Dictionary({("t", "-", "cell"): "CELL", ("lead",): "METAL"})
    assert [match.entity for match in names.find(["T-cell", "lines"])] == [Entity(start=0, end=1, type="CELL")]
    assert [match.entity for match in names.find(["T", "-", "Cell"])] == [Entity(start=0, end=3, type="CELL")]
    assert not list(names.find(["T-cells", "T-", "x"]))
    assert not list(names.find(["lead-free"]))  # the name ends inside of a token
    assert [match.key for match in names.find(["Lead", ""])] == [("lead",)]
    exact = Dictionary({("Lead",): "METAL"}, case_sensitive=True)
    assert [len(list(exact.find([word]))) for word in ("Lead", "lead")] == [1, 0]


def test_the_most_frequent_type_of_a_name_is_used(seal: Seal) -> None:
    rows = [sentence("Rome wins", [(0, 1, kind)]) for kind in ("ORG", "LOC", "LOC")]
    rows.append(sentence("ROME FC wins", [(0, 2, "ORG")]))
    corpus = seal(rows, "names", labelled=True)
    assert resolved([corpus], case_sensitive=False) == ({("rome",): "LOC", ("rome", "fc"): "ORG"}, 1)
    assert set(count_names(rows, case_sensitive=True)) == {("Rome",), ("ROME", "FC")}
    with pytest.raises(CorpusError, match="no labelled entity"):
        resolved([seal(["It rains ."], "plain")], case_sensitive=False)


def test_names_that_are_commoner_outside_are_found_by_their_rates() -> None:
    names = Dictionary(dict.fromkeys([("lead",), ("aspirin",), ("gold",)], "DRUG"))
    inside = [sentence("lead aspirin aspirin gold and so on and so on")]  # 10 words
    outside = [sentence("they lead"), sentence("aspirin they say is all")]  # 7 words
    assert commoner_outside(names, inside, outside) == {("lead",)}  # 1 in 10 against 1 in 7; aspirin 2 in 10
    assert commoner_outside(names, [], outside) == {("lead",), ("aspirin",)}


def names_of(path: Path, type: str = "") -> list[tuple[str, str]]:
    return [(each.text, entity.type) for each in read_list(path, type) for entity in each.entities or ()]


def test_lists_are_read_in_every_format(tmp_path: Path) -> None:
    def written(name: str, data: bytes) -> Path:
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    assert names_of(written("a.txt", "Aspirin\n\n  Zoë  Ltd \nOslo\tLOC\n".encode()), "DRUG") == [
        ("Aspirin", "DRUG"),
        ("Zoë Ltd", "DRUG"),
        ("Oslo", "LOC"),
    ]
    assert names_of(written("a.tsv", b'\xef\xbb\xbf"Big" One\tORG\n')) == [('"Big" One', "ORG")]
    assert names_of(written("a.csv", b'"Acme, Ltd",ORG\nBo,PER\nBo,PER\n')) == [("Acme, Ltd", "ORG"), ("Bo", "PER")]
    assert names_of(written("head.csv", b"Name,Type\nBo,PER\n")) == [("Bo", "PER")]
    assert names_of(written("a.csv.gz", gzip.compress(b"Bo,PER\n"))) == [("Bo", "PER")]
    variants = {"first": {"few": 1}, "drug_variants": {"aspirin": ["x"], "ibuprofen": ["y"], 7: []}}
    assert names_of(written("a.pkl.bz2", bz2.compress(pickle.dumps(variants))), "DRUG") == [
        ("aspirin", "DRUG"),
        ("ibuprofen", "DRUG"),
    ]
    assert names_of(written("b.pkl", pickle.dumps(["Bo", "Bo", 3], protocol=0)), "PER") == [("Bo", "PER")]
    assert names_of(written("crlf.txt", b"\xef\xbb\xbfNew  York\tLOC\r\n\r\n A/S \t ORG \n")) == [
        ("New York", "LOC"),
        ("A/S", "ORG"),
    ]
    assert names_of(written("long.txt", b"x" * (MOST_LETTERS + 1) + b"\nBo\n"), "PER") == [("Bo", "PER")]


def test_named_columns_of_a_csv_may_have_any_order_and_separator(tmp_path: Path) -> None:
    path, both = tmp_path / "a.csv", [("Acme; Ltd", "ORG"), ("Bo", "PER")]
    for text in (
        'id;Type;Name\n1;ORG;"Acme; Ltd"\n\n2;PER;Bo\n',
        '"Acme; Ltd"|ORG\nBo|PER\n',
        'term\tlabel\n"Acme; Ltd"\tORG\nBo\tPER\nBo \tPER\n',
    ):
        path.write_text(text)
        assert names_of(path) == both
    path.write_text("name\nBo\nAnn\n")
    assert names_of(path, "PER") == [("Bo", "PER"), ("Ann", "PER")]  # the first line names one column
    path.write_text("name,PER\nBo,PER\n")
    assert names_of(path) == [("name", "PER"), ("Bo", "PER")]
    (tmp_path / "a.txt").write_text("name\nBo\n")
    assert names_of(tmp_path / "a.txt", "PER") == [("name", "PER"), ("Bo", "PER")]


def test_an_imported_list_is_a_corpus_of_names_with_every_refused_row_in_its_report(
    tmp_path: Path, command: Command, home: Path
) -> None:
    rows = b"name;type\nZo\xeb;PER\n=1+1;PER\nBo;\nBo;PER\n" + b"x" * 600 + b";PER\nBad\x07;PER\n;PER\n"
    (tmp_path / "people.csv").write_bytes(rows)
    words = ["corpus", "add", str(tmp_path / "people.csv"), "--format", "names", "--encoding", "cp1252"]
    code, _, said = command(*words)
    assert code == 2
    assert "people.csv line 4: is a name without a type" in said
    assert library().list() == []  # nothing is half written
    code, printed, said = command(*words, "--entity-type", "PER", "--json")
    assert code == 0, said
    result = json.loads(printed)
    assert (result["kept"], result["rejected"], result["skipped"], result["format"]) == (2, 4, 1, "names")
    assert {(p["line"], p["reason"][:9]) for p in result["problems"]} == {
        (3, "a formula"),
        (5, "a name th"),
        (6, "a name of"),
        (7, "a name wi"),
        (8, "an empty "),
    }
    [corpus] = library().list()
    assert (corpus.name, corpus.labelled, corpus.types) == ("people", True, {"PER": 2})
    assert [sentence.text for sentence in next(corpus.batches())] == ["Zo\u00eb", "Bo"]
    assert lists_of_names() == [corpus]
    assert "left out" in command(*words, "--entity-type", "PER")[1]


class Forged:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("forged"),)


FORGED = (  # (file, its bytes, words of the error)
    ("a.txt", b"Oslo\tLOC\nBo\n", r"a\.txt line 2: .*FILE=TYPE"),
    ("a.txt", b"Oslo\ttwo words\n", "line 1"),
    ("a.txt", b"Oslo\tLOC\textra\n", "line 1"),
    ("a.txt", b"\n \n", "has no text"),
    ("a.txt", b"Bo\tPER\n\xff\n", "line 2: .*is not UTF-8"),
    ("a.csv", b'"' + b"x" * 200_000 + b'"\n', "more than 500 letters"),
    ("a.txt", b"x" * 1_100_000, "more than 1,000,000 bytes"),
    ("a.txt", b"B\0o\tPER\n" + b"\n" * 900, "cannot be printed"),
    ("a.txt", b"\0" * 900, "NUL bytes"),
    ("a.csv", b"name,type\n=HYPERLINK(1),PER\n", "line 2: a formula"),
    ("a.csv", b"1,Bo,PER\n", r"line 1: has 3 columns.* add a first line with the column names"),
    ("a.csv", b"name,type\nBo,PER\nAnn,PER,x\n", r"line 3: has 3 columns, expected at most 2\. Correct the line\.$"),
    ("a.json", b'["Bo"]', "is not a list of names"),
    ("a.xlsx", b"PK\x03\x04", "is not a list of names"),
    ("a.txt.gz", gzip.compress(b"Bo\tPER\n")[:-9], "data are damaged"),
    ("a.pkl.gz", b"no gzip", "cannot be unpacked"),
    ("a.pkl.gz", gzip.compress(b"Bo" * 99, mtime=0)[:10] + b"\xff" * 99, "cannot be unpacked"),
    ("a.pkl.bz2", bz2.compress(b"Bo" * 99)[:20] + b"\xff" * 99, "cannot be unpacked"),
    ("a.pkl", pickle.dumps(Forged()), "not a pickle of plain lists"),
    ("a.pkl", pickle.dumps({"x": Forged()}, protocol=0), "not a pickle of plain lists"),
    ("a.pkl", pickle.dumps({"x": collections.OrderedDict(a=1)}), "not a pickle of plain lists"),
    ("a.pkl", pickle.dumps({"Bo": 1})[:-5], "not a pickle of plain lists"),
    ("a.pkl", b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7f.", "not a pickle of plain lists"),  # a byte array of 2^63
    ("a.pkl", b"no pickle", "not a pickle of plain lists"),
    ("a.pkl", pickle.dumps(7), "neither a dictionary"),
)


@pytest.mark.parametrize(("name", "data", "why"), FORGED, ids=range(len(FORGED)))
def test_a_forged_or_damaged_list_gives_an_error_and_runs_nothing(
    name: str, data: bytes, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ReadError, match=why):
        read_list(tmp_path / name)
    assert not Path("forged").exists()


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x04}(" + b")" + b"2\x86" * 60 + b"K\x01X\x02\x00\x00\x00BoK\x01u.",  # a hash of 2^60 steps
        b"\x80\x04Nr\xff\xff\xff\xff.",  # a memo of 2^32 places
        b"\x80\x04(" + b"]" * 150_000_000 + b"l.",  # as many lists
    ],
)
def test_a_pickle_that_would_take_hours_or_all_memory_is_given_up(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "_reader", Isolated(pickled.__name__, "export the names", 3, spare=False))
    (tmp_path / "a.pkl").write_bytes(data)
    with pytest.raises((ReadError, ResourceError), match=r"^a\.pkl"):
        read_list(tmp_path / "a.pkl", "X")


def test_names_and_types_that_cannot_be_printed_are_left_out_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps({"Bo": 1, "A\x00b": 1, "\ud800": 1, "x\x1b[2J": 1}))
    assert names_of(path, "PER") == [("Bo", "PER")]
    for type in ("a\x1bb", "x" * 41):
        with pytest.raises(ReadError, match="type that is not one word"):
            read_list(path, type)
    path.write_bytes(pickle.dumps({("Bo",), 7}))
    with pytest.raises(ReadError, match="contains no name"):
        read_list(path, "PER")
    path.write_bytes(pickle.dumps(("Bo", "Cy"), protocol=0))
    assert names_of(path, "PER") == [("Bo", "PER"), ("Cy", "PER")]


def test_too_large_and_missing_lists_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PathError, match="no such file"):
        read_list(tmp_path / "none.txt")
    monkeypatch.setattr("core.dictionary.unpacked.MOST_BYTES", 3)
    (tmp_path / "a.pkl.gz").write_bytes(gzip.compress(pickle.dumps(["Oslo"])))
    with pytest.raises(ReadError, match="is larger than"):
        unpacked(tmp_path / "a.pkl.gz")


def test_the_command_scores_lists_and_leaves_common_names_out(seal: Seal, tmp_path: Path, command: Command) -> None:
    gold = [
        sentence("Aspirin may lead to pain", [(0, 1, "DRUG"), (4, 5, "DISEASE")]),
        sentence("No drug helps Bo", [(3, 4, "PER")]),
    ]
    seal(gold, "test", labelled=True)
    seal(["They lead now .", "Who will lead ?"], "news")
    seal(["Aspirin helps .", "Pain goes ."], "clinic")
    drugs, diseases, lead = tmp_path / "drugs.csv", tmp_path / "diseases=old.txt", tmp_path / "lead, tin.txt"
    drugs.write_text("aspirin,DRUG\n")
    diseases.write_text("pain\tDISEASE\n")
    lead.write_text("lead\n")
    words = ["dictionary", "--list", f"{drugs},{diseases}", "--list", f"{lead}=DRUG", "--test", "test"]
    code, printed, said = command(*words)
    assert code == 0, said
    assert "names       3, 0 of them with several types" in printed
    assert "test: score (F1) 66.67" in printed  # 2 of 3 found, 2 of 3 right
    code, printed, said = command(*words, "--inside", "clinic", "--outside", "news", "--json")
    assert code == 0, said
    run = runs.get(json.loads(printed)["run"])
    result = run.result()
    assert (result["names"], result["common"]) == (3, 1)
    assert result["tests"][0]["mean"] == pytest.approx(80.0)
    assert evaluations.read_predictions(run, None)[0] == (
        Entity(start=0, end=1, type="DRUG"),
        Entity(start=4, end=5, type="DISEASE"),
    )
    assert command(*words, "--inside", "clinic")[0] == 2
    with pytest.raises(ConfigError, match="no list is given"):
        runs.execute("dictionary", {"test": (seal(gold, "test", labelled=True).fingerprint,)})
