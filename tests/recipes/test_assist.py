"""`assist`: what its arms are trained on, and what it refuses before the first training."""

import math
from collections.abc import Mapping

import numpy as np
import pytest

from core.assisting import view as assisting
from core.errors import ConfigError, CorpusError, WinnowError
from core.importing import view as corpora
from core.projects import runs
from core.runs import Run
from core.stats.bootstrap import Resampled
from core.stats.verdict import by_holm
from tests.conftest import Seal, sentence
from tests.recipes.test_skl_recipe import AWAY, HOME

DEV = sentence("Ada sang in Oslo last night again .", [(0, 1, "PER"), (3, 4, "LOC")])
TEST = sentence("Jordan left Rome in a hurry today .", [(0, 1, "PER"), (2, 3, "LOC")])
SMALL = {"seeds": (1,), "hidden": 4, "epochs": 2}


@pytest.fixture
def given(seal: Seal) -> dict[str, str]:
    """Corpora whose assisting one holds a dev and a test sentence."""
    return {
        "primary": seal(HOME, "home", labelled=True).fingerprint,
        "assisting": seal([*AWAY, DEV, TEST], "away", labelled=True).fingerprint,
        "dev": seal([DEV], "dev", labelled=True).fingerprint,
        "test": seal([TEST], "test", labelled=True).fingerprint,
    }


def swept(given: Mapping[str, object], **options: object) -> Run:
    return runs.execute("assist", {**given, **SMALL, "thresholds": (9.5,), **options})


def refused(given: Mapping[str, str], words: str, error: type[WinnowError] = ConfigError, **options: object) -> None:
    """Before anything is trained."""
    with pytest.raises(error, match=words):
        swept(given, **options)
    assert not runs.listed("finetune")


def borrowed(row: Mapping[str, str]) -> set[str]:
    """The ids of the sentences that an arm borrowed."""
    corpus = corpora.find(runs.get(row["run"]).manifest.config["assisting"])
    return {s.id for block in corpus.batches() for s in block}


def test_a_borrowed_corpus_keeps_its_name_and_renamed_types_make_another(
    given: dict[str, str], seal: Seal, untrained: None
) -> None:
    theirs = seal(AWAY, "theirs", labelled=True)
    rows = swept({**given, "assisting": theirs.fingerprint}).result()["rows"]
    assert {runs.get(row["run"]).manifest.config["assisting"] for row in rows[1:]} == {theirs.fingerprint}
    assert corpora.find("theirs").fingerprint == theirs.fingerprint
    more = seal([*AWAY, sentence("Oslo", [(0, 1, "GPE")])], "more", labelled=True)
    rows = swept({**given, "assisting": more.fingerprint}, type_map=("GPE=LOC",)).result()["rows"]
    kept = corpora.find(runs.get(rows[-1]["run"]).manifest.config["assisting"])
    assert (kept.types, len(kept)) == ({"LOC": 6, "PER": 2}, 6)
    assert corpora.find(more.fingerprint).name == "more"


def test_no_arm_learns_from_dev_or_test_and_the_page_finds_the_sweep(given: dict[str, str], untrained: None) -> None:
    looked = runs.execute("skl", {name: given[name] for name in ("primary", "assisting")})
    run = swept(given)
    assert [row["kept"] for row in run.result()["rows"]] == [0, 5, 5]
    assert all(borrowed(row) == {s.id for s in AWAY} for row in run.result()["rows"][1:])
    assert [found.id for found in assisting.sweeps(looked.id)] == [run.id]
    assert swept(given, type_map=("ORG=",)).state().state == "succeeded"  # a type left out of the comparison


def test_an_assisting_corpus_of_nothing_but_held_out_sentences_says_so(given: dict[str, str]) -> None:
    refused({**given, "assisting": given["test"]}, "give a corpus with sentences of its own", CorpusError)


@pytest.mark.parametrize("limit", [math.inf, math.nan, 0.0])
def test_a_threshold_is_a_number_above_0(given: dict[str, str], limit: float) -> None:
    refused(given, "must be numbers above 0", thresholds=(1.0, limit))


def test_what_cannot_be_trained_on_is_told_before_the_first_training(given: dict[str, str], seal: Seal) -> None:
    drifting = seal([AWAY[0], AWAY[3]], "drifting", labelled=True).fingerprint
    refused(
        {**given, "assisting": drifting},
        r"no sentence has a symmetric KL divergence \(SKL\) below 0.01",
        thresholds=(0.01, 9.5),
    )
    bare = seal([AWAY[0], sentence("It rained .", [])], "bare", labelled=True).fingerprint
    refused({**given, "assisting": bare}, "holds no labelled entity.*higher threshold", CorpusError, thresholds=(1,))
    odd = seal([*AWAY, sentence("Oslo", [(0, 1, "GPE")])], "odd", labelled=True).fingerprint
    refused({**given, "assisting": odd}, "GPE is no type", network="encoder", init="tiny", hidden=None)


@pytest.mark.parametrize("pairs", [("PER=person",), ("ORG=LOC", "LOC=ORG")])
def test_a_map_of_the_primary_types_is_for_looking_alone(given: dict[str, str], pairs: tuple[str, ...]) -> None:
    runs.execute("skl", {"primary": given["primary"], "assisting": given["assisting"], "type_map": pairs})
    refused(given, "renames what home itself says", type_map=pairs)


def test_all_arms_make_the_same_steps_with_one_size_and_as_many_sentences_at_random_stand_beside(
    given: dict[str, str], untrained: None
) -> None:
    """Whatever dev says: the threshold is one, and it keeps three of five sentences."""
    run = swept(given, thresholds=(1,), hidden=None, seeds=(1, 2))
    rows = run.result()["rows"]
    assert [(row["arm"], row["kept"]) for row in rows] == [("monolingual", 0), ("skl:1", 3), ("all", 5), ("random", 3)]
    assert {(row["steps"], row["passes"]) for row in rows} == {(2, 2.0)}  # 3 sentences, 16 a step, 2 epochs
    configs = [runs.get(name).manifest.config for row in rows for name in row["runs"]]
    assert {config["hidden"] for config in configs} == {400}
    draws = configs[3:]
    assert [config["seeds"] for config in draws] == [[1], [2], [1]]  # three draws at least
    assert len({config["assisting"] for config in draws}) > 1
    table = assisting.swept(run.id).tables[0]
    assert set(table.verdicts) == {"all", "monolingual", "random"}
    assert table.random == pytest.approx(np.mean(rows[3]["test"]))
    assert table.random is not None
    assert table.verdicts["random"].delta == pytest.approx(table.skl - table.random, abs=0.01)
    assert "beside as many at random (" in assisting.in_words(table)


def test_paper_is_a_sentence_a_step_of_both_in_turn(given: dict[str, str], seal: Seal, untrained: None) -> None:
    own, other = (seal([sentence(text)] * 5, text).fingerprint for text in ("Ada won", "Lena vant"))
    learnt = {"vectors": own, "assisting_vectors": other, "skipgram": {"dimension": 3}}
    rows = swept(given, preset="paper", thresholds=(9.5,), **learnt).result()["rows"]
    alone, config = (runs.get(rows[i]["run"]).manifest.config for i in (0, 1))
    assert {name: config[name] for name in learnt} == learnt
    assert (alone["vectors"], alone.get("assisting_vectors", "")) == (own, "")
    assert (config["in_turn"], config["head"], config["patience"], config["hidden"]) == (True, "memm", None, 4)
    assert runs.get(rows[1]["run"]).result()["settings"]["batch_size"] == 1
    assert [(row["steps"], row["passes"]) for row in rows] == [
        (6, 2.0),
        (20, pytest.approx(3.3)),
        (20, pytest.approx(3.3)),
    ]


def test_paper_is_of_charcnn(given: dict[str, str]) -> None:
    refused(given, "paper is how Murthy et al. 2018 trained their charcnn", preset="paper", network="bilstm")


def test_words_go_by_holm_over_the_shares(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch, untrained: None
) -> None:
    """Each comparison is one family, with a test a share."""
    families = list[tuple[str, ...]]()

    def watched(pairs: Mapping[str, Resampled]) -> object:
        families.append(tuple(pairs))
        return by_holm(pairs)

    monkeypatch.setattr("core.assisting.assist.by_holm", watched)
    swept(given, shares=("all", "sub-word"))
    assert families == [("all", "sub-word"), ("all", "sub-word"), ()]  # the threshold keeps all: nothing at random


def test_every_threshold_trains_the_same_layers(given: dict[str, str], seal: Seal) -> None:
    """What a threshold keeps may lack a type, or just those that the primary corpus lacks."""
    from core.models.taggers import load_tagger

    for extra, layer in (("LOC", None), ("GPE", ("GPE", "LOC", "ORG", "PER"))):
        odd = sentence("Talks in Chicago ended .", [(2, 3, extra)])
        theirs = seal([*AWAY, odd, sentence("Acme grew .", [(0, 1, "ORG")])], f"with {extra}", labelled=True)
        run = swept({**given, "assisting": theirs.fingerprint}, thresholds=(1, 9.5))
        taggers = [
            load_tagger(runs.get(row["run"]).artifacts / "model", device="cpu") for row in run.result()["rows"][1:]
        ]
        assert [tagger.assisting_types for tagger in taggers] == [layer] * len(taggers)
        assert len(taggers) >= 3
