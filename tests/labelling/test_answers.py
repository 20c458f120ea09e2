"""Answers about queued sentences: stored once each, undone, counted, turned into corpora, and taken from tools' files."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ConfigError
from core.importing import view as corpora
from core.kind import register
from core.kinds import KINDS
from core.labelling import answers, queue, tasks, view
from core.labelling.answers import Answer, Answers
from core.projects import runs
from core.projects.home import library, store
from core.text.sentence import Entity
from tests.conftest import Command, Seal, sentence

CLAUSES = [
    f"The tenant {name} pays rent to Owner {i} ."
    for i, name in enumerate(["Ann", "Bo", "Cy", "Di", "Ed", "Flo", "Gus", "Hal"])
]


def sent(
    number: int, place: int, *entities: tuple[int, int, str], action: str = "label", **more: Any
) -> dict[str, Any]:
    return {
        "action": action,
        "place": place,
        "entities": [list(each) for each in entities],
        "seconds": 2.0,
        "client": "tab",
        "number": number,
        **more,
    }


@pytest.fixture
def queued(seal: Seal) -> str:
    """Make a queue of six sentences, and a training set; return the queue's run."""
    train = seal([sentence("Acme pays Bo .", [(0, 1, "ORG")])], "train", labelled=True).fingerprint
    films = [f"This film number {i} has a soundtrack ." for i in range(20)]
    roles = {"task": seal(CLAUSES[:2], "task"), "domain": seal([*CLAUSES[2:], *films], "domain")}
    options = {role: corpus.fingerprint for role, corpus in roles.items()}
    for role, mark in {**options, "train": train}.items():
        corpora.set_role(role, mark)
    return runs.execute("queue", {**options, "train": train, "encoder": "tiny", "n": 6}).id


def test_an_answer_that_is_sent_twice_is_stored_once_and_the_latest_counts(queued: str) -> None:
    view.answer(queued, [sent(0, 0, (1, 2, "PARTY"))])
    view.answer(queued, [sent(0, 0, (1, 2, "PARTY")), sent(1, 1, action="skip")])
    view.answer(queued, [sent(0, 0, (1, 3, "PARTY"), client="other tab")])
    log = view.answered(queued)
    assert len(log.history) == 3
    assert log.labelled == {0: (Entity(start=1, end=3, type="PARTY"),)}
    done = view.progress(queued)
    assert (done.of, done.labelled, done.skipped, done.left, done.seconds) == (6, 1, 1, 4, 6.0)
    view.answer(queued, [sent(2, 0, action="reopen")])
    assert view.progress(queued).labelled == 0
    assert list(view.answered(queued).latest) == [1]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"place": 6}, "no sentence 7"),
        ({"entities": [[0, 2, "A"], [1, 3, "B"]]}, "overlap"),
        ({"entities": [[0, 99, "A"]]}, "outside"),
        ({"entities": [[0, 1, "two words"]]}, "without blanks"),
        ({"entities": [[0, 1, ""]]}, "without blanks"),
        ({"entities": [[0, True, "A"]]}, "cannot be read"),
        ({"action": "undo"}, "cannot be read"),
        ({"seconds": -1.0}, "not valid, so it was not stored"),
        ({"seconds": float("nan")}, "not valid, so it was not stored"),
        ({"number": "0"}, "cannot be read"),
    ],
)
def test_an_invalid_answer_is_refused_with_its_whole_batch(queued: str, wrong: Mapping[str, object], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        view.answer(queued, [sent(0, 0), {**sent(1, 1), **wrong}])
    assert view.answered(queued).history == ()


def test_a_line_that_was_cut_off_is_ignored(queued: str) -> None:
    view.answer(queued, [sent(0, 0), sent(1, 1)])
    log = store().get(queued).path / answers.FILE
    log.write_bytes(log.read_bytes() + b'{"action":"label","pl')
    assert list(view.answered(queued).latest) == [0, 1]
    assert not answers.is_spoilt(log.parent)
    view.answer(queued, [sent(2, 2)])
    assert list(view.answered(queued).latest) == [0, 1, 2]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["label", "skip", "flag", "reopen"]), st.sampled_from("AB")),
        max_size=12,
    )
)
def test_the_state_of_a_sentence_is_its_last_answer(steps: list[tuple[int, answers.Action, str]]) -> None:
    history = [
        Answer(action=action, place=place, entities=(Entity(start=0, end=1, type=type),))
        for place, action, type in steps
    ]
    expected: dict[int, Answer] = {}
    for answer in history:
        expected.pop(answer.place, None)
        if answer.action != "reopen":
            expected[answer.place] = answer
    assert Answers(history=tuple(history)).latest == expected
    done = answers.progress(Answers(history=tuple(history)), [()] * 4)
    assert done.labelled + done.skipped + done.flagged + done.left == 4


def test_suggestions_that_were_accepted_unread_are_counted() -> None:
    found = (Entity(start=0, end=1, type="A"),)
    history = (
        Answer(action="label", place=0, entities=found, seconds=0.4),
        Answer(action="label", place=1, entities=found, seconds=9.0),
        Answer(action="label", place=2, entities=(), seconds=0.4),
        Answer(action="label", place=3, entities=(), seconds=0.4),
    )
    assert answers.progress(Answers(history=history), [found, found, found, ()]).unread == 1
    again = (Answer(action="reopen", place=1), Answer(action="label", place=1, entities=found, seconds=0.4))
    assert answers.progress(Answers(history=(*history, *again)), [found, found, found, ()]).unread == 1


def test_labelled_sentences_join_the_training_set_and_leave_the_queue(queued: str) -> None:
    with pytest.raises(ConfigError, match="No sentence is labelled"):
        view.training_set(queued)
    view.answer(queued, [sent(0, 0, (2, 3, "PARTY")), sent(1, 1, action="skip"), sent(2, 2, action="flag")])
    rows = view.to_label(queued)
    made = view.training_set(queued)
    first, second = next(made.batches())
    assert (first.text, second.text) == ("Acme pays Bo .", rows[0].sentence.text)
    assert second.entities == (Entity(start=2, end=3, type="PARTY"),)
    assert made.name == "train and 1 labelled"
    assert view.training_set(queued).fingerprint == made.fingerprint
    corpora.set_role("train", made.fingerprint)
    again = runs.execute("queue", {**view.queue_options(6), "encoder": "tiny"}).id
    assert again != queued
    assert not {task.queued.row for task in view.to_label(again)} & {rows[place].queued.row for place in range(3)}
    assert view.types(again) == ["ORG", "PARTY"]
    with pytest.raises(ConfigError, match="not a random sample"):
        view.measuring_sets(queued)


def test_two_queues_add_their_labels_one_after_the_other(queued: str) -> None:
    other = runs.execute("queue", {**view.queue_options(5), "encoder": "tiny"}).id
    assert other != queued
    view.answer(queued, [sent(n, n, (2, 3, "PARTY")) for n in range(3)])
    corpora.set_role("train", view.training_set(queued).fingerprint)
    mine = {task.sentence.id for task in view.to_label(queued)[:3]}
    new = [place for place, task in enumerate(view.to_label(other)) if task.sentence.id not in mine]
    view.answer(other, [sent(place, place, (2, 3, "PARTY")) for place in new[:1]])
    made = view.training_set(other)
    assert (len(made), made.name) == (1 + 3 + 1, "train and 4 labelled")
    corpora.set_role("train", made.fingerprint)
    # The first answer becomes a flag, the second changes its label.
    view.answer(queued, [sent(9, 0, action="flag"), sent(10, 1, (0, 1, "ORG"))])
    again = view.training_set(queued)
    assert (len(again), again.types["ORG"]) == (1 + 2 + 1, 2)
    assert again.name.startswith("train and 3 labelled")


def test_labels_of_another_queue_stay_if_both_queues_have_the_sentence(queued: str) -> None:
    other = runs.execute("queue", {**view.queue_options(6), "seed": 1, "encoder": "tiny"}).id
    place_in = {task.sentence.id: place for place, task in enumerate(view.to_label(other))}
    both = [place for place, task in enumerate(view.to_label(queued)) if task.sentence.id in place_in]
    assert len(both) > 1
    view.answer(queued, [sent(place, place, (2, 3, "PARTY")) for place in both])
    corpora.set_role("train", view.training_set(queued).fingerprint)
    first, second, *_ = (place_in[view.to_label(queued)[place].sentence.id] for place in both)
    view.answer(other, [sent(0, first, (0, 1, "ORG")), sent(1, second, action="skip")])
    made = view.training_set(other)
    assert (len(made), dict(made.types)) == (1 + len(both), {"PARTY": len(both) - 1, "ORG": 2})


def test_a_damaged_queue_does_not_prevent_another_one(queued: str) -> None:
    view.answer(queued, [sent(0, 0), sent(1, 1), sent(2, 2)])
    first = store().get(queued)
    rows = [each.row for each in queue.read(first)]
    lines = (first.artifacts / queue.FILE).read_text().splitlines()
    (first.artifacts / queue.FILE).write_text("\n".join([lines[0], lines[1], "damaged", *lines[3:]]))
    other = runs.execute("queue", {**first.manifest.config, "answered": ()})
    assert other.manifest.config["answered"] == sorted(rows[:2])  # the answers before the damage still count
    assert not {each.row for each in queue.read(other)} & set(rows[:2])


def test_an_answer_that_arrives_while_a_corpus_is_made_changes_nothing(
    queued: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = view.to_label(queued)[1].sentence  # as if another queue had labelled it
    rows = [sentence("Acme pays Bo .", [(0, 1, "ORG")]), replace(other, entities=(Entity(start=0, end=1, type="ORG"),))]
    corpora.set_role("train", library().seal(rows, name="both", origin={}, labelled=True).fingerprint)
    drawn = runs.execute("draw", {"task": view.corpus_of_run(queued), "n": 8}).id
    for run in (queued, drawn):
        view.answer(run, [sent(n, n, (0, 1, "PARTY")) for n in (0, *range(2, 6))])
    read = view.answered

    def arriving(run_id: str) -> Answers:
        found = read(run_id)
        answers.add(store().get(run_id).path, [Answer(action="label", place=1, client="other tab")])
        return found

    monkeypatch.setattr(view, "answered", arriving)
    assert view.training_set(queued).types["ORG"] == 2
    assert sum(map(len, view.measuring_sets(drawn))) == 5


def test_a_type_with_blanks_of_an_imported_corpus_can_be_used(queued: str, seal: Seal) -> None:
    odd = seal([sentence("Bo pays .", [(0, 1, "Agreement Date")])], "odd", labelled=True)
    with pytest.raises(ConfigError, match="without blanks"):
        view.answer(queued, [sent(0, 0, (0, 1, "Agreement Date"))])
    corpora.set_role("dev", odd.fingerprint)
    view.answer(queued, [sent(0, 0, (0, 1, "Agreement Date"))])
    assert view.answered(queued).labelled[0][0].type == "Agreement Date"


def test_entities_are_mapped_to_the_tokens_of_the_training_set(seal: Seal) -> None:
    glued = [sentence(f"Acme-{i} owes Bo", [(0, 1, "ORG")]) for i in range(30)]
    train = [
        type(one)(id=one.id, tokens=tuple(one.text.split()), text=one.text, entities=one.entities) for one in glued
    ]
    corpora.set_role("train", seal(train, "train", labelled=True).fingerprint)
    corpora.set_role("task", seal(["Zeta-1 owes Di"], "task").fingerprint)
    corpora.set_role("domain", seal([f"Zeta-{i} owes Flo" for i in range(2, 9)], "domain").fingerprint)
    run = runs.execute("queue", {**view.queue_options(3), "encoder": "tiny"}).id
    assert len(view.to_label(run)[0].sentence.tokens) > 3
    view.answer(run, [sent(0, 0, (0, 3, "ORG"))])
    last = list(next(view.training_set(run).batches()))[-1]
    assert last.tokens[1:] == ("owes", "Flo")
    assert last.entities == (Entity(start=0, end=1, type="ORG"),)


def test_random_sentences_become_a_dev_and_a_test_set(seal: Seal) -> None:
    known = seal([sentence(CLAUSES[0], [(2, 3, "PARTY")])], "known", labelled=True)
    corpora.set_role("task", seal([*CLAUSES, CLAUSES[3]], "task").fingerprint)
    corpora.set_role("train", known.fingerprint)
    run = runs.execute("draw", view.draw_options(100)).id
    rows = view.to_label(run)
    # Without sentences of the training set and duplicates.
    assert sorted(task.sentence.text for task in rows) == sorted(CLAUSES[1:])
    assert not any(task.sentence.entities for task in rows)
    view.answer(run, [sent(n, n, (2, 3, "PARTY")) for n in range(3)])
    with pytest.raises(ConfigError, match="label at least four"):
        view.measuring_sets(run)
    view.answer(run, [sent(n, n, (2, 3, "PARTY")) for n in range(3, 7)])
    dev, test = view.measuring_sets(run)
    assert (len(dev), len(test)) == (2, 5)
    assert [each.text for each in next(dev.batches())] == [rows[place].sentence.text for place in (0, 4)]
    assert len({each.text for each in next(test.batches())}) == 5
    with pytest.raises(ConfigError, match="were not selected for training"):
        view.training_set(run)


@pytest.mark.parametrize("tool", ["doccano", "prodigy"])
def test_a_tools_file_is_imported_once_and_its_changes_are_counted(
    queued: str, tool: str, tmp_path: Path, command: Command
) -> None:
    path = tmp_path / "labelled.jsonl"
    view.export(queued, path, tool)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for line in lines[:3]:
        end = line["text"].index(" ")
        if tool == "doccano":
            line["label"] = [[0, end, "WORD"]]
        else:
            line |= {"spans": [{"start": 0, "end": end, "label": "WORD"}], "answer": "accept"}
    lines[3]["text"] = "Another text ."
    path.write_text("".join(json.dumps(line) + "\n" for line in lines[:4]), "utf-8")
    view.answer(queued, [sent(0, 0)])
    code, printed, problem = command("label", "import", queued, path, "--json")
    assert code == 0, problem
    assert {key: json.loads(printed)[key] for key in ("labelled", "changed", "unknown")} == {
        "labelled": 3,
        "changed": 1,
        "unknown": 1,
    }
    assert view.answered(queued).labelled == {place: (Entity(start=0, end=1, type="WORD"),) for place in range(3)}
    n = len(view.answered(queued).history)
    assert command("label", "import", queued, path)[0] == 0
    assert len(view.answered(queued).history) == n
    view.answer(queued, [sent(5, 1, action="reopen")])
    view.import_labels(queued, path)
    assert 1 in view.answered(queued).labelled  # imported, undone, imported again
    code, printed, _ = command("label", "seal", queued)
    assert (code, printed) == (0, "train and 3 labelled: 4 sentences\n")


def test_labels_that_cannot_be_read_are_named_and_overwrite_nothing(
    queued: str, tmp_path: Path, command: Command
) -> None:
    path = tmp_path / "labelled.jsonl"
    view.export(queued, path, "doccano")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    end = lines[0]["text"].index(" ")
    lines[0]["label"] = [[0, end, "A"], [0, end + 2, "B"]]  # overlapping
    lines[1]["label"] = [[0, 999, "A"]]
    lines[2]["label"] = [[0, end, "A"]]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines[:3]) + "{\n", "utf-8")
    view.answer(queued, [sent(0, 0, (0, 1, "KEPT")), sent(1, 1, (0, 1, "KEPT"))])
    found = view.import_labels(queued, path)
    assert (found.labelled, found.changed, found.unknown) == (1, 0, 0)
    assert {problem.partition(":")[0] for problem in found.unread} == {"line 1", "line 2", "line 4"}
    assert "overlaps" in found.unread[0]
    kept = (Entity(start=0, end=1, type="KEPT"),)
    assert [view.answered(queued).labelled[place] for place in (0, 1)] == [kept, kept]
    code, printed, problem = command("label", "import", queued, path)
    assert (code, printed.startswith("1 sentence labelled")) == (0, True)
    assert all(f"not read: {one}" in problem for one in found.unread)


def test_a_zip_with_a_file_per_annotator_gives_each_their_own_labels(queued: str, tmp_path: Path) -> None:
    """Doccano writes such a zip. A text that one of them labelled alone is not counted for the other."""
    path = tmp_path / "labelled.zip"
    view.export(queued, tmp_path / "tasks.jsonl", "doccano")
    texts = [json.loads(line)["text"] for line in (tmp_path / "tasks.jsonl").read_text("utf-8").splitlines()]
    with ZipFile(path, "w") as archive:
        for name, labelled in (("ann", texts[:4]), ("bo", texts[1:5]), ("other", texts[5:])):
            rows = [{"text": text, "label": [[0, 3, name.upper()]] if text == texts[2] else []} for text in labelled]
            archive.writestr(f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    found = view.import_labels(queued, path, "me")
    assert (found.labelled, found.changed, found.unknown, found.annotators) == (6, 0, 0, ("ann", "bo"))
    log = view.answered(queued)
    assert {name: list(labels) for name, labels in log.by_annotator.items()} == {
        "ann": [0, 1, 2, 3],
        "bo": [1, 2, 3, 4],
        "me": [5],  # nobody else labelled these texts, so the file's name is no annotator's
    }
    assert list(log.unsettled) == [2]
    assert view.import_labels(queued, path, "me").changed == 0
    assert len(view.answered(queued).history) == 9


def test_a_file_by_one_annotator_says_that_its_labels_have_no_name(
    queued: str, tmp_path: Path, command: Command
) -> None:
    text = view.to_label(queued)[0].sentence.text
    file = tmp_path / "bo.jsonl"
    file.write_text(json.dumps({"text": text, "label": [], "annotator": "Bo"}), encoding="utf-8")
    assert "labels are stored without a name" in command("label", "import", queued, str(file))[2]
    assert "without a name" not in command("label", "import", queued, str(file), "--annotator", "Bo")[2]
    assert view.answered(queued).by_annotator.keys() == {"", "Bo"}


def test_named_annotators_get_their_rows_even_without_a_shared_text(queued: str, tmp_path: Path) -> None:
    texts = [task.sentence.text for task in view.to_label(queued)]
    rows = [("Ann", texts[0]), ("Bo", texts[1]), (None, texts[2])]
    lines: list[dict[str, Any]] = [{"text": text, "label": [], "annotator": name} for name, text in rows]
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert view.import_labels(queued, path, "me").annotators == ("Ann", "Bo")
    labels = view.answered(queued).by_annotator
    assert {name: list(own) for name, own in labels.items()} == {"Ann": [0], "Bo": [1], "me": [2]}
    lines[1]["annotator"] = "x" * 41
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    n = len(view.answered(queued).history)
    with pytest.raises(ConfigError, match="at most 40 letters"):
        view.import_labels(queued, path)
    assert len(view.answered(queued).history) == n


def test_unchanged_suggestions_are_counted_and_flags_can_be_removed(queued: str, tmp_path: Path) -> None:
    run = store().get(queued)
    rows = [replace(each, entities=(Entity(start=0, end=1, type="WORD"),)) for each in queue.read(run)]
    queue.write(run, rows)
    view.export(queued, tmp_path / "tasks.jsonl", "doccano")
    assert view.import_labels(queued, tmp_path / "tasks.jsonl").suggested == 6
    assert view.progress(queued).unread == 0  # nobody accepted them here, so the page names no time
    view.answer(queued, [sent(0, 2, action="flag"), sent(1, 3, action="flag"), sent(2, 4, action="skip")])
    view.answer(queued, [sent(0, 2, action="flag", annotator="Bo", client="bo")])
    view.reopen_flagged(queued, "")
    assert view.progress(queued).flagged == 0
    assert view.progress(queued, "Bo").flagged == 1
    assert [place for place in range(6) if place not in view.answered(queued).of("").latest] == [2, 3]


def test_labels_of_two_annotators_count_if_they_agree_or_are_settled(queued: str, command: Command) -> None:
    party, date = (1, 3, "PARTY"), (4, 5, "DATE")
    assert command("label", "agreement", queued)[1] == "No annotator has labelled sentences of this run.\n"
    view.answer(queued, [sent(n, n, party, client="a", annotator="Ann") for n in range(3)])
    assert command("label", "agreement", queued)[1] == "Only one annotator has labelled sentences of this run.\n"
    view.answer(queued, [sent(0, 0, party, client="b", annotator="Bo"), sent(1, 1, date, client="b", annotator="Bo")])
    found = view.answered(queued)
    assert found.by_annotator["Bo"].keys() == {0, 1}
    assert list(found.labelled) == [0, 2]
    ann, bo = Entity(start=1, end=3, type="PARTY"), Entity(start=4, end=5, type="DATE")
    assert found.unsettled == {1: {"Ann": (ann,), "Bo": (bo,)}}
    assert view.progress(queued, "Bo").labelled == 2
    assert len(view.training_set(queued)) == 1 + 2
    code, printed, _ = command("label", "agreement", queued)
    assert code == 0
    assert "Annotators differ on 1 sentence that is not settled yet." in printed
    with pytest.raises(ConfigError, match="has not labelled sentence 3"):
        view.settle(queued, 2, "Bo")
    view.settle(queued, 1, "Bo")
    found = view.answered(queued)
    assert found.labelled[1] == (bo,)
    assert (list(found.differing), found.unsettled) == ([1], {})
    assert len(view.training_set(queued)) == 1 + 3
    for client in "ab":  # both change their answer later, so the settlement no longer applies
        view.answer(queued, [sent(9, 1, (0, 1, "LATE"), client=client, annotator={"a": "Ann", "b": "Bo"}[client])])
    assert view.answered(queued).labelled[1] == (Entity(start=0, end=1, type="LATE"),)
    view.answer(queued, [sent(10, 0, action="flag", client="b", annotator="Bo")])
    assert 0 not in view.answered(queued).labelled
    child = next(run.id for run in runs.listed("audit"))
    for words in (("agreement", child), ("export", child, "--output", "labels.conll")):
        assert "has no sentences to label" in command("label", *words)[2]
    for name in ("settled", "x" * 41, "a\nb"):
        with pytest.raises(ConfigError, match="annotator's name"):
            view.answer(queued, [sent(0, 0, annotator=name)])


def test_agreement_is_f1_of_entities_and_kappa_of_tokens() -> None:
    long, short = Entity(start=0, end=2, type="P"), Entity(start=0, end=1, type="P")
    date = Entity(start=3, end=4, type="D")
    a, b = {0: [long, date], 1: [], 2: [short]}, {0: [short, date], 1: [], 3: []}
    rows = {row.type: row for row in answers.agreement(a, b, [5, 5, 1, 1])}
    assert [(row.a, row.b, row.f1) for row in rows.values()] == [(2, 2, 50.0), (1, 1, 100.0), (1, 1, 0.0)]
    # Type P: of 10 tokens, one is inside for both, one for a alone, and eight are outside for both.
    by_chance = 0.2 * 0.1 + 0.8 * 0.9
    assert rows["P"].kappa == pytest.approx((0.9 - by_chance) / (1 - by_chance))
    assert rows["D"].kappa == pytest.approx(1.0)
    assert answers.agreement({0: []}, {0: []}, [3]) == [answers.Agreement(type="", a=0, b=0, f1=None, kappa=None)]
    assert answers.agreement({0: []}, {1: []}, [3, 3]) == []
    whole = {0: [Entity(start=0, end=3, type="P")]}
    assert [row.kappa for row in answers.agreement(whole, whole, [3])] == [None, None]  # every token is alike


@pytest.mark.parametrize("tool", tasks.ENDINGS)
def test_labels_that_are_exported_and_imported_again_are_the_same(
    queued: str, tool: str, tmp_path: Path, seal: Seal, command: Command
) -> None:
    with pytest.raises(ConfigError, match="No sentence is labelled"):
        view.export_labelled(queued, tmp_path / "none", tool)
    dates = [sentence("Signed in May .", [(2, 3, "Agreement Date")])]
    corpora.set_role("dev", seal(dates, "dates", labelled=True).fingerprint)
    labels = [(1, 3, "PARTY"), (4, 5, "Agreement Date")]
    view.answer(queued, [sent(0, 0, *labels), sent(1, 1, (0, 1, "PARTY")), sent(2, 3)])
    before = view.answered(queued).labelled
    file = tmp_path / f"labelled{tasks.ENDINGS[tool]}"
    code, _, problem = command("label", "export", queued, "--tool", tool, "--output", file)
    assert code == 0, problem
    view.answer(queued, [sent(n, place, action="reopen") for n, place in ((3, 0), (4, 1), (5, 3))])
    assert view.answered(queued).labelled == {}
    found = view.import_labels(queued, file)
    assert (found.labelled, found.changed, found.unknown) == (3, 0, 0)
    assert view.answered(queued).labelled == before


def test_types_that_are_equal_in_brat_are_refused_there_only(queued: str, seal: Seal, tmp_path: Path) -> None:
    view.add_type("A_B")
    dates = [sentence("Signed in May .", [(2, 3, "A B")])]
    corpora.set_role("dev", seal(dates, "dates", labelled=True).fingerprint)
    view.answer(queued, [sent(0, 0, (1, 2, "A B"))])
    file, why = tmp_path / "labelled.zip", "'A B' and 'A_B' are both A_B in files for brat"
    for write in (view.export_labelled, view.export):
        with pytest.raises(ConfigError, match=why):
            write(queued, file, "brat")
    assert not file.exists()
    assert view.export_labelled(queued, tmp_path / "labelled.conll", "conll") == 1


@pytest.mark.parametrize(("ending", "begins"), [(".jsonl", '{"text": '), (".conll", "The\t"), (".txt", "The\t")])
def test_the_extension_of_an_exported_file_gives_its_tool(
    queued: str, ending: str, begins: str, tmp_path: Path, command: Command
) -> None:
    view.answer(queued, [sent(0, 0)])
    for words in (("--output", tmp_path / f"a{ending}"), ("--output", tmp_path / "b.jsonl", "--tool", "conll")):
        assert command("label", "export", queued, *words)[0] == 0
    assert (tmp_path / f"a{ending}").read_text("utf-8").startswith(begins)
    assert (tmp_path / "b.jsonl").read_text("utf-8").startswith("The\t")


@pytest.mark.parametrize("tool", tasks.ENDINGS)
def test_labels_come_back_for_text_with_marks_directly_after_words(seal: Seal, tool: str, tmp_path: Path) -> None:
    texts = [
        "Acme-Di (the owner's heir) pays: $5.",
        "Bo's tenant moved out, in May (early).",
        "“Flo”, of Leeds, sold the house.",
        "In all: seven rooms, etc.",
    ]
    run = runs.execute("draw", {"task": seal(texts, "task").fingerprint}).id
    view.answer(run, [sent(n, n, (0, 1, "ORG"), (2, 5, "PARTY")) for n in range(4)])
    file = tmp_path / f"labelled{tasks.ENDINGS[tool]}"
    view.export_labelled(run, file, tool)
    before = view.answered(run).labelled
    view.answer(run, [sent(4 + n, n, action="reopen") for n in range(4)])
    found = view.import_labels(run, file)
    assert (found.labelled, found.unknown) == (4, 0)
    assert view.answered(run).labelled == before


def test_a_text_that_is_two_sentences_without_blanks_is_not_guessed(seal: Seal, tmp_path: Path) -> None:
    rows = [sentence("Now here , Bo pays .", [(3, 4, "ORG")]), sentence("Nowhere, Bo pays .", [(2, 3, "DATE")])]
    copies = [replace(row, entities=()) for row in rows]
    run = runs.execute("review", {"corpus": seal([*rows, *copies], "own", labelled=True).fingerprint}).id
    file = tmp_path / "labelled.conll"
    file.write_text("".join(f"{token}\tO\n" for token in ("Nowhere", ",", "Bo", "pays", ".")), "utf-8")
    found = view.import_labels(run, file)
    assert (found.labelled, found.unknown) == (0, 1)


def test_a_run_that_has_not_finished_says_so(queued: str, command: Command) -> None:
    config = KINDS["queue"].config.parse({**store().get(queued).manifest.config, "n": 3})
    waiting = register(KINDS["queue"], config, store()).id
    code, _, problem = command("label", "export", waiting, "--output", "labels.conll")
    assert code == 2
    assert "has not finished, so it has no sentences yet" in problem


def test_types_and_guidelines_are_kept_in_the_project(queued: str, home: Path) -> None:
    assert view.types(queued) == ["ORG"]
    view.add_type("DATE")
    view.keep_guidelines("Label defined terms.")
    assert view.types(queued) == ["ORG", "DATE"]
    assert view.guidelines() == "Label defined terms."
    view.add_type("AMOUNT")
    assert view.types(queued) == ["ORG", "DATE", "AMOUNT"]  # new types keep the keys of the others
    file = home / "labelling.json"
    file.write_text("{")
    with pytest.raises(ConfigError, match="cannot be read, so nothing was changed"):
        view.keep_guidelines("")
    file.unlink()
    with pytest.raises(ConfigError, match="without blanks"):
        view.add_type("not one word")
    assert library().find("train").types == {"ORG": 1}
