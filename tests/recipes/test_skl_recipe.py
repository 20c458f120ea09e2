"""`skl` and `assist` from corpora to what is kept, written and trained on."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from core.assisting import skl
from core.assisting import view as assisting
from core.assisting.assist import _table
from core.assisting.assist_result import AssistRow
from core.assisting.view import Kept
from core.cli.main import main
from core.corpora import readers
from core.corpora.corpus import Corpus
from core.errors import ConfigError, CorpusError, PathError
from core.importing import view as facade_corpora
from core.projects import runs
from core.runs import Run
from core.text.sentence import Sentence
from tests.conftest import Seal, entities_of, sentence

HOME = [
    sentence("Jordan plays for Chicago tonight .", [(0, 1, "PER"), (3, 4, "ORG")]),
    sentence("Jordan scored ; Chicago won .", [(0, 1, "PER"), (3, 4, "ORG")]),
    sentence("Ada lives in Rome .", [(0, 1, "PER"), (3, 4, "LOC")]),
]
AWAY = [
    sentence("Talks in Jordan and Chicago ended .", [(2, 3, "LOC"), (4, 5, "LOC")]),
    sentence("Ada came to Rome .", [(0, 1, "PER"), (3, 4, "LOC")]),
    sentence("Nothing happened in Paris .", [(3, 4, "LOC")]),
    sentence("Ada met Jordan .", [(0, 1, "PER"), (2, 3, "LOC")]),
    sentence("It rained .", []),
]


Pair = tuple[Corpus, Corpus]  # primary, assisting


@pytest.fixture
def corpora(seal: Seal) -> Pair:
    return seal(HOME, "home", labelled=True), seal(AWAY, "away", labelled=True)


def found(corpora: Pair, **options: object) -> Run:
    options = {"primary": corpora[0].fingerprint, "assisting": corpora[1].fingerprint, **options}
    return runs.execute("skl", options)


def test_scores_are_those_of_the_measure(corpora: Pair) -> None:
    run = found(corpora)
    rows = pq.read_table(run.artifacts / "scores.parquet").to_pylist()
    drift = skl.compare(skl.count_types(HOME, "token"), skl.count_types(AWAY, "token"), skl.SklOptions())
    expected, overlaps = skl.score(AWAY, drift, "token")
    assert [row["score"] for row in rows] == pytest.approx(expected)
    assert [row["overlapping"] for row in rows] == overlaps.tolist() == [2, 2, 0, 2, 0]
    assert [(row["sentence"], row["id"]) for row in rows] == [(i, s.id) for i, s in enumerate(AWAY)]
    result = run.result()
    assert (result["of"], result["overlapping"], result["without_overlap"]) == (5, 4, 2)
    assert result["entities"] == {"primary": 4, "assisting": 5, "drifting": 2}


def test_a_threshold_keeps_and_says_what_shares_nothing(corpora: Pair) -> None:
    run = found(corpora)
    assert assisting.kept(run.id, 1.0) == Kept(threshold=1.0, kept=3, of=5, sharing_nothing=2)
    assert assisting.kept(run.id, 9.5).kept == 5
    assert run.result()["kept_below"]["1"] == 3
    kept, dropped = assisting.sentences(run.id, 1.0)
    assert [one.text for _, one, _ in kept] == [AWAY[1].text]
    assert [one.text for _, one, _ in dropped] == [AWAY[3].text, AWAY[0].text]
    mark = next(mark for mark in dropped[0][2] if mark.start == 2)
    assert (mark.type, mark.usual, mark.skl > 9) == ("LOC", "PER", True)


def test_what_is_kept_leaves_as_conll_and_as_a_corpus(corpora: Pair, tmp_path: Path) -> None:
    run = found(corpora, type_map=("PER=person",))
    assert assisting.export(run.id, 1.0, tmp_path / "kept.conll") == 3
    again = list(readers.read(tmp_path / "kept.conll", readers.ReadOptions(scheme="iob2")))
    assert [s.tokens for s in again] == [AWAY[row].tokens for row in (1, 2, 4)]
    assert [e.type for e in entities_of(again[0])] == ["person", "LOC"]
    sealed = assisting.seal(run.id, 1.0)
    assert (len(sealed), sealed.types) == (3, {"LOC": 2, "person": 1})
    assert sealed.origin["run"] == run.id
    with pytest.raises(ConfigError, match="no sentence has a symmetric KL divergence \\(SKL\\) below 0"):
        assisting.export(run.id, 0.0, tmp_path / "none.conll")
    assert not (tmp_path / "none.conll").exists()


def test_the_drift_table_is_filtered_and_leaves_as_a_harmless_file(seal: Seal) -> None:
    odd = [replace(sentence("X and Ada", [(0, 1, "PER"), (2, 3, "PER")]), tokens=("=SUM(A1)", "and", "Ada"))]
    spans = [(0, 1, "ORG"), (2, 3, "PER"), (4, 5, "ORG")]
    other = [replace(sentence("X and Ada , Ada", spans), tokens=("=SUM(A1)", "and", "Ada", ",", "Ada"))]
    run = found((seal(odd, "a", labelled=True), seal(other, "b", labelled=True)))
    rows = assisting.drift(run.id)
    assert [row.entity for row in rows] == ["=sum(a1)", "ada"]
    assert rows[0].skl > rows[1].skl > 1
    assert [row.entity for row in assisting.drift(run.id, search="AD")] == ["ada"]
    assert assisting.drift(run.id, least_count=2) == []
    ada = assisting.drift(run.id, search="ada")[0]
    assert (ada.primary, ada.assisting) == ("PER 1", "ORG 1, PER 1")
    told = list(csv.DictReader(io.StringIO(assisting.drift_csv(run.id, rows).decode("utf-8-sig"))))
    assert {row["entity"][0] for row in told} == {"'", "a"}


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        ([sentence("Ada came .", [(0, 1, "person")])], "shares no type with home"),
        ([sentence("Zoe came .", [(0, 1, "PER")])], "shares no entity with home"),
        ([sentence("Ada came .", [])], "holds no entity"),
    ],
)
def test_nothing_to_compare_is_one_sentence(seal: Seal, theirs: list[Sentence], words: str) -> None:
    with pytest.raises(CorpusError, match=words) as caught:
        found((seal(HOME, "home", labelled=True), seal(theirs, "theirs", labelled=True)))
    assert "\n" not in str(caught.value)


def test_an_unlabelled_corpus_cannot_assist(seal: Seal) -> None:
    with pytest.raises(CorpusError, match="plain: is not labelled"):
        found((seal(HOME, "home", labelled=True), seal(["Ada came ."], "plain")))


def test_types_of_one_corpus_are_told_unless_mapped(seal: Seal) -> None:
    theirs = seal([sentence("Ada of Oslo", [(0, 1, "PER"), (2, 3, "GPE")])], "theirs", labelled=True)
    mine = seal(HOME, "home", labelled=True)
    run = found((mine, theirs))
    assert run.result()["types_of_one_corpus"] == {"home": ["LOC", "ORG"], "theirs": ["GPE"]}
    assert any("GPE: only theirs" in note for note in runs.state(run.id).notes)
    mapped = found((mine, theirs), type_map=("GPE=LOC", "ORG="))
    assert mapped.result()["types_of_one_corpus"] == {}


def test_a_map_file_may_be_given(tmp_path: Path) -> None:
    path = tmp_path / "types"
    path.write_text("# theirs = ours\nPER = person\n\nMISC=\n")
    assert skl.parse_map(assisting.read_type_map(path)) == {"PER": "person", "MISC": ""}
    with pytest.raises(PathError, match="type map cannot be read"):
        assisting.read_type_map(tmp_path / "gone")


def test_the_command_says_what_it_kept(corpora: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["skl", "--primary", "home", "--assisting", "away", "--threshold", "1", "--json"]
    main.main(
        [*words, "--output", str(tmp_path / "kept.conll"), "--drift", str(tmp_path / "d.csv")], standalone_mode=False
    )
    told = json.loads(capsys.readouterr().out)
    assert {key: told[key] for key in ("kept", "of", "overlapping", "threshold")} == {
        "kept": 3,
        "of": 5,
        "overlapping": 4,
        "threshold": 1.0,
    }
    assert Path(told["output"]).read_text().count("\n\n") == 3
    assert (tmp_path / "d.csv").exists()


@pytest.mark.parametrize("threshold", ["inf", "nan", "0"])
def test_a_threshold_that_is_none_is_told_before_the_run(corpora: Pair, threshold: str) -> None:
    words = ["skl", "--primary", "home", "--assisting", "away", "--threshold", threshold, "--json"]
    with pytest.raises(ConfigError, match="must be a number above 0"):
        main.main(words, standalone_mode=False)
    assert not runs.listed()


def test_the_drift_table_makes_its_folder_or_says_why_not(corpora: Pair, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    words = ["skl", "--primary", "home", "--assisting", "away", "--json", "--drift"]
    main.main([*words, str(tmp_path / "new" / "d.csv")], standalone_mode=False)
    assert (tmp_path / "new" / "d.csv").read_bytes()
    with pytest.raises(PathError, match="cannot be written"):
        main.main([*words, str(tmp_path / "file" / "d.csv")], standalone_mode=False)


def test_dev_chooses_and_test_does_not() -> None:
    def row(arm: str, threshold: float | None, dev: float, test: float) -> AssistRow:
        return AssistRow(
            arm=arm,
            share="none" if arm == "monolingual" else "all",
            threshold=threshold,
            kept=1,
            dev=[dev] * 2,
            dev_mean=dev,
            test=[test, test + 1],
            mean=test + 0.5,
            sd=0.7,
            run=arm,
            steps=1,
            passes=1.0,
        )

    rows = [
        row("monolingual", 0.0, 99, 20),
        row("skl:1", 1.0, 50, 90),
        row("skl:2", 2.0, 60, 10),
        row("all", None, 99, 30),
    ]
    table = _table(rows, "all")
    assert (table.threshold, table.skl, table.monolingual, table.all) == (2.0, 10.5, 20.5, 30.5)
    assert table.against_all is not None
    assert table.against_all.delta == -20
    assert not table.against_all.dagger
    assert table.runs == {"skl": "skl:2", "all": "all", "monolingual": "monolingual"}
    assert table.against_all.p < 0.05


@pytest.mark.parametrize("share", ["all", "sub-word"])
def test_a_sweep_trains_every_arm_once(corpora: Pair, seal: Seal, share: str, untrained: None) -> None:
    theirs = seal([*AWAY, sentence("Oslo", [(0, 1, "GPE")])], "further", labelled=True)
    home, small = corpora[0].fingerprint, {"hidden": 4, "epochs": 1, "assisting_weight": 0.3}
    parts = {"primary": home, "assisting": theirs.fingerprint, "dev": home, "test": home}
    run = runs.execute("assist", {**parts, **small, "thresholds": (1, 9.5), "shares": (share,), "seeds": (1, 2)})
    rows = run.result()["rows"]
    arms = [("monolingual", 0), ("skl:1", 4), ("skl:9.5", 6), ("all", 6)]
    table = assisting.swept(run.id).tables[0]
    draws = [("random", 4)] if table.kept == 4 else []
    assert [(row["arm"], row["kept"]) for row in rows] == [*arms, *draws]
    assert all(len(row["test"]) == 2 for row in rows[:4])
    tuned = [runs.get(row["run"]).manifest.config for row in rows[:4]]
    assert tuned[0]["assisting"] == ""
    assert {config["share"] for config in tuned[1:]} == {share}
    assert [config["assisting_weight"] for config in tuned] == [0.1, 0.3, 0.3, 0.3]
    assert [point.threshold for point in assisting.sweep_points(run.id, share)[::2]] == [0.0, 1.0, 9.5, 10.0]
    assert table.verdicts["all"].delta == pytest.approx(table.skl - table.all, abs=0.01)
    assert "the dev set chose the threshold" in assisting.in_words(table)


def test_an_encoder_takes_assisting_sentences_of_its_own_types_alone(corpora: Pair, seal: Seal) -> None:
    base = {"train": corpora[0].fingerprint, "dev": corpora[0].fingerprint, "init": "tiny", "seeds": (1,), "epochs": 1}
    run = runs.execute("finetune", {**base, "assisting": corpora[1].fingerprint})
    assert run.result()["epochs"] == [1]
    odd = seal([sentence("Oslo", [(0, 1, "GPE")])], "odd", labelled=True)
    with pytest.raises(ConfigError, match="GPE is no type"):
        runs.execute("finetune", {**base, "assisting": odd.fingerprint})


@pytest.mark.real
def test_music_and_news_disagree_where_a_reader_would(real_data: Path, home: Path) -> None:
    for name, path in (("music", "crossner-music/train.conll"), ("news", "conll2003/train.conll")):
        runs.execute("add", {"path": str(real_data / path), "name": name, "scheme": "iob2"})
    pairs = ("PER=person", "ORG=organisation", "LOC=location", "MISC=misc")
    run = runs.execute(
        "skl",
        {
            "primary": facade_corpora.find("music").fingerprint,
            "assisting": facade_corpora.find("news").fingerprint,
            "type_map": pairs,
        },
    )
    rows = {row.entity: row for row in assisting.drift(run.id)}
    for entity, here, there in (
        ("celtic", "musicgenre", "organisation"),
        ("cannes", "award", "organisation"),
        ("brazilian", "musicgenre", "misc"),
        ("athletics", "event", "organisation"),
    ):
        assert rows[entity].skl > 9
        assert rows[entity].primary.split()[0] == here
        assert rows[entity].assisting.split()[0] == there
    assert np.isfinite([row.skl for row in rows.values()]).all()
