"""Runs of `skl` and `assist`: kept sentences, files, trained variants, and refusals before the first training."""

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from core.assisting import skl
from core.assisting import view as assisting
from core.assisting.assist import AssistConfig, AssistResult, AssistRow, _table, in_words, points
from core.assisting.plot import f1_by_threshold
from core.assisting.view import Kept
from core.corpora import readers
from core.corpora.corpus import Corpus
from core.errors import ConfigError, CorpusError, PathError, WinnowError
from core.importing import view as facade_corpora
from core.models.taggers import load_tagger
from core.projects import runs
from core.runs import Run
from core.runs.result import read
from core.stats.bootstrap import Resampled
from core.stats.verdict import by_holm
from core.text.sentence import Sentence
from tests.conftest import Command, Seal, entities_of, sentence
from tests.homes import done, executed

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
    return executed("skl", options, primary=corpora[0].fingerprint, assisting=corpora[1].fingerprint)


def test_stored_scores_equal_the_measure(corpora: Pair) -> None:
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


def test_threshold_keeps_sentences_and_counts_those_without_overlap(corpora: Pair) -> None:
    run = found(corpora)
    assert assisting.kept(run.id, 1.0) == Kept(threshold=1.0, kept=3, of=5, sharing_nothing=2)
    assert assisting.kept(run.id, 9.5).kept == 5
    assert run.result()["kept_below"]["1"] == 3
    kept, dropped = assisting.sentences(run.id, 1.0)
    assert [one.text for _, one, _ in kept] == [AWAY[1].text]
    assert [one.text for _, one, _ in dropped] == [AWAY[3].text, AWAY[0].text]
    mark = next(mark for mark in dropped[0][2] if mark.start == 2)
    assert (mark.type, mark.usual, mark.skl > 9) == ("LOC", "PER", True)


def test_kept_sentences_are_exported_and_sealed(corpora: Pair, tmp_path: Path) -> None:
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


def test_drift_table_is_filtered_and_exported_without_formulas(seal: Seal) -> None:
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
    table = list(csv.DictReader(io.StringIO(assisting.drift_csv(run.id, rows).decode("utf-8-sig"))))
    assert {row["entity"][0] for row in table} == {"'", "a"}


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        ([sentence("Ada came .", [(0, 1, "person")])], "shares no type with home"),
        ([sentence("Zoe came .", [(0, 1, "PER")])], "shares no entity with home"),
        ([sentence("Ada came .", [])], "has no entity"),
        ([sentence("Ada came .")], "is not labelled"),
    ],
)
def test_corpora_without_shared_entities_are_refused(seal: Seal, theirs: list[Sentence], words: str) -> None:
    other = seal(theirs, "theirs", labelled=theirs[0].entities is not None)
    with pytest.raises(CorpusError, match=words) as caught:
        found((seal(HOME, "home", labelled=True), other))
    assert "\n" not in str(caught.value)


def test_unshared_types_are_noted_unless_mapped(seal: Seal, tmp_path: Path) -> None:
    theirs = seal([sentence("Ada of Oslo", [(0, 1, "PER"), (2, 3, "GPE")])], "theirs", labelled=True)
    mine = seal(HOME, "home", labelled=True)
    run = found((mine, theirs))
    assert run.result()["types_of_one_corpus"] == {"home": ["LOC", "ORG"], "theirs": ["GPE"]}
    assert any("GPE: only theirs" in note for note in runs.state(run.id).notes)
    mapped = found((mine, theirs), type_map=("GPE=LOC", "ORG="))
    assert mapped.result()["types_of_one_corpus"] == {}
    path = tmp_path / "types"
    path.write_text("# theirs = ours\nPER = person\n\nMISC=\n")
    assert skl.parse_map(assisting.read_type_map(path)) == {"PER": "person", "MISC": ""}
    with pytest.raises(PathError, match="type map cannot be read"):
        assisting.read_type_map(tmp_path / "gone")


def test_skl_command_prints_and_writes_kept_sentences(corpora: Pair, tmp_path: Path, command: Command) -> None:
    words = ("skl", "--primary", "home", "--assisting", "away", "--json", "--threshold")
    for threshold in ("inf", "nan", "0"):
        code, _, err = command(*words, threshold)
        assert (code, "must be a number above 0" in err) == (2, True)
    assert not runs.listed()
    kept, drift = tmp_path / "kept.conll", tmp_path / "new" / "d.csv"
    printed = json.loads(command(*words, 1, "--output", kept, "--drift", drift)[1])
    assert [printed[key] for key in ("kept", "of", "overlapping", "threshold")] == [3, 5, 4, 1.0]
    assert Path(printed["output"]).read_text().count("\n\n") == 3
    assert drift.read_bytes()
    code, _, err = command(*words, 1, "--type-map", "LCO=ORG")
    assert (code, "Types of the type map that neither corpus has: LCO." in err) == (0, True)
    code, _, err = command(*words, 1, "--drift", kept / "d.csv")
    assert (code, "cannot be written" in err) == (2, True)


def test_dev_set_chooses_the_threshold() -> None:
    def row(arm: str, threshold: float | None, dev: float, test: float) -> AssistRow:
        share = "none" if arm == "monolingual" else "all"
        f1s: dict[str, Any] = {
            "dev": [dev] * 2,
            "dev_mean": dev,
            "test": [test, test + 1],
            "mean": test + 0.5,
            "sd": 0.7,
        }
        return AssistRow(
            arm=arm, share=share, threshold=threshold, kept=1, run=arm, runs=[arm], steps=1, passes=1.0, **f1s
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
    assert [point.threshold for point in points(rows, "all")[::2]] == [0.0, 1.0, 2.0, 10.0]
    # A threshold in bits may be above 10. The whole corpus stays the last point.
    further = points([*rows[:3], row("skl:12", 12.0, 1, 2), rows[3]], "all")
    assert [point.threshold for point in further[::2]] == [0.0, 1.0, 2.0, 12.0, 13.0]
    title = f1_by_threshold(further, 2.0).layout.xaxis.title.text
    assert title == "threshold (0: primary corpus alone, 13: whole assisting corpus)"


@pytest.mark.parametrize("share", ["all", "sub-word"])
def test_sweep_trains_every_variant_once(corpora: Pair, seal: Seal, share: str, untrained: None) -> None:
    theirs = seal([*AWAY, sentence("Oslo", [(0, 1, "GPE")])], "further", labelled=True)
    home, small = corpora[0].fingerprint, {"hidden": 4, "epochs": 1, "assisting_weight": 0.3}
    parts = {"primary": home, "assisting": theirs.fingerprint, "dev": home, "test": home}
    run = swept(parts, **small, thresholds=(1, 9.5), shares=(share,), seeds=(1, 2))
    rows = run.result()["rows"]
    arms = [("monolingual", 0), ("skl:1", 4), ("skl:9.5", 6), ("all", 6)]
    table = read(run, AssistResult).tables[0]
    draws = [("random", 4)] if table.kept == 4 else []
    assert [(row["arm"], row["kept"]) for row in rows] == [*arms, *draws]
    assert all(len(row["test"]) == 2 for row in rows[:4])
    tuned = [runs.get(row["run"]).manifest.config for row in rows[:4]]
    assert tuned[0]["assisting"] == ""
    assert {config["share"] for config in tuned[1:]} == {share}
    assert [config["assisting_weight"] for config in tuned] == [0.1, 0.3, 0.3, 0.3]
    assert [point.threshold for point in assisting.sweep_points(run.id, share)[::2]] == [0.0, 1.0, 9.5, 10.0]
    assert table.verdicts["all"].delta == pytest.approx(table.skl - table.all, abs=0.01)
    assert "the threshold with the best dev F1 is" in in_words(table)


def test_encoder_trains_on_borrowed_sentences(corpora: Pair) -> None:
    home, away = (corpus.fingerprint for corpus in corpora)
    options = {"train": home, "dev": home, "assisting": away, "init": "tiny", "seeds": (1,), "epochs": 1}
    assert executed("finetune", options).result()["epochs"] == [1]


@pytest.mark.real
def test_drift_of_music_and_news_is_plausible(real_data: Path, seal: Seal) -> None:
    corpora = [
        seal(list(readers.read(real_data / name / "train.conll", readers.ReadOptions(scheme="iob2"))), name, True)
        for name in ("crossner-music", "conll2003")
    ]
    run = found((corpora[0], corpora[1]), type_map=("PER=person", "ORG=organisation", "LOC=location", "MISC=misc"))
    rows = {row.entity: row for row in assisting.drift(run.id)}
    for entity, here, there in (
        ("celtic", "musicgenre", "organisation"),
        ("cannes", "award", "organisation"),
        ("brazilian", "musicgenre", "misc"),
        ("athletics", "event", "organisation"),
    ):
        assert rows[entity].skl > 9
        assert (rows[entity].primary.split()[0], rows[entity].assisting.split()[0]) == (here, there)
    assert np.isfinite([row.skl for row in rows.values()]).all()


DEV = sentence("Ada sang in Oslo last night again .", [(0, 1, "PER"), (3, 4, "LOC")])
TEST = sentence("Jordan left Rome in a hurry today .", [(0, 1, "PER"), (2, 3, "LOC")])
SMALL = {"seeds": (1,), "hidden": 4, "epochs": 2}


@pytest.fixture
def given(seal: Seal) -> dict[str, str]:
    """Seal corpora; the assisting corpus contains a dev and a test sentence."""
    return {
        "primary": seal(HOME, "home", labelled=True).fingerprint,
        "assisting": seal([*AWAY, DEV, TEST], "away", labelled=True).fingerprint,
        "dev": seal([DEV], "dev", labelled=True).fingerprint,
        "test": seal([TEST], "test", labelled=True).fingerprint,
    }


def swept(given: Mapping[str, object], **options: object) -> Run:
    return executed("assist", {**given, **SMALL, "thresholds": (9.5,), **options})


def refused(given: Mapping[str, str], words: str, error: type[WinnowError] = ConfigError, **options: object) -> None:
    """Assert that a sweep is refused before anything is trained."""
    with pytest.raises(error, match=words):
        swept(given, **options)
    assert not runs.listed("finetune")


def borrowed(row: Mapping[str, str]) -> set[str]:
    """Return the ids of the sentences that a variant borrowed."""
    corpus = facade_corpora.find(runs.get(row["run"]).manifest.config["assisting"])
    return {s.id for block in corpus.batches() for s in block}


def test_borrowed_corpus_keeps_its_name_unless_types_are_renamed(
    given: dict[str, str], seal: Seal, untrained: None
) -> None:
    theirs = seal(AWAY, "theirs", labelled=True)
    rows = swept({**given, "assisting": theirs.fingerprint}).result()["rows"]
    assert {runs.get(row["run"]).manifest.config["assisting"] for row in rows[1:]} == {theirs.fingerprint}
    assert facade_corpora.find("theirs").fingerprint == theirs.fingerprint
    more = seal([*AWAY, sentence("Oslo", [(0, 1, "GPE")])], "more", labelled=True)
    rows = swept({**given, "assisting": more.fingerprint}, type_map=("GPE=LOC",)).result()["rows"]
    kept = facade_corpora.find(runs.get(rows[-1]["run"]).manifest.config["assisting"])
    assert (kept.types, len(kept)) == ({"LOC": 6, "PER": 2}, 6)
    assert facade_corpora.find(more.fingerprint).name == "more"


def test_no_variant_trains_on_dev_or_test_sentences(given: dict[str, str], untrained: None) -> None:
    looked = executed("skl", primary=given["primary"], assisting=given["assisting"])
    run = swept(given)
    assert [row["kept"] for row in run.result()["rows"]] == [0, 5, 5]
    assert all(borrowed(row) == {s.id for s in AWAY} for row in run.result()["rows"][1:])
    assert [found.id for found in assisting.sweeps(looked.id)] == [run.id]
    assert swept(given, type_map=("ORG=",)).state().state == "succeeded"  # a type may be left out of the comparison


def test_unusable_corpora_are_refused_before_training(given: dict[str, str], seal: Seal) -> None:
    drifting = seal([AWAY[0], AWAY[3]], "drifting", labelled=True).fingerprint
    bare = seal([AWAY[0], sentence("It rained .", [])], "bare", labelled=True).fingerprint
    odd = seal([*AWAY, sentence("Oslo", [(0, 1, "GPE")])], "odd", labelled=True).fingerprint
    none = r"no sentence has a symmetric KL divergence \(SKL\) below 0.01"
    refused({**given, "assisting": drifting}, none, thresholds=(0.01, 9.5))
    refused({**given, "assisting": bare}, "has no labelled entity.*higher threshold", CorpusError, thresholds=(1,))
    refused({**given, "assisting": odd}, "GPE is no type", network="encoder", init="tiny", hidden=None)
    refused({**given, "assisting": given["test"]}, "Give a corpus with other sentences", CorpusError)
    for limit in (math.inf, math.nan, 0.0):
        refused(given, "must be one or more numbers above 0", thresholds=(1.0, limit))
    for seeds in ((1, 2**32), (-1,), (1, 1), ()):  # refused before the `skl` run, not by the first training
        with pytest.raises(ConfigError, match=r"seeds: .* are not allowed"):
            AssistConfig.parse({**given, "seeds": seeds})
    refused(given, "paper trains the charcnn of Murthy et al. 2018", preset="paper", network="bilstm")
    for pairs in ("PER=person",), ("ORG=LOC", "LOC=ORG"):
        done("skl", primary=given["primary"], assisting=given["assisting"], type_map=pairs)
        refused(given, "renames a type of home, but training uses", type_map=pairs)


def test_variants_train_equal_steps_beside_a_random_baseline(given: dict[str, str], untrained: None) -> None:
    """The only threshold keeps 3 of 5 sentences."""
    run = swept(given, thresholds=(1,), hidden=None, seeds=(1, 2))
    rows = run.result()["rows"]
    assert [(row["arm"], row["kept"]) for row in rows] == [("monolingual", 0), ("skl:1", 3), ("all", 5), ("random", 3)]
    assert {(row["steps"], row["passes"]) for row in rows} == {(2, 2.0)}  # 3 sentences, 16 per step, 2 epochs
    configs = [runs.get(name).manifest.config for row in rows for name in row["runs"]]
    assert {config["hidden"] for config in configs} == {400}
    draws = configs[3:]
    assert [config["seeds"] for config in draws] == [[1], [2], [1]]  # three draws are the minimum
    assert len({config["assisting"] for config in draws}) > 1
    table = read(run, AssistResult).tables[0]
    assert set(table.verdicts) == {"all", "monolingual", "random"}
    assert table.random == pytest.approx(np.mean(rows[3]["test"]))
    assert table.random is not None
    assert table.verdicts["random"].delta == pytest.approx(table.skl - table.random, abs=0.01)
    assert "against as many random sentences (" in in_words(table)


def test_paper_preset_alternates_single_sentences_of_both_corpora(
    given: dict[str, str], seal: Seal, untrained: None
) -> None:
    own, other = (seal([sentence(text)] * 5, text).fingerprint for text in ("Ada won", "Lena vant"))
    learnt = {"vectors": own, "assisting_vectors": other, "skipgram": {"dimension": 3}}
    rows = swept(given, preset="paper", thresholds=(9.5,), **learnt).result()["rows"]
    alone, config = (runs.get(rows[i]["run"]).manifest.config for i in (0, 1))
    assert {name: config[name] for name in learnt} == learnt
    assert (alone["vectors"], alone.get("assisting_vectors", "")) == (own, "")
    assert (config["in_turn"], config["head"], config["patience"], config["hidden"]) == (True, "memm", None, 4)
    assert runs.get(rows[1]["run"]).result()["settings"]["batch_size"] == 1
    assert [row["steps"] for row in rows] == [6, 20, 20]
    assert [row["passes"] for row in rows] == pytest.approx([2.0, 3.3, 3.3])


def test_holm_correction_covers_the_shares_of_a_comparison(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch, untrained: None
) -> None:
    """Each comparison is one family of tests, with one test per share."""
    families = list[tuple[str, ...]]()

    def watched(pairs: Mapping[str, Resampled]) -> object:
        families.append(tuple(pairs))
        return by_holm(pairs)

    monkeypatch.setattr("core.assisting.assist.by_holm", watched)
    swept(given, shares=("all", "sub-word"))
    assert families == [("all", "sub-word"), ("all", "sub-word"), ()]  # all sentences are kept: no random baseline


def test_every_threshold_trains_the_same_output_layers(given: dict[str, str], seal: Seal) -> None:
    """Sentences below a threshold can lack a type, or have only types that the primary corpus lacks."""
    for extra, layer in (("LOC", None), ("GPE", ("GPE", "LOC", "ORG", "PER"))):
        odd = sentence("Talks in Chicago ended .", [(2, 3, extra)])
        theirs = seal([*AWAY, odd, sentence("Acme grew .", [(0, 1, "ORG")])], f"with {extra}", labelled=True)
        rows = swept({**given, "assisting": theirs.fingerprint}, thresholds=(1, 9.5), epochs=1).result()["rows"][1:]
        assert len(rows) >= 3
        for row in rows:
            tagger = load_tagger(runs.get(row["run"]).artifacts / "model", device="cpu")
            assert tagger.assisting_types == layer
