"""Runs of `rebuild` and `robustness` on a measured training set, the frontier of taggers, and the commands."""

import json
import re
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np
import pytest

from core.bias import view
from core.bias.result import Slot, read_edits, read_mentions, read_slots
from core.bias.robustness import averages
from core.corpora import readers
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import ConfigError, CorpusError
from core.importing import view as corpora
from core.projects import removals
from core.runs import Run
from core.runs.store import RunStore
from core.text.sentence import Sentence
from tests.bias.planted import sentences
from tests.conftest import Command, Seal, sentence
from tests.finished_bias import measured_at_random
from tests.homes import Names, done, executed


class Given(TypedDict):
    """A labelled corpus, a test set, and a `difficulty` run on the corpus."""

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
    return executed("rebuild", given, method=method, **options)


def robust(kind: str, test: str = "test", **options: object) -> Run:
    return executed("robustness", {"test": test, "train": "train", "kind": kind, **options})


def tuned(**options: object) -> Run:
    return executed("finetune", {"init": "tiny", "epochs": 1, "seeds": (1,), **options})


def notes(run: Run) -> list[str]:
    return [event.data["text"] for event in run.events()[0] if event.kind == "note"]


def test_every_method_writes_a_corpus_a_file_and_a_log(made: Given, home: Path) -> None:
    for method in ("random2low", "highc2low", "redundant2low", "random2high", "low2high", "dataaug"):
        run = rebuilt(made, method, holdout=(made["test"].fingerprint,), encoder="tiny")
        result = run.result()
        corpus = Library(home).find(result["corpus"])
        again = list(readers.read(Path(result["output"]), readers.ReadOptions(scheme="iob2")))
        rows = [row for batch in corpus.batches() for row in batch]
        assert [(s.tokens, s.entities) for s in again] == [(s.tokens, s.entities) for s in rows]
        assert len(read_edits(run)) == result["changed"] > 0
        assert corpus.labelled
        assert corpus.origin["run"] == run.id
        diff = view.changed(run.id, 1, 2)
        assert len(diff) == 2
        for one in diff:
            assert one.before.tokens != one.after.tokens
            whole = all(edit.context_of == edit.copy_of for edit in one.edits)
            assert (one.gone is not None) == (method in ("random2high", "low2high") and whole)
        if method != "dataaug":
            preview = view.preview(dict(run.manifest.config))
            assert preview.pools == result["pools"]
            assert (preview.wanted, preview.of) == (result["wanted"], result["of"])
            assert (preview.able, preview.reached) == (result["changed"], result["reached"])
            assert preview.of == preview.measured


def test_same_seed_rebuilds_the_same_bytes_and_rate_zero_changes_nothing(made: Given, seal: Seal) -> None:
    first = rebuilt(made)
    assert any("No dev or test set was given" in note for note in notes(first))
    bytes_ = [(first.artifacts / name).read_bytes() for name in ("rebuilt.conll", "edits.jsonl")]
    removals.remove_run(first.id)
    again = rebuilt(made)
    assert again.id != first.id
    assert [(again.artifacts / name).read_bytes() for name in ("rebuilt.conll", "edits.jsonl")] == bytes_
    nothing = rebuilt(made, rate="0%").result()
    assert nothing["corpus"] == made["train"].fingerprint
    assert corpora.find("train").name == "train"
    held = seal([*sentences(60, 1)[:3], *sentences(60, 9)], "held", labelled=True)
    run = rebuilt(made, "random2low", rate=1.0, holdout=(held.fingerprint,))
    assert any("sentences are also in held" in note for note in notes(run))
    assert not {0, 1, 2} & {edit.copy_of for edit in read_edits(run)}


def test_preview_counts_unmeasured_mentions_too(home: Path, seal: Seal) -> None:
    train = seal(sentences(60, 1), "train", labelled=True)
    made: Given = {"train": train, "run": measured_at_random(home, train, every=2)}
    total = sum(train.types.values())
    for method in ("random2low", "low2high", "random2high"):
        run = rebuilt(made, method, rate=0.4)
        preview = view.preview(dict(run.manifest.config))
        assert (preview.wanted, preview.of) == (run.result()["wanted"], total) == (round(0.4 * total), total)
        assert preview.measured == -(-total // 2)
        assert run.result()["changed"] == preview.able > 0


@pytest.mark.parametrize("options", [{"rate": 0.0}, {"rate": 0.3}, {"rate": 0.9}, {"add_bin": "high"}])
def test_low_share_sets_match_the_counts_of_the_preview(made: Given, options: dict[str, object]) -> None:
    rows = list(next(made["train"].batches()))
    mentions = read_mentions(made["run"].artifacts / "mentions.parquet")
    given = {"train": "train", "method": "low-share", "difficulty": made["run"].id, **options}
    preview = view.preview({**given, "size": 5})
    for name, n in preview.bins.items():
        assert n == sum(any(m.row == row and m.bin == name for m in mentions) for row in range(len(rows)))
    empty = {size: view.preview({**given, "size": size}).empty for size in range(5, 60, 3)}
    assert {bool(reason) for reason in empty.values()} == {True, False}
    largest = max(size for size, reason in empty.items() if not reason)
    smallest = min(size for size, reason in empty.items() if reason)
    with pytest.raises(ConfigError, match=re.escape(empty[smallest])):
        rebuilt(made, "low-share", **{**options, "size": smallest})
    run = rebuilt(made, "low-share", **{**options, "size": largest})
    result = run.result()
    assert result["sentences"] == (2 * largest if "add_bin" in options else largest)
    assert (result["low_mentions"] > 0) == (options != {"rate": 0.0})
    assert result["measured_mentions"] == result["mentions"]
    share = f"{result['low_mentions']} of the set's {result['measured_mentions']} measured mentions have low CEIM"
    assert [note for note in notes(run) if note.startswith(share)]


def test_robustness_sets_and_test_sets_are_not_rebuilt(made: Given, home: Path) -> None:
    def refused(corpus: str, match: str) -> None:
        given = {"train": corpus, "method": "dataaug", "encoder": "tiny", "difficulty": made["run"].id}
        assert match in view.preview(given).empty
        with pytest.raises(ConfigError, match=match):
            rebuilt(made, "dataaug", train=corpus, encoder="tiny", difficulty="")

    test, store = made["test"].fingerprint, RunStore(home)
    hard = robust("typos").result()["corpus"]
    refused(hard, "is a robustness set")
    assert not view.preview({"train": test, "method": "dataaug", "difficulty": made["run"].id}).empty
    several = {"finetune": "test.1", "experiment": "also_test.0", "dictionary": "test.0", "llm": "test.0"}
    for kind, role in {**several, "zero-shot": "test.0", "assist": "test", "evaluate": "test"}.items():
        run = store.create(kind, {"seed": 1}, {"train": made["train"].fingerprint, role: test}, versions={}, key=kind)
        refused(test, f"is a test set of the run {run.id}")
        removals.remove_run(run.id)
    store.create("robustness", {"test": test}, {"test": test}, versions={}, key="r")
    store.create("finetune", {"train": test}, {"train": test, "dev": test}, versions={}, key="f")
    assert not view.preview({"train": test, "method": "dataaug", "difficulty": made["run"].id}).empty


def numbered(first: int, n: int) -> list[Sentence]:
    rows = range(first, first + n)
    return [sentence(f"Anna{i} met Bo{i} at noon", [(0, 1, "PER"), (2, 3, "ORG")]) for i in rows]


@pytest.mark.parametrize(
    ("n", "shared", "of", "split"),
    [
        (10, 2, 24, False),
        (40, 5, 40, False),
        (300, 20, 30, False),
        (300, 29, 400, False),
        (5, 5, 5, True),
        (10, 9, 10, True),
        (300, 10, 10, True),
        (8, 8, 200, True),
        (200, 21, 200, True),
    ],
)
def test_held_out_split_is_refused_and_shared_sentences_are_left_out(
    seal: Seal, n: int, shared: int, of: int, *, split: bool
) -> None:
    train = seal(numbered(0, n), "train", labelled=True).fingerprint
    held = seal(numbered(n - shared, of), "dev", labelled=True).fingerprint
    options = {"train": train, "method": "dataaug", "encoder": "tiny", "holdout": (held,)}
    if split:
        with pytest.raises(CorpusError, match=f"{shared} of its sentences are in the held-out .*only training data"):
            done("rebuild", options)
    else:
        run = executed("rebuild", options)
        assert f"{shared:,} sentences are also in dev" in " ".join(notes(run))
        assert not set(range(n - shared, n)) & {edit.copy_of for edit in read_edits(run)}


def test_rebuilt_set_is_named_by_its_options(made: Given, seal: Seal, home: Path) -> None:
    def name(run: Run) -> str:
        return Library(home).find(run.result()["corpus"]).name

    assert name(rebuilt(made)) == "train, highc2low 20%"
    assert name(rebuilt(made, seed=2, entity_high="60%")) == "train, highc2low 20%, entity high 60%, seed 2"
    assert name(rebuilt(made, "low-share", rate=0.125, size=20)) == "train, low-share 12.5% of 20"
    assert name(rebuilt(made, "low-share", add_bin="high", size=10, seed=3)) == "train, 10 and 10 high, seed 3"
    assert name(rebuilt(made, "dataaug", encoder="tiny")) == "train, dataaug, encoder tiny"
    seal(sentences(9, 5), "more", labelled=True)
    for kind, options, wanted in (
        ("oov", {}, "test, oov"),
        ("oov", {"gazetteer": ("more",), "seed": 2}, "test, oov, names of more, seed 2"),
        ("cross-category", {}, "test, cross-category"),
        ("cross-category", {"ambiguous": "textflint"}, "test, cross-category, textflint"),
    ):
        names = Library(home).find(robust(kind, **options).result()["corpus"]).origin["names"]
        assert isinstance(names, list)  # equal sets are stored once and have several names
        assert wanted in names
    plain = seal([sentence("x met y", [(0, 1, "PER"), (2, 3, "PER")])], "mine", labelled=True)
    run = robust("typos", plain.fingerprint)  # no name can be changed
    assert (run.result()["corpus"], run.result()["changed"]) == (plain.fingerprint, 0)
    found = Library(home).find(plain.fingerprint)
    assert (found.name, found.origin.get("kind")) == ("mine", None)
    assert any("No name of mine could be changed" in note for note in notes(run))


def test_wrong_input_raises_a_readable_error(made: Given, seal: Seal, home: Path, biased: Names) -> None:
    bare = seal([sentence("it rained", [])], "bare", labelled=True).fingerprint
    plain = seal(["it rained"], "plain").fingerprint
    for method, options, words in (
        ("highc2low", {"holdout": (made["train"].fingerprint,)}, "only training data is rebuilt"),
        ("highc2low", {"difficulty": ""}, r"needs pointwise V-information \(PVI\)"),
        ("highc2low", {"difficulty": biased["oov"]}, "is not a finished difficulty run"),
        ("highc2low", {"train": made["test"].fingerprint}, "measured train, not test"),
        ("highc2low", {"entity_low": "-99"}, "no mention is in the pool entity_low"),
        ("highc2low", {"entity_high": "much"}, "cannot be read; give bits"),
        ("highc2low", {"rate": "140%"}, "rate"),
        ("dataaug", {"train": bare, "encoder": "tiny"}, "bare: has no entity"),
        ("dataaug", {"train": plain, "encoder": "tiny"}, "plain: is not labelled"),
    ):
        with pytest.raises((ConfigError, CorpusError), match=words):
            rebuilt(made, method, **options)
    given = {"train": "train", "method": "random2low", "difficulty": made["run"].id, "entity_low": "-99"}
    assert "entity_low" in view.preview(given).empty
    with pytest.raises(CorpusError, match="bare: has no entity"):
        robust("oov", train=bare)
    train = seal(sentences(20, 1, ("PER",)), "one", labelled=True)
    with pytest.raises(CorpusError, match="one: has one type only"):
        rebuilt({"train": train, "run": measured_at_random(home, train, ("PER",))})


def test_frontier_scores_robustness_sets_beside_the_test_set(made: Given, home: Path, untrained: None) -> None:
    runs = [robust(kind) for kind in ("oov", "cross-category", "typos")]
    for run in runs:
        result, slots = run.result(), read_slots(run)
        assert (len(slots), sum(bool(slot.ambiguous) for slot in slots)) == (result["mentions"], result["ambiguous"])
        assert result["sentences"] == 24
    assert runs[0].result()["sources"] == {"gazetteer": 0, "generated": runs[0].result()["changed"]}

    train, test = made["train"].fingerprint, made["test"].fingerprint
    tagged = tuned(train=train, dev=train, test=(test, *(run.result()["corpus"] for run in runs)), seeds=(1, 2))
    rows = view.frontier([tagged.id])
    assert [row.kind for row in rows] == ["test", "oov", "cross-category", "typos"]
    for row, expected in zip(rows, tagged.result()["tests"], strict=True):
        assert row.micro_f1 == pytest.approx(expected["micro_f1"], abs=1e-3)  # computed independently
        assert len(row.certain_f1) == 2
    assert sum(row.ambiguous for row in rows[1:]) == sum(run.result()["ambiguous"] for run in runs)
    assert averages(rows) == {tagged.id: pytest.approx(sum(r.mean for r in rows) / 4, abs=1e-3)}
    other = tuned(train=train, dev=train, test=(test,))
    with pytest.raises(ConfigError, match="the runs have different test sets"):
        view.frontier([tagged.id, other.id])
    for run in (made["run"], runs[0]):
        with pytest.raises(ConfigError, match=rf"{run.id} is a {run.manifest.kind} run .*give finished finetune runs"):
            view.frontier([run.id])
    unfinished = RunStore(home).create("finetune", {"test": []}, {}, versions={}, key="unfinished")
    with pytest.raises(ConfigError, match="give finished finetune runs"):
        view.frontier([unfinished.id])


def test_ambiguity_is_independent_of_the_order_of_taggers(made: Given, seal: Seal, home: Path, untrained: None) -> None:
    whole = made["train"]
    part = Library(home).subset(whole, np.arange(20), name="part", origin={"from": whole.fingerprint})
    more = Library(home).find(rebuilt(made, rate=0.4).result()["corpus"])
    imported = seal(sentences(24, 7), "imported", labelled=True)
    larger = seal(sentences(99, 8), "larger", labelled=True)
    assert sum(more.types.values()) > sum(whole.types.values())
    options = {"dev": whole.fingerprint, "test": (made["test"].fingerprint, imported.fingerprint)}
    runs = [tuned(**options, train=train.fingerprint).id for train in (part, more, larger)]
    rows = view.frontier(runs[:2])
    assert {row.known for row in rows} == {whole.fingerprint}
    assert view.frontier([runs[1], runs[0]]) == [*rows[2:], *rows[:2]]
    # The largest training set of all taggers with these tests.
    assert {row.known for row in view.standings(runs[:1])} == {larger.fingerprint}
    assert {row.known for row in view.frontier(runs, part.fingerprint)} == {part.fingerprint}


def test_commands_write_the_file_and_its_log(made: Given, tmp_path: Path, command: Command) -> None:
    out, low = tmp_path / "low.conll", ("rebuild", "--train", "train", "--method", "low2high")
    measured = (*low, "--difficulty", made["run"].id, "--json")
    code, printed, _ = command(*measured, "--rate", "20%", "--output", out)
    result = json.loads(printed)
    assert code == 0
    assert {"run", "sentences", "mentions", "changed", "output"} <= set(result)
    assert len(out.read_text().strip().split("\n\n")) == result["sentences"] == 60
    assert len((tmp_path / "low.edits.jsonl").read_text().splitlines()) == result["changed"]
    for rate in ("0.2", "0.4"):  # a file name may contain a point
        code, printed, _ = command(*measured, "--rate", rate, "--output", tmp_path / f"low-{rate}")
        assert json.loads(printed)["edits"] == str(tmp_path / f"low-{rate}.edits.jsonl")
        assert len(Path(json.loads(printed)["edits"]).read_text().splitlines()) == json.loads(printed)["changed"]
    (tmp_path / "cities.txt").write_text("Wagga Wagga\tLOC\nUlm\tLOC\nUlm\tCITY\n", encoding="utf-8")
    words = ("robustness", "--test", "test", "--train", "train", "--kind", "oov", "--names", tmp_path / "cities.txt")
    code, printed, stderr = command(*words, "--output", tmp_path / "o.conll", "--json")
    result = json.loads(printed)
    assert code == 0
    assert result["changed"] == result["mentions"]
    assert "CITY: in the gazetteer but not in the test set" in stderr
    slots = [Slot(**json.loads(line)) for line in (tmp_path / "o.slots.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(slots) == result["mentions"]
    assert sum(bool(slot.ambiguous) for slot in slots) == result["ambiguous"]
    assert {slot.after for slot in slots if slot.type == "LOC"} == {"Wagga Wagga", "Ulm"}
    assert {slot.source for slot in slots} == {"gazetteer", "generated"}
    code, _, error = command(*low, "--output", tmp_path / "no" / "x.conll", "--json")
    assert (code, error.count("\n")) == (2, 1)
