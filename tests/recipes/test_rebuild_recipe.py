"""`rebuild`, `robustness` and `frontier` from a finished `difficulty` run to corpora, logs, files and figures."""

import json
import re
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np
import pytest

from core.bias import mentions as difficulty
from core.bias import rebuilding
from core.bias.rebuilt import read_edits, read_slots
from core.bias.robustness_sets import Slot
from core.corpora import readers
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import ConfigError, CorpusError
from core.importing import view as corpora
from core.projects import removals
from core.projects import runs as facade_runs
from core.runs import Run
from core.runs.store import RunStore
from core.tagging import view as taggers
from core.tagging.finetune import FinetuneConfig
from core.text.sentence import Sentence
from tests.conftest import Command, Seal, sentence
from tests.finished_bias import measured_at_random
from tests.homes import Names
from tests.reconstruction.planted import sentences

FAST = {"init": "tiny", "epochs": 1, "seeds": (1, 2)}


class Given(TypedDict):
    """A labelled corpus, a test split of it, and a `difficulty` run of its mentions."""

    train: Corpus
    test: NotRequired[Corpus]
    run: Run


@pytest.fixture
def made(biased: Names, home: Path) -> Given:
    library = Library(home)
    run = RunStore(home).get(biased["difficulty"])
    return {"train": library.find("train"), "test": library.find("test"), "run": run}


def rebuilt(made: Given, method: str = "highc2low", **options: object) -> Run:
    given = {"train": made["train"].fingerprint, "rate": 0.2, "difficulty": made["run"].id}
    return facade_runs.execute("rebuild", {**given, "method": method, **options})


def robust(kind: str, test: str = "test", **options: object) -> Run:
    return facade_runs.execute("robustness", {"test": test, "train": "train", "kind": kind, **options})


def notes(run: Run) -> list[str]:
    return [event.data["text"] for event in run.events()[0] if event.kind == "note"]


def test_every_method_leaves_a_corpus_a_file_and_a_log(made: Given, home: Path) -> None:
    for method in ("random2low", "highc2low", "redundant2low", "random2high", "low2high", "dataaug"):
        run = rebuilt(made, method, holdout=(made["test"].fingerprint,), encoder="tiny")
        result = run.result()
        corpus = Library(home).find(result["corpus"])
        again = list(readers.read(Path(result["output"]), readers.ReadOptions(scheme="iob2")))
        rows = [row for batch in corpus.batches() for row in batch]
        assert [(s.tokens, s.entities) for s in again] == [(s.tokens, s.entities) for s in rows]
        edits = read_edits(run)
        assert len(edits) == result["changed"] > 0
        assert corpus.labelled
        assert corpus.origin["run"] == run.id
        diff = rebuilding.changed(run.id, 1, 2)
        assert len(diff) == 2
        for one in diff:
            assert one.before.tokens != one.after.tokens
            whole = all(edit.context_of == edit.copy_of for edit in one.edits)
            assert (one.gone is not None) == (method in ("random2high", "low2high") and whole)
        if method != "dataaug":
            told = rebuilding.preview(dict(run.manifest.config))
            assert told.pools == result["pools"]
            assert (told.wanted, told.of) == (result["wanted"], result["of"])
            assert (told.able, told.reached) == (result["changed"], result["reached"])
            assert told.of == told.measured
    assert rebuilt(made, "highc2low", holdout=(made["test"].fingerprint,), encoder="tiny").id in {
        run.id for run in facade_runs.listed("rebuild")
    }


def test_the_same_seed_makes_the_same_bytes_and_rate_zero_the_corpus_itself(made: Given) -> None:
    first = rebuilt(made)
    bytes_ = [(first.artifacts / name).read_bytes() for name in ("rebuilt.conll", "edits.jsonl")]
    removals.remove_run(first.id)
    again = rebuilt(made)
    assert again.id != first.id
    assert [(again.artifacts / name).read_bytes() for name in ("rebuilt.conll", "edits.jsonl")] == bytes_
    nothing = rebuilt(made, rate="0%").result()
    assert nothing["corpus"] == made["train"].fingerprint
    assert corpora.find("train").name == "train"


def test_shares_are_sampled(made: Given) -> None:
    run = rebuilt(made, "low-share", rate=0.3, size=20)
    result = run.result()
    assert result["sentences"] == 20
    assert 0 < result["low_mentions"] < result["measured_mentions"] == result["mentions"]
    share = f"{result['low_mentions']} of the set's {result['measured_mentions']} measured mentions are low-CEIM"
    assert [note for note in notes(run) if note.startswith(share)]
    assert rebuilt(made, "low-share", rate=0.0, size=20).result()["low_mentions"] == 0
    assert rebuilt(made, "low-share", add_bin="high", size=6).result()["sentences"] == 12
    with pytest.raises(ConfigError, match="Give a smaller size"):
        rebuilt(made, "low-share", rate=0.9, size=60)


def test_the_preview_counts_all_mentions_where_some_were_measured(home: Path, seal: Seal) -> None:
    train = seal(sentences(60, 1), "train", labelled=True)
    made: Given = {"train": train, "run": measured_at_random(home, train, every=2)}
    total = sum(train.types.values())
    for method in ("random2low", "low2high", "random2high"):
        run = rebuilt(made, method, rate=0.4)
        told = rebuilding.preview(dict(run.manifest.config))
        assert (told.wanted, told.of) == (run.result()["wanted"], total) == (round(0.4 * total), total)
        assert told.measured == -(-total // 2)
        assert run.result()["changed"] == told.able > 0


@pytest.mark.parametrize("options", [{"rate": 0.0}, {"rate": 0.3}, {"rate": 0.9}, {"add_bin": "high"}])
def test_the_preview_says_what_a_share_is_drawn_from_and_refuses_what_the_run_would(
    made: Given, options: dict[str, object]
) -> None:
    rows = list(next(made["train"].batches()))
    mentions = difficulty.read(made["run"].artifacts / "mentions.parquet")
    given = {"train": "train", "method": "low-share", "difficulty": made["run"].id, **options}
    told = rebuilding.preview({**given, "size": 5})
    for name, n in told.bins.items():
        assert n == sum(any(m.row == row and m.bin == name for m in mentions) for row in range(len(rows)))
    empty = {size: rebuilding.preview({**given, "size": size}).empty for size in range(5, 60, 3)}
    assert {bool(said) for said in empty.values()} == {True, False}
    for size, said in empty.items():
        if said:
            with pytest.raises(ConfigError, match=re.escape(said)):
                rebuilt(made, "low-share", **{**options, "size": size})
        else:
            made_of = rebuilt(made, "low-share", **{**options, "size": size}).result()
            assert made_of["sentences"] == (2 * size if "add_bin" in options else size)


def test_a_robustness_set_and_a_test_split_of_any_run_are_refused(made: Given, home: Path) -> None:
    def refused(corpus: str, match: str) -> None:
        given = {"train": corpus, "method": "dataaug", "encoder": "tiny", "difficulty": made["run"].id}
        assert match in rebuilding.preview(given).empty
        with pytest.raises(ConfigError, match=match):
            facade_runs.execute("rebuild", {**given, "difficulty": ""})

    test, store = made["test"].fingerprint, RunStore(home)
    hard = robust("typos").result()["corpus"]
    refused(hard, "is a robustness set")
    assert not rebuilding.preview({"train": test, "method": "dataaug", "difficulty": made["run"].id}).empty
    for kind, role in (("finetune", "test.1"), ("experiment", "also_test.0"), ("assist", "test"), ("evaluate", "test")):
        run = store.create(kind, {"seed": 1}, {"train": made["train"].fingerprint, role: test}, versions={}, key=kind)
        refused(test, f"is a test split of the run {run.id}")
        removals.remove_run(run.id)
    store.create("robustness", {"test": test}, {"test": test}, versions={}, key="r")
    store.create("finetune", {"train": test}, {"train": test, "dev": test}, versions={}, key="f")
    assert not rebuilding.preview({"train": test, "method": "dataaug", "difficulty": made["run"].id}).empty


def numbered(first: int, n: int) -> list[Sentence]:
    rows = range(first, first + n)
    return [sentence(f"Anna{i} met Bo{i} at noon", [(0, 1, "PER"), (2, 3, "ORG")]) for i in rows]


def beside_a_split(seal: Seal, n: int, shared: int, of: int) -> Run:
    """A rebuild of n sentences beside a held-out split of `of`, with so many sentences that are in both."""
    train = seal(numbered(0, n), "train", labelled=True).fingerprint
    held = seal(numbered(n - shared, of), "dev", labelled=True).fingerprint
    return facade_runs.execute("rebuild", {"train": train, "method": "dataaug", "encoder": "tiny", "holdout": (held,)})


@pytest.mark.parametrize(("n", "shared", "of"), [(10, 2, 24), (40, 5, 40), (300, 20, 30), (300, 29, 400)])
def test_stock_sentences_make_no_split_of_a_corpus(seal: Seal, n: int, shared: int, of: int) -> None:
    run = beside_a_split(seal, n, shared, of)
    assert f"{shared:,} sentences are in dev too" in " ".join(notes(run))
    assert not set(range(n - shared, n)) & {edit.copy_of for edit in read_edits(run)}


@pytest.mark.parametrize(("n", "shared", "of"), [(5, 5, 5), (10, 9, 10), (300, 10, 10), (8, 8, 200), (200, 21, 200)])
def test_a_held_out_split_is_refused_however_small(seal: Seal, n: int, shared: int, of: int) -> None:
    with pytest.raises(CorpusError, match=f"{shared} of its sentences are in the held-out .*only training data"):
        beside_a_split(seal, n, shared, of)


def test_what_makes_a_set_another_one_is_in_its_name(made: Given, seal: Seal, home: Path) -> None:
    def name(run: Run) -> str:
        return Library(home).find(run.result()["corpus"]).name

    assert name(rebuilt(made)) == "train, highc2low 20%"
    assert name(rebuilt(made, seed=2, entity_high="60%")) == "train, highc2low 20%, entity high 60%, seed 2"
    assert name(rebuilt(made, "low-share", rate=0.125, size=20)) == "train, low-share 12.5% of 20"
    assert name(rebuilt(made, "low-share", add_bin="high", size=10, seed=3)) == "train, 10 and 10 high, seed 3"
    assert name(rebuilt(made, "dataaug", encoder="tiny")) == "train, dataaug, encoder tiny"
    for kind, options, wanted in (
        ("oov", {}, "test, oov"),
        ("oov", {"gazetteer": ("more",), "seed": 2}, "test, oov, names of more, seed 2"),
        ("cross-category", {}, "test, cross-category"),
        ("cross-category", {"ambiguous": "textflint"}, "test, cross-category, textflint"),
    ):
        seal(sentences(9, 5), "more", labelled=True)
        names = Library(home).find(robust(kind, **options).result()["corpus"]).origin["names"]
        assert isinstance(names, list)  # sets of the same words are one
        assert wanted in names


def test_a_test_split_that_cannot_be_renamed_keeps_its_name(made: Given, seal: Seal, home: Path) -> None:
    plain = seal([sentence("x met y", [(0, 1, "PER"), (2, 3, "PER")])], "mine", labelled=True)
    run = robust("typos", plain.fingerprint)
    assert (run.result()["corpus"], run.result()["changed"]) == (plain.fingerprint, 0)
    found = Library(home).find(plain.fingerprint)
    assert (found.name, found.origin.get("kind")) == ("mine", None)
    assert any("No name of mine could be changed" in note for note in notes(run))


def test_wrong_input_is_one_sentence(made: Given, seal: Seal) -> None:
    with pytest.raises(CorpusError, match="only training data is rebuilt"):
        rebuilt(made, holdout=(made["train"].fingerprint,))
    with pytest.raises(ConfigError, match=r"needs pointwise V-information \(PVI\)"):
        rebuilt(made, difficulty="")
    with pytest.raises(ConfigError, match="measured train, not test"):
        rebuilt(made, train=made["test"].fingerprint)
    with pytest.raises(CorpusError, match="no mention is in the pool entity_low"):
        rebuilt(made, entity_low="-99")
    given = {"train": "train", "method": "random2low", "difficulty": made["run"].id, "entity_low": "-99"}
    assert "entity_low" in rebuilding.preview(given).empty
    with pytest.raises(ConfigError, match="is not understood"):
        rebuilt(made, entity_high="much")
    with pytest.raises(ConfigError, match="rate"):
        rebuilt(made, rate="140%")
    bare = seal([sentence("it rained", [])], "bare", labelled=True).fingerprint
    with pytest.raises(CorpusError, match="bare: holds no entity"):
        rebuilt(made, "dataaug", train=bare, encoder="tiny")
    with pytest.raises(CorpusError, match="plain: is not labelled"):
        rebuilt(made, "dataaug", train=seal(["it rained"], "plain").fingerprint, encoder="tiny")
    with pytest.raises(CorpusError, match="bare: holds no entity"):
        robust("oov", train=bare)


def test_one_type_only_is_said(home: Path, seal: Seal) -> None:
    train = seal(sentences(20, 1, ("PER",)), "one", labelled=True)
    with pytest.raises(CorpusError, match="one: has one type only"):
        rebuilt({"train": train, "run": measured_at_random(home, train, ("PER",))})


def test_a_held_out_sentence_stays_and_no_holdout_is_told(made: Given, seal: Seal) -> None:
    shared = [*sentences(60, 1)[:3], *sentences(60, 9)]
    held = seal(shared, "held", labelled=True)
    run = rebuilt(made, "random2low", rate=1.0, holdout=(held.fingerprint,))
    assert any("sentences are in held too" in note for note in notes(run))
    assert not {0, 1, 2} & {edit.copy_of for edit in read_edits(run)}
    assert any("No held-out split was named" in note for note in notes(rebuilt(made)))


def test_robust_sets_stand_beside_the_plain_one(made: Given, home: Path, untrained: None) -> None:
    runs = [robust(kind) for kind in ("oov", "cross-category", "typos")]
    tests = [run.result()["corpus"] for run in runs]
    for run in runs:
        result = run.result()
        slots = read_slots(run)
        assert (len(slots), sum(bool(slot.ambiguous) for slot in slots)) == (result["mentions"], result["ambiguous"])
        assert result["sentences"] == 24
    assert runs[0].result()["sources"] == {"gazetteer": 0, "generated": runs[0].result()["changed"]}

    train, test = made["train"].fingerprint, made["test"].fingerprint
    options = {**FAST, "train": train, "dev": train, "test": (test, *tests)}
    tagged = facade_runs.execute("finetune", options)
    rows = taggers.frontier([tagged.id])
    assert [row.kind for row in rows] == ["test", "oov", "cross-category", "typos"]
    for row, told in zip(rows, tagged.result()["tests"], strict=True):
        assert row.micro_f1 == pytest.approx(told["micro_f1"], abs=1e-3)  # a second way to the same figure
        assert len(row.certain_f1) == 2
    assert sum(row.ambiguous for row in rows[1:]) == sum(run.result()["ambiguous"] for run in runs)
    assert taggers.averages(rows) == {tagged.id: pytest.approx(sum(r.mean for r in rows) / 4, abs=1e-3)}
    other = facade_runs.execute("finetune", {**options, "seeds": (1,), "test": (test,)})
    with pytest.raises(ConfigError, match="tested on different corpora"):
        taggers.frontier([tagged.id, other.id])
    for run in (made["run"], runs[0]):
        with pytest.raises(ConfigError, match=rf"{run.id} is a {run.manifest.kind} run .*give finetune runs"):
            taggers.frontier([run.id])
    begun = RunStore(home).create("finetune", {"test": []}, {}, versions={}, key="begun")
    with pytest.raises(ConfigError, match="give finetune runs that have succeeded"):
        taggers.frontier([begun.id])


def test_what_is_ambiguous_does_not_hang_on_the_order_of_the_taggers(
    made: Given, seal: Seal, home: Path, untrained: None
) -> None:
    whole = made["train"]
    part = Library(home).subset(whole, np.arange(20), name="part", origin={"from": whole.fingerprint})
    more = Library(home).find(rebuilt(made, rate=0.4).result()["corpus"])
    imported = seal(sentences(24, 7), "imported", labelled=True)
    larger = seal(sentences(99, 8), "larger", labelled=True)
    assert sum(more.types.values()) > sum(whole.types.values())
    tests = (made["test"].fingerprint, imported.fingerprint)
    options = {**FAST, "seeds": (1,), "dev": whole.fingerprint, "test": tests}
    runs = [
        facade_runs.execute("finetune", {**options, "train": train.fingerprint}).id for train in (part, more, larger)
    ]
    rows = taggers.frontier(runs[:2])
    assert {row.known for row in rows} == {whole.fingerprint}
    assert taggers.frontier([runs[1], runs[0]]) == [*rows[2:], *rows[:2]]
    assert {row.known for row in taggers.standings(runs[:1])} == {larger.fingerprint}  # of all that were tested alike
    assert {row.known for row in taggers.frontier(runs, part.fingerprint)} == {part.fingerprint}


def test_two_stages_are_an_option_and_one_is_the_default(made: Given) -> None:
    options = {**FAST, "train": made["train"].fingerprint, "dev": made["test"].fingerprint, "seeds": (1,)}
    assert FinetuneConfig.parse(options).stages == "joint"
    staged = facade_runs.execute("finetune", {**options, "stages": "lpft"})
    assert {"head_loss@1", "loss@1"} <= {e.data["name"] for e in staged.events()[0] if e.kind == "metric"}
    with pytest.raises(ConfigError, match="lpft freezes an encoder"):
        facade_runs.execute("finetune", {**options, "stages": "lpft", "network": "bilstm"})


def test_the_commands_write_the_file_and_the_log_beside_it(made: Given, tmp_path: Path, command: Command) -> None:
    out, low = tmp_path / "low.conll", ("rebuild", "--train", "train", "--method", "low2high")
    measured = (*low, "--difficulty", made["run"].id, "--json")
    code, told, _ = command(*measured, "--rate", "20%", "--output", out)
    result = json.loads(told)
    assert code == 0
    assert {"run", "sentences", "mentions", "changed", "output"} <= set(result)
    assert len(out.read_text().strip().split("\n\n")) == result["sentences"] == 60
    assert len((tmp_path / "low.edits.jsonl").read_text().splitlines()) == result["changed"]
    for rate in ("0.2", "0.4"):  # a name of one's own with a point in it
        code, told, _ = command(*measured, "--rate", rate, "--output", tmp_path / f"low-{rate}")
        assert json.loads(told)["edits"] == str(tmp_path / f"low-{rate}.edits.jsonl")
        assert len(Path(json.loads(told)["edits"]).read_text().splitlines()) == json.loads(told)["changed"]
    (tmp_path / "cities.txt").write_text("Wagga Wagga\tLOC\nUlm\tLOC\nUlm\tCITY\n", encoding="utf-8")
    words = ("robustness", "--test", "test", "--train", "train", "--kind", "oov", "--names", tmp_path / "cities.txt")
    code, told, said = command(*words, "--output", tmp_path / "o.conll", "--json")
    result = json.loads(told)
    assert code == 0
    assert result["changed"] == result["mentions"]
    assert "CITY: in the gazetteer but not in the test" in said
    slots = [Slot(**json.loads(line)) for line in (tmp_path / "o.slots.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(slots) == result["mentions"]
    assert sum(bool(slot.ambiguous) for slot in slots) == result["ambiguous"]
    assert {slot.after for slot in slots if slot.type == "LOC"} == {"Wagga Wagga", "Ulm"}
    assert {slot.source for slot in slots} == {"gazetteer", "generated"}
    code, _, error = command(*low, "--output", tmp_path / "no" / "x.conll", "--json")
    assert (code, error.count("\n")) == (2, 1)


def test_a_run_of_another_kind_measures_nothing(made: Given, home: Path) -> None:
    other = robust("oov")
    with pytest.raises(ConfigError, match="is no finished difficulty run"):
        rebuilt(made, difficulty=other.id)
    assert RunStore(home).get(other.id).result()["ambiguous"] >= 0
