"""`rebuild`, `robustness` and `frontier` from a finished `difficulty` run to corpora, logs, files and figures."""

import json
import sys
from pathlib import Path

import pytest

from core import facade
from core.__main__ import run_main
from core.corpora import readers
from core.corpora.corpus import Library
from core.difficulty import mentions as difficulty
from core.difficulty.mentions import Mention, bin_of
from core.errors import ConfigError, CorpusError
from core.recipes.rebuilt_files import read_edits, read_slots
from core.reconstruction.training import ordered
from core.runs.store import RunStore
from tests.conftest import sentence
from tests.reconstruction.planted import TYPES, sentences, training

FAST = {
    "init": "tiny", "epochs": 1, "learning_rate": 3e-3, "head_learning_rate": 3e-2, "batch_size": 16,
    "precision": "fp32", "seeds": (1, 2),
}  # fmt: skip


def measured(corpus, rows, types=TYPES):
    """A `difficulty` run that is said to have ended, with a measurement of every mention drawn at random."""
    found = training(len(rows), types=types)
    mentions = [
        Mention(row=int(found.rows[m]), sentence=rows[int(found.rows[m])].id, start=e.start, end=e.end, type=e.type,
                surface=" ".join(found.names[m]), pvi_entity=float(found.entity[m]),
                pvi_context=float(found.context[m]), ceim=float(found.entity[m] - found.context[m]),
                bin=bin_of(float(found.entity[m] - found.context[m])), fold=0)
        for m, e in enumerate(e for row in rows for e in ordered(row))
    ]  # fmt: skip
    run = facade.execute("difficulty", {"train": corpus.fingerprint, "encoder": "tiny", "folds": 2, "context_epochs": 1,
                                 "entity_epochs": 1, "batch_size": 64, "draws": 100})  # fmt: skip
    difficulty.write(mentions, run.artifacts / "mentions.parquet")
    return run


@pytest.fixture
def made(seal):
    rows = sentences(60, 1)
    train = seal(rows, "train", labelled=True)
    test = seal(sentences(24, 2), "test", labelled=True)
    return {"train": train, "test": test, "run": measured(train, rows)}


def rebuilt(made, method="highc2low", **options):
    options = {
        "train": made["train"].fingerprint,
        "method": method,
        "rate": 0.2,
        "difficulty": made["run"].id,
        **options,
    }
    return facade.execute("rebuild", options)


def notes(run):
    return [event.data["text"] for event in run.events()[0] if event.kind == "note"]


def test_every_method_leaves_a_corpus_a_file_and_a_log(made, home):
    for method in ("random2low", "highc2low", "redundant2low", "random2high", "low2high", "dataaug"):
        run = rebuilt(made, method, holdout=(made["test"].fingerprint,), encoder="tiny")
        result = run.result()
        corpus = Library(home).find(result["corpus"])
        again = list(readers.read(Path(result["output"]), readers.ReadOptions(scheme="iob2")))
        rows = [row for batch in corpus.batches() for row in batch]
        assert [(s.tokens, s.entities) for s in again] == [(s.tokens, s.entities) for s in rows]
        edits = read_edits(Path(result["edits"]))
        assert len(edits) == result["changed"] > 0
        assert corpus.labelled
        assert corpus.origin["run"] == run.id
        diff = facade.edit_diffs(run.id, 1, 2)
        assert len(diff) == 2
        for one in diff:
            assert one.before.tokens != one.after.tokens
            assert (one.gone is not None) == (method in ("random2high", "low2high"))
        if method != "dataaug":
            told = facade.rebuild_preview(dict(run.manifest.config))
            assert told["pools"] == result["pools"]
            assert (told["wanted"], told["of"]) == (result["wanted"], result["of"])
    assert rebuilt(made, "highc2low", holdout=(made["test"].fingerprint,), encoder="tiny").id in {
        run.id for run in facade.runs("rebuild")
    }


def test_the_same_seed_makes_the_same_bytes_and_rate_zero_the_corpus_itself(made):
    first = rebuilt(made)
    bytes_ = [(first.artifacts / name).read_bytes() for name in ("rebuilt.conll", "edits.jsonl")]
    facade.remove_run(first.id)
    again = rebuilt(made)
    assert again.id != first.id
    assert [(again.artifacts / name).read_bytes() for name in ("rebuilt.conll", "edits.jsonl")] == bytes_
    nothing = rebuilt(made, rate="0%").result()
    assert nothing["corpus"] == made["train"].fingerprint
    assert facade.corpus("train").name == "train"


def test_shares_are_sampled(made):
    assert rebuilt(made, "low-share", rate=0.3, size=20).result()["sentences"] == 20
    assert rebuilt(made, "low-share", add_bin="high", size=10).result()["sentences"] == 20
    with pytest.raises(ConfigError, match="give a smaller size"):
        rebuilt(made, "low-share", rate=0.9, size=60)


def test_wrong_input_is_one_sentence(made, seal):
    with pytest.raises(CorpusError, match="only training data is rebuilt"):
        rebuilt(made, holdout=(made["train"].fingerprint,))
    with pytest.raises(ConfigError, match="goes by PVI"):
        rebuilt(made, difficulty="")
    with pytest.raises(ConfigError, match="measured train, not test"):
        rebuilt(made, train=made["test"].fingerprint)
    with pytest.raises(CorpusError, match="no mention is in the pool entity_low"):
        rebuilt(made, entity_low="-99")
    assert "entity_low" in facade.rebuild_preview(
        {"train": "train", "method": "random2low", "difficulty": made["run"].id, "entity_low": "-99"}
    )["empty"]  # fmt: skip
    with pytest.raises(ConfigError, match="is not understood"):
        rebuilt(made, entity_high="much")
    with pytest.raises(ConfigError, match="rate"):
        rebuilt(made, rate="140%")
    bare = seal([sentence("it rained", [])], "bare", labelled=True).fingerprint
    with pytest.raises(CorpusError, match="bare: holds no entity"):
        rebuilt(made, "dataaug", train=bare, encoder="tiny")
    with pytest.raises(CorpusError, match="plain: is not labelled"):
        rebuilt(made, "dataaug", train=seal(["it rained"], "plain").fingerprint, encoder="tiny")
    robust = {"test": made["test"].fingerprint, "train": bare, "kind": "oov"}
    with pytest.raises(CorpusError, match="bare: holds no entity"):
        facade.execute("robustness", robust)


def test_one_type_only_is_said(seal):
    rows = sentences(20, 1, ("PER",))
    train = seal(rows, "one", labelled=True)
    with pytest.raises(CorpusError, match="one: has one type only"):
        rebuilt({"train": train, "run": measured(train, rows, ("PER",))})


def test_a_held_out_sentence_stays_and_no_holdout_is_told(made, seal):
    shared = [*sentences(60, 1)[:3], *sentences(60, 9)]
    held = seal(shared, "held", labelled=True)
    run = rebuilt(made, "random2low", rate=1.0, holdout=(held.fingerprint,))
    assert any("sentences are in held too" in note for note in notes(run))
    assert not {0, 1, 2} & {edit.copy_of for edit in read_edits(run.artifacts / "edits.jsonl")}
    assert any("No held-out split was named" in note for note in notes(rebuilt(made)))


def test_robust_sets_stand_beside_the_plain_one(made, home):
    base = {"test": made["test"].fingerprint, "train": made["train"].fingerprint}
    runs = [facade.execute("robustness", {**base, "kind": kind}) for kind in ("oov", "cross-category", "typos")]
    tests = [run.result()["corpus"] for run in runs]
    for run in runs:
        result = run.result()
        slots = read_slots(run.artifacts / "slots.jsonl")
        assert (len(slots), sum(bool(slot.ambiguous) for slot in slots)) == (result["mentions"], result["ambiguous"])
        assert result["sentences"] == 24
    assert runs[0].result()["sources"] == {"gazetteer": 0, "generated": runs[0].result()["changed"]}

    options = {**FAST, "train": base["train"], "dev": base["train"], "test": (base["test"], *tests)}
    tagged = facade.execute("finetune", options)
    rows = facade.frontier([tagged.id])
    assert [row["kind"] for row in rows] == ["test", "oov", "cross-category", "typos"]
    for row, told in zip(rows, tagged.result()["tests"], strict=True):
        assert row["micro_f1"] == pytest.approx(told["micro_f1"], abs=1e-3)  # a second way to the same figure
        assert len(row["certain_f1"]) == 2
    assert sum(row["ambiguous"] for row in rows[1:]) == sum(run.result()["ambiguous"] for run in runs)
    assert facade.frontier_averages(rows) == {tagged.id: pytest.approx(sum(r["mean"] for r in rows) / 4, abs=1e-3)}
    other = facade.execute("finetune", {**options, "seeds": (1,), "test": (base["test"],)})
    with pytest.raises(ConfigError, match="tested on different corpora"):
        facade.frontier([tagged.id, other.id])


def test_two_stages_are_an_option_that_leaves_other_keys_as_they_were(made):
    options = {**FAST, "train": made["train"].fingerprint, "dev": made["test"].fingerprint, "seeds": (1,)}
    plain = facade.execute("finetune", options)
    assert "stages" not in plain.manifest.config
    assert facade.execute("finetune", {**options, "stages": "joint"}).id == plain.id
    staged = facade.execute("finetune", {**options, "stages": "lpft"})
    assert staged.id != plain.id
    assert {"head_loss@1", "loss@1"} <= {e.data["name"] for e in staged.events()[0] if e.kind == "metric"}
    with pytest.raises(ConfigError, match="lpft freezes an encoder"):
        facade.execute("finetune", {**options, "stages": "lpft", "network": "bilstm"})


def test_the_commands_write_the_file_and_the_log_beside_it(made, tmp_path, monkeypatch, capsys):
    def typed(*words):
        monkeypatch.setattr(sys, "argv", ["core", *map(str, words), "--json"])
        return (run_main(), *capsys.readouterr())

    out = tmp_path / "low.conll"
    code, told, _ = typed("rebuild", "--train", "train", "--method", "low2high", "--rate", "20%", "--difficulty",
                          made["run"].id, "--output", out)  # fmt: skip
    result = json.loads(told)
    assert code == 0
    assert {"run", "sentences", "mentions", "changed", "output"} <= set(result)
    assert len(out.read_text().strip().split("\n\n")) == result["sentences"] == 60
    assert len((tmp_path / "low.edits.jsonl").read_text().splitlines()) == result["changed"]
    code, told, _ = typed(
        "robustness", "--test", "test", "--train", "train", "--kind", "oov", "--output", tmp_path / "o.conll"
    )
    assert code == 0
    assert json.loads(told)["changed"] == json.loads(told)["mentions"]
    code, _, error = typed(
        "rebuild", "--train", "train", "--method", "low2high", "--output", tmp_path / "no" / "x.conll"
    )
    assert (code, error.count("\n")) == (2, 1)


def test_a_run_of_another_kind_measures_nothing(made, home):
    other = facade.execute("robustness", {"test": "test", "train": "train", "kind": "oov"})
    with pytest.raises(ConfigError, match="is no finished difficulty run"):
        rebuilt(made, difficulty=other.id)
    assert RunStore(home).get(other.id).result()["ambiguous"] >= 0
